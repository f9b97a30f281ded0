"""Takes the files of a session into the database: what an import or a copy brings besides the record."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

from gaia_sessions.store import marks, reading
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.settled import numbered

from .open_session import write_lines, write_mark, write_messages
from .output import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


def write_files(transaction: Transaction, incarnation: int, files: Mapping[str, bytes]) -> None:
    """Writes the ``settled`` files of a session as rows; its record is written already."""
    for name, data in files.items():
        generation, run = reading.generation_in(name), reading.run_of_output(name)
        lines = data.split(b"\n")[:-1]
        if generation is not None:
            texts = ((seq, _text_of(line)) for seq, line in numbered(lines))
            write_messages(transaction, incarnation, generation, texts)
        elif run is not None:
            write_output(transaction, incarnation, run, data)
        elif name == reading.CANCELLED:
            write_mark(transaction, incarnation, marks.decode(data))
        elif name in (reading.EVENTS, reading.ASIDE):
            write_lines(transaction, incarnation, name, map(_text_of, lines))


def _text_of(line: bytes) -> str:
    """Returns ``line`` as text for the database, which takes neither a NUL nor bytes that are no UTF-8.

    A line with such bytes was no JSON; neither is its text, which begins with a character that no JSON begins with.
    """
    text = line.decode(errors="replace").replace("\0", _REPLACEMENT)
    return text if text.encode() == line else _REPLACEMENT + text
