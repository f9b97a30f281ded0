"""What a start costs: every hook call and every command is a new process, so imports are most of it.

Owns which calls are measured. The hooks get payloads captured from a real client.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from gaia_sessions.clock import utc_now

from . import samples
from .findings import Finding
from .timing import Start, times_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


CHECKOUT = Path(__file__).resolve().parent.parent.parent
CAPTURE = CHECKOUT / "tests" / "data" / "hosts" / "claude-code-2.1.330" / "single.jsonl"
COMMAND = Path(sys.executable).with_name("gaia-sessions")

_HOOK_LIMIT = 2.5
_COMMAND_LIMIT = 5.5


def hooks(folder: str) -> Iterator[Finding]:
    """Both hooks, both forms, reading and writing."""
    project, store = samples.project(folder)
    host = _Host(project)
    sessions = partial(samples.resting, store)
    yield from map(
        partial(_found, limit=_HOOK_LIMIT),
        (
            host.start("pre_delegate, direct, resumable", "session_resumable", lambda: _direct(sessions(utc_now()))),
            host.start("pre_delegate, delegation, created", "created", host.new_delegation),
            host.start("pre_delegate, delegation, known", "known", host.known_delegation),
            host.start("pre_delegate, a tool that is not ours", "not_ours", host.other_tool),
            host.start("subagent_stop, direct, finalized", "finalized", lambda: _direct(sessions(utc_now()))),
            host.start("subagent_stop, stop, finalized", "finalized", host.stop),
        ),
    )


def commands(folder: str) -> Iterator[Finding]:
    """What agents call themselves, often, and what people call first."""
    project, store = samples.project(folder)
    agent_id = samples.resting(store, utc_now())
    for arguments, expected in (
        (("should-resume", agent_id), "yes: session_resumable"),
        (("update", agent_id, "--phase", "planning", "-m", "finding=one"), f"{agent_id}: phase planning"),
        (("--help",), "Usage: gaia-sessions"),
    ):
        command = (sys.executable, str(COMMAND), *arguments)
        start = Start(f"gaia-sessions {arguments[0]}", command, project, bytes, partial(_begins_with, expected))
        yield _found(start, _COMMAND_LIMIT)


def _found(start: Start, limit: float) -> Finding:
    ratio, of_what = times_bare(start)
    return Finding(f"{start.what}: {of_what}", ratio, limit)


def _begins_with(expected: str, printed: bytes) -> None:
    if not printed.startswith(expected.encode()):
        raise RuntimeError(f"{expected} was expected, not {printed!r}")


def _direct(agent_id: str) -> bytes:
    return json.dumps({"agent_name": samples.AGENT, "agent_id": agent_id}).encode()


class _Host:
    """A client at work in ``project``: its payloads, ever new keys in them, and the file it leaves for a stop."""

    def __init__(self, project: str) -> None:
        self.project = Path(project)
        self.numbers = itertools.count()
        text = CAPTURE.read_text(encoding="utf-8").replace("/home/user", project).replace('"/project', f'"{project}')
        lines = [json.loads(line) for line in text.splitlines()]
        self.payloads = {line["event"]: line["stdin"] for line in lines if "stdin" in line}
        [self.meta] = (line["files_at_hook_time"]["agent_meta"] for line in lines if line["event"] == "SubagentStop")
        self.payloads["PreToolUse"]["tool_input"]["prompt"] = "Do the job and report what you found.\n" * 50

    def start(self, what: str, decision: str, feed: Callable[[], bytes]) -> Start:
        """A call of the hook that ``what`` begins with; ``decision`` is what its log must say of it."""
        script = CHECKOUT / "hooks" / f"{what.partition(',')[0]}.py"
        command = (sys.executable, str(script))
        return Start(what, command, str(self.project), feed, lambda _: self._check(script.stem, decision))

    def new_delegation(self) -> bytes:
        """One that was never told of before."""
        return self._payload("PreToolUse", tool_use_id=f"toolu_01A09q90qw90lq917835{next(self.numbers):04}")

    def known_delegation(self) -> bytes:
        """One that was told of already."""
        told = self.new_delegation()
        self._delegate(told)
        return told

    def other_tool(self) -> bytes:
        """A tool that starts no agent."""
        return self._payload("PreToolUse", tool_name="Bash", tool_input={"command": "make test\n" * 200})

    def stop(self) -> bytes:
        """The agent of a new delegation stops, and left the file by which the stop is joined."""
        told = self.new_delegation()
        self._delegate(told)
        agent = f"a8bb9f68c7e3d{next(self.numbers):04}"
        transcript = Path(self.payloads["SubagentStop"]["agent_transcript_path"]).with_name(f"agent-{agent}.jsonl")
        transcript.parent.mkdir(parents=True, exist_ok=True)
        meta = {**self.meta, "toolUseId": json.loads(told)["tool_use_id"]}
        transcript.with_suffix(".meta.json").write_text(json.dumps(meta), encoding="utf-8")
        return self._payload("SubagentStop", agent_id=agent, agent_transcript_path=str(transcript))

    def _delegate(self, told: bytes) -> None:
        script = CHECKOUT / "hooks" / "pre_delegate.py"
        subprocess.run((sys.executable, script), input=told, cwd=self.project, check=True)

    def _payload(self, event: str, **changed: object) -> bytes:
        return json.dumps({**self.payloads[event], **changed}).encode()

    def _check(self, hook: str, decision: str) -> None:
        log = self.project / ".claude" / "logs" / f"{hook}.log"
        said = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["decision"]
        if said != decision:
            raise RuntimeError(f"{hook} was to log {decision}, not {said}")
