"""The two roots of a project: the server that the variable names, and the project's own root, in which hooks store.

Loaded only if the variable holds the URL of a server.
"""

from __future__ import annotations

import os
import shlex

import click

from gaia_sessions.api import at, pending_work, records
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.errors import AmbiguousId, SessionNotFound, SessionsError, StoreFailure, plural
from gaia_sessions.session.ids import is_agent_id, is_generated_id
from gaia_sessions.session.record import is_stand_in
from gaia_sessions.system.project_root import find_root, working_directory

from . import output
from .render.words import command_to_copy
from .typed_ids import LATEST, ids_with_part, latest, other_root_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_SECONDS_AT_FIRST = 2.0
"""How long the server may take to answer for the first time if there is another root beside it."""


def pair(server: Sessions, flags: Mapping[str, object]) -> list[Sessions]:
    """Returns the ``server`` and, if its folder exists, the project's own root; then the server must answer soon."""
    own = Sessions(find_root(None, os.environ, working_directory() or os.sep, only_files=True), flags)
    if not own.is_there:
        return [server]
    if "lock_timeout" not in flags:
        server.seconds_at_first = _SECONDS_AT_FIRST
    return [server, own]


def other(used: Sessions, flags: Mapping[str, object]) -> Sessions | None:
    """Returns the root of the pair that is not ``used``; None if ``used`` is not of the pair, or there is no pair."""
    try:
        roots = pair(Sessions(None, flags), flags)
    except SessionsError:  # the variable is wrong, and the typed root does not need it
        return None
    if used.root not in [one.root for one in roots]:
        return None
    return next((one for one in roots if one.root != used.root), None)


def find(roots: Sequence[Sessions], typed_id: str, *, as_json: bool) -> tuple[Sessions, str] | None:
    """Returns the root that has the session that ``typed_id`` means, and its ID; None if neither root has it."""
    server, own = roots
    try:
        if not is_agent_id(typed_id) or records.has(server, typed_id):
            return server, typed_id
        if typed_id == LATEST:
            return server, latest(server) or typed_id
    except StoreFailure as unasked:
        return own, _found_without_server(own, typed_id, unasked, as_json=as_json)
    found = dict.fromkeys(_ids_in(own, typed_id), own)
    if typed_id in found:
        return own, typed_id
    if not is_generated_id(typed_id):
        found |= dict.fromkeys(ids_with_part(server, typed_id), server)
    if not found or other_root_hint(typed_id, [own]):
        return None
    agent_id = _only_one(typed_id, found)
    return found[agent_id], agent_id


def _ids_in(own: Sessions, typed_id: str) -> list[str]:
    """Returns the whole ID if the root has it, else all IDs with this part; without stand-ins."""
    if records.has(own, typed_id):
        found = [typed_id]
    else:
        found = [] if is_generated_id(typed_id) else ids_with_part(own, typed_id)
    return [agent_id for agent_id in found if not _is_stand_in(own, agent_id)]


def _is_stand_in(sessions: Sessions, agent_id: str) -> bool:
    try:
        return is_stand_in(records.read(sessions, agent_id))
    except SessionsError:  # the command that gets the ID says what is wrong
        return False


def _only_one(typed_id: str, found: Collection[str]) -> str:
    if len(found) > 1:
        raise AmbiguousId(typed_id, sorted(found))
    return next(iter(found))


def _found_without_server(own: Sessions, typed_id: str, unasked: StoreFailure, *, as_json: bool) -> str:
    """Returns the ID in the own root, and says that only this root was searched; else raises ``unasked``."""
    found = [] if typed_id == LATEST else _ids_in(own, typed_id)
    if not found:
        more = "latest means the server" if typed_id == LATEST else f"{own.root} has no such session"
        unasked.hint = f"{unasked.hint}; {more}"
        raise unasked
    agent_id = _only_one(typed_id, found)
    _say_that_only_own_was_searched(own, unasked, as_json=as_json)
    return agent_id


def _say_that_only_own_was_searched(own: Sessions, unasked: StoreFailure, *, as_json: bool) -> None:
    message = f"the server could not be asked ({unasked.reason}), so only {own.root} was searched"
    output.print_notice("server_unasked", message, unasked.hint, as_json=as_json)


def find_host_agent(roots: Sequence[Sessions], conversation: str, agent: str, *, as_json: bool) -> tuple[Sessions, str]:
    """Returns the root with the session of an agent of a host, and its ID; hooks store in the own root."""
    server, own = roots
    unasked = None
    try:
        return server, at.write(server, records.id_of_host_agent, conversation, agent)
    except SessionNotFound:
        pass
    except StoreFailure as error:
        unasked = error
    found = at.write(own, records.id_of_host_agent, conversation, agent)
    if unasked is not None:
        _say_that_only_own_was_searched(own, unasked, as_json=as_json)
    return own, found


def refuse_stand_in(own: Sessions, agent_id: str) -> None:
    """Raises ``SessionNotFound`` if the record only stands in for a session on the server."""
    if own.folder is not None and is_agent_id(agent_id) and _is_stand_in(own, agent_id):
        missing = SessionNotFound(agent_id)
        missing.set_root(own.root, "the session is on the server: leave out --root")
        raise missing


def say_what_else_is_open(other: Sessions, *, as_json: bool) -> None:
    """Says on stderr how many sessions are open and wait in the ``other`` root, and which command shows them."""
    if other.folder is None:
        other.seconds_at_first = _SECONDS_AT_FIRST
    place = "on the server" if other.folder is None else "in the project's own files"
    try:
        number, waiting = at.read(other, pending_work.open_and_waiting)
    except SessionsError as error:
        reason = error.reason if isinstance(error, StoreFailure) else error
        output.flush_result()
        output.print_aside("other_root", f"sessions {place} could not be counted: {reason}", as_json=as_json)
        return
    if number:
        waits = f", {waiting} {'waits' if waiting == 1 else 'wait'} for you" if waiting else ""
        message = f"{plural(number, 'more session')} {'is' if number == 1 else 'are'} open {place}{waits}"
        command = command_to_copy(shlex.join(["gaia-sessions", *_words_for(other)]), "To see them, type: ")
        output.flush_result()
        output.print_aside("other_root", message, command, as_json=as_json)


def _words_for(other: Sessions) -> list[str]:
    """Returns the words that were typed, with ``--root`` for the other root; for the server, without ``--root``."""
    typed = [*click.get_current_context().find_root().obj]
    for place, word in reversed([*enumerate(typed)]):
        if word == "--root":
            del typed[place : place + 2]
        elif word.startswith("--root="):
            del typed[place]
    if other.folder is None:
        return typed
    below = os.path.relpath(other.root, working_directory() or os.sep)
    return [*typed, "--root", other.root if below.startswith(os.pardir) else below]
