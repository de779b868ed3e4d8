"""The consolidation agent: a model in a loop with tools that reach nothing but the workspace of its run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from shepherd_memory.consolidation import file_reading, prompt
from shepherd_memory.consolidation.dialogue import MAX_ARGUMENT_CHARS, Dialogue, read_arguments
from shepherd_memory.consolidation.files import RAW_FILE
from shepherd_memory.consolidation.workspace import Workspace, storable_line
from shepherd_memory.errors import EndpointMisconfigured, InvalidInput, ItemRejected, NotFound
from shepherd_memory.extraction.extractor import Endpoint, cost_of
from shepherd_memory.extraction.loose_json import values_in
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import Completion, ModelRequest, ToolRequest
from shepherd_memory.text.redaction import redact, redact_json
from shepherd_memory.text.tokens import estimate_mean_tokens
from shepherd_memory.work.ledger import TokenCost

MAX_CALLS = 32
"""Tools that are used of those called in one round."""

MAX_REFUSED_ENDS = 3
MAX_NAME_CHARS = 60
MAX_NOTE_CHARS = 200
MAX_FOUND = 50
SPARE_TOKENS, FRAME_TOKENS = 1_000, 20
FINISHED = "finished"


@dataclass(frozen=True)
class AgentBounds:
    """How far a run may go: rounds, seconds in all, tokens of a request, and tokens in all (0: any)."""

    max_rounds: int
    timeout_seconds: float
    budget: int
    tokens_left: int = 0


@dataclass(frozen=True)
class AgentRun:
    """How a run ended: with a note of what changed, or with the problem; and what it cost."""

    spent: TokenCost
    note: str = ""
    problem: str = ""


class _Failed(Exception):
    """The run came to no good end; the message says why."""


class _NoTools(Exception):
    """The endpoint, or its model, has no use for tools."""


class OutOfTokens(Exception):
    """The user's tokens of today are spent in the midst of the run."""


class ConsolidationAgent:
    """One run of one model over one workspace.

    `after_call` is told what each call has cost, and may end the run by an exception of its own.
    """

    def __init__(
        self,
        client: Client,
        endpoint: Endpoint,
        workspace: Workspace,
        bounds: AgentBounds,
        after_call: Callable[[TokenCost], None] = lambda cost: None,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._workspace = workspace
        self._bounds = bounds
        self._after_call = after_call
        self._spent = TokenCost()
        self._ends_at = 0.0
        self._note = ""
        self._refused_ends = 0

    def run(self) -> AgentRun:
        """Let the model work until it finishes, by tools or else in one answer."""
        self._ends_at = time.monotonic() + self._bounds.timeout_seconds
        try:
            try:
                self._work_with_tools()
            except _NoTools:
                self._work_in_one_answer()
        except _Failed as problem:
            return AgentRun(self._spent, problem=str(problem))
        return AgentRun(self._spent, self._note)

    def _work_with_tools(self) -> None:
        dialogue = Dialogue(prompt.instructions(), prompt.opening(self._workspace))
        is_reminded = False
        for number in range(self._bounds.max_rounds):
            answer = self._ask_with_tools(dialogue, is_first=number == 0)
            calls = [_cleaned(one) for one in answer.tool_calls[:MAX_CALLS]]
            dialogue.add_answer(redact(answer.text), calls)
            if not calls and is_reminded:
                raise _NoTools
            if not calls:
                dialogue.add_question(prompt.REMINDER)
            elif self._answer_calls(dialogue, calls):
                return
            if len(answer.tool_calls) > MAX_CALLS:
                dialogue.add_question(prompt.TOO_MANY_CALLS.format(MAX_CALLS, len(answer.tool_calls)))
            is_reminded = not calls
        raise _Failed(f"the model did not finish within {self._bounds.max_rounds} rounds")

    def _answer_calls(self, dialogue: Dialogue, calls: Sequence[ToolRequest]) -> bool:
        """Use the tools that the model called, one after the other, until it has finished; whether it has."""
        for call in calls:
            said = self._answer_call(call)
            if call.name == "finish" and said == FINISHED:
                return True
            dialogue.add_result(call, said)
        return False

    def _ask_with_tools(self, dialogue: Dialogue, is_first: bool) -> Completion:
        dialogue.fit(self._bounds.budget)
        limit, warmth = self._endpoint.max_tokens, self._endpoint.temperature
        request = ModelRequest(dialogue.messages, prompt.TOOLS, limit, warmth)
        try:
            return self._ask(request)
        except (ItemRejected, EndpointMisconfigured) as error:
            if is_first and (isinstance(error, ItemRejected) or "tool" in str(error).lower()):
                raise _NoTools from error
            raise

    def _ask(self, request: ModelRequest) -> Completion:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise _Failed(f"the model did not finish within {self._bounds.timeout_seconds:g} s")
        used = self._spent.prompt_tokens + self._spent.completion_tokens
        if 0 < self._bounds.tokens_left <= used:
            raise OutOfTokens
        answer = self._client.complete(self._endpoint.target, request, left)
        cost = cost_of(answer)
        self._spent += cost
        self._after_call(cost)
        return answer

    def _answer_call(self, call: ToolRequest) -> str:
        try:
            return self._use(call.name, _arguments(call.arguments))
        except (InvalidInput, NotFound) as error:
            return f"error: {error}"

    def _use(self, name: str, given: Mapping[str, Any]) -> str:
        tools: dict[str, Callable[..., str]] = {
            "list_files": self._list,
            "read_file": self._read,
            "search_files": self._search,
            "write_section": self._workspace.write_section,
            "delete_section": self._workspace.delete_section,
            "write_skill": self._workspace.write_skill,
            "finish": self._finish,
        }
        use = tools.get(name)
        if use is None:
            raise InvalidInput(f"there is no tool {name!r}")
        try:
            return use(**given)
        except TypeError as error:
            raise InvalidInput(f"{name} does not take these arguments: look at its description") from error

    def _list(self, path: str = "", cursor: str = "", max_results: int = 200) -> str:
        found = file_reading.list_files(self._workspace.files(), path, cursor, max_results)
        more = [f"(more: cursor {found.next_cursor})"] if found.next_cursor else []
        return "\n".join([*(one.path for one in found.entries), *more]) or "(empty)"

    def _read(self, path: str, line_offset: int = 1, max_lines: int = 0) -> str:
        files = self._workspace.files()
        found = file_reading.read_file(files, path, line_offset, max_lines, self._result_tokens())
        return found.text + (f"\n(more: line_offset {found.next_line})" if found.next_line else "")

    def _result_tokens(self) -> int:
        """How long the result of one tool may be: a few of them fit a request."""
        return max(500, min(file_reading.MAX_TOKENS, self._bounds.budget // 4))

    def _search(
        self, queries: list[str], match_mode: str = "any", path: str = "", context_lines: int = 0
    ) -> str:
        found = file_reading.search_files(
            self._workspace.files(),
            queries,
            match_mode,
            path,
            context_lines=context_lines,
            max_results=MAX_FOUND,
            max_tokens=self._result_tokens(),
        )
        more = ["(more: ask for something that fewer lines have)"] if found.next_cursor else []
        lines = [f"{one.path}:{one.line}: {one.text.rstrip()}" for one in found.matches]
        return "\n".join([*lines, *more]) or "(nothing)"

    def _finish(self, note: object = "") -> str:
        problem = self._workspace.problem()
        if problem:
            self._refused_ends += 1
            if self._refused_ends >= MAX_REFUSED_ENDS:
                raise _Failed(problem)
            raise InvalidInput(problem)
        self._note = storable_line(note)[:MAX_NOTE_CHARS]
        return FINISHED

    def _work_in_one_answer(self) -> None:
        """For a model without tools: all files in the request, and all changes in the answer."""
        self._workspace.start_again()
        opening = prompt.opening(self._workspace)
        question = f"{opening}\n\n{self._inlined(opening)}\n\n{prompt.ANSWER}"
        problems = self._ask_for_all(question)
        if problems:
            # What the first answer staged is in the second one too.
            self._workspace.start_again()
            problems = self._ask_for_all(f"{question}\n\n{prompt.AGAIN} {problems}")
        if problems:
            raise _Failed(problems)

    def _ask_for_all(self, question: str) -> str:
        asked = Dialogue(prompt.instructions(), question).messages
        limit, warmth = self._endpoint.max_tokens, self._endpoint.temperature
        request = ModelRequest(asked, (), limit, warmth, prompt.SCHEMA, prompt.SCHEMA_NAME)
        return self._apply(self._ask(request))

    def _inlined(self, opening: str) -> str:
        """As many files as there is room for: sections first, then notes from the best one on."""
        said = prompt.instructions(), opening, prompt.ANSWER
        room = self._bounds.budget - sum(map(estimate_mean_tokens, said)) - SPARE_TOKENS
        chosen: dict[str, str] = {}
        for path, text in self._workspace.files().items():
            size = estimate_mean_tokens(text) + FRAME_TOKENS
            if path != RAW_FILE and size <= room:
                chosen[path] = text
                room -= size
        return prompt.inline(chosen)

    def _apply(self, answer: Completion) -> str:
        """Stage what an answer holds; what is wrong with it."""
        read = (redact_json(one.value) for one in values_in(answer.text))
        found = [one for one in read if isinstance(one, dict)]
        whole = next((one for one in reversed(found) if "sections" in one), None)
        if whole is None:
            return "the answer has no JSON object with sections in it"
        problems = []
        for key, name in (
            ("deleted", "delete_section"),
            ("sections", "write_section"),
            ("skills", "write_skill"),
        ):
            listed = whole.get(key)
            for item in listed if isinstance(listed, list) else []:
                try:
                    self._use(name, item if isinstance(item, dict) else {})
                except (InvalidInput, NotFound) as error:
                    problems.append(str(error))
        return "; ".join(problems[:10]) or self._workspace.problem()


def _cleaned(call: ToolRequest) -> ToolRequest:
    """A call without secrets: it goes back to the endpoint, and errors repeat parts of it."""
    kept = replace(call, id=redact(call.id), name=redact(call.name[:MAX_NAME_CHARS]))
    given = read_arguments(call.arguments)
    return kept if given is None else replace(kept, arguments=orjson.dumps(redact_json(given)).decode())


def _arguments(text: str) -> dict[str, Any]:
    given = read_arguments(text)
    if given is None:
        raise InvalidInput(f"the arguments are no JSON object of at most {MAX_ARGUMENT_CHARS} characters")
    return given
