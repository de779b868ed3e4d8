"""The extraction client against a real server that misbehaves in every way we know of."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.extraction.extractor import Endpoint, complete, extraction_client
from shepherd_memory.extraction.prompt import SCHEMA
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import Completion
from shepherd_memory.llm.target import EXTRACTION, Target
from shepherd_memory.text.reasoning import without_all_reasoning
from tests.endpoint import (
    ScriptedEndpoint,
    Step,
    by_content,
    close,
    drip,
    garbage,
    hang,
    json_reply,
    raw_reply,
    reply,
    status,
)
from tests.failure_cases import STATUSES, StatusCase, unanswering_host

KEY = "sk-test-4f7c1d0b9a"
MESSAGES = [
    {"role": "system", "content": "Pick out the memories as JSON."},
    {"role": "user", "content": "my passphrase hint is the blue heron of Ulm"},
]
# Far above any deadline here, far below the patience of who waits: a hanging call fails the test.
PROMPTLY_SECONDS = 60.0


def endpoint(url: str, model: str = "tiny", api_key: str = "", **settings: Any) -> Endpoint:
    return Endpoint(Target(EXTRACTION, url, model, api_key), **settings)


@pytest.fixture
def server() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def client() -> Iterator[Client]:
    with closing(extraction_client()) as client:
        yield client


@pytest.fixture
def ask(server: ScriptedEndpoint, client: Client) -> Callable[..., Completion]:
    def ask(schema: dict[str, Any] | None = SCHEMA, **settings: Any) -> Completion:
        settings = {"url": server.url, "api_key": KEY, **settings}
        return complete(client, endpoint(**settings), MESSAGES, schema)

    return ask


def formats(server: ScriptedEndpoint) -> list[str]:
    """The response format that each request so far asked for."""
    return [r.json.get("response_format", {"type": "text"})["type"] for r in server.requests]


def test_a_request_carries_the_settings_the_key_and_the_schema(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.default = raw_reply("{}")
    assert ask(max_tokens=99, temperature=0.5) == Completion("{}", 11, 7, estimated=False, truncated=False)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "model": "tiny",
        "messages": MESSAGES,
        "stream": False,
        "max_tokens": 99,
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "memories", "strict": True, "schema": SCHEMA},
        },
    }


def test_without_a_schema_no_format_is_asked_for(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    ask(schema=None)
    assert formats(server) == ["text"]


def test_without_a_key_no_login_is_sent_not_even_from_netrc(
    server: ScriptedEndpoint,
    ask: Callable[..., Completion],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    ask(api_key="")
    ask()
    assert "authorization" not in server.requests[0].headers
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"


def test_a_password_in_the_url_is_used_and_never_shown(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    url = server.url.replace("://", "://steve:hunter2@")
    server.default = status(500)
    with pytest.raises(EndpointUnavailable) as caught:
        ask(url=url, api_key="")
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert "hunter2" not in f"{caught.value!r} {endpoint(url)!r}"


def test_connections_are_reused(server: ScriptedEndpoint, ask: Callable[..., Completion]) -> None:
    ask()
    before = threading.active_count()
    for _ in range(5):
        ask()
    assert threading.active_count() == before


def test_this_machine_is_asked_without_the_proxy_of_the_environment(
    ask: Callable[..., Completion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask().text


def test_other_machines_are_asked_through_the_proxy_of_the_environment(
    server: ScriptedEndpoint, ask: Callable[..., Completion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(url="http://model.invalid").text
    assert server.requests[0].path == "http://model.invalid/v1/chat/completions"


@pytest.mark.parametrize("case", STATUSES, ids=lambda case: str(case.code))
def test_each_status_has_its_meaning(
    server: ScriptedEndpoint, ask: Callable[..., Completion], case: StatusCase
) -> None:
    server.default = status(case.code)
    with pytest.raises(case.job_error, match=f"answered {case.code}: scripted {case.code}") as caught:
        ask()
    assert type(caught.value) is case.job_error
    assert case.job_advice in str(caught.value)
    assert getattr(caught.value, "retry_after_seconds", None) is None


@pytest.mark.parametrize(
    ("after", "low", "high"),
    [
        ("0", 0, 0),
        ("7", 7, 7),
        ("1.5", 1.5, 1.5),
        ("86400", 3600, 3600),
        (timedelta(days=1), 3600, 3600),
        (timedelta(minutes=30), 1000, 1800),
    ],
    ids=str,
)
def test_retry_after_is_honoured_up_to_an_hour(
    server: ScriptedEndpoint, ask: Callable[..., Completion], after: str | timedelta, low: float, high: float
) -> None:
    header = after if isinstance(after, str) else format_datetime(datetime.now(UTC) + after, usegmt=True)
    server.default = status(429, retry_after=header)
    with pytest.raises(EndpointUnavailable) as caught:
        ask()
    assert caught.value.retry_after_seconds is not None
    assert low <= caught.value.retry_after_seconds <= high


@pytest.mark.parametrize("header", ["-5", "soon", "", "nan", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_retry_after_that_makes_no_sense_is_ignored(
    server: ScriptedEndpoint, ask: Callable[..., Completion], header: str
) -> None:
    server.default = status(503, retry_after=header)
    with pytest.raises(EndpointUnavailable) as caught:
        ask()
    assert caught.value.retry_after_seconds is None


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    server: ScriptedEndpoint, ask: Callable[..., Completion], code: int
) -> None:
    server.default = status(code, headers={"Location": "https://elsewhere.example/v1?token=abc"})
    with pytest.raises(
        EndpointMisconfigured, match=r"redirects to elsewhere\.example: set memory_ext"
    ) as caught:
        ask()
    assert "token" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "step",
    [
        garbage(),
        json_reply({}),
        json_reply([]),
        json_reply("text"),
        json_reply({"choices": []}),
        json_reply({"choices": [{}]}),
        json_reply({"choices": [{"message": {"role": "assistant"}}]}),
        raw_reply(None),
        raw_reply(None, reasoning_content="thinking"),
        raw_reply([]),
        raw_reply(7),
        raw_reply("", finish_reason="length"),
        raw_reply("<think>still thinking", finish_reason="length"),
        status(200, body=b"[" * 100_000),
    ],
)
def test_an_answer_without_content_is_unusable(
    server: ScriptedEndpoint, ask: Callable[..., Completion], step: Step
) -> None:
    server.default = step
    with pytest.raises(ItemRejected, match="unusable answer"):
        ask()


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"error": {"message": "slow down", "code": 429}}, EndpointUnavailable),
        ({"error": {"message": "broken", "code": 502}}, EndpointUnavailable),
        ({"error": {"message": "who are you", "code": 401}}, EndpointMisconfigured),
        ({"error": {"message": "no", "code": "invalid_api_key"}}, EndpointMisconfigured),
        ({"error": {"message": "too long"}}, ItemRejected),
        ({"error": "model is loading"}, ItemRejected),
        ({"choices": [{"error": {"message": "overloaded", "code": 503}}]}, EndpointUnavailable),
    ],
)
def test_an_error_under_status_200_is_still_an_error(
    server: ScriptedEndpoint, ask: Callable[..., Completion], payload: Any, error: type[EndpointError]
) -> None:
    server.default = json_reply(payload)
    with pytest.raises(error):
        ask()


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "The model `tiny` does not exist", "code": "model_not_found"}},
        [{"error": {"code": 400, "message": "bad", "details": [{"reason": "API_KEY_INVALID"}]}}],
    ],
)
def test_a_400_that_is_about_the_model_or_key_is_a_misconfiguration(
    server: ScriptedEndpoint, ask: Callable[..., Completion], body: Any
) -> None:
    server.default = status(400, body=body)
    with pytest.raises(EndpointMisconfigured):
        ask()


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"key {KEY} may not"}},
        {"error": f"key {KEY} may not"},
        {"detail": f"key {KEY} may not"},
        f"key {KEY} may not",
    ],
)
@pytest.mark.parametrize("code", [400, 401, 500])
def test_the_key_is_in_no_message(
    server: ScriptedEndpoint, ask: Callable[..., Completion], code: int, body: Any
) -> None:
    server.default = status(code, body=body)
    with pytest.raises(EndpointError, match="may not") as caught:
        ask()
    assert KEY not in f"{caught.value!r}{caught.value}"
    assert KEY not in repr(endpoint("http://h", api_key=KEY))


def test_what_the_user_said_is_in_no_message(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.default = status(400, body={"error": {"message": f"cannot parse '{MESSAGES[1]['content']}'"}})
    with pytest.raises(ItemRejected, match=r"answered 400: .its message quotes the conversation") as caught:
        ask()
    assert "heron" not in str(caught.value)


def test_messages_quote_the_endpoint_briefly_and_no_pages(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.script(status(502, body="<html>Bad gateway</html>"), status(500, body="x\n\x1b[31m" * 500))
    with pytest.raises(EndpointUnavailable, match=r"answered 502$"):
        ask()
    with pytest.raises(EndpointUnavailable, match="answered 500: x") as caught:
        ask()
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080",
        "ftp://h/",
        "file:///etc/passwd",
        "http://",
        "http://h:port",
        "http://[x",
        "http://h:99999",
    ],
)
def test_what_is_no_web_address_is_a_misconfiguration(ask: Callable[..., Completion], url: str) -> None:
    with pytest.raises(EndpointMisconfigured, match="memory_extraction_endpoint"):
        ask(url=url)


@pytest.mark.parametrize("host", ["http://a..b", "http://" + "a" * 70, "http://.", "http://h ost"])
def test_a_strange_host_name_is_reported_and_nothing_else(ask: Callable[..., Completion], host: str) -> None:
    with pytest.raises((EndpointMisconfigured, EndpointUnavailable)):
        ask(url=host)


@pytest.mark.parametrize("key", ["line\nbreak", "schlüssel", "nul\0"])
def test_a_key_that_no_header_can_carry_is_a_misconfiguration(
    ask: Callable[..., Completion], key: str
) -> None:
    with pytest.raises(EndpointMisconfigured, match="memory_extraction_api_key") as caught:
        ask(api_key=key)
    assert key not in str(caught.value)


def test_a_key_with_a_newline_at_its_end_works(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    ask(api_key=KEY + "\n")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_refused_connection_is_unavailable_and_works_again_later(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    ask()
    server.stop()
    with pytest.raises(EndpointUnavailable, match="Connection refused"):
        ask()
    server.start()
    assert ask().text


def test_a_reset_connection_is_unavailable(server: ScriptedEndpoint, ask: Callable[..., Completion]) -> None:
    server.script(close())
    with pytest.raises(EndpointUnavailable):
        ask()
    assert ask().text


def test_an_unknown_host_is_unavailable(ask: Callable[..., Completion]) -> None:
    with pytest.raises(EndpointUnavailable, match=r"nowhere\.invalid"):
        ask(url="http://nowhere.invalid", timeout_seconds=PROMPTLY_SECONDS)


@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), drip(), drip(in_headers=True)], ids=repr)
def test_the_deadline_is_for_the_whole_call(
    server: ScriptedEndpoint, ask: Callable[..., Completion], step: Step
) -> None:
    server.script(step)
    with pytest.raises(EndpointUnavailable, match=r"no answer within 0\.5 s .memory_extraction_timeout"):
        ask(timeout_seconds=0.5)
    assert ask().text


def test_the_deadline_covers_all_tries_of_one_call(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.script(status(400), status(400), hang())
    with pytest.raises(EndpointUnavailable, match="no answer within"):
        ask(timeout_seconds=5)
    assert len(server.requests) == 3


@pytest.fixture
def black_hole() -> Iterator[str]:
    with unanswering_host() as url:
        yield url


def test_a_connection_that_is_never_made_ends_at_the_deadline(
    black_hole: str, ask: Callable[..., Completion]
) -> None:
    with pytest.raises(EndpointUnavailable):
        ask(url=black_hole, timeout_seconds=0.5)


class Background:
    """A call in another thread, and what became of it."""

    def __init__(self, ask: Callable[..., Completion], **settings: Any) -> None:
        self.outcome: Completion | Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(ask, settings), name="test-call")
        self._thread.start()

    def _run(self, ask: Callable[..., Completion], settings: Any) -> None:
        try:
            self.outcome = ask(**settings)
        except EndpointError as error:
            self.outcome = error

    def join(self) -> Completion | Exception | None:
        self._thread.join(PROMPTLY_SECONDS)
        assert not self._thread.is_alive(), "the call hangs"
        return self.outcome


@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), drip(), drip(in_headers=True)], ids=repr)
def test_cancel_ends_the_running_call_and_only_that(
    server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion], step: Step
) -> None:
    server.script(step)
    call = Background(ask)
    server.wait_for(1)
    client.cancel()
    outcome = call.join()
    assert isinstance(outcome, EndpointUnavailable)
    assert "cancelled" in str(outcome)
    assert ask().text


def test_cancel_ends_a_reused_connection_too(
    server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion]
) -> None:
    ask()
    server.script(hang())
    call = Background(ask)
    server.wait_for(2)
    client.cancel()
    assert isinstance(call.join(), EndpointUnavailable)


def test_cancel_ends_a_connection_attempt(
    black_hole: str, client: Client, ask: Callable[..., Completion]
) -> None:
    call = Background(ask, url=black_hole)
    while call.outcome is None:
        client.cancel()
        time.sleep(0.01)
    assert "cancelled" in str(call.join())


def test_a_cancel_before_the_call_does_not_touch_it(client: Client, ask: Callable[..., Completion]) -> None:
    client.cancel()
    assert ask().text


def test_cancelling_all_the_time_never_breaks_the_client(
    server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion]
) -> None:
    done = threading.Event()

    def pester() -> None:
        while not done.wait(0.0005):
            client.cancel()

    thread = threading.Thread(target=pester, name="test-pester")
    thread.start()
    for _ in range(50):
        outcome = Background(ask).join()
        assert isinstance(outcome, Completion | EndpointUnavailable)
    done.set()
    thread.join()
    assert ask().text


def test_closing_cuts_the_running_call_and_refuses_the_next(
    server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion]
) -> None:
    server.script(hang())
    call = Background(ask)
    server.wait_for(1)
    client.close()
    assert isinstance(call.join(), EndpointUnavailable)
    with pytest.raises(EndpointUnavailable, match="closed"):
        ask()
    client.close()


def test_a_second_call_at_the_same_time_is_a_mistake(
    server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion]
) -> None:
    server.script(hang())
    call = Background(ask)
    server.wait_for(1)
    with pytest.raises(RuntimeError, match="one call at a time"):
        ask()
    client.cancel()
    call.join()


def test_a_huge_body_is_not_read_to_its_end(server: ScriptedEndpoint, ask: Callable[..., Completion]) -> None:
    server.script(status(200, body=b" " * (5 * 1024 * 1024)))
    with pytest.raises(ItemRejected, match=r"unusable answer: .* sent more than"):
        ask()
    assert ask().text


def refusing(*formats: str) -> Step:
    """An endpoint that answers 400 to some response formats."""

    def choose(body: dict[str, Any]) -> Step:
        asked = body.get("response_format", {}).get("type", "text")
        return status(400) if asked in formats else reply({"name": "Steve"})

    return by_content(choose)


@pytest.mark.parametrize(
    ("refused", "settled"),
    [(["json_schema"], "json_object"), (["json_schema", "json_object"], "text")],
)
def test_the_ladder_goes_down_once_and_is_remembered(
    server: ScriptedEndpoint, ask: Callable[..., Completion], refused: list[str], settled: str
) -> None:
    server.default = refusing(*refused)
    ask()
    ask()
    assert formats(server) == [*refused, settled, settled]


def test_each_model_has_a_ladder_of_its_own(server: ScriptedEndpoint, ask: Callable[..., Completion]) -> None:
    server.default = refusing("json_schema")
    ask(model="one")
    ask(model="other")
    assert formats(server) == ["json_schema", "json_object"] * 2


def test_an_item_refused_on_every_rung_does_not_lower_the_ladder(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.script(status(400), status(422), status(400))
    with pytest.raises(ItemRejected):
        ask()
    ask()
    assert formats(server) == ["json_schema", "json_object", "text", "json_schema"]


def test_an_outage_on_a_lower_rung_does_not_lower_the_ladder(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.script(status(400), status(503))
    with pytest.raises(EndpointUnavailable):
        ask()
    ask()
    assert formats(server) == ["json_schema", "json_object", "json_schema"]


@pytest.mark.parametrize("word", ["response_format", "json_schema", "grammar"])
def test_a_500_about_the_format_goes_down_the_ladder(
    server: ScriptedEndpoint, ask: Callable[..., Completion], word: str
) -> None:
    server.script(status(500, body={"error": {"message": f"failed to parse {word}"}}))
    ask()
    assert formats(server) == ["json_schema", "json_object"]


def test_any_other_500_does_not(server: ScriptedEndpoint, ask: Callable[..., Completion]) -> None:
    server.script(status(500))
    with pytest.raises(EndpointUnavailable):
        ask()
    assert formats(server) == ["json_schema"]


def choosy(body: dict[str, Any]) -> Step:
    """Like the newer hosted models: max_completion_tokens, and no temperature."""
    if "max_tokens" in body:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model."
        return status(400, body={"error": {"message": message, "param": "max_tokens"}})
    if "temperature" in body:
        message = "Unsupported value: 'temperature' does not support 0.1 with this model."
        return status(400, body={"error": {"message": message, "param": "temperature"}})
    return reply()


def test_refused_parameters_are_given_up_and_the_format_kept(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.default = by_content(choosy)
    ask()
    ask()
    assert formats(server) == ["json_schema"] * 4
    last = server.requests[-1].json
    assert last["max_completion_tokens"] == 512
    assert "max_tokens" not in last
    assert "temperature" not in last


def test_a_prompt_that_is_too_long_changes_no_parameter(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.default = status(400, body={"error": {"message": "max_tokens is too large: 512 of 256 left"}})
    with pytest.raises(ItemRejected, match="too large"):
        ask()
    assert formats(server) == ["json_schema", "json_object", "text"]
    assert all("max_tokens" in request.json for request in server.requests)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("  {}\n", "{}"),
        ([{"type": "text", "text": '{"facts"'}, {"type": "text", "text": ": {}}"}], '{"facts": {}}'),
        (["{", "}"], "{}"),
        ("<think>Is it {a}?</think>\n{}", "{}"),
        ("<think>one</think><think>two</think>{}", "{}"),
        ("no opening tag, {really}</think>{}", "{}"),
        ('{"facts": {"tag": "<think> and </think>"}}', '{"facts": {"tag": "<think> and </think>"}}'),
        ("<think>a</think>```json\n{}\n```", "```json\n{}\n```"),
    ],
)
def test_the_text_comes_without_thoughts_and_in_one_piece(
    server: ScriptedEndpoint, ask: Callable[..., Completion], content: Any, text: str
) -> None:
    server.default = raw_reply(content, reasoning_content="not for us")
    assert ask().text == text


def test_many_open_thoughts_cost_no_time() -> None:
    assert without_all_reasoning("<think>" * 100_000) == ""
    assert without_all_reasoning("<think></think>" * 2_000 + "{}") == "{}"


def test_an_answer_that_ran_into_the_limit_is_marked(
    server: ScriptedEndpoint, ask: Callable[..., Completion]
) -> None:
    server.script(raw_reply('{"facts": {"na', finish_reason="length"))
    assert ask().truncated
    assert not ask().truncated


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 0}, (5, 0, False)),
        ({"prompt_tokens": 5}, (5, 2, True)),
        ({"prompt_tokens": -1, "completion_tokens": 3}, (19, 3, True)),
        ({"prompt_tokens": "many", "completion_tokens": True}, (19, 2, True)),
        ({}, (19, 2, True)),
    ],
)
def test_tokens_are_those_reported_else_estimated(
    server: ScriptedEndpoint, ask: Callable[..., Completion], usage: Any, expected: tuple[int, int, bool]
) -> None:
    server.default = raw_reply("äöüx", usage=usage)
    completion = ask()
    assert (completion.prompt_tokens, completion.completion_tokens, completion.estimated) == expected


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    path = tmp_path / "server.pem"
    files = ["-keyout", str(path), "-out", str(tmp_path / "ca.pem")]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (tmp_path / "ca.pem").read_bytes())
    return path


@pytest.fixture
def tls_server(certificate: Path) -> Iterator[ScriptedEndpoint]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ScriptedEndpoint(tls=context) as endpoint:
        yield endpoint


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.with_name("ca.pem")))


def test_a_certificate_nobody_vouches_for_is_a_misconfiguration(
    tls_server: ScriptedEndpoint, ask: Callable[..., Completion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    with pytest.raises(EndpointMisconfigured, match="self-signed certificate"):
        ask(url=tls_server.url)
    assert tls_server.requests == []


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("step", [hang(), drip(), drip(in_headers=True)], ids=repr)
def test_deadline_and_cancel_work_through_tls(
    tls_server: ScriptedEndpoint, client: Client, ask: Callable[..., Completion], step: Step
) -> None:
    assert ask(url=tls_server.url).text
    tls_server.script(step, step)
    with pytest.raises(EndpointUnavailable, match="no answer within"):
        ask(url=tls_server.url, timeout_seconds=0.5)
    call = Background(ask, url=tls_server.url)
    tls_server.wait_for(3)
    client.cancel()
    assert "cancelled" in str(call.join())


def test_the_deadline_covers_a_tls_handshake_that_hangs(ask: Callable[..., Completion]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(EndpointUnavailable, match="no answer within"):
            ask(url=url, timeout_seconds=0.5)


def answer_half_an_error(listener: socket.socket, code: int) -> None:
    """Answer one request with the head of an error, and with less of its body than the head says."""
    with listener.accept()[0] as connection, connection.makefile("rb") as request:
        head = list(iter(request.readline, b"\r\n"))
        (length,) = [int(line.split()[1]) for line in head if line.lower().startswith(b"content-length:")]
        request.read(length)
        connection.sendall(b'HTTP/1.1 %d Oops\r\nContent-Length: 500\r\n\r\n{"error":' % code)


@pytest.mark.parametrize("code", [400, 401, 500])
def test_half_an_error_blames_neither_the_item_nor_the_settings(
    ask: Callable[..., Completion], code: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer_half_an_error, listener, code)
        with pytest.raises(EndpointUnavailable) as caught:
            ask(url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        answered.result()
    assert not caught.value.item_may_be_at_fault


def test_importing_the_package_does_not_import_requests() -> None:
    program = (
        "import sys, shepherd_memory.llm.client as e;"
        "c = e.Client(); c.cancel(); c.close();"
        "sys.exit(any(m in sys.modules for m in ('requests', 'urllib3')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_nothing_of_a_call_stays_behind(server: ScriptedEndpoint) -> None:
    with closing(extraction_client()) as client:
        complete(client, endpoint(server.url), MESSAGES, None)
    server.stop()
    names = {thread.name for thread in threading.enumerate()}
    assert not {name for name in names if name.startswith(("shepherd-call", "scripted-endpoint"))}
    assert json.loads(server.requests[0].body)["model"] == "tiny"
