"""Which host told: the one named by whoever wired the hook, unless the payload itself says another.

Owns the table of hosts. Each has a module of its own that knows what it calls things; only that of the
host that told is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from gaia_sessions.strictjson import Json

CLAUDE_CODE = "claude-code"

MODULES = {CLAUDE_CODE: "claude_code"}
"""The hosts by the name that records have for them, and the module of each."""


def named(host: str | None, payload: dict[str, Json], environ: Mapping[str, str]) -> str:  # noqa: ARG001
    """The name of the host that sent ``payload``; ``host`` is the one the hook was wired for, if that was said."""
    return host if host in MODULES else CLAUDE_CODE


def module_of(host: str) -> ModuleType:
    """What knows the words of ``host``."""
    found: ModuleType = __import__(f"gaia_sessions.hooks.{MODULES[host]}", fromlist=[""])  # importlib costs as much
    return found
