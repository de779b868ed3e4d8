"""Keeps the configured folder of archives in step with the memory."""

from pathlib import Path

from shepherd_memory.archives import mirror
from shepherd_memory.archives.markdown import ArchiveStyle
from shepherd_memory.archives.mirror import MirrorRules, UserMirror
from shepherd_memory.config import Config
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.keeper import FolderKeeper, RemovedFiles
from shepherd_memory.work.endpoint_state import ARCHIVES


class ArchiveKeeper(FolderKeeper):
    """Writes the archives of all users into `archive_folder`, if that is configured."""

    content = ARCHIVES

    def begin(self, user_id: str, session_id: str, group: str) -> None:
        """Let one session of a group have its file from now on, also before its end."""
        self._try(user_id, lambda root: self._agree_on(root, user_id, session_id, group))

    def _configured(self, config: Config) -> str:
        return config.archive_folder

    def _style(self, config: Config) -> ArchiveStyle:
        return ArchiveStyle(agent_name=config.agent_name)

    def _agree(self, root: Path, user_id: str) -> None:
        rules = MirrorRules(self._style(self._config()))
        UserMirror(self._database, user_id, root, root / folder_name(user_id)).agree(rules)

    def _agree_on(self, root: Path, user_id: str, session_id: str, group: str) -> None:
        named = (group, session_id) if session_id else None
        rules = MirrorRules(self._style(self._config()), named=named)
        UserMirror(self._database, user_id, root, root / folder_name(user_id)).agree(rules, group)

    def _remove(self, root: Path, folder: Path) -> RemovedFiles:
        return RemovedFiles(mirror.remove_user(root, folder))

    def _owner_of(self, folder: Path) -> str:
        return mirror.user_digest_in(folder)
