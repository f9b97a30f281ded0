"""Durable sessions for the sub-agents of coding agents.

The names below are the public API; ``gaia_sessions.errors`` has what they raise. They are imported on first use, and
importing the package itself must never import anything else: a hook that needs one module pays for no other.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.cancellation_token import CancellationToken
    from .api.ephemeral import EphemeralSession
    from .api.functions import (
        cleanup_sessions,
        create_session,
        explain_resume,
        finalize_session,
        get_session,
        list_sessions,
        should_resume,
        update_state,
    )
    from .api.sessions import Sessions
    from .api.subagent_session import SubAgentSession

__version__ = "0.1.0"

__all__ = [
    "CancellationToken",
    "EphemeralSession",
    "Sessions",
    "SubAgentSession",
    "cleanup_sessions",
    "create_session",
    "explain_resume",
    "finalize_session",
    "get_session",
    "list_sessions",
    "should_resume",
    "update_state",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "CancellationToken":
        from .api.cancellation_token import CancellationToken

        return CancellationToken
    if name == "EphemeralSession":
        from .api.ephemeral import EphemeralSession

        return EphemeralSession
    if name == "SubAgentSession":
        from .api.subagent_session import SubAgentSession

        return SubAgentSession
    from .api import functions

    return getattr(functions, name)


def __dir__() -> "list[str]":  # in quotes for the Pythons that old_python serves
    return sorted([*globals(), *__all__])
