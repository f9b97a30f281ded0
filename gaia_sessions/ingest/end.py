"""How each kind of event ends a run. ``session.run_ends`` says what an end does to a session."""

from __future__ import annotations

from gaia_sessions.session import host_events, runs, schema
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.phases import is_abandoned, is_failure, is_final
from gaia_sessions.session.run_ends import (
    SILENT_STOP_DETAIL,
    has_created,
    is_before,
    is_silent_stop,
    is_stronger_evidence,
    marker_fields,
    may_be_rejudged,
    with_end,
    with_failure_detail,
    with_held_question,
    with_later_stop,
    with_settled_return,
    with_silent_stop,
)
from gaia_sessions.session.schema import DENIED, KILLED, RUN_FAILED, RUN_RETURNED, STOPPED

from . import BUSY, KEYS_DISAGREE, KNOWN, EventResult
from .join import (
    change_joined_run,
    change_run,
    find_run,
    find_run_by_both_keys,
    is_of_dropped_run,
    may_be_of_agent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    from . import Terms
    from .join import JoinedRun, RunRule

_MESSAGE_FIELDS = ("last_message", "transcript_path")


def stop(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``paused`` or ``finalized``; ``joined`` if the stop has no last message, which leaves the run open."""
    return change_joined_run(store, event, terms.timeout, _EndRules(event, terms.now).stop, _word_for)


def fail(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``broken_off`` or ``finalized``. A delegation that failed before its agent started counts as denied."""
    return _change_with_agents(store, event, find_run(store, event), terms, _EndRules(event, terms.now).fail)


def returned(store: Store, event: Event, terms: Terms) -> EventResult:
    """Returns ``finalized``; ``paused`` if the agent's stop came before, ``broken_off`` if no stop came."""
    return change_joined_run(store, event, terms.timeout, _EndRules(event, terms.now).returned, _word_for)


def delegation_closed(store: Store, event: Event, terms: Terms) -> EventResult:
    """Ends a delegation that never started as denied. Any other delegation stays as it is."""
    return change_joined_run(store, event, terms.timeout, _EndRules(event, terms.now).delegation_closed, _word_for)


def notification(store: Store, event: Event, terms: Terms) -> EventResult:
    """Applies what the host tells the main agent about the end of a background agent or a workflow."""
    keyed, joined = _find_notified(store, event)
    rules = _EndRules(event, terms.now)
    return _change_with_agents(
        store, keyed, joined, terms, rules.word_on_wait if "waits" in event else rules.notification
    )


def _find_notified(store: Store, event: Event) -> tuple[Event, JoinedRun | EventResult]:
    """Returns the event with the keys that lead to the run of a notification, and that run."""
    # The agent may have been woken since, so the delegation comes first. If no run has the delegation's key, there are
    # two cases: the key is that of the message that woke the agent, and the latest run counts; or its run was dropped.
    by_delegation, by_agent = _without_key(event, "host_agent_id"), _without_key(event, "tool_use_id")
    joined = find_run(store, by_delegation)
    if not isinstance(joined, EventResult):
        return by_delegation, joined if may_be_of_agent(joined[1], event) else EventResult(KEYS_DISAGREE)
    exact_run = find_run_by_both_keys(store, event)
    if exact_run:
        return event, exact_run
    joined = find_run(store, by_agent)
    if not isinstance(joined, EventResult) and is_of_dropped_run(store, joined[0], event, "tool_use_id"):
        return by_agent, EventResult(KNOWN)
    return by_agent, joined


def _change_with_agents(
    store: Store, event: Event, joined: JoinedRun | EventResult, terms: Terms, rule: RunRule
) -> EventResult:
    """Applies ``rule`` to the run that was found. If ``rule`` kills a workflow, the workflow's agents end first."""
    if isinstance(joined, EventResult):
        return joined
    if runs.is_workflow_itself(joined[1]):
        from .workflow import end_agents

        if not end_agents(store, event, terms, rule(*joined)):
            return EventResult(BUSY)
    return change_run(store, event, joined, terms.timeout, rule, _word_for)


class _EndRules:
    """The rules for one event, one method for each kind."""

    def __init__(self, event: Event, now: datetime) -> None:
        self.event = event
        self.now = now

    def stop(self, record: Record, run: Run) -> Record:
        if "own_work" in self.event and not self._is_last(run):
            return self._with_wait(record, run)
        if self._replaces_stop(run) and may_be_rejudged(record, run):
            message_fields = with_held_question(record, run, self._message_fields())
            if _is_repeated(run, message_fields):
                return record
            return with_later_stop(record, _without_silence(run), message_fields, self.now)
        record, run = self._with_start(record, run)
        if not self.event.get("has_message"):
            return with_silent_stop(record, run, self.now)
        return with_end(record, run, STOPPED, self._last_words(run), self.now)

    def fail(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        has_begun = runs.has_started(run)
        if "interruption" in self.event and has_begun:
            return self._with_interruption(record, run)
        if self.event.get("interrupted") and (has_begun or has_created(record, run)):  # a bare claim is denied below
            return with_end(record, run, KILLED, self._detail("interrupted"), self.now)
        if not has_begun:
            return with_end(record, run, DENIED, self._detail("never started"), self.now)
        if self.event.get("has_message") and not is_stronger_evidence(run, RUN_FAILED):
            return with_failure_detail(record, run, self._detail("failed")["detail"])
        return with_end(record, run, RUN_FAILED, self._detail("failed"), self.now)

    def returned(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(self._with_purpose(record), run)
        if "own_work" in run:
            from gaia_sessions.session.own_work import with_last_turn

            return with_last_turn(record, run, self.now)
        return with_end(record, run, STOPPED if is_silent_stop(run) else RUN_RETURNED, {}, self.now)

    def delegation_closed(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(record, run)
        if runs.has_started(run):
            return record
        return with_end(record, run, DENIED, self._detail("never started"), self.now)

    def notification(self, record: Record, run: Run) -> Record:
        record, run = self._with_start(self._with_purpose(record), run)
        outcome = self.event.get("outcome")
        if "interruption" in self.event and runs.has_started(run):
            return self._with_interruption(record, run)
        if is_abandoned(outcome):
            return with_end(record, run, KILLED, self._detail("stopped"), self.now)
        if is_failure(outcome):
            return with_end(record, run, RUN_FAILED, self._detail("failed"), self.now)
        if self.event.get("has_message") is False:
            return with_end(record, run, STOPPED, {"detail": SILENT_STOP_DETAIL}, self.now)
        if "workflow" in run:  # the host states the outcome of its agents, so no stop is missing
            return with_end(record, run, STOPPED, self._message_fields() | self._failures(), self.now)
        record = self.returned(record, run)
        return with_settled_return(record, runs.updated_run(record, run), self.now)

    def word_on_wait(self, record: Record, run: Run) -> Record:
        """Applies a notification that is only about an agent that waits for its own work."""
        from gaia_sessions.session.own_work import with_word_of_host

        return with_word_of_host(*self._with_start(record, run), self.event.get("interruption"), self.now)

    def _with_purpose(self, record: Record) -> Record:
        if "purpose" not in self.event or record["purpose"] == self.event["purpose"]:
            return record
        from .parent_session import with_purpose

        return with_purpose(record, self.event)

    def _is_last(self, run: Run) -> bool:
        """Returns whether the stop is final, whatever the agent left running: it failed, or its delegation returned."""
        return is_failure(self.event.get("marker_phase")) or run.get("end") == RUN_RETURNED

    def _with_wait(self, record: Record, run: Run) -> Record:
        from gaia_sessions.session import own_work  # few agents wait for what they began

        if self._replaces_stop(run):
            record = own_work.without_stop(record, run, self.now)
            run = runs.updated_run(record, run)
        record, run = self._with_start(record, run)
        return own_work.with_wait(record, run, self.event["own_work"], self._last_words(run), self.now)

    def _failures(self) -> Run:
        return {"detail": self.event["error"]} if "error" in self.event else {}

    def _with_interruption(self, record: Record, run: Run) -> Record:
        """Interrupts the run, and pauses the session until its limit is reset, if the event says when."""
        by_user = self.event["interruption"] == schema.STOPPED_BY_USER  # a host that ends says this of its agents too
        if (by_user and run.get("end") == schema.ENDED_WITH_HOST) or is_before(self.event.get("interrupted_at"), run):
            return record
        fields = self._detail("interrupted") | {"interruption": self.event["interruption"]}
        changed = with_end(record, run, KILLED, fields, self.now)
        if changed is record:
            return self._with_own_words(record, run, fields)
        if "paused_until" not in self.event or is_final(changed["phase"]):
            return changed
        return {**changed, "paused_until": self.event["paused_until"]} if runs.is_latest(changed, run) else changed

    def _with_own_words(self, record: Record, run: Run, fields: Run) -> Record:
        """Replaces another description of a known interruption with the agent's own description."""
        is_better = self.event.get("has_message") and run.get("interruption") == fields["interruption"]
        return runs.with_run(record, {**run, **fields}) if is_better and not fields.items() <= run.items() else record

    def _replaces_stop(self, run: Run) -> bool:
        """Returns whether a message follows a stop: a hook kept the agent working, or its last words were missing."""
        if not self.event.get("has_message") or not runs.has_ended(run) or "own_work" in run:
            return False
        is_after_block = self.event.get("after_block") and self.now >= parse_time(run["ended_at"])
        return is_after_block or run.get("detail") == SILENT_STOP_DETAIL

    def _with_start(self, record: Record, run: Run) -> tuple[Record, Run]:
        """Starts ``run`` if the event shows its start: the event names the agent, or says that it was at work."""
        start_fields = self._start_of(run)
        if not start_fields:
            return record, run
        if run.get("end") == DENIED:
            from gaia_sessions.session.concluded_ends import without_concluded_end

            record = without_concluded_end(record, run, self.now)
            run = runs.updated_run(record, run)
        record = runs.with_start(record, run, start_fields, self.now)
        return record, runs.updated_run(record, run)

    def _start_of(self, run: Run) -> Run:
        """Returns what the event adds to the start of ``run``."""
        if "host_agent_id" in self.event:
            return {} if "host_agent_id" in run else {"host_agent_id": self.event["host_agent_id"]}
        if "was_running" not in self.event or runs.has_started(run):
            return {}
        # If no start was reported, the run started with the delegation.
        return {"started_at": run.get("claimed_at") or format_time(self.now)}

    def _message_fields(self) -> Run:
        fields: Run = {key: self.event[key] for key in _MESSAGE_FIELDS if key in self.event}  # type: ignore[literal-required, assignment]
        return {**fields, **marker_fields(self.event.get("marker_phase"))}

    def _last_words(self, run: Run) -> Run:
        fields, may_go_on = self._message_fields(), "own_work" in run or not runs.has_ended(run)
        if not may_go_on or run.get("detail") != schema.MARKER_DETAIL or "reported" in fields:
            return fields
        from gaia_sessions.hosts.marker import read_why
        from gaia_sessions.session.own_work import with_open_question

        return with_open_question(run, fields, read_why(run.get("last_message", "")))

    def _detail(self, default: str) -> Run:
        return {"detail": (self.event.get("error") or default)[: host_events.MAX_MESSAGE_LENGTH]}


def _is_repeated(run: Run, message_fields: Run) -> bool:
    """Returns whether a stop reports exactly what the previous stop reported, so that nothing changes."""
    is_contained = bool(message_fields) and message_fields.items() <= run.items()
    return is_contained and run.get("detail") == message_fields.get("detail")


def _without_silence(run: Run) -> Run:
    return runs.without_keys(run, "detail") if run.get("detail") == SILENT_STOP_DETAIL else run


def _word_for(record: Record) -> str:
    run = record["runs"][-1]
    if is_final(record["phase"]):
        return "finalized"
    if not (record["resume_ready"] and runs.has_ended(run)):
        return "joined"
    return "paused" if run["end"] == STOPPED else "broken_off"


def _without_key(event: Event, key: str) -> Event:
    return {name: value for name, value in event.items() if name != key}  # type: ignore[return-value]
