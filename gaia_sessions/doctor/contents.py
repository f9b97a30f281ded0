"""Checks of what is in the root: records, their times and runs, hints, the inbox, and what killed processes left."""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidId, SessionNotFound, SessionsError
from gaia_sessions.ingest.dispatch import has_waited_too_long
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import is_open
from gaia_sessions.store import atomic, index, index_repair
from gaia_sessions.store import root as roots
from gaia_sessions.store.sweep import LEFTOVER
from gaia_sessions.usecases.reconcile_rules import CLOSING, UNSURE

from .findings import ailing, counted, fine, shell, some
from .machine import SET_THE_CLOCK, clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.store.directory import Directory

    from .case import Case
    from .findings import Finding
    from .tree import Entry

_ONLY_CORRUPT = ("cleanup", "--hours", "1000000", "--corrupt")


def corrupt(case: Case) -> Finding:
    """What is no record is kept until somebody mends or removes it."""
    found = case.records.corrupt
    if not found:
        return fine("corrupt", "none")
    told = f"{counted(len(found), 'session')}: {some(found.values())}"
    if case.is_ours:  # a record with one wrong word in it is not lost
        these = "the file, or remove the session" if len(found) == 1 else "the files, or remove the sessions"
        told += f"; correct {these} with:"
    return ailing("corrupt", told, case.command(*_ONLY_CORRUPT))


def readable(case: Case) -> Finding:
    """What the system refuses to read, unless the owner of a file or its mode says why."""
    told_of = {entry.path for entry in (*case.strange, *case.open_to_others)}
    refused = case.records.refused.items()
    found = {agent_id: why for agent_id, why in refused if not _is_in(os.path.join(case.root, agent_id), told_of)}
    if not found:
        newer = case.records.newer
        return fine("readable", f"all, but {len(newer)} of a later version, for showing only" if newer else "all")
    return ailing("readable", some(found.values()), None)


def _is_in(folder: str, paths: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for path in paths)


def times(case: Case) -> Finding:
    """Work whose last activity lies in the future is neither resumed nor removed; a heartbeat sets it right."""
    ahead = case.records.ahead
    if not ahead:
        return fine("times", "no activity lies in the future")
    told = f"the last activity lies in the future: {some(ahead)}"
    if not clock(case)["ok"]:
        return ailing("times", told, SET_THE_CLOCK)
    mends = [case.command("update", agent_id) for agent_id, final in ahead.items() if not final]
    over = [os.path.join(case.root, agent_id) for agent_id, final in ahead.items() if final]
    return ailing("times", told, " && ".join([*mends, *([shell("rm", "-r", "--", *over)] if over else [])]))


def runs(case: Case) -> Finding:
    """Runs that are over though nobody ended them; what is unsure may well go on."""
    verdicts = [verdict["verdict"] for verdict in case.verdicts]
    over = [verdict for verdict in case.verdicts if verdict["verdict"] in CLOSING]
    told = f"{counted(len(verdicts), 'run')} without an end, {verdicts.count(UNSURE)} unsure"
    if not over:
        return fine("runs", told)
    proved = some(f"{verdict['agent_id']} {verdict['verdict']}: {verdict['evidence']}" for verdict in over)
    return ailing("runs", f"{told}, {len(over)} proved to be over: {proved}", case.command("reconcile"))


def hints(case: Case) -> Finding:
    """Wrong hints cost time, never an answer."""
    root = roots.opened(case.root)
    if root is None:
        return fine("hints", "none yet")
    with root:
        if _is_in(os.path.join(case.root, index.FOLDER), {entry.path for entry in case.strange}):
            return fine("hints", "not checked: see the finding `owner`")
        if case.records.total and not index.is_complete(root):
            told = "not vouched for since the system started: every look-up reads all sessions"
            return ailing("hints", told, case.command("doctor", "--fix"), fixable=True)
        stale = _stale(case, root)
    if not stale:
        return fine("hints", f"{len(case.records.active)} active sessions, all found at once")
    return ailing("hints", f"stale: {some(stale)}", case.command("doctor", "--fix"), fixable=True)


def _stale(case: Case, root: Directory) -> list[str]:
    """Looked at twice: somebody may have created or ended a session since the records were read."""
    doubtful = _doubtful(case, root)
    marked, named = set(index.marked(root, index.ACTIVE)), index_repair.named(root) if doubtful else set()
    return sorted(agent_id for agent_id in doubtful if _is_wrong(case, agent_id, marked, named))


def _doubtful(case: Case, root: Directory) -> set[str]:
    """Where the marks and the records disagree; what cannot be read may be active."""
    unsure = {*case.records.corrupt, *case.records.refused}
    dangling = index_repair.named(root) - set(roots.sessions(root))
    return ((set(index.marked(root, index.ACTIVE)) ^ case.records.active) - unsure) | dangling


def _is_wrong(case: Case, agent_id: str, marked: set[str], named: set[str]) -> bool:
    try:
        return is_open(case.store.read(agent_id)) != (agent_id in marked)
    except (SessionNotFound, InvalidId):
        return agent_id in named
    except SessionsError:
        return False


def leftovers(case: Case) -> Finding:
    """What killed processes left: temporary files, sessions half made, sessions half removed; by the names we give."""
    ours = (entry for entry in case.entries if entry.owner == case.entries[0].owner)
    found = [entry.path for entry in ours if _is_left(case, entry)]
    if not found:
        return fine("leftovers", "none")
    by_hand = shell("rm", "-r", "--", *found)
    mend = by_hand if "leftovers" in case.tried else case.command("doctor", "--fix")
    return ailing("leftovers", f"{len(found)}: {some(found)}", mend, fixable=True)


def _is_left(case: Case, entry: Entry) -> bool:
    folder, name = os.path.split(entry.path)
    if folder == os.path.join(case.root, roots.TRASH):  # what is moved there keeps its age, the folder does not
        return atomic.without_chance(name) != "" and _is_old(case, os.stat(folder).st_mtime)
    staged = folder == os.path.join(case.root, roots.STAGE) and is_agent_id(atomic.without_chance(name))
    temporary = not entry.is_folder and atomic.is_temporary(name)
    return (staged or (temporary and not _is_inside(case, folder))) and _is_old(case, entry.changed)


def _is_inside(case: Case, folder: str) -> bool:
    """Whether ``folder`` is a leftover's own, or in one."""
    inside = (os.path.join(case.root, name) + os.sep for name in (roots.STAGE, roots.TRASH))
    return any(folder.startswith(place) for place in inside)


def _is_old(case: Case, changed: float) -> bool:
    return changed < (case.now - LEFTOVER).timestamp()


def inbox(case: Case) -> Finding:
    """Events that wait are applied by whoever writes next, as soon as they can be: for a day all is as it should be."""
    waiting = list(case.store.deferred())
    late = [name for name, event in waiting if _has_waited(case, event)]
    if not late:
        return fine("inbox", f"{counted(len(waiting), 'event')} waiting")
    told = f"{counted(len(waiting), 'event')} waiting, {len(late)} of them too long: {some(late)}"
    by_hand = shell("rm", "--", *(os.path.join(case.root, roots.INBOX, name) for name in late))
    mend = by_hand if "inbox" in case.tried else case.command("reconcile")
    return ailing("inbox", told, mend, fixable=True)


def _has_waited(case: Case, event: dict[str, Json] | SessionsError) -> bool:
    if isinstance(event, SessionsError):
        return True
    try:
        return has_waited_too_long(event, case.now)
    except ValueError:
        return True
