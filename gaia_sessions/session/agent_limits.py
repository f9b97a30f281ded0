"""The limits of an agent that a host runs: tokens, rounds, seconds and searches, and what it is told at each of them.

Owns when one is reached, with the numbers of the users' document on the life cycle of sub-agents: of 60 rounds the 60th
is refused, of 64,000 tokens whoever has used as many, of 10 searches the 11th. A search counts when it is allowed, by
the key of its call, and no more if it failed; what was refused counts for nothing. Pure: ``now`` is an argument.
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
GO_ON_WITHOUT, GO_ON_WITH = "Go on without it.", "Go on with what you may use: "
SEARCHES_USED = "Search budget exceeded ("
"""Our refusals have one of these, by which they are told from what a tool gave."""


class AgentLimits:
    """What the agents of hosts may use at most; None for no limit. search_tools: the tools that count as searches."""

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
        self.search_tools = search_tools

    def tokens_for(self, record: Record) -> int | None:
        """How many tokens the work of ``record`` may use: its own budget counts before that of the settings."""
        return record.get("max_tokens", self.tokens)


class WorkSoFar:
    """What an agent did so far in one run, as its host notes it.

    rounds: how many have ended. tokens: those of all its requests. failed: the keys of the calls that failed. has_call:
    whether the call is among it that is about to be made; if not, the latest round may be missing.
    """

    __slots__ = ("failed", "has_call", "rounds", "tokens")

    def __init__(self, rounds: int, tokens: int, failed: Collection[str], *, has_call: bool) -> None:
        self.rounds = rounds
        self.tokens = tokens
        self.failed = failed
        self.has_call = has_call


def tokens_with(record: Record, run: Run, so_far: WorkSoFar) -> int:
    """The tokens that count against the budget of ``record``, with what ``run`` has used by now."""
    return tokens_of(record) + max(0, so_far.tokens - consumed_tokens(run.get("consumed", {})))


def refusal(record: Record, run: Run, so_far: WorkSoFar, limits: AgentLimits, now: datetime) -> str | None:
    """Why the agent of ``run`` may use no more tools, and what it is to do; None if it may."""
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
    """With the search of this ``call`` counted; the same record if it was before. None if ``most`` others were made."""
    own, failed = quick_digest(call), {quick_digest(other) for other in so_far.failed}
    counted = run.get("searches", [])
    if own in counted:
        return record
    made = [search for search in counted if search not in failed]
    return None if len(made) >= most else with_run(record, {**run, "searches": [*made, own]})


def search_refusal(most: int) -> str:
    """What an agent is told that has made all its searches."""
    return (
        f"{SEARCHES_USED}{most + 1}/{most}). Please synthesize findings from existing data instead of searching more."
    )


def with_warning(record: Record, run: Run, now: datetime) -> Record | None:
    """With the note that the agent of ``run`` was told how much of its budget is used; None if it has that."""
    return None if "warned_at" in run else with_run(record, {**run, "warned_at": format_time(now)})


def warning(record: Record, run: Run, so_far: WorkSoFar, limits: AgentLimits) -> str | None:
    """What the agent is told once in a run when most of its budget is used; None if that is not so, or it was told."""
    most, used = limits.tokens_for(record), tokens_with(record, run, so_far)
    if most is None or used * 100 < most * WARN_PERCENT or "warned_at" in run:
        return None
    return (
        f"You have used {used:,} of your {most:,} tokens. When they are used up, no tool works any more: "
        "come to an end, and report what you have."
    )
