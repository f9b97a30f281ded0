from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import errors
from gaia_sessions.cli import exit_codes
from gaia_sessions.cli.exit_codes import EXIT_CODES
from gaia_sessions.errors import (
    AgentAtWork,
    AmbiguousId,
    AnswerOfAgent,
    BadArgument,
    BadSetting,
    Cancelled,
    Conflict,
    CorruptSession,
    DurabilityUnknown,
    HooksElsewhere,
    IllegalMove,
    InvalidId,
    InvalidInput,
    LinkedElsewhere,
    LockTimeout,
    LockUnsupported,
    NewerSchema,
    NoSuchFolder,
    NoSuchTodo,
    NotApproved,
    NothingToAnswer,
    NoToolsLeft,
    NotRemovable,
    NotTheNextTurn,
    OwnedByAnother,
    ResumeNotAllowed,
    RevisionChanged,
    RunGone,
    RunNotAllowed,
    SessionExists,
    SessionFinal,
    SessionNotFound,
    SessionsError,
    SettingsUnreadable,
    StateChanged,
    StoreFailure,
    TaskRefused,
    TooDeep,
    TooLarge,
    TooManyChildren,
    UnknownHost,
    UnknownOutcome,
    UnknownPhase,
    UnknownState,
    UnknownWord,
    UsageError,
    others,
)
from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

# One of each kind: the error, its code, its exit code, its message, its hint, its own data.
EXAMPLES: list[tuple[SessionsError, str, int, str, str, dict[str, object]]] = [
    (UsageError("not so", "but so"), "usage", 2, "not so", "but so", {}),
    (
        UnknownWord("sleeping", ["planning", "approval"]),
        "unknown_word",
        2,
        "unknown word 'sleeping'",
        "the words are planning, approval",
        {"word": "sleeping", "known": ("planning", "approval")},
    ),
    (
        UnknownPhase("sleeping", ["planning", "approval"]),
        "unknown_phase",
        2,
        "unknown phase 'sleeping'",
        "the phases are planning, approval",
        {"word": "sleeping", "known": ("planning", "approval")},
    ),
    (
        UnknownState("sleeping", ["waiting", "cut short"]),
        "unknown_state",
        2,
        "unknown state 'sleeping'",
        "the states are waiting, cut short",
        {"word": "sleeping", "known": ("waiting", "cut short")},
    ),
    (
        UnknownOutcome(None, iter(["completed", "failed"])),
        "unknown_outcome",
        2,
        "unknown outcome None",
        "the outcomes are completed, failed",
        {"word": None, "known": ("completed", "failed")},
    ),
    (
        UnknownHost("claude", iter(["claude-code", "codex"])),
        "unknown_host",
        2,
        "unknown host 'claude'",
        "the hosts are claude-code, codex",
        {"word": "claude", "known": ("claude-code", "codex")},
    ),
    (
        BadArgument("hours", -1, "a number from 0"),
        "bad_argument",
        2,
        "hours -1 is not valid",
        "must be a number from 0",
        {"name": "hours", "value": -1, "wanted": "a number from 0"},
    ),
    (
        NoSuchFolder("/old"),
        "no_such_folder",
        2,
        "'/old' is not a folder",
        "name a project, a folder that has one folder per session, or the folder of one session",
        {"path": "/old"},
    ),
    (
        BadSetting("GAIA_SESSIONS_HOOKS", "hooks = 'maybe'", "on or off"),
        "bad_setting",
        2,
        "GAIA_SESSIONS_HOOKS: hooks = 'maybe'",
        "on or off",
        {"origin": "GAIA_SESSIONS_HOOKS", "problem": "hooks = 'maybe'"},
    ),
    (
        SessionNotFound("agent-1"),
        "not_found",
        3,
        "no session 'agent-1'",
        "`gaia-sessions list` shows the existing sessions",
        {"agent_id": "agent-1", "root": None},
    ),
    (
        AmbiguousId("agent", iter(["agent-1", "agent-2"])),
        "ambiguous_id",
        2,
        "'agent' is the beginning or end of 2 IDs: agent-1, agent-2",
        "type more of the ID: `gaia-sessions list` shows the existing sessions",
        {"typed": "agent", "candidates": ("agent-1", "agent-2")},
    ),
    (Conflict("no", "ask otherwise"), "conflict", 4, "no", "ask otherwise", {}),
    (
        SessionExists("agent-1"),
        "exists",
        4,
        "session 'agent-1' already exists",
        "leave out the ID to have one generated",
        {"agent_id": "agent-1"},
    ),
    (
        SessionFinal("agent-1", "completed"),
        "final",
        4,
        "session 'agent-1' is completed and can no longer be changed",
        "create a new session for further work",
        {"agent_id": "agent-1", "phase": "completed"},
    ),
    (
        IllegalMove("planning", "initializing", iter(["approval", "failed"])),
        "illegal_move",
        4,
        "a session cannot go from planning to initializing",
        "from planning it can go to approval, failed",
        {"from_phase": "planning", "to_phase": "initializing", "allowed": ("approval", "failed")},
    ),
    (
        IllegalMove("completed", "planning", []),
        "illegal_move",
        4,
        "a session cannot go from completed to planning",
        "from completed it can go to no other phase: it is final",
        {"from_phase": "completed", "to_phase": "planning", "allowed": ()},
    ),
    (
        AgentAtWork("agent-1", "its agent is at work", "wait for it"),
        "agent_at_work",
        4,
        "session 'agent-1' cannot go on: its agent is at work",
        "wait for it",
        {"agent_id": "agent-1", "problem": "its agent is at work"},
    ),
    (
        RunNotAllowed("agent-1", "its agent is at work", "wait for it"),
        "run_not_allowed",
        4,
        "session 'agent-1' cannot go on: its agent is at work",
        "wait for it",
        {"agent_id": "agent-1", "problem": "its agent is at work"},
    ),
    (
        RunGone("agent-1", 2),
        "run_gone",
        4,
        (
            "session 'agent-1' does not have this run 2 any more: "
            "somebody took it to be gone, or the session was removed and created again, or restored from a copy"
        ),
        "`gaia-sessions show agent-1` shows what it has",
        {"agent_id": "agent-1", "number": 2},
    ),
    (
        NotApproved("agent-1"),
        "not_approved",
        4,
        "session 'agent-1' waits for an approval, which only a person gives",
        "a person types this in a terminal, then the same again: gaia-sessions approve agent-1",
        {"agent_id": "agent-1", "answered": None},
    ),
    (
        NotApproved("agent-1", "denied"),
        "not_approved",
        4,
        "session 'agent-1' was denied, and an agent's shell does not move it on",
        "its resume line goes on with it, and tells its agent what was answered",
        {"agent_id": "agent-1", "answered": "denied"},
    ),
    (
        AnswerOfAgent("agent-1", "Claude Code", "deny"),
        "answer_of_agent",
        4,
        "only a person answers for session 'agent-1', and this is a shell of Claude Code's agent",
        "a person types this in a terminal outside of Claude Code: gaia-sessions deny agent-1",
        {"agent_id": "agent-1", "client": "Claude Code", "command": "deny"},
    ),
    (
        NothingToAnswer("agent-1", "it is planning"),
        "nothing_to_answer",
        4,
        "session 'agent-1' is not waiting for an approval: it is planning",
        "`gaia-sessions pending` shows what waits, and how it is answered",
        {"agent_id": "agent-1", "problem": "it is planning"},
    ),
    (
        NotRemovable({"agent-1": "open"}, ["agent-1"], []),
        "not_removable",
        4,
        "session 'agent-1' is open",
        "nothing was removed; add --force to remove it all the same",
        {"reasons": {"agent-1": "open"}, "wanted": ("agent-1",), "open_below": ()},
    ),
    (
        NotRemovable({"a": "above_open", "b": "running", "c": "above_open"}, ["a", "b", "c"], ["d"]),
        "not_removable",
        4,
        "session 'b' has ended, but an agent may still be at work on it; 2 sessions have open ones below them: 'a', 'c'",  # noqa: E501  # as it is said
        "nothing was removed; to remove them all, type gaia-sessions rm --force a b c d",
        {
            "reasons": {"a": "above_open", "b": "running", "c": "above_open"},
            "wanted": ("a", "b", "c"),
            "open_below": ("d",),
        },
    ),
    (
        NotRemovable({"a": "above_open"}, ["a"], ["b", "c", "d", "e", "f", "g"]),
        "not_removable",
        4,
        "session 'a' has an open one below it",
        "nothing was removed; to see what is below it, type gaia-sessions tree a",
        {"reasons": {"a": "above_open"}, "wanted": ("a",), "open_below": ("b", "c", "d", "e", "f", "g")},
    ),
    (
        NotTheNextTurn("agent-1", 5, 4),
        "not_the_next_turn",
        4,
        "turn 5 of session 'agent-1' is not the next one",
        "the next is 4: `gaia-sessions turn agent-1 - --number 4`",
        {"agent_id": "agent-1", "number": 5, "following": 4},
    ),
    (
        NotTheNextTurn("agent-1", 3, 4),
        "not_the_next_turn",
        4,
        "turn 3 of session 'agent-1' is complete, with other messages",
        "the next is 4: `gaia-sessions turn agent-1 - --number 4`",
        {"agent_id": "agent-1", "number": 3, "following": 4},
    ),
    (
        NoSuchTodo("agent-1", 3, 2),
        "no_such_todo",
        4,
        "session 'agent-1' has no todo 3: its todos are numbered from 1 to 2",
        "`gaia-sessions todo list agent-1` shows its todos",
        {"agent_id": "agent-1", "number": 3, "count": 2},
    ),
    (
        NoSuchTodo("agent-1", 1, 0),
        "no_such_todo",
        4,
        "session 'agent-1' has no todo 1: it has no todos",
        "`gaia-sessions todo add agent-1 TEXT` adds one",
        {"agent_id": "agent-1", "number": 1, "count": 0},
    ),
    (
        ResumeNotAllowed("agent-1", "executing"),
        "resume_not_allowed",
        4,
        "session 'agent-1' cannot be made ready to resume while executing",
        "move it to investigating, planning or approval first",
        {"agent_id": "agent-1", "phase": "executing"},
    ),
    (
        RevisionChanged("agent-1", 3, 5),
        "revision_changed",
        4,
        "session 'agent-1' is at revision 5, not 3",
        "read the session again and retry with its current revision",
        {"agent_id": "agent-1", "asked": 3, "actual": 5},
    ),
    (
        StateChanged("agent-1", "another message was added"),
        "state_changed",
        4,
        "agent-1: another message was added since it was read",
        "read the session again, and repeat the change",
        {"agent_id": "agent-1", "what": "another message was added"},
    ),
    (
        NewerSchema("agent-1", 2, 1),
        "newer_schema",
        4,
        "session 'agent-1' has schema 2; this version writes 1 and can only show newer ones",
        "update gaia-sessions",
        {"agent_id": "agent-1", "schema": 2, "known": 1},
    ),
    (
        Cancelled("agent-1", "2026-01-08T18:05:30.000000Z", "no longer needed", "agent-0"),
        "cancelled",
        10,
        "session 'agent-1' is cancelled since 2026-01-08T18:05:30.000000Z, with 'agent-0' above it: no longer needed",
        "stop; what was stored so far is kept",
        {"agent_id": "agent-1", "at": "2026-01-08T18:05:30.000000Z", "reason": "no longer needed", "by": "agent-0"},
    ),
    (
        Cancelled(None),
        "cancelled",
        10,
        "the work is cancelled",
        "stop; what was stored so far is kept",
        {"agent_id": None, "at": None, "reason": None, "by": None},
    ),
    (
        TooDeep("agent-8", 9, 8),
        "too_deep",
        4,
        "a session below 'agent-8' would have depth 9; the limit is 8",
        "create it below a session further up: `gaia-sessions tree` shows all levels",
        {"parent_id": "agent-8", "depth": 9, "max_depth": 8},
    ),
    (
        TooManyChildren("agent-0", iter(["agent-1", "agent-2"]), 2),
        "too_many_children",
        4,
        "session 'agent-0' has 2 children at work; the limit is 2",
        "wait until one of them has ended, or cancel one: agent-1, agent-2",
        {"parent_id": "agent-0", "at_work": ("agent-1", "agent-2"), "limit": 2},
    ),
    (
        HooksElsewhere("claude-code", "/p/.claude/settings.json", "project"),
        "hooks_elsewhere",
        4,
        "/p/.claude/settings.json already has the hooks for claude-code",
        "update them there with --project, or remove them first: gaia-sessions hooks uninstall --project",
        {"host": "claude-code", "path": "/p/.claude/settings.json", "scope": "project"},
    ),
    (
        LockTimeout("session/.locks/a.lock", 10.0, 4711),
        "lock_timeout",
        5,
        "session/.locks/a.lock: locked by process 4711 for more than 10 seconds",
        "try again, or wait longer with --lock-timeout",
        {"path": "session/.locks/a.lock", "seconds": 10.0, "holder": 4711},
    ),
    (
        LockTimeout("a.lock", 0.5, None),
        "lock_timeout",
        5,
        "a.lock: locked by another process for more than 0.5 seconds",
        "try again, or wait longer with --lock-timeout",
        {"path": "a.lock", "seconds": 0.5, "holder": None},
    ),
    (
        CorruptSession("agent-1", "agent-1/state.json", "line 1 column 1: not JSON"),
        "corrupt",
        6,
        "agent-1/state.json: line 1 column 1: not JSON",
        "`gaia-sessions doctor` has the command that repairs or removes it, or the file to fix",
        {"agent_id": "agent-1", "path": "agent-1/state.json", "problem": "line 1 column 1: not JSON"},
    ),
    (
        InvalidInput("must be a string, not a number", "summary"),
        "invalid_input",
        7,
        "summary: must be a string, not a number",
        "",
        {"problem": "must be a string, not a number", "where": "summary"},
    ),
    (
        InvalidInput("nothing came", hint="send something"),
        "invalid_input",
        7,
        "nothing came",
        "send something",
        {"problem": "nothing came", "where": ""},
    ),
    (
        InvalidId("..", "does not begin with a letter or digit"),
        "invalid_id",
        7,
        "'..' is not a session ID: does not begin with a letter or digit",
        "an ID looks like agent-123: letters, digits, . _ -",
        {
            "value": "..",
            "problem": "'..' is not a session ID: does not begin with a letter or digit",
            "where": "",
        },
    ),
    (
        SettingsUnreadable("settings.json", "not JSON: Expecting value", "line 1 column 2"),
        "settings_unreadable",
        7,
        "settings.json: line 1 column 2: not JSON: Expecting value",
        "correct the file; it was not changed",
        {
            "path": "settings.json",
            "place": "line 1 column 2",
            "problem": "not JSON: Expecting value",
            "where": "settings.json: line 1 column 2",
        },
    ),
    (
        NoToolsLeft(["cat", "ls"], ["rm"], ["cat is blocked for sub-agents", "ls is not among the tools of a"]),
        "no_tools_left",
        7,
        (
            "no allowed tools are left: cat is blocked for sub-agents; ls is not among the tools of a; "
            "requested: cat, ls; available: rm"
        ),
        "request a tool that is available and not blocked",
        {
            "requested": ("cat", "ls"),
            "available": ("rm",),
            "reasons": ("cat is blocked for sub-agents", "ls is not among the tools of a"),
            "problem": "no allowed tools are left: cat is blocked for sub-agents; ls is not among the tools of a; "
            "requested: cat, ls; available: rm",
            "where": "",
        },
    ),
    (
        TaskRefused("Explain", "it asks for analysis"),
        "task_refused",
        7,
        "it asks for analysis",
        "word the task so that it asks for facts, or type GAIA_SESSIONS_GUARD_MODE=off before the command",
        {"keyword": "Explain", "problem": "it asks for analysis", "where": ""},
    ),
    (
        TooLarge("the document", 11, 10),
        "too_large",
        7,
        "the document is over the limit of 10 bytes",
        "keep long texts in a file and store its name",
        {
            "what": "the document",
            "size": 11,
            "limit": 10,
            "problem": "the document is over the limit of 10 bytes",
            "where": "",
        },
    ),
    (
        StoreFailure("write", "state.json", "No space left on device"),
        "io_error",
        8,
        "state.json: cannot write: No space left on device",
        "fix the reported problem and try again",
        {"action": "write", "path": "state.json", "reason": "No space left on device"},
    ),
    (
        StoreFailure("read", "state.json", "Permission denied", "chmod it"),
        "io_error",
        8,
        "state.json: cannot read: Permission denied",
        "chmod it",
        {"action": "read", "path": "state.json", "reason": "Permission denied"},
    ),
    (
        LockUnsupported(".locks", "Function not implemented"),
        "lock_unsupported",
        8,
        ".locks: cannot lock: Function not implemented",
        "keep the sessions on a local file system",
        {"action": "lock", "path": ".locks", "reason": "Function not implemented"},
    ),
    (
        OwnedByAnother("/p/.claude", "alice", "bob"),
        "other_user",
        8,
        "/p/.claude: cannot use the sessions: it belongs to alice, and you are bob",
        'sessions are private to a user; store yours elsewhere: export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"',
        {
            "action": "use the sessions",
            "path": "/p/.claude",
            "reason": "it belongs to alice, and you are bob",
            "owner": "alice",
            "user": "bob",
        },
    ),
    (
        LinkedElsewhere("/p/.claude/session", "/home/bob/my notes"),
        "linked_elsewhere",
        8,
        "/p/.claude/session: cannot use the sessions: a link leads out of the project, to /home/bob/my notes",
        "remove the link, or, if it is yours, name the folder itself: export GAIA_SESSIONS_ROOT='/home/bob/my notes'",
        {
            "action": "use the sessions",
            "path": "/p/.claude/session",
            "reason": "a link leads out of the project, to /home/bob/my notes",
            "target": "/home/bob/my notes",
        },
    ),
    (
        LinkedElsewhere("/p/.claude/session", "/home/bob/\u200blib"),
        "linked_elsewhere",
        8,
        "/p/.claude/session: cannot use the sessions: a link leads out of the project, to /home/bob/\u200blib",
        "remove the link",
        {
            "action": "use the sessions",
            "path": "/p/.claude/session",
            "reason": "a link leads out of the project, to /home/bob/\u200blib",
            "target": "/home/bob/\u200blib",
        },
    ),
    (
        DurabilityUnknown("agent-1", "Input/output error"),
        "durability_unknown",
        9,
        "agent-1: written, but the sync to disk failed: Input/output error",
        "check the disk; the change is visible",
        {"path": "agent-1", "reason": "Input/output error"},
    ),
]

ALL = [*(row[0] for row in EXAMPLES), SessionsError("not so", "but so")]


class Later(LockUnsupported):
    """An error of a part that is not written yet, whose constructor takes something else."""

    def __init__(self, path: str, number: int) -> None:
        self.number = number
        super().__init__(path, f"errno {number}")


KINDS = [
    kind
    for kind in {**vars(errors), **vars(others)}.values()
    if isinstance(kind, type) and issubclass(kind, SessionsError)
]


@table(("error", "code", "ends_with", "message", "hint", "data"), EXAMPLES)
def test_an_error_says_what_happened_and_what_to_do_and_carries_its_data(
    error: SessionsError, code: str, ends_with: int, message: str, hint: str, data: dict[str, object]
) -> None:
    known = {name: value for name, value in vars(error).items() if name != "__notes__"}
    said = {"code": error.code, "exit_code": error.exit_code, "message": str(error), "hint": error.hint, "data": known}
    assert said == {"code": code, "exit_code": ends_with, "message": message, "hint": hint, "data": data}


@table("error", [row[0] for row in EXAMPLES])
def test_whatever_an_error_is_made_of_can_be_asked_of_it(error: SessionsError) -> None:
    arguments = {*inspect.signature(type(error)).parameters} - {"message"}
    assert [name for name in arguments if not hasattr(error, name)] == []


def test_there_is_an_example_above_of_every_error_but_the_root() -> None:
    assert {type(row[0]) for row in EXAMPLES} == set(KINDS) - {SessionsError}


def test_the_drawn_tree_is_the_tree() -> None:
    _, _, drawing = str(errors.__doc__).partition("SessionsError\n")
    drawn: list[tuple[str, str]] = []
    above = ["SessionsError"]
    for branch, name in re.findall(r"^ {4}([│├└ ]*)── (\w+)", drawing, re.MULTILINE):
        above[len(branch) // 4 + 1 :] = [name]
        drawn.append((name, above[-2]))
    assert sorted(drawn) == sorted((kind.__name__, kind.__base__.__name__) for kind in KINDS if kind.__base__ in KINDS)


@table("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@table("error", ALL)
def test_an_error_survives_pickling_whole(error: SessionsError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301  # our own
    assert type(again) is type(error)
    assert (str(again), again.args, again.hint, vars(again)) == (str(error), error.args, error.hint, vars(error))


@table("error", ALL)
def test_a_copied_error_shares_no_data_with_its_original(error: SessionsError) -> None:
    before = copy.deepcopy(vars(error))
    again = copy.copy(error)
    assert (type(again), str(again), vars(again)) == (type(error), str(error), before)
    again.hint = "another"
    assert vars(error) == before


def test_an_error_of_a_later_part_survives_pickling_too() -> None:
    again = pickle.loads(pickle.dumps(Later("p", 7)))  # noqa: S301  # our own
    assert (type(again), str(again), vars(again)) == (Later, "p: cannot lock: errno 7", vars(Later("p", 7)))


def printed(error: SessionsError) -> str:
    """What Python prints of an error that nobody catches."""
    return "".join(traceback.format_exception_only(error))


@table("error", ALL)
def test_python_prints_the_hint_of_an_error_once_however_often_it_is_raised(error: SessionsError) -> None:
    expected = f"{errors.__name__}.{type(error).__name__}: {error}\n" + (f"Hint: {error.hint}\n" if error.hint else "")

    for _ in range(2):
        with pytest.raises(SessionsError):
            raise error
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own

    assert (printed(error), printed(again), printed(copy.copy(error))) == (expected,) * 3


def test_python_prints_the_hint_that_replaced_another_and_what_a_program_notes() -> None:
    error = SessionNotFound("agent-1")
    copied = copy.copy(error)
    copied.add_note("of the copy")
    error.add_note("while it was reviewed")

    error.set_root("/p", "name another root")

    assert printed(error).splitlines()[1:] == ["Hint: name another root", "while it was reviewed"]
    assert printed(copied).splitlines()[1:] == [f"Hint: {copied.hint}", "of the copy"]


NOBODY_CATCHES = """
import sys
from gaia_sessions import update_state
try:
    update_state(sys.argv[1], "planning", root=sys.argv[2])
except Exception:
    raise
"""


def test_whoever_reads_a_traceback_is_told_once_what_to_do_and_so_is_whoever_reads_a_command(tmp_path: Path) -> None:
    program = [sys.executable, "-c", NOBODY_CATCHES, "agent-404", str(tmp_path)]
    said = [
        subprocess.run(program, capture_output=True, text=True, check=False).stderr,
        gaia("update", "agent-404", "--phase", "planning", "--root", str(tmp_path)).err.decode(),
    ]

    assert said[0].endswith(
        "SessionNotFound: no session 'agent-404'\nHint: `gaia-sessions list` shows the existing sessions\n"
    )
    assert [text.count("Hint: ") for text in said] == [1, 1]


def test_no_two_kinds_of_error_share_a_code() -> None:
    codes = [kind.code for kind in KINDS]
    assert sorted(codes) == sorted(set(codes))


def test_the_table_of_exit_codes_has_the_code_of_every_error_and_those_without_an_error() -> None:
    own = {kind.exit_code for kind in KINDS if kind is not SessionsError}
    without_error = {
        number for name, number in vars(exit_codes).items() if name.startswith("EXIT_") and number is not EXIT_CODES
    }
    assert own.isdisjoint(without_error)
    assert list(EXIT_CODES) == sorted(own | without_error) == [*range(12), 70, 124, 130]


def test_an_error_of_a_later_part_ends_like_its_nearest_ancestor() -> None:
    assert Later("p", 7).exit_code == 8


@table(
    ("length", "shown"),
    [(78, "'" + "x" * 78 + "'"), (79, "'" + "x" * 76 + "..."), (1 << 20, "'" + "x" * 76 + "...")],
)
def test_an_impossible_id_is_shown_shortened(length: int, shown: str) -> None:
    assert str(InvalidId("x" * length, "too long")) == f"{shown} is not a session ID: too long"


def test_a_message_is_well_formed_utf_8_whatever_bytes_a_name_has() -> None:
    said = str(StoreFailure("read", "root/\udcff/é\ud800.json", "Permission denied"))
    assert said == r"root/\udcff/é\ud800.json: cannot read: Permission denied"


def test_control_characters_of_an_impossible_id_are_shown_escaped() -> None:
    assert str(InvalidId("a\x1b[2J\n", "bad")) == r"'a\x1b[2J\n' is not a session ID: bad"
