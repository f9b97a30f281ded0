#!/usr/bin/env python3
"""After a sub-agent stopped: JSON on stdin, see README.md beside this file. Try it with --test."""

import gc
import os
import sys

gc.disable()  # the process ends before any garbage could matter

_checkout = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.isdir(os.path.join(_checkout, "gaia_sessions")):
    sys.path[0] = _checkout

if __name__ == "__main__":
    try:
        from gaia_sessions.hook.run import main
        from gaia_sessions.hosts import SUBAGENT_STOP
    except Exception as error:  # noqa: BLE001  # a package that is gone or broken must not stop the host
        os.write(2, f"{sys.argv[0]}: {error}; run it with the Python that has gaia-sessions installed\n".encode())
        os._exit(1 if "--test" in sys.argv else 0)

    # Nothing is buffered, and tearing the interpreter down would cost a tenth of the whole call.
    os._exit(main(SUBAGENT_STOP, sys.argv[1:]))
