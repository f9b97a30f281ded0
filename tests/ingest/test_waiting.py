"""Who waits for a person: real payloads through the hook, wired as ``hooks install`` does by default."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.system import utc_now
from tests.hook.conftest import own_host
from tests.ingest.test_tools import asking, hear, payloads_of, phases, tool
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
CAPTURES = sorted(HOSTS.glob("claude-code-*/tui-permission-*.jsonl"))
UNTRACKED = ("--host", "claude-code")


def write(host: Host, after: float, since: str | None = None) -> None:
    """The agent writes to its transcript, so many seconds after ``since``, or from now on."""
    transcript = Path(host.record()["runs"][0]["transcript_path"])
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("{}\n", encoding="utf-8")
    os.utime(transcript, ((parse_time(since).timestamp() if since else time.time()) + after,) * 2)


def waiting(host: Host) -> Any:
    return host.record()["runs"][0].get("waiting")


def liveness(host: Host) -> Any:
    [line] = gaia_sessions.list_sessions(root=str(host.root))
    return line.get("liveness")


def test_a_request_is_shown_until_the_agent_writes_and_noted_until_it_has_ended(host: Host) -> None:
    host.work()
    hear(host, asking(host), *UNTRACKED)
    asked = waiting(host)
    assert (asked["for"], phases(host.record())) == ("Bash", ["initializing", "investigating"])
    assert liveness(host) == {"state": "waiting", **asked}
    hear(host, host.pausing("a1"), *UNTRACKED)
    hear(host, host.event_payload("Notification", notification_type="permission_prompt"), *UNTRACKED)
    assert waiting(host) == asked
    write(host, 0.5, asked["since"])
    assert liveness(host) == {"state": "waiting", **asked}

    write(host, 60)
    assert (waiting(host), liveness(host)) == (asked, {"state": "working"})
    hear(host, host.ending(), *UNTRACKED)
    assert (waiting(host), liveness(host)) == (None, None)


def test_a_request_says_where_an_agent_that_outlived_its_conversation_writes(host: Host) -> None:
    host.work()
    cleared = host.transcript.with_name("after-clear.jsonl")
    hear(host, {**asking(host), "session_id": "after-clear", "transcript_path": str(cleared)}, *UNTRACKED)

    written = cleared.with_suffix("") / "subagents" / "agent-a1.jsonl"
    assert host.record()["runs"][0]["transcript_path"] == str(written)
    write(host, 60)
    assert liveness(host) == {"state": "working"}


@table("event", ["PostToolUse", "PostToolUseFailure"])
@own_host
def test_where_tools_are_tracked_a_use_answers_and_the_phase_is_inferred_as_before(host: Host, event: str) -> None:
    host.work()
    hear(host, asking(host))
    assert (waiting(host)["for"], phases(host.record())[-1]) == ("Bash", "approval")

    hear(host, tool(host, "Read", event))

    assert (waiting(host), phases(host.record())[-1]) == (None, "investigating")


def test_a_request_of_the_main_agent_marks_nobody(host: Host) -> None:
    host.work()
    before = host.tree(host.root)
    payload = asking(host)
    del payload["agent_id"], payload["agent_type"]
    hear(host, payload, *UNTRACKED)
    assert host.tree(host.root) == before


def test_an_agent_that_was_not_heard_of_is_quiet(host: Host) -> None:
    agent_id = host.work()
    run = {**host.record()["runs"][0], "started_at": host.ago(minutes=20)}
    host.edit(agent_id, last_updated=host.ago(minutes=12), runs=[run])
    assert liveness(host) == {"state": "quiet", "since": host.record()["last_updated"]}
    write(host, 0)
    assert liveness(host) == {"state": "working"}
    host.run("subagent_stop", host.ending())
    assert liveness(host) is None


def test_a_conversation_that_starts_is_told_who_waits(host: Host) -> None:
    with host.client():
        host.work()
        hear(host, asking(host), *UNTRACKED)
        reply = host.run("every_event", host.event_payload("SessionStart", session_id="other", source="startup"))
    told = reply.answer["hookSpecificOutput"]["additionalContext"].splitlines()
    since = waiting(host)["since"][:16].replace("T", " ")
    assert [line.startswith("Sub-agents that are at work.") for line in told] == [True, False]
    assert told[1].endswith(f"(waiting since {since} UTC for permission to use Bash)")


def test_nobody_waits_for_a_person_whose_host_is_gone(host: Host) -> None:
    with host.client():
        host.work()
        hear(host, asking(host), *UNTRACKED)
    reply = host.run("every_event", host.event_payload("SessionStart", session_id="other", source="startup"))
    told = reply.answer["hookSpecificOutput"]["additionalContext"]
    assert (told.startswith("Sub-agents whose work is not finished."), "at work" in told, liveness(host)) == (
        True,
        False,
        None,
    )


@table("capture", CAPTURES)
@own_host
def test_in_every_capture_it_is_noted_from_the_request_to_the_end_that_the_agent_asked(
    host: Host, capture: Path
) -> None:
    seen: list[tuple[str, bool]] = []
    for payload in payloads_of(host, capture):
        host.run("every_event", payload)
        if host.records():
            seen.append((payload["hook_event_name"], "waiting" in host.record()["runs"][0]))
    marked = [event for event, is_waiting in seen if is_waiting]
    names = [event for event, _ in seen]
    asked = names.index("PermissionRequest")
    assert marked == names[asked : names.index("SubagentStop", asked)]
    assert format_time(utc_now()) > host.record()["runs"][0]["ended_at"]
