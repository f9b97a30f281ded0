"""``hooks``: put our hooks into a host's settings, take them out again, say how they stand."""

from __future__ import annotations

import os
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare, declare_group
from gaia_sessions.cli.render import hooks
from gaia_sessions.errors import OwnedByAnother, UnknownHost, UsageError, well_formed
from gaia_sessions.hosts import registry as heard
from gaia_sessions.install import plan, scopes
from gaia_sessions.install.places import HOSTS, LOCAL, PROJECT, SCOPES, USER, Places
from gaia_sessions.session.clock import utc_now
from gaia_sessions.system.project_root import SESSIONS_PATH, check_owner, find_root, working_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.cli.call import Call
    from gaia_sessions.install.plan import InstallResult

_SCOPE_HELP = {
    USER: "Your own settings, for all projects.",
    PROJECT: "The project's settings, shared with the team.",
    LOCAL: "The project's settings that are yours alone.  [default where the host has them]",
}


class _Host(click.Choice[str]):
    """A host whose settings we write; of one that is wired by hand it is said that there is a way."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        if value in heard.HOSTS and value not in HOSTS:
            raise UsageError(f"{value} is wired by hand", "docs/hosts.md says how, under Experimental hosts")
        if value not in HOSTS:
            raise UnknownHost(value, HOSTS)
        return super().convert(value, param, ctx)


def _settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options by which a settings file is named: ``function`` gets one ``scope``, and the ``places`` it is in."""

    @wraps(function)
    def run_with_scope(call: Call, **options: Any) -> object:  # noqa: ANN401  # as click gives them
        given_scopes = [scope for scope in SCOPES if options.pop(scope)]
        if len(given_scopes) > 1:
            raise UsageError(
                "--" + " and --".join(given_scopes) + " at once", "name one; install in the other after it"
            )
        if (here := options.pop("here")) and given_scopes == [USER]:
            raise UsageError(
                "--user and --here at once", "your own settings are read in every folder; leave out --here"
            )
        places = _places(call, here=here)
        if given_scopes != [USER]:
            _check_project_owner(places.project)
        scope = given_scopes[0] if given_scopes else scopes.installed_scope(places, HOSTS[options["host"]])
        return function(call, places=places, scope=scope, **options)

    decorated: Callable[..., Any] = run_with_scope
    for scope in reversed(SCOPES):
        decorated = click.option(f"--{scope}", scope, is_flag=True, help=_SCOPE_HELP[scope])(decorated)
    help_text = (
        "Use the settings of this folder instead of the project's: a client reads those of the folder it starts in."
    )
    decorated = click.option("--here", is_flag=True, help=help_text)(decorated)
    help_text = "Host whose settings to use.  [default: claude-code]"
    return click.option(
        "--host", type=_Host(list(HOSTS)), default=heard.CLAUDE_CODE, metavar="|".join(HOSTS), help=help_text
    )(decorated)


_DRY_RUN = click.option("--dry-run", is_flag=True, help="Write nothing; print the changes as a patch.")


@declare_group("hooks install --user", "hooks status")
def command(call: Call) -> None:
    """Install, remove or check the hooks in a host's settings."""


@declare("hooks install", "hooks install --allow-report", "hooks install --host codex --user --dry-run")
@_settings_options
@click.option("--track-tools", is_flag=True, help="Also track the tools that sub-agents use.")
@click.option(
    "--allow-report", is_flag=True, help="Allow sub-agents to report with gaia-sessions update, and tell them so."
)
@_DRY_RUN
def install(
    call: Call, places: Places, scope: str, host: str, *, track_tools: bool, allow_report: bool, dry_run: bool
) -> None:
    """Add the hooks to a host's settings.

    Nothing else in the settings changes. Installing again replaces the entries of gaia-sessions in the file that has
    them, and undoes options that are not given again.
    """
    request = plan.InstallRequest(host, scope, tools=track_tools, report=allow_report)
    scopes.refuse_second(places, request.host, scope)
    announce = None if call.as_json else partial(_print_files, host)
    _print_result(call, plan.install(places, request, utc_now(), dry_run=dry_run, announce=announce))


@declare("hooks uninstall", "hooks uninstall --host codex --user --dry-run")
@_settings_options
@_DRY_RUN
def uninstall(call: Call, places: Places, scope: str, host: str, *, dry_run: bool) -> None:
    """Remove the hooks from a host's settings.

    A file that nobody changed since the installation is restored to the byte.
    """
    _print_result(call, plan.uninstall(places, plan.InstallRequest(host, scope), dry_run=dry_run))


@declare("hooks status", "hooks status --json")
def status(call: Call) -> None:
    """Show where the hooks are installed.

    Also which events are wired, when each was last heard, and what may be wrong.
    """
    from gaia_sessions.install.status import hook_status

    root = call.folder()
    check_owner(root)
    now = utc_now()
    report = hook_status(root, os.environ, now)
    if call.as_json:
        output.print_json(_to_utf8(report))
    else:
        output.print_lines(hooks.status_lines(report, now))


def _places(call: Call, *, here: bool = False) -> Places:
    """Where everything is; with ``here``, for clients that are started in the working directory."""
    if not here:
        return Places(call.folder(), os.environ)
    folder = working_directory()
    return Places(find_root(call.root, {**os.environ, "CLAUDE_PROJECT_DIR": folder}, folder), os.environ, folder)


def _check_project_owner(project: str) -> None:
    """Raises ``OwnedByAnother``, with what can be done about hooks, for a project of another user."""
    try:
        check_owner(os.path.join(project, SESSIONS_PATH))
    except OwnedByAnother as error:
        error.hint = "use your own settings, which count in every project: gaia-sessions hooks install --user"
        raise


def _print_files(host: str, paths: list[str]) -> None:
    output.print_to_stderr(f"{host}: writing {', '.join(well_formed(path) for path in paths)}")


def _print_result(call: Call, result: InstallResult) -> None:
    if call.as_json:
        output.print_json(_to_utf8(result))
    else:
        output.print_lines(hooks.change_lines(result))


def _to_utf8(value: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    """``value`` as UTF-8 can have it: paths, and what others wrote into their settings, may hold anything."""
    if isinstance(value, dict):
        return {_to_utf8(key): _to_utf8(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_to_utf8(inner) for inner in value]
    return well_formed(value) if isinstance(value, str) else value


for _part in (install, uninstall, status):
    command.add_command(_part)
