"""Responses that a later request may go on from by their id alone, and the session that they belong to."""

from dataclasses import dataclass

from shepherd_memory.storage.clock import DAY
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

KEPT_DAYS = 30
"""As long as OpenAI keeps them."""


@dataclass(frozen=True)
class StoredResponse:
    """Where a response stands: its session, and how many messages the conversation had with it.

    `block_key`: of the user's last turn, by which the blocks of the conversation are kept.
    """

    session_id: str
    messages: int
    block_key: str = ""


def put(
    tx: Connection,
    user_id: str,
    response_id: str,
    response: StoredResponse,
    now: int,
    group: str = MAIN_GROUP,
) -> None:
    """Keep where a response stands, and drop what is too old; one that comes again stays where it was."""
    tx.execute(
        "delete from responses where user_id = :user_id and created_at < :oldest",
        user_id=user_id,
        oldest=now - KEPT_DAYS * DAY,
    )
    tx.execute(
        "insert into responses (user_id, group_name, response_id, session_id, messages, block_key,"
        " created_at)"
        " values (:user_id, :group, :response_id, :session_id, :messages, :block_key, :now)"
        " on conflict (user_id, group_name, response_id) do nothing",
        user_id=user_id,
        group=group,
        response_id=response_id,
        session_id=response.session_id,
        messages=response.messages,
        block_key=response.block_key,
        now=now,
    )


def find(
    connection: Connection, user_id: str, response_id: str, now: int, group: str = MAIN_GROUP
) -> StoredResponse | None:
    """A response in a group of this user; None if there is none, or it is too old by now."""
    row = connection.row(
        "select session_id, messages, block_key from responses where user_id = :user_id"
        " and group_name = :group and response_id = :response_id and created_at >= :oldest",
        user_id=user_id,
        group=group,
        response_id=response_id,
        oldest=now - KEPT_DAYS * DAY,
    )
    return None if row is None else StoredResponse(*row)


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Forget the responses of a session: whoever goes on from one begins another."""
    tx.execute(
        "delete from responses where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
