"""Runs command lines and hooks in this process."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from gaia_sessions.cli.main import commands, main
from gaia_sessions.hook.run import main as run_hook
from tests.calls import call

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import click

    from tests.calls import Ran


class Ended:
    """The result of a command: exit code, stdout and stderr."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"Ended({self.code}, {self.out!r}, {self.err!r})"

    @property
    def all(self) -> tuple[int, str, str]:
        return self.code, self.out.decode(), self.err.decode()

    @property
    def lines(self) -> list[str]:
        """The lines on stdout, of any result."""
        return self.out.decode().splitlines()

    @property
    def answer(self) -> list[str]:
        """The lines on stdout of a command that succeeded."""
        assert (self.code, self.err, self.out[-1:]) == (0, b"", b"\n"), self
        return self.out[:-1].decode().split("\n")

    @property
    def json(self) -> Any:
        """The JSON answer of a command that succeeded."""
        assert (self.code, self.err) == (0, b""), self
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The JSON error of a command that failed."""
        assert (self.code > 0, self.out) == (True, b""), self
        document = json.loads(self.err)
        assert list(document) == ["error"]
        assert list(document["error"]) == ["code", "message", "hint"]
        return document["error"]

    @property
    def refusal(self) -> tuple[int, str, str]:
        """The exit code, the error and the hint of a command that failed."""
        said = re.fullmatch("Error: (.*)\nHint: (.*)\n", self.err.decode())
        assert (self.out, said is None) == (b"", False), self
        return (self.code, *said.groups())  # type: ignore[union-attr]  # checked above


def gaia(
    *words: str,
    stdin: bytes | int | None = b"",
    environment: Mapping[str, str] = os.environ,
    folder: str | Path = ".",
    group: click.Group = commands,
    name: str = "gaia-sessions",
    **elsewhere: int | None,
) -> Ended:
    """Runs a command line of ``group``, a program called ``name``; ``elsewhere``: see ``tests.calls.call``."""
    return Ended(*call(lambda: main([*words], group, name), stdin, environment, folder, **elsewhere))


def hook(
    name: str, told: object, *words: str, environment: Mapping[str, str] = os.environ, folder: str | Path = "."
) -> Ran:
    """Runs the hook ``name``; ``told`` is its input, as JSON unless it is bytes."""
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    return call(lambda: run_hook(name, [*words]), data, environment, folder)
