"""What ``cancel`` and ``cancelled`` answer, and what other commands say about cancelled sessions."""

from __future__ import annotations

from itertools import islice

from gaia_sessions.errors import plural
from gaia_sessions.session.runs import is_own_run, is_send

from .words import Hint, cancellation_text, client_text, local_time, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.api.cancelling import CancelledSession
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.schema import Record, Run


_MOST_AT_WORK = 10


def cancelled_lines(
    cancelled: Iterable[CancelledSession], at_work: Mapping[str, Run], outcomes: Mapping[str, str]
) -> Iterator[str]:
    """Yields a line for each session, then the runs ``at_work``; ``outcomes`` has the phases of ended sessions."""
    for one in cancelled:
        if outcome := outcomes.get(one["agent_id"]):
            below = "; the sessions below it are cancelled, also those created later" if one["below"] else ""
            yield f"{one['agent_id']}: already {outcome}; from now on, no new session can continue it{below}"
            continue
        scope = ", with everything below it" if one["below"] else ""
        since = f" since {local_time(one['at'])}" if "at" in one and not one["new"] else ""
        line = f"{one['agent_id']}: {'cancelled' if one['new'] else 'already cancelled'}{since}{scope}"
        yield line + (f": {safe(one['reason'])}" if "reason" in one else "")
    commands = {agent_id: run for agent_id, run in at_work.items() if is_command(run)}
    if commands:
        yield f"{'Its command ends' if len(commands) == 1 else 'Their commands end'} within a few seconds:"
        yield from _at_work_lines(commands)
    asked = {agent_id: run for agent_id, run in at_work.items() if agent_id not in commands and "wrapper" in run}
    if asked:
        stop = "Its program stops when it checks its" if len(asked) == 1 else "Their programs stop when they check a"
        yield f"{stop} cancellation token, or at the end:"
        yield from _at_work_lines(asked)
    yield from _agents_lines({agent_id: run for agent_id, run in at_work.items() if "wrapper" not in run})


def _agents_lines(agents: Mapping[str, Run]) -> Iterator[str]:
    """Yields the agents that a client still runs, and how to stop these agents: a mark stops no client."""
    if not agents:
        return
    clients, them = ("Its client still runs it", "it") if len(agents) == 1 else ("Their clients still run them", "them")
    yield f"{clients}:"
    yield from _at_work_lines(agents)
    yield f"to stop {them}, press Esc in the client, or tell the main agent to stop {them}"
    if all("enforced" in run for run in agents.values()):
        yield f"until then, the hooks let {them} use no tools"
    elif any(_may_be_enforced(run) for run in agents.values()):
        yield Hint("after `gaia-sessions hooks install --enforce`, cancelled agents can use no tools")


def _may_be_enforced(run: Run) -> bool:
    from gaia_sessions.hosts import HOSTS, host_named

    return run.get("host") in HOSTS and host_named(run["host"]).asks_before_tools is not None


def is_command(run: Run) -> bool:
    """Returns whether the run is of a command, not of a program that sends messages to an agent of the program."""
    return is_own_run(run) and ("timeout_secs" in run or not is_send(run))


def _at_work_lines(at_work: Mapping[str, Run]) -> Iterator[str]:
    for agent_id, run in islice(at_work.items(), _MOST_AT_WORK):
        yield f"  {agent_id}, in {client_text(run)}"
    if len(at_work) > _MOST_AT_WORK:
        yield f"  and {plural(len(at_work) - _MOST_AT_WORK, 'other')}"


def created_notice(agent_id: str) -> tuple[str, str]:
    return (
        "the new session is cancelled because a session above it is cancelled",
        f"`gaia-sessions cancelled {agent_id}` says why",
    )


def abandoned_notice(record: Record) -> tuple[str, str]:
    return (
        "the session was cancelled: it has ended as abandoned, and takes no more updates",
        f"`gaia-sessions cancelled {record['agent_id']}` says why",
    )


def answer_line(agent_id: str, cancellation: Cancellation | None, now: datetime) -> str:
    if cancellation is None:
        return f"no: {agent_id} is not cancelled"
    return f"yes: {agent_id} was cancelled {cancellation_text(cancellation, now)}"
