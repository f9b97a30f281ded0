"""The runs of a session: how they begin and start, and how events find them by a host's exact keys.

This module names a host only if the IDs of the host's agents are unique.
"""

from __future__ import annotations

from .clock import format_time, is_within, parse_time, timedelta
from .phases import AGENT_AT_WORK, WORK_GIVEN_UP, WORK_RESUMED, is_final, phase_after, waits_for_approval
from .record import ANSWER_WORDS, answer_of, given_answers, has_newer_schema, is_asking, is_open, parent_id_of
from .schema import DENIED, ENDED_WITH_HOST, KILLED, LOST
from .updates import with_activity, with_given_answer, with_phase, without_answer, without_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from .schema import Answer, GivenAnswer, HostProcess, Record, Run

    Alias = tuple[str, tuple[str, ...]]
    """A kind of key, and the strings that make up the key."""

CLAIM_LIFETIME = timedelta(minutes=10)
"""How long a claim without a start holds the session."""

# Other hosts use an agent's ID only inside its conversation: Codex makes paths from the name of a task.
HOSTS_WITH_UNIQUE_AGENTS = frozenset(["claude-code"])
"""Hosts that give each agent a random ID, which stays when the conversation's ID changes."""

CLIENT_IS_OVER = "crashed or was closed"

_START_KEYS = frozenset(["started_at", "host_agent_id", "reported"])

_ENDS_WITHOUT_AGENT = frozenset([DENIED, ENDED_WITH_HOST, LOST, KILLED])
"""Ends that a run can have although its agent never started."""


def has_ended(run: Run) -> bool:
    return "ended_at" in run


def has_started(run: Run) -> bool:
    """Whether ``run`` is known to have started; a run that was only delegated may never start."""
    return not _START_KEYS.isdisjoint(run)


def is_workflow_itself(run: Run) -> bool:
    """Whether ``run`` is of a workflow and not of an agent: its transcript is the workflow's journal."""
    return "workflow" in run and "key" not in run["workflow"]


def may_be_at_work(run: Run) -> bool:
    """Whether ``run`` is known to have started, or was delegated on a host that reports no starts."""
    return has_started(run) or run.get("unannounced", False)


def is_live(run: Run) -> bool:
    """Whether ``run`` has no end and may be at work, even if its host's process is gone."""
    return not has_ended(run) and may_be_at_work(run)


def runs_of_gone_hosts(record: Record, is_gone: Callable[[HostProcess], bool]) -> frozenset[int]:
    """Returns the numbers of the runs without an end for whose process ``is_gone`` is true."""
    return frozenset(
        run["run"]
        for run in record.get("runs", ())
        if not has_ended(run) and (process := process_of(run)) and is_gone(process)
    )


def process_of(run: Run) -> HostProcess | None:
    """Returns the process whose end is the end of ``run``: the wrapper, else the host's process if it is known."""
    return run.get("wrapper") or run.get("host_process")


def is_own_run(run: Run) -> bool:
    """Whether a process of ours, the wrapper, began ``run``; only the wrapper, or proof of its loss, ends the run."""
    return "wrapper" in run


def is_send(run: Run) -> bool:
    """Whether ``run`` is a send, and so a turn of a conversation."""
    return "turn" in run


def is_conversation(record: Record) -> bool:
    """Whether the last run was a send, so that a person resumes the session with ``send``."""
    runs = record.get("runs", ())
    # A session without runs is a conversation if it continues another session.
    return is_send(runs[-1]) if runs else record.get("turns", 0) > 0 or "continues" in record


def is_work_of_command(record: Record) -> bool:
    """Whether the last run was a command, so that a person resumes the session with ``gaia-sessions run``."""
    return any(is_own_run(run) and not is_send(run) for run in record.get("runs", ())[-1:])


def times_held(record: Record) -> int:
    """Returns how often the agent of the latest run was kept from stopping while it had open todos."""
    return sum(len(run.get("held", ())) for run in record.get("runs", [])[-1:])


def client_of(run: Mapping[str, object]) -> str:
    """Returns the name of the program that ran the agent, such as ``Claude Code``; ``its client`` if unknown."""
    if "wrapper" in run:
        return "its sender" if "turn" in run else "gaia-sessions run"
    words = str(run["host"]).split("-") if "host" in run else ()
    return " ".join(word.upper() if word == "cli" else word.capitalize() for word in words) or "its client"


def crash_text(run: Mapping[str, object]) -> str:
    """Returns in words why nobody reported an end of ``run``."""
    when = "before the agent started" if was_only_delegated(run) else "while the agent was at work"
    return f"{client_of(run)} {CLIENT_IS_OVER} {when}"


def was_only_delegated(run: Mapping[str, object]) -> bool:
    """Whether only the delegation of ``run`` is known, on a host that would have reported its start."""
    return "claimed_at" in run and _START_KEYS.isdisjoint(run) and not run.get("unannounced")


def is_work(run: Run) -> bool:
    """Whether an agent was or is at work in ``run``, as far as is known: only such runs count, and take time."""
    if not has_ended(run):
        return may_be_at_work(run)
    return run.get("end") != DENIED and not (was_only_delegated(run) and run.get("end") in _ENDS_WITHOUT_AGENT)


def host_outlives_conversation(run: Run, is_alive: Callable[[HostProcess], bool]) -> bool:
    """Whether only the conversation of ``run`` ended and the host still runs, so that the agent may still work."""
    return run.get("end") == ENDED_WITH_HOST and "host_process" in run and is_alive(run["host_process"])


def waits_with_question(run: Run) -> bool:
    """Whether the agent of ``run`` asked for approval and waits for its own work: when woken, it is told the answer."""
    return "own_work" in run and not has_ended(run) and waits_for_approval(run.get("reported"))


def run_by_number(record: Record, number: int) -> Run | None:
    """Returns the run with this ``number``, which is not its index; None if the record does not have the run."""
    runs = record.get("runs", [])
    place = _place_of(runs, number)
    return runs[place] if place < len(runs) and runs[place]["run"] == number else None


def _place_of(runs: list[Run], number: int) -> int:
    """Finds the index of the run with this ``number`` by binary search: there may be thousands of runs."""
    low, high = 0, len(runs)
    while low < high:
        middle = (low + high) // 2
        if runs[middle]["run"] < number:
            low = middle + 1
        else:
            high = middle
    return low


def updated_run(record: Record, run: Run) -> Run:
    """Returns ``run`` as it is in ``record``, a later version of the run's record."""
    return record["runs"][_place_of(record["runs"], run["run"])]


def is_latest(record: Record, run: Run) -> bool:
    """Whether no later run exists: an event of an earlier run says nothing about the session now."""
    return run["run"] == record["runs"][-1]["run"]


def started_or_claimed_at(run: Run) -> datetime | None:
    """Returns when the run started, else when it was delegated; None if both times are unknown."""
    timestamp = run.get("started_at") or run.get("claimed_at")
    return parse_time(timestamp) if timestamp else None


def latest_run_with_file(record: Record) -> Run | None:
    """Returns the latest run with a file of its agent (transcript or output); None if the session has ended."""
    if is_final(record["phase"]):  # its idle time no longer matters
        return None
    return next((run for run in reversed(record.get("runs", [])) if run.keys() & _FILES), None)


_FILES = {"transcript_path", "output_path"}


def is_claimed(run: Run, now: datetime) -> bool:
    """Whether ``run`` was delegated recently and has not started."""
    if has_ended(run) or is_live(run) or "claimed_at" not in run:
        return False
    return is_within(CLAIM_LIFETIME, parse_time(run["claimed_at"]), now)


def has_agent(record: Record, now: datetime, dead_runs: Collection[int]) -> bool:
    """Whether an agent is at work on the session, or is about to be; ``dead_runs`` count as ended."""
    runs = (run for run in record.get("runs", ()) if run["run"] not in dead_runs)
    return any(is_live(run) or is_claimed(run, now) for run in runs)


def with_claimed_run(record: Record, keys: Run, now: datetime) -> Record:
    """Adds a new run for a delegation; this changes neither the phase nor ``last_updated``."""
    return with_new_run(record, {**keys, "claimed_at": format_time(now)})


def run_of_delegation(record: Record, host_session_id: str, tool_use_id: str) -> Run | None:
    """Returns the run of exactly this delegation, ended or not."""
    keys = {"host_session_id": host_session_id, "tool_use_id": tool_use_id}
    return next((run for run in reversed(record.get("runs", [])) if keys.items() <= run.items()), None)


def conversation_of(run: Run) -> str | None:
    """Returns the conversation that reports the agent: the first one, or a later one if the agent outlived it."""
    return run.get("current_host_session_id", run.get("host_session_id"))


def run_of_agent(record: Record, host_session_id: str, host_agent_id: str) -> Run | None:
    """Returns the latest run of exactly this agent; runs without an end, and of this conversation, come first."""
    # A conversation's ID may change while an agent works (``/clear``). The agent's own ID stays, if it is unique.
    in_conversation: list[Run] = []
    elsewhere: list[Run] = []
    for run in reversed(record.get("runs", [])):
        if run.get("host_agent_id") != host_agent_id:
            continue
        if host_session_id in (run.get("host_session_id"), conversation_of(run)):
            in_conversation.append(run)
        elif run.get("host") in HOSTS_WITH_UNIQUE_AGENTS:
            elsewhere.append(run)
    candidates = in_conversation + elsewhere
    return next((run for run in candidates if not has_ended(run)), candidates[0] if candidates else None)


def unended_run_in_conversation(record: Record, host_session_id: str) -> Run | None:
    """Returns the latest run without an end in this conversation of the host."""
    runs = (run for run in reversed(record.get("runs", [])) if not has_ended(run))
    return next((run for run in runs if conversation_of(run) == host_session_id), None)


def with_current_conversation(record: Record, run: Run, host_session_id: str) -> Record:
    """Notes that the conversation ``host_session_id`` now reports the agent of ``run``."""
    updated = without_keys(run, "current_host_session_id")
    if host_session_id != run.get("host_session_id"):
        updated["current_host_session_id"] = host_session_id
    return with_run(record, updated)


def delegation_alias(host_session_id: str, tool_use_id: str) -> Alias:
    """Returns the key by which a store finds the session of this delegation."""
    return "delegation", (host_session_id, tool_use_id)


def agent_alias(host_session_id: str, host_agent_id: str, host: str | None = None) -> Alias:
    """Returns the key by which a store finds the session of this agent, in this conversation or the whole host."""
    if host in HOSTS_WITH_UNIQUE_AGENTS:
        return "agent_of_host", (host, host_agent_id)
    return "agent", (host_session_id, host_agent_id)


def workflow_alias(host: str, run_id: str, key: str | None = None) -> Alias:
    """Returns the key by which a store finds the session of this workflow, or of its agent with ``key``."""
    return ("workflow", (host, run_id)) if key is None else ("workflow_agent", (host, run_id, key))


def orphan_alias(host_session_id: str, parent_host_agent_id: str, host: str | None = None) -> Alias:
    """Returns the key by which a store finds a session without a parent, made from the agent that delegated."""
    return "orphan", agent_alias(host_session_id, parent_host_agent_id, host)[1]


def is_orphan(record: Record, run: Run) -> bool:
    """Whether ``record`` has no parent, although ``run`` names the agent that delegated this work."""
    return "parent_id" not in record and "parent_host_agent_id" in run and "host_session_id" in run


def found_by(record: Record) -> tuple[bool, str | None, list[str], list[Alias]]:
    """Returns whether the session is open, its parent, its ``open_conversations``, and its aliases."""
    parent_id = parent_id_of(record)
    if has_newer_schema(record):  # this record counts as open: we may not know its phase and its runs
        return True, parent_id, [], []
    is_open, runs = not is_final(record["phase"]), record.get("runs", [])
    return is_open, parent_id, _conversations_of(runs) if is_open else [], _aliases_of(record, runs)


def aliases_of(record: Record) -> list[Alias]:
    """Returns every key by which a store must find ``record``."""
    return [] if has_newer_schema(record) else _aliases_of(record, record.get("runs", []))


def open_conversations(record: Record) -> list[str]:
    """Returns the conversations whose events matter to open work: of runs without an end and of the latest run."""
    return found_by(record)[2]


def is_active(record: Record, agent_name: str | None, host_session_id: str | None) -> bool:
    """Whether ``record`` is open, and has this name and this conversation, unless they are None."""
    has_name = agent_name in (None, record.get("agent_name"))  # a record of a later version may have none
    return has_name and is_open(record) and host_session_id in (None, *open_conversations(record))


def _aliases_of(record: Record, runs: list[Run]) -> list[Alias]:
    aliases: list[Alias] = []
    for run in runs:
        if "host_session_id" in run and "tool_use_id" in run:
            aliases.append(delegation_alias(run["host_session_id"], run["tool_use_id"]))
        if "host_session_id" in run and "host_agent_id" in run:
            aliases.append(agent_alias(run["host_session_id"], run["host_agent_id"], run.get("host")))
        if "workflow" in run and "host" in run:
            aliases.append(workflow_alias(run["host"], run["workflow"]["run_id"], run["workflow"].get("key")))
        if is_orphan(record, run):
            aliases.append(orphan_alias(run["host_session_id"], run["parent_host_agent_id"], run.get("host")))
    return aliases


def _conversations_of(runs: list[Run]) -> list[str]:
    concerned = [run for run in runs[:-1] if not has_ended(run)] + runs[-1:]
    return list(
        dict.fromkeys(conversation for conversation in map(conversation_of, concerned) if conversation is not None)
    )


def with_alias(alias: Alias, records: Iterable[Record]) -> list[Record]:
    """Returns the ``records`` that have ``alias``."""
    return [record for record in records if alias in aliases_of(record)]


def newest_of(records: list[Record]) -> Record | None:
    """Returns the record that was created last: an agent that wakes after its end begins another session."""
    if len(records) < 2:  # noqa: PLR2004  # reads times only if they decide
        return records[0] if records else None
    return max(records, key=lambda record: (parse_time(record["created_at"]), record["agent_id"]))


def with_reported_phase(record: Record, phase: str) -> Record:
    """Notes ``phase`` as the reported phase of the latest run, if that run has no end."""
    run = record.get("runs", [])[-1:]
    if not run or has_ended(run[0]):
        return record
    return with_run(record, {**run[0], "reported": phase})


def with_stated_phase(record: Record, phase: str, now: datetime, summary: str | None = None) -> Record:
    """Sets ``phase`` as ``with_phase`` does, and notes that the agent reported it."""
    # An agent at work was told the last answer. So its next question is a new question, even if the phase is the same.
    reported = with_reported_phase(record, phase)
    return with_phase(reported if reported is record else without_answer(reported), phase, now, summary)


def untold_answers(record: Record) -> list[GivenAnswer]:
    """Returns the answers that no agent was told yet, for the next agent; only the last answer counts."""
    given = given_answers(record)
    if not given:
        return []
    told = max((run["run"] for run in record.get("runs", ()) if has_started(run)), default=0)
    untold = [one for one in given if one.get("after_run", -1) >= told]
    return untold if answer_of(record) is None or untold[-1:] == given[-1:] else [*untold, given[-1]]


def standing_answer(record: Record) -> tuple[str, Answer] | None:
    """Returns ``answer_of``, or a denial that no agent was told before the session left ``approval``."""
    answered = answer_of(record)
    if answered is not None or "answers" not in record or waits_for_approval(record["phase"]):
        return answered
    last = untold_answers(record)[-1:]
    if last and last[0]["answer"] == ANSWER_WORDS["denial"]:
        return last[0]["answer"], {"message": last[0].get("message", ""), "timestamp": last[0]["timestamp"]}
    return None


def holds_question(record: Record) -> bool:
    """Whether a message woke the agent and approved nothing, so that its old question stays."""
    return is_asking(record) and any("unanswered" in run for run in record.get("runs", [])[-1:])


def with_start(record: Record, run: Run, fields: Run, now: datetime, *, decides: bool = True) -> Record:
    """Adds ``fields`` from an event of the agent of ``run``; the agent's first event is its start."""
    # To resume or begin work that waits for an approval is to approve it, unless a denial is recorded or ``decides`` is
    # false. The phase after the start does not count as reported.
    if fields.items() <= run.items():
        return record
    record = with_run(record, {**run, **fields})
    if has_started(run) or has_ended(run) or not is_latest(record, run) or is_final(record["phase"]):
        return record
    answered = answer_of(record)
    has_decided = decides if answered is None else answered[0] == "approved"
    if has_decided and is_asking(record):
        by = "workflow" if "workflow" in {**run, **fields} else "resume_line" if "claimed_at" in run else "message"
        record = with_given_answer(record, "approval", now, by)
    if not decides and is_asking(record) and run["run"] > 1 and "claimed_at" not in run:
        record = with_run(record, {**run, **fields, "unanswered": True})
    phase = phase_after(WORK_RESUMED if has_decided else AGENT_AT_WORK, record["phase"])
    return with_phase(with_activity(without_pause(record), now), phase, now)


def with_work_continued(
    record: Record, new_id: str, now: datetime, dead_runs: Collection[int], *, decides: bool
) -> Record:
    """Ends the session that waited for an approval, because session ``new_id`` continues its work."""
    # Work that paused for another reason, or that somebody has resumed, stays as it is.
    if not waits_for_approval(record["phase"]) or has_agent(record, now, dead_runs):
        return record
    if decides and is_asking(record):
        record = with_given_answer(record, "approval", now, "resume_line")
    summary = f"its work goes on in session {new_id}"
    return with_phase(with_activity(record, now), phase_after(WORK_GIVEN_UP, record["phase"]), now, summary)


def with_presumed_start(record: Record, run: Run, now: datetime) -> Record:
    """Notes the delegation as the start of ``run`` if its host reports no starts."""
    if has_started(run) or not run.get("unannounced"):
        return record
    return with_start(record, run, {"started_at": run.get("claimed_at") or format_time(now)}, now)


def with_run(record: Record, run: Run) -> Record:
    """Replaces the run that has the number of ``run``."""
    runs = [*record["runs"]]
    runs[_place_of(runs, run["run"])] = run
    return {**record, "runs": runs}


def without_keys(run: Run, *keys: str) -> Run:
    return {key: value for key, value in run.items() if key not in keys}  # type: ignore[return-value]


def with_new_run(record: Record, fields: Run) -> Record:
    """Adds a run with ``fields`` and the next number; numbers of dropped runs are not used again."""
    runs = record.get("runs", [])
    return {**record, "runs": [*runs, {"run": runs[-1]["run"] + 1 if runs else 1, **fields}]}
