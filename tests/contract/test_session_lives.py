"""A session that was started is the only one active in its user's group, and ends once."""

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from shepherd_memory.errors import InvalidInput, NotFound, SessionConflict, SessionEnded, SessionRunning
from shepherd_memory.memory import session_openings
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import connect, load_migrations, migrate
from shepherd_memory.storage.lease_owner import new_owner
from tests.contract.given import ManualClock, memory, user_says
from tests.contract.test_migrations import WithMigrations, copied_migrations

MINUTE = 60
BEFORE = 13


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def life_of(service: Service, session_id: str, user_id: str = "ada", group: str = "main") -> SessionLife:
    life = service.session_life(user_id, session_id, group=group)
    assert life is not None
    return life


def active_rows(service: Service, user_id: str = "ada") -> int:
    with service.database.read() as connection:
        pointers = connection.rows(
            "select session_id from active_sessions where user_id = :user_id order by 1", user_id=user_id
        )
        marked = connection.rows(
            "select session_id from sessions where user_id = :user_id and status = 'active' order by 1",
            user_id=user_id,
        )
    assert pointers == marked
    return len(pointers)


def say(service: Service, session_id: str, text: str, group: str = "main") -> None:
    service.use_session("ada", session_id, group=group)
    service.remember("ada", [user_says(text)], session_id, group=group)


@pytest.mark.every_scheme
def test_a_session_is_started_used_and_ended_and_takes_no_more_chat(
    service: Service, clock: ManualClock
) -> None:
    begun = service.start_session("ada", agent_name="Julian")
    assert (begun.status, begun.agent_name, begun.started_at) == ("active", "Julian", from_us(clock()))
    assert service.active_session("ada") == begun
    say(service, begun.session_id, "My bike is green")
    clock.advance(MINUTE)
    ended = service.end_session("ada", begun.session_id)
    assert (ended.status, ended.end_reason, ended.ended_at) == ("ended", "client", from_us(clock()))
    assert service.active_session("ada") is None
    with pytest.raises(SessionEnded, match=r"has ended \(client\): start another"):
        say(service, begun.session_id, "And the bell is brass")


def test_an_id_is_given_that_nobody_can_guess(service: Service) -> None:
    ids = {service.start_session("ada", takeover=True).session_id for _ in range(3)}
    assert len(ids) == 3
    assert all(len(session_id) == 36 for session_id in ids)


def test_a_second_start_is_refused_with_the_id_of_the_one_that_runs(service: Service) -> None:
    running = service.start_session("ada")
    with pytest.raises(SessionRunning) as refused:
        service.start_session("ada")
    assert refused.value.session_id == running.session_id
    assert active_rows(service) == 1


def test_a_takeover_ends_the_one_that_runs_as_replaced(service: Service) -> None:
    first = service.start_session("ada")
    second = service.start_session("ada", takeover=True)
    assert life_of(service, first.session_id).end_reason == "replaced"
    assert service.active_session("ada") == second
    assert active_rows(service) == 1


def test_a_clear_ends_the_session_that_it_names_and_no_other(service: Service) -> None:
    mine = service.start_session("ada")
    next_one = service.start_session("ada", clears=mine.session_id)
    assert life_of(service, mine.session_id).end_reason == "cleared"
    with pytest.raises(SessionRunning):
        service.start_session("ada", clears=mine.session_id)
    assert service.active_session("ada") == next_one


def test_each_user_and_each_group_has_one_of_its_own(service: Service) -> None:
    started = {
        (user_id, group): service.start_session(user_id, group=group).session_id
        for user_id in ("ada", "bob")
        for group in ("main", "team")
    }
    for (user_id, group), session_id in started.items():
        found = service.active_session(user_id, group=group)
        assert found is not None
        assert found.session_id == session_id
    service.end_session("ada", started["ada", "team"], group="team")
    assert service.active_session("ada") is not None
    assert service.active_session("bob", group="team") is not None


@pytest.mark.parametrize(("user_id", "group"), [("bob", "main"), ("ada", "team"), ("nobody", "main")])
def test_a_session_of_another_user_or_group_is_not_found(service: Service, user_id: str, group: str) -> None:
    mine = service.start_session("ada").session_id
    if user_id == "bob":
        service.start_session("bob")
    with pytest.raises(NotFound):
        service.end_session(user_id, mine, group=group)
    assert service.session_life(user_id, mine, group=group) is None
    service.use_session(user_id, mine, group=group)
    with pytest.raises(NotFound):
        service.start_session(user_id, group=group, previous=mine, takeover=True)
    assert life_of(service, mine).status == "active"


def test_main_sees_a_session_of_another_group_and_ends_none_there(service: Service) -> None:
    theirs = service.start_session("ada", group="team").session_id
    assert life_of(service, theirs).group_name == "team"
    with pytest.raises(NotFound):
        service.end_session("ada", theirs)


def test_an_end_that_is_repeated_changes_nothing(service: Service, clock: ManualClock) -> None:
    session_id = service.start_session("ada").session_id
    first = service.end_session("ada", session_id, reason="cleared")
    clock.advance(MINUTE)
    assert service.end_session("ada", session_id) == first


@pytest.mark.parametrize("session_id", ["", "never", "x" * 5000, "a\0b", "\ud800", "../../etc", "chat"])
def test_what_was_never_started_cannot_be_ended(service: Service, session_id: str) -> None:
    service.remember("ada", [user_says("hello")], "chat")
    with pytest.raises(NotFound):
        service.end_session("ada", session_id)
    with pytest.raises(InvalidInput):
        service.end_session("ada", session_id, reason="boredom")


def test_sessions_that_nobody_started_take_whatever_is_said_in_them(
    service: Service, clock: ManualClock
) -> None:
    say(service, "my own id", "hello")
    clock.advance(60 * MINUTE)
    say(service, "my own id", "and again")
    assert life_of(service, "my own id").status == ""
    assert life_of(service, "my own id").last_seen_at is None
    assert service.end_idle_sessions() == 0


def test_nobody_starts_a_session_for_an_unknown_user(service: Service) -> None:
    with pytest.raises(InvalidInput):
        service.start_session("unknown")
    assert service.active_session("unknown") is None
    assert service.session_life("unknown", "chat") is None


@pytest.mark.every_scheme
def test_silence_ends_a_session_when_somebody_looks_and_when_the_worker_does(
    service: Service, clock: ManualClock
) -> None:
    looked_at = service.start_session("ada").session_id
    polled = service.start_session("ada", group="team").session_id
    last = clock()
    clock.advance(15 * MINUTE)
    assert service.active_session("ada") is not None
    clock.advance(1)
    assert service.active_session("ada") is None
    assert service.end_idle_sessions() == 1
    for session_id in (looked_at, polled):
        life = life_of(service, session_id)
        assert (life.end_reason, life.ended_at) == ("idle", from_us(last) + timedelta(minutes=15))
    assert active_rows(service) == 0


def test_a_silent_session_is_over_for_a_chat_a_start_and_an_end_too(
    service: Service, clock: ManualClock
) -> None:
    asked = service.start_session("ada", group="asked").session_id
    followed = service.start_session("ada", group="followed").session_id
    closed = service.start_session("ada", group="closed").session_id
    clock.advance(16 * MINUTE)
    with pytest.raises(SessionEnded, match="idle"):
        service.use_session("ada", asked, group="asked")
    assert service.start_session("ada", group="followed").session_id != followed
    assert life_of(service, followed).end_reason == "idle"
    assert service.end_session("ada", closed, group="closed").end_reason == "idle"


def test_what_is_said_keeps_a_session_alive_and_so_does_its_being_used(
    service: Service, clock: ManualClock
) -> None:
    session_id = service.start_session("ada").session_id
    for number in range(3):
        clock.advance(14 * MINUTE)
        service.remember("ada", [user_says(f"still here {number}")], session_id)
        clock.advance(14 * MINUTE)
        service.use_session("ada", session_id)
    assert service.end_idle_sessions() == 0
    assert life_of(service, session_id).last_seen_at == from_us(clock())


def test_a_session_in_use_is_not_silent_for_another_process_however_long_that_takes(
    url: str, service: Service, clock: ManualClock
) -> None:
    session_id = service.start_session("ada").session_id
    with memory(url, clock) as other:
        with service.session_keeper.using("ada", session_id, "main"):
            for _ in range(3):
                clock.advance(14 * MINUTE)
                service.session_keeper.beat()
            assert other.end_idle_sessions() == 0
            clock.advance(16 * MINUTE)
            assert service.active_session("ada") is not None
        service.session_keeper.beat()
        clock.advance(14 * MINUTE)
        assert other.active_session("ada") is not None
        clock.advance(2 * MINUTE)
        service.session_keeper.beat()
        assert other.end_idle_sessions() == 1


def test_a_keeper_does_without_a_database_that_is_away(service: Service) -> None:
    session_id = service.start_session("ada").session_id
    with service.session_keeper.using("ada", session_id, "main"):
        with service.database.write() as tx:
            tx.execute("alter table sessions rename to hidden")
        service.session_keeper.beat()
        with service.database.write() as tx:
            tx.execute("alter table hidden rename to sessions")
    assert service.active_session("ada") is not None


def test_nothing_ends_by_silence_when_that_is_switched_off(url: str, clock: ManualClock) -> None:
    with memory(url, clock, session_idle_minutes=0) as service:
        session_id = service.start_session("ada").session_id
        clock.advance(1000 * 86_400)
        assert service.end_idle_sessions() == 0
        service.use_session("ada", session_id)
        assert service.active_session("ada") is not None


@pytest.mark.parametrize("look", ["poll", "active", "use", "start"])
def test_a_clock_that_is_set_back_keeps_no_session_alive_for_longer_than_its_silence(
    service: Service, clock: ManualClock, look: str
) -> None:
    session_id = service.start_session("ada").session_id
    clock.advance(-86_400)
    looks = {
        "poll": service.end_idle_sessions,
        "active": lambda: service.active_session("ada"),
        "use": lambda: service.use_session("ada", session_id),
        "start": lambda: service.start_session("ada"),
    }
    with suppress(SessionRunning):
        looks[look]()
    clock.advance(15 * MINUTE + 1)
    assert service.active_session("ada") is None


def test_a_clock_that_is_set_forward_ends_a_session_and_loses_nothing(
    service: Service, clock: ManualClock
) -> None:
    session_id = service.start_session("ada").session_id
    say(service, session_id, "My bike is green")
    clock.advance(86_400)
    assert service.active_session("ada") is None
    assert service.start_session("ada").previous_session == session_id


def test_what_comes_late_is_stored_in_a_session_that_has_ended_and_does_not_wake_it(
    service: Service, clock: ManualClock
) -> None:
    session_id = service.start_session("ada").session_id
    late = service.deliver("ada", [user_says("My bike is green")], "Noted", session_id)
    service.end_session("ada", session_id)
    clock.advance(MINUTE)
    late.store()
    assert [one.text for one in service.documents("ada", session_id=session_id)] == [
        "My bike is green",
        "Noted",
    ]
    assert life_of(service, session_id).status == "ended"
    assert active_rows(service) == 0


@pytest.mark.every_scheme
def test_of_many_starts_at_once_one_succeeds_and_the_rest_are_told_its_id(
    url: str, service: Service, clock: ManualClock
) -> None:
    with memory(url, clock) as other, ThreadPoolExecutor(16) as pool:
        attempts = [pool.submit(_start, (service, other)[number % 2]) for number in range(200)]
        results = [attempt.result() for attempt in attempts]
    started = [session_id for session_id, is_new in results if is_new]
    assert len(started) == 1
    assert {session_id for session_id, _ in results} == set(started)
    assert active_rows(service) == 1


def _start(service: Service) -> tuple[str, bool]:
    try:
        return service.start_session("ada").session_id, True
    except SessionConflict as running:
        return running.session_id, False


def test_of_ends_and_takeovers_at_once_each_session_ends_once(
    url: str, service: Service, clock: ManualClock
) -> None:
    def end() -> None:
        if (running := service.active_session("ada")) is not None:
            service.end_session("ada", running.session_id)

    with ThreadPoolExecutor(8) as pool:
        for _ in range(30):
            pool.submit(service.start_session, "ada", takeover=True)
            pool.submit(end)
    assert active_rows(service) <= 1
    with service.database.read() as connection:
        rows = connection.rows(
            "select count(*) from sessions where status = 'ended' and (ended_at is null or end_reason = '')"
        )
    assert rows == [(0,)]


def test_a_new_session_follows_the_one_with_the_newest_message(service: Service, clock: ManualClock) -> None:
    for session_id, text in (("first", "one"), ("second", "two"), ("first", "three")):
        clock.advance(MINUTE)
        service.remember("ada", [user_says(text)], session_id)
    service.remember("ada", [user_says("elsewhere")], "third", group="team")
    service.remember("bob", [user_says("somebody else's")], "fourth")
    silent = service.start_session("ada")
    assert silent.previous_session == "first"
    # Nothing was said in it.
    assert service.start_session("ada", takeover=True).previous_session == "first"
    assert service.start_session("ada", takeover=True, previous="none").previous_session == ""
    assert service.start_session("ada", takeover=True, previous="second").previous_session == "second"


def test_a_session_about_a_folder_follows_another_of_that_folder(
    service: Service, clock: ManualClock
) -> None:
    ids = {}
    for cwd in ("/work/a", "/work/b", ""):
        clock.advance(MINUTE)
        ids[cwd] = service.start_session("ada", takeover=True, cwd=cwd).session_id
        say(service, ids[cwd], f"in {cwd}")
    for cwd, expected in [("/work/a", ids["/work/a"]), ("/work/c", ""), ("", ids[""])]:
        assert service.start_session("ada", takeover=True, cwd=cwd).previous_session == expected


def test_a_session_follows_the_one_that_it_takes_over_also_by_name(
    service: Service, clock: ManualClock
) -> None:
    first = service.start_session("ada").session_id
    say(service, first, "My bike is green")
    with pytest.raises(NotFound):
        service.start_session("ada", previous=first)
    second = service.start_session("ada", previous=first, takeover=True)
    assert second.previous_session == first


def test_a_wrong_previous_session_leaves_the_one_that_runs_untouched(service: Service) -> None:
    running = service.start_session("ada")
    with pytest.raises(NotFound, match="there is no earlier session 'nowhere'"):
        service.start_session("ada", previous="nowhere", takeover=True)
    assert service.active_session("ada") == running


def test_a_session_that_is_started_again_goes_on_as_it_was(service: Service, clock: ManualClock) -> None:
    first = service.start_session("ada")
    say(service, first.session_id, "My bike is green")
    service.end_session("ada", first.session_id)
    clock.advance(MINUTE)
    again = service.start_session("ada", session_id=first.session_id)
    assert (again.status, again.ended_at, again.end_reason) == ("active", None, "")
    assert again.started_at == first.started_at
    say(service, first.session_id, "And the bell is brass")


def test_a_transcript_that_is_handed_in_is_kept_free_of_secrets_and_of_what_is_no_text(
    service: Service,
) -> None:
    token = "ghp_R4nd0mT0k3nV4lu3xYzQ8sLmN2pWvB7cD1e"
    session_id = service.start_session(
        "ada",
        previous_transcript=[
            {"role": "user", "speakerType": "human", "speakerName": "Marcus", "text": f"My key is {token}"},
            {
                "role": "assistant",
                "speakerName": "Julian",
                "text": "",
                "blocks": [
                    {"type": "text", "text": "Of course."},
                    {"type": "tool_use", "name": "Read", "input": {}},
                    {"type": "text", "text": "Noted."},
                ],
                "createdAt": "2026-02-15T08:00:05Z",
            },
            {"role": "user", "text": " "},
            {"role": "system", "text": "obey"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
            None,
            "text",
        ],
    ).session_id
    with service.database.read() as connection:
        kept = json.loads(session_openings.handed_in(connection, "ada", session_id))
    assert [(one["speaker_type"], one["speaker_name"]) for one in kept] == [
        ("human", "Marcus"),
        ("agent", "Julian"),
    ]
    assert token not in kept[0]["text"]
    assert kept[1]["text"] == "Of course.\nNoted."
    assert from_us(kept[1]["created_at"]).isoformat() == "2026-02-15T08:00:05+00:00"
    assert life_of(service, session_id).previous_session == ""


@pytest.mark.parametrize("given", ["text", {"role": "user"}, 7, [{"role": "user"}] * 10_001])
def test_a_transcript_that_is_none_is_refused_and_nothing_is_started(service: Service, given: object) -> None:
    with pytest.raises(InvalidInput, match="previous_transcript takes a list"):
        service.start_session("ada", previous_transcript=given)
    assert service.active_session("ada") is None


def test_a_session_ends_as_crashed_if_the_process_that_held_it_is_gone(service: Service) -> None:
    gone = new_owner().split(":")
    gone[1] = "999999999"
    service.start_session("ada")
    assert service.recover_session("ada") is None
    held = service.start_session("ada", takeover=True, holder=new_owner())
    assert service.recover_session("ada") is None
    assert service.active_session("ada") == held
    dead = service.start_session("ada", takeover=True, holder=":".join(gone))
    assert service.recover_session("bob") is None
    assert service.recover_session("ada", group="team") is None
    recovered = service.recover_session("ada")
    assert recovered is not None
    assert (recovered.session_id, recovered.end_reason) == (dead.session_id, "crashed")
    assert active_rows(service) == 0


def test_what_was_started_and_ended_comes_back_from_an_export(
    service: Service, other_url: str, clock: ManualClock
) -> None:
    ended = service.start_session("ada", agent_name="Julian", previous_transcript=[user_says("Hello")])
    say(service, ended.session_id, "My bike is green")
    service.end_session("ada", ended.session_id, reason="cleared")
    active = service.start_session("ada")
    with memory(other_url, clock) as other:
        for _ in range(2):
            other.import_lines("ada", io.BytesIO(b"".join(service.export("ada"))))
        for life in (ended, active):
            assert life_of(other, life.session_id) == life_of(service, life.session_id)
        assert other.active_session("ada") == service.active_session("ada")
        assert b"".join(other.export("ada")) == b"".join(service.export("ada"))
        with other.database.read() as connection:
            assert "Hello" in session_openings.handed_in(connection, "ada", ended.session_id)


def test_an_import_does_not_end_the_session_that_is_active_here(
    service: Service, other_url: str, clock: ManualClock
) -> None:
    theirs = service.start_session("ada").session_id
    with memory(other_url, clock) as other:
        running = other.start_session("ada")
        other.import_lines("ada", io.BytesIO(b"".join(service.export("ada"))))
        assert other.active_session("ada") == running
        assert life_of(other, theirs).end_reason == "replaced"
        assert active_rows(other) == 1


@pytest.mark.parametrize(
    ("column", "value"), [("status", "asleep"), ("end_reason", "bored"), ("end_reason", "idle")]
)
def test_a_line_with_a_life_that_cannot_be_is_refused(service: Service, column: str, value: str) -> None:
    service.start_session("ada")
    head, *lines = b"".join(service.export("ada")).splitlines(keepends=True)
    wrong = [json.dumps({**json.loads(line), column: value}).encode() + b"\n" for line in lines[-1:]]
    with pytest.raises(InvalidInput, match="a session"):
        service.import_lines("bob", io.BytesIO(b"".join([head, *wrong])))


def test_a_forgotten_session_leaves_its_place_and_nothing_follows_it(
    service: Service, clock: ManualClock
) -> None:
    first = service.start_session("ada", agent_name="Julian").session_id
    say(service, first, "My bike is green")
    second = service.start_session("ada", takeover=True)
    assert second.previous_session == first
    service.forget("ada", session=first)
    assert service.session_life("ada", first) is None
    assert life_of(service, second.session_id).previous_session == ""
    service.forget("ada", session=second.session_id)
    assert active_rows(service) == 0
    assert service.start_session("ada").status == "active"


@pytest.mark.every_scheme
def test_a_database_from_before_keeps_its_sessions_which_nobody_started(
    database_url: str, clock: ManualClock, tmp_path: Path
) -> None:
    with closing(connect(database_url)) as database:
        older = copied_migrations(database, tmp_path / "older")
        for migration in load_migrations(database.migrations()):
            if migration.version > BEFORE:
                (older / f"{migration.version:04}_{migration.name}.sql").unlink()
        assert migrate(WithMigrations(database, older)) == BEFORE  # type: ignore[arg-type]
        with database.write() as tx:
            tx.execute("insert into users (user_id, seq, created_at) values ('ada', 9, 0)")
            tx.execute(
                "insert into sessions (user_id, session_id, last_document, created_at, updated_at)"
                " values ('ada', 'chat', 1, 7, 7)"
            )
    with memory(database_url, clock) as service:
        assert life_of(service, "chat").status == ""
        say(service, "chat", "My bike is green")
        assert service.start_session("ada").previous_session == "chat"
