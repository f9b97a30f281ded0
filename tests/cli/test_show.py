"""``show``: one session as text and as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

import gaia_sessions
from gaia_sessions.cli.render.words import local_time
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.trace import trace_of
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


COUNT_READINGS = """
import json, os, sys
from gaia_sessions.cli.main import main
opened = []
sys.addaudithook(lambda event, words: opened.append(words[0]) if event == "open" else None)
sys.stdout = open(os.devnull, "w")
for words in json.loads(sys.argv[1]):
    opened.clear()
    main(words)
    print(opened.count("state.json"), file=sys.__stdout__)
"""


def test_show_list_and_tree_read_each_record_once(root: str) -> None:
    gaia_sessions.create_session(agent_id="parent", root=root)
    gaia_sessions.create_session(agent_id="child", parent_id="parent", root=root)

    lines = [["show", "child"], ["show", "child", "--json"], ["show", "parent"], ["list"], ["tree"]]
    command = [sys.executable, "-c", COUNT_READINGS, json.dumps(lines)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)

    assert completed.stdout.split() == ["2"] * len(lines)


def minute(text: str) -> str:
    return local_time(text)[:16]


def facts_of(text: str) -> dict[str, str]:
    """The shown facts by name, each joined into one line."""
    found = (re.fullmatch(r"([a-z]+) +(.+)", line) for line in text.splitlines())
    return {match[1]: match[2] for match in found if match}


def section(text: str, heading: str) -> list[str]:
    """The lines below a heading."""
    return text.partition(f"\n{heading}\n")[2].partition("\n\n")[0].splitlines()


def test_show_prints_all_parts_of_a_session_as_text(gaia: Gaia, put: Gaia) -> None:
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
        error_count=2,
        last_error={"message": "no such\nhost", "timestamp": failed},
        runs=[
            {
                "run": 4,
                "host": "h",
                "started_at": begun,
                "ended_at": moved,
                "end": "returned",
                "detail": "no stop came",
            },
            {
                "run": 5,
                "started_at": moved,
                "ended_at": failed,
                "end": "stopped",
                "last_message": "I need\n  it:\n\nok?",
            },
        ],
        runs_dropped=3,
        todos=[{"description": "read", "status": "completed"}],
        skills={"terraform": 300},
        charged_tokens=1200,
        max_tokens=64000,
        revision=7,
    )
    assert gaia("show", "agent-123").all == (
        0,
        f"""\
terraform-architect: approval_workflow

state      waiting, since {minute(failed)}, 5 minutes ago
to answer  `gaia-sessions approve agent-123`, or `gaia-sessions deny agent-123`
error      the last of 2, 5 minutes ago: no such
           host
resumable  for 25 minutes

last message
  I need
    it:

  ok?

todos
  1  completed    read

3 older runs were dropped; how they ended: gaia-sessions events agent-123
run  end        began             took
  4  cut short  {minute(begun)}  1h
     no stop came
  5  ended      {minute(moved)}  15m

metadata
  task_id    T001

tokens     1,500 of 64,000 tokens, 300 for skills
skills     terraform (300)
phase      approval
created    {minute(begun)}, 1 hour ago
active     {minute(failed)}, 5 minutes ago
id         agent-123
""",
        "",
    )


def test_show_prints_technical_details_only_with_verbose(gaia: Gaia, put: Gaia) -> None:
    moment = ago(minutes=5)
    runs = [
        {"run": 1, "host_session_id": "h-1", "last_message": "first", "consumed": {"output_tokens": 7}},
        {"run": 2, "transcript_path": "/t.jsonl", "model": "m-1", "last_message": "second"},
    ]
    moves = [{"from_phase": "initializing", "to_phase": "approval", "timestamp": moment}]
    put("a", runs=runs, history=moves, history_dropped=2, revision=7, metadata={"x": {"y": 1}})

    for_people, whole = (gaia("show", "a", *words).out.decode() for words in ([], ["--verbose"]))

    for text in ("h-1", "/t.jsonl", "m-1", "first", '{"output_tokens": 7}', '{"y": 1}', "revision         7"):
        assert (text in for_people, text in whole) == (False, True), text
    assert whole.count("second") == 1
    [created, dropped, moved] = whole.partition("\nphases\n")[2].splitlines()[:3]
    assert created.endswith("  initializing")
    assert (dropped, moved) == (
        "  2 older phase changes were dropped",
        f"  {local_time(moment)}  initializing → approval",
    )


def test_control_characters_in_key_names_do_not_reach_the_terminal(gaia: Gaia, put: Gaia) -> None:
    key = "\x1b]0;mine\x07\x1b[2Jbold\u202e\nkey" + "y" * 300
    put("a", runs=[{"run": 1, key: {key: key}}], metadata={key: [key]}, **{key: key})

    out = gaia("show", "a", "--verbose").out.decode()

    assert not {"\x1b", "\x07", "\u202e"} & {*out}
    assert out.count("  ]0;mine  [2Jbold key".replace("  [", " [")) == 3
    assert key not in out


def test_show_without_an_id_shows_the_latest_session(gaia: Gaia, put: Gaia) -> None:
    assert gaia("show").code == 3
    put("old", idle=timedelta(hours=2))
    put("new")
    assert facts_of(gaia("show").out.decode())["id"] == "new"


def test_show_of_an_ended_session_has_its_duration_and_summary(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=2))
    gaia("finalize", "a", "completed", "--summary", "applied " * 100)
    facts = facts_of(gaia("show", "a").out.decode())
    assert (facts["state"][:10], facts["summary"], facts["lasted"]) == (
        "completed,",
        ("applied " * 100).strip(),
        "2 hours",
    )
    assert "resumable" not in facts


def test_the_tokens_of_the_runs_add_up_to_one_figure_and_uncounted_tokens_are_omitted(gaia: Gaia, put: Gaia) -> None:
    tokens = {"input_tokens": 1003, "output_tokens": 103, "cache_read_tokens": 3003, "cache_creation_tokens": 23}
    whole = {**tokens, "total_tokens": 4132, "tool_uses": 2}
    put(
        "agent-1",
        usage=whole,
        runs=[{"run": 1, "consumed": whole}, {"run": 2, "usage": {"total_tokens": 9}}, {"run": 3, "consumed": {}}],
    )
    put("agent-2", max_tokens=10, runs=[{"run": 1, "usage": {"total_tokens": 9}}])

    counted, uncounted = (gaia("show", agent_id).out.decode() for agent_id in ("agent-1", "agent-2"))

    assert (facts_of(counted)["tokens"], "4,132" in counted) == ("1,129", False)
    assert [line.split() for line in section(counted, "run  end             tokens")] == [
        ["1", "not", "started", "1,129"],
        ["2", "not", "started"],
        ["3", "not", "started"],
    ]
    assert "token" not in uncounted


def test_a_clock_that_was_set_back_makes_no_duration_negative(gaia: Gaia, put: Gaia) -> None:
    began, ended = ago(minutes=1), ago(minutes=90)
    runs = [{"run": 1, "started_at": began, "ended_at": ended, "end": "stopped", "last_message": "42"}]
    put("a", created_at=began, last_updated=ended, runs=runs)
    put("b", created_at=began, last_updated=ended, finalized_at=ended, phase="completed", resume_ready=False, runs=runs)

    for agent_id in ("a", "b"):
        assert section(gaia("show", agent_id).out.decode(), "run  end    began             took") == [
            f"  1  ended  {minute(began)}  0s"
        ]
        told = [
            gaia(*words, agent_id).all
            for words in (["show"], ["report"], ["usage"], ["events"], ["report", "--verbose"])
        ]
        assert not [line for text in told for line in f"{text}".split() if line.startswith("-") and line[1:2].isdigit()]
        assert gaia("usage", agent_id, "--json").json["elapsed_secs"] >= 0


RAN = {
    "started_at": "2026-01-08T18:05:30Z",
    "ended_at": "2026-01-08T18:08:30Z",
    "end": "stopped",
    "detail": "said so in its last line",
}
HOW = "to answer  `gaia-sessions approve a`, or `gaia-sessions deny a`"


@table(
    ("changed", "shown"),
    [
        ({}, f"question   may I?\n{HOW}\nresumable  for 29 minutes\n\nlast message\n  It is\n    clear.\n\n"),
        ({"phase": "executing"}, "question   may I?\nresumable  no: "),
        ({"phase": "completed"}, "\n\nlast message\n  It is\n    clear.\n  [gaia-sessions: approval] may I?\n\n"),
        ({"runs": [{"run": 1, "last_message": "May I?"}]}, "resumable  for 29 minutes\n\nlast message\n  May I?\n\n"),
    ],
)
def test_show_prints_the_question_before_the_last_message(
    gaia: Gaia, put: Gaia, changed: dict[str, Any], shown: str
) -> None:
    message = "It is\n  clear.\n[gaia-sessions: approval] may I?"
    runs = [{"run": 1, **RAN, "last_message": message}]
    put("a", idle=timedelta(seconds=70), **{"runs": runs, **changed})
    text = gaia("show", "a").out.decode()
    assert shown in text
    assert ("question" in text) == ("question" in shown)


def test_show_of_a_cancelled_session_does_not_say_how_to_answer_its_question(gaia: Gaia, put: Gaia) -> None:
    put("a", runs=[{"run": 1, **RAN, "last_message": "It is clear.\n[gaia-sessions: approval] may I?"}])
    assert HOW in gaia("show", "a").out.decode()
    gaia("cancel", "a")
    shown = gaia("show", "a").out.decode()
    assert "question   may I?" in shown
    assert "gaia-sessions approve" not in shown


def test_show_says_why_a_session_stopped_or_waits(gaia: Gaia, put: Gaia) -> None:
    run = {"run": 1, "started_at": "2026-01-08T18:05:30Z", "ended_at": "2026-01-08T18:08:30Z", "end": "stopped"}
    gone = {"reported": "failed", "last_message": "No quorum.\n[gaia-sessions: failed] two nodes are gone"}
    put("gave-up", phase="failed", runs=[{**run, "detail": "said so in its last line", **gone}])
    put("crashed", phase="investigating", runs=[{**run, "end": "lost", "detail": "no process 4711"}])
    here = describe(os.getpid())
    waiting: Any = {"run": 1, "host": "claude-code", "started_at": run["started_at"], "host_process": here}
    put("asks", phase="investigating", runs=[{**waiting, "waiting": {"since": run["started_at"], "for": "Bash"}}])

    shown = {agent_id: gaia("show", agent_id).out.decode() for agent_id in ("gave-up", "crashed", "asks")}
    told = {agent_id: facts_of(text) for agent_id, text in shown.items()}

    assert told["gave-up"]["why"] == "two nodes are gone"
    assert section(shown["gave-up"], "last message") == ["  No quorum."]
    assert told["crashed"]["why"] == "its client crashed or was closed while the agent was at work"
    assert told["asks"]["question"] == f"may it use Bash? Answer in Claude Code (process {os.getpid()})"


QUESTION = "May I?\tAnd if so, " + "once or twice, or what is \u8ac7\u8a71, then? " * 60 + "x" * 300 + "\x1b[31m end?"


@table("columns", [60, 80, 120])
def test_show_wraps_lines_to_the_terminal_and_never_cuts_the_question(
    terminal: Gaia, gaia: Gaia, put: Gaia, columns: int
) -> None:
    message = f"I looked:\n\n- one\n    indented\n- see: rm -rf {'/deep' * 40}\n[gaia-sessions: approval] {QUESTION}"
    put(
        "agent-20260108-180530-abc12345",
        agent_name="terraform-architect",
        purpose="close the open ports " * 9,
        last_error={"message": "API Error: 400 " + '{"type":"error"}' * 20, "timestamp": "2026-01-08T18:05:30Z"},
        error_count=1,
        metadata={"note": "long " * 60},
        todos=[{"description": "a thing to do " * 20, "status": "pending"}],
        runs=[
            {"run": 1, "started_at": "2026-01-08T18:05:30Z", "ended_at": "2026-01-08T18:08:30Z", "end": "stopped"}
            | {"detail": "said so in its last line", "last_message": message, "worktree": {"path": f"/w{columns}"}}
        ],
    )
    for number in range(3):
        put(f"agent-20260108-180530-abc1234{number}", parent_id="agent-20260108-180530-abc12345", purpose="p " * 60)

    for words in (["show", "abc12345"], ["show", "abc12345", "--verbose"]):
        shown, piped = terminal(*words, columns=columns).out.decode(), gaia(*words).out.decode()
        assert [line for line in shown.splitlines() if cell_len(line) > columns and " " in line.strip()] == []
        assert "".join(shown.split()) == "".join(piped.split())
        assert "".join(QUESTION.replace("\x1b", "").split()) in "".join(shown.split())
        assert ("\x1b" in shown, "\n      indented\n" in piped) == (False, True)


def test_show_json_is_the_record_with_the_resume_decision_and_state(gaia: Gaia, put: Gaia) -> None:
    assert gaia("show", "a", "--json").code == 3
    document = put("a")
    until = format_time(datetime.fromisoformat(document["last_updated"]) + timedelta(minutes=30))
    answer = {"should_resume": True, "reason": "session_resumable", "until": until}
    assert gaia("show", "a", "--json").json == {
        **document,
        "resume": answer,
        "state": "waiting",
        "state_since": document["created_at"],
        **trace_of("a"),
    }


def test_show_prints_a_session_of_a_newer_schema_that_it_understands(gaia: Gaia, put: Gaia) -> None:
    put("new", schema=2)
    assert gaia("show", "new").out.startswith(b"tester: test\n")


def test_show_prints_a_newer_schema_that_it_does_not_understand_only_as_json(gaia: Gaia, put: Gaia) -> None:
    document = put("new", schema=2, phase="dreaming")
    ended = gaia("show", "new")
    assert (ended.code, ended.out) == (4, b"")
    assert ended.err == (
        b"Error: session 'new' was written by a newer version (schema 2, not 1) and can only be shown\n"
        b"Hint: install a newer version of gaia-sessions\n"
    )
    assert gaia("show", "new", "--json").json == document


def test_show_exits_with_3_for_a_missing_session_and_6_for_a_corrupt_one(gaia: Gaia, spoil: Gaia, tree: Gaia) -> None:
    spoil("torn")
    before = tree()
    assert (gaia("show", "nobody").code, gaia("show", "torn").code) == (3, 6)
    assert tree() == before


def family(put: Gaia) -> None:
    """A missing parent above a workflow above two children, of which one has a child; the latest is written first."""
    start = utc_now() - timedelta(hours=1)
    above = {"root_id": "gone", "depth": 2, "parent_id": "middle"}
    put("middle", agent_name="workflow", purpose="Review", parent_id="gone", phase="executing")
    for number in (2, 1):
        put(f"child-{number}", created_at=format_time(start + timedelta(seconds=number)), **above)
    put("grandchild", parent_id="child-1")


def test_parent_and_children_are_named_with_their_states_and_agents(gaia: Gaia, put: Gaia) -> None:
    family(put)
    middle, child = (gaia("show", agent_id).out.decode() for agent_id in ("middle", "child-1"))
    assert facts_of(middle)["parent"] == "gone  gone"
    assert section(middle, "children") == ["  child-1  waiting  tester: test", "  child-2  waiting  tester: test"]
    assert facts_of(child)["parent"] == "middle  open: executing  workflow: Review"
    assert section(child, "children") == ["  grandchild  waiting  tester: test"]


def test_show_json_has_the_ids_of_the_children_oldest_first(gaia: Gaia, put: Gaia) -> None:
    family(put)
    assert gaia("show", "middle", "--json").json["children"] == ["child-1", "child-2"]
    assert "children" not in gaia("show", "grandchild", "--json").json


def test_an_unreadable_or_missing_parent_is_named_by_its_id_and_state(gaia: Gaia, put: Gaia, spoil: Gaia) -> None:
    spoil("torn")
    put("newer", schema=2, phase="dreaming")
    for parent_id, shown in [("torn", "torn  corrupt"), ("newer", "newer  newer"), ("no-such", "no-such  gone")]:
        put("a", parent_id=parent_id)
        assert facts_of(gaia("show", "a").out.decode())["parent"] == shown


def test_a_session_that_is_its_own_parent_is_shown_as_parent_and_child(gaia: Gaia, put: Gaia) -> None:
    put("a", parent_id="a")
    text, line = gaia("show", "a").out.decode(), "a  waiting  tester: test"
    assert (facts_of(text)["parent"], section(text, "children")) == (line, [f"  {line}"])


def test_show_prints_only_the_50_newest_children_and_json_has_all_ids(gaia: Gaia, put: Gaia) -> None:
    put("a")
    moment = utc_now()
    for number in range(60):
        put(f"c-{number:02}", created_at=format_time(moment + timedelta(seconds=number)), parent_id="a")
    first, second, *others = section(gaia("show", "a").out.decode(), "children")
    assert first == "  10 older not shown; all IDs: gaia-sessions show a --json"
    assert (second, len(others)) == ("  c-10  waiting  tester: test", 49)
    assert gaia("show", "a", "--json").json["children"] == [f"c-{number:02}" for number in range(60)]
    assert gaia_sessions.Sessions().children("c-59") == []
    assert [line["agent_id"] for line in gaia_sessions.Sessions().children("a")][-1] == "c-59"
