"""What Claude Code reports of the cost of an agent when it is done, as fields of an event (2.1.197, 2.1.330).
The tokens are those of the agent's last request; ``transcripts`` adds up all of them. Everything is untrusted.
"""

from __future__ import annotations

from gaia_sessions.hosts.payload import clean, element_in, figures_in, key_in, object_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import Payload

REQUEST_FIGURES = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_creation_tokens": "cache_creation_input_tokens",
}
"""The API's names for the tokens of one request."""

_RETURN_FIGURES = {"total_tokens": "totalTokens", "tool_uses": "totalToolUseCount", "duration_ms": "totalDurationMs"}
_NOTIFICATION_FIGURES = {"total_tokens": "subagent_tokens", "tool_uses": "tool_uses", "duration_ms": "duration_ms"}
_PROGRESS_FIGURES = {"total_tokens": "tokens", "tool_uses": "toolCalls", "duration_ms": "durationMs"}


def figures_of_return(response: Payload) -> dict[str, object]:
    """Returns the figures in the response of the tool ``Agent``."""
    usage = figures_in(object_in(response, "usage"), REQUEST_FIGURES) | figures_in(response, _RETURN_FIGURES)
    worktree = _worktree(key_in(response, "worktreePath"), key_in(response, "worktreeBranch"))
    return _fields(usage=usage, model=key_in(response, "resolvedModel"), worktree=worktree)


def figures_of_notification(text: str) -> dict[str, object]:
    """Returns the figures in a task notification, after its summary."""
    # The agent's own words are before the figures, and may look like them. So only what follows the last result counts.
    figures = text.rpartition("</result>")[2]
    usage = _last_element(figures, "usage")
    digits = {name: element_in(usage, name) or "" for name in _NOTIFICATION_FIGURES.values()}
    numbers = {name: int(value) for name, value in digits.items() if value.isascii() and value.isdigit()}
    worktree = _last_element(figures, "worktree")
    paths = (element_in(worktree, "worktreePath"), element_in(worktree, "worktreeBranch"))
    return _fields(usage=figures_in(numbers, _NOTIFICATION_FIGURES), worktree=_worktree(*paths))


def figures_of_progress(entry: Payload) -> dict[str, object]:
    """Returns the figures of one agent in the file of a workflow."""
    return _fields(usage=figures_in(entry, _PROGRESS_FIGURES), model=key_in(entry, "model"))


def _fields(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value}


def _worktree(path: str | None, branch: str | None) -> dict[str, str]:
    return {name: clean(value) for name, value in (("path", path), ("branch", branch)) if value}


def _last_element(text: str, name: str) -> str:
    return text.rpartition(f"<{name}>")[2].partition(f"</{name}>")[0] if f"<{name}>" in text else ""
