"""``pending``: who waits for a person, with the question whole and with what to type or to say."""

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


NOBODY = "Nobody waits for you\n  what stopped, or was answered and may go on: gaia-sessions resume\n"
MARKER = "[gaia-sessions: approval]"
HERE: Any = describe(os.getpid())


@pytest.fixture
def ask(put: Gaia) -> Gaia:
    """Puts a session in place whose agent stopped with ``message``, so many minutes ago."""

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


def test_if_nobody_waits_a_sentence_says_so(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="planning")
    assert (gaia("pending").all, gaia("pending", "--json").json) == ((0, NOBODY, ""), [])


def test_each_question_is_shown_with_how_to_answer_it_and_whoever_waits_longest_first(gaia: Gaia, ask: Gaia) -> None:
    ask("new", f"Two ports are open.\n\n  - 80\n  - 8080\n{MARKER} may I close them?", agent_name="auditor")
    ask("old", f"{MARKER} shall I?", 125)
    assert gaia("pending").answer == [
        "tester: test",
        "  asked 2 hours ago:",
        "    shall I?",
        "  expired 1 hour ago; to approve it all the same, so that it may be resumed:",
        "gaia-sessions approve old",
        "  to deny, with a reason (--reason) if you like:",
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
        "  resumable for 18 minutes; to approve, give this to your agent:",
        f"{resume_line('new')}",
        "  to approve with something to say (--note), or for later:",
        "gaia-sessions approve new",
        "  to deny, with a reason (--reason) if you like:",
        "gaia-sessions deny new",
    ]


def test_a_permission_is_shown_with_its_tool_and_the_client_to_answer_in(gaia: Gaia, put: Gaia) -> None:
    since = ago(minutes=3)
    put("a", phase="investigating", runs=at_work(waiting={"since": since, "for": "Bash"}))
    assert gaia("pending").answer == [
        "tester: test",
        "  asked 3 minutes ago for the permission to use Bash",
        f"  answer it in Claude Code (process {os.getpid()})",
        "  a",
    ]
    [one] = gaia("pending", "--json").json
    assert (one["tool"], one["state_since"], one["host_process"]) == ("Bash", since, HERE)
    assert {"question", "resume_line"}.isdisjoint(one)


def test_a_program_gets_what_it_needs_to_answer(gaia: Gaia, ask: Gaia, root: str) -> None:
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
    "of a host that is gone": {
        "phase": "investigating",
        "runs": at_work(host_process={**HERE, "started": "0"}, waiting={"since": ago(minutes=3), "for": "Bash"}),
    },
    "a later version": {"schema": 99},
}


@table("changed", WAITS_FOR_NOBODY.values())
def test_what_waits_for_nobody_is_left_out(gaia: Gaia, ask: Gaia, changed: dict[str, Any]) -> None:
    ask("a", f"{MARKER} may I?", **changed)
    assert gaia("pending").all == (0, NOBODY, "")


def test_what_is_cancelled_or_cannot_be_read_is_left_out(gaia: Gaia, ask: Gaia, root: str) -> None:
    for agent_id in "abc":
        ask(agent_id, f"{MARKER} may I?")
    gaia("cancel", "a")
    Path(root, "b", "state.json").write_text("{")
    assert [one["agent_id"] for one in gaia("pending", "--json").json] == ["c"]


def test_what_was_printed_is_typed_and_the_question_is_answered(
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
def test_at_a_terminal_nothing_is_cut_only_a_word_is_too_wide_and_what_to_copy_stands_alone(
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


def test_what_nobody_sees_is_not_shown_and_json_has_it(gaia: Gaia, ask: Gaia) -> None:
    message = f"one\x1b[31m\ttwo\u202e\n\u200bthree\n{MARKER} may\x07 I?"
    ask("a", message)
    shown = gaia("pending").out.decode()
    assert "    one [31m    two\n    three\n" in shown
    assert "    may  I?\n" in shown
    assert gaia("pending", "--json").json[0]["last_message"] == message


def test_without_a_marker_the_message_is_the_question(gaia: Gaia, ask: Gaia) -> None:
    ask("a", "Shall I go on?")
    assert "  stopped 12 minutes ago for an approval\n  it said:\n    Shall I go on?\n" in gaia("pending").out.decode()
    assert "question" not in gaia("pending", "--json").json[0]


def test_of_a_message_that_was_longer_than_what_is_kept_the_end_is_shown(gaia: Gaia, ask: Gaia) -> None:
    ask("a", ("x" * 5000 + f"\nA plan.\n{MARKER} may I?")[-4000:])
    assert "  it said at the end:\n    xxx" in gaia("pending").out.decode()


def test_the_question_of_an_agent_of_ones_own_is_in_its_transcript(gaia: Gaia, session: str, root: str) -> None:
    sessions = gaia_sessions.Sessions(root)
    sessions.add_message(session, "user", "Close the ports.")
    sessions.add_message(session, "assistant", f"Two are open.\n{MARKER} may I?")
    sessions.update(session, "approval")
    [one] = sessions.pending()
    assert (one["question"], one["last_message"]) == ("may I?", f"Two are open.\n{MARKER} may I?")
    shown = gaia("show", session).lines
    assert "question   may I?" in shown
    assert shown[shown.index("last message") + 1] == "  Two are open."


def test_where_the_record_keeps_no_words_the_file_of_the_host_has_the_question(
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


def test_what_is_longer_than_a_record_keeps_is_whole_where_a_transcript_has_it(
    gaia: Gaia, ask: Gaia, talks: Path
) -> None:
    plan = "\n".join(["the first step", *(f"step {number}" for number in range(900)), "the last step"])
    said = f"{plan}\n{MARKER} may I?"
    transcript = talks / "agent-a1.jsonl"
    line = {"type": "assistant", "agentId": "a1", "timestamp": ago(minutes=12), "message": {"content": said}}
    transcript.write_text(json.dumps(line) + "\n")
    for message, is_whole in ((said, True), (said.replace("step 8", "step y"), False)):  # the file has another message
        [run] = ask("a", message[-4000:])["runs"]
        ask("a", None, runs=[{**run, "transcript_path": str(transcript)}])

        told = [[line.strip() for line in gaia(*words).lines] for words in (["show", "a"], ["pending"])]

        for lines in told:
            assert ("the first step" in lines, "the last step" in lines) == (is_whole, True)
        assert ("it said:" in told[1]) == is_whole


def test_if_no_words_are_kept_that_is_said(gaia: Gaia, ask: Gaia) -> None:
    ask("a", None)
    assert "  stopped 12 minutes ago for an approval; its words were not kept\n" in gaia("pending").out.decode()
    assert {"question", "last_message"}.isdisjoint(gaia("pending", "--json").json[0])


def test_what_may_not_be_resumed_even_if_it_is_approved_says_why(gaia: Gaia, ask: Gaia) -> None:
    ask("a", f"{MARKER} may I?", error_count=3)
    assert "  may not be resumed: too many errors; to approve it all the same:\n" in gaia("pending").out.decode()


def test_a_session_of_an_app_waits_for_a_person_like_any_other_and_its_app_is_named(gaia: Gaia, ask: Gaia) -> None:
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
        "  then kb goes on with it, with its next event",
        "  to deny, with a reason (--reason) if you like:",
        "gaia-sessions deny adk",
    ]
    assert blocks[1].splitlines()[:2] == ["tester: test", "  of app kb"]
    assert [line for line in gaia("approve", "adk").answer if "kb" in line] == [
        "  kb goes on with it, with its next event"
    ]
