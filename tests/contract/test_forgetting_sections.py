"""What is forgotten is in no memory file: notes, sections, skills, their past, and what was told of them."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.service import Service
from tests.consolidation_endpoint import ToolCall, agent, opening, results
from tests.contract.given import ManualClock, everything_of, facts_of, user_says
from tests.contract.test_consolidation import asked, consolidate
from tests.contract.test_phases import ADA, HOUR, make_notes, noting, settle
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, echo, user_text
from tests.note_endpoint import is_for_note, note

WORD = "teal"
SAID = f"my color is {WORD}"
SUMMARY, SKILL = "memory_summary.md", "skills/paint/SKILL.md"
QUESTION = [user_says("Which color do I like?")]


def noted() -> Step:
    """Facts, and notes that say what their conversations said."""
    with_word = note(f"They like {WORD}.", f"- paints all {WORD}", slug=f"{WORD}_paint")
    without = note("They have a dog Rex.", "- a dog, Rex", slug="dog")

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        if not is_for_note(body):
            return echo()
        return with_word if WORD in user_text(body) else without

    return by_content(choose)


def numbers(body: Body) -> dict[str, list[int]]:
    """The conversations of a run, by whether their notes say it."""
    found: dict[str, list[int]] = {"all": [], WORD: [], "dog": []}
    for line in opening(body).splitlines():
        if line.startswith(("[added]", "[retained]")):
            number = int(line.split("conversation ")[1].split(":")[0])
            found["all"].append(number)
            found[WORD if WORD in line else "dog"].append(number)
    return found


def written(body: Body) -> list[ToolCall]:
    """Every kind of file, of one conversation or of both."""
    of = numbers(body)
    one: dict[str, Any] = {"path": "MEMORY.md", "sources": of[WORD]}
    both: dict[str, Any] = {"path": "MEMORY.md", "sources": of["all"]}
    return [
        ("write_section", {**one, "heading": f"On {WORD}", "text": f"Paints all {WORD}."}),
        ("write_section", {**both, "heading": "Both", "text": f"Rex wears {WORD}. Run {len(of['all'])}."}),
        ("write_section", {**both, "heading": "Dogs", "text": "A dog, Rex.", "sources": of["dog"]}),
        ("write_section", {**both, "heading": "Who", "text": f"A dog, and {WORD}.", "path": SUMMARY}),
        ("write_skill", {"name": "paint", "text": f"Take {WORD}.", "sources": of[WORD]}),
        ("finish", {"note": f"noted {WORD}"}),
    ]


def rewritten(body: Body) -> list[ToolCall]:
    """What rests on other sources, after an attempt to say it all the same."""
    of = numbers(body)
    both: dict[str, Any] = {"path": "MEMORY.md", "sources": of["all"], "heading": "Both"}
    if not results(body):
        return [("write_section", {**both, "text": f"Rex wears {WORD}."})]
    return [
        ("write_section", {**both, "text": "Rex wears a collar."}),
        ("write_section", {**both, "heading": "Who", "text": "A dog.", "path": SUMMARY}),
        ("finish", {"note": "without it"}),
    ]


@dataclass
class Home:
    """A user with memory files, and two processes that have read them."""

    service: Service
    other: Service
    clock: ManualClock
    endpoint: ScriptedEndpoint
    told: Any = None
    exported: bytes = b""

    def say(self, session: str, *texts: str) -> None:
        lines = [*texts, *(f"{session} line {at}" for at in range(6))]
        said = [user_says(text, id=f"{session}-{at}") for at, text in enumerate(lines)]
        self.service.remember(ADA, said, session, provider="lab")
        settle(self.service, self.clock)
        make_notes(self.service, self.clock)

    def consolidate(self, script: Callable[[Body], list[ToolCall]]) -> None:
        self.clock.advance(7 * HOUR)
        make_notes(self.service, self.clock)
        self.endpoint.default = agent(script, noted())
        assert [one.detail for one in consolidate(self.service, self.clock)] == ["succeeded"]

    def look(self) -> dict[str, str]:
        """Every place where a memory file is seen, in both processes."""
        return {
            f"{name} {number}": place
            for number, service in enumerate((self.service, self.other))
            for name, place in _places(service).items()
        }

    def places(self, but_prompts: bool = False) -> dict[str, str]:
        """Those that say it."""
        found = {place: text for place, text in self.look().items() if WORD in text}
        return {
            place: text for place, text in found.items() if not (but_prompts and place.startswith("prompt"))
        }

    def running(self) -> str:
        """The request of a conversation that began before, as it goes on now."""
        more = [*QUESTION, {"role": "assistant", "content": "Hm."}, user_says("Go on.")]
        return repr([service.inject(ADA, more).messages for service in (self.service, self.other)])


def _places(service: Service) -> dict[str, str]:
    last = service.memory_file_version(ADA)
    tree = service.memory_file_tree(ADA)
    versions = range(last + 1)
    return {
        "files": repr(tree),
        "file": repr([service.memory_file(ADA, path) for path in tree]),
        "search": repr(service.search_memory_files(ADA, [WORD]).matches),
        "diff": "".join(service.memory_file_diff(ADA, old, old + 1) for old in versions[:-1]),
        "history": repr(service.memory_file_history(ADA)),
        "summary": service.memory_summary(ADA).text,
        "prompt": repr(service.inject(ADA, [user_says("Hello.")]).messages),
        "recall": repr(
            [
                hit
                for hit in service.recall(ADA, f"color {WORD} paint dog", threshold=0.0).hits
                if hit.role == "note"
            ]
        ),
        "outputs": repr(service.conversation_outputs(ADA)),
        "export": repr([line for line in service.export(ADA) if _is_made(line)]),
    }


def _is_made(line: bytes) -> bool:
    return any(f'"line":"{kind}"'.encode() in line for kind in ("section", "output", "consolidation")) or (
        b'"source":"phase' in line
    )


@pytest.fixture
def home(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Home]:
    settings = {"memory_phase1_max_age_days": 365, "rag_relevance_threshold": 0.0}
    with (
        noting(url, clock, endpoint, **settings) as service,
        noting(url, clock, endpoint, **settings) as other,
    ):
        endpoint.default = noted()
        yield Home(service, other, clock, endpoint)


def furnish(home: Home) -> None:
    """Two versions by consolidation, so that there is a past, and what both processes were told."""
    home.say("chat", "hello there", SAID)
    home.say("dogs", "we have a dog")
    home.consolidate(written)
    home.say("more", "the dog is well")
    home.consolidate(written)
    home.told = home.running()
    home.exported = b"".join(home.service.export(ADA))


def statement_of(service: Service) -> int:
    return next(one.id for one in service.documents(ADA) if one.text == SAID)


TARGETS: dict[str, Callable[[Service], dict[str, Any]]] = {
    "statement": lambda service: {"document": statement_of(service)},
    "fact": lambda service: {"fact": "color"},
    "fact alone": lambda service: {"fact": "color", "only": True},
    "pair": lambda service: {"context": service.context(ADA)[0].id},
    "session": lambda service: {"session": "chat"},
}


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", TARGETS)
def test_nothing_of_it_is_in_any_memory_file_and_what_rests_on_others_comes_back(
    home: Home, target: str
) -> None:
    furnish(home)
    service = home.service
    assert facts_of(service, ADA) == {"color": WORD}
    silent = [place for place, text in home.look().items() if WORD not in text]
    assert (silent, WORD in home.told) == ([], True), "the walk looks where it is"
    assert {"MEMORY.md", SUMMARY, SKILL} < set(service.memory_file_tree(ADA))
    home.clock.advance(60)
    service.forget(ADA, **TARGETS[target](service))
    # Of a fact alone the message stays, and may be told.
    is_left = target == "fact alone"
    assert home.places(is_left) == {}
    assert is_left or WORD not in home.running()
    assert "A dog, Rex." in service.memory_file(ADA, "MEMORY.md").text, "it is made of another conversation"
    assert SKILL not in service.memory_file_tree(ADA)
    home.clock.advance(60)
    service.import_lines(ADA, io.BytesIO(home.exported))
    assert home.places(is_left) == {}
    home.consolidate(rewritten)
    assert "the user has deleted" in repr(results(asked(home.endpoint)[-1])) or target == "session"
    text = service.memory_file(ADA, "MEMORY.md").text
    assert ("Rex wears a collar." in text, "A dog, Rex." in text) == (True, True)
    assert "A dog." in service.memory_summary(ADA).text
    assert home.places(is_left) == {}


@pytest.mark.every_scheme
def test_what_was_written_by_hand_and_says_it_is_shown_and_goes(home: Home) -> None:
    furnish(home)
    service = home.service
    text = service.memory_file(ADA, "MEMORY.md").text
    service.edit_memory_file(ADA, "MEMORY.md", text.replace("A dog, Rex.", f"A dog, Rex, {WORD}."))
    path = service.add_memory_note(ADA, f"Paint the boat {WORD}.", name=f"On {WORD}")
    milk = service.add_memory_note(ADA, "Ask about milk.", name="Milk")
    shown = {one.text.splitlines()[0] for one in service.plan_forgetting(ADA, fact="color").goes}
    assert {"Dogs", f"On {WORD}"} <= shown
    home.clock.advance(60)
    service.forget(ADA, fact="color")
    assert home.places() == {}
    assert {path, milk} & set(service.memory_file_tree(ADA)) == {milk}
    service.import_lines(ADA, io.BytesIO(home.exported))
    assert WORD not in repr(home.look())
    assert WORD not in repr(everything_of(service.database, ADA))


@pytest.mark.parametrize("target", ["statement", "session"])
def test_a_section_that_was_edited_is_shown_before_it_goes_with_what_it_was_made_of(
    home: Home, target: str
) -> None:
    furnish(home)
    service = home.service
    service.edit_memory_file(ADA, SKILL, "Take any brush.")
    plan = service.plan_forgetting(ADA, **TARGETS[target](service))
    assert "Take any brush." in repr(plan.goes)
    home.clock.advance(60)
    gone = service.forget(ADA, **TARGETS[target](service))
    assert gone.facts == plan.facts == 1
    assert target == "session" or gone.documents == plan.documents
    assert "any brush" not in repr([home.look(), everything_of(service.database, ADA)])


def test_alone_leaves_what_a_person_wrote_and_made_of_nothing(home: Home) -> None:
    furnish(home)
    path = home.service.add_memory_note(ADA, f"Paint the boat {WORD}.")
    plan = home.service.plan_forgetting(ADA, fact="color", only=True)
    assert [one.kind for one in plan.goes] == ["fact"]
    home.service.forget(ADA, fact="color", only=True)
    assert set(home.service.memory_file_tree(ADA)) >= {path, "MEMORY.md"}
    assert SKILL not in home.service.memory_file_tree(ADA)


@pytest.mark.every_scheme
def test_a_section_that_is_forgotten_itself_goes_with_its_past_and_leaves_the_others(home: Home) -> None:
    furnish(home)
    service = home.service
    (section,) = (one for one in service.documents(ADA, type="learning") if one.text.startswith("Both"))
    home.clock.advance(60)
    assert service.forget(ADA, document=section.id).documents == 1
    said = repr(home.look())
    assert "Rex wears" not in said
    assert f"Paints all {WORD}." in said
    service.import_lines(ADA, io.BytesIO(home.exported))
    assert "Rex wears" not in repr(home.look())
    assert facts_of(service, ADA) == {"color": WORD}


def test_a_note_that_is_forgotten_takes_along_what_was_consolidated_of_it(home: Home) -> None:
    furnish(home)
    service = home.service
    (made,) = (one for one in service.documents(ADA, session_id="chat") if one.source == "phase1")
    home.clock.advance(60)
    assert service.forget(ADA, document=made.id).documents == 1
    for _ in range(2):
        said = repr(home.look())
        for text in (f"Paints all {WORD}", "Rex wears", f"Take {WORD}", f"They like {WORD}", f"noted {WORD}"):
            assert text not in said
        assert "A dog, Rex." in said
        service.import_lines(ADA, io.BytesIO(home.exported))
    assert make_notes(service, home.clock) == []


@pytest.mark.every_scheme
def test_a_reset_leaves_no_section_anywhere_and_what_was_written_by_hand(home: Home) -> None:
    furnish(home)
    service = home.service
    milk = service.add_memory_note(ADA, "Ask about milk.", name="Milk")
    home.clock.advance(60)
    assert service.reset_memory_files(ADA) == 5
    for _ in range(2):
        said = {place: text for place, text in home.look().items() if not place.startswith("outputs")}
        assert f"Paints all {WORD}." not in repr(said)
        assert f"Take {WORD}." not in repr(said)
        assert f"noted {WORD}" not in repr(said)
        assert {milk} == set(service.memory_file_tree(ADA)) & {milk, "MEMORY.md", SKILL}
        service.import_lines(ADA, io.BytesIO(home.exported))
    home.consolidate(written)
    assert SKILL in service.memory_file_tree(ADA)


def test_neither_another_user_nor_another_group_loses_a_section(home: Home) -> None:
    furnish(home)
    service = home.service
    service.import_lines("bob", io.BytesIO(home.exported))
    service.import_lines(ADA, io.BytesIO(home.exported), group="club")
    service.forget(ADA, fact="color")
    assert f"Take {WORD}." in service.memory_file("bob", SKILL).text
    assert f"Take {WORD}." in service.memory_file(ADA, SKILL, group="club").text


def test_memory_files_are_no_session_to_be_forgotten(home: Home) -> None:
    furnish(home)
    for forget in (home.service.forget, home.service.plan_forgetting):
        with pytest.raises(InvalidInput, match="memory files"):
            forget(ADA, session="shepherd:memory")
    assert SKILL in home.service.memory_file_tree(ADA)
