"""Real clients, driven by a scripted API, run the hooks from their own settings.

The harness is not part of this package: ``GAIA_REALCLIENT`` names the folder of its ``run.sh``. It installs a client
below ``REALCLIENT_BASE`` (by default pytest's cache). It has a ``scenarios.json``, and so does this folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

import gaia_sessions
from tests.hook.test_lives import DENIED, DONE, FAILED, KILLED, NOT_ENDED, RETURNED, WITH_HOST

if TYPE_CHECKING:
    from tests.hook.conftest import Host
    from tests.hook.test_lives import End

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
SCRIPT = CHECKOUT / "hooks" / "every_event.py"
VERSIONS = ("2.1.197", "2.1.330")
EVENTS = [
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "SubagentStart", "SubagentStop"),
    *("UserPromptSubmit", "SessionStart", "SessionEnd", "Stop", "StopFailure"),
]

ONE_DELEGATION = [
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart"),
    *("SubagentStop", "PostToolUse", "Stop", "SessionEnd"),
]
"""The hooks that a client waits for in a conversation with one delegation."""

pytestmark = pytest.mark.realclient

LIVES: dict[str, list[End]] = {
    "single": [DONE],
    "parallel": [DONE, DONE],
    "parallel-same-prompt": [DONE, DONE],
    "background": [DONE],
    "send-message-resume": [DONE, DONE],
    "nested": [DONE, DONE],
    "sub-error-400": [FAILED],
    "second-hook-denies": [DENIED],
    "max-turns": [RETURNED],
    "background-stopped": [KILLED],
    "stop-block-by-other-hook": [DONE],
    "sigint": [WITH_HOST],
    "background-sigkill": [NOT_ENDED],
}


class Client:
    """A client of one version, in a project whose settings start the hook."""

    def __init__(self, host: Host, harness: Path) -> None:
        self.host = host
        self.harness = harness
        self.run = host.folder / "run"
        self.said = host.folder / "said"
        self.errors = host.folder / "errors"

    def configure(self) -> None:
        """Writes settings with the hook for every event; its output is also stored in a file."""
        parts = (sys.executable, SCRIPT, self.errors, self.said)
        python, script, errors, said = (shlex.quote(str(part)) for part in parts)
        entry = {"type": "command", "command": f"{python} {script} 2>>{errors} | tee -a {said}"}
        hooks = {event: [{"hooks": [entry]}] for event in EVENTS}
        settings = self.host.project / ".claude" / "settings.json"
        settings.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")

    @property
    def program(self) -> Path:
        """The program of the client."""
        return Path(os.environ["REALCLIENT_BASE"], "client", "node_modules", ".bin", "claude")

    def at_home(self) -> dict[str, str]:
        """The environment of a user who has never started the client."""
        return {**os.environ, "HOME": str(self.host.folder), "CLAUDE_CONFIG_DIR": str(self.host.folder / "claude")}

    def with_plugin(self, scenario: str, **environment: str) -> Path:
        """A file with this scenario, with this checkout as a plugin and with ``environment``."""
        files = (HERE / "scenarios.json", self.harness / "scenarios.json")
        known = {key: value for file in files for key, value in json.loads(file.read_text(encoding="utf-8")).items()}
        file = self.host.folder / "plugin.json"
        plugged = {**known[scenario], "args": ["--plugin-dir", str(CHECKOUT)]}
        plugged["env"] = {**plugged.get("env", {}), **environment}
        file.write_text(json.dumps({scenario: plugged}), encoding="utf-8")
        return file

    def install(self, *options: str) -> None:
        """Installs the hooks with the command, into the shared settings; the harness uses the local settings."""
        words = ["hooks", "install", "--project", "--root", str(self.host.root), *options]
        command = [sys.executable, "-m", "gaia_sessions", *words]
        subprocess.run(command, check=True, capture_output=True, env=self.at_home())
        self.errors.write_bytes(b"")

    def live(self, scenario: str, *scenarios: Path, wired: bool = True, installed: bool = False) -> Client:
        if installed:
            self.install()
        elif wired:
            self.configure()
        environment = {
            **os.environ,
            "REALCLIENT_SCENARIOS": str(scenarios[0] if scenarios else HERE / "scenarios.json"),
        }
        done = subprocess.run(
            [self.harness / "run.sh", scenario, self.host.project, "--run-dir", self.run],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        assert not wired or self.errors.read_bytes() == b""
        return self

    def ends(self) -> list[End]:
        records = self.host.records().values()
        return sorted((record["phase"], record["runs"][-1].get("end", ""), record["error_count"]) for record in records)

    def answers(self, event: str) -> list[dict[str, Any]]:
        """The answers of the hook to ``event``, in order."""
        told = [json.loads(line)["hookSpecificOutput"] for line in self.said.read_text(encoding="utf-8").splitlines()]
        return [answer for answer in told if answer["hookEventName"] == event]

    def requests(self, role: str) -> list[str]:
        """The requests of ``role`` to the API, in order."""
        log = [json.loads(line) for line in (self.run / "api" / "api.jsonl").read_text(encoding="utf-8").splitlines()]
        numbers = [line["n"] for line in log if line.get("role") == role]
        return [(self.run / "api" / f"request-{number:03}.json").read_text(encoding="utf-8") for number in numbers]


def harness() -> str:
    """The folder of the harness. Skips the test without the harness or without npm."""
    folder = os.environ.get("GAIA_REALCLIENT")
    if not folder:
        pytest.skip("needs GAIA_REALCLIENT to name the folder of the harness")
    if shutil.which("npm") is None:
        pytest.skip("needs npm to install the client")
    return folder


@pytest.fixture(params=VERSIONS)
def client(
    request: pytest.FixtureRequest,
    own_home: str,
    host: Host,
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> Client:
    folder = harness()
    base = os.environ.get("REALCLIENT_BASE") or str(pytestconfig.cache.mkdir("realclient"))
    base = f"{base}/{re.sub(r'[^0-9]', '-', request.param)}"
    Path(base).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("REALCLIENT_PACKAGE", f"@anthropic-ai/claude-code@{request.param}")
    monkeypatch.setenv("REALCLIENT_BASE", base)
    monkeypatch.setenv("HOME", own_home)  # for the settings of npm; the client gets another home
    monkeypatch.setenv("NPM_CONFIG_CACHE", f"{base}/npm")
    found = Client(host, Path(folder))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(found.run / "home" / ".claude"))  # the one that ``live`` uses
    with FileLock(f"{base}.lock"):  # other test files install it at the same time
        if not found.program.exists():
            first = ["single", str(host.folder / "first"), "--run-dir", str(host.folder / "first-run")]
            subprocess.run([str(found.harness / "run.sh"), *first], capture_output=True, check=True, timeout=900)
    return found


@pytest.mark.parametrize("scenario", LIVES)
def test_every_agent_of_a_real_client_is_one_session_with_its_true_end(client: Client, scenario: str) -> None:
    client.live(scenario, installed=True)

    assert client.ends() == sorted(LIVES[scenario])
    if scenario == "single":
        assert sorted(line["event"] for line in client.host.log("hook")) == sorted(ONE_DELEGATION)


def test_the_plugin_under_an_old_python_logs_the_version_and_records_nothing(
    client: Client, old_pythons: list[str]
) -> None:
    old_python = old_pythons[-1]
    programs = client.host.folder / "programs"
    programs.mkdir()
    (programs / "python3").write_text(
        f'#!/bin/sh\ncase "$*" in *every_event.py*) exec {shlex.quote(old_python)} "$@";; esac\n'
        f'exec {shlex.quote(sys.executable)} "$@"\n',
        encoding="utf-8",
    )
    (programs / "python3").chmod(0o755)

    client.live("single", client.with_plugin("single", PATH=f"{programs}:{os.environ['PATH']}"), wired=False)

    assert client.host.records() == {}
    log = client.host.project / ".claude" / "logs" / "hook.log"
    [said] = {json.loads(line)["error"] for line in log.read_text("utf-8").splitlines()}
    assert re.fullmatch(rf"needs Python 3\.11, found 3\.\d+\.\d+ at {re.escape(old_python)}\d*(\.\d+)?", said)


@pytest.mark.parametrize("manifest", ["plugin.json", "marketplace.json"])
def test_the_plugin_passes_the_strict_validation_of_the_client(client: Client, manifest: str) -> None:
    command = [str(client.program), "plugin", "validate", "--strict", str(CHECKOUT / ".claude-plugin" / manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=client.at_home())

    assert (done.returncode, "Validation passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize("scenario", ["single", "background", "sub-error-400", "sigint"])
def test_the_plugin_without_settings_records_the_same_ends(client: Client, scenario: str) -> None:
    client.live(scenario, client.with_plugin(scenario), wired=False)

    assert client.ends() == sorted(LIVES[scenario])
    assert "gaia-sessions:gaia-sessions" in client.requests("main")[0], "the skill is on offer"


TWICE = ["single", "background", "nested", "send-message-resume", "stop-block-by-other-hook"]


@pytest.mark.parametrize("scenario", TWICE)
def test_the_plugin_beside_the_settings_records_no_event_twice(client: Client, scenario: str) -> None:
    client.live(scenario, client.with_plugin(scenario))

    assert client.ends() == sorted(LIVES[scenario])
    root = str(client.host.root)
    for agent_id in client.host.records():
        told = [(entry["kind"], entry["evidence"]) for entry in events_of(root, agent_id)]
        assert [entry for entry in told if told.count(entry) > 1] == []


def events_of(root: str, agent_id: str) -> list[Any]:
    """The lines of the journal of a session."""
    return list(gaia_sessions.Sessions(root).events(agent_id))


@pytest.mark.parametrize("scenario", ["sigkill", "background-sigkill"])
def test_work_of_a_killed_client_can_be_resumed_at_once(client: Client, scenario: str) -> None:
    client.live(scenario)

    [agent_id] = client.host.records()
    decision = gaia_sessions.explain_resume(agent_id, root=str(client.host.root))
    assert (decision["should_resume"], decision["phase"]) == (True, "investigating")


PAUSES = "The plan of {0} has three steps.\n[gaia-sessions: approval] may I apply {0}?"


def delegation(name: str, more: str = "") -> dict[str, Any]:
    asked = {
        "description": f"Job {name}",
        "prompt": f"[[sub:{name}]] Do the job called {name}. {more}",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    return {"name": "Agent", "input": asked}


def script(folder: Path, scenario: dict[str, Any]) -> Path:
    """A file with the scenario ``own``; its API can repeat our lines."""
    file = folder / "own.json"
    file.write_text(
        json.dumps({"own": {"prompt": FIRST, **scenario, "api": str(HERE / "scripted_api.py")}}), encoding="utf-8"
    )
    return file


RESUMED = "Approved: go on.\n{{resume:0}}"
ONE_PAUSE = {
    "main": [
        {"tools": [delegation("alpha")]},
        {"text": "May it?"},
        {"tools": [delegation("beta", RESUMED)]},
        {"text": "All done."},
    ],
    "subs": {"alpha": [{"text": PAUSES.format("alpha")}], "beta": [{"text": "Applied."}]},
}
FIRST, THEN = "[[main]] Please delegate the work.", "Yes, go on."
SAME_CLIENT = {**ONE_PAUSE, "stream_prompts": [FIRST, THEN]}
SAME_CONVERSATION = {**ONE_PAUSE, "steps": [{"prompt": FIRST}, {"prompt": THEN, "args": ["--continue"]}]}
FRESH_CONVERSATION = {
    "main": ONE_PAUSE["main"][:2],  # type: ignore[index]
    "subs": {
        **ONE_PAUSE["subs"],  # type: ignore[dict-item]
        "second": [{"tools": [delegation("beta", RESUMED)]}, {"text": "All done."}],
    },
    "steps": [{"prompt": FIRST}, {"prompt": "[[sub:second]] Go on with what is paused."}],
}


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(SAME_CLIENT, id="in the same client"),
        pytest.param(SAME_CONVERSATION, id="the client restarted, the conversation continued"),
        pytest.param(FRESH_CONVERSATION, id="the client restarted, a new conversation"),
    ],
)
def test_work_paused_for_approval_is_resumed_with_its_context(client: Client, scenario: dict[str, Any]) -> None:
    client.live("own", script(client.host.folder, scenario))

    record = client.host.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("completed", ["stopped", "stopped"])
    assert [run["last_message"] for run in record["runs"]] == [PAUSES.format("alpha"), "Applied."]
    phases = ["investigating", "approval", "executing", "completed"]
    assert [move["to_phase"] for move in record["history"]] == phases
    [told] = client.answers("PostToolUse")
    assert f"[gaia-sessions: resume {record['agent_id']}]" in told["additionalContext"]
    [answer] = client.answers("PreToolUse")
    assert set(answer) == {"hookEventName", "updatedInput"}
    first = client.requests("sub:beta")[0]
    assert f"[gaia-sessions: briefing {record['agent_id']}]" in first
    assert "no answer of the user is recorded" in first
    assert "|   assistant: The plan of alpha has three steps." in first


@pytest.mark.parametrize(("command", "word"), [("approve", "approved"), ("deny", "denied")])
def test_an_answer_given_between_two_clients_is_told_to_the_resuming_agent(
    client: Client, command: str, word: str
) -> None:
    first_life = {"main": ONE_PAUSE["main"][:2], "subs": {"alpha": [{"text": PAUSES.format("alpha")}]}}  # type: ignore[index]
    client.live("own", script(client.host.folder, first_life))
    sessions = gaia_sessions.Sessions(str(client.host.root))
    [asked] = sessions.pending()
    assert (asked["question"], asked["last_message"]) == ("may I apply alpha?", PAUSES.format("alpha"))

    getattr(sessions, command)(asked["agent_id"], "only in staging")

    client.run = client.host.folder / "second run"
    goes_on = [{"tools": [delegation("beta", f"Go on.\n{asked['resume_line']}")]}, {"text": "All done."}]
    client.live("own", script(client.host.folder, {"main": goes_on, "subs": {"beta": [{"text": "Applied."}]}}))
    assert (sessions.pending(), client.host.record()["phase"]) == ([], "completed")
    briefing = client.requests("sub:beta")[0]
    assert f"The request of the earlier run is {word}" in briefing
    assert f"| {word}: only in staging" in briefing


def turns(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers for the main agent: one step after the other, then the end of its turn."""
    return [*({"tools": [step]} for step in steps), {"text": "All done."}]


QUOTING = {
    "prose": "Review the plan of {{id:0}}; the user has NOT approved it.",
    "quote": "The plan says:\n\n> {{resume:0}}\n\nReview it.",
    "fence": "Read this log:\n```text\n{{resume:0}}\n```\nWhat went wrong?",
    "indent": "How it is done:\n\n    {{resume:0}}\n\nDo not do it.",
    "words": "\nRejected: {{resume:0}}",
    "twice": "\n{{resume:0}}\nand\n{{resume:0}}",
}


def test_a_resume_line_quoted_in_six_ways_resumes_nothing_and_each_reply_offers_it(client: Client) -> None:
    reviews = [delegation(name, f"\n{quoted}") for name, quoted in QUOTING.items()]
    scenario = {
        "main": turns(delegation("alpha"), *reviews, delegation("beta", "The user says yes.\n{{resume:0}}\nApply it.")),
        "subs": {
            "alpha": [{"text": PAUSES.format("alpha")}],
            **{name: [{"text": f"Reviewed {name}."}] for name in QUOTING},
            "beta": [{"text": "Applied."}],
        },
    }

    client.live("own", script(client.host.folder, scenario))

    records = list(client.host.records().values())
    [resumed] = [record for record in records if len(record["runs"]) == 2]
    others = [record for record in records if record is not resumed]
    assert [run["last_message"] for run in resumed["runs"]] == [PAUSES.format("alpha"), "Applied."]
    assert resumed["phase"] == "completed"
    assert sorted(record["runs"][0]["last_message"] for record in others) == sorted(f"Reviewed {q}." for q in QUOTING)
    assert [record["runs"][0]["mentioned"] for record in others] == [[resumed["agent_id"]]] * len(QUOTING)
    told = [answer["additionalContext"] for answer in client.answers("PostToolUse")]
    line = f"[gaia-sessions: resume {resumed['agent_id']}]"
    assert [line in text.split("\n") for text in told] == [True] * 7
    told_last = client.requests("main")[-1]
    assert told_last.count("This delegation named work that is not finished but did not resume it") == 6


ASKING = {
    "alone": "\n{{resume:0}}",
    "list": "\n1. Read the plan.\n2. {{resume:0}}\n3. Apply it.",
    "bold": "\n**`{{resume:0}}`**",
    "approved": "\nApproved: {{resume:0}}",
    "words": "\n- **Please go on:** {{resume:0}}",
    "beside": "\n> {{resume:0}}\n\nThe user says yes to {{id:0}}.\nNow continue: {{resume:0}}",
}


def test_a_resume_line_written_in_six_ways_resumes_each_time(client: Client) -> None:
    ways = [delegation(name, asked) for name, asked in ASKING.items()]
    scenario = {
        "main": turns(delegation("alpha"), *ways),
        "subs": {name: [{"text": PAUSES.format(name)}] for name in ("alpha", *ASKING)},
    }

    client.live("own", script(client.host.folder, scenario))

    record = client.host.record()
    phases = ["investigating", "approval", *["executing", "approval"] * 6]
    assert [run["last_message"] for run in record["runs"]] == [PAUSES.format(name) for name in ("alpha", *ASKING)]
    assert [move["to_phase"] for move in record["history"]] == phases
    assert ["mentioned" in run for run in record["runs"]] == [False] * 7
    for name in ASKING:
        assert f"[gaia-sessions: briefing {record['agent_id']}]" in client.requests(f"sub:{name}")[0]


def test_two_paused_sessions_are_each_resumed_with_their_own_context(client: Client) -> None:
    scenario = {
        "main": [
            {"tools": [delegation("alpha"), delegation("beta")]},
            {"text": "May they?"},
            {"tools": [delegation("gamma", "\n{{resume:0}}"), delegation("delta", "\n{{resume:1}}")]},
            {"text": "All done."},
        ],
        "subs": {
            **{name: [{"text": PAUSES.format(name)}] for name in ("alpha", "beta")},
            **{name: [{"text": f"Applied by {name}."}] for name in ("gamma", "delta")},
        },
        "stream_prompts": [FIRST, THEN],
    }

    client.live("own", script(client.host.folder, scenario))

    assert client.ends() == [DONE, DONE]
    for record in client.host.records().values():
        paused, applied = (run["last_message"] for run in record["runs"])
        [request, *_] = client.requests(f"sub:{applied.removeprefix('Applied by ').removesuffix('.')}")
        assert f"[gaia-sessions: briefing {record['agent_id']}]" in request
        assert f"|   assistant: {paused.splitlines()[0]}" in request


def test_a_claim_that_another_hook_refuses_leaves_the_session_resumable(client: Client) -> None:
    scenario = {
        **ONE_PAUSE,
        "stream_prompts": [FIRST, THEN],
        "more_commands": {
            "PreToolUse": ["grep -q 'Job called beta\\|sub:beta' && { echo refused >&2; exit 2; } || true"]
        },
    }

    client.live("own", script(client.host.folder, scenario))

    record = client.host.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("approval", ["stopped", "denied"])
    decision = gaia_sessions.explain_resume(record["agent_id"], root=str(client.host.root))
    assert decision["reason"] == "session_resumable"


def test_another_hook_that_rewrites_the_prompt_keeps_its_rewrite(client: Client) -> None:
    rewritten = {**delegation("alpha")["input"], "prompt": "[[sub:alpha]] REWRITTEN"}
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": rewritten}}
    scenario = {
        "main": [{"tools": [delegation("alpha")]}, {"text": "All done."}],
        "subs": {"alpha": [{"text": "Report."}]},
        "prompt": FIRST,
        "more_commands": {"PreToolUse": [f"echo {shlex.quote(json.dumps(answer))}"]},
    }

    client.live("own", script(client.host.folder, scenario))

    assert client.ends() == [DONE]
    assert "REWRITTEN" in client.requests("sub:alpha")[0]
