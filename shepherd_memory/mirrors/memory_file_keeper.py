"""Keeps the configured folder of memory files in step with the memory."""

from collections.abc import Callable
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.keeper import FolderKeeper, RemovedFiles, logger
from shepherd_memory.mirrors.memory_files import MemoryFileMirror, remove_user, user_digest_in
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.work.endpoint_state import MEMORY_FILES


class MemoryFileKeeper(FolderKeeper):
    """Writes the memory files of all users into `memory_files_folder`, if that is configured."""

    content = MEMORY_FILES

    def __init__(self, database: Database, config: Callable[[], Config], clock: Clock) -> None:
        super().__init__(database, config, clock)
        self._left: dict[str, int] = {}

    def _configured(self, config: Config) -> str:
        return config.memory_files_folder

    def _style(self, config: Config) -> int:
        return config.min_conversation_messages

    def _agree(self, root: Path, user_id: str) -> None:
        mirror = MemoryFileMirror(self._database, user_id, root, self._style(self._config()))
        left = len(mirror.agree(root / folder_name(user_id)).left)
        if left != self._left.get(user_id, 0):
            self._left[user_id] = left
            # Without their names, which may say what is remembered.
            logger.warning(
                "%d memory files in %s are not kept in step, since somebody else wrote or changed them;"
                " `shepherd memory files mirror` names them",
                left,
                root,
            )

    def _remove(self, root: Path, folder: Path) -> RemovedFiles:
        return remove_user(root, folder)

    def _owner_of(self, folder: Path) -> str:
        return user_digest_in(folder)
