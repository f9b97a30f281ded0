"""Copies all sessions of a folder to a server, or of a server to a folder.

An open session moves. It is copied with a fence, then fenced at its source, and only then is the fence of the copy
taken away and the source removed. So at no moment do two stores accept changes of it, and a killed copy can be
repeated: what is fenced at the source is whole at the target.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from functools import partial
from shlex import quote

from gaia_sessions.errors import (
    Conflict,
    NoSuchFolder,
    SessionNotFound,
    SessionsError,
    StoreFailure,
    UsageError,
    well_formed,
)
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.record import (
    as_stored,
    check_readable,
    encode,
    has_newer_schema,
    is_open,
    is_stand_in,
    moving_of,
    parent_id_of,
    with_moving,
)
from gaia_sessions.session.runs import has_ended
from gaia_sessions.session.shared_keys import APP, USER, scopes_of
from gaia_sessions.session.updates import check_writable
from gaia_sessions.store import document_lock_key
from gaia_sessions.store.inbox_keys import all_keys, may_change
from gaia_sessions.store.reading import RECORD, is_damaged_name, is_file_name
from gaia_sessions.store.settled import settled
from gaia_sessions.system.project_root import is_on_server

from . import at
from .reconciling import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypedDict

    from gaia_sessions.session.cancellation import Mark
    from gaia_sessions.session.schema import Moving, Record
    from gaia_sessions.session.shared_keys import Document, Scope
    from gaia_sessions.store.port import RecordOrError, Store

    from .at import Place
    from .reconciling import SkippedSession

    class NotCopied(TypedDict):
        """A session, or the state that sessions of an app share, that was not copied.

        Keys:
            what: the ID of the session, or the names of the app and of its user.
            reason, detail: the code and the message of an error.
        """

        what: str
        reason: str
        detail: str

    class Copied(TypedDict):
        """The report on a copy. ``copied``, ``moved`` and ``already_there`` have IDs of sessions.

        Keys:
            copied: ended sessions that are in both roots now.
            moved: open sessions that are only in the target now.
            already_there: ended sessions that the target had already, with equal bytes.
            stayed: open sessions that somebody works on, or that belong to one of those, with the reason.
            documents: how much state of apps and users moved.
            figures: how many lines of figures of removed sessions were copied.
            waiting: how many events still waited in the source when the copy began.
        """

        source: str
        target: str
        copied: list[str]
        moved: list[str]
        already_there: list[str]
        stayed: list[SkippedSession]
        failed: list[NotCopied]
        documents: int
        figures: int
        waiting: int


_ONE_VALUE = "set it to one value in both roots, then copy again"

_LOCK = ("copy",)
"""The key of the lock, in the folder, that one copy at a time holds."""


def copy_to(
    place: Place, target: str | os.PathLike[str], *, on_session: Callable[[int, int], object] | None = None
) -> Copied:
    """[Copies](many-machines.md#move-a-project-to-the-server-and-back) all sessions to a server, or to a folder.

    Ended sessions are copied. Open sessions that nobody works on, and the state that sessions share, move: they are
    removed here. The waiting events are applied first, and runs that provably ended are closed. Each session keeps its
    ID and its bytes, which are compared after they were written. A copy that was interrupted can be repeated.

    Args:
        target: a folder if this root is on a server, else the URL of a server.
        on_session: is called now and then with the number of sessions that are done, and of all.

    Raises:
        UsageError: both roots are folders, or both are on servers.
        StoreFailure: a root cannot be used. What was copied before stays.
        LockTimeout: another copy is at work on the folder.
    """
    there = at.Place(os.fspath(target), {"lock_timeout": place.config.lock_timeout})
    if is_on_server(place.root) == is_on_server(there.root):
        kind = "servers" if is_on_server(place.root) else "folders"
        raise UsageError(f"both roots are {kind}", "name a folder and the URL of a server")
    if not place.is_there:
        raise NoSuchFolder(place.root)
    reconcile(place)
    with place.store as source, there.store as copies:
        source.durable = copies.durable = True  # what is removed here must be on the disk there
        copies.keeps_figures = True  # these are not of sessions that are removed now
        copies.keep_days()  # asks a server once: if it is away, each session would ask in vain
        folder = source if place.folder else copies
        with folder.lock_key(_LOCK):
            return _Copy(source, copies, on_session).whole()


class _Copy:
    """One copy of all that ``source`` has to ``target``."""

    def __init__(self, source: Store, target: Store, on_session: Callable[[int, int], object] | None) -> None:
        self._source = source
        self._target = target
        self._on_session = on_session or (lambda _number, _count: None)
        self._open: list[Record] = []
        self._reasons: dict[str, str] = {}
        self._groups: list[set[str]] = []
        self._sharing: dict[Scope, set[str]] = {}
        self._fenced: list[str] = []
        waiting = source.waiting()
        self._waiting_keys = all_keys(waiting)
        self._report: Copied = {
            "source": well_formed(source.root),
            "target": well_formed(target.root),
            "copied": [],
            "moved": [],
            "already_there": [],
            "stayed": [],
            "failed": [],
            "documents": 0,
            "figures": 0,
            "waiting": len(waiting),
        }

    def whole(self) -> Copied:
        """Copies everything; if one session cannot be copied, the others still are."""
        self._add_figures()
        ids = sorted(self._source.ids())
        for number, agent_id in enumerate(ids, 1):
            self._try(agent_id, self._copy_ended)
            self._on_session(number - len(self._open) - len(self._fenced), len(ids))
        stays = self._reasons_to_stay()
        self._report["stayed"] = [{"agent_id": agent_id, "reason": reason} for agent_id, reason in stays.items()]
        for agent_id in sorted(self._reasons.keys() - stays.keys()):
            if not self._is_with_failed(agent_id):
                self._try(agent_id, self._fence)
        self._move_documents()
        for number, agent_id in enumerate(self._fenced, 1):
            self._try(agent_id, self._release)
            self._on_session(len(ids) - len(self._fenced) + number, len(ids))
        self._name_halves()
        return self._report

    def _try(self, what: str, act: Callable[[str], None]) -> None:
        try:
            act(what)
        except SessionNotFound as error:
            if error.agent_id != what or act == self._release:
                self._fail(what, error)
        except SessionsError as error:
            if isinstance(error, StoreFailure) and error.path in (self._source.root, self._target.root):
                raise  # a server is away, or refuses this role: it would refuse each session
            self._fail(what, error)

    def _fail(self, what: str, error: SessionsError) -> None:
        self._report["failed"].append(
            {
                "what": well_formed(what),
                "reason": error.code,
                "detail": "; ".join(filter(None, (str(error), error.hint))),
            }
        )

    def _add_figures(self) -> None:
        """Adds the lines that the target does not have yet."""
        there = Counter(dump_line(line) for line in self._target.figures() if line is not None)
        missing = []
        for line in filter(None, self._source.figures()):
            data = dump_line(line)
            there[data] -= 1
            if there[data] < 0:
                missing.append(line)
        if missing:
            self._target.add_figures(missing)
        self._report["figures"] = len(missing)

    def _copy_ended(self, agent_id: str) -> None:
        """Copies the session if it has ended; notes it if it is open."""
        record = self._source.read(agent_id)
        if is_stand_in(record):
            return
        if self._is_ours(record):
            self._fenced.append(agent_id)
            return
        check_writable(record)
        if is_open(record):
            self._open.append(record)
            return
        if self._waiting_keys != set() and may_change(record, self._waiting_keys):
            raise StoreFailure("copy", agent_id, "an event waits that could change the session")
        with self._source.open(agent_id) as session:
            record = session.record
            if is_open(record):
                raise _changed_meanwhile("copy", agent_id)
            files = self._files(record)
        if self._has_copy(record, files):
            self._report["already_there"].append(agent_id)
        else:
            self._target.put(agent_id, files)
            self._report["copied"].append(agent_id)

    def _files(self, record: Record) -> dict[str, bytes]:
        """Returns what counts of the session's files."""
        files = self._source.files(record["agent_id"])
        others = [name for name in files if is_damaged_name(name) or not is_file_name(name)]
        if others and is_open(record):  # it is removed here
            reason = f"{others[0]} in its folder would be lost"
            raise StoreFailure("move", record["agent_id"], reason, "put that file elsewhere")
        return {RECORD: files[RECORD], **settled(record, files)}

    def _has_copy(self, record: Record, files: dict[str, bytes]) -> bool:
        """Returns whether the target has the session with equal bytes; removes what a killed copy left there.

        Raises ``Conflict`` if the target has another session with the ID.
        """
        agent_id = record["agent_id"]
        try:
            found = self._target.read(agent_id)
        except SessionNotFound:
            return False
        is_replaceable = partial(_is_replaceable, record)
        if is_replaceable(agent_id, found):
            self._remove(self._target, agent_id, is_replaceable)
            return False
        check_writable(found)
        stored = self._target.files(agent_id)
        there = {RECORD: stored[RECORD], **settled(found, stored)}
        if is_open(found) or not _is_earlier(there, found, files, record):
            raise _differs(record, found, self._source.root, self._target.root)
        if there != files:  # a late event changed the source after an earlier copy
            self._remove(self._target, agent_id, partial(_is_same, found))
        return there == files

    def _is_ours(self, record: Record) -> bool:
        """Whether the session is being moved, and its other half is in the target, or was.

        The roots may have other names than when the move began.
        """
        moving = moving_of(record)
        if moving is None:
            return False
        try:
            found = self._target.read(record["agent_id"])
            return found["created_at"] == record["created_at"] and not is_stand_in(found)
        except SessionNotFound:  # if the names are the same, ``_release`` says that the other half is gone
            return (moving["source"], moving["target"]) == (self._source.root, self._target.root)

    def _remove(self, store: Store, agent_id: str, should_delete: Callable[[str, RecordOrError], bool]) -> None:
        for _, outcome in store.delete_each([agent_id], should_delete, timeout=None):
            if isinstance(outcome, SessionsError):
                raise outcome
            if not outcome:
                raise StoreFailure("move", agent_id, "another process changed it", "copy again")

    def _judge(self, record: Record, agent_id: str) -> None:
        """Notes what belongs to an open session, and why it cannot move; an empty reason means that it can."""
        self._groups.append({agent_id, *filter(None, [parent_id_of(record)])})  # those above may be unreadable
        for scope in scopes_of(record):
            self._sharing.setdefault(scope, set()).add(agent_id)
        self._groups.append({agent_id, *self._source.ancestors(record)})
        self._files(record)  # raises if something in its folder would be lost
        self._reasons[agent_id] = self._reason_to_stay(record)

    def _reasons_to_stay(self) -> dict[str, str]:
        """Returns the open sessions that cannot move, each with the reason; what belongs together stays together."""
        for record in self._open:
            self._try(record["agent_id"], partial(self._judge, record))
        stays = {agent_id: reason for agent_id, reason in self._reasons.items() if reason}
        # A session above may limit or cancel those below. Sessions that share state must find it.
        groups = [*self._groups, *self._sharing.values()]
        while True:
            stuck = stays.keys() | {failed["what"] for failed in self._report["failed"]}
            more = {
                agent_id: f"{other} stays"
                for group in groups
                for other in group & stuck
                for agent_id in (group & self._reasons.keys()) - stuck
            }
            if not more:
                return stays
            stays |= more

    def _is_with_failed(self, agent_id: str) -> bool:
        """Whether something that belongs to the session has just failed, so that its move could not end."""
        failed = {failed["what"] for failed in self._report["failed"]}
        return any(agent_id in group and group & failed for group in (*self._groups, *self._sharing.values()))

    def _reason_to_stay(self, record: Record) -> str:
        at_work = [run["run"] for run in record.get("runs", ()) if not has_ended(run)]
        if at_work:
            return f"run {at_work[-1]} has not ended"
        if self._waiting_keys != set() and may_change(record, self._waiting_keys):
            return "an event waits that could change it"
        for scope in scopes_of(record):
            here, there = self._source.document(scope), self._target.document(scope)
            if here is not None and there is not None and not _is_same_state(here, there):
                return _how_state_differs(here, there)
        return ""

    def _fence(self, agent_id: str) -> None:
        """Copies an open session with a fence, and fences it in the source, under one lock of the source."""
        with self._source.open(agent_id) as session:
            record = session.record
            if not is_open(record) or self._reason_to_stay(record):
                raise _changed_meanwhile("move", agent_id)
            files = self._files(record)
            self._has_copy(record, files)
            moving: Moving = {"source": self._source.root, "target": self._target.root, "token": uuid.uuid4().hex}
            stored: Record = as_stored(files[RECORD])  # type: ignore[assignment]  # as stored, not as it was read
            self._target.put(agent_id, {**files, RECORD: encode(with_moving(stored, moving))})
            session.set_moving(moving)
        self._fenced.append(agent_id)

    def _move_documents(self) -> None:
        for found in self._source.documents():
            if isinstance(found, StoreFailure):
                self._fail("shared state", found)
            else:
                self._try(" ".join(found["scope"]), partial(self._move_document, (*found["scope"],)))

    def _move_document(self, scope: Scope, name: str) -> None:
        """Moves the state that sessions of an app or of one of its users share, unless one of these sessions stays."""
        with self._source.lock_key(document_lock_key(scope)):
            found = self._source.document(scope)
            sharing = [] if found is None else [*self._source.open_of_app(*scope)]
            if found is None or _those_that_stay(sharing) or (sharing and not any(map(self._is_ours, sharing))):
                return
            self._target.add_document(found)
            there = self._target.document(scope)
            if not _is_same_state(found, there):
                raise StoreFailure("move", name, _how_state_differs(found, there), _ONE_VALUE)
            if all(map(self._is_ours, sharing)):  # else another copy moves it, too
                self._source.remove_document(scope)
        self._report["documents"] += 1

    def _check_together(self, record: Record) -> None:
        """Refuses to end the move of a session while something that belongs to it stays in the source."""
        above = filter(None, self._source.ancestors(record).values())
        below = self._source.children([record["agent_id"]], open_only=True)
        reasons = [f"{other} stays" for other in _those_that_stay([*above, *below])]
        reasons += [f"the state of {' '.join(scope)} stays" for scope in scopes_of(record) if self._is_behind(scope)]
        if reasons:
            raise StoreFailure("end its move", record["agent_id"], reasons[0], "when that can move, copy again")

    def _is_behind(self, scope: Scope) -> bool:
        """Whether state that sessions share is still in the source, and not in the target or in use."""
        found = self._source.document(scope)
        if found is None:
            return False
        is_there = _is_same_state(found, self._target.document(scope))
        return not is_there or bool(_those_that_stay(self._source.open_of_app(*scope)))

    def _copy_of(self, agent_id: str) -> Record:
        try:
            return self._target.read(agent_id)
        except SessionNotFound as error:
            error.set_root(self._target.root, f"its copy is gone; {_how_to_take_back(self._source.root, agent_id)}")
            raise

    def _name_halves(self) -> None:
        """Names the sessions that a copy left in the target, and that are gone from the source since."""
        for agent_id, found in self._target.scan(active_only=True):
            if isinstance(found, SessionsError) or self._source.has(agent_id):
                continue
            moving = moving_of(found)
            if moving is not None and (moving["source"], moving["target"]) == (self._source.root, self._target.root):
                gone = SessionNotFound(agent_id)
                gone.set_root(
                    self._source.root, f"its source is gone; {_how_to_take_back(self._target.root, agent_id)}"
                )
                self._fail(agent_id, gone)

    def _release(self, agent_id: str) -> None:
        """Ends the move of a fenced session: its copy becomes open, then the source is removed."""
        here = self._source.read(agent_id)
        check_readable(here)  # somebody may have edited it
        there = self._copy_of(agent_id)
        moving, arrived = moving_of(here), moving_of(there)
        self._check_together(here)
        if moving is None or arrived not in (None, moving):
            raise _differs(here, there, self._source.root, self._target.root)
        if arrived is not None:
            with self._target.open(agent_id) as session:
                if moving_of(self._target.read(agent_id)) != moving:  # another copy has replaced it since
                    raise _changed_meanwhile("move", agent_id)
                session.set_moving(None)
        elif not _is_released(here, there):
            raise _differs(here, there, self._source.root, self._target.root)

        def should_delete(_: str, found: RecordOrError) -> bool:
            if isinstance(found, SessionsError) or moving_of(found) != moving:
                return False
            self._check_together(found)  # again, because a hook may have put an agent below it meanwhile
            for _, mark in self._source.marks([agent_id]):  # perhaps it was cancelled meanwhile
                self._target.mark(agent_id, partial(_first_of, mark))
            return True

        self._remove(self._source, agent_id, should_delete)
        self._report["moved"].append(agent_id)


def _is_replaceable(record: Record, _: str, found: RecordOrError) -> bool:
    """Whether ``found`` in the target is no session of its own, while ``record`` in the source is not fenced."""
    if isinstance(found, SessionsError):
        return False
    is_left = moving_of(found) is not None and found["created_at"] == record["created_at"]
    return is_left or is_stand_in(found)


def _is_earlier(there: dict[str, bytes], found: Record, files: dict[str, bytes], record: Record) -> bool:
    """Whether what is ``there`` is equal to ``files``, or an earlier state of them."""
    is_earlier = found["created_at"] == record["created_at"] and found["revision"] < record["revision"]
    others = ((name, data) for name, data in there.items() if name != RECORD)
    return there == files or (is_earlier and all(files.get(name, b"").startswith(data) for name, data in others))


def _is_released(here: Record, there: Record) -> bool:
    """Whether ``there`` is the copy of the fenced session ``here``, or a later state of it."""
    is_same = there["created_at"] == here["created_at"] and not is_stand_in(there)
    return is_same and not has_newer_schema(there) and there["revision"] >= here["revision"]


def _is_same(record: Record, _: str, found: RecordOrError) -> bool:
    return found == record


def _those_that_stay(records: Iterable[Record]) -> list[str]:
    """Returns the open sessions among ``records`` that no copy moves."""
    return [record["agent_id"] for record in records if is_open(record) and moving_of(record) is None]


def _how_to_take_back(root: str, agent_id: str) -> str:
    """Returns the commands for a session whose other half is gone."""
    command = f"gaia-sessions --root {quote(root)}"
    return (
        f"to go on here, type: {command} repair --take-back {agent_id}; to remove it: {command} rm --force {agent_id}"
    )


def _first_of(later: Mark, earlier: Mark | None) -> Mark:
    return earlier or later


def _changed_meanwhile(action: str, agent_id: str) -> StoreFailure:
    return StoreFailure(action, agent_id, "it was changed meanwhile", "copy again")


def _differs(here: Record, there: Record, source: str, target: str) -> Conflict:
    """Returns the error for a session that the target has in another form."""
    agent_id = here["agent_id"]
    revisions = f"revision {here['revision']} in {source}, revision {there['revision']} in {target}"
    message = f"session {agent_id!r} differs: {revisions}"
    removals = (f"gaia-sessions --root {quote(root)} rm --force {agent_id}" for root in (source, target))
    return Conflict(message, f"remove the one that you do not want, then copy again: {', or '.join(removals)}")


def _is_same_state(here: Document, there: Document | None) -> bool:
    """Whether the target has the same state; its revision may differ."""
    return there is not None and there["state"] == here["state"]


def _how_state_differs(here: Document, there: Document | None) -> str:
    """Returns which key of shared state has another value in the target."""
    other = {} if there is None else there["state"]
    keys = sorted(
        key
        for key in {**here["state"], **other}
        if (key in here["state"], here["state"].get(key)) != (key in other, other.get(key))
    )
    prefix = APP if len(here["scope"]) == 1 else USER
    return f"{prefix}{keys[0]} of {' '.join(here['scope'])} has another value in the two roots"
