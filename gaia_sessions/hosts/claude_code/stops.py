"""When Claude Code asks a hook whether a sub-agent is allowed to stop: finds that stop, and makes the reply."""

from __future__ import annotations

from time import monotonic

from gaia_sessions.hosts import CLAUDE_CODE, SECONDS_FOR_LINE
from gaia_sessions.hosts.agent_files import lines_backwards, looks_until
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes, parts_in, text_in
from gaia_sessions.session.held_stops import MOST_HOLDS
from gaia_sessions.session.ids import quick_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from gaia_sessions.hosts import StopToHold
    from gaia_sessions.hosts.payload import HookPayload, Payload

_STOP, _SHELL = "SubagentStop", "Bash"
_CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_LONGEST_CAP = 9
"""Digits. A longer number is higher than our own limit."""

_LAST_BYTES = 1 << 20
_MOST_LINES = 200
_TYPES = (b'"type":"assistant"', b'"type":"user"')


def stop_to_hold(payload: HookPayload, known: Collection[str]) -> StopToHold | None:
    """Returns the stop in ``payload``; None for another event, or a message not written in time; or ``OSError``."""
    if payload.text("hook_event_name") != _STOP:
        return None
    key = _key_of_message(payload, known)
    most = most_holds(payload.variables)
    return None if key is None else {"key": key, "most": most, "shell": _SHELL, "reply": _keeps_going}


def _keeps_going(reason: str) -> dict[str, object]:
    """Returns the reply to a stop that keeps the agent at work."""
    return {"decision": "block", "reason": reason}


def most_holds(variables: Mapping[str, str]) -> int:
    """Returns how often an agent can be held back, even if it uses no tool. Ignores 0 and a value that is no number."""
    # If we hold an agent back more often than the client obeys, the client ends the agent without another event.
    said = variables.get(_CAP, "").strip()
    is_cap = said.isascii() and said.isdigit() and len(said) <= _LONGEST_CAP
    return min(MOST_HOLDS, int(said) or MOST_HOLDS) if is_cap else MOST_HOLDS


def _key_of_message(payload: HookPayload, known: Collection[str]) -> str | None:
    """Returns the key of the message with which the agent stops. Several hooks may get one stop at the same time."""
    # A payload has no key of the stop, and two stops of one agent may have the same payload. But each stop ends with
    # its own message in the transcript. The client writes it while the hook runs: within 60 ms (2.1.330, 2.1.332).
    path, said = payload.text("agent_transcript_path"), payload.text("last_assistant_message")
    key, was_last = None, False
    for _ in looks_until(monotonic() + SECONDS_FOR_LINE):
        key, is_last = _last_said(path, said)
        if is_last and key not in known:
            return key
        was_last = was_last or is_last
    if key is None or key not in known:
        return None
    # If the last line has a known key, this is the same stop again. If only lines of the user follow the message and no
    # new message comes in time, this counts as a new stop, so that every hold is counted.
    return key if was_last else quick_digest(f"{key} {len(known)}")


def _last_said(path: str, said: str) -> tuple[str | None, bool]:
    """Returns a digest of the key of the latest message with ``said``, and whether that message is the last line."""
    is_last = True
    for line in _messages(path):
        if line.get("type") == "user":
            is_last = False
            continue
        message = object_in(line, "message")
        texts = [text for part in parts_in(message, "text") if (text := text_in(part, "text").strip())]
        if any(text in said for text in texts):
            key = key_in(line, "uuid")
            return (None if key is None else quick_digest(key)), is_last and key is not None
        if texts or any(parts_in(message, "tool_use")):
            break
    # The agent has since used a tool, or said something else.
    return None, False


def _messages(path: str) -> Iterator[Payload]:
    """Yields the messages in the transcript, the newest first."""
    for number, line in enumerate(lines_backwards(CLAUDE_CODE, path, _LAST_BYTES)):
        if number == _MOST_LINES:
            return
        if any(kind in line for kind in _TYPES):
            message = object_in_bytes(line)
            if message.get("type") in ("assistant", "user"):
                yield message
