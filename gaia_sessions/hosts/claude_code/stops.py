"""Which stop of a sub-agent of Claude Code it is that a hook is told of. Imported only where stops are held back.

A payload has no key of the stop, and two stops of one agent may have the same payload. The agent's transcript tells
them apart: each ends with a message of its own. The client writes that line while the hook runs already: with 2.1.330
and 2.1.332 it came within 60 ms. Where it asks an agent to go on more often than it obeys, the client ends the agent
without another event.
"""

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
"""Digits. What is longer is no lower than ours."""

_LAST_BYTES = 1 << 20
_MOST_LINES = 200
_TYPES = (b'"type":"assistant"', b'"type":"user"')


def stop_to_hold(payload: HookPayload, known: Collection[str]) -> StopToHold | None:
    """The stop; None if ``payload`` is of no such event, or its message is not written in time.

    One of the ``known`` keys is only returned if no other line comes in time: then the same stop is told again. Raises
    ``OSError`` if its transcript cannot be read.
    """
    if payload.text("hook_event_name") != _STOP:
        return None
    key = _key_of_message(payload, known)
    most = most_holds(payload.variables)
    return None if key is None else {"key": key, "most": most, "shell": _SHELL, "reply": _keeps_going}


def _keeps_going(reason: str) -> dict[str, object]:
    """The reply to a stop by which the agent goes on."""
    return {"decision": "block", "reason": reason}


def most_holds(variables: Mapping[str, str]) -> int:
    """How often an agent may be held back, also if it uses no tool meanwhile; 0 and what is no number say nothing."""
    said = variables.get(_CAP, "").strip()
    is_cap = said.isascii() and said.isdigit() and len(said) <= _LONGEST_CAP
    return min(MOST_HOLDS, int(said) or MOST_HOLDS) if is_cap else MOST_HOLDS


def _key_of_message(payload: HookPayload, known: Collection[str]) -> str | None:
    """The key of the message with which the agent stops, of which several hooks may be told at the same time.

    A known key that stands last is the same stop told again. Where an answer stands behind it and the line of the new
    stop does not come, it counts as a new stop, so that no agent is held without being counted.
    """
    path, said = payload.text("agent_transcript_path"), payload.text("last_assistant_message")
    key, was_last = None, False
    for _ in looks_until(monotonic() + SECONDS_FOR_LINE):
        key, is_last = _last_said(path, said)
        if is_last and key not in known:
            return key
        was_last = was_last or is_last
    if key is None or key not in known:
        return None
    return key if was_last else quick_digest(f"{key} {len(known)}")


def _last_said(path: str, said: str) -> tuple[str | None, bool]:
    """A digest of the key of the latest message in which the agent ``said`` this, and whether it is the last of all.

    None if it used a tool since, or said something else.
    """
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
    return None, False


def _messages(path: str) -> Iterator[Payload]:
    """The lines of messages in the transcript, the last first."""
    for number, line in enumerate(lines_backwards(CLAUDE_CODE, path, _LAST_BYTES)):
        if number == _MOST_LINES:
            return
        if any(kind in line for kind in _TYPES):
            message = object_in_bytes(line)
            if message.get("type") in ("assistant", "user"):
                yield message
