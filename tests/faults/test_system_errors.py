"""The system refuses any one call: the exit code is true, the message names the file, nothing is left behind.

Every call with which an operation touches its project fails once, with each error that it may really meet.
Exit 0 means done, 8 means that the old state stands, 9 that the new one does but the disk did not say so.
A hook exits 0 whatever happens, in silence. Whatever happened, the same operation works right afterwards.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import EACH, OPERATIONS, message_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Call, Case, Ended, Operation

    CaseOf = Callable[[Operation], Case]

pytestmark = pytest.mark.usefixtures("needs_strace")

AT_ONCE = 3
SEVERAL_DOCUMENTS = ("change state in three documents", "append an event of an app")
EXIT_DURABILITY_UNKNOWN = 9

TRUE_OF: dict[int, tuple[str, ...]] = {0: ("new",), 8: ("old",), 9: ("new",)}

FULL = ("ENOSPC", "EDQUOT")
ERRORS: dict[str, tuple[str, ...]] = {
    "openat": ("EMFILE",),
    "read": ("EIO",),
    "pread64": ("EIO",),
    "getdents64": ("EIO",),
    "newfstatat": ("EIO",),
    "mkdirat": ("ENOSPC",),
    "mkdir": ("ENOSPC",),
    "fchmod": ("EIO",),
    "write": ("EIO", *FULL),
    "fsync": ("EIO", *FULL),
    "fdatasync": ("EIO",),
    "renameat": ("EIO", "ENOSPC"),
    "unlinkat": ("EIO",),
    "flock": ("ENOLCK", "ENOSYS"),
}
CLOSING = "EIO"
"""Of files that were written: for directories and for what was only read, closing cannot fail."""

THAT_CAN_TELL = [param for name, param in EACH.items() if not OPERATIONS[name].is_hook and name != "append"]
"""Hooks have no such exit code, and an append moves no file."""

REMOVALS = {"cleanup": (8,), "remove a cancelled session": (8, 9), "remove an open session": ()}
"""These have several steps, after each of which they may end with one of these codes: a mark that was handed on without
being synced for certain lets its session stay."""

_PATH = re.compile(r"<([^>]+)>")


@dataclass(frozen=True)
class Refusal:
    """One call refused once: which, how, what came of it, and what was wrong with that."""

    call: Call
    error: str
    code: int
    untrue: list[str]
    unsaid: list[str]
    left: list[str]
    stuck: list[str]

    def __str__(self) -> str:
        return f"{self.error} of {self.call}: exit {self.code}"


@pytest.fixture(scope="session")
def refusals_of(case_of: CaseOf) -> Callable[[Operation], list[Refusal]]:
    """Each error of each call of an operation; they are all run once, three at a time."""

    def run_all(operation: Operation) -> list[Refusal]:
        case = case_of(operation)
        faults = list(_faults(case))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda fault: _refuse(case, *fault), faults))

    return cache(run_all)


@pytest.fixture
def refusals(operation: Operation, refusals_of: Callable[[Operation], list[Refusal]]) -> list[Refusal]:
    return refusals_of(operation)


def test_the_exit_code_is_true_whichever_call_is_refused(refusals: list[Refusal]) -> None:
    assert [(str(refusal), refusal.untrue) for refusal in refusals if refusal.untrue] == []
    assert {refusal.error for refusal in refusals} >= {"EIO", "ENOSPC", "EDQUOT", "EMFILE", "ENOLCK", "ENOSYS"}


def test_the_message_names_the_file_whichever_call_is_refused(refusals: list[Refusal]) -> None:
    assert [(str(refusal), refusal.unsaid) for refusal in refusals if refusal.unsaid] == []


def test_no_temporary_is_left_whichever_call_is_refused(refusals: list[Refusal]) -> None:
    assert [(str(refusal), refusal.left) for refusal in refusals if refusal.left] == []


def test_the_same_operation_works_afterwards_whichever_call_was_refused(refusals: list[Refusal]) -> None:
    assert [(str(refusal), refusal.stuck) for refusal in refusals if refusal.stuck] == []


@pytest.mark.parametrize("name", ["openat", "read", "write", "flock", "fsync"])
def test_a_call_that_was_interrupted_is_made_again(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str
) -> None:
    case = case_of(operation_named("update"))
    told = {}
    for call in case.calls[:-1]:
        if call.name == name:
            project = case.copy()
            ended, _ = case.start_with(f"{name}:error=EINTR:when={call.ordinal}", project)
            told[str(call)] = (ended.returncode, case.outcome_of(project))

    assert {line: how for line, how in told.items() if how != (0, "new")} == {}
    assert told


@pytest.mark.parametrize("operation", THAT_CAN_TELL, indirect=True)
def test_a_directory_that_is_not_synced_after_the_move_in_it_is_exit_9(
    refusals: list[Refusal], case_of: CaseOf, operation: Operation
) -> None:
    calls = case_of(operation).calls
    moved = max(number for number, call in enumerate(calls) if call.name == "renameat")
    syncs = {call for call in calls[moved:] if call.name == "fsync"}

    assert {str(refusal) for refusal in refusals if refusal.call in syncs and refusal.code != 9} == set()
    assert syncs


@pytest.mark.parametrize("name", ["add a message to a restored record", "empty the transcript of a restored record"])
def test_no_refused_call_loses_a_message_that_stands_behind_a_restored_record(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str
) -> None:
    case = case_of(operation_named(name))
    acknowledged = message_lines(case.root(str(case.made)))
    lost = {}
    for call, error in _faults(case):
        if call.changes:
            project = case.copy()
            case.start_with(f"{call.name}:error={error}:when={call.ordinal}", project)
            at_once = acknowledged - message_lines(case.root(project))
            case.operation.start(project)
            lost[f"{error} of {call}"] = at_once | (acknowledged - message_lines(case.root(project)))

    assert {fault: lines for fault, lines in lost.items() if lines} == {}
    assert len(lost) > 5


def _faults(case: Case) -> Iterator[tuple[Call, str]]:
    written = set()
    for call in case.calls[:-1]:
        path = "".join(_PATH.findall(call.line)[:1])
        if call.name == "write":
            written.add(path)
        if call.name == "close" and path in written:
            yield call, CLOSING
        for error in ERRORS.get(call.name, ()):
            yield call, error


def _refuse(case: Case, call: Call, error: str) -> Refusal:
    project = case.copy()
    ended, calls = case.start_with(f"{call.name}:error={error}:when={call.ordinal}", project)
    [refused] = [made for made in calls if made.ordinal == call.ordinal]
    assert refused.line.endswith("(INJECTED)"), f"not refused: {call}"
    untrue = list(_untrue(case, project, ended))
    left = [] if _refuses_removal(case, call) else case.leftovers(project)
    unsaid = list(_unsaid(case, project, ended))
    return Refusal(call, error, ended.returncode, untrue, unsaid, left, list(_stuck(case, project)))


def _refuses_removal(case: Case, call: Call) -> bool:
    """Whether what is left is what the refused call was to remove; the same operation again must then remove it."""
    return call.name == "unlinkat" or case.operation.name in REMOVALS


def _untrue(case: Case, project: str, ended: Ended) -> Iterator[str]:
    stands = case.outcome_of(project)
    true = TRUE_OF.get(ended.returncode, ())
    if case.operation.is_hook:
        true = ("old", "new") if ended.returncode == 0 else ()
    elif case.operation.name in REMOVALS and ended.returncode in TRUE_OF:
        true = ("old", "partly", "new") if ended.returncode in REMOVALS[case.operation.name] else true
    elif case.operation.name in SEVERAL_DOCUMENTS and ended.returncode == EXIT_DURABILITY_UNKNOWN:
        true = ("partly", "new")  # what could not be put in place is named
    if stands not in true:
        yield f"{stands}: {ended.stderr}"


def _unsaid(case: Case, project: str, ended: Ended) -> Iterator[str]:
    if "Traceback" in ended.stderr:
        yield ended.stderr
    elif case.operation.is_hook:
        if ended.stderr:
            yield ended.stderr
    elif ended.returncode and project not in ended.stderr:
        yield ended.stderr


def _stuck(case: Case, project: str) -> Iterator[str]:
    operation = case.operation
    ended = operation.start(project)
    stands = case.outcome_of(project)
    if ended.returncode not in operation.again or stands != "new":
        yield f"exit {ended.returncode}, {stands}: {ended.stderr}"
    for name in operation.aside:
        if case.is_as_before(project, name):
            yield f"{name} is still the old one"
    if operation.name == "cleanup":
        yield from case.leftovers(project)
