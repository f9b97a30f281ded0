"""What each check of ``doctor`` gets: the root that is inspected.

Everything is read once, when a check first asks for it. Reading writes nothing.
"""

from __future__ import annotations

from functools import cached_property

from gaia_sessions import config
from gaia_sessions.api.foresight import foreseen
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.errors import CorruptSession, SessionsError, StoreFailure
from gaia_sessions.session.clock import is_ahead, parse_time
from gaia_sessions.session.record import has_newer_schema, is_open, moving_of, parent_id_of, words_that_are_no_answers
from gaia_sessions.store.file_store import open_store
from gaia_sessions.store.hook_log_reader import read_lines

from . import own_files
from .findings import own_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.api.reconciling import Verdict
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record
    from gaia_sessions.system.project_root import SkippedProject


class Records:
    """The result of one reading of every record, by ID, without the records themselves."""

    def __init__(self) -> None:
        self.total = 0  # readable or not
        self.active: set[str] = set()  # open sessions
        self.corrupt: dict[str, str] = {}  # why the record is not valid
        self.refused: dict[str, str] = {}  # why the system refuses to read it
        self.unread_marks: dict[str, str] = {}  # why the system refuses to read the mark
        self.no_marks: list[str] = []  # sessions with an invalid mark
        self.in_future: dict[str, bool] = {}  # last activity in the future; whether the session has ended
        self.odd_answers: dict[str, list[str]] = {}  # invalid answers
        self.newer: list[str] = []  # written by a later version
        self.moving: list[str] = []  # to or from a server
        self.parents: dict[str, str] = {}

    def above_open(self) -> set[str]:
        """Returns the sessions that have an open session below them."""
        above: set[str] = set()
        for agent_id in self.active:
            parent_id = self.parents.get(agent_id)
            while parent_id is not None and parent_id not in above:
                above.add(parent_id)
                parent_id = self.parents.get(parent_id)
        return above


class Inspection:
    """The root that is inspected. ``attempted_fixes`` are the checks whose fixes were just applied."""

    def __init__(
        self,
        root: str,
        environ: Mapping[str, str],
        now: datetime,
        attempted_fixes: frozenset[str] = frozenset(),
        skipped: Sequence[SkippedProject] = (),
    ) -> None:
        self.root = root
        self.environ = environ
        self.now = now
        self.attempted_fixes = attempted_fixes
        self.skipped = skipped
        self.config, self.faults = config.load_with_faults(root, environ)
        self.store = open_store(root, self.config)

    def command(self, *words: str) -> str:
        """Returns the command ``gaia-sessions`` with ``words``, for this root."""
        return own_command(self.environ, "--root", self.root, *words)

    @cached_property
    def entries(self) -> list[own_files.TreeEntry]:
        """The root, and the files and folders of the store in the root; empty if the root does not exist."""
        try:
            return own_files.walk(self.root)
        except FileNotFoundError:
            return []

    @cached_property
    def entries_of_others(self) -> list[own_files.TreeEntry]:
        """The entries that belong to another user than the root."""
        return [entry for entry in self.entries if entry.owner != self.entries[0].owner]

    @cached_property
    def entries_with_wrong_mode(self) -> list[own_files.TreeEntry]:
        """The entries that belong to the root's owner and have a wrong mode."""
        owner = self.entries[0].owner if self.entries else None
        return [
            entry
            for entry in self.entries
            if entry.owner == owner
            and entry.mode != own_files.expected_mode(self.root, entry.path, entry.mode, is_folder=entry.is_folder)
        ]

    @cached_property
    def records(self) -> Records:
        """What reading every record shows."""
        records = Records()
        for agent_id, record in self.store.scan():
            records.total += 1
            if isinstance(record, SessionsError):
                (records.corrupt if isinstance(record, CorruptSession) else records.refused)[agent_id] = str(record)
            else:
                self._add_record(records, agent_id, record)
            try:
                records.no_marks += [marked for marked, mark in self.store.marks([agent_id]) if "at" not in mark]
            except StoreFailure as error:
                records.unread_marks[agent_id] = str(error)
        return records

    def _add_record(self, records: Records, agent_id: str, record: Record) -> None:
        if is_open(record):
            records.active.add(agent_id)
        parent_id = parent_id_of(record)
        if parent_id is not None:
            records.parents[agent_id] = parent_id
        if has_newer_schema(record):
            (records.newer if moving_of(record) is None else records.moving).append(agent_id)
            return
        if odd := words_that_are_no_answers(record):
            records.odd_answers[agent_id] = odd
        if is_ahead(parse_time(record["last_updated"]), self.now):
            records.in_future[agent_id] = not is_open(record)

    @cached_property
    def run_verdicts(self) -> list[Verdict]:
        """The verdict of ``reconcile --dry-run`` on every run without an end."""
        plan = foreseen(self.store, self.now, self.config)
        return close_runs(plan, self.now, self.root)["verdicts"]  # type: ignore[arg-type]  # it has the methods that are called

    @cached_property
    def log_lines(self) -> list[dict[str, Json]]:
        """The lines of all logs of hooks."""
        return list(read_lines(self.root))
