"""``report``: the answer of the agent on stdout, the rest on stderr; and ``wait`` for single sessions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.schema import MARKER_DETAIL
from tests.cli.conftest import fresh_table
from tests.cli.forks import Fork, forked, until
from tests.records import ago
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


WHEN = format_time(datetime.now(UTC))
LONG_AGO, AGO = (ago(hours=hours, minutes=9) for hours in (4, 3))
AT_WORK: dict[str, Any] = {"run": 1, "host": "codex", "started_at": WHEN}
ANSWER = (
    "# Plan\n\n1. *one*\n\n```sh\n\techo  'two   blanks'   \n```\n\n| a | b |\n|---|---|\n"
    + "A line of many words. " * 40
    + "\n"
    + "x" * 5000
    + "\nünïcode 🙂"
)


def ended(end: str, **keys: Any) -> dict[str, Any]:
    return {**AT_WORK, "ended_at": WHEN, "end": end, **keys}


@table("last", ["", "\n"])
def test_report_prints_the_answer_unchanged_on_stdout(put: Gaia, last: str) -> None:
    put("a", phase="completed", runs=[ended("stopped", last_message=ANSWER + last)])

    done = forked("report", "a")

    assert (done.code, done.out.decode()) == (0, ANSWER + "\n")
    assert done.err.decode() == "a: completed 1 minute ago; 0 seconds in all\n"


def test_report_removes_only_invisible_characters_and_json_keeps_them(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="completed", runs=[ended("stopped", last_message="one\x1b[31m\u202e\n\ttwo\x07\u200b\n\nthree\r\n")])
    assert gaia("report", "a").out.decode() == "one [31m\n\ttwo \n\nthree \n"
    assert gaia("report", "a", "--json").json["result"] == "one\x1b[31m\u202e\n\ttwo\x07\u200b\n\nthree\r\n"


def test_report_of_failed_work_prints_the_error_and_then_the_last_message(gaia: Gaia, put: Gaia) -> None:
    failed = {"message": "API Error: 400\n  bad", "timestamp": WHEN}
    run = ended("failed", detail="API Error: 400", last_message="# Half\n\n\tis done")
    put("a", phase="failed", last_error=failed, error_count=1, runs=[run])
    put("bare", phase="failed", last_error=failed, error_count=1)

    assert gaia("report", "a").all == (
        11,
        "API Error: 400\n  bad\n\nits agent said last:\n\n# Half\n\n\tis done\n",
        "a: failed 1 minute ago; 0 seconds in all\nstart new work: this session has ended\n",
    )
    assert (gaia("report", "bare").code, gaia("report", "bare").out) == (11, b"API Error: 400\n  bad\n")


def test_after_a_failed_marker_the_error_is_the_text_of_the_marker(gaia: Gaia, put: Gaia) -> None:
    gone = "No quorum.\n[gaia-sessions: failed] two nodes are gone"
    earlier = {"message": "API Error: 400", "timestamp": WHEN}
    run = ended("stopped", detail=MARKER_DETAIL, reported="failed", last_message=gone)
    put("a", phase="failed", last_error=earlier, error_count=1, runs=[run])
    by_hand = {**run, "reported": "approval", "last_message": "[gaia-sessions: approval] may I?"}
    put("b", phase="failed", last_error=earlier, error_count=1, runs=[by_hand])

    assert gaia("report", "a").out.decode() == f"two nodes are gone\n\nits agent said last:\n\n{gone}\n"
    assert gaia("wait", "a", "b").out.decode() == "a: failed\n  two nodes are gone\nb: failed\n  API Error: 400\n"


def test_report_of_open_work_prints_nothing_on_stdout_and_advice_on_stderr(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="executing", runs=[AT_WORK])
    put("nobody", phase="planning")

    told = {agent_id: gaia("report", agent_id).all for agent_id in ("a", "nobody")}

    assert {(code, out) for code, out, _ in told.values()} == {(124, "")}
    assert told["a"][2].splitlines()[1:] == ["`gaia-sessions wait a` waits for its end"]
    assert told["nobody"][2].splitlines()[1:] == [
        "no agent was started for nobody, so only a command can end this session",
        "when the work is done, type `gaia-sessions finalize nobody completed`",
        "to resume it, give this to your agent:",
        "  [gaia-sessions: resume nobody]",
    ]


def test_report_of_a_waiting_session_succeeds_and_says_how_to_resume_it(gaia: Gaia, put: Gaia) -> None:
    put("a", runs=[ended("stopped", last_message="May I?\n[gaia-sessions: approval] apply")])

    code, out, err = gaia("report", "a").all

    assert (code, out) == (0, "May I?\n[gaia-sessions: approval] apply\n")
    assert err.endswith("to approve and resume it, give this to your agent:\n  [gaia-sessions: resume a]\n")


def test_report_verbose_adds_the_phase_todos_and_messages_on_stderr(gaia: Gaia) -> None:
    gaia("create", "--id", "b")
    gaia("todo", "add", "b", "go on")
    gaia("transcript", "b", "--append", "assistant", "# Done\n\n\tall")
    gaia("finalize", "b", "completed")

    code, out, err = gaia("report", "b", "--verbose").all

    assert (code, out) == (0, "# Done\n\n\tall\n")
    assert err.splitlines()[1:] == [
        "phase: completed",
        "task: no agent was started",
        "todos",
        "  1  pending      go on",
        "assistant:",
        "  # Done",
        "",
        "      all",
        "todos left open: 1 of 1",
        "`gaia-sessions todo list b` shows them",
    ]


ENDS: list[tuple[int, dict[str, Any]]] = [
    (0, {"phase": "completed"}),
    (0, {"phase": "approval", "runs": [ended("stopped")]}),
    (11, {"phase": "failed"}),
    (11, {"phase": "abandoned"}),
    (11, {"phase": "investigating", "runs": [ended("lost")]}),
    (124, {"phase": "executing", "runs": [AT_WORK]}),
    (124, {"phase": "planning"}),
]


@fresh_table(("code", "keys"), ENDS)
def test_report_has_the_same_exit_code_as_wait(gaia: Gaia, put: Gaia, code: int, keys: dict[str, Any]) -> None:
    put("a", **keys)

    assert [gaia("report", "a").code, gaia("report", "a", "--json").code] == [code] * 2
    assert gaia("wait", "a", "--timeout", "0").code == code
    waited = json.loads(gaia("wait", "a", "--timeout", "0", "--json").out)
    assert waited == [json.loads(gaia("report", "a", "--json").out)]

    gaia("cancel", "a")
    final = keys["phase"] in ("completed", "failed")
    assert [gaia(*words).code for words in (("report", "a"), ("wait", "a"))] == [code if final else 10] * 2


STATES = [
    ("crashed", {"phase": "investigating", "runs": [ended("lost")]}),
    ("interrupted", {"phase": "investigating", "runs": [ended("killed", interruption="interrupted")]}),
    ("error", {"phase": "investigating", "runs": [ended("failed", detail="API Error: 400")]}),
    ("paused", {"phase": "planning", "runs": [ended("stopped")]}),
    ("open: planning", {"phase": "planning"}),
    ("working", {"phase": "executing", "runs": [AT_WORK]}),
    ("waiting", {"phase": "approval", "runs": [ended("stopped")]}),
]


@table(("state", "keys"), STATES)
def test_report_and_wait_show_the_state_and_report_says_how_to_resume(
    gaia: Gaia, put: Gaia, state: str, keys: dict[str, Any]
) -> None:
    put("a", **keys)

    told = gaia("report", "a").err.decode().splitlines()

    assert told[0].startswith(f"a: {state} ")
    assert gaia("wait", "a", "--timeout", "0").lines[0] == f"a: {state}"
    assert json.loads(gaia("report", "a", "--json").out)["state"] == state.partition(":")[0]
    is_stopped = state in ("crashed", "interrupted", "error")
    assert ("`gaia-sessions resume a` says how to resume it, or why it cannot be resumed" in told) == is_stopped
    assert ("`gaia-sessions pending` shows its question, and how to answer" in told) == (state == "waiting")
    assert (told[-1] == "  [gaia-sessions: resume a]") == (not is_stopped and state != "working")

    if is_stopped:
        long_ago = {**keys["runs"][0], "started_at": AGO, "ended_at": AGO}
        put("a", idle=timedelta(hours=3), **{**keys, "runs": [long_ago]})
        _, *told = gaia("report", "a").err.decode().splitlines()
        assert told == ["to make it resumable again, type: gaia-sessions update a"]


@table(
    ("told", "keys"),
    [
        ("crashed 3 hours ago", {"phase": "investigating", "runs": [ended("lost", ended_at=AGO)]}),
        ("waiting for 3 hours", {"phase": "approval", "runs": [ended("stopped", ended_at=AGO)]}),
        ("paused for 3 hours", {"phase": "planning", "runs": [ended("stopped", ended_at=AGO)]}),
        ("quiet for 3 hours; 4 hours in all", {"phase": "executing", "runs": [{**AT_WORK, "started_at": AGO}]}),
    ],
)
def test_report_shows_a_total_duration_for_quiet_work_but_not_for_stopped_work(
    gaia: Gaia, put: Gaia, told: str, keys: dict[str, Any]
) -> None:
    put("a", created_at=LONG_AGO, last_updated=AGO, **keys)

    [head] = [line for line in gaia("report", "a").err.decode().splitlines() if line.startswith("a: ")]

    assert head == f"a: {told}"


def test_report_and_wait_exit_with_3_for_a_missing_session(gaia: Gaia) -> None:
    assert [gaia("report", "agent-404").code, gaia("wait", "agent-404").code] == [3, 3]


def test_report_on_a_terminal_prints_the_state_above_the_answer(terminal: Gaia, put: Gaia) -> None:
    put("a", phase="failed", last_error={"message": "API Error: 400", "timestamp": WHEN}, error_count=1)

    assert terminal("report", "a").lines == [
        "a: failed 1 minute ago; 0 seconds in all",
        "",
        "API Error: 400",
        "",
        "start new work: this session has ended",
    ]


def test_wait_prints_all_lines_of_each_answer(gaia: Gaia, put: Gaia) -> None:
    put("a", phase="completed", runs=[ended("stopped", last_message="# Plan\n\n\tone\n")])
    put("b", phase="failed", last_error={"message": "no\nway", "timestamp": WHEN}, error_count=1)

    assert gaia("wait", "a", "b").all == (11, "a: completed\n  # Plan\n\n      one\nb: failed\n  no\n  way\n", "")


def test_wait_warns_at_once_of_missing_sessions_and_sessions_without_an_agent(put: Gaia, root: str) -> None:
    put("agent-one")
    with Fork("wait", "agent-one", "agent-two", "--timeout", "60") as waiting:
        until(lambda: waiting.err.count(b"\n") == 4)
        assert waiting.poll() is None
        told = waiting.err.decode().splitlines(keepends=True)

    assert told == [
        "Note: no agent was started for agent-one, so only a command can end this session\n",
        "Hint: when the work is done, type `gaia-sessions finalize agent-one completed`\n",
        f"Note: no session 'agent-two' in {root}\n",
        "Hint: `gaia-sessions list` shows the existing sessions\n",
    ]


@pytest.mark.parametrize("place", ["files", "server"])
def test_report_output_prints_the_stored_output_of_the_latest_command_as_it_is(
    root: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Earlier commands and later sends do not count."""
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root if place == "files" else empty_url())
    asks = "echo '[gaia-sessions: approval] may I?'"
    assert forked("run", "--id", "work", "--", "sh", "-c", f"echo earlier; {asks}").code == 0
    assert forked("run", "work", "--", "sh", "-c", rf"printf '\377\000\033[31m\n'; {asks}").code == 0
    assert forked("send", "work", "hello", "--", "cat").code == 0

    printed = forked("report", "work", "--output")
    assert (printed.code, printed.out, printed.err) == (0, b"\xff\0\x1b[31m\n[gaia-sessions: approval] may I?\n", b"")


@table("words", [["--json"], ["--verbose"]])
def test_report_output_is_for_the_output_alone(gaia: Gaia, put: Gaia, words: list[str]) -> None:
    put("a")
    ended = gaia("report", "a", "--output", *words)
    assert (ended.code, ended.out, b"--output cannot be combined" in ended.err) == (2, b"", True)


def test_report_output_without_a_run_of_a_command_says_so(gaia: Gaia, put: Gaia) -> None:
    put("a", runs=[ended("stopped", last_message="an answer")])
    said = "session 'a' has no run of a command, so no output is stored"
    assert gaia("report", "a", "--output").refusal == (4, said, "`gaia-sessions report a` prints its result")
    assert gaia("report", "nobody", "--output").code == 3
