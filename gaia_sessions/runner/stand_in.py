"""The stand-in of a session on a server, in the files in which hooks store the agents of its command."""

from __future__ import annotations

import os
from contextlib import suppress

from gaia_sessions.api import at, own_runs
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.errors import SessionExists, SessionsError
from gaia_sessions.session.clock import parse_time
from gaia_sessions.store.above import Above
from gaia_sessions.system.project_root import FILES_VARIABLE

from .supervise import NO_STAND_IN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.schema import Below, Record, Run

    from .supervise import Teller


class StandIn:
    """The stand-in of the session of ``record`` during its latest run; on files there is none, so nothing is done."""

    def __init__(self, sessions: Sessions, record: Record, roots: Mapping[str, str], *, has_client: bool) -> None:
        """``roots``: see ``roots_for_command``."""
        self._sessions = sessions
        self._root = roots.get(FILES_VARIABLE)
        self._record = record
        self._run: Run = record["runs"][-1]
        self._has_client = has_client
        self._files: Sessions | None = None
        self._is_cancelled = False

    def put(self, tell: Teller) -> None:
        """Stores the stand-in if a client is the command, or if the project may have hooks."""
        if self._root is None:
            return
        from gaia_sessions.api import stand_ins  # most sessions are in files

        try:
            files = Sessions(self._root)
            if self._has_client or os.path.isdir(os.path.dirname(files.root)):
                at.write(files, stand_ins.put, at.read(self._sessions, stand_ins.family_of, self._record))
                self._files = files
        except SessionExists:
            tell(NO_STAND_IN, f"another session has this ID in {files.root}, and they will be below that one")
        except SessionsError as error:
            tell(NO_STAND_IN, str(error))

    def cancel(self, cancellation: Cancellation) -> None:
        """Cancels the stand-in for a proved ``cancellation``: this reaches the agents of the client."""
        if self._files is not None and not self._is_cancelled and "at" in cancellation:
            agent_id = self._record["agent_id"]
            with suppress(SessionsError):  # it is tried again
                with self._sessions.store as store:
                    is_handed_down = Above(store).handed_down(agent_id) is not None
                self._files.cancel(agent_id, cancellation.get("reason"), only=not is_handed_down)
                self._is_cancelled = True

    def end(self, pid_ns: str | None) -> Below | None:
        """Ends the runs of clients that are gone, and returns what was below this run; None if nothing was."""
        if self._files is None:
            return None
        from gaia_sessions.api import stand_ins

        agent_id = self._record["agent_id"]
        with suppress(SessionsError):  # ``reconcile`` finds what is missed here
            at.write(self._files, own_runs.end_runs_of_gone_hosts_below, agent_id, self._run, pid_ns)
            found = at.read(self._files, stand_ins.below, agent_id, parse_time(self._run["started_at"]))
            if found["agents"]:
                return found
            at.write(self._files, stand_ins.remove_if_alone, agent_id)
        return None
