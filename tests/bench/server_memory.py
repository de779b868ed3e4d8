"""The memory of the user whom the server's benchmark asks for, and what each use of it costs in process."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from shepherd_memory import Config, Service, open_service
from tests.bench.server_load import QUESTION, WHO
from tests.bench.server_provider import ANSWER

SESSION_LENGTH = 20
SUBJECTS = (
    "sister",
    "boss",
    "team",
    "flat",
    "bicycle",
    "service",
    "landlord",
    "dentist",
    "garden",
    "database",
)
PLACES = ("Porto", "Lisbon", "Braga", "Faro", "Coimbra", "river", "office", "station", "market", "school")
DEEDS = ("moved to", "decided on", "asked about", "painted", "sold", "visited", "measured", "forgot", "liked")
WARM_UP = 3
numbers = count(90_000_000)


def fill(database: str, memories: int) -> None:
    """So many messages of one user, remembered as any.

    Their vectors are made up: a model would need a minute, and searching them costs the same.
    """
    with open_service(Config(memory_database=database), worker=False) as service:
        for start in range(0, memories, SESSION_LENGTH):
            said = [{"role": "user", "content": _statement(start + at)} for at in range(SESSION_LENGTH)]
            service.remember(WHO, said, session_id=f"session-{start}")
        _make_up_vectors(service)


def _statement(number: int) -> str:
    subject, place, deed = SUBJECTS[number % 10], PLACES[number // 10 % 10], DEEDS[number % 9]
    return f"In week {number // 7} my {subject} {deed} the {place} one, and item {number} was for later."


def _make_up_vectors(service: Service) -> None:
    embedder = service.embedding.embedder()
    assert embedder is not None
    random = np.random.default_rng(1)
    with service.database.write() as tx:
        ids = [row[0] for row in tx.rows("select id from unembedded where user_id = :user_id", user_id=WHO)]
        vectors = random.standard_normal((len(ids), embedder.dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        tx.execute_many(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values (:user_id, :id, 0, :model, 1, :embedding)",
            [
                {
                    "user_id": WHO,
                    "id": row_id,
                    "model": embedder.model,
                    "embedding": service.database.vector(v),
                }
                for row_id, v in zip(ids, vectors, strict=True)
            ],
        )
        tx.execute("delete from unembedded where user_id = :user_id", user_id=WHO)


@dataclass
class Costs:
    """CPU seconds of each use of the memory, one figure per use."""

    recall: list[float] = field(default_factory=list)
    recall_after_change: list[float] = field(default_factory=list)
    embed_query: list[float] = field(default_factory=list)
    inject: list[float] = field(default_factory=list)
    remember: list[float] = field(default_factory=list)
    embed_exchange: list[float] = field(default_factory=list)


class InProcess:
    """The same uses of the memory as the server makes of it, one after another in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.costs = Costs()

    def measure(self, times: int) -> None:
        for _ in range(WARM_UP):
            self._use(Costs())
        for _ in range(times):
            self._use(self.costs)

    def _use(self, costs: Costs) -> None:
        service, number = self._service, next(numbers)
        question = QUESTION.format(number=number)
        asked = {"role": "user", "content": question}
        exchange = [asked, {"role": "assistant", "content": ANSWER}]
        embedder = service.embedding.embedder()
        assert embedder is not None
        costs.recall_after_change.append(_cpu(lambda: service.recall(WHO, question)))
        costs.recall.append(_cpu(lambda: service.recall(WHO, question)))
        costs.embed_query.append(_cpu(lambda: embedder.embed([question])))
        costs.inject.append(_cpu(lambda: service.inject(WHO, [asked])))
        costs.remember.append(_cpu(lambda: service.remember(WHO, exchange)))
        costs.embed_exchange.append(_cpu(service.embed))


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
