"""What a check of ``doctor`` returns: a finding, with the command that fixes what is wrong.

Owns the form of a finding, and how its command is written so that a shell takes it unchanged.
"""

from __future__ import annotations

import shlex
from typing import TypedDict

from gaia_sessions.errors import well_formed
from gaia_sessions.system.project_root import VARIABLE_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 3


class Finding(TypedDict):
    """The result of a check.

    name: that of the check.
    found: what was found, in words.
    fix: the exact command; None if all is well, or only a person can decide.
    fixable: whether ``doctor --fix`` fixes it.
    """

    name: str
    ok: bool
    found: str
    fix: str | None
    fixable: bool


def ok(name: str, found: str) -> Finding:
    return {"name": name, "ok": True, "found": well_formed(found), "fix": None, "fixable": False}


def problem(name: str, found: str, fix: str | None, *, fixable: bool = False) -> Finding:
    command = None if fix is None else well_formed(fix)
    return {"name": name, "ok": False, "found": well_formed(found), "fix": command, "fixable": fixable}


def first_few(items: Iterable[str]) -> str:
    """The first few of ``items``, and how many more there are."""
    listed = list(items)
    rest = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def shell_command(*words: str) -> str:
    """``words`` as one command of a POSIX shell."""
    return shlex.join(words)


def undo_command(origin: str) -> str:
    """The command that removes a setting from ``origin``: unsets a variable, or opens a file of the user's."""
    return shell_command("unset", origin) if origin.startswith(VARIABLE_PREFIX) else edit_command(origin)


def edit_command(path: str) -> str:
    """The command that opens a file of the user's, which only the user may change."""
    return f'"${{EDITOR:-vi}}" {shell_command(path)}'
