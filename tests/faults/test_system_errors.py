"""The system refuses one call: the exit code is true, the message names the file, and nothing is left behind.

Each call that touches the project fails once with each error that it can really have; then the operation must succeed.
Exit code 0: the new state, 8: the old, 9: the new without a successful sync. A hook exits with 0 and prints nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import A_SAMPLE, EACH_CALL, QUICK, message_lines, short_and_whole, sweep
from tests.figures import counted, left, standing_figures, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Call, Case, Ended, Operation

    CaseOf = Callable[[Operation], Case]

pytestmark = pytest.mark.usefixtures("needs_strace")

SEVERAL_DOCUMENTS = ("change state in three documents", "append an event of an app")
EXIT_DURABILITY_UNKNOWN = 9
FIGURES = ".stats.jsonl"

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
"""The error of a close, only for files that were written."""

SILENT = ("append",)
"""Operations that cannot report a move without a sync: an append moves no file."""

WHOLE = (*QUICK, "add a turn", "change state in three documents")
"""The operations of which a slow test refuses each call. Of the others it refuses a sample."""

REMOVALS = {"cleanup": (8,), "remove a cancelled session": (8, 9), "remove an open session": ()}
"""Operations with several steps, and the exit codes with which they can end after some of the steps.

If the sync of a mark that is handed on fails, the session stays.
"""

_PATH = re.compile(r"<([^>]+)>")


@sweep(lambda name: EACH_CALL if name in WHOLE else A_SAMPLE)
def test_a_refused_call_is_reported_truly_leaves_nothing_behind_and_can_be_repeated(
    case_of: CaseOf, operation: Operation, reach: str
) -> None:
    case = case_of(operation)
    faults = _faults(case, reach)
    wrong = {f"{error} of {call}": _refuse(case, call, error) for call, error in faults}

    assert {fault: what for fault, what in wrong.items() if what} == {}
    assert {error for _, error in faults} >= {"EIO", "ENOSPC", "EDQUOT", "EMFILE", "ENOLCK", "ENOSYS"}
    assert not _can_tell(operation) or {call for call, _ in faults} & {*_last_syncs(case)}


@pytest.mark.parametrize("name", ["openat", "read", "write", "flock", "fsync"])
def test_an_interrupted_call_is_repeated(
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


@short_and_whole
@pytest.mark.parametrize("name", ["add a message to a restored record", "empty the transcript of a restored record"])
def test_no_refused_call_loses_a_message_newer_than_a_restored_record(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str, reach: str
) -> None:
    case = case_of(operation_named(name))
    acknowledged = message_lines(case.root(str(case.made)))
    lost = {}
    for call, error in _faults(case, reach):
        if call.changes:
            project = case.copy()
            case.start_with(f"{call.name}:error={error}:when={call.ordinal}", project)
            at_once = acknowledged - message_lines(case.root(project))
            case.operation.start(project)
            lost[f"{error} of {call}"] = at_once | (acknowledged - message_lines(case.root(project)))

    assert {fault: lines for fault, lines in lost.items() if lines} == {}
    assert len(lost) > 5


@pytest.mark.parametrize("name", ["cleanup", pytest.param("remove an open session", marks=pytest.mark.slow)])
def test_sessions_are_removed_with_a_warning_if_their_figures_cannot_be_written(
    case_of: CaseOf, operation_named: Callable[[str], Operation], name: str
) -> None:
    case = case_of(operation_named(name))
    before = standing_figures(FileStore(case.root(str(case.made))))
    refused = [(call, error) for call, error in _all_faults(case) if FIGURES in call.line and call.changes]
    told = {}
    for call, error in refused:
        project = case.copy()
        ended, _ = case.start_with(f"{call.name}:error={error}:when={call.ordinal}", project)
        store = FileStore(case.root(project))
        lines = left(store)
        assert lines == {key: before[key] for key in lines}
        told[f"{error} of {call}"] = (
            (ended.returncode, case.outcome_of(project), unread(store)),
            ("FiguresLost" in ended.stderr, f"{FIGURES}: " in ended.stderr),
            len(lines) in (0, len(before) - len(counted(store).keys() & standing_figures(store).keys())),
        )

    assert {fault: what for fault, what in told.items() if what != ((0, "new", 0), (True, True), True)} == {}
    assert {error for _, error in refused} >= {"EIO", "ENOSPC", "EDQUOT", "EMFILE"}


def _faults(case: Case, reach: str) -> list[tuple[Call, str]]:
    """Each error of each call, or a sample: the first and the last call for each error."""
    faults = list(_all_faults(case))
    if reach != A_SAMPLE:
        return faults
    kinds = [(call.name, error) for call, error in faults]
    ends = {*map(kinds.index, kinds), *(len(kinds) - 1 - kinds[::-1].index(kind) for kind in kinds)}
    return [faults[number] for number in sorted(ends)]


def _all_faults(case: Case) -> Iterator[tuple[Call, str]]:
    written = set()
    for call in case.calls[:-1]:
        path = "".join(_PATH.findall(call.line)[:1])
        if call.name == "write":
            written.add(path)
        if call.name == "close" and path in written:
            yield call, CLOSING
        for error in ERRORS.get(call.name, ()):
            yield call, error


def _can_tell(operation: Operation) -> bool:
    return not operation.is_hook and operation.name not in SILENT


def _last_syncs(case: Case) -> list[Call]:
    """The syncs after the last move."""
    moved = max(number for number, call in enumerate(case.calls) if call.name == "renameat")
    return [call for call in case.calls[moved:] if call.name == "fsync"]


def _refuse(case: Case, call: Call, error: str) -> list[str]:
    """The faults when the call was refused, and afterwards."""
    project = case.copy()
    ended, calls = case.start_with(f"{call.name}:error={error}:when={call.ordinal}", project)
    [refused] = [made for made in calls if made.ordinal == call.ordinal]
    assert refused.line.endswith("(INJECTED)"), f"not refused: {call}"
    wrong = [*_untrue(case, project, ended), *_unsaid(case, project, ended)]
    if _can_tell(case.operation) and call in _last_syncs(case) and ended.returncode != EXIT_DURABILITY_UNKNOWN:
        wrong.append(f"exit {ended.returncode} without a sync after the last move")
    if not _refuses_removal(case, call):
        wrong += case.leftovers(project)
    return [*wrong, *_stuck(case, project)]


def _refuses_removal(case: Case, call: Call) -> bool:
    """Whether leftovers are allowed: the refused call was to remove them. The next operation must remove them."""
    return call.name == "unlinkat" or case.operation.name in REMOVALS


def _untrue(case: Case, project: str, ended: Ended) -> Iterator[str]:
    stands = case.outcome_of(project)
    true = TRUE_OF.get(ended.returncode, ())
    if case.operation.is_hook:
        true = ("old", "new") if ended.returncode == 0 else ()
    elif case.operation.name in REMOVALS and ended.returncode in TRUE_OF:
        true = ("old", "partly", "new") if ended.returncode in REMOVALS[case.operation.name] else true
    elif case.operation.name in SEVERAL_DOCUMENTS and ended.returncode == EXIT_DURABILITY_UNKNOWN:
        true = ("partly", "new")  # the message names the document that was not stored
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
