"""``python -m gaia_sessions`` runs the command line."""

import os
import sys

if __name__ == "__main__":
    try:
        from gaia_sessions.cli.start import main
    except Exception:
        if sys.argv[1:2] != ["hook"] or "--test" in sys.argv:
            raise
        os._exit(0)  # the package is being replaced, and a hook must not stop its host
    main()
