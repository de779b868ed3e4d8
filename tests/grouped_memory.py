"""One user's memory with the same in every group but for a word, and what each group may be shown of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.memory import rejections, unconfirmed
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.phases import dirtiness, outputs, sections
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.sections import NewSection
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND, from_us
from shepherd_memory.storage.database import Database
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.storage.rows import Provenance
from tests.transcripts import BEGAN, agent_line, user_line, write

USER = "ann"
MAIN, ALPHA, BETA, GLOBAL = "main", "alpha", "beta", "global"
WORDS = {MAIN: "quokka", ALPHA: "axolotl", BETA: "marmot", GLOBAL: "wombat"}
"""In everything that a group holds, and in nothing of another."""

SEEN = {MAIN: set(WORDS), ALPHA: {ALPHA, GLOBAL}, BETA: {BETA, GLOBAL}, GLOBAL: {GLOBAL}}
KEY, SESSION, QUESTION = "favourite_animal", "session-1", "Which animal does the user like?"
LIFE = "session-2"
"""A session that was started, and is active."""

SECRET = "0123456789abcdef" * 2
"""Of the user: ids are shown alike in every run."""

CENTURY = 100 * 365 * 24 * 3600 * SECOND

ASKED = "Which favourite animal do I like?"

OF_NO_GROUP = {"users", "token_usage", "vectors", "unembedded", "api_keys", "prompt_blocks"}
"""Counters and keys, what belongs to a row with a group, and blocks: those go with what they tell of, also
where that is of `global`, in whatever group they were told."""


def furnish(service: Service, group: str, folder: Path) -> dict[str, Any]:
    """Something of everything in a group, with its word in it; the ids by which `main` could ask for it."""
    word = WORDS[group]
    service.set_fact(USER, KEY, f"a young {word}", group=group)
    service.set_fact(USER, KEY, f"an old {word}", group=group)
    service.add_context(USER, QUESTION, f"The animal that they like is a {word}.", group=group)
    said = {"role": "user", "content": f"I like the {word}, my favourite animal.", "id": "m1"}
    service.remember(USER, [said], SESSION, group=group)
    note = f"Notes on the {word}, a favourite animal."
    service.add_document(USER, note, session_id=SESSION, message_id="n1", group=group)
    if group == GLOBAL:
        service.set_global_memory(USER, f"Everybody feeds the {word}.", group=group)
    rejection, waiting = _refuse(service, group), propose(service, group)
    _ingest(service, group, folder)
    conversation = _note(service, group)
    asked = [{"role": "user", "content": ASKED}]
    injected = service.inject(USER, asked, session_id=SESSION, group=group)
    service.start_session(USER, session_id=LIFE, agent_name=word, group=group)
    with service.database.write() as tx:
        tx.execute("update users set id_secret = :secret where user_id = :user", secret=SECRET, user=USER)
    return {
        "group": group,
        "context": next(one.id for one in service.context(USER) if one.group_name == group),
        "document": next(
            one.id for one in service.documents(USER) if (one.group_name, one.message_id) == (group, "n1")
        ),
        "rejection": rejection,
        "conversation": conversation,
        "unconfirmed": waiting,
        "request": injected.request,
        "item": next((one.id for one in service.items(USER) if of_work_key(one.key) == (SESSION, group)), 0),
    }


def as_shown(service: Service, group: str, ids: Mapping[str, Any]) -> dict[str, Any]:
    """The same ids as a group is shown them, if it is shown these rows at all."""
    with service.database.read() as connection:
        known = ids_of_group(connection, USER, group)
    return {name: known.shown_id(one) if isinstance(one, int) else one for name, one in ids.items()}


def _refuse(service: Service, group: str) -> int:
    word = WORDS[group]
    with service.database.write() as tx:
        number = users.lock(tx, USER, BEGAN)
        where = Provenance(BEGAN, "chat", SESSION, "m1", group)
        refused = NewRejection("fact", f"{word}_key", f"a {word}", "unsure", f"{word}?", where)
        rejections.insert(tx, USER, number, refused, BEGAN)
    return number


def propose(service: Service, group: str) -> int:
    """Something that waits to be confirmed, since a time to come: nothing has waited too long."""
    word = WORDS[group]
    with service.database.write() as tx:
        number = users.lock(tx, USER, BEGAN)
        where = Provenance(BEGAN, "chat", SESSION, "m1", group)
        waiting = NewUnconfirmed("fact", f"{word}_pet", f"a {word}", "reworded", "", word, "self", where)
        unconfirmed.insert(tx, USER, number, waiting, BEGAN + CENTURY)
    return number


def _note(service: Service, group: str) -> int:
    """The output of the transcript's conversation; its id."""
    word, moment = WORDS[group], from_us(BEGAN)
    found = service.conversations(USER)
    conversation = next(one for one in found if one.group_name == group)
    about = (group, conversation.id, conversation.session_id, conversation.last_document, moment)
    said = (f"They like the {word}.", f"The animal: {word}.", "animal", "")
    with service.database.write() as tx:
        outputs.put(tx, USER, Output(*about, *said, "succeeded", "kept", "", "scripted", moment))
        number = users.lock(tx, USER, BEGAN)
        version = dirtiness.next_version(tx, USER, group, "agent", "written", BEGAN)
        body = f"The keeper of the {word}."
        kept = NewSection("MEMORY.md", f"A {word}", body, BEGAN, sources=(conversation.id,))
        sections.add(tx, USER, group, number, kept, version, BEGAN)
        dirtiness.mark(tx, USER, group, BEGAN, number)
    return conversation.id


def transcript_of(group: str, folder: Path) -> Path:
    return folder / group / "session.jsonl"


def _ingest(service: Service, group: str, folder: Path) -> None:
    path, word = transcript_of(group, folder), WORDS[group]
    lines = [user_line(0, f"my kettle is a {word}"), agent_line(1, f"A {word}, I see.")]
    write(path, lines)
    os.utime(path, (BEGAN // SECOND, BEGAN // SECOND))
    taken = service.transcripts.ingest(USER, path, folder, group=group)
    assert taken.entries == len(lines), taken


def words_in(shown: str) -> set[str]:
    """The groups whose word is in it."""
    return {group for group, word in WORDS.items() if word in shown}


def rows_by_group(database: Database) -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    """Every row of the user that has a group."""
    found: dict[str, dict[str, list[tuple[Any, ...]]]] = {group: {} for group in WORDS}
    with database.read() as connection:
        columns = database.tables(connection)
        for table in set(user_tables(database, connection)) - OF_NO_GROUP:
            names = sorted(columns[table])
            rows = connection.rows(
                f"select {', '.join(names)} from {table} where user_id = :user_id", user_id=USER
            )
            for row in rows:
                group = _group_of(table, dict(zip(names, row, strict=True)))
                found.setdefault(group, {}).setdefault(table, []).append(row)
    return {
        group: {table: sorted(rows, key=repr) for table, rows in tables.items()}
        for group, tables in found.items()
    }


def _group_of(table: str, row: Mapping[str, Any]) -> str:
    return str(of_work_key(row["key"])[1] if table == "jobs" else row["group_name"])
