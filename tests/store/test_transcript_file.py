"""Transcript files: committed and uncommitted lines, killed writers, and files that others changed."""

from __future__ import annotations

import gc
import json
import os
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import CorruptSession, InvalidInput, MessagesKeptAside, SessionNotFound, StoreFailure
from gaia_sessions.session.record import new_record
from gaia_sessions.session.transcript import (
    EVENT_LINE_LIMIT,
    after,
    committed_bytes,
    new_message,
    number_messages,
    with_turn,
)
from gaia_sessions.store import transcript_reader
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.reading import generation_in, is_file_name, transcript_name
from tests.removals import deleted
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.store.directory import Directory

NEWLINE = b"\n"
NOW = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)


@pytest.fixture
def store(root: str) -> FileStore:
    """A store with one session and two messages."""
    store = FileStore(root, durable=False)
    store.create(new_record("one", "Explore", "-", {}, NOW))
    say(store, "first", "second")
    return store


@pytest.fixture
def path(root: str, store: FileStore) -> Path:  # noqa: ARG001  # makes the file
    return Path(root, "one", "transcript.jsonl")


def say(store: FileStore, *contents: str) -> None:
    add_messages(store, "one", [new_message("user", content, NOW) for content in contents])


def read(store: FileStore) -> list[object]:
    """Returns the text or the error for each message, and checks that reading backwards gives the same."""
    found = list(store.messages("one"))
    assert list(map(str, store.messages_backwards("one"))) == list(map(str, found))[::-1]
    return [f"{message['seq']} {message['content']}" if isinstance(message, dict) else message for message in found]


def numbers(store: FileStore) -> list[int]:
    return [message["seq"] for message in store.messages("one") if isinstance(message, dict)]


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


def test_a_transcript_file_is_private_and_has_one_line_for_each_committed_message(store: FileStore, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().count(b"\n") == 2
    assert path.stat().st_size == committed_bytes(store.read("one"))


@pytest.mark.parametrize("uncommitted", [b"{", b'{"seq": 3}', b"x" * 100_000])
def test_uncommitted_bytes_without_a_whole_line_are_not_read_and_the_next_writer_cuts_them(
    store: FileStore, path: Path, uncommitted: bytes
) -> None:
    committed = path.read_bytes()
    path.write_bytes(committed + uncommitted)

    assert read(store) == ["1 first", "2 second"]
    say(store, "third")

    assert read(store) == ["1 first", "2 second", "3 third"]
    assert path.read_bytes().startswith(committed)
    assert path.stat().st_size == committed_bytes(store.read("one"))
    assert names(path) == ["state.json", "transcript.jsonl"]


def restore_older_record(store: FileStore, path: Path, *contents: str) -> bytes:
    """Adds two messages and ``contents``, restores the older record, and returns the lines that it does not count."""
    older = path.with_name("state.json").read_bytes()
    size = path.stat().st_size
    say(store, "third", "fourth")
    say(store, *contents)
    path.with_name("state.json").write_bytes(older)
    return path.read_bytes()[size:]


def test_uncommitted_whole_lines_are_moved_aside_with_a_warning_and_no_number_is_reused(
    store: FileStore, path: Path
) -> None:
    committed, lines = path.read_bytes(), restore_older_record(store, path, "fifth", "x" * (3 << 20 >> 2))
    path.write_bytes(committed + lines + b'{"seq": 7, "tu')
    aside = path.with_name("transcript-aside.jsonl")

    with pytest.warns(MessagesKeptAside, match=f"4 messages .*a crash .*, .* copy.*; they are now in {aside}"):
        say(store, "new")

    assert (aside.read_bytes(), aside.stat().st_mode & 0o777) == (lines, 0o600)
    assert read(store) == ["1 first", "2 second", "7 new"]
    assert all(map(is_file_name, names(path)))
    say(store, "nothing is behind any more")
    assert aside.read_bytes() == lines


def test_lines_that_are_moved_aside_later_are_appended_to_the_earlier_ones(store: FileStore, path: Path) -> None:
    kept = b""
    for _ in range(2):
        kept += restore_older_record(store, path)
        with pytest.warns(MessagesKeptAside, match="2 messages"):
            say(store, "new")

    assert path.with_name("transcript-aside.jsonl").read_bytes() == kept
    assert numbers(store) == [1, 2, 5, 8]


def test_resetting_a_transcript_moves_uncommitted_whole_lines_aside_too(store: FileStore, path: Path) -> None:
    committed, lines = path.read_bytes(), restore_older_record(store, path, "fifth")

    with pytest.warns(MessagesKeptAside, match="3 messages"):
        begin_anew(store, "one")

    assert path.read_bytes() == committed
    assert path.with_name("transcript-aside.jsonl").read_bytes() == lines
    say(store, "new")
    assert read(store) == ["6 new"]


@pytest.mark.parametrize("older", ["nothing was said", "the transcript of before was there"])
def test_an_older_record_restored_after_a_reset_cuts_no_line_of_the_newer_file(
    store: FileStore, path: Path, older: str
) -> None:
    state = path.with_name("state.json")
    record = json.loads(state.read_bytes())
    if older == "nothing was said":
        record = {key: record[key] for key in record.keys() - {"transcript_bytes", "last_seq"}}
        path.unlink()
    begin_anew(store, "one")
    say(store, *(f"message {number} of the new transcript" for number in range(10)))
    later = path.with_name("transcript-1.jsonl").read_bytes()
    state.write_bytes(json.dumps(record).encode())

    say(store, "new")
    emptied = begin_anew(store, "one")
    say(store, "newer")

    assert emptied["transcripts_archived"] == 2
    assert path.with_name("transcript-1.jsonl").read_bytes() == later
    assert read(store) == ["14 newer"]
    assert names(path) == ["state.json", "transcript-1.jsonl", "transcript-2.jsonl", "transcript.jsonl"]


def test_no_number_is_reused_if_a_writer_stopped_after_moving_lines_aside(store: FileStore, path: Path) -> None:
    committed, lines = path.read_bytes(), restore_older_record(store, path)
    path.write_bytes(committed)
    path.with_name("transcript-aside.jsonl").write_bytes(lines)  # like a killed writer or a full disk

    say(store, "new")

    assert read(store) == ["1 first", "2 second", "5 new"]


@pytest.mark.parametrize("emptied", [1, 2])
def test_no_number_of_an_archived_transcript_is_reused_after_an_older_record_was_restored(
    store: FileStore, path: Path, emptied: int
) -> None:
    older = path.with_name("state.json").read_bytes()
    for _ in range(emptied):
        say(store, "third", "fourth")
        begin_anew(store, "one")
    path.with_name("state.json").write_bytes(older)

    with pytest.warns(MessagesKeptAside, match="2 messages"):
        say(store, "new", "newer")

    assert numbers(store)[:2] == [1, 2]
    assert numbers(store)[2:] == [2 + 2 * emptied + 1, 2 + 2 * emptied + 2]


def test_a_record_without_messages_loses_no_line_of_the_transcript_or_its_snapshot(
    store: FileStore, path: Path, tmp_path: Path
) -> None:
    state = path.with_name("state.json")
    record = json.loads(state.read_bytes())
    state.write_bytes(json.dumps({**record, "transcript_bytes": 0}).encode())
    snapshot = tmp_path / "snapshot.jsonl"
    os.link(path, snapshot)
    before = path.read_bytes()

    with pytest.warns(MessagesKeptAside, match="2 messages"):
        say(store, "new")

    assert path.with_name("transcript-aside.jsonl").read_bytes() == before == snapshot.read_bytes()
    assert read(store) == ["3 new"]


def test_a_lost_or_damaged_transcript_hides_no_later_message_from_a_reader(store: FileStore, path: Path) -> None:
    losses: list[Callable[[], object]] = [
        path.unlink,
        lambda: os.truncate(path, 10),
        lambda: path.write_bytes(path.read_bytes()[:-10] + b"\0" * 9 + b"\n"),
        lambda: path.write_bytes(b""),
    ]
    for loss in losses:
        seen = numbers(store)[-1]
        loss()
        say(store, "new", "newer")
        found = [message for message in store.messages("one", is_wanted=after(seen)) if isinstance(message, dict)]
        assert [message["content"] for message in found] == ["new", "newer"]
        assert [message["seq"] for message in found] == [seen + 1, seen + 2]


def test_only_committed_lines_are_archived(store: FileStore, path: Path) -> None:
    committed = path.read_bytes()
    path.write_bytes(committed + b"uncommitted")

    begin_anew(store, "one")

    assert (names(path), path.read_bytes()) == (["state.json", "transcript.jsonl"], committed)
    say(store, "new")
    assert names(path) == ["state.json", "transcript-1.jsonl", "transcript.jsonl"]
    assert (read(store), path.read_bytes()) == (["3 new"], committed)
    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}


def test_resetting_a_transcript_changes_only_the_record(store: FileStore, path: Path) -> None:
    before = path.stat()

    begin_anew(store, "one")

    after_it = path.stat()
    assert (after_it.st_ino, after_it.st_nlink, after_it.st_mtime_ns) == (before.st_ino, 1, before.st_mtime_ns)
    assert names(path) == ["state.json", "transcript.jsonl"]
    assert read(store) == []


def test_no_transcript_file_has_two_names_after_repeated_resets(store: FileStore, path: Path) -> None:
    for number in range(1, 4):
        assert begin_anew(store, "one")["transcripts_archived"] == number
        say(store, f"of the file {number}")

    assert names(path) == ["state.json", *(f"transcript-{number}.jsonl" for number in (1, 2, 3)), "transcript.jsonl"]
    assert {each.stat().st_nlink for each in path.parent.iterdir()} == {1}
    assert read(store) == ["5 of the file 3"]


@pytest.mark.parametrize("there", [[1], [3], [1, 2, 5]])
def test_the_next_transcript_has_a_number_that_no_file_has(store: FileStore, path: Path, there: list[int]) -> None:
    for number in there:
        path.with_name(f"transcript-{number}.jsonl").write_bytes(b"of a backup")

    record = begin_anew(store, "one")
    say(store, "new")

    assert record["transcripts_archived"] == there[-1] + 1
    assert {path.with_name(f"transcript-{number}.jsonl").read_bytes() for number in there} == {b"of a backup"}
    assert read(store) == ["3 new"]


def test_a_file_with_an_impossible_transcript_number_does_not_prevent_a_reset(store: FileStore, path: Path) -> None:
    for number in ("9" * 19, "9" * 200):
        path.with_name(f"transcript-{number}.jsonl").write_bytes(b"of somebody")

    record = begin_anew(store, "one")

    assert record["transcripts_archived"] == 1
    assert store.read("one") == record


def test_a_hard_link_to_the_transcript_keeps_its_old_messages(store: FileStore, path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    os.link(path, elsewhere)
    before = path.read_bytes()

    say(store, "third")
    read_then = read(store)
    begin_anew(store, "one")
    say(store, "new")

    assert read_then == ["1 first", "2 second", "3 third"]
    assert read(store) == ["4 new"]
    assert elsewhere.read_bytes() == before


def test_uncommitted_bytes_are_cut_from_the_transcript_but_not_from_a_hard_link_to_it(
    store: FileStore, path: Path, tmp_path: Path
) -> None:
    path.write_bytes(path.read_bytes() + b"uncommitted")
    before = path.read_bytes()
    os.link(path, tmp_path / "elsewhere")

    begin_anew(store, "one")

    assert path.read_bytes() + b"uncommitted" == before
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_an_unreadable_line_hides_no_other_message_and_its_number_is_not_reused(store: FileStore, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"second"', b"\0second\0"))

    first, error = read(store)
    assert (first, isinstance(error, InvalidInput)) == ("1 first", True)
    assert f"{path} byte {data.index(NEWLINE) + 1}: " in str(error)
    say(store, "third")

    assert numbers(store) == [1, 3]


def commit_all(path: Path) -> None:
    """Makes the record count the whole file as committed."""
    state = path.with_name("state.json")
    state.write_bytes(json.dumps({**json.loads(state.read_bytes()), "transcript_bytes": path.stat().st_size}).encode())


def test_a_line_over_the_limit_is_an_error_and_the_longest_allowed_message_is_read(
    store: FileStore, path: Path
) -> None:
    message = {**new_message("user", "longest", NOW), "event": ""}
    shortest = len(number_messages([message], 3, 1)[1])  # type: ignore[list-item]  # a message with an event
    longest = {**message, "event": "e" * (EVENT_LINE_LIMIT - shortest)}
    add_messages(store, "one", [longest])  # type: ignore[list-item]  # the same
    place = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'"' + b"x" * (EVENT_LINE_LIMIT + (1 << 20)) + b'"\n')
    commit_all(path)
    say(store, "behind")

    *before, error, behind = read(store)
    assert (before, behind) == (["1 first", "2 second", "3 longest"], "4 behind")
    assert f"{path} byte {place}: " in str(error)
    assert numbers(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["transcript.jsonl", "transcript-7.jsonl", "transcript-aside.jsonl"])
def test_only_a_bounded_part_of_a_file_with_an_endless_line_is_read(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with path.with_name(name).open("ab") as file:
        file.truncate(1 << 40)  # sparse
    if path.name == name:
        commit_all(path)
    sizes, pread = [0], os.pread

    def counted(fd: int, size: int, place: int) -> bytes:
        sizes.append(size)
        return pread(fd, size, place)

    monkeypatch.setattr(os, "pread", counted)

    found = [*store.messages("one"), *store.messages_backwards("one")]
    assert [message["seq"] for message in found if isinstance(message, dict)][:2] == [1, 2]
    say(store, "new")
    assert numbers(store)[:2] == [1, 2]
    assert next(iter(store.messages_backwards("one")))["seq"] == 3  # type: ignore[index]  # a message
    assert sum(sizes) < 8 * transcript_reader._MOST_PASSED
    assert max(sizes) <= transcript_reader._CUT


def test_a_shortened_transcript_is_reported_and_takes_new_messages(store: FileStore, path: Path) -> None:
    size = path.stat().st_size
    os.truncate(path, size - 10)

    first, torn, lost = read(store)
    assert (first, isinstance(torn, InvalidInput)) == ("1 first", True)
    assert f"the file has {size - 10} bytes, but {size} were committed" in str(lost)
    say(store, "third")

    assert read(store)[0] == "1 first"
    assert read(store)[-1] == f"{numbers(store)[-1]} third"
    assert path.stat().st_size == committed_bytes(store.read("one"))


def test_a_removed_transcript_is_reported_and_takes_new_messages(store: FileStore, path: Path) -> None:
    path.unlink()

    [lost] = read(store)
    assert str(path) in str(lost)
    say(store, "third")

    assert [message for message in read(store) if isinstance(message, str)] == [f"{numbers(store)[0]} third"]


def test_a_removed_transcript_can_be_emptied(store: FileStore, path: Path) -> None:
    path.unlink()

    record = begin_anew(store, "one")

    assert (record["transcript_bytes"], names(path), read(store)) == (0, ["state.json"], [])


def test_a_link_in_the_place_of_the_transcript_is_never_followed(store: FileStore, path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shutil.move(path, victim)
    before = victim.read_bytes()
    path.symlink_to(victim)

    for ask in (
        lambda: list(store.messages("one")),
        lambda: say(store, "third"),
        lambda: begin_anew(store, "one"),
    ):
        with pytest.raises(StoreFailure):
            ask()

    assert (victim.read_bytes(), path.is_symlink()) == (before, True)


def test_a_pipe_in_place_of_the_transcript_is_refused_without_waiting(store: FileStore, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(StoreFailure, match="not a regular file"):
        list(store.messages("one"))
    with pytest.raises(StoreFailure):
        say(store, "third")


def test_a_reader_during_a_reset_gets_the_messages_of_the_old_transcript(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transcript is emptied and gets a new message right after the reader has read the record."""
    whole_open = transcript_reader.open_lines  # the next step of the reader

    def interfere(session: Directory, name: str, committed: int) -> transcript_reader.CommittedLines:
        monkeypatch.undo()
        writer = FileStore(store.root, durable=False)
        begin_anew(writer, "one")
        say(writer, "of the new file, and longer than both messages of the old one " * 10)
        return whole_open(session, name, committed)

    monkeypatch.setattr(transcript_reader, "open_lines", interfere)

    found = [message["content"] for message in store.messages("one") if isinstance(message, dict)]
    assert found == ["first", "second"]
    assert str(read(store)[0]).startswith("3 of the new file")


def test_a_session_that_is_deleted_while_it_is_read_is_not_found(store: FileStore) -> None:
    messages = store.messages("one")
    deleted(store, "one", lambda _found: True)

    with pytest.raises(SessionNotFound):
        next(messages)


def test_the_transcript_of_a_corrupt_session_is_refused_at_once(store: FileStore, path: Path) -> None:
    path.with_name("state.json").write_bytes(b"{")

    with pytest.raises(CorruptSession):
        store.messages("one")
    with pytest.raises(CorruptSession):
        store.messages_backwards("one")


BETWEEN_LINES = [
    b"",
    b"{\n",
    b"\n" * 50_000,
    b"x" * 50_000 + b"\n",
    b'{"turn": 7}\n' * 3000,
    b"\0" * (1 << 20) + b"\n",
]


def test_a_turn_is_found_despite_foreign_bytes_between_its_messages(store: FileStore, path: Path) -> None:
    begin_anew(store, "one")
    for number in range(30):
        say(store, *(f"{number} " + "x" * (number % 7) * 300 for _ in range(5)))
        with store.open("one") as session:
            session.commit({**session.record, "turns": number + 1})
    file = path.with_name(transcript_name(1))
    lines = file.read_bytes().splitlines(keepends=True)
    for between in BETWEEN_LINES:
        for place in (0, 73, 149, 150):
            file.write_bytes(b"".join([*lines[:place], between, *lines[place:]]))
            commit_all(file)
            for turn in range(1, 31):
                found = next(store.messages_from_turn("one", turn))
                assert isinstance(found, dict)
                assert (found["turn"], found["content"].partition(" ")[0]) == (turn, str(turn - 1))


def test_reading_and_writing_a_transcript_leaves_no_descriptor_open(store: FileStore) -> None:
    gc.collect()  # closes the roots of stores of earlier tests
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        next(store.messages("one"))
        list(store.messages_backwards("one"))
        say(store, "more")
        begin_anew(store, "one")
        say(store, "more")
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_exact_names_of_transcript_files_are_recognized() -> None:
    assert [*map(transcript_name, (0, 1, 12))] == ["transcript.jsonl", "transcript-1.jsonl", "transcript-12.jsonl"]
    assert [generation_in(transcript_name(number)) for number in (0, 1, 9, 10, 12345)] == [0, 1, 9, 10, 12345]
    others = ["transcript-.jsonl", "transcript-0.jsonl", "transcript-01.jsonl", "transcript--1.jsonl", "state.json"]
    others += ["transcript-1.json", "transcript-1.jsonl.old", "x-transcript-1.jsonl", "transcript-²", "transcript.json"]
    assert [name for name in others if generation_in(name) is not None] == []


def test_adding_a_message_costs_no_more_bytes_after_many_messages(store: FileStore, path: Path) -> None:
    sizes = []
    for behind in (10, 10_000):
        say(store, *(f"message {number}" for number in range(behind)))
        before = io_counts()
        say(store, "one more message")
        sizes.append([after - earlier for earlier, after in zip(before, io_counts(), strict=True)])
    (read_few, written_few), (read_many, written_many) = sizes
    assert path.stat().st_size > 1_000_000
    assert written_many - written_few < 100
    assert read_many - read_few < 40_000


def test_adding_a_turn_writes_no_more_bytes_after_a_thousand_turns(store: FileStore, path: Path) -> None:
    written = {}
    for number in range(1, 1001):
        before = io_counts()
        turn = [new_message(role, f"message of turn {number:04}", NOW) for role in ("user", "assistant")]
        add_messages(store, "one", turn, partial(with_turn, number=number, now=NOW))
        written[number] = io_counts()[1] - before[1]

    assert path.stat().st_size > 200_000
    assert written[1000] - written[2] < 50
    assert max(written.values()) - written[2] < 50


def io_counts() -> tuple[int, int]:
    """Returns how many bytes this thread has read and written."""
    counts = dict(line.split(": ") for line in Path("/proc/thread-self/io").read_text().splitlines())
    return int(counts["rchar"]), int(counts["wchar"])
