"""Typed settings: what they are, where they come from, and how they are changed."""

from shepherd_memory.config.editing import change, set_value, unset_value
from shepherd_memory.config.keys import PROVIDER_FIELDS, SETTINGS, Config, Provider
from shepherd_memory.config.live import LiveConfig
from shepherd_memory.config.loading import (
    LoadedConfig,
    default_config_path,
    default_database_path,
    known_setting,
    load,
    load_config,
    own_folders,
    provider_field,
    provider_from_table,
    state_folder,
    variable,
)
from shepherd_memory.config.settings import Setting

__all__ = [
    "PROVIDER_FIELDS",
    "SETTINGS",
    "Config",
    "LiveConfig",
    "LoadedConfig",
    "Provider",
    "Setting",
    "change",
    "default_config_path",
    "default_database_path",
    "known_setting",
    "load",
    "load_config",
    "own_folders",
    "provider_field",
    "provider_from_table",
    "set_value",
    "state_folder",
    "unset_value",
    "variable",
]
