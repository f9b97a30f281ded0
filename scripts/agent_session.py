#!/usr/bin/env python3
"""Accepts the command lines of the earlier agent_session.py. Put a copy of this file, or a link to it, in its place.

It also has the functions of the earlier tool, for scripts that import it. Every Python must be able to parse this file,
because the file says which Python to use.
"""

import os
import sys

_ADVICE = (
    "%s: %s cannot run it (%s): use Python 3.11 or later with gaia-sessions,"
    " which `python3 -m pip install /path/to/gaia-sessions` installs\n"
)


def _give_up(reason):  # type: (object) -> None  # noqa: ANN001, ANN202  # older Pythons know no annotations
    os.write(2, (_ADVICE % (sys.argv[0], sys.executable or "this Python", reason)).encode("utf-8"))
    os._exit(8)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  # this finds an older Python
        _give_up("it is Python " + ".".join(map(str, sys.version_info[:2])))
    try:
        from gaia_sessions.cli.agent_session import main
    except ImportError as error:
        _give_up(error)
    main()
else:
    from gaia_sessions import create_session, finalize_session, get_session, should_resume, update_state  # noqa: F401  # for importers
