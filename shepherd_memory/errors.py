"""The error tree: what can go wrong, by what the caller can do about it.

ShepherdError
├── ConfigError              a key or value in the configuration is wrong
├── InvalidInput             an argument cannot be used as it is
│   └── VersionChanged       what was to be changed is another by now: look at it again
├── NotFound                 what was named does not exist for this user
│   └── NoSuchRow            by the id of a row; what it is and the id are named
├── SessionConflict          the life of a session stands in the way; it is named
│   ├── SessionRunning       one is active already in this group
│   ├── SessionEnded         it has ended, and takes no more chat
│   └── SessionBusy          it is being answered in: later may work
├── DatabaseError            the database refused; the cause is attached
│   ├── DatabaseUnavailable  it cannot be reached, is locked, or is full: later may work
│   └── DatabaseRefused      wrong version, wrong file, missing driver: later will not help
└── EndpointError            a call to a model's endpoint failed
    ├── EndpointUnavailable  unreachable, timeout, 408/425/429/5xx: keep the item, try again
    ├── EndpointMisconfigured  401, and 402/403/404 while nothing succeeds: pause until somebody fixes it
    └── ItemRejected         400/413/422 or an unusable answer: this item is at fault
        ├── ContextTooLong   the model's context has no room for it: send less
        └── AnswerCutOff     the token limit was reached before the answer's end: ask for less
"""


class ShepherdError(Exception):
    """Anything that shepherd raises on purpose; its message says what the reader can do."""


class ConfigError(ShepherdError):
    """A configuration key or value is wrong."""


class InvalidInput(ShepherdError):
    """An argument cannot be used as it is."""


class VersionChanged(InvalidInput):
    """What was to be changed is of another version than the one that the writer has seen."""


class NotFound(ShepherdError):
    """What was named does not exist for this user."""


class NoSuchRow(NotFound):
    """There is no row of this id that may be touched."""

    def __init__(self, what: str, row_id: int) -> None:
        super().__init__(f"there is no {what} {row_id}; it may have been deleted meanwhile")
        self.what = what
        self.row_id = row_id


class SessionConflict(ShepherdError):
    """The life of a session stands in the way of what was asked."""

    def __init__(self, message: str, session_id: str) -> None:
        super().__init__(message)
        self.session_id = session_id


class SessionRunning(SessionConflict):
    """A session is active already in this group."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"the session {session_id} is active already: go on in it, end it, or start with takeover",
            session_id,
        )


class SessionEnded(SessionConflict):
    """The session has ended, and takes no more chat."""

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(f"the session {session_id} has ended ({reason}): start another", session_id)
        self.reason = reason


class SessionBusy(SessionConflict):
    """A request is being answered in the session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"a request is being answered in the session {session_id}: wait for its end, then resume",
            session_id,
        )


class DatabaseError(ShepherdError):
    """The database refused."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be used now: unreachable, locked or full."""


class DatabaseRefused(DatabaseError):
    """This database cannot be used by this version or installation."""


class EndpointError(ShepherdError):
    """A call to a model's endpoint failed."""


class EndpointUnavailable(EndpointError):
    """The endpoint did not answer usefully now.

    `retry_after_seconds` is what it asked for, if it did; `item_may_be_at_fault` says that the request
    itself may have been too much for it (a timeout or 500, not a broken connection, 429, 502, 503 or 504).
    """

    def __init__(
        self, message: str, retry_after_seconds: float | None = None, item_may_be_at_fault: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.item_may_be_at_fault = item_may_be_at_fault


class EndpointMisconfigured(EndpointError):
    """The endpoint refuses us whatever we send: key, URL or model name is wrong.

    `item_may_be_at_fault`: unless it takes what others send. Some services answer 402, 403 or 404 for a
    request that they do not like.
    """

    def __init__(self, message: str, item_may_be_at_fault: bool = False) -> None:
        super().__init__(message)
        self.item_may_be_at_fault = item_may_be_at_fault


class ItemRejected(EndpointError):
    """The endpoint refuses this one request, or its answer cannot be used."""


class ContextTooLong(ItemRejected):
    """The request is longer than the model's context; a shorter one may pass."""


class AnswerCutOff(ItemRejected):
    """Nothing usable came before the answer's token limit; for less there may be room."""
