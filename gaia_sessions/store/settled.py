"""What counts in the files of a session: without what a killed writer began, and without what nobody reads."""

from __future__ import annotations

from gaia_sessions.errors import CorruptSession, InvalidInput
from gaia_sessions.session.transcript import committed_bytes, decode_message, generation_of, last_seq

from . import marks, output_file, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gaia_sessions.session.schema import Record


def settled(record: Record, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the content of ``files`` that counts; empty journals and transcripts are left out.

    Messages that ``record`` does not commit go aside, as with the next write of a message. A damaged record that was
    moved aside stays behind. Raises ``CorruptSession`` if the numbers of messages do not rise.
    """
    aside = _whole_lines(files.get(reading.ASIDE, b""))
    kept: dict[str, bytes] = {}
    current = {reading.transcript_name(generation_of(record)): b""}  # the file may be lost
    for name, data in (current | dict(files)).items():
        generation = reading.generation_in(name)
        if generation is not None:
            committed, others = _committed(record, generation, name, data)
            kept[name] = _joined(committed)
            aside += others
        elif name == reading.EVENTS:
            kept[name] = _joined(_whole_lines(data))
        elif name == reading.CANCELLED:
            kept[name] = marks.encode(marks.decode(data))
    kept[reading.ASIDE] = _joined(aside)
    outputs = {name: output_file.as_ended(data) for name, data in files.items() if reading.is_output_name(name)}
    return {name: data for name, data in kept.items() if data} | outputs


def numbered(lines: Iterable[bytes]) -> list[tuple[int, bytes]]:
    """Returns the lines of a transcript with their numbers; a line that nobody can read follows the one before."""
    found, last = [], 0
    for line in lines:
        seq = _seq_in(line)
        last = last + 1 if seq is None else seq
        found.append((last, line))
    return found


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _whole_lines(data: bytes) -> list[bytes]:
    """Returns the lines of ``data``, without a last one that was never finished."""
    return data.split(b"\n")[:-1]


def _committed(record: Record, generation: int, name: str, data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Returns the lines of a transcript that count, and the others."""
    lines, others = _committed_lines(record, generation, data)
    found = [(_seq_in(line), line) for line in lines]
    taken = {seq for seq, _ in found}
    committed, last = [], 0
    for seq, line in found:
        number = last + 1 if seq is None else seq
        if number > last_seq(record) or (seq is None and number in taken):
            others.append(line)
        elif number <= last:
            raise CorruptSession(record["agent_id"], name, f"message {number} comes after message {last}")
        else:
            committed.append(line)
            last = number
    return committed, others


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
    except InvalidInput:
        return None
