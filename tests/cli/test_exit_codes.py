"""Every row of the table of exit codes, brought about for real, and what becomes of the streams."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Gaia = Callable[..., Any]

BROKEN = """
import gaia_sessions
def broken(*_, **__):
    raise ZeroDivisionError("broken on purpose")
gaia_sessions.Sessions.explain_resume = broken
"""

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
os.execv(sys.executable, [sys.executable, "-B", *sys.argv[1:]])
"""

WITHOUT_A_DESCRIPTOR = """
import resource, sys
from gaia_sessions.cli.main import main
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def held(gaia: Gaia, root: str) -> Iterator[Path]:
    """A session that this process holds; its lock file."""
    gaia("create", "--id", "held")
    path = Path(root, ".locks", "held.lock")
    with path.open("wb") as file:
        flock(file, LOCK_EX)
        yield path


@pytest.mark.parametrize(
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
    put: Gaia, spoil: Gaia, program: Gaia, words: list[str], code: int
) -> None:
    put("a")
    put("tired", error_count=3)
    spoil("torn")
    result = program(*words)
    assert (result.code, result.out == b"", result.err == b"") == (code, code > 1, code < 2)
    assert program(*words, "--json").code == code
    if code > 1:
        assert result.err.count(b"\n") == 2
        assert set(program(*words, "--json").error) == {"code", "message", "hint"}


def test_5_a_session_somebody_else_holds_all_the_while(program: Gaia, held: Path, root: str) -> None:
    before = Path(root, "held", "state.json").read_bytes()
    words = ("update", "held", "--phase", "planning", "--lock-timeout", "0.05")
    assert program(*words).all == (
        5,
        "",
        (
            f"Error: {held}: locked by process {os.getpid()} for more than 0.05 seconds\n"
            "Hint: try again, or wait longer with --lock-timeout\n"
        ),
    )
    assert program(*words, "--json").error["code"] == "lock_timeout"
    assert Path(root, "held", "state.json").read_bytes() == before


def test_a_held_session_is_read_all_the_same(program: Gaia, held: Path) -> None:
    assert held.is_file()
    assert [program(*words).code for words in (["get", "held"], ["should-resume", "held"], ["list"])] == [0, 1, 0]


@pytest.mark.parametrize("words", [["get", "a"], ["list"], ["update", "a"], ["should-resume", "a"], ["--help"], ["-V"]])
def test_8_an_answer_that_finds_no_space(put: Gaia, words: list[str]) -> None:
    put("a")
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "gaia_sessions", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ended.returncode, ended.stderr) == (
        8,
        (
            "Error: stdout: cannot write the output: No space left on device\n"
            "Hint: fix the reported problem and try again\n"
        ),
    )


@pytest.mark.parametrize("words", [["update", "a", "-m", "k=v"], ["create"], ["finalize", "a", "completed"]])
def test_8_a_record_that_finds_no_space_and_the_old_one_stays(gaia: Gaia, root: str, words: list[str]) -> None:
    gaia("create", "--id", "a")
    before = {path: path.read_bytes() for path in Path(root).glob("[!.]*/state.json")}
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, "-m", "gaia_sessions", *words], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (8, "")
    assert "File too large\n" in ended.stderr
    assert {path: path.read_bytes() for path in Path(root).glob("[!.]*/state.json")} == before


@pytest.mark.parametrize(
    "words",
    [["get", "a"], ["list"], ["create"], ["update", "a", "--phase", "x"], ["no-command"], ["show"]],
    ids="-".join,
)
def test_8_a_module_that_cannot_be_loaded_for_want_of_a_descriptor(put: Gaia, words: list[str]) -> None:
    put("a")

    def said(*more: str) -> tuple[int, str, str]:
        command = [sys.executable, "-c", WITHOUT_A_DESCRIPTOR, *words, *more]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    code, out, err = said()
    assert (code, out) == (8, "")
    assert re.fullmatch(
        r"Error: \S+\.pyc?: cannot load: Too many open files\nHint: fix the reported problem and try again\n", err
    )
    code, out, err = said("--json")
    assert (code, out, json.loads(err)["error"]["code"]) == (8, "", "io_error")


def test_8_a_root_that_is_a_file(program: Gaia, root: str) -> None:
    Path(root).write_bytes(b"in the way")
    for words in (["create"], ["get", "a"], ["list"]):
        ended = program(*words)
        assert (ended.code, ended.out, ended.err.count(b"\n")) == (8, b"", 2)
    assert Path(root).read_bytes() == b"in the way"


@pytest.fixture
def strace() -> tuple[str, ...]:
    command = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "signal=none", "-e", "trace=fsync")
    if which("strace") is None or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs strace, and the right to trace, to refuse a call")
    return command


def test_9_applied_but_the_disk_did_not_confirm_it(
    program: Gaia, gaia: Gaia, root: str, strace: tuple[str, ...]
) -> None:
    gaia("create", "--id", "a")
    gaia("update", "a")  # the first change syncs the root as well
    through = (*strace, "-e", "inject=fsync:error=EIO:when=2")
    ended = program("update", "a", "--phase", "approval", through=through)
    assert ended.all == (
        9,
        "",
        (
            f"Error: {root}/a: written, but the sync to disk failed: Input/output error\n"
            "Hint: check the disk; the change is visible\n"
        ),
    )
    assert gaia("get", "a").json["phase"] == "approval"


def test_8_when_the_record_itself_cannot_be_synced_nothing_is_applied(
    program: Gaia, gaia: Gaia, strace: tuple[str, ...]
) -> None:
    gaia("create", "--id", "a")
    ended = program("update", "a", "--phase", "approval", through=(*strace, "-e", "inject=fsync:error=EIO:when=1"))
    assert (ended.code, ended.out) == (8, b"")
    assert gaia("get", "a").json["phase"] == "initializing"


@pytest.fixture
def broken(tmp_path: Path, put: Gaia) -> dict[str, str]:
    """The environment of an installation in which one function is broken."""
    put("a")
    tmp_path.joinpath("site").mkdir()
    tmp_path.joinpath("site", "sitecustomize.py").write_text(BROKEN, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path / "site")}


def test_70_a_bug_is_two_lines_and_a_log(program: Gaia, broken: dict[str, str], away_from_home: Path) -> None:
    log = away_from_home / ".local/state/gaia-sessions/bugs.log"
    assert program("should-resume", "a", **broken).all == (
        70,
        "",
        f"Error: internal error in gaia-sessions\nHint: details: {log}\n",
    )
    text = log.read_text(encoding="utf-8")
    assert ("Traceback (most recent call last)" in text, "ZeroDivisionError: broken on purpose" in text) == (True, True)
    assert log.stat().st_mode & 0o777 == 0o600


def test_70_without_a_place_for_the_log_the_bug_itself_is_reported(program: Gaia, broken: dict[str, str]) -> None:
    ended = program("should-resume", "a", **broken, XDG_STATE_HOME="/dev/null")
    assert (ended.code, ended.out, b"ZeroDivisionError: broken on purpose" in ended.err) == (70, b"", True)


def test_70_speaks_json_when_asked(program: Gaia, broken: dict[str, str]) -> None:
    assert set(program("should-resume", "a", "--json", **broken).error) == {"code", "message", "hint"}


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

PIPES = [["get", "a"], ["list"], ["update", "a"], ["create"], ["--help"], ["schema"], ["list", "--json"]]


def into_broken_pipe(words: list[str]) -> tuple[int, str]:
    """How a command ends whose reader is gone already."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "gaia_sessions", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("words", [words for words in PIPES if words[0] not in {"--help", "schema"}], ids=" ".join)
def test_a_reader_that_is_gone_is_no_error(put: Gaia, words: list[str]) -> None:
    put("a")
    assert into_broken_pipe(words) == (0, "")


@pytest.mark.parametrize("words", [["--help"], ["schema"], ["list", "--json"]], ids=" ".join)
def test_a_reader_of_a_long_answer_that_is_gone_is_no_error_either(put: Gaia, words: list[str]) -> None:
    for number in range(40):
        put(f"a{number}", purpose="x" * 1000)
    assert into_broken_pipe(words) == (0, "")


def test_a_no_stays_a_no_when_its_reader_is_gone(put: Gaia) -> None:
    put("a", error_count=3)
    assert into_broken_pipe(["should-resume", "a"]) == (1, "")


def test_the_first_line_is_enough_for_head(put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", '"$@" | head -n 1', "sh")
    assert program("get", "a", through=through).all == (0, "{\n", "")
    assert program("list", through=through).code == 0


def test_whoever_closed_stdout_wants_no_answer(put: Gaia, program: Gaia) -> None:
    put("a")
    put("tired", error_count=3)
    through = ("sh", "-c", 'exec "$@" >&-', "sh")
    assert program("get", "a", through=through).all == (0, "", "")
    assert program("update", "a", through=through).all == (0, "", "")
    assert program("should-resume", "tired", through=through).all == (1, "", "")


def test_whoever_closed_stderr_still_gets_the_answer_and_the_code(put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", 'exec "$@" 2>&-', "sh")
    assert program("should-resume", "a", "--json", through=through).code == 0
    assert program("get", "nobody", through=through).all == (3, "", "")
    assert program("get", "nobody", through=("sh", "-c", 'exec "$@" 2>/dev/full', "sh")).all == (3, "", "")


def test_whoever_closed_stdin_can_do_all_but_read_from_it(put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", 'exec "$@" <&-', "sh")
    assert program("update", "a", through=through).code == 0
    ended = program("update", "a", "--metadata", "-", "--json", through=through)
    assert (ended.code, ended.error["code"]) == (7, "invalid_input")


def test_with_all_three_closed_the_work_is_done(gaia: Gaia, put: Gaia, program: Gaia) -> None:
    put("a")
    through = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert program("update", "a", "--phase", "executing", through=through).code == 0
    assert gaia("get", "a").json["phase"] == "executing"
