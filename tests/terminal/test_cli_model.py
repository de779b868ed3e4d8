"""`shepherd model`: which model answers."""

import pytest

from tests.terminal.shell import data, good, run


@pytest.fixture
def lab() -> None:
    """A provider that is in use."""
    good("provider", "add", "lab", "--base-url", "http://127.0.0.1:1", "--model", "tiny")
    good("provider", "lab", "use", "--no-check")


@pytest.mark.usefixtures("lab")
def test_the_model_in_use_is_shown() -> None:
    assert good("model").stdout == "tiny\n"
    assert data("model") == {"provider": "lab", "model": "tiny"}


@pytest.mark.usefixtures("lab")
def test_another_model_is_chosen() -> None:
    result = good("model", "qwen3")
    assert (result.stdout, result.stderr) == ("", "lab: model = qwen3\n")
    assert good("model").stdout == "qwen3\n"
    assert data("provider", "lab", "show")["model"] == "qwen3"


@pytest.mark.usefixtures("lab")
def test_what_was_chosen_is_data_for_a_program() -> None:
    assert data("model", "qwen3") == {"provider": "lab", "model": "qwen3"}


@pytest.mark.usefixtures("lab")
def test_only_the_provider_in_use_changes() -> None:
    good("provider", "add", "cloud", "--model", "huge")
    good("model", "qwen3")
    assert data("provider", "cloud", "show")["model"] == "huge"


@pytest.mark.usefixtures("lab")
def test_an_empty_name_leaves_it_to_the_provider() -> None:
    good("model", "")
    assert good("model").stdout == '"" (what lab answers with by itself)\n'
    assert data("model") == {"provider": "lab", "model": ""}


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("name", ["two\nlines", " spaces "])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    assert run("model", name).exit_code == 2
    assert good("model").stdout == "tiny\n"


@pytest.mark.parametrize("args", [[], ["qwen3"], ["--json"]], ids=" ".join)
def test_without_a_provider_it_says_what_to_do(args: list[str]) -> None:
    result = run("model", *args)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "shepherd: no provider is in use; `shepherd provider NAME use` chooses one\n"
