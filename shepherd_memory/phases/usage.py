"""Use of notes: told in a prompt, read by a tool, or cited by a model; what is used stays longest."""

from collections.abc import Sequence

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.work.kinds import SUMMARY

MAX_ID = 2**63 - 1

_USED = "update conversation_outputs set use_count = use_count + 1, last_used_at = :now"
_OF_GROUP = f"where user_id = :user_id and group_name = :group and strategy = '{SUMMARY}' and state = 'kept'"


def count_notes(tx: Connection, user_id: str, notes: Sequence[tuple[str, str]], now: int, group: str) -> None:
    """Note the use of what these documents of a group say, each by its session and id there."""
    tx.execute_many(
        f"{_USED} {_OF_GROUP} and session_id = :session_id and note = :note",
        [
            {"user_id": user_id, "group": group, "session_id": session_id, "note": note, "now": now}
            for session_id, note in notes
        ],
    )


def count_cited(tx: Connection, user_id: str, ids: Sequence[str], now: int, group: str) -> int:
    """The same for what a model cites, by the ids of conversations or of sessions that it was shown."""
    if not ids:
        return 0
    sessions = {f"session{at}": one for at, one in enumerate(ids)}
    group_ids = ids_of_group(tx, user_id, group)
    numbers = {
        f"number{at}": group_ids.given_id(int(one))
        for at, one in enumerate(ids)
        if one.isdecimal() and int(one) <= MAX_ID
    }
    named = f"session_id in ({', '.join(f':{name}' for name in sessions)})"
    if numbers:
        named += f" or conversation_id in ({', '.join(f':{name}' for name in numbers)})"
    return tx.execute(
        f"{_USED} {_OF_GROUP} and ({named})", user_id=user_id, group=group, now=now, **sessions, **numbers
    )


def count_outputs(tx: Connection, user_id: str, ids: Sequence[int], now: int, group: str) -> None:
    """The same for the outputs of these conversations, whose files a tool was given to read."""
    tx.execute_many(
        f"{_USED} {_OF_GROUP} and conversation_id = :id",
        [{"user_id": user_id, "group": group, "id": number, "now": now} for number in ids],
    )
