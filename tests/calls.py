"""A program that runs in this process, with standard streams, an environment and a folder of its own."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path


class Ran(NamedTuple):
    """What a call left behind when it ended."""

    code: int
    out: bytes
    err: bytes

    @property
    def answer(self) -> Any:
        """The one JSON object it printed; nothing else happened."""
        assert (self.code, self.err) == (0, b"")
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer


def call(
    main: Callable[[], int],
    data: bytes | int | None,
    environment: Mapping[str, str],
    folder: str | Path,
    **elsewhere: int | None,
) -> Ran:
    """Runs ``main`` with ``data`` on descriptor 0, and collects what it writes to 1 and 2.

    The fiftieth part of what a process costs. For what only a process has (what it imports, how it is killed, that it
    ends in time) start one. Python's own ``sys.stdin`` and its siblings stay what they were.

    data: or the descriptor to read from. elsewhere: the descriptors of ``stdout`` and ``stderr`` if what goes there is
    not collected. A stream whose descriptor is None is closed.
    """
    with ExitStack() as stack:
        told, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        if isinstance(data, bytes):
            told.write(data)
            told.seek(0)
            data = told.fileno()
        descriptors = {"stdin": data, "stdout": out.fileno(), "stderr": err.fileno(), **elsewhere}
        with _environment(environment), _folder(folder), _streams(*descriptors.values()):
            code = main()
        return Ran(code, *(_content(file.fileno()) for file in (out, err)))


@contextmanager
def _streams(*descriptors: int | None) -> Iterator[None]:
    """``descriptors`` are the standard streams of this process until the block ends."""
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, descriptor in enumerate(descriptors):
            if descriptor is None:
                os.close(number)
            else:
                os.dup2(descriptor, number)
        yield
    finally:
        for number, own in enumerate(kept):
            os.dup2(own, number)
            os.close(own)


@contextmanager
def _environment(environment: Mapping[str, str]) -> Iterator[None]:
    kept = dict(os.environ)
    try:
        _set_environment(kept, dict(environment))
        yield
    finally:
        _set_environment(dict(os.environ), kept)


def _set_environment(present: dict[str, str], wanted: dict[str, str]) -> None:
    if present == wanted:  # as it nearly always is, and each variable costs
        return
    for name in present.keys() - wanted.keys():
        del os.environ[name]
    for name, value in wanted.items():
        if present.get(name) != value:
            os.environ[name] = value


@contextmanager
def _folder(folder: str | Path) -> Iterator[None]:
    kept = os.open(".", os.O_PATH)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(kept)
        os.close(kept)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
