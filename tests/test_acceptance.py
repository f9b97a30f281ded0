"""The facts G1 to G36 that the first of the users' documents asks for, one test or group each, as they were decided.

Commands and hooks run in this process, where none of its own is the fact. Facts that have a suite of their own (races,
crashes, full disks) are here in their smallest form.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import InvalidInput
from gaia_sessions.session import requests
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.phases import OUTCOMES, PHASES, RESUMABLE
from gaia_sessions.session.record import decode
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.usecases import sessions
from tests import commands
from tests.table import table

if TYPE_CHECKING:
    from tests.calls import Ran

PATIENCE = 120

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

IMPOSSIBLE = ["../x", "/abs/x", "a/b", "..", "", ".", "x" * 300, "line\nbreak", "con", "-x", "~", "a\\b"]

TRUNCATED = b'{"agent_id": "bad", "phase": "appr'
CORRUPT = [TRUNCATED, b"[1]", b"null", b"", b"\x00\xff\xfe\x80", None]
"""What stands in place of a record; for None it has no times."""

_numbers = count(1)


@pytest.fixture(autouse=True)
def one_root(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)


class Ended:
    """What a command or a hook said and how it ended."""

    def __init__(self, ran: Ran | commands.Ended) -> None:
        self.code = ran.code
        self.out = ran.out.decode()
        self.err = ran.err.decode()
        assert "Traceback" not in self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def gaia(*words: str) -> Ended:
    return Ended(commands.gaia(*words))


def hook(name: str, told: object) -> Ended:
    """A hook, with no argument; ``told`` is its input, as JSON unless it is bytes."""
    return Ended(commands.hook(name, told))


def made(*words: str) -> str:
    ended = gaia("create", *words)
    assert (ended.code, ended.err) == (0, "")
    return ended.out.removesuffix("\n")


def state_file(agent_id: str) -> Path:
    return Path(os.environ["GAIA_SESSIONS_ROOT"], agent_id, "state.json")


def record(agent_id: str) -> Any:
    return json.loads(state_file(agent_id).read_bytes())


def edited(agent_id: str, **changed: object) -> None:
    state_file(agent_id).write_text(json.dumps({**record(agent_id), **changed}), encoding="utf-8")


def resting(
    agent_id: str | None = None, *, phase: str = "approval", idle: timedelta = MINUTE, **changed: object
) -> str:
    """A session, with another id each time unless one is given, that rests in ``phase`` for as long as ``idle``."""
    agent_id = agent_id or f"agent-{next(_numbers):03}"
    gaia_sessions.create_session("tester", agent_id=agent_id)
    gaia_sessions.update_state(agent_id, phase)
    edited(agent_id, **{"last_updated": format_time(datetime.now(UTC) - idle), **changed})
    return agent_id


def outside(root: str) -> list[str]:
    """What stands beside the root."""
    return sorted(name for name in os.listdir(os.path.dirname(root)) if name != os.path.basename(root))


def test_g01_create_prints_an_id_and_keeps_all_eleven_keys() -> None:
    agent_id = made("--agent", "terraform-architect", "--purpose", "approval_workflow")
    assert re.fullmatch(r"agent-\d{8}-\d{6}-[0-9a-f]{8}", agent_id)
    kept = record(agent_id)
    assert list(kept.items())[:11] == [
        ("agent_id", agent_id),
        ("agent_name", "terraform-architect"),
        ("purpose", "approval_workflow"),
        ("created_at", kept["created_at"]),
        ("last_updated", kept["created_at"]),
        ("phase", "initializing"),
        ("metadata", {}),
        ("resume_ready", False),
        ("history", []),
        ("error_count", 0),
        ("last_error", None),
    ]


def test_g02_create_without_options_is_unknown_and_general() -> None:
    kept = record(made())
    assert (kept["agent_name"], kept["purpose"]) == ("unknown", "general")


def test_g03_a_new_session_is_not_resumable() -> None:
    agent_id = made()
    ended = gaia("should-resume", agent_id)
    assert (ended.code, ended.out.split("\n", 1)[0].endswith("(phase_not_resumable)")) == (1, True)
    kept = record(agent_id)
    assert (kept["phase"], kept["resume_ready"], kept["history"]) == ("initializing", False, [])


@table("phase", [phase for phase in PHASES if phase != "initializing"])
def test_g04_a_move_sets_readiness_and_is_kept_in_the_history(phase: str) -> None:
    agent_id = made()
    assert gaia("update", agent_id, "--phase", phase).code == 0
    kept = record(agent_id)
    assert (kept["phase"], kept["resume_ready"]) == (phase, phase in {"investigating", "planning", "approval"})
    [move] = kept["history"]
    assert move == {"from_phase": "initializing", "to_phase": phase, "timestamp": kept["last_updated"]}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", move["timestamp"])


def test_g04_initializing_again_is_a_heartbeat_and_nothing_returns_to_it() -> None:
    agent_id = made()
    assert (gaia("update", agent_id, "--phase", "initializing").code, record(agent_id)["history"]) == (0, [])
    gaia("update", agent_id, "--phase", "planning")
    before = state_file(agent_id).read_bytes()
    assert gaia("update", agent_id, "--phase", "initializing").code == 4
    assert state_file(agent_id).read_bytes() == before


def test_g05_an_unknown_phase_is_named_and_changes_nothing() -> None:
    agent_id = made()
    before = state_file(agent_id).read_bytes()
    ended = gaia("update", agent_id, "--phase", "dreaming", "-m", "k=v", "--error", "boom")
    assert (ended.code, ended.out, "'dreaming'" in ended.err) == (2, "", True)
    assert state_file(agent_id).read_bytes() == before


def test_g06_metadata_is_merged_one_level_deep() -> None:
    agent_id = made("--metadata", '{"keep": 1, "replace": 1, "deep": {"a": 1}}')
    assert gaia("update", agent_id, "--metadata", '{"replace": 2, "deep": {"b": 2}}').code == 0
    assert record(agent_id)["metadata"] == {"keep": 1, "replace": 2, "deep": {"b": 2}}


@table("metadata", ["[1]", "3", '"text"', "null", "true"])
def test_g06_metadata_that_is_no_object_is_refused(metadata: str) -> None:
    agent_id = made()
    before = state_file(agent_id).read_bytes()
    assert gaia("update", agent_id, "--metadata", metadata).code == 7
    assert state_file(agent_id).read_bytes() == before


def test_g07_two_errors_are_forgiven_and_the_third_is_not() -> None:
    agent_id = resting()
    for number, code in ((1, 0), (2, 0), (3, 1)):
        assert gaia("update", agent_id, "--error", f"error {number}").code == 0
        assert (gaia("should-resume", agent_id).code, record(agent_id)["error_count"]) == (code, number)
        assert record(agent_id)["last_error"]["message"] == f"error {number}"
    assert gaia("should-resume", agent_id, "--json").json["reason"] == "too_many_errors"


@table(("minutes", "code"), [(29, 0), (30, 1), (31, 1)])
def test_g08_it_rests_for_under_30_minutes(minutes: int, code: int) -> None:
    agent_id = resting(idle=minutes * MINUTE)
    assert gaia("should-resume", agent_id).code == code


@table(("minutes", "code"), [(20, 0), (40, 1)])
@table("form", ["Z", "+00:00", "+02:00", "naive"])
def test_g09_a_time_may_be_written_in_any_form(form: str, minutes: int, code: int) -> None:
    moment = (datetime.now(UTC) - minutes * MINUTE).replace(microsecond=0)
    written = {
        "Z": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        "+00:00": moment.isoformat(),
        "+02:00": f"{moment + 2 * HOUR:%Y-%m-%dT%H:%M:%S}+02:00",
        "naive": f"{moment:%Y-%m-%dT%H:%M:%S}",
    }
    agent_id = resting(last_updated=written[form])
    assert gaia("should-resume", agent_id).code == code


@table("garbage", ["yesterday", "", None, 5, "2026-01-08"])
def test_g09_a_garbled_time_is_no_and_no_traceback(garbage: object) -> None:
    ended = gaia("should-resume", resting(last_updated=garbage), "--json")
    assert (ended.code, ended.json["should_resume"], ended.json["reason"], ended.err) == (6, False, "corrupt", "")


@table(("ahead", "code"), [(timedelta(days=365 * 70), 1), (6 * MINUTE, 1), (4 * MINUTE, 0)])
def test_g10_a_far_future_is_not_resumable_for_ever(ahead: timedelta, code: int) -> None:
    ended = gaia("should-resume", resting(idle=-ahead), "--json")
    reason = "clock_skew" if code else "session_resumable"
    assert (ended.code, ended.json["reason"]) == (code, reason)


@table(
    ("changed", "code"), [({}, 0), ({"resume_ready": False}, 1), ({"error_count": 3}, 1), ({"phase": "executing"}, 1)]
)
def test_g11_exit_code_text_and_json_agree(changed: dict[str, Any], code: int) -> None:
    agent_id = resting(**changed)
    text, told = gaia("should-resume", agent_id), gaia("should-resume", agent_id, "--json")
    assert (text.code, told.code, told.json["should_resume"]) == (code, code, not code)
    assert text.out.startswith("no: " if code else "yes: ")


def test_g11_an_unknown_id_is_no_with_3_and_makes_no_directory(root: str) -> None:
    ended = gaia("should-resume", "nobody", "--json")
    assert (ended.code, ended.json["should_resume"], os.path.exists(root)) == (3, False, False)


@table("outcome", OUTCOMES)
def test_g12_an_end_is_kept_whole_and_never_resumable(outcome: str) -> None:
    agent_id = resting()
    assert gaia("finalize", agent_id, outcome, "--summary", "said").code == 0
    kept = record(agent_id)
    assert (kept["phase"], kept["resume_ready"], kept["summary"]) == (outcome, False, "said")
    assert (parse_time(kept["finalized_at"]) <= datetime.now(UTC), kept["duration_seconds"] >= 0) == (True, True)
    assert gaia("should-resume", agent_id).code == 1


def test_g13_a_bad_outcome_is_a_usage_error_and_changes_nothing() -> None:
    agent_id = resting()
    before = state_file(agent_id).read_bytes()
    assert gaia("finalize", agent_id, "done").code == 2
    assert state_file(agent_id).read_bytes() == before


@table("words", [["update", "nobody"], ["finalize", "nobody", "completed"]])
def test_g14_a_missing_session_is_not_updated_or_ended(words: list[str], root: str) -> None:
    ended = gaia(*words)
    assert (ended.code, ended.out, os.path.exists(root)) == (3, "", False)


@table("outcome", OUTCOMES)
def test_g15_final_is_final(outcome: str) -> None:
    agent_id = resting()
    gaia("finalize", agent_id, outcome)
    before = state_file(agent_id).read_bytes()
    assert gaia("update", agent_id, "--phase", "planning").code == 4
    assert (state_file(agent_id).read_bytes(), gaia("should-resume", agent_id).code) == (before, 1)


def test_g16_the_same_end_again_keeps_the_first_and_another_is_refused() -> None:
    agent_id = resting()
    gaia("finalize", agent_id, "completed")
    before = state_file(agent_id).read_bytes()
    assert (gaia("finalize", agent_id, "completed", "--summary", "x").code, state_file(agent_id).read_bytes()) == (
        0,
        before,
    )
    assert (gaia("finalize", agent_id, "failed").code, state_file(agent_id).read_bytes()) == (4, before)


def test_g17_get_of_a_missing_session_is_3_and_of_one_that_is_there_is_its_json() -> None:
    missing = gaia("get", "nobody")
    assert (missing.code, missing.out) == (3, "")
    agent_id = made()
    assert gaia("get", agent_id, "--json").json == gaia("get", agent_id).json == record(agent_id)


def test_g18_list_is_newest_first_and_filters() -> None:
    empty = gaia("list")
    assert (empty.code, empty.out.startswith("No sessions found"), empty.err) == (0, True, "")
    resting("old", idle=3 * HOUR, agent_name="scribe")
    resting("new", idle=MINUTE, agent_name="planner")
    resting("ended", idle=2 * HOUR, agent_name="scribe", phase="executing")
    gaia("finalize", "ended", "completed")
    edited("ended", last_updated=format_time(datetime.now(UTC) - 2 * HOUR))

    def ids(*words: str) -> list[str]:
        return [line["agent_id"] for line in gaia("list", "--json", *words).json]

    assert ids() == ["new", "ended", "old"]
    assert ids("--active-only") == ["new", "old"]
    assert ids("--agent", "scribe") == ["ended", "old"]
    assert [line.split()[0] for line in gaia("list").out.splitlines()] == ["new", "ended", "old"]


@table("data", CORRUPT)
def test_g19_one_corrupt_session_stops_nobody_and_is_reported(data: bytes | None) -> None:
    good, bad = resting(), resting()
    if data is None:
        edited(bad, created_at=None, last_updated=None)
    else:
        state_file(bad).write_bytes(data)

    lines = gaia("list", "--json").json
    assert [(line["agent_id"], line["status"]) for line in lines] == [(good, "active"), (bad, "corrupt")]
    report = gaia("cleanup", "--json")
    assert (report.code, [one["agent_id"] for one in report.json["corrupt"]]) == (0, [bad])
    assert (gaia("should-resume", good).code, gaia("should-resume", bad).code) == (0, 6)
    for agent_id in (good, bad):
        shutil.rmtree(state_file(agent_id).parent)


def test_g20_cleanup_removes_what_is_older_and_says_how_many(root: str) -> None:
    resting("old", phase="executing", idle=25 * HOUR)
    resting("young", phase="executing", idle=23 * HOUR)
    resting("corrupt")
    state_file("corrupt").write_bytes(b"{")
    ended = gaia("cleanup", "--hours", "24")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "removed 1 session not updated for 1 day")
    assert sorted(name for name in os.listdir(root) if name[0] != ".") == ["corrupt", "young"]
    assert gaia("cleanup", "--hours", "-1").code == 2
    assert gaia("cleanup", "--corrupt", "--json").json["removed"] == ["corrupt"]
    assert sorted(name for name in os.listdir(root) if name[0] != ".") == ["young"]


@table("agent_id", IMPOSSIBLE[:8])
def test_g21_an_impossible_id_is_refused_by_every_command_and_nothing_is_written(agent_id: str, root: str) -> None:
    for words in (["get"], ["update"], ["should-resume"], ["show"]):
        assert gaia(*words, "--", agent_id).code == 7
    assert gaia("finalize", "--", agent_id, "completed").code == 7
    assert gaia("create", f"--id={agent_id}").code == 7
    assert (os.path.exists(root), outside(root), os.path.exists("/abs")) == (False, [], False)


@table("agent_id", [*IMPOSSIBLE, "nul\0", "é", 5, None, ["a"]])
def test_g21_an_impossible_id_is_refused_by_the_api_and_the_hooks(agent_id: Any, root: str) -> None:
    for call in (
        lambda: gaia_sessions.get_session(agent_id),
        lambda: gaia_sessions.update_state(agent_id),
        lambda: gaia_sessions.finalize_session(agent_id, "completed"),
        lambda: gaia_sessions.explain_resume(agent_id),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert gaia_sessions.should_resume(agent_id) is False
    if agent_id is not None:
        with pytest.raises(InvalidInput):
            gaia_sessions.create_session(agent_id=agent_id)
        for name, key in (("pre_delegate", "should_resume"), ("subagent_stop", "finalized")):
            ended = hook(name, {"agent_name": "x", "agent_id": agent_id, "create": True})
            assert (ended.code, ended.json[key], ended.json["reason"]) == (0, False, "invalid_input")
    assert outside(root) == []
    assert not os.path.exists(root) or sorted(os.listdir(root)) == [".gitignore", ".logs"]  # the hooks log it


def test_g21_a_short_id_is_an_id() -> None:
    assert (made("--id", "agent-123"), gaia("get", "agent-123").code) == ("agent-123", 0)


def test_g22_an_id_that_exists_is_an_error_and_the_old_state_stays() -> None:
    made("--id", "agent-123", "--agent", "first")
    before = state_file("agent-123").read_bytes()
    assert gaia("create", "--id", "agent-123", "--agent", "second").code == 4
    assert state_file("agent-123").read_bytes() == before


UPDATES = """
import os, sys
from gaia_sessions import update_state
me, times = sys.argv[1], int(sys.argv[2])
for number in range(times):
    update_state("agent-123", metadata={f"{me}.{number}": number}, error=f"{me} {number}")
    os.write(1, f"{number}\\n".encode())
"""


def updating(me: str, times: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", UPDATES, me, str(times)], stdout=subprocess.PIPE)


def test_g23_no_update_of_many_writers_at_once_is_lost() -> None:
    made("--id", "agent-123")
    writers = [updating(f"w{number}", 10) for number in range(4)]
    while any(writer.poll() is None for writer in writers):
        decode(state_file("agent-123").read_bytes(), "agent-123")
    assert [(writer.returncode, writer.communicate()[0].count(b"\n")) for writer in writers] == [(0, 10)] * 4
    kept = record("agent-123")
    assert (len(kept["metadata"]), kept["error_count"], kept["revision"]) == (40, 40, 41)


def test_g24_a_writer_killed_at_any_moment_leaves_a_record_and_no_lock() -> None:
    made("--id", "agent-123")
    acknowledged = 0
    for attempt in range(5):
        writer = updating(f"w{attempt}", 1000)
        assert writer.stdout is not None
        for _ in range(3):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged += 3 + writer.communicate()[0].count(b"\n")
        kept = decode(state_file("agent-123").read_bytes(), "agent-123")
        assert acknowledged <= kept["error_count"] <= acknowledged + attempt + 1
        assert gaia("update", "agent-123", "--lock-timeout", "0").code == 0
    left = list(state_file("agent-123").parent.glob(".*.tmp"))
    for path in left:
        os.utime(path, (0, 0))
    assert sorted(gaia("cleanup", "--json").json["swept"]) == sorted(map(str, left))
    assert os.listdir(state_file("agent-123").parent) == ["state.json"]


def test_g25_metadata_that_is_no_json_is_refused_by_the_api() -> None:
    agent_id = resting()
    before = state_file(agent_id).read_bytes()
    for value in ({1, 2}, float("nan"), float("inf"), object(), b"bytes", "\ud800", "\0", 1 << 70):
        with pytest.raises(InvalidInput):
            gaia_sessions.update_state(agent_id, "planning", {"key": value})
    with pytest.raises(InvalidInput):
        gaia_sessions.update_state(agent_id, "planning", {"x": "x" * (1 << 20)})
    assert state_file(agent_id).read_bytes() == before


@table("command", ["update AGENT -m k=v", "create", "finalize AGENT failed"])
def test_g26_a_disk_without_space_is_a_clear_error_and_the_old_state_stays(command: str) -> None:
    agent_id = resting()
    before = state_file(agent_id).read_bytes()
    ended = subprocess.run(
        [sys.executable, "-m", "gaia_sessions", *command.replace("AGENT", agent_id).split()],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),  # no thread runs here
    )
    assert ended.returncode == 8
    assert (ended.stdout, "cannot " in ended.stderr and "File too large" in ended.stderr) == ("", True)
    assert state_file(agent_id).read_bytes() == before


def test_g26_a_root_that_cannot_be_written_is_a_clear_error(root: str) -> None:
    Path(root).write_bytes(b"a file in its place")
    ended = gaia("create")
    assert (ended.code, ended.out, f"Error: {root}" in ended.err) == (8, "", True)


def test_g27_the_hook_reads_stdin_without_an_argument() -> None:
    ended = hook("pre_delegate", {"agent_name": "x"})
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == {
        "should_resume": False,
        "reason": "no_existing_session",
        "agent_id": None,
        "original_context": {"agent_name": "x"},
    }


def test_g28_a_resumable_session_comes_with_its_context_and_is_only_looked_at() -> None:
    agent_id = resting(metadata={"task_id": "T001"})
    before = state_file(agent_id).read_bytes()
    asked = {"agent_name": "tester", "agent_id": agent_id, "task_id": "T001"}
    kept = record(agent_id)
    assert hook("pre_delegate", asked).json == {
        "should_resume": True,
        "reason": "session_resumable",
        "agent_id": agent_id,
        "resume_metadata": {
            "previous_phase": "approval",
            "created_at": kept["created_at"],
            "last_updated": kept["last_updated"],
            "history": kept["history"],
            "session_metadata": {"task_id": "T001"},
        },
        "original_context": asked,
    }
    assert state_file(agent_id).read_bytes() == before


@table("data", [b"bad", b'{"agent_id": 5}', b'{"agent_id": "../x"}'])
def test_g28_what_cannot_be_understood_is_invalid_input(data: bytes) -> None:
    ended = hook("pre_delegate", data)
    assert (ended.code, ended.json["should_resume"], ended.json["reason"], ended.err) == (0, False, "invalid_input", "")


def test_g29_a_stale_or_missing_session_is_not_resumable_and_its_id_is_echoed() -> None:
    resting("stale", idle=HOUR)
    for agent_id, detail in (("stale", "expired"), ("missing", "not_found")):
        asked = {"agent_name": "tester", "agent_id": agent_id}
        assert hook("pre_delegate", asked).json == {
            "should_resume": False,
            "reason": "session_not_resumable",
            "agent_id": agent_id,
            "detail": detail,
            "original_context": asked,
        }
    assert not state_file("missing").exists()


@table("name", ["pre_delegate", "subagent_stop"])
@table("data", [b"[1]", b'""', b"bad", b'"' + b"x" * 10_000_000 + b'"', b"\xff\xfe", b"[" * 100_000])
def test_g30_a_hook_answers_whatever_it_is_given(name: str, data: bytes) -> None:
    ended = hook(name, data)
    assert (ended.code, ended.err, ended.json["reason"]) == (0, "", "invalid_input")


@table("name", ["pre_delegate", "subagent_stop"])
@table("data", [b"", b'{"hook_event_name": '])
def test_g30_nothing_on_stdin_and_a_host_that_is_not_understood_are_met_with_silence(name: str, data: bytes) -> None:
    ended = hook(name, data)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@table(("exit_code", "outcome"), [(0, "completed"), (1, "failed"), (-9, "failed"), (None, "completed")])
@table("wrapped", [False, True])
def test_g31_a_stop_ends_the_session_by_its_exit_code(exit_code: int | None, outcome: str, *, wrapped: bool) -> None:
    agent_id = resting(phase="executing")
    told: dict[str, object] = {"agent_id": agent_id, "summary": "said"}
    if exit_code is not None:
        told["exit_code"] = exit_code
    asked = {"task_info": told} if wrapped else told
    ended = hook("subagent_stop", asked)
    assert (ended.code, ended.json) == (
        0,
        {
            "finalized": True,
            "agent_id": agent_id,
            "outcome": outcome,
            "reason": "finalized",
            "original_context": asked,
        },
    )
    assert (record(agent_id)["phase"], record(agent_id)["summary"]) == (outcome, "said")


@table("told", [{}, {"exit_code": 0}])
def test_g31_a_stop_that_says_nothing_leaves_a_session_in_approval_to_be_resumed(told: dict[str, object]) -> None:
    agent_id = resting()
    before = state_file(agent_id).read_bytes()
    ended = hook("subagent_stop", {"agent_id": agent_id, **told})
    assert (ended.code, ended.json["finalized"], ended.json["reason"]) == (0, False, "waits_for_approval")
    assert (state_file(agent_id).read_bytes(), gaia_sessions.should_resume(agent_id)) == (before, True)


def test_g31_a_stop_without_an_id_or_of_an_unknown_one_is_success_and_changes_nothing() -> None:
    agent_id = resting()
    before = state_file(agent_id).read_bytes()
    for told, reason in (({"exit_code": 1}, "no_agent_id"), ({"agent_id": "nobody"}, "not_found")):
        ended = hook("subagent_stop", told)
        assert (ended.code, ended.json["finalized"], ended.json["reason"]) == (0, False, reason)
    assert (state_file(agent_id).read_bytes(), state_file("nobody").exists()) == (before, False)


def test_g32_a_stop_told_twice_is_one_and_texts_are_not_searched_for_errors() -> None:
    agent_id = resting(phase="executing")
    told = {"agent_id": agent_id, "summary": "0 errors found, none failed"}
    answers = [hook("subagent_stop", told).json]
    before = state_file(agent_id).read_bytes()
    answers.append(hook("subagent_stop", told).json)
    assert [(answer["outcome"], answer["finalized"]) for answer in answers] == [("completed", True)] * 2
    assert (record(agent_id)["phase"], state_file(agent_id).read_bytes()) == ("completed", before)


def test_g33_hooks_and_commands_in_any_folder_of_a_project_see_the_same_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    top = Path.cwd()
    for folder in (".git", "src/deep", "docs"):
        top.joinpath(folder).mkdir(parents=True)
    monkeypatch.chdir(top / "src/deep")
    agent_id = made()
    monkeypatch.chdir(top / "docs")
    assert gaia("update", agent_id, "--phase", "approval").code == 0
    assert hook("pre_delegate", {"agent_id": agent_id}).json["reason"] == "session_resumable"
    monkeypatch.chdir(top)
    assert hook("subagent_stop", {"agent_id": agent_id, "outcome": "completed"}).json["finalized"] is True
    assert sorted(str(path.relative_to(top)) for path in top.rglob("state.json")) == [
        f".claude/session/{agent_id}/state.json"
    ]


def test_g34_a_normal_flow_takes_one_to_five_kilobytes() -> None:
    agent_id = made("--agent", "terraform-architect", "--purpose", "approval_workflow", "-m", "task_id=T001")
    for phase in ("investigating", "planning", "approval", "executing"):
        gaia("update", agent_id, "--phase", phase, "-m", f"{phase}=what was found out in this phase")
    gaia("finalize", agent_id, "completed", "--summary", "Terraform applied successfully")
    assert os.listdir(state_file(agent_id).parent) == ["state.json"]
    assert 1000 <= state_file(agent_id).stat().st_size <= 5000


@pytest.mark.parametrize("moves", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_g35_however_many_moves_leave_a_record_of_bounded_size(root: str, moves: int) -> None:
    store, now = FileStore(root, durable=False), datetime(2026, 1, 8, tzinfo=UTC)
    sessions.create(store, now, os.urandom, requests.NewSession("busy", "general", None, "agent-123"))
    path, sizes = state_file("agent-123"), []
    for number in range(1, moves + 1):
        asked = requests.Update(RESUMABLE[number % 3])
        sessions.update(store, now + timedelta(seconds=number), "agent-123", asked)
        sizes.append(path.stat().st_size)
    kept = store.read("agent-123")
    assert (len(kept["history"]), kept["history_dropped"], kept["revision"]) == (200, moves - 200, moves + 1)
    assert kept["history"][-1]["timestamp"] == kept["last_updated"] == format_time(now + timedelta(seconds=moves))
    # From the two hundredth on only the counters grow, by their digits, and the names of phases differ in length.
    assert max(sizes) <= sizes[200] + 100 < 32_000


def test_g36_the_two_cases_of_the_document_run_as_they_stand() -> None:
    # Verbatim, with both pauses and what must hold in between, in test_agent_session.py; here as one breath each.
    from gaia_sessions import create_session, finalize_session, get_session, should_resume, update_state

    agent_id = create_session(agent_name="terraform-architect", purpose="approval_workflow")
    update_state(agent_id, phase="planning")
    update_state(agent_id, phase="approval")
    edited(agent_id, last_updated=format_time(datetime.now(UTC) - 10 * MINUTE))
    assert should_resume(agent_id)
    update_state(agent_id, phase="executing")
    finalize_session(agent_id, outcome="completed", summary="Terraform applied successfully")
    first = get_session(agent_id)

    agent_id = create_session(agent_name="gitops-operator", purpose="investigation")
    update_state(agent_id, phase="investigating", metadata={"findings": ["issue A", "issue B"]})
    edited(agent_id, last_updated=format_time(datetime.now(UTC) - 5 * MINUTE))
    assert should_resume(agent_id)
    update_state(agent_id, metadata={"findings": [*record(agent_id)["metadata"]["findings"], "issue C"]})
    finalize_session(agent_id, outcome="completed")
    second = get_session(agent_id)

    assert first is not None
    assert second is not None
    assert (first["phase"], second["phase"]) == ("completed", "completed")
    assert second["metadata"] == {"findings": ["issue A", "issue B", "issue C"]}
