"""Copies of all sessions between a folder and a server: what is copied, what moves, and what stays."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.api import at
from gaia_sessions.api.reporting import output_of
from gaia_sessions.errors import Conflict, NewerSchema, NoSuchFolder, SessionMoving, UsageError
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import encode, new_record, stand_in_of, with_moving
from gaia_sessions.session.updates import Change, without_end
from gaia_sessions.store import MOST_ABOVE
from gaia_sessions.store.file_store import FileStore
from tests.api.test_importing import create_at_work, news_of
from tests.copies import contents, make_project, that_accept_changes
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.api.copying import Copied

NOW = datetime.now(UTC)
Sessions: Any = gaia_sessions.Sessions
ENDED = ["app-2", "cancelled", "long", "printed", "silent"]
OPEN = ["above", "answered", "app-1", "asked", "below", "talk"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "session"
    make_project(str(folder))
    return folder


@pytest.fixture
def url() -> str:
    return empty_url()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "session")


@pytest.fixture
def project(made: Path, root: str) -> str:
    shutil.copytree(made, root)
    return root


def essence(report: Copied) -> tuple[Any, ...]:
    stayed = {one["agent_id"]: one["reason"] for one in report["stayed"]}
    return report["moved"], report["copied"], report["already_there"], stayed, report["failed"]


def test_to_the_server_and_back_every_byte_of_a_project_is_the_same(project: str, url: str) -> None:
    before = contents(project)
    assert {name.split("/")[0] for name in before} == {*ENDED, *OPEN, ".shared", ".stats.jsonl"}

    there = Sessions(project).copy_to(url)
    assert essence(there) == (OPEN, ENDED, [], {}, [])
    assert (there["documents"], there["figures"]) == (3, 2)
    assert sorted(Sessions(project).store.ids()) == ENDED
    assert (that_accept_changes(Sessions(project)), that_accept_changes(Sessions(url))) == ([], OPEN)

    back = Sessions(url).copy_to(project)
    assert essence(back) == (OPEN, [], ENDED, {}, [])
    assert (back["documents"], back["figures"]) == (3, 0)
    assert contents(project) == before
    assert (that_accept_changes(Sessions(project)), that_accept_changes(Sessions(url))) == (OPEN, [])


def test_on_the_server_a_session_says_what_it_said_in_its_folder(project: str, url: str) -> None:
    def said(root: str) -> Any:
        sessions = Sessions(root)
        shown = {agent_id: sessions.get(agent_id) for agent_id in (*ENDED, *OPEN)}
        for record in shown.values():
            for one in record.get("runs", ()):
                for key in ("output_path", "wrapper"):
                    one.pop(key, None)
        return (
            shown,
            [*sessions.messages("talk")],
            [*sessions.events("below")],
            [at.read(sessions, output_of, agent_id) for agent_id in ("long", "printed", "silent")],
            sessions.state("app-1"),
            sessions.stats()["total"],
        )

    before = said(project)
    Sessions(project).copy_to(url)
    assert said(url) == before


def test_work_goes_on_after_a_move_and_all_of_it_comes_back(project: str, url: str) -> None:
    Sessions(project).copy_to(url)
    there = Sessions(url)
    there.add_message("talk", "assistant", "On the server")
    there.change_state("app-1", {"app:last": 3})
    there.finalize("asked", "completed")
    there.create("worker", "new work", agent_id="new")

    report = there.copy_to(project)

    assert (report["moved"], report["copied"]) == (
        ["above", "answered", "app-1", "below", "new", "talk"],
        ["asked"],
    )
    here = Sessions(project)
    assert [message["content"] for message in here.messages("talk")] == ["Be brief.", "Second", "On the server"]
    assert here.state("app-1")["state"]["app:last"] == 3
    assert here.get("asked")["phase"] == "completed"
    here.add_message("talk", "user", "In the folder")


def test_a_session_at_work_stays_with_those_above_and_below_it_and_those_that_share_its_state(
    root: str, url: str
) -> None:
    sessions = Sessions(root)
    sessions.create("lead", "all", agent_id="above")
    sessions.create("worker", "a part", agent_id="beside", parent_id="above")
    create_at_work(root, "busy")
    FileStore(root).change("busy", lambda record: {**record, "parent_id": "above", "app": "kb", "user": "u"})
    sessions.create("helper", "shares state", agent_id="sharing", app="kb", user="other", state={"app:x": 1})
    sessions.create("worker", "alone", agent_id="alone")

    report = sessions.copy_to(url)

    reasons = {one["agent_id"]: one["reason"] for one in report["stayed"]}
    assert reasons.pop("busy") == "run 1 has not ended"
    assert reasons.keys() == {"above", "beside", "sharing"}
    assert (report["moved"], report["documents"]) == (["alone"], 0)
    assert that_accept_changes(sessions) == ["above", "beside", "busy", "sharing"]
    assert sessions.state("sharing")["state"]["app:x"] == 1


def test_waiting_events_are_applied_first_and_one_that_stays_holds_its_session(root: str, url: str) -> None:
    create_at_work(root, "a")
    Sessions(root).create("worker", "some work", agent_id="b")
    FileStore(root).defer(news_of("a1", kind="stop", last_message="Done.", has_message=True), NOW)
    FileStore(root).defer({"kind": "finalize", "at": format_time(NOW), "agent_id": "b", "outcome": "failed"}, NOW)
    report = Sessions(root).copy_to(url)
    assert (report["copied"], report["stayed"], report["waiting"]) == (["a", "b"], [], 0)
    assert {agent_id: Sessions(url).get(agent_id)["phase"] for agent_id in ("a", "b")} == {
        "a": "completed",
        "b": "failed",
    }


def test_a_session_that_is_being_moved_accepts_no_change_and_names_the_command_that_ends_the_move(
    root: str, url: str
) -> None:
    sessions = Sessions(root)
    sessions.create("worker", "some work", agent_id="a")
    fence(root, "a", root, url)
    with pytest.raises(SessionMoving) as refused:
        sessions.update("a", "planning")
    assert refused.value.hint == "to end the move, type again the `store copy` that was interrupted"
    for act in (sessions.show, sessions.messages, sessions.events):
        act("a")
    assert sessions.should_resume("a") is False
    assert sessions.explain_resume("a")["advice"] == refused.value.hint


def fence(root: str, agent_id: str, source: str, target: str, move: str = "t") -> None:
    with Sessions(root).store as store, store.open(agent_id) as session:
        session.set_moving({"source": source, "target": target, "token": move})


def test_figures_are_copied_also_if_new_removals_leave_none(
    project: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_KEEP_FIGURES", "false")
    assert Sessions(project).copy_to(url)["figures"] == 2
    assert Sessions(url).copy_to(project)["figures"] == 0
    with Sessions(url).store as store:
        assert sorted(one["agent_id"] for one in store.figures()) == ["gone-1", "gone-2"]


def test_a_session_that_moves_elsewhere_is_left_alone(root: str, url: str) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    fence(root, "a", root, "postgresql://db.example.com/other")
    report = Sessions(root).copy_to(url)
    assert [one["reason"] for one in report["failed"]] == ["moving"]
    assert Sessions(url).store.ids() == []


def test_a_fenced_session_whose_copy_in_a_folder_is_gone_stays_fenced_until_somebody_removes_it(
    root: str, url: str
) -> None:
    Sessions(url).create("worker", "some work", agent_id="a")
    fence(url, "a", url, root)
    report = Sessions(url).copy_to(root)
    [failed] = report["failed"]
    command = f"gaia-sessions --root '{url}'"
    assert failed == {
        "what": "a",
        "reason": "not_found",
        "detail": f"no session 'a' in {root}; its copy is gone; to go on here, type: {command} repair --take-back a; "
        f"to remove it: {command} rm --force a",
    }
    assert that_accept_changes(Sessions(root)) == that_accept_changes(Sessions(url)) == []
    with pytest.raises(SessionMoving):
        Sessions(url).remove(["a"])
    Sessions(url).remove(["a"], force=True)
    assert essence(Sessions(url).copy_to(root)) == ([], [], [], {}, [])


@table("half", ["source", "target"])
def test_a_half_whose_other_half_is_gone_is_named_and_can_be_taken_back(root: str, url: str, half: str) -> None:
    agent_id = f"agent-{half}"
    Sessions(root).create("worker", "some work", agent_id=agent_id)
    put_fenced(root, agent_id, url)
    fence(root, agent_id, root, url)
    place, gone = (root, url) if half == "source" else (url, root)
    Sessions(gone).remove([agent_id], force=True)
    [failed] = Sessions(root).copy_to(url)["failed"]
    assert (failed["reason"], f"repair --take-back {agent_id}" in failed["detail"]) == ("not_found", True)

    Sessions(place).repair(agent_id, take_back=True)

    assert agent_id in that_accept_changes(Sessions(place))
    with pytest.raises(Conflict):
        Sessions(place).repair(agent_id, take_back=True)


def test_a_stand_in_is_no_half_of_a_move(root: str, url: str) -> None:
    Sessions(url).create("worker", "some work", agent_id="a")
    FileStore(root).create(stand_in_of(Sessions(url).get("a"), NOW))
    fence(url, "a", url, "/another/folder")
    report = Sessions(url).copy_to(root)
    assert (report["moved"], [one["reason"] for one in report["failed"]]) == ([], ["moving"])
    assert Sessions(url).store.ids() == ["a"]


def test_a_session_that_was_reopened_after_its_copy_moves(root: str, url: str) -> None:
    create_at_work(root, "a")
    FileStore(root).defer(news_of("a1", kind="stop", last_message="Done.", has_message=True), NOW)
    assert Sessions(root).copy_to(url)["copied"] == ["a"]
    record = Sessions(root).get("a")
    with Sessions(root).store as store, store.open("a") as session:
        session.commit(Change({**without_end(record), "phase": "planning", "resume_ready": True}))
    assert essence(Sessions(root).copy_to(url)) == (["a"], [], [], {}, [])
    assert Sessions(url).get("a")["phase"] == "planning"


def test_state_with_a_null_differs_from_state_without_it(root: str, url: str) -> None:
    Sessions(root).create("helper", "p", agent_id="a", app="kb", user="u", state={"app:x": None, "app:y": 1})
    Sessions(url).create("helper", "p", agent_id="b", app="kb", user="u", state={"app:y": 1})
    [stayed] = Sessions(root).copy_to(url)["stayed"]
    assert stayed == {"agent_id": "a", "reason": "app:x of kb has another value in the two roots"}


@table("command", ["forward", "back"])
def test_a_move_ends_in_either_direction_also_if_its_folder_has_another_name_now(
    root: str, url: str, command: str
) -> None:
    agent_id = f"agent-{command}"
    Sessions(root).create("worker", "some work", agent_id=agent_id)
    put_fenced(root, agent_id, url)
    fence(root, agent_id, root, url)
    renamed = f"{root}-{command}"
    Path(root).rename(renamed)
    source, target = (renamed, url) if command == "forward" else (url, renamed)
    report = Sessions(source).copy_to(target)
    assert (agent_id in report["moved"], report["failed"]) == (True, [])
    assert agent_id in that_accept_changes(Sessions(target))


def test_an_ended_session_that_a_late_event_changed_is_copied_again(root: str, url: str) -> None:
    sessions = Sessions(root)
    for agent_id in ("a", "b"):
        sessions.create("worker", "some work", agent_id=agent_id)
        sessions.finalize(agent_id, "completed")
    assert sessions.copy_to(url)["copied"] == ["a", "b"]
    for place, agent_id in ((root, "a"), (root, "b"), (url, "b")):
        with Sessions(place).store as store, store.open(agent_id) as session:
            session.commit(Change({**session.record, "error_count": 1}, [{"kind": "note", "by": place}]))  # type: ignore[typeddict-item]  # a record with one other key
    report = sessions.copy_to(url)
    assert (report["copied"], [one["what"] for one in report["failed"]]) == (["a"], ["b"])
    assert Sessions(url).get("a") == sessions.get("a")


def test_a_file_of_somebody_else_in_the_folder_of_an_open_session_holds_it(root: str, url: str) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    Path(root, "a", "notes.txt").write_text("mine", encoding="utf-8")
    report = Sessions(root).copy_to(url)
    [failed] = report["failed"]
    assert failed["detail"] == "a: cannot move: notes.txt in its folder would be lost; put that file elsewhere"
    assert Path(root, "a", "notes.txt").read_text(encoding="utf-8") == "mine"


def test_only_a_removal_by_force_removes_a_copy_whose_source_is_gone(root: str, url: str) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    put_fenced(root, "a", url)
    Sessions(root).remove(["a"], force=True)
    there = Sessions(url)
    assert there.cleanup(hours=0, corrupt=True)["kept"] == [{"agent_id": "a", "reason": "newer_schema"}]
    with pytest.raises(SessionMoving):
        there.remove(["a"])
    there.remove(["a"], force=True)
    assert there.store.ids() == []


@table("at_source", ["open", "fenced"])
def test_what_a_killed_copy_left_at_the_target_is_ended_or_replaced(root: str, url: str, at_source: str) -> None:
    sessions, agent_id = Sessions(root), f"agent-{at_source}"
    sessions.create("worker", "some work", agent_id=agent_id)
    put_fenced(root, agent_id, url)
    if at_source == "fenced":
        fence(root, agent_id, root, url)
    else:
        sessions.update(agent_id, "planning")
    assert agent_id not in that_accept_changes(Sessions(url))
    assert essence(sessions.copy_to(url)) == ([agent_id], [], [], {}, [])
    assert Sessions(url).get(agent_id)["phase"] == ("initializing" if at_source == "fenced" else "planning")
    assert sessions.get(agent_id) is None


def put_fenced(root: str, agent_id: str, url: str) -> None:
    """Puts the fenced copy of a session at ``url``, as the first step of a move does."""
    moving: Any = {"source": root, "target": url, "token": "t"}
    with Sessions(root).store as store, Sessions(url).store as there:
        data = encode(with_moving(store.read(agent_id), moving))
        there.put(agent_id, {**store.files(agent_id), "state.json": data})


def just_before_open(patch: pytest.MonkeyPatch, store_type: Any, act: Callable[[], object]) -> None:
    """Calls ``act`` when a store of this type opens a session for the next time, before it has the lock."""
    open_session = store_type.open

    def act_and_open(store: Any, agent_id: str, **named: Any) -> Any:
        patch.setattr(store_type, "open", open_session)
        act()
        return store.open(agent_id, **named)

    patch.setattr(store_type, "open", act_and_open)


def test_state_that_changes_just_before_its_session_is_fenced_holds_the_session(
    root: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(root)
    for place in (root, url):
        Sessions(place).create("helper", "p", agent_id=f"a{len(place)}", app="kb", user="u", state={"app:x": 1})
    agent_id = f"a{len(root)}"
    just_before_open(monkeypatch, FileStore, lambda: sessions.change_state(agent_id, {"app:x": 2}))
    [failed] = sessions.copy_to(url)["failed"]
    assert failed["detail"] == f"{agent_id}: cannot move: it was changed meanwhile; copy again"
    assert agent_id in that_accept_changes(sessions)


def test_an_agent_that_begins_below_a_session_as_its_move_ends_keeps_its_parent(
    root: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gaia_sessions.postgres.store import PostgresStore  # it needs the driver

    sessions = Sessions(root)
    sessions.create("lead", "all", agent_id="above")
    put_fenced(root, "above", url)
    fence(root, "above", root, url)
    below: Any = {**new_record("below", "worker", "a part", {}, NOW), "parent_id": "above"}
    just_before_open(monkeypatch, PostgresStore, lambda: FileStore(root).create(below))
    [failed] = sessions.copy_to(url)["failed"]
    assert (failed["what"], "below stays" in failed["detail"]) == ("above", True)
    assert sorted(sessions.store.ids()) == ["above", "below"]
    assert essence(sessions.copy_to(url)) == (["above", "below"], [], [], {}, [])


def test_a_session_that_is_reopened_as_its_copy_begins_is_open_in_one_place(
    root: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions, record = Sessions(root), Path(root, "a", "state.json")
    sessions.create("worker", "some work", agent_id="a")
    before = record.read_bytes()
    sessions.finalize("a", "completed")
    just_before_open(monkeypatch, FileStore, lambda: record.write_bytes(before))
    report = sessions.copy_to(url)
    assert [(one["what"], one["detail"]) for one in report["failed"]] == [
        ("a", "a: cannot copy: it was changed meanwhile; copy again")
    ]
    assert (that_accept_changes(sessions), Sessions(url).store.ids()) == (["a"], [])


def test_a_copy_that_another_move_replaced_stays_fenced(root: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    put_fenced(root, "a", url)
    fence(root, "a", root, url)
    just_before_open(monkeypatch, type(Sessions(url).store), lambda: fence(url, "a", root, url, move="other"))
    report = Sessions(root).copy_to(url)
    assert ([one["what"] for one in report["failed"]], report["moved"]) == (["a"], [])
    assert that_accept_changes(Sessions(root)) == that_accept_changes(Sessions(url)) == []


def test_what_belongs_to_a_session_that_cannot_move_stays_and_can_be_changed(root: str, url: str) -> None:
    sessions = Sessions(root)
    sessions.create("lead", "all", agent_id="above")
    sessions.create("worker", "a part", agent_id="below", parent_id="above")
    for agent_id in ("damaged", "sharing"):
        sessions.create("helper", "p", agent_id=agent_id, app="kb", user="u", state={f"app:{agent_id}": 1})
    for agent_id in ("above", "damaged"):
        Path(root, agent_id, "state-damaged-1.json").write_text("{", encoding="utf-8")

    report = sessions.copy_to(url)

    assert (report["moved"], report["documents"]) == ([], 0)
    assert [one["detail"].partition(":")[2] for one in report["failed"]] == [
        " cannot move: state-damaged-1.json in its folder would be lost; put that file elsewhere",
        " cannot move: state-damaged-1.json in its folder would be lost; put that file elsewhere",
    ]
    assert [(one["agent_id"], one["reason"]) for one in report["stayed"]] == [
        ("below", "above stays"),
        ("sharing", "damaged stays"),
    ]
    assert that_accept_changes(sessions) == ["above", "below", "damaged", "sharing"]
    assert that_accept_changes(Sessions(url)) == []
    assert sessions.state("damaged")["state"] == {"app:damaged": 1, "app:sharing": 1}

    for agent_id in ("above", "damaged"):
        Path(root, agent_id, "state-damaged-1.json").unlink()
    report = sessions.copy_to(url)
    assert (sorted(report["moved"]), report["failed"]) == (["above", "below", "damaged", "sharing"], [])
    assert Sessions(url).state("sharing")["state"] == {"app:damaged": 1, "app:sharing": 1}


def put_below(root: str, agent_id: str, above: str) -> None:
    FileStore(root).change(agent_id, lambda record: {**record, "parent_id": above})


def test_state_or_a_chain_that_cannot_be_read_holds_only_what_belongs_to_it(root: str, url: str) -> None:
    sessions = Sessions(root)
    sessions.create("helper", "p", agent_id="shares", app="kb", user="u", state={"app:x": 1})
    Path(root, ".shared", "app-kb.json").write_text("{", encoding="utf-8")
    ids = [f"c{number}" for number in range(MOST_ABOVE + 2)]
    for agent_id in (*ids, "alone"):
        sessions.create("worker", "p", agent_id=agent_id)
    for above, agent_id in reversed([*pairwise(ids)]):  # from below, so that no chain is too long yet
        put_below(root, agent_id, above)
    report = sessions.copy_to(url)
    assert report["moved"] == ["alone"]
    assert {one["what"] for one in report["failed"]} == {ids[-1], "shares", "shared state"}
    assert that_accept_changes(sessions) == sorted([*ids, "shares"])
    assert that_accept_changes(Sessions(url)) == ["alone"]


def test_rows_that_another_program_wrote_are_not_copied(root: str, url: str) -> None:
    import psycopg

    Sessions(url).create("worker", "some work", agent_id="a")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO gaia_sessions.figures (line) VALUES ('not JSON'), ('[1]')")
        sql = "INSERT INTO gaia_sessions.journal (incarnation, name, line) SELECT incarnation, name, '{}' "
        sql += "FROM gaia_sessions.session, unnest(ARRAY['../x', 'state.json', 'cancelled.json']) AS name"
        connection.execute(sql)
    before = Sessions(url).get("a")
    report = Sessions(url).copy_to(root)
    assert (essence(report), report["figures"]) == ((["a"], [], [], {}, []), 0)
    assert (Sessions(root).get("a"), [*contents(root)]) == (before, ["a/state.json"])
    assert Sessions(url).stats()["unread_lines"] == 2


def test_a_file_too_large_for_the_memory_holds_its_session(root: str, url: str) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    with Path(root, "a", "output-1.log").open("wb") as file:
        file.truncate(1 << 40)
    report = Sessions(root).copy_to(url)
    assert [(one["what"], one["reason"]) for one in report["failed"]] == [("a", "io_error")]
    assert that_accept_changes(Sessions(root)) == ["a"]


def test_a_move_waits_for_the_disk_whatever_the_settings_say(
    project: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gaia_sessions.postgres import connections, transaction

    execute, fsync = connections.execute, os.fsync
    sent: list[str] = []

    def noted(connection: Any, sql: str, **named: Any) -> Any:
        sent.append(sql)
        return execute(connection, sql, **named)

    def synced(fd: int) -> None:
        sent.append("fsync")
        fsync(fd)

    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    monkeypatch.setattr(transaction, "execute", noted)
    monkeypatch.setattr(os, "fsync", synced)
    for source, target in ((project, url), (url, project)):
        sent.clear()
        Sessions(source).copy_to(target)
        assert "fsync" in sent
        assert [sql for sql in sent if "synchronous_commit = off" in sql] == []


def test_two_copies_that_part_what_belongs_together_both_end(root: str, url: str) -> None:
    sessions, other = Sessions(url), f"{root}-2"
    sessions.create("lead", "all", agent_id="above")
    sessions.create("worker", "a part", agent_id="below", parent_id="above")
    for agent_id in ("shares-1", "shares-2"):
        sessions.create("helper", "p", agent_id=agent_id, app="kb", user=agent_id, state={"app:x": 1})
    for agent_id, folder in (("above", root), ("below", other), ("shares-1", root), ("shares-2", other)):
        put_fenced(url, agent_id, folder)
        fence(url, agent_id, url, folder)

    assert sessions.copy_to(root)["moved"] == ["above", "shares-1"]
    assert essence(sessions.copy_to(other)) == (["below", "shares-2"], [], [], {}, [])

    states = [Sessions(root).state("shares-1"), Sessions(other).state("shares-2")]
    assert [one["state"] for one in states] == [{"app:x": 1}, {"app:x": 1}]
    with sessions.store as store:
        assert (store.ids(), [*store.documents()]) == ([], [])


def test_the_state_of_a_session_that_begins_during_the_copy_stays_with_it(
    root: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions(root)
    sessions.create("helper", "p", agent_id="a", app="kb", user="u", state={"app:x": 1})
    just_before_open(monkeypatch, FileStore, lambda: sessions.create("helper", "p", agent_id="new", app="kb", user="u"))
    report = sessions.copy_to(url)
    assert ([one["what"] for one in report["failed"]], report["documents"]) == (["a"], 0)
    assert sessions.state("new")["state"] == {"app:x": 1}
    assert essence(sessions.copy_to(url)) == (["a", "new"], [], [], {}, [])


def test_an_open_record_of_the_users_own_program_moves_there_and_back(root: str, url: str) -> None:
    Sessions(root).create("worker", "some work", agent_id="a")
    path = Path(root, "a", "state.json")
    record = json.loads(path.read_bytes())
    del record["schema"], record["revision"]
    path.write_text(json.dumps(record, indent=4), encoding="utf-8")
    before = Sessions(root).get("a")
    assert essence(Sessions(root).copy_to(url)) == (["a"], [], [], {}, [])
    assert essence(Sessions(url).copy_to(root)) == (["a"], [], [], {}, [])
    assert Sessions(root).get("a") == before
    assert Sessions(root).update("a", "planning")["phase"] == "planning"


@table("moving", [5, "x", {}, None, {"source": 1, "target": 2, "token": 3}])
def test_a_record_with_an_edited_fence_is_one_of_a_later_version(root: str, url: str, moving: object) -> None:
    agent_id = f"a{zlib.crc32(repr(moving).encode())}"
    Sessions(root).create("worker", "some work", agent_id=agent_id)
    path = Path(root, agent_id, "state.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "schema": 1_000_000, "moving": moving}))
    report = Sessions(root).copy_to(url)
    assert [one["reason"] for one in report["failed"] if one["what"] == agent_id] == ["newer_schema"]
    with pytest.raises(NewerSchema):
        Sessions(root).update(agent_id, "planning")
    assert Sessions(root).explain_resume(agent_id)["reason"] == "corrupt"


def test_a_cancellation_that_comes_during_the_move_moves_too(root: str, url: str) -> None:
    sessions = Sessions(root)
    sessions.create("worker", "some work", agent_id="a")
    put_fenced(root, "a", url)
    fence(root, "a", root, url)
    sessions.store.mark("a", lambda _: {"at": format_time(NOW), "below": True, "reason": "too late"})
    sessions.copy_to(url)
    assert Sessions(url).show("a")["cancellation"]["reason"] == "too late"


@table("phase", ["planning", "completed"])
def test_another_session_with_the_same_id_is_never_replaced(root: str, url: str, phase: str) -> None:
    for place, purpose in ((root, "here"), (url, "there")):
        Sessions(place).create("worker", purpose, agent_id=phase)
        if phase == "completed":
            Sessions(place).finalize(phase, phase)
    before = contents(root)
    report = Sessions(root).copy_to(url)
    assert [one["reason"] for one in report["failed"] if one["what"] == phase] == ["conflict"]
    assert contents(root) == before
    assert Sessions(url).get(phase)["purpose"] == "there"


def test_other_shared_state_at_the_target_keeps_its_sessions_at_the_source(root: str, url: str) -> None:
    for place, value in ((root, 1), (url, 2)):
        Sessions(place).create("helper", "p", agent_id=f"a{value}", app="kb", user="u", state={"app:x": value})
    report = Sessions(root).copy_to(url)
    assert [one["agent_id"] for one in report["stayed"]] == ["a1"]
    assert (Sessions(root).state("a1")["state"]["app:x"], Sessions(url).state("a2")["state"]["app:x"]) == (1, 2)


def test_what_a_killed_writer_left_does_not_hold_a_session(root: str, url: str) -> None:
    sessions = Sessions(root)
    sessions.create("worker", "some work", agent_id="a")
    sessions.add_message("a", "user", "Hello")
    with Path(root, "a", "events.jsonl").open("ab") as file:
        file.write(b'{"kind": "no')
    with Path(root, "a", "transcript.jsonl").open("ab") as file:
        file.write(b'{"seq": 2, "turn": 1, "role": "user", "content": "not committed"}\n{"seq"')
    assert essence(sessions.copy_to(url)) == (["a"], [], [], {}, [])
    assert [message["content"] for message in Sessions(url).messages("a")] == ["Hello"]


@table(
    ("name", "data"),
    [("events.jsonl", b'{"kind": "\xff"}\n'), ("state-damaged-1.json", b"{")],
)
def test_a_session_that_the_copy_cannot_keep_whole_stays(root: str, url: str, name: str, data: bytes) -> None:
    agent_id = name.removesuffix(".json")
    Sessions(root).create("worker", "some work", agent_id=agent_id)
    Sessions(root).add_message(agent_id, "user", "Hello")
    Path(root, agent_id, name).write_bytes(data)
    before = contents(root)
    report = Sessions(root).copy_to(url)
    assert [one["reason"] for one in report["failed"] if one["what"] == agent_id] == ["io_error"]
    assert contents(root) == before
    assert Sessions(url).store.ids() == []


def test_a_stand_in_is_not_copied_and_makes_room_for_its_session(root: str, url: str) -> None:
    Sessions(url).create("worker", "on the server", agent_id="a")
    FileStore(root).create(stand_in_of(Sessions(url).get("a"), NOW))
    assert essence(Sessions(root).copy_to(url)) == ([], [], [], {}, [])
    assert essence(Sessions(url).copy_to(root)) == (["a"], [], [], {}, [])
    assert Sessions(root).get("a")["purpose"] == "on the server"


@table("other", ["session-2", "{root}/../session"])
def test_two_folders_are_refused(project: str, other: str) -> None:
    with pytest.raises(UsageError):
        Sessions(project).copy_to(other.format(root=project))


def test_a_folder_that_does_not_exist_is_refused(root: str, url: str) -> None:
    with pytest.raises(NoSuchFolder):
        Sessions(root).copy_to(url)
    assert not Path(root).exists()


def test_a_corrupt_session_is_named_and_the_others_are_copied(project: str, url: str) -> None:
    Path(project, "printed", "state.json").write_bytes(b"{")
    report = Sessions(project).copy_to(url)
    assert [(one["what"], one["reason"]) for one in report["failed"]] == [("printed", "corrupt")]
    assert report["copied"] == [agent_id for agent_id in ENDED if agent_id != "printed"]
    assert Sessions(url).get("printed") is None
