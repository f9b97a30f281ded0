"""Checks of what is in the root: records, their times and runs, hints, the inbox, and what killed processes left."""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidId, SessionNotFound, SessionsError, plural
from gaia_sessions.ingest.deferred import has_waited_too_long
from gaia_sessions.session.ids import is_agent_id
from gaia_sessions.session.record import is_open
from gaia_sessions.store import atomic, index, index_repair
from gaia_sessions.store import root as roots
from gaia_sessions.store.sweep import LEFTOVER_AGE
from gaia_sessions.usecases.reconcile_rules import CLOSING_VERDICTS, UNSURE

from .findings import first_few, ok, problem, shell_command
from .machine import SET_CLOCK_COMMAND, clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.store.directory import Directory

    from .findings import Finding
    from .inspection import Inspection
    from .tree import TreeEntry

_REMOVE_CORRUPT = ("cleanup", "--hours", "1000000", "--corrupt")


def corrupt(inspection: Inspection) -> Finding:
    """What is no record is kept until somebody mends or removes it."""
    found = inspection.records.corrupt
    if not found:
        return ok("corrupt", "none")
    message = f"{plural(len(found), 'session')}: {first_few(found.values())}"
    if inspection.is_ours:  # a record with one wrong word in it is not lost
        these = "the file, or remove the session" if len(found) == 1 else "the files, or remove the sessions"
        message += f"; correct {these} with:"
    return problem("corrupt", message, inspection.command(*_REMOVE_CORRUPT))


def readable(inspection: Inspection) -> Finding:
    """What the system refuses to read, unless the owner of a file or its mode says why."""
    explained = {entry.path for entry in (*inspection.entries_of_others, *inspection.entries_with_wrong_mode)}
    refused = inspection.records.refused.items()
    found = {
        agent_id: why for agent_id, why in refused if not _is_in(os.path.join(inspection.root, agent_id), explained)
    }
    if not found:
        newer = inspection.records.newer
        return ok("readable", f"all, but {len(newer)} of a later version, for showing only" if newer else "all")
    return problem("readable", first_few(found.values()), None)


def _is_in(folder: str, paths: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for path in paths)


def times(inspection: Inspection) -> Finding:
    """Work whose last activity lies in the future is neither resumed nor removed; a heartbeat sets it right."""
    in_future = inspection.records.in_future
    if not in_future:
        return ok("times", "no activity lies in the future")
    message = f"the last activity lies in the future: {first_few(in_future)}"
    if not clock(inspection)["ok"]:
        return problem("times", message, SET_CLOCK_COMMAND)
    fixes = [inspection.command("update", agent_id) for agent_id, final in in_future.items() if not final]
    final_ones = [os.path.join(inspection.root, agent_id) for agent_id, final in in_future.items() if final]
    return problem(
        "times", message, " && ".join([*fixes, *([shell_command("rm", "-r", "--", *final_ones)] if final_ones else [])])
    )


def runs(inspection: Inspection) -> Finding:
    """Runs that are over though nobody ended them; what is unsure may well go on."""
    verdicts = [verdict["verdict"] for verdict in inspection.run_verdicts]
    ended = [verdict for verdict in inspection.run_verdicts if verdict["verdict"] in CLOSING_VERDICTS]
    message = f"{plural(len(verdicts), 'run')} without an end, {verdicts.count(UNSURE)} unsure"
    if not ended:
        return ok("runs", message)
    proved = first_few(f"{verdict['agent_id']} {verdict['verdict']}: {verdict['evidence']}" for verdict in ended)
    return problem("runs", f"{message}, {len(ended)} proved to be over: {proved}", inspection.command("reconcile"))


def hints(inspection: Inspection) -> Finding:
    """Wrong hints cost time, never an answer."""
    root = roots.open_if_exists(inspection.root)
    if root is None:
        return ok("hints", "none yet")
    with root:
        if _is_in(os.path.join(inspection.root, roots.INDEX), {entry.path for entry in inspection.entries_of_others}):
            return ok("hints", "not checked: see the finding `owner`")
        if inspection.records.total and not index.is_complete(root):
            message = "not vouched for since the system started: every look-up reads all sessions"
            return problem("hints", message, inspection.command("doctor", "--fix"), fixable=True)
        stale = _stale_hints(inspection, root)
    if not stale:
        return ok("hints", f"{len(inspection.records.active)} active sessions, all found at once")
    return problem("hints", f"stale: {first_few(stale)}", inspection.command("doctor", "--fix"), fixable=True)


def _stale_hints(inspection: Inspection, root: Directory) -> list[str]:
    """Looked at twice: somebody may have created or ended a session since the records were read."""
    disagreeing = _disagreeing(inspection, root)
    active_ids, hinted_ids = (
        set(index.ids_under(root, index.ACTIVE_KEY)),
        index_repair.indexed_ids(root) if disagreeing else set(),
    )
    return sorted(agent_id for agent_id in disagreeing if _is_wrong(inspection, agent_id, active_ids, hinted_ids))


def _disagreeing(inspection: Inspection, root: Directory) -> set[str]:
    """Where the marks and the records disagree; what cannot be read may be active."""
    unsure = {*inspection.records.corrupt, *inspection.records.refused}
    dangling = index_repair.indexed_ids(root) - set(roots.session_names(root))
    return ((set(index.ids_under(root, index.ACTIVE_KEY)) ^ inspection.records.active) - unsure) | dangling


def _is_wrong(inspection: Inspection, agent_id: str, active_ids: set[str], hinted_ids: set[str]) -> bool:
    try:
        return is_open(inspection.store.read(agent_id)) != (agent_id in active_ids)
    except (SessionNotFound, InvalidId):
        return agent_id in hinted_ids
    except SessionsError:
        return False


def leftovers(inspection: Inspection) -> Finding:
    """What killed processes left: temporary files, sessions half made, sessions half removed; by the names we give."""
    same_owner = (entry for entry in inspection.entries if entry.owner == inspection.entries[0].owner)
    found = [entry.path for entry in same_owner if _is_leftover(inspection, entry)]
    if not found:
        return ok("leftovers", "none")
    by_hand = shell_command("rm", "-r", "--", *found)
    fix = by_hand if "leftovers" in inspection.attempted_fixes else inspection.command("doctor", "--fix")
    return problem("leftovers", f"{len(found)}: {first_few(found)}", fix, fixable=True)


def _is_leftover(inspection: Inspection, entry: TreeEntry) -> bool:
    folder, name = os.path.split(entry.path)
    if folder == os.path.join(inspection.root, roots.TRASH):  # what is moved there keeps its age, the folder does not
        return atomic.without_random_suffix(name) != "" and _is_old(inspection, os.stat(folder).st_mtime)
    staged = folder == os.path.join(inspection.root, roots.STAGE) and is_agent_id(atomic.without_random_suffix(name))
    temporary = not entry.is_folder and atomic.is_temporary(name)
    return (staged or (temporary and not _is_inside(inspection, folder))) and _is_old(inspection, entry.changed)


def _is_inside(inspection: Inspection, folder: str) -> bool:
    """Whether ``folder`` is a leftover's own, or in one."""
    inside = (os.path.join(inspection.root, name) + os.sep for name in (roots.STAGE, roots.TRASH))
    return any(folder.startswith(place) for place in inside)


def _is_old(inspection: Inspection, changed: float) -> bool:
    return changed < (inspection.now - LEFTOVER_AGE).timestamp()


def inbox(inspection: Inspection) -> Finding:
    """Events that wait are applied by whoever writes next, as soon as they can be: for a day all is as it should be."""
    waiting = list(inspection.store.deferred())
    late = [name for name, event in waiting if _has_waited(inspection, event)]
    if not late:
        return ok("inbox", f"{plural(len(waiting), 'event')} waiting")
    message = f"{plural(len(waiting), 'event')} waiting, {len(late)} of them too long: {first_few(late)}"
    by_hand = shell_command("rm", "--", *(os.path.join(inspection.root, roots.INBOX, name) for name in late))
    fix = by_hand if "inbox" in inspection.attempted_fixes else inspection.command("reconcile")
    return problem("inbox", message, fix, fixable=True)


def _has_waited(inspection: Inspection, event: dict[str, Json] | SessionsError) -> bool:
    if isinstance(event, SessionsError):
        return True
    try:
        return has_waited_too_long(event, inspection.now)
    except ValueError:
        return True
