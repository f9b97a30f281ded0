"""``resume ID``: how to resume a session, or why it cannot be resumed; only an expired session is changed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table
from tests.records import ago
from tests.table import table

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Gaia

HAD_EXPIRED = "  it had expired; its idle time counts again from now"
LINE = "delegate to tester again, with this line in the prompt:"
TO_DELEGATE = "[gaia-sessions: resume a]"
LATE = timedelta(minutes=45)
HERE = describe(os.getpid())


def run(**keys: Any) -> dict[str, Any]:
    return {"run": 1, "host": "codex", "started_at": ago(minutes=60), "ended_at": ago(minutes=50), **keys}


RESUMABLE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "reported by hand": ({"phase": "planning"}, [f"  to resume it, {LINE}", TO_DELEGATE]),
    "paused": ({"phase": "planning", "runs": [run(end="stopped")]}, [f"  to resume it, {LINE}", TO_DELEGATE]),
    "crashed": ({"phase": "planning", "runs": [run(end="lost")]}, [f"  to resume it, {LINE}", TO_DELEGATE]),
    "woken by its client": (
        {"phase": "planning", "runs": [run(host="claude-code", end="killed", interruption="interrupted")]},
        [
            "  to resume it, type this; a new agent gets a briefing (the old one cannot be woken):",
            "claude 'Delegate to ",
        ],
    ),
    "of a command": (
        {"phase": "planning", "runs": [{**run(end="stopped", wrapper={"pid": 4711}), "host": "command"}]},
        ["  to resume it, type this; what was said so far is passed on:", "gaia-sessions run a -- COMMAND"],
    ),
    "asks": (
        {"phase": "approval", "question": "May I?"},
        [
            f"  to approve and resume it, {LINE}",
            TO_DELEGATE,
            "  `gaia-sessions pending` shows its question, and how to deny it",
        ],
    ),
    "approved": (
        {"phase": "approval", "approval": {"message": "", "timestamp": ago(minutes=45)}},
        [f"  to resume it, {LINE}", TO_DELEGATE],
    ),
}


@table("has_expired", [False, True])
@fresh_table("name", RESUMABLE)
def test_resume_with_an_id_says_how_to_resume_and_renews_an_expired_session(
    gaia: Gaia, put: Gaia, state: Gaia, tree: Gaia, name: str, *, has_expired: bool
) -> None:
    record, how = RESUMABLE[name]
    put("a", idle=LATE if has_expired else timedelta(minutes=1), **record)
    before, old = tree(), state("a")
    assert gaia("should-resume", "a").code == int(has_expired)

    first, since, *lines, last = gaia("resume", "a").answer

    assert (first, last, since.partition(", resumable for ")[1]) == ("tester: test", "  a", ", resumable for ")
    assert lines[0] == HAD_EXPIRED or not has_expired
    told = lines[has_expired:]
    assert [one.startswith(other) for one, other in zip(told, how, strict=True)] == [True] * len(how)
    assert gaia("should-resume", "a").code == 0
    new = state("a")
    if not has_expired:
        assert tree() == before
    else:
        gaia("update", "a")
        times = {"last_updated": 0, "revision": 0}
        assert (new["revision"], {**new, **times}) == (old["revision"] + 1, {**state("a"), **times})


def test_a_renewed_session_says_so_once_and_is_then_listed_by_resume(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=LATE, phase="planning", runs=[run(end="lost")])
    assert gaia("resume", "--json").json == []

    [renewed] = gaia("resume", "a", "--json").json
    [known] = gaia("resume", "a", "--json").json

    assert renewed == {**known, "had_expired": True}
    assert (known["should_resume"], known["state"], known["resume_line"]) == (True, "crashed", TO_DELEGATE)
    assert gaia("resume", "--json").json == [known]


DENIAL = {"phase": "approval", "denial": {"message": "too risky", "timestamp": ago(minutes=1)}}
AT_WORK = {"run": 1, "host": "codex", "host_process": HERE, "started_at": ago(minutes=1)}
ENDED: dict[str, Any] = {"resume_ready": False, "finalized_at": ago(minutes=1)}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "too_many_errors": (
        {"phase": "planning", "error_count": 3},
        "  this session keeps failing (see its last error); to end it, so that you can continue it in a new session",
    ),
    "expired": ({"phase": "planning", "error_count": 3, "idle": LATE}, "  it has had 3 errors; the limit is 3"),
    "phase_not_resumable": ({"phase": "completed", **ENDED}, "  start new work: this session has ended"),
    "running": ({"phase": "planning", "runs": [AT_WORK]}, "  do not resume it: its agent may still be at work"),
    "claimed": (
        {"phase": "planning", "runs": [{"run": 1, "host": "codex", "claimed_at": ago(minutes=1)}]},
        "  wait: an agent is about to start working on it",
    ),
    "waiting_for_limit": ({"phase": "planning", "paused_until": ago(minutes=-9)}, "  wait until the limit is reset"),
    "not_ready": ({"phase": "planning", "resume_ready": False}, "  start new work, or allow resuming again"),
    "clock_skew": ({"phase": "planning", "idle": timedelta(hours=-1)}, "  when the clock is right"),
}


@fresh_table("reason", REFUSED)
def test_resume_refuses_a_session_with_the_answer_of_should_resume_and_changes_nothing(
    gaia: Gaia, put: Gaia, tree: Gaia, reason: str
) -> None:
    record, says = REFUSED[reason]
    put("a", **record)
    before = tree()

    named, asked = gaia("resume", "a"), gaia("should-resume", "a")

    assert (named.code, named.err, named.lines) == (1, b"", asked.lines)
    assert named.lines[0].endswith(f"({reason})")
    assert [line for line in named.lines if line.startswith(says)] != []
    [answer] = json.loads(gaia("resume", "a", "--json").out)
    assert {**answer, "idle_seconds": 0, "checks": 0} == {
        **json.loads(gaia("should-resume", "a", "--json").out),
        "idle_seconds": 0,
        "checks": 0,
    }
    assert tree() == before


def test_resume_of_a_cancelled_session_shows_the_reason_and_changes_nothing(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    put("a", idle=LATE, phase="planning")
    gaia("cancel", "a", "--reason", "not needed")
    before = tree()

    code, out, err = gaia("resume", "a").all

    assert (code, err, out.splitlines()[1]) == (1, "", "  reason: not needed")
    assert out.splitlines()[0].startswith("no: a was cancelled at ")
    assert tree() == before


def test_resume_of_a_denied_session_shows_the_reason_and_asks_for_another_way(
    gaia: Gaia, put: Gaia, tree: Gaia
) -> None:
    put("a", **DENIAL)
    put("late", idle=LATE, **DENIAL)
    before = tree()

    assert gaia("resume", "a").lines[2:] == [
        "  what it asked for was denied: too risky",
        f"  to let it find another way, {LINE}",
        TO_DELEGATE,
        "  a",
    ]
    first, *late = gaia("resume", "late").lines
    assert first.endswith(" (expired)")
    assert late == [
        "  what it asked for was denied: too risky",
        "  to make it resumable again, type: gaia-sessions update late",
    ]
    answered = gaia("resume", "a", "late", "--json")
    [one, other] = json.loads(answered.out)
    assert (answered.code, one["problem"], one["means"]) == (
        1,
        "what it asked for was denied: too risky",
        "resume_line",
    )
    assert (other["should_resume"], other["answer"]) == (False, "denied")
    assert tree() == before


def test_with_explicit_approvals_a_waiting_session_is_resumed_only_after_approve(
    gaia: Gaia, put: Gaia, tree: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_APPROVALS", "explicit")
    put("a", idle=LATE)
    before = tree()
    code, out, _ = gaia("resume", "a").all
    assert (code, "(not_approved)" in out, "gaia-sessions approve a" in out, tree() == before) == (1, True, True, True)

    assert gaia("approve", "a").code == 0
    assert gaia("resume", "a").answer[-2:] == [TO_DELEGATE, "  a"]


def test_only_its_app_can_resume_a_session_of_an_app(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    of_app = {"phase": "planning", "app": "demo", "user": "u", "app_session": {"id": "s"}}
    put("a", **of_app)
    put("late", idle=LATE, **of_app)
    before = tree()

    named, late = gaia("resume", "a"), gaia("resume", "late")

    assert (named.code, named.lines[2:]) == (1, ["  only the next event of its app can resume the session", "  a"])
    assert (late.code, late.lines[-1]) == (1, "  demo resumes the session with the app's next event")
    assert tree() == before


def test_resume_answers_several_ids_in_the_typed_order_and_one_no_gives_exit_code_1(gaia: Gaia, put: Gaia) -> None:
    put("goes", phase="planning")
    put("late", idle=LATE, phase="planning")
    put("tired", phase="planning", error_count=3)

    named = gaia("resume", "late", "tired", "nobody", "a/b", "goes", "late")

    blocks = named.out.decode().split("\n\n")
    assert (named.code, named.err, len(blocks)) == (1, b"", 5)
    assert blocks[0].endswith("  late")
    assert [block.partition("\n")[0] for block in blocks[1:4]] == [
        "no: tired has had 3 errors; the limit is 3 (too_many_errors)",
        "no: there is no session nobody (not_found)",
        "no: this cannot be the ID of a session (invalid_id): a/b",
    ]
    assert blocks[4].endswith("  goes\n")
    answers = json.loads(gaia("resume", "late", "tired", "nobody", "a/b", "goes", "--json").out)
    assert [(one["agent_id"], one["should_resume"], "means" in one) for one in answers] == [
        ("late", True, True),
        ("tired", False, False),
        ("nobody", False, False),
        ("a/b", False, False),
        ("goes", True, True),
    ]
    assert gaia("resume", "late", "goes").code == 0


def test_a_failed_write_is_reported_after_the_answers_for_other_sessions(gaia: Gaia, put: Gaia, root: str) -> None:
    put("late", idle=LATE, phase="planning")
    put("later", idle=LATE, phase="planning")
    put("goes", phase="planning")
    Path(root, ".locks").write_bytes(b"")

    one, both = gaia("resume", "late", "goes"), gaia("resume", "late", "goes", "later", "--json")

    assert (one.code, one.lines[-1], one.err.startswith(b"Error: ")) == (8, "  goes", True)
    assert [answer["agent_id"] for answer in json.loads(both.out)] == ["goes"]
    assert (both.code, list(json.loads(both.err)["error"])) == (8, ["code", "message", "hint"])


def test_resume_accepts_part_of_an_id_or_latest_and_names_the_session_on_stderr(gaia: Gaia, put: Gaia) -> None:
    put("deploy-frontend", phase="planning", idle=LATE)
    put("deploy-backend", phase="planning")

    part, latest = gaia("resume", "frontend"), gaia("resume", "deploy-b")
    assert (part.code, part.lines[-1], part.err) == (
        0,
        "  deploy-frontend",
        b"using session deploy-frontend for frontend\n",
    )
    assert (latest.code, latest.lines[-1]) == (0, "  deploy-backend")
    assert gaia("resume", "latest").lines[-1] == "  deploy-frontend"
    assert gaia("resume", "deploy-").code == 2


def test_an_id_and_host_session_cannot_be_combined(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    put("a", idle=LATE, phase="planning")
    before = tree()
    assert gaia("resume", "a", "--host-session", "x; rm -rf ~").refusal == (
        2,
        "ID and --host-session cannot be combined",
        "type gaia-sessions resume ID, or gaia-sessions resume --host-session ID",
    )
    assert tree() == before


HOSTILE = "x'; touch hacked; '\n$(touch hacked)`touch hacked`"


def test_text_in_a_record_cannot_inject_commands_into_the_printed_line(gaia: Gaia, put: Gaia, tmp_path: Path) -> None:
    """The shell that runs the line finds no program."""
    texts = {"agent_name": HOSTILE, "purpose": HOSTILE, "question": HOSTILE}
    hostile = run(host="claude-code", end="failed", detail=HOSTILE, host_session_id=HOSTILE, host_agent_id=HOSTILE)
    put("a", phase="planning", runs=[hostile], **texts)
    put("b", idle=LATE, phase="planning", runs=[{**hostile, "transcript_path": f"/x/{HOSTILE}.jsonl"}], **texts)

    for one in gaia("resume", "a", "b", "--json").json:
        name, prompt = shlex.split(one["command"])[-2:]
        assert (name, HOSTILE in one["command"], prompt) == ("claude", False, one["prompt"])
    for line in gaia("resume", "a", "b").lines:
        assert "\n" not in line
        if line.startswith("claude"):
            subprocess.run(["/bin/sh", "-c", line], cwd=tmp_path, env={"PATH": "/nowhere"}, check=False)
    assert not (tmp_path / "hacked").exists()
