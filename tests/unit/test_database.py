"""The boundary to a database: what the core needs of it that no database has to be there for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.storage.database import nearest_by_scan
from shepherd_memory.storage.rows import as_json, build
from shepherd_postgres.database import split_schema, to_psycopg
from shepherd_sqlite.database import parse_url, split_statements


def test_named_parameters_become_those_of_psycopg_and_nothing_else_does() -> None:
    assert to_psycopg("select :a, x::int where y = :long_name2") == (
        "select %(a)s, x::int where y = %(long_name2)s"
    )
    assert to_psycopg("select 1 % 2 where a like 'x%'") == "select 1 %% 2 where a like 'x%%'"


@pytest.mark.parametrize(
    ("url", "dsn", "schema"),
    [
        ("postgresql://h/db", "postgresql://h/db", "public"),
        ("postgres://h/db?schema=mem", "postgresql://h/db", "mem"),
        ("postgresql://h/db?schema=a_1&sslmode=require", "postgresql://h/db?sslmode=require", "a_1"),
        ("postgresql://u:p%40@h/db?host=%2Ftmp%2Fx", "postgresql://u:p%40@h/db?host=%2Ftmp%2Fx", "public"),
    ],
)
def test_the_schema_is_taken_out_of_a_postgres_url(url: str, dsn: str, schema: str) -> None:
    assert split_schema(url) == (dsn, schema)


@pytest.mark.parametrize("schema", ["", "A", "a-b", "a;b", '"a"', "1a", "x" * 64, "a b"])
def test_a_name_that_cannot_be_a_schema_is_refused(schema: str) -> None:
    with pytest.raises(DatabaseRefused):
        split_schema(f"postgresql://h/db?schema={schema}")


def test_sqlite_urls_and_paths_name_files() -> None:
    assert parse_url("/tmp/a b.db").path == Path("/tmp/a b.db")
    assert parse_url("sqlite:////tmp/a%20b.db").path == Path("/tmp/a b.db")
    assert parse_url("sqlite:///x.db").path == Path("x.db").absolute()
    assert parse_url("~/x.db").path == Path("~/x.db").expanduser()
    assert parse_url("sqlite:///x.db?synchronous=FULL").synchronous == "full"


def test_a_script_is_split_into_its_statements() -> None:
    script = """
-- a comment; with a semicolon
create table a (b text default ';');
create trigger t after insert on a begin
  delete from a;
  select 1;
end;
select 2"""
    first, second, third = split_statements(script)
    assert first.endswith("';');")
    assert second.strip().startswith("create trigger")
    assert second.endswith("end;")
    assert third.strip() == "select 2"


def test_the_nearest_by_scan_are_ordered_and_a_zero_vector_is_near_nothing() -> None:
    ids = np.asarray([1, 2, 3])
    vectors = np.asarray([[1, 0], [0, 0], [1, 1]], dtype=np.float32)
    found = nearest_by_scan(ids, vectors, [1.0, 0.0], 3)
    assert [n.id for n in found] == [1, 3, 2]
    assert found[-1].cosine == 0
    assert all(n.cosine == 0 for n in nearest_by_scan(ids, vectors, [0.0, 0.0], 3))


@dataclass(frozen=True)
class Row:
    name: str
    seen_at: object
    lease_until: object
    latest: int


def test_columns_that_end_like_moments_become_moments() -> None:
    row = build(Row, ("x", 0, None, 5))
    assert str(row.seen_at) == "1970-01-01 00:00:00+00:00"
    assert (row.lease_until, row.latest) == (None, 5)
    assert as_json(row) == {"name": "x", "seen_at": "1970-01-01T00:00:00Z", "lease_until": None, "latest": 5}
