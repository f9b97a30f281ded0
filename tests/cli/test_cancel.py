"""``cancel`` and ``cancelled``: one mark cancels a session and all sessions below it, for good."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

LIVE: dict[str, Any] = {"run": 1, "host": "claude-code", "host_session_id": "h1", "started_at": "2026-01-08T18:05:30Z"}
ENDED: dict[str, Any] = {**LIVE, "ended_at": "2026-01-08T18:06:30Z", "end": "stopped"}
DAY = timedelta(hours=25)
NOTICE = (
    "Note: the session was cancelled: it has ended as abandoned, and takes no more updates\n"
    "Hint: `gaia-sessions cancelled {}` says why\n"
)


@pytest.fixture
def family(gaia: Gaia) -> None:
    """A session ``root`` with two children and a grandchild, and a separate session ``other``."""
    for agent_id, parent in {"root": "", "one": "root", "two": "root", "leaf": "one", "other": ""}.items():
        assert gaia("create", "--id", agent_id, *(["--parent", parent] if parent else [])).code == 0


def cancelled(gaia: Gaia, *ids: str) -> list[str]:
    """The cancelled sessions among ``ids``, by the exit code."""
    codes = {agent_id: gaia("cancelled", agent_id).code for agent_id in ids}
    assert set(codes.values()) <= {0, 10}
    return [agent_id for agent_id, code in codes.items() if code]


def mark(root: str, agent_id: str) -> Any:
    return json.loads(Path(root, agent_id, "cancelled.json").read_bytes())


@pytest.mark.usefixtures("family")
def test_e3_a_session_is_cancelled_with_everything_below_it_and_e2_no_other(gaia: Gaia, root: str) -> None:
    """E2, E3, E5: one mark cancels a child, a grandchild and a session that is created later."""
    code, out, err = gaia("cancel", "root", "--reason", "enough").all
    assert (code, out, err) == (0, "root: cancelled, with everything below it: enough\n", "")
    code, out, err = gaia("create", "--id", "late", "--parent", "leaf").all
    notice = (
        "Note: the new session is cancelled because a session above it is cancelled\n"
        "Hint: `gaia-sessions cancelled late` says why\n"
    )
    assert (code, out, err) == (0, "late\n", notice)

    assert cancelled(gaia, "root", "one", "two", "leaf", "other", "late") == ["root", "one", "two", "leaf", "late"]
    assert [str(path.relative_to(root)) for path in Path(root).rglob("cancelled.json")] == ["root/cancelled.json"]
    at = mark(root, "root")["at"]
    answer = json.loads(gaia("cancelled", "late", "--json").out)
    assert answer == {"agent_id": "late", "cancelled": True, "at": at, "reason": "enough", "by": "root"}
    assert gaia("cancelled", "late").out.decode().endswith(", with root above it: enough\n")
    assert gaia("cancelled", "other", "--json").json == {"agent_id": "other", "cancelled": False}
    assert gaia("cancelled", "other").answer == ["no: other is not cancelled"]


@pytest.mark.usefixtures("family")
def test_the_option_only_cancels_no_session_below(gaia: Gaia) -> None:
    assert gaia("cancel", "root", "--only").answer == ["root: cancelled"]
    assert cancelled(gaia, "root", "one", "leaf") == ["root"]


@fresh_table("outcome", ["completed", "failed"])
def test_cancel_of_an_ended_session_cancels_only_the_sessions_below(
    gaia: Gaia, put: Gaia, state: Gaia, outcome: str
) -> None:
    put("root")
    gaia("finalize", "root", outcome, "--summary", "done")
    before = state("root")
    put("one", parent_id="root")

    ended = f"root: already {outcome}; from now on, no new session can continue it"
    assert gaia("cancel", "root", "--only").answer == [ended]
    assert cancelled(gaia, "one") == []
    below = f"{ended}; the sessions below it are cancelled, also those created later"
    assert gaia("cancel", "root").answer == [below]
    assert cancelled(gaia, "root", "one") == ["root", "one"]
    for word in ("completed", "failed"):
        assert gaia("finalize", "root", word).code == (0 if word == outcome else 4)
    assert (before["phase"], state("root")) == (outcome, before)


@pytest.mark.usefixtures("family")
def test_e6_a_second_cancellation_keeps_reason_and_time_and_can_only_add_sessions_below(gaia: Gaia, root: str) -> None:
    gaia("cancel", "root", "--only", "--reason", "first")
    first = mark(root, "root")
    [repeated] = gaia("cancel", "root", "--only", "--reason", "second", "--json").json["cancelled"]
    assert repeated == {"agent_id": "root", **first, "new": False}
    [wider] = gaia("cancel", "root", "--reason", "third", "--json").json["cancelled"]
    assert wider == {"agent_id": "root", **first, "below": True, "new": True}
    gaia("cancel", "root", "--only")
    assert mark(root, "root") == {**first, "below": True}
    assert cancelled(gaia, "leaf") == ["leaf"]


@pytest.mark.usefixtures("family")
def test_cancel_writes_only_the_mark(gaia: Gaia, root: str, state: Gaia) -> None:
    before = {agent_id: state(agent_id) for agent_id in ("root", "one", "leaf")}
    gaia("cancel", "root")
    assert {agent_id: state(agent_id) for agent_id in before} == before
    assert oct(Path(root, "root", "cancelled.json").stat().st_mode)[-3:] == "600"


@pytest.mark.usefixtures("family")
def test_e6_the_next_update_is_applied_and_abandons_the_session_for_good(gaia: Gaia, state: Gaia) -> None:
    gaia("cancel", "root")
    code, _, err = gaia("update", "leaf", "--phase", "planning", "-m", "found=it").all
    found = state("leaf")
    assert (code, found["phase"], found["metadata"], found["revision"]) == (0, "abandoned", {"found": "it"}, 2)
    assert err == NOTICE.format("leaf")
    assert [move["to_phase"] for move in found["history"]] == ["planning", "abandoned"]
    assert gaia("update", "leaf", "--phase", "planning").code == 4
    assert cancelled(gaia, "leaf") == ["leaf"]


@table(
    "words",
    [
        ["todo", "add", "a", "x"],
        ["todo", "done", "a", "1"],
        ["skill", "add", "a", "x", "--tokens", "1"],
        ["usage", "a", "--charge", "1"],
        ["usage", "a", "--total", "1"],
        ["transcript", "a", "--append", "user", "x"],
    ],
)
@fresh_table(("runs", "phase"), [([], "abandoned"), ([LIVE], "planning")])
def test_a_write_that_abandons_a_cancelled_session_prints_a_notice(
    gaia: Gaia, put: Gaia, state: Gaia, words: list[str], runs: list[Any], phase: str
) -> None:
    put("a", phase="planning", runs=runs, todos=[{"description": "read", "status": "pending"}])
    gaia("cancel", "a")

    ended = gaia(*words)

    assert (ended.code, state("a")["phase"], state("a")["revision"]) == (0, phase, 2)
    assert ended.err.decode() == (NOTICE.format("a") if phase == "abandoned" else "")


@table("words", [["finalize", "a", "completed", "--summary", "x"], ["update", "a", "--phase", "failed"]])
@fresh_table("runs", [[], [LIVE]])
def test_l21_finishing_a_cancelled_session_exits_10_and_only_abandons_it(
    gaia: Gaia, put: Gaia, state: Gaia, words: list[str], runs: list[Any]
) -> None:
    put("a", phase="executing", resume_ready=False, **({"runs": runs} if runs else {}))
    gaia("cancel", "a")
    for _ in range(2):
        assert (gaia(*words).code, state("a")["phase"], state("a")["revision"]) == (10, "abandoned", 2)
    assert ("summary" in state("a"), state("a")["error_count"]) == (False, 0)
    assert gaia("finalize", "a", "abandoned").code == 0
    assert gaia(*words, "--json").error["code"] == "cancelled"


@pytest.mark.usefixtures("family")
def test_finalize_abandoned_stores_the_summary_of_a_cancelled_session(gaia: Gaia, state: Gaia) -> None:
    gaia("cancel", "root")
    assert gaia("finalize", "root", "abandoned", "--summary", "half of it").code == 0
    assert (state("root")["phase"], state("root")["summary"]) == ("abandoned", "half of it")


@pytest.mark.usefixtures("family")
def test_e7_a_cancelled_session_is_not_resumable_and_the_reason_is_cancelled(gaia: Gaia, put: Gaia) -> None:
    put("resting", parent_id="root")
    assert gaia("should-resume", "resting").code == 0
    gaia("cancel", "root", "--reason", "enough")

    decision = json.loads(gaia("should-resume", "resting", "--json").out)
    assert (decision["should_resume"], decision["reason"], decision["cancellation"]["by"]) == (
        False,
        "cancelled",
        "root",
    )
    lines = {line["agent_id"]: line for line in gaia("list", "--json").json}
    assert (lines["resting"]["resume"]["reason"], lines["resting"]["cancelled"]) == ("cancelled", True)
    assert "cancelled" not in lines["other"]
    assert gaia("list").out.decode().count("cancelled") == 5
    shown = gaia("show", "resting").lines
    assert [line for line in shown if line.startswith(("resumable", "cancelled"))] == [
        "cancelled  just now, with root above it: enough"
    ]
    assert gaia("show", "resting", "--json").json["cancellation"]["reason"] == "enough"


def test_cancel_of_a_conversation_reports_a_failed_mark_and_cancels_the_other_sessions(
    gaia: Gaia, put: Gaia, root: str
) -> None:
    for agent_id in ("first", "second"):
        put(agent_id, runs=[LIVE])
    Path(root, "first", "cancelled.json").mkdir()

    refused = gaia("cancel", "--conversation", "h1", "--json")

    assert (refused.error["code"], "first" in refused.error["message"]) == ("io_error", True)
    assert Path(root, "second", "cancelled.json").is_file()


def test_a_conversation_is_cancelled_with_all_its_sessions(gaia: Gaia, put: Gaia) -> None:
    put("live", runs=[LIVE])
    put("ended", phase="completed", resume_ready=False, runs=[ENDED])
    put("moved", runs=[{**LIVE, "host_session_id": "h0", "current_host_session_id": "h1"}])
    put("elsewhere", runs=[{**LIVE, "host_session_id": "h2"}])
    put("child", parent_id="ended")

    answer = gaia("cancel", "--conversation", "h1", "--reason", "enough", "--json").json["cancelled"]

    assert [(one["agent_id"], one["below"], one["new"]) for one in answer] == [
        ("ended", True, True),
        ("live", True, True),
        ("moved", True, True),
    ]
    assert cancelled(gaia, "live", "ended", "moved", "elsewhere", "child") == ["live", "ended", "moved", "child"]
    refused = gaia("cancel", "--conversation", "h3", "--json")
    assert (refused.code, refused.error["code"]) == (3, "not_found")
    hint = "Hint: type gaia-sessions cancel ID, or gaia-sessions cancel --conversation ID\n"
    assert gaia("cancel").all == (2, "", f"Error: no ID given\n{hint}")
    both = gaia("cancel", "live", "--conversation", "h1").all
    assert both == (2, "", f"Error: ID and --conversation cannot be combined\n{hint}")


def test_cancel_of_a_missing_session_exits_3_but_a_corrupt_session_can_be_cancelled(
    gaia: Gaia, spoil: Gaia, root: str
) -> None:
    assert (gaia("cancel", "nobody").code, gaia("cancelled", "nobody").code, Path(root).exists()) == (3, 3, False)
    gaia("create", "--id", "a")
    spoil("torn")
    assert (gaia("cancel", "nobody").code, gaia("cancelled", "nobody").code) == (3, 3)
    assert gaia("cancelled", "torn").code == 6
    assert (gaia("cancel", "torn").code, gaia("cancelled", "torn").code) == (0, 10)


def test_a_mark_that_cannot_be_read_cancels_everything_below(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "root")
    gaia("create", "--id", "leaf", "--parent", "root")
    Path(root, "root", "cancelled.json").write_bytes(b"{")
    assert gaia("cancelled", "leaf").all == (10, "yes: leaf was cancelled at an unknown time, with root above it\n", "")
    assert gaia("cancel", "root").code == 0
    gaia("update", "leaf")
    assert gaia("show", "leaf").code == 0


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="needs a user whom a mode stops")
def test_cancel_in_a_read_only_folder_exits_8_and_cancels_nothing(gaia: Gaia, root: str, program: Gaia) -> None:
    gaia("create", "--id", "a")
    through = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    Path(root, "a").chmod(0o500)
    try:
        refused = program("cancel", "a", through=through if os.geteuid() == 0 else ())
    finally:
        Path(root, "a").chmod(0o700)
    assert (refused.code, b"cancelled.json: cannot write" in refused.err) == (8, True)
    assert cancelled(gaia, "a") == []


def test_cancel_of_a_locked_session_exits_5_and_cancels_nothing(gaia: Gaia, root: str) -> None:
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.locks import acquire, sleep_and_retry

    gaia("create", "--id", "a")
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "a.lock", 0, sleep_and_retry):
        assert gaia("cancel", "a", "--lock-timeout", "0").code == 5
    assert cancelled(gaia, "a") == []


@fresh_table("command", ["reconcile", "cleanup"])
def test_reconcile_and_cleanup_abandon_cancelled_sessions_without_a_running_agent(
    gaia: Gaia, put: Gaia, state: Gaia, command: str
) -> None:
    claim = {"run": 2, "host": "claude-code"}
    put("resting", runs=[ENDED])
    put("lapsed", runs=[ENDED, {**claim, "claimed_at": "2026-01-08T18:05:30Z"}])
    put("live", runs=[LIVE])
    put("free", runs=[ENDED])
    for agent_id in ("resting", "lapsed", "live"):
        gaia("cancel", agent_id)

    dry = gaia(command, "--dry-run", "--json").json
    assert state("resting")["phase"] == "approval"
    report = gaia(command, "--json").json

    phases = {agent_id: state(agent_id)["phase"] for agent_id in ("resting", "lapsed", "live", "free")}
    assert phases == {"resting": "abandoned", "lapsed": "abandoned", "live": "approval", "free": "approval"}
    if command == "reconcile":
        assert sorted(dry["abandoned"]) == sorted(report["abandoned"]) == ["lapsed", "resting"]
        assert gaia(command, "--json").json["abandoned"] == []
    assert state("resting")["runs"] == [ENDED]


def test_e17_cleanup_keeps_a_cancelled_parent_above_its_open_cancelled_child(gaia: Gaia, put: Gaia) -> None:
    put("root", idle=DAY, phase="completed", resume_ready=False)
    put("leaf", parent_id="root", runs=[LIVE])
    gaia("cancel", "root")
    report = gaia("cleanup", "--json").json
    assert (report["removed"], report["kept"]) == ([], [{"agent_id": "root", "reason": "above_open"}])
    assert cancelled(gaia, "leaf") == ["leaf"]


def test_sessions_below_stay_cancelled_after_their_cancelled_parent_is_removed(
    gaia: Gaia, put: Gaia, root: str
) -> None:
    put("root", idle=DAY, phase="completed", resume_ready=False)
    put("leaf", parent_id="root", runs=[ENDED])
    put("done", parent_id="root", phase="completed", resume_ready=False)
    put("old", idle=DAY, parent_id="root", phase="completed", resume_ready=False)
    gaia("cancel", "root", "--reason", "enough")
    before = [json.loads(gaia("cancelled", agent_id, "--json").out) for agent_id in ("leaf", "done")]

    assert sorted(gaia("cleanup", "--json").json["removed"]) == ["old", "root"]

    assert [json.loads(gaia("cancelled", agent_id, "--json").out) for agent_id in ("leaf", "done")] == before
    assert (before[0]["by"], before[0]["reason"], mark(root, "leaf")["by"]) == ("root", "enough", "root")
    report = json.loads(gaia("report", "leaf", "--json").out)
    assert (report["status"], report["error"], report["phase"]) == ("cancelled", "enough", "abandoned")
    assert gaia("create", "--id", "late", "--parent", "done").code == 0
    assert cancelled(gaia, "late") == ["late"]
    assert json.loads(gaia("cancel", "leaf", "--reason", "again", "--json").out)["cancelled"][0]["reason"] == "enough"
    assert sorted(gaia("cleanup", "--hours", "0", "--json").json["removed"]) == ["done", "late", "leaf"]


def test_cleanup_keeps_a_cancelled_session_while_a_session_below_it_is_locked(gaia: Gaia, put: Gaia, root: str) -> None:
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.locks import acquire, sleep_and_retry

    put("root", idle=DAY, phase="completed", resume_ready=False)
    put("leaf", parent_id="root", phase="completed", resume_ready=False)
    gaia("cancel", "root")
    with Directory.at(f"{root}/.locks") as folder, acquire(folder, "leaf.lock", 0, sleep_and_retry):
        report = gaia("cleanup", "--json").json
    assert (report["removed"], report["busy"], cancelled(gaia, "leaf")) == ([], ["root"], ["leaf"])


def test_a_cancelled_child_counts_toward_the_limit_only_while_its_agent_works(gaia: Gaia, put: Gaia) -> None:
    gaia("create", "--id", "root")
    for number in range(5):
        gaia("create", "--id", f"c{number}", "--parent", "root")
    assert gaia("create", "--parent", "root").code == 4
    gaia("cancel", "c0")
    assert gaia("create", "--parent", "root").code == 0
    put("c1", parent_id="root", runs=[LIVE])
    gaia("cancel", "c1")
    assert gaia("create", "--parent", "root").code == 4


HERE = {"host_process": describe(os.getpid())}
WORKS_ON = """\
Its client still runs it:
  {}, in Claude Code (process {})
to stop it, press Esc in the client, or tell the main agent to stop it
"""
COULD_BE_HELD = "after `gaia-sessions hooks install --enforce`, cancelled agents can use no tools\n"
IS_HELD = "until then, the hooks let it use no tools\n"


def test_cancel_lists_agents_that_still_work_and_says_how_to_stop_them(gaia: Gaia, put: Gaia) -> None:
    put("root", runs=[ENDED])
    put("leaf", parent_id="root", runs=[{**LIVE, **HERE}])
    put("busy", runs=[{**LIVE, **HERE, "host_session_id": "h2", "enforced": True}])
    put("codex", runs=[{**LIVE, **HERE, "host": "codex"}])
    put("claimed", runs=[{"run": 1, "host": "claude-code", "claimed_at": ago(minutes=1), **HERE}])
    put("crashed", runs=[{**LIVE, "host_process": {**(describe(os.getpid()) or {}), "started": "0"}}])

    told = {
        words: gaia("cancel", *words.split()).all
        for words in ("root --only", "root", "crashed", "busy --only", "codex --only", "claimed --only")
    }

    assert told == {
        "root --only": (0, "root: cancelled\n", ""),
        "root": (
            0,
            "root: cancelled, with everything below it\n" + WORKS_ON.format("leaf", os.getpid()) + COULD_BE_HELD,
            "",
        ),
        "crashed": (0, "crashed: cancelled, with everything below it\n", ""),
        "busy --only": (0, "busy: cancelled\n" + WORKS_ON.format("busy", os.getpid()) + IS_HELD, ""),
        "codex --only": (
            0,
            "codex: cancelled\n" + WORKS_ON.format("codex", os.getpid()).replace("Claude Code", "Codex"),
            "",
        ),
        "claimed --only": (0, "claimed: cancelled\n" + WORKS_ON.format("claimed", os.getpid()) + COULD_BE_HELD, ""),
    }
    for number in range(11):
        put(f"many-{number:02}", runs=[{**LIVE, "host_session_id": "h3"}])
    assert gaia("cancel", "--conversation", "h3", "--only").lines[11:] == [
        "Their clients still run them:",
        *(f"  many-{number:02}, in Claude Code" for number in range(10)),
        "  and 1 other",
        "to stop them, press Esc in the client, or tell the main agent to stop them",
        COULD_BE_HELD.strip(),
    ]


def test_cancel_lists_ten_working_agents_and_counts_the_others(gaia: Gaia, put: Gaia) -> None:
    for number in range(20):
        put(f"many-{number:02}", phase="completed", resume_ready=False, runs=[ENDED])
        put(f"below-{number:02}", parent_id=f"many-{number:02}", runs=[{**LIVE, **HERE, "host_session_id": "h2"}])
    put("beside", runs=[{**LIVE, **HERE, "host_session_id": "h2"}])

    lines = gaia("cancel", "--conversation", "h1").lines

    over = (
        "already completed; from now on, no new session can continue it; "
        "the sessions below it are cancelled, also those created later"
    )
    assert lines[:20] == [f"many-{number:02}: {over}" for number in range(20)]
    assert {line[: len("  below-")] for line in lines[21:31]} == {"  below-"}
    assert (len(lines), lines[31]) == (34, "  and 10 others")


def test_cancel_lists_a_command_but_not_the_agents_that_end_with_it(gaia: Gaia, put: Gaia) -> None:
    wrapper = {**LIVE, "wrapper": HERE["host_process"], "timeout_secs": 60}
    put("run", runs=[{key: wrapper[key] for key in ("run", "started_at", "wrapper", "timeout_secs")}])
    put("inside", parent_id="run", runs=[{**LIVE, **HERE}])
    put("deeper", parent_id="inside", runs=[{**LIVE, **HERE, "host_agent_id": "a2"}])
    put("beside", runs=[{**LIVE, **HERE}])

    assert gaia("cancel", "run").lines == [
        "run: cancelled, with everything below it",
        "Its command ends within a few seconds:",
        f"  run, in gaia-sessions run (process {os.getpid()})",
    ]
