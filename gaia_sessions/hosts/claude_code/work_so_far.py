"""What an agent of Claude Code did so far in its run, from its transcript, for the limits. Imported only for these.

Owns how that is found without parsing whole lines, which may have many MB: quotes within a JSON text are escaped, so
that a key with its quotes stands outside of texts, and the usage of a message stands behind its content, so that the
last one counts. At the hook before a use, the line of that use is there in most cases, and those of earlier rounds
always (2.1.330): what has ended are the messages with a result behind them, but for the one that this use belongs to.
"""

from __future__ import annotations

import json
import re

from gaia_sessions.hosts.agent_files import lines
from gaia_sessions.hosts.payload import figures_in
from gaia_sessions.session.agent_limits import Done
from gaia_sessions.session.budget import consumed_tokens

from .figures import REQUEST_FIGURES

_MESSAGE = re.compile(rb'"id":"(msg_[^"]*)"')
_TIME = re.compile(rb'"uuid":"[^"]*","timestamp":"([^"]*)"')
_RESULT = re.compile(rb'"tool_use_id":"([^"]*)"')
_USAGE = b'"usage":{'
_LONGEST_USAGE = 4096
_MILLISECONDS = len("2026-01-08T18:05:30.123")
_FIRST_JSON = json.JSONDecoder()


def done_in(path: str, since: str | None, call: str) -> Done:
    """What was done in the transcript at ``path`` from ``since`` on, before the ``call``. Raises ``OSError``."""
    began, own = (since or "")[:_MILLISECONDS].encode(), f'"{call}"'.encode()
    tokens: dict[bytes, int] = {}
    ended: set[bytes] = set()
    without_result: set[bytes] = set()
    failed: list[str] = []
    own_message = None
    for line in lines(path):
        time = _TIME.search(line)
        if time and time[1][:_MILLISECONDS] < began:
            continue
        if b'"type":"assistant"' in line and (message := _MESSAGE.search(line)):
            tokens[message[1]] = _used(line)
            without_result.add(message[1])
            own_message = message[1] if own in line else own_message
        elif b'"tool_result"' in line:
            ended |= without_result
            without_result = set()
            if b'"is_error":true' in line and (result := _RESULT.search(line)):
                failed.append(result[1].decode(errors="replace"))
    return Done(len(ended - {own_message}), sum(tokens.values()), failed)


def _used(line: bytes) -> int:
    """The tokens of the message of ``line`` that count against a budget."""
    at = line.rfind(_USAGE) + len(_USAGE) - 1
    try:
        usage, _ = _FIRST_JSON.raw_decode(line[at : at + _LONGEST_USAGE].decode(errors="replace"))
    except ValueError:
        return 0
    return consumed_tokens(figures_in(usage, REQUEST_FIGURES)) if isinstance(usage, dict) else 0  # type: ignore[arg-type]  # it has their names
