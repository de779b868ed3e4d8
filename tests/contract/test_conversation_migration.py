"""A database from before live chats had conversations keeps every conversation of its transcripts."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.conversations import conversation
from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.memory import sessions, threads
from shepherd_memory.storage.database import connect, load_migrations, migrate, open_database
from tests.contract.given import NOON, ManualClock, memory
from tests.contract.test_migrations import WithMigrations, copied_migrations, recorded

BEFORE = 12
UUID = "0b5e6f0a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
ROLLOUT = f"rollout-2026-09-21T10-00-00-{UUID}"

ROWS = f"""
insert into users (user_id, seq, created_at) values ('ada', 100, 0);
insert into documents (user_id, id, group_name, session_id, message_id, type, category, role, speaker_type,
    speaker_name, text, source, created_at, stored_at)
    values ('ada', 1, 'main', 'chat', 'm1', 'message', 'transcript', 'user', 'human', '', 'My city is Oslo',
        'live', 7, 7);
insert into sessions (user_id, group_name, session_id, last_document, created_at, updated_at)
    values ('ada', 'main', 'chat', 1, 7, 7), ('ada', 'main', '{ROLLOUT}', 9, 8, 8);
insert into transcript_files (user_id, file_key, session_id, source, originator, cwd, status, created_at,
    updated_at) values
    ('ada', 'a/{ROLLOUT}.jsonl', '{ROLLOUT}', 'codex', 'codex_cli', '/home/ada/a', 'idle', 1, 1),
    ('ada', 'b/{UUID}.jsonl', '{UUID}@0a1b2c3d', 'claude-code', '', '/work/b', 'idle', 1, 1),
    ('ada', 'c/notes.jsonl', 'notes', 'pi', '', '', 'idle', 1, 1);
insert into transcript_conversations (user_id, id, file_key, session_id, first_document, last_document,
    first_message_at, last_message_at, entries, status, updated_at) values
    ('ada', 20, 'a/{ROLLOUT}.jsonl', '{ROLLOUT}', 2, 5, 10, 20, 4, 'archived', 30),
    ('ada', 21, 'a/{ROLLOUT}.jsonl', '{ROLLOUT}', 6, 9, 40, 50, 4, 'active', 60),
    ('ada', 22, 'b/{UUID}.jsonl', '{UUID}@0a1b2c3d', 12, 15, 10, 20, 4, 'processing', 30),
    ('ada', 23, 'gone/x.jsonl', 'x', 16, 17, 10, 20, 2, 'skipped', 30),
    ('ada', 24, 'c/notes.jsonl', 'notes', 18, 19, 10, 20, 2, 'ready', 30);
"""


def make_old(url: str, folder: Path, rows: str, before: int = BEFORE) -> None:
    with closing(connect(url)) as database:
        older = copied_migrations(database, folder)
        for migration in load_migrations(database.migrations()):
            if migration.version > before:
                (older / f"{migration.version:04}_{migration.name}.sql").unlink()
        assert migrate(WithMigrations(database, older)) == before  # type: ignore[arg-type]
        with database.write() as tx:
            tx.execute_script(rows)


@pytest.mark.every_scheme
def test_every_conversation_is_there_with_its_bounds_and_its_place(database_url: str, tmp_path: Path) -> None:
    make_old(database_url, tmp_path / "older", ROWS)
    with closing(open_database(database_url)) as database, database.read() as connection:
        found = {one.id: one for one in conversation.listing(connection, "ada")}
        assert {number: one.status for number, one in found.items()} == {
            20: "archived",
            21: "active",
            22: "processing",
            23: "skipped",
            24: "ready",
        }
        first = found[20]
        assert (first.source, first.cwd, first.originator) == ("codex", "/home/ada/a", "codex_cli")
        assert (first.first_document, first.last_document, first.entries) == (2, 5, 4)
        assert (first.session_id, first.group_name, first.work_key) == (ROLLOUT, "main", ROLLOUT)
        assert connection.rows("select distinct work_key = session_id from conversations") in (
            [(1,)],
            [(True,)],
        )
        assert threads.transcripts(connection, "ada", UUID) == [f"{UUID}@0a1b2c3d", ROLLOUT]
        assert threads.parts(connection, "ada", "notes") == ("notes",)
        assert sessions.to_group(connection, 9) == [("ada", "chat", "main")], "only the live chat"


def test_a_live_chat_from_before_gets_its_conversation(database_url: str, tmp_path: Path) -> None:
    make_old(database_url, tmp_path / "older", ROWS)
    with memory(database_url, ManualClock(NOON)) as service:
        service.transcripts.poll()
        (live,) = service.conversations("ada", source="live")
        assert (live.session_id, live.entries, live.status) == ("chat", 1, "skipped")


@pytest.mark.every_scheme
def test_a_database_that_got_another_programs_table_meanwhile_is_refused_as_it_is(
    database_url: str, tmp_path: Path
) -> None:
    make_old(database_url, tmp_path / "older", ROWS + "create table conversations (id bigint, title text);")
    with pytest.raises(DatabaseRefused, match=r"another program \(conversations\).*move those tables"):
        open_database(database_url)
    with closing(connect(database_url)) as database:
        assert recorded(database) == list(range(1, BEFORE + 1))
