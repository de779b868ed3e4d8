import os
import pickle
import stat
import threading
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from shepherd_memory.config import (
    SETTINGS,
    Config,
    LiveConfig,
    Provider,
    default_config_path,
    default_database_path,
    load,
    load_config,
    set_value,
    unset_value,
    variable,
)
from shepherd_memory.errors import ConfigError, NotFound

DESIGNED = {
    "user_id": "",
    "group": "main",
    "agent_name": "",
    "session_idle_minutes": 15.0,
    "session_rehydration_tokens": 2000,
    "session_rehydration_context": "none",
    "global_memory_tokens": 500,
    "memory_use": True,
    "memory_summary_tokens": 800,
    "archive_folder": "",
    "memory_files_folder": "",
    "memory_database": "",
    "memory_documents": True,
    "memory_extraction": False,
    "memory_extraction_endpoint": "",
    "memory_extraction_model": "",
    "memory_extraction_api_key": "",
    "memory_extraction_max_tokens": 512,
    "memory_extraction_temperature": 0.1,
    "memory_extraction_min_turns": 2,
    "memory_extraction_max_turns": 20,
    "memory_extraction_idle_timeout": 180,
    "memory_extraction_queue_limit": 0,
    "memory_extraction_retry_interval": 5,
    "memory_extraction_timeout": 60,
    "memory_extraction_daily_tokens": 0,
    "memory_extraction_lease": 30,
    "memory_phases": False,
    "memory_generate": True,
    "memory_phase1_endpoint": "",
    "memory_phase1_model": "",
    "memory_phase1_api_key": "",
    "memory_phase1_max_tokens": 4096,
    "memory_phase1_timeout": 300,
    "memory_phase1_concurrency": 1,
    "memory_phase1_min_idle_hours": 6,
    "memory_phase1_max_age_days": 30,
    "memory_phase1_claims": 16,
    "memory_phase1_input_tokens": 0,
    "memory_phase2": True,
    "memory_phase2_endpoint": "",
    "memory_phase2_model": "",
    "memory_phase2_api_key": "",
    "memory_phase2_max_tokens": 8192,
    "memory_phase2_timeout": 600,
    "memory_phase2_max_rounds": 40,
    "memory_phase2_max_inputs": 256,
    "memory_phase2_max_unused_days": 30,
    "memory_phase2_cooldown_hours": 6,
    "memory_phase2_input_tokens": 0,
    "memory_phase_retry": 3600,
    "memory_phase_daily_tokens": 0,
    "memory_phase_providers": "",
    "memory_phase_originators": "",
    "memory_strategies": "",
    "memory_strategy_timeout": 600.0,
    "memory_health_max_lag": 900,
    "embedding_engine": "onnx",
    "embedding_model": "",
    "embedding_device": "",
    "embedding_endpoint": "",
    "embedding_api_key": "",
    "embedding_timeout": 10,
    "recall_cache_mb": 512,
    "rag_context_injection": False,
    "rag_max_results": 3,
    "rag_relevance_threshold": 0.3,
    "rag_max_tokens": 600,
    "rag_max_conversation_tokens": 2000,
    "transcripts_enabled": False,
    "transcripts_watch_path": "",
    "conversation_gap_minutes": 60,
    "min_conversation_messages": 5,
    "poll_interval": 30,
    "server_host": "127.0.0.1",
    "server_port": 8765,
    "server_allowed_hosts": "",
    "server_max_requests": 2000,
    "server_max_request_mb": 32,
    "server_max_requests_mb": 256,
    "server_max_connections_per_address": 0,
    "server_head_timeout": 10.0,
    "server_body_timeout": 30.0,
    "server_body_min_rate": 1000,
    "server_rate_limit": 0,
    "server_threads": 8,
    "server_memory_timeout": 2,
    "server_spool_mb": 64,
    "server_provider_timeout": 600,
    "server_shutdown_timeout": 30,
    "cli_server_port": 8766,
    "chat_max_tokens": 0,
    "chat_flush_timeout": 10,
    "chat_system_prompt": "",
}

REFUSED = [
    ("user_id", 7),
    ("user_id", "two\nlines"),
    ("user_id", " steve"),
    ("user_id", "nul\0"),
    ("user_id", "half\ud800"),
    ("memory_database", None),
    ("memory_extraction", 1),
    ("memory_extraction", "true"),
    ("memory_extraction_endpoint", "localhost:8080"),
    ("memory_extraction_endpoint", "ftp://host"),
    ("memory_extraction_endpoint", "http://"),
    ("memory_extraction_endpoint", "http://host:port"),
    ("memory_extraction_endpoint", "http://[::1"),
    ("memory_extraction_api_key", "two words"),
    ("memory_extraction_api_key", "schlüssel"),
    ("memory_extraction_max_tokens", 0),
    ("memory_extraction_max_tokens", 1.5),
    ("memory_extraction_max_tokens", True),
    ("memory_extraction_temperature", 2.1),
    ("memory_extraction_temperature", float("nan")),
    ("memory_extraction_min_turns", 0),
    ("memory_extraction_idle_timeout", -1),
    ("memory_extraction_queue_limit", -1),
    ("memory_extraction_queue_limit", 2**63),
    ("memory_extraction_retry_interval", 0),
    ("memory_extraction_timeout", 0.0),
    ("memory_extraction_timeout", float("inf")),
    ("memory_extraction_timeout", 10**400),
    ("memory_phase1_input_tokens", 1999),
    ("memory_phase1_min_idle_hours", -0.1),
    ("memory_phase1_concurrency", 0),
    ("rag_relevance_threshold", 1.01),
    ("rag_relevance_threshold", "0.3"),
    ("rag_max_results", [3]),
    ("server_port", 65_536),
    ("server_threads", 0),
    ("server_threads", 257),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shepherd" / "config.toml"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_every_key_has_its_designed_default() -> None:
    config = Config()
    assert {key: getattr(config, key) for key in DESIGNED} == DESIGNED
    assert set(SETTINGS) == {*DESIGNED, "provider"}
    assert config.providers == {}


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().user_id = "eve"  # type: ignore[misc]


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_a_bad_value_is_refused_with_its_key_and_what_it_takes(key: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**{key: value})  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{key} takes {SETTINGS[key].rule.takes}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory_extraction_endpoint", "http://[::1]:8080/v1"),
        ("memory_extraction_endpoint", "HTTPS://host/openai/"),
        ("memory_extraction_temperature", 2),
        ("memory_extraction_idle_timeout", 0),
        ("memory_extraction_retry_interval", 0.05),
        ("rag_relevance_threshold", 0),
        ("user_id", "Zoë 陳"),
    ],
)
def test_the_edges_of_a_range_are_accepted(key: str, value: object) -> None:
    assert getattr(Config(**{key: value}), key) == value  # type: ignore[arg-type]


def test_secrets_are_in_no_repr_and_no_message() -> None:
    config = Config(
        memory_extraction_api_key="sk-secret",
        embedding_api_key="sk-vectors",
        memory_database="postgresql://me:hunter2@host/db?password=hunter3&schema=s",
        providers={"a": Provider("a", api_key="sk-other", base_url="http://u:hunter4@h")},
    )
    for secret in ("sk-secret", "sk-vectors", "sk-other", "hunter2", "hunter3", "hunter4"):
        assert secret not in repr(config)
    assert "memory_extraction_api_key='(set)'" in repr(config)
    assert "schema=s" in repr(config)
    with pytest.raises(ConfigError) as caught:
        Config(memory_extraction_api_key="sk-secret with a space")
    assert "sk-secret" not in str(caught.value)


def test_a_config_can_be_handed_to_another_process_and_compared() -> None:
    config = Config(user_id="steve", providers={"a": Provider("a")})
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(Config(user_id="steve"))


def test_the_provider_in_use_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"provider takes the name of a .* table .there are: a.; got 'b'"):
        Config(provider="b", providers={"a": Provider("a")})


def test_default_paths_follow_xdg_and_ignore_a_relative_one() -> None:
    home = {"HOME": "/home/u"}
    assert default_config_path(home) == Path("/home/u/.config/shepherd/config.toml")
    assert default_config_path(home | {"XDG_CONFIG_HOME": "/x"}) == Path("/x/shepherd/config.toml")
    assert default_config_path(home | {"XDG_CONFIG_HOME": "rel"}) == Path(
        "/home/u/.config/shepherd/config.toml"
    )
    assert default_config_path(home | {"SHEPHERD_CONFIG": "/my.toml"}) == Path("/my.toml")
    assert default_database_path(home) == Path("/home/u/.local/share/shepherd/memory.db")
    assert default_database_path(home | {"XDG_DATA_HOME": "/d"}) == Path("/d/shepherd/memory.db")


def test_a_missing_file_means_defaults(path: Path) -> None:
    assert load_config(path, {}) == Config()


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(path: Path) -> None:
    write(path, 'user_id = "file"\nrag_max_results = 7\n')
    loaded = load(path, {"SHEPHERD_USER_ID": "env", "SHEPHERD_MEMORY_DATABASE": ""})
    assert (loaded.config.user_id, loaded.config.rag_max_results) == ("env", 7)
    assert loaded.source_of("user_id") == "environment"
    assert loaded.source_of("rag_max_results") == "file"
    assert loaded.source_of("memory_database") == "default"


@pytest.mark.parametrize("word", ["true", "TRUE", "1", "yes", "On"])
def test_the_environment_spells_flags_in_several_ways(path: Path, word: str) -> None:
    assert load_config(path, {"SHEPHERD_MEMORY_EXTRACTION": word}).memory_extraction is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SHEPHERD_MEMORY_EXTRACTION", "maybe"),
        ("SHEPHERD_RAG_MAX_RESULTS", "three"),
        ("SHEPHERD_RAG_MAX_RESULTS", "9" * 5000),
        ("SHEPHERD_RAG_RELEVANCE_THRESHOLD", "nan"),
        ("SHEPHERD_PROVIDER", "nobody"),
    ],
)
def test_a_bad_variable_is_refused_by_name(path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"environment variable {name}: .* takes"):
        load_config(path, {name: value})


def test_a_misspelt_variable_is_refused_and_a_foreign_one_is_left_alone(path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean SHEPHERD_MEMORY_DATABASE"):
        load_config(path, {"SHEPHERD_MEMORY_DATABSE": "x"})
    foreign = {
        "SHEPHERD_TEST_USER_ID": "1",
        "SHEPHERD_CONFIG": "x",
        "SHEPHERD_DEBUG": "1",
        "SHEPHERD_HOME": "y",
    }
    assert load_config(path, foreign) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user_di = 'x'", "unknown key 'user_di'; did you mean user_id"),
        ("zzz = 1", "unknown key 'zzz'; `shepherd config` lists them all"),
        ("rag_max_results = 'x'", "rag_max_results takes a whole number, 0 or more; got 'x'"),
        ("user_id = 1979-05-27", "user_id takes"),
        ("providers = 3", "providers takes tables"),
        ("[providers]\na = 3", "providers.a takes a table"),
        ("[providers.a]\nmodle = 'x'", "providers.a: a provider has no field 'modle'; did you mean model"),
        ("[providers.a]\nmemory = 'x'", "providers.a: memory takes true or false"),
        ("[providers.list]\n", "'list' is a word of `shepherd provider`"),
        ("provider = 'x'", "provider takes the name of a"),
        ("user_id = ", "not valid TOML"),
        ("a = " + "[" * 100_000, "not valid TOML"),
        ("rag_max_results = " + "9" * 5000, "not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_with_its_name_and_the_mistake(path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(path, text), {})
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_readable_text_file_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'user_id = "\xff"')
    with pytest.raises(ConfigError, match="not UTF-8 text: byte 11"):
        load_config(path, {})
    with pytest.raises(ConfigError, match="not a regular file"):
        load_config(path.parent, {})
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(path / "below", {})


def test_a_byte_order_mark_is_no_obstacle(path: Path) -> None:
    assert load_config(write(path, '\ufeffuser_id = "steve"'), {}).user_id == "steve"


def test_providers_are_read_from_their_tables(path: Path) -> None:
    write(path, 'provider = "a"\n[providers.a]\ntype = "anthropic"\nmemory = true\n')
    assert load_config(path, {}).providers == {"a": Provider("a", type="anthropic", memory=True)}


def test_setting_a_value_writes_it_typed_and_private(path: Path) -> None:
    assert set_value(path, "rag_max_results", "5") == 5
    assert set_value(path, "memory_extraction", "on") is True
    set_value(path, "user_id", 'quote " and \\ and 陳')
    config = load_config(path, {})
    assert (config.rag_max_results, config.memory_extraction) == (5, True)
    assert config.user_id == 'quote " and \\ and 陳'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_private_after_a_change(path: Path) -> None:
    write(path, "").chmod(0o644)
    set_value(path, "user_id", "steve")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refused_change_leaves_the_file_as_it_was(path: Path) -> None:
    write(path, 'user_id = "steve"  # mine\n')
    before = path.read_bytes()
    for key, text in [("rag_max_results", "x"), ("nope", "1"), ("providers", "1"), ("provider", "nobody")]:
        with pytest.raises(ConfigError):
            set_value(path, key, text)
    assert path.read_bytes() == before


def test_unsetting_brings_the_default_back_and_leaves_the_rest(path: Path) -> None:
    write(path, 'user_id = "steve"\nrag_max_results = 7\n[providers.a]\nmodel = "m"\n')
    unset_value(path, "user_id")
    config = load_config(path, {})
    assert (config.user_id, config.rag_max_results, config.providers["a"].model) == ("", 7, "m")
    with pytest.raises(NotFound, match="user_id is not set in"):
        unset_value(path, "user_id")
    with pytest.raises(ConfigError, match="unknown key"):
        unset_value(path, "nope")


def test_a_file_with_two_mistakes_is_repaired_one_by_one(path: Path) -> None:
    write(path, 'rag_max_results = "x"\nuser_di = "steve"\n')
    set_value(path, "rag_max_results", "4")
    unset_value(path, "user_di")
    assert load_config(path, {}) == Config(rag_max_results=4)


def test_a_broken_file_is_not_overwritten(path: Path) -> None:
    write(path, "user_id = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        set_value(path, "user_id", "steve")
    assert path.read_text() == "user_id = "


def test_a_symlink_stays_and_its_target_is_written(path: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "dotfiles" / "shepherd.toml", "rag_max_results = 7\n")
    path.parent.mkdir()
    path.symlink_to(target)
    set_value(path, "user_id", "steve")
    assert path.is_symlink()
    assert load_config(target, {}) == Config(user_id="steve", rag_max_results=7)


def test_a_directory_in_place_of_the_file_or_its_parent_is_a_clear_error(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="not a regular file"):
        set_value(path, "user_id", "steve")
    file = write(path.parent / "file", "")
    with pytest.raises(ConfigError, match="cannot write"):
        set_value(file / "config.toml", "user_id", "steve")


def test_a_pipe_or_device_is_neither_read_nor_replaced(path: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path.parent.mkdir()
    path.symlink_to(pipe)
    for refused in (lambda: load_config(pipe, {}), lambda: set_value(path, "user_id", "steve")):
        with pytest.raises(ConfigError, match="is not a regular file"):
            refused()
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["pipe", "shepherd"]


def test_the_null_device_is_an_empty_configuration() -> None:
    assert load_config(os.devnull, {}) == Config()


def test_what_a_killed_writer_left_is_cleared_away(path: Path) -> None:
    write(path.with_name(".config.toml.tmp"), "half a fi")
    set_value(path, "user_id", "steve")
    assert sorted(os.listdir(path.parent)) == ["config.toml", "config.toml.lock"]


def test_variables_are_named_after_their_keys() -> None:
    assert variable("user_id") == "SHEPHERD_USER_ID"


def test_a_live_config_sees_a_change_and_goes_on_with_the_last_good_one(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    set_value(path, "rag_max_results", "1")
    live = LiveConfig(load_config(path, {}), path, {})
    set_value(path, "rag_max_results", "2")
    assert live.current().rag_max_results == 2
    assert live.current() is live.current()
    write(path, "rag_max_results = 'many'\n")
    assert [live.current().rag_max_results for _ in range(3)] == [2, 2, 2]
    assert "rag_max_results takes" in (live.problem or "")
    assert len(caplog.records) == 1
    write(path, "rag_max_results = 3\n")
    assert live.current().rag_max_results == 3
    assert live.problem is None


def test_a_live_config_keeps_its_settings_when_the_file_goes(path: Path) -> None:
    set_value(path, "user_id", "steve")
    live = LiveConfig(load_config(path, {}), path, {})
    assert live.current().user_id == "steve"
    path.unlink()
    assert live.current().user_id == "steve"
    assert live.problem is not None
    assert "is gone" in live.problem


@pytest.mark.parametrize("left", ["", "\n", "  \n\n"])
def test_a_live_config_keeps_its_settings_when_the_file_is_emptied(
    path: Path, caplog: pytest.LogCaptureFixture, left: str
) -> None:
    set_value(path, "user_id", "steve")
    live = LiveConfig(load_config(path, {}), path, {})
    assert live.current().user_id == "steve"
    write(path, left)
    assert [live.current().user_id for _ in range(3)] == ["steve"] * 3
    assert "is empty" in (live.problem or "")
    assert len(caplog.records) == 1
    write(path, "# nothing is set\n")
    assert (live.current().user_id, live.problem) == ("", None)


def test_to_take_the_last_setting_out_is_no_accident(path: Path) -> None:
    set_value(path, "user_id", "steve")
    live = LiveConfig(load_config(path, {}), path, {})
    unset_value(path, "user_id")
    assert (live.current(), live.problem) == (Config(), None)
    assert path.read_text().startswith("# Settings of shepherd-memory")


def test_a_process_that_starts_with_an_empty_file_has_the_defaults_and_says_so(path: Path) -> None:
    write(path, "")
    live = LiveConfig(load_config(path, {}), path, {})
    assert live.current() == Config()
    assert "is empty" in (live.problem or "")
    set_value(path, "user_id", "steve")
    assert (live.current().user_id, live.problem) == ("steve", None)


def test_a_live_config_notices_a_file_that_comes_later(path: Path) -> None:
    live = LiveConfig(load_config(path, {}), path, {})
    assert (live.current(), live.problem) == (Config(), None)
    set_value(path, "user_id", "steve")
    assert live.current().user_id == "steve"


def test_a_live_config_keeps_the_environment_on_top(path: Path) -> None:
    live = LiveConfig(Config(), path, {"SHEPHERD_USER_ID": "env"})
    set_value(path, "user_id", "file")
    assert live.current().user_id == "env"


def test_a_config_that_a_program_made_stays() -> None:
    config = Config(user_id="steve")
    assert LiveConfig(config).current() is config


def test_many_threads_read_a_live_config_while_it_changes(path: Path) -> None:
    set_value(path, "rag_max_results", "0")
    live = LiveConfig(load_config(path, {}), path, {})
    seen: list[list[int]] = [[] for _ in range(4)]
    done = threading.Event()

    def read(into: list[int]) -> None:
        while not done.is_set():
            into.append(live.current().rag_max_results)

    threads = [threading.Thread(target=read, args=(into,)) for into in seen]
    for thread in threads:
        thread.start()
    for value in range(1, 30):
        set_value(path, "rag_max_results", str(value))
    done.set()
    for thread in threads:
        thread.join()
    assert live.current().rag_max_results == 29
    assert all(into == sorted(into) for into in seen)
