"""The way of a call through the package: how often it moves to another module.

It counts the sequence of the modules of the called functions, without bodies of modules and classes and what they call,
and without comprehensions, which newer versions of Python inline. A generator counts when it is first entered.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

from gaia_sessions.system import utc_now

from . import samples
from .client import CHECKOUT, Client
from .findings import Finding
from .starts import COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_PACKAGE = "gaia_sessions"
_RESULT = "BENCH_WAY"
_OPTIMIZED = 0x1
"""The flag of the code of a function, which bodies of modules and classes do not have."""

_STOP, _STOP_AFTER_START, _LIST, _GET, _CANCEL = 259, 440, 526, 54, 268
_PLAIN_UPDATE, _UPDATE, _UPDATE_WITH_RUN = 120, 191, 175
"""How many moves each way may have."""

_IDLE = timedelta(minutes=5)
"""How long sessions have been idle: a time under a second is worded with fewer calls."""

_MOST_ENTERED = 3
"""For so many modules, the finding says how often the way enters them."""


def ways(folder: str) -> Iterator[Finding]:
    """Measures a stop from standard input to ``state.json``, updates, and three other commands."""
    yield from _ways_of_hooks(os.path.join(folder, "hooks"))
    yield from _ways_of_commands(os.path.join(folder, "commands"))


def _ways_of_hooks(folder: str) -> Iterator[Finding]:
    project, _ = samples.project(folder)
    client = Client(project)
    hook = str(CHECKOUT / "hooks" / "every_event.py")
    yield from _findings("a stop", _STOP, project, client.stop(), hook)
    yield from _findings("a stop after its start", _STOP_AFTER_START, project, client.stop_after_start(), hook)


def _ways_of_commands(folder: str) -> Iterator[Finding]:
    """Measures commands; ``list`` has four sessions, one of which has ended."""
    project, store = samples.project(folder)
    begun = utc_now() - _IDLE
    plain = samples.create_moved(store, begun, 0)
    resting = samples.create_paused(store, begun)
    running = samples.create_delegated(store, begun, "a-conversation")
    samples.create_ended(store, begun)
    for what, limit, *arguments in (
        ("list", _LIST, "list"),
        ("get", _GET, "get", resting),
        ("update, without options", _PLAIN_UPDATE, "update", plain),
        ("update", _UPDATE, "update", resting, "--phase", "planning"),
        ("update, with a run", _UPDATE_WITH_RUN, "update", running, "--phase", "planning"),
        ("cancel", _CANCEL, "cancel", resting),
    ):
        yield from _findings(what, limit, project, b"", str(COMMAND), *arguments)


def _findings(what: str, limit: int, project: str, payload: bytes, *command: str) -> Iterator[Finding]:
    way = way_of(project, payload, *command)
    entered = Counter(name.removeprefix(f"{_PACKAGE}.") for name in way)
    most = ", ".join(f"{name} {times}" for name, times in entered.most_common(_MOST_ENTERED))
    yield Finding(f"{what}: moves", len(way), limit, "")
    yield Finding(f"{what}: modules ({most})", len(entered), None, "")


def way_of(project: str, payload: bytes, *command: str) -> list[str]:
    """Returns the modules that a call of the Python program ``command`` enters, one after the other."""
    result = Path(project).parent / "way.json"
    subprocess.run(
        (sys.executable, "-m", "scripts.benches.ways", *command),
        input=payload,
        cwd=project,
        env={**os.environ, _RESULT: str(result), "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    way: list[str] = json.loads(result.read_text(encoding="utf-8"))
    return way


class _Tracer:
    """Notes the module of each called function of the package."""

    def __init__(self) -> None:
        self.way: list[str] = []
        self.entered: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        if event != "call" or module.partition(".")[0] != _PACKAGE or self.way[-1:] == [module]:
            return
        if _is_function(frame) and not _is_imported(frame) and frame not in self.entered:
            self.way.append(module)
        self.entered.add(frame)  # so that no other frame gets its place in memory


def _is_function(frame: FrameType) -> bool:
    code = frame.f_code
    return bool(code.co_flags & _OPTIMIZED) and (not code.co_name.startswith("<") or code.co_name == "<lambda>")


def _is_imported(frame: FrameType) -> bool:
    """Returns whether the body of a module of the package made this call."""
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name == "<module>" and str(above.f_globals.get("__name__")).startswith(_PACKAGE):
            return True
        above = above.f_back
    return False


def trace(program: str) -> None:
    """Runs ``program`` in this process and writes its way to the file that the environment names."""
    tracer = _Tracer()
    leave = os._exit

    def end(code: int) -> None:
        sys.setprofile(None)
        Path(os.environ[_RESULT]).write_text(json.dumps(tracer.way), encoding="utf-8")
        leave(code)

    os._exit = end  # type: ignore[assignment]  # the hooks end with it
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(program).parent)
    sys.setprofile(tracer)
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        end(ended.code if isinstance(ended.code, int) else 0)


if __name__ == "__main__":
    trace(sys.argv[1])
