"""A server as an operator sets it up: over TCP it demands TLS and a password by SCRAM, with a CA of its own."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from tests.roles import WORKER, make_roles
from tests.servers import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "s3cret-of-the-worker"  # noqa: S105
_CERTIFICATES = {"server": "2", "expired": "-1"}
"""The certificates for the name localhost, and for how many days they are valid."""


class SecuredServer(Server):
    """A server with the roles of docs/many-machines.md; its certificates are in the folder ``tls``."""

    def __init__(self) -> None:
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        super().__init__("password_encryption = scram-sha-256", port=port, connections=12)
        self.tls = f"{self.folder}/tls"
        os.mkdir(self.tls)
        for name in ("ca", "other"):
            self._openssl("req", "-new", "-x509", "-days", "2", "-subj", f"/CN={name}", *self._files(name, "crt"))
        for name, days in _CERTIFICATES.items():
            asked = "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"
            self._openssl("req", "-new", *asked, *self._files(name, "csr"))
            signed = "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-copy_extensions", "copy"
            self._openssl("x509", "-req", *signed, "-days", days, "-out", f"{name}.crt")
        self.own(*(f"{self.tls}/{name}" for name in os.listdir(self.tls)))
        make_roles(self)
        self.execute(f"ALTER ROLE {WORKER} PASSWORD '{SECRET}'")
        rules = Path(self.folder, "data", "pg_hba.conf")
        rules.write_text("local all all trust\nhostssl all all all scram-sha-256\n", encoding="utf-8")
        self._set(ssl="on", ssl_cert_file=f"{self.tls}/server.crt", ssl_key_file=f"{self.tls}/server.key")

    def _files(self, name: str, kind: str) -> list[str]:
        return ["-nodes", "-out", f"{name}.{kind}", "-keyout", f"{name}.key"]

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.tls)

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
