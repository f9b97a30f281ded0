"""Processes forked from one interpreter that has imported the package: each costs a fraction of a start.

A child is a process like any other, which is killed, traced and limited, or belongs to another user. This module is
both sides: who asks for children, and the program that forks them, which imports nothing of the tests.
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
    """The interpreter and its children.

    python: another interpreter than ours. environment: its own. imports: modules that its children have.
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
        """The id of a child that runs a command line of Python; ``streams`` are its descriptors from 0 on.

        environment, folder: its own. user, group: whom it belongs to. waits: whether it begins when it is sent ``GO``.
        """
        asked = {"environment": dict(os.environ), "folder": os.getcwd(), "waits": False, **options, "words": words}
        socket.send_fds(self._channel, [json.dumps(asked).encode()], streams)
        return self._answer()

    def wait(self, pid: int) -> int:
        """The return code of a child, once it has ended."""
        self._channel.send(json.dumps({"pid": pid}).encode())
        return self._answer()

    def _answer(self) -> int:
        try:
            return int(self._channel.recv(100))
        except TimeoutError:  # a late answer would be taken for that to the next request
            self.close()
            forks.cache_clear()
            raise

    def run(self, words: Sequence[str], stdin: str = "", trace: Sequence[str] = (), **options: Any) -> Ended:
        """What a child came to; traced by the command line ``trace`` from its first call on, if there is one."""
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
        """Ends the interpreter, and the children that have not ended."""
        self._channel.close()
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


@cache
def package() -> list[str]:
    """The modules of the package, but for those that need Google ADK."""
    import gaia_sessions

    known = [module.name for module in walk_packages(gaia_sessions.__path__, "gaia_sessions.", onerror=lambda _: None)]
    ours = [name for name in known if not name.startswith("gaia_sessions.adk") and not name.endswith("__main__")]
    return [*ours, "gaia_sessions.adk.app_events"]


@cache
def forks() -> Forks:
    """Those of the whole package, which import nothing more."""
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
    """Lets a tracer follow the process until that ends."""
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
    """Serves requests until the channel closes. Returns only in a child, with its request."""
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
    """How a command line of Python names its program: by an option or as a file."""
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
        exec(asked["program"], vars(program))  # noqa: S102  # it is what was asked for


def end(asked: Asked) -> None:
    """Plays it, and ends without tearing the interpreter down."""
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
        with suppress(ImportError):  # of what is not installed
            importlib.import_module(module)
    signal.pthread_sigmask(signal.SIG_BLOCK, [GO])
    gc.freeze()
    end(serve(socket.socket(fileno=int(sys.argv[1]))))
