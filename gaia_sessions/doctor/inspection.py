"""What a check of ``doctor`` is given: one root under inspection.

Owns that everything is read once, when a check first asks for it, and that reading writes nothing.
"""

from __future__ import annotations

from functools import cached_property

from gaia_sessions import config
from gaia_sessions.api.foresight import foreseen
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.errors import CorruptSession, SessionsError, StoreFailure
from gaia_sessions.session.clock import is_ahead, parse_time
from gaia_sessions.session.record import has_newer_schema, is_open, parent_id_of, words_that_are_no_answers
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
    """What one reading of every record shows, by id; never the records themselves.

    total: how many there are, readable or not.
    active: those that are not final.
    corrupt: those that are no valid records, each with the reason.
    refused: those that the system refuses to read, each with the reason.
    unread_marks: those whose mark the system refuses to read, each with the reason; no_marks: those with something else
    in its place.
    in_future: those whose last activity is in the future, each with whether it is final.
    odd_answers: those whose record has something among its answers that is none, each with what that is.
    newer: those that a later version wrote.
    parents: those that have a parent, each with its parent.
    """

    def __init__(self) -> None:
        self.total = 0
        self.active: set[str] = set()
        self.corrupt: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.unread_marks: dict[str, str] = {}
        self.no_marks: list[str] = []
        self.in_future: dict[str, bool] = {}
        self.odd_answers: dict[str, list[str]] = {}
        self.newer: list[str] = []
        self.parents: dict[str, str] = {}

    def above_open(self) -> set[str]:
        """The sessions that have one among those that are not final below them."""
        above: set[str] = set()
        for agent_id in self.active:
            parent_id = self.parents.get(agent_id)
            while parent_id is not None and parent_id not in above:
                above.add(parent_id)
                parent_id = self.parents.get(parent_id)
        return above


class Inspection:
    """The root under inspection, which every check is given.

    root: its path, which need not exist.
    environ: the environment variables of this call.
    attempted_fixes: the names of the checks whose fixes were just applied.
    skipped: the projects of other users that the search for the root skipped.
    """

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
        """The command ``gaia-sessions`` with ``words``, for this root."""
        return own_command(self.environ, "--root", self.root, *words)

    @cached_property
    def entries(self) -> list[own_files.TreeEntry]:
        """The root and everything of the store in it; empty if it does not exist."""
        try:
            return own_files.walk(self.root)
        except FileNotFoundError:
            return []

    @cached_property
    def entries_of_others(self) -> list[own_files.TreeEntry]:
        """The entries with another owner than the root."""
        return [entry for entry in self.entries if entry.owner != self.entries[0].owner]

    @cached_property
    def entries_with_wrong_mode(self) -> list[own_files.TreeEntry]:
        """The entries with the owner of the root and another mode than they should have."""
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
            records.newer.append(agent_id)
            return
        if odd := words_that_are_no_answers(record):
            records.odd_answers[agent_id] = odd
        if is_ahead(parse_time(record["last_updated"]), self.now):
            records.in_future[agent_id] = not is_open(record)

    @cached_property
    def run_verdicts(self) -> list[Verdict]:
        """The verdict of ``reconcile --dry-run`` on every run without an end."""
        plan = foreseen(self.store, self.now, self.config)
        return close_runs(plan, self.now, self.root)["verdicts"]  # type: ignore[arg-type]  # it has what is called of it

    @cached_property
    def log_lines(self) -> list[dict[str, Json]]:
        """The lines of all logs of hooks."""
        return list(read_lines(self.root))
