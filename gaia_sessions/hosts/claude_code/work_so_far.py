"""What an agent of Claude Code did so far in its run, from its transcript, for the limits. Imported only for these.

Owns how that is found without parsing whole lines, which may have many MB. A line says that it is the user's before its
message, and an error of the API says its kind there too; the agent's own lines say it behind. The input of a call is no
text, so its keys look like those of the line: of a message the first ID counts, which stands before the content, and
the last usage. What has ended are the messages with a result behind them, but for the one that the call belongs to. At
the hook before a use the line of that call, and of the rounds right before it, may not be written yet: with 2.1.197 and
2.1.330 it came within 60 ms.
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
    """What was done in the transcripts at ``paths`` from ``since`` on, before the ``call``; a message counts once.

    Raises ``OSError``, also where reading them takes too long.
    """
    began, own = (since or "")[:_MILLISECONDS].encode(), f'"{call}"'.encode()
    usages: dict[bytes, bytes] = {}
    ended: set[bytes] = set()
    without_result: set[bytes] = set()
    failed: list[str] = []
    own_message = None
    until = monotonic() + _SECONDS_TO_READ
    for line in _lines_in(paths):
        if monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it is too long to be read while a client waits")
        start = line.find(_MESSAGE)
        head = line[: max(start, 0)]
        is_users = b'"type":"user"' in head
        # A result may have a time within itself, behind that of its line; so may the input of a call, before it.
        end = line.find(_TIME, start) if is_users else line.rfind(_TIME)
        if start < 0 or end < start or line[end + len(_TIME) :][:_MILLISECONDS] < began:
            continue
        if not is_users:
            if b'"type":"assistant"' in head or line.rfind(b'"type":"assistant"', start, end) < 0:
                continue
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
    return WorkSoFar(len(ended - {own_message}), tokens, failed, has_call=own_message is not None)


def _lines_in(paths: Iterable[str]) -> Iterator[bytes]:
    """The lines of those files that are there; raises ``FileNotFoundError`` if none is."""
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
    """The text right behind the first ``key`` from ``start`` on; empty if that is not there."""
    at = line.find(key, start)
    return line[at + len(key) : line.find(b'"', at + len(key))] if at >= 0 else b""


def _failed_calls(data: bytes) -> list[str]:
    """The keys of the calls whose results, in the message that ``data`` begins with, are errors."""
    try:
        message, _ = _FIRST_JSON.raw_decode(data.decode(errors="replace"))
        calls = [block["tool_use_id"] for block in message["content"] if block.get("is_error") is True]
        return [call for call in calls if isinstance(call, str)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def _tokens(usage: bytes) -> int:
    """The tokens that count against a budget, of a message whose usage ``usage`` begins with."""
    try:
        figures, _ = _FIRST_JSON.raw_decode(usage.decode(errors="replace"))
    except (ValueError, RecursionError):
        return 0
    return consumed_tokens(figures_in(figures, REQUEST_FIGURES)) if isinstance(figures, dict) else 0  # type: ignore[arg-type]  # it has their names
