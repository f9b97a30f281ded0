"""Sessions of ADK's own SqliteSessionService move in: all of it, once, and after an interruption the rest."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from gaia_sessions import Sessions
from gaia_sessions.adk import importing
from gaia_sessions.adk.importing import import_file
from gaia_sessions.store.file_store import FileStore
from tests.adk.parts import Adk, said
from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Ended


class Old(Adk):
    """The service of ADK whose file is imported."""

    def __init__(self, file: Path) -> None:
        self.service: Any = SqliteSessionService(str(file))


def import_by_command(root: str, file: Path, *options: str) -> Ended:
    return gaia("--root", root, "adk", "import", str(file), *options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.db"


@pytest.fixture
def old(file: Path) -> Old:
    """Two users of an app: one asked three questions and was answered, another said nothing yet."""
    service = Old(file)
    session = service.create("s/1", intent="create", app__motd="hi", user__language="de")
    for number in range(3):
        service.append(session, said(f"question {number}", at=1700000000.25 + number, n=number))
        answer = said(f"answer {number}", at=1700000000.5 + number, answered=number)
        answer.author = "agent"
        service.append(session, answer)
    service.create("quiet", user="u2", k=[1, {"a": None}])
    with closing(sqlite3.connect(file)) as database:  # its clock is that of the machine
        database.execute("UPDATE sessions SET create_time = 1690000000.5")
        database.commit()
    return service


@pytest.fixture
def another(tmp_path: Path, file: Path) -> Callable[[], tuple[str, Path]]:
    """Gives a root in which nothing is, and a copy of the file as it is then: others each time."""
    numbers = count()

    def make() -> tuple[str, Path]:
        number = next(numbers)
        copied = tmp_path / f"{number}.db"
        shutil.copy(file, copied)
        return str(tmp_path / f"root {number}"), copied

    return make


def test_sessions_come_with_app_user_state_and_events_as_adk_has_them(root: str, file: Path, old: Old) -> None:
    before = file.read_bytes()
    report = import_file(Sessions(root), str(file))
    assert (len(report["imported"]), report["events"], report["failed"]) == (2, 6, [])
    assert report["shared"] == [["app"], ["app", "u1"]]
    adk = Adk(root)
    for session_id, user in (("s/1", "u1"), ("quiet", "u2")):
        moved, kept = adk.loaded(session_id, user), old.loaded(session_id, user)
        assert moved.model_dump() == {**kept.model_dump(), "last_update_time": moved.last_update_time}
    assert adk.loaded("s/1").last_update_time == old.loaded("s/1").last_update_time
    record = Sessions(root).read(report["imported"][0])
    assert (record["turns"], record["purpose"], record["last_updated"][:10]) == (3, "question 0", "2023-11-14")
    assert file.read_bytes() == before


def test_an_import_that_is_repeated_brings_only_what_came_since(root: str, file: Path, old: Old) -> None:
    first = import_file(Sessions(root), str(file))
    again = import_file(Sessions(root), str(file))
    assert (again["imported"], sorted(again["already_there"])) == ([], sorted(first["imported"]))
    old.append(old.loaded("s/1"), said("later", n=9))
    later = import_file(Sessions(root), str(file))
    assert (later["imported"], later["events"]) == (first["imported"][:1], 1)
    assert Adk(root).loaded("s/1").state["n"] == 9
    assert Adk(root).loaded("s/1").events == old.loaded("s/1").events


@table("commits", range(4))
def test_an_import_that_was_stopped_goes_on_where_it_stopped(
    old: Old, another: Callable[[], tuple[str, Path]], monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    """After each commit, of two events each, state and events agree."""
    root, file = another()
    add, left = FileStore.add_messages, [commits]

    def stop(*arguments: Any, **named: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return add(*arguments, **named)

    monkeypatch.setattr(importing, "_AT_ONCE", 1000)
    with monkeypatch.context() as stopped:
        stopped.setattr(FileStore, "add_messages", stop)
        with suppress(KeyboardInterrupt):
            import_file(Sessions(root), str(file))
    half = Adk(root).loaded("s/1")
    assert half.state == {
        **half.state,
        **{key: value for event in half.events for key, value in event.actions.state_delta.items()},
    }
    assert ("n" in half.state) == bool(half.events)
    report = import_file(Sessions(root), str(file))
    assert report["failed"] == []
    assert Adk(root).loaded("s/1").events == old.loaded("s/1").events
    assert Adk(root).loaded("s/1").state == old.loaded("s/1").state


def test_a_later_import_leaves_what_was_changed_here(root: str, file: Path, old: Old) -> None:
    [agent_id, _] = import_file(Sessions(root), str(file))["imported"]
    Sessions(root).change_state(agent_id, {"intent": "ours", "app:motd": "ours"})
    old.append(old.loaded("s/1"), said("later", n=9))
    report = import_file(Sessions(root), str(file))
    assert (report["events"], report["shared_here"], report["failed"]) == (1, [["app"]], [])
    state = Adk(root).loaded("s/1").state
    assert (state["intent"], state["app:motd"], state["n"]) == ("ours", "ours", 9)
    adk = Adk(root)
    adk.append(adk.loaded("s/1"), said("here"))
    assert import_file(Sessions(root), str(file))["failed"] == []
    old.append(old.loaded("s/1"), said("and there"))
    [failed] = import_file(Sessions(root), str(file))["failed"]
    assert (failed["what"], "went on here and there" in failed["detail"]) == ("s/1 of app u1", True)
    Sessions(root).reset(agent_id)
    [failed] = import_file(Sessions(root), str(file))["failed"]
    assert "begun anew here" in failed["detail"]


@pytest.mark.usefixtures("old")
def test_what_is_left_out_is_said_with_the_reason(root: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE sessions SET state = ? WHERE id = 'quiet'", (json.dumps({"a" * 257: 1}),))
        database.execute("UPDATE events SET event_data = '{}' WHERE session_id = 's/1'")
        database.commit()
    Adk(root).create("other", app__motd="ours")
    ended = import_by_command(root, file)
    assert (ended.code, ended.out.decode().splitlines()[1:]) == (
        6,
        [
            f"  into {root}",
            "imported what is shared by user u1 of app",
            "kept as it is here: what is shared by all of app",
        ],
    )
    for words in (
        "s/1 of app u1: not imported: the event: no event of ADK",
        "quiet of app u2: not imported: the key",
    ):
        assert words in ended.err.decode()
    assert Adk(root).ids(None) == ["other"]


ODD_VALUES = (
    *(("state", None), ("state", b"{}"), ("id", b"x"), ("id", " s "), ("id", " "), ("user_id", " u")),
    *(("create_time", "x"), ("create_time", 1e99)),
)
ODD_EVENTS = (
    "{}",
    '{"timestamp": 1, "content": "x"}',
    '{"timestamp": 1, "content": {"parts": ["x"]}}',
    '{"timestamp": 1, "content": {"parts": 5}}',
    '{"timestamp": 1, "content": {"parts": [{"function_call": "x"}]}}',
    '{"timestamp": -1}',
    '{"timestamp": 1e99}',
    '{"timestamp": 1, "actions": {"state_delta": [1]}}',
    '{"timestamp": 1, "actions": "x"}',
    '{"timestamp": 1, "actions": [1]}',
    '{"timestamp": 1, "actions": {"state_delta": {"secret:k": 1}}}',
    "[" * 100_000,
    "nothing",
)


@pytest.mark.usefixtures("old")
@table("event", ODD_EVENTS)
def test_an_odd_event_keeps_its_session_out_and_no_other(another: Callable[[], tuple[str, Path]], event: str) -> None:
    root, file = another()
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE events SET event_data = ? WHERE rowid = 3", (event,))
        database.commit()
    report = import_file(Sessions(root), str(file))
    assert [one["what"] for one in report["failed"]] == ["s/1 of app u1"]
    assert Adk(root).ids(None) == ["quiet"]


@pytest.mark.usefixtures("old")
@table(("column", "value"), ODD_VALUES)
def test_an_odd_row_keeps_its_session_out_and_no_other(
    another: Callable[[], tuple[str, Path]], column: str, value: object
) -> None:
    root, file = another()
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "PRAGMA foreign_keys = OFF; CREATE TABLE loose AS SELECT * FROM sessions; DROP TABLE sessions;"
            "ALTER TABLE loose RENAME TO sessions;"
        )
        database.execute(f"UPDATE sessions SET {column} = ? WHERE id = 'quiet'", (value,))  # noqa: S608  # our own names
        database.commit()
    report = import_file(Sessions(root), str(file))
    assert (len(report["failed"]), Adk(root).ids(None)) == (1, ["s/1"])


@pytest.mark.usefixtures("old")
def test_a_dry_run_says_what_would_come_and_brings_nothing(root: str, file: Path) -> None:
    Sessions(root).create()
    ended = import_by_command(root, file, "--dry-run")
    assert (ended.code, ended.out.splitlines()[0]) == (0, b"would import 2 sessions with 6 events")
    assert not Path(root, ".shared").exists()
    assert Adk(root).ids(None) == []


@pytest.mark.usefixtures("old")
def test_an_import_while_the_session_goes_on_changes_nothing_that_was_acknowledged(
    root: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another import, and a service that appends, between two commits of this one."""
    add, adk = FileStore.add_messages, Adk(root)

    def interrupt(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(FileStore, "add_messages", add)
        assert import_file(Sessions(root), str(file))["failed"] == []
        adk.append(adk.loaded("s/1"), said("here", mine=1))
        return add(*arguments, **named)

    monkeypatch.setattr(FileStore, "add_messages", interrupt)
    report = import_file(Sessions(root), str(file))
    assert (report["failed"], len(report["already_there"])) == ([], 2)
    session = adk.loaded("s/1")
    assert (len(session.events), session.state["mine"]) == (7, 1)


@pytest.mark.usefixtures("old")
@table("is_cancelled", [True, False])
def test_a_session_that_has_ended_here_gets_nothing(
    another: Callable[[], tuple[str, Path]], *, is_cancelled: bool
) -> None:
    root, file = another()
    [agent_id, _] = import_file(Sessions(root), str(file))["imported"]
    Old(file).append(Old(file).loaded("s/1"), said("later"))
    if is_cancelled:
        Sessions(root).cancel(agent_id)
    else:
        Sessions(root).finalize(agent_id, "completed")
    for dry_run in (True, False):
        report = import_file(Sessions(root), str(file), dry_run=dry_run)
        assert ([one["what"] for one in report["failed"]], report["events"]) == (["s/1 of app u1"], 0)
    assert len(Adk(root).loaded("s/1").events) == 6


def test_an_event_that_is_too_long_keeps_its_session_out_as_a_whole(root: str, file: Path, old: Old) -> None:
    old.append(old.loaded("s/1"), said("x" * (9 << 20)))
    for dry_run in (True, False):
        report = import_file(Sessions(root), str(file), dry_run=dry_run)
        assert [(one["what"], one["reason"]) for one in report["failed"]] == [("s/1 of app u1", "too_large")]
    assert Adk(root).ids(None) == ["quiet"]


def test_another_session_of_an_id_keeps_what_it_has(root: str, file: Path, old: Old) -> None:
    Adk(root).create("s/1", plan="ours")
    report = import_file(Sessions(root), str(file))
    assert [(one["what"], one["detail"]) for one in report["failed"]] == [
        ("s/1 of app u1", "another session has its ID here")
    ]
    assert (Adk(root).loaded("s/1").state["plan"], Adk(root).loaded("s/1").events) == ("ours", [])
    assert Adk(root).loaded("quiet", "u2").state == old.loaded("quiet", "u2").state


def test_a_state_that_is_too_long_keeps_its_session_out_as_a_whole(root: str, file: Path, old: Old) -> None:
    for number in range(2):
        old.append(old.loaded("s/1"), said(delta={f"big{number}": "x" * 700_000}))
    for dry_run in (True, False):
        report = import_file(Sessions(root), str(file), dry_run=dry_run)
        assert [(one["what"], one["reason"]) for one in report["failed"]] == [("s/1 of app u1", "too_large")]
    assert Adk(root).ids(None) == ["quiet"]


@pytest.mark.usefixtures("old")
def test_bytes_that_are_no_text_keep_their_session_out_and_no_other(root: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE events SET event_data = CAST(x'7bff7d' AS TEXT) WHERE rowid = 3")
        database.commit()
    assert [one["what"] for one in import_file(Sessions(root), str(file))["failed"]] == ["s/1 of app u1"]
    assert Adk(root).ids(None) == ["quiet"]


def test_a_file_of_the_database_service_is_called_that(root: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE adk_internal_metadata (key, value)")
    ended = import_by_command(root, file)
    assert (ended.code, b"it is a file of DatabaseSessionService" in ended.err) == (8, True)


@table("content", [None, b"", b"not a database at all"])
def test_a_file_that_adk_did_not_write_is_refused(root: str, file: Path, content: bytes | None) -> None:
    if content is not None:
        file.write_bytes(content)
    ended = import_by_command(root, file)
    assert (ended.code, b"SqliteSessionService" in ended.err) == (8, True)


def test_the_command_loads_nothing_of_google() -> None:
    loads = "import sys, gaia_sessions.adk.importing, gaia_sessions.cli.commands.adk"
    code = f"{loads}; print([name for name in sys.modules if name.startswith('google')])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
