"""What a hook does under a Python that is too old: it writes one line to the log.

Every Python from 3.6 on can run this module, so it imports nothing of ours.
"""

import json
import os
import sys
import time
from contextlib import suppress

_LARGEST_LOG = 1 << 20


def main(_hook: str, words: "list[str]") -> int:
    """Logs why nothing is recorded, and returns 0; with --test it prints the reason and returns 1."""
    found = ".".join(map(str, sys.version_info[:3]))
    said = f"needs Python 3.11, found {found} at {sys.executable or 'an unknown place'}"
    if "--test" in words or os.isatty(2):
        sys.stderr.write(f"gaia-sessions {said}\n")
        sys.stderr.flush()
        return 1 if "--test" in words else 0
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    with suppress(OSError):
        _append(json.dumps({"at": at, "decision": "error", "error": said}) + "\n")
    return 0


def _append(line: str) -> None:
    """Adds ``line`` to the log of the hooks, and creates its folder if needed."""
    root = os.environ.get("GAIA_SESSIONS_ROOT", "")
    project = os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    above, name = (root, ".logs") if os.path.isabs(root) else (os.path.join(project, ".claude"), "logs")
    folder = os.path.join(above, name)
    if os.path.islink(above) or os.path.islink(folder):
        return
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
        _append_to(os.path.join(folder, ".gitignore"), "*\n")
    _append_to(os.path.join(folder, "hook.log"), line)


def _append_to(path: str, line: str) -> None:
    """Adds ``line`` to a file, unless the file has reached its largest size."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(path, flags, 0o600)
    try:
        if os.fstat(fd).st_size < _LARGEST_LOG:
            os.write(fd, line.encode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)
