"""Who is asking, and whose memory that is."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from shepherd_memory.config import Config
from shepherd_memory.config.identity import UNKNOWN
from shepherd_memory.errors import DatabaseError
from shepherd_memory.frontends.web.http_errors import HttpError, unavailable
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.memory import api_keys
from shepherd_memory.memory.api_keys import KEY_PREFIX, ApiKey
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.text.groups import MAIN_GROUP, NamedByMain, checked_group, may_act_in
from shepherd_memory.text.ids import checked_user_id

LOOK_AGAIN_SECONDS = 1.0
"""A server without keys sees within this time that there is one now, or that the database is back."""

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
    """Whoever sent a request: the holder of a key, or of none where none is needed.

    Not `is_confirmed`: the database is away, and this is what it said last. That is enough for a chat, which
    then reads nothing of the memory, and for nothing else.
    """

    key: ApiKey | None = None
    is_confirmed: bool = True

    @property
    def name(self) -> str:
        return self.key.name if self.key else ""

    @property
    def sees_all(self) -> bool:
        """Whether what concerns all users is shown: without keys, or with one for every user and group."""
        key = self.key
        return key is None or (key.any_user and not key.namespace and not key.group_name)


class Authenticator:
    """Checks keys against the database, each time: a key that is revoked opens nothing from then on.

    Until it has found out whether there are keys nobody is let in; from then on a server without keys can
    only become one with keys.
    """

    def __init__(
        self,
        service: Service,
        threads: ThreadPool,
        auth: Auth,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.auth = auth
        self._service = service
        self._threads = threads
        self._clock = clock
        self._keyless_at: float | None = None
        """When the last look began that found no key; None: there was none yet."""
        self._failed_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None
        self._used_at: dict[str, float] = {}
        self._known: dict[str, tuple[ApiKey, float]] = {}

    @property
    def needs_no_key(self) -> bool:
        """Whether requests come in without a key, as far as is known."""
        return self.auth is not Auth.REQUIRED

    async def start(self) -> None:
        """Find out whether there are keys; if the database is away, requests find out when it is back."""
        await self.look()
        if self._keyless_at is not None:
            # Not recent enough for a request: the first one looks for itself.
            self._keyless_at -= LOOK_AGAIN_SECONDS

    async def check_ready(self) -> None:
        """Refuse everything until it is known whether there are keys."""
        if self._is_unknown():
            await self.look()
        if self._is_unknown():
            raise unavailable("it is not known yet whether API keys are needed: the database is away")

    async def can_admit(self) -> bool:
        """Whether somebody can be let in now; while the database is away, whoever was a short time ago."""
        await self.look()
        if self.auth is not Auth.REQUIRED:
            return not self._is_unknown()
        # The key that was checked last is the last one there.
        _, checked_at = next(reversed(self._known.values()), (None, float("-inf")))
        if self._clock() - checked_at <= TRUSTED_SECONDS:
            return True
        try:
            await self._ask(self._any_key)
        except (DatabaseError, TimeoutError):
            return False
        return True

    def _is_unknown(self) -> bool:
        return self.auth is Auth.ONCE_THERE_IS_A_KEY and self._keyless_at is None

    async def caller_of(self, headers: Mapping[str, str]) -> Caller:
        """Who holds the key of a request; refused without a good one, where one is needed."""
        await self.look()
        await self.check_ready()
        if self.auth is not Auth.REQUIRED:
            return Caller(is_confirmed=self.auth is Auth.OFF or not self._is_database_away())
        presented = presented_key(headers)
        if not presented:
            raise _unauthorized("an API key is needed: Authorization: Bearer KEY, or x-api-key: KEY")
        caller = await self._holder_of(presented)
        if caller.is_confirmed and caller.key is not None:
            self._note_use(caller.key)
        return caller

    async def _holder_of(self, presented: str) -> Caller:
        """The key, as the database has it; while that is away, as it was a short time ago."""
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).hexdigest()
        began = self._clock()
        try:
            key = await self._ask(lambda: self._find(presented))
        except (DatabaseError, TimeoutError) as error:
            known, at = self._known.get(digest, (None, 0.0))
            if known is None or self._clock() - at > TRUSTED_SECONDS:
                raise unavailable("API keys cannot be checked now: the database is away") from error
            return Caller(known, is_confirmed=False)
        self._known.pop(digest, None)
        if key is None:
            raise _unauthorized("this API key is unknown or was revoked")
        self._known[digest] = (key, began)
        while len(self._known) > MAX_KNOWN_KEYS:
            del self._known[next(iter(self._known))]
        return Caller(key)

    async def _ask(self, question: Callable[[], T]) -> T:
        return await self._threads.run_within(self._service.config.server_memory_timeout, question)

    def _is_database_away(self) -> bool:
        return self._keyless_at is None or self._failed_at > self._keyless_at

    async def look(self) -> None:
        """Look whether there is a key by now, unless that was done, or failed, a moment ago.

        Requests that come meanwhile share one look; one that began too early is not enough.
        """
        enough = self._clock() - LOOK_AGAIN_SECONDS
        while self.auth is Auth.ONCE_THERE_IS_A_KEY and self._looked_at() <= enough:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # Whoever leaves must not end the look of the others.
            await asyncio.shield(self._looking)

    def _looked_at(self) -> float:
        return self._failed_at if self._keyless_at is None else max(self._keyless_at, self._failed_at)

    async def _look(self) -> None:
        began = self._clock()
        try:
            if await self._ask(self._any_key):
                # For good: revoking the last key must not open the door.
                self.auth = Auth.REQUIRED
            else:
                self._keyless_at = began
        except (DatabaseError, TimeoutError):
            self._failed_at = self._clock()

    async def user_of(self, caller: Caller, given: str, header: str, config: Config) -> str:
        """Whose memory a request is about: whom it names, if this key may speak for them, else the key's."""
        wanted = header or given
        key = caller.key
        if key is None:
            return checked_user_id(wanted or config.user_id or UNKNOWN)
        if wanted and wanted != key.name and not key.any_user:
            raise HttpError(
                403,
                f"this API key acts for the user {key.name!r} only: name that user or none, or use a key that"
                " `shepherd apikey create NAME --any-user` makes",
                code="user_not_allowed_for_key",
            )
        user_id = checked_user_id(api_keys.acting_name(key, wanted or key.name))
        if not key.namespace and "/" in user_id:
            await self._check_namespace(user_id)
        return user_id

    def group_of(self, caller: Caller, given: str, header: str, config: Config) -> str:
        """The group that a request is about: which it names, if it may, else the key's, else the configured.

        A header says where the request comes from: only from `main` may it then name another group.
        """
        bound = caller.key.group_name if caller.key else ""
        home = bound or checked_group(header or config.group)
        named = checked_group(given or header or home)
        if (bound and named != bound) or (header and not may_act_in(home, named)):
            raise HttpError(
                403,
                f"this request belongs to the group {home!r}: it can name that group or none",
                code="group_not_allowed",
            )
        return NamedByMain(named) if home == MAIN_GROUP else named

    async def _check_namespace(self, user_id: str) -> None:
        if user_id.partition("/")[0] in await self._threads.run(self._namespaces):
            raise HttpError(
                403, "this user belongs to the namespace of another API key", code="user_not_allowed_for_key"
            )

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
        now = self._clock()
        if now - self._used_at.get(key.id, float("-inf")) >= NOTED_SECONDS:
            self._used_at[key.id] = now
            database = self._service.database
            self._threads.start(lambda: api_keys.note_use(database, key.id, now_us()), "noting a key's use")


def presented_key(headers: Mapping[str, str]) -> str:
    """The key of a request, however its client sends it; empty if there is none, refused if there are two.

    Beside a key of ours a client may send one that is meant for the provider.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    by_bearer = token.strip() if scheme.lower() == "bearer" else ""
    by_name = headers.get("x-api-key", "").strip()
    ours = {key for key in (by_bearer, by_name) if key.startswith(KEY_PREFIX)}
    if len(ours) > 1:
        raise HttpError(400, "Authorization and x-api-key hold different keys: send one of them")
    return ours.pop() if ours else by_bearer or by_name


def _unauthorized(message: str) -> HttpError:
    return HttpError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
