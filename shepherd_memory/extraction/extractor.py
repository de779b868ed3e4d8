"""One extraction: ask, read the answer, and ask once more if it cannot be read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shepherd_memory.errors import ItemRejected
from shepherd_memory.extraction.answer import Answer, read_answer
from shepherd_memory.extraction.ledger import Spent
from shepherd_memory.extraction.prompt import SCHEMA, Statement, build_messages
from shepherd_memory.llm.completion import Completion
from shepherd_memory.llm.completion_client import Endpoint, ExtractionClient
from shepherd_memory.storage.clock import from_us

ASKED = 2
"""A model that answered with something unreadable often does better when asked again."""


@dataclass(frozen=True)
class Extraction:
    """What came of asking: an answer, or the problem with it, and what it cost."""

    answer: Answer = field(default_factory=lambda: Answer((), (), ()))
    spent: Spent = field(default_factory=Spent)
    problem: str = ""


def extract(
    client: ExtractionClient, endpoint: Endpoint, statements: Sequence[Statement], now: int
) -> Extraction:
    """What the endpoint makes of these statements."""
    messages = build_messages(statements, from_us(now))
    spent, problem = Spent(), ""
    for _ in range(ASKED):
        completion = client.complete(endpoint, messages, SCHEMA)
        spent += _cost(completion)
        try:
            return Extraction(read_answer(completion.text), spent)
        except ItemRejected as error:
            problem = str(error)
    return Extraction(spent=spent, problem=problem)


def _cost(completion: Completion) -> Spent:
    return Spent(1, int(completion.estimated), completion.prompt_tokens, completion.completion_tokens)
