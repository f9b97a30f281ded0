"""A server as an operator sets it up: over TCP it demands TLS and a password by SCRAM, with a CA of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from tests.roles import WORKER, blocks, make_roles
from tests.servers import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "s3cret-of-the-worker"  # noqa: S105


class SecuredServer(Server):
    """A server with the roles and the certificate of docs/many-machines.md, for the name localhost."""

    def __init__(self) -> None:
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        super().__init__("password_encryption = scram-sha-256", port=port, connections=12)
        self.tls = f"{self.folder}/tls"
        os.mkdir(self.tls)
        [typed] = blocks("sh")
        typed = typed.replace("db.example.com", "localhost")
        self._type(typed.replace("-days 365 ", "-days -1 ").replace("server.crt", "expired.crt"))
        self._type("mv ca.crt other.crt; mv ca.key other.key; mv server.key expired.key")
        self._type(typed)
        self.own(*(f"{self.tls}/{name}" for name in os.listdir(self.tls)))
        make_roles(self)
        self.execute(f"ALTER ROLE {WORKER} PASSWORD '{SECRET}'")
        rules = Path(self.folder, "data", "pg_hba.conf")
        rules.write_text("local all all trust\nhostssl all all all scram-sha-256\n", encoding="utf-8")
        self._set(ssl="on", ssl_cert_file=f"{self.tls}/server.crt", ssl_key_file=f"{self.tls}/server.key")

    def _type(self, lines: str) -> None:
        subprocess.run(["sh", "-eu", "-c", lines], check=True, capture_output=True, cwd=self.tls)

    @property
    def worker_url(self) -> str:
        """The URL of the worker over TCP; the certificate and the name of the server are verified."""
        place = f"{WORKER}@localhost:{self.port}/agents"
        return f"postgresql://{place}?sslmode=verify-full&sslrootcert={self.tls}/ca.crt"

    @contextmanager
    def settings(self, **values: str) -> Iterator[None]:
        """The server has these settings in the block."""
        before = {name: self._shown(name) for name in values}
        self._set(**values)
        try:
            yield
        finally:
            self._set(**before)

    def _set(self, **values: str) -> None:
        for name, value in values.items():
            self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")
        while any(self._shown(name) != value for name, value in values.items()):
            pass

    def _shown(self, name: str) -> str:
        with psycopg.connect(self.url) as connection:
            [[value]] = connection.execute(f"SHOW {name}".encode()).fetchall()
        return str(value)
