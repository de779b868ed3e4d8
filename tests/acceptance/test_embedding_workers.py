"""Several workers embed one backlog: each document once, of a killed worker at most its batch again."""

import random
import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from shepherd_memory.embedding.claims import BATCH
from shepherd_memory.service import Service
from tests.acceptance.combinations import BACKENDS, every_value
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import Processes, kill, wait_until
from tests.acceptance.settings import SettingsFile
from tests.contract.recalling import TinyEmbedder, check_indexes
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, json_reply

WORKERS = 4
DOCUMENTS = 2000
USERS = ("ada", "bob", "eve")


def vectors_for(body: Body | None) -> Step:
    if body is None:
        return close()
    vectors = TinyEmbedder(body["model"], 8).embed(body["input"])
    rows = [{"index": at, "embedding": [float(x) for x in vector]} for at, vector in enumerate(vectors)]
    return json_reply({"data": rows})


@pytest.fixture
def embedding_endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as running:
        running.default = by_content(vectors_for)
        yield running


@pytest.fixture
def service(settings: SettingsFile, embedding_endpoint: ScriptedEndpoint) -> Iterator[Service]:
    settings.set(
        memory_extraction_endpoint="",
        embedding_engine="openai",
        embedding_model="tiny",
        embedding_endpoint=embedding_endpoint.url,
    )
    with settings.service() as opened:
        remember_all(opened)
        yield opened


def remember_all(service: Service) -> None:
    """Documents of several users, no two alike."""
    for at in range(0, DOCUMENTS, 100):
        texts = [f"Note {number} is about the violin." for number in range(at, at + 100)]
        said = [{"role": "user", "content": text} for text in texts]
        service.remember(USERS[at // 100 % len(USERS)], said, f"chat{at}")


def inputs(endpoint: ScriptedEndpoint) -> Counter[str]:
    """How often each text was embedded; of a worker that was killed a request may come in part."""
    whole = [one.json for one in list(endpoint.requests) if one.json is not None]
    return Counter(text for body in whole for text in body["input"])


def has_had(endpoint: ScriptedEndpoint, number: int) -> bool:
    return inputs(endpoint).total() >= number


def waiting(service: Service) -> int:
    return sum(service.unembedded(user_id) for user_id in USERS)


def vectors(service: Service) -> int:
    return sum(service.row_counts(user_id)["vectors"] for user_id in USERS)


@every_value(database_url=BACKENDS)
def test_four_workers_embed_each_document_once(
    service: Service, settings: SettingsFile, processes: Processes, embedding_endpoint: ScriptedEndpoint
) -> None:
    workers = [processes.shepherd(settings.path, "worker") for _ in range(WORKERS)]
    wait_until(lambda: waiting(service) == 0, "all is embedded")
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    assert set(inputs(embedding_endpoint).values()) == {1}
    assert inputs(embedding_endpoint).total() == vectors(service) == DOCUMENTS
    check_indexes(service.database)


@pytest.mark.kills
@every_value(database_url=BACKENDS)
def test_of_a_killed_worker_at_most_one_batch_is_embedded_again(
    service: Service, settings: SettingsFile, processes: Processes, embedding_endpoint: ScriptedEndpoint
) -> None:
    chance = random.Random(SEED)
    workers = [processes.shepherd(settings.path, "worker") for _ in range(WORKERS)]
    for number in range(KILLS):
        wanted = (number + 1) * DOCUMENTS // (KILLS + 2) + chance.randrange(BATCH)
        wait_until(partial(has_had, embedding_endpoint, wanted), f"{wanted} were sent", every=0.001)
        place = chance.randrange(WORKERS)
        kill(workers[place])
        workers[place] = processes.shepherd(settings.path, "worker")
    wait_until(lambda: waiting(service) == 0, "all is embedded")
    found = inputs(embedding_endpoint)
    assert len(found) == vectors(service) == DOCUMENTS
    assert found.total() <= DOCUMENTS + KILLS * BATCH
    check_indexes(service.database)
