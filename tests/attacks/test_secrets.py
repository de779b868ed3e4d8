"""A secret in a conversation is in no file of ours, in no log, and in nothing that is sent to a model."""

import io
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from shepherd_memory.errors import InvalidInput
from shepherd_memory.service import Service
from shepherd_memory.work import jobs
from tests.acceptance.combinations import first_backend
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.secrets_said import TOKENS, Hoard
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import drain
from tests.endpoint import ScriptedEndpoint, Step, garbage, raw_reply, reply, status

USER = "steve"


@pytest.fixture
def settings(settings: SettingsFile) -> SettingsFile:
    settings.set(embedding_engine="onnx")
    return settings


def dump(database_url: str) -> bytes:
    """The database as whoever takes hold of its files sees it."""
    if database_url.startswith("sqlite"):
        path = Path(database_url.removeprefix("sqlite:///"))
        return b"\n".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")))
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "select schemaname, tablename from pg_tables where schemaname not in"
            " ('pg_catalog', 'information_schema')"
        ).fetchall()
        rows = [
            connection.execute(
                sql.SQL("select t::text from {} t").format(sql.Identifier(schema, name))
            ).fetchall()
            for schema, name in tables
        ]
    assert tables
    return "\n".join(row[0] for table in rows for row in table).encode()


def assert_unseen(hoard: Hoard, database_url: str, endpoint: ScriptedEndpoint, log: str) -> None:
    assert hoard.found_in(dump(database_url)) == {}
    assert hoard.found_in(b"\n".join(one.body for one in endpoint.requests)) == {}
    assert hoard.found_in(log.encode()) == {}


def show_everything(service: Service) -> None:
    """Whatever reads may log is logged."""
    service.status()
    service.facts(USER), service.context(USER), service.documents(USER), service.rejected(USER)
    service.unconfirmed(USER)
    assert b"".join(service.export(USER))


@first_backend
def test_secrets_that_are_said_are_nowhere(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    endpoint.default = reply({"code": "kudu"}, [("What is the code?", "kudu")])
    messages = [*hoard.messages(), *hoard.phrases()]
    with settings.service(worker=True) as service:
        for number, message in enumerate(messages):
            session_id = hoard.new(TOKENS[number % len(TOKENS)], "session id") if number % 3 else "plain"
            said = [{"id": f"message {number}", **message}]
            if number % 7 == 0:
                with pytest.raises(InvalidInput, match="group"):
                    service.remember(USER, said, session_id, group=hoard.new("github", "group"))
            service.remember(USER, said, session_id)
        drain(service)
        show_everything(service)
        assert len(endpoint.requests) > 100
        assert [one.content for one in service.unconfirmed(USER) if one.name == "code"] == ["kudu"]
        assert len(service.documents(USER)) == len(messages)
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)


@first_backend
def test_without_kept_documents_secrets_are_nowhere_either(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    settings.set(memory_documents="false")
    endpoint.default = status(503)
    with settings.service() as service:
        service.remember(USER, list(hoard.messages()), "s")
        assert service.status().items[jobs.WAITING] == 1
        assert_unseen(hoard, database_url, endpoint, log.text)


def tell_tales(hoard: Hoard) -> list[Step]:
    """Answers and errors of an endpoint that brings secrets of its own."""
    told = [hoard.new(kind, "an answer") for kind in TOKENS]
    facts = {f"key_{number}": secret for number, secret in enumerate(told)}
    pairs = [(f"What is {secret}?", "kudu") for secret in told] + [("What is it?", secret) for secret in told]
    fresh = hoard.new("openai", "an error")
    return [
        reply(facts, pairs),
        reply({secret: "kudu" for secret in told}),
        raw_reply(f"I think that {hoard.new('anthropic', 'prose')} is no JSON"),
        raw_reply(json.dumps({"facts": {"note": f"kudu {hoard.new('jwt', 'a longer value')}"}})),
        status(400, body={"error": {"message": f"cannot parse {hoard.new('github', 'a 400')}"}}),
        status(500, body=f"Traceback: token={hoard.new('gitlab', 'a 500')}"),
        status(429, retry_after=0, body={"error": {"message": f"quota of {hoard.new('aws_id', 'a 429')}"}}),
        status(401, body={"error": {"message": f"Incorrect API key provided: {fresh}"}}),
        status(307, headers={"Location": f"https://u:{hoard.new('stripe', 'a redirect')}@example.com/v1"}),
        status(400, body={"error": {"message": "no", "code": hoard.new("npm", "a code")}}),
        garbage(),
    ]


@first_backend
def test_secrets_that_the_endpoint_answers_are_nowhere(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    settings.set(memory_extraction_retry_interval=0.02)
    steps = tell_tales(hoard)
    # Twice each: an unreadable answer is asked for again.
    endpoint.script(*(step for step in steps for _ in range(2)))
    with settings.service(worker=True) as service:
        for number in range(12):
            service.remember(USER, [{"role": "user", "content": "My code is kudu."}], f"s{number}")
        endpoint.wait_for(2 * len(steps), 60)
        wait_until(lambda: service.rejected(USER), "refusals")
        show_everything(service)
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)


def test_secrets_that_are_stored_by_hand_are_nowhere(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    with settings.service() as service:
        for kind in TOKENS:
            service.set_fact(USER, f"about_{kind}", f"it is {hoard.new(kind, 'a fact')}")
            service.set_fact(USER, f"k_{hoard.new(kind, 'a key')}", "kudu")
            service.add_context(
                USER, f"Is {hoard.new(kind, 'a question')} right?", hoard.new(kind, "an answer")
            )
            service.add_document(
                USER,
                f"Notes: {hoard.new(kind, 'a document')}",
                session_id=hoard.new(kind, "a session"),
                message_id=hoard.new(kind, "a message id"),
                speaker_name=hoard.new(kind, "a speaker"),
                source=hoard.new(kind, "a source"),
                source_file=f"/tmp/{hoard.new(kind, 'a file')}",
                tool_names=hoard.new(kind, "tools"),
                cwd=f"/home/{hoard.new(kind, 'a folder')}",
                role=hoard.new(kind, "a role"),
                extra={"k": [hoard.new(kind, "extra")], hoard.new(kind, "an extra key"): 1},
            )
            with pytest.raises(InvalidInput, match="group"):
                service.add_document(USER, "Notes", group=hoard.new(kind, "a group"))
        show_everything(service)
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)


def test_secrets_of_an_imported_file_are_nowhere(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    with settings.service() as service:
        service.set_fact(USER, "colour", "PLACEHOLDER-A")
        service.add_context(USER, "What is PLACEHOLDER-B?", "PLACEHOLDER-C")
        service.add_document(USER, "PLACEHOLDER-D", session_id="PLACEHOLDER-E", speaker_name="PLACEHOLDER-F")
        exported = b"".join(service.export(USER)).decode()
        for letter in "ABCDEF":
            exported = exported.replace(f"PLACEHOLDER-{letter}", hoard.new("github", f"import {letter}"))
        service.import_lines("carla", io.BytesIO(exported.encode()))
        assert len(service.documents("carla")) == 1
        assert_unseen(hoard, database_url, endpoint, log.text)


OLD_TABLES = """
create table context (id integer primary key, user_message text, assistant_response text, timestamp {real},
    content_hash text unique, user_id text default 'local');
create table facts (user_id text, key text, value text, created_at {real}, updated_at {real},
    primary key (user_id, key));
"""


def write_old_database(database_url: str, hoard: Hoard) -> None:
    pairs = [
        (
            n,
            f"Is {hoard.new(kind, 'an old question')} good?",
            f"No, {hoard.new(kind, 'an old answer')}",
            1.7e9,
            str(n),
        )
        for n, kind in enumerate(TOKENS)
    ]
    facts = [(USER, f"key_{kind}", hoard.new(kind, "an old fact"), 1.7e9, 1.7e9) for kind in TOKENS]
    fill_context = "insert into context values (?, ?, ?, ?, ?, 'steve')"
    fill_facts = "insert into facts values (?, ?, ?, ?, ?)"
    if database_url.startswith("sqlite"):
        with sqlite3.connect(urlsplit(database_url).path[1:] or "") as old:
            old.executescript(OLD_TABLES.format(real="real"))
            old.executemany(fill_context, pairs)
            old.executemany(fill_facts, facts)
        old.close()
        return
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        cursor.execute(OLD_TABLES.format(real="double precision").encode())
        cursor.executemany(fill_context.replace("?", "%s").encode(), pairs)
        cursor.executemany(fill_facts.replace("?", "%s").encode(), facts)


@pytest.mark.parametrize("has_tables", [False])
def test_secrets_of_an_old_database_are_nowhere(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
) -> None:
    write_old_database(database_url, hoard)
    assert len(hoard.found_in(dump(database_url))) == 3 * len(TOKENS)
    with settings.service() as service:
        assert len(service.context(USER)) > 0
        assert len(service.facts(USER)) == len(TOKENS)
        assert_unseen(hoard, database_url, endpoint, log.text)
    assert_unseen(hoard, database_url, endpoint, log.text)


@first_backend
def test_the_endpoint_key_is_in_no_log_status_or_database(
    settings: SettingsFile,
    database_url: str,
    endpoint: ScriptedEndpoint,
    hoard: Hoard,
    log: pytest.LogCaptureFixture,
    processes: Processes,
) -> None:
    key = "plain-looking-key-of-the-endpoint"
    hoard.made[key] = "the api key"
    settings.set(memory_extraction_api_key=key, memory_extraction_retry_interval=0.02)
    quoting = {"error": {"message": f"wrong key {key} for this model"}}
    endpoint.script(status(401, body=quoting), status(500, body=f"Bearer {key} crashed it"))
    endpoint.script(status(400, body=quoting), reply({"code": "kudu"}))
    with settings.service() as service:
        service.remember(USER, [{"role": "user", "content": "My code is kudu."}], "s")
        processes.python("shepherd_memory", "--debug", "--config", settings.path, "worker")
        drain(service)
        with settings.service(worker=True) as inside:
            inside.remember(USER, [{"role": "user", "content": "My town is Lisbon."}], "t")
            drain(inside)
        seen = [repr(service.status()), repr(service.config), *shown(service), processes.logs(), log.text]
        assert all(one.headers["authorization"] == f"Bearer {key}" for one in endpoint.requests)
        assert len(endpoint.requests) >= 5
        assert_unseen(hoard, database_url, endpoint, "\n".join(seen))


def shown(service: Service) -> Iterable[str]:
    return [repr(service.items(USER)), repr(service.rejected(USER)), repr(service.facts(USER))]
