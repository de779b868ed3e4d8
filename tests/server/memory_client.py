"""A client of the memory API that speaks for one user."""

from dataclasses import dataclass, replace
from typing import Any

import requests

from tests.server.serving import Running

NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Client:
    """Sends `user` the way the method has for it; paths without a version are those of the memory API."""

    running: Running
    user: str

    def of(self, user: str) -> "Client":
        return replace(self, user=user)

    def get(self, path: str, **query: Any) -> requests.Response:
        named = {} if path == "/v1/tools" else {"user": self.user}
        return requests.get(self._url(path), params={**named, **query}, timeout=60)

    def delete(self, path: str, **query: Any) -> requests.Response:
        return requests.delete(self._url(path), params={"user": self.user, **query}, timeout=60)

    def post(self, path: str, body: dict[str, Any]) -> requests.Response:
        return requests.post(self._url(path), json={"user": self.user, **body}, timeout=60)

    def put(self, path: str, body: dict[str, Any]) -> requests.Response:
        return requests.put(self._url(path), json={"user": self.user, **body}, timeout=60)

    def post_lines(self, path: str, lines: bytes) -> requests.Response:
        headers = {"Content-Type": NDJSON}
        query = {"user": self.user}
        return requests.post(self._url(path), data=lines, params=query, headers=headers, timeout=60)

    def _url(self, path: str) -> str:
        return self.running.url + (path if path.startswith("/v1") else f"/v1/memory{path}")
