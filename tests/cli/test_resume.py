"""``resume`` without an ID: the stopped sessions that can be resumed, each with a command to copy."""

from __future__ import annotations

import json
import os
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api import at, resuming
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.cli.render.words import local_time
from gaia_sessions.system.processes import describe
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Gaia


NOTHING = (
    "Nothing to resume: no work that stopped or was answered can be resumed now\n"
    "  to see who waits for you: gaia-sessions pending\n"
)
WHY_NOT = "  to see why, or to resume an expired session: gaia-sessions resume ID\n"
NOTHING_OF_NOBODY = (
    "Nothing to resume: no work of conversation nobody that stopped or was answered can be resumed now\n"
    "  to see all conversations: gaia-sessions resume\n"
)
NOBODY = 2**22 + 1  # larger than any pid
CONVERSATION = "0e23a513-af54-4b3c-9d2e-6f1a2b3c4d5e"


def process(pid: int) -> dict[str, Any]:
    return {**(describe(os.getpid()) or {}), "pid": pid}


@pytest.fixture
def stopped(put: Gaia, talks: Path) -> Gaia:
    """Creates a session of Claude Code with one ended run and the transcripts of its agent."""

    def session(agent_id: str, *, files: bool = True, record: dict[str, Any] | None = None, **run: Any) -> None:
        folder = talks.parent / "-p" / CONVERSATION / "subagents"
        if files:
            folder.mkdir(parents=True, exist_ok=True)
            transcript = folder / f"agent-of-{agent_id}.jsonl"
            transcript.write_text("{}\n")
            os.utime(transcript, times=(0, 0))  # so that the idle time counts from the record
            folder.parent.with_suffix(".jsonl").write_text('{"cwd": "/p"}\n')
        first = {
            "run": 1,
            "host": "claude-code",
            "host_session_id": CONVERSATION,
            "host_agent_id": f"of-{agent_id}",
            "started_at": ago(minutes=9),
            "ended_at": ago(minutes=1),
            "end": "killed",
            "transcript_path": str(folder / f"agent-of-{agent_id}.jsonl"),
        }
        merged = {key: value for key, value in {**first, **run}.items() if value is not None}
        put(agent_id, **{"phase": "investigating", "runs": [merged], **(record or {})})

    return session


def ids(answer: Any) -> list[str]:
    return [resumption["agent_id"] for resumption in answer]


def test_resume_says_so_if_nothing_can_be_resumed(gaia: Gaia, put: Gaia, stopped: Gaia, tree: Gaia) -> None:
    put("without-a-run")
    stopped("asks", end="stopped", record={"phase": "approval"})
    stopped("says-why", end="stopped", record={"phase": "planning"})
    stopped("given-up", record={"phase": "abandoned", "resume_ready": False, "finalized_at": ago(minutes=1)})
    stopped("refused", end="denied")
    stopped("running", ended_at=None, end=None, host_process=process(os.getpid()))
    before = tree()

    assert gaia("resume").all == (0, NOTHING, "")
    assert gaia("resume", "--json").json == []
    assert tree() == before


def test_resume_counts_stopped_sessions_that_it_cannot_resume_and_names_a_list_command(
    gaia: Gaia, stopped: Gaia
) -> None:
    stopped("idle", ended_at=None, end=None, host_process=process(NOBODY), record={"idle": timedelta(minutes=31)})
    command = "gaia-sessions list --state crashed"
    counted = f"1 session that stopped cannot be resumed now; to see which: {command}\n{WHY_NOT}"
    assert gaia("resume").all == (0, NOTHING + counted, "")

    stopped("keeps-failing", end="failed", record={"error_count": 3})
    stopped("switched-off", end="returned", record={"resume_ready": False})
    stopped("goes-on", end="failed", detail="API Error: 400 no\nsuch model")

    _, out, _ = gaia("resume").all
    *_, closing, _ = out.splitlines()
    before, named = closing.split(": ")
    assert out.startswith("tester: test\n  error 1 minute ago, resumable for 29 minutes: API Error: 400 no such")
    assert before == "3 sessions that stopped cannot be resumed now; to see which"
    listed = gaia(*shlex.split(named)[1:], "--json").json
    assert sorted(ids(listed)) == ["goes-on", "idle", "keeps-failing", "switched-off"]
    assert ids(gaia("resume", "--json").json) == ["goes-on"]
    assert gaia("resume", "--host-session", "nobody").all == (0, NOTHING_OF_NOBODY, "")


@pytest.mark.parametrize(("command", "word"), [("approve", "approved"), ("deny", "denied")])
@pytest.mark.parametrize("by_host", [True, False])
def test_resume_shows_an_answered_session_with_its_resume_line(
    gaia: Gaia, put: Gaia, stopped: Gaia, command: str, word: str, *, by_host: bool
) -> None:
    resting = {"phase": "approval", "idle": timedelta(minutes=3)}
    stopped("asks", end="stopped", record=resting) if by_host else put("asks", **resting)
    assert gaia(command, "asks").code == 0

    line = "delegate to tester again, with this line in the prompt:"
    other_way = ["  what it asked for was denied", f"  to let it find another way, {line}"]
    assert gaia("resume").answer == [
        "tester: test",
        f"  {word} just now, resumable for 30 minutes",
        *(other_way if command == "deny" else [f"  to resume it, {line}"]),
        "[gaia-sessions: resume asks]",
        "  asks",
    ]
    [one] = gaia("resume", "--json").json
    assert (one["why"], one["means"], one["command"], "stopped_at" in one) == (word, "resume_line", None, by_host)

    answered = gaia("get", "asks").json
    key = "approval" if command == "approve" else "denial"
    stopped("asks", end="stopped", record={**resting, "idle": timedelta(minutes=31), key: answered[key]})
    [_, _, counted, _] = gaia("resume").lines
    assert counted == f"1 session that stopped cannot be resumed now; to see which: gaia-sessions list --state {word}"
    [_, advice] = gaia("should-resume", "asks").lines
    assert gaia(*advice.rpartition(": gaia-sessions ")[2].split()).code == 0
    assert (ids(gaia("resume", "--json").json), gaia("get", "asks").json[key]) == (["asks"], answered[key])


def test_resume_gives_a_running_client_as_the_reason_for_no_command(gaia: Gaia, stopped: Gaia) -> None:
    stopped("lives-on", end="ended_with_host", host_process=process(os.getpid()))

    [one] = gaia("resume", "--json").json
    assert (one["state"], one["means"], one["command"], one["prompt"]) == ("interrupted", "none", None, None)
    assert gaia("resume").out.decode() == (
        "tester: test\n"
        "  interrupted 1 minute ago, resumable for 29 minutes: stopped because its conversation was closed\n"
        f"  {one['problem']}\n"
        "  lives-on\n"
    )
    assert one["problem"].startswith("its client still runs, ")


def test_resume_lists_agents_to_wake_first_then_limited_ones_then_user_stopped_ones(
    gaia: Gaia, stopped: Gaia, put: Gaia
) -> None:
    stopped("by-user", interruption="stopped_by_user")
    stopped("limit-late", interruption="usage_limit", record={"paused_until": ago(minutes=-90)})
    stopped("limit-soon", interruption="usage_limit", record={"paused_until": ago(minutes=-20)})
    put(
        "of-codex",
        phase="planning",
        runs=[{"run": 1, "host": "codex", "started_at": ago(minutes=2), "ended_at": ago(minutes=2), "end": "lost"}],
    )
    stopped("gone", files=False, end="lost")
    stopped("earlier", interruption="connection_lost", ended_at=ago(minutes=3))
    stopped("reset", interruption="usage_limit", record={"paused_until": ago(minutes=5)})
    stopped("killed", ended_at=None, end=None, host_process=process(NOBODY))
    stopped("failed", end="failed", ended_at=ago(minutes=4))
    stopped("out-of-turns", end="returned", ended_at=ago(minutes=5))

    found = gaia("resume", "--json").json

    seen = [(one["agent_id"], one["state"], one["why"], one["means"], one["command"] is None) for one in found]
    assert seen == [
        ("reset", "interrupted", "usage_limit", "message", False),
        ("earlier", "interrupted", "connection_lost", "message", False),
        ("failed", "error", "failed", "message", False),
        ("out-of-turns", "cut short", "returned", "message", False),
        ("killed", "crashed", "lost", "message", False),
        ("gone", "crashed", "lost", "delegation", False),
        ("of-codex", "crashed", "lost", "resume_line", True),
        ("limit-soon", "limited", "usage_limit", "message", True),
        ("limit-late", "limited", "usage_limit", "message", True),
        ("by-user", "interrupted", "stopped_by_user", "message", False),
    ]
    assert ["paused_until" in one for one in found] == [False] * 7 + [True, True, False]
    assert [one["state_since"] for one in found] == [one.get("stopped_at", one["state_since"]) for one in found]
    assert (found, {}) == at.read(Sessions(), resuming.resumptions)


def test_each_session_is_a_block_with_its_command_alone_on_a_line(gaia: Gaia, stopped: Gaia, put: Gaia) -> None:
    reset = ago(minutes=-20)
    stopped("woken", interruption="interrupted", host_process=process(os.getpid()))
    run = {
        "run": 1,
        "host": "codex",
        "started_at": ago(minutes=2),
        "ended_at": ago(minutes=1),
        "end": "ended_with_host",
    }
    put("of-codex", phase="planning", runs=[run])
    stopped("waits", interruption="usage_limit", record={"paused_until": reset})
    stopped("by-user", interruption="stopped_by_user")
    woken, _, _, by_user = gaia("resume", "--json").json

    assert shlex.split(woken["command"])[:6] == ["cd", "/p", "&&", "claude", "--resume", CONVERSATION]
    assert gaia("resume").out.decode() == (
        "tester: test\n"
        "  interrupted 1 minute ago, resumable for 29 minutes\n"
        "  its client still runs; if the conversation is open there, type only the quoted text there\n"
        "  to resume it, type this; it wakes the agent, which remembers its work:\n"
        f"{woken['command']}\n"
        "  woken\n\n"
        "tester: test\n"
        "  interrupted 1 minute ago, resumable for 29 minutes: stopped because its conversation was closed\n"
        "  to resume it, delegate to tester again, with this line in the prompt:\n"
        "[gaia-sessions: resume of-codex]\n"
        "  of-codex\n\n"
        "tester: test\n"
        "  limited 1 minute ago: stopped by a usage limit\n"
        f"  waits until its usage limit is reset: {local_time(reset)}\n"
        "  waits\n\n"
        "tester: test\n"
        "  interrupted 1 minute ago, resumable for 29 minutes: STOPPED BY THE USER\n"
        "  to resume it, type this; it wakes the agent, which remembers its work:\n"
        f"{by_user['command']}\n"
        "  by-user\n"
    )


@table("before_phase", ["initializing", "investigating"])
def test_resume_says_that_a_client_crashed_before_the_agent_started(
    gaia: Gaia, stopped: Gaia, before_phase: str
) -> None:
    """The run is open in one case and closed in the other."""
    is_closed = before_phase == "investigating"
    ended = {} if is_closed else {"ended_at": None, "end": None, "host_process": process(NOBODY)}
    stopped(
        "cut-off",
        files=False,
        record={"phase": before_phase, "resume_ready": is_closed},
        **{"end": "lost", "host_agent_id": None, "transcript_path": None, "started_at": None, **ended},
        claimed_at=ago(minutes=2),
    )

    [one] = gaia("resume", "--json").json
    first, why, how, command, name = gaia("resume").lines
    assert (one["means"], one["state"], one["why"], command) == ("delegation", "crashed", "lost", one["command"])
    assert (first, how, name) == (
        "tester: test",
        "  to resume it, type this; it delegates the work again (its agent never started):",
        "  cut-off",
    )
    assert why.endswith(": Claude Code crashed or was closed before the agent started")
    assert gaia("show", "cut-off").out.decode().count("crashed or was closed before the agent started") == 1


def test_on_a_terminal_a_command_is_never_broken(gaia: Gaia, stopped: Gaia, terminal: Gaia) -> None:
    stopped("woken", interruption="interrupted")
    [woken] = gaia("resume", "--json").json

    assert woken["command"] in terminal("resume", columns=60).out.decode().split("\n")


def test_resume_selects_by_conversation_even_after_an_agent_moved_to_another(gaia: Gaia, stopped: Gaia) -> None:
    stopped("here", interruption="interrupted")
    stopped("moved", interruption="interrupted", current_host_session_id="next", ended_at=ago(minutes=2))
    stopped("there", interruption="interrupted", host_session_id="other")

    by_conversation = {name: ids(gaia("resume", "--host-session", name, "--json").json) for name in ("next", "other")}
    assert by_conversation == {"next": ["moved"], "other": ["there"]}
    assert gaia("resume", "--host-session", "nobody").all == (0, NOTHING_OF_NOBODY, "")


def test_resume_lists_a_workflow_once_for_all_its_stopped_agents(gaia: Gaia, stopped: Gaia, talks: Path) -> None:
    folder = talks.parent / "-p" / CONVERSATION
    script = folder / "workflows" / "scripts" / "demo-wf_1.js"
    script.parent.mkdir(parents=True)
    script.write_text("")
    (talks.parent / "-p" / f"{CONVERSATION}.jsonl").write_text(json.dumps({"cwd": "/p"}) + "\n")
    path = str(folder / "subagents" / "workflows" / "wf_1" / "journal.jsonl")
    own: dict[str, Any] = {"transcript_path": path, "end": "lost", "files": False, "ended_at": ago(minutes=1)}
    stopped("flow", workflow={"run_id": "wf_1"}, **own)
    parent = {"parent_id": "flow"}
    for key in ("a", "b"):
        stopped(f"agent-{key}", workflow={"run_id": "wf_1", "key": key}, record=parent, **own)

    assert [(one["agent_id"], one["means"]) for one in gaia("resume", "--json").json] == [("flow", "workflow")]

    final = {"phase": "completed", "resume_ready": False, "finalized_at": ago(minutes=1)}
    stopped("flow", workflow={"run_id": "wf_1"}, record=final, **{**own, "end": "stopped"})
    assert [(one["agent_id"], one["means"]) for one in gaia("resume", "--json").json] == [("agent-a", "workflow")]

    stopped("flow", workflow={"run_id": "wf_1"}, **{**own, "end": None, "ended_at": None})
    [one] = gaia("resume", "--json").json
    assert (one["agent_id"], one["means"], one["command"]) == ("agent-a", "none", None)
    assert gaia("resume").out.decode().endswith(f"  {one['problem']}\n  agent-a\n")
    assert one["problem"] == "its workflow still runs; try again when the workflow has ended"

    stopped("flow", workflow={"run_id": "wf_1"}, record=final, **{**own, "end": "stopped"})
    script.unlink()
    [one] = gaia("resume", "--json").json
    assert (one["agent_id"], one["means"], one["command"]) == ("agent-a", "none", None)
    said = gaia("resume").out.decode()
    assert said.endswith("  the files of the workflow are gone: start the workflow again\n  agent-a\n")


@table(
    ("interruption", "words"), [("usage_limit", "stopped by a usage limit"), ("stopped_by_user", "stopped by the user")]
)
def test_show_names_the_interruption_that_stopped_a_run(
    gaia: Gaia, stopped: Gaia, interruption: str, words: str
) -> None:
    stopped("agent-1", interruption=interruption, detail="You've hit your limit")

    assert f"\nwhy        {words}: You've hit your limit\n" in gaia("show", "agent-1").out.decode()
