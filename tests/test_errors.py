"""Every error: its message, hint, exit code and data. Errors can be copied, pickled and printed."""

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
    NotWritten,
    OutcomeUnknown,
    OwnedByAnother,
    ResumeNotAllowed,
    RevisionChanged,
    RunGone,
    RunNotAllowed,
    SessionExists,
    SessionFinal,
    SessionMoving,
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

# One of each kind: the error, its code, its exit code, its message, its hint, its data.
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
        "no folder at '/old'",
        "give a project, a folder with one folder per session, or the folder of one session",
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
        "type more of the ID, for example its end as `gaia-sessions list` shows it",
        {"typed": "agent", "candidates": ("agent-1", "agent-2")},
    ),
    (Conflict("no", "ask otherwise"), "conflict", 4, "no", "ask otherwise", {}),
    (
        SessionExists("agent-1"),
        "exists",
        4,
        "session 'agent-1' already exists",
        "choose another ID, or leave out the ID to get a new one",
        {"agent_id": "agent-1"},
    ),
    (
        SessionFinal("agent-1", "completed"),
        "final",
        4,
        "session 'agent-1' has ended (completed) and can no longer be changed",
        "to continue it in a new session, type gaia-sessions create --continues agent-1",
        {"agent_id": "agent-1", "phase": "completed", "continuable": True},
    ),
    (
        SessionFinal("agent-1", "abandoned", continuable=False),
        "final",
        4,
        "session 'agent-1' has ended (abandoned) and can no longer be changed",
        "for new work, type gaia-sessions create",
        {"agent_id": "agent-1", "phase": "abandoned", "continuable": False},
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
        "session 'agent-1' cannot be used for this: its agent is at work",
        "wait for it",
        {"agent_id": "agent-1", "problem": "its agent is at work"},
    ),
    (
        RunNotAllowed("agent-1", "its agent is at work", "wait for it"),
        "run_not_allowed",
        4,
        "session 'agent-1' cannot be used for this: its agent is at work",
        "wait for it",
        {"agent_id": "agent-1", "problem": "its agent is at work"},
    ),
    (
        RunGone("agent-1", 2),
        "run_gone",
        4,
        (
            "session 'agent-1' no longer has this run 2: "
            "the run's process seemed gone, or the session was removed and created again, or restored from a copy"
        ),
        "`gaia-sessions show agent-1` shows its runs",
        {"agent_id": "agent-1", "number": 2},
    ),
    (
        NotApproved("agent-1"),
        "not_approved",
        4,
        "session 'agent-1' waits for approval, and only a person can approve",
        "first, a person must type this in a terminal: gaia-sessions approve agent-1",
        {"agent_id": "agent-1", "answered": None},
    ),
    (
        NotApproved("agent-1", "denied"),
        "not_approved",
        4,
        "session 'agent-1' was denied; its phase cannot be changed in the shell of an agent",
        "resume it, which tells its agent the answer; this says how: gaia-sessions resume agent-1",
        {"agent_id": "agent-1", "answered": "denied"},
    ),
    (
        AnswerOfAgent("agent-1", "Claude Code", "deny"),
        "answer_of_agent",
        4,
        "only a person can answer for session 'agent-1', and this is the shell of an agent of Claude Code",
        "a person must type this in a terminal outside Claude Code: gaia-sessions deny agent-1",
        {"agent_id": "agent-1", "client": "Claude Code", "command": "deny"},
    ),
    (
        NothingToAnswer("agent-1", "it is planning"),
        "nothing_to_answer",
        4,
        "session 'agent-1' does not wait for approval: it is planning",
        "`gaia-sessions pending` shows which sessions wait, and how to answer",
        {"agent_id": "agent-1", "problem": "it is planning"},
    ),
    (
        NotRemovable({"agent-1": "open"}, ["agent-1"], []),
        "not_removable",
        4,
        "session 'agent-1' is open",
        "nothing was removed; add --force to remove it anyway",
        {"reasons": {"agent-1": "open"}, "wanted": ("agent-1",), "open_below": ()},
    ),
    (
        NotRemovable({"a": "above_open", "b": "running", "c": "above_open"}, ["a", "b", "c"], ["d"]),
        "not_removable",
        4,
        "session 'b' has ended, but an agent may still be at work on it; 2 sessions have open sessions below them: 'a', 'c'",  # noqa: E501  # as it is said
        "nothing was removed; to remove all of them, type gaia-sessions rm --force a b c d",
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
        "session 'a' has an open session below it",
        "nothing was removed; to see the sessions below it, type gaia-sessions tree a",
        {"reasons": {"a": "above_open"}, "wanted": ("a",), "open_below": ("b", "c", "d", "e", "f", "g")},
    ),
    (
        NotTheNextTurn("agent-1", 5, 4),
        "not_the_next_turn",
        4,
        "the next turn of session 'agent-1' is 4, not 5",
        "to add the next turn, type gaia-sessions turn agent-1 - --number 4 < FILE",
        {"agent_id": "agent-1", "number": 5, "following": 4},
    ),
    (
        NotTheNextTurn("agent-1", 3, 4),
        "not_the_next_turn",
        4,
        "turn 3 of session 'agent-1' already has other messages",
        "to add the next turn, type gaia-sessions turn agent-1 - --number 4 < FILE",
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
        "`gaia-sessions todo add agent-1 TEXT` adds a todo",
        {"agent_id": "agent-1", "number": 1, "count": 0},
    ),
    (
        ResumeNotAllowed("agent-1", "executing"),
        "resume_not_allowed",
        4,
        "session 'agent-1' cannot be resumed: its phase is executing",
        "first change its phase to investigating, planning or approval: gaia-sessions update agent-1 --phase planning",
        {"agent_id": "agent-1", "phase": "executing"},
    ),
    (
        RevisionChanged("agent-1", 3, 5),
        "revision_changed",
        4,
        "session 'agent-1' is at revision 5, not 3",
        "read the session again (`gaia-sessions get agent-1`), then retry with its current revision",
        {"agent_id": "agent-1", "asked": 3, "actual": 5},
    ),
    (
        StateChanged("agent-1", "another message was added"),
        "state_changed",
        4,
        "agent-1: another message was added since you read the session",
        "read the session again, then repeat the change",
        {"agent_id": "agent-1", "what": "another message was added"},
    ),
    (
        NewerSchema("agent-1", 2, 1),
        "newer_schema",
        4,
        "session 'agent-1' was written by a newer version (schema 2, not 1) and can only be shown",
        "install a newer version of gaia-sessions",
        {"agent_id": "agent-1", "schema": 2, "known": 1},
    ),
    (
        SessionMoving("agent-1", "/my sessions", "postgresql:///agents"),
        "moving",
        4,
        "session 'agent-1' is being moved from /my sessions to postgresql:///agents, so it cannot be changed",
        "to end the move, type again the `store copy` that was interrupted",
        {"agent_id": "agent-1", "source": "/my sessions", "target": "postgresql:///agents"},
    ),
    (
        Cancelled("agent-1", "2026-01-08T18:05:30.000000Z", "no longer needed", "agent-0"),
        "cancelled",
        10,
        (
            "session 'agent-1' was cancelled at 2026-01-08T18:05:30.000000Z, together with 'agent-0' above it: "
            "no longer needed"
        ),
        "stop this work: a cancelled session cannot be resumed or continued; what it has stored is kept",
        {"agent_id": "agent-1", "at": "2026-01-08T18:05:30.000000Z", "reason": "no longer needed", "by": "agent-0"},
    ),
    (
        Cancelled(None),
        "cancelled",
        10,
        "the work was cancelled",
        "stop this work: a cancelled session cannot be resumed or continued; what it has stored is kept",
        {"agent_id": None, "at": None, "reason": None, "by": None},
    ),
    (
        TooDeep("agent-8", 9, 8),
        "too_deep",
        4,
        "a session below 'agent-8' would have depth 9; the limit is 8",
        "choose a parent higher up: `gaia-sessions tree` shows all levels",
        {"parent_id": "agent-8", "depth": 9, "max_depth": 8},
    ),
    (
        TooManyChildren("agent-0", iter(["agent-1", "agent-2"]), 2),
        "too_many_children",
        4,
        "session 'agent-0' has 2 children at work; the limit is 2",
        "wait until one of them ends, or cancel one with `gaia-sessions cancel ID`: agent-1, agent-2",
        {"parent_id": "agent-0", "at_work": ("agent-1", "agent-2"), "limit": 2},
    ),
    (
        HooksElsewhere("claude-code", "/p/.claude/settings.json", "project"),
        "hooks_elsewhere",
        4,
        "/p/.claude/settings.json already has the hooks for claude-code",
        "use --project, or first remove the hooks there: gaia-sessions hooks uninstall --host claude-code --project",
        {"host": "claude-code", "path": "/p/.claude/settings.json", "scope": "project"},
    ),
    (
        LockTimeout("session/.locks/a.lock", 10.0, 4711),
        "lock_timeout",
        5,
        "session/.locks/a.lock: locked by process 4711 for more than 10 seconds",
        "try again, or wait longer, for example with --lock-timeout 1m",
        {"path": "session/.locks/a.lock", "seconds": 10.0, "holder": 4711},
    ),
    (
        LockTimeout("a.lock", 0.5, None),
        "lock_timeout",
        5,
        "a.lock: locked by another process for more than 0.5 seconds",
        "try again, or wait longer, for example with --lock-timeout 1m",
        {"path": "a.lock", "seconds": 0.5, "holder": None},
    ),
    (
        CorruptSession("agent-1", "agent-1/state.json", "line 1 column 1: not JSON"),
        "corrupt",
        6,
        "agent-1/state.json: line 1 column 1: not JSON",
        "`gaia-sessions doctor` says how to repair or remove this session",
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
        "use letters, digits, . _ and - only, for example agent-123",
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
            "no requested tool can be used: cat is blocked for sub-agents; ls is not among the tools of a; "
            "requested: cat, ls; available: rm"
        ),
        "request at least one tool that is available and not blocked",
        {
            "requested": ("cat", "ls"),
            "available": ("rm",),
            "reasons": ("cat is blocked for sub-agents", "ls is not among the tools of a"),
            "problem": "no requested tool can be used: cat is blocked for sub-agents; ls is not among the tools of a; "
            "requested: cat, ls; available: rm",
            "where": "",
        },
    ),
    (
        TaskRefused("Explain", "it asks for analysis"),
        "task_refused",
        7,
        "it asks for analysis",
        "ask for facts, or switch the guard off: type GAIA_SESSIONS_GUARD_MODE=off before the command",
        {"keyword": "Explain", "problem": "it asks for analysis", "where": ""},
    ),
    (
        TooLarge("the document", 11, 10),
        "too_large",
        7,
        "the document is over the limit of 10 bytes",
        "put long texts into a file, and store its name",
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
        "store the sessions on a local file system, for example with --root DIR",
        {"action": "lock", "path": ".locks", "reason": "Function not implemented"},
    ),
    (
        NotWritten("postgresql://db/agents", "server closed the connection"),
        "not_written",
        8,
        "postgresql://db/agents: cannot write: server closed the connection",
        "nothing is written: try again",
        {"action": "write", "path": "postgresql://db/agents", "reason": "server closed the connection"},
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
        "remove the link; or, if you made the link, type export GAIA_SESSIONS_ROOT='/home/bob/my notes'",
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
        OutcomeUnknown("postgresql://db/agents", "connection refused"),
        "outcome_unknown",
        9,
        "postgresql://db/agents: the connection was lost during the commit: connection refused",
        "when the server can be reached, check whether the change is written",
        {"path": "postgresql://db/agents", "reason": "connection refused"},
    ),
    (
        DurabilityUnknown("agent-1", "Input/output error"),
        "durability_unknown",
        9,
        "agent-1: written, but the sync to disk failed: Input/output error",
        "check the disk: a power failure may undo the change",
        {"path": "agent-1", "reason": "Input/output error"},
    ),
]

ALL = [*(row[0] for row in EXAMPLES), SessionsError("not so", "but so")]


class Later(LockUnsupported):
    """An error subclass whose constructor has other arguments."""

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
def test_every_constructor_argument_of_an_error_is_an_attribute(error: SessionsError) -> None:
    arguments = {*inspect.signature(type(error)).parameters} - {"message"}
    assert [name for name in arguments if not hasattr(error, name)] == []


def test_the_examples_cover_every_error_but_the_base_class() -> None:
    assert {type(row[0]) for row in EXAMPLES} == set(KINDS) - {SessionsError}


def test_the_tree_in_the_docstring_matches_the_error_classes() -> None:
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


def test_an_error_subclass_with_other_arguments_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(Later("p", 7)))  # noqa: S301  # our own
    assert (type(again), str(again), vars(again)) == (Later, "p: cannot lock: errno 7", vars(Later("p", 7)))


def printed(error: SessionsError) -> str:
    """What Python prints for an uncaught error."""
    return "".join(traceback.format_exception_only(error))


@table("error", ALL)
def test_python_prints_the_hint_of_an_error_once_however_often_it_is_raised(error: SessionsError) -> None:
    expected = f"{errors.__name__}.{type(error).__name__}: {error}\n" + (f"Hint: {error.hint}\n" if error.hint else "")

    for _ in range(2):
        with pytest.raises(SessionsError):
            raise error
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own

    assert (printed(error), printed(again), printed(copy.copy(error))) == (expected,) * 3


def test_python_prints_a_replaced_hint_and_the_notes_of_a_program() -> None:
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


def test_a_traceback_and_a_command_each_show_the_hint_once(tmp_path: Path) -> None:
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


def test_the_exit_code_table_has_every_error_code_and_the_codes_without_an_error() -> None:
    own = {kind.exit_code for kind in KINDS if kind is not SessionsError}
    without_error = {
        number for name, number in vars(exit_codes).items() if name.startswith("EXIT_") and number is not EXIT_CODES
    }
    assert own.isdisjoint(without_error)
    assert list(EXIT_CODES) == sorted(own | without_error) == [*range(12), 70, 124, 130]


def test_an_error_subclass_has_the_exit_code_of_its_parent() -> None:
    assert Later("p", 7).exit_code == 8


@table(
    ("length", "shown"),
    [(78, "'" + "x" * 78 + "'"), (79, "'" + "x" * 76 + "..."), (1 << 20, "'" + "x" * 76 + "...")],
)
def test_a_long_invalid_id_is_shown_shortened(length: int, shown: str) -> None:
    assert str(InvalidId("x" * length, "too long")) == f"{shown} is not a session ID: too long"


def test_a_message_is_well_formed_utf_8_whatever_bytes_a_name_has() -> None:
    said = str(StoreFailure("read", "root/\udcff/é\ud800.json", "Permission denied"))
    assert said == r"root/\udcff/é\ud800.json: cannot read: Permission denied"


def test_control_characters_of_an_invalid_id_are_shown_escaped() -> None:
    assert str(InvalidId("a\x1b[2J\n", "bad")) == r"'a\x1b[2J\n' is not a session ID: bad"
