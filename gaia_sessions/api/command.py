"""A command that is run as a sub-agent.

A helper process runs the command: the helper must end all its descendants, but no other child of your program.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress

from gaia_sessions.errors import (
    BadArgument,
    InvalidInput,
    SessionsError,
    StoreFailure,
    UsageError,
)
from gaia_sessions.hosts.clients import BY_NAME, preset_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Run

    from .at import Place

    class Token(Protocol):
        """A ``CancellationToken``."""

        @property
        def cancellation(self) -> Cancellation | None: ...


DEFAULT_TIMEOUT, DEFAULT_GRACE = 600, 30
"""Seconds until a command is told to end, and how many seconds it has then."""

LONGEST = 366 * 24 * 3600.0
"""The longest time limit, in seconds."""

TASK = "{task}"
"""The task replaces this text in the command's words. If the text is there, stdin does not get the task."""

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from gaia_sessions.{} import main; main()"
"""Imports the package from the path of this process; an environment variable would reach the command too."""

_SECONDS_BETWEEN_LOOKS = 0.25


def run(  # noqa: PLR0913  # what can be said of a command, and of its session
    place: Place,
    command: Sequence[str],
    *,
    task: str | None = None,
    context: str | None = None,
    agent_id: str | None = None,
    continues: str | None = None,
    agent_name: str | None = None,
    purpose: str | None = None,
    parent_id: str | None = None,
    max_tokens: int | None = None,
    tools: Iterable[str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    grace: float = DEFAULT_GRACE,
    cwd: str | None = None,
    is_contained: bool = False,
    keeps_background: bool = False,
    preset: str | None = BY_NAME,
    token: Token | None = None,
) -> Report:
    """[Runs a command](run.md) as a sub-agent, and waits until the command and everything that it started has ended.

    Without ``agent_id``, a session is created. The new session ``continues`` another session, or has ``agent_name`` (by
    default the name of the program) and the other arguments of ``create``.

    Your program can have other child processes. The output of the command is not shown. If your program is killed, the
    command keeps running within its limits.

    This method also raises the errors of ``create``. After one of those errors, or of the errors below, nothing was
    started.

    Args:
        command: the program and its arguments.
        task, context: what the command is told.
        agent_id: the session to resume.
        timeout, grace: [time limits](run.md#limits) in seconds.
        preset: [the client](clients.md) that the command starts, ``"claude"`` or ``"codex"``; by default the name of
            the program decides, and None means that the command is no client.
        token: a ``CancellationToken``; if it is cancelled, the session is cancelled.

    Returns:
        The report on the session.

    Raises:
        BadArgument: ``command``, a limit or ``preset`` is not acceptable.
        UsageError: the command has words that the preset adds itself, or two options exclude each other.
        InvalidInput: the task is blank, or a client is given no task.
        TaskRefused: the guard does not allow the task.
        RunNotAllowed: the session cannot be resumed.
        Cancelled: the session is cancelled.

    Example:
        report = sessions.run(["echo", "done"], timeout=60)
        print(report["status"], report["result"])
    """
    from gaia_sessions.session.ids import new_agent_id  # the helper needs none of these
    from gaia_sessions.session.requests import Start
    from gaia_sessions.system import utc_now

    from . import at, cancelling, permitting

    what = Command(
        command,
        task=task,
        context=context,
        cwd=cwd,
        timeout=timeout,
        grace=grace,
        is_contained=is_contained,
        keeps_background=keeps_background,
        preset=preset,
    )
    named = agent_id or new_agent_id(utc_now(), os.urandom)
    start = Start(
        agent_id,
        new_id=None if agent_id else named,
        continues=continues,
        program=what.name,
        agent_name=agent_name,
        purpose=purpose,
        parent_id=parent_id,
        max_tokens=max_tokens,
        allowed_tools=at.read(place, permitting.allowed_of, tools, agent_name or what.name, parent_id),
    )
    if token is not None and agent_id is not None and (cancellation := token.cancellation) is not None:
        at.write(place, cancelling.cancel, agent_id, cancellation.get("reason"))
    return run_by_helper((place, start, what), token)


class Command:
    """A command with what it is told, its limits in seconds, and the client that it starts, if any."""

    __slots__ = ("context", "cwd", "grace", "is_contained", "keeps_background", "preset", "task", "timeout", "words")

    def __init__(  # noqa: PLR0913  # what can be said of a command
        self,
        words: Sequence[str],
        *,
        timeout: float,
        grace: float,
        task: str | None = None,
        context: str | None = None,
        cwd: str | None = None,
        is_contained: bool = False,
        keeps_background: bool = False,
        preset: str | None = BY_NAME,
    ) -> None:
        if isinstance(words, str | bytes) or not words or not all(isinstance(word, str) for word in words):
            raise BadArgument("command", words, 'a program and its arguments, for example ["pytest", "-x"]')
        if not words[0] or any("\0" in word for word in words):
            raise BadArgument("command", words, "the name of a program, and arguments without NUL")
        if is_contained and keeps_background:
            raise UsageError(
                "a contained command cannot keep processes in the background",
                "leave out --contain or --keep-background (in Python: is_contained or keeps_background)",
            )
        if task is not None and not task.strip():
            raise InvalidInput("the task is blank", hint="give a task, or leave it out")
        if any("\0" in text for text in (task or "", context or "", cwd or "")):
            raise InvalidInput("the task, the context or the folder has a NUL character, which no command can receive")
        self.preset = preset_for(words, preset)
        self.words = [*words]
        self.task = task
        self.context = context if context and context.strip() else None
        self.cwd = cwd
        self.timeout = _checked_seconds("timeout", timeout)
        self.grace = _checked_seconds("grace", grace)
        self.is_contained = is_contained
        self.keeps_background = keeps_background

    @property
    def name(self) -> str:
        name = os.path.basename(self.words[0]) or self.words[0]
        return name.encode("utf-8", "replace").decode()  # a file name need not be valid text

    @property
    def hard_timeout(self) -> float:
        """Seconds until everything that the command started is dead."""
        return self.timeout + self.grace

    @property
    def limits(self) -> Run:
        """The limits as a record of a run stores them."""
        return {"timeout_secs": self.timeout, "hard_timeout_secs": self.hard_timeout}

    def told(self, briefing: str | None) -> tuple[list[str], str | None]:
        """Returns the words to run, and the text for stdin; None if there is nothing to tell."""
        words = [word.replace(TASK, self.task) for word in self.words] if self.task is not None else self.words
        told = self.text(briefing, with_task=words == self.words)
        if told:
            return words, f"{told}\n"
        return words, None if self.task is None else ""

    def text(self, briefing: str | None, *, with_task: bool = True) -> str:
        """Returns the task, the context and the briefing as one text; empty if there is nothing to tell."""
        parts = [self.task] if self.task is not None and with_task else []
        context = "\n\n".join(filter(None, (self.context, briefing)))
        return "\n\n".join([*parts, f"Additional context:\n{context}"] if context else parts)


def _checked_seconds(name: str, seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
        raise BadArgument(name, seconds, f"a number of seconds from 0 to {LONGEST:,.0f}")
    return float(seconds)


def interpreter_for(module: str, *words: str) -> list[str]:
    """Returns the command line that calls ``main`` of a module of this package; ``words`` only label it."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    # -P: no module of the current folder is imported
    return [sys.executable, "-P", "-c", _BOOT.format(module), *words, package]


def run_by_helper(request: object, token: Token | None) -> Report:
    """Returns the report from the helper that runs ``request``; a cancelled ``token`` cancels the session."""
    with subprocess.Popen(  # noqa: S603  # this interpreter
        interpreter_for("runner.helper"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # else a terminal would interrupt both; the program passes an interruption on
    ) as helper:
        try:
            answer = _answer_of(helper, pickle.dumps(request), token)
        except BaseException:
            helper.send_signal(signal.SIGINT)  # an interruption of the program interrupts the command
            helper.communicate()
            raise
    if not answer:
        raise StoreFailure("run the command", sys.executable, f"its helper process ended with code {helper.returncode}")
    found: Report | SessionsError = pickle.loads(answer)  # noqa: S301  # our own process wrote it
    if isinstance(found, SessionsError):
        raise found
    return found


def _answer_of(helper: subprocess.Popen[bytes], request: bytes, token: Token | None) -> bytes:
    """Returns the helper's answer to ``request``; if ``token`` is cancelled, the helper gets the reason."""
    stdin, helper.stdin = helper.stdin, None  # else ``communicate`` would close it
    assert stdin is not None  # noqa: S101  # it is a pipe
    with suppress(BrokenPipeError), stdin:
        stdin.write(request)
        stdin.flush()
        while token is not None:
            with suppress(subprocess.TimeoutExpired):
                return helper.communicate(timeout=_SECONDS_BETWEEN_LOOKS)[0]
            if (cancellation := token.cancellation) is not None:
                stdin.write(pickle.dumps(cancellation.get("reason")))
                stdin.flush()
                token = None
    return helper.communicate()[0]
