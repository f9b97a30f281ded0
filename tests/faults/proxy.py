"""A proxy before a PostgreSQL server that cuts a connection at a chosen moment, or stops as a pooler that hangs.

It reads the messages of the client one by one, so that a test can name the message at which it cuts.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Wanted = Callable[[bytes], bool]

BEFORE, PARTLY, AT, AFTER = CUTS = ("before", "partly", "at", "after")
"""The client is cut off before its message is passed on, after half of it, after all of it, after the answer."""

SILENT_BEFORE, SILENT_AFTER = SILENCES = ("silent before", "silent after")
"""The connection stays open and nobody answers: the server has not got the message, or has answered it."""

_PORT = 5432
_READY = b"Z\0\0\0\5"


def is_commit(message: bytes) -> bool:
    return message.rstrip(b"\0\n").endswith(b"COMMIT")


class Proxy:
    """Listens on a socket in a folder of its own; ``url`` leads through it."""

    def __init__(self, server: str) -> None:
        self._server = f"{server}/.s.PGSQL.{_PORT}"
        self._folder = tempfile.mkdtemp(prefix="gaia-proxy-", dir="/tmp")
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"
        self._changing = threading.Lock()
        self._moment, self._left = "", 0
        self._wanted: Wanted = is_commit
        self._rate, self._random = 0.0, random.Random()
        self.cuts: dict[str, int] = {}
        self.messages: list[bytes] = []
        self._may_run = threading.Event()
        self._may_run.set()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/.s.PGSQL.{_PORT}")
        self._listener.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, moment: str, number: int = 1, wanted: Wanted = is_commit) -> None:
        """Cuts once, at the ``number``-th message from now on that is ``wanted``."""
        with self._changing:
            self._moment, self._left, self._wanted = moment, number, wanted
            self.cuts, self.messages = {}, []

    def cut_often(self, rate: float, seed: int) -> None:
        """Cuts at random moments at this share of the commits."""
        with self._changing:
            self._rate, self._random = rate, random.Random(seed)

    def cut_all(self) -> None:
        """Cuts all connections."""
        for pair in [*self._pairs]:
            _close(*pair)

    def stop(self) -> None:
        """Passes nothing on from now on, and closes nothing."""
        self._may_run.clear()

    def go_on(self) -> None:
        self._may_run.set()

    def close(self) -> None:
        self.go_on()
        _close(self._listener)
        self.cut_all()
        os.unlink(f"{self._folder}/.s.PGSQL.{_PORT}")
        os.rmdir(self._folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._may_run.wait()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:  # the server is down
                    _close(client, server)
                    continue
                connection = _Connection(self, client, server)
                self._pairs.add((client, server))
                threading.Thread(target=connection.pass_messages, daemon=True).start()
                threading.Thread(target=connection.pass_answers, daemon=True).start()

    def wait(self) -> None:
        self._may_run.wait()

    def forget(self, client: socket.socket, server: socket.socket) -> None:
        self._pairs.discard((client, server))

    def moment_of(self, message: bytes) -> str:
        """Returns at which moment of this message to cut; empty for no cut."""
        with self._changing:
            self.messages.append(message)
            moment = ""
            if self._left and self._wanted(message):
                self._left -= 1
                moment = "" if self._left else self._moment
            elif self._rate and is_commit(message) and self._random.random() < self._rate:
                moment = self._random.choice(CUTS)
            if moment:
                self.cuts[moment] = self.cuts.get(moment, 0) + 1
            return moment


class _Connection:
    """One client at the proxy, with its connection to the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._is_cut = False
        self._is_silent = False
        self._answered = threading.Event()

    def pass_messages(self) -> None:
        with suppress(OSError, EOFError):
            self._server.sendall(self._message(0))
            while True:
                message = self._message(1)
                self._proxy.wait()
                moment = self._proxy.moment_of(message) if message[:1] == b"Q" else ""
                if moment in SILENCES:
                    self._is_silent = True
                self._is_cut = bool(moment)
                if moment not in (BEFORE, SILENT_BEFORE):
                    self._server.sendall(message[: len(message) // 2] if moment == PARTLY else message)
                if moment == AFTER:
                    self._answered.wait()
                if moment in CUTS:
                    break
        if not self._is_silent:
            _close(self._client, self._server)
            self._proxy.forget(self._client, self._server)

    def pass_answers(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                self._proxy.wait()
                if self._is_cut:
                    if data[-6:-1] == _READY:
                        self._answered.set()
                else:
                    self._client.sendall(data)
        self._answered.set()
        if not self._is_silent:
            _close(self._client, self._server)

    def _message(self, kind: int) -> bytes:
        """Reads one message, with ``kind`` bytes before its length."""
        head = self._exactly(kind + 4)
        return head + self._exactly(struct.unpack("!I", head[kind:])[0] - 4)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._client.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


def _close(*ends: socket.socket) -> None:
    """Closes sockets that another thread may be reading."""
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
