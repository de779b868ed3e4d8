"""Names that their packages do not promise to keep, and that nothing public replaces."""

import importlib
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

# Package, module, what is looked at, the name that must be there, and what we need it for.
CALLED = [
    ("textual", "textual._ansi_sequences", "", "ANSI_SEQUENCES_KEYS", "tui/app.py: Alt+Enter as a key"),
    ("textual", "textual.app", "App", "_handle_exception", "tui/app.py: log what ended the program"),
    ("textual", "textual.app", "App", "_fatal_error", "tui/app.py: print no frames with memories in them"),
    (
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl",
        "",
        "HttpToolsProtocol",
        "web/connections.py: bounded connections",
    ),
    *(
        (
            "uvicorn",
            "uvicorn.protocols.http.httptools_impl",
            "HttpToolsProtocol",
            name,
            "web/connections.py: bounded connections",
        )
        for name in (
            "connection_made",
            "connection_lost",
            "data_received",
            "on_message_begin",
            "on_headers_complete",
            "on_response_complete",
            "send_400_response",
        )
    ),
    ("uvicorn", "uvicorn", "Server", "on_tick", "web/process.py: stop when told to"),
    ("uvicorn", "uvicorn", "Server", "shutdown", "web/process.py: finish what was begun"),
    ("uvicorn", "uvicorn", "Server", "handle_exit", "web/process.py: the second signal ends at once"),
    (
        "urllib3",
        "urllib3.connection",
        "HTTPConnection",
        "_new_conn",
        "llm/http.py: connections that can be cut",
    ),
    (
        "watchfiles",
        "watchfiles._rust_notify",
        "",
        "RustNotify",
        "transcripts/watching.py: watch before the scan",
    ),
    (
        "watchfiles",
        "watchfiles._rust_notify",
        "",
        "WatchfilesRustInternalError",
        "transcripts/watching.py: scan then",
    ),
]

# The same for what a function of theirs reads or sets: our name has no effect once theirs does not use it.
USED = [
    (
        "textual",
        "textual._xterm_parser",
        "XTermParser._sequence_to_key_events",
        "ANSI_SEQUENCES_KEYS",
        "tui/app.py",
    ),
    ("textual", "textual.app", "App._handle_exception", "_fatal_error", "tui/app.py"),
    ("textual", "textual.dom", "DOMNode.__init__", "_bindings", "tui/chat/prompt.py"),
    (
        "textual",
        "textual.drivers.linux_driver",
        "LinuxDriver.start_application_mode",
        "_file",
        "tui/terminal.py",
    ),
    ("uvicorn", "uvicorn", "Server.shutdown", "tasks", "web/process.py"),
    (
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl",
        "RequestResponseCycle.send",
        "keep_alive",
        "web/connections.py",
    ),
    (
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl",
        "HttpToolsProtocol.on_headers_complete",
        "cycle",
        "web/connections.py",
    ),
    (
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl",
        "HttpToolsProtocol.on_message_begin",
        "scope",
        "web/connections.py",
    ),
    (
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl",
        "HttpToolsProtocol.connection_made",
        "client",
        "web/connections.py",
    ),
    ("urllib3", "urllib3.connection", "HTTPConnection.connect", "_new_conn", "llm/http.py"),
    ("urllib3", "urllib3.connection", "HTTPSConnection.connect", "_new_conn", "llm/http.py"),
    ("urllib3", "urllib3.connection", "HTTPConnection._new_conn", "_dns_host", "llm/http.py"),
]


def found(module: str, path: str) -> object:
    value: object = importlib.import_module(module)
    for name in filter(None, path.split(".")):
        value = getattr(value, name)
    return value


def gone(package: str, name: str, where: str) -> str:
    return f"{package} {version(package)} has no {name} as {where} needs it: mend that, then raise the bound"


@pytest.mark.parametrize(("package", "module", "path", "name", "where"), CALLED)
def test_a_name_that_we_use_is_there(package: str, module: str, path: str, name: str, where: str) -> None:
    assert hasattr(found(module, path), name), gone(package, name, where)


@pytest.mark.parametrize(("package", "module", "path", "name", "where"), USED)
def test_a_name_that_we_change_has_an_effect(
    package: str, module: str, path: str, name: str, where: str
) -> None:
    code = getattr(found(module, path), "__code__", None)
    assert code is not None, gone(package, path, where)
    assert name in code.co_names, gone(package, f"{name} in {path}", where)


@pytest.mark.parametrize("package", sorted({row[0] for row in (*CALLED, *USED)}))
def test_versions_that_were_not_tried_are_not_installed(package: str) -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    wanted = next(one for one in map(Requirement, project["dependencies"]) if one.name == package)
    assert any(bound.operator == "<" for bound in wanted.specifier), f"{package} needs an upper bound"
