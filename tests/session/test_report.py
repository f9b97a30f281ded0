"""The report on a session: the same keys for every end, the status, the result and the error."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.errors import well_formed
from gaia_sessions.jsonio.strict import dump_line, loads
from gaia_sessions.session.report import Findings, Report, report
from gaia_sessions.session.schema import ENDS, INTERRUPTED
from tests.records import START, WHEN, record_with
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.report import RecentMessage
    from gaia_sessions.session.schema import Record

LATER = START + timedelta(seconds=90.7)
AT_WORK: dict[str, Any] = {"run": 1, "host": "claude-code", "started_at": WHEN}
STOPPED: dict[str, Any] = {**AT_WORK, "ended_at": WHEN, "end": "stopped", "last_message": "42."}


def said(content: str, role: str = "assistant", tool: str | None = None) -> RecentMessage:
    return {"role": role, "content": content, "tool_name": tool, "tool_call_id": "call_1" if tool else None}


def reported(record: Record, *messages: RecentMessage, **findings: Any) -> Report:
    return report(record, Findings(messages, **findings), LATER, None)


def ended(end: str, **keys: Any) -> dict[str, Any]:
    return {**AT_WORK, "ended_at": WHEN, "end": end, **keys}


def test_l11_a_success_report_has_the_result_and_the_tokens() -> None:
    record = record_with(
        STOPPED, phase="completed", charged_tokens=1200, todos=[{"description": "a", "status": "pending"}]
    )

    found = reported(record, said("Do it.", "user"), said("42 quokkas."))

    assert found == {
        "schema": 1,
        "status": "success",
        "agent_id": "agent-1",
        "task_id": found["task_id"],
        "phase": "completed",
        "result": "42 quokkas.",
        "partial": None,
        "error": None,
        "note": None,
        "timeout_secs": None,
        "hard_timeout_secs": None,
        "exit_code": None,
        "elapsed_secs": 0,
        "tokens": 1200,
        "max_tokens": None,
        "limit_reached": False,
        "iterations": None,
        "todos": [{"description": "a", "status": "pending"}],
        "open_todos": 1,
        "reminders": 0,
        "answers": [],
        "recent_messages": [said("Do it.", "user"), said("42 quokkas.")],
    }


def test_l12_an_error_report_has_all_documented_keys_and_the_recent_messages() -> None:
    run = ended("failed", detail="API Error: 400")
    record = record_with(
        run, phase="failed", last_error={"message": "API Error: 400", "timestamp": WHEN}, error_count=1
    )

    found = reported(record, *(said(f"Step {number}. {'x' * 900}") for number in range(9)))

    assert (found["status"], found["result"], found["error"]) == ("error", None, "API Error: 400")
    assert found["note"] == "Sub-agent did not finish the task. Use partial results below."
    assert {"status", "task_id", "error", "note", "timeout_secs", "tokens", "todos", "recent_messages"} <= set(found)
    assert [message["content"][:7] for message in found["recent_messages"]] == [
        f"Step {number}." for number in range(3, 9)
    ]
    assert {len(message["content"]) for message in found["recent_messages"]} == {800}


OF_COMMAND: dict[str, Any] = {
    "run": 1, "wrapper": {"pid": 7}, "started_at": WHEN, "timeout_secs": 1.5, "hard_timeout_secs": 3,
}  # fmt: skip
TIMED_OUT: dict[str, Any] = {**OF_COMMAND, "ended_at": WHEN, "end": "failed", "detail": "timeout", "exit_code": 143}
SOFT = "Sub-agent timed out after 1.5 seconds, and ended within the grace period"
CLAIMED: dict[str, Any] = {"run": 2, "host": "codex", "claimed_at": "2026-01-08T18:01:00Z"}
MARK: Any = {"cancellation": {"reason": "enough"}}


@table(
    ("record", "findings", "status", "error"),
    [
        (record_with(TIMED_OUT, phase="failed"), {}, "timeout", SOFT),
        (record_with({**TIMED_OUT, "exit_code": 0}, phase="failed"), {}, "timeout", SOFT),
        (record_with(TIMED_OUT, phase="approval"), {}, "timeout", SOFT),
        (record_with({**TIMED_OUT, "exit_code": 137}), {}, "timeout", "Sub-agent hard timed out after 3 seconds"),
        (record_with(TIMED_OUT, phase="failed"), MARK, "timeout", SOFT),
        (record_with(TIMED_OUT, phase="abandoned"), MARK, "cancelled", "enough"),
        (record_with(TIMED_OUT, phase="completed"), {}, "success", None),
        (record_with(TIMED_OUT, CLAIMED, phase="planning"), {}, "running", None),
        (record_with(TIMED_OUT, {**OF_COMMAND, "run": 2}, phase="executing"), {}, "running", None),
        (record_with({**TIMED_OUT, "detail": "exit code 3", "exit_code": 3}), {}, "error", "exit code 3"),
        (
            record_with({**TIMED_OUT, "detail": "max_tokens"}, max_tokens=4000, charged_tokens=4000),
            {},
            "error",
            "Sub-agent used all of its 4,000 tokens",
        ),
        (
            record_with({**TIMED_OUT, "detail": "max_tokens"}, max_tokens=4000, charged_tokens=1000),
            {},
            "error",
            "Sub-agent and its own sub-agents used all of its 4,000 tokens",
        ),
        (record_with({**ended("failed", detail="timeout")}), {}, "error", "timeout"),
    ],
)
def test_the_report_names_the_limit_that_ended_a_command_until_something_newer_counts(
    record: Record, findings: Any, status: str, error: str | None
) -> None:
    found = reported(record, **findings)
    assert (found["status"], found["error"]) == (status, error)
    assert found["limit_reached"] is (record.get("charged_tokens", 0) == 4000)


def test_l14_l15_a_report_has_both_limits_and_the_exit_code_of_the_latest_run() -> None:
    found = reported(record_with(TIMED_OUT, phase="failed"))
    assert (found["timeout_secs"], found["hard_timeout_secs"], found["exit_code"]) == (1.5, 3, 143)


def test_every_report_has_the_same_keys() -> None:
    records = [
        record_with(TIMED_OUT),
        record_with(),
        record_with(AT_WORK),
        *(record_with(ended(end)) for end in ENDS),
        *(record_with(STOPPED, phase=phase) for phase in ("completed", "failed", "abandoned", "approval")),
    ]
    cancellations: list[Cancellation | None] = [None, {}, {"reason": "enough"}]

    found = [reported(record, cancellation=why) for record in records for why in cancellations]

    assert {tuple(one) for one in found} == {
        tuple(key for key in Report.__annotations__ if not key.startswith(("state", "root_id", "trace_id")))
    }
    assert {one["status"] for one in found} == {"success", "error", "timeout", "cancelled", "running"}
    for one in found:
        is_unfinished = one["status"] in ("error", "timeout", "cancelled")
        assert (one["error"] is not None, one["note"] is not None) == (is_unfinished, is_unfinished)
        assert one["result"] is None or one["status"] == "success"


STATUSES = [
    (record_with(), "running"),
    (record_with(AT_WORK), "running"),
    (record_with({**AT_WORK, "end": "stopped"}), "running"),
    (record_with(STOPPED, AT_WORK | {"run": 2}), "running"),
    (record_with(STOPPED, {"run": 2, "claimed_at": WHEN}), "running"),
    (record_with(STOPPED, {"run": 2, "claimed_at": "2026-01-08T17:00:00.000000Z"}), "success"),
    (record_with(STOPPED, {"run": 2, "claimed_at": WHEN, "ended_at": WHEN, "end": "denied"}), "success"),
    (record_with(ended("failed"), {"run": 2, "claimed_at": WHEN, "ended_at": WHEN, "end": "denied"}), "error"),
    (record_with(STOPPED, phase="approval"), "success"),
    (record_with(ended("returned"), phase="executing"), "success"),
    (record_with(ended("killed", interruption=INTERRUPTED)), "error"),
    (record_with(ended("lost")), "error"),
    (record_with(STOPPED, ended("denied", run=2)), "success"),
    (record_with(ended("failed"), ended("denied", run=2), ended("denied", run=3)), "error"),
    (record_with(ended("denied")), "error"),
    (record_with(AT_WORK, phase="completed"), "success"),
    (record_with(phase="failed"), "error"),
    (record_with(phase="abandoned"), "error"),
]


@table(("record", "status"), STATUSES)
def test_the_latest_run_that_began_decides_the_status_until_the_session_is_final(record: Record, status: str) -> None:
    assert reported(record)["status"] == status


CANCELLED = [
    (record_with(), "cancelled"),
    (record_with(AT_WORK), "cancelled"),
    (record_with(STOPPED, phase="approval"), "cancelled"),
    (record_with(STOPPED, phase="abandoned"), "cancelled"),
    (record_with(STOPPED, phase="completed"), "success"),
    (record_with(phase="failed"), "error"),
]


@table(("record", "status"), CANCELLED)
def test_l21_a_cancelled_session_is_reported_as_cancelled_unless_it_had_an_outcome_before(
    record: Record, status: str
) -> None:
    assert reported(record, cancellation={})["status"] == status


def test_l17_a_cancelled_session_still_has_its_todos_and_messages() -> None:
    todos = [{"description": "a", "status": "in_progress"}]

    found = reported(record_with(AT_WORK, todos=todos), said("Half of it."), cancellation={"reason": "enough"})

    assert (found["status"], found["error"], found["todos"]) == ("cancelled", "enough", todos)
    assert found["recent_messages"] == [said("Half of it.")]


def test_a_run_whose_host_is_gone_is_reported_as_an_error() -> None:
    found = reported(record_with(AT_WORK), dead_runs=[1])

    assert (found["status"], found["error"]) == (
        "error",
        "Claude Code crashed or was closed while the agent was at work",
    )


RESULTS = [
    (record_with(STOPPED, phase="completed", summary="Stated."), [said("Said.")], "Stated."),
    (record_with(STOPPED, phase="completed"), [said("Said."), said("{}", tool="Bash")], "Said."),
    (record_with(STOPPED, phase="completed"), [said("Go on.", "user")], "42."),
    (record_with(STOPPED, {"run": 2, "claimed_at": WHEN, "ended_at": WHEN, "end": "denied"}), [], "42."),
    (record_with(phase="completed"), [], None),
]


@table(("record", "messages", "result"), RESULTS)
def test_the_result_is_the_stated_summary_or_else_the_last_message(
    record: Record, messages: list[RecentMessage], result: str | None
) -> None:
    assert reported(record, *messages)["result"] == result


PARTIAL = [
    (record_with(ended("failed", detail="API Error: 400")), [said("Half."), said("API Error: 400")], "Half."),
    (record_with(ended("failed", detail="API Error: 400", last_message="API Error: 400")), [], None),
    (record_with(ended("lost", last_message="# Half\n\n- one")), [said("Go on.", "user")], "# Half\n\n- one"),
    (record_with(ended("lost")), [said("x" * 2000)], "x" * 2000),
    (record_with(AT_WORK), [said("Half.")], "Half."),
    (record_with(STOPPED), [said("Half.")], None),
]


@table(("record", "messages", "partial"), PARTIAL)
def test_the_partial_result_is_the_last_message_that_is_not_the_error(
    record: Record, messages: list[RecentMessage], partial: str | None
) -> None:
    assert reported(record, *messages)["partial"] == partial


ERRORS = [
    (record_with(ended("killed", detail="stopped by the main agent"), phase="abandoned"), "stopped by the main agent"),
    (record_with(phase="abandoned", summary="Not needed."), "Not needed."),
    (record_with(ended("lost", host="gemini-cli")), "Gemini CLI crashed or was closed while the agent was at work"),
    (record_with(phase="abandoned"), "abandoned"),
]


@table(("record", "error"), ERRORS)
def test_an_error_gives_the_most_specific_known_reason(record: Record, error: str) -> None:
    assert reported(record)["error"] == error


def test_l2_each_task_has_its_own_id_that_does_not_change() -> None:
    runs = [{"run": number, "ended_at": WHEN, "end": "stopped"} for number in (1, 2)]
    names = ("agent-1", "agent-2")
    records: list[Record] = [{**record_with(*runs[:count]), "agent_id": name} for count in (1, 2) for name in names]

    ids = [reported(record)["task_id"] for record in records]

    assert len(set(ids)) == len(records)
    assert all(
        re.fullmatch(r"sub-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", str(one))
        for one in ids
    )
    assert [reported({**record, "phase": "approval"})["task_id"] for record in records] == ids
    assert reported(record_with())["task_id"] is None


@table("letter", ["é", "🙂", "👩‍👩‍👧", "\u0301"])
def test_l23_a_message_is_cut_between_characters(letter: str) -> None:
    found = reported(record_with(), said(letter * 801))

    [message] = found["recent_messages"]
    assert (len(message["content"]), well_formed(message["content"])) == (800, message["content"])
    assert loads(dump_line(found)) == found
