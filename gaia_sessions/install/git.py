"""Whether git would commit a settings file that is meant for one person.

Owns asking git, which alone knows all its ignore files, and the line that makes it ignore the file. Without git, or
outside a repository that git can read, the status is unknown; so it is where its own ignore file is behind a link.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from functools import partial
from typing import NamedTuple, TypedDict

from gaia_sessions.system import program_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT = 10
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_SPECIAL = re.compile(r"([\\*?\[])")


class Exclusion(TypedDict):
    """The line to add to the ignore file of this repository that is never shared, that file, and a command that does.

    The command is right for every POSIX shell in every folder, and adds to a file whose last line has no end.
    """

    file: str
    line: str
    command: str


class GitStatus(NamedTuple):
    """What git does with a file.

    exclusion: the line that makes git ignore the file; None if git ignores it, tracks it, or cannot be asked.
    """

    is_tracked: bool
    exclusion: Exclusion | None


UNKNOWN_STATUS = GitStatus(is_tracked=False, exclusion=None)


def git_status(path: str, variables: Mapping[str, str]) -> GitStatus:
    """The status of the file ``path``, which need not exist.

    Variables of git are not passed on: where a hook of git runs this, they name that hook's repository.
    """
    folder = _nearest_folder(os.path.dirname(path))
    inside = os.path.relpath(path, folder)
    others = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    ask_git = partial(_ask_git, folder, others | _NO_FETCH)
    if ask_git("check-ignore", "--quiet", "--", inside) != (1, ""):
        return UNKNOWN_STATUS
    if ask_git("ls-files", "--error-unmatch", "--", inside)[0] == 0:
        return GitStatus(is_tracked=True, exclusion=None)
    code, output = ask_git("rev-parse", "--git-path", "info/exclude", "--show-prefix")
    if code != 0:
        return UNKNOWN_STATUS
    exclude, prefix = (*output.split("\n"), "")[:2]
    file = os.path.normpath(os.path.join(folder, exclude))
    if not _is_in_place(file):
        return UNKNOWN_STATUS
    line = _pattern(prefix + inside)
    return GitStatus(is_tracked=False, exclusion={"file": file, "line": line, "command": _command(line, file)})


def _is_in_place(file: str) -> bool:
    """Whether ``file``, in a folder of git's, can be added to, and is not a link to what is not git's."""
    folder = os.path.dirname(file)
    is_linked = os.path.islink(file) or os.path.islink(folder)
    return not is_linked and (os.path.isfile(file) or not os.path.exists(file))


def _command(line: str, file: str) -> str:
    folder = os.path.dirname(file)
    made = "" if os.path.isdir(folder) else f"mkdir -p -- {shlex.quote(folder)} && "
    return f"{made}printf '\\n%s\\n' {shlex.quote(line)} >> {shlex.quote(file)}"


def _pattern(path: str) -> str:
    """The pattern in an ignore file for exactly ``path``, which is relative to the top of the repository."""
    return "/" + _SPECIAL.sub(r"\\\1", path)


def _nearest_folder(folder: str) -> str:
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _ask_git(folder: str, environment: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit code and output of git; if git cannot be run, 128, its own code for a fatal error.

    The file system monitor is a program that the repository chooses, and so is what fetches objects that are missing:
    neither is started.
    """
    try:
        command = [program_path("git", environment), "-c", "core.fsmonitor=false", "-C", folder, *words]
        completed = subprocess.run(  # noqa: S603  # reads only, with the words above
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 128, ""
    return completed.returncode, os.fsdecode(completed.stdout).removesuffix("\n")
