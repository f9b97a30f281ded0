"""``cancel``: cancel sessions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from gaia_sessions.api import records
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.render import cancellation
from gaia_sessions.errors import SessionNotFound, SessionsError, UsageError
from gaia_sessions.session.phases import is_failure, is_success
from gaia_sessions.session.state import STARTING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gaia_sessions.api.cancelling import CancelledSession
    from gaia_sessions.api.families import TreeLine
    from gaia_sessions.api.listing import Line
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call
    from gaia_sessions.session.schema import Run

    Cancelled = tuple[Sessions, Sequence[CancelledSession]]
    """A root, and the sessions that were cancelled in it."""

_FEW = 16
"""The most subtrees that are read one by one; if there are more, all sessions are read once."""


@declare(
    "cancel agent-123 --reason 'no longer needed'",
    "cancel agent-123 --only",
)
@click.argument("agent_id", metavar="[ID]", required=False)
@click.option("--reason", metavar="TEXT", help="The reason. A later reason does not replace it.")
@click.option("--only", is_flag=True, help="Cancel only this session, not the sessions below it.")
@click.option(
    "--conversation",
    metavar="ID",
    help="Cancel every session of the conversation with this ID in Claude Code or another client.",
)
def command(call: Call, *, agent_id: str | None, reason: str | None, only: bool, conversation: str | None) -> None:
    """Cancel a session with everything below it, also sessions that begin there later.

    A cancelled session cannot be resumed, and ends as abandoned. Nobody can undo a cancellation. Cancelling again
    changes nothing. If the session runs a command with `run`, `run` ends the command. The agent of a client runs until
    it ends, until it calls `gaia-sessions cancelled`, or until you stop it in the client.
    """
    if (agent_id is None) == (conversation is None):
        problem = "no ID given" if agent_id is None else "ID and --conversation cannot be combined"
        raise UsageError(problem, "type gaia-sessions cancel ID, or gaia-sessions cancel --conversation ID")
    failed = None
    if conversation is not None:
        done, failed = _cancel_conversation(call, conversation, reason, only=only)
    else:
        session_id = call.session_id(str(agent_id), writes=True)
        done = [(call.sessions(), [call.sessions().cancel(session_id, reason, only=only)])]
        if files := call.root_of_stand_in(session_id):  # its wrapper, which would do that, may be gone
            try:
                files.cancel(session_id, reason, only=only)
            except SessionsError as error:
                failed = error
    cancelled = [one for _, some in done for one in some]
    call.print_result({"cancelled": cancelled}, lambda: cancellation.cancelled_lines(cancelled, *_stand_in_each(done)))
    if failed:
        raise failed


def _cancel_conversation(
    call: Call, conversation: str, reason: str | None, *, only: bool
) -> tuple[list[Cancelled], SessionsError | None]:
    """Cancels in both roots, and returns what was cancelled in each, and why one of them failed; raises if all did."""
    done: list[Cancelled] = []
    failed: SessionsError | None = None
    for sessions in reversed(call.both()):  # a server that does not answer must not keep the files waiting
        try:
            done.append((sessions, sessions.cancel_conversation(conversation, reason, only=only)))
        except SessionNotFound as missing:
            failed = failed or missing
        except SessionsError as error:
            failed = error
    if failed and not done:
        raise failed
    return done, None if isinstance(failed, SessionNotFound) else failed


def _stand_in_each(done: Sequence[Cancelled]) -> tuple[dict[str, Run], dict[str, str]]:
    """Returns what ``_stand`` returns, of all roots together."""
    found: dict[str, Run] = {}
    outcomes: dict[str, str] = {}
    for sessions, cancelled in done:
        runs, ended = _stand(sessions, cancelled)
        found |= runs
        outcomes |= ended
    return found, outcomes


def _stand(sessions: Sessions, cancelled: Sequence[CancelledSession]) -> tuple[dict[str, Run], dict[str, str]]:
    """Returns, by ID, the runs of agents that still work, and the outcomes of sessions that had ended before."""
    # An agent inside a command that ``run`` ends is left out: it ends with that command.
    found: dict[str, Run] = {}
    outcomes: dict[str, str] = {}
    ends_with_command: set[str] = set()
    ids = {one["agent_id"] for one in cancelled}
    for line in _concerned(sessions, cancelled):
        agent_id = line["agent_id"]
        if line.get("running") or line.get("state") == STARTING:
            with suppress(SessionsError):  # the session was removed meanwhile
                run = records.read(sessions, agent_id)["runs"][-1]
                is_command, is_inside = cancellation.is_command(run), line.get("parent_id") in ends_with_command
                ends_with_command.update([agent_id] if is_command or is_inside else ())
                found |= {agent_id: run} if is_command or not is_inside else {}
        if agent_id in ids and "phase" in line and _ended_by_itself(line["phase"]):
            outcomes[agent_id] = line["phase"]
    return found, outcomes


def _concerned(sessions: Sessions, cancelled: Sequence[CancelledSession]) -> Iterator[Line]:
    """Yields the lines of the cancelled sessions, and of all sessions below that were also cancelled."""
    with_below = {one["agent_id"]: one["below"] for one in cancelled}
    for tree in _trees(sessions, with_below):
        top: int | None = None  # the level of the session that was cancelled with everything below it
        for level, line in tree:
            is_below = top is not None and level > top
            if is_below or line["agent_id"] in with_below:
                yield line
            if not is_below:
                top = level if with_below.get(line["agent_id"]) else None


def _trees(sessions: Sessions, agent_ids: Collection[str]) -> list[Sequence[TreeLine]]:
    """Returns the trees that contain these sessions: a subtree for each session, or one tree of all sessions."""
    trees = []
    if len(agent_ids) > _FEW:
        with suppress(SessionsError):  # unreadable sessions were cancelled too
            trees.append(sessions.tree(every_app=True))
    else:
        for agent_id in agent_ids:
            with suppress(SessionsError):
                trees.append(sessions.subtree(agent_id))
    return trees


def _ended_by_itself(phase: str) -> bool:
    return is_success(phase) or is_failure(phase)
