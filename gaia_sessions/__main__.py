"""``python -m gaia_sessions`` is the command line."""

from gaia_sessions.cli.start import main

if __name__ == "__main__":
    main()
