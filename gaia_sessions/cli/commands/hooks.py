"""``hooks``: put our hooks into a host's settings, take them out again, say how they stand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.clock import utc_now
from gaia_sessions.project import find_root, working_directory
from gaia_sessions.views import wired
from gaia_sessions.wiring import installing
from gaia_sessions.wiring.hosts import CLAUDE_CODE, HOSTS, PROJECT, SCOPES, Places

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.cli.call import Call
    from gaia_sessions.wiring.installing import Answer

_WHOSE = {
    "user": "In your own settings, for every project.",
    "project": "In the project's settings, which the team shares.  [default]",
    "local": "In the project's settings that are yours alone.",
}


def _where(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options by which a settings file is named."""
    for scope in reversed(SCOPES):
        function = click.option(f"--{scope}", "scope", flag_value=scope, help=_WHOSE[scope])(function)
    hosts = click.Choice(list(HOSTS))
    told = "Whose settings.  [default: claude-code]"
    return click.option("--host", type=hosts, default=CLAUDE_CODE, metavar="NAME", help=told)(function)


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Write nothing; print the difference as a patch.")


@declare_group("hooks install --user", "hooks status")
def command(call: Call) -> None:
    """Install, remove or check the hooks in a host's settings."""


@declare("hooks install", "hooks install --local --allow-report", "hooks install --host codex --user --dry-run")
@_where
@click.option("--track-tools", is_flag=True, help="Also follow what sub-agents do with their tools.")
@click.option("--allow-report", is_flag=True, help="Allow sub-agents to report with our command, and tell them of it.")
@_DRY_RUN
def install(call: Call, scope: str | None, host: str, *, track_tools: bool, allow_report: bool, dry_run: bool) -> None:
    """Put the hooks into the settings; nothing else in there changes.

    Installing again with other options replaces our entries and nobody else's.
    """
    wish = installing.Wish(host, scope or PROJECT, tools=track_tools, report=allow_report)
    _say(call, installing.install(_places(call), wish, utc_now(), dry_run=dry_run))


@declare("hooks uninstall", "hooks uninstall --host codex --user --dry-run")
@_where
@_DRY_RUN
def uninstall(call: Call, scope: str | None, host: str, *, dry_run: bool) -> None:
    """Take the hooks out of the settings; what nobody changed since is as it was to the last byte."""
    _say(call, installing.uninstall(_places(call), installing.Wish(host, scope or PROJECT), dry_run=dry_run))


@declare("hooks status", "hooks status --json")
def status(call: Call) -> None:
    """Say where the hooks are installed, what was heard from them when, and what is doubtful."""
    from gaia_sessions.wiring.status import standing

    found = standing(_places(call).root, os.environ)
    if call.as_json:
        output.say_json(found)
    else:
        output.say_all(wired.stands(found, utc_now()))


def _places(call: Call) -> Places:
    return Places(find_root(call.root, os.environ, working_directory()), os.environ)


def _say(call: Call, answer: Answer) -> None:
    if call.as_json:
        output.say_json(answer)
    else:
        output.say_all(wired.changed(answer))


for _part in (install, uninstall, status):
    command.add_command(_part)
