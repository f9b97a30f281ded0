"""The check of a server as the root: commands use it, and hooks do not. It reads once and writes nothing."""

from __future__ import annotations

from gaia_sessions.api import records
from gaia_sessions.api.at import Place
from gaia_sessions.errors import SessionsError, StoreFailure

from .findings import problem, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Finding

_ANY_ID = "agent"
_SECONDS_AT_FIRST = 2.0
"""How long the server may take to answer."""

_COMMAND = "type: "
"""The beginning of a hint that is a command."""


def server(url: str, hooks_root: str) -> Finding:
    """Returns who uses the server at ``url`` and who uses ``hooks_root``, and whether the server can be used."""
    users = f"only commands use the server {url}; hooks started here keep their sessions in {hooks_root}"
    try:
        place = Place(url, {"lock_timeout": 0})  # a command would wait for a server that starts
        place.seconds_at_first = _SECONDS_AT_FIRST
        records.has(place, _ANY_ID)
    except Exception as error:  # noqa: BLE001  # it must hide no other check
        hint = error.hint if isinstance(error, SessionsError) else ""
        fix = hint.removeprefix(_COMMAND) if hint.startswith(_COMMAND) else None
        advice = "" if fix or not hint else f" ({hint})"
        return problem("root", f"{users}; the server cannot be used: {_reason(error, url)}{advice}", fix)
    return warning("root", f"{users}; the server can be reached, and its tables have the version of this program")


def _reason(error: Exception, url: str) -> str:
    """Returns what ``error`` says, without the ``url``."""
    if isinstance(error, StoreFailure) and error.path == url:
        return error.reason
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"
