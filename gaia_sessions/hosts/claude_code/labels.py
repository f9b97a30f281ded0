"""The labels of a workflow's agents: 2.1.197 writes them only when the workflow is over, into the workflow's own file.

Owns where the label of one agent stands in it; ``workflows`` has the other files.
"""

from __future__ import annotations

import os

from gaia_sessions.hosts.payload import LONGEST_PURPOSE, object_in_bytes, one_line, text_in
from gaia_sessions.store.directory import Directory

from .workflows import agents_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Run

_LARGEST_FILE = 8 << 20


def label_of(run: Run) -> str | None:
    """The label of the agent of ``run``; None if it has none, or is of no workflow that is over."""
    conversation, _, name = run.get("transcript_path", "").partition("/subagents/workflows/")
    run_id = run.get("workflow", {}).get("run_id", "")
    if not os.path.isabs(conversation) or "\0" in conversation or os.path.dirname(name) != run_id or "/" in run_id:
        return None
    try:
        with Directory.at(os.path.join(conversation, "workflows")) as folder:
            document = object_in_bytes(folder.read(f"{run_id}.json", _LARGEST_FILE), _LARGEST_FILE)
    except (OSError, ValueError):
        return None
    agents = agents_in(document)
    labels = (text_in(entry, "label") for entry in agents if entry.get("agentId") == run.get("host_agent_id"))
    return one_line(next(labels, ""), LONGEST_PURPOSE) or None
