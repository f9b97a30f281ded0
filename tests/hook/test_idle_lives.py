"""Work that lasts longer than the idle limit without an event, while the agent writes to its transcript."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.api import at, resuming, showing
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.session.clock import format_time, parse_time
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.conftest import Host

WORKED = timedelta(minutes=45)
RECENT, LONG_AGO = 5, 31
"""Minutes since the last write to the transcript."""

EVERYBODY = ("should_resume", "explain", "list", "show", "update", "direct", "offer", "resume", "cleanup")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def work_for_long(host: Host, minutes_since_write: float) -> tuple[str, str]:
    """Work that began 45 minutes ago, without an event since; returns its id and the time of the last write."""
    agent_id = host.work()
    state = host.root / agent_id / "state.json"
    text = state.read_text(encoding="utf-8")
    state.write_text(
        _TIME.sub(lambda found: format_time(parse_time(found[0]) - WORKED), text),
        encoding="utf-8",
    )
    written = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes_since_write)
    transcript = host.agents / "agent-a1.jsonl"
    transcript.write_text("{}\n", encoding="utf-8")
    os.utime(transcript, (written.timestamp(), written.timestamp()))
    return agent_id, format_time(written)


def answers(host: Host, agent_id: str) -> dict[str, Any]:
    """The answer of every resume check."""
    root = str(host.root)
    sessions = Sessions(root)
    [line] = gaia_sessions.list_sessions(root=root)
    shown: Any = sessions.show(agent_id)
    told = host.hear(host.event_payload("SessionStart", session_id="other", source="startup"))
    kept = gaia_sessions.cleanup_sessions(0, dry_run=True, root=root)["kept"]
    assert "resume" in line
    said = (
        gaia_sessions.should_resume(agent_id, root=root),
        gaia_sessions.explain_resume(agent_id, root=root)["should_resume"],
        line["resume"]["should_resume"],
        shown["resume"]["should_resume"],
        at.read(sessions, showing.view, agent_id).standing.decision["should_resume"],
        host.ask("pre_delegate", {"agent_id": agent_id})["reason"] == "session_resumable",
        told is not None and f"resume {agent_id}]" in told["additionalContext"],
        [resumption["agent_id"] for resumption in at.read(sessions, resuming.resumptions)[0]] == [agent_id],
        {"agent_id": agent_id, "reason": "resumable"} in kept,
    )
    return dict(zip(EVERYBODY, said, strict=True))


@table("minutes", [RECENT, LONG_AGO])
@own_host
def test_every_resume_check_uses_the_last_transcript_write_of_a_killed_client(host: Host, minutes: int) -> None:
    with host.client() as client:
        agent_id, written = work_for_long(host, minutes)
        client.kill()

    assert answers(host, agent_id) == dict.fromkeys(EVERYBODY, minutes == RECENT)

    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))
    assert decided["reason"] == ("session_resumable" if minutes == RECENT else "expired")
    until = format_time(parse_time(written) + timedelta(minutes=30))
    assert decided["until"] == (until if minutes == RECENT else None)
    told = host.hear(host.resuming(agent_id, session_id="another"))
    begins = "You resume work" if minutes == RECENT else "This is new work that continues an earlier session"
    assert begins in told["updatedInput"]["prompt"]


@table("is_gone", [False, True])
@own_host
def test_the_last_transcript_write_is_shown_as_activity_and_sorts_the_list(
    host: Host, gaia: Callable[..., str], *, is_gone: bool
) -> None:
    root = str(host.root)
    with host.client() as client:
        agent_id, written = work_for_long(host, RECENT)
        other = gaia_sessions.create_session("other", "between", root=root)
        host.edit(other, last_updated=format_time(parse_time(written) - timedelta(minutes=1)))
        if is_gone:
            client.kill()
        lines = [*gaia_sessions.list_sessions(root=root)]
        listed, shown = gaia(host, "list"), gaia(host, "show", agent_id)

    assert [(line["agent_id"], line.get("last_activity")) for line in lines] == [(agent_id, written), (other, None)]
    assert gaia_sessions.explain_resume(agent_id, root=root).get("last_activity") == written
    assert "5 minutes ago" in listed.splitlines()[0]
    assert re.search(r"\nactive +.*, 5 minutes ago", shown)


def test_a_conversation_is_told_a_deadline_counted_from_the_last_transcript_write(host: Host) -> None:
    with host.client() as client:
        _, written = work_for_long(host, RECENT)
        client.kill()
    told = host.hear(host.event_payload("SessionStart", session_id="other", source="startup"))
    until = parse_time(written) + timedelta(minutes=30)
    assert f"until {until:%Y-%m-%d %H:%M} UTC" in told["additionalContext"]


def test_cleanup_does_not_remove_a_session_with_a_recent_transcript_write(host: Host) -> None:
    with host.client() as client:
        agent_id, _ = work_for_long(host, RECENT)
        client.kill()
    host.edit(agent_id, error_count=9)  # so that only the recent write protects it
    root = str(host.root)
    assert gaia_sessions.cleanup_sessions(0.1, dry_run=True, root=root)["removed"] == []
    assert gaia_sessions.cleanup_sessions(0.05, dry_run=True, root=root)["removed"] == [agent_id]


def _reconcile(host: Host) -> None:
    gaia_sessions.Sessions(str(host.root)).reconcile()


def _claim(host: Host) -> None:
    host.hear(host.resuming(host.record()["agent_id"], session_id="another"))


def _ended(reason: str) -> Callable[[Host], None]:
    return lambda host: host.hear(host.event_payload("SessionEnd", reason=reason))


CONCLUDED: list[tuple[Callable[[Host], None], str]] = [
    (_reconcile, "lost"),
    (_claim, "lost"),
    (_ended("other"), "ended_with_host"),
    (_ended("clear"), "ended_with_host"),
]


@table(("conclude", "end"), CONCLUDED)
@own_host
def test_an_end_concluded_from_the_host_records_the_last_transcript_write_as_activity(
    host: Host, conclude: Callable[[Host], object], end: str
) -> None:
    with host.client() as client:
        agent_id, written = work_for_long(host, RECENT)
        client.kill()

    conclude(host)

    record = host.record()
    assert (record["runs"][0]["end"], record["phase"]) == (end, "investigating")
    assert record["last_updated"] == written
    (host.agents / "agent-a1.jsonl").unlink()
    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))
    assert decided["reason"] == ("claimed" if conclude is _claim else "session_resumable")
    assert 300 <= (decided["idle_seconds"] or 0) < 400


@table(("conclude", "end"), CONCLUDED)
@own_host
def test_an_end_concluded_from_the_host_keeps_activity_after_the_last_transcript_write(
    host: Host, conclude: Callable[[Host], object], end: str
) -> None:
    """For example a long command reports a phase, or the agent writes to another file after ``/clear``."""
    with host.client() as client:
        agent_id, _ = work_for_long(host, LONG_AGO)
        reported = format_time(datetime.now(UTC) - timedelta(minutes=RECENT))
        host.edit(agent_id, last_updated=reported)
        client.kill()

    conclude(host)

    record = host.record()
    assert (record["runs"][0]["end"], record["last_updated"]) == (end, reported)
    decided = gaia_sessions.explain_resume(agent_id, root=str(host.root))
    assert decided["reason"] == ("claimed" if conclude is _claim else "session_resumable")


REPORTED: list[tuple[Callable[[Host], object], str, str]] = [
    (lambda host: host.stop(), "stopped", "completed"),
    (lambda host: host.stop(message="Enough.\n[gaia-sessions: approval] may I"), "stopped", "approval"),
    (lambda host: host.hear(host.dying()), "failed", "investigating"),
    (lambda host: host.hear(host.returning()), "returned", "investigating"),  # it reached its turn limit
    (lambda host: host.hear(host.killing()), "killed", "abandoned"),
    (
        lambda host: host.hear(host.notifying("killed", summary='Agent "Job" was stopped by user')),
        "killed",
        "investigating",
    ),
    (lambda host: host.hear(host.pausing()), "killed", "investigating"),  # the user pressed Esc, and the turn ended
]


@table(("end_work", "end", "phase"), REPORTED)
@own_host
def test_a_reported_end_counts_as_activity(
    host: Host, end_work: Callable[[Host], object], end: str, phase: str
) -> None:
    with host.client():
        agent_id, written = work_for_long(host, RECENT)
        end_work(host)
    record = host.record()
    assert (record["runs"][0]["end"], record["phase"]) == (end, phase)
    assert record["last_updated"] > written
    resumable = phase in ("investigating", "approval")
    assert gaia_sessions.should_resume(agent_id, root=str(host.root)) is resumable


@table("end", ["lost", "ended_with_host"])
@own_host
def test_executing_work_of_an_ended_host_is_abandoned_at_its_last_activity(host: Host, end: str) -> None:
    with host.client() as client:
        agent_id, written = work_for_long(host, RECENT)
        host.edit(agent_id, phase="executing", resume_ready=False)
        client.kill()
    if end == "lost":
        _reconcile(host)
    else:
        host.hear(host.event_payload("SessionEnd", reason="other"))
    record = host.record()
    assert (record["phase"], record["runs"][0]["end"], record["last_updated"]) == ("abandoned", end, written)


def test_transcript_writes_after_the_end_of_the_conversation_still_count_as_activity(host: Host) -> None:
    """It works in another process and sends no event until that process ends too."""
    agent_id, _ = work_for_long(host, 35)
    host.hear(host.event_payload("SessionEnd", reason="prompt_input_exit"))
    assert not gaia_sessions.should_resume(agent_id, root=str(host.root))
    os.utime(host.agents / "agent-a1.jsonl")
    assert gaia_sessions.should_resume(agent_id, root=str(host.root))
