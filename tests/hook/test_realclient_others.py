"""Real clients of other hosts, driven by a scripted API, run the hook from their own settings.

The harness is not part of this package: ``GAIA_REALCLIENT`` names the folder of its ``run_other.sh``, which installs
a client below ``REALCLIENT_BASE`` (by default pytest's cache).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from filelock import FileLock

from tests.hook.test_lives import DENIED, DONE, FAILED, KILLED, NOT_ENDED, WITH_HOST
from tests.hook.test_realclient import harness

if TYPE_CHECKING:
    from tests.hook.conftest import Host
    from tests.hook.test_lives import End

HERE = Path(__file__).parent

pytestmark = pytest.mark.realclient


class Kind(NamedTuple):
    """The name of a client in the harness, its folder there, its settings file, and its host."""

    client: str
    folder: str
    settings: str
    host: str


LATEST_QWEN = "qwen-code-0.24.4"
KINDS = {
    "codex": Kind("codex", "cli-codex", ".codex/hooks.json", "codex"),
    "qwen-code": Kind("qwen", "cli-qwen-code", ".qwen/settings.json", "qwen-code"),
    LATEST_QWEN: Kind("qwen22", "cli-qwen-code-22", ".qwen/settings.json", "qwen-code"),
    "gemini-cli": Kind("gemini", "cli-gemini-cli", ".gemini/settings.json", "gemini-cli"),
}

LIVES: dict[tuple[str, str], list[End]] = {
    ("codex", "single"): [DONE],
    ("codex", "parallel"): [DONE, WITH_HOST],  # nobody waits for the second agent
    ("codex", "sub-error"): [FAILED],
    ("codex", "pre-deny"): [DENIED],
    ("codex", "stop-block"): [DONE],
    ("codex", "sigint"): [WITH_HOST],
    ("qwen-code", "single"): [DONE],
    ("qwen-code", "parallel"): [DONE, DONE],
    ("qwen-code", "sub-error"): [FAILED],
    ("qwen-code", "pre-deny"): [DENIED],
    ("qwen-code", "stop-block"): [DONE],
    ("qwen-code", "sigint"): [FAILED],  # only its launcher dies; then the scripted API is gone
    (LATEST_QWEN, "single"): [DONE],
    (LATEST_QWEN, "parallel"): [DONE, DONE],
    (LATEST_QWEN, "sub-error"): [FAILED],
    (LATEST_QWEN, "pre-deny"): [DENIED],
    (LATEST_QWEN, "stop-block"): [DONE],
    (LATEST_QWEN, "tools"): [DONE],
    (LATEST_QWEN, "background-false"): [DONE],
    (LATEST_QWEN, "background-false-error"): [FAILED],
    (LATEST_QWEN, "sigint"): [NOT_ENDED],  # no further event comes
    ("gemini-cli", "single"): [DONE],
    ("gemini-cli", "parallel"): [DONE, DONE],
    ("gemini-cli", "sub-error"): [FAILED],
    ("gemini-cli", "pre-deny"): [DENIED],
}


class OtherClient:
    """A client in a project whose settings start the hook."""

    def __init__(self, host: Host, harness: Path, name: str) -> None:
        self.host = host
        self.harness = harness
        self.name = name
        self.kind = KINDS[name]
        self.run = Path(os.environ["REALCLIENT_BASE"], f"runs-{self.kind.client}")

    def settings(self) -> Path:
        """The settings that ``hooks install`` writes, in a project that the client does not use."""
        project = self.host.folder / "wired"
        project.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "gaia_sessions", "hooks", "install", "--project", "--host", self.kind.host]
        environment = {**os.environ, "HOME": str(self.host.folder), "GAIA_SESSIONS_ROOT": str(project / "session")}
        subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True)
        return project / self.kind.settings

    def live(self, scenario: str, plan: dict[str, Any] | None = None) -> None:
        arguments: list[str | Path] = [self.harness, self.kind.client, scenario, self.host.project, self.settings()]
        if plan:
            file = self.host.folder / "plan.json"
            file.write_text(json.dumps(plan), encoding="utf-8")
            arguments.append(file)
        done = subprocess.run(
            [*_alone(), sys.executable, HERE / "other_clients.py", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert [line for line in self.host.log("hook") if line["decision"] in ("error", "not_joined")] == []

    def ends(self) -> list[End]:
        records = self.host.records().values()
        return sorted((record["phase"], record["runs"][-1].get("end", ""), record["error_count"]) for record in records)

    def requests(self, scenario: str) -> str:
        """All requests of the client to the API in its last run of ``scenario``."""
        folder = self.run / scenario / "api"
        return "\n".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("request-*.json")))


def _alone() -> list[str]:
    """The words that start a command in its own network, if that is possible."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        return []
    return ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]


@pytest.fixture
def start(own_home: str, host: Host, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = harness()
    base = os.environ.get("REALCLIENT_BASE") or str(pytestconfig.cache.mkdir("otherclients"))
    own = host.folder / "clients"  # so that parallel tests of one scenario do not share a folder
    own.mkdir()
    monkeypatch.setenv("HOME", own_home)  # for the settings of npm; the client gets another home

    def started(name: str) -> OtherClient:
        kind = KINDS[name]
        with FileLock(f"{base}/{kind.folder}.lock"):  # so that no test uses half an installation
            ready = Path(base, f"{kind.folder}.ready")
            if not ready.exists():
                command = [f"{folder}/run_other.sh", kind.client, "single", str(host.folder / "first")]
                environment = {**os.environ, "REALCLIENT_BASE": base}
                subprocess.run(command, capture_output=True, check=True, timeout=900, env=environment)
                ready.touch()
        monkeypatch.setenv("REALCLIENT_BASE", str(own))
        if not (own / kind.folder).exists():
            (own / kind.folder).symlink_to(Path(base, kind.folder), target_is_directory=True)
        return OtherClient(host, Path(folder), name)

    return started


@pytest.mark.parametrize(("name", "scenario"), LIVES, ids=lambda part: part)
def test_every_delegation_of_a_real_client_is_one_session_with_its_true_end(
    start: Any, name: str, scenario: str
) -> None:
    client = start(name)

    client.live(scenario)

    assert client.ends() == sorted(LIVES[name, scenario])
    assert {run["host"] for record in client.host.records().values() for run in record["runs"]} == {KINDS[name].host}
    assert all("host_process" in run for record in client.host.records().values() for run in record["runs"])


PAUSE = "The plan of alpha has three steps.\n[gaia-sessions: approval] may I apply it?"


def plan(name: str, label: str, report: str, more: str = "") -> dict[str, Any]:
    """A plan in which the main agent delegates one job and its agent reports."""
    prompt = f"[[sub:{label}]] Do the job called {label} and report.{more}"
    said: dict[str, Any] = {"text": report}
    calls: list[dict[str, Any]]
    if name == "codex":
        calls = [{"name": "spawn_agent", "namespace": "multi_agent_v1", "input": {"message": prompt}}]
        waiting = {"targets": ["{{agent_id:0}}"], "timeout_ms": 30000}
        wait = [{"tools": [{"name": "wait_agent", "namespace": "multi_agent_v1", "input": waiting}]}]
    elif KINDS[name].host == "qwen-code":
        asked = {"description": f"Job {label}", "prompt": prompt, "subagent_type": "general-purpose"}
        calls, wait = [{"name": "agent", "input": asked}], []
    else:
        calls, wait = [{"name": "invoke_agent", "input": {"agent_name": "scribe", "prompt": prompt}}], []
        said = {"tools": [{"name": "complete_task", "input": {"result": report}}]}
    return {"main": [{"tools": calls}, *wait, {"text": "All done."}], "subs": {label: [said]}}


@pytest.mark.parametrize(
    ("name", "told", "briefed", "noted", "listed"),
    [
        ("codex", True, True, True, True),
        ("qwen-code", True, False, False, False),
        (LATEST_QWEN, False, False, False, True),  # in the background, no reply reaches the main agent
        ("gemini-cli", True, True, False, True),
    ],
)
def test_work_paused_for_approval_is_resumed_in_another_conversation(
    start: Any,
    name: str,
    told: bool,  # noqa: FBT001
    briefed: bool,  # noqa: FBT001
    noted: bool,  # noqa: FBT001
    listed: bool,  # noqa: FBT001
) -> None:
    client = start(name)

    client.live("single", plan(name, "alpha", PAUSE))
    record = client.host.record()
    way_back = f"[gaia-sessions: resume {record['agent_id']}]"
    assert (record["phase"], record["runs"][0]["last_message"]) == ("approval", PAUSE)
    first = client.requests("single")
    assert (way_back in first) == told
    assert ("end your last message with one line of this form" in first) == noted

    client.live("single", plan(name, "beta", "Applied.", f"\n{way_back}"))
    record = client.host.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("completed", ["stopped", "stopped"])
    then = client.requests("single")
    assert (f"[gaia-sessions: briefing {record['agent_id']}]" in then) == briefed
    assert ("Sub-agents whose work is not finished." in then) == listed


DENY = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "refused"}
REFUSALS = {
    "codex": {"PreToolUse": [{"match": "sub:beta", "stdout": {"hookSpecificOutput": DENY}}]},
    "qwen-code": {"PreToolUse": [{"match": "sub:beta", "stdout": {"hookSpecificOutput": DENY}}]},
    LATEST_QWEN: {"PreToolUse": [{"match": "sub:beta", "stdout": {"hookSpecificOutput": DENY}}]},
    "gemini-cli": {"BeforeTool": [{"match": "sub:beta", "stdout": {"decision": "deny", "reason": "refused"}}]},
}


@pytest.mark.parametrize("name", KINDS)
def test_a_claim_that_another_hook_refuses_leaves_the_session_resumable(start: Any, name: str) -> None:
    client = start(name)
    client.live("single", plan(name, "alpha", PAUSE))
    line = f"\n[gaia-sessions: resume {client.host.record()['agent_id']}]"

    client.live("single", {**plan(name, "beta", "Applied.", line), "hooks": REFUSALS[name]})

    record = client.host.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("approval", ["stopped", "denied"])
    assert record["resume_ready"] is True


def to_alpha(tool: str, **told: str) -> dict[str, Any]:
    """The main agent of Codex uses a tool on its only agent."""
    asked = {"target": "{{agent_id:0}}", **told}
    return {"tools": [{"name": tool, "namespace": "multi_agent_v1", "input": asked}]}


def to_task(tool: str, **told: str) -> dict[str, Any]:
    """The main agent of Qwen Code uses a tool on the agent of its first call."""
    return {"tools": [{"name": tool, "input": {"task_id": "general-purpose-call_fake00100", **told}}]}


ASK, LAUNCHED = plan(LATEST_QWEN, "alpha", "Report.")["main"]
CODEX = plan("codex", "alpha", "Report.")
SPAWN, WAIT, LAST = CODEX["main"]
GEMINI = plan("gemini-cli", "alpha", "Report.")
INVOKE, DONE_WITH = GEMINI["main"]

PLANNED: dict[str, tuple[str, dict[str, Any], list[End]]] = {
    "an agent of Codex that gets a message after its end": (
        "codex",
        {
            "main": [SPAWN, WAIT, to_alpha("send_input", message="One more thing"), WAIT, LAST],
            "subs": {"alpha": [{"text": "Report."}, {"text": "The second."}]},
        },
        [DONE, DONE],
    ),
    "an agent of Codex that is closed": (
        "codex",
        {"main": [SPAWN, to_alpha("close_agent"), LAST], "subs": {"alpha": [{"text": "Report.", "delay": 8}]}},
        [KILLED],
    ),
    "an agent of Qwen Code that gets a message after its end": (
        LATEST_QWEN,
        {
            "main": [ASK, LAUNCHED, to_task("send_message", message="[[sub:alpha]] One more thing"), *[LAUNCHED] * 3],
            "subs": {"alpha": [{"text": "Report.", "delay": 1}, {"text": "The second."}]},
        },
        [DONE, DONE],
    ),
    "an agent of Qwen Code that is stopped": (
        LATEST_QWEN,
        {"main": [ASK, to_task("task_stop"), *[LAUNCHED] * 2], "subs": {"alpha": [{"text": "Report.", "delay": 20}]}},
        [KILLED],
    ),
    "an agent of Gemini CLI that is interrupted and completes its work": (
        "gemini-cli",
        {**GEMINI, "subs": {"alpha": [{**GEMINI["subs"]["alpha"][0], "delay": 10}]}, "sigint": True},
        [DONE],
    ),
    "the same delegation of Gemini CLI twice in a row": (
        "gemini-cli",
        {**GEMINI, "main": [INVOKE, INVOKE, DONE_WITH]},
        [DONE, DONE],
    ),
    "the same delegation of Gemini CLI twice at once": (
        "gemini-cli",
        {**GEMINI, "main": [{"tools": INVOKE["tools"] * 2}, DONE_WITH]},
        [DONE],
    ),
}


@pytest.mark.parametrize(("name", "planned", "ends"), PLANNED.values(), ids=PLANNED)
def test_each_planned_agent_ends_as_the_table_says(
    start: Any, name: str, planned: dict[str, Any], ends: list[End]
) -> None:
    client = start(name)

    client.live("single", planned)

    assert client.ends() == ends


def in_team(tool: str, **told: str) -> dict[str, Any]:
    """The main agent of Codex uses a tool for its newer agents, which have paths."""
    return {"tools": [{"name": tool, "namespace": "collaboration", "input": told}]}


@pytest.mark.parametrize("target", ["alpha", "/root/alpha"])
def test_an_interrupted_codex_agent_can_be_resumed(start: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_FEATURES", "multi_agent_v2 = true")
    spawn = in_team("spawn_agent", message="[[sub:alpha]] Do the job called alpha and report.", task_name="alpha")
    # The agent's requests begin with the main conversation, so it gets the same steps. The last step is slow.
    last = {"text": "I stopped it.", "delay": 5}
    client = start("codex")

    client.live("single", {"main": [spawn, in_team("interrupt_agent", target=target), last], "subs": {}})

    [run] = client.host.record()["runs"]
    assert client.ends() == [("investigating", "killed", 0)]
    assert (run["interruption"], run["host_agent_id"]) == ("interrupted", "/root/alpha")
    assert client.host.record()["resume_ready"] is True
