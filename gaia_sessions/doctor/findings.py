"""What a check of ``doctor`` returns: a finding, with the command that fixes what is wrong.

Owns the form of a finding, and how its command is written so that a shell takes it unchanged.
"""

from __future__ import annotations

import os
import shlex
import sys
from itertools import groupby
from typing import TypedDict

from gaia_sessions.errors import well_formed
from gaia_sessions.system.project_root import VARIABLE_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gaia_sessions.config.sources import Fault

_SHOWN = 3


OK, WARNING, PROBLEM, NOT_CHECKED = "ok", "warning", "problem", "not_checked"


class Finding(TypedDict):
    """A result of a check.

    name: that of the check.
    state: ``ok``, ``warning``, ``problem``, or ``not_checked`` if there was nothing to look at.
    found: what was found, in words; for ``not_checked``, what was not looked at, and why.
    fix: the exact command; None if there is nothing to fix, or only a person can decide.
    fixable: whether ``doctor --fix`` fixes it.
    """

    name: str
    state: str
    found: str
    fix: str | None
    fixable: bool


def ok(name: str, found: str) -> Finding:
    return finding(name, OK, found)


def not_checked(name: str, found: str) -> Finding:
    return finding(name, NOT_CHECKED, found)


def warning(name: str, found: str, fix: str | None = None) -> Finding:
    return finding(name, WARNING, found, fix)


def problem(name: str, found: str, fix: str | None, *, fixable: bool = False) -> Finding:
    return finding(name, PROBLEM, found, fix, fixable=fixable)


def finding(name: str, state: str, found: str, fix: str | None = None, *, fixable: bool = False) -> Finding:
    command = fix if fix is not None and well_formed(fix) == fix else None  # as text it would name another file
    return {"name": name, "state": state, "found": well_formed(found), "fix": command, "fixable": fixable}


def first_few(items: Iterable[str]) -> str:
    """The first few of ``items``, and how many more there are."""
    listed = list(items)
    rest = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def shell_command(*words: str) -> str:
    """``words`` as one command of a POSIX shell."""
    return shlex.join(words)


def own_command(environ: Mapping[str, str], *words: str) -> str:
    """The command ``gaia-sessions`` with ``words``, by the interpreter if it is not on the path.

    With ``-P`` a module of the folder where it is typed is not taken for one of ours.
    """
    import shutil

    installed = shutil.which("gaia-sessions", path=environ.get("PATH"))
    program = ["gaia-sessions"] if installed else [sys.executable, "-P", "-m", "gaia_sessions"]
    return shell_command(*program, *words)


def undo_command(origin: str) -> str:
    """The command that removes a setting from ``origin``: unsets a variable, or opens a file of the user's."""
    return shell_command("unset", origin) if origin.startswith(VARIABLE_PREFIX) else edit_command(origin)


def _fix_of(fault: Fault) -> str:
    """The command for a fault in the settings; an editor would follow a link to wherever a stranger has it lead."""
    if fault.is_file:
        return undo_command(fault.origin)
    is_folder = os.path.isdir(fault.origin) and not os.path.islink(fault.origin)
    return shell_command("rm", *(["-r"] if is_folder else []), "--", fault.origin)


def edit_command(path: str) -> str:
    """The command that opens a file of the user's, which only the user may change; of a link, where it leads."""
    return f"${{EDITOR:-vi}} {shell_command(os.path.realpath(path) if os.path.islink(path) else path)}"


def setting_faults(faults: list[Fault]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with the settings of gaia-sessions, for each origin: the origin, the sentence and the command."""
    for origin, of_origin in groupby(faults, lambda fault: fault.origin):
        first, *others = of_origin
        texts = [f"{first} ({first.hint})", *(f"{fault.problem} ({fault.hint})" for fault in others)]
        yield origin, "; ".join(texts), _fix_of(first)
