"""Where a command's answer goes: results to stdout, everything else to stderr.

Owns the two ways of writing (JSON, always UTF-8 and in our one form; text, in whatever the stream can, and on a
terminal in lines that fit it) and what a reader who went away means: the work is done, so there is no one left to tell.
"""

from __future__ import annotations

import os
import sys

from gaia_sessions.errors import EXIT_CODES, EXIT_DONE, StoreFailure, well_formed
from gaia_sessions.jsonio import strict

from .render.words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

    from rich.console import RenderableType

    from gaia_sessions.errors import SessionsError

_NO_LIMIT = sys.maxsize
_LONGEST = 2000
_NARROWEST = 40
"""Columns: nothing is gained by breaking lines for a terminal that has fewer."""


def prepare_streams() -> None:
    """Both streams exist, and what their encoding cannot express is escaped instead of failing the command."""
    sys.stdout = _prepare_stream(sys.stdout)
    sys.stderr = _prepare_stream(sys.stderr)


def _prepare_stream(stream: TextIO | None) -> TextIO:
    if stream is None:  # it was closed when the interpreter started
        return open(os.devnull, "w", encoding="utf-8")
    stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # the interpreter's own are TextIOWrapper
    return stream


def print_line(text: str) -> None:
    """One line of the answer."""
    print_lines([text])


def print_lines(lines: Iterable[str]) -> None:
    """The answer, line by line."""
    width = _width(sys.stdout)
    for line in lines:
        _write_line(_fit_to_width(line, width))


def _write_line(text: str) -> None:
    _write(lambda: sys.stdout.write(text + "\n"))


def _width(stream: TextIO) -> int:
    """The columns of the terminal that ``stream`` is; 0 for a pipe or a file, where one fact is one line."""
    if not stream.isatty():
        return 0
    configured = os.environ.get("COLUMNS", "")
    if configured.isdecimal() and int(configured):
        return int(configured)
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 0


def _fit_to_width(text: str, width: int) -> str:
    """``text`` in lines of at most ``width``; as it is where they fit, or the terminal is none or too narrow."""
    lines = text.split("\n") if "\n" in text else [text]
    if width < _NARROWEST or all(len(line) <= width for line in lines):
        return text
    from .render.wrapped import wrap_line

    return "\n".join(wrap_line(line, width) for line in lines)


def print_json(value: object) -> None:
    """The answer as one JSON document."""
    _write_bytes(strict.dumps(value, limit=_NO_LIMIT))


def print_json_array(values: Iterable[object]) -> None:
    """The answer as one JSON array, of which no more than one element is held."""
    opening = b"[\n"
    for value in values:
        _write_bytes(opening + strict.dump_line(value).rstrip())
        opening = b",\n"
    _write_bytes(b"[]\n" if opening == b"[\n" else b"\n]\n")


def print_to_stderr(text: str) -> None:
    """One line for people, on stderr; if nobody reads that either, so be it."""
    _write_to_stderr(_fit_to_width(text, _width(sys.stderr)))


def print_json_to_stderr(value: object) -> None:
    """One JSON object for programs, on stderr."""
    _write_to_stderr(strict.dumps(value, limit=_NO_LIMIT).decode().rstrip())


def _write_to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
    except OSError:
        discard_buffered(sys.stderr)


def print_notice(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """What a person should know though the command goes on, on stderr."""
    if as_json:
        print_json_to_stderr({"notice": {"code": code, "message": well_formed(message), "hint": well_formed(hint)}})
    else:
        print_to_stderr(f"Note: {safe(message, _LONGEST)}\nHint: {safe(hint, _LONGEST)}")


def print_failures(reasons: list[str], kind: type[SessionsError] = StoreFailure, *, as_json: bool) -> int:
    """Says on stderr what failed, beside the answer that has it too; returns the exit code: 0 if nothing failed.

    kind: the error that the first of them is.
    """
    if not reasons:
        return EXIT_DONE
    hint = "fix the reported problem and try again"
    if as_json:
        print_json_to_stderr({"error": {"code": kind.code, "message": well_formed("; ".join(reasons)), "hint": hint}})
    else:
        print_to_stderr("\n".join(f"Error: {safe(reason, _LONGEST)}" for reason in reasons))
        print_to_stderr(f"Hint: {hint}")
    return EXIT_CODES[kind]


def draw(renderable: RenderableType) -> None:
    """The answer as a renderable, on a terminal."""
    import shutil

    from .render.tables import render

    text = render(renderable, sys.stdout, shutil.get_terminal_size())
    _write(lambda: sys.stdout.write(text))


def is_stdout_terminal() -> bool:
    """Whether the answer is read by a person."""
    return sys.stdout.isatty()


def is_stderr_terminal() -> bool:
    """Whether a person sees what is written to stderr, also while a script takes the answer."""
    return sys.stderr.isatty()


def flush_answer() -> None:
    """The answer is out, so that nothing can fail when the interpreter ends."""
    _write(sys.stdout.flush)


def _write_bytes(data: bytes) -> None:
    _write(lambda: sys.stdout.buffer.write(data))


def _write(write: Callable[[], object]) -> None:
    """Raises ``StoreFailure`` if the answer cannot be written; what a reader who left does not read is no failure."""
    try:
        write()
    except BrokenPipeError:
        discard_buffered(sys.stdout)
    except OSError as error:
        discard_buffered(sys.stdout)
        raise StoreFailure("write the answer", "stdout", error.strerror or str(error)) from None


def discard_buffered(stream: TextIO) -> None:
    """What is still buffered goes nowhere, instead of failing once more at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
