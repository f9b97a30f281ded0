"""A sub-agent is at work: for the first time, or again because a message woke it. If a start is reported after its run
has ended, the start belongs to that run.
"""

from __future__ import annotations

from gaia_sessions.session import runs
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.phases import is_final
from gaia_sessions.session.schema import DENIED, ENDED_WITH_HOST
from gaia_sessions.session.updates import with_question
from gaia_sessions.system import gone_runs

from . import EventResult
from .join import change_run, find_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms
    from .join import JoinedRun, RunRule

_AGENT_FIELDS = (
    *("host", "host_session_id", "host_agent_id", "parent_host_agent_id", "host_process"),
    *("background", "enforced", "transcript_path", "workflow"),
)


def start(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``started`` (in a found or a new run), ``continued`` (in a new session), or a word of ``change_run``."""
    joined = find_run(store, event)
    if isinstance(joined, EventResult):
        return joined
    started = _start_in_session(store, event, joined, terms)
    if started:
        return started
    with store.lock_key(("agent", event["host_agent_id"]), terms.timeout):
        joined = find_run(store, event)  # another process may have begun the new session meanwhile
        if isinstance(joined, EventResult):
            return joined
        started = _start_in_session(store, event, joined, terms)
        return started or _continue_in_new_session(store, event, joined[0], terms)


def _start_in_session(store: Store, event: Event, joined: JoinedRun, terms: Terms) -> EventResult | None:
    """Applies the start in the session that was found; None if that is final and the agent woke for a new session."""
    record, run = joined
    if _is_wake(run, event, terms.now) and is_final(record["phase"]):
        return None
    result = _change(store, event, joined, terms)
    changed = result.record
    changed_run = runs.run_by_number(changed, run["run"]) if changed and is_final(changed["phase"]) else None
    return None if changed_run and _is_wake(changed_run, event, terms.now) else result  # the host of its run was gone


def _change(store: Store, event: Event, joined: JoinedRun, terms: Terms) -> EventResult:
    """Applies the start to the run that was found, and gives the session its parent if that was unknown."""
    record, run = joined
    if "continues" in record and run["run"] == 1 and not (runs.has_started(run) or runs.has_ended(run)):
        from .delegate import end_continued  # most work continues nothing

        end_continued(store, record["continues"], record["agent_id"], terms)
    start_rule = _StartRule(event, terms)

    def change(rule: RunRule) -> EventResult:
        result = change_run(store, event, joined, terms.timeout, rule, lambda _: "started")
        if result.word == "started":
            result.resumed = start_rule.answered
        return result

    if "workflow" not in event and "parent_host_agent_id" not in {**event, **run}:
        return change(start_rule.rule)
    from .parent_session import KeptParent, parent_of, with_parent_known, with_purpose

    known = None if "parent_id" in record else parent_of(store, event, run)
    with KeptParent(store, known, terms.timeout, record["agent_id"]) as parent:
        return change(
            lambda record, run: with_parent_known(store, with_purpose(start_rule.rule(record, run), event), parent)
        )


class _StartRule:
    """The rule for one start."""

    def __init__(self, event: Event, terms: Terms) -> None:
        self.event = event
        self.now = terms.now
        self.decides = terms.config.approvals != "explicit"
        # The record before the start, if it has an answer that its agent did not get.
        self.answered: Record | None = None

    def rule(self, record: Record, run: Run) -> Record:
        is_briefed = "claimed_at" in run and not runs.has_started(run)  # the prompt of its delegation has the answer
        self.answered = record if runs.untold_answers(record) and not is_briefed else None
        if self._is_of_gone_host(record, run):
            from gaia_sessions.session.run_ends import with_end_of_gone_host

            record = with_end_of_gone_host(record, run, self.now, None)  # the start is the latest activity
            run = runs.updated_run(record, run)
        if "own_work" in run:
            record = self._with_agent_woken(record, run)
            run = runs.updated_run(record, run)
        if _is_wake(run, self.event, self.now):
            return record if is_final(record["phase"]) or _has_live_run(record) else self._with_new_run(record)
        fields = self._start_fields(run)
        if runs.has_ended(run) or runs.conversation_of(run) != self.event["host_session_id"]:
            record = self._with_agent_alive(record, run)
            run = runs.updated_run(record, run)
        return self._with_start(record, run, fields)

    def _with_start(self, record: Record, run: Run, fields: Run) -> Record:
        return with_question_held(runs.with_start(record, run, fields, self.now, decides=self.decides))

    def _with_agent_woken(self, record: Record, run: Run) -> Record:
        from gaia_sessions.session.own_work import with_agent_woken

        if self.event.get("launch"):
            return record
        return with_agent_woken(record, run, self.now, decides=self.decides)

    def _with_agent_alive(self, record: Record, run: Run) -> Record:
        """Puts ``run`` into the conversation of the event, without an end that the start disproves."""
        from gaia_sessions.session.concluded_ends import with_agent_in_conversation, without_concluded_end

        if run.get("end") == DENIED:
            record = without_concluded_end(record, run, self.now)
        return with_agent_in_conversation(
            record, runs.updated_run(record, run), self.event["host_session_id"], self.now
        )

    def _with_new_run(self, record: Record) -> Record:
        record = runs.with_new_run(record, {})
        run = record["runs"][-1]
        return self._with_start(record, run, self._start_fields(run))

    def _start_fields(self, run: Run) -> Run:
        """Returns what the start adds to ``run``. The run keeps its first time of start."""
        fields = _agent_fields(self.event)
        if "host_session_id" in run:  # part of the delegation's key; the current conversation has its own field
            del fields["host_session_id"]
        return {**_time_of_start(self.event, self.now), **fields} if "started_at" not in run else fields

    def _is_of_gone_host(self, record: Record, run: Run) -> bool:
        """Returns whether the host of ``run`` is gone, and its successor starts the agent in the same conversation."""
        in_own_conversation = runs.conversation_of(run) == self.event["host_session_id"]
        return in_own_conversation and runs.has_started(run) and run["run"] in gone_runs(record)


def with_question_held(record: Record) -> Record:
    """Returns ``record`` with the question of a marker as the question of the work, if the question is still open."""
    if not runs.holds_question(record) or "question" in record:
        return record
    from gaia_sessions.hosts.marker import read_why

    said = [run["last_message"] for run in record["runs"] if "last_message" in run]
    asked = read_why(said[-1]) if said else ""
    return with_question(record, asked) if asked else record


def _is_wake(run: Run, event: Event, now: datetime) -> bool:
    """Returns whether the start wakes an agent whose run had ended before the event."""
    if event.get("launch") or "was_running" in event or run.get("host_agent_id") != event["host_agent_id"]:
        return False
    if "own_work" in run:  # the run only seemed to have ended
        return False
    if run.get("end") == ENDED_WITH_HOST and runs.conversation_of(run) != event["host_session_id"]:
        return False  # only its conversation ended; the agent works in another one
    return runs.has_ended(run) and run["end"] != DENIED and now >= parse_time(run["ended_at"])


def _has_live_run(record: Record) -> bool:
    """Returns whether an agent or a command is at work on the session. A send does not keep an agent from waking."""
    gone = gone_runs(record)
    return any(runs.is_live(run) and not runs.is_send(run) and run["run"] not in gone for run in record["runs"])


def _continue_in_new_session(store: Store, event: Event, earlier: Record, terms: Terms) -> EventResult:
    from .delegate import begin_session
    from .parent_session import named_parent

    event = {**event, "agent_name": earlier["agent_name"], "purpose": earlier["purpose"]}
    begun = first_start(first_fields(event, terms.now), terms.now)
    # The session that started the agent is also above the agent's later work, and can cancel that work.
    above = named_parent(store, earlier["parent_id"]) if "parent_id" in earlier else None
    kept = begin_session(store, event, terms, begun, above=above, earlier=earlier)
    return EventResult("continued", record=kept, resumed=earlier if runs.untold_answers(earlier) else None)


def first_start(fields: Run, now: datetime) -> Callable[[Record], Record]:
    """Returns a function that gives a new session its first run, with ``fields`` and an agent at work."""
    return lambda new: runs.with_start({**new, "runs": [{"run": 1}]}, {"run": 1}, fields, now)


def first_fields(event: Event, now: datetime) -> Run:
    """Returns the fields of a run that begins with this start."""
    return {**_agent_fields(event), **_time_of_start(event, now)}


def _time_of_start(event: Event, now: datetime) -> Run:
    """Returns when the agent started; empty if it was at work before its first event."""
    return {} if "was_running" in event else {"started_at": format_time(now)}


def _agent_fields(event: Event) -> Run:
    return {key: event[key] for key in _AGENT_FIELDS if key in event}  # type: ignore[literal-required, return-value]
