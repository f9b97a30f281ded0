"""What an agent of Claude Code used in all, from its transcript, as seen in runs of 2.1.197 and 2.1.330.
{"type": "assistant", "timestamp": T, "message": {"id", "model", "usage": {...}, "content": [{"type", "id"}]}}
The file is untrusted. It may have many MB, so it is read line by line, until ``is_late``.
"""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import LONGEST_LINE, lines
from gaia_sessions.hosts.payload import figures_in, key_in, object_in, object_in_bytes
from gaia_sessions.session.runs import is_workflow_itself
from gaia_sessions.session.usage import sum_of, with_total_tokens

from .reported_usage import REQUEST_FIGURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.schema import Run, Usage

_MILLISECONDS = len("2026-01-08T18:05:30.123")
NO_MODEL = "<synthetic>"
"""The model of a message that the client itself made, such as an error."""


def consumption(run: Run, since: str | None, until: str | None, is_late: Callable[[], bool]) -> Run | None:
    """Returns what ``run`` used from ``since`` to ``until``, and its model; None if unknown or if ``is_late``."""
    if is_workflow_itself(run):
        return None
    try:
        # The last message is in the file when the delegation has returned or its notification comes, but not yet at the
        # agent's stop.
        return _used_in(run.get("transcript_path"), since, until, is_late)
    except OSError:
        return None


def _used_in(path: str | None, since: str | None, until: str | None, is_late: Callable[[], bool]) -> Run | None:
    used = _Used()
    for line in lines(CLAUDE_CODE, path):
        if is_late():
            return None
        if b'"usage"' not in line or b'"assistant"' not in line:
            continue
        if len(line) == LONGEST_LINE:
            return None
        entry = object_in_bytes(line, LONGEST_LINE)
        if entry.get("type") == "assistant" and _is_within(entry.get("timestamp"), since, until):
            used.add(object_in(entry, "message"))
    return used.fields()


class _Used:
    """What was used in the messages that were added so far."""

    def __init__(self) -> None:
        self.usage_by_message: dict[str, Usage] = {}
        self.calls: set[str] = set()
        self.model: str | None = None

    def add(self, message: Payload) -> None:
        message_id, model = key_in(message, "id"), key_in(message, "model")
        if not message_id or not model or model == NO_MODEL:
            return
        figures = figures_in(object_in(message, "usage"), REQUEST_FIGURES)
        # Each block of a message has a line, and each line has the usage of the whole message. So the last line counts.
        self.usage_by_message.setdefault(message_id, {}).update(figures)  # type: ignore[typeddict-item]  # it has their names
        self.model = model
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        self.calls.update(str(block.get("id")) for block in blocks if block.get("type") == "tool_use")

    def fields(self) -> Run | None:
        if self.model is None:
            return None
        total = sum_of(self.usage_by_message.values())
        return {"consumed": {**with_total_tokens(total), "tool_uses": len(self.calls)}, "model": self.model}


def _is_within(timestamp: object, since: str | None, until: str | None) -> bool:
    """Returns whether ``timestamp`` is from ``since`` to ``until``, compared as texts up to the milliseconds."""
    if not isinstance(timestamp, str):
        return since is None
    moment = timestamp[:_MILLISECONDS]
    is_after = since is None or moment >= since[:_MILLISECONDS]
    return is_after and (until is None or moment <= until[:_MILLISECONDS])
