"""``pending``: the sessions that wait for a person, each with its whole question and how to answer it."""

from __future__ import annotations

import json
import os
import re
import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.schema import MARKER_DETAIL
from gaia_sessions.system.processes import describe
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


NOBODY = "Nobody waits for you\n  to see what can be resumed: gaia-sessions resume\n"
MARKER = "[gaia-sessions: approval]"
HERE: Any = describe(os.getpid())


@pytest.fixture
def ask(put: Gaia) -> Gaia:
    """Creates a session whose agent stopped with ``message``, ``minutes`` ago."""

    def stopped(agent_id: str, message: str | None, minutes: float = 12, **changed: Any) -> Any:
        then = ago(minutes=minutes)
        run = {"run": 1, "host": "claude-code", "host_session_id": "s1", "host_agent_id": "a1", "ended_at": then}
        run |= {"end": "stopped"} if message is None else {"end": "stopped", "last_message": message}
        run |= {"detail": MARKER_DETAIL} if message is not None and MARKER in message else {}
        moved = {"from_phase": "investigating", "to_phase": "approval", "timestamp": then}
        return put(agent_id, idle=timedelta(minutes=minutes), **{"history": [moved], "runs": [run], **changed})

    return stopped


def at_work(**changed: Any) -> list[dict[str, Any]]:
    return [{"run": 1, "host": "claude-code", "started_at": ago(minutes=9), "host_process": HERE, **changed}]


def test_pending_says_so_if_no_session_waits(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="planning")
    assert (gaia("pending").all, gaia("pending", "--json").json) == ((0, NOBODY, ""), [])


def test_pending_shows_the_oldest_question_first_and_how_to_answer_each(gaia: Gaia, ask: Gaia) -> None:
    ask("new", f"Two ports are open.\n\n  - 80\n  - 8080\n{MARKER} may I close them?", agent_name="auditor")
    ask("old", f"{MARKER} shall I?", 125)
    assert gaia("pending").answer == [
        "tester: test",
        "  asked 2 hours ago:",
        "    shall I?",
        "  expired 1 hour ago; to approve it, which makes it resumable:",
        "gaia-sessions approve old",
        "  to deny (--reason adds a reason):",
        "gaia-sessions deny old",
        "",
        "auditor: test",
        "  asked 12 minutes ago:",
        "    may I close them?",
        "  it said:",
        "    Two ports are open.",
        "",
        "      - 80",
        "      - 8080",
        "  resumable for 18 minutes; to approve and resume it, give this to your agent:",
        f"{resume_line('new')}",
        "  to approve now and resume later (--note adds a note):",
        "gaia-sessions approve new",
        "  to deny (--reason adds a reason):",
        "gaia-sessions deny new",
    ]


def test_a_permission_is_shown_with_its_tool_and_the_client_to_answer_in(gaia: Gaia, put: Gaia) -> None:
    since = ago(minutes=3)
    put("a", phase="investigating", runs=at_work(waiting={"since": since, "for": "Bash"}))
    assert gaia("pending").answer == [
        "tester: test",
        "  asked 3 minutes ago to use Bash",
        f"  answer in Claude Code (process {os.getpid()})",
        "  a",
    ]
    [one] = gaia("pending", "--json").json
    assert (one["tool"], one["state_since"], one["host_process"]) == ("Bash", since, HERE)
    assert {"question", "resume_line"}.isdisjoint(one)


def test_pending_json_has_the_question_the_resume_line_and_the_host_ids(gaia: Gaia, ask: Gaia, root: str) -> None:
    message = f"A plan.\n{MARKER} may I?"
    record = ask("old", message, 45)
    [one] = gaia("pending", "--json").json
    assert one == {
        "agent_id": "old",
        "agent_name": "tester",
        "purpose": "test",
        "phase": "approval",
        "state": "waiting",
        "state_since": record["history"][0]["timestamp"],
        "question": "may I?",
        "last_message": message,
        "resume": {"should_resume": False, "reason": "expired", "until": None},
        "resume_line": resume_line("old"),
        "expired_at": one["expired_at"],
        "host": "claude-code",
        "host_session_id": "s1",
        "host_agent_id": "a1",
    }
    expired = datetime.fromisoformat(record["last_updated"]) + timedelta(minutes=30)
    assert abs(datetime.fromisoformat(one["expired_at"]) - expired) < timedelta(seconds=1)
    assert gaia_sessions.Sessions(root).pending() == [one]


FINAL = {"phase": "failed", "finalized_at": "2026-01-08T18:05:30Z", "duration_seconds": 1.0}
WAITS_FOR_NOBODY: dict[str, dict[str, Any]] = {
    "planning": {"phase": "planning"},
    "final": FINAL,
    "approved": {"approval": {"message": "", "timestamp": ago(minutes=1)}},
    "denied": {"denial": {"message": "", "timestamp": ago(minutes=1)}},
    "at work": {"runs": at_work()},
    "being resumed": {"runs": [{"run": 1, "claimed_at": ago(minutes=1)}]},
    "host gone": {
        "phase": "investigating",
        "runs": at_work(host_process={**HERE, "started": "0"}, waiting={"since": ago(minutes=3), "for": "Bash"}),
    },
    "a later version": {"schema": 99},
}


@table("changed", WAITS_FOR_NOBODY.values())
def test_pending_leaves_out_sessions_that_wait_for_nobody(gaia: Gaia, ask: Gaia, changed: dict[str, Any]) -> None:
    ask("a", f"{MARKER} may I?", **changed)
    assert gaia("pending").all == (0, NOBODY, "")


def test_pending_leaves_out_cancelled_and_corrupt_sessions(gaia: Gaia, ask: Gaia, root: str) -> None:
    for agent_id in "abc":
        ask(agent_id, f"{MARKER} may I?")
    gaia("cancel", "a")
    Path(root, "b", "state.json").write_text("{")
    assert [one["agent_id"] for one in gaia("pending", "--json").json] == ["c"]


def test_the_commands_that_pending_prints_answer_the_questions(
    gaia: Gaia, ask: Gaia, root: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "my sessions"
    for agent_id in "ab":
        ask(agent_id, f"{MARKER} may I?")
    Path(root).rename(elsewhere)
    printed = gaia("--root", str(elsewhere), "pending").lines
    commands = [shlex.split(line)[1:] for line in printed if line.startswith("gaia-sessions ")]
    there = ["--root", str(elsewhere)]
    assert commands == [[*there, word, agent_id] for agent_id in "ab" for word in ("approve", "deny")]

    assert [gaia(*words).code for words in (commands[0], commands[3])] == [0, 0]

    nobody = NOBODY.replace("gaia-sessions", f"gaia-sessions --root '{elsewhere}'")
    assert gaia("--root", str(elsewhere), "pending").out == nobody.encode()


QUESTION = " ".join(f"(question {number:03} https://example.com/{'x' * (number % 7)}?)" for number in range(60))[:2000]
CODE = "    return [port for port in open_ports(host) if port not in allowed and not is_reserved(port, host)]"
MESSAGE = f"""# Two ports are open: 打开的端口 打开的端口 打开的端口 打开的端口 打开的端口 打开的端口 打开的端口

| port | host | {"owner of the port " * 6}|
|------|------|
https://example.com/{"y" * 150}
```python
{CODE}
```
{MARKER} {QUESTION}"""


@table("columns", [60, 80, 120])
def test_pending_on_a_terminal_wraps_text_uncut_and_gives_each_command_its_own_line(
    terminal: Gaia, ask: Gaia, columns: int
) -> None:
    agent_id = "agent-20261122-213213-c8a71a11"
    purpose = "close the open ports on the web servers of the staging account, and of no other " * 2
    ask(agent_id, MESSAGE, agent_name="infrastructure-auditor", purpose=purpose)

    shown = terminal("pending", columns=columns).out.decode().replace("\r\n", "\n")

    from rich.cells import cell_len

    too_wide = [line for line in shown.splitlines() if cell_len(line) > columns]
    assert [line for line in too_wide if " " in line.strip()] == []
    assert len(QUESTION) == 2000
    without_blanks = re.sub(r"\s", "", shown)
    for text in (purpose[:150], QUESTION, *MESSAGE.splitlines()[:-1]):
        assert re.sub(r"\s", "", text) in without_blanks
    lines = shown.splitlines()
    for line in (resume_line(agent_id), f"gaia-sessions approve {agent_id}", f"gaia-sessions deny {agent_id}"):
        assert lines.count(line) == 1
    assert shown.index("(question 000") < shown.index("# Two ports") < shown.index(agent_id)
    if columns == 120:
        assert f"    {CODE}" in lines


def test_invisible_characters_are_removed_from_the_text_but_not_from_json(gaia: Gaia, ask: Gaia) -> None:
    message = f"one\x1b[31m\ttwo\u202e\n\u200bthree\n{MARKER} may\x07 I?"
    ask("a", message)
    shown = gaia("pending").out.decode()
    assert "    one [31m    two\n    three\n" in shown
    assert "    may  I?\n" in shown
    assert gaia("pending", "--json").json[0]["last_message"] == message


def test_without_a_marker_the_last_message_is_shown_instead_of_a_question(gaia: Gaia, ask: Gaia) -> None:
    ask("a", "Shall I go on?")
    shown = gaia("pending").out.decode()
    assert "  stopped 12 minutes ago, waits for approval\n  it said:\n    Shall I go on?\n" in shown
    assert "question" not in gaia("pending", "--json").json[0]


def test_pending_shows_the_stored_end_of_a_message_that_was_too_long(gaia: Gaia, ask: Gaia) -> None:
    ask("a", ("x" * 5000 + f"\nA plan.\n{MARKER} may I?")[-4000:])
    assert "  it said at the end:\n    xxx" in gaia("pending").out.decode()


def test_the_question_of_a_python_agent_comes_from_its_transcript(gaia: Gaia, session: str, root: str) -> None:
    sessions = gaia_sessions.Sessions(root)
    sessions.add_message(session, "user", "Close the ports.")
    sessions.add_message(session, "assistant", f"Two are open.\n{MARKER} may I?")
    sessions.update(session, "approval")
    [one] = sessions.pending()
    assert (one["question"], one["last_message"]) == ("may I?", f"Two are open.\n{MARKER} may I?")
    shown = gaia("show", session).lines
    assert "question   may I?" in shown
    assert shown[shown.index("last message") + 1] == "  Two are open."


def test_without_a_message_in_the_record_the_question_comes_from_the_hosts_transcript(
    gaia: Gaia, ask: Gaia, talks: Path
) -> None:
    said = f"Two are open.\n{MARKER} may I?"
    transcript = talks / "agent-a1.jsonl"
    line = {"type": "assistant", "agentId": "a1", "timestamp": ago(minutes=12), "message": {"content": said}}
    transcript.write_text(json.dumps(line) + "\n")
    [run] = ask("a", None)["runs"]
    ask("a", None, runs=[{**run, "detail": MARKER_DETAIL, "transcript_path": str(transcript)}])
    [one] = gaia("pending", "--json").json
    assert (one["question"], one["last_message"]) == ("may I?", said)
    assert "question   may I?" in gaia("show", "a").lines


def test_a_message_too_long_for_the_record_is_shown_whole_from_the_hosts_transcript(
    gaia: Gaia, ask: Gaia, talks: Path
) -> None:
    plan = "\n".join(["the first step", *(f"step {number}" for number in range(900)), "the last step"])
    said = f"{plan}\n{MARKER} may I?"
    transcript = talks / "agent-a1.jsonl"
    line = {"type": "assistant", "agentId": "a1", "timestamp": ago(minutes=12), "message": {"content": said}}
    transcript.write_text(json.dumps(line) + "\n")
    for message, is_whole in ((said, True), (said.replace("step 8", "step y"), False)):  # not in the transcript
        [run] = ask("a", message[-4000:])["runs"]
        ask("a", None, runs=[{**run, "transcript_path": str(transcript)}])

        told = [[line.strip() for line in gaia(*words).lines] for words in (["show", "a"], ["pending"])]

        for lines in told:
            assert ("the first step" in lines, "the last step" in lines) == (is_whole, True)
        assert ("it said:" in told[1]) == is_whole


def test_pending_says_so_if_the_question_was_not_recorded(gaia: Gaia, ask: Gaia) -> None:
    ask("a", None)
    shown = gaia("pending").out.decode()
    assert "  stopped 12 minutes ago, waits for approval (its question was not recorded)\n" in shown
    assert {"question", "last_message"}.isdisjoint(gaia("pending", "--json").json[0])


def test_pending_says_why_a_waiting_session_cannot_be_resumed_now(gaia: Gaia, ask: Gaia) -> None:
    ask("a", f"{MARKER} may I?", error_count=3)
    assert "  cannot be resumed now: too many errors; to approve it anyway:\n" in gaia("pending").out.decode()


def test_pending_shows_sessions_of_apps_too_and_names_the_app(gaia: Gaia, ask: Gaia) -> None:
    ask("plain", f"{MARKER} may I?", 3)
    ask("shared", f"{MARKER} may I?", 2, app="kb", user="u1")
    ask("adk", f"{MARKER} may I?", 1, app="kb", user="u1", app_session={})

    found = gaia("pending", "--json").json
    assert [(one["agent_id"], one.get("app"), "resume_line" in one) for one in found] == [
        ("plain", None, True),
        ("shared", "kb", True),
        ("adk", "kb", False),
    ]
    assert [one["agent_id"] for one in gaia("pending", "--app", "kb", "--json").json] == ["shared", "adk"]
    blocks = gaia("pending").out.decode().split("\n\n")
    assert blocks[2].splitlines() == [
        "tester: test",
        "  of app kb",
        "  asked 1 minute ago:",
        "    may I?",
        "  resumable for 29 minutes; to approve:",
        "gaia-sessions approve adk",
        "  then kb resumes the session with the app's next event",
        "  to deny (--reason adds a reason):",
        "gaia-sessions deny adk",
    ]
    assert blocks[1].splitlines()[:2] == ["tester: test", "  of app kb"]
    assert [line for line in gaia("approve", "adk").answer if "kb" in line] == [
        "  kb resumes the session with the app's next event"
    ]
