"""A group other than `main` is shown ids that tell nothing of the others, and names rows by these."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest

from shepherd_memory.errors import NoSuchRow, NotFound
from shepherd_memory.memory.sessions import of_work_key, work_key
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database, open_database
from shepherd_memory.storage.group_ids import holds_ids, ids_of_group
from shepherd_memory.text.groups import NamedByMain
from shepherd_memory.transcripts.library import Library
from tests.contract.given import NOON, ManualClock, memory
from tests.contract.test_conversation_migration import make_old
from tests.contract.test_group_walk import CHANGED, LOOKED_UP, Visit, answer, masked
from tests.group_history import AmongOthers, Shown
from tests.grouped_memory import (
    ALPHA,
    BETA,
    GLOBAL,
    KEY,
    MAIN,
    SESSION,
    USER,
    furnish,
    propose,
)

_COUNTS = """
added archives before blocks budget_tokens bytes calls claims completion_tokens context context_lines
context_window conversations count daily_tokens documents entries estimated_calls facts failed files
first hits index ingesting items known left left_out limit line line_count line_offset lines max_lines
max_results max_tokens message_count new next_first next_line offset old oldest_user_tokens_today open
pairs place prompt_tokens purging put_off read_through rejections removed retained rows schema_version
sessions size skipped start_line stored subagent successes successes_seen tokens total total_count
tries_left turn turns use_count users version waiting written
"""
COUNTS = frozenset(_COUNTS.split())
"""Numbers that the service takes or shows and that are no ids of rows, by their names."""

FOR_THE_MACHINE = {"all_items", "retry_all_failed"}
"""They name no user, and are for whoever runs the machine; the second one translates for each user."""

BY_MESSAGE = {"note_reading"}
"""What it is given it knows by session and message."""


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for owner in (Service, Library):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                yield name, method


def test_every_method_that_shows_or_takes_ids_translates_them() -> None:
    """If this fails for a new method: it lacks `@with_group_ids`."""
    for name, method in methods():
        has_ids = any(map(holds_ids, inspect.get_annotations(method).values()))
        is_excused = name in FOR_THE_MACHINE | BY_MESSAGE
        assert getattr(method, "translates_ids", False) == (has_ids and not is_excused), name


def test_every_number_that_is_shown_or_taken_is_an_id_or_known_to_be_none() -> None:
    """If this fails for a new name: the id of a row is a `StoredId`; any other number belongs to `COUNTS`."""
    shown: set[type] = set()
    for name, method in methods():
        for argument, kind in inspect.get_annotations(method).items():
            assert not isinstance(kind, str), (name, argument, "a type in quotes is not looked into")
            assert argument == "return" or argument in COUNTS or not has_number(kind), (name, argument)
        reach(inspect.get_annotations(method).get("return"), shown)
    for value in shown:
        for field in fields(value):
            assert not isinstance(field.type, str), (value, field.name)
            assert field.name in COUNTS or not has_number(field.type), (value, field.name)


def has_number(kind: Any) -> bool:
    """Whether there is a whole number in a value of this type that is not known as an id."""
    if get_origin(kind) is Annotated:
        return False
    return kind is int or any(has_number(one) for one in get_args(kind) if not isinstance(one, str | list))


def reach(kind: Any, found: set[type]) -> None:
    """Every dataclass that a value of this type can have in it."""
    if is_dataclass(kind) and isinstance(kind, type) and kind not in found:
        found.add(kind)
        for field in fields(kind):
            reach(field.type, found)
    for one in get_args(kind):
        if not isinstance(one, str | list):
            reach(one, found)


@pytest.mark.every_scheme
def test_a_group_is_shown_the_same_however_much_others_store(
    url: str, other_url: str, tmp_path: Path
) -> None:
    alone = everything_shown(url, tmp_path / "transcripts", lambda service: service)
    others = everything_shown(other_url, tmp_path / "transcripts", AmongOthers)
    assert [name for name, _ in others] == [name for name, _ in alone]
    for (name, text), (_, without) in zip(others, alone, strict=True):
        assert text == without, name


def everything_shown(url: str, folder: Path, beside: Callable[[Service], Any]) -> Sequence[tuple[str, str]]:
    """What beta is shown by every method and tool, its ids by the order in which their rows were stored."""
    clock = ManualClock()
    with memory(url, clock, "http://127.0.0.1:9") as service:
        used = beside(service)
        furnish(used, GLOBAL, folder)
        visit = Visit(service, BETA, furnish(used, BETA, folder), folder)
        texts = [(name, answer(case, visit)) for name, case in LOOKED_UP]
        for name, case in CHANGED:
            texts.append((name, answer(case, Visit(used, BETA, visit.ids, folder))))
        shown = Shown.read(service, BETA)
    # The turns of a chat begin with the user's number among all users that the database has ever had.
    return [
        (name, re.sub(r"previous='\d+'", "previous", masked(text))) for name, text in shown.ordered(texts)
    ]


Take = Callable[[Service, str, int], Any]


def taking(name: str, *arguments: Any, by: str = "", **options: Any) -> Take:
    """A call that is given an id, alone or by this name."""

    def call(service: Service, group: str, row_id: int) -> Any:
        owner = service.transcripts if name == "around" else service
        places, names = ((), {by: row_id}) if by else ((row_id, *arguments), {})
        return getattr(owner, name)(USER, *places, **names, **options, group=group)

    return call


def planning(service: Service, group: str, row_id: int) -> bool:
    service.process_conversations(USER, conversation_id=row_id, dry_run=True, group=group)
    return True


FINDING: dict[str, list[tuple[str, Take]]] = {
    "get_context": [("context", taking("get_context"))],
    "get_document": [("document", taking("get_document"))],
    "around": [("document", taking("around", 1))],
    "conversation_note": [("conversation", taking("conversation_note"))],
    "process_conversations": [("conversation", planning)],
    "note_progress": [
        ("conversation", lambda service, group, one: service.note_progress(USER, [one], group=group).open)
    ],
    "drop": [("item", taking("drop"))],
    "retry": [("item", taking("retry"))],
    "accept": [("rejection", taking("accept"))],
    "refuse": [("unconfirmed", taking("refuse"))],
    "confirm": [("unconfirmed", taking("confirm"))],
    "replace_answer": [("context", taking("replace_answer", "another answer"))],
    "plan_forgetting": [
        ("document", lambda *given: taking("plan_forgetting", by="document")(*given).total),
        ("context", lambda *given: taking("plan_forgetting", by="context")(*given).total),
    ],
    "forget": [
        ("context", lambda *given: taking("forget", by="context")(*given).total),
        ("document", lambda *given: taking("forget", by="document")(*given).total),
    ],
}
"""For each method that takes ids: of what, and whether it finds the row."""

PAGING = {"context", "documents"}


def test_every_method_that_takes_an_id_is_tried_here() -> None:
    found = {
        name
        for name, method in methods()
        for argument, kind in inspect.get_annotations(method).items()
        if argument != "return" and holds_ids(kind)
    }
    assert found - BY_MESSAGE == {*FINDING, *PAGING}


def is_found(take: Take, service: Service, group: str, row_id: int) -> bool:
    try:
        return bool(take(service, group, row_id))
    except NoSuchRow as error:
        problem = error
    assert str(row_id) in str(problem), "an error names the id that was given"
    return False


def row_of(service: Service, what: str, group: str) -> int:
    """A row of a group's, by its own id."""
    listed: dict[str, Sequence[Any]] = {
        "context": service.context(USER),
        "document": [one for one in service.documents(USER) if one.message_id == "n1"],
        "rejection": service.rejected(USER),
        "unconfirmed": service.unconfirmed(USER),
        "conversation": service.conversations(USER),
    }
    if what == "item":
        return next(one.id for one in service.items(USER) if of_work_key(one.key)[1] == group)
    return next(int(one.id) for one in listed[what] if one.group_name == group)


@pytest.fixture
def service(url: str, clock: ManualClock, tmp_path: Path) -> Iterator[Service]:
    with memory(url, clock, "http://127.0.0.1:9", memory_phases=True) as opened:
        for group in (BETA, ALPHA):
            furnish(opened, group, tmp_path / "transcripts")
            propose(opened, group)
            queue_note(opened, group)
        yield opened


def queue_note(service: Service, group: str) -> None:
    with service.database.write() as tx:
        number = users.lock(tx, USER, NOON)
        key = work_key(str(row_of(service, "conversation", group)), group)
        tx.execute(
            "insert into jobs (user_id, id, kind, key, status, turn, claims, tries_left, queued_at, run_at)"
            " values (:user, :id, 'phase1', :key, 'waiting', 0, 0, 3, 0, 0)",
            user=USER,
            id=number,
            key=key,
        )


@pytest.mark.every_scheme
def test_a_group_names_its_rows_as_it_is_shown_them_and_no_others(service: Service) -> None:
    with service.database.read() as connection:
        alpha, beta = (ids_of_group(connection, USER, group) for group in (ALPHA, BETA))
    for name, several in FINDING.items():
        for what, take in several:
            mine, other = row_of(service, what, ALPHA), row_of(service, what, BETA)
            wrong = (mine, other, beta.shown_id(mine), beta.shown_id(other), alpha.shown_id(other))
            assert not any(is_found(take, service, ALPHA, one) for one in wrong), (name, what)
            assert is_found(take, service, ALPHA, alpha.shown_id(mine)), (name, what)


def test_pages_go_on_behind_the_id_that_was_shown_last(service: Service) -> None:
    said = [{"role": "user", "content": f"line {number}"} for number in range(7)]
    service.remember(USER, said, "long", group=ALPHA)
    for number in range(7):
        service.add_context(USER, f"Which one is {number}?", f"The {number}th, once more.", group=ALPHA)
    for listing in (service.documents, service.context):
        whole = listing(USER, group=ALPHA)
        paged, last = [], 0
        while page := listing(USER, after_id=last, limit=2, group=ALPHA):
            paged, last = [*paged, *page], page[-1].id
        assert paged == whole
        assert [one.id for one in paged] != sorted(one.id for one in paged), "not in the order of the ids"
    whole, before, back = service.documents(USER, group=ALPHA), None, []
    while page := service.documents(USER, newest=True, before_id=before, limit=2, group=ALPHA):
        back, before = [*page, *back], page[0].id
    assert back == whole


def test_sessions_go_by_the_ids_of_their_entries_and_messages(service: Service) -> None:
    entry = service.clear_session(USER, "kept", session_id=SESSION, group=ALPHA)
    (listed,) = service.session_history(USER, group=ALPHA)
    assert listed.id == entry.id
    assert service.find_session(USER, str(entry.id), group=ALPHA).session_id == SESSION
    (real,) = service.session_history(USER)
    for group, named in ((ALPHA, real.id), (BETA, entry.id), (BETA, real.id)):
        with pytest.raises(NotFound):
            service.find_session(USER, str(named), group=group)
    message = service.read_session(USER, SESSION, group=ALPHA).messages[0]
    (known,) = [one for one in service.read_session(USER, SESSION).messages if one.text == message.text]
    with pytest.raises(NotFound):
        service.resume_session(USER, SESSION, at=str(known.id), group=ALPHA)
    assert service.resume_session(USER, SESSION, at=str(message.id), group=ALPHA).saved is None


def test_main_names_a_row_of_another_group_as_it_is_shown_it(service: Service) -> None:
    mine = row_of(service, "document", ALPHA)
    (document,) = [one for one in service.documents(USER) if one.id == mine]
    plan = service.plan_forgetting(USER, document=document.id, group=NamedByMain(ALPHA))
    assert str(mine) in {one.id for one in plan.goes}
    assert service.forget(USER, document=document.id, group=NamedByMain(ALPHA)).documents


def test_a_fact_whose_key_is_a_number_keeps_it(service: Service) -> None:
    service.set_fact(USER, "42", "the answer", group=ALPHA)
    (fact,) = service.plan_forgetting(USER, fact="42", only=True, group=ALPHA).goes
    assert fact.id == "42"


def test_what_a_model_cites_is_counted_by_the_number_that_it_was_shown(service: Service) -> None:
    real = row_of(service, "conversation", ALPHA)
    (known,) = service.conversation_outputs(USER, group=ALPHA)
    for cited, uses in ((real, 0), (known.conversation_id, 1)):
        answer = f"Tea.\n<memory-citation>\n{cited}\n</memory-citation>"
        said = [{"role": "user", "content": f"{cited}?"}, {"role": "assistant", "content": answer}]
        service.remember(USER, said, "cites", group=ALPHA)
        (output,) = service.conversation_outputs(USER, group=ALPHA)
        assert output.use_count == uses


def test_reading_a_file_counts_the_use_of_its_conversation(service: Service) -> None:
    (path,) = [one for one in service.memory_file_tree(USER, group=ALPHA) if one.startswith("rollout")]
    service.note_file_reading(USER, [path], group=ALPHA)
    (output,) = service.conversation_outputs(USER, group=ALPHA)
    assert output.use_count == 1


def test_messages_without_ids_are_stored_once_in_a_group(service: Service) -> None:
    said = [{"role": "user", "content": one} for one in ("hello", "yes", "yes", "bye")]
    assert service.remember(USER, said[:3], "plain", group=ALPHA).stored == 3
    forgotten = service.documents(USER, session_id="plain", group=ALPHA)[0]
    assert service.forget(USER, document=forgotten.id, group=ALPHA).documents == 1
    again = service.remember(USER, said, "plain", group=ALPHA)
    assert (again.stored, again.known) == (1, 3)
    assert [one.text for one in service.documents(USER, session_id="plain", group=ALPHA)] == [
        "yes",
        "yes",
        "bye",
    ]


@pytest.mark.every_scheme
def test_a_user_of_before_has_a_secret_and_each_has_their_own(database_url: str, tmp_path: Path) -> None:
    rows = "insert into users (user_id, seq, created_at) values ('ada', 5, 0), ('bob', 5, 0);"
    make_old(database_url, tmp_path / "older", rows, before=19)
    with closing(open_database(database_url)) as database:
        with database.write() as tx:
            users.lock(tx, "eve", NOON)
        found = secrets_of(database)
    assert set(found) == {"ada", "bob", "eve"}
    assert len(set(found.values())) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in found.values())


def secrets_of(database: Database) -> dict[str, str]:
    with database.read() as connection:
        return dict(connection.rows("select user_id, id_secret from users"))


@pytest.mark.every_scheme
def test_the_secret_stays_in_the_database_and_goes_with_the_user(
    service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    (secret,) = secrets_of(service.database).values()
    visit = Visit(service, MAIN, furnish(service, MAIN, tmp_path / "transcripts"), tmp_path)
    for name, case in LOOKED_UP:
        assert secret not in answer(case, visit), name
    service.erase(USER)
    assert secrets_of(service.database) == {}
    service.set_fact(USER, KEY, "again")
    assert secrets_of(service.database)[USER] not in ("", secret)


def test_a_row_without_a_secret_has_ids_that_nobody_can_tell(service: Service) -> None:
    with service.database.write() as tx:
        tx.execute("update users set id_secret = '' where user_id = :user", user=USER)
    first, second = (service.documents(USER, group=ALPHA)[0].id for _ in range(2))
    assert first != second
