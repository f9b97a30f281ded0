"""One root under examination: where it is, its settings, and what one look at everything in it shows.

Owns that each look is taken once, when a check first asks for it, and that nothing is written by looking.
"""

from __future__ import annotations

import shutil
import sys
from functools import cached_property

from gaia_sessions import config
from gaia_sessions.errors import CorruptSession, SessionsError
from gaia_sessions.session.clock import FUTURE_TOLERANCE, parse_time
from gaia_sessions.session.record import has_newer_schema, is_open
from gaia_sessions.store import root as roots
from gaia_sessions.store import root_ownership
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.hook_log import ended_host_sessions, read_lines
from gaia_sessions.usecases.preview import Preview
from gaia_sessions.usecases.reconcile import reconcile

from . import tree
from .findings import shell_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Record
    from gaia_sessions.system.project_root import SkippedProject
    from gaia_sessions.usecases.reconcile import Verdict


class Records:
    """What one reading of every record shows: ids, never the records themselves.

    active: not final. corrupt, refused: why, by id. ahead: whose last activity lies in the future, and whether
    they are final. newer: of a later version.
    """

    def __init__(self) -> None:
        self.total = 0
        self.active: set[str] = set()
        self.corrupt: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.in_future: dict[str, bool] = {}
        self.newer: list[str] = []


class Inspection:
    """What every check is handed.

    tried: the names of the checks whose mends were tried just now. passed_over: the projects of others that the search
    for the root did not take, each with the path that is not ours, and whose it is.
    """

    def __init__(
        self,
        root: str,
        environ: Mapping[str, str],
        now: datetime,
        tried: frozenset[str] = frozenset(),
        passed_over: Sequence[SkippedProject] = (),
    ) -> None:
        self.root = root
        self.environ = environ
        self.now = now
        self.attempted_fixes = tried
        self.passed_over = passed_over
        self.config, self.faults = config.load_with_faults(root, environ)
        self.store = FileStore.from_config(root, self.config)

    def command(self, *words: str) -> str:
        """``gaia-sessions`` for this root, as a shell here can run it."""
        return self.command_without_root("--root", self.root, *words)

    def command_without_root(self, *words: str) -> str:
        """The same, for the root that it finds itself."""
        installed = shutil.which("gaia-sessions", path=self.environ.get("PATH"))
        program = ["gaia-sessions"] if installed else [sys.executable, "-m", "gaia_sessions"]
        return shell_command(*program, *words)

    @cached_property
    def is_ours(self) -> bool:
        """Whether the root is for us to mend; true where there is none yet."""
        root = roots.open_if_exists(self.root)
        if root is None:
            return True
        with root:
            return roots.is_owned(root) or root_ownership.may_own(root)

    @cached_property
    def entries(self) -> list[tree.TreeEntry]:
        """All that stands in the root; empty where there is none."""
        try:
            return tree.walk(self.root)
        except FileNotFoundError:
            return []

    @cached_property
    def entries_of_others(self) -> list[tree.TreeEntry]:
        """Those that do not belong to whom the root belongs to."""
        return [entry for entry in self.entries if entry.owner != self.entries[0].owner]

    @cached_property
    def entries_with_wrong_mode(self) -> list[tree.TreeEntry]:
        """Those that do, but have not the mode that they should have."""
        owner = self.entries[0].owner if self.entries else None
        with_wrong_mode = (entry for entry in self.entries if entry.mode != entry.wanted and entry.owner == owner)
        return [entry for entry in with_wrong_mode if not tree.is_user_file(self.root, entry.path)]

    @cached_property
    def records(self) -> Records:
        records = Records()
        for agent_id, found in self.store.scan():
            records.total += 1
            if isinstance(found, SessionsError):
                (records.corrupt if isinstance(found, CorruptSession) else records.refused)[agent_id] = str(found)
            else:
                self._add_record(records, agent_id, found)
        return records

    def _add_record(self, records: Records, agent_id: str, record: Record) -> None:
        if is_open(record):
            records.active.add(agent_id)
        if has_newer_schema(record):
            records.newer.append(agent_id)
        elif parse_time(record["last_updated"]) - self.now > FUTURE_TOLERANCE:
            records.in_future[agent_id] = not is_open(record)

    @cached_property
    def run_verdicts(self) -> list[Verdict]:
        """On every unended run, as ``reconcile --dry-run`` has them."""
        sessions = Preview(self.store, self.now, self.config)
        result = reconcile(
            self.store, self.now, lambda: ended_host_sessions(self.root), dry_run=True, sessions=sessions
        )
        return result["verdicts"]

    @cached_property
    def log(self) -> list[dict[str, Json]]:
        """The lines of all logs."""
        return list(read_lines(self.root))
