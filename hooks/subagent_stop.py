#!/usr/bin/env python3
"""Handles the stop of a sub-agent: JSON on stdin, see README.md beside this file. --test tries it."""

import gc
import os
import sys

gc.disable()  # the process ends before any garbage could matter
_above = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isdir(os.path.join(_above, "gaia_sessions")):
    sys.path[0] = _above
if __name__ == "__main__":
    try:
        if sys.version_info < (3, 11):  # noqa: UP036  # a host may start another Python than ours
            from gaia_sessions.old_python import main
        else:
            from gaia_sessions.hook.run import main
    except Exception as error:  # noqa: BLE001  # a package that is gone, or being replaced, must not stop the host
        if "--test" in sys.argv or os.isatty(2):
            say = f"{sys.argv[0]}: {error}; run it with the Python that has gaia-sessions installed\n"
            os.write(2, say.encode(errors="backslashreplace"))
        os._exit(1 if "--test" in sys.argv else 0)
    os._exit(main("subagent_stop", sys.argv[1:]))  # tearing the interpreter down would cost a tenth of the whole call
