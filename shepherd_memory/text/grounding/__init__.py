"""Whether what a model claims about a user is in the user's own words."""

from shepherd_memory.text.grounding.verdicts import REFUSED, STORED, UNCONFIRMED, Claim, Verdict, judge

__all__ = ["REFUSED", "STORED", "UNCONFIRMED", "Claim", "Verdict", "judge"]
