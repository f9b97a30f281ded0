"""The progress line of a wait, or of a long read, redrawn on stderr; and that a server has not answered yet.

Loaded only if stderr is a terminal.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Timer

from gaia_sessions.api import at, records
from gaia_sessions.api.waiting import is_at_work
from gaia_sessions.errors import SessionNotFound, StoreFailure
from gaia_sessions.session import state
from gaia_sessions.session.clock import parse_time
from gaia_sessions.system import utc_now

from . import output
from .render.columns import cells
from .render.plain import agent_and_purpose
from .render.words import duration, safe, state_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from gaia_sessions.api.at import Place
    from gaia_sessions.api.waiting import Found

_BAR = 30
"""The cells of a bar."""

_SECONDS_OF_SILENCE = 2.0
"""How long a server may take to answer before a person is told."""

_SHORTEST = 10
"""A name is not cut to fewer characters."""


class _Drawn:
    """A line that is redrawn in its place."""

    def __init__(self) -> None:
        self._shown = ""

    def clear(self) -> None:
        self._draw("")

    def _draw(self, text: str) -> None:
        """Draws as much of ``text`` as fits into the line."""
        text = _cut(text, output.stderr_width())
        before, self._shown = self._shown, text  # before drawing: an interrupt may come in between
        if text != before:
            output.draw_to_stderr("\r" + text + " " * (cells(before) - cells(text)) + "\r" * (not text))


class ReadingLine(_Drawn):
    """Shows how many of ``total`` sessions were read."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._total = total

    def show(self, number: int) -> None:
        self._draw(f"{number:,} of {self._total:,} sessions read")


class Bar(_Drawn):
    """Shows how many sessions of all are done."""

    def show(self, number: int, count: int) -> None:
        done = _BAR * number // count
        self._draw(f"{'━' * done}{'╌' * (_BAR - done)} {number:,} of {count:,} sessions")


class Progress(_Drawn):
    """Shows how many sessions have ended, and one that has not: if possible, one that waits for a person."""

    def __init__(self, roots: Sequence[Place]) -> None:
        super().__init__()
        self._roots = roots
        self._names: dict[str, str] = {}

    def show(self, found: Mapping[str, Found]) -> None:
        """Draws the line, or removes it if no agent works."""
        at_work = [agent_id for agent_id, one in found.items() if is_at_work(one)]
        asking = [agent_id for agent_id in at_work if found[agent_id][0].get("state") == state.WAITING]
        awaited = next(iter([*asking, *at_work]), None)
        if awaited is None:
            self._draw("")
            return
        count = f"{len(found) - len(at_work)} of {len(found)} ended, " if len(found) > 1 else ""
        before, after = f"{count}waiting for ", _standing(found[awaited], utc_now())
        room = output.stderr_width() - cells(before + after)
        self._draw(before + _cut(self._name_of(awaited), room, _SHORTEST) + after)

    def _name_of(self, agent_id: str) -> str:
        if agent_id not in self._names:
            self._names[agent_id] = next(self._names_in_roots(agent_id), agent_id)
        return self._names[agent_id]

    def _names_in_roots(self, agent_id: str) -> Iterator[str]:
        for root in self._roots:
            with suppress(StoreFailure, SessionNotFound):  # a server may be away for a moment
                record = at.read(root, records.as_applied, agent_id)
                yield agent_and_purpose(record["agent_name"], record["purpose"])


def tell_of_silence(server: Place) -> None:
    """Says on stderr if the ``server`` has not answered after two seconds, and how long this still waits."""
    timer = Timer(_SECONDS_OF_SILENCE, _tell_of_silence, [server])
    timer.daemon = True
    timer.start()


def _tell_of_silence(server: Place) -> None:
    from gaia_sessions.postgres.connections import is_silent

    left = server.config.lock_timeout - _SECONDS_OF_SILENCE
    if left > 0 and is_silent(server.root):
        message = f"{server.root} does not answer yet; this waits for {duration(left)} more"
        output.print_aside("server_silent", message, as_json=False)


def _cut(text: str, room: int, shortest: int = 0) -> str:
    """Cuts ``text`` to fewer cells than ``room``, but not below ``shortest`` characters."""
    while len(text) > shortest and cells(text) >= room:
        text = text[:-2] + "…" * (len(text) > 1)
    return text


def _standing(found: Found, now: datetime) -> str:
    """Returns ``, working for 3 minutes``; if the client asks for a permission, ``, which asks you to permit Bash``."""
    report, stands = found
    alive = stands.alive if stands else None
    if alive and "for" in alive:
        return f", which asks you to permit {safe(alive['for'], 30)}"
    since = report.get("state_since")
    if stands is None or since is None:
        return ""
    text = state_text(str(report.get("state")), stands.decision["phase"] or "", alive)
    return f", {text} for {duration(max(0, (now - parse_time(str(since))).total_seconds()))}"
