"""Exit codes that are caused for real, and commands whose streams are closed or broken."""

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
"""Runs each command line in a fork that has loaded no module of a command, and writes its exit code."""


@pytest.fixture
def held(gaia: Gaia, root: str) -> Iterator[Path]:
    """Creates a session and holds its lock; the lock file."""
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
def test_each_result_has_its_exit_code_and_errors_are_json_with_json(
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


def test_an_update_of_a_locked_session_exits_5(gaia: Gaia, held: Path, root: str) -> None:
    before = Path(root, "held", "state.json").read_bytes()
    words = ("update", "held", "--phase", "planning", "--lock-timeout", "0.05")
    assert gaia(*words).refusal == (
        5,
        f"{held}: locked by process {os.getpid()} for more than 0.05 seconds",
        "try again, or wait longer, for example with --lock-timeout 1m",
    )
    assert gaia(*words, "--json").error["code"] == "lock_timeout"
    assert Path(root, "held", "state.json").read_bytes() == before


def test_a_locked_session_can_be_read(gaia: Gaia, held: Path) -> None:
    assert held.is_file()
    assert [gaia(*words).code for words in (["get", "held"], ["should-resume", "held"], ["list"])] == [0, 1, 0]


NO_SPACE = (
    "Error: stdout: cannot write the output: No space left on device\n"
    "Hint: the command did its work, but its output is lost; redirect the output to another place\n"
)


@table("words", [["get", "a"], ["list"], ["update", "a"], ["should-resume", "a"], ["--help"], ["-V"]])
def test_output_to_a_full_disk_exits_8(gaia: Gaia, put: Gaia, words: list[str]) -> None:
    put("a")
    with open("/dev/full", "wb") as full:
        assert gaia(*words, stdout=full.fileno()).all == (8, "", NO_SPACE)


LONG = f"long={'x' * 2000}"


@fresh_table("words", [["update", "a", "-m", "k=v"], ["create", "-m", LONG], ["finalize", "a", "completed"]])
def test_a_record_that_cannot_be_written_exits_8_and_the_old_record_stays(
    gaia: Gaia, root: str, words: list[str]
) -> None:
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


def test_a_command_whose_module_cannot_be_loaded_exits_8(put: Gaia) -> None:
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


def test_commands_with_a_file_as_root_exit_8_and_keep_the_file(gaia: Gaia, root: str) -> None:
    Path(root).write_bytes(b"in the way")
    for words in (["create"], ["get", "a"], ["list"]):
        ended = gaia(*words)
        assert (ended.code, ended.out, ended.err.count(b"\n")) == (8, b"", 2)
    assert Path(root).read_bytes() == b"in the way"


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes one of the next syncs to disk fail: the first, the second ..."""

    def at(number: int) -> None:
        calls = count(1)
        sync = os.fsync

        def fail(descriptor: int) -> None:
            if next(calls) == number:
                raise OSError(EIO, os.strerror(EIO))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", fail)

    return at


def test_an_update_whose_folder_cannot_be_synced_is_applied_and_exits_9(gaia: Gaia, root: str, refuse: Gaia) -> None:
    gaia("create", "--id", "a")
    gaia("update", "a")  # the first change syncs the root as well
    refuse(2)
    assert gaia("update", "a", "--phase", "approval").refusal == (
        9,
        f"{root}/a: written, but the sync to disk failed: Input/output error",
        "check the disk: a power failure may undo the change",
    )
    assert gaia("get", "a").json["phase"] == "approval"


def test_an_update_whose_record_cannot_be_synced_changes_nothing_and_exits_8(gaia: Gaia, refuse: Gaia) -> None:
    gaia("create", "--id", "a")
    refuse(1)
    ended = gaia("update", "a", "--phase", "approval")
    assert (ended.code, ended.out) == (8, b"")
    assert gaia("get", "a").json["phase"] == "initializing"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, put: Gaia) -> None:
    """Breaks a function that ``should-resume`` calls."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    put("a")
    monkeypatch.setattr(gaia_sessions.Sessions, "explain_resume", fail)


@pytest.mark.usefixtures("broken")
def test_a_bug_exits_70_with_two_lines_and_a_log(gaia: Gaia, away_from_home: Path) -> None:
    log = away_from_home / ".local/state/gaia-sessions/bugs.log"
    assert gaia("should-resume", "a").refusal == (70, "internal error in gaia-sessions", f"details: {log}")
    text = log.read_text(encoding="utf-8")
    assert ("Traceback (most recent call last)" in text, "ZeroDivisionError: broken on purpose" in text) == (True, True)
    assert log.stat().st_mode & 0o777 == 0o600
    ended = gaia("should-resume", "a", "--json")
    assert (ended.code, set(ended.error)) == (70, {"code", "message", "hint"})


@pytest.mark.usefixtures("broken")
def test_a_bug_that_cannot_be_logged_is_printed_and_exits_70(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    ended = gaia("should-resume", "a")
    assert (ended.code, ended.out, b"ZeroDivisionError: broken on purpose" in ended.err) == (70, b"", True)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_during_a_wait_for_a_lock_exits_130(held: Path, root: str) -> None:
    before = Path(root, "held", "state.json").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "gaia_sessions", "update", "held"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (process.stdout is not None, process.stderr is not None) == (True, True)
    for line in process.stderr or ():
        if line.endswith("| filelock\n"):  # loaded only to wait for the lock
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    said = [line for line in err.splitlines() if line and not line.startswith("import time:")]
    assert (process.returncode, out, said) == (
        130,
        "",
        ["Error: interrupted", "Hint: changes that were reported before are stored"],
    )
    assert (Path(root, "held", "state.json").read_bytes(), held.exists()) == (before, True)


# Streams that are closed or broken


@table(
    ("words", "code"),
    [
        *((words, 0) for words in (["get", "a1"], ["list"], ["update", "a1"], ["create"])),
        *((words, 0) for words in (["--help"], ["schema"], ["list", "--json"])),
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


def test_a_full_disk_or_closed_pipe_adds_no_error_when_the_process_ends(put: Gaia, program: Gaia) -> None:
    put("a")
    assert program("get", "a", through=("sh", "-c", '"$@" | head -n 1', "sh")).answer == ["{"]
    assert program("get", "a", through=("sh", "-c", 'exec "$@" >/dev/full', "sh")).all == (8, "", NO_SPACE)
    gone = ("sh", "-c", 'exec 3>&1; { "$@"; echo $? >&3; } | true', "sh")
    put("tired", error_count=3)
    for words, code in ((["get", "a"], 0), (["should-resume", "tired"], 1)):
        assert program(*words, through=gone).all == (0, f"{code}\n", "")


@table(("words", "code"), [(["get", "a"], 0), (["update", "a"], 0), (["should-resume", "tired"], 1)])
def test_with_stdout_closed_commands_print_nothing_and_keep_their_exit_codes(
    gaia: Gaia, put: Gaia, words: list[str], code: int
) -> None:
    put("a")
    put("tired", error_count=3)
    assert gaia(*words, stdout=None).all == (code, "", "")


def test_with_stderr_closed_answers_and_exit_codes_stay_the_same(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("should-resume", "a", "--json", stderr=None).json["should_resume"] is True
    assert gaia("get", "nobody", stderr=None).all == (3, "", "")
    with open("/dev/full", "wb") as full:
        assert gaia("get", "nobody", stderr=full.fileno()).all == (3, "", "")


def test_with_stdin_closed_an_update_fails_only_if_it_reads_stdin(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("update", "a", stdin=None).code == 0
    ended = gaia("update", "a", "--metadata", "-", "--json", stdin=None)
    assert (ended.code, ended.error["code"]) == (7, "invalid_input")


def test_with_all_three_streams_closed_an_update_is_applied(gaia: Gaia, put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert program("update", "a", "--phase", "executing", through=through).code == 0
    assert gaia("get", "a").json["phase"] == "executing"
