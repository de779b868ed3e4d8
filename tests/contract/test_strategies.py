"""Strategies of other packages: what they are given, and what their results and faults reach."""

import re
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.config import Config
from shepherd_memory.phases.planning import plan_user
from shepherd_memory.service import Service, open_service
from shepherd_memory.strategies.adapter import InstalledStrategy
from shepherd_memory.strategies.installed import usable
from shepherd_memory.strategies.registry import installed as installed_strategies
from shepherd_memory.work.lane import UPKEEP_SECONDS, Lane, Outcome
from tests.contract.given import ManualClock, config_for, facts_of, memory, user_says, work
from tests.contract.test_phases import ADA, BOB, HOUR
from tests.contract.test_recall_embedding import wait_for
from tests.endpoint import ScriptedEndpoint

GUIDE = Path(__file__).parents[2] / "docs" / "writing-a-strategy.md"
NAMES = ("decisions", "proposes", "raises", "hangs", "junk", "exits", "leaves", "none")
OTHERS = """
import os, time
from shepherd_memory.strategies.strategy import StrategyResult

class Wanting:
    def wants(self, conversation, entries):
        return True

class Proposes(Wanting):
    def process(self, conversation, entries):
        facts = {"dog": "Rex", "city": "Nowhere"}
        return StrategyResult(facts=facts, summary="A dog: sk-ant-api03-" + "a" * 95)

class Raises(Wanting):
    def process(self, conversation, entries):
        raise ValueError(entries[0].text)

class Hangs(Wanting):
    def process(self, conversation, entries):
        time.sleep(600)

class Junk(Wanting):
    def process(self, conversation, entries):
        print("{}")
        return StrategyResult(summary=7, notes=[b"x"])

class Exits(Wanting):
    def process(self, conversation, entries):
        os._exit(3)

class Leaves(Wanting):
    def wants(self, conversation, entries):
        os._exit(0)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the strategy of the guide and others, as if it were installed."""
    folder = tmp_path / "site"
    info = folder / "shepherd_decisions-0.dist-info"
    info.mkdir(parents=True)
    page = GUIDE.read_text("utf-8")
    (sample,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (points,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (folder / "shepherd_decisions.py").write_text(f"{sample}\n{OTHERS}")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shepherd-decisions\nVersion: 0\n")
    group = points.replace('project.entry-points."', "").replace('"]', "]").replace('"', "")
    more = "".join(f"{name} = shepherd_decisions:{name.title()}\n" for name in NAMES[1:-1])
    (info / "entry_points.txt").write_text(f"{group}{more}facts = shepherd_decisions:Raises\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint, installed: None) -> Iterator[Service]:
    wanted = {"memory_strategies": ", ".join(NAMES), "memory_strategy_timeout": 30.0}
    with memory(url, clock, endpoint.url, **wanted) as opened:
        yield opened


def say(service: Service, clock: ManualClock, *texts: str, user: str = ADA, session: str = "chat") -> None:
    """What the user said in a conversation, which is over then."""
    service.remember(user, [user_says(text) for text in texts], session)
    work(service)
    service.transcripts.poll()
    clock.advance(2 * HOUR)
    service.transcripts.poll()


def lane_of(service: Service, clock: ManualClock, name: str, **settings: Any) -> Lane[Any, Any]:
    config = service.config if not settings else Config(**{**vars(service.config), **settings})
    found = installed_strategies(service.database, lambda: config, clock)
    (lane,) = next(one.lanes for one in found if one.strategy.name == name)
    return lane


def run(service: Service, clock: ManualClock, name: str, **settings: Any) -> list[Outcome]:
    clock.advance(UPKEEP_SECONDS)
    return list(iter(lane_of(service, clock, name, **settings).run_once, None))


def notes(service: Service, user: str = ADA, group: str = "main") -> list[str]:
    return [one.text for one in service.documents(user, type="learning", group=group)]


@pytest.mark.every_scheme
def test_the_strategy_of_the_guide_makes_notes_that_are_forgotten_with_what_they_say(
    service: Service, clock: ManualClock
) -> None:
    say(service, clock, "hello", "We decided to paint the boat", "and we decided to sell the car", "fine")
    say(service, clock, "nothing of the sort", session="dull")
    assert [one.detail for one in run(service, clock, "decisions")] == ["not wanted", "succeeded"]
    assert run(service, clock, "decisions") == [], "each conversation is handed to it once"
    (note,) = notes(service)
    assert note.startswith("2 decisions in chat.\n\nWe decided to paint the boat")
    assert note in [hit.text for hit in service.recall(ADA, "what about the boat?").hits]
    service.transcripts.poll()
    statuses = {one.session_id: one.status for one in service.conversations(ADA)}
    assert statuses == {"chat": "archived", "dull": "skipped"}
    assert (notes(service, BOB), notes(service, ADA, "work")) == ([], [])
    (boat,) = [one for one in service.documents(ADA) if one.text == "We decided to paint the boat"]
    service.forget(ADA, document=boat.id)
    assert notes(service) == []
    assert [one.detail for one in run(service, clock, "decisions")] == ["succeeded"]
    (again,) = notes(service)
    assert "boat" not in again
    service.forget(ADA, session="chat")
    assert notes(service) == []
    assert service.erase(ADA).left == {}


def test_its_facts_pass_the_guard_and_its_words_are_redacted(service: Service, clock: ManualClock) -> None:
    say(service, clock, "My dog is called Rex", "hm", "yes", "no", "well")
    assert [one.status for one in run(service, clock, "proposes")] == ["done"]
    assert "Nowhere" not in facts_of(service, ADA).values()
    refused = {one.content for one in service.rejected(ADA)} | {
        one.content for one in service.unconfirmed(ADA)
    }
    assert "Nowhere" in refused
    assert "Rex" in {*facts_of(service, ADA).values(), *refused}
    assert not [text for text in notes(service) if "sk-ant-" in text]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "the strategy 'raises' failed: ValueError"),
        ("junk", "what is no text|failed: TypeError"),
        ("exits", "failed: exit code 3"),
        ("leaves", "gave no result"),
        ("hangs", "took more than 1.5 s, and was ended"),
    ],
)
def test_a_faulty_strategy_is_named_in_status_and_stops_nobody(
    service: Service, clock: ManualClock, name: str, words: str
) -> None:
    say(service, clock, "my words", "we decided this", "my dog is Rex", "hm", "yes")
    # A machine may be busy: only what hangs is to be ended.
    (outcome,) = run(service, clock, name, memory_strategy_timeout=1.5 if name == "hangs" else 60.0)
    assert outcome.status == "waiting"
    assert re.search(words, outcome.detail)
    assert "my words" not in outcome.detail
    found = {phase.phase: phase for phase in service.status().phases}
    assert re.search(words, found[f"strategy:{name}"].endpoint.reason)
    assert [one.detail for one in run(service, clock, "decisions")] == ["succeeded"]
    assert service.status().healthy


@pytest.mark.every_scheme
@pytest.mark.parametrize("name", ["raises", "junk"])
def test_what_a_strategy_wanted_is_not_skipped_though_it_fails(
    service: Service, clock: ManualClock, name: str
) -> None:
    def status() -> str:
        service.transcripts.poll()
        (found,) = service.conversations(ADA)
        return found.status

    say(service, clock, "we decided this")
    assert status() == "skipped", "nobody else wants anything so short"
    for tries in (2, 1):
        (outcome,) = run(service, clock, name)
        assert (outcome.status, status()) == ("waiting", "processing"), f"{tries} tries are left"
        clock.advance(2 * HOUR)
    (outcome,) = run(service, clock, name)
    assert (outcome.status, status()) == ("failed", "archived"), "nothing of it is open any more"


def test_an_unknown_name_is_said_in_status_and_ours_are_not_replaced(service: Service) -> None:
    states = {phase.phase: phase.state for phase in service.status().phases}
    assert states == {"phase1": "off", "phase2": "off", "strategy:none": "not installed"} | {
        f"strategy:{name}": "on" for name in NAMES[:-1]
    }
    assert usable(Config(memory_strategies="facts, summary")) == ()


def test_a_session_whose_memory_is_off_is_not_handed_to_it(service: Service, clock: ManualClock) -> None:
    say(service, clock, "we decided this")
    say(service, clock, "we decided that", session="other")
    service.set_memory_mode(ADA, "chat", "off")
    strategy = InstalledStrategy("decisions", lambda: service.config)
    assert plan_user(service.database, ADA, strategy.rules(), clock(), strategy.name) == 1
    service.set_memory_mode(ADA, "other", "read-only")
    assert [one.detail for one in run(service, clock, "decisions")] == ["skipped: memory off"]
    assert run(service, clock, "decisions") == []
    assert notes(service) == []


def test_a_worker_hands_conversations_to_it(url: str, installed: None) -> None:
    config = config_for(url, memory_strategies="decisions", embedding_engine="none", poll_interval=0.2)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    with open_service(config, worker=True) as service:
        service.remember(ADA, [{**user_says("we decided to walk"), "created_at": yesterday}], "chat")
        wait_for(lambda: len(notes(service)) == 1)
    assert not [one.name for one in threading.enumerate() if one.name.startswith("shepherd-strategy")]


def test_a_strategy_that_hangs_holds_no_worker_back_from_its_end(url: str, installed: None) -> None:
    config = config_for(url, memory_strategies="hangs", embedding_engine="none", poll_interval=0.2)
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    with open_service(config, worker=True) as service:
        service.remember(ADA, [{**user_says("hello"), "created_at": yesterday}], "chat")
        wait_for(lambda: items_of(service, "hangs")["running"] == 1)
    with open_service(config, worker=False) as service:
        assert items_of(service, "hangs")["waiting"] == 1, "it lost no try, and waits for the next start"


def items_of(service: Service, name: str) -> Mapping[str, int]:
    """The jobs of a strategy by their status."""
    return next(phase.items for phase in service.status().phases if phase.phase == f"strategy:{name}")
