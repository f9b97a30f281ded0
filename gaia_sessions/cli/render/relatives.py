"""The parent and the children of a session in words, a line each.

Owns that wording, and how many children a person is shown.
"""

from __future__ import annotations

from . import plain
from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.usecases.listing import Line
    from gaia_sessions.usecases.showing import View

    from .one_session import Section

_MOST_CHILDREN = 50


def sections(view: View) -> Iterator[Section]:
    """The sections for the parent and the children of a session, where there are any."""
    if view.parent is not None:
        yield "parent", [_line(view.parent)]
    if view.children:
        left_out = _left_out(view.record["agent_id"], len(view.children))
        yield "children", [*left_out, *map(_line, view.children[-_MOST_CHILDREN:])]


def _left_out(agent_id: str, number: int) -> Iterator[str]:
    if number > _MOST_CHILDREN:
        yield f"{number - _MOST_CHILDREN} earlier; for the IDs of all: gaia-sessions show {agent_id} --json"


def _line(line: Line) -> str:
    """A parent or a child: id, agent and purpose, phase; or why nothing more is known."""
    agent_id = safe(line["agent_id"])  # of a parent it is what the record says, which may be any text
    if "problem" in line:
        return f"{agent_id}, {line['status']}"
    return f"{agent_id}, {plain.agent_and_purpose(line)}, {line['phase']}"
