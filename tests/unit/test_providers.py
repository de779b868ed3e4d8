import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shepherd_memory.config import Config, Provider, load_config, set_value
from shepherd_memory.config.providers import (
    NO_MEMORY,
    MemoryUse,
    add_provider,
    current_provider,
    describe,
    fields_as_toml,
    get_provider,
    list_providers,
    memory_advice,
    memory_use,
    memory_words,
    next_provider,
    remove_provider,
    set_field,
    set_fields_from_toml,
    unset_field,
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
    set_field(three, "first", "memory", "false")
    config = load_config(three)
    assert memory_use(config, config.providers["first"]) == NO_MEMORY
    assert memory_use(config, config.providers["last"]) == MemoryUse(remembers=True, injects=True)
    use_provider(three, "last")
    assert load_config(three).rag_context_injection is False


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("injects", [True, False])
def test_a_provider_whose_flag_was_never_set_follows_the_two_keys_each_for_itself(
    remembers: bool, injects: bool
) -> None:
    config = Config(memory_extraction=remembers, rag_context_injection=injects)
    assert memory_use(config, Provider("a")) == MemoryUse(remembers, injects)


@pytest.mark.parametrize(
    ("flag", "use"), [(None, NO_MEMORY), (False, NO_MEMORY), (True, MemoryUse(True, True))]
)
def test_of_two_shepherds_only_one_remembers(flag: bool | None, use: MemoryUse) -> None:
    config = Config(memory_extraction=True, rag_context_injection=True)
    assert memory_use(config, Provider("a", type="shepherd", memory=flag)) == use


def test_what_memory_does_is_said_in_words() -> None:
    both = Config(memory_extraction=True, rag_context_injection=True)
    assert memory_words(both, Provider("a")) == "with memory"
    assert memory_words(Config(), Provider("a")) == "without memory"
    assert memory_words(Config(memory_extraction=True), Provider("a")).startswith("remembered")
    assert memory_words(Config(rag_context_injection=True), Provider("a")).startswith("nothing is remembered")
    assert memory_words(both, Provider("a", type="shepherd")) == "the server there remembers"


def test_the_first_provider_added_is_in_use_and_the_second_changes_nothing(path: Path) -> None:
    assert add_provider(path, Provider("a"))
    assert not add_provider(path, Provider("b"))
    assert load_config(path).provider == "a"
    assert not remove_provider(path, "b")
    assert remove_provider(path, "a")
    assert load_config(path).provider == ""
    assert add_provider(path, Provider("c"))
    assert load_config(path).provider == "c"


def test_a_flag_can_be_unset_again(path: Path) -> None:
    add_provider(path, Provider("a", memory=True))
    unset_field(path, "a", "memory")
    assert load_config(path).providers["a"].memory is None
    with pytest.raises(NotFound, match="memory of a is not set"):
        unset_field(path, "a", "memory")
    with pytest.raises(ConfigError, match="did you mean"):
        unset_field(path, "a", "memori")


def test_a_flag_that_was_never_set_stays_so_through_an_editor_and_can_be_set_and_unset_there(
    path: Path,
) -> None:
    add_provider(path, Provider("a"))
    text = fields_as_toml(Provider("a"))
    assert set_fields_from_toml(path, Provider("a"), text).memory is None
    assert "memory" not in path.read_text("utf-8").replace("shepherd-memory", "")
    edited = set_fields_from_toml(path, Provider("a"), text.replace("# memory", "memory"))
    assert load_config(path).providers["a"].memory is edited.memory is True
    unset = fields_as_toml(edited).replace("memory = true\n", "")
    assert set_fields_from_toml(path, edited, unset).memory is None
    assert load_config(path).providers["a"].memory is None


@pytest.mark.parametrize(
    ("provider", "advice"),
    [
        (Provider("a", base_url="http://localhost:8080"), "true is advised"),
        (Provider("a", type="shepherd", base_url="http://h"), "leave it unset"),
        (Provider("a"), "your choice"),
        (Provider("a", base_url="https://api.openai.com/v1"), "your choice"),
        (Provider("a", base_url="https://notopenai.com"), "true is advised"),
        (Provider("a", type="anthropic"), "your choice"),
    ],
)
def test_the_advice_for_memory_depends_on_the_server(provider: Provider, advice: str) -> None:
    assert advice in memory_advice(provider)


def test_a_description_masks_the_key() -> None:
    described = describe(Config(memory_extraction=True), Provider("a", api_key="sk-1"))
    assert described["api_key"] == "(set)"
    assert (described["memory"], described["remembers"], described["injects"]) == (None, True, False)
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
