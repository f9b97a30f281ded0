"""What is said about a command while it runs: each line begins with its session."""

from __future__ import annotations

import os
from shlex import quote

from gaia_sessions.runner import supervise

from .session_reports import output_line
from .words import Copyable, clock_time, exactly, safe, time_limit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.api.command import Command


def told_of(agent_id: str, event: str, fact: str, command: Command, *, verbose: bool = False) -> tuple[str, str] | None:
    """Returns what happened to ``command``, and what to type (or empty); None for a start, unless ``verbose``.

    ``fact`` is a path, a time or a number that belongs to the event, or empty.
    """
    if event == supervise.STARTED and not verbose:
        return None
    what, to_type = _WITH_FACT[event](fact) if event in _WITH_FACT else (_EVENTS[event](command), "")
    if event == supervise.SESSION_GONE:
        to_type = Copyable(f"kill {os.getpid()}", "  to end it: ")
    if event == supervise.BACKGROUND_STORED:
        to_type = output_line(agent_id, fact or None)
    return f"{agent_id}: {what}", to_type


_ANEW = "a new conversation starts and is told what was said so far"
_KEEP_RUNNING = "its background processes keep running without limits"
_WITH_FACT: dict[str, Callable[[str], tuple[str, str]]] = {
    # A path comes from a record, so anybody can have written it.
    supervise.CONVERSATION_ELSEWHERE: lambda path: (
        f"its conversation is in folder {safe(path)}; {_ANEW}",
        Copyable(f"--cwd {quote(path)}", "to use the old one, stop this command and add "),
    ),
    supervise.CONVERSATION_MOVED: lambda path: (
        f"its conversation is in {safe(path)}, which is not your folder now; {_ANEW}",
        "",
    ),
    supervise.NO_STAND_IN: lambda why: (
        (
            "if its command starts agents of a client, they will not be below this session: neither `cancel` nor its "
            f"limits will reach them: {safe(why)}"
        ),
        "",
    ),
    supervise.SERVER_SILENT: lambda time: (
        f"the server does not answer; without it, the command goes on until {clock_time(time)}",
        "",
    ),
    supervise.END_NOT_STORED: lambda time: (
        f"it has ended, but its end is not stored yet; this is tried until {clock_time(time)}",
        "  to end the tries, press Ctrl-C",
    ),
}
"""What is said of events that come with a fact, and what to type."""

_EVENTS: dict[str, Callable[[Command], str]] = {
    supervise.STARTED: lambda one: (
        f"{safe(one.words[0], 80)} started, limit {time_limit_text(one.timeout, one.hard_timeout)}"
    ),
    supervise.OTHERS_NOT_TOLD_APART: lambda _: (
        "processes that already run keep running, but a process that they start in the background now ends with this "
        "command, because ulimit -x cannot be lowered"
    ),
    supervise.SOFT_LIMIT: lambda one: (
        f"reached its limit of {exactly(one.timeout)}; it has {exactly(one.grace)} to finish"
    ),
    supervise.HARD_LIMIT: lambda one: f"did not finish in time; killed after {exactly(one.hard_timeout)}",
    supervise.TOKENS_USED_UP: lambda one: f"reached its token limit; it has {exactly(one.grace)} to finish",
    supervise.SIGNAL_PASSED: lambda _: "was told to end; a second signal (Ctrl-C) kills it",
    supervise.BACKGROUND_ENDED: lambda _: "its background processes were ended (--keep-background keeps them)",
    supervise.BACKGROUND_LEFT: lambda _: _KEEP_RUNNING,
    supervise.BACKGROUND_STORED: lambda _: f"{_KEEP_RUNNING}; their output is stored, too",
    supervise.BACKGROUND_NOT_KEPT: lambda _: f"{_KEEP_RUNNING}, and their output is not stored",
    supervise.BACKGROUND_UNREAD: lambda _: (
        "its background processes keep running, but can end when they write output: no process could be started to "
        "read it"
    ),
    supervise.SESSION_GONE: lambda _: (
        "its session was removed, so `cancel` no longer reaches this command; its limits still hold"
    ),
    supervise.ANOTHER_CONVERSATION: lambda _: f"its conversation is gone; {_ANEW}",
    supervise.CONVERSATION_UNKNOWN: lambda _: f"its record names no conversation of this client; {_ANEW}",
    supervise.WITHOUT_TASK: lambda _: (
        "the new conversation is not told the task, because the task is not recorded; give it again with --task"
    ),
    supervise.SERVER_BACK: lambda _: "the server answers again",
    supervise.END_STORED: lambda _: "its end is stored now",
    supervise.NOT_KILLED: lambda _: (
        "some processes that it started could not be killed, for example those of another user"
    ),
}
