"""Groups: `main` sees all of its user's, any other itself and `global`, and nothing tells of the rest."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from shepherd_memory import tools
from shepherd_memory.errors import NotFound
from shepherd_memory.memory import rejections, unconfirmed
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.storage.rows import Provenance
from tests.contract.given import ManualClock, memory, user_says

GROUPS = ("main", "a", "b", "global")
SEEN = {
    "main": {"main", "a", "b", "global"},
    "a": {"a", "global"},
    "b": {"b", "global"},
    "global": {"global"},
}


def word(group: str) -> str:
    """What only rows of this group have in them."""
    return f"word{group}"


def furnish(service: Service, clock: ManualClock, group: str) -> None:
    """The same keys and ids in every group; what is said there differs in one word."""
    service.set_fact("ada", "city", f"old {word(group)}", group=group)
    service.set_fact("ada", "city", f"{word(group)} town", group=group)
    service.add_context("ada", "Where do I live?", f"In {word(group)}", group=group)
    service.remember(
        "ada", [user_says(f"I like {word(group)}", id="m1")], "chat", group=group, cwd=f"/{word(group)}"
    )
    service.transcripts.poll()
    service.add_document("ada", f"a note on {word(group)}", group=group)
    where = Provenance(clock(), "test", "chat", "m1", group)
    with service.database.write() as tx:
        refused = NewRejection("fact", "pet", word(group), "not said", "", where)
        rejections.insert(tx, "ada", users.lock(tx, "ada", clock()), refused, clock())
        kept = NewUnconfirmed("fact", "pet", word(group), "reworded", "", word(group), "self", where)
        unconfirmed.insert(tx, "ada", users.lock(tx, "ada", clock()), kept, clock())
    service.inject("ada", [user_says(f"Where do I live? {group}")], session_id="chat", group=group)


def shown(service: Service, group: str) -> list[int]:
    """The ids of all rows as the group is shown those that it sees."""
    with service.database.read() as connection:
        return list(map(ids_of_group(connection, "ada", group).shown_id, range(60)))


READS: dict[str, Callable[[Service, str], Any]] = {
    "facts": lambda service, group: service.facts("ada", group=group),
    "get_fact": lambda service, group: service.get_fact("ada", "city", group=group),
    "fact_history": lambda service, group: service.fact_history("ada", "city", group=group),
    "context": lambda service, group: service.context("ada", group=group),
    "get_context": lambda service, group: [
        service.get_context("ada", number, group=group) for number in shown(service, group)
    ],
    "documents": lambda service, group: service.documents("ada", group=group),
    "documents of a session": lambda service, group: service.documents("ada", session_id="chat", group=group),
    "get_document": lambda service, group: [
        service.get_document("ada", number, group=group) for number in shown(service, group)
    ],
    "get_message": lambda service, group: service.get_message("ada", "chat", "m1", group=group),
    "conversations": lambda service, group: service.conversations("ada", group=group),
    "rejected": lambda service, group: service.rejected("ada", group=group),
    "unconfirmed": lambda service, group: service.unconfirmed("ada", group=group),
    "why": lambda service, group: service.why("ada", group=group),
    "export": lambda service, group: b"".join(service.export("ada", group=group)),
    "recall": lambda service, group: service.recall(
        "ada", "where do I live? I like a note on my city town", 50, 0.0, explain=True, group=group
    ),
    "inject": lambda service, group: service.inject(
        "ada", [user_says("What do I like, and where do I live?")], group=group
    ),
    "profile": lambda service, group: service.profile("ada", group=group),
    "search_memory": lambda service, group: tools.execute(
        service, "ada", "search_memory", {"query": "Where do I live?", "max_results": 20}, group
    ),
    "get_fact tool": lambda service, group: tools.execute(service, "ada", "get_fact", {"key": "city"}, group),
    "list_facts": lambda service, group: tools.answer(service, "ada", "list_facts", {}, group=group),
    "recall tool": lambda service, group: tools.answer(
        service, "ada", "recall", {"query": "like note city live", "min_confidence": 0}, group=group
    ),
    "fact_history tool": lambda service, group: tools.answer(
        service, "ada", "fact_history", {"key": "city"}, group=group
    ),
}

OF_ONE_GROUP = (
    "search_memory",
    "get_fact",
    "fact_history",
    "get_message",
    "get_fact tool",
    "fact_history tool",
    "inject",
    "profile",
)
"""What is looked for by a key is that of the nearest group; a prompt has room for the best only."""


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", READS)
def test_a_group_is_shown_what_it_sees_and_no_more(
    url: str, clock: ManualClock, name: str, group: str
) -> None:
    with memory(url, clock) as service:
        for each in GROUPS:
            furnish(service, clock, each)
        shown = repr(READS[name](service, group))
    found = {each for each in GROUPS if word(each) in shown}
    assert found <= SEEN[group]
    assert group in found
    if name not in OF_ONE_GROUP:
        assert found == SEEN[group]


@pytest.mark.every_scheme
def test_a_group_gets_the_same_answers_and_scores_whatever_other_groups_hold(
    url: str, clock: ManualClock
) -> None:
    asked = "where do I live? I like a note on my city town"
    with memory(url, clock) as service:
        furnish(service, clock, "b")
        before = service.recall("ada", asked, 50, 0.0, explain=True, group="b")
        counts = service.row_counts("ada", group="b"), service.unembedded("ada", group="b")
        for number in range(30):
            service.remember(
                "ada", [user_says(f"note {number}: I like to live in a city")], "chat", group="a"
            )
        service.set_fact("ada", "town", "where I live", group="a")
        after = service.recall("ada", asked, 50, 0.0, explain=True, group="b")
        assert [(hit.id, hit.score, hit.confidence, hit.parts) for hit in after.hits] == [
            (hit.id, hit.score, hit.confidence, hit.parts) for hit in before.hits
        ]
        assert (service.row_counts("ada", group="b"), service.unembedded("ada", group="b")) == counts
        # Nor does a new process, which reads all at once.
    with memory(url, clock) as service:
        again = service.recall("ada", asked, 50, 0.0, explain=True, group="b")
        assert again == after


def test_one_groups_pair_message_and_tombstone_do_not_block_anothers(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        assert service.add_context("ada", "Where?", "There", group="a") == "stored"
        assert service.add_context("ada", "Where?", "There", group="b") == "stored"
        assert service.remember("ada", [user_says("hi", id="m")], "s", group="a").stored == 1
        assert service.remember("ada", [user_says("hi", id="m")], "s", group="b").stored == 1
        assert service.forget("ada", session="s", group="a").documents == 1
        assert service.message_ids("ada", "s", group="b") == {"m"}
        assert service.remember("ada", [user_says("hi", id="m")], "s", group="a").stored == 0
        assert service.remember("ada", [user_says("hi", id="m")], "s").stored == 1


@pytest.mark.parametrize("actor", ["main", "b", "global"])
def test_forgetting_acts_in_its_own_group(url: str, clock: ManualClock, actor: str) -> None:
    with memory(url, clock) as service:
        for each in GROUPS:
            furnish(service, clock, each)
        rows = service.row_counts("ada", group="a")
        (document,) = [one for one in service.documents("ada", group="a") if "like worda" in one.text]
        (pair,) = [one for one in service.context("ada", group="a") if one.group_name == "a"]
        (refused,) = [one for one in service.rejected("ada", group="a") if one.group_name == "a"]
        assert not service.forget("ada", document=document.id, group=actor).total
        assert not service.forget("ada", context=pair.id, group=actor).total
        with pytest.raises(NotFound):
            service.accept("ada", refused.id, group=actor)
        (kept,) = [one for one in service.unconfirmed("ada", group="a") if one.group_name == "a"]
        for decide in (service.confirm, service.refuse):
            with pytest.raises(NotFound):
                decide("ada", kept.id, group=actor)
        with pytest.raises(NotFound):
            service.replace_answer("ada", pair.id, "elsewhere", group=actor)
        assert service.forget("ada", fact="city", group=actor).facts == 1
        assert service.forget("ada", session="chat", group=actor).total
        seen = service.facts("ada", group="a")
        assert "worda town" in [fact.value for fact in seen]
        if actor != "global":
            assert service.row_counts("ada", group="a") == rows
        assert service.forget("ada", document=document.id, group="a").total == 1


def test_prompts_are_told_the_facts_of_their_group_then_those_of_global(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.set_fact("ada", "city", "Bonn", group="global")
        service.set_fact("ada", "name", "Ada", group="global")
        service.set_fact("ada", "city", "Rome", group="a")
        service.set_fact("ada", "pet", "Rex", group="main")
        told = {
            group: service.inject("ada", [user_says("Hello there")], group=group).block
            for group in ("a", "b", "main")
        }
    lines = {group: block.text.split("\n")[0] for group, block in told.items() if block}
    assert lines == {
        "a": "[facts: city=Rome, name=Ada]",
        "b": "[facts: city=Bonn, name=Ada]",
        "main": "[facts: pet=Rex, city=Bonn, name=Ada]",
    }


def test_what_main_recalls_of_another_group_is_labelled_with_it(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("The zeppelin leaves at noon")], "s", group="work")
        service.set_fact("ada", "zeppelin_pilot", "Hugo", group="work")
        found = service.recall("ada", "when does the zeppelin leave?", threshold=0.0)
        assert {hit.group for hit in found.hits} == {"work"}
        block = service.inject("ada", [user_says("When does the zeppelin with its pilot leave?")]).block
        assert block is not None
        assert "[facts:" not in block.text
        assert ", group work) user: The zeppelin leaves at noon" in block.text


def test_an_export_carries_groups_and_one_of_before_becomes_main(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for each in GROUPS:
            furnish(service, clock, each)
        whole = b"".join(service.export("ada"))
        service.import_lines("eve", io.BytesIO(whole))
        for each in GROUPS:
            mine = {fact.value for fact in service.facts("ada", group=each)}
            assert {fact.value for fact in service.facts("eve", group=each)} == mine
        lines = [json.loads(line) for line in b"".join(service.export("ada", group="a")).splitlines()]
        lines[0]["version"] = 1
        for line in lines:
            if line.get("line") not in ("document", "session"):
                line.pop("group_name", None)
        old = [line for line in lines if line.get("line") != "session" and "global" not in str(line)]
        service.import_lines("old", io.BytesIO(b"\n".join(json.dumps(line).encode() for line in old)))
        assert {fact.group_name for fact in service.facts("old")} == {"main"}
        assert {one.group_name for one in service.documents("old")} == {"main"}
        service.import_lines("into", io.BytesIO(whole), group="b")
        assert {one.group_name for one in service.documents("into")} == {"b"}
        assert service.erase("ada").left == {}


@pytest.mark.every_scheme
def test_what_is_said_in_a_group_waits_for_extraction_there(url: str, clock: ManualClock) -> None:
    with memory(url, clock, "http://127.0.0.1:9") as service:
        assert service.remember("ada", [user_says("I am Ada")], "s", group="a").queued
        assert service.remember("ada", [user_says("I am Ada")], "s").queued
        assert len(service.items("ada", session_id="s", group="a")) == 1
        assert len(service.items("ada")) == 2
        assert service.items("ada", group="b") == []
        assert service.item_counts("ada", group="b")["waiting"] == 0
        assert service.item_counts("ada", group="a")["waiting"] == 1


@pytest.mark.every_scheme
def test_items_are_counted_and_cut_among_those_that_a_group_sees(url: str, clock: ManualClock) -> None:
    with memory(url, clock, "http://127.0.0.1:9") as service:
        for group, session in [("a", "s1"), ("b", "s2"), ("global", "s3"), ("aa", "s4"), ("a", "s5")]:
            service.remember("ada", [user_says("I am Ada")], session, group=group)
        first, shared, last = service.items("ada", group="a")
        assert [of_work_key(item.key) for item in (first, shared, last)] == [
            ("s1", "a"),
            ("s3", "global"),
            ("s5", "a"),
        ]
        assert service.items("ada", group="a", limit=1) == [first]
        assert service.items("ada", group="a", limit=1, newest=True) == [last]
        assert service.items("ada", "failed", group="a") == []
        assert service.drop("ada", last.id, group="a")
        assert service.count_items("ada", "waiting", "dropped", group="a") == 3
        assert service.count_items("ada", "waiting", due=True, group="a") == 2
        assert service.item_counts("ada", group="a") | {"waiting": 0} == {
            "waiting": 0,
            "running": 0,
            "done": 0,
            "failed": 0,
            "dropped": 1,
        }
        assert service.count_items("ada", "waiting", group="global") == 1


def test_what_has_failed_is_retried_for_all_users_in_the_group_that_is_named(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock, "http://127.0.0.1:9") as service:
        for user in ("ada", "ben"):
            for group in ("a", "main"):
                clock.advance(1)
                service.remember(user, [user_says("I live in Ulm")], "s", group=group)
        with service.database.write() as tx:
            tx.execute("update jobs set status = 'failed', ended_at = queued_at")
        put_back = service.retry_all_failed(group="a")
        assert [(job.user_id, of_work_key(job.key)[1]) for job in put_back] == [("ada", "a"), ("ben", "a")]
        assert service.retry_all_failed(group="b") == []
        assert service.status().items["failed"] == 2
        assert len(service.retry_all_failed()) == 2
