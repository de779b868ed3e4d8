"""API keys: stored as hashes only, found by their text only, and useless once revoked."""

import dataclasses
import string
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.maintenance.erasure import erase
from shepherd_memory.memory import api_keys
from shepherd_memory.memory.api_keys import KEY_PREFIX, ApiKey
from shepherd_memory.storage.clock import SECOND, from_us
from shepherd_memory.storage.database import Database, connect, load_migrations, open_database, schema_version
from shepherd_memory.text.ids import checked_user_id
from shepherd_memory.text.redaction import redact
from tests.contract.given import NOON, ManualClock, examples, memory
from tests.databases import DatabaseSource


def made(database: Database, name: str = "steve", **options: Any) -> tuple[ApiKey, str]:
    return api_keys.create(database, name, **{"now": NOON, **options})


def found(database: Database, presented: str) -> ApiKey | None:
    with database.read() as connection:
        return api_keys.find(connection, presented)


def looked_up(database: Database, id_or_name: str) -> ApiKey:
    with database.read() as connection:
        return api_keys.get(connection, id_or_name)


@pytest.mark.every_scheme
def test_a_key_opens_what_it_was_made_for(database: Database) -> None:
    key, text = made(
        database, "app", any_user=True, namespace="shop", rate_per_minute=60, max_request_bytes=5
    )
    assert key == ApiKey(key.id, "app", True, "shop", 60, 5, from_us(NOON), None, None)
    assert found(database, text) == key == looked_up(database, key.id) == looked_up(database, "app")
    assert type(found(database, text).any_user) is bool  # type: ignore[union-attr]
    assert text.startswith(f"{KEY_PREFIX}{key.id}_")
    assert len(key.id) == 12


def test_keys_differ_in_every_part(database: Database) -> None:
    keys = [made(database) for _ in range(50)]
    assert len({key.id for key, _ in keys}) == 50
    assert len({text.split("_", 2)[2] for _, text in keys}) == 50
    assert [found(database, text) for _, text in keys] == [key for key, _ in keys]


def test_only_the_hash_of_a_key_is_in_what_the_database_holds(
    url: str, database_source: DatabaseSource
) -> None:
    with closing(open_database(url)) as database:
        keys = [made(database, f"user{number}") for number in range(20)]
        for key, text in keys:
            assert found(database, text) == key
            api_keys.note_use(database, key.id, NOON)
        api_keys.revoke(database, keys[0][0].id, NOON)
        assert_not_in(database_source.dump(url), [text for _, text in keys])
    assert_not_in(database_source.dump(url), [text for _, text in keys])


def assert_not_in(stored: bytes, texts: list[str]) -> None:
    for text in texts:
        _, key_id, secret = text.split("_", 2)
        assert key_id.encode() in stored, "the test must read where keys are"
        for part in (text, secret, secret[:16], secret[16:]):
            assert part.encode() not in stored


def test_only_the_hash_of_a_key_is_in_its_row(database: Database) -> None:
    key, text = made(database)
    with database.read() as connection:
        row = connection.row("select * from api_keys where id = :id", id=key.id)
    assert text.split("_", 2)[2] not in repr(row)


def test_what_is_shown_of_a_key_has_neither_its_text_nor_its_hash(database: Database) -> None:
    key, text = made(database)
    with database.read() as connection:
        (hashed,) = connection.row("select hash from api_keys") or ("",)
    assert len(hashed) == 64
    shown = repr(key) + repr(dataclasses.asdict(key)) + repr(looked_up(database, "steve"))
    assert hashed not in shown
    assert text not in shown


SPOILT: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: "",
    "prefix only": lambda text: KEY_PREFIX,
    "another prefix": lambda text: "shq_" + text[4:],
    "upper case": str.upper,
    "without its prefix": lambda text: text.removeprefix(KEY_PREFIX),
    "id only": lambda text: text[:16],
    "id and separator": lambda text: text[:17],
    "secret only": lambda text: text[17:],
    "last character gone": lambda text: text[:-1],
    "last character doubled": lambda text: text + text[-1],
    "last character another": lambda text: text[:-1] + ("A" if text[-1] != "A" else "E"),
    "first of the secret another": lambda text: text[:17] + ("x" if text[17] != "x" else "y") + text[18:],
    "right id, wrong secret": lambda text: text[:17] + "A" * 43,
    "another id, right secret": lambda text: f"{KEY_PREFIX}000000000000{text[16:]}",
    "space before": lambda text: " " + text,
    "space behind": lambda text: text + " ",
    "line end behind": lambda text: text + "\n",
    "NUL behind": lambda text: text + "\0",
    "NUL within": lambda text: text[:20] + "\0" + text[21:],
    "half of a surrogate pair": lambda text: text[:20] + "\ud800" + text[21:],
    "surrogates only": lambda text: "\udcff" * 60,
    "digits of another script": lambda text: text[:17] + "٣" * 43,
    "letters of another script": lambda text: text[:4] + "é" * 12 + text[16:],
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) for one in text),
    "SQL": lambda text: "' or '1'='1",
    "SQL as an id": lambda text: f"{KEY_PREFIX}' or 1=1; --_{text[17:]}",
    "percent": lambda text: f"{KEY_PREFIX}%_{text[17:]}",
    "parameters": lambda text: ":id %(id)s ?",
    "twice": lambda text: text + text,
    "huge": lambda text: text * 100_000,
    "huge of separators": lambda text: KEY_PREFIX + "_" * 10_000_000,
    "the hash": lambda text: api_keys._hash(text),
    "with its scheme": lambda text: f"Bearer {text}",
}


@pytest.fixture(scope="module")
def kept(module_url: str) -> Any:
    with closing(open_database(module_url)) as database:
        yield database


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_anything_but_the_whole_key_is_nobodys(kept: Database, spoil: Callable[[str], str]) -> None:
    key, text = made(kept)
    assert found(kept, spoil(text)) is None
    assert found(kept, text) == key


ALMOST = st.from_regex(r"\Ashp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}\Z", alphabet=string.ascii_letters + "0189_-")


@given(st.text(st.characters(exclude_categories=())) | ALMOST)
@example(f"{KEY_PREFIX}{'0' * 12}_{'A' * 43}")
@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
def test_no_text_is_too_odd_to_be_refused(kept: Database, presented: str) -> None:
    assert found(kept, presented) is None


def test_a_revoked_key_is_nobodys_from_the_next_look_on(database: Database) -> None:
    (key, text), (other, others_text) = made(database), made(database, "ann")
    revoked = api_keys.revoke(database, "steve", NOON + SECOND)
    assert revoked == dataclasses.replace(key, revoked_at=from_us(NOON + SECOND))
    assert found(database, text) is None
    assert found(database, others_text) == other
    with database.read() as connection:
        assert api_keys.listing(connection) == sorted([revoked, other], key=lambda one: one.id)


def test_revoking_twice_keeps_the_first_time(database: Database) -> None:
    key, text = made(database)
    first = api_keys.revoke(database, key.id, NOON + SECOND)
    assert api_keys.revoke(database, key.id, NOON + 9 * SECOND) == first
    assert api_keys.revoke(database, "steve", NOON + 9 * SECOND) == first
    assert found(database, text) is None


@pytest.mark.every_scheme
def test_another_process_refuses_a_revoked_key_at_once(url: str) -> None:
    with closing(open_database(url)) as server, closing(open_database(url)) as command:
        key, text = made(command)
        assert found(server, text) == key
        api_keys.revoke(command, key.id, NOON)
        assert found(server, text) is None


@pytest.mark.every_scheme
def test_a_key_is_rotated_under_its_name(database: Database) -> None:
    old, old_text = made(database)
    new, new_text = made(database, now=NOON + SECOND)
    assert (found(database, old_text), found(database, new_text)) == (old, new)
    with pytest.raises(InvalidInput, match=f"2 keys have the name 'steve'.*{old.id}, {new.id}"):
        looked_up(database, "steve")
    with pytest.raises(InvalidInput, match="say which by its id"):
        api_keys.revoke(database, "steve", NOON)
    api_keys.revoke(database, old.id, NOON)
    assert looked_up(database, "steve") == new
    assert (found(database, old_text), found(database, new_text)) == (None, new)
    last = api_keys.revoke(database, "steve", NOON)
    assert looked_up(database, "steve") == last, "the newest, where none is live"


def test_a_leaked_key_is_revoked_by_its_text(database: Database) -> None:
    key, text = made(database)
    assert api_keys.revoke(database, text, NOON).id == key.id
    assert found(database, text) is None


def test_an_id_comes_before_a_name_that_is_the_same(database: Database) -> None:
    key, _ = made(database)
    made(database, key.id)
    assert looked_up(database, key.id) == key


@pytest.mark.parametrize("wanted", ["nobody", "", "0" * 12, "\0", "\ud800", "%", "x" * 100_000])
def test_what_is_not_there_is_said_to_be_missing(database: Database, wanted: str) -> None:
    made(database)
    for look in (looked_up, lambda database, name: api_keys.revoke(database, name, NOON)):
        with pytest.raises(NotFound, match=r"no API key .*shepherd apikey list"):
            look(database, wanted)


def test_a_key_that_is_not_there_is_not_repeated(database: Database) -> None:
    _, text = made(database)
    for missing in (text[:5] + "0" * 11 + text[16:], text + "x", f"{text[:17]}{'Ab3-' * 9}"):
        with pytest.raises(NotFound) as refusal:
            looked_up(database, missing)
        assert missing[17:] not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "steve",
        "a",
        "x" * 128,
        "ann@example.org",
        "box:ann",
        "Zoë",
        "प्रिया",
        "日本",
        "a.b_c-d+e",
        "UNKNOWN",
        "7",
    ],
)
def test_a_name_may_be_what_a_user_id_is(database: Database, name: str) -> None:
    key, text = made(database, name, namespace="n" * 64)
    assert key.name == name
    assert found(database, text) == key == looked_up(database, name)
    assert checked_user_id(api_keys.acting_name(key, name)) == f"{'n' * 64}/{name}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "unknown",
        "x" * 129,
        "a/b",
        "/",
        "a b",
        " steve",
        "a\n",
        "a\0",
        "\ud800",
        "a\u200bb",
        "a\u202eb",
        "a,b",
        "*",
        "shp_x",
    ],
)
def test_a_name_that_cannot_be_one_is_refused_with_what_it_takes(database: Database, name: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 128 letters, digits and"):
        made(database, name)
    with database.read() as connection:
        assert not api_keys.exists(connection)


def test_a_key_in_the_place_of_a_name_is_neither_stored_nor_repeated(database: Database) -> None:
    _, text = made(database)
    with pytest.raises(InvalidInput) as refusal:
        made(database, text)
    assert text[17:] not in str(refusal.value)


@pytest.mark.parametrize("namespace", ["n" * 65, "a/b", "a b", "Zoë", "a\n", "a\0", "\ud800", "a:b"])
def test_a_namespace_that_cannot_be_one_is_refused_with_what_it_takes(
    database: Database, namespace: str
) -> None:
    with pytest.raises(InvalidInput, match="namespace takes up to 64 of a-z"):
        made(database, namespace=namespace)


@pytest.mark.parametrize("limit", ["rate_per_minute", "max_request_bytes"])
@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_limit_that_cannot_be_one_is_refused(database: Database, limit: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=f"{limit} takes a whole number from 0"):
        made(database, **{limit: value})


@pytest.mark.every_scheme
def test_once_there_was_a_key_there_always_was_one(database: Database) -> None:
    with database.read() as connection:
        assert not api_keys.exists(connection)
        assert api_keys.listing(connection) == []
    made(database)
    api_keys.revoke(database, "steve", NOON)
    with database.read() as connection:
        assert api_keys.exists(connection)


def test_the_namespaces_of_revoked_keys_stay_taken(database: Database) -> None:
    for name, namespace in (("a", "shop"), ("b", "shop"), ("c", "blog"), ("d", "")):
        made(database, name, namespace=namespace)
    api_keys.revoke(database, "c", NOON)
    with database.read() as connection:
        assert api_keys.namespaces(connection) == {"shop", "blog"}


@pytest.mark.every_scheme
def test_the_last_use_is_the_latest_that_was_noted(database: Database) -> None:
    key, text = made(database)
    for seconds in (5, 9, 7):
        api_keys.note_use(database, key.id, NOON + seconds * SECOND)
    api_keys.note_use(database, "no such key", NOON)
    used = found(database, text)
    assert used is not None
    assert used.last_used_at == from_us(NOON + 9 * SECOND)


def test_in_a_namespace_users_are_its_own_and_nobody_is_nobody(database: Database) -> None:
    (plain, _), (shop, _) = made(database), made(database, any_user=True, namespace="shop")
    assert api_keys.acting_name(plain, "ann") == "ann"
    assert api_keys.acting_name(shop, "ann") == "shop/ann"
    assert api_keys.acting_name(shop, "blog/ann") == "shop/blog/ann"
    for nobody in ("unknown", "", " ", " unknown "):
        assert api_keys.acting_name(shop, nobody) == nobody


@pytest.mark.every_scheme
def test_a_database_from_before_there_were_keys_gets_them(database_url: str, clock: ManualClock) -> None:
    with closing(connect(database_url)) as database, database.migrating() as tx:
        for migration in load_migrations(database.migrations())[:2]:
            tx.execute_script(migration.sql)
            tx.execute(
                "insert into schema_migrations (version, name, applied_at) values (:version, :name, 0)",
                version=migration.version,
                name=migration.name,
            )
        tx.execute("insert into endpoints (name, state, changed_at) values ('x', 'ok', 7)")
    with memory(database_url, clock) as service:
        with service.database.read() as connection:
            assert schema_version(connection) >= 3
            assert not api_keys.exists(connection)
            assert connection.rows("select name, changed_at from endpoints where name = 'x'") == [("x", 7)]
        key, text = made(service.database)
        assert found(service.database, text) == key


def test_erasing_and_exporting_a_user_leave_the_keys_alone(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        key, text = made(service.database)
        service.set_fact("steve", "city", "Oslo")
        exported = b"".join(service.export("steve"))
        assert key.id.encode() not in exported
        assert service.erase("steve").left == {}
        assert found(service.database, text) == key


def test_a_key_in_a_chat_is_redacted(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        _, text = made(service.database)
        service.remember("steve", [{"role": "user", "content": f"use {text} for now"}], "chat")
        (document,) = service.documents("steve")
    assert document.text == "use [redacted:shepherd-key] for now" == redact(f"use {text} for now")


def test_erasing_a_user_takes_their_name_out_of_revoked_keys_only(database: Database) -> None:
    revoked, _ = api_keys.create(database, "ada", now=NOON)
    live, text = api_keys.create(database, "ada", now=NOON)
    others = [
        api_keys.create(database, "ada", namespace="shop", now=NOON)[0],
        api_keys.create(database, "ada", any_user=True, now=NOON)[0],
    ]
    for key in (revoked, *others):
        api_keys.revoke(database, key.id, NOON)
    erase(database, "ada", NOON)
    with database.read() as connection:
        names = {key.id: key.name for key in api_keys.listing(connection)}
        assert names == {revoked.id: "", live.id: "ada"} | {key.id: "ada" for key in others}
        assert api_keys.find(connection, text) is not None
    erase(database, "shop/ada", NOON)
    with database.read() as connection:
        assert {key.id: key.name for key in api_keys.listing(connection)}[others[0].id] == ""
