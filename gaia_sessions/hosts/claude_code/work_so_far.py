"""What an agent of Claude Code did so far in its run, from its transcript, for the limits.
Lines are not parsed as a whole: they may have many MB.
"""

from __future__ import annotations

import errno
import json
from time import monotonic

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import lines
from gaia_sessions.hosts.payload import figures_in
from gaia_sessions.session.agent_limits import WorkSoFar
from gaia_sessions.session.budget import consumed_tokens

from .reported_usage import REQUEST_FIGURES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_MESSAGE = b'"message":{'
_ID = b'"id":"'
_TIME = b'","timestamp":"'
_USAGE = b'"usage":{'
_LONGEST_USAGE = 4096
_MILLISECONDS = len("2026-01-08T18:05:30.123")
_FIRST_JSON = json.JSONDecoder()
_SECONDS_TO_READ = 1.0
"""An agent may write anything into its own transcript, and a hook has three seconds."""


def work_so_far(paths: Collection[str], since: str | None, call: str) -> WorkSoFar:
    """Returns what was done in the transcripts from ``since`` on, before ``call``; raises ``OSError``, also if slow."""
    began, own = (since or "")[:_MILLISECONDS].encode(), f'"{call}"'.encode()
    usages: dict[bytes, bytes] = {}
    ended: set[bytes] = set()
    without_result: set[bytes] = set()
    failed: list[str] = []
    own_message = None
    until = monotonic() + _SECONDS_TO_READ
    # At the hook before a use of a tool, the line of that call, and of the rounds right before it, may not be written
    # yet: with 2.1.197 and 2.1.330 it came within 60 ms.
    for line in _lines_in(paths):
        if monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it is too long to read while the client waits")
        start = line.find(_MESSAGE)
        head = line[: max(start, 0)]
        # In a line of the user, and in an error of the API, the type is before the message. In the agent's own lines,
        # the type is after the message.
        is_users = b'"type":"user"' in head
        # A result may contain a time after the time of its line. The input of a call may contain one before it.
        end = line.find(_TIME, start) if is_users else line.rfind(_TIME)
        if start < 0 or end < start or line[end + len(_TIME) :][:_MILLISECONDS] < began:
            continue
        if not is_users:
            if b'"type":"assistant"' in head or line.rfind(b'"type":"assistant"', start, end) < 0:
                continue
            # The input of a call is JSON, so its keys look like keys of the line. The first ID counts, which is before
            # the content, and the last usage. A message counts once.
            message = _text_behind(line, _ID, start)
            usages[message] = line[line.rfind(_USAGE, start, end) + len(_USAGE) - 1 :][:_LONGEST_USAGE]
            without_result.add(message)
            own_message = message if own in line else own_message
        elif line.find(b'"type":"tool_result"', start, end) >= 0:
            ended |= without_result
            without_result = set()
            if line.find(b'"is_error":true', start, end) >= 0:
                failed += _failed_calls(line[start + len(_MESSAGE) - 1 :])
    tokens = sum(map(_tokens, usages.values()))
    # A message has ended if a result follows it, except the message of this call.
    return WorkSoFar(len(ended - {own_message}), tokens, failed, has_call=own_message is not None)


def _lines_in(paths: Iterable[str]) -> Iterator[bytes]:
    """Yields the lines of the existing files; raises ``FileNotFoundError`` if there is none."""
    missing, is_there = None, False
    for path in paths:
        try:
            yield from lines(CLAUDE_CODE, path)
            is_there = True
        except FileNotFoundError as error:
            missing = error
    if missing is not None and not is_there:
        raise missing


def _text_behind(line: bytes, key: bytes, start: int) -> bytes:
    """Returns the text right after the first ``key`` from ``start`` on; empty if there is none."""
    at = line.find(key, start)
    return line[at + len(key) : line.find(b'"', at + len(key))] if at >= 0 else b""


def _failed_calls(data: bytes) -> list[str]:
    """Returns the keys of the calls whose results are errors, in the message at the beginning of ``data``."""
    try:
        message, _ = _FIRST_JSON.raw_decode(data.decode(errors="replace"))
        calls = [block["tool_use_id"] for block in message["content"] if block.get("is_error") is True]
        return [call for call in calls if isinstance(call, str)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _tokens(usage: bytes) -> int:
    """Returns the tokens of a message that count against a budget, from the usage at the beginning of ``usage``."""
    try:
        figures, _ = _FIRST_JSON.raw_decode(usage.decode(errors="replace"))
    except (ValueError, RecursionError):
        return 0
    return consumed_tokens(figures_in(figures, REQUEST_FIGURES)) if isinstance(figures, dict) else 0  # type: ignore[arg-type]  # it has their names
