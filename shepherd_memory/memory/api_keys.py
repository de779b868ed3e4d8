"""API keys: who may use the server, and for whom; they belong to whoever runs the machine, not to a user."""

import hashlib
import hmac
import re
import secrets
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime

from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import checked_group
from shepherd_memory.text.redaction import redact

KEY_PREFIX = "shp_"
MAX_NAME_CHARS = 128
MAX_NAMESPACE_CHARS = 64
"""The two with a slash between are a user_id, which may have 256 characters."""

MAX_LIMIT = 2**40

COLUMNS = (
    "id, name, any_user, namespace, rate_per_minute, max_request_bytes, created_at, last_used_at, revoked_at,"
    " group_name"
)

# The id has no `_` in it, so that the first one ends it; the secret part may have some.
_KEY = re.compile(rf"{KEY_PREFIX}([0-9a-f]{{12}})_[A-Za-z0-9_-]{{43}}")
_NAMESPACE = re.compile(rf"[A-Za-z0-9._-]{{0,{MAX_NAMESPACE_CHARS}}}")
_NO_HASH = "0" * 64


@dataclass(frozen=True)
class ApiKey:
    """What a key may do. The key itself is known only to whoever was given it.

    Its requests are for the user `name`, or with `any_user` for whomever they name; a limit of 0 is the
    server's own. With a `group_name` they are about that group and no other.
    """

    id: str
    name: str
    any_user: bool
    namespace: str
    rate_per_minute: int
    max_request_bytes: int
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    group_name: str = ""


def create(
    database: Database,
    name: str,
    *,
    any_user: bool = False,
    namespace: str = "",
    rate_per_minute: int = 0,
    max_request_bytes: int = 0,
    group: str = "",
    now: int,
) -> tuple[ApiKey, str]:
    """A new key and its text, which cannot be had again; a name that other keys have may be given anew."""
    limits = {"rate_per_minute": rate_per_minute, "max_request_bytes": max_request_bytes}
    _check_name(name)
    _check_namespace(namespace)
    place = checked_group(group) if group else ""
    for limit, value in limits.items():
        _check_limit(limit, value)
    key_id = secrets.token_hex(6)
    text = f"{KEY_PREFIX}{key_id}_{secrets.token_urlsafe(32)}"
    with database.write() as tx:
        row = tx.row(
            "insert into api_keys (id, name, any_user, namespace, rate_per_minute, max_request_bytes, hash,"
            " created_at, group_name) values (:id, :name, :any_user, :namespace, :rate_per_minute,"
            f" :max_request_bytes, :hash, :now, :group) returning {COLUMNS}",
            id=key_id,
            name=name,
            any_user=int(any_user),
            namespace=namespace,
            hash=_hash(text),
            now=now,
            group=place,
            **limits,
        )
    assert row is not None
    return _key(row), text


def find(connection: Connection, presented: str) -> ApiKey | None:
    """The live key whose text this is; None for everything else, whatever it is."""
    form = _KEY.fullmatch(presented)
    if form is None:
        return None
    row = connection.row(f"select {COLUMNS}, hash from api_keys where id = :id", id=form[1])
    # Compared even if there is no such key, and in a time that does not depend on where they differ.
    is_right = hmac.compare_digest(_NO_HASH if row is None else str(row[-1]), _hash(presented))
    if row is None or not is_right:
        return None
    key = _key(row[:-1])
    return key if key.revoked_at is None else None


def listing(connection: Connection) -> list[ApiKey]:
    """All keys, also those that were revoked, oldest first."""
    rows = connection.rows(f"select {COLUMNS} from api_keys order by created_at, id")
    return [_key(row) for row in rows]


def get(connection: Connection, id_or_name: str) -> ApiKey:
    """The key with this id or name, or of which this is the text; of a name's keys the one that is live."""
    form = _KEY.fullmatch(id_or_name)
    wanted = form[1] if form else canonical_text(id_or_name)
    rows = connection.rows(
        f"select {COLUMNS} from api_keys where id = :wanted or name = :wanted order by created_at, id",
        wanted=wanted,
    )
    found = [_key(row) for row in rows]
    by_id = [key for key in found if key.id == wanted]
    live = by_id or [key for key in found if key.revoked_at is None]
    if len(live) > 1:
        ids = ", ".join(key.id for key in live)
        raise InvalidInput(f"{len(live)} keys have the name {wanted!r}: say which by its id ({ids})")
    if not found:
        raise NotFound(
            f"there is no API key {redact(wanted)[:MAX_NAME_CHARS]!r}; `shepherd apikey list` shows them"
        )
    return live[0] if live else found[-1]


def revoke(database: Database, id_or_name: str, now: int) -> ApiKey:
    """Make a key useless from now on; one that was revoked stays so since then. Its row stays."""
    with database.write() as tx:
        key = get(tx, id_or_name)
        tx.execute(
            "update api_keys set revoked_at = :now where id = :id and revoked_at is null", id=key.id, now=now
        )
        return get(tx, key.id)


def forget_name(tx: Connection, user_id: str) -> int:
    """Take the name of a user who is erased out of keys that were revoked; how many there were.

    The rows stay, for `exists`. A live key keeps its name: it says whom it lets in.
    """
    return tx.execute(
        "update api_keys set name = '' where revoked_at is not null and any_user = 0"
        " and case when namespace = '' then name else namespace || '/' || name end = :user_id",
        user_id=user_id,
    )


def exists(connection: Connection) -> bool:
    """Whether there ever was a key: from then on the server asks for one."""
    return connection.row("select 1 from api_keys limit 1") is not None


def namespaces(connection: Connection) -> frozenset[str]:
    """The namespaces of all keys that ever were."""
    rows = connection.rows("select distinct namespace from api_keys where namespace <> ''")
    return frozenset(row[0] for row in rows)


def note_use(database: Database, key_id: str, now: int) -> None:
    """Note that a key was used; what is noted late changes nothing."""
    with database.write() as tx:
        tx.execute(
            "update api_keys set last_used_at = :now where id = :id"
            " and (last_used_at is null or last_used_at < :now)",
            id=key_id,
            now=now,
        )


def acting_name(key: ApiKey, user: str) -> str:
    """Whose memory it is when this key names `user`; in a namespace too, nobody is nobody."""
    return f"{key.namespace}/{user}" if key.namespace and is_known(user) else user


def _key(row: Row) -> ApiKey:
    key = build(ApiKey, row)
    return replace(key, any_user=bool(key.any_user))


def _hash(text: str) -> str:
    # A fast hash will do: nobody can try 256 random bits out, as one could the words of a password.
    return hashlib.sha256(text.encode()).hexdigest()


def _check_name(name: str) -> None:
    fits = 1 <= len(name) <= MAX_NAME_CHARS and all(map(_may_be_in_name, name))
    if not fits or not is_known(name) or name.startswith(KEY_PREFIX):
        raise InvalidInput(
            f"a key's name takes 1 to {MAX_NAME_CHARS} letters, digits and . _ - @ : +; it is not 'unknown'"
            f" and does not begin with {KEY_PREFIX}; got {redact(name[: MAX_NAME_CHARS + 1])!r}"
        )


def _may_be_in_name(character: str) -> bool:
    # Marks are parts of letters: in many scripts the vowels are such.
    return character.isalnum() or character in "._-@:+" or unicodedata.category(character) in ("Mn", "Mc")


def _check_namespace(namespace: str) -> None:
    if not _NAMESPACE.fullmatch(namespace):
        raise InvalidInput(
            f"a namespace takes up to {MAX_NAMESPACE_CHARS} of a-z, A-Z, 0-9 and . _ -;"
            f" got {redact(namespace[: MAX_NAMESPACE_CHARS + 1])!r}"
        )


def _check_limit(limit: str, value: int) -> None:
    if not 0 <= value <= MAX_LIMIT:
        raise InvalidInput(f"{limit} takes a whole number from 0 (the server's) to {MAX_LIMIT}")
