"""What agents used, in words: tokens, tools, time, model, worktree.

Owns that wording, which plain text and tables share.
"""

from __future__ import annotations

from gaia_sessions.errors import plural

from .words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Run, Usage

_TOKENS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cache read",
    "cache_creation_tokens": "cache written",
}


def usage_text(usage: Usage) -> str:
    """``4,132 tokens (input 1,003, output 103, cache read 3,003, cache written 23), 2 tool uses, 0.7 s``."""
    return ", ".join(_usage_parts(usage)) or "nothing"


def _usage_parts(usage: Usage) -> Iterator[str]:
    kinds = [f"{name} {usage[key]:,}" for key, name in _TOKENS.items() if key in usage]  # type: ignore[literal-required]
    if "total_tokens" in usage:
        yield f"{usage['total_tokens']:,} tokens" + (f" ({', '.join(kinds)})" if kinds else "")
    elif kinds:
        yield f"tokens: {', '.join(kinds)}"
    if "tool_uses" in usage:
        yield plural(usage["tool_uses"], "tool use")
    if "duration_ms" in usage:
        yield f"{usage['duration_ms'] / 1000:,.1f} s"


def run_figures(run: Run) -> Iterator[str]:
    """What is known of the cost of one run, each as a part of its line."""
    if "model" in run:
        yield f"model {safe(run['model'])}"
    if "worktree" in run:
        yield f"worktree {safe(run['worktree'].get('path', run['worktree'].get('branch', 'unknown')))}"
    if "consumed" in run:
        yield f"used {usage_text(run['consumed'])}"
    if "usage" in run:
        yield f"its host reported {usage_text(run['usage'])}"
