"""What it costs to tell an agent of earlier turns, and to send it something, after few and after many messages.

The messages are in one turn or in many, in the session's transcript or in the file of a host.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from gaia_sessions import SubAgentSession
from gaia_sessions.api.sessions import Sessions

from . import samples
from .client import Client
from .findings import Finding
from .starts import COMMAND
from .timing import Start, times_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gaia_sessions.store.file_store import FileStore

_FEW, _MANY = 10, 10_000
_TURNS = 1000
_LIMIT = 1.25
"""The cost after many messages, as a multiple of the cost after few."""

_COUNTERS = Path("/proc/self/io")
_COUNTED = (2, 100, _TURNS)
_MORE_BYTES = 1.05
"""A later turn has longer numbers."""

_MOST_CPU = 15.0


def contexts(folder: str) -> Iterator[Finding]:
    """Measures ``context`` and a hook that resumes, after many messages and after few; then what a turn writes."""
    project, store = samples.project(folder)
    client = Client(project)
    few = _context(project, _talk(store, _FEW))
    for what, agent_id in (
        ("10,000 messages in one turn", _talk(store, _MANY)),
        ("10,000 messages in 1,000 turns", _talk(store, _MANY // _TURNS, _TURNS)),
    ):
        yield _ratio(f"context, {what}: cost of 10", _context(project, agent_id), few)
    few = _context(project, _paused(client, store, _FEW))
    yield _ratio(
        "context, 10,000 in a client's file: cost of 10", _context(project, _paused(client, store, _MANY)), few
    )
    few, many = (_resumption(client, store, number) for number in (_FEW, _MANY))
    yield _ratio("a delegation that resumes after 10,000: cost of 10", many, few)
    if _COUNTERS.exists():
        yield from _bytes_of_turns(store)


def _ratio(what: str, measured: Start, baseline: Start) -> Finding:
    return Finding(what, times_bare(measured)[0] / times_bare(baseline)[0], _LIMIT)


def _context(project: str, agent_id: str) -> Start:
    return Start("context", (sys.executable, str(COMMAND), "context", agent_id), project, bytes, _check_told)


def _check_told(printed: bytes) -> None:
    if b"The answer." not in printed:
        raise RuntimeError(f"the last answer was expected, not {printed!r}")


def _resumption(client: Client, store: FileStore, messages: int) -> Start:
    return client.start("pre_delegate", "claimed", lambda: client.resume(_paused(client, store, messages)))


def _talk(store: FileStore, messages: int, turns: int = 1) -> str:
    """Returns the ID of a new session with so many turns of so many messages each."""
    sessions = Sessions(store.root, {"durability": "fast"})
    agent_id = sessions.create(samples.AGENT, "talk")
    rounds = [
        one
        for number in range(messages // 2 - 1)
        for one in (
            {
                "role": "assistant",
                "content": '{"command": "make"}',
                "tool_call_id": f"call_{number}",
                "tool_name": "Bash",
            },
            {"role": "tool", "content": "It was made.\n" * 20, "tool_call_id": f"call_{number}"},
        )
    ]
    for _ in range(turns):
        said = [{"role": "user", "content": "Make it."}, *rounds, {"role": "assistant", "content": "The answer."}]
        sessions.add_turn(agent_id, said)
    return agent_id


def _paused(client: Client, store: FileStore, messages: int) -> str:
    """Returns the ID of a new session whose agent asked for an approval after so many messages."""
    before = set(store.ids())
    client.pause(messages, "The answer.\n[gaia-sessions: approval] shall I?")
    [agent_id] = set(store.ids()) - before
    return agent_id


def sends(folder: str) -> Iterator[Finding]:
    """Measures what a send writes, and the time of this process beside its agent, durable as by default."""
    _, store = samples.project(folder)
    talk = SubAgentSession(lambda _: "The answer.", "Be brief.", root=store.root)
    written, times = {}, []
    for number in range(1, _TURNS + 1):
        before, began = _written() if _COUNTERS.exists() else 0, time.process_time()
        talk.send("Make it.")
        times.append(time.process_time() - began)
        written[number] = _written() - before if _COUNTERS.exists() else 0
    if _COUNTERS.exists():
        yield from _later_turns("send", written)
    last = sum(times[-100:]) / 100
    yield Finding(
        f"a send after {_TURNS - 100:,} to {_TURNS:,} others, beside its agent", 1000 * last, _MOST_CPU, "ms CPU"
    )


def _bytes_of_turns(store: FileStore) -> Iterator[Finding]:
    """Measures what a turn writes; the yardstick is the first turn without a new file."""
    sessions = Sessions(store.root, {"durability": "fast"})
    agent_id = sessions.create(samples.AGENT, "talk")
    said = [{"role": "user", "content": "Make it."}, {"role": "assistant", "content": "The answer."}]
    written = {}
    for number in range(1, _TURNS + 1):
        before = _written()
        sessions.add_turn(agent_id, said)
        written[number] = _written() - before
    yield from _later_turns("turn", written)


def _later_turns(what: str, written: Mapping[int, int]) -> Iterator[Finding]:
    first, *later = _COUNTED
    for number in later:
        yield Finding(
            f"bytes that {what} {number} writes: of {what} {first}", written[number] / written[first], _MORE_BYTES
        )


def _written() -> int:
    counts = dict(line.split(": ") for line in _COUNTERS.read_text(encoding="utf-8").splitlines())
    return int(counts["wchar"])
