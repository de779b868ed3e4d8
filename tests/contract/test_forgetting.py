"""What is deleted stays deleted: with what hangs together, whatever way it might come back."""

import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.chat.session import ChatSession, Options
from shepherd_memory.config import Provider
from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import saved_chats
from shepherd_memory.service import Service
from shepherd_memory.spool.replay import Replayer
from shepherd_memory.storage import tombstones
from tests.contract.given import ManualClock, facts_of, memory, pairs_of, texts_of, user_says, work
from tests.endpoint import ScriptedEndpoint, by_content, reply, user_text
from tests.provider import ScriptedProvider, ToolCall, chat, openai_stream
from tests.same_said import UNSEEN, look_for_same
from tests.transcripts import append, user_line, write

ADA, WORD = "ada", "teal"
STATEMENT = "my favorite color is teal"
SAID_AT = "2026-09-21T10:00:00Z"
PAIR = ("What is the user's favorite color?", "teal")
REWORDED = {"favourite_colour": WORD, "color_preference": WORD, "favorite_color": WORD}
REWORDED_PAIR = ("What color is the user's favorite?", "It is teal")


def answered(facts: dict[str, str], pair: tuple[str, str] = PAIR) -> Any:
    """An endpoint that finds these in the statement, and a dog in the other one."""

    def choose(body: Any) -> Any:
        said = user_text(body)
        found = facts if WORD in said else {}
        dog = {"dog": "Rex"} if "Rex" in said else {}
        return reply({**found, **dog}, [pair] if found else [])

    return by_content(choose)


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    endpoint.default = answered({"favorite_color": WORD})
    with memory(url, clock, endpoint.url) as opened:
        yield opened


def state(service: Service, clock: ManualClock, *texts: str, session: str = "monday", **more: Any) -> None:
    """The user says these, and they are extracted."""
    for text in texts:
        clock.advance(60)
        service.remember(ADA, [user_says(text, **more)], session)
        work(service)


def document_of(service: Service, text: str) -> int:
    return next(document.id for document in service.documents(ADA) if document.text == text)


# What hangs together.


@pytest.mark.every_scheme
def test_a_document_goes_with_the_fact_and_the_pair_that_were_made_of_it(
    service: Service, clock: ManualClock
) -> None:
    state(service, clock, STATEMENT, "my dog is Rex")
    assert (set(facts_of(service, ADA)), pairs_of(service, ADA)) == ({"favorite_color", "dog"}, [PAIR])
    gone = service.forget(ADA, document=document_of(service, STATEMENT))
    assert (gone.facts, gone.context, gone.documents) == (1, 1, 1)
    assert (facts_of(service, ADA), pairs_of(service, ADA)) == ({"dog": "Rex"}, [])
    assert texts_of(service, ADA) == ["my dog is Rex"]


def test_a_fact_goes_with_the_message_that_says_it_and_no_prompt_is_told_of_it(
    service: Service, clock: ManualClock
) -> None:
    state(service, clock, STATEMENT)
    service.forget(ADA, fact="favorite_color")
    assert texts_of(service, ADA) == []
    assert service.inject(ADA, [user_says("What is my favorite color?")]).block is None


def test_all_statements_in_a_facts_history_go_with_it(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    for colour in ("red", "teal", "blue"):
        endpoint.default = reply({"favorite_color": colour})
        state(service, clock, f"my favorite color is {colour}", session=colour)
    plan = service.plan_forgetting(ADA, fact="favorite_color")
    assert (plan.facts, plan.documents) == (1, 3)
    assert service.forget(ADA, fact="favorite_color").documents == 3
    assert texts_of(service, ADA) == []


def test_a_statement_that_said_the_same_value_before_goes_with_the_fact(
    service: Service, clock: ManualClock
) -> None:
    state(service, clock, STATEMENT, session="one")
    state(service, clock, "teal is my favorite color", session="two")
    state(service, clock, "color? my favorite is teal", session="three")
    service.forget(ADA, fact="favorite_color")
    assert texts_of(service, ADA) == []


def test_a_statement_that_says_it_less_plainly_goes_with_the_fact(
    service: Service, clock: ManualClock
) -> None:
    state(service, clock, STATEMENT, session="one")
    state(service, clock, "well, as for my favorite color, I would think of teal", session="two")
    assert [one.key for one in service.facts(ADA)] == ["favorite_color"]
    service.forget(ADA, fact="favorite_color")
    assert texts_of(service, ADA) == []


def test_a_fact_that_another_statement_says_too_stays_and_rests_on_that(
    service: Service, clock: ManualClock
) -> None:
    state(service, clock, "teal is my favorite color", session="one")
    state(service, clock, STATEMENT, session="two")
    document = document_of(service, STATEMENT)
    plan = service.plan_forgetting(ADA, document=document)
    assert (plan.facts, [one.kind for one in plan.goes]) == (0, ["context", "document"])
    assert {("fact", "favorite_color"), ("document", "1")} <= {(one.kind, one.id) for one in plan.same}
    assert service.forget(ADA, document=document).facts == 0
    (fact,) = service.facts(ADA)
    assert (fact.value, fact.session_id) == (WORD, "one")
    service.forget(ADA, document=1)
    assert facts_of(service, ADA) == {}


def test_a_fact_that_had_another_value_before_has_that_one_again(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = reply({"favorite_color": "red"})
    state(service, clock, "my favorite color is red", session="one")
    endpoint.default = answered({"favorite_color": WORD})
    state(service, clock, STATEMENT, session="two")
    service.forget(ADA, document=document_of(service, STATEMENT))
    assert facts_of(service, ADA) == {"favorite_color": "red"}
    assert [past.value for past in service.fact_history(ADA, "favorite_color")] == ["red"]


def test_a_note_goes_with_the_statement_that_it_was_made_of_and_the_other_way_round(
    service: Service, clock: ManualClock
) -> None:
    for target in ("statement", "note"):
        state(service, clock, STATEMENT, session=target, id="m1")
        note = service.add_document(ADA, "Likes teal.", type="learning", session_id=target, made_of="m1")
        chosen = note if target == "note" else document_of(service, STATEMENT)
        assert service.forget(ADA, document=chosen).documents == 2
        assert (texts_of(service, ADA), facts_of(service, ADA)) == ([], {})
        clock.advance(60)
        again = service.add_document(ADA, "Likes teal a lot.", session_id=target, made_of="m1")
        assert (again, texts_of(service, ADA)) == (0, [])


def test_a_reply_that_repeats_the_statement_goes_with_it(service: Service, clock: ManualClock) -> None:
    replies = ["Teal is a lovely color!", "Anything else?"]
    service.remember(
        ADA, [user_says(STATEMENT), *({"role": "assistant", "content": one} for one in replies)], "monday"
    )
    work(service)
    service.forget(ADA, fact="favorite_color")
    assert texts_of(service, ADA) == ["Anything else?"]


def test_only_leaves_what_the_row_rests_on_and_nothing_more_is_made_of_that(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    state(service, clock, STATEMENT, id="m1")
    gone = service.forget(ADA, fact="favorite_color", only=True)
    assert (gone.facts, gone.total) == (1, 1)
    assert (texts_of(service, ADA), pairs_of(service, ADA)) == ([STATEMENT], [PAIR])
    endpoint.default = answered(REWORDED, REWORDED_PAIR)
    with service.database.write() as tx:
        tx.execute("update jobs set status = 'waiting' where user_id = :user_id", user_id=ADA)
    work(service)
    assert facts_of(service, ADA) == {}
    assert pairs_of(service, ADA) == [PAIR]
    document = service.documents(ADA)[0].id
    assert service.forget(ADA, document=document, only=True).total == 1
    assert pairs_of(service, ADA) == [PAIR]


def test_what_says_the_same_is_shown_and_goes_on_consent(service: Service, clock: ManualClock) -> None:
    service.set_fact(ADA, "color_preference", WORD)
    state(service, clock, STATEMENT, session="one")
    clock.advance(60)
    service.add_document(ADA, "My favorite color is TEAL.", session_id="two")
    plan = service.plan_forgetting(ADA, fact="favorite_color")
    assert {(one.kind, one.id) for one in plan.goes} == {
        ("fact", "favorite_color"), ("context", "5"), ("document", "2")
    }  # fmt: skip
    assert [(one.kind, one.text) for one in plan.same] == [
        ("fact", "color_preference: teal"),
        ("document", "My favorite color is TEAL."),
    ]
    assert service.plan_forgetting(ADA, fact="favorite_color", only=True).same == []
    service.forget(ADA, fact="favorite_color", same=True)
    assert (facts_of(service, ADA), texts_of(service, ADA)) == ({}, [])


@pytest.mark.parametrize("with_fact", [True, False])
def test_what_says_the_same_in_other_words_is_found_by_its_meaning(
    url: str, clock: ManualClock, with_fact: bool
) -> None:
    with memory(url, clock, embedding_engine="onnx") as service:
        found = look_for_same(service, UNSEEN, with_fact, clock())
    assert found.recall >= 0.9
    assert found.precision >= 0.85


@pytest.mark.every_scheme
def test_what_says_the_same_in_other_words_is_of_the_same_user_and_group(
    url: str, clock: ManualClock
) -> None:
    reworded = "Teal is the colour I like best."
    with memory(url, clock, embedding_engine="onnx") as service:
        said = service.add_document(ADA, STATEMENT, type="message", role="user", session_id="one")
        service.add_document(ADA, "my favorite color is red", type="message", role="user", session_id="two")
        for user, group in itertools.product((ADA, "bob"), ("main", "boat", "global")):
            service.add_document(user, reworded, type="message", role="user", session_id="two", group=group)
        before = service.plan_forgetting(ADA, document=said).same
        for user in (ADA, "bob"):
            service.embed_own(user)
        assert (before, [one.text for one in service.plan_forgetting(ADA, document=said).same]) == (
            [],
            [reworded],
        )
        assert service.plan_forgetting(ADA, document=said, only=True).same == []
        assert service.forget(ADA, document=said, same=True).documents == 2
        assert {one.group_name for one in service.documents(ADA) if one.text == reworded} == {
            "boat",
            "global",
        }
        assert len(service.documents("bob")) == 3


def test_small_talk_of_a_session_is_not_looked_for_elsewhere(url: str, clock: ManualClock) -> None:
    with memory(url, clock, embedding_engine="onnx") as service:
        for session, text in (("one", "Thank you so much!"), ("two", "Many thanks to you")):
            service.remember(ADA, [user_says(text)], session)
        service.embed_own(ADA)
        assert service.plan_forgetting(ADA, session="one").same == []


def test_one_thing_is_forgotten_alone_or_with_the_same_but_not_both(service: Service) -> None:
    with pytest.raises(InvalidInput):
        service.forget(ADA, fact="favorite_color", only=True, same=True)
    with pytest.raises(InvalidInput):
        service.plan_forgetting(ADA, fact="a", session="b")
    assert service.plan_forgetting(ADA, fact="favorite_color").total == 0


@pytest.mark.every_scheme
def test_neither_another_user_nor_another_group_is_shown_or_touched(
    service: Service, clock: ManualClock
) -> None:
    for user, group in itertools.product((ADA, "bob"), ("main", "boat")):
        service.remember(user, [user_says(STATEMENT, id="m1")], "monday", group=group)
    work(service)
    (mine,) = (one for one in service.documents(ADA) if one.group_name == "main")
    targets: list[dict[str, Any]] = [{"fact": "favorite_color"}, {"document": mine.id}, {"session": "monday"}]
    for target in targets:
        plan = service.plan_forgetting(ADA, **target)
        assert len([one for one in [*plan.goes, *plan.same] if one.kind == "document"]) == 1
        assert service.plan_forgetting(ADA, group="else", **target).total == 0
        assert service.forget(ADA, group="else", same=True, **target).total == 0
        assert service.plan_forgetting("eve", **target).total == 0
    service.forget(ADA, fact="favorite_color", same=True)
    assert {one.group_name for one in service.documents(ADA)} == {"boat"}
    assert {one.group_name for one in service.facts(ADA)} == {"boat"}
    assert len(service.documents("bob")) == len(service.facts("bob")) == 2


# What does not come back.


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", ["fact", "document", "session"])
def test_an_old_copy_of_a_buried_statement_brings_nothing_back_under_any_key_or_wording(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, target: str
) -> None:
    state(service, clock, STATEMENT, id="m1")
    chosen = {"fact": "favorite_color", "document": document_of(service, STATEMENT), "session": "monday"}
    service.forget(ADA, **{target: chosen[target]})
    endpoint.default = answered(REWORDED, REWORDED_PAIR)
    state(service, clock, STATEMENT, id="m1", created_at=SAID_AT)
    state(service, clock, STATEMENT.upper() + "!", session="an old transcript", created_at=SAID_AT)
    assert (facts_of(service, ADA), pairs_of(service, ADA), texts_of(service, ADA)) == ({}, [], [])
    assert service.rejected(ADA) == []
    state(service, clock, STATEMENT, session="a newer chat")
    assert facts_of(service, ADA) == REWORDED
    assert texts_of(service, ADA) == [STATEMENT]


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", ["document", "fact"])
def test_a_statement_that_was_edited_since_is_known_by_its_id_to_be_buried(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, target: str
) -> None:
    edited = f"{WORD} has always been the colour that I like best"
    state(service, clock, STATEMENT, id="m1")
    chosen = {"fact": "favorite_color", "document": document_of(service, STATEMENT)}
    service.forget(ADA, **{target: chosen[target]})
    endpoint.default = answered({"colour_liked_best": WORD}, REWORDED_PAIR)
    state(service, clock, edited, id="m1", created_at=SAID_AT)
    assert (facts_of(service, ADA), pairs_of(service, ADA), texts_of(service, ADA)) == ({}, [], [])
    state(service, clock, edited, id="m2", created_at=SAID_AT)
    assert texts_of(service, ADA) == [edited], "only its id tells"


@pytest.mark.parametrize("chosen", ["reply", "session"])
def test_a_reply_that_was_edited_since_is_known_by_its_id_to_be_buried(
    service: Service, clock: ManualClock, chosen: str
) -> None:
    said, edited = "Teal goes well with oak.", "Teal would go well with oak, and with ash too."
    service.remember(
        ADA, [user_says("hello", id="m1"), {"role": "assistant", "content": said, "id": "a1"}], "monday"
    )
    clock.advance(1)
    target = {"reply": {"document": document_of(service, said)}, "session": {"session": "monday"}}
    assert service.forget(ADA, **target[chosen]).documents
    clock.advance(1)
    known = service.remember(ADA, [{"role": "assistant", "content": edited, "id": "a1"}], "monday")
    assert (known.stored, edited in texts_of(service, ADA)) == (0, False)
    assert service.remember(ADA, [{"role": "assistant", "content": edited, "id": "a2"}], "monday").stored == 1


def test_what_a_model_makes_of_a_statement_that_is_forgotten_meanwhile_is_not_stored(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    service.remember(ADA, [user_says(STATEMENT, id="m1")], "monday")

    def forget(body: Any) -> Any:
        with service.database.write() as tx:
            tombstones.add(tx, ADA, tombstones.STATEMENT, "m1", clock(), "monday")
        return reply(REWORDED, [REWORDED_PAIR])

    endpoint.default = by_content(forget)
    work(service)
    assert (facts_of(service, ADA), pairs_of(service, ADA)) == ({}, [])
    assert {(one.name, one.content, one.reason) for one in service.rejected(ADA)} == {
        ("?", "", "deleted by the user")
    }


def test_a_copy_that_was_there_and_is_not_wanted_gone_stays_when_its_file_is_read_again(
    service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    files = [write(tmp_path / name / f"{name}.jsonl", [user_line(0, STATEMENT)]) for name in ("one", "two")]
    for path in files:
        service.transcripts.ingest(ADA, path)
    service.forget(ADA, session="one")
    for path in files:
        service.transcripts.ingest(ADA, path, reimport=True)
    assert [document.session_id for document in service.documents(ADA)] == ["two"]


# What a memory tool returned.

RETURNED = f"Found 1 memory:\n1. [relevance 0.90, 2026-09-21] user: {STATEMENT}"
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "search_memory", "arguments": "{}"}}
MCP_CALL = {**OPENAI_CALL, "function": {"name": "mcp__shepherd__recall", "arguments": "{}"}}
ANTHROPIC_CALL = {"type": "tool_use", "id": "c1", "name": "mcp__memory__search_memory", "input": {}}
MCP_USE = {**ANTHROPIC_CALL, "type": "mcp_tool_use", "name": "list_facts", "server_name": "shepherd"}
BLOCK = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": RETURNED}]}

TOOL_RESULTS: dict[str, list[list[dict[str, Any]]]] = {
    "by its name": [[{"role": "tool", "name": "search_memory", "content": RETURNED}]],
    "by a prefixed name": [[{"role": "tool", "name": "mcp__shepherd__get_fact", "content": "x = teal"}]],
    "by a call before it": [
        [{"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
         {"role": "tool", "tool_call_id": "c1", "content": f"color = {WORD}"}]
    ],
    "by a call that was stored before": [
        [{"role": "assistant", "content": "", "tool_calls": [MCP_CALL]}],
        [{"role": "tool", "tool_call_id": "c1", "content": f"color = {WORD}"}],
    ],
    "by how it reads": [[{"role": "tool", "tool_call_id": "c9", "content": RETURNED}]],
    "of Anthropic": [
        [{"role": "assistant", "content": [ANTHROPIC_CALL]}, {"role": "user", "content": [BLOCK]}]
    ],
    "of Anthropic, beside words": [
        [{"role": "assistant", "content": [ANTHROPIC_CALL]},
         {"role": "user", "content": [BLOCK, {"type": "text", "text": "And now?"}]}]
    ],
    "of Anthropic's own client": [
        [{"role": "assistant", "content": [MCP_USE, {**BLOCK, "type": "mcp_tool_result"}]}]
    ],
    "of Responses": [
        [{"type": "function_call", "call_id": "c1", "name": "shepherd__search_memory", "arguments": "{}"},
         {"type": "function_call_output", "call_id": "c1", "output": RETURNED}]
    ],
    "of an old function": [[{"role": "function", "name": "recall", "content": RETURNED}]],
}  # fmt: skip


@pytest.mark.parametrize("handed_in", TOOL_RESULTS.values(), ids=TOOL_RESULTS)
def test_what_a_memory_tool_returned_is_not_stored(
    service: Service, clock: ManualClock, handed_in: list[list[dict[str, Any]]]
) -> None:
    for messages in handed_in:
        clock.advance(1)
        service.remember(ADA, messages, "monday")
    assert WORD not in dumped(service)


def test_what_other_tools_returned_is_stored(service: Service) -> None:
    call = {**OPENAI_CALL, "function": {"name": "read_file", "arguments": "{}"}}
    service.remember(
        ADA,
        [
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "the paint is teal"},
            {"role": "tool", "name": "search_web", "content": "teal is a bird"},
        ],
        "monday",
    )
    assert texts_of(service, ADA) == ["Let me look.", "the paint is teal", "teal is a bird"]


def test_what_an_older_version_stored_of_a_memory_tool_is_not_recalled(service: Service) -> None:
    service.add_document(ADA, RETURNED, type="message", role="tool", speaker_name="search_memory")
    assert service.recall(ADA, "favorite color teal", threshold=0.0).hits == ()
    service.add_document(ADA, "teal is a bird", type="message", role="tool", speaker_name="search_web")
    found = service.recall(ADA, "favorite color teal", threshold=0.0).hits
    assert [hit.text for hit in found] == ["teal is a bird"]


def dumped(service: Service) -> str:
    """Everything that is stored of the user."""
    return b"".join(service.export(ADA)).decode()


# The walk: every kind that can be forgotten, and every way by which it might come back.


@dataclass
class World:
    """A user who has said something, in every way in which it may be kept."""

    service: Service
    other: Service
    clock: ManualClock
    endpoint: ScriptedEndpoint
    provider: ScriptedProvider
    folder: Path
    exported: bytes = b""
    kept: list[Any] = field(default_factory=list)

    def ask(self, text: str) -> None:
        """A turn of a chat in which the model searches the memory."""
        call = ToolCall("c1", "search_memory", '{"query": "favorite color"}')
        self.provider.script(openai_stream(call), chat("I see."))
        session = ChatSession(self.service, ADA, Options(memtools=True, place=str(self.folder)))
        if self.kept:
            session.resume()
        session.ask(text, lambda event: None)
        self.kept.append(session.session_id)
        session.close()

    def prompts(self) -> str:
        return "".join(str(request.json) for request in self.provider.requests)


Step = Callable[[World], Any]
NOTHING: Step = lambda world: None  # noqa: E731


def _export(world: World) -> None:
    world.exported = b"".join(world.service.export(ADA))


def _import(world: World) -> None:
    world.service.import_lines(ADA, io.BytesIO(world.exported))


def _spool(world: World) -> None:
    assert world.service.deliver(ADA, [user_says(STATEMENT)], "I see.", "monday").to_spool().result()


def _replay_spool(world: World) -> None:
    assert Replayer(world.service.spool, world.service.store_exchange).store_waiting() == 1


def _say_again(world: World, **more: Any) -> None:
    world.service.remember(ADA, [user_says(STATEMENT, id="m1", **more)], "monday")


def _reword(world: World) -> None:
    world.endpoint.default = answered(REWORDED, REWORDED_PAIR)
    world.service.remember(ADA, [user_says(STATEMENT, created_at=SAID_AT)], "a copy of it")


def _take_in(world: World) -> None:
    path = world.folder / "project" / "monday-copy.jsonl"
    if not path.exists():
        write(path, [user_line(0, STATEMENT)])
    world.service.transcripts.ingest(ADA, path, reimport=True)


def _tool_result(world: World) -> None:
    world.service.remember(ADA, [{"role": "tool", "name": "search_memory", "content": RETURNED}], "later")


def _chat_again(world: World) -> None:
    world.provider.forget()
    world.ask("What is my favorite color?")
    assert WORD not in world.prompts()


def _search_elsewhere(world: World) -> None:
    found = world.other.recall(ADA, "favorite color", threshold=0.0)
    assert all(WORD not in hit.text for hit in found.hits)
    block = world.other.inject(ADA, [user_says("What is my favorite color?")]).block
    assert block is None or WORD not in block.text


def _hand_on(world: World) -> str:
    """What a session that begins now is told of those before it."""
    told = [world.service.previous_session(ADA, current="new", session_id=name) for name in SESSIONS]
    return "".join(one.text for one in told if one is not None)


def _begin_anew(world: World) -> None:
    assert WORD not in _hand_on(world)


def _archives(world: World, name: str) -> str:
    """What stands in the files of a folder of archives."""
    return "".join(path.read_text() for path in sorted((world.folder / name).rglob("*.md")))


def _begin_archive(world: World) -> None:
    world.service.begin_archive(ADA, "monday")
    assert STATEMENT in _archives(world, ARCHIVES)


def _keep_archive(world: World) -> None:
    world.service.archive_keeper.beat()
    assert WORD not in _archives(world, ARCHIVES)


def _export_archives(world: World) -> None:
    world.service.export_archives(ADA, world.folder / "exported", whole=True)
    assert STATEMENT in _archives(world, "exported")


def _export_archives_again(world: World) -> None:
    world.service.export_archives(ADA, world.folder / "exported", whole=True)
    found = _archives(world, "exported")
    assert ("my dog is Rex" in found, WORD in found) == (True, False)


def _keep_files(world: World) -> None:
    world.service.memory_file_keeper.beat()
    assert WORD in _archives(world, MEMORY_FILES)


def _keep_files_again(world: World) -> None:
    assert WORD not in _archives(world, MEMORY_FILES)


ARCHIVES, MEMORY_FILES = "archives", "memory-files"
SESSIONS = ("", "monday", "a copy of it", "later", "monday-copy")

WAYS_BACK: dict[str, tuple[Step, Step]] = {
    "tool loop": (lambda world: world.ask("Which color?"), _chat_again),
    "another process's cache": (
        lambda world: world.other.recall(ADA, "favorite color", threshold=0.0), _search_elsewhere
    ),
    "export and import": (_export, _import),
    "spool": (_spool, _replay_spool),
    "re-import": (NOTHING, _take_in),
    "replay": (NOTHING, lambda world: _say_again(world, created_at=SAID_AT)),
    "reworded key": (NOTHING, _reword),
    "tool result": (NOTHING, _tool_result),
    "rehydration": (lambda world: _hand_on(world).index(WORD), _begin_anew),
    "archive file": (_begin_archive, _keep_archive),
    "memory file": (_keep_files, _keep_files_again),
    "exported archive": (_export_archives, _export_archives_again),
}  # fmt: skip
"""What is done before the forgetting, and what after it. Whatever else keeps what was said belongs here."""

TARGETS: dict[str, Callable[[Service], dict[str, Any]]] = {
    "statement": lambda service: {"document": document_of(service, STATEMENT)},
    "fact": lambda service: {"fact": "favorite_color"},
    "pair": lambda service: {"context": service.context(ADA)[0].id},
    "session": lambda service: {"session": "monday"},
    "note": lambda service: {"document": document_of(service, "Wears teal.")},
}


@pytest.fixture
def world(url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path) -> Iterator[World]:
    endpoint.default = answered({"favorite_color": WORD})
    with ScriptedProvider() as provider:
        lab = Provider(
            "lab", type="openai", base_url=provider.url, model="m", memory=True, context_window=100_000
        )
        settings: dict[str, Any] = {
            "provider": "lab",
            "providers": {"lab": lab},
            "archive_folder": str(tmp_path / ARCHIVES),
            "memory_files_folder": str(tmp_path / MEMORY_FILES),
        }
        with (
            memory(url, clock, endpoint.url, **settings) as service,
            memory(url, clock, endpoint.url) as other,
        ):
            yield World(service, other, clock, endpoint, provider, tmp_path)


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_nothing_of_it_is_found_by_any_way_back(
    world: World, clock: ManualClock, target: Callable[[Service], dict[str, Any]]
) -> None:
    service = world.service
    state(service, clock, STATEMENT, id="m1")
    state(service, clock, "my dog is Rex", session="dogs")
    service.add_document(ADA, "Wears teal.", type="learning", session_id="monday", made_of="m1")
    for prepare, _ in WAYS_BACK.values():
        clock.advance(1)
        prepare(world)
    clock.advance(1)
    assert service.forget(ADA, **target(service)).total
    for way, (_, come_back) in WAYS_BACK.items():
        clock.advance(60)
        come_back(world)
        work(service)
        assert WORD not in dumped(service), way
        _search_elsewhere(world)
    assert facts_of(service, ADA) == {"dog": "Rex"}
    assert "my dog is Rex" in texts_of(service, ADA)


@pytest.mark.parametrize("way", ["export and import", "spool", "re-import", "replay", "reworded key"])
def test_each_way_would_bring_it_to_who_has_forgotten_nothing(world: World, way: str) -> None:
    prepare, come_back = WAYS_BACK[way]
    if way == "export and import":
        state(world.service, world.clock, STATEMENT)
    prepare(world)
    if way == "export and import":
        world.service.erase(ADA)
    world.clock.advance(60)
    come_back(world)
    work(world.service)
    assert STATEMENT in texts_of(world.service, ADA)
    # What is taken in of a transcript is extracted once its conversation is over.
    assert way == "re-import" or WORD in facts_of(world.service, ADA).values()


@pytest.mark.every_scheme
def test_what_the_walk_looks_at_tells_of_it_to_who_has_forgotten_nothing(
    world: World, clock: ManualClock
) -> None:
    state(world.service, clock, STATEMENT, id="m1")
    found = world.other.recall(ADA, "favorite color", threshold=0.0)
    assert any(WORD in hit.text for hit in found.hits)
    block = world.other.inject(ADA, [user_says("What is my favorite color?")]).block
    assert block is not None
    assert WORD in block.text
    assert WORD in _hand_on(world)
    world.ask("What is my favorite color?")
    assert WORD in world.prompts()
    assert WORD in dumped(world.service)


# Moving house.


@pytest.mark.every_scheme
def test_stops_and_tombstones_move_with_the_user(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    path = write(tmp_path / "project" / "boat.jsonl", [user_line(0, STATEMENT), user_line(1, "hello there")])
    service.transcripts.ingest(ADA, path)
    service.forget(ADA, session="boat")
    state(service, clock, "my dog is Rex", session="dogs", id="m1")
    service.forget(ADA, fact="dog")
    exported = b"".join(service.export(ADA))
    assert b'"line":"stop"' in exported
    with memory(other_url, clock, endpoint.url) as there:
        there.import_lines("bea", io.BytesIO(exported))
        assert [*there.export("bea")][1:] == [*service.export(ADA)][1:]
        there.remember("bea", [user_says("my dog is Rex", id="m1")], "dogs")
        assert there.transcripts.ingest("bea", path).entries == 0
        work(there)
        assert (there.documents("bea"), there.facts("bea")) == ([], [])


@pytest.mark.every_scheme
def test_how_far_a_file_was_read_before_its_user_was_erased_moves_with_them(
    service: Service, other_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    path = write(tmp_path / "project" / "boat.jsonl", [user_line(0, STATEMENT)])
    for user in (ADA, "bob"):
        service.transcripts.ingest(user, path)
    service.erase(ADA)
    append(path, [user_line(9, "hello again")])
    service.transcripts.ingest(ADA, path)
    exported = b"".join(service.export(ADA))
    assert exported.count(b'"line":"erased_file"') == 1
    assert b'"line":"erased_file"' not in b"".join((*service.export("bob"), *service.export(ADA, group="a")))
    with memory(other_url, clock) as there:
        for _ in range(2):
            there.import_lines("bea", io.BytesIO(exported))
            assert there.transcripts.ingest("bea", path).outcome != "failed"
            assert texts_of(there, "bea") == ["hello again"]
        assert [*there.export("bea")][1:] == [*service.export(ADA)][1:]
        there.transcripts.ingest("bea", path, reimport=True)
        assert texts_of(there, "bea") == [STATEMENT, "hello again"], "the user may still ask for it"


def test_the_statements_of_a_fact_move_with_the_user(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    state(service, clock, STATEMENT, session="one")
    state(service, clock, "teal is my favorite color", session="two")
    with memory(other_url, clock, endpoint.url) as there:
        there.import_lines(ADA, io.BytesIO(b"".join(service.export(ADA))))
        assert there.forget(ADA, fact="favorite_color").documents == 2


def test_a_saved_chat_keeps_neither_the_statement_nor_what_a_memory_tool_returned(
    world: World, clock: ManualClock
) -> None:
    state(world.service, clock, STATEMENT)
    world.ask("Which color?")
    saved = saved_chats.load(ADA, str(world.folder), "lab")
    assert saved is not None
    assert [message["role"] for message in saved.messages] == ["user", "assistant"]
    assert WORD not in str(saved.messages)
