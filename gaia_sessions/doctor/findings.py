"""What a check says: whether all is well, what was found, and the command that fixes it.

Owns that shape and how commands are written so that a shell takes them as they stand.
"""

from __future__ import annotations

import shlex
from typing import TypedDict

from gaia_sessions.errors import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 3


class Finding(TypedDict):
    """name: of the check. mend: the exact command, null where all is well or only a person can tell.

    fixable: whether ``doctor --fix`` fixes it.
    """

    name: str
    ok: bool
    found: str
    mend: str | None
    fixable: bool


def ok(name: str, found: str) -> Finding:
    return {"name": name, "ok": True, "found": well_formed(found), "mend": None, "fixable": False}


def problem(name: str, found: str, fix: str | None, *, fixable: bool = False) -> Finding:
    command = None if fix is None else well_formed(fix)
    return {"name": name, "ok": False, "found": well_formed(found), "mend": command, "fixable": fixable}


def first_few(things: Iterable[str]) -> str:
    """The first few of ``things``, and how many more there are."""
    listed = list(things)
    rest = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def shell_command(*words: str) -> str:
    """``words`` as one command of a POSIX shell."""
    return shlex.join(words)


def edit_command(path: str) -> str:
    """To open a file of the user's, which nobody else may change."""
    return f'"${{EDITOR:-vi}}" {shell_command(path)}'
