"""The samples in the documentation run as they are written.

A page's ```python blocks are executed in order, in an empty folder; where a line ends in `print(…)  # …`, the
comment is what it prints. The ```sh blocks of the pages for beginners are run by a shell, and `shepherd …`
in every other one is at least a command that exists, with arguments that it takes.
"""

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from shepherd_memory import Config, open_service
from shepherd_memory.config import Provider
from shepherd_memory.frontends.api.app import api_application
from shepherd_memory.frontends.cli import cli
from shepherd_memory.frontends.web.process import running
from shepherd_memory.storage import database
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, reply, user_text

ROOT = Path(__file__).parents[2]
README, QUICKSTART, BACKEND = (
    ROOT / p for p in ("README.md", "docs/quickstart.md", "docs/writing-a-backend.md")
)
STRATEGY = ROOT / "docs" / "writing-a-strategy.md"
"""Run by `tests/contract/test_strategies.py`, as an installed package."""

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
AGENTS = ROOT / "docs" / "howto" / "agents"
"""Their programs need packages that are not installed here; `make test-agents` runs them."""

WRITTEN_ENDPOINT = "http://localhost:11434"
"""The endpoint of the samples, in whose place the scripted one answers."""

WRITTEN_SERVER = "http://127.0.0.1:8765"
"""Where the server of the samples listens; here it is any port that is free."""

FOUND = {
    "I'm Steve": {"name": "Steve"},
    "called Rex": {"dog_name": "Rex"},
    "live in Lisbon": {"city": "Lisbon"},
    "moved to Porto": {"city": "Porto"},
}
"""What the model of the samples finds in what the user says; it also invents an employer."""


def fenced(page: Path, language: str) -> list[str]:
    """The page's code blocks in a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [str(block) for block in found]


def pages_with(language: str) -> list[Any]:
    found = [page for page in PAGES if fenced(page, language)]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in found]


def found_in(body: Body | None) -> Step:
    if body is None:
        return close()  # a command that ends while its worker calls cuts the request off
    said = user_text(body)
    facts = {key: value for words, found in FOUND.items() if words in said for key, value in found.items()}
    return reply(facts | {"employer": "ACME"})


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as scripted:
        scripted.default = by_content(found_in)
        yield scripted


@pytest.fixture
def server_url(endpoint: ScriptedEndpoint, tmp_path: Path) -> Iterator[str]:
    """A server as the samples have it: the model behind it is the scripted one."""
    local = Provider("local", base_url=endpoint.url, memory=True)
    config = Config(memory_database=str(tmp_path / "server.db"), providers={"local": local}, provider="local")
    with open_service(config) as service, running(service, api_application(service, "127.0.0.1")) as server:
        yield server.url


def promised(block: str) -> list[str]:
    """What the `print` lines of a block say that they print."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)


def run_elsewhere(page: Path) -> bool:
    return page in (BACKEND, STRATEGY) or page.parent == AGENTS


@pytest.mark.parametrize("page", [page for page in pages_with("python") if not run_elsewhere(page.values[0])])
def test_the_python_samples_of_the_page_run_and_print_what_they_say(
    page: Path,
    endpoint: ScriptedEndpoint,
    server_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in fenced(page, "python"):
        source = block.replace(WRITTEN_ENDPOINT, endpoint.url).replace(WRITTEN_SERVER, server_url)
        exec(compile(source, str(page), "exec"), names)
        assert capsys.readouterr().out.splitlines() == promised(block)
    if "client" in names:
        names["client"].close()  # or the collector finds its socket first, and warns


def words_of(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def logical_lines(block: str) -> Iterator[str]:
    """The lines of a script, those joined that a backslash or an open quotation mark holds together."""
    line = ""
    for part in block.replace("\\\n", " ").splitlines(keepends=True):
        line += part
        try:
            words_of(line)
        except ValueError:
            continue
        yield line
        line = ""
    assert not line, f"an open quotation mark: {line}"


def commands(line: str) -> Iterator[list[str]]:
    """The `shepherd` commands in a line of shell, as words, without redirections."""
    words: list[str] = []
    for word in [*words_of(line), ";"]:
        if set(word) <= set("|&;"):
            yield from _shepherd(words)
            words = []
        else:
            words.append(word)


def _shepherd(words: list[str]) -> Iterator[list[str]]:
    plain = [
        word for before, word in zip(["", *words], words, strict=False) if not {before, word} & {"<", ">"}
    ]
    if plain[:2] == ["sudo", "-u"]:
        plain = plain[3:]
    while plain and re.fullmatch(r"\w+=.*", plain[0]):
        plain.pop(0)
    if plain and plain[0].rpartition("/")[2] == "shepherd":
        yield plain[1:]


def parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Let click read the words, down to the last command, and run nothing."""
    try:
        with command.make_context("shepherd" if parent is None else command.name, words, parent) as context:
            rest = [*vars(context)["_protected_args"], *context.args]
            if isinstance(command, click.Group) and rest:
                name, below, left = command.resolve_command(context, rest)
                assert below is not None, name
                parse(below, left, context)
    except click.exceptions.Exit:
        return  # --help and --version answer while they are read


@pytest.mark.parametrize("page", pages_with("sh"))
def test_every_command_of_the_page_exists_and_takes_its_arguments(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in fenced(page, "sh") for line in logical_lines(block)]
    for words in [words for line in lines for words in commands(line)]:
        for name in [word for word in words if word.endswith((".jsonl", ".json"))]:
            Path(name).touch()  # click looks whether the file to read is there
        try:
            parse(cli, words)
        except click.UsageError as error:
            pytest.fail(f"shepherd {shlex.join(words)}: {error.format_message()}")


def runnable(block: str) -> bool:
    """Whether a block is only of commands of ours, and calls of the server, that end by themselves."""
    lines = [line for line in logical_lines(block) if line.strip() and not line.startswith("#")]
    ours = all(any(commands(line)) or line.startswith("curl ") for line in lines)
    return ours and not re.search(r"^shepherd (worker|serve)|postgresql://|…", block, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda page: page.name)
def test_the_shell_samples_of_the_page_run(
    page: Path, endpoint: ScriptedEndpoint, server_url: str, tmp_path: Path
) -> None:
    script = "\n".join(filter(runnable, fenced(page, "sh"))).replace(WRITTEN_ENDPOINT, endpoint.url)
    script = script.replace(WRITTEN_SERVER, server_url).replace("curl -s", "curl -sf")
    assert script
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_backend_of_the_guide_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, test_databases = fenced(BACKEND, "python")
    (tmp_path / "shepherd_toy.py").write_text(backend)
    (entry_points,) = fenced(BACKEND, "toml")
    installed = tmp_path / "shepherd_toy-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shepherd-toy\nVersion: 0\n")
    group = entry_points.replace('project.entry-points."', "").replace('"]', "]").replace('"', "")
    (installed / "entry_points.txt").write_text(group)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    exec(test_databases, names)
    with names["open_source"](tmp_path) as toys:
        url = toys.create(tmp_path)
        use_every_part_of_a_backend(url)
        assert b"create table" in toys.dump(url).lower()
        toys.remove(url)
        assert not (tmp_path / "toy.db").exists()


def use_every_part_of_a_backend(url: str) -> None:
    with open_service(Config(memory_database=url), worker=False) as service:
        service.remember("steve", [{"role": "user", "content": "I live in Lisbon."}])
        service.set_fact("steve", "city", "Lisbon")
        assert [document.text for document in service.documents("steve")] == ["I live in Lisbon."]
        assert service.recall("steve", "Where in Lisbon do I live?").hits[0].text == "I live in Lisbon."
        assert_vectors_are_found(service.database)
        assert service.erase("steve").left == {}


def assert_vectors_are_found(opened: database.Database) -> None:
    with opened.write() as tx:
        tx.execute(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values ('steve', 1, 0, 'm', 7, :vector)",
            vector=opened.vector([0.0, 1.0]),
        )
        (found,) = opened.nearest(tx, "steve", "m", [0.0, 2.0], 5)
        ids, vectors = opened.vectors_since(tx, "steve", "m", 6)
        later, none = opened.vectors_since(tx, "steve", "m", 7)
    assert (found.id, round(found.cosine, 3)) == (1, 1.0)
    assert (ids.tolist(), vectors.tolist(), len(later), len(none)) == ([1], [[0.0, 1.0]], 0, 0)


def members(protocol: type) -> set[str]:
    methods = {name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if name[0] != "_"}
    return methods | set(inspect.get_annotations(protocol))


@pytest.mark.parametrize("protocol", [database.Database, database.Connection], ids=lambda p: p.__name__)
def test_the_guide_names_every_part_of_the_protocol(protocol: type) -> None:
    named = set(re.findall(rf"^\| `{protocol.__name__}\.(\w+)", BACKEND.read_text("utf-8"), re.MULTILINE))
    assert named == members(protocol)


def test_commands_are_found_between_pipes_and_redirections() -> None:
    line = "echo hi | A=1 shepherd remember - > out.json && sudo -u me bin/shepherd queue status  # so"
    assert list(commands(line)) == [["remember", "-"], ["queue", "status"]]


def test_a_command_that_does_not_exist_is_refused() -> None:
    with pytest.raises(click.UsageError):
        parse(cli, ["facts", "sett", "city", "Porto"])
    with pytest.raises(click.UsageError):
        parse(cli, ["config", "set", "user_id", "steve", "--colour"])


@pytest.mark.slow
def test_what_the_first_screen_remembers_it_recalls_and_tells_the_model(
    endpoint: ScriptedEndpoint, server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (calls,) = [block for block in fenced(README, "sh") if "/v1/memory/recall" in block]
    done = subprocess.run(
        ["bash", "-euc", calls.replace(WRITTEN_SERVER, server_url)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"stored":1' in done.stdout
    assert "I live in Lisbon now." in done.stdout.rpartition('"hits"')[2]
    (sample,) = [block for block in fenced(README, "python") if "openai.OpenAI" in block]
    names: dict[str, Any] = {}
    exec(compile(sample.replace(WRITTEN_SERVER, server_url), "README.md", "exec"), names)
    names["client"].close()
    assert "I live in Lisbon now." in endpoint.requests[-1].json["messages"][-1]["content"]
