"""A mark that cannot be read: the session counts as cancelled, and writes are refused."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.session import lineage, runs
from gaia_sessions.session.record import new_record
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import HOOKS, documents, run
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Ended

    RefusedEach = Callable[..., list[tuple[str, Ended, str]]]

pytestmark = pytest.mark.usefixtures("needs_strace")

ABOVE, BELOW = "agent-above", "agent-below"
REASONS = ("EIO", "ESTALE", "EMFILE", "EACCES", "ELOOP", "ENOMEM")
FAULTS = [
    *((call, f"error={reason}") for call, reason in product(("newfstatat", "openat"), REASONS)),
    ("newfstatat", "error=EIO:when=2"),
    ("read", "error=EIO"),
    ("read", "error=ESTALE"),
]
"""Each error of each call that looks for, opens and reads a mark. The second look is at the open file."""
SAMPLE = [fault for fault in FAULTS if "EIO" in fault[1]]

STOP = {"hook_event_name": "SubagentStop", "session_id": "s-1", "agent_id": "a1", "agent_type": "Explore"}
TOLD = """
import sys
from gaia_sessions import CancellationToken
token = CancellationToken(sys.argv[1])
print(token.is_cancelled, token.wait(0), token.cancellation)
"""


def gaia(*words: str) -> list[str]:
    return [sys.executable, "-m", "gaia_sessions", *words]


def populate(root: str, marked_id: str) -> None:
    """A session with an open run, below another session. ``marked_id`` is the one that is cancelled."""
    gaia_sessions.create_session("worker", agent_id=ABOVE, root=root)
    store, now = FileStore(root), datetime.now(UTC)
    record = runs.with_claimed_run(
        new_record(BELOW, "Explore", "look around", {}, now),
        {"host": "claude-code", "host_session_id": "s-1", "tool_use_id": "toolu_1", "host_agent_id": "a1"},
        now,
    )
    store.create(lineage.with_parent(record, store.read(ABOVE)))
    gaia_sessions.Sessions(root).cancel(marked_id, "enough")


def refused(folder: Path, marked_id: str, fault: tuple[str, str], words: list[str], stdin: str) -> tuple[Ended, str]:
    """Runs the command with ``fault`` injected into the calls on the mark. Returns its result and its root."""
    name, how = fault
    root = f"{folder}/{name}-{how.translate({ord(sign): '-' for sign in '=:'})}"
    populate(root, marked_id)
    places = [f"{marked_id}/cancelled.json", "cancelled.json", f"{root}/{marked_id}/cancelled.json"]
    chosen = [word for place in places for word in ("-P", place)]
    trace = f"{root}.trace"
    traced = ["strace", "-f", "-o", trace, *chosen, "-e", f"inject={name}:{how}"]
    ended = run(words, stdin=stdin, environment={"GAIA_SESSIONS_ROOT": root}, trace=traced)
    assert "(INJECTED)" in Path(trace).read_text()
    assert "Traceback" not in ended.stderr
    return ended, root


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.slow)], ids=["one reason", "the other reasons"])
def refused_each(tmp_path: Path, request: pytest.FixtureRequest) -> RefusedEach:
    """Runs a command with each fault in turn, and returns the results."""
    faults = [fault for fault in FAULTS if (fault not in SAMPLE) == request.param]
    numbers = count()

    def refuse(marked_id: str, words: list[str], stdin: str = "") -> list[tuple[str, Ended, str]]:
        folder = tmp_path / str(next(numbers))
        return [(" ".join(fault), *refused(folder, marked_id, fault, words, stdin)) for fault in faults]

    return refuse


@table("marked_id", [ABOVE, BELOW])
def test_the_cancelled_command_treats_an_unreadable_mark_as_cancelled_and_says_why(
    refused_each: RefusedEach, marked_id: str
) -> None:
    told = refused_each(marked_id, gaia("cancelled", BELOW))

    assert {fault: ended.returncode for fault, ended, _ in told if ended.returncode != 10} == {}
    said = f"{marked_id}/cancelled.json: cannot read: "
    assert [ended.stdout for _, ended, _ in told if said not in ended.stdout] == []


@table("marked_id", [ABOVE, BELOW])
def test_a_token_treats_an_unreadable_mark_as_cancelled_and_says_why(refused_each: RefusedEach, marked_id: str) -> None:
    told = refused_each(marked_id, [sys.executable, "-c", TOLD, BELOW])

    said = f"{marked_id}/cancelled.json: cannot read: "
    wrong = [(fault, ended) for fault, ended, _ in told if not ended.stdout.startswith("True True {'reason': ")]
    assert wrong == []
    assert [ended.stdout for _, ended, _ in told if said not in ended.stdout] == []


@table("marked_id", [ABOVE, BELOW])
@table(
    "words",
    [
        ["finalize", BELOW, "completed"],
        ["finalize", BELOW, "abandoned"],
        ["update", BELOW, "--phase", "planning"],
        ["create", "--id", "agent-new", "--parent", BELOW],
    ],
)
def test_a_command_that_writes_is_refused_and_changes_nothing_while_a_mark_is_unreadable(
    tmp_path: Path, refused_each: RefusedEach, marked_id: str, words: list[str]
) -> None:
    untouched = f"{tmp_path}/{marked_id}-untouched"
    if not Path(untouched).exists():
        populate(untouched, marked_id)
    told = refused_each(marked_id, gaia(*words))

    assert {fault: ended.returncode for fault, ended, _ in told if ended.returncode != 8} == {}
    said = f"{marked_id}/cancelled.json: cannot read: "
    assert [ended.stderr for _, ended, _ in told if said not in ended.stderr] == []
    for _, _, root in told:
        assert documents(root).keys() == documents(untouched).keys()
        record = gaia_sessions.get_session(BELOW, root=root)
        assert record is not None
        assert (record["phase"], record["revision"]) == ("initializing", 1)


@table("words", [["finalize", BELOW, "completed"], ["reconcile"], ["cleanup"]])
@table("when", [1, 2])
def test_a_temporary_failure_to_read_a_mark_abandons_no_session(tmp_path: Path, words: list[str], when: int) -> None:
    # No mark exists. A write of what a mark means needs a mark that was read.
    root = str(tmp_path / f"{words[0]}-{when}")
    gaia_sessions.create_session("worker", agent_id=ABOVE, root=root)
    gaia_sessions.create_session("worker", agent_id=BELOW, parent_id=ABOVE, root=root)
    fault = f"inject=newfstatat:error=EIO:when={when}"
    traced = ["strace", "-f", "-o", f"{root}.trace", "-P", f"{ABOVE}/cancelled.json", "-e", fault]

    ended = run(gaia(*words), environment={"GAIA_SESSIONS_ROOT": root}, trace=traced)

    record = gaia_sessions.get_session(BELOW, root=root)
    assert record is not None
    is_looked_at_again = "(INJECTED)" in Path(f"{root}.trace").read_text()
    assert (record["phase"], record["revision"]) == ("initializing", 1)
    assert (ended.returncode == 8) == is_looked_at_again
    assert is_looked_at_again or when == 2


@table("marked_id", [ABOVE, BELOW])
def test_the_stop_of_a_host_waits_in_the_inbox_until_the_mark_can_be_read(
    refused_each: RefusedEach, marked_id: str
) -> None:
    stop = json.dumps({**STOP, "last_assistant_message": "Done."})
    told = refused_each(marked_id, [sys.executable, str(HOOKS / "every_event.py")], stop)

    assert {(ended.returncode, ended.stdout, ended.stderr) for _, ended, _ in told} == {(0, "", "")}
    for fault, _, root in told:
        record = gaia_sessions.get_session(BELOW, root=root)
        assert record is not None
        assert (fault, record["revision"], len(os.listdir(f"{root}/.inbox"))) == (fault, 1, 1)
        gaia_sessions.create_session("worker", root=root)
        record = gaia_sessions.get_session(BELOW, root=root)
        assert record is not None
        assert (fault, record["phase"], record["runs"][-1]["end"]) == (fault, "abandoned", "stopped")
        assert [name for name in os.listdir(f"{root}/.inbox") if name.endswith(".json")] == []
