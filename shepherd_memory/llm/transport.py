"""One JSON exchange with an endpoint, within its deadline, and what a failure of it means."""

from typing import Any

import requests

from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.completion import Reply
from shepherd_memory.llm.http import (
    FAILURES,
    Connections,
    Login,
    certificate_error,
    failure_reason,
    is_bad_address,
    is_timeout,
)

LONGEST_BODY = 4 * 1024 * 1024
_CHUNK = 64 * 1024


class Transport:
    """One pool of connections, used by one call at a time."""

    def __init__(self) -> None:
        self._connections = Connections()

    def post(self, call: Call, url: str, place: str, api_key: str, body: dict[str, Any]) -> Reply:
        """Send JSON and read the whole answer, or raise what the failure means; errors name the `place`."""
        try:
            reply = self._exchange(call, url, place, api_key, body)
        except FAILURES as error:
            if is_timeout(error):
                call.expire()
            raise _meaning(error, place, call) from error
        if call.cut_because:
            # Where a body ends with the connection, a cut looks like its regular end.
            raise EndpointUnavailable(f"{place}: {call.cut_because}", item_may_be_at_fault=True)
        return reply

    def close(self) -> None:
        self._connections.close()

    def _exchange(self, call: Call, url: str, place: str, api_key: str, body: dict[str, Any]) -> Reply:
        login = Login(url, _bearer(api_key))
        headers = {"Accept": "application/json"}
        with self._connections.send(call, "POST", url, login, headers, body) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(place, response.status_code, headers, _bounded_body(response, place))


def _bearer(api_key: str) -> dict[str, str]:
    key = api_key.strip()
    if not (key.isascii() and key.isprintable()):
        raise EndpointMisconfigured("memory_extraction_api_key has characters that no HTTP header can carry")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _bounded_body(response: requests.Response, place: str) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > LONGEST_BODY:
            raise ItemRejected(f"unusable answer: {place} sent more than {LONGEST_BODY} bytes")
    return bytes(body)


def _meaning(error: Exception, place: str, call: Call) -> EndpointError:
    if call.cut_because:
        return EndpointUnavailable(f"{place}: {call.cut_because}", item_may_be_at_fault=True)
    if is_bad_address(error):
        return EndpointMisconfigured(f"memory_extraction_endpoint: {place} cannot be used as an address")
    if trouble := certificate_error(error):
        return EndpointMisconfigured(f"{place}: {trouble}; check memory_extraction_endpoint and the CA")
    return EndpointUnavailable(f"{place}: {failure_reason(error)}")
