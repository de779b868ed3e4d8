"""What the first message of a session is told of: a transcript handed in, or the session it resumes."""

from dataclasses import asdict, dataclass, replace

from shepherd_memory.memory.session_lives import FOUND, SessionLife, take_place
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.canonical import dump_json, load_json
from shepherd_memory.text.groups import MAIN_GROUP


@dataclass(frozen=True)
class _Opening:
    """What the first message of a session is told of: a transcript, or the session itself up to a document.

    The column `handed_in` has the transcript alone where nothing else is known.
    """

    transcript: str = ""
    resumed_through: int | None = None

    def stored(self) -> str:
        return self.transcript if self.resumed_through is None else dump_json(asdict(self))


def _read_opening(stored: str) -> _Opening:
    return _Opening(**load_json(stored)) if stored.startswith("{") else _Opening(stored)


def handed_in(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> str:
    """The transcript, as JSON, that a session was started with; "" if none."""
    return _opening(connection, user_id, session_id, group).transcript


def resumed_through(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> int | None:
    """The last document that a resumed session is gone on with from; None if it was not resumed."""
    return _opening(connection, user_id, session_id, group).resumed_through


def _opening(connection: Connection, user_id: str, session_id: str, group: str) -> _Opening:
    row = connection.row(
        f"select handed_in from sessions {FOUND}", user_id=user_id, group=group, session_id=session_id
    )
    return _Opening() if row is None else _read_opening(row[0])


def transcript_in(stored: str) -> str:
    """The transcript alone: documents have other ids where a session is imported."""
    return _read_opening(stored).transcript


def all_handed_in(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[tuple[str, str]]:
    """The sessions of a group that were started with a transcript, each with that."""
    rows = connection.rows(
        "select session_id, handed_in from sessions where user_id = :user_id and group_name = :group"
        " and handed_in <> ''",
        user_id=user_id,
        group=group,
    )
    found = [(session_id, transcript_in(stored)) for session_id, stored in rows]
    return [(session_id, transcript) for session_id, transcript in found if transcript]


def set_handed_in(
    tx: Connection, user_id: str, session_id: str, transcript: str, group: str = MAIN_GROUP
) -> None:
    """Let a session have been started with this transcript."""
    _set_opening(
        tx,
        user_id,
        session_id,
        replace(_opening(tx, user_id, session_id, group), transcript=transcript),
        group,
    )


def _set_opening(tx: Connection, user_id: str, session_id: str, opening: _Opening, group: str) -> None:
    tx.execute(
        f"update sessions set handed_in = :stored {FOUND}",
        user_id=user_id,
        group=group,
        session_id=session_id,
        stored=opening.stored(),
    )


def reopen(tx: Connection, user_id: str, life: SessionLife, through: int, now: int, holder: str = "") -> None:
    """Make an earlier session of a user whose row is held active again, gone on with from this document.

    When something was last said in it stays as it was. `holder` is the process that it ends with.
    """
    group, session_id = life.group_name, life.session_id
    tx.execute(
        "update sessions set status = 'active', ended_at = null, end_reason = '', last_seen_at = :now,"
        f" started_at = coalesce(started_at, :now) {FOUND}",
        user_id=user_id,
        group=group,
        session_id=session_id,
        now=now,
    )
    opening = replace(_opening(tx, user_id, session_id, group), resumed_through=through)
    _set_opening(tx, user_id, session_id, opening, group)
    take_place(tx, user_id, session_id, holder, group)
