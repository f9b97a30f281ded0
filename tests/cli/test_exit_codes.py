"""Every row of the table of exit codes, brought about for real, and what becomes of the streams."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from errno import EIO
from fcntl import LOCK_EX, flock
from itertools import count
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from tests.cli.conftest import fresh_table
from tests.cli.forks import forked
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Gaia

WITHOUT_A_DESCRIPTOR = """
import json, os, resource, sys
from gaia_sessions.cli.main import main
for words in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        os._exit(main(words))
    os.write(2, bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0]))
"""
"""Runs each command line in a fork that has loaded no module of a command; says with which code it ended."""


@pytest.fixture
def held(gaia: Gaia, root: str) -> Iterator[Path]:
    """A session that this process holds; its lock file."""
    gaia("create", "--id", "held")
    path = Path(root, ".locks", "held.lock")
    with path.open("wb") as file:
        flock(file, LOCK_EX)
        yield path


@fresh_table(
    ("words", "code"),
    [
        (["update", "a"], 0),
        (["should-resume", "a"], 0),
        (["should-resume", "tired"], 1),
        (["update", "a", "--phase", "dreaming"], 2),
        (["get", "nobody"], 3),
        (["create", "--id", "a"], 4),
        (["get", "torn"], 6),
        (["get", "../a"], 7),
    ],
)
def test_a_code_says_what_became_of_it_and_errors_speak_json_when_asked(
    gaia: Gaia, put: Gaia, spoil: Gaia, words: list[str], code: int
) -> None:
    put("a")
    put("tired", error_count=3)
    spoil("torn")
    result, in_json = gaia(*words), gaia(*words, "--json")
    assert (result.code, result.out == b"", result.err == b"") == (code, code > 1, code < 2)
    assert (in_json.code, forked(*words).code) == (code, code)
    if code > 1:
        assert result.err.count(b"\n") == 2
        assert set(in_json.error) == {"code", "message", "hint"}


def test_5_a_session_somebody_else_holds_all_the_while(gaia: Gaia, held: Path, root: str) -> None:
    before = Path(root, "held", "state.json").read_bytes()
    words = ("update", "held", "--phase", "planning", "--lock-timeout", "0.05")
    assert gaia(*words).refusal == (
        5,
        f"{held}: locked by process {os.getpid()} for more than 0.05 seconds",
        "try again, or wait longer with --lock-timeout",
    )
    assert gaia(*words, "--json").error["code"] == "lock_timeout"
    assert Path(root, "held", "state.json").read_bytes() == before


def test_a_held_session_is_read_all_the_same(gaia: Gaia, held: Path) -> None:
    assert held.is_file()
    assert [gaia(*words).code for words in (["get", "held"], ["should-resume", "held"], ["list"])] == [0, 1, 0]


NO_SPACE = (
    "Error: stdout: cannot write the output: No space left on device\n"
    "Hint: what the command did is kept, and only its output is lost: send that where there is room\n"
)


@table("words", [["get", "a"], ["list"], ["update", "a"], ["should-resume", "a"], ["--help"], ["-V"]])
def test_8_an_answer_that_finds_no_space(gaia: Gaia, put: Gaia, words: list[str]) -> None:
    put("a")
    with open("/dev/full", "wb") as full:
        assert gaia(*words, stdout=full.fileno()).all == (8, "", NO_SPACE)


LONG = f"long={'x' * 2000}"


@fresh_table("words", [["update", "a", "-m", "k=v"], ["create", "-m", LONG], ["finalize", "a", "completed"]])
def test_8_a_record_that_finds_no_space_and_the_old_one_stays(gaia: Gaia, root: str, words: list[str]) -> None:
    gaia("create", "--id", "a", "-m", LONG)
    before = {path: path.read_bytes() for path in Path(root).glob("[!.]*/state.json")}
    old = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (1000, old[1]))
    try:
        ended = gaia(*words)
    finally:
        setrlimit(RLIMIT_FSIZE, old)
    assert (ended.code, ended.out) == (8, b"")
    assert b"File too large\n" in ended.err
    assert {path: path.read_bytes() for path in Path(root).glob("[!.]*/state.json")} == before


def test_8_a_module_that_cannot_be_loaded_for_want_of_a_descriptor(put: Gaia) -> None:
    put("a")
    lines = [["get", "a"], ["list"], ["create"], ["update", "a", "--phase", "x"], ["no-command"], ["show"]]
    lines += [[*words, "--json"] for words in lines]
    command = [sys.executable, "-c", WITHOUT_A_DESCRIPTOR, json.dumps(lines)]

    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)

    assert ended.stdout == ""
    *said, rest = ended.stderr.split("\0")
    assert (rest, [one[-1] for one in said]) == ("", ["\x08"] * 12)
    for one in said[:6]:
        assert re.fullmatch(
            r"Error: \S+\.pyc?: cannot load: Too many open files\nHint: fix the reported problem and try again\n\x08",
            one,
        )
    assert [json.loads(one[:-1])["error"]["code"] for one in said[6:]] == ["io_error"] * 6


def test_8_a_root_that_is_a_file(gaia: Gaia, root: str) -> None:
    Path(root).write_bytes(b"in the way")
    for words in (["create"], ["get", "a"], ["list"]):
        ended = gaia(*words)
        assert (ended.code, ended.out, ended.err.count(b"\n")) == (8, b"", 2)
    assert Path(root).read_bytes() == b"in the way"


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets the sync to disk with this number fail, counted from now on."""

    def at(number: int) -> None:
        calls = count(1)
        sync = os.fsync

        def fail(descriptor: int) -> None:
            if next(calls) == number:
                raise OSError(EIO, os.strerror(EIO))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", fail)

    return at


def test_9_applied_but_the_disk_did_not_confirm_it(gaia: Gaia, root: str, refuse: Gaia) -> None:
    gaia("create", "--id", "a")
    gaia("update", "a")  # the first change syncs the root as well
    refuse(2)
    assert gaia("update", "a", "--phase", "approval").refusal == (
        9,
        f"{root}/a: written, but the sync to disk failed: Input/output error",
        "check the disk; the change is visible",
    )
    assert gaia("get", "a").json["phase"] == "approval"


def test_8_when_the_record_itself_cannot_be_synced_nothing_is_applied(gaia: Gaia, refuse: Gaia) -> None:
    gaia("create", "--id", "a")
    refuse(1)
    ended = gaia("update", "a", "--phase", "approval")
    assert (ended.code, ended.out) == (8, b"")
    assert gaia("get", "a").json["phase"] == "initializing"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, put: Gaia) -> None:
    """One function is broken."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    put("a")
    monkeypatch.setattr(gaia_sessions.Sessions, "explain_resume", fail)


@pytest.mark.usefixtures("broken")
def test_70_a_bug_is_two_lines_and_a_log(gaia: Gaia, away_from_home: Path) -> None:
    log = away_from_home / ".local/state/gaia-sessions/bugs.log"
    assert gaia("should-resume", "a").refusal == (70, "internal error in gaia-sessions", f"details: {log}")
    text = log.read_text(encoding="utf-8")
    assert ("Traceback (most recent call last)" in text, "ZeroDivisionError: broken on purpose" in text) == (True, True)
    assert log.stat().st_mode & 0o777 == 0o600
    ended = gaia("should-resume", "a", "--json")
    assert (ended.code, set(ended.error)) == (70, {"code", "message", "hint"})


@pytest.mark.usefixtures("broken")
def test_70_without_a_place_for_the_log_the_bug_itself_is_reported(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    ended = gaia("should-resume", "a")
    assert (ended.code, ended.out, b"ZeroDivisionError: broken on purpose" in ended.err) == (70, b"", True)


@pytest.mark.usefixtures("interruptible")
def test_130_interrupted_while_waiting_for_a_lock(held: Path, root: str) -> None:
    before = Path(root, "held", "state.json").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "gaia_sessions", "update", "held"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (process.stdout is not None, process.stderr is not None) == (True, True)
    for line in process.stderr or ():
        if line.endswith("| filelock\n"):  # it loads that only in order to wait
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    said = [line for line in err.splitlines() if line and not line.startswith("import time:")]
    assert (process.returncode, out, said) == (
        130,
        "",
        ["Error: interrupted", "Hint: changes reported before the interruption were kept"],
    )
    assert (Path(root, "held", "state.json").read_bytes(), held.exists()) == (before, True)


# Streams that are closed or broken


@table(
    ("words", "code"),
    [
        *((words, 0) for words in (["get", "a1"], ["list"], ["update", "a1"], ["create"])),
        *((words, 0) for words in (["--help"], ["schema"], ["list", "--json"])),  # of which a pipe takes a part
        (["should-resume", "tired"], 1),
    ],
)
def test_a_reader_that_is_gone_changes_no_exit_code(gaia: Gaia, put: Gaia, words: list[str], code: int) -> None:
    for number in range(40):
        put(f"a{number}", purpose="x" * 1000)
    put("tired", error_count=3)
    reading, writing = os.pipe()
    os.close(reading)
    assert gaia(*words, stdout=writing).all == (code, "", "")
    os.close(writing)


def test_where_there_is_no_space_or_no_reader_nothing_is_said_at_the_end_of_the_process_either(
    put: Gaia, program: Gaia
) -> None:
    put("a")
    assert program("get", "a", through=("sh", "-c", '"$@" | head -n 1', "sh")).answer == ["{"]
    assert program("get", "a", through=("sh", "-c", 'exec "$@" >/dev/full', "sh")).all == (8, "", NO_SPACE)
    gone = ("sh", "-c", 'exec 3>&1; { "$@"; echo $? >&3; } | true', "sh")
    put("tired", error_count=3)
    for words, code in ((["get", "a"], 0), (["should-resume", "tired"], 1)):
        assert program(*words, through=gone).all == (0, f"{code}\n", "")


@table(("words", "code"), [(["get", "a"], 0), (["update", "a"], 0), (["should-resume", "tired"], 1)])
def test_whoever_closed_stdout_wants_no_answer(gaia: Gaia, put: Gaia, words: list[str], code: int) -> None:
    put("a")
    put("tired", error_count=3)
    assert gaia(*words, stdout=None).all == (code, "", "")


def test_whoever_closed_stderr_still_gets_the_answer_and_the_code(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("should-resume", "a", "--json", stderr=None).json["should_resume"] is True
    assert gaia("get", "nobody", stderr=None).all == (3, "", "")
    with open("/dev/full", "wb") as full:
        assert gaia("get", "nobody", stderr=full.fileno()).all == (3, "", "")


def test_whoever_closed_stdin_can_do_all_but_read_from_it(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("update", "a", stdin=None).code == 0
    ended = gaia("update", "a", "--metadata", "-", "--json", stdin=None)
    assert (ended.code, ended.error["code"]) == (7, "invalid_input")


def test_with_all_three_closed_the_work_is_done(gaia: Gaia, put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert program("update", "a", "--phase", "executing", through=through).code == 0
    assert gaia("get", "a").json["phase"] == "executing"
