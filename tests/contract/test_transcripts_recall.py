"""What was taken in is found by its own user, in its project, source and time; and no secret is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us, iso
from shepherd_memory.text.ids import digest_of
from tests.contract.given import ManualClock, memory
from tests.contract.recalling import hits, recalling
from tests.databases import DatabaseSource
from tests.transcripts import BEGAN, MINUTE, agent_line, codex_lines, exchange, user_line, write

ADA, BOB = "ada", "bob"
SECRET = "sk-ant-api03-" + "Zq8vT2nLx4WcR7yKp1Bd" * 4


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with recalling(url, clock) as opened:
        yield opened


def in_folder(cwd: str, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**line, "cwd": cwd} for line in lines]


PROJECTS = {
    "posix": "/home/ada/work/kettle",
    "deeper": "/home/ada/work/kettle/src",
    "alike": "/home/ada/work/kettle-old",
    "windows": "C:\\Users\\ada\\teapot",
    "none": "",
}


@pytest.fixture
def projects(service: Service, tmp_path: Path) -> Service:
    """Ada said the same kind of thing in several folders, and once to Codex."""
    for number, (name, cwd) in enumerate(PROJECTS.items()):
        said = user_line(number * 100, f"the whistle of {name} is shrill")
        service.transcripts.ingest(
            ADA, write(tmp_path / "claude" / "a" / f"{name}.jsonl", in_folder(cwd, said))
        )
    rollout = codex_lines(1, cwd="/srv/codex")
    rollout[1]["payload"]["message"] = "the whistle of codex is shrill"
    service.transcripts.ingest(ADA, write(tmp_path / "codex" / "a" / "rollout.jsonl", rollout))
    service.remember(ADA, [{"role": "user", "content": "the whistle of live is shrill"}], "live")
    service.set_fact(ADA, "whistle", "shrill")
    return service


def found(service: Service, user_id: str = ADA, **options: Any) -> set[str]:
    texts = [hit.text for hit in hits(service, user_id, "the shrill whistle", **options)]
    return {text.split()[3] for text in texts if text.startswith("the whistle of")} | {
        "fact" for text in texts if text.startswith("whistle:")
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {*PROJECTS, "codex", "live", "fact"}),
        ({"project": "kettle"}, {"posix", "deeper"}),
        ({"project": "kettle/"}, {"posix", "deeper"}),
        ({"project": "/home/ada/work/kettle"}, {"posix", "deeper"}),
        ({"project": "/home/ada/work/kettle/src"}, {"deeper"}),
        ({"project": "/home/ada/work"}, {"posix", "deeper", "alike"}),
        ({"project": "teapot"}, {"windows"}),
        ({"project": "C:\\Users\\ada"}, {"windows"}),
        ({"project": "C:/Users/ada/teapot"}, {"windows"}),
        ({"project": "nowhere"}, set()),
        ({"source": "codex"}, {"codex"}),
        ({"source": "claude-code"}, set(PROJECTS)),
        ({"source": "live"}, {"live"}),
        ({"source": "claude-code", "project": "kettle"}, {"posix", "deeper"}),
        ({"source": "codex", "project": "kettle"}, set()),
        ({"since": iso(BEGAN + 100 * MINUTE), "source": "claude-code"}, {*PROJECTS} - {"posix"}),
        ({"until": from_us(BEGAN + 100 * MINUTE)}, {"posix", "codex"}),
        ({"since": iso(BEGAN + 100 * MINUTE), "until": iso(BEGAN + 201 * MINUTE)}, {"deeper", "alike"}),
        ({"kinds": ["fact"], "project": "kettle"}, set()),
    ],
)
def test_recall_finds_within_a_project_a_source_and_a_stretch_of_time(
    projects: Service, options: dict[str, Any], expected: set[str]
) -> None:
    assert found(projects, **options) == expected
    assert found(projects, BOB, **options) == set()


def test_folders_and_sources_of_any_length_and_origin_are_found_by(service: Service, tmp_path: Path) -> None:
    long = "/srv/" + "/".join(digest_of(str(number)) for number in range(100))
    said = in_folder(long, user_line(0, "the whistle of long is shrill"))
    path = write(tmp_path / "claude" / "a" / "long.jsonl", said)
    assert service.transcripts.ingest(ADA, path).entries == 1
    for name, source, cwd in [("named", long, ""), ("noted", "notes", "/srv/notes"), ("typed", "live", "/x")]:
        service.add_document(ADA, f"the whistle of {name} is shrill", source=source, cwd=cwd)
    assert found(service, project="/srv") == {"long", "noted"}
    assert found(service, project="/x") == {"typed"}
    assert found(service, project=long) == {"long"}
    assert found(service, source=long) == {"named"}
    assert found(service, source="notes", project="/srv") == {"noted"}
    assert found(service, source="live") == {"typed"}


@pytest.mark.every_scheme
def test_two_users_who_take_in_the_same_files_never_meet(service: Service, tmp_path: Path) -> None:
    base = tmp_path / "base"
    path = write(base / "kettle" / "session.jsonl", exchange(0, 8))
    for user_id in (ADA, BOB):
        assert service.transcripts.ingest(user_id, path).entries == 8
    write(path, [*exchange(0, 8), user_line(20, "only bob read this whistle")])
    service.transcripts.ingest(BOB, path)
    assert not any("whistle" in hit.text for hit in hits(service, ADA, "whistle"))
    assert hits(service, BOB, "whistle")[0].text == "only bob read this whistle"
    ada, bob = ([one.id for one in service.documents(user)] for user in (ADA, BOB))
    assert service.transcripts.around(ADA, bob[-1], 5) == []
    assert [one.id for one in service.transcripts.around(BOB, bob[-1], 2)] == bob[-3:]
    assert [one.id for one in service.transcripts.read(ADA, "session")] == ada
    service.erase(BOB)
    assert [one.id for one in service.transcripts.read(ADA, "session")] == ada
    assert service.transcripts.files(BOB) == []


def test_neighbours_and_pages_never_leave_the_session(service: Service, tmp_path: Path) -> None:
    paths = [tmp_path / "base" / "kettle" / f"s{number}.jsonl" for number in range(2)]
    # Their documents stand between each other: first 4 of each, then the others.
    for last in (4, 8):
        for path in paths:
            service.transcripts.ingest(ADA, write(path, exchange(0, last)))
    for session in ("s0", "s1"):
        read = list(service.transcripts.read(ADA, session))
        assert [one.session_id for one in read] == [session] * 8
        around = service.transcripts.around(ADA, read[4].id, 2)
        assert [one.id for one in around] == [one.id for one in read[2:7]]
        assert [one.id for one in service.transcripts.around(ADA, read[0].id, 0)] == [read[0].id]


def test_copies_of_a_session_are_found_as_one(service: Service, tmp_path: Path) -> None:
    for name in ("original", "fork"):
        said = [user_line(0, "the rare whistle of copies")]
        service.transcripts.ingest(ADA, write(tmp_path / "base" / "kettle" / f"{name}.jsonl", said))
    assert len(hits(service, ADA, "the rare whistle of copies")) == 1


def secret_lines() -> list[dict[str, Any]]:
    lines = [
        user_line(0, f"my key is {SECRET}"),
        agent_line(1, f"So the key is {SECRET}."),
        agent_line(2, f"curl -H 'x-api-key: {SECRET}'", tool="Bash"),
        agent_line(3, "ls", tool=SECRET),
        user_line(4, "nothing", cwd=f"/work/{SECRET}", gitBranch=SECRET, entrypoint=SECRET),
        user_line(5, "by its id", uuid=SECRET),
        {**agent_line(6, "by its message's id"), "message": {**agent_line(6)["message"], "id": SECRET}},
    ]
    return [{**line, "cwd": f"/work/{SECRET}", "gitBranch": SECRET, "version": SECRET} for line in lines]


@pytest.mark.every_scheme
def test_a_secret_is_nowhere_in_the_database(
    url: str, database_source: DatabaseSource, clock: ManualClock, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    with memory(url, clock) as service:
        paths = [
            write(base / "kettle" / "session.jsonl", secret_lines()),
            write(base / SECRET / f"{SECRET}.jsonl", exchange(0, 3)),
            write(base / "kettle" / "rollout.jsonl", codex_lines(2, cwd=f"/work/{SECRET}")),
        ]
        for path in paths:
            assert service.transcripts.ingest(ADA, path).problem == ""
        paths[0].unlink()
        service.transcripts.ingest(ADA, paths[0])
        with service.database.read() as connection:
            for table in service.database.tables(connection):
                assert SECRET not in repr(connection.rows(f"select * from {table}")), table
        assert len(service.documents(ADA)) == 7 + 3 + 6
        assert len({file.file_key for file in service.transcripts.files(ADA)}) == 3
        write(paths[1], exchange(0, 5))
        assert service.transcripts.ingest(ADA, paths[1]).entries == 2
    assert SECRET.encode() not in database_source.dump(url)


@pytest.mark.every_scheme
def test_a_path_too_long_for_an_index_is_a_key_all_the_same(service: Service, tmp_path: Path) -> None:
    folder = tmp_path / "base"
    deep = folder.joinpath(*(["ü" * 100] * 12))
    for name in ("one", "two"):
        assert (
            service.transcripts.ingest(ADA, write(deep / f"{name}.jsonl", exchange(0, 3)), folder).entries
            == 3
        )
    assert len(service.transcripts.files(ADA)) == 2
