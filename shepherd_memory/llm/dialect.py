"""What a server understands of a request: how to ask for JSON, and which parameters it takes."""

import re
from dataclasses import dataclass, replace
from typing import Any

from shepherd_memory.llm.request import ModelRequest

_FORMATS = ("json_schema", "json_object", "text")

_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|invalid param|deprecated|extra",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_FORMAT_TROUBLE = re.compile(r"response_format|json_schema|json_object|grammar|guided", re.IGNORECASE)


@dataclass(frozen=True)
class RejectedRequest:
    """How a server refused a request: the status, and what it said."""

    status: int
    reason: str

    def names(self, parameter: str) -> bool:
        """Whether it refuses the parameter as such; "max_tokens is too large" does not."""
        return (
            self.is_about_the_request()
            and parameter in _WORD.findall(self.reason)
            and _REFUSAL.search(self.reason) is not None
        )

    def is_about_the_request(self) -> bool:
        return self.status in (400, 422)

    def may_be_the_format(self) -> bool:
        """A server without response_format answers 400 or 422; one with a bad grammar compiler, 500."""
        if self.is_about_the_request():
            return True
        return self.status == 500 and _FORMAT_TROUBLE.search(self.reason) is not None

    def is_the_counting(self) -> bool:
        named = "stream_options" in self.reason or "include_usage" in self.reason
        return self.is_about_the_request() and named


@dataclass(frozen=True)
class Dialect:
    """The best way to ask that is not known to be refused."""

    format: str = _FORMATS[0]
    limit_name: str = "max_tokens"
    with_temperature: bool = True
    counts_tokens: bool = True

    def parameters(self, request: ModelRequest, streams: bool) -> dict[str, Any]:
        """The part of the request body that differs between servers."""
        parameters: dict[str, Any] = {}
        if streams and self.counts_tokens:
            parameters["stream_options"] = {"include_usage": True}
        if request.tools:
            parameters["tools"] = list(request.tools)
        if request.max_tokens:
            parameters[self.limit_name] = request.max_tokens
        if request.temperature is not None and self.with_temperature:
            parameters["temperature"] = request.temperature
        if request.schema is not None and self.format != "text":
            parameters["response_format"] = self._response_format(request.schema, request.schema_name)
        return parameters

    def _response_format(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        if self.format != "json_schema":
            return {"type": self.format}
        described = {"name": name, "strict": True, "schema": schema}
        return {"type": self.format, "json_schema": described}

    def after(self, rejected: RejectedRequest, request: ModelRequest, streams: bool) -> "Dialect | None":
        """What to try next, or None when the request itself must be at fault.

        Every step gives something up for good, so a chain of refusals ends after five of them.
        """
        if streams and self.counts_tokens and rejected.is_the_counting():
            return replace(self, counts_tokens=False)
        if self.limit_name == "max_tokens" and rejected.names("max_tokens"):
            return replace(self, limit_name="max_completion_tokens")
        if request.temperature is not None and self.with_temperature and rejected.names("temperature"):
            return replace(self, with_temperature=False)
        return self._after_format(rejected, request)

    def _after_format(self, rejected: RejectedRequest, request: ModelRequest) -> "Dialect | None":
        if request.schema is None or self.format == _FORMATS[-1] or not rejected.may_be_the_format():
            return None
        return replace(self, format=_FORMATS[_FORMATS.index(self.format) + 1])
