"""Takes the files of a session into the database: what an import copies besides the record."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

from gaia_sessions import errors
from gaia_sessions.session.transcript import decode_message
from gaia_sessions.store import marks, reading
from gaia_sessions.store.directory import Directory

from .open_session import write_lines, write_messages
from .output import write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message
    from gaia_sessions.store.port import ImportSource

    from .transaction import Transaction


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
    for name, data in files.items():
        generation, run = reading.generation_in(name), reading.run_of_output(name)
        if generation is not None:
            write_messages(transaction, incarnation, generation, _messages(data, record["agent_id"], name))
        elif run is not None:
            write_output(transaction, incarnation, run, data)
        elif name == reading.CANCELLED:
            transaction.write(
                "UPDATE gaia_sessions.session SET mark = %s WHERE incarnation = %s",
                (marks.encode(marks.decode(data)).decode(), incarnation),
            )
        elif name in (reading.EVENTS, reading.ASIDE):
            write_lines(transaction, incarnation, name, data)


def _messages(data: bytes, agent_id: str, name: str) -> tuple[list[Message], bytes]:
    """Returns the messages of a transcript, with their lines; messages behind the committed ones are among them."""
    lines = data.splitlines()
    try:
        return [decode_message(line) for line in lines], b"".join(line + b"\n" for line in lines)
    except errors.InvalidInput as error:
        raise errors.CorruptSession(agent_id, name, str(error)) from None
