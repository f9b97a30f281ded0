"""Where a command's output goes: results to stdout, everything else to stderr.

Owns the two ways of writing: JSON, always in UTF-8 and in one form; and text, in the encoding of the stream, and on a
terminal in lines that fit it. A closed pipe is not an error: the work is done.
"""

from __future__ import annotations

import codecs
import os
import sys

from gaia_sessions.errors import StoreFailure, well_formed
from gaia_sessions.jsonio import strict

from .exit_codes import EXIT_DONE
from .render.words import Command, Copyable, Hint, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

    from gaia_sessions.errors import SessionsError

_NO_LIMIT = sys.maxsize
_LONGEST = 2000
_IN_ASCII = "gaia-sessions-ascii"
_PLAIN = str.maketrans("├└│─…█", "|`|-~#")
_DIM, _NOT_DIM = "\x1b[2m", "\x1b[22m"
_NARROWEST = 40
"""Columns; for a terminal that has fewer, lines are not broken."""
_ROOTS = [""]
"""That of the command, once it is known."""
_TYPED_ROOTS: list[tuple[str, Iterable[str]]] = []
"""What was typed as ``--root``, if it was, and the names of the commands that take it."""


def prepare_streams() -> None:
    """Makes sure that both streams exist and write what their encoding cannot express another way, never raising."""
    repeat_root(None)
    codecs.register_error(_IN_ASCII, _in_ascii)
    sys.stdout = _prepare_stream(sys.stdout)
    sys.stderr = _prepare_stream(sys.stderr)


def _prepare_stream(stream: TextIO | None) -> TextIO:
    if stream is None:  # it was closed when the interpreter started
        return open(os.devnull, "w", encoding="utf-8")
    stream.reconfigure(errors=_IN_ASCII)  # type: ignore[attr-defined]  # the interpreter's own are TextIOWrapper
    return stream


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Branches, ellipses and bars as plain characters of the same width, anything else escaped."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def keep_whole(root: str) -> None:
    """Lets no line be broken within the path of ``root``, which may have blanks."""
    _ROOTS[:] = [root]


def repeat_root(typed: str | None, commands: Iterable[str] = ()) -> None:
    """Lets all that is printed to be typed, if it is one of ``commands``, have the ``--root`` that was ``typed``."""
    _TYPED_ROOTS[:] = [] if typed is None else [(typed, commands)]


def with_root(hint: str) -> str:
    """``hint`` with the ``--root`` that was typed in each of its commands that has none."""
    if not _TYPED_ROOTS:
        return hint
    import re
    from shlex import quote

    [(typed, commands)] = _TYPED_ROOTS
    program = f"gaia-sessions --root {quote(typed)} "
    return re.sub(rf"\bgaia-sessions (?=({'|'.join(commands)})\b(?![^`,;]*--root))", lambda _: program, hint)


def print_line(text: str) -> None:
    """Prints one line of the result."""
    print_lines([text])


def print_lines(lines: Iterable[str]) -> None:
    """Prints the result, line by line."""
    width = _width(sys.stdout)
    for line in lines:
        _write_line(_fit_to_width(line, width))


def _write_line(text: str) -> None:
    _write(lambda: sys.stdout.write(text + "\n"))


def _width(stream: TextIO) -> int:
    """The columns of the terminal that ``stream`` is; 0 for a pipe or a file, where lines are never broken."""
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
    """``text`` in lines of at most ``width`` cells; in one if they fit, or if ``width`` is 0 or too narrow."""
    if isinstance(text, Command):
        text = Copyable(with_root(text[len(text.before) :]), text.before)
    elif isinstance(text, Hint):
        text = with_root(text)
    lines = text.split("\n") if "\n" in text else [text]
    if width < _NARROWEST or all(len(line) <= width and line.isascii() for line in lines):
        return text
    from .render.wrapped import wrap_line

    return "\n".join(wrap_line(line, width, *_ROOTS) for line in lines)


def print_json(value: object) -> None:
    """Prints the result as one JSON document."""
    _write_bytes(strict.dumps(value, limit=_NO_LIMIT))


def print_at_once(value: object, line: str | None) -> bool:
    """Prints one line of the result without delay, ``value`` as JSON if ``line`` is None; False if nobody reads it any
    more.
    """
    if line is None:
        data = strict.dump_line(value, limit=_NO_LIMIT)
    else:
        text = _fit_to_width(line, _width(sys.stdout)) + "\n"
        data = text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
    return _write(lambda: (sys.stdout.buffer.write(data), sys.stdout.flush()))


def is_result_read() -> bool:
    """Whether stdout was not closed when the command started, and, if it is a pipe, neither was its other end since."""
    if sys.stdout.name == os.devnull:  # see _prepare_stream; one that leads there is called <stdout>
        return False
    import select

    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def print_json_array(values: Iterable[object]) -> None:
    """Prints the result as one JSON array; only one element is in memory at a time."""
    opening = b"[\n"
    for value in values:
        _write_bytes(opening + strict.dump_line(value, limit=_NO_LIMIT).rstrip())
        opening = b",\n"
    _write_bytes(b"[]\n" if opening == b"[\n" else b"\n]\n")


def print_to_stderr(text: str) -> None:
    """Prints text for a person on stderr; a closed stderr is ignored."""
    _write_to_stderr(_fit_to_width(text, _width(sys.stderr)))


def print_json_to_stderr(value: object) -> None:
    """Prints one JSON object for a program on stderr; a closed stderr is ignored."""
    _write_to_stderr(strict.dumps(value, limit=_NO_LIMIT).decode().rstrip())


def _write_to_stderr(text: str) -> None:
    draw_to_stderr(text + "\n")


def draw_to_stderr(text: str) -> None:
    """Writes ``text`` on stderr as it is, without ending the line."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard_buffered(sys.stderr)


def stdout_width() -> int:
    """The columns of the terminal on which a person reads the result; 0 if a program reads it."""
    return _width(sys.stdout)


def stderr_width() -> int:
    """The columns of the terminal on which a person reads stderr; 0 if a program reads it."""
    return _width(sys.stderr)


def print_notice(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Prints on stderr what the caller should know although the command goes on."""
    hint = with_root(hint)
    if as_json:
        print_json_to_stderr({"notice": {"code": code, "message": well_formed(message), "hint": well_formed(hint)}})
    else:
        print_to_stderr(f"Note: {safe(message, _LONGEST)}\nHint: {safe(hint, _LONGEST)}")


def print_aside(code: str, message: str, hint: str = "", *, as_json: bool) -> None:
    """Prints on stderr what the caller may want to know, and no more than that: dim lines on a terminal."""
    if as_json:
        print_json_to_stderr({"notice": {"code": code, "message": well_formed(message), "hint": well_formed(hint)}})
        return
    lines = [safe(message, _LONGEST), *([hint] if hint else [])]
    text = "\n".join(_fit_to_width(line, _width(sys.stderr)) for line in lines)
    is_plain = not is_stderr_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    _write_to_stderr(text if is_plain else f"{_DIM}{text}{_NOT_DIM}")


def print_failures(reasons: list[str], kind: type[SessionsError] = StoreFailure, *, as_json: bool) -> int:
    """Prints on stderr what failed, in addition to the result, and returns the exit code: 0 if nothing failed.

    ``kind`` is the type of the first failure.
    """
    if not reasons:
        return EXIT_DONE
    hint = "fix the reported problem and try again"
    if as_json:
        print_json_to_stderr({"error": {"code": kind.code, "message": well_formed("; ".join(reasons)), "hint": hint}})
    else:
        print_to_stderr("\n".join(f"Error: {safe(reason, _LONGEST)}" for reason in reasons))
        print_to_stderr(f"Hint: {hint}")
    return kind.exit_code


def draw(table: Callable[[TextIO, int], str]) -> None:
    """Draws the result on a terminal; ``table`` makes it for the terminal and the number of its columns."""
    import shutil

    text = table(sys.stdout, shutil.get_terminal_size().columns)
    _write(lambda: sys.stdout.write(text))


def is_stdout_terminal() -> bool:
    """Whether a person reads the result."""
    return sys.stdout.isatty()


def is_stderr_terminal() -> bool:
    """Whether a person reads stderr, perhaps while a program reads the result."""
    return sys.stderr.isatty()


def flush_result() -> None:
    """Writes what is still buffered of the result, so that nothing can fail when the interpreter ends."""
    _write(sys.stdout.flush)


def _write_bytes(data: bytes) -> None:
    _write(lambda: sys.stdout.buffer.write(data))


def _write(write: Callable[[], object]) -> bool:
    """Raises ``StoreFailure`` if the result cannot be written; a closed pipe is ignored: then it returns False."""
    try:
        write()
    except BrokenPipeError:
        discard_buffered(sys.stdout)
        return False
    except OSError as error:
        discard_buffered(sys.stdout)
        raise unwritten(error) from None
    return True


def unwritten(error: OSError) -> StoreFailure:
    """The error of a result that cannot be written: by then the command has done its work."""
    hint = "what the command did is kept, and only its output is lost: send that where there is room"
    return StoreFailure("write the output", "stdout", error.strerror or str(error), hint)


def discard_buffered(stream: TextIO) -> None:
    """Discards what ``stream`` still buffers; otherwise writing it would fail once more when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
