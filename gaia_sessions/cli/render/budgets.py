"""Budgets, skills and todos in words."""

from __future__ import annotations

from .words import Prose, duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gaia_sessions.session.budget import LoadedSkill, TokenUsage
    from gaia_sessions.session.schema import Todo
    from gaia_sessions.session.todos import NumberedTodo

_LONGEST_TODO = 1000


def usage_line(usage: TokenUsage) -> str:
    """Returns ``agent-123: 1,500 of 64,000 tokens used, 300 for skills, 3 minutes in all``."""
    used = " used" if usage["tokens"] else ""
    return f"{usage['agent_id']}: {budget_text(usage, used)}, {duration(usage['elapsed_secs'])} in all"


def budget_text(usage: TokenUsage, used: str = "") -> str:
    """Returns the tokens and the limit, then ``used``; whether the limit is reached, and the tokens for skills."""
    parts = [tokens_text(usage["tokens"], usage["max_tokens"]) + used]
    if usage["limit_reached"]:
        parts.append("limit reached")
    if usage["skill_tokens"]:
        parts.append(f"{usage['skill_tokens']:,} for skills")
    return ", ".join(parts)


def tokens_text(tokens: int, most: int | None) -> str:
    """Returns ``1,500 of 64,000 tokens`` or ``no tokens reported, limit 64,000``; without a limit ``1,500 tokens``."""
    if not tokens:
        return "no tokens reported" + ("" if most is None else f", limit {most:,}")
    return token_count(tokens) if most is None else f"{tokens:,} of {token_count(most)}"


def token_count(tokens: int) -> str:
    """Returns ``1,500 tokens``."""
    return f"{tokens:,} token{'' if tokens == 1 else 's'}"


def skill_line(skill: LoadedSkill) -> str:
    loaded = "loaded" if skill["added"] else "was loaded already"
    return f"{skill['agent_id']}: skill {safe(skill['name'])} {loaded}, {token_count(skill['tokens'])}"


def todo_change_line(agent_id: str, todo: NumberedTodo) -> str:
    return f"{agent_id}: todo {todo['number']} {todo['status']}: {safe(todo['description'])}"


def todo_lines(todos: Sequence[Todo | NumberedTodo]) -> list[Prose]:
    """Returns a line for each todo: number, status, description."""
    width = len(str(len(todos)))
    return [
        Prose(f"{number:>{width}}  {todo['status']:<11}  {safe(todo['description'], _LONGEST_TODO)}", width + 15)
        for number, todo in enumerate(todos, 1)
    ]
