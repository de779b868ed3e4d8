"""Every key there is: `Config`, and the `Provider` tables inside it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shepherd_memory.config.settings import (
    COUNT,
    COUNT_FROM_ONE,
    ENDPOINT,
    FLAG,
    FOLDER,
    GROUP,
    HOURS,
    MINUTES,
    MINUTES_OR_NEVER,
    PORT,
    SECONDS,
    SECONDS_OR_OFF,
    SECRET,
    SHARE,
    TEMPERATURE,
    TEXT,
    THREADS,
    TOKENS_OR_DEFAULT,
    Setting,
    one_of,
    setting,
    settings_of,
)
from shepherd_memory.errors import ConfigError
from shepherd_memory.text.groups import MAIN_GROUP

RESERVED_NAMES = ("add", "remove", "show", "set", "unset", "edit", "use", "list", "next", "help")
"""Words of `shepherd provider`, which no provider can be called."""

SHEPHERD = "shepherd"
PROVIDER_TYPES = ("openai", "anthropic", SHEPHERD)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _Checked:
    """A frozen dataclass of settings: checked when made, and never showing a secret."""

    def __post_init__(self) -> None:
        for key, known in settings_of(type(self)).items():
            object.__setattr__(self, key, known.check(getattr(self, key)))

    def __repr__(self) -> str:
        parts = (
            f"{key}={known.masked(getattr(self, key))!r}" for key, known in settings_of(type(self)).items()
        )
        return f"{type(self).__name__}({', '.join((*self._first_parts(), *parts))})"

    def _first_parts(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, repr=False)
class Provider(_Checked):
    """A model server that chats go to: a `[providers.NAME]` table."""

    name: str
    type: str = setting(
        "openai",
        one_of(PROVIDER_TYPES),
        "`openai` for any compatible server (llama.cpp, vLLM, Ollama, Gemini's compatible endpoint), "
        "`anthropic`, or `shepherd` for a remote server of ours.",
    )
    base_url: str = setting(
        "", ENDPOINT, "Where the server is; empty: the public API of an openai or anthropic type."
    )
    model: str = setting("", TEXT, "The model to ask for.")
    api_key: str = setting("", SECRET, "Sent to the server; empty: none.")
    memory: bool | None = setting(
        None,
        FLAG,
        "Remember chats through this provider, and inject memories into them. Unset: `memory_extraction` and "
        "`rag_context_injection` decide; with the type shepherd the server there does both.",
    )
    context_window: int = setting(
        0, COUNT, "Tokens that the model takes; a longer chat drops its oldest turns. 0: ask the server."
    )
    priority: int = setting(100, COUNT, "The order of `provider next`: lower numbers first.")
    display_name: str = setting("", TEXT, "How it is called on screen; empty: its name.")

    def __post_init__(self) -> None:
        check_provider_name(self.name)
        super().__post_init__()

    def _first_parts(self) -> tuple[str, ...]:
        return (f"name={self.name!r}",)


@dataclass(frozen=True, repr=False)
class Config(_Checked):
    """All settings, checked. Made directly by a program, or by `load_config` from file and environment."""

    user_id: str = setting(
        "",
        TEXT,
        "Whose memory this is; the same value on several machines shares it. Empty: `hostname:username`.",
    )
    group: str = setting(
        MAIN_GROUP,
        GROUP,
        "The group of the memory that chats and commands use. `main` sees all groups of its user, any other"
        " itself and `global`.",
    )
    agent_name: str = setting(
        "",
        TEXT,
        "What the agent is called in what is stored of its answers. A session may have another name.",
    )
    session_idle_minutes: float = setting(
        15.0, MINUTES_OR_NEVER, "A session that was started ends after so many minutes of silence. 0: never."
    )
    session_rehydration_tokens: int = setting(
        2000,
        COUNT,
        "Most tokens that the previous session may take in the first message of one that was started; never "
        "more than a quarter of the model's context window, where that is known. 0: it is not handed on.",
    )
    session_rehydration_context: str = setting(
        "none",
        one_of(("none", "identity", "knowledge", "both")),
        "Documents of these categories that are handed on with the previous session, within its tokens.",
    )
    global_memory_tokens: int = setting(
        500,
        COUNT,
        "Most tokens that the global memory may take in the first message of a conversation; never more than "
        "a quarter of the model's context window, where that is known. 0: it is not handed on.",
    )
    memory_use: bool = setting(
        True, FLAG, "Begin conversations with a summary of what was talked about before. Off: without one."
    )
    memory_summary_tokens: int = setting(
        800,
        COUNT,
        "Most tokens that the summary may take in the first message of a conversation; never more than a "
        "quarter of the model's context window, where that is known. 0: there is none.",
    )
    archive_folder: str = setting(
        "",
        FOLDER,
        "Keep the sessions that are over as markdown files below this folder, in step with the memory."
        " Empty: no files.",
    )
    memory_files_folder: str = setting(
        "",
        FOLDER,
        "Keep the memory files as markdown below this folder, in step with the memory. Empty: no files.",
    )
    memory_database: str = setting(
        "",
        TEXT,
        "A SQLite path, `sqlite:///…` or `postgresql://…?schema=…`. "
        "Empty: `$XDG_DATA_HOME/shepherd/memory.db`.",
    )
    memory_documents: bool = setting(
        True, FLAG, "Keep the messages verbatim. Off: only what extraction makes of them is kept."
    )
    memory_extraction: bool = setting(
        False,
        FLAG,
        "Remember chats through providers whose `memory` is not set, and extract facts from them.",
    )
    memory_extraction_endpoint: str = setting(
        "",
        ENDPOINT,
        "Base URL of an OpenAI-compatible server. Extraction runs when endpoint and model are set.",
    )
    memory_extraction_model: str = setting("", TEXT, "The model that extracts.")
    memory_extraction_api_key: str = setting(
        "", SECRET, "Bearer token for the endpoint; empty: none is sent."
    )
    memory_extraction_max_tokens: int = setting(
        512, COUNT_FROM_ONE, "Longest answer of the extraction model."
    )
    memory_extraction_temperature: float = setting(0.1, TEMPERATURE, "Low keeps extraction to what was said.")
    memory_extraction_min_turns: int = setting(
        2, COUNT_FROM_ONE, "A chat queues its news after this many new turns of the user."
    )
    memory_extraction_max_turns: int = setting(
        20, COUNT_FROM_ONE, "Most turns in one extraction call; more are split over several."
    )
    memory_extraction_idle_timeout: float = setting(
        180.0,
        SECONDS_OR_OFF,
        "After so many idle seconds a chat queues whatever is new, even one turn. 0: off.",
    )
    memory_extraction_queue_limit: int = setting(
        0,
        COUNT,
        "Most waiting items; above it the oldest of whoever has most is dropped and counted. 0: no limit.",
    )
    memory_extraction_retry_interval: float = setting(
        5.0, SECONDS, "Seconds between tries while the endpoint cannot be reached."
    )
    memory_extraction_timeout: float = setting(
        60.0, SECONDS, "Longest that one call to the endpoint may take."
    )
    memory_extraction_daily_tokens: int = setting(
        0, COUNT, "Tokens per user and day; above it items wait for tomorrow. 0: no cap."
    )
    memory_extraction_lease: float = setting(
        30.0, SECONDS, "A worker that says nothing for so long loses its item to another."
    )
    memory_phases: bool = setting(
        False,
        FLAG,
        "Have a model write a note of each conversation that is over. Off: nothing is sent for that.",
    )
    memory_generate: bool = setting(
        True,
        FLAG,
        "Make new notes. Off: with `memory_phases` on, those that were made are used, and none are added.",
    )
    memory_phase1_endpoint: str = setting(
        "",
        ENDPOINT,
        "Base URL of the OpenAI-compatible server that writes the notes; empty: that of extraction.",
    )
    memory_phase1_model: str = setting(
        "", TEXT, "The model that writes the notes; empty: that of extraction."
    )
    memory_phase1_api_key: str = setting(
        "",
        SECRET,
        "Bearer token for memory_phase1_endpoint; empty: none. Without an endpoint of its own that of "
        "extraction is sent.",
    )
    memory_phase1_max_tokens: int = setting(4096, COUNT_FROM_ONE, "Longest answer of the model: one note.")
    memory_phase1_timeout: float = setting(300.0, SECONDS, "Longest that one call for a note may take.")
    memory_phase1_concurrency: int = setting(
        1, THREADS, "Most notes that are written at once, over all processes: a local model has no more."
    )
    memory_phase1_min_idle_hours: float = setting(
        6.0, HOURS, "A conversation gets its note when it has been silent for so many hours."
    )
    memory_phase1_max_age_days: int = setting(
        30, COUNT_FROM_ONE, "A conversation that ended more days ago gets none by itself."
    )
    memory_phase1_claims: int = setting(16, COUNT, "Most notes that are begun for a user in an hour.")
    memory_phase1_input_tokens: int = setting(
        0,
        TOKENS_OR_DEFAULT,
        "Most tokens in one call for a note; a longer conversation is cut or split. 0: seven tenths of the "
        "model's context window, or 32000 where that is not known.",
    )
    memory_phase2: bool = setting(
        True,
        FLAG,
        "With `memory_phases` on, have a model consolidate the notes into memory files. Off: notes alone are "
        "made.",
    )
    memory_phase2_endpoint: str = setting(
        "",
        ENDPOINT,
        "Base URL of the OpenAI-compatible server that consolidates; empty: that of the notes.",
    )
    memory_phase2_model: str = setting("", TEXT, "The model that consolidates; empty: that of the notes.")
    memory_phase2_api_key: str = setting(
        "",
        SECRET,
        "Bearer token for memory_phase2_endpoint; empty: none. Without an endpoint of its own that of the "
        "notes is sent.",
    )
    memory_phase2_max_tokens: int = setting(
        8192, COUNT_FROM_ONE, "Longest answer of the model in one round of consolidation."
    )
    memory_phase2_timeout: float = setting(
        600.0, SECONDS, "Longest that one consolidation may take, over all its rounds."
    )
    memory_phase2_max_rounds: int = setting(
        40, COUNT_FROM_ONE, "Most calls of the model in one consolidation."
    )
    memory_phase2_max_inputs: int = setting(
        256, COUNT_FROM_ONE, "Most notes that are consolidated: those used most, then the newest."
    )
    memory_phase2_max_unused_days: int = setting(
        30, COUNT, "A note that nobody has used for so many days is no longer consolidated."
    )
    memory_phase2_cooldown_hours: float = setting(
        6.0, HOURS, "A group's memory is consolidated again by itself after so many hours at the earliest."
    )
    memory_phase2_input_tokens: int = setting(
        0,
        TOKENS_OR_DEFAULT,
        "Most tokens in one call of a consolidation. 0: seven tenths of the model's context window, or 32000 "
        "where that is not known.",
    )
    memory_phase_retry: float = setting(
        3600.0, SECONDS, "Seconds between tries of a note, or a consolidation, that could not be made."
    )
    memory_phase_daily_tokens: int = setting(
        0,
        COUNT,
        "Tokens for notes per user and day, and as many for consolidation; above it they wait for tomorrow. "
        "0: no cap.",
    )
    memory_phase_providers: str = setting(
        "",
        TEXT,
        "What may be sent to the model that writes the notes, with commas between: names of providers, "
        "`live` for chats of which the provider is not known, transcripts by their source such as "
        "`claude-code`; `*`: all. Empty: only chats with providers at the same address.",
    )
    memory_phase_originators: str = setting(
        "",
        TEXT,
        "Programs that ask without a person, such as `codex_exec` or `sdk-cli`, whose conversations get a "
        "note too, with commas between; `*`: all.",
    )
    memory_strategies: str = setting(
        "",
        TEXT,
        "Strategies of other packages that are handed each conversation that is over, by their names, with "
        "commas between; read when a process starts.",
    )
    memory_strategy_timeout: float = setting(
        600.0, SECONDS, "A strategy that takes longer for one conversation is ended."
    )
    memory_health_max_lag: float = setting(
        900.0, SECONDS, "Health turns red when the oldest item has waited longer and nothing moves."
    )
    embedding_engine: str = setting(
        "onnx",
        one_of(("onnx", "sentence-transformers", "openai", "none")),
        "What turns text into vectors; `none`: recall by keyword only.",
    )
    embedding_model: str = setting("", TEXT, "The embedding model; empty: all-MiniLM-L6-v2.")
    embedding_device: str = setting("", TEXT, "For sentence-transformers: cpu, cuda, mps; empty: detect.")
    embedding_endpoint: str = setting("", ENDPOINT, "For the openai engine: base URL of the server.")
    embedding_api_key: str = setting("", SECRET, "For the openai engine: bearer token; empty: none is sent.")
    embedding_timeout: float = setting(10.0, SECONDS, "For the openai engine: longest wait for an answer.")
    recall_cache_mb: int = setting(512, COUNT, "Most memory for the arrays of users who recalled last.")
    rag_context_injection: bool = setting(
        False, FLAG, "Put memories into prompts for providers whose `memory` is not set."
    )
    rag_max_results: int = setting(3, COUNT, "Most memories in one prompt.")
    rag_relevance_threshold: float = setting(0.3, SHARE, "Memories less certain than this are left out.")
    rag_max_tokens: int = setting(600, COUNT, "Most tokens that memories may take in one message.")
    rag_max_conversation_tokens: int = setting(
        2000,
        COUNT,
        "Most tokens that memories may take in all messages of a conversation; beyond it only what is "
        "new and certain is added.",
    )
    transcripts_enabled: bool = setting(
        False, FLAG, "Have `shepherd serve` and `shepherd worker` watch for transcripts of agents."
    )
    transcripts_watch_path: str = setting(
        "", TEXT, "The folder to watch. Empty: those of the agents that are installed here."
    )
    conversation_gap_minutes: float = setting(
        60.0, MINUTES, "So many minutes of silence end a conversation of a transcript."
    )
    min_conversation_messages: int = setting(
        5, COUNT, "A conversation with fewer messages is found by recall, but nothing is extracted from it."
    )
    poll_interval: float = setting(
        30.0, SECONDS, "Seconds between looks at which conversations of transcripts have ended."
    )
    server_host: str = setting(
        "127.0.0.1", TEXT, "Where the API server listens; another address than loopback needs an API key."
    )
    server_port: int = setting(8765, PORT, "The API server's port; 0: any that is free.")
    server_allowed_hosts: str = setting(
        "",
        TEXT,
        "Names, with commas between, by which clients may address the API server besides `localhost`, this "
        "machine's name and IP addresses; `*`: any.",
    )
    server_max_requests: int = setting(
        2000, COUNT_FROM_ONE, "Most requests at once; more are answered 503 with Retry-After."
    )
    server_max_request_mb: int = setting(32, COUNT_FROM_ONE, "Largest request body, in megabytes.")
    server_max_requests_mb: int = setting(
        256, COUNT_FROM_ONE, "Most megabytes of all request bodies at once; more are answered 503."
    )
    server_max_connections_per_address: int = setting(
        0, COUNT, "Most connections of one address; 0: no limit, because a reverse proxy is one address."
    )
    server_head_timeout: float = setting(
        10.0, SECONDS, "Longest that the head of a request may take to come; then the connection is closed."
    )
    server_body_timeout: float = setting(
        30.0, SECONDS, "Longest that a request body may pause, or come more slowly than server_body_min_rate."
    )
    server_body_min_rate: int = setting(
        1000, COUNT_FROM_ONE, "Fewest bytes a second that a request body may come at."
    )
    server_rate_limit: int = setting(
        0, COUNT, "Requests per minute of one API key that has no limit of its own. 0: no limit."
    )
    server_threads: int = setting(
        8, THREADS, "Threads, and with Postgres connections, in which requests use the memory."
    )
    server_memory_timeout: float = setting(
        2.0, SECONDS, "Longest that a chat waits for its memory, before and after; then it goes on without."
    )
    server_spool_mb: int = setting(
        64,
        COUNT,
        "Most that waits on this machine's disk while the database takes nothing, in megabytes. 0: nothing.",
    )
    server_provider_timeout: float = setting(
        600.0, SECONDS, "Longest silence of a provider before a chat is given up."
    )
    server_shutdown_timeout: float = setting(
        30.0, SECONDS, "Longest that the API server waits for running requests when it is told to stop."
    )
    cli_server_port: int = setting(8766, PORT, "The port of `shepherd cli-server`; 0: any that is free.")
    chat_max_tokens: int = setting(
        0, COUNT, "Longest answer in a chat of ours. 0: the provider's own limit (with anthropic 4096)."
    )
    chat_flush_timeout: float = setting(
        10.0, SECONDS_OR_OFF, "Longest that a chat waits at its end for what is new to be extracted. 0: not."
    )
    chat_system_prompt: str = setting("", TEXT, "Instructions that every chat of ours begins with.")
    provider: str = setting(
        "",
        TEXT,
        "Name of the provider in use: the first one added, or whichever `shepherd provider NAME use` chose.",
    )
    providers: Mapping[str, Provider] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "providers", dict(self.providers))
        check_current(self.provider, self.providers)

    def _first_parts(self) -> tuple[str, ...]:
        return (f"providers={dict(self.providers)!r}",) if self.providers else ()


SETTINGS: Mapping[str, Setting] = settings_of(Config)
"""Every flat key of the configuration."""

PROVIDER_FIELDS: Mapping[str, Setting] = settings_of(Provider)
"""Every field of a `[providers.NAME]` table."""


def check_provider_name(name: str) -> None:
    """A name that a command line and a `provider/model` prefix can carry, or ConfigError."""
    if name in RESERVED_NAMES:
        raise ConfigError(f"{name!r} is a word of `shepherd provider`; give the provider another name")
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a provider's name takes letters, digits and . _ - (up to 64); got {name[:80]!r}")


def check_current(name: str, providers: Mapping[str, Any]) -> None:
    """The provider in use is one that exists, or ConfigError."""
    if name and name not in providers:
        known = ", ".join(sorted(providers)) or "none"
        raise ConfigError(
            f"provider takes the name of a [providers.NAME] table (there are: {known}); got {name!r}"
        )
