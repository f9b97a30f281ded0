"""The output of a command: results go to stdout, everything else to stderr. A closed pipe is not an error.

JSON is always UTF-8. Text has the encoding of its stream, and its lines fit the terminal.
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
"""In a terminal with fewer columns, lines are not broken."""
_ROOTS = [""]
"""The root of the command, once it is known."""
_TYPED_ROOTS: list[tuple[str, Iterable[str]]] = []
"""The typed ``--root``, if any, and the names of the commands that take it."""


def prepare_streams() -> None:
    """Makes sure that both streams exist, and that they escape characters that their encoding does not have."""
    repeat_root(None)
    codecs.register_error(_IN_ASCII, _in_ascii)
    sys.stdout = _prepare_stream(sys.stdout)
    sys.stderr = _prepare_stream(sys.stderr)


def _prepare_stream(stream: TextIO | None) -> TextIO:
    if stream is None:  # the stream was closed when the interpreter started
        return open(os.devnull, "w", encoding="utf-8")
    stream.reconfigure(errors=_IN_ASCII)  # type: ignore[attr-defined]  # the interpreter's own are TextIOWrapper
    return stream


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replaces branches, ellipses and bars by plain characters of the same width; escapes all others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def keep_whole(*roots: str) -> None:
    """Stops lines from being broken inside the paths of ``roots``, which can have blanks."""
    _ROOTS[:] = roots


def repeat_root(typed: str | None, commands: Iterable[str] = ()) -> None:
    """Adds the ``typed`` root to every printed command that is one of ``commands``."""
    _TYPED_ROOTS[:] = [] if typed is None else [(typed, commands)]


def with_root(hint: str) -> str:
    """Adds the typed ``--root`` to each command in ``hint`` that names no root."""
    if not _TYPED_ROOTS:
        return hint
    import re
    from shlex import quote

    [(typed, commands)] = _TYPED_ROOTS
    program = f"gaia-sessions --root {quote(typed)} "
    wanted = rf"\bgaia-sessions (?!store copy )(?=({'|'.join(commands)})\b(?![^`,;]*--root))"
    return re.sub(wanted, lambda _: program, hint)


def print_line(text: str) -> None:
    print_lines([text])


def print_lines(lines: Iterable[str]) -> None:
    """Prints the result, line by line."""
    width = _width(sys.stdout)
    for line in lines:
        _write_line(_fit_to_width(line, width))


def _write_line(text: str) -> None:
    _write(lambda: sys.stdout.write(text + "\n"))


def _width(stream: TextIO) -> int:
    """Returns the columns of the terminal ``stream``; 0 for a pipe or a file, in which lines are never broken."""
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
    """Returns ``text`` in lines of at most ``width`` cells, or unchanged if ``width`` is 0 or too narrow."""
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
    print_bytes(strict.dumps(value, limit=_NO_LIMIT))


def print_at_once(value: object, line: str | None) -> bool:
    """Prints and flushes one line, or ``value`` as JSON; returns False if nobody reads the output any more."""
    if line is None:
        data = strict.dump_line(value, limit=_NO_LIMIT)
    else:
        text = _fit_to_width(line, _width(sys.stdout)) + "\n"
        data = text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")
    return _write(lambda: (sys.stdout.buffer.write(data), sys.stdout.flush()))


def is_result_read() -> bool:
    """Returns whether somebody can still read stdout."""
    # _prepare_stream opens os.devnull if stdout was closed; a stdout that is redirected there is named <stdout>.
    if sys.stdout.name == os.devnull:
        return False
    import select

    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def print_json_array(values: Iterable[object]) -> None:
    """Prints the result as one JSON array, with one element in memory at a time."""
    opening = b"[\n"
    for value in values:
        print_bytes(opening + strict.dump_line(value, limit=_NO_LIMIT).rstrip())
        opening = b",\n"
    print_bytes(b"[]\n" if opening == b"[\n" else b"\n]\n")


def print_to_stderr(text: str) -> None:
    """Prints text for a person on stderr; ignores a closed stderr."""
    _write_to_stderr(_fit_to_width(text, _width(sys.stderr)))


def print_json_to_stderr(value: object) -> None:
    """Prints one JSON object for a program on stderr; ignores a closed stderr."""
    _write_to_stderr(strict.dumps(value, limit=_NO_LIMIT).decode().rstrip())


def _write_to_stderr(text: str) -> None:
    draw_to_stderr(text + "\n")


def draw_to_stderr(text: str) -> None:
    """Writes ``text`` on stderr without a newline."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        discard_buffered(sys.stderr)


def stdout_width() -> int:
    """Returns the columns of stdout; 0 if stdout is not a terminal."""
    return _width(sys.stdout)


def stderr_width() -> int:
    """Returns the columns of stderr; 0 if stderr is not a terminal."""
    return _width(sys.stderr)


def print_notice(code: str, message: str, hint: str, *, as_json: bool) -> None:
    """Prints on stderr what the caller should know, although the command succeeds."""
    hint = with_root(hint)
    if as_json:
        print_json_to_stderr({"notice": {"code": code, "message": well_formed(message), "hint": well_formed(hint)}})
    else:
        print_to_stderr(f"Note: {safe(message, _LONGEST)}\nHint: {safe(hint, _LONGEST)}")


def print_aside(code: str, message: str, hint: str = "", *, as_json: bool) -> None:
    """Prints less important news on stderr, dim on a terminal."""
    if as_json:
        hint = with_root(hint) if isinstance(hint, Command) else hint
        print_json_to_stderr({"notice": {"code": code, "message": well_formed(message), "hint": well_formed(hint)}})
        return
    lines = [safe(message, _LONGEST), *([hint] if hint else [])]
    text = "\n".join(_fit_to_width(line, _width(sys.stderr)) for line in lines)
    is_plain = not is_stderr_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    _write_to_stderr(text if is_plain else f"{_DIM}{text}{_NOT_DIM}")


def kind_of_error(code: str) -> type[SessionsError]:
    """Returns the type of the errors with this ``code``."""
    from gaia_sessions.errors import others  # it has all but the most frequent

    kinds: list[type[SessionsError]] = [kind for kind in vars(others).values() if isinstance(kind, type)]
    return next((kind for kind in kinds if getattr(kind, "code", None) == code), StoreFailure)


def print_failures(reasons: list[str], kind: type[SessionsError] = StoreFailure, *, as_json: bool) -> int:
    """Prints failures on stderr beside the result; returns the exit code of ``kind``, or 0 if nothing failed."""
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
    """Draws the result on a terminal; ``table`` makes its text for a stream and a number of columns."""
    import shutil

    text = table(sys.stdout, shutil.get_terminal_size().columns)
    _write(lambda: sys.stdout.write(text))


def is_stdout_terminal() -> bool:
    """Returns whether a person reads the result."""
    return sys.stdout.isatty()


def is_stderr_terminal() -> bool:
    """Returns whether a person reads stderr; a program can read the result at the same time."""
    return sys.stderr.isatty()


def flush_result() -> None:
    """Writes the buffered result now, so that nothing can fail when the interpreter ends."""
    _write(sys.stdout.flush)


def print_bytes(data: bytes) -> None:
    """Prints ``data`` as it is."""
    _write(lambda: sys.stdout.buffer.write(data))


def _write(write: Callable[[], object]) -> bool:
    """Raises ``StoreFailure`` if the result cannot be written; returns False for a closed pipe."""
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
    """Returns the error for a result that cannot be written after the command has done its work."""
    hint = "the command did its work, but its output is lost; redirect the output to another place"
    return StoreFailure("write the output", "stdout", error.strerror or str(error), hint)


def discard_buffered(stream: TextIO) -> None:
    """Discards the buffer of ``stream``; otherwise the write would fail again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
