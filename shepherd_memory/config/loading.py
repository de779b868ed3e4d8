"""From a TOML file and the environment to a `Config`."""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory.config.keys import PROVIDER_FIELDS, SETTINGS, Config, Provider, check_current
from shepherd_memory.config.settings import Setting, did_you_mean
from shepherd_memory.errors import ConfigError

PREFIX = "SHEPHERD_"

# These have our prefix and are no keys. Others are left alone too, unless they look like a misspelt key.
_NO_KEYS = ("SHEPHERD_CONFIG", "SHEPHERD_DEBUG")
_TEST_PREFIX = "SHEPHERD_TEST_"
_TYPO_LIKENESS = 0.85

Environ = Mapping[str, str]


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration, and where each key's value came from."""

    config: Config
    path: Path
    sources: Mapping[str, str]

    def source_of(self, key: str) -> str:
        """`environment`, `file` or `default`."""
        return self.sources.get(known_setting(key).key, "default")

    def masked(self, key: str) -> Any:
        """A key's value, without what must not be shown."""
        return known_setting(key).masked(getattr(self.config, key))

    def show(self, key: str) -> str:
        """A key's value as text, without what must not be shown."""
        return known_setting(key).show(getattr(self.config, key))


def default_config_path(environ: Environ = os.environ) -> Path:
    """`$SHEPHERD_CONFIG`, else `shepherd/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`."""
    if named := environ.get("SHEPHERD_CONFIG"):
        return Path(named)
    return _base(environ, "XDG_CONFIG_HOME", ".config") / "shepherd" / "config.toml"


def default_database_path(environ: Environ = os.environ) -> Path:
    """`shepherd/memory.db` in `$XDG_DATA_HOME` or `~/.local/share`."""
    return _base(environ, "XDG_DATA_HOME", ".local/share") / "shepherd" / "memory.db"


def state_folder(environ: Environ = os.environ) -> Path:
    """`shepherd` in `$XDG_STATE_HOME` or `~/.local/state`: what a program leaves for its next run."""
    return _base(environ, "XDG_STATE_HOME", ".local/state") / "shepherd"


def own_folders(environ: Environ = os.environ) -> tuple[Path, ...]:
    """The folders for settings, data and state that are shepherd's alone."""
    settings = _base(environ, "XDG_CONFIG_HOME", ".config") / "shepherd"
    return settings, default_database_path(environ).parent, state_folder(environ)


def load_config(path: Path | str | None = None, environ: Environ = os.environ) -> Config:
    """The configuration in force: defaults, then the file if there is one, then the environment."""
    return load(path, environ).config


def load(path: Path | str | None = None, environ: Environ = os.environ) -> LoadedConfig:
    """The same as `load_config`, with the source of each value."""
    where = Path(path) if path is not None else default_config_path(environ)
    table = read_table(where)
    for problem in problems(table):
        raise ConfigError(f"{where}: {problem}")
    in_file = {key: _value(key, value) for key, value in table.items()}
    in_environment = dict(_from_environment(environ))
    sources = dict.fromkeys(in_file, "file") | dict.fromkeys(in_environment, "environment")
    return LoadedConfig(_combine(in_file, in_environment), where, sources)


def read_table(path: Path) -> dict[str, Any]:
    """The file as TOML says it, unchecked; empty if there is none, or if it is the null device."""
    if str(path) == os.devnull:
        return {}
    try:
        refuse_special(path)
        # A byte order mark is what some editors leave at the start.
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def refuse_special(path: Path) -> None:
    """Devices and pipes are refused: reading one may never end, and replacing one breaks the machine."""
    try:
        is_regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return
    if not is_regular:
        raise ConfigError(f"{path} is not a regular file; name another with --config")


def problems(table: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong in a file, each with its key and what that takes."""
    for key, value in table.items():
        try:
            _value(key, value)
        except ConfigError as error:
            yield str(error)
    try:
        check_current(*_current_and_known(table))
    except ConfigError as error:
        yield str(error)


def known_setting(key: str) -> Setting:
    """The setting of that name, or ConfigError with the nearest names."""
    if key == "providers":
        raise ConfigError("providers is a table, not a setting: see `shepherd provider help`")
    if key not in SETTINGS:
        hint = did_you_mean(key, SETTINGS) or "; `shepherd config` lists them all"
        raise ConfigError(f"unknown key {key!r}{hint}")
    return SETTINGS[key]


def provider_field(name: str) -> Setting:
    """The field of that name in a provider's table, or ConfigError with the nearest names."""
    if name not in PROVIDER_FIELDS:
        hint = did_you_mean(name, PROVIDER_FIELDS) or f"; there are {', '.join(PROVIDER_FIELDS)}"
        raise ConfigError(f"a provider has no field {name!r}{hint}")
    return PROVIDER_FIELDS[name]


def provider_from_table(name: str, table: Any) -> Provider:
    """A `[providers.NAME]` table as a Provider, or ConfigError naming the field."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"providers.{name} takes a table of fields: [providers.{name}]")
    try:
        return Provider(name, **{key: provider_field(key).check(value) for key, value in table.items()})
    except ConfigError as error:
        raise ConfigError(f"providers.{name}: {error}") from None


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.upper()


def _value(key: str, value: Any) -> Any:
    if key != "providers":
        return known_setting(key).check(value)
    if not isinstance(value, Mapping):
        raise ConfigError("providers takes tables: [providers.NAME]")
    return {name: provider_from_table(name, table) for name, table in value.items()}


def _current_and_known(table: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The names to compare; what is of the wrong type has been reported already."""
    name, providers = table.get("provider", ""), table.get("providers", {})
    if isinstance(name, str) and isinstance(providers, Mapping):
        return name, providers
    return "", {}


def _from_environment(environ: Environ) -> Iterator[tuple[str, Any]]:
    """The keys that the environment sets; an empty variable counts as not set."""
    for name in sorted(environ):
        key = name.removeprefix(PREFIX).lower()
        if not name.startswith(PREFIX) or not environ[name]:
            continue
        if key not in SETTINGS:
            _refuse_misspelt(name, key)
            continue
        try:
            yield key, SETTINGS[key].parse(environ[name])
        except ConfigError as error:
            raise ConfigError(f"environment variable {name}: {error}") from None


def _refuse_misspelt(name: str, key: str) -> None:
    if name in _NO_KEYS or name.startswith(_TEST_PREFIX):
        return
    import difflib  # only an unknown variable pays for it

    if close := difflib.get_close_matches(key, SETTINGS, n=1, cutoff=_TYPO_LIKENESS):
        raise ConfigError(f"environment variable {name} is no setting; did you mean {variable(close[0])}?")


def _combine(in_file: dict[str, Any], in_environment: dict[str, Any]) -> Config:
    try:
        return Config(**(in_file | in_environment))
    except ConfigError as error:
        # Each value was good by itself, so it is the provider that the environment names.
        raise ConfigError(f"environment variable {variable('provider')}: {error}") from None


def _base(environ: Environ, variable_name: str, below_home: str) -> Path:
    # The XDG rules say to ignore a relative path.
    given = Path(environ.get(variable_name) or "")
    return given if given.is_absolute() else _home(environ) / below_home


def _home(environ: Environ) -> Path:
    try:
        return Path(environ.get("HOME") or Path.home())
    except RuntimeError as error:
        raise ConfigError(
            "cannot tell your home directory: set HOME, or name a file with --config"
        ) from error
