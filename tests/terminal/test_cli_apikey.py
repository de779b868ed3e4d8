"""`shepherd apikey`: the key on stdout and nowhere else, the rest in words."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from shepherd_memory.memory import api_keys
from shepherd_memory.service import Service
from tests.terminal.shell import data, good, on_terminal, process, rows, run, with_service

KEY = re.compile(r"shp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


def created(*args: str) -> str:
    return good("apikey", "create", *args).stdout.strip()


def is_good(key: str) -> bool:
    def look(service: Service) -> bool:
        with service.database.read() as connection:
            return api_keys.find(connection, key) is not None

    return bool(with_service(look))


def test_a_key_lives_from_create_to_revoke() -> None:
    key = created("steve")
    key_id = key[4:16]
    assert is_good(key)
    assert [row[:5] for row in rows("apikey")] == [[key_id, "steve", "steve", "", ""]]
    assert rows("apikey", "list")[0][6:] == ["never", "live"]
    assert f"id\t{key_id}\nname\tsteve\nacts for\tsteve\n" in good("apikey", "show", "steve").stdout
    assert "takes effect at once" in good("apikey", "revoke", "steve").stderr
    assert not is_good(key)
    assert rows("apikey")[0][7] == "revoked"
    assert "\nstate\trevoked 2" in good("apikey", "show", key_id).stdout


def test_the_key_alone_is_on_stdout() -> None:
    made = process("apikey", "create", "steve")
    assert KEY.fullmatch(made.stdout.removesuffix("\n"))
    assert made.stdout.strip() not in made.stderr
    assert made.stderr.strip().endswith("shown only now; it acts for steve")


def test_a_shell_takes_the_key_into_a_variable() -> None:
    script = f'KEY=$({sys.executable} -m shepherd_memory apikey create steve 2>/dev/null) && echo "[$KEY]"'
    echoed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert KEY.fullmatch(echoed.stdout.strip().strip("[]"))


@pytest.mark.parametrize(
    ("options", "acts_for", "shown"),
    [
        ([], "steve", "steve"),
        (["--namespace", "shop"], "shop/steve", "shop/steve"),
        (["--any-user"], "every user who is in no namespace", "*"),
        (["--any-user", "--namespace", "shop"], "every user in shop/", "shop/*"),
    ],
)
def test_it_is_said_for_whom_a_key_acts(options: list[str], acts_for: str, shown: str) -> None:
    said = good("apikey", "create", "steve", *options).stderr.splitlines()
    assert said[0].endswith(f"it acts for {acts_for}")
    assert ("everybody's memory" in said[-1]) == (options == ["--any-user"])
    assert rows("apikey")[0][2] == shown
    assert f"acts for\t{acts_for}\n" in good("apikey", "show", "steve").stdout


def test_a_key_of_one_group_is_not_said_to_erase_everybody() -> None:
    said = good("apikey", "create", "steve", "--any-user", "--group", "work").stderr.splitlines()
    assert said[0].endswith("it acts for every user who is in no namespace in the group work")
    assert said[1].startswith("whoever has it can read and change everybody's memory in the group work;")


def test_limits_are_shown_and_default_to_the_settings() -> None:
    created("steve", "--rate", "60", "--max-request-mb", "4")
    created("ann")
    assert [row[4] for row in rows("apikey")] == ["60", ""]
    assert "rate\t60 a minute\nlargest request\t4 MB\n" in good("apikey", "show", "steve").stdout
    plain = good("apikey", "show", "ann").stdout
    assert "rate\tserver_rate_limit\nlargest request\tserver_max_request_mb\n" in plain
    assert data("apikey", "show", "steve")["max_request_bytes"] == 4 * 1024 * 1024


def test_keys_as_json_have_everything_but_their_text_and_hash() -> None:
    made = data("apikey", "create", "steve", "--any-user", "--namespace", "shop", "--rate", "9")
    assert KEY.fullmatch(made.pop("key"))
    assert set(made) == {
        "id",
        "name",
        "any_user",
        "namespace",
        "group_name",
        "rate_per_minute",
        "max_request_bytes",
        "created_at",
        "last_used_at",
        "revoked_at",
    }
    assert (made["any_user"], made["namespace"], made["rate_per_minute"]) == (True, "shop", 9)
    assert data("apikey") == data("apikey", "list") == [made] == [data("apikey", "show", "steve")]
    revoked = data("apikey", "revoke", made["id"])
    assert revoked["revoked_at"].endswith("Z")
    assert data("apikey", "revoke", "steve") == revoked


def test_no_command_prints_a_hash_or_a_key_again() -> None:
    key = created("steve")
    hashed = api_keys._hash(key)
    for args in (["list"], ["show", "steve"], ["show", key], ["revoke", key]):
        for options in ([], ["--json"]):
            shown = good("apikey", *args, *options).output
            assert hashed not in shown
            assert key[17:] not in shown


def test_a_key_is_rotated_under_its_name() -> None:
    old, new = created("steve"), created("steve")
    refused = run("apikey", "revoke", "steve")
    assert refused.exit_code == 2
    assert f"({old[4:16]}, {new[4:16]})" in refused.stderr
    good("apikey", "revoke", old[4:16])
    assert (is_good(old), is_good(new)) == (False, True)
    good("apikey", "revoke", "steve")
    assert not is_good(new)


def test_without_keys_it_is_said_what_that_means() -> None:
    result = good("apikey")
    assert (result.stdout, "there are no API keys" in result.stderr) == ("", True)
    assert data("apikey") == []


def test_a_terminal_of_80_columns_shows_whole_ids() -> None:
    key = created("steve")
    created("app", "--any-user", "--namespace", "shop", "--rate", "600")
    code, seen = on_terminal("apikey")
    assert code == 0
    assert seen.splitlines()[0].split("  ")[0] == "ID"
    assert f"{key[4:16]}  steve" in seen
    assert "…" not in seen


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["create"], 2, "Missing argument 'NAME'"),
        (["create", "a/b"], 2, "1 to 128 letters, digits and . _ - @ : +"),
        (["create", "unknown"], 2, "it is not 'unknown'"),
        (["create", ""], 2, "1 to 128 letters"),
        (["create", "\udcff"], 2, "1 to 128 letters"),
        (["create", "\x1b[31m"], 2, "1 to 128 letters"),
        (["create", "x", "--namespace", "a/b"], 2, "up to 64 of a-z, A-Z, 0-9 and . _ -"),
        (["create", "x", "--rate", "-1"], 2, "not in the range"),
        (["create", "x", "--max-request-mb", "99999999999"], 2, "not in the range"),
        (["show", "nope"], 3, "there is no API key 'nope'; `shepherd apikey list` shows them"),
        (["revoke", "nope"], 3, "there is no API key 'nope'"),
        (["revoke", "\udcff"], 3, "there is no API key"),
        (["remove", "x"], 2, "no such command: 'remove'"),
    ],
)
def test_bad_input_is_one_clear_line_and_an_exit_code(args: list[str], code: int, says: str) -> None:
    result = run("apikey", *args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in result.stderr
    assert data("apikey") == []


def test_trouble_with_the_database_is_exit_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHEPHERD_MEMORY_DATABASE", str(tmp_path))
    result = run("apikey", "create", "steve")
    assert (result.exit_code, result.stdout) == (4, "")
