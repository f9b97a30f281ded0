"""Processes forked from an interpreter that has imported the package: a fork costs a fraction of a start.

A child can be killed, traced and limited, and can belong to another user. This module is both sides: the tests ask for
children with ``Forks``; the program below, which imports nothing from the tests, forks them.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import CodeType

    Asked = dict[str, Any]
    Ended = subprocess.CompletedProcess[str]

PATIENCE = 120
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
GO = signal.SIGUSR1


class Forks:
    """An interpreter that forks children.

    imports: modules that the children have. python: the interpreter. environment: the environment of the interpreter.
    """

    def __init__(
        self, imports: Sequence[str], python: str = sys.executable, environment: Mapping[str, str] | None = None
    ) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        source = Path(__file__).read_text(encoding="utf-8")  # another user may not be allowed to read the file
        with theirs:
            self._server = subprocess.Popen(
                [python, "-B", "-c", source, str(theirs.fileno()), *imports],
                pass_fds=[theirs.fileno()],
                env=environment,
                start_new_session=True,
            )
        self._channel.settimeout(PATIENCE)

    def start(self, words: Sequence[str], streams: Sequence[int], **options: Any) -> int:
        """Starts a child that runs a command line of Python, with ``streams`` as its descriptors. Returns its pid.

        environment, folder, user, group: those of the child. waits: whether the child waits for the signal ``GO``.
        """
        asked = {"environment": dict(os.environ), "folder": os.getcwd(), "waits": False, **options, "words": words}
        socket.send_fds(self._channel, [json.dumps(asked).encode()], streams)
        return self._answer()

    def wait(self, pid: int) -> int:
        """Waits for a child, and returns its exit code."""
        self._channel.send(json.dumps({"pid": pid}).encode())
        return self._answer()

    def _answer(self) -> int:
        try:
            return int(self._channel.recv(100))
        except TimeoutError:  # a late answer would look like the answer to the next request
            self.close()
            forks.cache_clear()
            raise

    def run(self, words: Sequence[str], stdin: str = "", trace: Sequence[str] = (), **options: Any) -> Ended:
        """Runs a child to its end. If ``trace`` is given, this command line traces it from the start."""
        with ExitStack() as stack:
            told, out, err = (stack.enter_context(_memory()) for _ in range(3))
            os.pwrite(told, stdin.encode(), 0)
            pid = self.start(words, [told, out, err], waits=bool(trace), **options)
            if trace:
                stack.enter_context(_tracing(trace, pid))
                os.kill(pid, GO)
            code = self.wait(pid)
            texts = [os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess([*words], code, *texts)

    def close(self) -> None:
        """Kills the interpreter and its children."""
        self._channel.close()
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


@cache
def package() -> list[str]:
    """The modules of the package, without those that need Google ADK."""
    import gaia_sessions

    known = [module.name for module in walk_packages(gaia_sessions.__path__, "gaia_sessions.", onerror=lambda _: None)]
    ours = [name for name in known if not name.startswith("gaia_sessions.adk") and not name.endswith("__main__")]
    return [*ours, "gaia_sessions.adk.app_events"]


@cache
def forks() -> Forks:
    """Children that have imported the whole package."""
    started = Forks([*package(), "resource"])
    atexit.register(started.close)
    return started


@contextmanager
def _memory() -> Iterator[int]:
    file = os.memfd_create("stream")
    yield file
    os.close(file)


@contextmanager
def _tracing(words: Sequence[str], pid: int) -> Iterator[None]:
    """Traces the process until it ends."""
    with subprocess.Popen([*words, "-p", str(pid)], stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        if not said.endswith(f"Process {pid} attached\n"):
            os.kill(pid, signal.SIGKILL)
        yield
        said += tracer.communicate()[1]
    assert tracer.returncode == 0, said


# The program.


def serve(channel: socket.socket) -> Asked:
    """Answers requests until the channel closes. It returns only in a child, with the request of that child."""
    compiled = cache(_compiled)
    while True:
        data, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not data:
            sys.exit()
        asked: Asked = json.loads(data)
        if "pid" in asked:
            channel.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(asked["pid"], 0)[1]))
            continue
        asked["program"] = compiled(*_program_of(asked["words"]))
        ready, asked["ready"] = os.pipe()
        pid = os.fork()
        if not pid:
            channel.close()
            os.close(ready)
            return {**asked, "streams": streams}
        for descriptor in (*streams, asked["ready"]):
            os.close(descriptor)
        os.read(ready, 1)  # until the child has closed its end
        os.close(ready)
        channel.send(b"%d" % pid)


def _program_of(words: Sequence[str]) -> tuple[str, str]:
    """The option (``-c``, ``-m`` or none) and the program of a command line of Python."""
    return (words[1], words[2]) if words[1] in {"-c", "-m"} else ("", words[1])


def _compiled(option: str, name: str) -> CodeType | str:
    if option == "-m":
        return name
    return compile(name if option else Path(name).read_bytes(), "<string>" if option else name, "exec")


def play(asked: Asked) -> None:
    """Runs the requested program in this process, and lets its exceptions through."""
    for number, stream in enumerate(asked["streams"]):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    if "user" in asked:
        os.setgroups([])
        os.setgid(asked["group"])
        os.setuid(asked["user"])
    option, name = _program_of(asked["words"])
    sys.argv = [option or name, *asked["words"][2 + bool(option) :]]
    if asked["waits"]:
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY, 0, 0, 0)
    os.close(asked["ready"])
    if asked["waits"]:
        signal.sigwait([GO])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [GO])
    if option == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(name) if not option else ""
        sys.modules["__main__"] = program = ModuleType("__main__")
        program.__file__ = name
        exec(asked["program"], vars(program))  # noqa: S102  # the requested program


def end(asked: Asked) -> None:
    """Runs the program, and ends without the cleanup of the interpreter."""
    code: object = 0
    try:
        play(asked)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001  # as an interpreter does
        traceback.print_exc()
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
    if isinstance(code, str):
        sys.stderr.write(code)
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else bool(code))


if __name__ == "__main__":
    for module in sys.argv[2:]:
        with suppress(ImportError):  # not installed
            importlib.import_module(module)
    signal.pthread_sigmask(signal.SIG_BLOCK, [GO])
    gc.freeze()
    end(serve(socket.socket(fileno=int(sys.argv[1]))))
