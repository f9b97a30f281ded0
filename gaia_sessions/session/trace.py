"""What gathers all that is told of a session and of those below it: the first session above, and an ID made of that.

Owns how a trace ID is made, which OpenTelemetry and W3C Trace Context read: never stored, since it follows from the ID
of the root. Of one session it is always the same, so that a query finds its whole tree. Pure.
"""

from __future__ import annotations

from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Trace(TypedDict):
        """root_id: the first session above, or the session itself. trace_id: 32 hexadecimal digits made of that."""

        root_id: str
        trace_id: str


_TRACE_DIGITS, _SPAN_DIGITS = 32, 16


def trace_of(root_id: str) -> Trace:
    """The trace of the tree below ``root_id``."""
    return {"root_id": root_id, "trace_id": _digest(root_id, _TRACE_DIGITS)}


def traceparent(root_id: str, agent_id: str, run: int) -> str:
    """The header of W3C Trace Context for what a run starts: the trace of its tree, and the run as the parent span."""
    return f"00-{_digest(root_id, _TRACE_DIGITS)}-{_digest(f'{agent_id} {run}', _SPAN_DIGITS)}-01"


def _digest(text: str, digits: int) -> str:
    return sha256(text.encode()).hexdigest()[:digits]
