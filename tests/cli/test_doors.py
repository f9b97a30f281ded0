"""The source of the command line reaches sessions only through the API."""

from __future__ import annotations

import ast
from pathlib import Path

from gaia_sessions import cli
from tests.table import table

SOURCE = Path(cli.__file__).parent

# ``main`` writes the log of internal errors, which is not a session, with the writer of the store.
MAY_IMPORT_THE_STORE = {"main.py"}


def names_in(file: str) -> set[str]:
    """The modules that ``file`` imports, and the attributes that it uses."""
    found = set()
    for node in ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(f".{node.attr}")
    return found


@table("file", sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")))
def test_a_command_reaches_sessions_through_the_api_and_never_their_store(file: str) -> None:
    names = names_in(file)
    assert names & {".store", "._store"} == set()
    assert file in MAY_IMPORT_THE_STORE or not [name for name in names if name.startswith("gaia_sessions.store")]
