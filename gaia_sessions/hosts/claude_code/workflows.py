"""Claude Code's workflows: scripts that start agents, and the client's untrusted files about them (2.1.197, 2.1.330).
{conversation}/subagents/workflows/{run_id}/journal.jsonl has {"type": "started", "key", "agentId"[, "label"]} ...,
and {conversation}/workflows/{run_id}.json is written at the end: {"taskId", "workflowProgress": [...]}.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts import CLAUDE_CODE, host_files
from gaia_sessions.hosts.agent_files import LONGEST_LINE, newest_names
from gaia_sessions.hosts.payload import clean, is_key, key_in, object_in, object_in_bytes, one_line, text_in
from gaia_sessions.session import host_events, schema
from gaia_sessions.session.clock import timedelta
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.phases import COMPLETED, FAILED, is_failure

from .reported_usage import figures_of_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

AGENT_NAME = "workflow"

_JOURNAL = "journal.jsonl"
_LARGEST_FILE = 64 << 20
_MOST_DECODED = 8 << 20
"""Bytes of JSON, as many as a payload can have. A short line counts as 1 KiB, because decoding it takes as long."""

_SHORT_LINE = 1 << 10
_COARSENESS = timedelta(seconds=2)
"""The step in which some file systems count the times of files."""

_MOST_STRETCHES = 100
_MOST_AGENTS = 2000
"""The most agents of one workflow that are read."""
_LONGEST_SCRIPT_HEAD = 4000
_DESCRIPTION = r"""\bdescription\s*:\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`\\]*)`)"""
_OUTCOMES = {"done": COMPLETED, "error": FAILED}
_WORKFLOW_ENDS: dict[str, ReportedEnd] = {
    "completed": (schema.STOPPED, {}),
    "failed": (schema.RUN_FAILED, {"detail": "failed"}),
    "killed": (schema.KILLED, {"detail": "stopped"}),
}
"""The end of a workflow by the status in its own file."""


def delegation(payload: HookPayload, host_process: object) -> Event:
    """Returns the event of a call of the tool. A workflow run that is resumed keeps its ID."""
    run_id = key_in(payload.tool_input, "resumeFromRunId")
    return payload.event(
        host_events.DELEGATE,
        agent_name=AGENT_NAME,
        purpose=payload.purpose(_described(payload.tool_input)),
        tool_use_id=payload.key("tool_use_id"),
        parent_host_agent_id=payload.key("agent_id"),
        workflow={"run_id": run_id} if run_id else None,
        background=True,
        host_process=host_process,
    )


def launch(payload: HookPayload) -> list[Event]:
    """Returns the launch of the workflow. No other event has the IDs of the workflow."""
    response = object_in(payload.raw, "tool_response")
    task, run_id = key_in(response, "taskId"), key_in(response, "runId")
    if not task or not run_id:
        return []
    folder = response.get("transcriptDir")
    journal = os.path.join(folder, _JOURNAL) if isinstance(folder, str) and os.path.isabs(folder) else None
    return [
        payload.event(
            host_events.START,
            agent_name=AGENT_NAME,
            purpose=payload.purpose(response.get("summary")),
            host_agent_id=task,
            tool_use_id=payload.key("tool_use_id"),
            workflow={"run_id": run_id},
            launch=True,
            background=True,
            transcript_path=journal,
        )
    ]


def agent_keys(
    payload: HookPayload, folder: str, host_agent_id: str, since: datetime | None = None
) -> dict[str, object]:
    """Returns an agent's workflow, its key there, its label as purpose, its transcript; empty if it has no workflow."""
    # An event about an agent does not name its workflow. The journal of the workflow names the agent even before its
    # start. ``folder`` has a folder for each workflow run.
    for run_id, entry in _entries_about(host_agent_id, _newest_files(folder, _JOURNAL, since)):
        key, label = key_in(entry, "key"), entry.get("label")
        if key and entry.get("type") == "started":
            return {
                "workflow": {"run_id": run_id, "key": key},
                "purpose": payload.purpose(label) if label else None,
                "transcript_path": os.path.join(folder, run_id, f"agent-{host_agent_id}.jsonl"),
            }
    return {}


def notification_events(payload: HookPayload, notification: Event, folder: str, text: str) -> list[Event]:
    """Returns the ends of a workflow's agents, then the workflow's end; for an agent's task only ``notification``."""
    # After the workflow is over, its own file says how each agent ended. ``text`` is the part of the notification after
    # its summary.
    document = _workflow_file(folder, notification.get("host_agent_id", ""))
    if not document:
        return [notification]
    ends = [event for entry in agents_in(document) if (event := _agent_end(payload, entry))]
    result, failures = _element(text, "result"), _element(text, "failures")
    if result and payload.config.keep_last_message:
        notification = {**notification, "last_message": clean(result)[-MAX_MESSAGE_LENGTH:]}
    if failures and "error" not in notification:
        notification = {**notification, "error": one_line(failures, MAX_MESSAGE_LENGTH)}
    return [*ends, notification]


def agents_in(document: Payload) -> list[Payload]:
    """Returns what the file of a workflow says of each of the workflow's agents."""
    progress = document.get("workflowProgress")
    entries = progress[:_MOST_AGENTS] if isinstance(progress, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def end_in_files(run: Run) -> ReportedEnd | None:
    """Returns how a workflow or one of its agents ended, by its own file or the journal; None if neither says it."""
    folder, name = os.path.split(run.get("transcript_path", ""))
    agent = run.get("host_agent_id")
    if not os.path.isabs(folder) or agent is None:
        return None
    # The transcript of the run of a workflow itself is its journal.
    if "key" in run["workflow"]:
        ends = (_journal_end(entry) for _, entry in _entries_about(agent, [("", _read(folder, _JOURNAL))]))
        return next(filter(None, ends), None)
    conversation = folder.partition("/subagents/workflows/")[0]
    document = _workflow_file(os.path.join(conversation, "workflows"), agent) if name == _JOURNAL else {}
    return _WORKFLOW_ENDS.get(str(document.get("status")))


def _journal_end(entry: Payload) -> ReportedEnd | None:
    """Returns the end of an agent that an entry of the journal states; None if the entry states no end."""
    if entry.get("type") == "failed":
        return schema.RUN_FAILED, {"detail": "failed in its workflow"}
    return (schema.STOPPED, {}) if entry.get("type") == "result" else None


def _agent_end(payload: HookPayload, entry: Payload) -> Event | None:
    agent, outcome = key_in(entry, "agentId"), _OUTCOMES.get(str(entry.get("state")))
    if not agent or not outcome:
        return None
    from . import interruptions

    label, error = entry.get("label"), text_in(entry, "error")
    why = interruptions.keys_of_failure(None, error, None, payload.now) if is_failure(outcome) else {}
    return payload.event(
        host_events.NOTIFICATION,
        host_agent_id=agent,
        outcome=outcome,
        purpose=payload.purpose(label) if label else None,
        error=one_line(error, MAX_MESSAGE_LENGTH) or None,
        **why,
        **figures_of_progress(entry),
    )


def _described(tool_input: Payload) -> str | None:
    """Returns the description in the head of the given script, else the name of a stored script."""
    import re  # one call in a conversation

    script = tool_input.get("script")
    found = re.search(_DESCRIPTION, script[:_LONGEST_SCRIPT_HEAD]) if isinstance(script, str) else None
    return next(filter(None, found.groups()), None) if found else key_in(tool_input, "name")


def _newest_files(folder: str, name: str = "", since: datetime | None = None) -> Iterator[tuple[str, bytes]]:
    """Yields the newest entries of ``folder``, each with its content or the content of its file ``name``."""
    # Entries that were not written after ``since`` are skipped, and only as much is read as one file may have: a
    # starting agent must not wait until all files are read.
    left = _LARGEST_FILE
    for entry in newest_names(CLAUDE_CODE, folder, _MOST_STRETCHES):
        if left > 0 and is_key(entry) and entry.isprintable() and _is_written(os.path.join(folder, entry, name), since):
            data = _read(os.path.join(folder, entry), name) if name else _read(folder, entry)
            left -= len(data)
            yield entry, data


def _is_written(path: str, since: datetime | None) -> bool:
    if not since:
        return True
    from gaia_sessions.hosts.evidence import file_written_at  # only a waiting event has a ``since``

    written = file_written_at(CLAUDE_CODE, path)
    return written is not None and written - since >= -_COARSENESS


def _entries_about(host_agent_id: str, journals: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, Payload]]:
    """Yields the entries of journals that name this agent, each with the name of its journal."""
    left = _MOST_DECODED
    for name, data in journals:
        for line in _lines_with(host_agent_id.encode(), data):
            # Lines that are too long are skipped, and no more is decoded than there is time for.
            left -= max(len(line), _SHORT_LINE)
            if left < 0:
                return
            entry = object_in_bytes(line, LONGEST_LINE)
            if entry.get("agentId") == host_agent_id:
                yield name, entry


def _lines_with(text: bytes, data: bytes) -> Iterator[bytes]:
    """Yields the lines of ``data`` that contain ``text`` and are not too long, without copies of other lines."""
    end = 0
    while (found := data.find(text, end)) >= 0:
        start, end = data.rfind(b"\n", 0, found) + 1, data.find(b"\n", found)
        end = len(data) if end < 0 else end
        if end - start <= LONGEST_LINE:
            yield data[start:end]


def _workflow_file(folder: str, task_id: str) -> Payload:
    """Returns the file of the workflow with this task; empty if it has none, or if the task is an agent's."""
    left = _MOST_DECODED
    for name, data in _newest_files(folder) if task_id else ():
        if name.endswith(".json") and len(data) <= left and task_id.encode() in data:
            left -= len(data)
            document = object_in_bytes(data, _MOST_DECODED)
            if document.get("taskId") == task_id:
                return document
    return {}


def _read(folder: str, name: str) -> bytes:
    try:
        return host_files.content(CLAUDE_CODE, os.path.join(folder, name), _LARGEST_FILE)
    except OSError:
        return b""


def _element(text: str, name: str) -> str:
    """Returns the text of an element of a notification, whatever its length."""
    return text.partition(f"<{name}>")[2].partition(f"</{name}>")[0].strip()
