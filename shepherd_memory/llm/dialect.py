"""What an endpoint understands of a request: how to ask for JSON, and which parameters it takes."""

import re
from dataclasses import dataclass, replace
from typing import Any

Schema = dict[str, Any]

_FORMATS = ("json_schema", "json_object", "text")

_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|invalid param|deprecated|extra",
    re.IGNORECASE,
)
_FORMAT_TROUBLE = re.compile(r"response_format|json_schema|json_object|grammar|guided", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """How an endpoint refused a request: the status, and what it said."""

    status: int
    reason: str

    def names(self, parameter: str) -> bool:
        """Whether it refuses the parameter as such; "max_tokens is too large" does not."""
        named = re.search(rf"\b{parameter}\b", self.reason) is not None
        return self.status in (400, 422) and named and _REFUSAL.search(self.reason) is not None

    def may_be_the_format(self) -> bool:
        """Who knows no response_format says 400 or 422; who chokes on the grammar may say 500."""
        if self.status in (400, 422):
            return True
        return self.status == 500 and _FORMAT_TROUBLE.search(self.reason) is not None


@dataclass(frozen=True)
class Dialect:
    """The best way to ask that is not known to be refused."""

    format: str = _FORMATS[0]
    limit_name: str = "max_tokens"
    with_temperature: bool = True
    counts_tokens: bool = True

    def parameters(self, max_tokens: int, temperature: float, schema: Schema | None) -> dict[str, Any]:
        """The part of the request body that differs between endpoints."""
        sampling = {"temperature": temperature} if self.with_temperature else {}
        return {self.limit_name: max_tokens} | sampling | self._response_format(schema)

    def _response_format(self, schema: Schema | None) -> dict[str, Any]:
        if self.format == "text" or schema is None:
            return {}
        wanted: dict[str, Any] = {"type": self.format}
        if self.format == "json_schema":
            wanted["json_schema"] = {"name": "memories", "strict": True, "schema": schema}
        return {"response_format": wanted}

    def after(self, refusal: Refusal, *, asked_for_json: bool) -> "Dialect | None":
        """What to try next, or None when the request itself must be at fault.

        Every step gives something up for good, so a chain of refusals ends after four of them.
        """
        if self.limit_name == "max_tokens" and refusal.names("max_tokens"):
            return replace(self, limit_name="max_completion_tokens")
        if self.with_temperature and refusal.names("temperature"):
            return replace(self, with_temperature=False)
        if asked_for_json and self.format != _FORMATS[-1] and refusal.may_be_the_format():
            return replace(self, format=_FORMATS[_FORMATS.index(self.format) + 1])
        return None
