"""``doctor``: it finds problems, shows commands that fix them, and changes nothing without ``--fix``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.doctor import machine
from gaia_sessions.doctor.all_checks import CHECKS, FIXES
from gaia_sessions.runner import contain
from gaia_sessions.session.clock import format_time
from gaia_sessions.store import hook_log
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import processes
from gaia_sessions.system.processes import describe
from tests.cli.conftest import fresh_table
from tests.index_files import lose, plant
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Gaia

    Harm = Callable[[Path], object]

LONG_AGO = "2026-01-08T18:05:30.000000Z"
NOBODY = 2**22 + 1  # no pid is as large
HOLDS = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the command on the path, and makes containment possible."""
    monkeypatch.setattr(machine, "why_impossible", lambda: None)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def healthy(gaia: Gaia) -> str:
    """A root with one session in it, and nothing to fix."""
    return make_healthy(gaia)


def make_healthy(gaia: Gaia) -> str:
    agent_id: str = gaia("create", "--id", "a").out.decode().strip()
    gaia("update", "a", "--phase", "executing")
    return agent_id


@pytest.fixture
def found(gaia: Gaia) -> Callable[..., dict[str, Any]]:
    """The problems that ``doctor`` finds, by the names of the checks."""

    def look(*words: str) -> dict[str, Any]:
        ended = gaia("doctor", "--json", *words)
        report = json.loads(ended.out)
        problems = {finding["name"]: finding for finding in report["checks"] if finding["state"] == "problem"}
        assert (ended.code, ended.err, report["problems"]) == (1 if problems else 0, b"", len(problems))
        return problems

    return look


def shell(command: str) -> None:
    ended = subprocess.run(["sh", "-euc", command], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    assert ended.stderr == b""


def edited(root: str | Path, agent_id: str, **changes: Any) -> None:
    path = Path(root, agent_id, "state.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}), encoding="utf-8")


@pytest.mark.usefixtures("healthy")
def test_an_unreadable_mark_blocks_writes_and_doctor_names_the_fix(
    gaia: Gaia, found: Callable[..., dict[str, Any]], typed: Gaia, root: str
) -> None:
    os.symlink("/nowhere", f"{root}/a/cancelled.json")

    findings = found()

    assert gaia("update", "a", "--phase", "planning").code == 8
    assert [*findings] == ["marks"]
    assert findings["marks"]["found"].startswith(f"{root}/a/cancelled.json: cannot read: ")
    assert (
        "; so a and all sessions below it count as cancelled; if a should not be cancelled, remove the file"
        in findings["marks"]["found"]
    )
    typed(findings["marks"]["fix"])
    assert (found(), gaia("cancelled", "a").code) == ({}, 10)


@pytest.mark.usefixtures("healthy")
def test_doctor_prints_a_full_report_for_a_healthy_root(gaia: Gaia, root: str) -> None:
    report = gaia("doctor", "--json").json
    assert list(report) == ["problems", "version", "root", "server", "checks", "fixed"]
    assert (report["problems"], report["root"], report["server"], report["fixed"]) == (0, root, None, [])
    assert [finding["name"] for finding in report["checks"]] == list(CHECKS)
    for finding in report["checks"]:
        state = {"hooks": "warning", "log": "not_checked"}.get(finding["name"], "ok")
        assert list(finding) == ["name", "state", "found", "fix", "fixable"]
        assert (finding["state"], finding["fixable"], bool(finding["found"])) == (state, False, True)
        assert finding["fix"] == ("gaia-sessions hooks install" if state == "warning" else None)
    assert gaia("doctor").answer == [
        "warning: no hooks are installed here, so what agents do is not recorded",
        "    gaia-sessions hooks install",
        "not checked: the log of the hooks, because no hook has run yet",
        f"{len(CHECKS) - 2} checks of {root} are fine: gaia-sessions doctor --verbose lists them",
    ]
    *first, last = gaia("doctor", "--verbose").lines[3:]
    assert (first[0], last.split()[:2]) == (f"{len(CHECKS) - 2} checks of {root} are fine", ["--", "log"])
    assert [line.split()[:2] for line in first[1:]] == [["ok", name] for name in CHECKS if name not in ("hooks", "log")]


@table("sessions", ["no folder", "none"])
def test_checks_with_nothing_to_look_at_are_reported_as_not_checked(gaia: Gaia, root: str, sessions: str) -> None:
    if sessions == "none":
        gaia("create", "--id", "a")
        shutil.rmtree(Path(root, "a"))
        assert gaia("--root", root, "doctor", "--fix").code == 0
    why = "does not exist yet" if sessions == "no folder" else "there are none in"
    checks = gaia("doctor", "--json").json["checks"]
    skipped = {finding["name"] for finding in checks if finding["state"] == "not_checked"}
    of_sessions = {"clock", "readable", "marks", "times", "parents", "answers", "runs"}
    of_root = {"corrupt", "shared", "figures", "owner", "modes", "locks", "inbox", "messages", "hints", "leftovers"}
    assert skipped == {"log", *of_sessions, *(of_root if sessions == "no folder" else ())}
    lines = gaia("doctor").lines
    assert [line for line in lines if line.startswith("not checked: the sessions, ") and why in line] == lines[2:3]
    assert lines[-1].startswith(f"{len(CHECKS) - len(skipped) - 1} checks of {root} are fine: ")


@pytest.mark.usefixtures("healthy")
def test_at_a_terminal_problems_come_first_and_commands_are_not_wrapped(
    gaia: Gaia, terminal: Gaia, found: Gaia, root: str
) -> None:
    gaia("create", "--id", "b")
    garbled(Path(root))
    torn(Path(root))
    shown = terminal("doctor").lines
    commands = [line for line in shown if line.startswith("    ") and line.strip().startswith("gaia-sessions")]
    assert [line.partition(":")[0] for line in shown if line[0] not in " /"] == [  # a long path is not wrapped
        "problem",
        "problem",
        "warning",
        "not checked",
        f"{len(CHECKS) - 4} checks of",
    ]
    assert [line for line in shown if len(line) > 80 and line not in commands and " " in line.strip()] == []
    for command in commands[:2]:
        shell(command)
    assert found() == {}


@pytest.mark.usefixtures("healthy")
def test_doctor_without_fix_changes_nothing(gaia: Gaia, root: str, tree: Gaia, put: Gaia, spoil: Gaia) -> None:
    put("b", idle=timedelta(hours=-2))
    spoil("torn")
    Path(root, ".inbox").mkdir(exist_ok=True)
    Path(root, ".inbox", "20260108-180530-000000-01234567.json").write_bytes(b"{")
    before = tree()
    assert gaia("doctor").code == 1
    assert tree() == before


def test_doctor_does_not_create_a_missing_root(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    assert gaia("doctor").all[0] == 0
    assert gaia("doctor", "--fix").all[0] == 0
    assert tree() == before


# Functions that damage a healthy root


def opened(root: Path) -> None:
    (root / "a").chmod(0o755)
    (root / "a/state.json").chmod(0o644)


def torn(root: Path) -> None:
    (root / "a/state.json").write_bytes(b"{")


def a_folder_in_its_place(root: Path) -> None:
    (root / "a/state.json").unlink()
    (root / "a/state.json").mkdir(mode=0o600)


def linked_elsewhere(root: Path) -> None:
    shutil.move(root / "a", root.with_name("elsewhere"))
    (root / "a").symlink_to(root.with_name("elsewhere"))


def closed(root: Path) -> None:
    (root / ".trash").mkdir(exist_ok=True)
    for name in (".locks", ".trash", ".stage", ".index"):
        (root / name).chmod(0o555)


def private(path: Path, data: bytes | None) -> Path:
    """Makes a private file, or a private folder if ``data`` is None."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if data is None:
        path.mkdir(mode=0o700)
    else:
        path.write_bytes(data)
        path.chmod(0o600)
    return path


def left(path: Path, data: bytes | None = b"half") -> None:
    """Makes an old leftover of a killed process."""
    os.utime(private(path, data), (0, 0))


def half_removed(root: Path) -> None:
    os.utime(private(root / ".trash/b.0123456789abcdef", None).parent, (0, 0))


def garbled(root: Path) -> None:
    private(root / "a/cancelled.json", b"garbage")


def ahead(root: Path, **changes: Any) -> None:
    edited(root, "a", last_updated=format_time(datetime.now(UTC) + timedelta(hours=1)), **changes)


def ahead_and_final(root: Path) -> None:
    ahead(root, phase="completed")
    lose(root, "a", "active")
    lose(root, "a", "name", "unknown")


def lost(root: Path) -> None:
    process = {**(describe(os.getpid()) or {}), "pid": NOBODY}
    edited(root, "a", runs=[{"run": 1, "started_at": LONG_AGO, "host_process": process}])


def nobodys_key(root: Path) -> None:
    plant(root, "nobody", "host_key", "agent", "s", "x")


def copied(root: Path) -> None:
    edited(root, "a", phase="completed")
    for name in (".locks", ".index"):
        shutil.rmtree(root / name)


def killed_while_cancelling_what_had_ended(root: Path) -> None:
    FileStore(str(root)).change("a", lambda record: {**record, "phase": "completed", "resume_ready": False})
    left(root / "a/.cancelled.json.0123456789abcdef.tmp")


def waiting(root: Path) -> None:
    then = datetime.now(UTC) - timedelta(hours=25)
    event: Any = {"kind": "finalize", "at": format_time(then), "agent_id": "a", "outcome": "failed"}
    FileStore(str(root)).defer(event, then)


def never_rotated(root: Path) -> None:
    hook_log.append_line(str(root), "hook", {"at": LONG_AGO})
    with (root / ".logs/hook.log").open("ab") as file:
        file.write(b" " * (3 * hook_log.MAX_LOG_BYTES) + b"\n")


each_harm = table(
    ("name", "what", "harm"),
    [
        ("modes", "open to others", opened),
        ("corrupt", "a torn record", torn),
        ("corrupt", "a record that is a folder", a_folder_in_its_place),
        ("corrupt", "a link in the place of a session", linked_elsewhere),
        ("corrupt", "a session without its record", lambda root: private(root / "b/transcript.jsonl", b"")),
        ("modes", "closed to its owner", closed),
        ("marks", "a mark that is not JSON", garbled),
        ("marks", "a folder in the place of a mark", lambda root: private(root / "a/cancelled.json", None)),
        ("times", "a last update in the future", ahead),
        ("times", "a last update in the future of an ended session", ahead_and_final),
        ("runs", "a lost run", lost),
        ("hints", "an index mark without a session", lambda root: plant(root, "nobody", "active")),
        ("hints", "an index key without a session", nobodys_key),
        ("hints", "a missing index mark", lambda root: lose(root, "a", "active")),
        ("hints", "an index of another boot", lambda root: (root / ".index/complete").write_bytes(b"another boot")),
        ("hints", "an ended session without an index", copied),
        ("leftovers", "a temporary file", lambda root: left(root / "a/.state.json.0123456789abcdef.tmp")),
        ("leftovers", "a half-written mark", killed_while_cancelling_what_had_ended),
        ("leftovers", "a half-created session", lambda root: left(root / ".stage/b.0123456789abcdef", None)),
        ("leftovers", "a half-removed session", half_removed),
        ("inbox", "a late event", waiting),
        (
            "inbox",
            "a file that is not an event",
            lambda root: private(root / ".inbox/20260108-180530-000000-01234567.json", b"[]"),
        ),
        ("log", "a huge log", never_rotated),
    ],
)


@pytest.fixture
def damaged(anew: Gaia, gaia: Gaia, found: Gaia, root: str) -> Callable[[Harm], None]:
    """Creates a healthy root and damages it."""

    def make(harm: Harm) -> None:
        anew()
        make_healthy(gaia)
        assert found() == {}
        harm(Path(root))

    return make


@each_harm
def test_each_harm_is_found_and_fixed_by_the_shown_command_and_if_safe_by_fix(
    gaia: Gaia, damaged: Gaia, found: Gaia, typed: Gaia, name: str, what: str, harm: Harm
) -> None:
    damaged(harm)
    problems = found()
    assert (what, list(problems), problems[name]["fixable"]) == (what, [name], name in FIXES)
    typed(problems[name]["fix"])
    assert found() == {}

    damaged(harm)
    fixed = json.loads(gaia("doctor", "--fix", "--json").out)
    assert [applied["name"] for applied in fixed["fixed"]] == ([name] if name in FIXES else [])
    assert fixed["problems"] == (name not in FIXES)
    assert list(found()) == ([] if name in FIXES else [name])


@pytest.mark.usefixtures("healthy")
def test_doctor_advises_to_correct_a_corrupt_session_above_an_open_one(
    gaia: Gaia, found: Gaia, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent_id, parent in (("b", "a"), ("c", "b")):
        gaia("create", "--id", agent_id, "--parent", parent)
    gaia("update", "c", "--phase", "planning")
    saved = {agent_id: Path(root, agent_id, "state.json").read_bytes() for agent_id in ("a", "b")}
    Path(root, "b", "state.json").write_bytes(b"{")
    problem = found()["corrupt"]
    path = f"{root}/b/state.json"
    assert gaia("cleanup", "--hours", "1000000", "--corrupt", "--json").json["removed"] == []
    assert problem["found"].endswith("not closed; an open session is below it, so correct the file:")
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp {tmp_path}/saved "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    (tmp_path / "saved").write_bytes(saved["b"])
    monkeypatch.setenv("EDITOR", str(editor))
    assert problem["fix"] == f"${{EDITOR:-vi}} {path}"
    shell(problem["fix"])
    assert found() == {}


@pytest.mark.usefixtures("healthy")
def test_an_invalid_answer_in_a_record_is_reported_with_its_file(gaia: Gaia, found: Gaia, root: str) -> None:
    gaia("create", "--id", "b")
    file = Path(root, "b", "state.json")
    given = {"answer": "maybe", "by": "command", "timestamp": "2026-01-08T18:05:30.000000Z"}
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "answers": [given]}), encoding="utf-8")

    problems = found()

    assert list(problems) == ["answers"]
    assert problems["answers"]["found"] == (
        "1 record with an invalid answer, which no command shows: b: maybe; remove the answer from the file:"
    )
    assert problems["answers"]["fix"] == f"${{EDITOR:-vi}} {file}"


@table(("place", "names"), [(".claude/session", ["corrupt"]), ("sessions", [])])
def test_an_empty_folder_that_blocks_an_id_is_a_problem_only_in_a_project_root(
    gaia: Gaia, typed: Gaia, tmp_path: Path, place: str, names: list[str]
) -> None:
    root = str(tmp_path / "project" / place)
    gaia("create", "--id", "a", "--root", root)
    Path(root, "b").mkdir(mode=0o700)
    assert gaia("create", "--id", "b", "--root", root).code == 4
    report = json.loads(gaia("doctor", "--root", root, "--json").out)
    problems = [finding for finding in report["checks"] if finding["state"] == "problem"]
    assert [finding["name"] for finding in problems] == names
    for finding in problems:
        typed(finding["fix"])
        assert gaia("create", "--id", "b", "--root", root).code == 0


def test_doctor_shows_no_command_that_would_remove_foreign_files(gaia: Gaia, tmp_path: Path) -> None:
    root = tmp_path / "project" / ".claude" / "session"
    gaia("create", "--id", "a", "--root", str(root))
    private(root / "ours/transcript.jsonl", b"")
    private(root / "theirs/transcript.jsonl", b"")
    private(root / "theirs/thesis.tex", b"")
    private(private(root / "folder/state.json", None) / "thesis.tex", b"")

    def corrupt() -> list[tuple[str, str | None]]:
        checks = json.loads(gaia("doctor", "--root", str(root), "--json").out)["checks"]
        return [(finding["found"], finding["fix"]) for finding in checks if finding["name"] == "corrupt"]

    advice = "look at its content, and put its record back or move it away"
    [(_, removal), (found, none)] = corrupt()
    assert (str(removal).partition(" && ")[0], none) == (f"rm -r -- {root}/ours", None)
    assert f"{root}/theirs: a folder without a record" in found
    assert found.startswith("2 corrupt sessions: ")
    assert found.endswith(advice)

    root.rename(root.with_name("kept"))
    root.symlink_to("kept")
    [(found, none)] = corrupt()
    assert (found.startswith("3 corrupt sessions: "), found.endswith(advice), none) == (True, True, None)


def test_fix_prints_what_it_fixed(gaia: Gaia, healthy: str, root: str) -> None:
    opened(Path(root))
    waiting(Path(root))
    lines = gaia("doctor", "--fix").lines
    assert lines[0] == "fixed modes: 2 made private"
    assert lines[1].startswith("fixed inbox: ")
    assert lines[1].endswith(" finalized")
    assert not [line for line in lines if line.startswith("problem")]
    assert stat.S_IMODE(os.stat(Path(root, healthy)).st_mode) == 0o700
    assert json.loads(Path(root, healthy, "state.json").read_bytes())["phase"] == "failed"


@pytest.mark.usefixtures("healthy")
def test_the_fix_command_has_a_line_of_its_own(gaia: Gaia, root: str) -> None:
    torn(Path(root))
    code, out, _ = gaia("doctor").all
    first, second, *_ = out.splitlines()
    assert first.startswith(f"problem: 1 corrupt session: {root}/a/state.json: line 1 column 1: not JSON")
    assert first.endswith("; correct the file, or remove the session:")
    assert (code, second) == (1, f"    gaia-sessions --root {root} cleanup --hours 1000000 --corrupt")


@fresh_table(("hours", "names"), [(1, []), (23, []), (25, ["inbox"])])
def test_an_event_that_cannot_be_joined_is_a_problem_only_after_a_day(
    gaia: Gaia, found: Gaia, root: str, hours: int, names: list[str]
) -> None:
    make_healthy(gaia)
    then = datetime.now(UTC) - timedelta(hours=hours)
    event: Any = {"kind": "stop", "at": format_time(then), "host_session_id": "s", "host_agent_id": "x"}
    FileStore(root).defer(event | {"tool_use_id": "t"}, then)
    assert list(found()) == names
    assert found("--fix") == {}
    assert len([*Path(root, ".inbox").glob("*.json")]) == (not names), "evidence is dropped after a day, not before"


@pytest.mark.usefixtures("healthy")
def test_an_event_that_was_just_deferred_is_no_problem(found: Gaia, root: str) -> None:
    event: Any = {"kind": "finalize", "at": format_time(datetime.now(UTC)), "agent_id": "a", "outcome": "failed"}
    FileStore(root).defer(event, datetime.now(UTC))
    assert found() == {}


@pytest.fixture
def holder(root: str, healthy: str) -> Iterator[subprocess.Popen[bytes]]:
    path = Path(root, ".locks", f"{healthy}.lock")
    command = [sys.executable, "-c", HOLDS, str(path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_held_lock_is_reported_with_its_holder_and_a_stopped_holder_is_a_problem(
    gaia: Gaia, found: Gaia, holder: subprocess.Popen[bytes]
) -> None:
    finding = next(finding for finding in gaia("doctor", "--json").json["checks"] if finding["name"] == "locks")
    program = Path(f"/proc/{holder.pid}/comm").read_text(encoding="utf-8").strip()
    assert finding["found"] == f"held: a.lock by process {holder.pid} ({program})"
    holder.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
    stopped = found()["locks"]
    assert stopped["found"] == f"a suspended process holds a lock: a.lock by process {holder.pid} ({program})"
    assert stopped["fix"] == f"kill -CONT {holder.pid}"
    shell(found()["locks"]["fix"])
    assert found() == {}


def test_invalid_settings_in_file_and_environment_are_reported_with_their_fixes(
    gaia: Gaia, root: str, healthy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(root, ".config.toml").write_text("idle_minute = 3\n", encoding="utf-8")
    monkeypatch.setenv("GAIA_SESSIONS_MAX_ERRORS", "-1")
    assert gaia("get", healthy).code == 2
    checks = json.loads(gaia("doctor", "--json").out)["checks"]
    in_file, in_variable = [check for check in checks if check["state"] == "problem"]
    assert "did you mean idle_minutes?" in in_file["found"]
    assert (in_file["name"], in_file["fix"]) == ("settings", f"${{EDITOR:-vi}} {root}/.config.toml")
    assert (in_variable["name"], in_variable["fix"]) == ("settings", "unset GAIA_SESSIONS_MAX_ERRORS")
    edit = in_file["fix"].replace("${EDITOR:-vi}", "sed -i s/minute/minutes/")
    shell(f"{edit} && {in_variable['fix']} && gaia-sessions doctor")


@table("what", ["a link", "a pipe", "a folder"])
def test_a_settings_path_that_is_not_a_regular_file_is_to_be_removed_not_edited(
    gaia: Gaia, found: Gaia, root: str, healthy: str, what: str
) -> None:
    path = Path(root, ".config.toml")
    beside = Path(root).with_name("beside")
    beside.write_text("of somebody", encoding="utf-8")
    if what == "a link":
        path.symlink_to(beside)
    else:
        (os.mkfifo if what == "a pipe" else os.mkdir)(path)
    assert gaia("get", healthy).code == 2
    fix = found()["settings"]["fix"]
    assert fix == f"rm {'-r ' if what == 'a folder' else ''}-- {path}"
    shell(fix)
    assert (found(), beside.read_text(encoding="utf-8")) == ({}, "of somebody")


@table(
    ("number", "count", "rest"),
    [(2, "2", ""), (10, "10", ""), (11, "11", " and 1 more"), (8_000, "8,000", " and 7,990 more")],
)
def test_unknown_settings_of_a_file_are_one_finding_that_names_ten_at_most(
    gaia: Gaia, found: Gaia, root: str, healthy: str, number: int, count: str, rest: str
) -> None:
    assert healthy
    path = Path(root, ".config.toml")
    path.write_text("max_errors = 0\n" + "\n".join(f"k{one}=1" for one in range(number)), encoding="utf-8")
    names = ", ".join(f"k{one}" for one in range(min(number, 10)))
    known = "approvals, durability, guard.mode, guard.words, hooks.enabled"
    finding = found()["settings"]
    unknown = f"{count} unknown settings: {names}{rest}"
    start = f"{path}: max_errors = 0 is not valid (must be a whole number above 0); {unknown} (the settings are {known}"
    assert finding["found"].startswith(start)
    assert (finding["found"].count(str(path)), finding["fix"]) == (1, f"${{EDITOR:-vi}} {path}")
    assert f"problem: {finding['found']}" in gaia("doctor").lines


def test_long_names_of_unknown_settings_are_shortened(found: Gaia, root: str, healthy: str) -> None:
    assert healthy
    lines = (f"{letter * 6_000} = 1" for letter in "abcdefghij")
    Path(root, ".config.toml").write_text("\n".join(lines), encoding="utf-8")
    told = ", ".join(letter * 27 + "..." for letter in "abcdefghij")
    assert f": 10 unknown settings: {told} (the settings are " in found()["settings"]["found"]


def test_an_invalid_root_in_the_environment_is_reported_as_a_problem(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", "here")
    ended = gaia("doctor", "--json")
    finding, *others = json.loads(ended.out)["checks"]
    assert {other["state"] for other in others} == {"not_checked"}
    assert (ended.code, finding["name"], finding["fix"]) == (1, "root", "unset GAIA_SESSIONS_ROOT")
    assert gaia("doctor", "--root", "").code == 2, "a mistake of whoever typed it"


@pytest.mark.usefixtures("healthy")
def test_unprintable_file_names_spoil_neither_the_terminal_nor_the_json(gaia: Gaia, found: Gaia, root: str) -> None:
    staged = os.fsencode(root) + b"/.stage/b.0123456789abcdef/"
    os.mkdir(staged, 0o700)
    for name in (b"\xff", b"\x1b[2J"):
        os.close(os.open(staged + name, os.O_CREAT))
        os.chmod(staged + name, 0o644)
    assert list(found()) == ["modes"]
    assert b"\x1b" not in gaia("doctor").out
    assert found("--fix") == {}
    assert len(os.listdir(staged)) == 2


def test_a_file_in_place_of_the_root_is_reported_with_a_fix(found: Gaia, root: str) -> None:
    Path(root).write_text("mine", encoding="utf-8")
    assert "root" in found()
    assert found()["root"]["found"].startswith(f"{root}: not a folder; use another folder: set GAIA_SESSIONS_ROOT")
    assert found()["root"]["fix"] == 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
    shell(f"{found()['root']['fix']} && gaia-sessions doctor")


@pytest.mark.usefixtures("healthy")
def test_a_check_that_fails_says_so_and_hides_no_other(found: Gaia, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setitem(CHECKS, "locks", fail)
    torn(Path(root))
    problems = found()
    assert list(problems) == ["corrupt", "locks"]
    expected = "locks could not be checked: RuntimeError: what nobody thought of"
    assert problems["locks"] == {"name": "locks", "state": "problem", "found": expected, "fix": None, "fixable": False}


def test_doctor_fix_makes_the_root_private_only_in_a_project(gaia: Gaia, root: str, tmp_path: Path) -> None:
    for place in (root, str(tmp_path / ".claude" / "session")):
        gaia("create", "--id", "a", "--root", place)
        folders = [Path(place), Path(place, ".locks")]
        for folder in folders:
            folder.chmod(0o755)
        gaia("doctor", "--fix", "--root", place)
        expected = 0o755 if place == root else 0o700
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {expected}


def test_a_fix_that_the_system_refuses_is_reported_as_failed(
    gaia: Gaia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / ".claude" / "session"
    gaia("create", "--root", str(root))
    root.chmod(0o755)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    ended = gaia("doctor", "--fix", "--root", str(root))
    assert (ended.code, ended.out.splitlines()[0][:20]) == (1, b"fixed modes: failed:")


@pytest.mark.usefixtures("healthy")
def test_doctor_warns_of_failed_hook_calls(gaia: Gaia, root: str) -> None:
    hook_log.append_line(
        root, "hook", {"at": LONG_AGO, "event": "Stop", "decision": "error", "error": "disk\x1b[2J full"}
    )
    finding = next(finding for finding in gaia("doctor", "--json").json["checks"] if finding["name"] == "log")
    expected = f"1 call of a hook failed, the last at {LONG_AGO}: disk\x1b[2J full"
    assert (finding["state"], finding["found"]) == ("warning", expected)
    assert b"\x1b" not in gaia("doctor").out
    lines = subprocess.run(["sh", "-euc", finding["fix"]], check=True, capture_output=True, text=True).stdout
    assert [json.loads(line)["error"] for line in lines.splitlines()] == ["disk\x1b[2J full"]


@pytest.mark.usefixtures("healthy")
def test_doctor_ignores_foreign_logs_and_warns_of_a_linked_log_folder(gaia: Gaia, root: str, tmp_path: Path) -> None:
    """A foreign log is in the same folder, or behind a link in place of the log or of its folder."""
    theirs = tmp_path / "server"
    for path in (theirs / "hook.log", Path(root, ".logs", "billing.log")):
        path.parent.mkdir()
        path.write_bytes(bytes(3 * hook_log.MAX_LOG_BYTES))

    def finding() -> tuple[str, str, str | None]:
        log = next(finding for finding in gaia("doctor", "--json").json["checks"] if finding["name"] == "log")
        return log["state"], log["found"], log["fix"]

    logs = Path(root, ".logs")
    (logs / "hook.log").symlink_to(theirs / "hook.log")
    assert finding() == ("ok", f"0 bytes in {logs}", None)
    shutil.rmtree(logs)
    logs.symlink_to(theirs)
    expected = f"hooks write no log, because {logs} is a link"
    assert finding() == ("warning", expected, None)


@table("folder", ["lib\u200b", "lib\x1b[2J", "lib\udcff"])
def test_no_fix_command_is_shown_for_a_path_with_invisible_characters(gaia: Gaia, tmp_path: Path, folder: str) -> None:
    root = tmp_path / folder
    gaia("create", "--id", "a", "--root", str(root))
    never_rotated(root)
    shown = gaia("doctor", "--root", str(root)).out.decode()
    why = "no command is shown, because a name in the command has invisible characters"
    is_text = "\udcff" not in folder
    assert ("too large" in shown, "rm --" in shown, why in shown) == (True, False, is_text)


@table("folder", ["with blank", "$(touch planted)", "quo'te", "-n"])
def test_a_copied_fix_command_works_whatever_the_name_of_the_root(
    gaia: Gaia, typed: Gaia, tmp_path: Path, folder: str
) -> None:
    root = tmp_path / folder
    gaia("create", "--id", "a", "--root", str(root))
    gaia("create", "--id", "b", "--root", str(root))
    (root / "a" / "state.json").write_bytes(b"{")
    (root / "b").chmod(0o755)
    report = json.loads(gaia("doctor", "--json", "--root", str(root)).out)
    fixes = [finding["fix"] for finding in report["checks"] if finding["state"] == "problem"]
    assert len(fixes) == 2
    for fix in reversed(fixes):  # `doctor --fix` must run last: it fails while another problem is left
        typed(fix)
    assert gaia("doctor", "--json", "--root", str(root)).json["problems"] == 0
    assert not Path("planted").exists()


def test_without_gaia_sessions_on_the_path_the_fix_command_names_the_interpreter(
    found: Gaia, healthy: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert healthy
    torn(Path(root))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert found()["corrupt"]["fix"].startswith(f"{sys.executable} -P -m gaia_sessions --root {root} cleanup")
    shell(found()["corrupt"]["fix"])
    assert found() == {}


@pytest.mark.usefixtures("healthy")
def test_sessions_of_a_later_version_are_a_warning(gaia: Gaia, root: str) -> None:
    edited(root, "a", schema=99)
    lines = gaia("doctor").lines
    assert lines[0] == "warning: 1 session of a later version can be shown, but not changed: a"


@pytest.mark.usefixtures("healthy")
def test_without_a_process_list_killed_clients_are_reported_as_not_checked(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "describe", lambda _: None)
    assert "not checked: whether a client was killed, because this system does not list processes" in (
        gaia("doctor").lines
    )


@pytest.mark.usefixtures("healthy")
def test_doctor_tries_containment_and_reports_a_failure_as_not_checked(
    gaia: Gaia, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "why_impossible", contain.why_impossible)
    why = contain.why_impossible()
    found = gaia("--root", root, "doctor", "--verbose")
    lines = [line for line in found.lines if "run --contain" in line]
    assert [line.split(maxsplit=2) for line in lines] == (
        [["ok", "containment", "run --contain can start here"]]
        if why is None
        else [[*f"not checked: run --contain, because it cannot start here: {why}".split(maxsplit=2)]]
    )

    monkeypatch.setenv("PATH", str(tmp_path))
    found = gaia("--root", root, "doctor")
    assert found.code == 0
    message = (
        "not checked: run --contain, because it cannot start here: the command unshare is missing: install util-linux"
    )
    assert message in " ".join(found.out.decode().split())


@table(
    "make, state, words",
    [
        (lambda path: path.write_bytes(b""), "ok", "0 lines about removed sessions"),
        (lambda path: path.write_bytes(b'hello\n{"n": 1}\n'), "warning", "2 of 2 lines cannot be read"),
        (os.mkfifo, "problem", "not a regular file; removed sessions are not counted now; move the file away:"),
        (lambda path: path.symlink_to("a/state.json"), "problem", "Too many levels of symbolic links"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 30), "problem", "more than 256 MiB"),
    ],
)
def test_doctor_checks_the_file_with_figures_of_removed_sessions(
    gaia: Gaia, anew: Gaia, root: str, make: Callable[[Path], object], state: str, words: str
) -> None:
    anew()
    gaia("create", "--id", "a")
    path = Path(root, ".stats.jsonl")
    make(path)
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "figures"]
    assert (found["state"], words in found["found"], path.name in found["found"] or state == "ok") == (
        state,
        True,
        True,
    )
    assert found["fix"] == (f"mv -- {path} {path}.away" if state == "problem" else None)
    if found["fix"]:
        subprocess.run(found["fix"], shell=True, check=True)  # noqa: S602  # as a user would
        assert gaia("rm", "--force", "a").all[2] == ""


def test_doctor_fix_makes_the_file_with_figures_of_removed_sessions_private(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    gaia("rm", "--force", "a")
    path = Path(root, ".stats.jsonl")
    path.chmod(0o644)
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "modes"]
    assert (found["state"], str(path) in found["found"]) == ("problem", True)
    gaia("doctor", "--fix")
    assert path.stat().st_mode & 0o777 == 0o600
