"""What is said about a command while it runs: each line begins with its session."""

from __future__ import annotations

import os
from shlex import quote
from typing import NamedTuple

from gaia_sessions.runner import supervise

from .session_reports import output_line
from .words import Copyable, clock_time, exactly, safe, time_limit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.api.command import Command


class _News(NamedTuple):
    """What is told; ``fact`` is a path, a time or a reason that belongs to the event, or empty."""

    agent_id: str
    fact: str
    command: Command


def told_of(agent_id: str, event: str, fact: str, command: Command, *, verbose: bool = False) -> tuple[str, str] | None:
    """Returns what happened to ``command``, and what to type (or empty); None for a start, unless ``verbose``."""
    if event == supervise.STARTED and not verbose:
        return None
    news = _News(agent_id, fact, command)
    return f"{agent_id}: {_WHAT[event](news)}", _TO_TYPE[event](news) if event in _TO_TYPE else ""


_ANEW = "a new conversation starts and is told what was said so far"
_KEEP_RUNNING = "its background processes keep running without limits"
_WHAT: dict[str, Callable[[_News], str]] = {
    supervise.STARTED: lambda news: (
        f"{safe(news.command.words[0], 80)} started, "
        f"limit {time_limit_text(news.command.timeout, news.command.hard_timeout)}"
    ),
    supervise.OTHERS_NOT_TOLD_APART: lambda _: (
        "processes that already run keep running, but a process that they start in the background now ends with this "
        "command, because ulimit -x cannot be lowered"
    ),
    supervise.SOFT_LIMIT: lambda news: (
        f"reached its limit of {exactly(news.command.timeout)}; it has {exactly(news.command.grace)} to finish"
    ),
    supervise.HARD_LIMIT: lambda news: f"did not finish in time; killed after {exactly(news.command.hard_timeout)}",
    supervise.TOKENS_USED_UP: lambda news: f"reached its token limit; it has {exactly(news.command.grace)} to finish",
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
    # A path comes from a record, so anybody can have written it.
    supervise.CONVERSATION_ELSEWHERE: lambda news: f"its conversation is in folder {safe(news.fact)}; {_ANEW}",
    supervise.CONVERSATION_MOVED: lambda news: (
        f"its conversation is in {safe(news.fact)}, which is not your folder now; {_ANEW}"
    ),
    supervise.CONVERSATION_UNKNOWN: lambda _: f"its record names no conversation of this client; {_ANEW}",
    supervise.WITHOUT_TASK: lambda _: (
        "the new conversation is not told the task, because the task is not recorded; give it again with --task"
    ),
    supervise.NO_STAND_IN: lambda news: (
        "agents that its client starts will not be below this session, so `cancel` and limits miss them: "
        f"{safe(news.fact)}"
    ),
    supervise.SERVER_SILENT: lambda news: (
        f"the server does not answer; without it, the command goes on until {clock_time(news.fact)}"
    ),
    supervise.SERVER_BACK: lambda _: "the server answers again",
    supervise.END_NOT_STORED: lambda news: (
        f"it has ended, but its end is not stored yet; this is tried until {clock_time(news.fact)}"
    ),
    supervise.END_STORED: lambda _: "its end is stored now",
    supervise.NOT_KILLED: lambda _: (
        "some processes that it started could not be killed, for example those of another user"
    ),
}

_TO_TYPE: dict[str, Callable[[_News], str]] = {
    supervise.BACKGROUND_STORED: lambda news: output_line(news.agent_id, news.fact or None),
    supervise.SESSION_GONE: lambda _: Copyable(f"kill {os.getpid()}", "  to end it: "),
    supervise.CONVERSATION_ELSEWHERE: lambda news: Copyable(
        f"--cwd {quote(news.fact)}", "to use the old one, stop this command and add "
    ),
    supervise.END_NOT_STORED: lambda _: "  to end the tries, press Ctrl-C",
}
