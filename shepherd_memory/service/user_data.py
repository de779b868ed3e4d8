"""All that is stored of a user: forget, erase, export, import, usage."""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import replace
from typing import BinaryIO

from shepherd_memory.embedding import model_name
from shepherd_memory.embedding.engine import DEFAULT_MODEL
from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.maintenance import erasure, forgetting, portability
from shepherd_memory.maintenance.erasure import Receipt
from shepherd_memory.maintenance.forgetting import ForgettingPlan, Forgotten
from shepherd_memory.maintenance.related import TARGETS, Forgettable
from shepherd_memory.maintenance.same_said import NEAR
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.documents import Document
from shepherd_memory.mirrors.keeper import FolderKeeper, RemovedFiles
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user, is_known_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId, with_group_ids
from shepherd_memory.storage.tombstones import DOCUMENT, SESSION
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import checked_user_id, storable_id
from shepherd_memory.work import ledger

SAVED_CHATS, SPOOLED = "saved chats", "spooled exchanges"
ARCHIVE_FILES, MEMORY_FILES = "archive files", "memory files"


class UserDataService(ServiceParts):
    """Deletes, moves and counts what is stored of a user."""

    @with_group_ids
    def forget(
        self,
        user_id: str,
        *,
        fact: str | None = None,
        context: StoredId | None = None,
        document: StoredId | None = None,
        session: str | None = None,
        question: str | None = None,
        only: bool = False,
        same: bool = False,
        group: str = MAIN_GROUP,
    ) -> Forgotten:
        """Delete one thing of the group for good: a fact by its key, a pair or document by its id, a session.

        Or a question, by its exact words, with every answer to it. It goes with the statements that it rests
        on and all that was made of them, and none of it comes back from anything said before. `only` deletes
        the one row, and `same` also what says the same elsewhere; `plan_forgetting` shows both.
        """
        target = _target(fact, context, document, session, question)
        if only and same:
            raise InvalidInput("forget takes either only or same")
        if not is_known_user(user_id):
            return Forgotten()
        place = checked_group(group)
        messages = self._saved_of(user_id, target, place, only, same)
        _forget_saved(user_id, messages, session, place)
        now = self._clock()
        gone = forgetting.forget(self.database, user_id, target, now, place, only, same, self._near)
        # Again: a chat may have saved itself in between.
        _forget_saved(user_id, messages, session, place)
        if gone.total:
            self.archive_keeper.follow(user_id)
            self.memory_file_keeper.follow(user_id)
        return gone

    @empty_for_unknown_user(lambda: ForgettingPlan(0, 0, 0, [], []))
    @with_group_ids
    def plan_forgetting(
        self,
        user_id: str,
        *,
        fact: str | None = None,
        context: StoredId | None = None,
        document: StoredId | None = None,
        session: str | None = None,
        question: str | None = None,
        only: bool = False,
        group: str = MAIN_GROUP,
    ) -> ForgettingPlan:
        """What `forget` would delete, and what says the same and stays unless `same` is asked for."""
        target = _target(fact, context, document, session, question)
        return forgetting.plan(self.database, user_id, target, checked_group(group), only, self._near)

    def _near(self, connection: Connection, user_id: str, ids: Collection[int], group: str) -> Sequence[int]:
        """What comes near to these entries in meaning; nothing for models on which that was not measured."""
        if not ids or model_name(self.config) != DEFAULT_MODEL:
            return ()
        return self._recall.near(connection, user_id, ids, NEAR, DEFAULT_MODEL, group)

    def _saved_of(
        self, user_id: str, target: Forgettable, group: str, only: bool, same: bool
    ) -> Sequence[Document]:
        """The messages that are to be forgotten: a chat may have saved them."""
        if only and target.kind not in (DOCUMENT, SESSION):
            return ()
        found = forgetting.messages_to_go(self.database, user_id, target, group, same, self._near)
        is_one = only and target.kind == DOCUMENT
        return [one for one in found if str(one.id) == target.name] if is_one else found

    def erase(self, user_id: str) -> Receipt:
        """Remove a user everywhere; the receipt says what was removed and that nothing is left."""
        check_known_user(user_id)
        files = saved_chats.forget(user_id)
        receipt = erasure.erase(self.database, user_id, self._clock())
        # Again: a chat may have saved itself in between.
        files = max(files, saved_chats.forget(user_id))
        # What other processes hold they drop when they come to store it: the erasure is on record.
        waiting = self.spool.drop(user_id, to_us(receipt.erased_at))
        archives = self._remove_files(self.archive_keeper, user_id)
        written = self._remove_files(self.memory_file_keeper, user_id)
        elsewhere = {
            SAVED_CHATS: files,
            SPOOLED: waiting,
            ARCHIVE_FILES: archives.removed,
            MEMORY_FILES: written.removed,
        }
        return replace(
            receipt,
            rows=receipt.rows | {name: number for name, number in elsewhere.items() if number},
            note=receipt.note + self._note_on_left(written),
        )

    def _note_on_left(self, written: RemovedFiles) -> str:
        if not written.left:
            return ""
        return (
            f"; {written.left} memory files in {self.memory_file_keeper.folder} stay, since they were changed"
            " by hand: remove them yourself"
        )

    def _remove_files(self, keeper: FolderKeeper, user_id: str) -> RemovedFiles:
        try:
            return keeper.remove(user_id)
        except OSError as error:
            folder = keeper.folder
            raise ShepherdError(
                f"all of {user_id!r} is erased but files in {folder}, which cannot be removed"
                f" ({error.strerror or error}): make that possible, and erase again"
            ) from error

    def export(self, user_id: str, *, group: str = MAIN_GROUP) -> Generator[bytes, None, None]:
        """Everything of a user that the group sees, as JSON lines; to be closed if they are not read up."""
        check_known_user(user_id)
        return portability.export(self.database, user_id, self._clock(), checked_group(group))

    def import_lines(
        self,
        user_id: str,
        lines: BinaryIO,
        progress: Callable[[int], None] = lambda size: None,
        *,
        group: str = MAIN_GROUP,
    ) -> portability.Imported:
        """Take in what `export` wrote; what is there already stays as it is.

        From `main` each row goes to the group that it was in; from another group all go to that one.
        """
        place = checked_group(group)
        check_known_user(user_id)
        try:
            return portability.import_user(self.database, user_id, lines, self._clock(), progress, place)
        finally:
            self.embedding.wake()

    @empty_for_unknown_user(lambda: (0, 0))
    def user_version(self, user_id: str) -> tuple[int, int]:
        """What changes with everything that is written for a user, in whichever process; cheap to ask."""
        with self.database.read() as connection:
            return users.version(connection, user_id)

    @empty_for_unknown_user(list)
    def usage(self, user_id: str) -> list[ledger.Usage]:
        """The tokens that a user's memory has cost, by day and purpose."""
        with self.database.read() as connection:
            return ledger.listing(connection, user_id)

    def row_counts(self, user_id: str, *, group: str = MAIN_GROUP) -> dict[str, int]:
        """How many rows a user has in which table; those that the group sees, where it does not see all."""
        checked_user_id(user_id)
        return erasure.count_rows(self.database, user_id, checked_group(group))


def _target(
    fact: str | None, context: int | None, document: int | None, session: str | None, question: str | None
) -> Forgettable:
    """The one thing that is to be forgotten."""
    chosen = dict(zip(TARGETS, (fact, context, document, session, question), strict=True))
    given = [Forgettable(kind, str(value)) for kind, value in chosen.items() if value is not None]
    if len(given) != 1:
        raise InvalidInput("forget takes one of fact, context, document, session and question")
    if session == "":
        raise InvalidInput("the session has no name; what was said in no session is forgotten one by one")
    return Forgettable(SESSION, storable_id(session)) if session else given[0]


def _forget_saved(user_id: str, messages: Sequence[Document], session: str | None, group: str) -> None:
    """Delete from the group's chats saved on this machine what is being forgotten."""
    texts = {message.text for message in messages} - {""}
    saved_chats.forget_said(user_id, {message.message_id for message in messages}, texts, group)
    if session is not None:
        saved_chats.forget(user_id, storable_id(session), group)
