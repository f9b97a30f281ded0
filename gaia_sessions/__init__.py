"""Durable sessions for the sub-agents of coding agents. ``gaia_sessions.errors`` has the errors.

The names are imported on first use, so a hook that needs one module does not pay for the others.
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


def __dir__() -> "list[str]":  # in quotes: Python 3.6 runs this file too
    return sorted([*globals(), *__all__])
