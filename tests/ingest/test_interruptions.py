"""An interruption that only the host's files show, and the run that begins after it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.session.clock import format_time
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host


def interrupted(host: Host, agent: str = "a1", *, by_user: bool = False) -> None:
    """Writes an interruption of the agent, at this moment, into the client's files."""
    said = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    line = {"type": "user", "message": said, "timestamp": format_time(datetime.now(UTC))}
    (host.agents / f"agent-{agent}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    meta = host.agents / f"agent-{agent}.meta.json"
    noted = {**json.loads(meta.read_bytes()), "stoppedByUser": by_user}
    meta.write_text(json.dumps(noted), encoding="utf-8")


@table("by_user", [False, True])
@own_host
def test_an_old_interruption_does_not_end_the_new_run_of_a_woken_agent(host: Host, *, by_user: bool) -> None:
    host.work()
    host.hear(host.launching())
    interrupted(host, by_user=by_user)
    host.hear(host.event_payload("UserPromptSubmit", prompt="Go on"))
    first = host.record()["runs"][0]
    host.hear(host.messaging())
    host.hear(host.starting())

    host.hear(host.event_payload("UserPromptSubmit", prompt="And?"))  # the transcript still ends with the interruption
    reported = Sessions(str(host.root)).reconcile()["verdicts"]

    assert (first["end"], first["interruption"]) == ("killed", "stopped_by_user" if by_user else "interrupted")
    [_, woken] = host.record()["runs"]
    assert ("end" in woken, [verdict["closed"] for verdict in reported]) == (False, [False])

    host.stop()
    assert (host.record()["phase"], [run["end"] for run in host.record()["runs"]]) == (
        "completed",
        ["killed", "stopped"],
    )
