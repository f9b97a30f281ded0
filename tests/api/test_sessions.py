"""The class ``Sessions`` and the public functions beside it."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import os
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import create_autospec

import pytest

import gaia_sessions
from gaia_sessions import EphemeralSession, Sessions, SubAgentSession
from gaia_sessions.api import at, records, rows
from gaia_sessions.errors import BadArgument, InvalidInput, LockTimeout, NotRemovable, SessionNotFound, SessionsError
from gaia_sessions.session.record import new_record
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.locks import acquire, sleep_and_retry
from gaia_sessions.system import utc_now
from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = {
    "create_session": "create",
    "update_state": "update",
    "should_resume": "should_resume",
    "get_session": "get",
    "finalize_session": "finalize",
    "explain_resume": "explain_resume",
    "list_sessions": "list",
    "cleanup_sessions": "cleanup",
}


CLASSES = ["CancellationToken", "EphemeralSession", "Sessions", "SubAgentSession"]


def test_the_public_names_are_four_classes_and_the_eight_functions() -> None:
    assert sorted(gaia_sessions.__all__) == sorted([*CLASSES, *FUNCTIONS])
    assert {name: getattr(gaia_sessions, name).__name__ for name in gaia_sessions.__all__} == {
        name: name for name in gaia_sessions.__all__
    }


@table("name", FUNCTIONS)
def test_a_function_takes_the_arguments_of_its_method_and_a_root(name: str) -> None:
    def arguments(of: Callable[..., object]) -> dict[str, object]:
        return {one.name: (one.kind, one.default) for one in inspect.signature(of).parameters.values()}

    root = {"root": (inspect.Parameter.KEYWORD_ONLY, None)}
    method = arguments(getattr(Sessions(), FUNCTIONS[name]))
    assert arguments(getattr(gaia_sessions, name)) == method | root


def test_a_root_is_a_text_or_a_path_and_nothing_else(root: str) -> None:
    made = Sessions(Path(root)).create(agent_id="made")
    gaia_sessions.create_session(agent_id="made-2", root=Path(root))
    assert Sessions(Path(root)).root == root
    assert {line["agent_id"] for line in Sessions(root).list()} == {made, "made-2"}
    for wrong in (123, root.encode(), ["a"], False):
        with pytest.raises(BadArgument, match=r"root .* is not valid") as refused:
            Sessions(wrong)  # type: ignore[arg-type]
        assert refused.value.hint == "must be a folder, or the URL of a server"


def test_get_returns_none_for_a_missing_session_and_other_methods_raise(root: str) -> None:
    sessions = Sessions(root)
    assert sessions.get("agent-1") is None
    for method in (sessions.show, sessions.update, sessions.usage, sessions.todos, sessions.report, sessions.events):
        with pytest.raises(SessionNotFound):
            method("agent-1")


def test_metadata_that_is_not_json_is_refused_and_changes_nothing(root: str) -> None:
    sessions = Sessions(root)
    agent_id = sessions.create()
    before = sessions.store.read(agent_id)
    for value in ({1, 2}, float("nan"), float("inf"), object(), b"bytes", "\ud800", "\0", 1 << 70, "x" * (1 << 20)):
        with pytest.raises(InvalidInput):
            sessions.update(agent_id, "planning", {"key": value})
    assert sessions.store.read(agent_id) == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux lists the open files of a process")
def test_an_exception_that_a_program_holds_keeps_no_file_open(root: str) -> None:
    sessions = Sessions(root)
    for agent_id in ("agent-ended", "agent-corrupt"):
        sessions.create(agent_id=agent_id)
    sessions.finalize("agent-ended", "completed")
    Path(root, "agent-corrupt", "state.json").write_text("{", encoding="utf-8")
    calls: list[Callable[[str], object]] = [
        *(sessions.update, sessions.cancel, sessions.reset, sessions.compact, sessions.cancel_conversation),
        lambda agent_id: sessions.finalize(agent_id, "failed"),
        lambda agent_id: sessions.add_message(agent_id, "user", "lost"),
        lambda agent_id: sessions.create(agent_id=agent_id, parent_id="agent-missing"),
        *(sessions.show, sessions.report, sessions.messages, sessions.events, sessions.usage),
        lambda agent_id: sessions.import_from(f"{root}/{agent_id}", f"{root}/nowhere"),
        lambda agent_id: SubAgentSession(print, agent_id=agent_id),
        lambda agent_id: EphemeralSession.open(agent_id, root=root),
    ]
    gc.collect()  # a store of another test may have its root open
    before = open_files()
    kept = []
    for call in calls:
        for agent_id in ("agent-ended", "agent-corrupt", "agent-missing"):
            try:
                call(agent_id)
            except SessionsError as error:
                kept.append(error)
    assert (len(kept) > len(calls), open_files()) == (True, before)


def open_files() -> list[str]:
    """The paths of all open files of this process."""
    paths = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing
            paths.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(paths)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux lists the open files of a process")
def test_an_iterator_keeps_files_of_the_session_open_but_not_the_root(root: str) -> None:
    sessions = Sessions(root)
    sessions.create(agent_id="agent")
    for word in ("one", "two"):
        sessions.add_message("agent", "user", word)
        FileStore(root).append("agent", "events.jsonl", [{"kind": word}])
    reads: list[Callable[[str], Iterator[object]]] = [sessions.messages, sessions.events]
    opened = {os.path.realpath(f"{root}/agent/{name}") for name in (".", "transcript.jsonl", "events.jsonl")}
    gc.collect()  # a store of another test may have its root open
    before = open_files()
    for read in reads:
        left_alone, abandoned = read("agent"), read("agent")
        assert open_files() == before
        next(abandoned)
        assert {*open_files()} - {*before} <= opened
        del abandoned
        assert (open_files(), len([*left_alone])) == (before, 2)

    steps = [read("agent") for read in reads]
    sessions.remove(["agent"], force=True)
    kept = []
    for one in steps:
        with pytest.raises(SessionNotFound) as raised:
            next(one)
        kept.append(raised.value)
    assert (len(kept), open_files()) == (2, before)


def test_a_root_that_is_removed_and_created_again_between_calls_is_noticed(root: str) -> None:
    sessions = Sessions(root)
    sessions.create(agent_id="first")
    shutil.rmtree(root)
    assert (sessions.get("first"), [*sessions.list()], os.path.exists(root)) == (None, [], False)

    Sessions(root).create(agent_id="second")

    assert [line["agent_id"] for line in sessions.list()] == ["second"]
    assert sessions.update("second", "planning")["phase"] == "planning"


def test_two_threads_that_list_with_one_object_see_every_session(root: str) -> None:
    ids = {f"agent-{number}" for number in range(400)}
    store = FileStore(root, durable=False)
    for agent_id in ids:
        store.create(new_record(agent_id, "Explore", "-", {}, utc_now()))
    sessions, begin = Sessions(root), threading.Barrier(2)

    def listed(_: int) -> list[set[str]]:
        begin.wait(60)
        return [{*at.read(sessions, records.ids)} for _ in range(100)]

    with ThreadPoolExecutor(2) as threads:
        assert [found == ids for each in threads.map(listed, range(2)) for found in each] == [True] * 200


def test_show_returns_what_the_command_prints_as_json(root: str) -> None:
    sessions = Sessions(root)
    above = sessions.create("planner")
    below = sessions.create("scribe", parent_id=above)
    sessions.update(above, "approval", {"plan": "three steps"})
    sessions.cancel(above, "enough", only=True)

    printed = json.loads(gaia("show", above, "--json", "--root", root).out)

    shown = sessions.show(above)
    assert printed == shown
    assert (shown["metadata"], shown["children"]) == ({"plan": "three steps"}, [below])
    assert (shown["resume"]["reason"], shown["cancellation"]["reason"]) == ("cancelled", "enough")


def test_remove_removes_sessions_in_the_given_order_and_raises_at_the_end(root: str) -> None:
    sessions = Sessions(root)
    for agent_id in ("a", "b", "c"):
        sessions.create("Explore", "look", agent_id=agent_id)
    with pytest.raises(BadArgument):
        sessions.remove("a")
    with pytest.raises(NotRemovable) as refused:
        sessions.remove(["c", "a"])
    assert refused.value.reasons == {"c": "open", "a": "open"}
    with pytest.raises(SessionNotFound):
        sessions.remove(["a", "nobody"], force=True)
    assert sorted(at.read(sessions, records.ids)) == ["a", "b", "c"]

    shape = {"agent_name": "Explore", "purpose": "look"}
    removed = sessions.remove(iter(["c", "a", "c"]), force=True)
    assert list(removed) == [{"agent_id": "c", **shape}, {"agent_id": "a", **shape}]
    assert sessions.remove([]) == []

    sessions.create(agent_id="d")
    impatient = Sessions(root, {"lock_timeout": 0})
    with (
        Directory.at(f"{root}/.locks") as folder,
        acquire(folder, "b.lock", 0, sleep_and_retry),
        pytest.raises(LockTimeout),
    ):
        impatient.remove(["b", "d"], force=True)
    assert list(at.read(sessions, records.ids)) == ["b"]


def test_a_method_is_copied_and_pickled_by_reference_and_keeps_its_name_in_a_subclass(root: str) -> None:
    class Named(Sessions):
        fetch = Sessions.get

    row, sessions = Sessions.get, Sessions(root)
    agent_id = Named(root).create()
    assert Named(root).fetch(agent_id) == sessions.get(agent_id)
    assert (row.__name__, row.__qualname__, row.__module__) == ("get", "Sessions.get", "gaia_sessions.api.sessions")
    copies = [copy.copy(row), copy.deepcopy(row), *(_pickled(row, version) for version in range(6))]
    assert [one is row for one in copies] == [True] * 8
    assert _pickled(sessions.get)(agent_id) == sessions.get(agent_id)


def _pickled(row: Callable[..., object], version: int | None = None) -> Callable[..., object]:
    arrived: Callable[..., object] = pickle.loads(pickle.dumps(row, version))  # noqa: S301
    return arrived


def test_a_mock_of_sessions_refuses_arguments_that_the_method_refuses() -> None:
    for mocked in (create_autospec(Sessions, instance=True), create_autospec(Sessions)("root")):
        mocked.update("agent-1", "planning", if_revision=1)
        for arguments, named in (((), {}), (("agent-1",), {"revision": 1}), (("agent-1", "a", {}, "b", "c"), {})):
            with pytest.raises(TypeError):
                mocked.update(*arguments, **named)
        mocked.update.assert_called_once_with("agent-1", "planning", if_revision=1)


@table("name", sorted(name for name, row in vars(Sessions).items() if isinstance(row, rows.Changes)))
def test_the_signature_of_a_changing_method_says_that_it_returns_the_record(name: str) -> None:
    assert inspect.signature(getattr(Sessions(), name)).return_annotation == "Record"


@table("name", ["self", "place", "do", "nonsense"])
def test_an_unknown_argument_of_a_method_is_refused_by_name(root: str, name: str) -> None:
    sessions = Sessions(root)
    for method in (sessions.get, sessions.cancel, sessions.update, sessions.report):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            method("agent-1", **{name: 1})  # type: ignore[arg-type]
    assert not os.path.exists(root)
