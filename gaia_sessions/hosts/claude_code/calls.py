"""The calls of tools at the end of an agent's transcript, and which of them have a result. The file is untrusted.
{"type": "assistant", "timestamp", "message": {"id", "content": [{"type": "tool_use", "id", "name", "input"}]}}
{"type": "user", "timestamp", "message": {"content": [{"type": "tool_result", "tool_use_id"}]}}
"""

from __future__ import annotations

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import LONGEST_LINE, lines_backwards
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes, parts_in, text_in
from gaia_sessions.session.clock import UTC, datetime, parse_time
from gaia_sessions.session.permission_requests import SeenCall, SeenCalls

from .tool_uses import digest_of_use, name_of_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.schema import Run

_LAST_BYTES = 1 << 20
_OF_AGENT = b'"assistant"'
_RESULT = b'"tool_result"'
_EARLY, _LATE = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
"""The times of lines without a time: such a call is before all requests, such a result is after them."""


def calls_seen(run: Run) -> SeenCalls | None:
    """Returns the calls at the end of the transcript of the agent of ``run``; None if there are none."""
    reader = _Reader()
    try:
        for line in reversed(list(lines_backwards(CLAUDE_CODE, run.get("transcript_path", ""), _LAST_BYTES))):
            if _OF_AGENT in line or _RESULT in line:
                reader.read(object_in_bytes(line, LONGEST_LINE))
    except OSError:
        return None
    found = reader.found
    return found if found.rounds or found.other_results else None


class _Reader:
    def __init__(self) -> None:
        self.found = SeenCalls()
        self.message: str | None = None
        self.has_result = False

    def read(self, line: Payload) -> None:
        message = object_in(line, "message")
        if line.get("type") == "assistant":
            at = _time_of(line, _EARLY)
            self._begin_round_with(key_in(message, "id"), at)
            for part in parts_in(message, "tool_use"):
                self._add_call(part, at)
        elif line.get("type") == "user":
            for part in parts_in(message, "tool_result"):
                self._add_result(key_in(part, "tool_use_id"), _time_of(line, _LATE))

    def _begin_round_with(self, message: str | None, at: datetime) -> None:
        """Begins a round if the line has another message ID, or, without an ID, if a result came before."""
        # In 2.1.197 and 2.1.330 a message may have several lines with one ID, and results of its first calls
        # before its last line. The next message comes after all of them.
        is_same = message == self.message if message else not self.has_result
        if not self.found.rounds or not is_same:
            self.found.rounds.append(at)
        self.message, self.has_result = message, False

    def _add_call(self, part: Payload, at: datetime) -> None:
        key, tool = key_in(part, "id"), name_of_tool(text_in(part, "name"))
        if key and tool:
            asked = digest_of_use(tool, object_in(part, "input"))
            self.found.calls[key] = SeenCall(tool, asked, at, len(self.found.rounds))

    def _add_result(self, key: str | None, at: datetime) -> None:
        if key is None:
            return
        self.has_result = True
        call = self.found.calls.get(key)
        if call is None:
            self.found.other_results[key] = at
        else:
            call.answered_at = at


def _time_of(line: Payload, otherwise: datetime) -> datetime:
    try:
        return parse_time(line.get("timestamp"))
    except ValueError:
        return otherwise
