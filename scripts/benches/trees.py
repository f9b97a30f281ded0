"""What a tree of sessions costs: to ask for each session whether it is cancelled, and to begin another session.

Every session has a cancellation token that was asked before, as in a running program.
"""

from __future__ import annotations

import os
import time
from collections import deque
from functools import partial
from itertools import islice
from statistics import median

from gaia_sessions import CancellationToken, Sessions, create_session, finalize_session
from gaia_sessions.session.lineage import with_parent
from gaia_sessions.session.record import new_record
from gaia_sessions.system import utc_now

from . import samples
from .findings import Finding
from .timing import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.session.schema import Record

_SESSIONS = 1000
_CHILDREN = 3
_LOOKS = 3
_ENDED = (10, 10_000)
_ROUNDS = 21


def cancelled(folder: str) -> Iterator[Finding]:
    """Measures how each session of a tree sees one write that cancels the tree."""
    _, store = samples.project(folder)
    records = list(islice(_tree(), _SESSIONS))
    for record in records:
        store.create(record)
    tokens = [CancellationToken(record["agent_id"], root=store.root) for record in records]
    before = [_seconds_to_look(token, is_cancelled=False) for _ in range(_LOOKS) for token in tokens]
    Sessions(store.root).cancel(records[0]["agent_id"])
    after = [_seconds_to_look(token, is_cancelled=True) for token in tokens]
    yield Finding(f"not cancelled, each of {_SESSIONS} in a tree, median", median(before[-_SESSIONS:]) * 1000, 1, "ms")
    yield Finding(f"cancelled with the root of {_SESSIONS}, median", median(after) * 1000, 1, "ms")
    yield Finding(
        f"cancelled with the root of {_SESSIONS}, 99 of 100", sorted(after)[-_SESSIONS // 100] * 1000, 1, "ms"
    )


def children(folder: str) -> Iterator[Finding]:
    """Measures how a session begins below one with many ended children, and below one with few."""
    _, store = samples.project(folder)
    for count in _ENDED:
        parent = new_record(f"parent-{count}", os.path.basename(__file__), "tree", {}, utc_now())
        store.create(parent)
        for number in range(count):
            child = {**parent, "agent_id": f"child-{count}-{number}", "parent_id": parent["agent_id"]}
            store.create({**child, "phase": "completed"})  # type: ignore[typeddict-item]  # a record with other keys

    def begin_below(count: int) -> None:
        finalize_session(create_session(parent_id=f"parent-{count}", root=store.root), "completed", root=store.root)

    few, many = _ENDED
    ratio = compare(_ROUNDS, lambda _: (partial(begin_below, many), partial(begin_below, few)))
    yield Finding(f"a child after {many} ended ones: time after {few}", ratio.wall, 1.5)


def _tree() -> Iterator[Record]:
    """Yields the records of a tree, level by level."""
    now = utc_now()
    parents: deque[Record | None] = deque([None])
    for number in range(_SESSIONS):
        parent = parents[0]
        record = with_parent(new_record(f"agent-{number}", os.path.basename(__file__), "tree", {}, now), parent)
        yield record
        if parent is None or number % _CHILDREN == 0:
            parents.popleft()
        parents.append(record)


def _seconds_to_look(token: CancellationToken, *, is_cancelled: bool) -> float:
    began = time.perf_counter()
    found = token.is_cancelled
    taken = time.perf_counter() - began
    if found is not is_cancelled:
        raise AssertionError(f"{token.agent_id}: cancelled is {found}")
    return taken
