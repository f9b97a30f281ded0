"""``python -m gaia_sessions`` runs the command line."""

from gaia_sessions.cli.start import main

if __name__ == "__main__":
    main()
