"""The answers of the policy, as types.

Owns no code. Only type checkers import this module: ``typing`` would cost a hook more than its work. Must never be
imported at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from .cancellation import Cancellation
    from .schema import Denial


class CheckResult(TypedDict):
    name: str
    ok: bool
    actual: object
    limit: object


class Decision(TypedDict):
    should_resume: bool
    reason: str
    agent_id: str
    phase: str | None
    idle_seconds: float | None
    until: str | None
    checks: list[CheckResult]
    advice: str
    last_activity: NotRequired[str]
    cancellation: NotRequired[Cancellation]
    denial: NotRequired[Denial]
    paused_until: NotRequired[str]


class ResumeSummary(TypedDict):
    """A decision in short. until: when the session can no longer be resumed; None if it cannot be resumed now.

    paused_until: when the limit is reset that it waits for; absent if it waits for none.
    """

    should_resume: bool
    reason: str
    until: str | None
    paused_until: NotRequired[str]
