"""What can be learned about the sessions of one root: where they are, and which settings hold for them.

Owns that sessions are seen as the next writer will leave them, with the events applied that wait in the inbox, and that
``now`` is read from the clock here: the use cases below take it as an argument.
"""

from __future__ import annotations

import os

from gaia_sessions import config
from gaia_sessions.store import read_cancellation
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.reading import EVENTS
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import check_owner, claude_folder, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.usecases.listing import Filter, Line
    from gaia_sessions.usecases.preview import Preview
    from gaia_sessions.usecases.relatives import Relatives
    from gaia_sessions.usecases.revivals import Revival
    from gaia_sessions.usecases.tree import TreeLine


class SessionReader:
    """The sessions of ``root``; None means the one that the command line would find from here.

    ``flags`` are settings that take precedence over all others. The methods raise what the functions of
    ``gaia_sessions.api`` with the same purpose raise.
    """

    __slots__ = ("_store", "config", "root")

    def __init__(self, root: str | None = None, flags: Mapping[str, object] | None = None) -> None:
        self.root = find_root(root, os.environ, working_directory())
        check_owner(self.root)
        self.config = config.load(self.root, os.environ, flags)
        self._store = FileStore.from_config(self.root, self.config)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.root,)  # wherever it is unpickled, the settings are those of that place

    def has(self, agent_id: str) -> bool:
        """Whether there is a session with this id, readable or not."""
        return self._store.has(agent_id)

    def ids(self) -> Collection[str]:
        """The ids of all sessions, readable or not, in no order; those that waiting events begin too."""
        return self._preview().ids()

    def read(self, agent_id: str) -> Record:
        """The record as it is stored. Raises ``SessionNotFound``, ``CorruptSession``, ``InvalidId``."""
        return self._store.read(agent_id)

    def preview(self, agent_id: str) -> Record:
        """The record as it will be once the waiting events are applied. Raises what ``read`` raises."""
        return self._preview().read(agent_id)

    def events(self, agent_id: str) -> Iterator[Json | SessionsError]:
        """The entries of the session's journal; an error in place of an entry that cannot be read."""
        return self._store.entries(agent_id, EVENTS)

    def messages(
        self, agent_id: str, last: int | None = None, since: datetime | None = None
    ) -> Iterator[Message | SessionsError]:
        """The messages of the transcript, as ``session_messages`` returns them."""
        from gaia_sessions.usecases import transcript

        return transcript.messages(self._store, agent_id, last, since)

    def remembered(self, agent_id: str, last: int | None = None) -> Sequence[Message]:
        """The messages of the memory: the summary of those that it replaces, and the others."""
        from gaia_sessions.usecases import transcript

        return transcript.remembered(self._store, agent_id, last)

    def list(self, criteria: Filter, limit: int | None = None) -> Iterator[Line]:
        """Summaries of the sessions that meet ``criteria``, at most ``limit``, the most recently active first."""
        from gaia_sessions.usecases import listing

        return listing.list_sessions(self._preview(), criteria, utc_now(), self.config.limits, limit)

    def tree(self, criteria: Filter, limit: int | None = None) -> Sequence[TreeLine]:
        """What ``list`` has, each session below its parent, with its level."""
        from gaia_sessions.usecases import tree

        return tree.session_tree(self._preview(), criteria, utc_now(), self.config.limits, limit)

    def subtree(self, agent_id: str) -> Sequence[TreeLine]:
        """The session with all that is below it, each below its parent, with its level."""
        from gaia_sessions.usecases import tree

        return tree.subtree(self._preview(), agent_id, utc_now(), self.config.limits)

    def relatives(self, record: Record) -> Relatives:
        """The summaries of the parent and of the children of ``record``, which was just read."""
        from gaia_sessions.usecases import relatives

        return relatives.relatives(self._preview(), record, utc_now(), self.config.limits)

    def children(self, agent_id: str) -> Sequence[Line]:
        """Summaries of the sessions whose parent is ``agent_id``, the first that was created first."""
        from gaia_sessions.usecases import relatives

        return relatives.children(self._preview(), agent_id, utc_now(), self.config.limits)

    def explain(self, agent_id: str) -> Decision:
        """Whether the session may be resumed, and why. A missing or corrupt session gets a decision too."""
        from gaia_sessions.usecases import resume

        decision, _ = resume.read_and_decide(self._preview(), utc_now(), agent_id, self.config.limits)
        return decision

    def decide(self, record: Record) -> Decision:
        """The policy's decision about ``record``, which was just read or written."""
        from gaia_sessions.usecases import resume

        return resume.decide(
            lambda record: read_cancellation(self._store, record),
            record["agent_id"],
            record,
            utc_now(),
            self.config.limits,
        )

    def liveness(self, record: Record, decision: Decision) -> Liveness | None:
        """What is known of the agent at work on ``record``, about which ``decision`` was just made."""
        from gaia_sessions.usecases.liveness import liveness_of

        return liveness_of(record, decision, utc_now(), self.config.limits)

    def with_decision(self, record: Record) -> dict[str, object]:
        """``record`` with the policy's decision; the record of a later version may not be understood, and gets none."""
        from gaia_sessions.usecases import resume

        return resume.with_decision(self._store, record, utc_now(), self.config.limits)

    def revivals(self, host_session_id: str | None = None) -> Sequence[Revival]:
        """What was stopped from outside and may go on, with the command of its host, the cheapest first.

        What waits for a limit and what the user stopped come last. host_session_id: only that conversation's.
        """
        from gaia_sessions.hosts import revival
        from gaia_sessions.usecases import revivals

        claude = claude_folder(self.root)
        project = os.path.dirname(claude) if claude else None
        rule = revivals.Rule(utc_now(), self.config.limits, revival, project)
        return revivals.revivals(self._preview(), rule, host_session_id)

    def cancellation(self, agent_id: str) -> Cancellation | None:
        """Why the session is cancelled; None if it is not."""
        return self.cancellation_and_above(agent_id)[0]

    def cancellation_and_above(
        self, agent_id: str, known_above: Sequence[str] = (), *, are_all: bool = False
    ) -> tuple[Cancellation | None, Sequence[str]]:
        """Why the session is cancelled, and the sessions above it, which make the next look cheaper."""
        from gaia_sessions.usecases.cancellation import cancellation_and_above

        return cancellation_and_above(self._store, agent_id, known_above, are_all=are_all)

    def report(self, agent_id: str) -> tuple[Report, bool]:
        """The report on the session, and whether its work is over."""
        return self.reporter()(agent_id)

    def reporter(self) -> Callable[[str], tuple[Report, bool]]:
        """What ``report`` does, for many sessions at one moment: the inbox is read once for all."""
        from gaia_sessions.hosts import recent_messages
        from gaia_sessions.store.above import Above
        from gaia_sessions.usecases import reporting

        sessions, now = self._preview(), utc_now()
        above = Above(sessions)
        return lambda agent_id: reporting.report_on(
            sessions, above, agent_id, now, self.config.budgets, recent_messages
        )

    def usage(self, record: Record) -> TokenUsage:
        """How much of its budget the session of ``record``, which was just read, has used. Raises ``NewerSchema``."""
        from gaia_sessions.session.budget import usage_of

        return usage_of(record, utc_now(), self.config.budgets)

    def _preview(self) -> Preview:
        from gaia_sessions.usecases.preview import Preview

        return Preview(self._store, utc_now(), self.config)
