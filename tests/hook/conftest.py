"""A project on disk, and a host that calls the hooks in this process or starts the scripts."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import hook
from gaia_sessions.hook import direct, enforcement
from gaia_sessions.hosts import HOOK
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import processes
from tests import commands
from tests.calls import Ran
from tests.hook.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tree = dict[str, object]

SCRIPTS = Path(__file__).parents[2] / "hooks"

LONGEST = 60
"""Seconds to wait for a hook that was started. Its own limit is three seconds."""

_hosts = count()
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_GENERATED = re.compile(r"agent-\d{8}-\d{6}-[0-9a-f]{8}")


SILENT = Ran(0, b"", b"")
ASKS = "Ready to apply.\n[gaia-sessions: approval] shall I?"

NO: dict[str, dict[str, object]] = {
    "pre_delegate": {"should_resume": False},
    "subagent_stop": {"finalized": False, "outcome": None},
}


def refused(hook: str, asked: Any, reason: str, **more: object) -> dict[str, object]:
    """The answer of the direct form of ``hook`` if it did nothing."""
    return {**NO[hook], "reason": reason, "agent_id": asked.get("agent_id"), "original_context": asked, **more}


def whole(**changes: object) -> dict[str, object]:
    """The timeless record of a new delegation, with these changes."""
    return {
        "agent_id": "ID",
        "agent_name": "Explore",
        "purpose": "Count quokkas",
        "created_at": "TIME",
        "last_updated": "TIME",
        "phase": "initializing",
        "metadata": {},
        "resume_ready": False,
        "history": [],
        "error_count": 0,
        "last_error": None,
        "schema": 1,
        "revision": 1,
        **changes,
    }


def asking(agent_id: str, **more: object) -> dict[str, object]:
    """The tool input of a delegation that resumes ``agent_id``."""
    prompt = f"Go on:\n[gaia-sessions: resume {agent_id}]\nand apply it."
    return {"description": "Apply", "prompt": prompt, "subagent_type": "Explore", **more}


class Host:
    """A project, and a host that calls the hooks in it."""

    SESSION = "0e23a513-af54"
    PROMPT = "Count the quokkas of the whole archipelago"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.root = self.project / ".claude" / "session"
        self.logs = self.project / ".claude" / "logs"
        self.transcript = Path.home() / ".claude" / "projects" / f"-{folder.name}" / f"{self.SESSION}.jsonl"
        self.client_pid = 0  # no process has this pid
        self.words: list[str] = []  # the arguments of the hook
        (self.project / ".claude").mkdir(parents=True)

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A process that can be killed. Inside the block, hooks see it as their client."""
        with subprocess.Popen(["sleep", "600"], text=True) as process, pytest.MonkeyPatch.context() as patched:
            patched.setattr(processes, "_ancestors", lambda: iter([process.pid]))
            patched.setattr(self, "client_pid", process.pid)
            try:
                yield Client(process)
            finally:
                process.kill()

    def environment(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment that the host gives its hooks, with these ``settings``."""
        told = {"CLAUDE_PROJECT_DIR": str(self.project), "CLAUDE_PID": str(self.client_pid)}
        return {**os.environ, **told, **(settings or {})}

    def run(self, hook: str, told: object, settings: Mapping[str, str] | None = None) -> Ran:
        """Calls the hook with ``told`` in this process."""
        name = HOOK if hook == "every_event" else hook
        return commands.hook(name, told, *self.words, environment=self.environment(settings), folder=self.project)

    def start(
        self, hook: str, told: object, settings: Mapping[str, str] | None = None, *through: str, umask: int = -1
    ) -> Ran:
        """Starts the script of the hook as a process, ``through`` a command if one is given."""
        done = subprocess.run(
            [*through, sys.executable, SCRIPTS / f"{hook}.py", *self.words],
            input=told if isinstance(told, bytes) else json.dumps(told).encode(),
            capture_output=True,
            timeout=LONGEST,
            check=False,
            cwd=self.project,
            env=self.environment(settings),
            umask=umask,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def ask(self, hook: str, told: object, settings: Mapping[str, str] | None = None) -> Any:
        """The answer of the direct form."""
        return self.run(hook, told, settings).answer

    def delegation(self, tool_use_id: str = "toolu_1", **changes: object) -> dict[str, Any]:
        """The payload of a delegation."""
        asked = {"description": "Count quokkas", "prompt": self.PROMPT, "subagent_type": "Explore"}
        return {
            "session_id": self.SESSION,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": "PreToolUse",
            "tool_name": "Agent",
            "tool_input": asked,
            "tool_use_id": tool_use_id,
            **changes,
        }

    def resuming(self, agent_id: str, tool_use_id: str = "toolu_2", **changes: object) -> dict[str, Any]:
        """The payload of a delegation that resumes ``agent_id``."""
        return self.delegation(tool_use_id, **{"tool_input": asking(agent_id), **changes})

    def ending(self, agent: str = "a1", message: str | None = "Done.", **changes: object) -> dict[str, Any]:
        """The payload of the stop of ``agent``."""
        payload = {
            "session_id": self.SESSION,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "agent_id": agent,
            "agent_type": "Explore",
            "hook_event_name": "SubagentStop",
            "stop_hook_active": False,
            "agent_transcript_path": str(self.agents / f"agent-{agent}.jsonl"),
            "last_assistant_message": message,
            **changes,
        }
        if message is None:
            del payload["last_assistant_message"]
        return payload

    def event_payload(self, event: str, **keys: object) -> dict[str, Any]:
        """A payload of ``event`` with these keys."""
        common = {"session_id": self.SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        return {**common, "hook_event_name": event, **keys}

    def starting(self, agent: str = "a1", **changes: object) -> dict[str, Any]:
        """The payload of the start of ``agent``; also sent when the agent wakes."""
        return self.event_payload("SubagentStart", **{"agent_id": agent, "agent_type": "Explore", **changes})

    def dying(self, agent: str = "a1", error: str = "API Error: 400 bad request") -> dict[str, Any]:
        """The payload of a failure of ``agent``."""
        keys = {"agent_id": agent, "agent_type": "Explore", "error": "unknown", "last_assistant_message": error}
        return self.event_payload("StopFailure", **keys)

    def returning(self, tool_use_id: str = "toolu_1", agent: str = "a1", **response: object) -> dict[str, Any]:
        """The payload of a delegation that returns, with the report of ``agent`` or with ``response``."""
        told = {"status": "completed", "agentId": agent, "agentType": "Explore", "content": [], **response}
        return self.delegation(tool_use_id, hook_event_name="PostToolUse", tool_response=told)

    def launching(self, tool_use_id: str = "toolu_1", agent: str = "a1") -> dict[str, Any]:
        """The payload of a delegation that returns at once because ``agent`` works in the background."""
        return self.returning(tool_use_id, agent, status="async_launched", isAsync=True)

    def failing(self, tool_use_id: str = "toolu_1", error: str = "No such agent", **changes: object) -> dict[str, Any]:
        """The payload of a failed delegation."""
        keys = {"error": error, "is_interrupt": False, **changes}
        return self.delegation(tool_use_id, hook_event_name="PostToolUseFailure", **keys)

    def notifying(
        self, status: str = "completed", agent: str = "a1", tool_use_id: str = "toolu_1", summary: str = ""
    ) -> dict[str, Any]:
        """The payload of a notification about ``agent`` in the background."""
        summary = summary or f"Agent {status}"
        told = {"task-id": agent, "tool-use-id": tool_use_id, "status": status, "summary": summary}
        inside = "\n".join(f"<{name}>{value}</{name}>" for name, value in told.items())
        return self.event_payload("UserPromptSubmit", prompt=f"<task-notification>\n{inside}\n</task-notification>")

    def messaging(self, agent: str = "a1") -> dict[str, Any]:
        """The payload of a message of the main agent to ``agent``."""
        keys = {"tool_use_id": "toolu_m", "tool_input": {"to": agent, "message": "One more thing"}}
        return self.event_payload("PreToolUse", tool_name="SendMessage", **keys)

    def killing(self, agent: str = "a1") -> dict[str, Any]:
        """The payload after the main agent stopped ``agent``."""
        keys = {"tool_use_id": "toolu_k", "tool_input": {"task_id": agent}, "tool_response": {"task_id": agent}}
        return self.event_payload("PostToolUse", tool_name="TaskStop", **keys)

    def pausing(self, *running: str) -> dict[str, Any]:
        """The payload of the end of a turn of the main agent while the agents ``running`` work."""
        tasks = [{"id": agent, "type": "subagent", "status": "running"} for agent in running]
        return self.event_payload("Stop", stop_hook_active=False, background_tasks=tasks)

    @property
    def agents(self) -> Path:
        """The folder of the host for its sub-agents."""
        return self.transcript.with_suffix("") / "subagents"

    def knows(self, agent: str, tool_use_id: str) -> None:
        """The host writes its note: which delegation ``agent`` works on."""
        self.agents.mkdir(parents=True, exist_ok=True)
        meta = {"agentType": "Explore", "description": "Count quokkas", "toolUseId": tool_use_id, "spawnDepth": 1}
        (self.agents / f"agent-{agent}.meta.json").write_text(json.dumps(meta), encoding="utf-8")

    def delegate(self, tool_use_id: str = "toolu_1", agent: str = "a1", **changes: object) -> str:
        """Begins a delegation whose agent works; returns the id of its session."""
        before = set(self.records())
        assert self.run("pre_delegate", self.delegation(tool_use_id, **changes)) == SILENT
        self.knows(agent, tool_use_id)
        [agent_id] = set(self.records()) - before
        return agent_id

    def stop(self, agent: str = "a1", message: str | None = "Done.", **changes: object) -> None:
        """``agent`` stops, and the hook is silent."""
        assert self.run("subagent_stop", self.ending(agent, message, **changes)) == SILENT

    def hear(self, payload: object, settings: Mapping[str, str] | None = None) -> Any:
        """The answer of the hook to ``payload``; None if it is silent."""
        ran = self.run("every_event", payload, settings)
        if ran == SILENT:
            return None
        answer = ran.answer
        told = answer.pop("hookSpecificOutput")
        assert isinstance(payload, dict)
        assert (answer, told.pop("hookEventName")) == ({}, payload["hook_event_name"])
        return told

    def begin(
        self,
        tool_use_id: str = "toolu_1",
        agent: str = "a1",
        settings: Mapping[str, str] | None = None,
        **changes: object,
    ) -> Any:
        """A delegation begins and its agent starts, as with a real host; returns the answer to the delegation."""
        told = self.hear(self.delegation(tool_use_id, **changes), settings)
        self.hear(self.starting(agent), settings)
        self.knows(agent, tool_use_id)
        return told

    def work(self, tool_use_id: str = "toolu_1", agent: str = "a1", **changes: Any) -> str:
        """The same, with the start applied to the record; returns the id of the new session."""
        before = set(self.records())
        assert self.begin(tool_use_id, agent, **changes) is None
        self.hear(self.starting(agent))
        [agent_id] = set(self.records()) - before
        return agent_id

    def records(self) -> dict[str, Any]:
        """All records by id, read from their files."""
        files = self.root.glob("[!.]*/state.json")
        return {file.parent.name: json.loads(file.read_bytes()) for file in files}

    def record(self) -> Any:
        """The only record."""
        [record] = self.records().values()
        return record

    def journal(self, agent_id: str) -> list[Any]:
        """The journal of the session, without times."""
        lines = (self.root / agent_id / "events.jsonl").read_bytes().splitlines()
        return [self.timeless(json.loads(line)) for line in lines]

    def edit(self, agent_id: str, **changes: object) -> None:
        """Edits the record by hand."""
        file = self.root / agent_id / "state.json"
        file.write_text(json.dumps({**json.loads(file.read_bytes()), **changes}), encoding="utf-8")

    def log(self, hook: str) -> list[dict[str, Any]]:
        """The log lines of ``hook``."""
        file = self.logs / f"{hook}.log"
        return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []

    def deferred(self) -> list[Any]:
        """The events in the inbox, oldest first."""
        return [json.loads(file.read_bytes()) for file in self.waiting()]

    def waiting(self) -> list[Path]:
        return sorted((self.root / ".inbox").glob("*.json"))

    @contextmanager
    def held(self, agent_id: str) -> Iterator[None]:
        """Another process holds the lock of the session."""
        with (self.root / ".locks" / f"{agent_id}.lock").open("ab") as file, waiting_briefly():
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def key_held(self, tool_use_id: str) -> Iterator[None]:
        """Another process holds the lock of the delegation."""
        key = ("delegation", self.SESSION, tool_use_id)
        with FileStore(str(self.root)).lock_key(key, 1), waiting_briefly():
            yield

    @staticmethod
    def tree(*folders: Path) -> Tree:
        """Mode, time of change and content of every entry in ``folders``."""
        found = [path for folder in folders if _is_there(folder) for path in [folder, *folder.rglob("*")]]
        return {str(path): _entry(path) for path in found}

    @staticmethod
    def timeless(value: Any) -> Any:
        """``value`` without times, durations and generated ids."""
        return _timeless(value)

    @staticmethod
    def moved(*phases: str) -> list[dict[str, str]]:
        """The timeless history of a session that went through ``phases``."""
        return [{"from_phase": one, "to_phase": other, "timestamp": "TIME"} for one, other in pairwise(phases)]

    @staticmethod
    def ago(**span: float) -> str:
        """The time so long ago, in the form of a record."""
        return format_time(datetime.now(UTC) - timedelta(**span))


def paused(host: Host) -> str:
    """A session that waits for an approval."""
    agent_id = host.work()
    host.hear(host.ending(message=ASKS))
    return agent_id


def stopped_while_held(host: Host, message: str = "Done.") -> str:
    """A session whose stop waits in the inbox because its lock was held."""
    agent_id = host.delegate()
    with host.held(agent_id):
        host.stop(message=message)
    return agent_id


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def another(host: Host) -> Host:
    """A host with a new project."""
    return Host(host.folder / f"another-{next(_hosts)}")


def own_host(test: Callable[..., None]) -> Callable[..., None]:
    """Below ``table``: each row has a host with its own project."""

    @wraps(test)
    def call(host: Host, **others: Any) -> None:
        test(host=another(host), **others)

    return call


@pytest.fixture
def gaia() -> Callable[..., str]:
    """Runs a command on the sessions of a host and returns its output."""

    def run(host: Host, *words: str) -> str:
        ended = commands.gaia(*words, "--root", str(host.root))
        assert (ended.code, ended.err) == (0, b"")
        return ended.out.decode()

    return run


@contextmanager
def waiting_briefly() -> Iterator[None]:
    """Hooks in this process wait only briefly for a lock."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (hook, direct, enforcement):
            patched.setattr(module, "LOCK_TIMEOUT", 0.05)
        yield


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _entry(path: Path) -> object:
    found = path.lstat()
    content = path.read_bytes() if stat.S_ISREG(found.st_mode) else b""
    return oct(found.st_mode), found.st_mtime_ns, content


def _timeless(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _timeless(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if isinstance(value, str):
        return _GENERATED.sub("ID", _TIME.sub("TIME", value))
    return "SECONDS" if key == "duration_seconds" and value >= 0 else value


@pytest.fixture(scope="session")
def old_pythons(own_home: str) -> list[str]:
    """The Pythons of this machine that are too old for the package."""
    found = list(_pythons_before_ours(Path(own_home, ".pyenv", "versions")))
    return found or pytest.skip("needs a Python from 3.6 to 3.10, on PATH or in pyenv")


def _pythons_before_ours(versions: Path) -> Iterator[str]:
    for version in [f"3.{minor}" for minor in range(6, 11)]:
        for path in [shutil.which(f"python{version}"), *versions.glob(f"{version}.*/bin/python3")]:
            if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
                yield str(path)
