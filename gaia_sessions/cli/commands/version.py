"""``version``: print the text of ``--version``."""

from __future__ import annotations

import click

from gaia_sessions import __version__
from gaia_sessions.cli import output


@click.command(hidden=True)
def command() -> int:
    """Print the version."""
    output.print_line(f"gaia-sessions, version {__version__}")
    return 0
