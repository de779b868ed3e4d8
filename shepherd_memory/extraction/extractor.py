"""One extraction: ask, read the answer, and ask once more if it cannot be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.errors import AnswerCutOff, ItemRejected
from shepherd_memory.extraction.answer import CUT_OFF, ExtractionAnswer, read_answer
from shepherd_memory.extraction.prompt import SCHEMA, build_messages
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import Completion, ModelRequest
from shepherd_memory.llm.target import Target, extraction_target
from shepherd_memory.storage.clock import from_us
from shepherd_memory.work.ledger import TokenCost
from shepherd_memory.work.strategy import ConversationEntry

MAX_ATTEMPTS = 2
"""A model that answered with something unreadable often does better when asked again."""


@dataclass(frozen=True)
class Extraction:
    """What came of asking: an answer, or the problem with it, and what it cost.

    `is_cut_off`: the model reached its token limit, so that there may have been more to say.
    """

    answer: ExtractionAnswer = field(default_factory=lambda: ExtractionAnswer((), (), ()))
    spent: TokenCost = field(default_factory=TokenCost)
    problem: str = ""
    is_cut_off: bool = False


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, and with which settings."""

    target: Target
    max_tokens: int = 512
    temperature: float = 0.1
    timeout_seconds: float = 60.0


def extraction_endpoint(config: Config) -> Endpoint | None:
    """The endpoint that the configuration names; None until endpoint and model are both set."""
    if not (config.memory_extraction_endpoint and config.memory_extraction_model):
        return None
    return Endpoint(
        extraction_target(config),
        max_tokens=config.memory_extraction_max_tokens,
        temperature=config.memory_extraction_temperature,
        timeout_seconds=config.memory_extraction_timeout,
    )


def extraction_client() -> Client:
    """A client for one worker."""
    return Client("the extraction client", one_at_a_time=True)


def complete(
    client: Client,
    endpoint: Endpoint,
    messages: list[dict[str, str]],
    schema: dict[str, Any] | None,
    schema_name: str = "memories",
) -> Completion:
    """What the endpoint answers, within its time limit, as JSON of the schema where it can do that."""
    request = ModelRequest(messages, (), endpoint.max_tokens, endpoint.temperature, schema, schema_name)
    return client.complete(endpoint.target, request, endpoint.timeout_seconds)


def extract(
    client: Client, endpoint: Endpoint, statements: Sequence[ConversationEntry], now: int
) -> Extraction:
    """What the endpoint makes of these statements.

    An answer that is cut off is not asked for again where fewer statements may do.
    """
    messages = build_messages(statements, from_us(now))
    spent, asked = TokenCost(), Extraction()
    for _ in range(MAX_ATTEMPTS):
        asked = _ask(client, endpoint, messages)
        spent += asked.spent
        if not asked.problem or (asked.is_cut_off and len(statements) > 1):
            break
    return replace(asked, spent=spent)


def _ask(client: Client, endpoint: Endpoint, messages: list[dict[str, str]]) -> Extraction:
    try:
        completion = complete(client, endpoint, messages, SCHEMA)
    except AnswerCutOff as error:
        spent = TokenCost(1, 1, 0, endpoint.max_tokens)
        return Extraction(spent=spent, problem=str(error), is_cut_off=True)
    try:
        answer = read_answer(completion.text)
    except ItemRejected as error:
        return Extraction(
            spent=cost_of(completion), problem=str(error), is_cut_off=_is_cut(completion, error)
        )
    if completion.truncated and not answer.cut_off:
        answer = replace(answer, skipped=(*answer.skipped, CUT_OFF), cut_off=True)
    return Extraction(answer, cost_of(completion), is_cut_off=answer.cut_off)


def _is_cut(completion: Completion, error: ItemRejected) -> bool:
    return completion.truncated or isinstance(error, AnswerCutOff)


def cost_of(completion: Completion) -> TokenCost:
    """What an answer cost."""
    return TokenCost(1, int(completion.estimated), completion.prompt_tokens, completion.completion_tokens)
