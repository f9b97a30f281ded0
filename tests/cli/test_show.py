"""``show``: one session for a person."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.cli.render.words import local_time
from gaia_sessions.session.clock import format_time, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]


def test_a_whole_session_as_text(gaia: Gaia, put: Gaia) -> None:
    now = utc_now()
    begun, moved, failed = (format_time(now - timedelta(minutes=minutes)) for minutes in (90, 20, 5))
    put(
        "agent-123",
        agent_name="terraform-architect",
        purpose="approval_workflow",
        created_at=begun,
        last_updated=failed,
        metadata={"task_id": "T001", "tags": ["a", "b"]},
        history=[{"from_phase": "initializing", "to_phase": "approval", "timestamp": moved}],
        history_dropped=2,
        error_count=1,
        last_error={"message": "no such host", "timestamp": failed},
        runs=[
            {"run": 4, "host": "h", "started_at": begun, "ended_at": moved, "end": "stopped", "detail": "said"},
            {"run": 5, "last_message": "I need\nyour approval"},
        ],
        runs_dropped=3,
        revision=7,
    )
    assert gaia("show", "agent-123").all == (
        0,
        (
            "agent-123: terraform-architect, approval_workflow\n"
            "  phase: approval\n"
            "  resume: resumable for 25 min\n"
            f"  created: {local_time(begun)}, 1 hour ago\n"
            f"  last activity: {local_time(failed)}, 5 minutes ago\n"
            "  errors: 1, the last 5 minutes ago: no such host\n"
            "  metadata task_id: T001\n"
            '  metadata tags: ["a", "b"]\n'
            "  revision: 7\n"
            "phases\n"
            f"  {local_time(begun)}  initializing\n"
            "  …  2 earlier phase changes discarded\n"
            f"  {local_time(moved)}  initializing → approval\n"
            "runs\n"
            "  3 earlier runs discarded; for their ends: gaia-sessions events agent-123\n"
            f"  4, h, from {local_time(begun)}, stopped {local_time(moved)}, said\n"
            "  5, unknown host, start unknown, not ended, last message: I need your approval\n"
        ),
        "",
    )


def test_of_a_final_one_how_long_it_took_and_what_came_of_it(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=2))
    gaia("finalize", "a", "completed", "--summary", "applied")
    lines = gaia("show", "a").out.decode().splitlines()
    assert [line for line in lines if line.startswith(("  duration", "  summary", "  phase"))] == [
        "  phase: completed",
        "  duration: 2 hours",
        "  summary: applied",
    ]


def test_as_json_it_is_the_record_and_the_policys_answer(gaia: Gaia, put: Gaia) -> None:
    assert gaia("show", "a", "--json").code == 3
    document = put("a")
    until = format_time(datetime.fromisoformat(document["last_updated"]) + timedelta(minutes=30))
    answer = {"should_resume": True, "reason": "session_resumable", "until": until}
    assert gaia("show", "a", "--json").json == {**document, "resume": answer}


def test_a_newer_schema_it_understands_is_shown(gaia: Gaia, put: Gaia) -> None:
    put("new", schema=2)
    assert gaia("show", "new").out.startswith(b"new: tester, test\n")


def test_a_newer_schema_it_does_not_understand_is_only_shown_as_it_is(gaia: Gaia, put: Gaia) -> None:
    document = put("new", schema=2, phase="dreaming")
    ended = gaia("show", "new")
    assert (ended.code, ended.out) == (4, b"")
    assert ended.err == (
        b"Error: session 'new' has schema 2; this version writes 1 and can only show newer ones\n"
        b"Hint: update gaia-sessions\n"
    )
    assert gaia("show", "new", "--json").json == document


def test_a_missing_one_is_exit_code_3_and_a_corrupt_one_6(gaia: Gaia, spoil: Gaia, tree: Gaia) -> None:
    spoil("torn")
    before = tree()
    assert (gaia("show", "nobody").code, gaia("show", "torn").code) == (3, 6)
    assert tree() == before
