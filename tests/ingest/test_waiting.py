"""Which agents wait for a permission: real payloads through the hooks of a default ``hooks install``."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.system import utc_now
from tests.hook.conftest import own_host
from tests.ingest.test_asking import asking, hear, payloads_of, phases
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
CAPTURES = sorted(HOSTS.glob("claude-code-*/tui-permission-*.jsonl"))


def write(host: Host, after: float, since: str | None = None) -> None:
    """The agent writes to its transcript ``after`` seconds from ``since``, or from now."""
    transcript = Path(host.record()["runs"][0]["transcript_path"])
    transcript.parent.mkdir(parents=True, exist_ok=True)
    transcript.write_text("{}\n", encoding="utf-8")
    os.utime(transcript, ((parse_time(since).timestamp() if since else time.time()) + after,) * 2)


def waiting(host: Host) -> Any:
    return host.record()["runs"][0].get("waiting")


def liveness(host: Host) -> Any:
    [line] = gaia_sessions.list_sessions(root=str(host.root))
    return line.get("liveness")


def test_a_request_is_shown_until_the_agent_writes_and_recorded_until_it_stops(host: Host) -> None:
    host.work()
    hear(host, asking(host))
    asked = waiting(host)
    assert (asked["for"], phases(host.record())) == ("Bash", ["initializing", "investigating"])
    shown = {"state": "waiting", "since": asked["since"], "for": "Bash"}
    assert liveness(host) == shown
    hear(host, host.pausing("a1"))
    hear(host, host.event_payload("Notification", notification_type="permission_prompt"))
    assert waiting(host) == asked
    write(host, 0.5, asked["since"])
    assert liveness(host) == shown

    write(host, 60)
    assert (waiting(host), liveness(host)) == (asked, {"state": "working"})
    hear(host, host.ending())
    assert (waiting(host), liveness(host)) == (None, None)


def test_a_request_records_the_transcript_of_an_agent_that_outlived_its_conversation(host: Host) -> None:
    host.work()
    cleared = host.transcript.with_name("after-clear.jsonl")
    hear(host, {**asking(host), "session_id": "after-clear", "transcript_path": str(cleared)})

    written = cleared.with_suffix("") / "subagents" / "agent-a1.jsonl"
    assert host.record()["runs"][0]["transcript_path"] == str(written)
    write(host, 60)
    assert liveness(host) == {"state": "working"}


def say(host: Host, seconds: float, kind: str, *parts: dict[str, Any], message: str = "") -> None:
    """Adds a line to the agent's transcript, ``seconds`` from now."""
    transcript = host.agents / "agent-a1.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    at = format_time(utc_now() + timedelta(seconds=seconds))
    line = {
        "type": kind,
        "timestamp": at,
        "message": {"role": kind, "content": [*parts], **({"id": message} if message else {})},
    }
    with transcript.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def calling(key: str, name: str, **given: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def result(key: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": "done"}


def asks_for(host: Host, name: str, **given: object) -> None:
    hear(host, {**asking(host), "tool_name": name, "tool_input": given})


TWO = (("toolu_a", "Bash", {"command": "make"}), ("toolu_b", "Write", {"file_path": "/x"}))
SAME = (("toolu_a", "Bash", {"command": "make"}), ("toolu_b", "Bash", {"command": "test"}))


@table(("calls", "is_written"), [(TWO, True), (TWO, False), (SAME, True), (SAME, False)])
@table("first", [0, 1])
@own_host
def test_an_agent_with_two_requests_waits_until_both_are_answered(
    host: Host, calls: Any, first: int, *, is_written: bool
) -> None:
    # is_written: the transcript has the calls as well as the results.
    host.work()
    for key, name, given in calls:
        if is_written:
            say(host, -0.2, "assistant", calling(key, name, **given), message="msg_1")
        asks_for(host, name, **given)
    before = liveness(host)
    assert (before["state"], before["for"]) == ("waiting", calls[0][1])

    say(host, 1, "user", result(calls[first][0]))
    still = calls[1 - first if is_written else 0]
    assert (liveness(host)["state"], liveness(host)["for"]) == ("waiting", still[1])

    say(host, 2, "user", result(calls[1 - first][0]))
    assert liveness(host) == {"state": "working"}


def test_the_result_of_another_call_does_not_answer_a_request(host: Host) -> None:
    host.work()
    say(host, -0.3, "assistant", calling("toolu_a", "Read", file_path="/x"), message="msg_1")
    say(host, -0.2, "assistant", calling("toolu_b", "Bash", command="make"), message="msg_1")
    asks_for(host, "Bash", command="make")
    say(host, 5, "user", result("toolu_a"))
    assert liveness(host)["state"] == "waiting"

    say(host, 60, "assistant", {"type": "text", "text": "Then not."}, message="msg_2")
    assert liveness(host) == {"state": "working"}


def test_a_request_of_the_main_agent_changes_nothing(host: Host) -> None:
    host.work()
    before = host.tree(host.root)
    payload = asking(host)
    del payload["agent_id"], payload["agent_type"]
    hear(host, payload)
    assert host.tree(host.root) == before


def test_an_agent_without_recent_activity_is_quiet(host: Host) -> None:
    agent_id = host.work()
    run = {**host.record()["runs"][0], "started_at": host.ago(minutes=20)}
    host.edit(agent_id, last_updated=host.ago(minutes=12), runs=[run])
    assert liveness(host) == {"state": "quiet", "since": host.record()["last_updated"]}
    write(host, 0)
    assert liveness(host) == {"state": "working"}
    host.run("subagent_stop", host.ending())
    assert liveness(host) is None


def test_a_new_conversation_is_told_which_agents_wait_for_a_permission(host: Host) -> None:
    with host.client():
        host.work()
        hear(host, asking(host))
        reply = host.run("every_event", host.event_payload("SessionStart", session_id="other", source="startup"))
    told = reply.answer["hookSpecificOutput"]["additionalContext"].splitlines()
    since = waiting(host)["since"][:16].replace("T", " ")
    assert [line.startswith("Sub-agents that are at work.") for line in told] == [True, False]
    assert told[1].endswith(f"(waiting since {since} UTC for the user's permission to use Bash)")


def test_an_agent_whose_client_is_gone_does_not_wait_for_the_user(host: Host) -> None:
    with host.client():
        host.work()
        hear(host, asking(host))
    reply = host.run("every_event", host.event_payload("SessionStart", session_id="other", source="startup"))
    told = reply.answer["hookSpecificOutput"]["additionalContext"]
    assert (told.startswith("Sub-agents whose work is not finished."), "at work" in told, liveness(host)) == (
        True,
        False,
        None,
    )


@table("capture", CAPTURES)
@own_host
def test_each_capture_has_the_request_on_record_until_the_agent_stops(host: Host, capture: Path) -> None:
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
