"""Our command lines and hooks, run in this process as a program would run them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING
from unittest.mock import patch

from gaia_sessions.cli.main import commands, main
from gaia_sessions.hook.run import main as run_hook
from tests.calls import call

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import click

    from tests.calls import Ran


def gaia(
    *words: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] = os.environ,
    folder: str | Path = ".",
    group: click.Group = commands,
    name: str = "gaia-sessions",
) -> Ran:
    """Runs a command line of ``group``, a program called ``name``."""
    return call(lambda: _with_own_streams([*words], group, name), stdin, environment, folder)


def _with_own_streams(words: list[str], group: click.Group, name: str) -> int:
    """Python's standard streams are those that the descriptors are."""
    with ExitStack() as stack:
        for number, stream in enumerate(("stdin", "stdout", "stderr")):
            file = stack.enter_context(open(number, "w" if number else "r", encoding="utf-8", closefd=False))
            stack.enter_context(patch.object(sys, stream, file))
        return main(words, group, name)


def hook(
    name: str, told: object, *words: str, environment: Mapping[str, str] = os.environ, folder: str | Path = "."
) -> Ran:
    """Runs the hook ``name``; ``told`` is its input, as JSON unless it is bytes."""
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    return call(lambda: run_hook(name, [*words]), data, environment, folder)
