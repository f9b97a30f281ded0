"""The trace of a session: its root session, and a trace ID for OpenTelemetry and W3C Trace Context.

The trace ID is made from the root's ID: nobody stores the trace ID, and it is the same for the whole tree.
"""

from __future__ import annotations

from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Trace(TypedDict):
        """``root_id`` is the first session above, or the session itself; ``trace_id`` is 32 hexadecimal digits."""

        root_id: str
        trace_id: str


_TRACE_DIGITS, _SPAN_DIGITS = 32, 16


def trace_of(root_id: str) -> Trace:
    """Returns the trace of the tree of sessions below ``root_id``."""
    return {"root_id": root_id, "trace_id": _digest(root_id, _TRACE_DIGITS)}


def traceparent(root_id: str, agent_id: str, run: int) -> str:
    """Returns the W3C header for processes that a run starts: the tree's trace, with the run as parent span."""
    return f"00-{_digest(root_id, _TRACE_DIGITS)}-{_digest(f'{agent_id} {run}', _SPAN_DIGITS)}-01"


def _digest(text: str, digits: int) -> str:
    return sha256(text.encode()).hexdigest()[:digits]
