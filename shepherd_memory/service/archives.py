"""Archives of a user's sessions, as text and as files."""

from collections.abc import Iterator
from pathlib import Path
from types import NoneType

from shepherd_memory.archives import markdown
from shepherd_memory.archives.catalog import ArchiveCatalog, ArchivedSession
from shepherd_memory.archives.markdown import ArchiveStyle
from shepherd_memory.archives.mirror import Mirrored, MirrorRules, Progress, UserMirror
from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group, nearness
from shepherd_memory.text.ids import storable_id


class ArchiveService(ServiceParts):
    """Tells sessions as markdown, which is made of what is stored now."""

    def archive(
        self, user_id: str, session_id: str, *, whole: bool = False, group: str = MAIN_GROUP
    ) -> Iterator[bytes]:
        """A session that the group sees, as markdown, piece by piece; NotFound if there is none.

        Messages are cut at 2,000 characters, unless it is to be `whole`.
        """
        check_known_user(user_id)
        place, session = checked_group(group), storable_id(session_id)
        with self.database.read() as connection:
            found = ArchiveCatalog(connection, user_id, place).find(session) if session else None
        if found is None:
            raise NotFound(f"there is no session {session_id!r}")
        return self._rendered(user_id, found, self._style(whole))

    def _rendered(self, user_id: str, session: ArchivedSession, style: ArchiveStyle) -> Iterator[bytes]:
        for piece in markdown.render(self.database, user_id, session, style):
            yield piece.encode()

    @empty_for_unknown_user(list)
    @with_group_ids
    def archived_sessions(self, user_id: str, *, group: str = MAIN_GROUP) -> list[ArchivedSession]:
        """The sessions that `archive` tells: of several groups with one of a name the nearest group's."""
        place = checked_group(group)
        with self.database.read() as connection:
            found = ArchiveCatalog(connection, user_id, place).listing()
        found.sort(key=lambda one: nearness(place, one.group_name), reverse=True)
        return list({one.session_id: one for one in found}.values())

    @empty_for_unknown_user(int)
    def count_archives(self, user_id: str, *, group: str = MAIN_GROUP) -> int:
        """How many sessions that the group sees have something stored in them."""
        place = checked_group(group)
        with self.database.read() as connection:
            return len(ArchiveCatalog(connection, user_id, place).listing())

    def export_archives(
        self,
        user_id: str,
        folder: Path,
        *,
        whole: bool = False,
        group: str = MAIN_GROUP,
        progress: Progress = lambda number: None,
    ) -> Mirrored:
        """Write the sessions that the group sees as files, each group in a folder of its own.

        Files of an earlier export are replaced, or removed if their session is gone; no others are.
        """
        check_known_user(user_id)
        place = checked_group(group)
        rules = MirrorRules(self._style(whole), all_sessions=True, progress=progress)
        try:
            return UserMirror(self.database, user_id, folder, folder).agree(rules, place)
        except OSError as error:
            raise InvalidInput(f"cannot write to {folder}: {error.strerror or error}") from error

    @empty_for_unknown_user(NoneType)
    def begin_archive(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> None:
        """Let a session have its file in `archive_folder` from now on: it is compacted, or its agent ends."""
        self.archive_keeper.begin(user_id, storable_id(session_id), checked_group(group))

    def _style(self, whole: bool) -> ArchiveStyle:
        return ArchiveStyle(whole, self.config.agent_name)
