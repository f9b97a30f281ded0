"""What a start costs: every hook call and every command is a new process, so imports are most of it.

Owns which calls are measured. The hooks get payloads captured from a real client.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from gaia_sessions.install.executable import hook_program
from gaia_sessions.session.clock import format_time, utc_now

from . import samples
from .findings import Finding
from .timing import Start, times_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.session.events import Event
    from gaia_sessions.store.file_store import FileStore

CHECKOUT = Path(__file__).resolve().parent.parent.parent
CAPTURE = CHECKOUT / "tests" / "data" / "hosts" / "claude-code-2.1.330" / "single.jsonl"
COMMAND = Path(sys.executable).with_name("gaia-sessions")

_LOGS = {"every_event": "hook"}
HOOK_LIMIT = 2.0
_COMMAND_LIMIT = 5.5
_OPEN = 10
_WAITING = 100


def hooks(folder: str) -> Iterator[Finding]:
    """Both hooks, both forms, reading and writing."""
    project, store = samples.project(folder)
    host = Host(project)
    sessions = partial(samples.create_paused, store)
    yield from map(
        partial(measure, limit=HOOK_LIMIT),
        (
            host.start(
                "pre_delegate, direct, resumable", "session_resumable", lambda: _direct_payload(sessions(utc_now()))
            ),
            host.start("pre_delegate, delegation, created", "created", host.new_delegation),
            host.start("pre_delegate, delegation, known", "known", host.known_delegation),
            host.start("pre_delegate, a tool that is not ours", "not_ours", host.other_tool),
            host.start("subagent_stop, direct, finalized", "finalized", lambda: _end_payload(sessions(utc_now()))),
            host.start("subagent_stop, stop, finalized", "finalized", host.stop),
            host.wired("as installed, a tool that is not ours", "not_ours", host.other_tool),
        ),
    )


def events(folder: str) -> Iterator[Finding]:
    """Every event of a host through the one entry, each with what it makes of the records."""
    project, store = samples.project(folder)
    host = Host(project)
    for what, decision, feed in _every_event(host, store):
        yield measure(host.start(f"every_event, {what}", decision, feed), HOOK_LIMIT)


def waiting(folder: str) -> Iterator[Finding]:
    """All of that and the direct form, while many events wait that cannot be applied yet."""
    project, store = samples.project(os.path.join(folder, "events"))
    host = _with_waiting(project, store)
    for what, decision, feed in _every_event(host, store):
        yield measure(host.start(f"every_event, {what}, {_WAITING} waiting", decision, feed), HOOK_LIMIT)
    sessions = partial(samples.create_paused, store)
    for hook, decision, payload_of in (
        ("pre_delegate", "session_resumable", _direct_payload),
        ("subagent_stop", "finalized", _end_payload),
    ):
        start = host.start(
            f"{hook}, direct, {_WAITING} waiting", decision, partial(_payload_of_new_session, payload_of, sessions)
        )
        yield measure(start, HOOK_LIMIT)
    project, store = samples.project(os.path.join(folder, "turns"))
    host = _with_waiting(project, store)
    _leave_open(host, store)
    for what, decision, feed in (
        ("the end of a turn", "known", lambda: host.twice("Stop", background_tasks=[])),
        ("the start of a conversation", "heard", lambda: host.payload("SessionStart")),
        ("the end of a conversation", "known", lambda: host.twice("SessionEnd")),
    ):
        start = host.start(f"every_event, {what}, {_OPEN} open, {_WAITING} waiting", decision, feed)
        yield measure(start, HOOK_LIMIT)


def _with_waiting(project: str, store: FileStore) -> Host:
    host = Host(project)
    for number in range(_WAITING):
        host.leave_waiting(store, number)
    return host


def _leave_open(host: Host, store: FileStore) -> None:
    for _ in range(_OPEN // 2):
        samples.create_paused(store, utc_now())
        host.known_delegation()


def _every_event(host: Host, store: FileStore) -> tuple[tuple[str, str, Callable[[], bytes]], ...]:
    """What is measured of each event, how the log must call what was done, and the payload."""
    return (
        ("a delegation", "created", host.new_delegation),
        ("a delegation that resumes", "claimed", lambda: host.resume(samples.create_paused(store, utc_now()))),
        ("a start", "deferred", host.start_of_agent),
        ("a launch", "started", host.launch),
        ("a stop after its start", "finalized", host.stop_after_start),
        ("a return", "paused", host.returned),
        ("a failure", "paused", host.failure),
        ("a refusal", "finalized", host.refusal),
        ("a message to an agent nobody knows", "no_key", host.message),
        ("a notification", "paused", host.notification),
        ("a tool that is not ours", "not_ours", host.other_tool),
    )


def turns(folder: str) -> Iterator[Finding]:
    """What the main agent itself does, while ten sessions are open, half of them at rest.

    The hook reads all of them at the start of a conversation; at the end of a turn or of a conversation it reads only
    the sessions of that conversation.
    """
    project, store = samples.project(folder)
    host = Host(project)
    _leave_open(host, store)
    for what, decision, feed in (
        ("the end of a turn", "known", lambda: host.of_main("Stop", background_tasks=[])),
        ("the start of a conversation", "heard", lambda: host.of_main("SessionStart")),
        ("the end of a conversation", "known", lambda: host.of_main("SessionEnd")),
    ):
        yield measure(host.start(f"every_event, {what}, {_OPEN} sessions open", decision, feed), HOOK_LIMIT)


def commands(folder: str) -> Iterator[Finding]:
    """What agents call themselves, often, and what people call first."""
    project, store = samples.project(folder)
    agent_id = samples.create_paused(store, utc_now())
    for arguments, expected in (
        (("should-resume", agent_id), f"yes: {agent_id} is in approval"),
        (("update", agent_id, "--phase", "planning", "-m", "finding=one"), f"{agent_id}: phase planning"),
        (("--help",), "Usage: gaia-sessions"),
    ):
        command = (sys.executable, str(COMMAND), *arguments)
        start = Start(f"gaia-sessions {arguments[0]}", command, project, bytes, partial(_begins_with, expected))
        yield measure(start, _COMMAND_LIMIT)


def measure(start: Start, limit: float) -> Finding:
    ratio, of_what = times_bare(start)
    return Finding(f"{start.what}: {of_what}", ratio, limit)


def _begins_with(expected: str, printed: bytes) -> None:
    if not printed.startswith(expected.encode()):
        raise RuntimeError(f"{expected} was expected, not {printed!r}")


def _payload_of_new_session(payload_of: Callable[[str], bytes], sessions: Callable[[datetime], str]) -> bytes:
    """What is ``told`` of a session that was made just now."""
    return payload_of(sessions(utc_now()))


def _direct_payload(agent_id: str) -> bytes:
    return json.dumps({"agent_name": samples.AGENT, "agent_id": agent_id}).encode()


def _end_payload(agent_id: str) -> bytes:
    return json.dumps({"agent_id": agent_id, "outcome": "completed"}).encode()


class Host:
    """A client at work in ``project``: its payloads, ever new keys in them, and the file it leaves for a stop."""

    def __init__(self, project: str) -> None:
        self.project = Path(project)
        self.numbers = itertools.count()
        text = CAPTURE.read_text(encoding="utf-8").replace("/home/user", project).replace('"/project', f'"{project}')
        lines = [json.loads(line) for line in text.splitlines()]
        self.payloads = {line["event"]: line["stdin"] for line in lines if "stdin" in line}
        [self.meta] = (line["files_at_hook_time"]["agent_meta"] for line in lines if line["event"] == "SubagentStop")
        self.payloads["PreToolUse"]["tool_input"]["prompt"] = "Do the job and report what you found.\n" * 50

    def start(self, what: str, decision: str, feed: Callable[[], bytes], *wired: str) -> Start:
        """A call of the hook that ``what`` begins with, ``wired`` so; ``decision`` is what its log must say of it."""
        script = CHECKOUT / "hooks" / f"{what.partition(',')[0]}.py"
        command = (sys.executable, str(script), *wired)
        return Start(what, command, str(self.project), feed, lambda _: self._check(script.stem, decision))

    def wired(self, what: str, decision: str, feed: Callable[[], bytes]) -> Start:
        """The same of the command that ``hooks install`` writes."""
        return Start(what, tuple(hook_program()), str(self.project), feed, lambda _: self._check("hook", decision))

    def new_delegation(self) -> bytes:
        """One that was never told of before."""
        return self.payload("PreToolUse", tool_use_id=self.new_key())

    def known_delegation(self) -> bytes:
        """One that was told of already."""
        payload = self.new_delegation()
        self._delegate(payload)
        return payload

    def other_tool(self) -> bytes:
        """A tool that starts no agent."""
        return self.payload("PreToolUse", tool_name="Bash", tool_input={"command": "make test\n" * 200})

    def stop(self) -> bytes:
        """The agent of a new delegation stops, and left the file by which the stop is joined."""
        return self._stop_of(self._working_agent()[0])

    def stop_after_start(self) -> bytes:
        """The same, and its start was told and still waits."""
        return self._stop_of(self.started_agent())

    def started_agent(self) -> str:
        """An agent whose start was told and still waits for whoever writes next."""
        return self._working_agent(lambda agent: self.tell(self._start_of(agent)))[0]

    def resume(self, agent_id: str) -> bytes:
        """One that asks for a paused session."""
        asked = self.payloads["PreToolUse"]["tool_input"]
        prompt = f"{asked['prompt']}\n[gaia-sessions: resume {agent_id}]"
        return self.payload("PreToolUse", tool_use_id=self.new_key(), tool_input={**asked, "prompt": prompt})

    def start_of_agent(self) -> bytes:
        """An agent starts; what it works on is not noted yet."""
        return self._start_of(self._new_agent())

    def launch(self) -> bytes:
        """The host launched an agent in the background."""
        return self._of_delegation("PostToolUse", {"status": "async_launched", "agentId": self._new_agent()})

    def returned(self) -> bytes:
        """A delegation came back without a stop."""
        return self._of_delegation("PostToolUse", {"status": "completed", "agentId": self._new_agent()})

    def failure(self) -> bytes:
        """An agent failed."""
        agent, _ = self._working_agent()
        return self.payload("SubagentStop", hook_event_name="StopFailure", agent_id=agent, error="server_error")

    def refusal(self) -> bytes:
        """A delegation that another hook refused."""
        delegation = json.loads(self.known_delegation())
        call = {"tool_name": "Agent", "tool_use_id": delegation["tool_use_id"], "tool_response": "no"}
        return self.payload("Stop", hook_event_name="PostToolBatch", tool_calls=[call])

    def message(self) -> bytes:
        """Somebody writes to an agent."""
        return self.payload("PreToolUse", tool_name="SendMessage", tool_input={"to": self._new_agent()})

    def notification(self) -> bytes:
        """An agent in the background came to its end, and this is the only news of it."""
        agent, key = self._working_agent()
        prompt = (
            f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{key}</tool-use-id>\n"
            "<status>completed</status>\n</task-notification>"
        )
        return self.payload("UserPromptSubmit", prompt=prompt)

    def leave_waiting(self, store: FileStore, number: int) -> None:
        """A stop waits whose delegation was never told of, in the conversation of all others."""
        captured = self.payloads["SubagentStop"]
        stop: Event = {
            "kind": "stop",
            "at": format_time(utc_now()),
            "host": "claude-code",
            "host_session_id": captured["session_id"],
            "host_agent_id": f"a0123456789ab{number:04}",
            "agent_name": captured["agent_type"],
            "again": False,
            "tool_use_id": f"toolu_0123456789abcdefghij{number:04}",
            "transcript_path": captured["agent_transcript_path"],
            "spoke": True,
            "last_message": "The plan is ready.\n" * 20,
        }
        store.defer(stop, utc_now())

    def twice(self, event: str, **changed: object) -> bytes:
        """Something about the main agent in the conversation of all others, told once before."""
        payload = self.payload(event, **changed)
        self.tell(payload)
        return payload

    def of_main(self, event: str, **changed: object) -> bytes:
        """Something about the main agent itself, in a conversation of its own."""
        return self.payload(event, session_id=f"another-{next(self.numbers)}", **changed)

    def _of_delegation(self, event: str, response: object) -> bytes:
        delegation = json.loads(self.known_delegation())
        return self.payload(event, tool_use_id=delegation["tool_use_id"], tool_response=response)

    def _working_agent(self, started: Callable[[str], None] | None = None) -> tuple[str, str]:
        """An agent whose delegation was told of, and noted by the host after its start."""
        delegation, agent = json.loads(self.known_delegation()), self._new_agent()
        if started:
            started(agent)
        transcript = self._transcript_of(agent)
        transcript.parent.mkdir(parents=True, exist_ok=True)
        meta = {**self.meta, "toolUseId": delegation["tool_use_id"]}
        transcript.with_suffix(".meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return agent, delegation["tool_use_id"]

    def _start_of(self, agent: str) -> bytes:
        return self.payload("SubagentStart", agent_id=agent)

    def _stop_of(self, agent: str) -> bytes:
        return self.payload("SubagentStop", agent_id=agent, agent_transcript_path=str(self._transcript_of(agent)))

    def _transcript_of(self, agent: str) -> Path:
        return Path(self.payloads["SubagentStop"]["agent_transcript_path"]).with_name(f"agent-{agent}.jsonl")

    def _new_agent(self) -> str:
        return f"a8bb9f68c7e3d{next(self.numbers):04}"

    def new_key(self) -> str:
        """A key of the host that nobody has seen."""
        return f"toolu_01A09q90qw90lq917835{next(self.numbers):04}"

    def _delegate(self, payload: bytes) -> None:
        self.tell(payload, "pre_delegate")

    def tell(self, payload: bytes, hook: str = "every_event") -> None:
        """The hook hears of something that is not measured."""
        script = CHECKOUT / "hooks" / f"{hook}.py"
        subprocess.run((sys.executable, script), input=payload, cwd=self.project, check=True, stdout=subprocess.DEVNULL)

    def payload(self, event: str, **changed: object) -> bytes:
        """What the client sent of ``event``, but for what is ``changed``."""
        return json.dumps({**self.payloads[event], **changed}).encode()

    def _check(self, hook: str, decision: str) -> None:
        log = self.project / ".claude" / "logs" / f"{_LOGS.get(hook, hook)}.log"
        logged_decision = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["decision"]
        if logged_decision != decision:
            raise RuntimeError(f"{hook} was to log {decision}, not {logged_decision}")
