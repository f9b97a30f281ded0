"""Durable sessions for the sub-agents of coding agents.

The names below are the public API; ``gaia_sessions.errors`` has what they raise. They are imported on first use, and
importing the package itself must never import anything else: a hook that needs one module pays for no other.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import (
        CancellationToken,
        EphemeralSession,
        add_message,
        add_skill,
        add_todo,
        cancel_conversation,
        cancel_session,
        charge_tokens,
        cleanup_sessions,
        create_session,
        explain_resume,
        finalize_session,
        get_session,
        import_sessions,
        list_sessions,
        reconcile_sessions,
        session_children,
        session_events,
        session_messages,
        session_report,
        session_todos,
        session_tree,
        session_usage,
        set_todo_status,
        set_todos,
        set_token_total,
        should_resume,
        update_state,
        wait_sessions,
    )

__version__ = "0.1.0"

__all__ = [
    "CancellationToken",
    "EphemeralSession",
    "add_message",
    "add_skill",
    "add_todo",
    "cancel_conversation",
    "cancel_session",
    "charge_tokens",
    "cleanup_sessions",
    "create_session",
    "explain_resume",
    "finalize_session",
    "get_session",
    "import_sessions",
    "list_sessions",
    "reconcile_sessions",
    "session_children",
    "session_events",
    "session_messages",
    "session_report",
    "session_todos",
    "session_tree",
    "session_usage",
    "set_todo_status",
    "set_todos",
    "set_token_total",
    "should_resume",
    "update_state",
    "wait_sessions",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
