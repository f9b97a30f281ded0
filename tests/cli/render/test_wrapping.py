"""Lines on a terminal wrap between words, but never inside text to copy; in a pipe each fact is one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from gaia_sessions.cli import group
from tests.cli.conftest import a_terminal, fresh_table
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Gaia

ID = "agent-20260108-180530-abc12345"
OTHER = "agent-20260108-180530-abc12346"
RUN = {"run": 1, "started_at": "2026-01-08T18:05:30Z"}

CHANGED: dict[str, dict[str, Any]] = {
    "yes": {"idle": timedelta(seconds=20)},
    "not ready": {"resume_ready": False},
    "clock": {"idle": timedelta(days=-1, minutes=-30)},
    "running": {"runs": [RUN]},
    "executing": {"phase": "executing", "resume_ready": False},
    "ended": {"phase": "completed", "resume_ready": False, "idle": timedelta(hours=2)},
}
SHOWN = {
    "yes": f"""\
yes: {ID} is in approval and has been idle for 20
     seconds; the limit is 30 minutes
  to resume it, put this line in the prompt of a sub-agent (needs the hooks):
    [gaia-sessions: resume {ID}]
""",
    "not ready": f"""\
no: resuming is off for {ID} (not_ready)
  start new work, or allow resuming again:
    gaia-sessions update {ID} --resume-ready
""",
    "clock": f"""\
no: the last activity of {ID} is 1 day in the future;
    the limit is 5 minutes (clock_skew)
  when the clock is right, type:
    gaia-sessions update {ID}
""",
    "running": f"""\
no: {ID} may still be at work: run 1 has not ended
    (running)
  do not resume it: its agent may still be at work
""",
    "executing": f"""\
no: {ID} is in executing, which is not resumable
    (phase_not_resumable)
  start new work: only investigating, planning and approval can be resumed
""",
    "ended": f"""\
no: {ID} has ended in phase completed
    (phase_not_resumable)
  it has been idle for 2 hours; the limit is 30 minutes (expired)
  start new work: this session has ended
""",
}


@fresh_table("case", SHOWN)
def test_should_resume_fits_80_columns_and_prints_text_to_copy_on_its_own_line(
    terminal: Gaia, gaia: Gaia, put: Gaia, case: str
) -> None:
    put(ID, **CHANGED[case])
    ended = terminal("should-resume", ID)
    shown = re.sub(r"idle for 2\d\n", "idle for 20\n", ended.out.decode())
    assert (ended.code, shown) == (int(case != "yes"), SHOWN[case])
    lines = gaia("should-resume", ID).lines
    assert [line for line in lines[1:] if not line.startswith("  ")] == []
    assert (f"    [gaia-sessions: resume {ID}]" in lines) == (case == "yes")
    assert [line for line in lines if line.startswith("   ")] == lines[-1:] * (case == "yes")


_COPIED = re.compile(r" +(gaia-sessions|find|/\S+|export|rm|cd) .*")


def test_errors_fit_the_terminal_even_if_stdout_is_a_file(terminal: Gaia, root: str, tmp_path: Path) -> None:
    with (tmp_path / "answer").open("wb") as file:
        ended = terminal("finalize", OTHER, "failed", stdout=file.fileno())
    error, hint = ended.out.decode().split("Hint: ")
    assert (ended.code, hint) == (3, "this root has no sessions; for another root, add --root DIR\n")
    assert (error.startswith(f"Error: no session '{OTHER}' in\n"), error.split()[-1]) == (True, root)
    assert (tmp_path / "answer").read_bytes() == b""


def test_json_is_never_wrapped(terminal: Gaia, put: Gaia) -> None:
    put(ID)
    for words in (["should-resume", OTHER], ["doctor"]):
        assert json.loads(terminal(*words, "--json").out)["checks"] != []
    assert list(json.loads(terminal("get", OTHER, "--json").out)) == ["error"]


def test_a_separate_process_prints_the_same_on_a_terminal(terminal: Gaia, put: Gaia) -> None:
    put(ID)
    command = [sys.executable, "-m", "gaia_sessions", "list"]
    with a_terminal(80) as (end, shown):
        subprocess.run(command, stdin=end, stdout=end, stderr=end, env={**os.environ, "TERM": "xterm"}, check=True)
    assert b"\x1b" in shown
    assert shown == terminal("list", TERM="xterm").out


def test_lines_are_not_wrapped_on_a_terminal_under_40_columns(terminal: Gaia, put: Gaia, gaia: Gaia) -> None:
    put(ID, resume_ready=False)
    assert terminal("should-resume", ID, columns=39).out == gaia("should-resume", ID).out
    assert terminal("should-resume", ID, columns=40).out != gaia("should-resume", ID).out


def test_the_patch_of_hooks_install_is_not_wrapped(
    terminal: Gaia, gaia: Gaia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    command = ("hooks", "install", "--user", "--dry-run")
    assert terminal(*command, columns=40).out == gaia(*command).out


LONG_ID = "agent-" + "z" * 80
LONG_WORD = "wort" * 40
CJK = "談話室漢字仮名交じり文、" * 8
EMOJI = "\U0001f469\u200d\U0001f4bb\U0001f642" * 30
ANY_TEXT = f"may I apply {LONG_WORD} and {CJK} or {EMOJI} then?"
COMMANDS = [
    *("show ID", "show ID --verbose", "show LONG", "report ID --verbose", "report failed", "wait ID LONG --timeout 0"),
    *(
        "pending",
        "resume",
        "resume ID LONG failed missing",
        "resume --host-session nobody",
        "transcript ID",
        "todo list ID",
        "todo add ID x",
    ),
    *("usage ID", "events ID", "should-resume LONG", "should-resume failed --verbose", "cancelled ID", "show missing"),
    *("get missing", "get torn", "wait missing --timeout 0", "list --agent nobody", "doctor", "hooks install"),
    *("cleanup --dry-run --hours 0", "reconcile --dry-run", "import .", "hooks status", "approve ID", "deny ID"),
    *("cancel ID", "update ID --phase planning", "update failed", "finalize failed completed", "rm missing", "update"),
    *("create --id new --parent LONG", "skill add ID a-skill --tokens 5", "list --nonsense"),
    *("should-resume missing", "hooks install --allow-report", "finalize failed failed --error x --summary y"),
    f"--root /no/such/{'folder/' * 20} list",
]
TO_COPY = re.compile(r"`[^`]*`|\[gaia-sessions: \w+ [\w-]+\]|gaia-sessions [a-z-]+(?: (?:--?[a-z]\S*|ID|latest))*")


@pytest.fixture
def project(tmp_path: Path, put: Gaia, spoil: Gaia, root: str) -> Callable[[], Path]:
    """Creates a project with blanks in its path and sessions with every kind of text."""
    long_ago = "2026-01-08T18:05:30Z"
    lost = {**RUN, "host": "claude-code", "ended_at": long_ago, "end": "lost"}
    asks = f"So:\n{ANY_TEXT}\n[gaia-sessions: approval] {ANY_TEXT}"
    todos = [{"description": ANY_TEXT, "status": "pending"}]
    stopped = {**lost, "end": "stopped", "detail": "said so in its last line", "last_message": asks}
    put(ID, agent_name="a" * 70, purpose=ANY_TEXT, todos=todos, metadata={"note": ANY_TEXT}, runs=[stopped])
    put(LONG_ID, phase="planning", purpose=ANY_TEXT, parent_id=ID, runs=[lost, {**RUN, "run": 2}])
    put("crashed", phase="planning", runs=[lost])
    error = {"message": ANY_TEXT, "timestamp": long_ago}
    put("failed", phase="failed", resume_ready=False, last_error=error, error_count=1)
    put("ahead", idle=timedelta(hours=-3))
    spoil("torn")
    place = tmp_path / "a project with blanks" / "and a long name of several words"

    def make() -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(root, place / ".claude" / "session")
        return place

    return make


@table("columns", [60, 80])
@table("line", COMMANDS)
def test_no_command_wraps_inside_a_word_or_inside_text_to_copy(
    terminal: Gaia, gaia: Gaia, project: Gaia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, columns: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "the home of somebody"))
    monkeypatch.delenv("GAIA_SESSIONS_ROOT", raising=False)
    words = [{"ID": ID, "LONG": LONG_ID, "missing": OTHER}.get(word, word) for word in line.split()]

    monkeypatch.chdir(project())
    ended = gaia(*words)
    piped = (ended.err + ended.out).decode()
    monkeypatch.chdir(place := str(project()))
    shown = terminal(*words, columns=columns).out.decode()

    assert words_but_of_numbers(shown) == words_but_of_numbers(piped)
    copied = {place, ID, LONG_ID, LONG_WORD, *TO_COPY.findall(piped)}
    assert {text: shown.count(text) for text in copied} == {text: piped.count(text) for text in copied}
    too_long = [line.strip().replace(place, "") for line in shown.splitlines() if cell_len(line) > columns]
    rests = [(line, TO_COPY.sub("", line)) for line in too_long if " " in line]
    assert [line for line, rest in rests if not any(_COPIED.fullmatch(f" {text}") for text in (line, rest))] == []


@table("columns", ["60", "80"])
def test_no_help_text_wraps_at_a_hyphen(gaia: Gaia, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    of_parts = [f"hooks {part}" for part in ("install", "uninstall", "status")] + ["todo add", "skill add"]
    for line in (*group.COMMANDS, *of_parts):
        lines = gaia(*line.split(), "--help").lines
        assert [shown for shown in lines if re.search(r"\w-$", shown)] == []
        assert "\0" not in "".join(lines)


TIMES = re.compile(r"just now|\d+ (?:second|minute|hour)s?(?: ago)?")


def words_but_of_numbers(text: str) -> list[str]:
    """The sorted words of ``text`` without times and numbers; words that are not ASCII as single characters."""
    words = re.sub(r"\d+", "", TIMES.sub("", " ".join(text.split()))).split()
    return sorted(part for word in words for part in ([word] if word.isascii() else word))
