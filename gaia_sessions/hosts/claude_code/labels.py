"""The labels of a workflow's agents: 2.1.197 writes them only when the workflow is over, into the workflow's own file.

Owns where the label of one agent stands in it; ``workflows`` has the other files.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts import CLAUDE_CODE, host_files
from gaia_sessions.hosts.payload import LONGEST_PURPOSE, object_in_bytes, one_line, text_in

from .workflows import agents_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Run

_LARGEST_FILE = 8 << 20


def label_of(run: Run) -> str | None:
    """The label of the agent of ``run``; None if it has none, or is of no workflow that is over."""
    conversation, _, name = run.get("transcript_path", "").partition("/subagents/workflows/")
    run_id = run.get("workflow", {}).get("run_id", "")
    if os.path.dirname(name) != run_id or "/" in run_id:
        return None
    path = os.path.join(conversation, "workflows", f"{run_id}.json")
    try:
        document = object_in_bytes(host_files.content(CLAUDE_CODE, path, _LARGEST_FILE), _LARGEST_FILE)
    except OSError:
        return None
    agents = agents_in(document)
    labels = (text_in(entry, "label") for entry in agents if entry.get("agentId") == run.get("host_agent_id"))
    return one_line(next(labels, ""), LONGEST_PURPOSE) or None
