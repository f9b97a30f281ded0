"""Imports of damaged files into a server: what can be kept is kept, and a session that cannot be kept fails alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from gaia_sessions import Sessions
from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import strict
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.reading import ASIDE, EVENTS
from tests.servers import check_installed, empty_url
from tests.table import table
from tests.transcripts import begin_anew

if TYPE_CHECKING:
    from pathlib import Path

ENTRY = b'{"kind":"note"}\n'


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder with the sessions ``a``, which has three messages, and ``b``."""
    check_installed()
    for agent_id in ("a", "b"):
        Sessions(str(tmp_path)).create("worker", "some work", agent_id=agent_id)
    say(str(tmp_path), "one", "two", "three")
    return tmp_path / "a"


def say(root: str, *texts: str) -> None:
    for text in texts:
        Sessions(root).add_message("a", "user", text)


def imported(there: Path) -> str:
    """Imports both sessions into an empty database; returns its URL."""
    url = empty_url()
    report = Sessions(url).import_from(there.parent)
    assert (report["imported"], report["failed"]) == (["a", "b"], [])
    return url


def said(root: str) -> list[Any]:
    """The texts of the messages of ``a``; None for an error."""
    found = Sessions(root).messages("a")
    return [message["content"] if isinstance(message, dict) else None for message in found]


def journal(url: str, name: str) -> list[Any]:
    """The entries of a journal of ``a`` as they are stored; None for a line that nobody can read."""
    with psycopg.connect(url) as connection:
        sql = "SELECT line FROM gaia_sessions.journal WHERE name = %s ORDER BY number"
        return [entry_of(line) for (line,) in connection.execute(sql, (name,))]


def entry_of(line: str) -> Any:
    try:
        return strict.loads(line.encode())
    except InvalidInput:
        return None


def replace_in(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


@table(
    ("end", "kept"),
    [
        (b'{"kind":"\xff"}\n' + ENTRY, [None, {"kind": "note"}]),
        (b'{"kind":"\\\xff"}\n' + ENTRY, [None, {"kind": "note"}]),
        (b'{"kind":"\0"}\n' + ENTRY, [None, {"kind": "note"}]),
        (b'{"kind":"\r"}\n' + ENTRY, [None, {"kind": "note"}]),
        (b'{"kind":\r"note"}\n', [{"kind": "note"}]),
        (b"\n", [None]),
        (b"no JSON\n" + ENTRY, [None, {"kind": "note"}]),
        (ENTRY + ENTRY[:5], [{"kind": "note"}]),
    ],
)
def test_each_line_of_a_damaged_journal_is_imported_and_an_unfinished_one_is_not(
    there: Path, end: bytes, kept: list[Any]
) -> None:
    for name in (EVENTS, ASIDE):
        (there / name).write_bytes(ENTRY + end)
    url = imported(there)
    assert [journal(url, name) for name in (EVENTS, ASIDE)] == [[{"kind": "note"}, *kept]] * 2


@table(
    ("old", "new", "kept"),
    [
        (b'"two"', b'"\xff\xff\xff"', ["one", None, "three", "four"]),
        (b'"two"', b'"\0\0\0"', ["one", None, "three", "four"]),
        (b'"one"', b'"one\n', [None, "two", "three", "four"]),
    ],
)
def test_an_unreadable_message_is_an_error_in_its_place_and_the_next_one_follows(
    there: Path, old: bytes, new: bytes, kept: list[Any]
) -> None:
    before = (there / "transcript.jsonl").read_bytes()
    replace_in(there / "transcript.jsonl", old, new)
    url = imported(there)
    say(url, "four")
    assert said(url) == kept
    (there / "transcript.jsonl").write_bytes(before)


def test_a_lost_end_of_a_transcript_is_one_error(there: Path) -> None:
    whole = (there / "transcript.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for data, kept in (
        (whole[:-1], ["one", "two", "three"]),
        (whole[:-9], ["one", "two", None]),
        (whole[:first], ["one", None]),
        (b"", [None]),
    ):
        (there / "transcript.jsonl").write_bytes(data)
        assert said(imported(there)) == kept
    (there / "transcript.jsonl").unlink()
    url = imported(there)
    say(url, "four")
    assert said(url) == [None, "four"]


def test_messages_behind_the_committed_ones_are_kept_aside(there: Path) -> None:
    older = (there / "state.json").read_bytes()
    say(str(there.parent), "four", "five")
    (there / "state.json").write_bytes(older)
    with (there / "transcript.jsonl").open("ab") as file:
        file.write(b'{"seq":6,')

    url = imported(there)

    say(url, "another four")
    assert said(url) == ["one", "two", "three", "another four"]
    assert [(one["seq"], one["content"]) for one in journal(url, ASIDE)] == [(4, "four"), (5, "five")]


def test_a_transcript_that_an_older_record_does_not_know_is_kept_aside(there: Path) -> None:
    older = (there / "state.json").read_bytes()
    begin_anew(FileStore(str(there.parent)), "a")
    say(str(there.parent), "four")
    (there / "state.json").write_bytes(older)

    url = imported(there)

    begin_anew(Sessions(url).store, "a")
    say(url, "another four")
    assert (said(url), [one["content"] for one in journal(url, ASIDE)]) == (["another four"], ["four"])


def test_a_session_whose_messages_are_not_in_order_fails_alone(there: Path) -> None:
    replace_in(there / "transcript.jsonl", b'"seq": 3', b'"seq": 2')
    report = Sessions(empty_url()).import_from(there.parent)
    assert report["imported"] == ["b"]
    assert [(one["agent_id"], one["reason"]) for one in report["failed"]] == [("a", "corrupt")]
    assert "message 2 comes after message 2" in report["failed"][0]["detail"]
