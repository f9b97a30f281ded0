"""What a call of a hook or of a command costs. Each is a new process, and imports are most of its cost.

The hooks get payloads that were captured from a real client.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

from gaia_sessions.system import utc_now

from . import samples
from .client import Client
from .findings import Finding
from .timing import Start, times_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.store.file_store import FileStore

COMMAND = Path(sys.executable).with_name("gaia-sessions")

HOOK_LIMIT = 2.0
_COMMAND_LIMIT = 5.5
_OPEN = 10
_WAITING = 100


def hooks(folder: str) -> Iterator[Finding]:
    """Measures both hooks of the documents in the direct and the host form, reading and writing."""
    project, store = samples.project(folder)
    client = Client(project)
    sessions = partial(samples.create_paused, store)
    yield from map(
        partial(measure, limit=HOOK_LIMIT),
        (
            client.start(
                "pre_delegate, direct, resumable", "session_resumable", lambda: _direct_payload(sessions(utc_now()))
            ),
            client.start("pre_delegate, delegation, created", "created", client.new_delegation),
            client.start("pre_delegate, delegation, known", "known", client.known_delegation),
            client.start("pre_delegate, another tool", "not_ours", client.other_tool),
            client.start("subagent_stop, direct, finalized", "finalized", lambda: _end_payload(sessions(utc_now()))),
            client.start("subagent_stop, stop, finalized", "finalized", client.stop),
            client.installed("as installed, delegation, known", "known", client.known_delegation),
        ),
    )


def events(folder: str) -> Iterator[Finding]:
    """Measures every event of a host through ``every_event``, each with the effect that it must have."""
    project, store = samples.project(folder)
    client = Client(project)
    for what, decision, feed in _every_event(client, store):
        yield measure(client.start(f"every_event, {what}", decision, feed), HOOK_LIMIT)


def waiting(folder: str) -> Iterator[Finding]:
    """Measures every event and the direct form while many events wait in the inbox."""
    project, store = samples.project(os.path.join(folder, "events"))
    client = _with_waiting(project, store)
    for what, decision, feed in _every_event(client, store):
        yield measure(client.start(f"every_event, {what}, {_WAITING} waiting", decision, feed), HOOK_LIMIT)
    sessions = partial(samples.create_paused, store)
    for hook, decision, payload_of in (
        ("pre_delegate", "session_resumable", _direct_payload),
        ("subagent_stop", "finalized", _end_payload),
    ):
        start = client.start(
            f"{hook}, direct, {_WAITING} waiting", decision, partial(_payload_of_new_session, payload_of, sessions)
        )
        yield measure(start, HOOK_LIMIT)
    project, store = samples.project(os.path.join(folder, "turns"))
    client = _with_waiting(project, store)
    _leave_open(client, store)
    for what, decision, feed in (
        ("the end of a turn", "known", lambda: client.twice("Stop", background_tasks=[])),
        ("the start of a conversation", "conversation_started", lambda: client.payload("SessionStart")),
        ("the end of a conversation", "known", lambda: client.twice("SessionEnd")),
    ):
        start = client.start(f"every_event, {what}, {_OPEN} open, {_WAITING} waiting", decision, feed)
        yield measure(start, HOOK_LIMIT)


def _with_waiting(project: str, store: FileStore) -> Client:
    client = Client(project)
    for number in range(_WAITING):
        client.leave_waiting(store, number)
    return client


def _leave_open(client: Client, store: FileStore) -> None:
    for _ in range(_OPEN // 2):
        samples.create_paused(store, utc_now())
        client.known_delegation()


def _every_event(client: Client, store: FileStore) -> tuple[tuple[str, str, Callable[[], bytes]], ...]:
    """Returns for each event its name in the table, the decision that its log must have, and the payload."""
    return (
        ("a delegation", "created", client.new_delegation),
        ("a delegation that resumes", "claimed", lambda: client.resume(samples.create_paused(store, utc_now()))),
        ("a start", "deferred", client.start_of_agent),
        ("a launch", "started", client.launch),
        ("a stop after its start", "finalized", client.stop_after_start),
        ("a return", "broken_off", client.returned),
        ("a return that counts", "finalized", client.counted_return),
        ("a failure", "broken_off", client.failure),
        ("a message to an unknown agent", "no_key", client.message),
        ("a notification", "broken_off", client.notification),
        ("another tool", "not_ours", client.other_tool),
    )


def turns(folder: str) -> Iterator[Finding]:
    """Measures events of the main agent while ten sessions are open, half of them paused."""
    # At the start of a conversation the hook reads all of them, else only the sessions of that conversation.
    project, store = samples.project(folder)
    client = Client(project)
    _leave_open(client, store)
    for what, decision, feed in (
        ("the end of a turn", "known", lambda: client.of_main("Stop", background_tasks=[])),
        ("the start of a conversation", "conversation_started", lambda: client.of_main("SessionStart")),
        ("the end of a conversation", "known", lambda: client.of_main("SessionEnd")),
    ):
        yield measure(client.start(f"every_event, {what}, {_OPEN} sessions open", decision, feed), HOOK_LIMIT)


def commands(folder: str) -> Iterator[Finding]:
    """Measures the commands that agents run often, and the command that people run first."""
    project, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    for arguments, expected in (
        (("should-resume", agent_id), f"yes: {agent_id} is in approval"),
        (("pending",), f"{samples.AGENT}: approval_workflow"),
        (("update", agent_id, "--phase", "planning", "-m", "finding=one"), f"{agent_id}: phase planning"),
        (("--help",), "Usage: gaia-sessions"),
    ):
        command = (sys.executable, str(COMMAND), *arguments)
        start = Start(f"gaia-sessions {arguments[0]}", command, project, bytes, partial(_begins_with, expected))
        yield measure(start, _COMMAND_LIMIT)


def measure(start: Start, limit: float) -> Finding:
    """Returns the cost of ``start``, as a multiple of the cost of an interpreter that does nothing."""
    ratio, of_what = times_bare(start)
    return Finding(f"{start.what}: {of_what}", ratio, limit)


def _begins_with(expected: str, printed: bytes) -> None:
    if not printed.startswith(expected.encode()):
        raise RuntimeError(f"{expected} was expected, not {printed!r}")


def _payload_of_new_session(payload_of: Callable[[str], bytes], sessions: Callable[[datetime], str]) -> bytes:
    """Returns the payload about a session that is created just before the call."""
    return payload_of(sessions(utc_now()))


def _direct_payload(agent_id: str) -> bytes:
    return json.dumps({"agent_name": samples.AGENT, "agent_id": agent_id}).encode()


def _end_payload(agent_id: str) -> bytes:
    return json.dumps({"agent_id": agent_id, "outcome": "completed"}).encode()
