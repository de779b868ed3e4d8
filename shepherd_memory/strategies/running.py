"""Running a strategy in a process of its own: what it raises, prints or hangs in reaches nobody else."""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from shepherd_memory.errors import EndpointUnavailable, ItemRejected
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

MAX_RESULT_BYTES = 1_000_000
MAX_NOTES = 50
MAX_FACTS = 100
CHILD = "shepherd_memory.strategies.child"


@dataclass(frozen=True)
class StrategyAnswer:
    """What a strategy gave back, checked; `is_wanted`: whether it had any use for the conversation."""

    is_wanted: bool = False
    summary: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class StrategyFailed(ItemRejected):
    """A strategy made nothing of a conversation; `is_wanted`: whether it had any use for it."""

    def __init__(self, problem: str, is_wanted: bool) -> None:
        super().__init__(problem)
        self.is_wanted = is_wanted


class StrategyRunner:
    """Runs one strategy at a time; `cancel` ends what runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def run(
        self, conversation: StrategyConversation, entries: Sequence[ConversationEntry], seconds: float
    ) -> StrategyAnswer:
        """What the strategy gives; StrategyFailed with clear words for whatever is wrong with it."""
        given = {"conversation": asdict(conversation), "entries": [asdict(entry) for entry in entries]}
        # -P: what lies in the folder that we run in is no package of ours.
        command = [sys.executable, "-P", "-m", CHILD, self._name]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            with self._lock:
                self._child, self._is_cancelled = child, False
            try:
                out, err = child.communicate(json.dumps(given, default=_plain).encode(), seconds)
            except subprocess.TimeoutExpired as error:
                child.kill()
                out, _ = child.communicate()
                problem = f"the strategy {self._name!r} took more than {seconds:g} s, and was ended"
                raise StrategyFailed(problem, _wanted(out) is True) from error
            finally:
                with self._lock:
                    self._child = None
        if self._is_cancelled:
            raise EndpointUnavailable(f"the strategy {self._name!r} was ended with its worker")
        if child.returncode != 0:
            problem = f"the strategy {self._name!r} failed: {_last_words(err, child.returncode)}"
            raise StrategyFailed(problem, _wanted(out) is True)
        try:
            return read_answer(self._name, out)
        except ItemRejected as error:
            raise StrategyFailed(str(error), _wanted(out) is True) from error

    def cancel(self) -> None:
        """End what runs, if anything does."""
        with self._lock:
            if self._child is not None:
                self._is_cancelled = True
                self._child.kill()


def _wanted(out: bytes) -> bool | None:
    """What the first line says; None if it says nothing."""
    try:
        given = json.loads(out.partition(b"\n")[0])
    except ValueError:
        return None
    wanted = given.get("wanted") if isinstance(given, dict) else None
    return wanted if isinstance(wanted, bool) else None


def read_answer(name: str, out: bytes) -> StrategyAnswer:
    """The result as a strategy may give it; ItemRejected for anything else."""
    if len(out) > MAX_RESULT_BYTES:
        raise ItemRejected(
            f"the strategy {name!r} gave {len(out)} bytes: at most {MAX_RESULT_BYTES} are taken"
        )
    if (wanted := _wanted(out)) is None:
        raise ItemRejected(f"the strategy {name!r} gave no result")
    if not wanted:
        return StrategyAnswer()
    try:
        given = json.loads(out.partition(b"\n")[2])
    except ValueError as error:
        raise ItemRejected(f"the strategy {name!r} gave no result") from error
    facts, notes = _parts(name, given)
    texts = [given.get("summary", ""), *notes, *facts, *facts.values()]
    if not all(isinstance(text, str) for text in texts):
        raise ItemRejected(f"the strategy {name!r} gave what is no text as summary, note or fact")
    if len(facts) > MAX_FACTS or len(notes) > MAX_NOTES:
        raise ItemRejected(f"the strategy {name!r} gave more than {MAX_FACTS} facts or {MAX_NOTES} notes")
    return StrategyAnswer(
        True,
        canonical_text(given.get("summary", "")),
        {canonical_text(key): canonical_text(value) for key, value in facts.items()},
        tuple(map(canonical_text, notes)),
    )


def _parts(name: str, given: Any) -> tuple[dict[str, Any], list[Any]]:
    if isinstance(given, dict):
        facts, notes = given.get("facts", {}), given.get("notes", [])
        if isinstance(facts, dict) and isinstance(notes, list):
            return facts, notes
    raise ItemRejected(f"the strategy {name!r} gave no result")


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value)} is no part of a conversation")


def _last_words(err: bytes, code: int) -> str:
    """The kind of error, and never its message: that may quote the conversation."""
    lines = err.decode("utf-8", "replace").strip().splitlines()
    kind = lines[-1].partition(":")[0].strip() if lines else ""
    return kind if kind.replace(".", "").replace("_", "").isalnum() else f"exit code {code}"
