"""``python -m gaia_sessions`` is the command line."""

import sys

from gaia_sessions.cli.main import main

sys.exit(main())
