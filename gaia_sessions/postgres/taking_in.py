"""Takes the files of a session into the database: what an import copies besides the record."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

from gaia_sessions import errors
from gaia_sessions.session.transcript import committed_bytes, decode_message, generation_of, last_seq
from gaia_sessions.store import marks, reading
from gaia_sessions.store.directory import Directory

from .open_session import write_lines, write_mark, write_messages
from .output import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import ImportSource

    from .transaction import Transaction

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def files_of(source: ImportSource, agent_id: str) -> dict[str, bytes]:
    """Returns the content of all files of a session except its record, by name."""
    with TemporaryDirectory(prefix="gaia-sessions-") as folder:
        with Directory.at(folder) as target:
            source.copy(agent_id, target, durable=False)
        return dict(_contents(folder))


def _contents(folder: str) -> Iterator[tuple[str, bytes]]:
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            yield name, file.read()


def write_files(transaction: Transaction, incarnation: int, record: Record, files: dict[str, bytes]) -> None:
    """Writes ``files`` as rows. A damaged record that was moved aside stays behind."""
    aside = _whole_lines(files.get(reading.ASIDE, b""))
    current = {reading.transcript_name(generation_of(record)): b""}  # the file may be lost
    for name, data in (current | files).items():
        generation, run = reading.generation_in(name), reading.run_of_output(name)
        if generation is not None:
            numbered, others = _numbered(record, generation, name, data)
            texts = ((seq, _text_of(line)) for seq, line in numbered)
            write_messages(transaction, incarnation, generation, texts)
            aside += others
        elif run is not None:
            write_output(transaction, incarnation, run, data)
        elif name == reading.CANCELLED:
            write_mark(transaction, incarnation, marks.decode(data))
        elif name == reading.EVENTS:
            write_lines(transaction, incarnation, name, map(_text_of, _whole_lines(data)))
    write_lines(transaction, incarnation, reading.ASIDE, map(_text_of, aside))


def _whole_lines(data: bytes) -> list[bytes]:
    """Returns the lines of ``data``, without a last one that was never finished."""
    return data.split(b"\n")[:-1]


def _numbered(record: Record, generation: int, name: str, data: bytes) -> tuple[list[tuple[int, bytes]], list[bytes]]:
    """Returns the lines of a transcript that count, with their numbers, and the others."""
    lines, others = _committed_lines(record, generation, data)
    found = [(_seq_in(line), line) for line in lines]
    taken = {seq for seq, _ in found}
    numbered, last = [], 0
    for seq, line in found:
        number = last + 1 if seq is None else seq
        if number > last_seq(record) or (seq is None and number in taken):
            others.append(line)
        elif number <= last:
            raise errors.CorruptSession(record["agent_id"], name, f"message {number} comes after message {last}")
        else:
            numbered.append((number, line))
            last = number
    return numbered, others


def _committed_lines(record: Record, generation: int, data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Returns the lines of a transcript that ``record`` commits, and the whole lines behind them.

    If the end of the committed lines is lost, what is left of it is a line, which nobody can read.
    """
    current = generation_of(record)
    if generation != current:
        lines = _whole_lines(data)
        return (lines, []) if generation < current else ([], lines)
    end = committed_bytes(record)
    *lines, rest = data[:end].split(b"\n")
    is_lost = bool(rest) or len(data) < end
    return [*filter(None, lines), *([rest] if is_lost else [])], _whole_lines(data[len(data[:end]) - len(rest) :])


def _seq_in(line: bytes) -> int | None:
    """Returns the number of the message in ``line``; None if nobody can read it."""
    try:
        return decode_message(line)["seq"]
    except errors.InvalidInput:
        return None


def _text_of(line: bytes) -> str:
    """Returns ``line`` as text for the database, which takes neither a NUL nor bytes that are no UTF-8.

    A line with such bytes was no JSON; neither is its text, which begins with a character that no JSON begins with.
    """
    text = line.decode(errors="replace").replace("\0", _REPLACEMENT)
    return text if text.encode() == line else _REPLACEMENT + text
