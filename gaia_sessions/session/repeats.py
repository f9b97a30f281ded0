"""Loops: an agent repeats the same call of a tool, and gets the same result each time.

Calls of one message count once: the agent made them before it saw a result.
"""

from __future__ import annotations

from .agent_limits import GO_ON_WITH, GO_ON_WITHOUT, SEARCHES_USED, USE_NO_MORE_TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TOLD_AFTER = 3
REFUSED_AFTER = 4
SECONDS_OF_A_POLL = 5.0
"""A call that takes this long has waited for something, so the agent may call again."""

_LOOP = "This is a loop: "


class PastCall:
    """A call of a tool, as the transcript of its agent has it."""

    __slots__ = ("call_text", "key", "message", "result", "seconds", "was_refused")

    def __init__(
        self, *, key: str, message: str, call_text: str, result: str | None, seconds: float, was_refused: bool
    ) -> None:
        self.key = key
        self.message = message  # the ID of the message with the call, or ``key``
        self.call_text = call_text  # the tool and its input
        self.result = result  # None if the result is not written yet
        self.seconds = seconds  # infinite if the call reads the output of background work
        self.was_refused = was_refused  # by a hook: the call was never made


def row_before(call: str, calls: Iterable[PastCall]) -> int | None:
    """Counts the messages right before ``call`` with the same call and result; ``calls`` begins with the newest."""
    # The count is None if it depends on calls that are not written yet. A ``call`` that is not written is the newest.
    call_text = own_message = result = None
    is_written = is_waiting = False
    messages: set[str] = set()
    for past in calls:
        if past.key == call:
            call_text, own_message, result = past.call_text, past.message, None
            is_written, is_waiting, messages = True, False, set()
            continue
        if past.was_refused:
            continue
        call_text = past.call_text if call_text is None else call_text
        if past.call_text != call_text:
            break
        if past.message == own_message:  # a call of the same message, which has no result yet
            continue
        if past.seconds >= SECONDS_OF_A_POLL or (result is not None and past.result != result):
            break
        is_waiting = is_waiting or past.result is None
        result = past.result
        messages.add(past.message)
        if len(messages) == REFUSED_AFTER:
            break
    count = len(messages)
    if is_written and not is_waiting:
        return count
    enough = TOLD_AFTER if is_written else TOLD_AFTER - 1  # the last message before ``call`` can be missing too
    return 0 if count < enough else None


def warning(tool: str) -> str:
    """Returns what an agent is told before the fourth identical call."""
    return (
        f"The last {TOLD_AFTER} calls of {tool} had this same input, and all had the same result. "
        "If this call has the same result, the next one is refused. Do something else, or report what you have."
    )


def refusal(tool: str, *, cancels: bool) -> str:
    """Returns what an agent is told instead of the fifth identical call."""
    found = f"{_LOOP}the last {REFUSED_AFTER} calls of {tool} had this same input, and all had the same result."
    if cancels:
        return f"{found} The work is cancelled. {USE_NO_MORE_TOOLS}"
    return f"{found} Do something else, or report what you have and what is missing."


def reason_to_cancel(agent_id: str, tool: str) -> str:
    """Returns the reason of the cancellation that the loop of session ``agent_id`` causes."""
    return f"a loop: {agent_id} made the same call of {tool} again and again, with the same result"


def is_own_refusal(text: str) -> bool:
    """Whether ``text`` is a refusal of ours, for a client that does not note who refused a call."""
    begins, ends = text.startswith((_LOOP, SEARCHES_USED)), text.endswith((USE_NO_MORE_TOOLS, GO_ON_WITHOUT))
    return begins or ends or f". {GO_ON_WITH}" in text
