"""``python -m gaia_sessions`` runs the command line."""

import os
import sys

if __name__ == "__main__":
    try:
        from gaia_sessions.cli.start import main
    except Exception:
        is_hook = sys.argv[1:2] == ["hook"] or sys.argv[1:4:2] == ["--root", "hook"]
        if not is_hook or "--test" in sys.argv or os.isatty(2):
            raise
        os._exit(0)  # the package is being replaced, and a hook must not stop its host
    main()
