import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shepherd_memory.config import Config, Provider, load_config, set_value
from shepherd_memory.config.providers import (
    add_provider,
    current_provider,
    describe,
    extraction_enabled,
    fields_as_toml,
    get_provider,
    injection_enabled,
    list_providers,
    memory_advice,
    next_provider,
    remove_provider,
    set_field,
    set_fields_from_toml,
    use_provider,
)
from shepherd_memory.errors import (
    ConfigError,
    EndpointError,
    EndpointMisconfigured,
    EndpointUnavailable,
    InvalidInput,
    NotFound,
)
from shepherd_memory.llm.client import check_provider

Headers = dict[str, str]


@contextmanager
def model_server(status: int = 200, location: str = "") -> Iterator[tuple[str, list[tuple[str, Headers]]]]:
    """A server that answers every request alike; gives its URL and what it was asked."""
    asked: list[tuple[str, Headers]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="model-server")
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def refuse(provider: Provider) -> None:
    raise EndpointUnavailable(f"{provider.name} is down")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def three(path: Path) -> Path:
    """Three providers, the middle one by priority in use."""
    for name, priority in (("last", 30), ("first", 10), ("middle", 20)):
        add_provider(path, Provider(name, priority=priority))
    use_provider(path, "middle")
    return path


def test_an_added_provider_is_read_back(path: Path) -> None:
    provider = Provider(
        "mine", "anthropic", "http://h", "m", "sk-1", memory=True, priority=3, display_name="My own"
    )
    add_provider(path, provider)
    assert load_config(path).providers == {"mine": provider}


def test_a_name_that_exists_is_refused(three: Path) -> None:
    with pytest.raises(InvalidInput, match="provider 'first' exists"):
        add_provider(three, Provider("first"))


@pytest.mark.parametrize("name", ["add", "remove", "show", "set", "edit", "use", "list", "next", "help"])
def test_the_words_of_the_command_are_no_names(name: str) -> None:
    with pytest.raises(ConfigError, match="give the provider another name"):
        Provider(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "ä", "a" * 65, "a\n"])
def test_a_name_that_a_command_line_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="name takes letters"):
        Provider(name)


def test_providers_are_listed_by_priority_and_then_by_name() -> None:
    config = Config(providers={n: Provider(n, priority=p) for n, p in (("b", 2), ("c", 1), ("a", 2))})
    assert [provider.name for provider in list_providers(config)] == ["c", "a", "b"]


def test_an_unknown_name_is_not_found_with_the_nearest_one(three: Path) -> None:
    with pytest.raises(NotFound, match="no provider 'midle'; did you mean middle"):
        get_provider(load_config(three), "midle")
    for change in (lambda: remove_provider(three, "x"), lambda: set_field(three, "x", "model", "m")):
        with pytest.raises(NotFound):
            change()


def test_a_field_is_set_from_text_and_checked(three: Path) -> None:
    assert set_field(three, "first", "memory", "yes") is True
    assert load_config(three).providers["first"].memory is True
    with pytest.raises(ConfigError, match="memory takes true or false; got 'perhaps'"):
        set_field(three, "first", "memory", "perhaps")
    with pytest.raises(ConfigError, match="no field 'name'"):
        set_field(three, "first", "name", "other")


def test_removing_the_one_in_use_leaves_none_in_use(three: Path) -> None:
    remove_provider(three, "middle")
    config = load_config(three)
    assert (set(config.providers), current_provider(config)) == ({"first", "last"}, None)


def test_use_switches_only_after_the_check(three: Path) -> None:
    with pytest.raises(EndpointUnavailable):
        use_provider(three, "last", refuse)
    assert load_config(three).provider == "middle"
    use_provider(three, "last", lambda provider: None)
    assert load_config(three).provider == "last"


def test_next_goes_round_by_priority(three: Path) -> None:
    assert [next_provider(three).name for _ in range(4)] == ["last", "first", "middle", "last"]


def test_next_skips_what_does_not_answer_and_says_so(three: Path) -> None:
    skipped: list[str] = []

    def check(provider: Provider) -> None:
        if provider.name == "last":
            refuse(provider)

    def note(provider: Provider, error: EndpointError) -> None:
        skipped.append(provider.name)

    assert next_provider(three, check, note).name == "first"
    assert skipped == ["last"]


def test_next_changes_nothing_when_no_other_answers(three: Path, path: Path) -> None:
    with pytest.raises(EndpointUnavailable, match="nothing was changed"):
        next_provider(three, refuse)
    assert load_config(three).provider == "middle"


def test_next_needs_another_provider(path: Path) -> None:
    with pytest.raises(NotFound, match="there is no other provider"):
        next_provider(path)


def test_the_flag_of_the_provider_decides_and_is_not_written_back(three: Path) -> None:
    set_value(three, "memory_extraction", "true")
    set_field(three, "last", "memory", "true")
    config = load_config(three)
    assert (extraction_enabled(config), injection_enabled(config)) == (False, False)
    serving = config.providers["last"]
    assert (extraction_enabled(config, serving), injection_enabled(config, serving)) == (True, True)
    use_provider(three, "last")
    assert load_config(three).rag_context_injection is False


@pytest.mark.parametrize(("extraction", "injection"), [(True, False), (False, True)])
def test_without_a_provider_the_general_flags_decide(extraction: bool, injection: bool) -> None:
    config = Config(memory_extraction=extraction, rag_context_injection=injection)
    assert (extraction_enabled(config), injection_enabled(config)) == (extraction, injection)


@pytest.mark.parametrize(
    ("provider", "advice"),
    [
        (Provider("a", base_url="http://localhost:8080"), "true is advised"),
        (Provider("a", type="shepherd", base_url="http://h"), "leave it false"),
        (Provider("a"), "your choice"),
        (Provider("a", base_url="https://api.openai.com/v1"), "your choice"),
        (Provider("a", base_url="https://notopenai.com"), "true is advised"),
        (Provider("a", type="anthropic"), "your choice"),
    ],
)
def test_the_advice_for_memory_depends_on_the_server(provider: Provider, advice: str) -> None:
    assert advice in memory_advice(provider)


def test_a_description_masks_the_key() -> None:
    assert describe(Provider("a", api_key="sk-1"))["api_key"] == "(set)"
    assert "sk-1" not in repr(Provider("a", api_key="sk-1"))


def test_an_edit_saves_what_was_changed_and_keeps_the_key(path: Path) -> None:
    provider = Provider("a", api_key="sk-1", model="old")
    add_provider(path, provider)
    text = fields_as_toml(provider)
    assert "sk-1" not in text
    set_field(path, "a", "priority", "7")
    set_fields_from_toml(path, provider, text.replace('"old"', '"new"'))
    assert load_config(path).providers["a"] == Provider("a", api_key="sk-1", model="new", priority=7)


@pytest.mark.parametrize("text", ["type = 'zz'", "what = 1", "model = ", "[deep]\nx = 1"])
def test_a_bad_edit_saves_nothing(path: Path, text: str) -> None:
    add_provider(path, Provider("a", model="old"))
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        set_fields_from_toml(path, Provider("a", model="old"), text)
    assert path.read_bytes() == before


def test_connecting_sends_the_key_as_the_type_wants_it() -> None:
    with model_server() as (url, asked):
        check_provider(Provider("a", base_url=url, api_key="sk-1"))
        check_provider(Provider("b", base_url=url, api_key="sk-2", type="anthropic"))
        check_provider(Provider("c", base_url=url))
    (path, first), (_, second), (_, third) = asked
    assert path == "/v1/models"
    assert first["authorization"] == "Bearer sk-1"
    assert (second["x-api-key"], second.get("authorization")) == ("sk-2", None)
    assert "authorization" not in third


def test_a_netrc_does_not_replace_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    with model_server() as (url, asked):
        check_provider(Provider("a", base_url=url, api_key="sk-1"))
    assert asked[0][1]["authorization"] == "Bearer sk-1"


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, EndpointMisconfigured, "answers 401; check its api_key"),
        (403, EndpointMisconfigured, "answers 403; check its api_key"),
        (404, EndpointMisconfigured, "answers 404; check its base_url"),
        (405, EndpointMisconfigured, "answers 405; check its type and base_url"),
        (429, EndpointUnavailable, "answers 429; try again later"),
        (503, EndpointUnavailable, "answers 503; try again later"),
    ],
)
def test_a_server_that_refuses_is_a_failure_that_says_why(
    status: int, kind: type[EndpointError], says: str
) -> None:
    with model_server(status) as (url, _), pytest.raises(kind, match=says):
        check_provider(Provider("a", base_url=url))


def test_connecting_goes_through_the_proxy_of_the_environment_even_to_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with model_server() as (proxy, asked):
        monkeypatch.setenv("http_proxy", proxy)
        check_provider(Provider("a", base_url="http://127.0.0.1:9"))
    assert [path for path, _ in asked] == ["http://127.0.0.1:9/v1/models"]


def test_a_redirect_is_not_followed_with_the_key() -> None:
    with model_server() as (elsewhere, asked), model_server(302, elsewhere) as (url, _):
        with pytest.raises(EndpointMisconfigured, match="a redirect"):
            check_provider(Provider("a", base_url=url, type="anthropic", api_key="sk-1"))
        assert asked == []


def test_an_unreachable_server_is_a_failure_without_its_password() -> None:
    with pytest.raises(EndpointUnavailable, match=r"cannot reach .*refused") as caught:
        check_provider(Provider("a", base_url="http://me:hunter2@127.0.0.1:1"))
    assert "hunter2" not in str(caught.value)
