"""``hooks``: install our hooks in a host's settings, uninstall them, and show their status."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from gaia_sessions import hosts
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.render.hooks import result_lines, status_lines
from gaia_sessions.errors import OwnedByAnother, UnknownHost, UsageError, well_formed
from gaia_sessions.hosts.settings import LOCAL, PROJECT, SCOPES, USER
from gaia_sessions.install import plan, scopes
from gaia_sessions.install.places import HOSTS, Places
from gaia_sessions.session.clock import utc_now
from gaia_sessions.system.project_root import SESSIONS_PATH, check_owner, find_root, working_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.cli.call import Call
    from gaia_sessions.install.plan import InstallRequest, InstallResult

_SCOPE_HELP = {
    USER: "Your own settings, for all projects.",
    PROJECT: "The project's settings, shared with the team.",
    LOCAL: "The project's settings that only you use.  [default where the host has them]",
}


class _Host(click.Choice[str]):
    """A host whose settings we write; a host that must be configured manually has an error of its own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        if value in hosts.HOSTS and value not in HOSTS:
            raise UsageError(
                f"{value} must be configured manually", "docs/hosts.md explains how, under Experimental hosts"
            )
        if value not in HOSTS:
            raise UnknownHost(value, HOSTS)
        return super().convert(value, param, ctx)


_HERE = click.option(
    "--here",
    is_flag=True,
    help="Use the settings of this folder instead of the project's: a client reads those of the folder it starts in.",
)
_HOST = click.option(
    "--host",
    type=_Host(list(HOSTS)),
    default=hosts.CLAUDE_CODE,
    metavar="|".join(HOSTS),
    help="Host whose settings to use.  [default: claude-code]",
)


def _settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that select a settings file: ``function`` gets its ``scope`` and the ``places`` of this call."""

    @wraps(function)
    def run_with_scope(call: Call, **options: Any) -> object:  # noqa: ANN401  # as click gives them
        given_scopes = [scope for scope in SCOPES if options.pop(scope)]
        if len(given_scopes) > 1:
            raise UsageError(
                f"--{' and --'.join(given_scopes)} cannot be combined", "choose one; install in the other afterwards"
            )
        if (here := options.pop("here")) and given_scopes == [USER]:
            raise UsageError(
                "--user and --here cannot be combined", "your own settings are read in every folder; omit --here"
            )
        places = _places(call, here=here)
        if given_scopes != [USER]:
            _check_project_owner(places.project)
        scope = given_scopes[0] if given_scopes else scopes.installed_scope(places, HOSTS[options["host"]])
        return function(call, places=places, scope=scope, **options)

    decorated: Callable[..., Any] = run_with_scope
    for scope in reversed(SCOPES):
        decorated = click.option(f"--{scope}", scope, is_flag=True, help=_SCOPE_HELP[scope])(decorated)
    return _HOST(_HERE(decorated))


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Write nothing; print the changes as a patch.")


@declare_group("hooks install --user", "hooks status")
def command(call: Call) -> None:
    """Install, remove or check the hooks in a host's settings."""


@declare("hooks install", "hooks install --allow-report", "hooks install --host codex --user --dry-run")
@_settings_options
@click.option("--track-tools", is_flag=True, help="Also track the tools that sub-agents use.")
@click.option(
    "--allow-report",
    is_flag=True,
    help="Allow sub-agents to report with gaia-sessions update, and tell them how.",
)
@_DRY_RUN
def install(
    call: Call, places: Places, scope: str, host: str, *, track_tools: bool, allow_report: bool, dry_run: bool
) -> None:
    """Add the hooks to a host's settings.

    Nothing else in the settings changes. Installing again replaces the entries of gaia-sessions in the file that has
    them, and drops options that are not given again.
    """
    request = plan.InstallRequest(plan.INSTALL, host, scope, tools=track_tools, report=allow_report)
    scopes.refuse_second(places, request.host, scope)
    _print_result(call, _carry_out(call, places, request, dry_run=dry_run))


@declare("hooks uninstall", "hooks uninstall --host codex --user --dry-run")
@_settings_options
@_DRY_RUN
def uninstall(call: Call, places: Places, scope: str, host: str, *, dry_run: bool) -> None:
    """Remove the hooks from a host's settings.

    A file that nobody changed since the installation is restored byte for byte.
    """
    _print_result(call, _carry_out(call, places, plan.InstallRequest(plan.UNINSTALL, host, scope), dry_run=dry_run))


@declare("hooks status", "hooks status --json")
def status(call: Call) -> None:
    """Show where the hooks are installed.

    Also which events start them, when each event was last received, and what may be wrong.
    """
    from gaia_sessions.install.status import hook_status

    root = call.session_root()
    check_owner(root)
    now = utc_now()
    report = hook_status(root, os.environ, now)
    if call.as_json:
        output.print_json(_to_utf8(report))
    else:
        output.print_lines(status_lines(report, now))


def _places(call: Call, *, here: bool = False) -> Places:
    """The places of this call; with ``here``, those for clients that are started in the working directory."""
    if not here:
        return Places(call.session_root(), os.environ)
    folder = working_directory()
    return Places(find_root(call.root, {**os.environ, "CLAUDE_PROJECT_DIR": folder}, folder), os.environ, folder)


def _check_project_owner(project: str) -> None:
    """Raises ``OwnedByAnother``, with a hint about hooks, for a project of another user."""
    try:
        check_owner(os.path.join(project, SESSIONS_PATH))
    except OwnedByAnother as error:
        error.hint = "use your own settings, which apply to every project: gaia-sessions hooks install --user"
        raise


def _carry_out(call: Call, places: Places, request: InstallRequest, *, dry_run: bool) -> InstallResult:
    """The result of ``request``; an installation names the files before it writes them."""
    if dry_run:
        return plan.make_plan(places, request, utc_now()).preview()
    with plan.locked_plan(places, request, utc_now()) as changes:
        if changes.changed_files and request.action == plan.INSTALL and not call.as_json:
            files = ", ".join(map(well_formed, changes.changed_files))
            output.print_to_stderr(f"{request.host.name}: writing {files}")
        return changes.apply()


def _print_result(call: Call, result: InstallResult) -> None:
    if call.as_json:
        output.print_json(_to_utf8(result))
    else:
        output.print_lines(result_lines(result))


def _to_utf8(value: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    """``value`` with every text valid in UTF-8: paths and the settings of others may contain any bytes."""
    if isinstance(value, dict):
        return {_to_utf8(key): _to_utf8(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_to_utf8(inner) for inner in value]
    return well_formed(value) if isinstance(value, str) else value


for _part in (install, uninstall, status):
    command.add_command(_part)
