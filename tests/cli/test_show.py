"""``show``: one session for a person."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.cli.render.words import local_time
from gaia_sessions.session.clock import format_time
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]


COUNT_READINGS = """
import sys
opened = []
sys.addaudithook(lambda event, words: opened.append(words[0]) if event == "open" else None)
from gaia_sessions.cli.main import main
main(sys.argv[1:])
print(opened.count("state.json"))
"""


@pytest.mark.parametrize(
    "words", [["show", "child"], ["show", "child", "--json"], ["show", "parent"], ["list"], ["tree"]]
)
def test_each_session_is_read_once_where_a_session_and_its_parent_are_shown(words: list[str], root: str) -> None:
    gaia_sessions.create_session(agent_id="parent", root=root)
    gaia_sessions.create_session(agent_id="child", parent_id="parent", root=root)

    command = [sys.executable, "-c", COUNT_READINGS, *words, "--root", root]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)

    assert completed.stdout.splitlines()[-1] == "2"


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


def test_what_its_runs_cost(gaia: Gaia, put: Gaia) -> None:
    tokens = {"input_tokens": 1003, "output_tokens": 103, "cache_read_tokens": 3003, "cache_creation_tokens": 23}
    whole = {**tokens, "total_tokens": 4132, "tool_uses": 2}
    put(
        "agent-1",
        usage=whole,
        runs=[
            {"run": 1, "model": "m-1", "worktree": {"path": "/w", "branch": "b"}, "consumed": whole},
            {"run": 2, "worktree": {"branch": "b"}, "usage": {"total_tokens": 9, "tool_uses": 1, "duration_ms": 1250}},
            {"run": 3, "consumed": {}, "usage": tokens},
        ],
    )
    lines = gaia("show", "agent-1").all[1].splitlines()

    kinds = "input 1,003, output 103, cache read 3,003, cache written 23"
    assert lines[5] == f"  usage: 4,132 tokens ({kinds}), 2 tool uses"
    assert [line.partition("not ended")[2] for line in lines[-3:]] == [
        f", model m-1, worktree /w, used 4,132 tokens ({kinds}), 2 tool uses",
        ", worktree b, its host reported 9 tokens, 1 tool use, 1.2 s",
        f", used nothing, its host reported tokens: {kinds}",
    ]


def test_as_json_it_is_the_record_and_the_policys_answer(gaia: Gaia, put: Gaia) -> None:
    assert gaia("show", "a", "--json").code == 3
    document = put("a")
    until = format_time(datetime.fromisoformat(document["last_updated"]) + timedelta(minutes=30))
    answer = {"should_resume": True, "reason": "session_resumable", "until": until}
    assert gaia("show", "a", "--json").json == {
        **document,
        "resume": answer,
        "state": "waiting",
        "state_since": document["created_at"],
    }


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


def family(put: Gaia) -> None:
    """A workflow that is gone above a middle one, which has children, the latest put first."""
    start = utc_now() - timedelta(hours=1)
    above = {"root_id": "gone", "depth": 2, "parent_id": "middle"}
    put("middle", agent_name="workflow", purpose="Review", parent_id="gone", phase="executing")
    for number in (2, 1):
        put(f"child-{number}", created_at=format_time(start + timedelta(seconds=number)), **above)
    put("grandchild", parent_id="child-1")


def test_parent_and_children_are_named_with_their_agents_and_phases(gaia: Gaia, put: Gaia) -> None:
    family(put)
    lines = {agent_id: gaia("show", agent_id).out.decode().splitlines() for agent_id in ("middle", "child-1")}
    assert lines["middle"][-5:] == [
        "parent",
        "  gone, gone",
        "children",
        "  child-1, tester: test, approval",
        "  child-2, tester: test, approval",
    ]
    assert lines["child-1"][-4:] == [
        "parent",
        "  middle, workflow: Review, executing",
        "children",
        "  grandchild, tester: test, approval",
    ]


def test_as_json_it_has_the_ids_of_its_children_the_oldest_first(gaia: Gaia, put: Gaia) -> None:
    family(put)
    assert gaia("show", "middle", "--json").json["children"] == ["child-1", "child-2"]
    assert "children" not in gaia("show", "grandchild", "--json").json


def test_a_parent_that_cannot_be_read_or_exist_is_named_by_its_id_alone(gaia: Gaia, put: Gaia, spoil: Gaia) -> None:
    spoil("torn")
    put("newer", schema=2, phase="dreaming")
    for parent_id, shown in [("torn", "torn, corrupt"), ("newer", "newer, newer"), ("\x1b[2J/..", "[2J/.., gone")]:
        put("a", parent_id=parent_id)
        assert gaia("show", "a").out.decode().splitlines()[-2:] == ["parent", f"  {shown}"]


def test_a_session_below_itself_is_shown_as_both(gaia: Gaia, put: Gaia) -> None:
    put("a", parent_id="a")
    line = "  a, tester: test, approval"
    assert gaia("show", "a").out.decode().splitlines()[-4:] == ["parent", line, "children", line]


def test_of_many_children_a_person_is_shown_the_newest(gaia: Gaia, put: Gaia) -> None:
    put("a")
    moment = utc_now()
    for number in range(60):
        put(f"c-{number:02}", created_at=format_time(moment + timedelta(seconds=number)), parent_id="a")
    lines = gaia("show", "a").out.decode().splitlines()
    assert lines[-51:-49] == [
        "  10 earlier; for the IDs of all: gaia-sessions show a --json",
        "  c-10, tester: test, approval",
    ]
    assert gaia("show", "a", "--json").json["children"] == [f"c-{number:02}" for number in range(60)]
    assert gaia_sessions.Sessions().children("c-59") == []
    assert [line["agent_id"] for line in gaia_sessions.Sessions().children("a")][-1] == "c-59"


def test_on_a_terminal_parent_and_children_have_lines_too(terminal: Gaia, put: Gaia) -> None:
    family(put)
    shown = terminal("show", "middle", NO_COLOR="1", TERM="dumb").out.decode().splitlines()
    assert [line.rstrip() for line in shown][-5:] == [
        "parent",
        "  gone, gone",
        "children",
        "  child-1, tester: test, approval",
        "  child-2, tester: test, approval",
    ]
