"""A PostgreSQL server for tests: an ordinary user's, on a socket in a temporary directory."""

from __future__ import annotations

import atexit
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import psycopg

PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
_PORT = 5432


class Server:
    """A server that runs; ``url`` leads to its database. With a ``port``, it listens there too."""

    def __init__(
        self,
        *settings: str,
        connections: int = 60,
        fsync: bool = False,
        port: int = _PORT,
        above: str = "/tmp",  # noqa: S108  # a socket's path has at most 107 bytes
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="gaia-postgres-", dir=above)
        self._own("initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        lines = [
            f"unix_socket_directories = '{self.folder}'",
            f"port = {port}",
            "listen_addresses = 'localhost'" if port != _PORT else "listen_addresses = ''",
            f"fsync = {'on' if fsync else 'off'}",
            f"max_connections = {connections}",
            *settings,
        ]
        with open(f"{self.folder}/data/postgresql.conf", "a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.url = f"postgresql://postgres@/postgres?host={self.folder}&port={port}"
        self.port = port
        self.start()
        atexit.register(self.remove)

    def start(self) -> None:
        self._own("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._own("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    @property
    def pid(self) -> int:
        with open(f"{self.folder}/data/postmaster.pid", encoding="utf-8") as file:
            return int(file.readline())

    def kill(self) -> None:
        """Kills the postmaster with SIGKILL, and waits until its processes have ended."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}") or self._processes():
            time.sleep(0.01)

    def _processes(self) -> list[int]:
        """The processes that work in the data directory, as all processes of a server do."""
        found = []
        for link in glob.glob("/proc/[0-9]*/cwd"):
            with suppress(OSError):
                if os.readlink(link) == f"{self.folder}/data":
                    found.append(int(link.split("/")[2]))
        return found

    def hang(self) -> None:
        """Stops all processes, so that the server takes connections and never answers."""
        self._send_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._send_all(signal.SIGCONT)

    def _send_all(self, number: int) -> None:
        for pid in self._processes():
            os.kill(pid, number)

    def set_lapse(self, lapse: str) -> None:
        """Sets the time after which a lease lapses."""
        self.execute(
            "CREATE OR REPLACE FUNCTION gaia_sessions.lapse () RETURNS interval LANGUAGE sql IMMUTABLE "
            f"AS $$ SELECT interval '{lapse}' $$"
        )

    def own(self, *paths: str) -> None:
        """Gives files to the user of the server, for this user alone."""
        for path in paths:
            os.chmod(path, 0o600)
        as_user("true", folder=self.folder)

    def execute(self, sql: str) -> None:
        """Runs a statement as the superuser of the server."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql)

    def remove(self) -> None:
        if os.path.isdir(self.folder):
            self.go_on()
            subprocess.run(
                self._command("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-w", "stop"),
                check=False,
                capture_output=True,
            )
            shutil.rmtree(self.folder, ignore_errors=True)

    def _own(self, program: str, *words: str) -> None:
        done = subprocess.run(self._command(program, *words), check=False, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, program: str, *words: str) -> list[str]:
        return as_user(f"{PROGRAMS[-1]}/{program}", *words, folder=self.folder)


class Pooler:
    """A pooler before ``server``, with few connections to it."""

    def __init__(self, server: Server, mode: str = "transaction") -> None:
        self.folder = f"{server.folder}/pooler-{mode}"
        os.mkdir(self.folder)
        lines = [
            "[databases]",
            f"postgres = host={server.folder} user=postgres",
            "[pgbouncer]",
            f"unix_socket_dir = {self.folder}",
            "listen_port = 6432",
            "auth_type = any",
            f"pool_mode = {mode}",
            "default_pool_size = 4",
            f"logfile = {self.folder}/log",
        ]
        with open(f"{self.folder}/ini", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.url = f"postgresql://postgres@/postgres?host={self.folder}&port=6432"
        self.process = subprocess.Popen(as_user("pgbouncer", "-q", f"{self.folder}/ini", folder=self.folder), cwd="/")
        atexit.register(self.stop)
        end = time.monotonic() + 20
        while not os.path.exists(f"{self.folder}/.s.PGSQL.6432"):
            assert time.monotonic() < end
            time.sleep(0.01)

    def stop(self) -> None:
        """Ends the pooler, also if it is suspended."""
        self.process.kill()
        self.process.wait()


def as_user(*command: str, folder: str) -> list[str]:
    """The command as an ordinary user, who gets the ``folder``: servers refuse to run as root."""
    if os.geteuid() != 0:
        return [*command]
    subprocess.run(["chown", "-R", "nobody", folder], check=True)
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


@cache
def shared_pooler() -> Pooler:
    """The pooler before the server of this process."""
    return Pooler(shared_server())


def empty_pooled_url() -> str:
    """The URL of a pooler before a database with empty tables; skips the test if one is missing."""
    empty_url()
    if shutil.which("pgbouncer") is None:
        pytest.skip("pgbouncer is not installed")
    return shared_pooler().url


@cache
def shared_server() -> Server:
    """The server of this process, with empty tables."""
    from gaia_sessions.postgres.setup import init

    server = Server()
    init(server.url)
    return server


def check_installed() -> None:
    """Skips the test if there is no PostgreSQL or no psycopg."""
    if not PROGRAMS:
        pytest.skip("PostgreSQL is not installed")
    pytest.importorskip("psycopg", exc_type=ModuleNotFoundError)


def empty_url() -> str:
    """The URL of a database with empty tables; skips the test if there is no PostgreSQL or no psycopg."""
    check_installed()
    url = shared_server().url
    empty(url)
    return url


def empty(url: str) -> None:
    """Empties the tables at ``url``."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE " + ", ".join(f"gaia_sessions.{table}" for table in tables_of(connection)))


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    """The names of all tables but the one of migrations."""
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'gaia_sessions'")
    return [name for (name,) in found if name != "migration"]


def root_of(kind: str, folder: Path) -> str:
    """The root of a test that runs on ``files`` and on a ``server``: a new folder or an empty database."""
    return empty_url() if kind == "server" else str(folder / "session")


def cut_connections(url: str) -> None:
    """Ends all connections to the server, as a restart does, and waits until they are gone."""
    import psycopg

    others = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid, 10000) {others}")


class Cut:
    """Cuts all connections once, before the statement with this ``number`` of a ``module``, else of a transaction."""

    def __init__(self, patch: pytest.MonkeyPatch, url: str, number: int, module: ModuleType | None = None) -> None:
        from gaia_sessions.postgres import connections, transaction

        self.was_made = False
        self._left = number
        execute = connections.execute

        def cut_or_execute(*arguments: Any, **named: Any) -> Any:
            if self._left == 0:
                self.was_made = True
                cut_connections(url)
            self._left -= 1
            return execute(*arguments, **named)

        patch.setattr(module or transaction, "execute", cut_or_execute)
