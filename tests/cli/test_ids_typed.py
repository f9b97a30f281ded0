"""IDs as users type them: a beginning or an end, ``latest``, and IDs of missing sessions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX, flock
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import click
import pytest

import gaia_sessions
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.cli.group import COMMANDS, Commands
from gaia_sessions.cli.typed_ids import closest_id, resolve_id
from gaia_sessions.errors import SessionNotFound
from gaia_sessions.session.ids import bytes_made_of, new_agent_id
from gaia_sessions.store.file_store import FileStore
from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia

WHOLE = "agent-20260108-180530-abc12345"
AS_LISTED = "abc12345"
"""The short form in ``list``, which commands accept without a notice."""
OTHER = "agent-20260107-120000-0f0f0f0f"
MOMENT = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
LISTS = "`gaia-sessions list` shows the existing sessions"

READING = {
    **dict.fromkeys(("get", "show", "events", "transcript", "context"), ()),
    **dict.fromkeys(("should-resume", "cancelled", "report", "usage"), ()),
}
WRITING = {
    **dict.fromkeys(("approve", "deny", "reset"), ()),
    "update": ("--phase", "planning"),
    "finalize": ("failed",),
    "turn": ("-",),
}
ALL = {**READING, **WRITING}
A_TURN = b'[{"role": "user", "content": "Go on"}]'

each_command = table("command", ALL)
each_writing = table("command", WRITING)


def run(gaia: Gaia, command: str, typed: str, *options: str) -> Any:
    return gaia(command, typed, *ALL[command], *options, stdin=A_TURN)


def note(typed: str, whole: str = WHOLE) -> str:
    return f"using session {whole} for {typed}\n"


@pytest.fixture
def two(anew: Gaia, put: Gaia) -> Callable[[], None]:
    """Empties the folder and writes two sessions; ``WHOLE`` was active last."""

    def make() -> None:
        anew()
        put(WHOLE)
        put(OTHER, idle=timedelta(hours=1))

    return make


def test_every_command_that_takes_an_id_is_in_these_tests() -> None:
    group = Commands()
    taking = [
        name
        for name in COMMANDS
        for parameter in group.get_command(click.Context(group), name).params  # type: ignore[union-attr]  # all commands exist
        if isinstance(parameter, click.Argument)
        and (parameter.human_readable_name == "ID" or name in ("show", "usage"))
        and name != "send"  # it starts processes: see tests/cli/test_send.py
    ]
    assert sorted(taking) == sorted(ALL)


def test_a_reading_command_accepts_a_part_of_an_id_and_prints_no_notice(gaia: Gaia, two: Gaia) -> None:
    two()
    for command in READING:
        whole = run(gaia, command, WHOLE).all
        for typed in ("2345", AS_LISTED, "530-abc12345", "agent-20260108", WHOLE[:-1], "latest"):
            # a reading command prints no notice
            assert (command, typed, *run(gaia, command, typed).all) == (command, typed, *whole)


@table("typed", ["2345", "530-abc12345", WHOLE[:-4], "latest", AS_LISTED])
@each_writing
def test_a_writing_command_accepts_a_part_of_an_id_and_names_the_session_on_stderr(
    gaia: Gaia, two: Gaia, state: Gaia, command: str, typed: str
) -> None:
    two()
    before = state(OTHER)

    ended = run(gaia, command, typed)

    phase = {"update": "planning", "finalize": "failed"}.get(command, "approval")
    said = "" if typed == AS_LISTED else note(typed)  # the short form of the list gives no notice
    assert (ended.code, ended.err.decode(), ended.out.decode().startswith(f"{WHOLE}: ")) == (0, said, True)
    assert (state(WHOLE)["phase"], state(WHOLE)["revision"], state(OTHER)) == (phase, 2, before)


@table(("command", "notices"), [("get", 0), ("events", 0), ("update", 1), ("approve", 1)])
def test_with_json_a_writing_command_names_the_session_in_one_notice(
    gaia: Gaia, two: Gaia, command: str, notices: int
) -> None:
    two()
    ended = run(gaia, command, "2345", "--json")

    expected = {"code": "session_taken", "message": f"using session {WHOLE} for 2345", "hint": ""}
    assert ended.code == 0
    assert (json.loads(ended.err) if notices else ended.err) == ({"notice": expected} if notices else b"")
    if command != "events":
        assert json.loads(ended.out)["agent_id"] == WHOLE


@table(
    ("there", "typed"),
    [(["latest", WHOLE], "latest"), (["task-1", "task-12"], "task-1"), (["12345678", "x-12345678"], "12345678")],
)
@fresh_table("command", ALL)
def test_a_whole_id_selects_its_session_even_if_other_ids_contain_it(
    gaia: Gaia, put: Gaia, tree: Gaia, command: str, there: list[str], typed: str
) -> None:
    for number, agent_id in enumerate(there):
        put(agent_id, idle=timedelta(hours=len(there) - number))
    others = [agent_id for agent_id in there if agent_id != typed]
    before = {path: found for path, found in tree().items() if os.path.basename(os.path.dirname(path)) in others}

    ended = run(gaia, command, typed)

    assert (ended.code in (0, 1, 124), b"using session" in ended.err) == (True, False)
    assert before.items() <= tree().items()


def test_parts_of_ids_are_case_sensitive(gaia: Gaia, put: Gaia) -> None:
    put("task-1")
    put(WHOLE)
    assert [gaia("get", typed).code for typed in ("LATEST", "Task", "ABC12345", "task", "abc12345")] == [3, 3, 3, 0, 0]


TOO_SHORT = ("a", "age", "345")
NO_ID = ("*", "agent-*", "agent-20260108-180530-abc1234?", "[a]gent-2026", "2345\n")


@each_command
def test_a_short_part_or_an_invalid_id_matches_no_session(gaia: Gaia, put: Gaia, tree: Gaia, command: str) -> None:
    put(WHOLE)
    before = tree()
    assert [run(gaia, command, typed).code for typed in TOO_SHORT] == [3] * len(TOO_SHORT)
    assert [run(gaia, command, typed).code for typed in NO_ID] == [7] * len(NO_ID)
    empty = run(gaia, command, "")
    assert (empty.code, empty.err.splitlines()[0]) == (7, b"Error: '' is not a session ID: empty")
    assert tree() == before


GENERATED = (WHOLE, WHOLE.upper(), "Agent-20260108-180530-ABC12345")
UNSET = ("null", "None", "undefined")
"""What programs print for a missing ID."""


def test_a_generated_id_or_a_word_like_null_is_never_a_part(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    """So an agent whose session is gone, or that has no ID, changes no other session."""
    for typed in GENERATED:
        put(f"{typed}-again")
        put(f"copy-of-{typed}")
    for unset in UNSET:
        put(f"{unset}-pointer-fix")
    before = tree()
    asked = [(command, typed) for command in ALL for typed in GENERATED]
    asked += [(command, unset) for command in WRITING for unset in UNSET]
    assert [one for one in asked if run(gaia, *one).code != 3] == []
    assert tree() == before


@table("words", [(), ("--json",)])
@each_command
def test_a_part_of_several_ids_is_a_usage_error_that_lists_them(
    gaia: Gaia, put: Gaia, tree: Gaia, command: str, words: tuple[str, ...]
) -> None:
    for letter in "abc":
        put(f"agent-20260108-180530-{letter * 8}")
    before = tree()

    ended = run(gaia, command, "agent-2026", *words)

    listed = ", ".join(f"agent-20260108-180530-{letter * 8}" for letter in "abc")
    message, hint = (
        f"'agent-2026' is the beginning or end of 3 IDs: {listed}",
        "type more of the ID, for example its end as `gaia-sessions list` shows it",
    )
    error = {"code": "ambiguous_id", "message": message, "hint": hint}
    expected = {"error": error} if words else f"Error: {message}\nHint: {hint}\n"
    assert (ended.code, ended.out, json.loads(ended.err) if words else ended.err.decode()) == (2, b"", expected)
    assert tree() == before


def test_an_ambiguous_part_lists_five_ids_and_counts_the_others(gaia: Gaia, put: Gaia) -> None:
    for number in range(17):
        put(f"task-{number:02}")
    put("the-task")
    assert gaia("get", "task", "--json").error["message"] == (
        "'task' is the beginning or end of 18 IDs: task-00, task-01, task-02, task-03, task-04 and 13 more"
    )


@table(
    ("line", "dim"),
    [
        ("update latest", True),
        ("show latest", False),
        ("events latest", False),
        ("report latest", False),
        ("wait latest --timeout 0", False),
        ("tree latest", False),
        ("usage latest", False),
        ("usage latest --charge 5", True),
        ("todo list latest", False),
        ("todo add latest read", True),
        ("transcript latest", False),
        ("transcript latest --append user hello", True),
        ("skill add latest aws --tokens 5", True),
        ("finalize latest failed", True),
        ("cancel latest", True),
        ("create --parent latest", True),
    ],
)
def test_at_a_terminal_only_writing_commands_name_the_session_in_a_dim_line(
    terminal: Gaia, two: Gaia, line: str, *, dim: bool
) -> None:
    two()
    shown = terminal(*line.split()).lines

    told = note("latest").rstrip()
    assert [text for text in shown if "using session" in text] == ([f"\x1b[2m{told}\x1b[22m"] if dim else [])


@table("plain", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_a_terminal_without_styles_gets_the_session_in_a_plain_line(
    terminal: Gaia, two: Gaia, plain: dict[str, str]
) -> None:
    two()
    assert terminal("update", "latest", **plain).lines[0] == note("latest").rstrip()


# latest


def test_latest_is_the_first_readable_session_of_the_list(gaia: Gaia, put: Gaia, spoil: Gaia) -> None:
    put("older", idle=timedelta(minutes=9))
    put("newest", phase="completed", resume_ready=False, idle=timedelta(minutes=2))
    spoil("zz-torn")
    put("later-version", schema=2, phase="dreaming")

    listed = [line["agent_id"] for line in gaia("list", "--json").json]

    assert [agent_id for agent_id in listed if agent_id not in ("zz-torn", "later-version")] == ["newest", "older"]
    assert gaia("get", "latest").json["agent_id"] == "newest"


@table("typed", ["latest", "nobody"])
@each_command
def test_in_a_missing_root_neither_latest_nor_an_id_is_found(gaia: Gaia, root: str, command: str, typed: str) -> None:
    ended = run(gaia, command, typed)

    hint = "this root has no sessions; for another root, add --root DIR"
    if command == "should-resume":
        advice = f"searched in {root}; {hint}; or start new work"
        assert ended.all == (3, f"no: there is no session {typed} (not_found)\n  {advice}\n", "")
    else:
        assert ended.refusal == (3, f"no session '{typed}' in {root}", hint)
    assert not os.path.exists(root)


def test_without_a_readable_session_latest_is_not_found(gaia: Gaia, root: str, spoil: Gaia) -> None:
    spoil("torn")
    hint = "no session in this root can be read; `gaia-sessions list` says why"
    assert gaia("get", "latest").refusal == (3, f"no session 'latest' in {root}", hint)


@fresh_table("command", ALL)
def test_a_part_of_the_id_of_a_corrupt_session_gives_its_error(gaia: Gaia, spoil: Gaia, command: str) -> None:
    spoil(WHOLE)
    whole, part = run(gaia, command, WHOLE), run(gaia, command, "2345")

    said = note("2345") if command in WRITING else ""
    assert whole.code == (0 if command == "events" else 6)
    assert part.all == (whole.code, whole.out.decode(), said + whole.err.decode())


# Parts of IDs


def test_the_beginning_of_the_random_digits_is_accepted_but_not_their_middle(gaia: Gaia, two: Gaia) -> None:
    two()
    assert gaia("get", "abc1").json["agent_id"] == WHOLE
    assert gaia("get", "bc12").code == 3


@fresh_table(("typed", "there"), [("depl", "deploy-frontend"), ("tend", "deploy-frontend"), ("agent-20260108", WHOLE)])
def test_update_accepts_a_unique_beginning_or_end_and_names_the_session(
    gaia: Gaia, put: Gaia, state: Gaia, typed: str, there: str
) -> None:
    put(there)

    ended = gaia("update", typed, "--phase", "executing")

    assert (ended.code, ended.err.decode()) == (0, note(typed, there))
    assert state(there)["phase"] == "executing"


def test_a_session_removed_after_it_was_found_is_missing_and_no_other_is_changed(
    put: Gaia, state: Gaia, root: str, tmp_path: Path
) -> None:
    put(WHOLE)
    put(f"{WHOLE}-2345")
    before = state(f"{WHOLE}-2345")
    locks = Path(root, ".locks")
    locks.mkdir()
    typed = WHOLE[:-2]
    shutil.move(f"{root}/{WHOLE}-2345", tmp_path / "aside")
    with Path(locks, f"{WHOLE}.lock").open("wb") as held:
        flock(held, LOCK_EX)
        updating = subprocess.Popen(
            [sys.executable, "-m", "gaia_sessions", "update", typed, "--phase", "planning"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert updating.stderr is not None
        taken = updating.stderr.readline()
        shutil.move(tmp_path / "aside", f"{root}/{WHOLE}-2345")
        shutil.rmtree(f"{root}/{WHOLE}")
    out, err = updating.communicate(timeout=60)

    assert taken == note(typed)
    hint = f"did you mean {WHOLE}-2345? {LISTS}"
    assert (updating.returncode, out, err) == (3, "", f"Error: no session '{WHOLE}' in {root}\nHint: {hint}\n")
    assert (state(f"{WHOLE}-2345"), Path(root, WHOLE).exists()) == (before, False)


def test_the_search_for_a_part_prefers_a_session_with_that_whole_id(root: str, put: Gaia) -> None:
    put("task-1")
    put("task-12")
    assert resolve_id(Sessions(root), "task-1") == "task-1"


def test_the_python_api_takes_whole_ids_only(root: str, put: Gaia) -> None:
    put(WHOLE)
    for typed in ("2345", "latest"):
        assert gaia_sessions.get_session(typed, root=root) is None
        assert gaia_sessions.should_resume(typed, root=root) is False
        with pytest.raises(SessionNotFound):
            gaia_sessions.update_state(typed, root=root)


# Missing sessions


@table(
    ("typed", "near"),
    [
        ("agent-20260108-180530-abc12346", WHOLE),
        (WHOLE.upper(), WHOLE),
        ("abc12354", WHOLE),
        ("deploy-forntend", "deploy-frontend"),
        ("depoly", "deploy-frontend"),
        ("front", "deploy-frontend"),
        ("20260108-180530-abc12354", WHOLE),
        ("agent-20260109-180530-abc12345", WHOLE),
        ("agent-20260108-180530-abd12543", None),
        ("agent-2o260108", None),
        ("deploy-backend", None),
        ("agent-20251231-235959-77777777", None),
        ("nobody", None),
        ("y-fr", "deploy-frontend"),
    ],
)
@each_command
def test_the_error_for_a_missing_session_names_the_root_and_the_closest_id(
    gaia: Gaia, put: Gaia, root: str, command: str, typed: str, near: str | None
) -> None:
    put(WHOLE)
    put("deploy-frontend")

    ended = run(gaia, command, typed)

    message = f"no session '{typed}' in {root}"
    hint = f"did you mean {near}? {LISTS}" if near else LISTS
    if command == "should-resume":
        said = f"no: there is no session {typed} (not_found)\n  searched in {root}; {hint}; or start new work\n"
        assert ended.all == (3, said, "")
    else:
        assert ended.refusal == (3, message, hint)


def test_with_json_should_resume_names_the_closest_id_of_a_missing_session(gaia: Gaia, put: Gaia, root: str) -> None:
    put("deploy-frontend")

    ended = gaia("should-resume", "deploy-forntend", "--json")

    decision = json.loads(ended.out)
    assert (ended.code, ended.err, decision["should_resume"], decision["reason"], decision["agent_id"]) == (
        3,
        b"",
        False,
        "not_found",
        "deploy-forntend",
    )
    assert decision["advice"] == (f"searched in {root}; did you mean deploy-frontend? {LISTS}; or start new work")


def test_no_id_is_the_closest_if_two_are_equally_close() -> None:
    assert closest_id("task-7", ["task-1", "other-1"]) == "task-1"
    assert closest_id("task-7", ["task-1", "task-2"]) is None
    assert closest_id("task", ["task-1", "task-2"]) is None


def test_ids_that_were_generated_in_the_same_second_are_not_near_each_other(gaia: Gaia, put: Gaia, root: str) -> None:
    ids = [new_agent_id(MOMENT, bytes_made_of(str(number))) for number in range(200)]
    for number in (0, 1):
        put(ids[number])
    assert [closest_id(agent_id, ids[:100]) for agent_id in ids[100:]] == [None] * 100
    assert gaia("get", ids[100]).refusal == (3, f"no session '{ids[100]}' in {root}", LISTS)


@table(
    ("typed", "hint"),
    [
        ("aa", "did you mean aa-of-one?"),
        ("bb", "to see the 2 IDs that fit: gaia-sessions list -q | grep bb"),
        ("345", f"did you mean {WHOLE}?"),
        ("zz", LISTS),
    ],
)
def test_a_part_below_four_characters_is_refused_with_a_hint(
    gaia: Gaia, put: Gaia, root: str, typed: str, hint: str
) -> None:
    for agent_id in ("aa-of-one", "bb-of-two", "two-of-bb", WHOLE):
        put(agent_id)
    expected = f"Error: no session '{typed}' in {root}\nHint: type at least 4 characters of the ID; {hint}\n"
    assert gaia("get", typed).all == (3, "", expected)


# Cost


OF_EACH = """
import io, os, sys
from gaia_sessions.cli.main import main
root, typed, turn, *lines = sys.argv[1:]
for line in lines:
    command, *words = line.split()
    sys.stdin = io.TextIOWrapper(io.BytesIO(turn.encode()))
    sys.modules.pop("gaia_sessions.cli.typed_ids", None)
    os.path.exists(f"/what it looks at: {command}")
    code = main([command, typed, *words, "--root", f"{root}/{command}"])
    resolved = "gaia_sessions.cli.typed_ids" in sys.modules
    print(f"/what it loads: {command}", code in (0, 1, 2, 124), resolved, "difflib" in sys.modules, file=sys.stderr)
"""
"""Runs command lines in one new interpreter, each on a root of its own."""


def watched(log: Path, root: Path, typed: str, other: str) -> list[tuple[object, ...]]:
    """For each command: whether it ran, loaded the search for IDs, loaded difflib, and looked at ``other``."""
    through = ("strace", "-f", "-qq", "-e", "trace=openat,stat,lstat,newfstatat,statx", "-o", str(log))
    lines = [" ".join((command, *words)) for command, words in ALL.items()]
    words = [*through, sys.executable, "-c", OF_EACH, str(root), typed, A_TURN.decode(), *lines]
    said = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    loaded = [line.partition(": ")[2].split() for line in said.splitlines() if line.startswith("/what it loads: ")]
    names = log.read_text(encoding="utf-8", errors="replace").split("/what it looks at: ")[1:]
    return [
        (command, *(word == "True" for word in found), other in section)
        for (command, *found), section in zip(loaded, names, strict=True)
        if section.startswith(f'{command}"')
    ]


@pytest.mark.skipif(which("strace") is None, reason="needs strace to see which files are looked at")
@pytest.mark.parametrize("agent_id", [WHOLE, "task-1"])
def test_a_whole_id_is_found_without_a_look_at_other_sessions(
    put: Gaia, root: str, tmp_path: Path, agent_id: str
) -> None:
    put(agent_id)
    put(f"{agent_id}-2")
    FileStore(root).ensure_index()
    for command in ALL:
        shutil.copytree(root, tmp_path / "roots" / command)

    whole = watched(tmp_path / "calls", tmp_path / "roots", agent_id, f"{agent_id}-2")
    part = watched(tmp_path / "calls", tmp_path / "roots", agent_id[:-1], f"{agent_id}-2")

    assert whole == [(command, True, False, False, False) for command in ALL]
    assert [(*one[:3], one[4]) for one in part] == [(command, True, True, True) for command in ALL]
