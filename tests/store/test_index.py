"""The index: which entries a write adds and removes, when readers trust it, and how it is rebuilt."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import Config
from gaia_sessions.errors import CorruptSession, StoreFailure
from gaia_sessions.ingest import Terms, deferred, dispatch
from gaia_sessions.session import index_keys
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.store import index, index_repair
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import boots, utc_now
from tests.contract.conftest import agree, finished
from tests.index_files import entries, line, lose, plant, shard_of
from tests.records import id_found
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import RecordOrError

ALIAS = delegation_alias("host", "tool/1")
ALIAS_KEY = index_keys.alias_key(ALIAS)


def for_host(agent_id: str, now: datetime, agent_name: str = "Explore") -> Record:
    run: Run = {"run": 1, "host_session_id": "host", "tool_use_id": "tool/1"}
    return {**new_record(agent_id, agent_name, "-", {}, now), "runs": [run]}


OF_ALIAS = line("one", *ALIAS_KEY)
OF_CONVERSATION = "conversation.host one"
OPEN_KEYS = [index_keys.ACTIVE_KEY, index_keys.name_key("Explore")]
MARKS = {"active one", line("one", "name", "Explore")}


def test_an_open_session_has_all_index_entries_and_a_final_one_only_its_alias(
    root: str, store: FileStore, now: datetime
) -> None:
    while_open = {"complete", *MARKS, OF_CONVERSATION, OF_ALIAS}
    store.create(for_host("one", now))
    assert entries(root) == while_open

    store.change("one", finished)
    assert entries(root) == {"complete", OF_ALIAS}

    store.change("one", lambda record: {**record, "phase": "approval"})
    assert entries(root) == while_open

    deleted(store, "one", agree)
    assert entries(root) == {"complete"}


def test_a_session_has_an_index_entry_for_its_parent_until_it_is_deleted(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create({**new_record("one", "Explore", "-", {}, now), "parent_id": "Above"})
    of_parent, while_open = (line("one", group, "Above") for group in ("parent", "open_child"))
    assert entries(root) == {"complete", *MARKS, of_parent, while_open}

    store.change("one", finished)
    assert entries(root) == {"complete", of_parent}

    deleted(store, "one", agree)
    assert entries(root) == {"complete"}


def test_open_children_are_found_without_reading_final_children(root: str, now: datetime) -> None:
    store = OfHook(root, 0)
    for number in range(20):
        store.create({**new_record(f"s-{number}", "Explore", "-", {}, now), "parent_id": "above"})
    for number in range(18):
        store.change(f"s-{number}", finished)
    store.read_ids.clear()

    found = store.children(["above"], open_only=True)

    assert sorted(record["agent_id"] for record in found) == sorted(store.read_ids) == ["s-18", "s-19"]


def test_children_are_found_without_reading_other_sessions(root: str, now: datetime) -> None:
    store = OfHook(root, 0)
    for number in range(20):
        store.create({**new_record(f"s-{number}", "Explore", "-", {}, now), "parent_id": f"s-{number // 4}"})

    found = store.children(["s-1", "s-3"])

    wanted = ["s-12", "s-13", "s-14", "s-15", "s-4", "s-5", "s-6", "s-7"]
    assert sorted(record["agent_id"] for record in found) == sorted(store.read_ids) == wanted


def test_a_wrong_index_entry_for_a_parent_adds_no_child(root: str, store: FileStore, now: datetime) -> None:
    store.create({**new_record("one", "Explore", "-", {}, now), "parent_id": "above"})
    store.create(new_record("two", "Explore", "-", {}, now))
    for name in ("two", "never-was"):
        plant(root, name, "parent", "above")

    assert [record["agent_id"] for record in store.children(["above"])] == ["one"]


def test_an_index_of_another_layout_is_not_trusted_and_a_rebuild_keeps_unknown_files(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create({**new_record("one", "Explore", "-", {}, now), "parent_id": "above"})
    right = entries(root)
    index_folder = Path(root, ".index")
    shutil.rmtree(index_folder)
    entry = index_folder / "parent" / "above" / "another"
    entry.parent.mkdir(parents=True)
    entry.touch()
    (index_folder / "complete").write_bytes(b"4 " + boots.boot_signature())

    assert [record["agent_id"] for record in store.children(["above"])] == ["one"]
    store.create(new_record("two", "Plan", "-", {}, now))
    assert not is_complete(root)

    store.ensure_index()
    assert entries(root) - {"another"} == right | {"active two", line("two", "name", "Plan")}
    assert entry.exists()


def test_a_deleted_unreadable_session_leaves_no_index_entry(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now))
    Path(root, "one", "state.json").write_bytes(b"unreadable")

    deleted(store, "one", agree)

    assert entries(root) == {"complete"}


def test_the_index_entries_of_a_session_are_written_before_its_record(
    root: str, store: FileStore, now: datetime
) -> None:
    """So a writer that is killed leaves an extra entry, and never a missing one."""
    store.create(new_record("another", "Explore", "-", {}, now))
    Path(root, ".stage").rmdir()
    Path(root, ".stage").write_bytes(b"in the way")

    with pytest.raises(StoreFailure):
        store.create(new_record("one", "Explore", "-", {}, now))

    assert entries(root) >= MARKS
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"another"}


FINALIZES = """
import sys
from gaia_sessions.store.file_store import FileStore
FileStore(sys.argv[1]).change("one", lambda record: {**record, "phase": "failed"})
"""

ADDS_KEY = """
import sys
from gaia_sessions.store.file_store import FileStore
def resumed(record):
    return {**record, "runs": [*record["runs"], {"run": 2, "host_session_id": "host", "tool_use_id": "tool/2"}]}
FileStore(sys.argv[1]).change("one", resumed)
"""


def run_with(fault: str, script: str, root: str, *options: str) -> int:
    """Returns the exit code of ``script`` while strace injects ``fault``."""
    if which("strace") is None:
        pytest.skip("needs strace to refuse a call")
    command = ["strace", "-qq", "-e", f"inject={fault}", *options, sys.executable, "-c", script, root]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("fault", ["fsync:error=EIO:when=1", "fsync:error=EIO:when=2", "/^rename:error=EIO"])
def test_a_session_loses_its_index_entries_only_after_its_final_write(
    root: str, store: FileStore, now: datetime, fault: str
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    assert run_with(fault, FINALIZES, root) == 1

    assert entries(root) == {"complete", *MARKS}


@pytest.mark.parametrize("fault", [("write", 2), ("/^rename", 1)])  # the first write adds the index entry
def test_a_writer_killed_while_adding_a_key_leaves_the_session_findable_by_its_old_keys(
    root: str, store: FileStore, now: datetime, fault: tuple[str, int]
) -> None:
    store.create(for_host("one", now))

    run_with("{}:signal=SIGKILL:when={}".format(*fault), ADDS_KEY, root)

    assert store.read("one")["revision"] == 1
    assert line("one", *index_keys.alias_key(delegation_alias("host", "tool/2"))) in entries(root)
    assert id_found(store, ALIAS) == "one"
    assert id_found(store, delegation_alias("host", "tool/2")) is None


def test_an_extra_index_entry_yields_no_session_that_does_not_exist(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    for name in ("never-was", "con", "state.json"):
        plant(root, name, "active")

    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]


@table("complete", [None, b"", b"6", b"5 ", b"5 the boot before this one", b"5 \xff\xfe", b"\xff"])
def test_without_a_complete_index_of_this_boot_readers_scan_and_write_nothing(
    new_folder: Callable[[], Path], now: datetime, complete: bytes | None
) -> None:
    root = f"{new_folder()}/root"
    store = FileStore(root, durable=False)
    store.create(for_host("one", now))
    shutil.rmtree(f"{root}/.index")
    Path(root, ".index").mkdir()
    if complete is not None:
        Path(root, ".index", "complete").write_bytes(complete)
    before = entries(root)

    assert dict(store.scan(active_only=True, agent_name="Explore")) == {"one": for_host("one", now)}
    assert id_found(store, ALIAS) == "one"
    assert entries(root) == before


def test_without_an_index_readers_scan_all_sessions_and_create_no_index(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(for_host("one", now))
    shutil.rmtree(f"{root}/.index")

    assert dict(store.scan(active_only=True)) == {"one": for_host("one", now)}
    assert id_found(store, ALIAS) == "one"
    assert not Path(root, ".index").exists()


def test_a_new_session_does_not_complete_an_index_that_was_lost(root: str, store: FileStore, now: datetime) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    shutil.rmtree(f"{root}/.index")

    store.create(new_record("two", "Explore", "-", {}, now))

    assert entries(root) == {"active two", line("two", "name", "Explore")}
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"one", "two"}


@table(
    "spoiled",
    [
        {"never-was"},  # leads to a session that does not exist
        {"con"},  # leads to a name that is not an ID
        {"con", ".one", "state.json"},  # leads to several names that are no sessions
        {"other"},  # leads to a session that has another key
        {"corrupt", "never-was", "other"},  # leads to a corrupt, a missing and a wrong session
    ],
)
def test_a_reader_that_meets_a_wrong_index_entry_searches_all_records_and_corrects_nothing(
    new_folder: Callable[[], Path], now: datetime, spoiled: set[str]
) -> None:
    root = f"{new_folder()}/root"
    store = FileStore(root, durable=False)
    store.create(for_host("one", now))
    store.create(new_record("other", "Explore", "-", {}, now))
    store.create(new_record("corrupt", "Explore", "-", {}, now))
    Path(root, "corrupt", "state.json").write_bytes(b"{")
    lose(root, "one", *ALIAS_KEY)
    for name in spoiled:
        plant(root, name, *ALIAS_KEY)
    before = entries(root)

    assert id_found(store, ALIAS) == "one"
    assert entries(root) == before


def spoiled_shards(path: Path, elsewhere: Path) -> Iterator[str]:
    """Replaces a shard by one damaged or foreign file after the other."""
    whole = path.read_bytes()
    elsewhere.write_bytes(whole)
    kinds = ("link", "link to nothing", "pipe", "folder", "full folder", "text", "torn", "zeros", "of a later layout")
    for kind in (*kinds, "huge"):
        path.unlink()
        if kind.startswith("link"):
            path.symlink_to(elsewhere if kind == "link" else "nothing")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind.endswith("folder"):
            path.mkdir()
            if kind == "full folder":
                (path / "mine").touch()
        elif kind == "huge":
            path.write_bytes(whole)
            os.truncate(path, 65 << 20)
        else:
            made = {"text": b"mine", "torn": whole[:9], "zeros": bytes(99)}
            path.write_bytes(made.get(kind, whole.replace(b"index-6", b"index-99")))
        yield kind


@table("key", [ALIAS_KEY, index_keys.ACTIVE_KEY])
def test_a_damaged_or_replaced_index_shard_is_not_trusted_and_stops_no_writer(
    new_folder: Callable[[], Path], now: datetime, key: tuple[str, ...]
) -> None:
    own = new_folder()
    root = f"{own}/root"
    store = FileStore(root, durable=False)
    store.create(for_host("one", now))
    path = shard_of(root, *key)
    whole = path.read_bytes()
    for number, kind in enumerate(spoiled_shards(path, own / "elsewhere")):
        assert is_complete(root), kind
        assert id_found(store, ALIAS) == "one", kind
        assert "one" in dict(store.scan(active_only=True)), kind

        if kind != "huge":  # a writer only appends to this shard
            store.create({**for_host(f"new-{number}", now - timedelta(days=1))})
            assert not is_complete(root), kind
        ids = {agent_id for agent_id, _ in store.scan()}
        store.sweep(now)
        assert is_complete(root), kind
        assert id_found(store, ALIAS) == "one", kind
        assert set(dict(store.scan(active_only=True))) == ids, kind
    assert (own / "elsewhere").read_bytes() == whole
    assert len([*path.parent.glob(f"{path.name}.*/mine")]) == 1


def test_a_final_session_is_found_by_its_key_without_reading_other_sessions(
    root: str, store: FileStore, now: datetime
) -> None:
    """The other record cannot be read here."""
    for agent_id in ("one", "other"):
        store.create({**for_host(agent_id, now), "runs": [{"run": 1, "host_session_id": agent_id, "tool_use_id": "1"}]})
    store.change("one", finished)
    Path(root, "other", "state.json").write_bytes(b"{")

    assert id_found(store, delegation_alias("one", "1")) == "one"
    assert dict(store.scan(active_only=True, host_session_id="one")) == {}
    assert dict(store.scan(active_only=True, host_session_id="neither")) == {}


BOOT_ID = "/proc/sys/kernel/random/boot_id"

CREATES = """
import json, sys
from gaia_sessions.store.file_store import FileStore
FileStore(sys.argv[1]).create(json.loads(sys.argv[2]))
"""

LOOKS = """
import json, sys
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.store import index, index_repair
from gaia_sessions.store.directory import Directory
from gaia_sessions.store.file_store import FileStore
store = FileStore(sys.argv[1])
with Directory.at(sys.argv[1]) as root:
    complete = index.is_complete(root)
active = [agent_id for agent_id, _ in store.scan(active_only=True)]
found = store.find(delegation_alias("host", "tool/1"))
print(json.dumps([complete, active, found and found["agent_id"]]))
"""


def run_without_boot_id(script: str, *arguments: str, in_a_boot: tuple[str, ...] = ()) -> str:
    """Returns what ``script`` prints if the file with the boot ID cannot be opened."""
    if which("strace") is None:
        pytest.skip("needs strace to refuse a call")
    hiding = ["strace", "-qq", "-o", os.devnull, "-P", BOOT_ID, "-e", "inject=openat:error=ENOENT"]
    command = [*in_a_boot, *hiding, sys.executable, "-c", script, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_without_a_boot_id_the_index_is_trusted_only_until_the_next_boot(root: str, now: datetime) -> None:
    """After a power cut all entries may be lost, while the file that marks the index as complete is there."""
    another = ("unshare", "--time", "--boottime", "60")
    if subprocess.run([*another, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a time namespace, for the clock of another boot")
    run_without_boot_id(CREATES, root, json.dumps(for_host("one", now)))
    assert json.loads(run_without_boot_id(LOOKS, root)) == [True, ["one"], "one"]

    for path in Path(root, ".index").glob("*.keys"):
        path.unlink()

    assert json.loads(run_without_boot_id(LOOKS, root, in_a_boot=another)) == [False, ["one"], "one"]
    assert json.loads(run_without_boot_id(LOOKS, root)) == [True, [], None]


def test_an_index_completed_without_a_boot_id_is_not_trusted_once_there_is_one(
    root: str, store: FileStore, now: datetime
) -> None:
    run_without_boot_id(CREATES, root, json.dumps(for_host("one", now)))

    assert not is_complete(root)
    store.ensure_index()
    assert is_complete(root)
    assert json.loads(run_without_boot_id(LOOKS, root)) == [False, ["one"], "one"]


def test_an_event_waits_for_a_later_call_if_its_hook_runs_out_of_time(
    root: str, store: FileStore, now: datetime
) -> None:
    five_without_an_index(root, store, now)
    of_host: Any = {"at": format_time(now), "host": "claude-code", "host_session_id": "host"}
    delegation = {"tool_use_id": "new", "agent_name": "Explore", "purpose": "-"}
    events: list[Any] = [
        {**of_host, "kind": "delegate", **delegation},
        {
            **of_host,
            "kind": "stop",
            "tool_use_id": "a",
            "host_agent_id": "a1",
            "has_message": True,
            "last_message": "done",
        },
        {**of_host, "kind": "main_stop", "running": ["x", "y"]},
    ]

    words = [dispatch.handle_event(OfHook(root, 2), event, Terms(now, Config({}), 0)).word for event in events]
    assert (words, len(store.waiting()), len(list(store.scan()))) == (["deferred"] * 3, 3, 5)

    deferred.apply_deferred(store, now, Config({}))
    ended = store.read("a")
    assert (ended["phase"], store.waiting()) == ("completed", [])
    assert id_found(store, delegation_alias("host", "new")) not in (None, *"abcde")


class Pausing(FileStore):
    """A store that reads a record and then waits until it may return the record."""

    def __init__(self, root: str) -> None:
        super().__init__(root, durable=False)
        self.has_read, self.may_go_on = threading.Event(), threading.Event()

    def _read_or_error(self, agent_id: str) -> RecordOrError:
        found = super()._read_or_error(agent_id)
        self.has_read.set()
        assert self.may_go_on.wait(30)
        return found


class OfHook(FileStore):
    """The store of a hook whose time is up after it has read ``reads`` records."""

    def __init__(self, root: str, reads: int) -> None:
        super().__init__(root, durable=False, seconds_left=lambda: 10.0 * (len(self.read_ids) < reads))
        self.read_ids: list[str] = []
        read = self._read

        def noted(root: Directory, agent_id: str) -> Record:
            self.read_ids.append(agent_id)
            return read(root, agent_id)

        self._read = noted


def is_complete(root: str) -> bool:
    with Directory.at(root) as opened:
        return index.is_complete(opened)


def five_without_an_index(root: str, store: FileStore, now: datetime) -> set[str]:
    """Makes five sessions, removes the index, and returns the entries that the index had."""
    for name in "abcde":
        run: Run = {"run": 1, "host_session_id": "host", "tool_use_id": name}
        store.create({**new_record(name, "Explore", "-", {}, now), "runs": [run]})
    right = entries(root)
    shutil.rmtree(f"{root}/.index")
    return right


def test_a_rebuild_out_of_time_completes_no_index_and_the_next_reads_the_rest(
    root: str, store: FileStore, now: datetime
) -> None:
    right = five_without_an_index(root, store, now)
    first, second = OfHook(root, 2), OfHook(root, 99)

    first.ensure_index()
    assert (first.read_ids, is_complete(root)) == (["a", "b"], False)
    assert set(dict(store.scan(active_only=True))) == set("abcde")
    assert id_found(store, delegation_alias("host", "e")) == "e"

    second.ensure_index()
    assert (second.read_ids, is_complete(root), entries(root)) == (["c", "d", "e"], True, right)


def test_a_rebuild_ignores_the_progress_of_a_rebuild_in_another_boot(
    root: str, store: FileStore, now: datetime
) -> None:
    five_without_an_index(root, store, now)
    OfHook(root, 2).ensure_index()
    noted = Path(root, ".index", "complete")
    noted.write_bytes(noted.read_bytes()[:-4] + b"beef")

    reopened = OfHook(root, 99)
    reopened.ensure_index()
    assert (reopened.read_ids, is_complete(root)) == (list("abcde"), True)


def test_one_scan_serves_all_searches_of_a_hook_call_and_later_changes_are_found(
    root: str, store: FileStore, now: datetime
) -> None:
    five_without_an_index(root, store, now)
    hook = OfHook(root, 99)

    found = [id_found(hook, delegation_alias("host", key)) for key in ("a", "e", "x", "c")]
    assert (found, sorted(hook.read_ids[:5])) == (["a", "e", None, "c"], list("abcde"))

    store.create(for_host("new", now))
    deleted(store, "c", agree)
    found = [id_found(hook, ALIAS), id_found(hook, delegation_alias("host", "c"))]
    assert (found, is_complete(root), hook.read_ids[5:]) == (["new", None], False, ["a", "e", "c", "new", "c"])


def test_a_hook_without_time_to_scan_all_sessions_fails_instead_of_finding_none(
    root: str, store: FileStore, now: datetime
) -> None:
    five_without_an_index(root, store, now)

    with pytest.raises(StoreFailure, match="there are too many"):
        id_found(OfHook(root, 2), delegation_alias("host", "a"))
    with pytest.raises(StoreFailure, match="there are too many"):
        list(OfHook(root, 2).scan(active_only=True))


@contextmanager
def paused_rebuild(root: str) -> Iterator[None]:
    """Starts a rebuild that reads a session and then waits for the end of the block."""
    rebuilding = Pausing(root)
    rebuild = threading.Thread(target=rebuilding.ensure_index)
    rebuild.start()
    assert rebuilding.has_read.wait(30)
    try:
        yield
    finally:
        rebuilding.may_go_on.set()
        rebuild.join()


def test_a_key_taken_over_while_the_index_is_rebuilt_leads_to_the_newer_session(
    root: str, store: FileStore, now: datetime
) -> None:
    """Another process creates the newer session after the rebuild has read the older one."""
    store.create(for_host("one", now))
    shutil.rmtree(f"{root}/.index")
    with paused_rebuild(root):
        newer = json.dumps(for_host("two", now + timedelta(hours=1)))
        subprocess.run([sys.executable, "-c", CREATES, root, newer], check=True)

    assert is_complete(root)
    assert id_found(store, ALIAS) == "two"
    assert set(dict(store.scan(active_only=True, host_session_id="host"))) == {"one", "two"}


def test_a_session_reopened_during_a_rebuild_is_found_by_the_rebuilt_index(
    root: str, store: FileStore, now: datetime
) -> None:
    """The session gets a new key and a new conversation after the rebuild has read it as final."""
    later = delegation_alias("later", "tool/2")
    store.create({**for_host("one", now), "phase": "failed"})
    shutil.rmtree(f"{root}/.index")
    run: Run = {"run": 2, "host_session_id": "later", "tool_use_id": "tool/2"}
    with paused_rebuild(root):
        reopened = store.change("one", lambda old: {**old, "phase": "planning", "runs": [*old["runs"], run]})

    assert is_complete(root)
    assert (id_found(store, ALIAS), id_found(store, later)) == ("one", "one")
    assert dict(store.scan(active_only=True)) == {"one": reopened}
    assert "one" in dict(store.scan(active_only=True, host_session_id="later"))


MARKS_AND_UNMARKS = """
import sys
from gaia_sessions.session import index_keys
from gaia_sessions.store import index, index_repair
from gaia_sessions.store.directory import Directory
key = index_keys.conversation_key("host")
with Directory.at(sys.argv[1]) as root:
    for _ in range(500):
        index.add(root, sys.argv[2], [key])
        if sys.argv[2] not in index.ids_under(root, key):
            sys.exit("an entry was lost")
        index.remove(root, {sys.argv[2]: [key]})
"""


def test_processes_that_add_and_remove_index_entries_lose_no_entry_of_another(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    racers = [
        subprocess.Popen([sys.executable, "-c", MARKS_AND_UNMARKS, root, agent_id], stderr=subprocess.PIPE, text=True)
        for agent_id in ("two", "three", "four")
    ]

    assert [racer.communicate()[1] for racer in racers] == ["", "", ""]
    assert entries(root) == {"complete", *MARKS}


@pytest.mark.parametrize("lost", [False, True])
def test_a_sweep_rebuilds_the_whole_index(
    root: str,
    store: FileStore,
    now: datetime,
    lost: bool,  # noqa: FBT001  # given by name
) -> None:
    store.create(for_host("one", now))
    store.create(new_record("two", "plan er", "-", {}, now))
    store.create(new_record("three", "Explore", "-", {}, now))
    store.change("three", finished)
    before = entries(root)
    if lost:
        shutil.rmtree(f"{root}/.index")
    else:
        Path(root, ".index", "complete").write_bytes(b"the boot before this one")
        lose(root, "one", "active")
        plant(root, "three", "active")

    store.sweep(now)

    assert entries(root) == before
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"one", "two"}
    assert id_found(store, ALIAS) == "one"
    assert is_complete(root)


def test_a_sweep_removes_wrong_index_entries_and_adds_missing_ones(root: str, store: FileStore, now: datetime) -> None:
    for agent_id in ("one", "two", "three"):
        store.create(new_record(agent_id, "Explore", "-", {}, now))
    store.change("three", finished)
    before = entries(root)
    lose(root, "one", "active")
    plant(root, "three", "active")
    plant(root, "three", "conversation", "over")
    for key in (("active",), ("host_key", "agent", "host", "child"), ("parent", "above")):
        plant(root, "never-was", *key)
    plant(root, "con", "active")

    store.sweep(now)

    assert entries(root) == before
    assert "con" not in shard_of(root, "active").read_text(encoding="utf-8")


def test_a_key_that_a_record_loses_is_removed_from_the_index(root: str, store: FileStore, now: datetime) -> None:
    """A record that is full drops its oldest runs, and so their keys."""
    store.create(for_host("one", now))

    store.change("one", lambda record: {**record, "runs": [{"run": 2, "host_session_id": "other"}]})

    assert entries(root) == {"complete", *MARKS, "conversation.other one"}


def test_an_unreadable_session_counts_as_active_after_a_rebuild(root: str, store: FileStore, now: datetime) -> None:
    """The session may have been active before it was damaged."""
    store.create(new_record("one", "Explore", "-", {}, now))
    Path(root, "one", "state.json").write_bytes(b"unreadable")
    [(_, before)] = store.scan(active_only=True)
    assert isinstance(before, CorruptSession)
    shutil.rmtree(f"{root}/.index")

    store.sweep(now)

    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]


@table("kind", ["file", "link", "pipe", "folder"])
@table("name", ["README", "active", "ab", "abc.keys"])
def test_a_sweep_ignores_and_keeps_unknown_files_in_the_index_folder(
    new_folder: Callable[[], Path], now: datetime, name: str, kind: str
) -> None:
    own = new_folder()
    root = f"{own}/root"
    store = FileStore(root, durable=False)
    store.create({**for_host("one", now), "parent_id": "above"})
    before = entries(root)
    plant(root, "dangling", "active")
    foreign = Path(root, ".index", name)
    (own / "elsewhere").mkdir()
    (own / "elsewhere" / "dangling").touch()
    if kind == "file":
        foreign.touch()
    elif kind == "link":
        foreign.symlink_to(own / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(foreign)
    else:
        foreign.mkdir()
        (foreign / "dangling").write_text("mine", encoding="utf-8")

    for _ in range(2):
        store.sweep(now)

    assert entries(root) - {name, "dangling"} == before
    assert os.path.lexists(foreign)
    assert kind != "folder" or (foreign / "dangling").exists()
    assert (own / "elsewhere" / "dangling").exists()
    Path(root, "one", "state.json").write_bytes(b"unreadable")
    assert deleted(store, "one", agree)


def test_a_shard_with_mostly_removed_lines_is_rewritten_without_them(root: str, store: FileStore) -> None:
    store.create({**new_record("here", "Explore", "-", {}, utc_now())})
    path = shard_of(root, "active")
    for number in range(4000):
        plant(root, f"s-{number}", "active")
        lose(root, f"s-{number}", "active")

    assert path.stat().st_size < 33 << 10  # about 60 KiB were written
    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["here"]


def test_a_hard_linked_snapshot_keeps_its_index_entries_while_a_shard_is_locked(
    root: str, store: FileStore, now: datetime
) -> None:
    for agent_id in ("ended", "deleted"):
        store.create({**new_record(agent_id, "Explore", "-", {}, now), "parent_id": "above"})
    subprocess.run(["cp", "-al", root, f"{root}-snapshot"], check=True)
    with ExitStack() as stack:
        for path in Path(root, ".index").glob("*.keys"):
            fcntl.flock(stack.enter_context(path.open("rb")), fcntl.LOCK_SH)
        store.change("ended", finished)
        assert deleted(store, "deleted", agree)

    snapshot = FileStore(f"{root}-snapshot")
    assert {agent_id for agent_id, _ in snapshot.scan(active_only=True)} == {"ended", "deleted"}
    assert {record["agent_id"] for record in snapshot.children(["above"])} == {"ended", "deleted"}
    store.sweep(now)
    assert entries(root) == {"complete", line("ended", "parent", "above")}


def test_a_shard_over_the_limit_makes_readers_scan_and_a_later_sweep_shortens_it(
    root: str, store: FileStore, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_MAX_SHARD", 1000)
    monkeypatch.setattr(index_repair, "_MOST_HELD", 10)
    ids = {f"s-{number}" for number in range(60)}
    for agent_id in ids:
        store.create(new_record(agent_id, "Explore", "-", {}, now))
    for _ in range(2):
        store.sweep(now)
        assert shard_of(root, "active").stat().st_size > 1000
        assert {agent_id for agent_id, _ in store.scan(active_only=True)} == ids

    for agent_id in sorted(ids)[10:]:
        store.change(agent_id, finished)
    store.sweep(now)

    assert is_complete(root)
    assert entries(root) == {"complete", *(line(name, *key) for name in sorted(ids)[:10] for key in OPEN_KEYS)}
