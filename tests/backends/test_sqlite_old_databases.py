"""What only a SQLite file of the original shepherd can hold: full-text tables, broken bytes, odd times."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.contract.given import NOON, ManualClock, facts_of, memory, pairs_of
from tests.contract.old_database import CONTEXT, CONVERSATIONS, FACTS, SECRET, STAMP, WHEN, build, tables_of
from tests.contract.recalling import check_indexes, texts_found

WORD = "xylophone"
FULL_TEXT = """
create virtual table context_fts
  using fts5(user_message, assistant_response, content='context', content_rowid='id');
create trigger context_ai after insert on context begin
  insert into context_fts(rowid, user_message, assistant_response)
  values (new.id, new.user_message, new.assistant_response);
end;
create trigger context_ad after delete on context begin
  insert into context_fts(context_fts, rowid, user_message, assistant_response)
  values ('delete', old.id, old.user_message, old.assistant_response);
end;
"""


@pytest.mark.parametrize("broken", [False, True])
def test_the_old_full_text_table_goes_with_its_triggers(tmp_path: Path, broken: bool) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FULL_TEXT)
        raw.execute("insert into context values (1, 'Where?', 'In Bonn', ?, 'h', 'ada')", (STAMP,))
        if broken:
            raw.execute("drop table context_fts")
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
        service.add_context("ada", "Why?", "Because")
    assert not {name for name in tables_of(str(file)) if "fts" in name}


def test_the_full_text_table_of_the_old_conversations_goes_too(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript((CONVERSATIONS + ";" + FULL_TEXT).replace("context", "conversations"))
        raw.execute("insert into conversations values (1, 'Where?', 'In Bonn', ?, 'h')", (STAMP,))
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "local") == [("Where?", "In Bonn")]
    assert not {name for name in tables_of(str(file)) if "fts" in name}


def test_bytes_that_are_no_text_do_not_stop_a_migration(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FACTS)
        raw.execute(
            "insert into context values (1, cast(x'5768657265ff3f' as text), cast(x'c328' as text), ?,"
            " 'h', 'ada')",
            (STAMP,),
        )
        raw.execute(
            "insert into facts values ('ada', 'pet', cast(x'526578ff' as text), ?, ?)", (STAMP, STAMP)
        )
        raw.execute("insert into facts values ('ada', 'blob', x'ff00', ?, ?)", (STAMP, STAMP))
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where\ufffd?", "\ufffd(")]
        assert facts_of(service, "ada")["pet"] == "Rex\ufffd"


@pytest.mark.parametrize("stamp", ["2023-11-14 22:13:20", "1700000000", 1_700_000_000.0])
def test_times_are_read_in_each_form_that_the_original_wrote(tmp_path: Path, stamp: Any) -> None:
    file = str(tmp_path / "memory.db")
    build(file, CONVERSATIONS, rows=[("conversations", (1, "Where?", "In Bonn", stamp, "h"))])
    with memory(file, ManualClock(NOON)) as service:
        assert service.context("local")[0].stated_at == WHEN


def test_secrets_in_an_old_database_are_in_no_byte_of_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FACTS + ";" + FULL_TEXT)
        raw.execute(
            "insert into context values (1, ?, 'noted', ?, 'h', 'ada')", (f"My key is {SECRET}", STAMP)
        )
        raw.execute("insert into facts values ('ada', 'api_key', ?, ?, ?)", (SECRET, STAMP, STAMP))
        raw.commit()
    assert SECRET.encode() in file.read_bytes()
    with memory(str(file), ManualClock(NOON)) as service:
        assert "[redacted:" in pairs_of(service, "ada")[0][0]
        assert "[redacted:" in facts_of(service, "ada")["api_key"]
        for name in os.listdir(tmp_path):
            found = (tmp_path / name).read_bytes()
            assert SECRET.encode() not in found, name
            assert SECRET[20:60].encode() not in found, name


def test_a_database_of_the_original_is_found_by_its_words(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(
            "create table facts (user_id text, key text, value text, created_at real, updated_at real);"
            "create table context (id integer primary key, user_id text, user_message text,"
            " assistant_response text, timestamp real);"
            "insert into facts values ('ada', 'instrument', 'the xylophone', 1700000000, 1700000000);"
            "insert into context values (1, 'ada', 'What do you play?', 'A xylophone', 1700000000);"
        )
        old.commit()
    with memory(str(path), clock) as service:
        check_indexes(service.database)
        assert sorted(texts_found(service, "ada", WORD)) == [
            "What do you play? A xylophone",
            "instrument: the xylophone",
        ]
