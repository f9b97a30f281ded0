"""What an import did, for people: plain text, one fact per line."""

from __future__ import annotations

from gaia_sessions.errors import plural
from gaia_sessions.usecases.importing import is_empty

from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.usecases.importing import Imported

_LONGEST = 500


def import_lines(report: Imported) -> Iterator[str]:
    """What was taken in, or would be; then whatever was not, each with its reason."""
    directory, root = safe(report["directory"], _LONGEST), safe(report["root"], _LONGEST)
    if report["in_place"]:
        yield f"nothing to import: {directory} is where the sessions are kept; its records are read where they are"
        return
    if is_empty(report):
        yield f"nothing to import in {directory}: it has no folder with a state.json"
        return
    verb = "would import" if report["dry_run"] else "imported"
    yield f"{verb} {plural(len(report['imported']), 'session')} from {directory} into {root}"
    yield from (f"  {agent_id}" for agent_id in report["imported"])
    yield from (f"already there: {agent_id}" for agent_id in report["already_there"])
    yield from (f"skipped: {safe(one['agent_id'])}: {safe(one['detail'], _LONGEST)}" for one in report["skipped"])
