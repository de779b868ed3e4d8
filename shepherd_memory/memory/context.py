"""Context: question → answer pairs that a user's statements gave."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache

from shepherd_memory.memory import entries, restatements
from shepherd_memory.storage import prompt_blocks
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.storage.tombstones import CONTEXT, add, after_deletion, exists
from shepherd_memory.storage.users import bump_version
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.words import content_stems, words

COLUMNS = (
    "id, question, answer, stated_at, source, session_id, message_id, created_at, updated_at, use_count,"
    " last_used_at, group_name"
)
NEAR_DUPLICATE = 0.8
"""Share of content words that two pairs must have in common to count as the same."""

STORED, REFRESHED, DELETED = "stored", "refreshed", "deleted"


@dataclass(frozen=True)
class Context:
    """One question and its answer."""

    id: StoredId
    question: str
    answer: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    created_at: datetime
    updated_at: datetime
    use_count: int
    last_used_at: datetime | None
    group_name: str = MAIN_GROUP


def digest(question: str, answer: str) -> str:
    """The same for pairs that differ only in case, accents and punctuation."""
    text = "\0".join((" ".join(words(question)) or question, " ".join(words(answer)) or answer))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def put(
    tx: Connection,
    user_id: str,
    context_id: int,
    question: str,
    answer: str,
    where: Provenance,
    now: int,
    same_as: int | None = None,
) -> str:
    """Store a pair, or refresh the one it repeats (`same_as`, or the same words).

    Returns STORED, REFRESHED or DELETED (the user deleted this pair later than it was stated).
    """
    mark = digest(question, answer)
    if exists(tx, user_id, CONTEXT, mark, where.stated_at, where.group_name):
        return DELETED
    if same_as is not None and _refresh(tx, user_id, same_as, context_id, question, answer, mark, where, now):
        return REFRESHED
    row = tx.row(
        "insert into context (user_id, group_name, id, question, answer, digest, stated_at, source,"
        " session_id, message_id, created_at, updated_at)"
        " values (:user_id, :group_name, :id, :question, :answer, :digest, :stated_at, :source, :session_id,"
        " :message_id, :now, :now)"
        " on conflict (user_id, group_name, digest) do update set updated_at = excluded.updated_at,"
        " stated_at ="
        " case when excluded.stated_at > context.stated_at then excluded.stated_at else context.stated_at end"
        " returning id",
        user_id=user_id,
        id=context_id,
        question=question,
        answer=answer,
        digest=mark,
        now=now,
        **asdict(where),
    )
    if row is None or row[0] != context_id:
        restatements.add(tx, user_id, context_id, CONTEXT, mark, "", where)
        return REFRESHED
    _add_entry(tx, user_id, context_id, question, answer, where, now)
    return STORED


def put_by_hand(
    tx: Connection, user_id: str, context_id: int, question: str, answer: str, where: Provenance, now: int
) -> str:
    """Store what the user gives or accepts now: STORED or REFRESHED, even if they deleted it before."""
    stated_at = after_deletion(tx, user_id, CONTEXT, digest(question, answer), now, where.group_name)
    return put(tx, user_id, context_id, question, answer, replace(where, stated_at=stated_at), now)


def replace_answer(
    tx: Connection, user_id: str, context_id: int, new_id: int, answer: str, where: Provenance, now: int
) -> Context | None:
    """Give a question another answer, as the user says it now; the pair that has it. None: no such pair.

    The pair before is deleted: older statements of it will not bring it back. `where` has its group.
    """
    old = get(tx, user_id, context_id)
    if old is None or old.group_name != where.group_name:
        return None
    delete(tx, user_id, context_id, now, where.group_name)
    put_by_hand(tx, user_id, new_id, old.question, answer, where, now)
    kept = _of_digest(tx, user_id, digest(old.question, answer), where.group_name)
    return None if kept is None else get(tx, user_id, kept)


def get(connection: Connection, user_id: str, context_id: int, group: str = MAIN_GROUP) -> Context | None:
    """One pair that a group sees."""
    among, seen = seen_from(group)
    row = connection.row(
        f"select {COLUMNS} from context where user_id = :user_id and id = :id{among}",
        user_id=user_id,
        id=context_id,
        **seen,
    )
    return None if row is None else build(Context, row)


def _refresh(
    tx: Connection,
    user_id: str,
    context_id: int,
    new_id: int,
    question: str,
    answer: str,
    mark: str,
    where: Provenance,
    now: int,
) -> bool:
    """Give an existing pair the newer wording; an older statement leaves it as it is."""
    found = tx.row(
        "select stated_at, digest, question, answer, source, session_id, message_id from context"
        " where user_id = :user_id and group_name = :group and id = :id",
        user_id=user_id,
        group=where.group_name,
        id=context_id,
    )
    if found is None:
        return False
    is_free = mark == found[1] or _of_digest(tx, user_id, mark, where.group_name) is None
    if not (where.stated_at >= found[0] and is_free):
        restatements.add(tx, user_id, new_id, CONTEXT, found[1], "", where)
    else:
        restatements.rename(tx, user_id, CONTEXT, found[1], mark, where.group_name)
        before = Provenance(found[0], found[4], found[5], found[6], where.group_name)
        restatements.add(tx, user_id, new_id, CONTEXT, mark, "", before)
        entries.remove(tx, user_id, context_id, entries.context_text(found[2], found[3]))
        bump_version(tx, user_id)
        _add_entry(tx, user_id, context_id, question, answer, where, now)
        tx.execute(
            "update context set question = :question, answer = :answer, digest = :digest,"
            " stated_at = :stated_at, source = :source, session_id = :session_id, message_id = :message_id,"
            " updated_at = :now where user_id = :user_id and id = :id",
            user_id=user_id,
            id=context_id,
            question=question,
            answer=answer,
            digest=mark,
            now=now,
            **asdict(where),
        )
    return True


def _add_entry(
    tx: Connection, user_id: str, context_id: int, question: str, answer: str, where: Provenance, now: int
) -> None:
    terms = entries.terms_of(entries.context_text(question, answer))
    entry = entries.Entry(
        context_id, entries.CONTEXT, where.session_id, "user", "", where.stated_at, terms, where.group_name
    )
    entries.add(tx, user_id, [entry], now)


def _of_digest(connection: Connection, user_id: str, mark: str, group: str) -> int | None:
    row = connection.row(
        "select id from context where user_id = :user_id and group_name = :group and digest = :digest",
        user_id=user_id,
        group=group,
        digest=mark,
    )
    return None if row is None else int(row[0])


def near_duplicate(question: str, answer: str, known: Iterable[Context]) -> Context | None:
    """The known pair that says the same in nearly the same words, if there is one."""
    return next(
        (pair for pair in known if near_duplicate_of(question, answer, pair.question, pair.answer)), None
    )


def near_duplicate_of(question: str, answer: str, other_question: str, other_answer: str) -> bool:
    """Whether two pairs say the same in nearly the same words."""
    return (
        _overlap(_stems(answer), _stems(other_answer)) >= NEAR_DUPLICATE
        and _overlap(_stems(question), _stems(other_question)) >= NEAR_DUPLICATE
    )


# A user's pairs are compared again with every new one.
@lru_cache(maxsize=16_384)
def _stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right) if left and right else 0.0


def listing(
    connection: Connection, user_id: str, after_id: int = 0, limit: int = 1000, group: str = MAIN_GROUP
) -> list[Context]:
    """The user's pairs that a group sees, in the order they were stored."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from context where user_id = :user_id and id > :after_id{among}"
        " order by id limit :limit",
        user_id=user_id,
        after_id=after_id,
        limit=limit,
        **seen,
    )
    return [build(Context, row) for row in rows]


def of_message(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[Context]:
    """The pairs that were stated in a message, in the order they were stored."""
    rows = connection.rows(
        f"select {COLUMNS} from context where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id order by id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [build(Context, row) for row in rows]


def newest(connection: Connection, user_id: str, limit: int, group: str = MAIN_GROUP) -> list[Context]:
    """The pairs of a group that were stored last, newest first."""
    rows = connection.rows(
        f"select {COLUMNS} from context where user_id = :user_id and group_name = :group"
        " order by id desc limit :limit",
        user_id=user_id,
        group=group,
        limit=limit,
    )
    return [build(Context, row) for row in rows]


def delete(tx: Connection, user_id: str, context_id: int, now: int, group: str = MAIN_GROUP) -> bool:
    """Delete a pair of a group; older statements of it will not bring it back."""
    row = tx.row(
        "delete from context where user_id = :user_id and group_name = :group and id = :id"
        " returning digest, stated_at, question, answer",
        user_id=user_id,
        group=group,
        id=context_id,
    )
    if row is None:
        return False
    entries.remove(tx, user_id, context_id, entries.context_text(row[2], row[3]))
    prompt_blocks.withdraw(tx, user_id, [prompt_blocks.entry_mark(context_id)])
    restatements.delete_key(tx, user_id, CONTEXT, row[0], group)
    add(tx, user_id, CONTEXT, row[0], max(now, row[1]), group=group)
    bump_version(tx, user_id)
    return True


def of_digest(connection: Connection, user_id: str, mark: str, group: str = MAIN_GROUP) -> Context | None:
    """The pair of a group that has these words."""
    row_id = _of_digest(connection, user_id, mark, group)
    return None if row_id is None else get(connection, user_id, row_id, group)


def statements_of(connection: Connection, user_id: str, pair: Context) -> list[tuple[str, str]]:
    """Every statement that a pair rests on: its session and message."""
    mark = digest(pair.question, pair.answer)
    again = restatements.of_key(connection, user_id, CONTEXT, mark, pair.group_name)
    found = [(pair.session_id, pair.message_id), *((one.session_id, one.message_id) for one in again)]
    return [statement for statement in found if statement[1]]


def of_question(
    connection: Connection, user_id: str, question: str, group: str = MAIN_GROUP
) -> list[Context]:
    """The answers that a group has to a question, by its exact words."""
    rows = connection.rows(
        f"select {COLUMNS} from context where user_id = :user_id and group_name = :group"
        " and question = :question order by id",
        user_id=user_id,
        group=group,
        question=question,
    )
    return [build(Context, row) for row in rows]


def of_session(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> list[int]:
    """The ids of the pairs that were stated in a session."""
    rows = connection.rows(
        "select id from context where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return [row[0] for row in rows]
