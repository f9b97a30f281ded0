"""What an agent of Claude Code did so far in its run, from its transcript, for the limits. Imported only for these.

Owns how that is found without parsing whole lines, which may have many MB: quotes within a JSON text are escaped, so
that a key with its quotes stands outside of texts, and the usage of a message stands behind its content, so that the
last one counts. At the hook before a use, the line of that use is there in most cases. What has ended are the messages
with a result behind them, but for the one that this use belongs to. 2.1.330 was seen to have written those of earlier
rounds, 2.1.197 not always: then a limit of rounds holds a round later.
"""

from __future__ import annotations

import json

from gaia_sessions.hosts.agent_files import lines
from gaia_sessions.hosts.payload import figures_in
from gaia_sessions.session.agent_limits import WorkSoFar
from gaia_sessions.session.budget import consumed_tokens

from .figures import REQUEST_FIGURES

_TIME = b'","timestamp":"'
_MESSAGE = b'"id":"msg_'
_USAGE = b'"usage":{'
_RESULT = b'"tool_use_id":"'
_LONGEST_HEAD = 1024
"""Bytes. Within these a line says that it is the user's, and that it has the result of a call."""

_LONGEST_USAGE = 4096
_MILLISECONDS = len("2026-01-08T18:05:30.123")
_FIRST_JSON = json.JSONDecoder()


def work_so_far(path: str, since: str | None, call: str) -> WorkSoFar:
    """What was done in the transcript at ``path`` from ``since`` on, before the ``call``. Raises ``OSError``."""
    began, own = (since or "")[:_MILLISECONDS].encode(), f'"{call}"'.encode()
    usages: dict[bytes, bytes] = {}
    ended: set[bytes] = set()
    without_result: set[bytes] = set()
    failed: list[str] = []
    own_message = None
    for line in lines(path):
        at = line.rfind(_TIME) + len(_TIME)
        if at >= len(_TIME) and line[at : at + _MILLISECONDS] < began:
            continue
        head = line[:_LONGEST_HEAD]
        if b'"type":"user"' in head:
            if b'"tool_result"' in head:
                ended |= without_result
                without_result = set()
                if b'"is_error":true' in line:
                    failed.append(_text_behind(line, _RESULT).decode(errors="replace"))
        elif line.rfind(b'"type":"assistant"') >= 0 and (message := _text_behind(line, _MESSAGE)):
            usages[message] = line[line.rfind(_USAGE) + len(_USAGE) - 1 :][:_LONGEST_USAGE]
            without_result.add(message)
            own_message = message if own in line else own_message
    return WorkSoFar(len(ended - {own_message}), sum(map(_tokens, usages.values())), failed)


def _text_behind(line: bytes, key: bytes) -> bytes:
    """The text that begins right behind ``key``; empty if that is not there."""
    at = line.find(key)
    return line[at + len(key) : line.find(b'"', at + len(key))] if at >= 0 else b""


def _tokens(usage: bytes) -> int:
    """The tokens that count against a budget, of a message whose usage ``usage`` begins with."""
    try:
        figures, _ = _FIRST_JSON.raw_decode(usage.decode(errors="replace"))
    except ValueError:
        return 0
    return consumed_tokens(figures_in(figures, REQUEST_FIGURES)) if isinstance(figures, dict) else 0  # type: ignore[arg-type]  # it has their names
