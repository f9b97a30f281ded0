"""Checks of the content of the root: records, their times and runs, the index, the inbox, and leftovers."""

from __future__ import annotations

import os

from gaia_sessions.errors import SessionsError, StoreFailure, plural
from gaia_sessions.ingest.deferred import has_waited_too_long
from gaia_sessions.session import index_keys
from gaia_sessions.session.figures import read_figures
from gaia_sessions.session.verdicts import CLOSING_VERDICTS, UNSURE
from gaia_sessions.store import atomic, documents, figures_file, index, index_repair, reading, record_repair
from gaia_sessions.store import root as roots
from gaia_sessions.store.sweep import LEFTOVER_AGE
from gaia_sessions.system.project_root import claude_folder

from .findings import PROBLEM, edit_command, first_few, moving_text, not_checked, ok, problem, shell_command, warning
from .inspection import Inspection
from .machine import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.store.directory import Directory

    from .findings import Finding
    from .own_files import TreeEntry

_REMOVE_CORRUPT = ("cleanup", "--hours", "1000000", "--corrupt")


def corrupt(inspection: Inspection) -> list[Finding]:
    """Finds records that are not valid, and folders without a record."""
    # No command is allowed to remove files that are not ours: the root of a downloaded project can be a link, and a
    # folder named like a session can have files of others.
    by_hand = {path: f"{path}: a folder without a record" for path in _folders_without_record(inspection)}
    kept, others, whole = {}, {}, {}
    repairable = _repairable(inspection)
    above_open = inspection.records.above_open()
    for agent_id, why in sorted(inspection.records.corrupt.items()):
        folder = os.path.join(inspection.root, agent_id)
        file = os.path.join(folder, reading.RECORD)
        if os.path.islink(folder) or os.path.isdir(file):
            by_hand[folder] = why
        elif agent_id in repairable:
            whole[agent_id] = why
        elif agent_id in above_open:
            kept[file] = why
        else:
            others[agent_id] = why
    is_linked = any(map(os.path.islink, (inspection.root, os.path.dirname(inspection.root))))
    removable = {} if is_linked else {path: why for path, why in by_hand.items() if _has_only_ours(path)}
    not_ours = {path: why for path, why in by_hand.items() if path not in removable}
    removal = f"{shell_command('rm', '-r', '--', *removable)} && {inspection.command('doctor', '--fix')}"
    removing_others = ("rm", "--force", *others) if whole else _REMOVE_CORRUPT  # this command removes all of them
    found = [
        _corrupt(
            whole,
            "the file begins with a whole record; to keep the record, type:",
            inspection.command("repair", *whole),
        ),
        _corrupt(others, "correct the file, or remove the session:", inspection.command(*removing_others)),
        _corrupt(kept, "an open session is below it, so correct the file:", " && ".join(map(edit_command, kept))),
        _corrupt(removable, "put its record back, or remove the folder:", removal),
        _corrupt(not_ours, "look at its content, and put its record back or move it away", None),
    ]
    return [*filter(None, found)] or [ok("corrupt", "none")]


def _repairable(inspection: Inspection) -> set[str]:
    """Returns the sessions whose file begins with a whole record and has more text after the record."""
    with roots.open_root(inspection.root) as root:
        return {one for one in inspection.records.corrupt if record_repair.is_repairable(root, one)}


def _has_only_ours(folder: str) -> bool:
    """Returns whether ``folder`` is a link, or has only files of a session and empty folders named like these files."""
    if os.path.islink(folder):
        return True
    try:
        with os.scandir(folder) as entries:
            return all(
                reading.is_own_name(entry.name) and not (entry.is_dir(follow_symlinks=False) and os.listdir(entry))
                for entry in entries
            )
    except OSError:
        return False


def _corrupt(found: Mapping[str, str], advice: str, command: str | None) -> Finding | None:
    """Returns the finding about these sessions; None if there are none."""
    if not found:
        return None
    return problem(
        "corrupt", f"{plural(len(found), 'corrupt session')}: {first_few(found.values())}; {advice}", command
    )


def _folders_without_record(inspection: Inspection) -> list[str]:
    """Returns folders without a record that are named like sessions; outside projects, only with files of ours."""
    with roots.open_root(inspection.root) as root:
        names = [name for name in reading.session_names(root) if not reading.has_record(root, name)]
    is_project = claude_folder(inspection.root) is not None
    paths = (os.path.join(inspection.root, name) for name in sorted(names))
    return [path for path in paths if is_project or any(map(reading.is_own_name, _names_in(path)))]


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # we are not allowed to read the folder
        return []


def readable(inspection: Inspection) -> Finding:
    """Finds records that cannot be read, unless the owner or the mode of a file explains it."""
    found = _unexplained(inspection, inspection.records.refused)
    if found:
        return problem("readable", first_few(found.values()), None)
    moving = inspection.records.moving
    if moving:
        return problem("readable", moving_text(moving), None)
    newer = inspection.records.newer
    if newer:
        message = (
            f"{plural(len(newer), 'session')} of a later version can be shown, but not changed: {first_few(newer)}"
        )
        return warning("readable", message)
    return ok("readable", "all")


def _unexplained(inspection: Inspection, refused: Mapping[str, str]) -> dict[str, str]:
    """Returns the refused sessions for which no other finding says why."""
    root = os.path.join(inspection.root, "")
    entries = (*inspection.entries_of_others, *inspection.entries_with_wrong_mode)
    explained = {entry.path.removeprefix(root).partition(os.sep)[0] for entry in entries}
    return {agent_id: why for agent_id, why in refused.items() if agent_id not in explained}


def marks(inspection: Inspection) -> list[Finding]:
    """Finds marks (files that cancel sessions) that cannot be read."""
    unread = _unexplained(inspection, inspection.records.unread_marks)
    found = [_mark_problem(inspection, agent_id, unread.get(agent_id)) for agent_id in inspection.records.no_marks]
    found += [_mark_problem(inspection, agent_id, why) for agent_id, why in unread.items()]
    return found or [ok("marks", "all")]


def _mark_problem(inspection: Inspection, agent_id: str, why: str | None) -> Finding:
    """Returns the finding about a mark that is invalid, or that cannot be read for the reason ``why``."""
    path = os.path.join(inspection.root, agent_id, reading.CANCELLED)
    message = f"{why or f'{path}: not a valid mark'}; so {agent_id} and all sessions below it count as cancelled"
    is_no_file = os.path.islink(path) or os.path.isdir(path)
    if why and not is_no_file:
        return problem("marks", message, None)
    removal = f"{shell_command('rm', '-r', '--', path)} && " if is_no_file else ""
    message = f"{message}; if {agent_id} should not be cancelled, remove the file; otherwise, cancel {agent_id} again:"
    return problem("marks", message, removal + inspection.command("cancel", agent_id))


def shared(inspection: Inspection) -> list[Finding]:
    """Finds shared state that cannot be read: writes to it are refused."""
    with roots.open_root(inspection.root) as root:
        if not root.is_there:
            return [not_checked("shared", "the shared state, because there is no session yet")]
        found = [error for error in documents.each(root) if isinstance(error, StoreFailure)]
    return [
        problem(
            "shared",
            f"{error.path}: {error.reason}; correct the file, or move the file away, which clears its keys:",
            shell_command("mv", "--", error.path, f"{error.path}.away"),
        )
        for error in found
    ] or [ok("shared", "all can be read")]


def figures(inspection: Inspection) -> Finding:
    """Checks the figures of removed sessions: while the file is unreadable, removed sessions leave no figures."""
    path = os.path.join(inspection.root, roots.STATS)
    count = unread = 0
    with roots.open_root(inspection.root) as root:
        if not root.is_there:
            return not_checked("figures", "the figures of removed sessions, because there is no session yet")
        try:
            for line in figures_file.values(root):
                count += 1
                unread += line is None or read_figures(line) is None
        except StoreFailure as error:
            message = f"{path}: {error.reason}; removed sessions are not counted now; move the file away:"
            return problem("figures", message, shell_command("mv", "--", path, f"{path}.away"))
    if unread:
        what = f"{unread} of {plural(count, 'line')} cannot be read, and {'is' if unread == 1 else 'are'} not counted"
        return warning("figures", f"{path}: {what}; you need not do anything")
    return ok("figures", f"{plural(count, 'line')} about removed sessions")


def times(inspection: Inspection) -> Finding:
    """Finds sessions whose last activity is in the future: they are neither resumed nor removed."""
    in_future = inspection.records.in_future
    if not in_future:
        return ok("times", "no activity is in the future")
    message = f"the last activity is in the future: {first_few(in_future)}"
    if clock(inspection)["state"] == PROBLEM:
        return problem("times", message, None)
    fixes = [inspection.command("update", agent_id) for agent_id, final in in_future.items() if not final]
    final_ones = [agent_id for agent_id, final in in_future.items() if final]
    fixes += [inspection.command("rm", *final_ones)] if final_ones else []
    return problem("times", message, " && ".join(fixes))


def answers(inspection: Inspection) -> Finding:
    """Finds invalid answers in records, which no command shows."""
    odd = inspection.records.odd_answers
    if not odd:
        return ok("answers", "all valid")
    files = [os.path.join(inspection.root, agent_id, reading.RECORD) for agent_id in odd]
    said = first_few(f"{agent_id}: {first_few(words)}" for agent_id, words in odd.items())
    return problem(
        "answers",
        f"{plural(len(odd), 'record')} with an invalid answer, which no command shows: {said}; "
        "remove the answer from the file:",
        " && ".join(map(edit_command, files)),
    )


def runs(inspection: Inspection) -> Finding:
    """Finds runs that have ended although no end is recorded. An unsure run is perhaps still at work."""
    verdicts = [verdict["verdict"] for verdict in inspection.run_verdicts]
    ended = [verdict for verdict in inspection.run_verdicts if verdict["verdict"] in CLOSING_VERDICTS]
    message = f"{plural(len(verdicts), 'run')} without an end, {verdicts.count(UNSURE)} unsure"
    if not ended:
        return ok("runs", message)
    proved = first_few(f"{verdict['agent_id']} {verdict['verdict']}: {verdict['evidence']}" for verdict in ended)
    return problem("runs", f"{message}, {len(ended)} proved to have ended: {proved}", inspection.command("reconcile"))


def hints(inspection: Inspection) -> Finding:
    """Checks whether the index is complete and fits the records. A wrong index costs time, never an answer."""
    with roots.open_root(inspection.root) as root:
        if not root.is_there:
            return not_checked("hints", "the index, because there is no session yet")
        folder = os.path.join(inspection.root, roots.INDEX, "")
        if any(os.path.join(entry.path, "").startswith(folder) for entry in inspection.entries_of_others):
            return not_checked("hints", "the index, because it belongs to another user")
        if inspection.records.total and not index.is_complete(root):
            message = "the index may be incomplete since the system started, so every look-up reads all sessions"
            return problem("hints", message, inspection.command("doctor", "--fix"), fixable=True)
        stale = _stale_ids(inspection, root)
    if not stale:
        return ok("hints", f"{plural(len(inspection.records.active), 'open session')}, all in the index")
    return problem(
        "hints", f"the index is stale for {first_few(stale)}", inspection.command("doctor", "--fix"), fixable=True
    )


def _stale_ids(inspection: Inspection, root: Directory) -> list[str]:
    """Returns the sessions for which the index is wrong. Reads twice: a session can change during the first reading."""
    found = _disagreeing(inspection, root)
    if found:
        found &= _disagreeing(Inspection(inspection.root, inspection.environ, inspection.now), root)
    return sorted(found)


def _disagreeing(inspection: Inspection, root: Directory) -> set[str]:
    """Returns the sessions for which index and records differ, without unreadable sessions: they can be active."""
    unsure = {*inspection.records.corrupt, *inspection.records.refused}
    dangling = index_repair.indexed_ids(root) - set(reading.session_names(root))
    return ((set(index.ids_under(root, index_keys.ACTIVE_KEY) or ()) ^ inspection.records.active) - unsure) | dangling


def messages(inspection: Inspection) -> Finding:
    """Finds messages that a write moved aside; only a person knows which of these messages are missing."""
    found = [entry.path for entry in inspection.entries if os.path.basename(entry.path) == reading.ASIDE]
    if not found:
        return ok("messages", "none kept aside")
    message = (
        f"messages that no record has, because a write was interrupted or an older record was restored: "
        f"{first_few(found)}; add each message that you miss with "
        "'gaia-sessions transcript ID --append ROLE TEXT', then remove the file"
    )
    return problem("messages", message, None)


def leftovers(inspection: Inspection) -> Finding:
    """Finds what killed processes left: temporary files, incomplete sessions, removed sessions."""
    same_owner = (entry for entry in inspection.entries if entry.owner == inspection.entries[0].owner)
    found = [entry.path for entry in same_owner if _is_leftover(inspection, entry)]
    if not found:
        return ok("leftovers", "none")
    by_hand = shell_command("rm", "-r", "--", *found)
    fix = by_hand if "leftovers" in inspection.attempted_fixes else inspection.command("doctor", "--fix")
    message = f"{plural(len(found), 'leftover')} of killed processes: {first_few(found)}"
    return problem("leftovers", message, fix, fixable=True)


def _is_leftover(inspection: Inspection, entry: TreeEntry) -> bool:
    folder, name = os.path.split(entry.path)
    if folder == os.path.join(inspection.root, roots.TRASH):  # a moved file keeps its time; the folder gets a new one
        return _is_old(inspection, os.stat(folder).st_mtime)
    staged = folder == os.path.join(inspection.root, roots.STAGE)
    unfinished = not entry.is_folder and atomic.target_of(name) and not _is_inside(inspection, folder)
    return bool(staged or unfinished) and _is_old(inspection, entry.changed)


def _is_inside(inspection: Inspection, folder: str) -> bool:
    """Returns whether ``folder`` is a leftover, or inside one."""
    inside = (os.path.join(inspection.root, name) + os.sep for name in (roots.STAGE, roots.TRASH))
    return any(folder.startswith(place) for place in inside)


def _is_old(inspection: Inspection, changed: float) -> bool:
    return changed < (inspection.now - LEFTOVER_AGE).timestamp()


def inbox(inspection: Inspection) -> Finding:
    """Checks the waiting events. The next write applies them; waiting for up to a day is normal."""
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
