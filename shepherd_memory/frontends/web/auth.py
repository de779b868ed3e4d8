"""Who is asking, and whose memory that is."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from shepherd_memory.config import Config
from shepherd_memory.config.identity import UNKNOWN
from shepherd_memory.errors import DatabaseError, DatabaseUnavailable
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.memory import api_keys
from shepherd_memory.memory.api_keys import ApiKey
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.text.ids import checked_user_id

LOOK_AGAIN_SECONDS = 1.0
"""A server without keys sees within this time that there is one now."""

NOTED_SECONDS = 60.0
"""How often it is written down that a key is in use."""


TRUSTED_SECONDS = 300.0
"""So long a key that was good is let in while the database is away, and cannot say whether it still is."""

MAX_KNOWN_KEYS = 10_000

T = TypeVar("T")


class Auth(Enum):
    """When a key is needed: never, always, or as soon as there is one."""

    OFF = "off"
    REQUIRED = "required"
    ONCE_THERE_IS_A_KEY = "once there is a key"


@dataclass(frozen=True)
class Caller:
    """Whoever sent a request: the holder of a key, or of none where none is needed."""

    key: ApiKey | None = None

    @property
    def name(self) -> str:
        return self.key.name if self.key else ""


class Authenticator:
    """Checks keys against the database, each time: a key that is revoked opens nothing from then on."""

    def __init__(self, service: Service, threads: ThreadPool, auth: Auth) -> None:
        self.auth = auth
        self._service = service
        self._threads = threads
        self._looked_at = float("-inf")
        self._used_at: dict[str, float] = {}
        self._known: dict[str, tuple[ApiKey, float]] = {}

    async def caller_of(self, headers: Mapping[str, str]) -> Caller:
        """Who holds the key of a request; refused without a good one, where one is needed."""
        if not await self.needs_key():
            return Caller()
        presented = presented_key(headers)
        if not presented:
            raise _unauthorized("an API key is needed: Authorization: Bearer KEY, or x-api-key: KEY")
        key = await self._key_of(presented)
        if key is None:
            raise _unauthorized("this API key is unknown or was revoked")
        self._note_use(key)
        return Caller(key)

    async def _key_of(self, presented: str) -> ApiKey | None:
        """The key, as the database has it; while that is away, as it was a short time ago."""
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).hexdigest()
        try:
            key = await self._ask(lambda: self._find(presented))
        except (DatabaseError, TimeoutError) as error:
            known, at = self._known.get(digest, (None, 0.0))
            if known is None or time.monotonic() - at > TRUSTED_SECONDS:
                raise DatabaseUnavailable("API keys cannot be checked now") from error
            return known
        self._known.pop(digest, None)
        if key is not None:
            self._known[digest] = (key, time.monotonic())
        while len(self._known) > MAX_KNOWN_KEYS:
            del self._known[next(iter(self._known))]
        return key

    async def _ask(self, question: Callable[[], T]) -> T:
        return await self._threads.run_within(self._service.config.server_memory_timeout, question)

    async def needs_key(self) -> bool:
        """Whether a request without a key is refused."""
        if self.auth is Auth.ONCE_THERE_IS_A_KEY:
            now = time.monotonic()
            if now - self._looked_at < LOOK_AGAIN_SECONDS:
                return False
            if not await self._is_there_a_key():
                self._looked_at = now
                return False
            # For good: revoking the last key must not open the door.
            self.auth = Auth.REQUIRED
        return self.auth is Auth.REQUIRED

    async def user_of(self, caller: Caller, given: str, header: str, config: Config) -> str:
        """Whose memory a request is about: whom it names, if this key may speak for them, else the key's."""
        wanted = header or given
        key = caller.key
        if key is None:
            return checked_user_id(wanted or config.user_id or UNKNOWN)
        if wanted and wanted != key.name and not key.any_user:
            raise HttpError(
                403, f"this API key acts for the user {key.name!r} only", code="user_not_allowed_for_key"
            )
        user_id = checked_user_id(api_keys.acting_name(key, wanted or key.name))
        if not key.namespace and "/" in user_id:
            await self._check_namespace(user_id)
        return user_id

    async def _check_namespace(self, user_id: str) -> None:
        if user_id.partition("/")[0] in await self._threads.run(self._namespaces):
            raise HttpError(
                403, "this user belongs to the namespace of another API key", code="user_not_allowed_for_key"
            )

    async def _is_there_a_key(self) -> bool:
        try:
            return await self._ask(self._any_key)
        except (DatabaseError, TimeoutError):
            # Chats go on while the database is away: this server was started without a key.
            return False

    def _find(self, presented: str) -> ApiKey | None:
        with self._service.database.read() as connection:
            return api_keys.find(connection, presented)

    def _any_key(self) -> bool:
        with self._service.database.read() as connection:
            return api_keys.exists(connection)

    def _namespaces(self) -> frozenset[str]:
        with self._service.database.read() as connection:
            return api_keys.namespaces(connection)

    def _note_use(self, key: ApiKey) -> None:
        now = time.monotonic()
        if now - self._used_at.get(key.id, float("-inf")) >= NOTED_SECONDS:
            self._used_at[key.id] = now
            database = self._service.database
            self._threads.start(lambda: api_keys.note_use(database, key.id, now_us()), "noting a key's use")


def presented_key(headers: Mapping[str, str]) -> str:
    """The key of a request, however its client sends it; empty if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip()


def _unauthorized(message: str) -> HttpError:
    return HttpError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
