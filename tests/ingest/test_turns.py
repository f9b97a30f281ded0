"""The end of a turn or a conversation settles several runs, even if one of the writes fails."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gaia_sessions.config import Config
from gaia_sessions.errors import DurabilityUnknown, LockTimeout, StoreFailure
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.store.open_session import OpenSession
    from tests.hook.conftest import Host

OVER = {"main_stop": ("abandoned", "denied"), "session_end": ("investigating", "ended_with_host")}


class Failing(FileStore):
    """A file store in which a change of one session fails before or after the write."""

    victim = ""
    error: SessionsError
    written = False

    def open(self, agent_id: str, *, timeout: float | None = None) -> Any:
        if agent_id == self.victim and not self.written:
            raise self.error
        session = super().open(agent_id, timeout=timeout)
        return self._failing_at_last(session) if agent_id == self.victim else session

    @contextmanager
    def _failing_at_last(self, opened: OpenSession) -> Iterator[OpenSession]:
        with opened as session:
            yield session
        raise self.error


# The error, and whether the write was applied before the error.
FAILURES = [
    (DurabilityUnknown("state.json", "Input/output error"), True),
    (StoreFailure("write", "state.json", "Input/output error"), False),
    (LockTimeout("agent", 2.0, None), False),
]


def ends(host: Host) -> list[tuple[str, str]]:
    return sorted((record["phase"], record["runs"][-1].get("end", "")) for record in host.records().values())


@table("victim", [0, 1, 2])
@table("kind", OVER)
@table(("error", "written"), FAILURES)
@own_host
def test_a_run_that_cannot_be_settled_blocks_no_other_run_and_is_settled_later(
    host: Host, error: SessionsError, kind: str, victim: int, *, written: bool
) -> None:
    for number in range(3):
        host.hear(host.delegation(f"toolu_{number}"))
        if kind == "session_end":
            host.hear(host.returning(f"toolu_{number}", f"a{number}", status="async_launched", isAsync=True))
    before = ends(host)
    store = Failing(str(host.root))
    store.victim, store.error, store.written = sorted(host.records())[victim], error, written
    now = utc_now() + timedelta(seconds=1)
    event: Event = {"kind": kind, "at": format_time(now), "host": "claude-code", "host_session_id": host.SESSION}

    done = handle_event(store, event, Terms(now, Config({}), 0.1))

    settled = [OVER[kind]] * (3 if written else 2)
    assert (done.word, ends(host)) == ("deferred", sorted([*settled, *before[len(settled) :]]))
    assert [waiting["kind"] for waiting in host.deferred()] == [kind]

    told = apply_deferred(FileStore(str(host.root)), now, Config({}))
    assert (len(told), ends(host), host.deferred()) == (1, [OVER[kind]] * 3, [])
