"""A program that runs in this process, with standard streams, an environment and a folder of its own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import TextIO


class Ran(NamedTuple):
    """The result of a call."""

    code: int
    out: bytes
    err: bytes

    @property
    def answer(self) -> Any:
        """The printed JSON object of a call that succeeded without stderr."""
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
    """Runs ``main`` with ``data`` on descriptor 0, and collects what it writes to 1 and 2 or to Python's own streams.

    This costs a fiftieth of a process. Start a process if the test is about imports, time or death by a signal.

    data: the input, or a descriptor to read it from. elsewhere: descriptors for ``stdout`` and ``stderr``, if they do
    not go into the result. A stream whose descriptor is None is closed.
    """
    with ExitStack() as stack:
        told, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        if isinstance(data, bytes):
            told.write(data)
            told.seek(0)
            data = told.fileno()
        descriptors = {"stdin": data, "stdout": out.fileno(), "stderr": err.fileno(), **elsewhere}
        with _environment(environment), _folder(folder), _streams(*descriptors.values()), _streams_of_python():
            code = main()
        return Ran(code, *(_content(file.fileno()) for file in (out, err)))


@contextmanager
def _streams(*descriptors: int | None) -> Iterator[None]:
    """Makes ``descriptors`` the standard streams of this process until the block ends."""
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
def _streams_of_python() -> Iterator[None]:
    """Sets ``sys.stdin``, ``sys.stdout`` and ``sys.stderr`` to the descriptors; None for a closed one."""
    with ExitStack() as stack:
        for number, stream in enumerate(("stdin", "stdout", "stderr")):
            file = _opened(number)
            for attribute in (stream, f"__{stream}__"):
                stack.enter_context(patch.object(sys, attribute, file))
            stack.callback(_close, stream)
        yield


def _opened(number: int) -> TextIO | None:
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    try:
        return open(number, "w" if number else "r", encoding=encoding, closefd=False)
    except OSError:
        return None


def _close(stream: str) -> None:
    """Closes a stream of Python, which the program may have replaced."""
    file = getattr(sys, stream)
    with suppress(OSError):
        if file is not None:
            file.close()


@contextmanager
def _environment(environment: Mapping[str, str]) -> Iterator[None]:
    kept = dict(os.environ)
    try:
        _set_environment(kept, dict(environment))
        yield
    finally:
        _set_environment(dict(os.environ), kept)


def _set_environment(present: dict[str, str], wanted: dict[str, str]) -> None:
    if present == wanted:  # nearly always; setting variables is slow
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
