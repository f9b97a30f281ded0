"""Texts and values that are not acceptable by a rule of their own: ids and sizes.

Loaded when one of these errors is first named.
"""

from __future__ import annotations

from .main_branches import InvalidInput, shorten


class InvalidId(InvalidInput):
    code = "invalid_id"

    def __init__(self, value: object, problem: str) -> None:
        self.value = value
        super().__init__(
            f"{shorten(repr(value))} is not a session ID: {problem}",
            hint="an ID looks like agent-123: letters, digits, . _ -",
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
