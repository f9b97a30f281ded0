"""The two roots of a project: the server that the variable names, and the project's own root, in which hooks store.

Loaded only if the variable holds the URL of a server.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress

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
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeVar

    _Answer = TypeVar("_Answer")

_SECONDS_AT_FIRST = 2.0
"""How long the server may take to answer for the first time if there is another root beside it."""


_AGENTS_IN_FILES = "agents of its client are in the project's own files"


class Pair:
    """The two roots of one call; a server that did not answer is not asked again."""

    __slots__ = ("_as_json", "_has_said", "_unasked", "own", "server")

    def __init__(self, server: Sessions, own: Sessions, *, as_json: bool) -> None:
        self.server = server
        self.own = own
        self._as_json = as_json
        self._unasked: StoreFailure | None = None
        self._has_said = False

    def roots(self) -> list[Sessions]:
        """Returns both roots, or only the own root if the server did not answer."""
        return [self.own] if self._unasked else [self.server, self.own]

    def find(self, typed_id: str, *, needs_server: bool = False, writes: bool = False) -> tuple[Sessions, str]:
        """Returns the root with the session that ``typed_id`` means, and its ID; if neither has it, both are returned.

        If the server does not answer, only the own root is searched, unless the caller ``needs_server``. If the caller
        ``writes``, then a part of an ID is not enough: it may mean a session on the server.
        """
        on_server = self._ask(lambda: self._on_server(typed_id))
        if on_server is not None:
            return self.server, on_server
        if self._unasked is not None and needs_server:
            raise self._unasked
        found = dict.fromkeys(self._own_ids(typed_id), self.own)
        if typed_id not in found and not is_generated_id(typed_id):
            found |= dict.fromkeys(self._ask(lambda: ids_with_part(self.server, typed_id)) or (), self.server)
        if self._unasked is not None:
            if writes and found and typed_id not in found:
                self._unasked.hint = f"{self._unasked.hint}; or type the whole ID: {', '.join(found)}"
                raise self._unasked
            return self.own, self._id_without_server(typed_id, found, self._unasked)
        if not found or (typed_id not in found and other_root_hint(typed_id, [self.own])):
            return self.server, typed_id
        agent_id = _only_one(typed_id, found)
        return found[agent_id], agent_id

    def find_host_agent(self, conversation: str, agent: str) -> tuple[Sessions, str]:
        """Returns the root with the session of an agent of a host, and its ID; hooks store in the own root."""
        with suppress(SessionNotFound):
            on_server = self._ask(lambda: at.write(self.server, records.id_of_host_agent, conversation, agent))
            if on_server is not None:
                return self.server, on_server
        try:
            found = at.write(self.own, records.id_of_host_agent, conversation, agent)
        except SessionNotFound as missing:
            if self._unasked is None:
                raise
            raise self._missing_here(missing, self._unasked) from None
        self._say_what_was_searched()
        return self.own, found

    def has_stand_in(self, agent_id: str) -> bool:
        """Whether the own root has the stand-in of this session."""
        return _is_stand_in(self.own, agent_id)

    def say_where_agents_are(self, agent_id: str) -> None:
        """Says on stderr which command shows what is below the stand-in of this session."""
        command = ["gaia-sessions", "tree", agent_id, "--root", self.own_root_to_type]
        hint = command_to_copy(shlex.join(command), "To see them, type: ")
        output.flush_result()
        output.print_aside("agents_in_files", _AGENTS_IN_FILES, hint, as_json=False)

    @property
    def own_root_to_type(self) -> str:
        return _to_type(self.own)

    def _on_server(self, typed_id: str) -> str | None:
        """Returns the ID if the server has it whole, or if the server alone says what the text means."""
        if not is_agent_id(typed_id) or records.has(self.server, typed_id):
            return typed_id
        return (latest(self.server) or typed_id) if typed_id == LATEST else None

    def _ask(self, ask: Callable[[], _Answer]) -> _Answer | None:
        """Returns what the server answers; None if it does not answer, now or before."""
        if self._unasked is None:
            try:
                return ask()
            except StoreFailure as error:
                self._unasked = error
        return None

    def _own_ids(self, typed_id: str) -> list[str]:
        """Returns the whole ID if the own root has it, else all its IDs with this part; without stand-ins."""
        if records.has(self.own, typed_id):
            found = [typed_id]
        else:
            found = [] if is_generated_id(typed_id) else ids_with_part(self.own, typed_id)
        return [agent_id for agent_id in found if not _is_stand_in(self.own, agent_id)]

    def _id_without_server(self, typed_id: str, found: Collection[str], unasked: StoreFailure) -> str:
        if typed_id == LATEST:
            unasked.hint = f"{unasked.hint}; {LATEST} means the latest session on the server"
            raise unasked
        if not found:
            raise self._missing_here(SessionNotFound(typed_id), unasked)
        agent_id = _only_one(typed_id, found)
        self._say_what_was_searched()
        return agent_id

    def _missing_here(self, missing: SessionNotFound, unasked: StoreFailure) -> StoreFailure:
        """Returns the error for a session that the own root lacks, and that the server perhaps has."""
        failure = StoreFailure(unasked.action, unasked.path, unasked.reason, unasked.hint)
        failure.args = (f"{missing} in {self.own.root}, and {unasked}",)
        return failure

    def _say_what_was_searched(self) -> None:
        """Prints one notice if only the own root was searched."""
        if self._unasked is not None and not self._has_said:
            self._has_said = True
            message = f"the server could not be asked ({self._unasked.reason}), so only {self.own.root} was searched"
            output.print_notice("server_unasked", message, self._unasked.hint, as_json=self._as_json)


def pair_of(server: Sessions, flags: Mapping[str, object], *, as_json: bool) -> Pair | None:
    """Returns the ``server`` and the project's own root; then the server must answer soon. None if that is missing."""
    own = Sessions(find_root(None, os.environ, working_directory() or os.sep, only_files=True), flags)
    if not own.is_there:
        return None
    if "lock_timeout" not in flags or server.config.lock_timeout < _SECONDS_AT_FIRST:
        server.seconds_at_first = _SECONDS_AT_FIRST
    return Pair(server, own, as_json=as_json)


def other_root(typed: Sessions, flags: Mapping[str, object]) -> Sessions | None:
    """Returns the root of the pair that is not the ``typed`` one; None if that is not of the pair, or there is none."""
    try:
        found = pair_of(Sessions(None, flags), flags, as_json=False)
    except SessionsError:  # the variable is wrong, and the typed root does not need it
        return None
    others = {} if found is None else {found.server.root: found.own, found.own.root: found.server}
    return others.get(typed.root)


def _is_stand_in(sessions: Sessions, agent_id: str) -> bool:
    try:
        return is_stand_in(records.read(sessions, agent_id))
    except SessionsError:  # the command that gets the ID says what is wrong
        return False


def _only_one(typed_id: str, found: Collection[str]) -> str:
    if len(found) > 1:
        raise AmbiguousId(typed_id, sorted(found))
    return next(iter(found))


def refuse_stand_in(own: Sessions, agent_id: str) -> None:
    """Raises ``SessionNotFound`` if the record only stands in for a session on the server."""
    if own.folder is not None and is_agent_id(agent_id) and _is_stand_in(own, agent_id):
        missing = SessionNotFound(agent_id)
        missing.set_root(own.root, "the session is on the server: leave out --root")
        raise missing


def say_what_else_is_open(other: Sessions, *, as_json: bool) -> None:
    """Says on stderr how many sessions are open and wait in the ``other`` root, and which command shows them."""
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
        root = [] if other.folder is None else ["--root", _to_type(other)]
        command = command_to_copy(shlex.join(["gaia-sessions", "list", *root]), "To see them, type: ")
        output.flush_result()
        output.print_aside("other_root", message, command, as_json=as_json)


def _to_type(own: Sessions) -> str:
    """Returns the folder of a root as a person types it here."""
    below = os.path.relpath(own.root, working_directory() or os.sep)
    return own.root if below.startswith(os.pardir) else below
