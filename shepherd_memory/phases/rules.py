"""The rules of phase 1 as the configuration has them: whom to ask, about which conversations."""

from dataclasses import dataclass, field

from shepherd_memory.config import Config
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.target import origin_of, phase1_target, target_of
from shepherd_memory.storage.clock import DAY, HOUR

ALL = "*"
"""In a list of the configuration: whatever there is."""

TEMPERATURE = 0.1

DEFAULT_BUDGET = 32_000
"""Tokens of a request to a model whose context window is not known."""

MIN_BUDGET = 2_000


@dataclass(frozen=True)
class PhaseRules:
    """When a conversation gets a note. `same_origin` are the providers at the address of the endpoint.

    At most `claims_per_hour` notes are begun for a user; None: any number.
    """

    min_idle_us: int
    max_age_us: int
    min_entries: int
    providers: frozenset[str] = frozenset()
    originators: frozenset[str] = frozenset()
    same_origin: frozenset[str] = field(default_factory=frozenset)
    claims_per_hour: int | None = None

    def may_send(self, provider: str, source: str) -> bool:
        """Whether what was said to this provider, or is in a transcript of this source, may be sent."""
        if ALL in self.providers:
            return True
        return provider in self.same_origin | self.providers if provider else source in self.providers

    def is_listed(self, originator: str) -> bool:
        """Whether conversations that this program began without a person get a note too."""
        return ALL in self.originators or originator in self.originators


def phase_rules(config: Config) -> PhaseRules:
    """The rules in force."""
    origin = origin_of(phase1_target(config).base_url)
    near = (one.name for one in config.providers.values() if origin_of(target_of(one).base_url) == origin)
    return PhaseRules(
        round(config.memory_phase1_min_idle_hours * HOUR),
        config.memory_phase1_max_age_days * DAY,
        config.min_conversation_messages,
        _listed(config.memory_phase_providers),
        _listed(config.memory_phase_originators),
        frozenset(near) if origin[1] else frozenset(),
        config.memory_phase1_claims,
    )


def _listed(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.split(",") if name.strip())


def phase1_endpoint(config: Config) -> Endpoint | None:
    """Whom to ask for notes; None while the configuration wants none, or cannot have any."""
    is_wanted = config.memory_phases and config.memory_generate and config.memory_documents
    return named_endpoint(config) if is_wanted else None


def named_endpoint(config: Config) -> Endpoint | None:
    """The same, whether or not notes are wanted; None until endpoint and model are both set."""
    target = phase1_target(config)
    if not (target.base_url and target.model):
        return None
    return Endpoint(target, config.memory_phase1_max_tokens, TEMPERATURE, config.memory_phase1_timeout)


def why_none(config: Config) -> str:
    """What has to be set before any note is made; empty if nothing has."""
    missing = {
        "memory_phases is off: `shepherd config set memory_phases true` has notes made": config.memory_phases,
        "memory_generate is off: no notes are added": config.memory_generate,
        "memory_documents is off: there is nothing to make notes of": config.memory_documents,
        "memory_phase1_endpoint and memory_phase1_model, or those of extraction, are not set": (
            named_endpoint(config) is not None
        ),
    }
    return next((what for what, is_there in missing.items() if not is_there), "")


def budget_in(window: int) -> int:
    """How many tokens a request may have, in a context window of this size; 0: nobody knows it."""
    return max(MIN_BUDGET, window * 7 // 10) if window else DEFAULT_BUDGET
