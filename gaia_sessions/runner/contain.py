"""``--contain``: a command in a pid namespace of its own, in which nothing survives the end of this process.

The first process in the namespace is a shell: another program there would ignore signals that it does not handle.
"""

from __future__ import annotations

import os
import sys

from gaia_sessions.system import program_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# unshare does not notice if we die while it makes the namespace. So this writes to our pipe before the command starts,
# and fails if we are gone.
_IS_WRAPPER_THERE = """
import os, signal, sys
pipe = int(sys.argv[1])
try:
    os.write(pipe, b".")
except OSError:
    os._exit(1)
os.close(pipe)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
"""
# stderr is closed for the shell: it would print by which signal the command died.
_FIRST_PROCESS = 'trap : HUP INT QUIT TERM; exec 3>&2 2> /dev/null; (exec 2>&3 3>&-; exec "$@"); exit $?'
_ROOT_NEEDS = "in a container, it needs the capability SYS_ADMIN"
_USER_NEEDS = "it needs root, or user namespaces, which an administrator can allow"
_PROBE_SECONDS = 10


def why_impossible() -> str | None:
    """Returns why no command can be contained here, and what to do; None if a test succeeds."""
    import subprocess

    if sys.platform != "linux":
        return "only Linux has pid namespaces"
    try:
        tried = subprocess.run(  # noqa: S603  # our own words
            [*_in_namespace(), program_path("true", os.environ)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return "the command unshare is missing: install util-linux"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unshare cannot be used: {error}"
    if tried.returncode == 0:
        return None
    said = tried.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {tried.returncode}"
    return f"the system refuses it ({said}): {_ROOT_NEEDS if os.geteuid() == 0 else _USER_NEEDS}"


def contained(argv: Sequence[str | bytes], pipe: int) -> list[str | bytes]:
    """Returns the command that runs ``argv`` in a pid namespace, with the exit code of ``argv``."""
    check = [sys.executable, "-I", "-S", "-c", _IS_WRAPPER_THERE, str(pipe)]
    return [*_in_namespace(), *check, program_path("sh", os.environ), "-c", _FIRST_PROCESS, "sh", *argv]


def _in_namespace() -> list[str]:
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return [program_path("unshare", os.environ), *as_user, "--pid", "--fork", "--kill-child", "--mount-proc"]


def namespace_of(pid: int) -> str | None:
    """Returns the pid namespace that the process ``pid`` made for its children; None if it made none."""
    try:
        own, below = (os.readlink(f"/proc/{path}") for path in ("self/ns/pid", f"{pid}/ns/pid_for_children"))
    except OSError:
        return None
    return below if below != own else None
