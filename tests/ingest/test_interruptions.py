"""What is concluded from the files of a host: an interruption that no event reports, and what replaces it."""

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
    """The client writes down that the agent was interrupted at this moment."""
    said = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    line = {"type": "user", "message": said, "timestamp": format_time(datetime.now(UTC))}
    (host.agents / f"agent-{agent}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    meta = host.agents / f"agent-{agent}.meta.json"
    noted = {**json.loads(meta.read_bytes()), "stoppedByUser": by_user}
    meta.write_text(json.dumps(noted), encoding="utf-8")


@table("by_user", [False, True])
@own_host
def test_the_interruption_of_an_agent_that_was_woken_since_is_none_of_its_new_run(host: Host, *, by_user: bool) -> None:
    host.work()
    host.hear(host.launching())
    interrupted(host, by_user=by_user)
    host.hear(host.event_payload("UserPromptSubmit", prompt="Go on"))
    first = host.record()["runs"][0]
    host.hear(host.messaging())
    host.hear(host.starting())

    host.hear(host.event_payload("UserPromptSubmit", prompt="And?"))  # nothing was added to the transcript yet
    reported = Sessions(str(host.root)).reconcile()["verdicts"]

    assert (first["end"], first["interruption"]) == ("killed", "stopped_by_user" if by_user else "interrupted")
    [_, woken] = host.record()["runs"]
    assert ("end" in woken, [verdict["closed"] for verdict in reported]) == (False, [False])

    host.stop()
    assert (host.record()["phase"], [run["end"] for run in host.record()["runs"]]) == (
        "completed",
        ["killed", "stopped"],
    )
