"""The options of ``hooks install`` and ``hooks uninstall`` that select a settings file."""

from __future__ import annotations

import os
from functools import wraps

import click

from gaia_sessions import hosts
from gaia_sessions.errors import OwnedByAnother, UnknownHost, UsageError
from gaia_sessions.hosts.settings import LOCAL, PROJECT, SCOPES, USER
from gaia_sessions.install.places import HOSTS, Places
from gaia_sessions.system.project_root import SESSIONS_PATH, check_links, check_owner, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .call import Call

_SCOPE_HELP = {
    USER: "Your own settings, for all projects.",
    PROJECT: "The project's settings, shared with the team.",
    LOCAL: "The project's settings that only you use.  [default, if the client has such settings]",
}


class _Host(click.Choice[str]):
    """A host; an unknown host raises our own error."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in HOSTS:
            raise UnknownHost(str(value), HOSTS)
        return super().convert(value, param, ctx)


_HERE = click.option(
    "--here",
    is_flag=True,
    help="Use the settings in this folder, not the project's: a client reads the settings where it starts.",
)
_HOST = click.option(
    "--host",
    type=_Host(list(HOSTS)),
    default=hosts.CLAUDE_CODE,
    metavar="|".join(HOSTS),
    help="Client whose settings to use.  [default: claude-code]",
)


def settings_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command; ``function`` gets the ``host``, the ``places``, and the ``scope`` or None."""

    @wraps(function)
    def run_with_scope(call: Call, host: str, *, here: bool, **options: object) -> None:
        given_scopes = [scope for scope in SCOPES if options.pop(scope)]
        _check_combination(given_scopes, here=here)
        places = _places(call, here=here)
        if given_scopes != [USER]:
            _check_project_owner(places.project)
            check_links(places.root)
        function(call, places=places, scope=given_scopes[0] if given_scopes else None, host=host, **options)

    decorated: Callable[..., None] = run_with_scope
    for scope in reversed(SCOPES):
        decorated = click.option(f"--{scope}", scope, is_flag=True, help=_SCOPE_HELP[scope])(decorated)
    return _HOST(_HERE(decorated))


def _check_combination(given_scopes: list[str], *, here: bool) -> None:
    if len(given_scopes) > 1:
        raise UsageError(
            f"--{' and --'.join(given_scopes)} cannot be combined", "choose one; then repeat the command for the other"
        )
    if here and given_scopes == [USER]:
        raise UsageError(
            "--user and --here cannot be combined", "leave out --here: clients read your own settings in every folder"
        )


def _places(call: Call, *, here: bool) -> Places:
    """Returns the places of settings; with ``here``, for clients that start in the working directory."""
    if not here:
        return Places(call.session_root(only_files=True), os.environ)
    folder = working_directory()
    variables = {**os.environ, "CLAUDE_PROJECT_DIR": folder}
    return Places(find_root(call.root, variables, folder, only_files=True), os.environ, folder)


def _check_project_owner(project: str) -> None:
    """Raises ``OwnedByAnother`` with a hint about hooks if the project belongs to another user."""
    try:
        check_owner(os.path.join(project, SESSIONS_PATH))
    except OwnedByAnother as error:
        error.hint = "use your own settings, which apply to every project: gaia-sessions hooks install --user"
        raise
