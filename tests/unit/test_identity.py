import pytest

from shepherd_memory.config import Config
from shepherd_memory.config.identity import UNKNOWN, Identity, detect_user_id, hostname, is_known, username


def test_the_configured_user_id_comes_first() -> None:
    assert detect_user_id(Config(user_id="steve")) == Identity("steve", "config")


def test_without_one_it_is_the_machine_and_the_account() -> None:
    found = detect_user_id(Config(), host=lambda: "laptop", user=lambda: "ann")
    assert found == Identity("laptop:ann", "machine")


@pytest.mark.parametrize(("host", "user"), [("", "ann"), ("laptop", ""), ("", "")])
def test_half_an_identity_is_none(host: str, user: str) -> None:
    assert detect_user_id(Config(), lambda: host, lambda: user) == Identity(UNKNOWN, "unknown")


def test_this_machine_and_account_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    assert username() == "ann"
    assert detect_user_id(Config()).user_id == f"{hostname()}:ann"


@pytest.mark.parametrize("user_id", ["", " ", "\t\n", "unknown", " unknown "])
def test_nobody_is_not_known(user_id: str) -> None:
    assert not is_known(user_id)


@pytest.mark.parametrize("user_id", ["steve", "laptop:ann", "unknown2", "local"])
def test_somebody_is_known(user_id: str) -> None:
    assert is_known(user_id)
