"""A user who has a row in every table."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from shepherd_memory.memory import rejections, responses, restatements, twins, unconfirmed
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.memory.responses import StoredResponse
from shepherd_memory.phases import dirtiness, outputs, sections
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.sections import NewSection
from shepherd_memory.service import Service
from shepherd_memory.storage import tombstones, transcript_stops, users
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.work import ledger
from tests.contract.given import ManualClock, user_says, work


def furnish(service: Service, clock: ManualClock, user_id: str, word: str) -> None:
    """A row in every table that has users."""
    service.remember(user_id, [user_says(f"my job is {word}")], "chat")
    work(service)
    for value in (f"{word} one", f"{word} two"):
        clock.advance(1)
        service.set_fact(user_id, "motto", value)
    service.set_fact(user_id, "gone", word)
    service.forget(user_id, fact="gone")
    service.remember(user_id, [user_says(f"{word} {number} " * 50) for number in range(40)], "long")
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, clock())
        where = Provenance(clock(), "live")
        rejections.insert(
            tx, user_id, row_id, rejections.NewRejection("fact", "a", word, "no", "", where), clock()
        )
        waiting = unconfirmed.NewUnconfirmed("fact", "b", word, "reworded", "", word, "self", where)
        unconfirmed.insert(tx, user_id, users.lock(tx, user_id, clock()), waiting, clock())
        responses.put(tx, user_id, f"resp_{word}", StoredResponse("chat", 2), clock())
        said = NewDocument("chat@live", f"twin-{word}", f"my job is {word}", clock(), role="user")
        assert twins.set_apart(tx, user_id, [said], ["chat"]) == {0: True}
        ledger.record(tx, user_id, ledger.EXTRACTION, ledger.TokenCost(1, 1, 1, 1), clock())
        tombstones.add(tx, user_id, tombstones.CONTEXT, word, clock())
        tx.execute(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values (:user_id, 1, 0, :w, 1, :v)",
            user_id=user_id,
            w=word,
            v=service.database.vector([1.0, 2.0]),
        )
        tx.execute(
            "insert into session_history (user_id, id, group_name, session_id, name, created_at, archived_at)"
            " values (:user_id, 1, 'main', 'chat', :word, 1, 2)",
            user_id=user_id,
            word=word,
        )
    service.start_session(user_id, agent_name=word)
    service.set_global_memory(user_id, word)
    assert service.inject(user_id, [user_says(f"Who said {word}?")]).block is not None
    take_in(service, user_id, word)
    _insert_last(service, clock, user_id, word)


def _insert_last(service: Service, clock: ManualClock, user_id: str, word: str) -> None:
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, clock())
        said = Provenance(clock(), "live", "chat", "m1")
        restatements.add(tx, user_id, row_id, "fact", "motto", word, said)
        transcript_stops.forget_file(tx, user_id, f"{word}.jsonl", 1)
        outputs.put(tx, user_id, _output(word, row_id, clock()))
        version = dirtiness.next_version(tx, user_id, "main", "agent", word, clock())
        section = NewSection("MEMORY.md", word, word, clock(), sources=(row_id,))
        sections.add(tx, user_id, "main", users.lock(tx, user_id, clock()), section, version, clock())


def _output(word: str, conversation_id: int, now: int) -> Output:
    moment = from_us(now)
    made = ("succeeded", "kept", "", "m", moment)
    return Output("main", conversation_id, "chat", 1, moment, word, word, word, "", *made)


def take_in(service: Service, user_id: str, word: str) -> str:
    """A transcript of the user, on disk only until it is read; how that went."""
    line = {
        "type": "user",
        "uuid": f"said-{word}",
        "sessionId": "s",
        "timestamp": "2026-01-01T10:00:00Z",
        "message": {"role": "user", "content": f"{word} in a transcript"},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "project", "s.jsonl")
        path.parent.mkdir()
        path.write_text(json.dumps(line) + "\n")
        return service.transcripts.ingest(user_id, path).outcome
