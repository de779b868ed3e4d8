"""Whether what a model claims about a user is in the user's own words."""

from shepherd_memory.text.grounding.verdicts import (
    NOT_SAID,
    REFUSED,
    STORED,
    UNCONFIRMED,
    Proposition,
    Verdict,
    judge,
)

__all__ = ["NOT_SAID", "REFUSED", "STORED", "UNCONFIRMED", "Proposition", "Verdict", "judge"]
