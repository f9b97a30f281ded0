"""A client at work in a project: the payloads that it sends to the hooks, each with new keys.

The payloads are captured ones; it also writes the files that a client leaves for a stop.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

from gaia_sessions.install.executable import hook_program
from gaia_sessions.session.clock import format_time
from gaia_sessions.system import utc_now

from .timing import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.file_store import FileStore

CHECKOUT = Path(__file__).resolve().parent.parent.parent

_CAPTURE = CHECKOUT / "tests" / "data" / "hosts" / "claude-code-2.1.330" / "single.jsonl"
_REQUESTS = 20
"""How many requests a counted transcript has."""

_LOGS = {"every_event": "hook"}


class Client:
    """A client in ``project`` that sends what a real client was seen to send."""

    def __init__(self, project: str) -> None:
        self.project = Path(project)
        self.numbers = itertools.count()
        text = _CAPTURE.read_text(encoding="utf-8").replace("/home/user", str(Path.home()))
        text = text.replace('"/project', f'"{project}')
        lines = [json.loads(line) for line in text.splitlines()]
        self.payloads = {line["event"]: line["stdin"] for line in lines if "stdin" in line}
        [self.meta] = (line["files_at_hook_time"]["agent_meta"] for line in lines if line["event"] == "SubagentStop")
        self.payloads["PreToolUse"]["tool_input"]["prompt"] = "Do the job and report what you found.\n" * 50

    def start(self, what: str, decision: str, feed: Callable[[], bytes], *arguments: str) -> Start:
        """Returns a call of the hook script that begins ``what``; its log must say ``decision``."""
        script = CHECKOUT / "hooks" / f"{what.partition(',')[0]}.py"
        command = (sys.executable, str(script), *arguments)
        return Start(what, command, str(self.project), feed, lambda _: self._check(script.stem, decision))

    def installed(self, what: str, decision: str, feed: Callable[[], bytes]) -> Start:
        """Returns a call of the command that ``hooks install`` writes; its log must say ``decision``."""
        return Start(what, tuple(hook_program()), str(self.project), feed, lambda _: self._check("hook", decision))

    def send(self, payload: bytes, hook: str = "every_event") -> None:
        """Sends ``payload`` to a hook in a call that is not measured."""
        script = CHECKOUT / "hooks" / f"{hook}.py"
        subprocess.run((sys.executable, script), input=payload, cwd=self.project, check=True, stdout=subprocess.DEVNULL)

    def payload(self, event: str, **changed: object) -> bytes:
        """Returns the captured payload of ``event`` with the ``changed`` keys."""
        return json.dumps({**self.payloads[event], **changed}).encode()

    def new_key(self) -> str:
        """Returns a tool use ID that was never sent before."""
        return f"toolu_01A09q90qw90lq917835{next(self.numbers):04}"

    def new_delegation(self) -> bytes:
        """Returns a delegation that was never reported before."""
        return self.payload("PreToolUse", tool_use_id=self.new_key())

    def known_delegation(self) -> bytes:
        """Returns a delegation that was reported once before."""
        payload = self.new_delegation()
        self.send(payload, "pre_delegate")
        return payload

    def resume(self, agent_id: str) -> bytes:
        """Returns a delegation that asks to resume the session ``agent_id``."""
        tool_input = self.payloads["PreToolUse"]["tool_input"]
        prompt = f"{tool_input['prompt']}\n[gaia-sessions: resume {agent_id}]"
        return self.payload("PreToolUse", tool_use_id=self.new_key(), tool_input={**tool_input, "prompt": prompt})

    def other_tool(self) -> bytes:
        """Returns the use of a tool that starts no agent."""
        return self.payload("PreToolUse", tool_name="Bash", tool_input={"command": "make test\n" * 200})

    def stop(self) -> bytes:
        """Returns the stop of an agent whose delegation is known, with the file that joins the stop."""
        return self._stop_of(self._working_agent()[0])

    def stop_after_start(self) -> bytes:
        """Returns the stop of an agent whose start still waits in the inbox."""
        return self._stop_of(self.started_agent())

    def started_agent(self) -> str:
        """Returns an agent whose start waits in the inbox for the next writer."""
        return self._working_agent(lambda agent: self.send(self._start_of(agent)))[0]

    def start_of_agent(self) -> bytes:
        """Returns the start of an agent before the client has written its delegation."""
        return self._start_of(self._new_agent())

    def launch(self) -> bytes:
        """Returns the launch of an agent in the background."""
        return self._of_delegation("PostToolUse", {"status": "async_launched", "agentId": self._new_agent()})

    def returned(self) -> bytes:
        """Returns the return of a delegation without a stop of its agent."""
        return self._of_delegation("PostToolUse", {"status": "completed", "agentId": self._new_agent()})

    def counted_return(self) -> bytes:
        """Returns the return of a stopped agent, with its figures and a transcript to count."""
        agent, key = self._working_agent()
        self._transcript_of(agent).write_text("".join(map(_transcript_line, range(_REQUESTS))), encoding="utf-8")
        self.send(self._stop_of(agent))
        figures = {"totalTokens": 4132, "totalToolUseCount": 2, "totalDurationMs": 672, "usage": {"output_tokens": 103}}
        response = {"status": "completed", "agentId": agent, **figures}
        return self.payload("PostToolUse", tool_use_id=key, tool_response=response)

    def pause(self, messages: int, last: str) -> None:
        """Lets an agent work, say ``last`` as the last of so many messages, and stop; nothing is measured."""
        agent, _ = self._working_agent()
        said = [("user", "Make it."), *map(_part_of_round, range(messages - 2)), ("assistant", last)]
        keys = {"agentId": agent, "timestamp": format_time(utc_now())}
        entries = ({**keys, "type": role, "message": {"role": role, "content": content}} for role, content in said)
        lines = (json.dumps(entry, separators=(",", ":")) for entry in entries)
        self._transcript_of(agent).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.send(json.dumps({**json.loads(self._stop_of(agent)), "last_assistant_message": last}).encode())

    def failure(self) -> bytes:
        """Returns the failure of an agent."""
        agent, _ = self._working_agent()
        return self.payload("SubagentStop", hook_event_name="StopFailure", agent_id=agent, error="server_error")

    def message(self) -> bytes:
        """Returns a message to an unknown agent."""
        return self.payload("PreToolUse", tool_name="SendMessage", tool_input={"to": self._new_agent()})

    def notification(self) -> bytes:
        """Returns the notification that a background agent has ended, as the only event of its end."""
        agent, key = self._working_agent()
        prompt = (
            f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>{key}</tool-use-id>\n"
            "<status>completed</status>\n</task-notification>"
        )
        return self.payload("UserPromptSubmit", prompt=prompt)

    def leave_waiting(self, store: FileStore, number: int) -> None:
        """Leaves a stop of an unreported delegation in the inbox, in the conversation of all other events."""
        captured = self.payloads["SubagentStop"]
        stop: Event = {
            "kind": "stop",
            "at": format_time(utc_now()),
            "host": "claude-code",
            "host_session_id": captured["session_id"],
            "host_agent_id": f"a0123456789ab{number:04}",
            "agent_name": captured["agent_type"],
            "after_block": False,
            "tool_use_id": f"toolu_0123456789abcdefghij{number:04}",
            "transcript_path": captured["agent_transcript_path"],
            "has_message": True,
            "last_message": "The plan is ready.\n" * 20,
        }
        store.defer(stop, utc_now())

    def twice(self, event: str, **changed: object) -> bytes:
        """Returns an event of the main agent that was sent once before, in the conversation of all other events."""
        payload = self.payload(event, **changed)
        self.send(payload)
        return payload

    def of_main(self, event: str, **changed: object) -> bytes:
        """Returns an event of the main agent in a new conversation."""
        return self.payload(event, session_id=f"another-{next(self.numbers)}", **changed)

    def _of_delegation(self, event: str, response: object) -> bytes:
        delegation = json.loads(self.known_delegation())
        return self.payload(event, tool_use_id=delegation["tool_use_id"], tool_response=response)

    def _working_agent(self, on_start: Callable[[str], None] | None = None) -> tuple[str, str]:
        """Returns an agent and its tool use ID; writes the file that a client writes after its start."""
        delegation, agent = json.loads(self.known_delegation()), self._new_agent()
        if on_start:
            on_start(agent)
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

    def _check(self, hook: str, expected: str) -> None:
        log = self.project / ".claude" / "logs" / f"{_LOGS.get(hook, hook)}.log"
        decision = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["decision"]
        if decision != expected:
            raise RuntimeError(f"{hook} was to log {expected}, not {decision}")


def _transcript_line(number: int) -> str:
    """Returns a request in a transcript: most of its bytes are the text of a tool's input."""
    usage = {"input_tokens": 1000, "output_tokens": number, "cache_read_input_tokens": 3000}
    content = [{"type": "tool_use", "id": f"toolu_{number}", "input": {"content": "A line of a file.\n" * 40}}]
    message = {"id": f"msg_{number}", "model": "claude-opus-5-5", "usage": usage, "content": content}
    line = {"type": "assistant", "timestamp": "2026-01-08T18:05:30.123Z", "message": message}
    return json.dumps(line) + "\n"


def _part_of_round(number: int) -> tuple[str, object]:
    """Returns a call of a tool, or its result, with its role."""
    call = f"toolu_{number // 2}"
    if number % 2:
        return "user", [{"type": "tool_result", "tool_use_id": call, "content": "It was made.\n" * 20}]
    return "assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make"}}]
