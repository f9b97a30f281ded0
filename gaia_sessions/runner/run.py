"""One run of a command as a sub-agent, from the claim of its session to the report."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from gaia_sessions.api import at, own_runs, permitting, records
from gaia_sessions.api.briefing import GO_ON, answer_for_agent
from gaia_sessions.api.cancellation_token import CancellationToken
from gaia_sessions.errors import InvalidInput, SessionNotFound, SessionsError, StoreFailure
from gaia_sessions.hosts.marker import NOTE
from gaia_sessions.session.budget import tokens_of
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.own_runs import CANCELLED, NOT_STARTED, OUT_OF_TOKENS, RunEnd
from gaia_sessions.session.trace import traceparent
from gaia_sessions.store.above import Above
from gaia_sessions.system import utc_now
from gaia_sessions.system.project_root import roots_for_command, working_directory

from . import contain, process_tree
from .client_of_run import client_of_run, limited_words
from .server_look import ServerLook
from .signals import Signals
from .stand_in import StandIn
from .supervise import (
    BACKGROUND_LEFT,
    BACKGROUND_NOT_KEPT,
    BACKGROUND_STORED,
    BACKGROUND_UNREAD,
    SESSION_GONE,
    WITHOUT_TASK,
    Supervisor,
    Teller,
)
from .tries import MAY_PASS, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.api.command import Command
    from gaia_sessions.api.own_runs import Begun
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.requests import Start
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Lease, Output

    from .client_of_run import ClientOfRun

_NOT_SHOWN = "the command has run, only its output is lost: send the output to a place with room"
_NOT_STORED = (
    "others see the run as lost once its lease has lapsed, unless its end arrived; when the server is back, "
    "`gaia-sessions report {id} --output` prints what is stored of the output"
)
"""What others see of a run whose end is not stored."""

_SECRETS = frozenset(["PGPASSWORD"])
"""Variables for the connection to a server that no command gets: an agent may print them."""


class Outcome:
    """How the command ended, the report on its session, and why the end may not be on disk (``problem``)."""

    __slots__ = ("ended", "problem", "report", "run")

    def __init__(self, run: Run, ended: RunEnd, report: Report, problem: SessionsError | None) -> None:
        self.run = run
        self.ended = ended
        self.report = report
        self.problem = problem


def run(
    sessions: Sessions,
    start: Start,
    command: Command,
    *,
    stdin: int,
    live: dict[int, int],
    tell: Callable[[str, str, str], None] = lambda *_: None,
    asked: Callable[[], tuple[str | None] | None] = lambda: None,
) -> Outcome:
    """Runs ``command``, and returns when it and all that it started have ended."""
    words = _checked_words(sessions, start, command)
    roots = roots_for_command(sessions.root, os.environ, working_directory())  # no folder for the hooks: it raises
    process_tree.become_subreaper()
    with sessions.store as store:
        lease = store.lease()
    with Signals() as signals, lease:
        begun = at.write(sessions, own_runs.begin, start, {"wrapper": lease.holder(), **command.limits})
        agent_id = begun.record["agent_id"]
        stand_in = StandIn(sessions, begun.record, roots, has_client=command.preset is not None)
        tried = partial(written, lease=lease, signals=signals, server=None if sessions.folder else sessions.root)
        try:
            told = Teller(partial(tell, agent_id))
            stand_in.put(told)
            client = client_of_run(sessions, begun.record, command, words)
            look = look_of(sessions, begun.record, client, lease, stand_in, told, asked)
            env = environment(sessions, agent_id, begun.run["run"], command, roots)
            with sessions.store as store:
                log = store.open_output(begun.record, begun.run["run"])
            supervisor = Supervisor(command, look, told, log, live, signals)
        except (SessionsError, RuntimeError) as error:  # RuntimeError: no more threads can be started
            stand_in.end(None)
            ended = RunEnd(NOT_STARTED, detail=f"nothing was started: {error}")
            return _ended(sessions, begun, ended, None, partial(tried, tell=partial(tell, agent_id)))
        try:
            ended = _supervised(supervisor, sessions, begun, command, env, stdin, client)
            ended.told.below = stand_in.end(supervisor.namespace)
            _leave_background(supervisor, begun, log)
        except BaseException:
            _end_as_failed(sessions, begun, supervisor)
            raise
        outcome = _ended(sessions, begun, ended, supervisor.namespace, partial(tried, tell=told), supervisor.close_log)
    if (refused := supervisor.finish()) and outcome.problem is None:
        outcome.problem = StoreFailure("write the output", "stdout", refused.strerror or str(refused), _NOT_SHOWN)
    return outcome


def _checked_words(sessions: Sessions, start: Start, command: Command) -> Sequence[str]:
    """Returns the words of ``command`` if it may run; raises before anything has begun."""
    if command.is_contained and (problem := contain.why_impossible()):
        raise InvalidInput(problem, "--contain", "leave out --contain")
    if command.preset and start.is_new_work and not command.text(None):
        raise InvalidInput(f"{command.preset} needs a task", hint="give it with --task")
    at.read(sessions, permitting.check_task, command.task)
    return limited_words(sessions, start, command)


def _supervised(
    supervisor: Supervisor,
    sessions: Sessions,
    begun: Begun,
    command: Command,
    env: dict[str, str],
    stdin: int,
    client: ClientOfRun | None,
) -> RunEnd:
    if client is None:
        words, told = command.told(at.read(sessions, own_runs.briefing_of, begun) or None)
        return supervisor.run(words, env, stdin if told is None else told)

    def going_on() -> str:
        answer = answer_for_agent(begun.earlier, approves=begun.approves) if begun.earlier else ""
        return "\n\n".join(filter(None, (answer, command.text(None)))) or GO_ON

    def anew() -> str:
        if begun.earlier and command.task is None:
            supervisor.tell(WITHOUT_TASK)
        told = at.read(sessions, own_runs.briefing_of, begun) or None
        return f"{command.text(told) or GO_ON}\n\n{NOTE}"

    return client.supervised(supervisor, env, going_on, anew)


def _end_as_failed(sessions: Sessions, begun: Begun, supervisor: Supervisor) -> None:
    with suppress(SessionsError):  # an earlier error counts
        failed = RunEnd(NOT_STARTED, detail="gaia-sessions run failed")
        at.write(sessions, own_runs.end, begun.record["agent_id"], begun.run, failed)
    supervisor.close_log()


def _leave_background(supervisor: Supervisor, begun: Begun, log: Output) -> None:
    """Starts a reader for the pipes of background processes, if there are any, and says where the output goes."""
    pipes = supervisor.left_open
    if pipes is None:
        return
    from . import keeper  # most commands leave nothing

    if not pipes:
        supervisor.tell(BACKGROUND_LEFT)
        return
    try:
        is_kept = keeper.read_on(begun.record["agent_id"], log, pipes)
    except OSError:
        supervisor.tell(BACKGROUND_UNREAD)
        return
    supervisor.tell(*((BACKGROUND_STORED, begun.run.get("output_path", "")) if is_kept else (BACKGROUND_NOT_KEPT,)))


def environment(
    sessions: Sessions, agent_id: str, run: int, command: Command, roots: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment of ``command`` as this ``run``. The trace of another program stays."""
    with sessions.store as store:
        root_id = Above(store).root_id(store.read(agent_id))
    own, found = traceparent(root_id, agent_id, run), os.environ.get("TRACEPARENT", "")
    is_of_others = found and found.split("-")[1:2] != own.split("-")[1:2]
    kept = {name: value for name, value in os.environ.items() if sessions.folder is not None or name not in _SECRETS}
    return {
        **kept,
        "TRACEPARENT": found if is_of_others else own,
        "GAIA_SESSION_ID": agent_id,
        "GAIA_ROOT_SESSION_ID": root_id,
        **roots,
        "GAIA_DEADLINE": str(int(utc_now().timestamp() + command.timeout)),
    }


def look_of(
    sessions: Sessions,
    begun: Record,
    client: ClientOfRun | None,
    lease: Lease,
    stand_in: StandIn,
    tell: Teller,
    asked: Callable[[], tuple[str | None] | None] = lambda: None,
) -> Callable[[], str | None]:
    """Returns the function that says why a run must end, one of its causes or ``SESSION_GONE``; or None."""
    agent_id, own = begun["agent_id"], begun
    reason: tuple[str | None] | None = None
    token = CancellationToken(agent_id, root=sessions.root)

    def look() -> str | None:
        nonlocal own, reason
        found, is_gone = None, False
        reason = reason or asked()
        if client and sessions.folder is not None:
            client.see()
        try:
            found = token.cancellation
            if client and found is None:
                client.note()
            # A session that was made again under this ID belongs to others: its mark and budget do not count.
            now = records.read(sessions, agent_id)
            is_gone = now["created_at"] != own["created_at"]
            own = own if is_gone else now
        except SessionNotFound:
            is_gone = True
        except SessionsError:  # the end of the run will show it
            return CANCELLED if found else None
        if reason and not is_gone and found is None and not _is_marked(sessions, agent_id, reason[0]):
            return None
        if reason or (found and not is_gone):
            stand_in.cancel(found or {"at": format_time(utc_now())})
            return CANCELLED
        if "max_tokens" in own:
            used = tokens_of(own) + (client.unnoted_tokens() if client else 0)
            if used >= own["max_tokens"]:
                return OUT_OF_TOKENS
        return SESSION_GONE if is_gone else None

    return look if sessions.folder is not None else ServerLook(look, lease, tell, client)


def _is_marked(sessions: Sessions, agent_id: str, reason: str | None) -> bool:
    """Cancels the session; returns False if that should be tried again."""
    try:
        sessions.cancel(agent_id, reason)
    except SessionsError as error:  # for other errors, such as an invalid reason, the command ends without a mark
        return not isinstance(error, MAY_PASS)
    return True


def _ended(
    sessions: Sessions,
    begun: Begun,
    ended: RunEnd,
    pid_ns: str | None,
    tried: Callable[[Callable[[], Outcome]], Outcome],
    close_log: Callable[[], None] = lambda: None,
) -> Outcome:
    """Writes the rest of the output, the end of the run, and the end of the runs of hosts that lived in it."""
    agent_id = begun.record["agent_id"]

    def failed(error: SessionsError) -> Outcome:
        asks = sessions.folder is not None or not isinstance(error, StoreFailure)
        return Outcome(begun.run, ended, at.read(sessions, own_runs.report_as_ended, begun, ended, asks=asks), error)

    def write() -> Outcome:
        close_log()
        at.write(sessions, own_runs.end, agent_id, begun.run, ended)
        try:
            at.write(sessions, own_runs.end_runs_of_gone_hosts_below, agent_id, begun.run, pid_ns)
            return Outcome(begun.run, ended, sessions.report(agent_id), None)
        except SessionsError as error:
            return failed(error)

    try:
        outcome = tried(write)
    except StoreFailure as error:
        if sessions.folder is not None:
            return failed(error)
        hint = _NOT_STORED.format(id=agent_id)
        return failed(StoreFailure("store the end of the run", error.path, error.reason, hint))
    except SessionsError as error:
        return failed(error)
    close_log()  # the server may have come back after the first call
    return outcome
