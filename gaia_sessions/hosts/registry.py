"""Which host told: the one whose own keys are in the payload, else the one that the hook was wired for.

Owns the table of hosts and how they are told apart. Some read the settings of another and run our hook as
that one would, so what only one host sends beats the wiring. Each has a module of its own that knows what
it calls things; only that of the host that told is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from gaia_sessions.jsonio.strict import Json

    Payload = dict[str, Json]

CLAUDE_CODE = "claude-code"
CODEX = "codex"
QWEN_CODE = "qwen-code"
GEMINI_CLI = "gemini-cli"
CURSOR = "cursor"
COPILOT = "copilot"
FACTORY = "factory"

HOSTS = (CLAUDE_CODE, CODEX, QWEN_CODE, GEMINI_CLI, CURSOR, COPILOT, FACTORY)
"""By the name that records have for them; the module of each has the same one."""

_GEMINI_EVENTS = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent")


def host_of(wired_for: str | None, payload: Payload, environ: Mapping[str, str]) -> str:
    """The name of the host that sent ``payload``; ``host`` is the one the hook was wired for, if that was said."""
    configured = wired_for if wired_for in HOSTS else CLAUDE_CODE
    detected = _host_by_keys(payload)
    if detected is None and configured == CLAUDE_CODE:
        detected = _host_by_environment(payload, environ)
    return detected or configured


def module_of(host: str) -> ModuleType:
    """What knows the words of ``host``."""
    name = host.replace("-", "_")
    found: ModuleType = __import__(f"gaia_sessions.hosts.{name}", fromlist=[""])  # importlib costs as much
    return found


def _host_by_keys(payload: Payload) -> str | None:
    if "cursor_version" in payload:
        return CURSOR
    if "sessionId" in payload or "hookEventName" in payload:
        return COPILOT
    if "turn_id" in payload and "model" in payload:
        return CODEX
    return GEMINI_CLI if payload.get("hook_event_name") in _GEMINI_EVENTS else None


def _host_by_environment(payload: Payload, environ: Mapping[str, str]) -> str | None:
    """Who put what only it knows into the environment. A client started inside another inherits that one's."""
    session = environ.get("GEMINI_SESSION_ID")
    if session and session == payload.get("session_id"):
        return GEMINI_CLI
    if "timestamp" in payload and "QWEN_PROJECT_DIR" in environ:
        return QWEN_CODE
    if "CLAUDE_PROJECT_DIR" in environ:
        return None
    if "FACTORY_PROJECT_DIR" in environ:
        return FACTORY
    return COPILOT if "timestamp" in payload else None
