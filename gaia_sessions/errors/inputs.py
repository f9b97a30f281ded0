"""Texts and values that are not acceptable by a rule of their own: ids and sizes.

Loaded when one of these errors is first named.
"""

from __future__ import annotations

from .main_branches import InvalidInput, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_LIST = 500


class InvalidId(InvalidInput):
    code = "invalid_id"

    def __init__(self, value: object, problem: str) -> None:
        self.value = value
        super().__init__(
            f"{shorten(repr(value))} is not a session ID: {problem}",
            hint="an ID looks like agent-123: letters, digits, . _ -",
        )


class NoToolsLeft(InvalidInput):
    """Of the tools ``requested`` none is allowed, for the ``reasons``. available: None if that is not limited."""

    code = "no_tools_left"

    def __init__(self, requested: Sequence[str], available: Sequence[str] | None, reasons: Sequence[str]) -> None:
        self.requested = (*requested,)
        self.available = None if available is None else (*available,)
        self.reasons = (*reasons,)
        there = "all" if available is None else ", ".join(available) or "none"
        super().__init__(
            f"no allowed tools are left: {shorten('; '.join(reasons), _LONGEST_LIST)}; "
            f"requested: {shorten(', '.join(requested), _LONGEST_LIST)}; "
            f"available: {shorten(there, _LONGEST_LIST)}",
            hint="request a tool that is available and not blocked",
        )


class TaskRefused(InvalidInput):
    """The guard does not let a task be delegated; ``keyword`` is the word in it by which it asks for analysis."""

    code = "task_refused"

    def __init__(self, keyword: str, problem: str) -> None:
        self.keyword = keyword
        super().__init__(
            problem,
            hint="word the task so that it asks for facts, or type GAIA_SESSIONS_GUARD_MODE=off before the command",
        )


class TooLarge(InvalidInput):
    code = "too_large"

    def __init__(
        self, what: str, size: int, limit: int, hint: str = "keep long texts in a file and store its name"
    ) -> None:
        self.what = what
        self.size = size
        self.limit = limit
        super().__init__(f"{what} is over the limit of {limit} bytes", hint=hint)
