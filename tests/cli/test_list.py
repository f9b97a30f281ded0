"""``list``: its filters, its order, and what it shows in a pipe, on a terminal and in JSON; also ``tree``."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from gaia_sessions.session.clock import format_time
from gaia_sessions.session.state import STATES
from gaia_sessions.session.trace import trace_of
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Gaia


RUN = {"run": 1, "host": "claude-code", "host_session_id": "s", "started_at": "2026-01-08T18:05:30Z"}
SUMMARY = (
    "agent_id",
    "agent_name",
    "purpose",
    "phase",
    "status",
    "created_at",
    "last_updated",
    "resume_ready",
    "error_count",
    "resume",
    "running",
    "state",
    "state_since",
    "root_id",
    "trace_id",
)


def ids(ended: Any) -> list[str]:
    """The IDs in the output of ``list`` or ``tree --json``, in order."""
    if ended.out.startswith(b"["):
        return [line["agent_id"] for line in ended.json]
    assert (ended.code, ended.err) == (0, b"")
    return [line.split()[0] for line in ended.lines]


@pytest.fixture
def three(put: Gaia) -> dict[str, Any]:
    """Three sessions with different ages and phases, the oldest first."""
    minute, hour, day = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
    return {
        "c": put("c", idle=2 * day, agent_name="scribe", phase="completed", resume_ready=False),
        "a": put("a", idle=3 * hour, agent_name="scribe", phase="executing", resume_ready=False, error_count=2),
        "b": put("b", idle=5 * minute, agent_name="planner", phase="approval"),
    }


@table("words", [[], ["--active-only"], ["--agent", "x"], ["--limit", "3"], ["--since", "1h"]])
def test_list_of_a_missing_root_says_so_and_creates_nothing(
    gaia: Gaia, tree: Gaia, root: str, words: list[str]
) -> None:
    before = tree()
    assert gaia("list", *words).answer == [f"No sessions found: {root} does not exist"]
    assert gaia("--root", "/no/such", "list", *words).out == b"No sessions found: /no/such does not exist\n"
    assert gaia("list", "--json", *words).answer == ["[]"]
    assert tree() == before


@pytest.mark.usefixtures("three")
def test_list_prints_a_line_for_each_session(gaia: Gaia) -> None:
    code, out, err = gaia("list").all
    assert (code, [line.rstrip() for line in out.splitlines()], err) == (
        0,
        [
            "b  planner: test  waiting  5 minutes ago  resumable for 25 minutes",
            "a  scribe: test  open: executing  3 hours ago",
            "c  scribe: test  completed  2 days ago",
        ],
        "",
    )


def test_list_json_is_an_array_of_summaries(gaia: Gaia, three: dict[str, Any]) -> None:
    status = {"a": "active", "b": "active", "c": "final"}
    no = {"should_resume": False, "reason": "phase_not_resumable", "until": None}
    until = format_time(datetime.fromisoformat(three["b"]["last_updated"]) + timedelta(minutes=30))
    yes = {"should_resume": True, "reason": "session_resumable", "until": until}
    expected_keys = {
        name: {
            "status": status[name],
            "resume": yes if name == "b" else no,
            "running": False,
            "state": state,
            "state_since": three[name]["created_at"],
            **trace_of(name),
        }
        for name, state in {"a": "open", "b": "waiting", "c": "completed"}.items()
    }
    expected = [{key: {**three[name], **expected_keys[name]}[key] for key in SUMMARY} for name in ("b", "a", "c")]
    assert gaia("list", "--json").json == expected


def test_list_json_has_tokens_and_the_model_and_worktree_of_the_latest_run(gaia: Gaia, put: Gaia) -> None:
    worktree = {"path": "/w", "branch": "b"}
    latest = {"run": 2, "model": "m-2", "worktree": worktree, "consumed": {"total_tokens": 5}}
    put("a", usage={"total_tokens": 9}, runs=[{"run": 1, "model": "m-1"}, latest])
    put("b", runs=[{"run": 1}])

    found = {line["agent_id"]: line for line in gaia("list", "--json").json}

    figures = {"tokens": 9, "usage": {"total_tokens": 9}, "model": "m-2", "worktree": worktree}
    assert {key: found["a"][key] for key in found["a"].keys() - found["b"].keys()} == figures
    assert found["b"].keys().isdisjoint(figures)


@pytest.mark.usefixtures("three")
@table(
    ("words", "found"),
    [
        ([], ["b", "a", "c"]),
        (["--active-only"], ["b", "a"]),
        (["--agent", "scribe"], ["a", "c"]),
        (["--agent", "Scribe"], []),
        (["--agent", "scribe", "--active-only"], ["a"]),
        (["--phase", "approval"], ["b"]),
        (["--phase", "approval", "--phase", "completed"], ["b", "c"]),
        (["--limit", "2"], ["b", "a"]),
        (["--limit", "0"], []),
        (["--limit", "99"], ["b", "a", "c"]),
        (["--since", "4h"], ["b", "a"]),
        (["--since", "240m"], ["b", "a"]),
        (["--since", "1d"], ["b", "a"]),
        (["--since", "1w"], ["b", "a", "c"]),
        (["--since", "60s"], []),
        (["--until", "4h"], ["c"]),
        (["--since", "4h", "--until", "1h"], ["a"]),
        (["--since", "2000-01-01"], ["b", "a", "c"]),
        (["--until", "2000-01-01T10:00"], []),
        (["--since", "2000-01-01T10:00Z", "--until", "2000-01-02 10:00+02:00"], []),
    ],
)
def test_filters_select_the_listed_sessions(gaia: Gaia, words: list[str], found: list[str]) -> None:
    assert ids(gaia("list", "--json", *words)) == found
    if found:
        assert ids(gaia("list", *words)) == found


def test_list_of_an_empty_root_does_not_call_the_root_missing(gaia: Gaia, tmp_path: Path) -> None:
    assert gaia("--root", str(tmp_path), "list").answer == [f"No sessions found in {tmp_path}"]


@pytest.mark.usefixtures("three")
@table("words", [["--agent", "scribe", "--waiting"], ["--phase", "failed"], ["--since", "60s"], ["--limit", "0"]])
def test_list_with_no_match_counts_the_sessions_that_the_options_leave_out(
    gaia: Gaia, root: str, words: list[str]
) -> None:
    expected = f"No sessions found in {root} with these options; without them, there are 3\n"
    assert gaia("list", *words).all == (0, expected, "")


@table(
    ("typed", "hint"),
    [
        ("general", "known agents: general-purpose"),
        ("GENERAL-PURPOSE", "known agents: general-purpose"),
        ("exlpore", "known agents: Explore"),
        ("frobnicator", "known agents: Explore, Plan, a, b, general-purpose and 1 more"),
    ],
)
def test_list_of_an_unknown_agent_names_the_known_agents(
    gaia: Gaia, put: Gaia, root: str, typed: str, hint: str
) -> None:
    for number, name in enumerate(["general-purpose", "Explore", "Plan", "a", "b", "statusline-setup", " "]):
        put(f"session-{number}", agent_name=name)
    note = f"Note: no session has the agent '{typed}'\nHint: {hint}\n"
    none = f"No sessions found in {root} with these options; without them, there are 7\n"
    assert gaia("list", "--agent", typed).all == (0, none, note)
    assert gaia("list", "-q", "--agent", typed, "--limit", "5").all == (0, "", note)
    assert gaia("list", "--json", "--agent", typed).json == []


def test_a_single_left_out_session_is_counted_in_the_singular(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a", phase="completed", resume_ready=False)
    expected = f"No sessions found in {root} with these options; without them, there is 1\n"
    assert gaia("list", "--active-only").all == (0, expected, "")


def test_since_and_until_include_their_exact_moment(gaia: Gaia, put: Gaia) -> None:
    moment = "2026-01-08T18:05:30.123456Z"
    put("a", last_updated=moment)
    assert ids(gaia("list", "--json", "--since", moment, "--until", moment)) == ["a"]
    assert ids(gaia("list", "--json", "--since", "2026-01-08T18:05:30.123457Z")) == []
    assert ids(gaia("list", "--json", "--until", "2026-01-08T18:05:30.123455Z")) == []


@table("option", ["--since", "--until", "--created-since"])
@table("text", ["soon", "2026-13-01", "", "h", "99999999999w", "2 x"])
def test_a_text_that_is_not_a_time_is_a_usage_error(gaia: Gaia, option: str, text: str) -> None:
    ended = gaia("list", f"{option}={text}")
    assert ended.refusal == (
        2,
        f"{option} {text!r} is not valid",
        "must be a time like 2h, 18:05, yesterday, 'last week' or 2026-01-08",
    )


def test_since_and_until_select_by_last_activity_and_created_since_by_creation(
    gaia: Gaia, put: Gaia, talks: Path
) -> None:
    day = timedelta(days=1)
    old = ago(days=3)
    put("touched", idle=timedelta(minutes=5), created_at=old)
    put(
        "at-work",
        idle=2 * day,
        created_at=old,
        runs=[{**RUN, "host": "claude-code", "transcript_path": str(talks / "t.jsonl")}],
    )
    put("resting", idle=2 * day, created_at=old)
    put("new", idle=timedelta(minutes=6))
    (talks / "t.jsonl").write_text("{}\n")  # written just now
    for words, expected in [
        (["--since", "1h"], ["at-work", "touched", "new"]),
        (["--until", "1h"], ["resting"]),
        (["--created-since", "1h"], ["new"]),
        (["--since", "1h", "--created-since", "4d", "--limit", "1"], ["at-work"]),
    ]:
        assert ids(gaia("list", "--json", *words)) == expected
        assert ids(gaia("tree", "--json", *words)) == expected


@table(
    ("words", "code"), [(["--limit", "-1"], "usage"), (["--limit", "x"], "usage"), (["--phase", "x"], "unknown_phase")]
)
def test_an_invalid_value_of_a_filter_is_a_usage_error(gaia: Gaia, words: list[str], code: str) -> None:
    ended = gaia("list", "--json", *words)
    assert (ended.code, ended.error["code"]) == (2, code)


@pytest.mark.usefixtures("three")
@table("data", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b'{"agent_id": "bad"}'])
def test_a_corrupt_session_comes_last_and_hides_no_other(gaia: Gaia, spoil: Gaia, data: bytes) -> None:
    path = spoil("bad", data)
    assert ids(gaia("list")) == ["b", "a", "c", "bad"]
    assert ids(gaia("list", "--limit", "1")) == ["b"]
    *others, last = gaia("list", "--json", "--active-only").json
    assert last == {"agent_id": "bad", "status": "corrupt", "problem": last["problem"]}
    assert last["problem"].startswith(f"{path}: ")
    assert [line["agent_id"] for line in others] == ["b", "a"]
    assert path.read_bytes() == data


def test_a_record_of_a_newer_schema_is_listed_as_newer(gaia: Gaia, put: Gaia) -> None:
    document = put("new", schema=2, idle=timedelta(hours=2))
    expected = {
        "status": "newer",
        "resume": {"should_resume": False, "reason": "corrupt", "until": None},
        "running": False,
        **trace_of("new"),
    }
    assert gaia("list", "--json").json == [{**{key: document.get(key) for key in SUMMARY[:-4]}, **expected}]
    assert gaia("list").answer == ["new  tester: test  newer  2 hours ago"]
    put("new", schema=2, phase=["dreaming"])
    assert gaia("list", "--json").json == [
        {"agent_id": "new", "status": "newer", "problem": "written by a later version"}
    ]


@pytest.fixture
def states(put: Gaia, spoil: Gaia) -> None:
    """Sessions named after their state, the latest first; one is corrupt."""
    stopped = {**RUN, "ended_at": "2026-01-08T18:06:30Z"}
    asked = {"waiting": {"since": "2026-01-08T18:06:00Z", "for": "Bash"}}
    named: dict[str, dict[str, Any]] = {
        "asks": {},
        "permission": {"phase": "executing", "runs": [{**RUN, **asked}]},
        "working": {"phase": "executing", "runs": [RUN]},
        "error": {"phase": "investigating", "runs": [{**stopped, "end": "failed"}]},
        "crashed": {"phase": "planning", "runs": [{**stopped, "end": "lost"}]},
        "failed": {"phase": "failed", "resume_ready": False},
        "cut-short": {"phase": "planning", "runs": [{**stopped, "end": "returned"}]},
        "open": {"phase": "planning"},
        "completed": {"phase": "completed", "resume_ready": False},
        "interrupted": {"phase": "planning", "runs": [{**stopped, "end": "ended_with_host"}]},
    }
    for number, (name, changed) in enumerate(named.items()):
        put(name, idle=timedelta(minutes=number), agent_name="scribe" if number % 2 else "planner", **changed)
    put("later", schema=2)
    spoil("torn")


@pytest.mark.usefixtures("states")
@table(
    ("words", "found"),
    [
        (["--state", "error"], ["error"]),
        (["--state", "error,open"], ["error", "open"]),
        (["--state", "open", "--state", "error, cut short"], ["error", "cut-short", "open"]),
        (["--failed"], ["error", "crashed", "failed", "cut-short", "interrupted"]),
        (["--failed", "--active-only"], ["error", "crashed", "cut-short", "interrupted"]),
        (["--failed", "--agent", "scribe"], ["error", "failed", "interrupted"]),
        (["--failed", "--phase", "planning,failed"], ["crashed", "failed", "cut-short", "interrupted"]),
        (["--failed", "--limit", "1"], ["error"]),
        (["--failed", "--until", "6m"], ["cut-short", "interrupted"]),
        (["--failed", "--state", "completed"], ["error", "crashed", "failed", "cut-short", "completed", "interrupted"]),
        (["--waiting"], ["asks", "permission"]),
        (["--waiting", "--phase", "approval"], ["asks"]),
        (["--state", "working"], ["working"]),
        (["--state", "limited"], []),
    ],
)
def test_state_filters_select_sessions_by_their_listed_state(gaia: Gaia, words: list[str], found: list[str]) -> None:
    assert ids(gaia("list", "--json", *words)) == found
    assert sorted(ids(gaia("tree", "--json", *words))) == sorted(found)
    assert gaia("list", "-q", *words).out.decode().split() == found
    everything = gaia("list", "--json").json
    assert gaia("list", "--json", *words).json == [line for line in everything if line["agent_id"] in found]


@table(
    ("words", "found"),
    [
        (["--grep", "BILLING"], ["billing", "b-2"]),
        (["--grep", "straße"], ["b-2"]),
        (["--grep", "(dead"], []),
        (["--grep", ""], ["b-1", "billing", "b-2"]),
        (["--parent", "billing"], ["b-1", "b-2"]),
        (["--parent", "bill"], ["b-1", "b-2"]),
        (["--parent", "billing", "--active-only"], ["b-1"]),
        (["--parent", "billing", "--grep", "billing"], ["b-2"]),
        (["--parent", "billing", "--grep", "billing", "--active-only"], []),
        (["--parent", "b-1"], []),
        (["--parent", "gone"], ["orphan"]),
    ],
)
def test_grep_parent_and_active_only_select_sessions_that_match_all_of_them(
    gaia: Gaia, put: Gaia, spoil: Gaia, words: list[str], found: list[str]
) -> None:
    minute = timedelta(minutes=1)
    put("b-1", idle=minute, parent_id="billing", purpose="find dead code")
    put("billing", idle=2 * minute, agent_name="Billing-auditor")
    put("b-2", idle=3 * minute, parent_id="billing", purpose="billing of the Hauptstrasse", phase="completed")
    if "gone" in words:
        put("orphan", parent_id="gone")
    spoil("torn")
    assert ids(gaia("list", "--json", *words)) == found
    assert sorted(ids(gaia("tree", "--json", *words))) == sorted(found)
    assert gaia("list", "-q", *words).all == (0, "".join(f"{name}\n" for name in found), "")


def test_an_unknown_parent_without_children_is_not_found(gaia: Gaia, put: Gaia) -> None:
    put("billing-1")
    ended = gaia("list", "--parent", "biling-1")
    assert (ended.code, ended.out, b"did you mean billing-1?" in ended.err) == (3, b"", True)
    assert (gaia("list", "-q", "--parent", "nobody").code, gaia("list", "--parent", "a/b").code) == (3, 7)


@pytest.mark.usefixtures("family")
def test_quiet_prints_one_whole_id_a_line_and_only_of_matching_sessions(gaia: Gaia) -> None:
    everybody = ["nested", "flow-1", "flow-2", "flow", "orphan", "single", "torn"]
    assert gaia("list", "-q").lines == everybody
    assert gaia("list", "--quiet", "--json").json == everybody
    assert gaia("list", "-q", "--grep", "nowhere").all == (0, "", "")
    assert gaia("list", "-q", "--json", "--grep", "nowhere").json == []


def test_quiet_prints_whole_ids_on_a_terminal_too(terminal: Gaia, put: Gaia) -> None:
    for name in ("agent-20260108-180530-abc12345", "a" * 128):
        put(name, idle=timedelta(minutes=len(name)))
    shown = terminal("list", "-q", columns=60).out.decode()
    assert shown == f"agent-20260108-180530-abc12345\n{'a' * 128}\n"


# On a terminal


@pytest.fixture
def five(put: Gaia, spoil: Gaia) -> None:
    """Five sessions with different IDs, ages and texts; one is corrupt."""
    minutes = timedelta(minutes=1)
    put(
        "agent-20260108-180530-abc12345",
        idle=5 * minutes,
        agent_name="terraform-architect",
        purpose="approval_workflow of the network in the three regions that are left",
    )
    put("T001", idle=7 * minutes, agent_name="한국어-에이전트", purpose="e\u0301te\u0301", phase="investigating")
    put("deploy-production-eu", idle=50 * minutes, agent_name="x", purpose="general", error_count=2)
    put("agent-20260108-170000-0000abcd", idle=180 * minutes, phase="completed", resume_ready=False)
    spoil("torn", b"[1]")


@pytest.mark.usefixtures("five")
@table(
    ("columns", "shown"),
    [
        (
            40,
            [
                "id        state      left  purpose",
                "abc12345  waiting    25m   approval_wor…",
                "T001      open: in…  23m   e\u0301te\u0301",
                "depl…odu  waiting    exp.  -",
                "0000abcd  completed        test",
                "torn      corrupt: expected a JSON obje…",
            ],
        ),
        (
            60,
            [
                "id            state            left  purpose            seen",
                "abc12345      waiting          25m   approval_workflo…  5m",
                "T001          open: investig…  23m   e\u0301te\u0301                7m",
                "deploy-produ  waiting          exp.  -                  50m",
                "0000abcd      completed              test               3h",
                "torn          corrupt: expected a JSON object, not an array",
            ],
        ),
        (
            80,
            [
                "id            state                left  agent          purpose             seen",
                "abc12345      waiting              25m   terraform-ar…  approval_workflow…  5m",
                "T001          open: investigating  23m   한국어-에이 …  e\u0301te\u0301                 7m",
                "deploy-produ  waiting              exp.  x              -                   50m",
                "0000abcd      completed                  tester         test                3h",
                "torn          corrupt: expected a JSON object, not an array",
            ],
        ),
    ],
)
def test_on_a_terminal_each_session_is_one_line_that_fits(terminal: Gaia, columns: int, shown: list[str]) -> None:
    ended = terminal("list", columns=columns, NO_COLOR="1", TERM="dumb")
    assert (ended.code, ended.lines) == (0, shown)


@pytest.fixture
def in_every_state(put: Gaia, spoil: Gaia, gaia: Gaia) -> None:
    """A session in each state, the latest first; one is corrupt, and one is of a later version."""
    moment = iter(range(1, 99))
    began = ago(days=31)
    live = {"run": 1, "host": "claude-code", "started_at": began}
    over = live | {"ended_at": began, "end": "killed"}
    now = format_time(datetime.now(UTC))
    final: dict[str, Any] = {"resume_ready": False}
    work: dict[str, Any] = {"phase": "investigating"}
    asked = {"since": now, "for": "Bash"}

    def add(purpose: str, *, agent_name: str = "general-purpose", minutes: int | None = None, **changed: Any) -> None:
        number = next(moment)
        put(
            f"agent-20260108-180530-{number:08x}",
            idle=timedelta(minutes=number if minutes is None else minutes, seconds=20),
            agent_name=agent_name,
            purpose=purpose,
            **changed,
        )

    add("close the open ports on the web hosts of the staging network", agent_name="auditor")
    add("apply the network plan", agent_name="terraform-architect", runs=[live], **work)
    add("wait for a permission", runs=[live | {"waiting": asked}], **work)
    add("work although cancelled", runs=[live], **work)
    add("begin", runs=[{"run": 1, "claimed_at": now}], phase="initializing", **final)
    add("a limit", paused_until=format_time(datetime.now(UTC) + timedelta(days=3, hours=1)), runs=[over], **work)
    add("may be applied", approval={"message": "yes", "timestamp": now})
    add("too dear", denial={"message": "no", "timestamp": now})
    add("migrate the billing schema", runs=[over | {"end": "failed"}], error_count=1, **work)
    add("errors again and again", runs=[over | {"end": "failed"}], error_count=3, **work)
    add("nothing is heard of it", runs=[live], **work)
    add("stopped by Esc", runs=[over | {"interruption": "interrupted"}], **work)
    add("said nothing at its end", runs=[over | {"end": "returned"}], **work)
    add("rests by its own word", runs=[over | {"end": "stopped"}], phase="planning")
    add("general", phase="initializing", **final)
    add("a program's own", phase="planning")
    add("의견을 모아 \U0001f469\u200d\U0001f4bb \x1b[31mred\x1b[0m 한국어로 정리한다", phase="planning", **final)
    add("release notes", minutes=3 * 60, runs=[over | {"end": "lost"}], **work)
    add("done", minutes=4 * 60, phase="completed", **final)
    add("did not work", minutes=5 * 60, phase="failed", **final)
    add("nobody goes on", minutes=6 * 60, phase="abandoned", **final)
    add("no longer needed", minutes=7 * 60, phase="initializing", **final)
    add("of a later version", minutes=30 * 24 * 60, schema=2)
    spoil("torn", b"[1]")
    gaia("cancel", "00000004")
    gaia("cancel", "00000016")


@pytest.mark.usefixtures("in_every_state")
def test_every_command_shows_the_same_state_as_list(gaia: Gaia) -> None:
    def said(found: Any) -> Any:
        return found["state"], found.get("state_since")

    listed = {line["agent_id"]: said(line) for line in gaia("list", "--json").json if "state" in line}
    assert {state for state, _ in listed.values()} == set(STATES)

    for command in ("tree", "pending", "resume"):
        several = {line["agent_id"]: said(line) for line in gaia(command, "--json").json if "state" in line}
        assert several.items() <= listed.items()
        assert len(several) > 1
    for agent_id, (state, since) in listed.items():
        for words in (["show"], ["should-resume"], ["report"], ["wait", "--timeout", "0"]):
            answer = json.loads(gaia(*words, agent_id, "--json").out)
            assert said(answer[0] if words[0] == "wait" else answer) == (state, since)
        [shown] = [line for line in gaia("show", agent_id).lines if line.startswith("state ")]
        assert re.match(rf"state +{state}\b", shown)
        for words in (["report"], ["wait", "--timeout", "0"]):
            ended = gaia(*words, agent_id)
            assert f"{agent_id}: {state}" in (ended.out + ended.err).decode()


@pytest.mark.usefixtures("in_every_state")
def test_an_80_column_terminal_shows_each_state_with_the_purpose(terminal: Gaia) -> None:
    shown = terminal("list", NO_COLOR="1", TERM="dumb").lines
    assert shown == [
        "id        state               left    agent          purpose                seen",
        "00000001  waiting             29m     auditor        close the open ports…  1m",
        "00000002  working                     terraform-ar…  apply the network pl…  2m",
        "00000003  waiting: Bash               general-purp…  wait for a permission  3m",
        "00000004  working: cancelled          general-purp…  work although cancel…  4m",
        "00000005  starting                    general-purp…  begin                  5m",
        "00000006  limited             3d      general-purp…  a limit                6m",
        "00000007  approved            23m     general-purp…  may be applied         7m",
        "00000008  denied              22m     general-purp…  too dear               8m",
        "00000009  error               21m     general-purp…  migrate the billing …  9m",
        "0000000a  error               errors  general-purp…  errors again and aga…  10m",
        "0000000b  quiet                       general-purp…  nothing is heard of …  11m",
        "0000000c  interrupted         18m     general-purp…  stopped by Esc         12m",
        "0000000d  cut short           17m     general-purp…  said nothing at its …  13m",
        "0000000e  paused              16m     general-purp…  rests by its own word  14m",
        "0000000f  new                         general-purp…  -                      15m",
        "00000010  open: planning      14m     general-purp…  a program's own        16m",
        "00000011  open: planning      off     general-purp…  의견을 모아 👩\u200d💻 [31mr…  17m",
        "00000012  crashed             exp.    general-purp…  release notes          3h",
        "00000013  completed                   general-purp…  done                   4h",
        "00000014  failed                      general-purp…  did not work           5h",
        "00000015  abandoned                   general-purp…  nobody goes on         6h",
        "00000016  cancelled                   general-purp…  no longer needed       7h",
        "00000017  newer                       general-purp…  of a later version     30d",
        "torn      corrupt: expected a JSON object, not an array",
    ]
    words = {line[10:30].partition(":")[0].strip() for line in shown[1:]}
    assert words == {*STATES, "newer", "corrupt"}


@pytest.mark.usefixtures("in_every_state")
@table("columns", [60, 80, 120])
@table("command", ["list", "tree"])
def test_terminal_lines_fit_the_width_and_show_each_purpose(
    terminal: Gaia, gaia: Gaia, put: Gaia, command: str, columns: int
) -> None:
    for depth in range(1, 10):
        above = {"parent_id": f"own-id-{depth - 1}"} if depth > 1 else {}
        put(f"own-id-{depth}", purpose=f"{depth} deep down 한국어로 정리한다 " * 9, **above)

    lines = terminal(command, columns=columns).lines

    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert max(map(cell_len, plain)) <= columns
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", "\n".join(plain)) == []
    listed = {line["agent_id"]: line for line in gaia("list", "--json").json}
    assert len(lines) == 1 + len(listed) + (command == "tree")
    missing = [
        line["purpose"]
        for line in listed.values()
        if line.get("purpose", "general") != "general"
        and not any(f" {line['purpose'][:7].rstrip()}" in shown for shown in plain)
    ]
    assert missing == []
    assert ("agent" in plain[0]) <= (columns >= 70 or command == "tree")


def test_a_short_id_in_a_limited_list_names_only_the_listed_session(terminal: Gaia, put: Gaia, gaia: Gaia) -> None:
    put("my-very-long-one", idle=timedelta(minutes=1))
    put("my-very-long-two")
    [_, line] = terminal("list", "--limit", "1", NO_COLOR="1", TERM="dumb").lines
    assert gaia("get", line.split()[0]).json["agent_id"] == "my-very-long-two"


@pytest.mark.usefixtures("five")
def test_in_a_pipe_ids_and_purposes_are_whole_at_any_terminal_width(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = gaia("list").lines
    assert lines[0] == (
        "agent-20260108-180530-abc12345  terraform-architect: "
        "approval_workflow of the network in the three regions that are left"
        "  waiting  5 minutes ago  resumable for 25 minutes"
    )
    assert [line.split()[0] for line in lines[1:4]] == [
        "T001",
        "deploy-production-eu",
        "agent-20260108-170000-0000abcd",
    ]


def test_sessions_with_equal_times_are_sorted_by_id(gaia: Gaia, put: Gaia) -> None:
    moment = format_time(datetime.now(UTC))
    for name in ("c", "a", "b"):
        put(name, last_updated=moment)
    assert ids(gaia("list", "--json")) == ["a", "b", "c"]


def test_the_json_array_has_a_line_per_session(gaia: Gaia, put: Gaia) -> None:
    put("a")
    put("b", idle=timedelta(hours=1))
    opening, one, two, closing = gaia("list", "--json").out.splitlines()
    assert (opening, closing) == (b"[", b"]")
    assert [json.loads(line.rstrip(b","))["agent_id"] for line in (one, two)] == ["a", "b"]


@pytest.fixture
def family(put: Gaia, spoil: Gaia) -> None:
    """An ended workflow with two agents, one of which has a child; a session below a missing parent; a single one."""
    minute = timedelta(minutes=1)
    ended = {"phase": "completed", "resume_ready": False}
    put("flow", idle=4 * minute, agent_name="workflow", purpose="Review", **ended)
    put("flow-2", idle=3 * minute, parent_id="flow", usage={"total_tokens": 50, "cache_read_tokens": 30})
    put("flow-1", idle=2 * minute, parent_id="flow", **ended)
    put("nested", idle=1 * minute, parent_id="flow-2", charged_tokens=10)
    put("orphan", idle=5 * minute, parent_id="gone-1", charged_tokens=1)
    put("single", idle=6 * minute)
    spoil("torn")


@pytest.mark.usefixtures("family")
def test_the_tree_shows_each_session_on_a_branch_of_its_parent(gaia: Gaia) -> None:
    code, out, err = gaia("tree").all
    *lines, torn = out.splitlines()
    assert (code, "\n".join(lines) + "\n", err) == (
        0,
        (
            "4 sessions, 30 tokens (2 reported none): 2 waiting, 2 completed\n"
            "workflow: Review  completed  -  flow\n"
            "├─ tester: test  waiting  20 tokens  flow-2\n"
            "│  └─ tester: test  waiting  10 tokens  nested\n"
            "└─ tester: test  completed  -  flow-1\n"
            "no such session in this root  gone  -  gone-1\n"
            "└─ tester: test  waiting  1 token  orphan\n"
            "tester: test  waiting  -  single\n"
        ),
        "",
    )
    assert torn == "line 1 column 1: not JSON: this brace is not closed  corrupt  -  torn"


@pytest.mark.usefixtures("family")
def test_a_parent_that_the_options_exclude_is_shown_for_its_children(gaia: Gaia) -> None:
    lines = gaia("tree", "--active-only", "--limit", "3").lines
    assert lines == [
        "2 sessions, 30 tokens: 2 waiting",
        "(parent only) workflow: Review  completed  -  flow",
        "└─ tester: test  waiting  20 tokens  flow-2",
        "   └─ tester: test  waiting  10 tokens  nested",
        "no such session in this root  gone  -  gone-1",
        "└─ tester: test  waiting  1 token  orphan",
    ]


def line_of_parents(lines: dict[str, Any], name: str | None) -> list[str]:
    """``name`` and the sessions above it, up to the first that is not in ``lines``."""
    return [name, *line_of_parents(lines, lines[name].get("parent_id"))] if name in lines else []


@pytest.mark.usefixtures("family")
@table("words", [[], ["--active-only"], ["--limit", "3"], ["--phase", "completed"]])
def test_tree_json_has_the_sessions_of_the_list_in_tree_order(gaia: Gaia, words: list[str]) -> None:
    listed = {line["agent_id"]: line for line in gaia("list", "--json", *words).json}
    tree = gaia("tree", "--json", *words).json
    statuses = {line["agent_id"]: line.pop("parent_status", None) for line in tree}
    sums = {line["agent_id"]: line.pop("sums") for line in tree}
    assert {line["agent_id"]: line for line in tree} == listed
    for line in tree:
        parent_id = line.get("parent_id")
        reason = "gone" if parent_id == "gone-1" else "excluded"
        assert statuses[line["agent_id"]] == (None if parent_id in (None, *listed) else reason)
    order = [line["agent_id"] for line in tree]
    shown = [line.split()[-1] for line in gaia("tree", *words).lines]
    assert order == [name for name in shown if name in listed]
    assert {name: found["sessions"] for name, found in sums.items()} == {
        name: sum(name in line_of_parents(listed, other) for other in listed) for name in listed
    }


def test_tree_reports_parents_that_form_a_circle(gaia: Gaia, put: Gaia) -> None:
    put("a", parent_id="b", idle=timedelta(minutes=1))
    put("b", parent_id="a", idle=timedelta(minutes=2))
    assert gaia("tree").lines == [
        "2 sessions, no tokens reported: 2 waiting",
        "(its parents form a circle) tester: test  waiting  -  a",
        "└─ tester: test  waiting  -  b",
    ]
    assert [line.get("parent_status") for line in gaia("tree", "--json").json] == ["circle", None]


@pytest.mark.usefixtures("family")
def test_on_a_terminal_a_tree_is_a_table_with_branches(terminal: Gaia) -> None:
    shown = terminal("tree", "--active-only", NO_COLOR="1", TERM="dumb").lines
    assert [line.rstrip() for line in shown] == [
        "agent: purpose                                       state      tokens  id",
        "2 sessions, 30 tokens: 2 waiting",
        "(parent only) workflow: Review                       completed       -  flow",
        "└─ tester: test                                      waiting        20  flow-2",
        "   └─ tester: test                                   waiting        10  nested",
        "no such session in this root                         gone            -  gone-1",
        "└─ tester: test                                      waiting         1  orphan",
        "tester: test                                         waiting         -  single",
        "line 1 column 1: not JSON: this brace is not closed  corrupt         -  torn",
    ]


@pytest.fixture
def of_apps(put: Gaia) -> None:
    """Sessions of two apps and one of no app; one has ended."""
    put("own")
    for number, app in enumerate(["kb", "kb", "kb", "it's mine"]):
        put(
            f"of-{number}", app=app, user="u1", idle=timedelta(hours=number), agent_name="other" if number else "tester"
        )
    put("ended", app="kb", user="u1", phase="completed", resume_ready=False)


@pytest.mark.usefixtures("of_apps")
@table(
    ("words", "told"),
    [
        ([], "left out: 5 sessions of apps; --app kb has 4, --app 'it'\"'\"'s mine' has 1\n"),
        (["--active-only"], "left out: 4 sessions of apps; --app kb has 3, --app 'it'\"'\"'s mine' has 1\n"),
        (["--agent", "tester"], "left out: 2 sessions of an app; --app kb has 2\n"),
        (["--agent", "tester", "--waiting"], "left out: 1 session of an app; --app kb has 1\n"),
        (["--since", "90m"], "left out: 3 sessions of an app; --app kb has 3\n"),
        (["--grep", "tester", "--limit", "1", "--active-only"], "left out: 1 session of an app; --app kb has 1\n"),
        (["--app", "kb"], ""),
        (["-q"], ""),
        (["--json"], ""),
    ],
)
def test_list_and_tree_count_the_hidden_sessions_of_apps_and_name_the_option(
    gaia: Gaia, words: list[str], told: str
) -> None:
    for command in ["list"] if "-q" in words else ["list", "tree"]:
        ended = gaia(command, *words)
        assert (ended.code, ended.err.decode()) == (0, told), command
        assert ended.out


def test_list_names_the_five_apps_with_most_sessions(gaia: Gaia, put: Gaia) -> None:
    put("own")
    for number in range(8):
        for more in range(number + 1):
            put(f"of-{number}-{more}", app=f"app{number}", user="u1")
    shown = ", ".join(f"--app app{number} has {number + 1}" for number in (7, 6, 5, 4, 3))
    assert gaia("list").err.decode() == f"left out: 36 sessions of apps; {shown}, and 3 more apps\n"


@pytest.mark.usefixtures("of_apps")
def test_a_session_that_is_cancelled_itself_or_through_its_parent_is_not_active(gaia: Gaia, put: Gaia) -> None:
    put("below", parent_id="above")
    put("above")
    for agent_id in ("above", "of-1"):
        gaia("cancel", agent_id)

    for command in ("list", "tree"):
        active = {line["agent_id"] for line in gaia(command, "--active-only", "--json").json}
        every = {line["agent_id"] for line in gaia(command, "--json").json}
        assert (active, every) == ({"own"}, {"own", "above", "below"})
        assert "left out: 3 sessions of apps" in gaia(command, "--active-only").err.decode()
    assert {line["agent_id"] for line in gaia("list", "--state", "cancelled", "--json").json} == {"above", "below"}
