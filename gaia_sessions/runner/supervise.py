"""A command from its start to the end of everything that it started: its limits, and the signals that we get.

Time is monotonic and does not pass while we are stopped. Everything runs in the main thread of a process that does
nothing else. This thread never waits for readers of our output.
"""

from __future__ import annotations

import os
import queue
import selectors
import shutil
import signal
import threading
import time
from contextlib import suppress
from errno import ENOENT

from gaia_sessions.session.own_runs import (
    CANCELLED,
    EXITED,
    LEASE_LOST,
    NOT_STARTED,
    OUT_OF_TOKENS,
    SIGNALLED,
    TIMED_OUT,
    RunEnd,
)
from gaia_sessions.session.visible import visible_line

from . import contain, process_tree
from .command_output import Outputs, Tail
from .signals import PASSED_ON, PAUSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gaia_sessions.api.command import Command
    from gaia_sessions.hosts.clients import Client
    from gaia_sessions.session.schema import Run
    from gaia_sessions.store.port import Output

    from .command_output import Whole
    from .signals import Signals

STARTED = "started"
OTHERS_NOT_TOLD_APART = "others_not_told_apart"
SOFT_LIMIT = "soft_limit"
HARD_LIMIT = "hard_limit"
SIGNAL_PASSED = "signal_passed"
BACKGROUND_ENDED = "background_ended"
BACKGROUND_LEFT = "background_left"
BACKGROUND_STORED = "background_stored"
BACKGROUND_NOT_KEPT = "background_not_kept"
BACKGROUND_UNREAD = "background_unread"
NOT_KILLED = "not_killed"
SESSION_GONE = "session_gone"
ANOTHER_CONVERSATION = "another_conversation"
CONVERSATION_ELSEWHERE = "conversation_elsewhere"
CONVERSATION_MOVED = "conversation_moved"
CONVERSATION_UNKNOWN = "conversation_unknown"
WITHOUT_TASK = "without_task"
TOKENS_USED_UP = "tokens_used_up"
NO_STAND_IN = "no_stand_in"
SERVER_SILENT = "server_silent"
SERVER_BACK = "server_back"
END_NOT_STORED = "end_not_stored"
END_STORED = "end_stored"
"""An event that ``tell`` reports."""

SECONDS_AFTER_SIGNAL = 5.0
"""How long a command has after a signal or a cancellation: CI systems kill after 10."""

SECONDS_FOR_BACKGROUND = 2.0
"""How long background processes have to end by themselves, and again after SIGTERM."""

SECONDS_TO_KILL = 5.0
"""How long to wait for what cannot be killed."""

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_BETWEEN_COUNTS = 0.1
_LOOKS_TO_TELL = 2

_MOST_WAITED_FOR = 200
"""How many processes may end by themselves: more are a storm, which would only grow."""

_CHUNK = 1 << 16
_MOST_CHUNKS_LEFT = 16
"""How many chunks are taken of a stream at the end: more than a pipe holds."""


class Teller:
    """Reports each event, and a fact that belongs to it, to ``tell`` in a thread: nobody waits for a reader."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._events: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._tell_all, daemon=True)
        self._thread.start()

    def __call__(self, event: str, fact: str = "") -> None:
        self._events.put((event, fact))

    def _tell_all(self) -> None:
        while (told := self._events.get())[0]:
            self._tell(*told)

    def finish(self) -> None:
        """Waits until all is told."""
        self("")
        self._thread.join()


class Supervisor:
    """One command: ``run`` it, then ``close_log``, then ``finish``."""

    def __init__(
        self,
        command: Command,
        look: Callable[[], str | None],
        tell: Teller,
        log: Output,
        live: dict[int, int],
        signals: Signals,
        *,
        said: Tail | Whole | None = None,
    ) -> None:
        """``look`` is called twice a second."""
        self._command = command
        self._look = look
        self.tell = tell
        self._signals = signals
        self._outputs = Outputs(log, live, signals.wake, said)
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals.fd, selectors.EVENT_READ)
        self._to_be_told = memoryview(b"")
        self._streams: dict[int, int] = {}  # the open streams: their descriptors and numbers
        self._paused = 0.0
        self._client: Client | None = None
        self._stdin: int | None = None  # to tell the command something
        self._has_news = False  # of a client
        self._figures: Run = {}
        self._complaints = Tail()
        self.namespace: str | None = None  # its own pid namespace, if that was seen
        self.left_open: list[int] | None = None  # the pipes of background processes that go on
        self._looks_without_session = 0
        self._cause: str | None = None
        self._signal: int | None = None
        self._deadline = self._hard = float("inf")

    def run(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        stdin: str | int,
        client: Client | None = None,
    ) -> RunEnd:
        """Starts the command as ``words``, waits until all its processes have ended, and returns how it ended."""
        # If a client refuses its conversation, this may be called once more.
        argv = [word.encode("utf-8", "surrogateescape") for word in words]
        self._client = client
        try:
            try:
                if self._command.is_contained:
                    _check_that_it_exists(argv, self._command.cwd, env)
                child = self._start(argv, env, stdin)
            except OSError as error:
                name = os.fsdecode(error.filename or argv[0])
                return RunEnd(NOT_STARTED, detail=f"cannot be started: {name}: {error.strerror or error}")
            try:
                self.tell(STARTED)
                if process_tree.ends_what_others_leave():
                    self.tell(OTHERS_NOT_TOLD_APART)
                self._watch(child)
                self._end_all(child)
            except BaseException:
                process_tree.kill_all(child, SECONDS_TO_KILL)
                raise
            return RunEnd(self._cause or EXITED, child.exit_code, self._outputs.message())
        finally:
            if self._stdin is not None:
                self._forget(self._stdin)
                self._stdin = None
            self._to_be_told = memoryview(b"")

    @property
    def complaint(self) -> str:
        return visible_line(self._complaints.text().strip().rpartition("\n")[2])

    def close_log(self) -> None:
        """Ends the log, which is on disk when this returns. Nothing runs after that."""
        self._outputs.close()

    def finish(self) -> OSError | None:
        """Waits until the readers of our output have all of it, or are gone; returns why a write failed."""
        refused = self._outputs.finish()
        self.tell.finish()
        return refused

    def _start(self, argv: Sequence[bytes], env: Mapping[str, str], stdin: str | int) -> process_tree.Child:
        pipes = {number: os.pipe() for number in (1, 2)}
        reads, writes = os.pipe() if isinstance(stdin, str) else (stdin, -1)
        try:
            child = process_tree.start(
                argv,
                cwd=self._command.cwd,
                env=env,
                stdin=reads,
                stdout=pipes[1][1],
                stderr=pipes[2][1],
                is_contained=self._command.is_contained,
            )
        except OSError:
            for fd in (pipes[1][0], pipes[2][0], *((writes,) if writes >= 0 else ())):
                os.close(fd)
            raise
        finally:
            for fd in (pipes[1][1], pipes[2][1], *((reads,) if writes >= 0 else ())):
                os.close(fd)
        for number, (fd, _) in pipes.items():
            os.set_blocking(fd, False)
            self._streams[fd] = number
            self._selector.register(fd, selectors.EVENT_READ)
        if isinstance(stdin, str):
            os.set_blocking(writes, False)
            self._stdin = writes
            told = self._client.to_say() if self._client else stdin.encode("utf-8", "surrogateescape")
            self._say(told)
        return child

    def _now(self) -> float:
        return time.monotonic() - self._paused

    def _watch(self, child: process_tree.Child) -> None:
        """Watches until the command has ended, or its time is over."""
        began = next_look = self._now()
        soft = began + self._command.timeout
        self._deadline = self._hard = began + self._command.hard_timeout
        while not child.has_ended() and self._now() < self._deadline:
            self._has_news = False
            self._step(min(next_look, self._deadline, self._deadline if self._cause else soft) - self._now())
            if self._command.is_contained and self.namespace is None:
                self.namespace = contain.namespace_of(child.pid)
            self._pass_on(child)
            process_tree.reap(child)
            now = self._now()
            if not child.has_ended() and (self._has_news or now >= next_look):
                next_look = now + _SECONDS_BETWEEN_LOOKS
                self._obey(self._look(), child)
            if not child.has_ended() and self._cause is None and now >= soft:
                self._end_for(TIMED_OUT, child)
                self.tell(SOFT_LIMIT)

    def _obey(self, found: str | None, child: process_tree.Child) -> None:
        """Ends the command for what was ``found``; reports a missing session at the second look."""
        if found != SESSION_GONE:
            self._end_for(found, child)
            return
        self._looks_without_session += 1
        if self._looks_without_session == _LOOKS_TO_TELL:
            self.tell(SESSION_GONE)

    def _end_for(self, cause: str | None, child: process_tree.Child) -> None:
        """Tells the command to end for ``cause``, unless it was told so before."""
        if cause in (CANCELLED, LEASE_LOST):  # also if it was told to end before
            self._deadline = min(self._deadline, self._now() + SECONDS_AFTER_SIGNAL)
        if cause is None or self._cause is not None:
            return
        self._cause = cause
        if cause == OUT_OF_TOKENS:
            self._deadline = min(self._deadline, self._now() + self._command.grace)
            self.tell(TOKENS_USED_UP)
        if self._client is None:
            self._send(child, signal.SIGTERM)
        elif cause != CANCELLED and self._client.asks_to_end(is_out_of_tokens=cause == OUT_OF_TOKENS):
            self._say(self._client.to_say())
        else:
            self._send(child, signal.SIGINT)  # after it, a client still reports what it used

    def _pass_on(self, child: process_tree.Child) -> None:
        """Does what our signals ask for: the first is passed on, the next one ends everything at once."""
        for number in self._signals.noted:
            if number == PAUSE:
                self._pause()
            elif number in PASSED_ON and self._signal is None:
                self._signal = number
                self._cause = self._cause or SIGNALLED
                self._deadline = min(self._deadline, self._now() + SECONDS_AFTER_SIGNAL)
                self._send(child, number if self._client is None else signal.SIGINT)
                self.tell(SIGNAL_PASSED)
            elif number in PASSED_ON and not self._signal == number == signal.SIGHUP:  # terminal and shell both send it
                self._deadline = 0.0
        self._signals.noted.clear()

    def _send(self, child: process_tree.Child, number: int) -> None:
        process_tree.send(child, number)
        process_tree.go_on()  # a stopped process cannot obey

    def _pause(self) -> None:
        """Stops the command, its clock and us, until somebody continues us."""
        began = time.monotonic()
        process_tree.stop()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._paused += time.monotonic() - began
        process_tree.go_on()

    def _end_all(self, child: process_tree.Child) -> None:
        """Ends what is left of the command, and takes its last output."""
        if not child.has_ended():
            self._cause = self._cause or TIMED_OUT
            if self._cause == TIMED_OUT and self._now() >= self._hard:
                self.tell(HARD_LIMIT)
        elif self._cause is None and process_tree.descendants():
            if self._command.keeps_background:
                self._drain()
                self.left_open = [*self._streams]
                return
            self._end_background(child)
        elif self._cause is not None:
            self._wait_for_rest(child)
        is_left = process_tree.kill_all(child, SECONDS_TO_KILL) != []
        self._drain()
        if is_left:
            self.tell(NOT_KILLED)
            self.left_open = [*self._streams]

    def _end_background(self, child: process_tree.Child) -> None:
        """Lets background processes end by themselves for a while, then sends SIGTERM and waits again."""
        self._wait_for_rest(child)
        rest = process_tree.descendants()
        if not rest:
            return
        self.tell(BACKGROUND_ENDED)
        for pid in rest:
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        process_tree.go_on()
        self._wait_for_rest(child)

    def _wait_for_rest(self, child: process_tree.Child) -> None:
        """Waits until all has ended, or the time is over, or a signal comes; never for a storm."""
        until = min(self._deadline, self._now() + SECONDS_FOR_BACKGROUND)
        while self._now() < until and 0 < len(process_tree.descendants()) <= _MOST_WAITED_FOR:
            self._step(min(_SECONDS_BETWEEN_COUNTS, until - self._now()))
            if self._signals.is_ended_by_somebody():
                return
            if PAUSE in self._signals.noted:
                self._pause()
            self._signals.noted.clear()
            process_tree.reap(child)

    def _step(self, seconds: float) -> None:
        """Reads and writes for at most ``seconds``; less if a signal comes."""
        for key, _ in self._selector.select(max(0.0, seconds)):
            fd: int = key.fd
            if fd == self._signals.fd:
                self._signals.read()
                self._listen()
            elif fd in self._streams:
                self._read(fd)
            else:
                self._tell_more(fd)

    def _read(self, fd: int) -> bool:
        """Takes what has come on a stream of the command; returns False if there is no more."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        number = self._streams[fd]
        if not data:
            self._forget(fd)
            del self._streams[fd]
            return False
        if number == 1 and self._client is not None:
            self._hear(self._client, data)
        else:
            if self._client is not None:
                self._complaints.add(data)
            self._outputs.add(number, data)
        if self._outputs.is_full(number) and fd in self._selector.get_map():
            self._selector.unregister(fd)
        return True

    def _hear(self, client: Client, data: bytes) -> None:
        """Shows what the client reports in ``data``, and sends its replies."""
        was_told_all = client.is_told_all
        for number, shown in client.hear(data):
            self._outputs.add(number, shown)
        figures = client.figures()
        self._has_news = self._has_news or figures != self._figures
        self._figures = figures
        self._say(client.to_say())
        if client.must_be_killed:
            self._deadline = 0.0
        elif self._cause is not None and client.is_told_all and not was_told_all:  # it has reported
            self._deadline = min(self._deadline, self._now() + SECONDS_FOR_BACKGROUND)

    def _say(self, data: bytes) -> None:
        """Writes ``data`` to the stdin of the command, and closes that once all is written."""
        if self._stdin is None:
            return
        if data:
            self._to_be_told = memoryview(bytes(self._to_be_told) + data)
        if self._stdin not in self._selector.get_map() and (self._to_be_told or self._is_told_all):
            self._selector.register(self._stdin, selectors.EVENT_WRITE)

    @property
    def _is_told_all(self) -> bool:
        return self._client is None or self._client.is_told_all

    def _listen(self) -> None:
        """Reads again from the streams whose readers have caught up."""
        for fd, number in self._streams.items():
            if fd not in self._selector.get_map() and not self._outputs.is_full(number):
                self._selector.register(fd, selectors.EVENT_READ)

    def _tell_more(self, fd: int) -> None:
        does_listen = True
        try:
            self._to_be_told = self._to_be_told[os.write(fd, self._to_be_told[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not read its stdin
            self._to_be_told, does_listen = memoryview(b""), False
        if self._to_be_told:
            return
        if self._is_told_all or not does_listen:
            self._forget(fd)
            self._stdin = None
        else:
            self._selector.unregister(fd)

    def _forget(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)
        os.close(fd)

    def _drain(self) -> None:
        """Takes what the command wrote before its end, without waiting for others that hold its pipes."""
        for fd in [*self._streams]:
            chunks = 0
            while chunks < _MOST_CHUNKS_LEFT and fd in self._streams and self._read(fd):
                chunks += 1


def _check_that_it_exists(argv: Sequence[bytes], cwd: str | None, env: Mapping[str, str]) -> None:
    """Raises ``FileNotFoundError`` if the program does not exist: in a namespace, the exit code would be 127."""
    program = os.fsdecode(argv[0])
    place = os.path.join(cwd or "", program) if os.sep in program else program
    if shutil.which(place, path=env.get("PATH")) is None:
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), program)
