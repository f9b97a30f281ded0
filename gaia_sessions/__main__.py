"""``python -m gaia_sessions`` runs the command line."""

import os
import sys

if __name__ == "__main__":
    try:
        from gaia_sessions.cli.start import main
    except Exception:
        words = sys.argv[1:]
        while words and words[0].startswith("-"):
            del words[: 2 if words[0] in ("--root", "--lock-timeout") else 1]
        if words[:1] != ["hook"] or "--test" in sys.argv or os.isatty(2):
            raise
        os._exit(0)  # the package is being replaced, and a hook must not disturb its host
    main()
