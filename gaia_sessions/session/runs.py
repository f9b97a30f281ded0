"""The runs of a session: when a host really ran its sub-agent.

Owns how runs begin, start and are found by a host's exact keys. Never guesses: keys either match or they
do not. How runs end is in ``endings``. Pure, like ``changes``; knows hosts only by the ids they give.
"""

from __future__ import annotations

from .clock import FUTURE_TOLERANCE, format_time, parse_time, timedelta
from .phases import APPROVAL, EXECUTING, INITIALIZING, INVESTIGATING, OUTCOMES
from .record import has_newer_schema, is_open
from .updates import with_activity, with_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from .schema import Record, Run

    Alias = tuple[str, tuple[str, ...]]
    """A kind of key, and the exact strings of one."""

CLAIM_LIFETIME = timedelta(minutes=10)
"""A claim without a start holds the session for so long."""

HOSTS_WITH_UNIQUE_AGENTS = frozenset(["claude-code"])
"""Hosts that make an id by chance for each agent and keep it when the conversation's id changes, as seen in captures.
Elsewhere an agent's id means nothing outside of its conversation: Codex has paths, made of the name of a task."""

_START_KEYS = frozenset(["started_at", "host_agent_id", "reported"])


def has_ended(run: Run) -> bool:
    return "ended_at" in run


def has_started(run: Run) -> bool:
    """Known to have been started: only delegated ones may never be."""
    return not _START_KEYS.isdisjoint(run)


def may_be_at_work(run: Run) -> bool:
    """Known to have been started, or delegated on a host that tells of no starts and has refused nothing yet."""
    return has_started(run) or run.get("unannounced", False)


def is_live(run: Run) -> bool:
    """At work and not known to have ended; whether its host is still there is not asked."""
    return not has_ended(run) and may_be_at_work(run)


def run_by_number(record: Record, number: int) -> Run | None:
    """The run with this ``number``, which is not its place: None if the record does not have it, or no longer."""
    return next((run for run in reversed(record.get("runs", [])) if run["run"] == number), None)


def updated_run(record: Record, run: Run) -> Run:
    """``run`` as ``record``, which was made from one that has it, says of it."""
    return next(other for other in reversed(record["runs"]) if other["run"] == run["run"])


def next_run_number(record: Record) -> int:
    """The number of the run that begins next: numbers go on, whichever runs are still there."""
    runs = record.get("runs", [])
    return runs[-1]["run"] + 1 if runs else 1


def is_latest(record: Record, run: Run) -> bool:
    """Whether no later run was begun or claimed: news of an earlier one says nothing about the work as it is now."""
    return run["run"] == record["runs"][-1]["run"]


def started_or_claimed_at(run: Run) -> datetime | None:
    """When the run is known to have begun, or else to have been delegated."""
    timestamp = run.get("started_at") or run.get("claimed_at")
    return parse_time(timestamp) if timestamp else None


def is_claimed(run: Run, now: datetime) -> bool:
    """Delegated a moment ago, and its start is still to be told of: the claim holds."""
    if has_ended(run) or is_live(run) or "claimed_at" not in run:
        return False
    return -FUTURE_TOLERANCE <= now - parse_time(run["claimed_at"]) < CLAIM_LIFETIME


def with_claimed_run(record: Record, keys: Run, now: datetime) -> Record:
    """A run is claimed for the delegation that ``keys`` tell of. Moves neither phase nor ``last_updated``."""
    return with_new_run(record, {**keys, "claimed_at": format_time(now)})


def run_of_delegation(record: Record, host_session_id: str, tool_use_id: str) -> Run | None:
    """The run that belongs to exactly this delegation, ended or not."""
    return _latest_run_with(record, {"host_session_id": host_session_id, "tool_use_id": tool_use_id})


def conversation_of(run: Run) -> str | None:
    """The host's session in which news of the run's agent comes: that of its delegation until the agent outlives it."""
    return run.get("current_host_session_id", run.get("host_session_id"))


def run_of_agent(record: Record, host_session_id: str, host_agent_id: str) -> Run | None:
    """The latest run of exactly this agent: an unended one first, and of those alike one of this conversation.

    A conversation's id may change while an agent works on (``/clear``); the agent's own id holds, if it is unique.
    """
    runs_of_agent = [run for run in reversed(record.get("runs", [])) if run.get("host_agent_id") == host_agent_id]
    in_conversation = [
        run for run in runs_of_agent if host_session_id in (run.get("host_session_id"), conversation_of(run))
    ]
    candidates = in_conversation + [
        run for run in runs_of_agent if run not in in_conversation and run.get("host") in HOSTS_WITH_UNIQUE_AGENTS
    ]
    return next((run for run in candidates if not has_ended(run)), candidates[0] if candidates else None)


def unended_run_in_conversation(record: Record, host_session_id: str) -> Run | None:
    """The latest unended run in this conversation of the host."""
    runs = (run for run in reversed(record.get("runs", [])) if not has_ended(run))
    return next((run for run in runs if conversation_of(run) == host_session_id), None)


def with_current_conversation(record: Record, run: Run, host_session_id: str) -> Record:
    """News of the agent of ``run`` comes in ``host_session_id`` from now on."""
    updated = without_keys(run, "current_host_session_id")
    if host_session_id != run.get("host_session_id"):
        updated["current_host_session_id"] = host_session_id
    return with_run(record, updated)


def delegation_alias(host_session_id: str, tool_use_id: str) -> Alias:
    """The key by which a store finds the session of this delegation."""
    return "delegation", (host_session_id, tool_use_id)


def agent_alias(host_session_id: str, host_agent_id: str, host: str | None = None) -> Alias:
    """The key by which a store finds the session of this agent: in this conversation, or in all of its host's."""
    if host in HOSTS_WITH_UNIQUE_AGENTS:
        return "agent_of_host", (host, host_agent_id)
    return "agent", (host_session_id, host_agent_id)


def aliases_of(record: Record) -> list[Alias]:
    """Every key by which ``record`` must be found."""
    aliases: list[Alias] = []
    if has_newer_schema(record):
        return aliases
    for run in record.get("runs", ()):
        if "host_session_id" in run and "tool_use_id" in run:
            aliases.append(delegation_alias(run["host_session_id"], run["tool_use_id"]))
        if "host_session_id" in run and "host_agent_id" in run:
            aliases.append(agent_alias(run["host_session_id"], run["host_agent_id"], run.get("host")))
    return aliases


def open_conversations(record: Record) -> list[str]:
    """The hosts' conversations whose next turn or end concerns open work: of its unended runs, and of its latest."""
    if not is_open(record) or has_newer_schema(record):
        return []
    runs = record.get("runs", [])
    concerned = [run for run in runs[:-1] if not has_ended(run)] + runs[-1:]
    return list(
        dict.fromkeys(conversation for conversation in map(conversation_of, concerned) if conversation is not None)
    )


def newest_session_with(alias: Alias, records: Iterable[Record]) -> str | None:
    """The id of the session that was created last of those with ``alias``: an agent that is woken begins another."""
    matching = (record for record in records if alias in aliases_of(record))
    newest = max(matching, key=lambda record: (parse_time(record["created_at"]), record["agent_id"]), default=None)
    return newest["agent_id"] if newest else None


def _latest_run_with(record: Record, keys: dict[str, str]) -> Run | None:
    return next((run for run in reversed(record.get("runs", [])) if keys.items() <= run.items()), None)


def with_reported_phase(record: Record, phase: str) -> Record:
    """Whoever works on the session said where it stands: that is kept with its unended run, if it has one."""
    run = record.get("runs", [])[-1:]
    if not run or has_ended(run[0]):
        return record
    return with_run(record, {**run[0], "reported": phase})


def with_start(record: Record, run: Run, fields: Run, now: datetime) -> Record:
    """The agent of ``run`` is at work; ``known`` is what the news told of it. The first news of that is its start.

    A session that had not begun is investigated from then on; one that waited for approval and is resumed
    is being executed: whoever resumes it has decided, unless a denial is recorded. Neither is *reported*.
    """
    if fields.items() <= run.items():
        return record
    record = with_run(record, {**run, **fields})
    if has_started(run) or has_ended(run) or record["phase"] in OUTCOMES or not is_latest(record, run):
        return record
    return with_phase(with_activity(record, now), _phase_after_start(record, run), now)


def with_presumed_start(record: Record, run: Run, now: datetime) -> Record:
    """A run whose start nobody tells of was at work by ``now``, from its delegation on; any other stays as it is."""
    if has_started(run) or not run.get("unannounced"):
        return record
    return with_start(record, run, {"started_at": run.get("claimed_at") or format_time(now)}, now)


def _phase_after_start(record: Record, run: Run) -> str:
    if record["phase"] == APPROVAL and run["run"] > 1 and "denial" not in record:
        return EXECUTING
    return INVESTIGATING if record["phase"] == INITIALIZING else record["phase"]


def with_run(record: Record, run: Run) -> Record:
    """``run`` in the place of the one with its number."""
    return {**record, "runs": [run if other["run"] == run["run"] else other for other in record["runs"]]}


def without_keys(run: Run, *keys: str) -> Run:
    """``run`` as if nothing were known under ``keys``."""
    return {key: value for key, value in run.items() if key not in keys}  # type: ignore[return-value]


def with_new_run(record: Record, fields: Run) -> Record:
    """A run with the next number, of which as much is ``known``."""
    return {**record, "runs": [*record.get("runs", ()), {"run": next_run_number(record), **fields}]}
