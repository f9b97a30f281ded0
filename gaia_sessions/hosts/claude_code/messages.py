"""The latest messages of an agent of Claude Code, from the end of its transcript.

Owns how a line becomes messages, as seen in runs of 2.1.197 and 2.1.330: each line has one message, whose content is a
text or blocks of text, calls of tools and their results. Thoughts are left out. Everything in it is untrusted. Must
never read more than the end of a transcript, which may have many MB.
"""

from __future__ import annotations

from gaia_sessions.hosts.agent_files import last_transcript_lines
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes
from gaia_sessions.jsonio.strict import dump_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.report import RecentMessage
    from gaia_sessions.session.schema import Run

_ROLES = ("user", "assistant")
_LONGEST_INPUT = 1 << 22
"""Bytes: more than the end of a transcript that is read can become."""


def recent_messages(run: Run, most: int) -> list[RecentMessage]:
    """The latest messages of the agent of ``run``, at most ``most``, the oldest first; none if they cannot be read."""
    if "key" not in run.get("workflow", {"key": ""}):
        return []  # the transcript of a workflow is its journal
    messages: list[RecentMessage] = []
    for line in reversed(last_transcript_lines(run.get("transcript_path", ""))):
        messages[:0] = _messages_in(object_in_bytes(line))
        if len(messages) >= most:
            break
    return messages[-most:]


def _messages_in(line: Payload) -> list[RecentMessage]:
    role = key_in(line, "type")
    if role not in _ROLES:
        return []
    content = object_in(line, "message").get("content")
    if isinstance(content, str):
        return [_message(role, content)]
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return [message for block in blocks for message in _messages_of(role, block)]


def _messages_of(role: str, block: Payload) -> Iterator[RecentMessage]:
    kind = block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str) and text.strip():
        yield _message(role, text)
    elif kind == "tool_use":
        yield _message(role, _input_text(block.get("input")), key_in(block, "name"), key_in(block, "id"))
    elif kind == "tool_result":
        yield _message("tool", _result_text(block.get("content")), None, key_in(block, "tool_use_id"))


def _message(role: str, content: str, tool: str | None = None, call: str | None = None) -> RecentMessage:
    return {"role": role, "content": content, "tool_name": tool, "tool_call_id": call}


def _input_text(tool_input: Json) -> str:
    return dump_line(tool_input, _LONGEST_INPUT).decode().rstrip("\n") if isinstance(tool_input, dict) else ""


def _result_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(part for part in parts if isinstance(part, str))
