"""The journals beside a record, one entry per line: how an entry of ``events.jsonl`` looks, how lines are added and
read.
"""

from __future__ import annotations

import os

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import dump_line, loads
from gaia_sessions.session.record import ANSWER_WORDS

from . import atomic
from .directory import translate_errors
from .reading import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record, Run

    from .directory import Directory
    from .port import Entry

_MAX_BYTES = 64 << 20
_MOST_ERRORS = 100
_END_FIELDS = ("end", "detail")
_SENT = "answer"
"""The kind of the entry for an answer that was sent to the agent."""

RECONCILE = "reconcile"
"""The kind of the entry for a run that was closed because its end was proved."""


def event_entry(at: str, kind: str, run: Run | None, record: Record, revision: int, evidence: Entry) -> Entry:
    """Returns an entry of ``events.jsonl``; ``revision`` is the revision that the stored ``record`` has."""
    entry: Entry = {"at": at, "kind": kind}
    if run:
        entry["run"] = run["run"]
    entry["phase"] = record["phase"]
    if run:
        entry |= {key: run[key] for key in _END_FIELDS if key in run}  # type: ignore[literal-required]  # keys of a run
    return {**entry, "revision": revision, "evidence": evidence}


def answer_entries(before: Record, record: Record, message: str | None = None) -> list[Entry]:
    """Returns the entry for the answer that is in ``record`` and not in ``before``; an empty list without one.

    message: the whole text of the answer, if the record has only its beginning.
    """
    if record.get("answers") == before.get("answers"):
        return []
    given = record["answers"][-1]
    kind: str = next((key for key, word in ANSWER_WORDS.items() if word == given["answer"]), _SENT)
    evidence: Entry = {"message": given.get("message", "") if message is None else message, "by": given["by"]}
    if "shell" in given:
        evidence["shell"] = given["shell"]
    runs = record.get("runs", [])
    run: Run | None = {"run": runs[-1]["run"]} if runs else None
    return [event_entry(given["timestamp"], kind, run, record, before["revision"] + 1, evidence)]


def entry_lines(entries: Iterable[Json]) -> bytes:
    return b"".join(map(dump_line, entries))


def append_events(session: Directory, lines: bytes, *, durable: bool) -> None:
    """Appends ``lines`` after their record was stored, so a refusal is ``DurabilityUnknown``."""
    try:
        atomic.append(session, EVENTS, lines, durable=durable)
    except errors.StoreFailure as error:
        raise errors.DurabilityUnknown(f"{session.path}/{EVENTS}", str(error)) from error


def entries(folder: Directory, journal: str) -> Iterator[Json | SessionsError]:
    """Yields the entries of a session's ``journal`` in order; for each invalid line, yields an error."""
    path = f"{folder.path}/{journal}"
    with translate_errors("read", path):
        try:
            fd, found = folder.open_file(journal, _MAX_BYTES)
        except FileNotFoundError:
            return
        left, invalid = found.st_size, 0
        with os.fdopen(fd, "rb") as lines:
            for number, line in enumerate(lines, 1):
                left -= len(line)
                if left < 0 or line[-1:] != b"\n":  # being written, or never finished
                    break
                try:
                    yield loads(line[:-1])
                except errors.InvalidInput as error:
                    invalid += 1
                    if invalid <= _MOST_ERRORS:
                        yield errors.InvalidInput(str(error), f"{path} line {number}")
    if invalid > _MOST_ERRORS:
        yield errors.InvalidInput(f"{invalid - _MOST_ERRORS} further lines cannot be read", path)


def numbered(found: Iterator[Json | SessionsError]) -> Iterator[Json | SessionsError]:
    """Yields ``found``; each readable entry gets ``seq``, its number among the readable entries, from 1."""
    seq = 0
    for entry in found:
        if isinstance(entry, dict):
            seq += 1
            yield {**entry, "seq": seq}
        else:
            yield entry


def behind(found: Iterator[Json | SessionsError], since: int) -> Iterator[Json | SessionsError]:
    """Yields the entries of ``found`` after the one whose ``seq`` is ``since``, also those without ``seq``."""
    seq = 0
    for entry in found:
        is_numbered = isinstance(entry, dict) and "seq" in entry
        if is_numbered:
            seq = entry["seq"]  # type: ignore[index,call-overload,assignment]  # checked above
        if seq > since or (seq == since and not is_numbered):
            yield entry
