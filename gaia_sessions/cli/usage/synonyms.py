"""Words that people try for a command, an option, an outcome or a phase, and which word they mean by them.

Owns the tables, taken from what other tools call the same things, and how similar a misspelt word must be to be
recognized.
"""

from __future__ import annotations

from difflib import get_close_matches

from gaia_sessions.session.phases import ABANDONED, APPROVAL, COMPLETED, EXECUTING, FAILED, PLANNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_CUTOFF = 0.75
"""How similar two words must be: ``phas`` is recognized as ``phase``, ``status`` is not."""
_MIN_PREFIX = 3

COMMANDS = {
    **dict.fromkeys(["ls", "all", "sessions", "ps"], "list"),
    **dict.fromkeys(["clean", "prune", "gc", "purge"], "cleanup"),
    **dict.fromkeys(["resume", "can-resume", "resumable", "check-resume"], "should-resume"),
    **dict.fromkeys(["wake", "restart", "recover"], "revive"),
    **dict.fromkeys(["new", "start", "begin", "add", "open"], "create"),
    **dict.fromkeys(["view", "info", "describe", "inspect", "status"], "show"),
    **dict.fromkeys(["cat", "read", "dump", "print"], "get"),
    **dict.fromkeys(["set", "edit", "heartbeat", "touch"], "update"),
    **dict.fromkeys(["result", "output", "summary"], "report"),
    **dict.fromkeys(["await", "join", "watch"], "wait"),
    **dict.fromkeys(["log", "logs", "history"], "events"),
    **dict.fromkeys(["budget", "tokens", "charge", "cost", "limit"], "usage"),
    **dict.fromkeys(["todos", "tasks"], "todo list"),
    **dict.fromkeys(["skills", "load-skill", "add-skill"], "skill add"),
    "add-todo": "todo add",
    **dict.fromkeys(["messages", "message", "conversation", "chat"], "transcript"),
    **dict.fromkeys(["check", "diagnose", "fsck"], "doctor"),
    **dict.fromkeys(["install", "init", "setup"], "hooks install"),
    **dict.fromkeys(["pstree", "children"], "tree"),
    "uninstall": "hooks uninstall",
}
END_COMMANDS = {
    **dict.fromkeys(["end", "finish", "done", "complete", "close", "success", "succeed"], COMPLETED),
    **dict.fromkeys(["fail", "error"], FAILED),
    **dict.fromkeys(["stop", "abandon", "abort", "kill"], ABANDONED),
    **{outcome: outcome for outcome in (COMPLETED, FAILED, ABANDONED)},
}
APPROVE_COMMANDS = frozenset(["approve", "accept"])
DENY_COMMANDS = frozenset(["deny", "reject", "refuse"])
COMMANDS_WITH_ID = {"check": "should-resume"}
"""The meaning of these words if an ID follows."""

DELETE_COMMANDS = frozenset(["rm", "delete", "remove", "del", "drop"])
HOOKS_COMMANDS = {
    **dict.fromkeys(["add", "enable", "on", "setup", "update"], "install"),
    **dict.fromkeys(["remove", "rm", "delete", "disable", "off"], "uninstall"),
    **dict.fromkeys(["list", "ls", "show", "check"], "status"),
}
SKILL_COMMANDS = dict.fromkeys(["load", "register", "new", "create", "loaded"], "add")
TODO_COMMANDS = {
    **dict.fromkeys(["new", "create", "append"], "add"),
    **dict.fromkeys(["complete", "completed", "finish", "finished", "check", "close", "tick"], "done"),
    **dict.fromkeys(["ls", "show", "all", "get"], "list"),
}
INNER_COMMANDS = {"hooks": HOOKS_COMMANDS, "skill": SKILL_COMMANDS, "todo": TODO_COMMANDS}
"""The words that people try for the commands of a group, by its name."""

NEED_ID = frozenset(
    [
        *("get", "update", "should-resume", "finalize", "cancelled", "report", "show", "events", "transcript", "usage"),
        *("skill add", "todo add", "todo done", "todo list"),
    ]
)
TAKE_NO_ID = frozenset(
    ["list", "revive", "cleanup", "doctor", "reconcile", "hooks install", "hooks uninstall", "hooks status"]
)
LS_OPTIONS = frozenset(["-l", "-a", "-la", "-al"])
"""Options that people type after ``ls`` by habit."""

OPTIONS = {
    "--status": ["--phase"],
    "--state": ["--phase"],
    "--name": ["--agent"],
    "--agent-name": ["--agent"],
    "--agent-type": ["--agent"],
    "--type": ["--agent"],
    "--description": ["--purpose"],
    "--task": ["--purpose"],
    "--agent-id": ["--id"],
    "--session-id": ["--id"],
    "--message": ["--summary", "--error"],
    "--reason": ["--summary", "--deny"],
    "--result": ["--summary"],
    "--key": ["--meta"],
    "--data": ["--metadata"],
    "--tokens": ["--charge"],
    "--sync": ["--total"],
    "--active": ["--active-only"],
    "--open": ["--active-only"],
    "--max": ["--limit"],
    "--count": ["--limit"],
    "--after": ["--since"],
    "--before": ["--until"],
    "--age": ["--hours"],
    "--older-than": ["--hours"],
    "--silent": ["--quiet"],
    "--check": ["--dry-run"],
    "--global": ["--user"],
    "--dir": ["--root"],
    "--timeout": ["--lock-timeout"],
    "-v": ["--version", "--verbose"],
    "-n": ["--limit", "--dry-run"],
}

ID_OPTIONS = frozenset(["--id", "--agent-id", "--session", "--session-id"])
"""Options that people try for the ID, which is an argument."""

OUTCOME_OPTIONS = frozenset(["--outcome", "--status", "--state", "--phase", "--as"])
"""Options that people try for the outcome, which is an argument."""

DURATION_OPTIONS = {"--days": "d", "--weeks": "w", "--minutes": "m", "--hours": "h"}
"""Options that people try for a length of time, and the unit that belongs to its value."""

DURATION_UNITS = [["hours"], ["days"], ["weeks"], ["minutes"], ["hour"], ["day"], ["week"], ["minute"]]

ACTIVE_WORDS = frozenset(["active", "open", "running"])
"""What people call sessions that have not ended, which may be in one of several phases."""

OUTCOMES = {
    **END_COMMANDS,
    **dict.fromkeys(["ok", "finished", "succeeded", "successful", "passed", "0"], COMPLETED),
    **dict.fromkeys(["failure", "errored", "broken", "1"], FAILED),
    **dict.fromkeys(["cancel", "cancelled", "canceled", "aborted", "stopped", "killed", "dropped"], ABANDONED),
}
PHASES = {
    **OUTCOMES,
    **dict.fromkeys(
        ["approve", "approved", "waiting", "pending", "paused", "blocked", "waiting_for_approval"], APPROVAL
    ),
    **dict.fromkeys(
        ["running", "active", "working", "in_progress", "in-progress", "execution", "implementing"], EXECUTING
    ),
    **dict.fromkeys(["plan", "planned"], PLANNING),
}


def intended_word(word: str, synonym_table: Mapping[str, str], valid_words: Collection[str]) -> str | None:
    """The valid word that ``word`` is, is a synonym of, or is similar to."""
    return word if word in valid_words else synonym_table.get(word.casefold()) or closest_word(word, valid_words)


def closest_word(word: str, valid_words: Iterable[str]) -> str | None:
    """The valid word that ``word`` is the beginning or a misspelling of; None if there is none."""
    by_bare_name = {name.lstrip("-"): name for name in valid_words}
    typed = word.lstrip("-").casefold()
    with_prefix = [name for name in by_bare_name if name.startswith(typed)] if len(typed) >= _MIN_PREFIX else []
    closest = with_prefix[0] if len(with_prefix) == 1 else closest_match(typed, by_bare_name, _CUTOFF)
    return by_bare_name[closest] if closest is not None else None


def closest_match(text: str, candidates: Iterable[str], cutoff: float) -> str | None:
    """The candidate most similar to ``text``, if it is at least as similar as ``cutoff``: 0 for any, 1 for equal."""
    return next(iter(get_close_matches(text, candidates, n=1, cutoff=cutoff)), None)
