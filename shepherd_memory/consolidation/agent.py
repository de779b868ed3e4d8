"""The consolidation agent: a model in a loop with tools that reach nothing but the workspace of its run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from shepherd_memory.consolidation import file_reading, prompt
from shepherd_memory.consolidation.workspace import Workspace
from shepherd_memory.errors import EndpointMisconfigured, InvalidInput, ItemRejected, NotFound
from shepherd_memory.extraction.extractor import Endpoint, cost_of
from shepherd_memory.extraction.loose_json import values_in
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import Completion, ModelRequest, ToolRequest
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.redaction import redact, redact_json
from shepherd_memory.text.tokens import estimate_mean_tokens
from shepherd_memory.work.ledger import TokenCost

MAX_CALLS = 32
"""Tools that are used of those called in one round."""

MAX_REFUSED_ENDS = 3
MAX_ARGUMENT_CHARS = 200_000
MAX_RESULT_TOKENS = 20_000
LEFT_OUT = "[left out to make room: ask again if it is needed]"

Message = dict[str, Any]


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
        messages = self._opening()
        is_reminded = False
        for number in range(self._bounds.max_rounds):
            answer = self._ask_with_tools(messages, is_first=number == 0)
            calls = [_cleaned(one) for one in answer.tool_calls[:MAX_CALLS]]
            text = redact(answer.text)
            if not calls and is_reminded:
                raise _NoTools
            if not calls:
                is_reminded = True
                messages += [{"role": "assistant", "content": text}, _user(prompt.REMINDER)]
                continue
            messages.append({"role": "assistant", "content": text, "tool_calls": _wire(calls)})
            for call in calls:
                messages.append(self._answer_call(call))
                if self._is_finished(call, messages[-1]):
                    return
        raise _Failed(f"the model did not finish within {self._bounds.max_rounds} rounds")

    def _opening(self) -> list[Message]:
        return [
            {"role": "system", "content": prompt.instructions()},
            _user(prompt.opening(self._workspace)),
        ]

    def _ask_with_tools(self, messages: list[Message], is_first: bool) -> Completion:
        self._make_room(messages)
        try:
            return self._ask(ModelRequest(messages, prompt.TOOLS, self._endpoint.max_tokens, 0.1))
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

    def _make_room(self, messages: list[Message]) -> None:
        """Keep a request within the budget: the oldest answers of tools go first."""
        sizes = [estimate_mean_tokens(str(one.get("content", ""))) for one in messages]
        excess = sum(sizes) - self._bounds.budget
        for at, message in enumerate(messages[:-1]):
            if excess <= 0:
                return
            if message["role"] == "tool" and message["content"] != LEFT_OUT:
                messages[at] = message | {"content": LEFT_OUT}
                excess -= sizes[at]

    def _answer_call(self, call: ToolRequest) -> Message:
        try:
            text = self._use(call.name, _arguments(call.arguments))
        except (InvalidInput, NotFound) as error:
            text = f"error: {error}"
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text}

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
            raise InvalidInput(f"there is no tool {name[:60]!r}")
        try:
            return use(**given)
        except TypeError as error:
            raise InvalidInput(f"{name} does not take these arguments: look at its description") from error

    def _list(self, path: str = "", cursor: str = "", max_results: int = 200) -> str:
        found = file_reading.list_files(self._workspace.files(), path, cursor, max_results)
        more = [f"(more: cursor {found.next_cursor})"] if found.next_cursor else []
        return "\n".join([*(one.path for one in found.entries), *more]) or "(empty)"

    def _read(self, path: str, line_offset: int = 1, max_lines: int = 0) -> str:
        room = max(500, min(MAX_RESULT_TOKENS, self._bounds.budget // 4))
        found = file_reading.read_file(self._workspace.files(), path, line_offset, max_lines, room)
        return found.text + (f"\n(more: line_offset {found.next_line})" if found.next_line else "")

    def _search(
        self, queries: list[str], match_mode: str = "any", path: str = "", context_lines: int = 0
    ) -> str:
        files = self._workspace.files()
        found = file_reading.search_files(
            files, queries, match_mode, path, context_lines=context_lines, max_results=50
        )
        return (
            "\n".join(f"{one.path}:{one.line}: {one.text.rstrip()}" for one in found.matches) or "(nothing)"
        )

    def _finish(self, note: object = "") -> str:
        problem = self._workspace.problem()
        if problem:
            self._refused_ends += 1
            if self._refused_ends >= MAX_REFUSED_ENDS:
                raise _Failed(problem)
            raise InvalidInput(problem)
        self._note = " ".join(redact(canonical_text(str(note))).split())[:200]
        return "finished"

    def _is_finished(self, call: ToolRequest, answer: Message) -> bool:
        return call.name == "finish" and answer["content"] == "finished"

    def _work_in_one_answer(self) -> None:
        """For a model without tools: all files in the request, and all changes in the answer."""
        messages = self._opening()
        messages[1]["content"] += f"\n\n{self._inlined()}\n\n{prompt.ANSWER}"
        problems = ""
        for _ in range(2):
            asked = [*messages, *([_user(f"Answer again, and mend this: {problems}")] if problems else [])]
            request = ModelRequest(
                asked, (), self._endpoint.max_tokens, 0.1, prompt.SCHEMA, prompt.SCHEMA_NAME
            )
            self._workspace.start_again()
            problems = self._apply(self._ask(request))
            if not problems:
                return
        raise _Failed(problems)

    def _inlined(self) -> str:
        """As many files as there is room for, those to be changed first."""
        room = self._bounds.budget - estimate_mean_tokens(prompt.instructions()) - 1_000
        chosen: dict[str, str] = {}
        for path, text in self._workspace.files().items():
            room -= estimate_mean_tokens(text) + 20
            if room >= 0 and path != "raw_memories.md":
                chosen[path] = text
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


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _cleaned(call: ToolRequest) -> ToolRequest:
    """A call without secrets: it goes back to the endpoint, and errors repeat parts of it."""
    kept = replace(call, id=redact(call.id), name=redact(call.name))
    try:
        given = redact_json(_arguments(call.arguments))
    except InvalidInput:
        return kept
    return replace(kept, arguments=orjson.dumps(given).decode())


def _wire(calls: Sequence[ToolRequest]) -> list[dict[str, Any]]:
    """Calls as they go back to the endpoint: some refuse arguments that are not JSON."""
    return [
        {
            "id": one.id,
            "type": "function",
            "function": {"name": one.name, "arguments": one.arguments if _is_readable(one) else "{}"},
        }
        for one in calls
    ]


def _is_readable(call: ToolRequest) -> bool:
    try:
        _arguments(call.arguments)
    except InvalidInput:
        return False
    return True


def _arguments(text: str) -> dict[str, Any]:
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InvalidInput(f"the arguments have more than {MAX_ARGUMENT_CHARS} characters")
    try:
        given = orjson.loads(text or "{}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput("the arguments are no JSON object") from error
    if not isinstance(given, dict):
        raise InvalidInput("the arguments are no JSON object")
    return given
