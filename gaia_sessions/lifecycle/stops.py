"""A sub-agent stopped: which session that was, and what becomes of it.

Owns the join of a stop by exact keys, in their order. Keys that disagree change nothing; there is no
guessing by order, name or prompt.
"""

from __future__ import annotations

from gaia_sessions import runs
from gaia_sessions.errors import CorruptSession, SessionNotFound
from gaia_sessions.ids import is_agent_id
from gaia_sessions.phases import is_final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.events import Event
    from gaia_sessions.shape import Record, Run
    from gaia_sessions.stores.port import Store

_TOLD = ("last_message", "transcript_path")


def stop(store: Store, event: Event, now: datetime, timeout: float) -> tuple[str, str | None]:
    """What was done, and to which session.

    ``paused``, ``finalized``; ``known`` for a stop told before; ``joined`` for one without a last message,
    which leaves the session open; ``keys_disagree``, ``no_key`` and ``not_joined`` change nothing.
    Raises ``LockTimeout`` after ``timeout`` seconds.
    """
    found = set(_joined(store, event))
    if not found:
        return ("not_joined" if "tool_use_id" in event else "no_key"), None
    if len(found) > 1:
        return "keys_disagree", None
    [(agent_id, number)] = found
    done = _Stopping(event, number, now)
    aliases = (runs.agent_alias(event["host_session_id"], event["host_agent_id"]),)
    store.change(agent_id, done.rule, timeout=timeout, aliases=aliases)
    return done.word, agent_id


class _Stopping:
    """The rule of one stop, and afterwards the word for what it did."""

    def __init__(self, event: Event, number: int, now: datetime) -> None:
        self.event = event
        self.number = number
        self.now = now
        self.word = "known"

    def rule(self, record: Record) -> Record:
        event = self.event
        run = record["runs"][self.number - 1]
        if run.get("host_agent_id", event["host_agent_id"]) != event["host_agent_id"]:
            self.word = "keys_disagree"
            return record
        if runs.has_ended(run):
            return self._judged_again(record, run)
        known = runs.joined(record, run, event["host_agent_id"], self.now)
        if not event.get("spoke"):
            self.word = "joined"
            return known
        return self._settled(runs.stopped(known, known["runs"][self.number - 1], *self._said()))

    def _judged_again(self, record: Record, run: Run) -> Record:
        if not self.event.get("again") or not runs.may_be_rejudged(record, run):
            return record
        return self._settled(runs.restopped(record, run, *self._said()))

    def _said(self) -> tuple[str | None, Run, datetime]:
        told: Run = {key: self.event[key] for key in _TOLD if key in self.event}  # type: ignore[literal-required, assignment]
        return self.event.get("marked"), told, self.now

    def _settled(self, record: Record) -> Record:
        self.word = "finalized" if is_final(record["phase"]) else "paused"
        return record


def _joined(store: Store, event: Event) -> Iterator[tuple[str, int]]:
    """The session and run each key at hand leads to."""
    host_session_id = event["host_session_id"]
    for agent_id, record in _sessions_at_hand(store, event):
        run = (
            runs.run_of_agent(record, host_session_id, event["host_agent_id"])
            or _run_of_delegation(record, event)
            or (runs.unended_run_of_host(record, host_session_id) if agent_id == event.get("marked_id") else None)
        )
        if run:
            yield agent_id, run["run"]


def _run_of_delegation(record: Record, event: Event) -> Run | None:
    return (
        runs.run_of_delegation(record, event["host_session_id"], event["tool_use_id"])
        if "tool_use_id" in event
        else None
    )


def _sessions_at_hand(store: Store, event: Event) -> Iterator[tuple[str, Record]]:
    host_session_id = event["host_session_id"]
    hints = [store.find(runs.agent_alias(host_session_id, event["host_agent_id"]))]
    if "tool_use_id" in event:
        hints.append(store.find(runs.delegation_alias(host_session_id, event["tool_use_id"])))
    hints.append(event.get("marked_id"))
    for agent_id in dict.fromkeys(hints):
        if is_agent_id(agent_id):
            try:
                yield agent_id, store.read(agent_id)
            except (SessionNotFound, CorruptSession):  # there is nothing to join
                continue
