"""The limits of an agent that a host runs (tokens, rounds, seconds, searches), and what the agent is told of them.

With a limit of 60 rounds, round 60 is refused. With a limit of 10 searches, search 11 is refused.
"""

from __future__ import annotations

from .budget import consumed_tokens, tokens_of
from .clock import format_time, parse_time, seconds_between
from .ids import quick_digest
from .runs import with_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from .schema import Record, Run

WARN_PERCENT = 80
USE_NO_MORE_TOOLS = "Use no more tools. Report in your last message what you have done so far, and what is left to do."
GO_ON_WITHOUT, GO_ON_WITH = "Work without it.", "Use only these tools: "
SEARCHES_USED = "Search budget exceeded ("
"""Every refusal of ours has one of these texts; ``repeats`` recognizes refusals by them."""


class AgentLimits:
    """What an agent of a host may use at most; None means no limit."""

    __slots__ = ("rounds", "search_tools", "searches", "seconds", "tokens")

    def __init__(
        self,
        *,
        tokens: int | None = None,
        rounds: int | None = None,
        seconds: float | None = None,
        searches: int | None = None,
        search_tools: Collection[str] = (),
    ) -> None:
        self.tokens = tokens
        self.rounds = rounds
        self.seconds = seconds
        self.searches = searches
        self.search_tools = search_tools  # calls of these count as searches

    def tokens_for(self, record: Record) -> int | None:
        """Returns how many tokens the work of ``record`` may use."""
        return record.get("max_tokens", self.tokens)  # the record's own budget comes before the setting


class WorkSoFar:
    """What an agent has done so far in one run, as its host records it."""

    __slots__ = ("failed", "has_call", "rounds", "tokens")

    def __init__(self, rounds: int, tokens: int, failed: Collection[str], *, has_call: bool) -> None:
        self.rounds = rounds  # those that have ended
        self.tokens = tokens
        self.failed = failed  # the keys of failed calls
        self.has_call = has_call  # if false, the call that is about to be made and the latest round can be missing


def tokens_with(record: Record, run: Run, so_far: WorkSoFar) -> int:
    """Returns the tokens that count against the budget, with what ``run`` has used so far."""
    return tokens_of(record) + max(0, so_far.tokens - consumed_tokens(run.get("consumed", {})))


def refusal(record: Record, run: Run, so_far: WorkSoFar, limits: AgentLimits, now: datetime) -> str | None:
    """Returns why the agent of ``run`` must use no more tools; None if it is allowed to use more."""
    most, used = limits.tokens_for(record), tokens_with(record, run, so_far)
    if most is not None and used >= most:
        return f"Sub-agent token limit reached ({used:,} of {most:,} tokens). {USE_NO_MORE_TOOLS}"
    if limits.rounds is not None and so_far.rounds + 1 >= limits.rounds:
        return f"Sub-agent iteration limit reached ({limits.rounds}). {USE_NO_MORE_TOOLS}"
    began = run.get("started_at")
    if limits.seconds is not None and began and seconds_between(parse_time(began), now) >= limits.seconds:
        return f"Sub-agent time limit reached ({limits.seconds:g} s). {USE_NO_MORE_TOOLS}"
    return None


def with_search(record: Record, run: Run, call: str, so_far: WorkSoFar, most: int) -> Record | None:
    """Counts the search ``call``; returns ``record`` if ``call`` was counted before, None if the limit is reached."""
    own, failed = quick_digest(call), {quick_digest(other) for other in so_far.failed}
    counted = run.get("searches", [])
    if own in counted:
        return record
    made = [search for search in counted if search not in failed]  # a search that failed does not count
    return None if len(made) >= most else with_run(record, {**run, "searches": [*made, own]})


def search_refusal(most: int) -> str:
    """Says that all searches are used."""
    return (
        f"{SEARCHES_USED}{most + 1}/{most}). Please synthesize findings from existing data instead of searching more."
    )


def with_warning(record: Record, run: Run, now: datetime) -> Record | None:
    """Notes that the agent of ``run`` was warned; None if that is noted already."""
    return None if "warned_at" in run else with_run(record, {**run, "warned_at": format_time(now)})


def warning(record: Record, run: Run, so_far: WorkSoFar, limits: AgentLimits) -> str | None:
    """Returns the warning that most of the budget is used, once per run; None if no warning is due."""
    most, used = limits.tokens_for(record), tokens_with(record, run, so_far)
    if most is None or used * 100 < most * WARN_PERCENT or "warned_at" in run:
        return None
    return (
        f"You have used {used:,} of your {most:,} tokens. When all are used, every tool is refused. "
        "Finish now, and report what you have."
    )
