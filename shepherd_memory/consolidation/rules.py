"""The rules of consolidation as the configuration has them: whom to ask, how much, and how often."""

from dataclasses import dataclass, replace

from shepherd_memory.config import Config
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.target import origin_of, phase2_target, target_of
from shepherd_memory.phases.rules import TEMPERATURE, PhaseRules, phase_rules
from shepherd_memory.storage.clock import DAY, HOUR

DEFAULT_SUMMARY_TOKENS = 800


@dataclass(frozen=True)
class ConsolidationRules:
    """What is consolidated, and when again; `sending` says what may be sent to whoever does it."""

    sending: PhaseRules
    max_inputs: int
    max_unused_us: int
    cooldown_us: int
    summary_tokens: int


def consolidation_rules(config: Config) -> ConsolidationRules:
    """The rules in force."""
    origin = origin_of(phase2_target(config).base_url)
    near = (one.name for one in config.providers.values() if origin_of(target_of(one).base_url) == origin)
    sending = replace(phase_rules(config), same_origin=frozenset(near) if origin[1] else frozenset())
    return ConsolidationRules(
        sending,
        config.memory_phase2_max_inputs,
        config.memory_phase2_max_unused_days * DAY,
        round(config.memory_phase2_cooldown_hours * HOUR),
        config.memory_summary_tokens or DEFAULT_SUMMARY_TOKENS,
    )


def phase2_endpoint(config: Config) -> Endpoint | None:
    """Whom to ask to consolidate; None while the configuration wants nobody asked."""
    is_wanted = config.memory_phases and config.memory_generate and config.memory_documents
    target = phase2_target(config)
    if not (is_wanted and config.memory_phase2 and target.base_url and target.model):
        return None
    return Endpoint(target, config.memory_phase2_max_tokens, TEMPERATURE, config.memory_phase2_timeout)
