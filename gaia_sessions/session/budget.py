"""The budget of a session: how many tokens its agent may use, and what counts against it.

A stated total replaces all earlier counts, and later charges add to it. The limit refuses no charge.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio.strict import LARGEST_INTEGER

from .checks import is_integer
from .clock import parse_time, seconds_between
from .phases import is_final
from .record import check_readable, parent_id_of
from .schema import DENIED
from .updates import check_open, with_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from .schema import Record, Usage
    from .transcript import NewMessage

    class TokenUsage(TypedDict):
        """How much of its budget a session has used.

        Keys:
            tokens: all charges, skills, and tokens that hosts reported; or, after ``set_token_total``, that total and
                what followed.
            max_tokens: the budget; None if no budget is enforced.
            limit_reached: whether the budget is used up.
            elapsed_secs: whole seconds from the creation to now, or to the end.
        """

        agent_id: str
        tokens: int
        max_tokens: int | None
        limit_reached: bool
        elapsed_secs: int
        skill_tokens: int

    class LoadedSkill(TypedDict):
        """A loaded skill.

        Keys:
            skill_tokens: the sum of all skills of the session.
        """

        agent_id: str
        name: str
        tokens: int
        added: bool
        skill_tokens: int


MOST_TOKENS = 10**12
"""The largest number of tokens in one charge or statement."""

MAX_NAME_LENGTH = 200

BYTES_PER_TOKEN = 4
"""A usual estimate for English text."""

_COUNTED = frozenset(["charged_tokens", "token_correction", "skills"])
"""The keys with tokens that a program counted; ``usage`` has what hosts report."""


class DefaultBudgets:
    """The tokens that an agent's memory has room for, if its record has no budget."""

    __slots__ = ("main", "sub_agent")

    def __init__(self, main: int, sub_agent: int) -> None:
        self.main = main
        self.sub_agent = sub_agent


def usage_of(record: Record, now: datetime, limit: int | None) -> TokenUsage:
    """Returns how much of its budget the session has used; ``limit`` is the setting ``limits.tokens``."""
    check_readable(record)
    tokens, most = tokens_of(record), held_max_tokens(record, limit)
    return {
        "agent_id": record["agent_id"],
        "tokens": tokens,
        "max_tokens": most,
        "limit_reached": most is not None and tokens >= most,
        "elapsed_secs": elapsed_seconds(record, now),
        "skill_tokens": skill_tokens_of(record),
    }


def held_max_tokens(record: Record, limit: int | None) -> int | None:
    """Returns how many tokens the agent may use; None if nothing enforces a number."""
    run = next((one for one in reversed(record.get("runs", [])) if one.get("end") != DENIED), None)
    if run is None or "host" not in run:
        return record.get("max_tokens")  # ``run``, ``send`` or a program enforces this number
    return record.get("max_tokens", limit) if run.get("enforced") else None  # only hooks limit an agent of a host


def max_tokens_of_memory(record: Record, defaults: DefaultBudgets) -> int:
    """Returns how many tokens the memory of the agent has room for."""
    return record.get("max_tokens", defaults.sub_agent if is_of_sub_agent(record) else defaults.main)


def is_of_sub_agent(record: Record) -> bool:
    """Whether a sub-agent does the work: the session has a parent, or has runs."""
    return parent_id_of(record) is not None or bool(record.get("runs"))


def is_used_up(record: Record) -> bool:
    """Whether the record has a budget of its own that is used up."""
    return "max_tokens" in record and tokens_of(record) >= record["max_tokens"]


def tokens_of(record: Record) -> int:
    """Returns the tokens that count against the budget."""
    return min(max(0, _counted_tokens(record) + record.get("token_correction", 0)), LARGEST_INTEGER)


def reported_tokens(record: Record) -> int | None:
    """Returns the tokens that count against the budget; None if nobody has reported any."""
    is_known = not _COUNTED.isdisjoint(record) or any(key.endswith("_tokens") for key in record.get("usage", ()))
    return tokens_of(record) if is_known else None


def skill_tokens_of(record: Record) -> int:
    """Returns the tokens of all loaded skills."""
    return min(sum(record.get("skills", {}).values()), LARGEST_INTEGER)


def consumed_tokens(usage: Usage) -> int:
    """Returns what hosts say was consumed, without tokens that were read from a cache."""
    # The total comes first: some hosts count tokens from a cache as input, but only once in the total.
    if "total_tokens" in usage:
        return max(0, usage["total_tokens"] - usage.get("cache_read_tokens", 0))
    return usage.get("input_tokens", 0) + usage.get("cache_creation_tokens", 0) + usage.get("output_tokens", 0)


def _counted_tokens(record: Record) -> int:
    return record.get("charged_tokens", 0) + skill_tokens_of(record) + consumed_tokens(record.get("usage", {}))


def estimated_tokens(content: str) -> int:
    """Estimates the tokens of ``content``: one for every 4 bytes, rounded up."""
    return -(-len(content.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def elapsed_seconds(record: Record, now: datetime) -> int:
    """Returns the whole seconds from the creation to ``now``, or to the end."""
    end = record.get("finalized_at", record["last_updated"]) if is_final(record["phase"]) else None
    return int(seconds_between(parse_time(record["created_at"]), now if end is None else parse_time(end)))


def check_tokens(name: str, tokens: object) -> int:
    """Returns ``tokens``, or raises ``BadArgument`` with this ``name`` if nobody can have used so many."""
    if not is_integer(tokens) or not 0 <= tokens <= MOST_TOKENS:
        is_huge = is_integer(tokens) and abs(tokens) > LARGEST_INTEGER  # Python refuses to convert the largest to text
        value = "a number too large" if is_huge else tokens
        raise errors.BadArgument(name, value, f"a whole number from 0 to {MOST_TOKENS:,}")
    return tokens


def with_charge(record: Record, tokens: int, now: datetime) -> Record:
    """Adds ``tokens`` that were used; a charge is activity."""
    check_open(record)
    charged = min(record.get("charged_tokens", 0) + tokens, LARGEST_INTEGER)
    return with_activity({**record, "charged_tokens": charged}, now)


def charged_message(message: NewMessage) -> NewMessage:
    """Marks ``message`` as charged, and estimates its tokens if nobody counted them."""
    tokens = check_tokens("tokens", message.get("tokens", estimated_tokens(message["content"])))
    return {**message, "tokens": tokens, "charged": True}


def with_total(record: Record, total: int, now: datetime) -> Record:
    """States ``total`` as the tokens used so far; later charges add to it."""
    if is_final(record["phase"]) and tokens_of(record) == total:
        return record
    check_open(record)
    correction = max(total - _counted_tokens(record), -LARGEST_INTEGER)
    return with_activity({**record, "token_correction": correction}, now)


def check_skill_name(name: object) -> str:
    """Returns ``name``, or raises ``InvalidInput`` if it is not one line of printable text."""
    if not isinstance(name, str) or not name.strip():
        raise errors.InvalidInput("must be a text that is not blank", "name")
    if len(name) > MAX_NAME_LENGTH:
        raise errors.InvalidInput(f"must have at most {MAX_NAME_LENGTH} characters", "name")
    if not name.isprintable() or name != name.strip():
        raise errors.InvalidInput("must be one line of printable text, with no space at the beginning or end", "name")
    return name


def with_skill(record: Record, name: str, tokens: int, now: datetime) -> Record:
    """Adds the skill ``name``; if it is loaded already, nothing changes."""
    skills = record.get("skills", {})
    if name in skills:
        return record
    check_open(record)
    return with_activity({**record, "skills": {**skills, name: tokens}}, now)
