"""The fake that the other tests rely on has to keep its own promises."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.endpoint import (
    Flapping,
    ScriptedEndpoint,
    by_content,
    close,
    drip,
    echo,
    garbage,
    hang,
    held,
    raw_reply,
    reply,
    status,
    user_text,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        yield session


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "my rule is none"}, {"role": "user", "content": text}]}


def content(response: requests.Response) -> Any:
    return json.loads(response.json()["choices"][0]["message"]["content"])


def test_each_request_consumes_one_step_and_then_the_default_answers(
    endpoint: ScriptedEndpoint, session: requests.Session
) -> None:
    endpoint.script(status(429, retry_after=1), status(500, body="broken"))
    endpoint.default = reply({"name": "Steve"}, [("Who?", "Steve")])
    first, second, third = (session.post(endpoint.url, json={}) for _ in range(3))
    assert (first.status_code, first.headers["Retry-After"]) == (429, "1")
    assert (second.status_code, second.text) == (500, "broken")
    assert content(third) == {"facts": {"name": "Steve"}, "context": [{"q": "Who?", "a": "Steve"}]}


def test_requests_are_recorded_as_they_came(endpoint: ScriptedEndpoint, session: requests.Session) -> None:
    session.post(endpoint.url + "/v1/x", json={"a": 1}, headers={"X-Thing": "yes"})
    session.post(endpoint.url, data=b"\xff")
    first, second = endpoint.requests
    assert (first.path, first.json, first.headers["x-thing"]) == ("/v1/x", {"a": 1}, "yes")
    assert (second.body, second.json) == (b"\xff", None)
    assert first.at <= second.at


def test_a_function_of_the_body_can_choose_the_step(
    endpoint: ScriptedEndpoint, session: requests.Session
) -> None:
    endpoint.default = by_content(lambda body: status(418) if "tea" in user_text(body) else reply())
    assert session.post(endpoint.url, json=saying("tea")).status_code == 418
    assert session.post(endpoint.url, json=saying("coffee")).status_code == 200


def test_a_function_that_fails_fails_the_test(session: requests.Session) -> None:
    def choose(body: dict[str, Any]) -> Any:
        raise LookupError("the test is wrong")

    endpoint = ScriptedEndpoint()
    endpoint.default = by_content(choose)
    endpoint.start()
    with pytest.raises(requests.ConnectionError):
        session.post(endpoint.url, json=saying("x"))
    with pytest.raises(LookupError, match="the test is wrong"):
        endpoint.__exit__(None, None, None)


def test_echo_answers_what_the_user_said_of_themself(
    endpoint: ScriptedEndpoint, session: requests.Session
) -> None:
    endpoint.default = echo()
    answer = content(
        session.post(endpoint.url, json=saying("Hi, my dog name is Rex.\nMy city is Ulm, my age is 7"))
    )
    assert answer["facts"] == {"dog_name": "Rex", "city": "Ulm", "age": "7"}
    assert {"q": "What is the user's dog name?", "a": "Rex"} in answer["context"]


@pytest.mark.parametrize("step", [garbage(), raw_reply("not JSON")])
def test_garbage_is_a_200_without_memories(
    endpoint: ScriptedEndpoint, session: requests.Session, step: Any
) -> None:
    endpoint.script(step)
    response = session.post(endpoint.url, json={})
    assert response.status_code == 200
    with pytest.raises((ValueError, LookupError)):
        content(response)


def test_close_resets_the_connection(endpoint: ScriptedEndpoint, session: requests.Session) -> None:
    endpoint.script(close())
    with pytest.raises(requests.ConnectionError):
        session.post(endpoint.url, json={})


@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), drip(), drip(in_headers=True)], ids=repr)
def test_stopping_ends_whatever_hangs(
    endpoint: ScriptedEndpoint, session: requests.Session, step: Any
) -> None:
    endpoint.script(step)
    ended = threading.Event()

    def call() -> None:
        # An answer that ends within its headers is, to http.client, one without a body.
        with suppress(requests.RequestException):
            session.post(endpoint.url, json={})
        ended.set()

    thread = threading.Thread(target=call, name="test-call")
    thread.start()
    endpoint.wait_for(1)
    endpoint.stop()
    assert ended.wait(60)
    thread.join()
    assert not [t.name for t in threading.enumerate() if t.name.startswith("scripted-endpoint")]


def test_a_held_answer_waits_for_the_test(endpoint: ScriptedEndpoint, session: requests.Session) -> None:
    gate = threading.Event()
    endpoint.script(held(gate, reply()))
    answers: list[int] = []
    thread = threading.Thread(
        target=lambda: answers.append(session.post(endpoint.url, json={}).status_code), name="test-call"
    )
    thread.start()
    endpoint.wait_for(1)
    assert answers == []
    gate.set()
    thread.join(10)
    assert answers == [200]


def test_stopped_means_refused_and_started_again_means_the_same_port(
    endpoint: ScriptedEndpoint, session: requests.Session
) -> None:
    url = endpoint.url
    session.post(url, json={})
    endpoint.stop()
    with pytest.raises(requests.ConnectionError, match="refused"):
        session.post(url, json={})
    endpoint.start()
    assert session.post(url, json={}).status_code == 200
    assert len(endpoint.requests) == 2


def test_waiting_in_vain_says_what_arrived(endpoint: ScriptedEndpoint) -> None:
    with pytest.raises(AssertionError, match="0 of 1 requests"):
        endpoint.wait_for(1, timeout=0.01)


def test_the_same_seed_flaps_the_same_way() -> None:
    one, other = (Flapping(7, reply()) for _ in range(2))
    steps = [one._next() for _ in range(200)]
    assert steps == [other._next() for _ in range(200)]
    assert len({repr(step) for step in steps}) == 7


def test_it_runs_as_a_process_of_its_own(tmp_path: Path, session: requests.Session) -> None:
    port_file, record = tmp_path / "port", tmp_path / "bodies.jsonl"
    command = [sys.executable, "-m", "tests.endpoint", "--mode", "echo"]
    process = subprocess.Popen([*command, "--port-file", port_file, "--record", record], cwd=ROOT)
    try:
        url = f"http://127.0.0.1:{wait_for_text(port_file)}"
        assert content(session.post(url, json=saying("my city is Ulm")))["facts"] == {"city": "Ulm"}
        assert [json.loads(line) for line in record.read_text().splitlines()] == [saying("my city is Ulm")]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def wait_for_text(path: Path) -> str:
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} never appeared"
        time.sleep(0.01)
    return path.read_text()
