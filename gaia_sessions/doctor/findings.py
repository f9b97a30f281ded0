"""What a check of ``doctor`` returns: a finding, with the command that fixes the problem, quoted for a shell."""

from __future__ import annotations

import os
import shlex
import sys
from itertools import groupby
from typing import TypedDict

from gaia_sessions.errors import plural, well_formed
from gaia_sessions.system.project_root import VARIABLE_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gaia_sessions.config.sources import Fault

_SHOWN = 3


OK, WARNING, PROBLEM, NOT_CHECKED = "ok", "warning", "problem", "not_checked"


SERVER = "server"
"""The name of each check of a server begins with this."""


class Finding(TypedDict):
    """A result of a check."""

    name: str  # the name of its check
    state: str
    found: str  # in words; for NOT_CHECKED, what was not checked, and why
    fix: str | None  # None if nothing is wrong, or only a person can decide
    fixable: bool  # by ``doctor --fix``


def ok(name: str, found: str) -> Finding:
    return finding(name, OK, found)


def not_checked(name: str, found: str) -> Finding:
    return finding(name, NOT_CHECKED, found)


def warning(name: str, found: str, fix: str | None = None) -> Finding:
    return finding(name, WARNING, found, fix)


def problem(name: str, found: str, fix: str | None, *, fixable: bool = False) -> Finding:
    return finding(name, PROBLEM, found, fix, fixable=fixable)


def finding(name: str, state: str, found: str, fix: str | None = None, *, fixable: bool = False) -> Finding:
    command = fix if fix is not None and well_formed(fix) == fix else None  # else it would name another file
    return {"name": name, "state": state, "found": well_formed(found), "fix": command, "fixable": fixable}


def first_few(items: Iterable[str]) -> str:
    """Returns the first few of ``items``, and how many more there are."""
    listed = list(items)
    rest = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def shell_command(*words: str) -> str:
    """Returns ``words`` as one command of a POSIX shell."""
    return shlex.join(words)


def own_command(environ: Mapping[str, str], *words: str, in_full: bool = False) -> str:
    """Returns the command ``gaia-sessions`` with ``words``; if it is not on the PATH, Python starts it.

    in_full: with the path of the program, as cron needs it.
    """
    import shutil

    installed = shutil.which("gaia-sessions", path=environ.get("PATH"))
    # With -P, Python does not import a module from the current folder instead of one of ours.
    found = [os.path.abspath(installed) if in_full else "gaia-sessions"] if installed else None
    return shell_command(*(found or [sys.executable, "-P", "-m", "gaia_sessions"]), *words)


def undo_command(origin: str) -> str:
    """Returns the command that removes a setting: it unsets a variable, or opens a file of the user."""
    return shell_command("unset", origin) if origin.startswith(VARIABLE_PREFIX) else edit_command(origin)


def _fix_of(fault: Fault) -> str:
    """Returns the command for a fault in the settings."""
    if fault.is_file:
        return undo_command(fault.origin)
    # An editor would follow a link of a stranger, so the command removes anything that is not a file.
    is_folder = os.path.isdir(fault.origin) and not os.path.islink(fault.origin)
    return shell_command("rm", *(["-r"] if is_folder else []), "--", fault.origin)


def moving_text(agent_ids: Sequence[str]) -> str:
    """Returns what is wrong with sessions between two roots. Anybody may have written these, so they are not named."""
    them = plural(len(agent_ids), "session")
    return (
        f"{them} cannot be changed until you type again the `store copy` that was interrupted: {first_few(agent_ids)}"
    )


def edit_command(path: str) -> str:
    """Returns the command that opens a file that only the user is allowed to change; for a link, its target."""
    return f"${{EDITOR:-vi}} {shell_command(os.path.realpath(path) if os.path.islink(path) else path)}"


def setting_faults(faults: list[Fault]) -> Iterator[tuple[str, str, str]]:
    """Yields for each fault in our settings its origin, a sentence, and the command that repairs it."""
    for origin, of_origin in groupby(faults, lambda fault: fault.origin):
        first, *others = of_origin
        texts = [f"{first} ({first.hint})", *(f"{fault.problem} ({fault.hint})" for fault in others)]
        yield origin, "; ".join(texts), _fix_of(first)
