"""The hints: where they stand, when they are believed, and what each write does to them."""

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


def test_a_session_has_all_its_entries_while_it_is_open_and_its_alias_until_it_is_deleted(
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


def test_a_session_has_an_entry_below_its_parent_until_it_is_deleted(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create({**new_record("one", "Explore", "-", {}, now), "parent_id": "Above"})
    of_parent, while_open = (line("one", group, "Above") for group in ("parent", "open_child"))
    assert entries(root) == {"complete", *MARKS, of_parent, while_open}

    store.change("one", finished)
    assert entries(root) == {"complete", of_parent}

    deleted(store, "one", agree)
    assert entries(root) == {"complete"}


def test_the_open_children_are_found_without_a_look_at_the_final_ones(root: str, now: datetime) -> None:
    store = OfHook(root, 0)
    for number in range(20):
        store.create({**new_record(f"s-{number}", "Explore", "-", {}, now), "parent_id": "above"})
    for number in range(18):
        store.change(f"s-{number}", finished)
    store.read_ids.clear()

    found = store.children(["above"], open_only=True)

    assert sorted(record["agent_id"] for record in found) == sorted(store.read_ids) == ["s-18", "s-19"]


def test_children_are_found_without_a_look_at_other_sessions(root: str, now: datetime) -> None:
    store = OfHook(root, 0)
    for number in range(20):
        store.create({**new_record(f"s-{number}", "Explore", "-", {}, now), "parent_id": f"s-{number // 4}"})

    found = store.children(["s-1", "s-3"])

    wanted = ["s-12", "s-13", "s-14", "s-15", "s-4", "s-5", "s-6", "s-7"]
    assert sorted(record["agent_id"] for record in found) == sorted(store.read_ids) == wanted


def test_an_entry_below_a_parent_is_not_the_truth(root: str, store: FileStore, now: datetime) -> None:
    store.create({**new_record("one", "Explore", "-", {}, now), "parent_id": "above"})
    store.create(new_record("two", "Explore", "-", {}, now))
    for name in ("two", "never-was"):
        plant(root, name, "parent", "above")

    assert [record["agent_id"] for record in store.children(["above"])] == ["one"]


def test_an_index_of_another_layout_is_not_relied_on_and_a_rebuild_leaves_what_is_not_ours(
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


def test_a_deleted_unreadable_session_leaves_no_hint(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now))
    Path(root, "one", "state.json").write_bytes(b"unreadable")

    deleted(store, "one", agree)

    assert entries(root) == {"complete"}


def test_a_session_has_its_entries_before_it_is_there(root: str, store: FileStore, now: datetime) -> None:
    """So that whoever is killed between leaves an entry too many, never one too few."""
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
    """How ``script`` ends when strace injects ``fault``."""
    if which("strace") is None:
        pytest.skip("needs strace to refuse a call")
    command = ["strace", "-qq", "-e", f"inject={fault}", *options, sys.executable, "-c", script, root]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("fault", ["fsync:error=EIO:when=1", "fsync:error=EIO:when=2", "/^rename:error=EIO"])
def test_a_session_loses_its_entries_only_after_its_final_write(
    root: str, store: FileStore, now: datetime, fault: str
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))

    assert run_with(fault, FINALIZES, root) == 1

    assert entries(root) == {"complete", *MARKS}


@pytest.mark.parametrize("fault", [("write", 2), ("/^rename", 1)])  # the first write is that of the entry
def test_whoever_is_killed_giving_a_session_another_key_leaves_it_findable_by_those_it_has(
    root: str, store: FileStore, now: datetime, fault: tuple[str, int]
) -> None:
    store.create(for_host("one", now))

    run_with("{}:signal=SIGKILL:when={}".format(*fault), ADDS_KEY, root)

    assert store.read("one")["revision"] == 1
    assert line("one", *index_keys.alias_key(delegation_alias("host", "tool/2"))) in entries(root)
    assert id_found(store, ALIAS) == "one"
    assert id_found(store, delegation_alias("host", "tool/2")) is None


def test_an_entry_too_many_leads_to_nothing_that_is_not_there(root: str, store: FileStore, now: datetime) -> None:
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


def test_without_any_index_readers_scan_and_make_none(root: str, store: FileStore, now: datetime) -> None:
    store.create(for_host("one", now))
    shutil.rmtree(f"{root}/.index")

    assert dict(store.scan(active_only=True)) == {"one": for_host("one", now)}
    assert id_found(store, ALIAS) == "one"
    assert not Path(root, ".index").exists()


def test_an_index_lost_with_sessions_there_is_not_completed_by_a_creation(
    root: str, store: FileStore, now: datetime
) -> None:
    store.create(new_record("one", "Explore", "-", {}, now))
    shutil.rmtree(f"{root}/.index")

    store.create(new_record("two", "Explore", "-", {}, now))

    assert entries(root) == {"active two", line("two", "name", "Explore")}
    assert {agent_id for agent_id, _ in store.scan(active_only=True)} == {"one", "two"}


@table(
    "spoiled",
    [
        {"never-was"},  # leads to a session that does not exist
        {"con"},  # leads to what is no id
        {"con", ".one", "state.json"},  # leads to several things that are no session
        {"other"},  # leads to a session that has another key
        {"corrupt", "never-was", "other"},  # leads astray in every way
    ],
)
def test_a_key_that_leads_astray_is_looked_for_in_every_record_and_no_reader_corrects_it(
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
    """Puts into the place of a shard what no writer of ours makes, one after the other."""
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
def test_what_stands_in_the_place_of_a_shard_is_not_trusted_and_hurts_no_writer(
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

        if kind != "huge":  # to which an entry is only added
            store.create({**for_host(f"new-{number}", now - timedelta(days=1))})
            assert not is_complete(root), kind
        ids = {agent_id for agent_id, _ in store.scan()}
        store.sweep(now)
        assert is_complete(root), kind
        assert id_found(store, ALIAS) == "one", kind
        assert set(dict(store.scan(active_only=True))) == ids, kind
    assert (own / "elsewhere").read_bytes() == whole
    assert len([*path.parent.glob(f"{path.name}.*/mine")]) == 1


def test_a_final_session_is_found_by_its_key_alone(root: str, store: FileStore, now: datetime) -> None:
    """And not by reading the others: here none of them can be read."""
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
    """What ``script`` prints where the file with the id of the boot cannot be opened."""
    if which("strace") is None:
        pytest.skip("needs strace to refuse a call")
    hiding = ["strace", "-qq", "-o", os.devnull, "-P", BOOT_ID, "-e", "inject=openat:error=ENOENT"]
    command = [*in_a_boot, *hiding, sys.executable, "-c", script, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_without_an_id_of_the_boot_the_index_is_relied_on_in_one_boot_and_in_no_later_one(
    root: str, now: datetime
) -> None:
    """The next boot, after a power cut: every entry is lost, the file that calls them complete is still there."""
    another = ("unshare", "--time", "--boottime", "60")
    if subprocess.run([*another, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a time namespace, for the clock of another boot")
    run_without_boot_id(CREATES, root, json.dumps(for_host("one", now)))
    assert json.loads(run_without_boot_id(LOOKS, root)) == [True, ["one"], "one"]

    for path in Path(root, ".index").glob("*.keys"):
        path.unlink()

    assert json.loads(run_without_boot_id(LOOKS, root, in_a_boot=another)) == [False, ["one"], "one"]
    assert json.loads(run_without_boot_id(LOOKS, root)) == [True, [], None]


def test_an_index_completed_without_an_id_of_the_boot_is_not_relied_on_where_there_is_one(
    root: str, store: FileStore, now: datetime
) -> None:
    run_without_boot_id(CREATES, root, json.dumps(for_host("one", now)))

    assert not is_complete(root)
    store.ensure_index()
    assert is_complete(root)
    assert json.loads(run_without_boot_id(LOOKS, root)) == [False, ["one"], "one"]


def test_an_event_for_which_a_hook_has_no_time_to_find_the_session_waits_and_is_applied_later(
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
    """It stops once, after a record was read and before it is handed out, until it may go on."""

    def __init__(self, root: str) -> None:
        super().__init__(root, durable=False)
        self.has_read, self.may_go_on = threading.Event(), threading.Event()

    def _read_or_error(self, agent_id: str) -> RecordOrError:
        found = super()._read_or_error(agent_id)
        self.has_read.set()
        assert self.may_go_on.wait(30)
        return found


class OfHook(FileStore):
    """A hook's, whose time is up when it has read so many records."""

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
    """Makes them; returns the entries they had."""
    for name in "abcde":
        run: Run = {"run": 1, "host_session_id": "host", "tool_use_id": name}
        store.create({**new_record(name, "Explore", "-", {}, now), "runs": [run]})
    right = entries(root)
    shutil.rmtree(f"{root}/.index")
    return right


def test_a_rebuild_without_the_time_for_all_sessions_completes_nothing_and_the_next_goes_on(
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


def test_what_a_rebuild_noted_in_another_boot_counts_for_nothing(root: str, store: FileStore, now: datetime) -> None:
    five_without_an_index(root, store, now)
    OfHook(root, 2).ensure_index()
    noted = Path(root, ".index", "complete")
    noted.write_bytes(noted.read_bytes()[:-4] + b"beef")

    reopened = OfHook(root, 99)
    reopened.ensure_index()
    assert (reopened.read_ids, is_complete(root)) == (list("abcde"), True)


def test_one_look_at_all_sessions_answers_every_key_of_a_hooks_call_and_what_came_since_is_found(
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


def test_a_hook_that_has_no_time_to_look_through_all_sessions_says_so_and_not_that_there_is_none(
    root: str, store: FileStore, now: datetime
) -> None:
    five_without_an_index(root, store, now)

    with pytest.raises(StoreFailure, match="too many sessions"):
        id_found(OfHook(root, 2), delegation_alias("host", "a"))
    with pytest.raises(StoreFailure, match="too many sessions"):
        list(OfHook(root, 2).scan(active_only=True))


@contextmanager
def paused_rebuild(root: str) -> Iterator[None]:
    """A rebuild of the index has read a session, and goes on at the end of the block."""
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
    """The rebuild has read the older session; another process begins a newer one with its key; the rebuild goes on."""
    store.create(for_host("one", now))
    shutil.rmtree(f"{root}/.index")
    with paused_rebuild(root):
        newer = json.dumps(for_host("two", now + timedelta(hours=1)))
        subprocess.run([sys.executable, "-c", CREATES, root, newer], check=True)

    assert is_complete(root)
    assert id_found(store, ALIAS) == "two"
    assert set(dict(store.scan(active_only=True, host_session_id="host"))) == {"one", "two"}


def test_what_is_written_while_the_index_is_rebuilt_is_found_by_it(root: str, store: FileStore, now: datetime) -> None:
    """The rebuild has read a final session; meanwhile it is opened again, with another key in another conversation."""
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


def test_a_folder_that_goes_with_its_last_entry_takes_nobody_elses_with_it(
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
def test_a_sweep_rebuilds_the_index_whole(
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


def test_a_sweep_corrects_entries_too_many_and_too_few(root: str, store: FileStore, now: datetime) -> None:
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


def test_a_key_that_a_record_has_no_more_is_no_hint_any_more(root: str, store: FileStore, now: datetime) -> None:
    """Of a session that is woken for ever only the newest runs are kept."""
    store.create(for_host("one", now))

    store.change("one", lambda record: {**record, "runs": [{"run": 2, "host_session_id": "other"}]})

    assert entries(root) == {"complete", *MARKS, "conversation.other one"}


def test_an_unreadable_session_is_among_the_active_after_a_rebuild(root: str, store: FileStore, now: datetime) -> None:
    """It may have been active: nothing hides it, as nothing does after any other write."""
    store.create(new_record("one", "Explore", "-", {}, now))
    Path(root, "one", "state.json").write_bytes(b"unreadable")
    [(_, before)] = store.scan(active_only=True)
    assert isinstance(before, CorruptSession)
    shutil.rmtree(f"{root}/.index")

    store.sweep(now)

    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["one"]


@table("kind", ["file", "link", "pipe", "folder"])
@table("name", ["README", "active", "ab", "abc.keys"])
def test_what_is_no_file_of_the_index_is_passed_over_by_a_sweep_and_stays(
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


def test_a_shard_that_is_mostly_removed_lines_is_written_anew_without_them(root: str, store: FileStore) -> None:
    store.create({**new_record("here", "Explore", "-", {}, utc_now())})
    path = shard_of(root, "active")
    for number in range(4000):
        plant(root, f"s-{number}", "active")
        lose(root, f"s-{number}", "active")

    assert path.stat().st_size < 33 << 10  # of some 60 KiB that were written
    assert [agent_id for agent_id, _ in store.scan(active_only=True)] == ["here"]


def test_no_entry_is_removed_from_a_snapshot_by_hard_links_while_somebody_else_writes_to_the_shard(
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


def test_more_entries_than_anybody_reads_at_once_cost_a_look_at_all_sessions_and_no_cleanup(
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
