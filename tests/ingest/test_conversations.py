"""An agent that outlives its conversation keeps one session, and its work is not offered while it runs.

The events come from real captures, in which every stop now asks for an approval, or have the same form.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.config import Config
from gaia_sessions.ingest import Terms
from gaia_sessions.ingest.dispatch import handle_event
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.hook.conftest import ASKS, own_host, paused
from tests.hook.test_lives import CAPTURES, lives
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.hook.conftest import Host
    from tests.hook.test_lives import Life, Line

__all__ = ["lives"]  # a fixture, which pytest finds by its name here

NEXT = "9c1d7f20-77aa"
OFFER = "[gaia-sessions: resume "

MOVED = [
    capture
    for capture in CAPTURES
    if capture.stem in {"tui-clear-then-prompt", "tui-resume-switch", "tui-exit-to-background"}
]


def asking(lines: Iterable[Line]) -> list[Line]:
    """The ``lines`` of a capture, changed so that every agent stops for an approval."""
    told = list(lines)
    for line in told:
        if line.event == "SubagentStop":
            line.payload["last_assistant_message"] = ASKS
    return told


def offers(life: Life) -> list[str]:
    """The events whose reply offered to resume paused work."""
    return [event for event, answer in life.answers if OFFER in answer["hookSpecificOutput"]["additionalContext"]]


def in_next(payload: dict[str, Any]) -> dict[str, Any]:
    """``payload`` as an event of the next conversation."""
    return {**payload, "session_id": NEXT, "transcript_path": payload["transcript_path"].replace("0e23a513-af54", NEXT)}


def leave(host: Host, reason: str = "clear") -> Any:
    """Ends the conversation, begins the next one, and returns what the next one is told."""
    assert host.hear(host.event_payload("SessionEnd", reason=reason)) is None
    source = {"clear": "clear", "resume": "resume"}.get(reason, "startup")
    return host.hear(in_next(host.event_payload("SessionStart", source=source)))


def latest(record: Any) -> tuple[object, ...]:
    run = record["runs"][-1]
    keys = ("run", "end", "host_agent_id", "host_session_id", "current_host_session_id")
    return record["phase"], *(run.get(key) for key in keys)


@table("capture", MOVED)
def test_an_approval_asked_in_the_next_conversation_pauses_the_session_and_is_offered_there(
    capture: Path, lives: Any
) -> None:
    life = lives()
    lines = asking(life.lines(capture))

    life.live(lines)

    [record] = life.records()
    assert life.errors == []
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("approval", ["stopped"])
    assert record["runs"][0]["last_message"] == ASKS
    assert offers(life) == ["UserPromptSubmit"]
    stopped_in = next(line.session for line in lines if line.event == "SubagentStop")
    assert record["runs"][0]["current_host_session_id"] == stopped_in != record["runs"][0]["host_session_id"]
    assert list((life.root / ".inbox").glob("*.json")) == []


@table("capture", MOVED)
def test_the_work_of_a_running_agent_is_offered_to_nobody(capture: Path, lives: Any) -> None:
    life = lives()
    lines = life.lines(capture)
    stops = next(place for place, line in enumerate(lines) if line.event == "SubagentStop")

    life.live(lines[:stops])

    assert offers(life) == []
    [record] = life.records()
    assert (record["phase"], "ended_at" in record["runs"][0]) == ("investigating", False)


def test_only_background_agents_outlive_a_conversation_that_the_user_leaves(host: Host) -> None:
    with host.client():
        background = host.work("toolu_1", "a1")
        host.hear(host.launching("toolu_1", "a1"))
        foreground = host.work("toolu_2", "a2")

        told = leave(host, "clear")

    assert told["additionalContext"].splitlines()[1:] == ["- Explore: Count quokkas (working)"]

    records = host.records()
    assert latest(records[background])[:3] == ("investigating", 1, None)
    assert latest(records[foreground])[:3] == ("investigating", 1, "ended_with_host")


@table("reason", ["clear", "resume"])
@own_host
def test_leaving_a_conversation_does_not_deny_an_agent_whose_start_is_unreported(host: Host, reason: str) -> None:
    asked = {**host.delegation()["tool_input"], "run_in_background": True}
    host.hear(host.delegation(tool_input=asked))

    leave(host, reason)
    host.knows("a1", "toolu_1")
    host.hear(in_next(host.ending()) | {"transcript_path": str(host.transcript)})

    assert latest(host.record())[:3] == ("completed", 1, "stopped")


@table("reason", ["clear", "resume"])
@own_host
def test_the_end_of_the_next_conversation_ends_agents_that_were_reported_in_it(host: Host, reason: str) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.launching())
    leave(host, reason)
    host.hear(in_next(host.pausing("a1")))
    assert latest(host.record()) == ("investigating", 1, None, "a1", host.SESSION, NEXT)

    host.hear(in_next(host.event_payload("SessionEnd", reason="prompt_input_exit")))

    assert latest(host.record()) == ("investigating", 1, "ended_with_host", "a1", host.SESSION, NEXT)


def test_an_ended_run_reopens_if_the_next_conversation_lists_its_agent_as_running(host: Host) -> None:
    agent_id = host.work("toolu_1", "a1")
    host.hear(host.launching())
    gaia_sessions.update_state(agent_id, "executing", root=str(host.root))
    host.hear(host.event_payload("SessionEnd", reason="other"))
    assert latest(host.record())[:3] == ("abandoned", 1, "ended_with_host")

    host.hear(in_next(host.pausing("a1")))

    record = host.record()
    assert latest(record) == ("executing", 1, None, "a1", host.SESSION, NEXT)
    assert "finalized_at" not in record
    assert host.timeless(record["history"]) == host.moved(
        "initializing", "investigating", "executing", "abandoned", "executing"
    )


@table("in_the_same", [True, False])
@own_host
def test_the_stop_of_an_agent_replaces_the_end_with_its_conversation(host: Host, *, in_the_same: bool) -> None:
    agent_id = host.work("toolu_1", "a1")
    gaia_sessions.update_state(agent_id, "executing", root=str(host.root))
    host.hear(host.event_payload("SessionEnd", reason="other"))

    host.hear(host.ending(message=ASKS) if in_the_same else in_next(host.ending(message=ASKS)))

    record = host.record()
    assert latest(record)[:3] == ("approval", 1, "stopped")
    assert (record["resume_ready"], "finalized_at" in record) == (True, False)


def test_a_start_in_a_fork_belongs_to_the_same_run(host: Host) -> None:
    with host.client():
        host.work("toolu_1", "a1")
        host.hear(host.launching())
        host.hear(host.event_payload("SessionEnd", reason="prompt_input_exit"))
    assert host.hear(in_next(host.event_payload("SessionStart", source="fork"))) is None
    with host.client() as daemon:
        host.hear(in_next(host.starting("a1")))

        record = host.record()
        assert latest(record) == ("investigating", 1, None, "a1", host.SESSION, NEXT)
        assert record["runs"][0]["host_process"]["pid"] == daemon.pid
        host.hear(in_next(host.starting("a1")))
        assert host.record() == record


def test_a_run_that_begins_in_the_next_conversation_is_joined_in_the_first_too(
    host: Host,
) -> None:
    paused(host)
    leave(host)
    host.hear(in_next(host.messaging("a1")))
    host.hear(in_next(host.starting("a1")))
    assert latest(host.record()) == ("executing", 2, None, "a1", NEXT, None)

    host.hear(in_next(host.pausing("a1")))
    host.hear(in_next(host.event_payload("SessionEnd", reason="resume")))
    host.hear(host.event_payload("SessionStart", source="resume"))
    host.hear(host.pausing("a1"))
    assert latest(host.record()) == ("executing", 2, None, "a1", NEXT, host.SESSION)
    host.hear(host.ending(message=ASKS))

    record = host.record()
    assert (record["phase"], [run["end"] for run in record["runs"]]) == ("approval", ["stopped", "stopped"])


def test_a_woken_background_agent_outlives_its_conversation(host: Host) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.launching())
    host.hear(host.ending(message=ASKS))
    host.hear(host.messaging("a1"))
    host.hear(host.starting("a1"))
    host.hear(host.pausing("a1"))

    assert leave(host) is None

    assert latest(host.record())[:3] == ("executing", 2, None)


def test_a_late_notification_of_an_earlier_run_does_not_change_the_new_run(host: Host) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.launching())
    host.hear(host.ending(message=ASKS))
    leave(host)
    host.hear(in_next(host.messaging("a1")))
    host.hear(in_next(host.starting("a1")))
    before = host.record()

    host.hear(in_next(host.notifying("completed")))

    assert host.record() == before


def test_an_end_that_the_user_set_is_not_reopened(host: Host) -> None:
    agent_id = host.work("toolu_1", "a1")
    gaia_sessions.update_state(agent_id, "executing", root=str(host.root))
    host.hear(host.event_payload("SessionEnd", reason="other"))
    gaia_sessions.finalize_session(agent_id, "abandoned", "by hand", root=str(host.root))
    before = host.record()
    assert (before["phase"], before["summary"]) == ("abandoned", "by hand")

    host.hear(in_next(host.pausing("a1")))

    assert host.record() == before


def test_an_agent_reported_in_a_fork_before_its_start_is_not_lost_with_the_old_process(host: Host) -> None:
    with host.client():
        agent_id = host.work("toolu_1", "a1")
        host.hear(host.launching())
        host.hear(host.starting("a1"))
        host.hear(host.event_payload("SessionEnd", reason="prompt_input_exit"))
    with host.client() as daemon:
        host.hear(in_next(host.pausing("a1")))
        assert not gaia_sessions.should_resume(agent_id, root=str(host.root))

        host.hear(in_next(host.starting("a1")))

    assert latest(host.record()) == ("investigating", 1, None, "a1", host.SESSION, NEXT)
    assert host.record()["runs"][0]["host_process"]["pid"] == daemon.pid


def test_work_that_ended_with_its_conversation_is_not_offered_while_its_client_runs(host: Host) -> None:
    with host.client():
        host.work("toolu_1", "a1")
        host.hear(host.event_payload("SessionEnd", reason="other"))
        assert host.hear(in_next(host.event_payload("SessionStart", source="startup"))) is None

    told = host.hear(in_next(host.event_payload("SessionStart", source="startup")))

    assert OFFER in told["additionalContext"]


def test_a_resumed_conversation_is_offered_its_own_paused_work_and_a_new_one_all(host: Host) -> None:
    ours = paused(host)
    host.hear(in_next(host.delegation("toolu_2")))
    host.hear(in_next(host.returning("toolu_2", "a2", status="async_launched", isAsync=True)))
    [theirs] = set(host.records()) - {ours}
    host.hear(in_next(host.ending("a2", message=ASKS)))

    told = {
        source: host.hear(host.event_payload("SessionStart", source=source))["additionalContext"]
        for source in ("resume", "compact", "startup", "clear")
    }

    named = {source: [agent_id for agent_id in (ours, theirs) if agent_id in text] for source, text in told.items()}
    assert named == {"resume": [ours], "compact": [ours], "startup": [ours, theirs], "clear": [ours, theirs]}


def test_only_a_resumed_conversation_is_told_which_agents_it_may_wake(host: Host) -> None:
    agent_id = paused(host)

    told = {
        source: host.hear(host.event_payload("SessionStart", source=source))["additionalContext"].split("\n")
        for source in ("resume", "compact", "startup", "clear")
    }

    (heading, line), (other_heading, other_line) = told["resume"], told["startup"]
    wake = "use SendMessage to write to the agent named in its line; or "
    assert heading == other_heading.replace("delegate to", f"{wake}delegate to")
    assert line == f"{other_line}, agent a1"
    assert line.startswith(f"{OFFER}{agent_id}] ")
    assert told["compact"] == told["clear"] == told["startup"]


def test_reconcile_does_not_end_agents_of_a_conversation_that_the_user_left(host: Host) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.launching())
    leave(host)

    told = gaia_sessions.Sessions(str(host.root)).reconcile()

    assert [verdict["verdict"] for verdict in told["verdicts"]] == ["running"]
    assert latest(host.record())[:3] == ("investigating", 1, None)


def codex(host: Host, kind: str, conversation: str, **keys: object) -> str:
    """The result of an event of Codex, which names agents after their tasks in every conversation."""
    now = utc_now()
    event: Any = {"kind": kind, "at": format_time(now), "host": "codex", "host_session_id": conversation, **keys}
    return handle_event(FileStore(str(host.root)), event, Terms(now, Config({}), 1)).word


def test_a_codex_agent_with_the_same_name_in_another_conversation_is_another_agent(host: Host) -> None:
    alpha = {"host_agent_id": "/root/alpha"}
    codex(host, "delegate", "A", tool_use_id="t1", agent_name="alpha", purpose="one")
    codex(host, "start", "A", tool_use_id="t1", launch=True, **alpha)
    codex(host, "stop", "A", has_message=True, marker_phase="approval", last_message=ASKS, **alpha)
    [first] = host.records()
    before = host.records()
    codex(host, "delegate", "B", tool_use_id="t2", agent_name="alpha", purpose="two")
    [second] = set(host.records()) - {first}

    codex(host, "start", "B", **alpha)
    codex(host, "stop", "B", has_message=True, last_message="Done B.", **alpha)
    codex(host, "fail", "B", interrupted=True, error="closed by the main agent", **alpha)
    codex(host, "start", "B", tool_use_id="t2", launch=True, **alpha)

    records = host.records()
    assert {first: records[first]} == before
    assert records[second]["runs"][0]["host_agent_id"] == "/root/alpha"


def test_a_nested_agent_outlives_the_conversation_only_with_its_parent(host: Host) -> None:
    with host.client():
        background = host.work("toolu_1", "a1")
        host.hear(host.launching("toolu_1", "a1"))
        foreground = host.work("toolu_2", "a2")
        ids = {}
        for number, parent in enumerate(["a1", "a2"], 3):
            ids[parent] = host.work(f"toolu_{number}", f"a{number}", agent_id=parent)

        leave(host)

        ends = {agent_id: record["runs"][0].get("end") for agent_id, record in host.records().items()}
    assert ends == {
        background: None,
        ids["a1"]: None,
        foreground: "ended_with_host",
        ids["a2"]: "ended_with_host",
    }


@table("news", ["a turn's end that names it", "a request for permission"])
@own_host
def test_a_later_sign_of_life_reopens_a_run_that_ended_with_its_conversation(host: Host, news: str) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.launching())
    host.hear(host.event_payload("SessionEnd", reason="other"))
    assert latest(host.record())[:3] == ("investigating", 1, "ended_with_host")
    asked = host.event_payload("PermissionRequest", tool_name="Bash", tool_input={}, agent_id="a1")

    if news == "a request for permission":
        host.hear({**asked, "agent_type": "Explore"})
    else:
        host.hear(host.pausing("a1"))

    assert latest(host.record()) == ("investigating", 1, None, "a1", host.SESSION, None)


def test_two_concurrent_starts_of_a_finished_agent_create_one_new_session(host: Host) -> None:
    host.work("toolu_1", "a1")
    host.hear(host.ending())
    [first] = host.records()

    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(partial(host.start, "every_event"), [host.starting("a1"), in_next(host.starting("a1"))]))
    assert [(one.code, one.err) for one in ran] == [(0, b"")] * 2

    assert len(host.records()) == 2
    assert [record.get("continues") for record in host.records().values() if "continues" in record] == [first]
