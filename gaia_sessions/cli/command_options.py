"""Options of ``run`` and ``send`` for the command that they start: its limits, its client, its folder."""

from __future__ import annotations

import click

from gaia_sessions.api.command import DEFAULT_GRACE, DEFAULT_TIMEOUT
from gaia_sessions.hosts.clients import BY_NAME, PRESETS

from .option_values import SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .option_values import Function

CWD = click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Folder to run in. A client finds a conversation only where the conversation began.  [default: here]",
)


def with_limits(command: Function) -> Function:
    """Adds the time limits to ``command``."""
    told = "End the command after this time, by SIGTERM, or as the preset does.  [default: 10m]"
    killed = "Kill the command if it still runs this long after it was told to end.  [default: 30s]"
    timeout = click.option("--timeout", type=SECONDS, default=DEFAULT_TIMEOUT, help=told)
    return timeout(click.option("--grace", type=SECONDS, default=DEFAULT_GRACE, help=killed)(command))


def with_presets(command: Function) -> Function:
    """Adds the options for the preset to ``command``; ``wanted_preset`` reads them."""
    without = click.option(
        "--no-preset", is_flag=True, help="Use no preset, even if the program has the name of a client."
    )
    named = click.option(
        "--preset",
        type=click.Choice(PRESETS),
        help="The client that the command starts.  [default: by the name of its program]",
    )
    return named(without(command))


def wanted_preset(preset: str | None, *, no_preset: bool) -> str | None:
    """Returns the wanted preset in the form of ``hosts.clients``."""
    return None if no_preset else preset or BY_NAME
