"""What git makes of a settings file that is meant for one person: whether a commit could take it in.

Owns asking git, which alone knows all its ignore files, and the line that would make it ignore the file. Where there is
no git, no repository, or one that git refuses to read, nothing is known, and nothing said.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from typing import NamedTuple, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT = 10
_SPECIAL = re.compile(r"([\\*?\[])")


class Exclusion(TypedDict):
    """file: the ignore file of this repository that is never shared; line: what it lacks."""

    file: str
    line: str


class GitStatus(NamedTuple):
    """exclusion: what it takes to have the file ignored, None if it is already, or nothing is known."""

    is_tracked: bool
    exclusion: Exclusion | None


UNKNOWN_STATUS = GitStatus(is_tracked=False, exclusion=None)


def git_status(path: str, variables: Mapping[str, str]) -> GitStatus:
    """How git sees the file ``path``, be it there or not.

    What ``variables`` say of a repository is not passed on: it is of the one that a hook of git runs in.
    """
    folder = _nearest_folder(os.path.dirname(path))
    inside = os.path.relpath(path, folder)
    ask_git = partial(
        _ask_git, folder, {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    )
    if ask_git("check-ignore", "--quiet", "--", inside) != (1, ""):
        return UNKNOWN_STATUS
    if ask_git("ls-files", "--error-unmatch", "--", inside)[0] == 0:
        return GitStatus(is_tracked=True, exclusion=None)
    code, output = ask_git("rev-parse", "--git-path", "info/exclude", "--show-prefix")
    if code != 0:
        return UNKNOWN_STATUS
    exclude, prefix = (*output.split("\n"), "")[:2]
    file = os.path.normpath(os.path.join(folder, exclude))
    return GitStatus(is_tracked=False, exclusion={"file": file, "line": _pattern(prefix + inside)})


def _pattern(path: str) -> str:
    """``path`` from the top of the repository on, as an ignore file names it and nothing else."""
    return "/" + _SPECIAL.sub(r"\\\1", path)


def _nearest_folder(folder: str) -> str:
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _ask_git(folder: str, environment: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit code and answer of git; 128, git's own for what cannot be done, where it cannot be asked.

    A file system monitor is a program that the repository names, and is not started for a question.
    """
    command = ["git", "-c", "core.fsmonitor=false", "-C", folder, *words]
    try:
        completed = subprocess.run(  # noqa: S603  # a question, with the words above
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 128, ""
    return completed.returncode, os.fsdecode(completed.stdout).removesuffix("\n")
