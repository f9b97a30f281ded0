"""A session that is woken many times: its record stays small, and its journal has every end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.store.file_store import FileStore

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hook.conftest import Host


@pytest.fixture
def host(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose process is alive."""
    monkeypatch.setenv("GAIA_SESSIONS_DURABILITY", "fast")
    host.client_pid = os.getppid()
    return host


def tell(host: Host, payload: dict[str, Any]) -> str:
    """The decision of the hook."""
    ran = host.run("every_event", payload)
    assert (ran.code, ran.err) == (0, b"")
    end = (host.logs / "hook.log").read_bytes()[-4096:]
    return str(json.loads(end.splitlines()[-1])["decision"])


def claim(host: Host, key: str = "toolu_1", prompt: str = "p") -> Any:
    """Begins a delegation; returns the answer."""
    asked = {"description": "d", "prompt": prompt, "subagent_type": "Explore"}
    return host.hear(host.delegation(key, tool_input=asked))


def start(host: Host, agent: str = "a1", key: str = "toolu_1") -> str:
    decision = tell(host, host.starting(agent))
    host.knows(agent, key)
    return decision


def stop(host: Host, words: str, agent: str = "a1") -> str:
    return tell(host, host.ending(agent, words))


def state(host: Host) -> Path:
    [found] = host.root.glob("[!.]*/state.json")
    return found


def words(number: int) -> str:
    """A last message that is longer than what is stored."""
    return f"{number} begins here. {'x' * 5000} and ends {number}.\n[gaia-sessions: approval] step {number}"


def wake(host: Host, times: int) -> None:
    """The agent asks for approval, and again after each of so many wakings."""
    claim(host)
    start(host)
    stop(host, words(1))
    for number in range(2, times + 2):
        assert start(host) == "started"
        assert stop(host, words(number)) == "paused"


@pytest.mark.parametrize("times", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_session_woken_often_has_a_small_record_and_a_complete_journal(host: Host, times: int) -> None:
    wake(host, times)

    record = host.record()
    assert state(host).stat().st_size < DOCUMENT_LIMIT / 10
    assert (record["phase"], record["resume_ready"], record["error_count"]) == ("approval", True, 0)
    assert [run["run"] for run in record["runs"]] == list(range(times - 48, times + 2))
    assert record["runs_dropped"] == times - 49
    assert {run["end"] for run in record["runs"]} == {"stopped"}
    last = words(times + 1)
    assert record["runs"][-1]["last_message"] == last[-4000:]
    assert [run["last_message"] for run in record["runs"][:-1]] == [
        words(number)[-200:] for number in range(times - 48, times + 1)
    ]
    told = [entry for entry in host.journal(host.record()["agent_id"]) if entry["kind"] == "stop"]
    assert [(entry["run"], entry["end"], entry["phase"]) for entry in told] == [
        (number, "stopped", "approval") for number in range(1, times + 2)
    ]

    start(host)
    assert stop(host, "It is all done.") == "finalized"
    assert (host.record()["phase"], host.record()["runs"][-1]["run"]) == ("completed", times + 2)


def test_a_late_event_of_a_dropped_run_does_not_change_the_stored_runs(host: Host) -> None:
    wake(host, 60)
    start(host)
    before, known = host.record(), len(host.journal(host.record()["agent_id"]))

    for status in ("completed", "failed", "killed"):
        assert tell(host, host.notifying(status)) == "known"
    assert (host.record(), len(host.journal(host.record()["agent_id"]))) == (before, known)

    host.hear(host.notifying("completed", tool_use_id="toolu_of_the_wake"))
    assert (host.record()["runs"][-1]["run"], host.record()["runs"][-1]["end"]) == (62, "returned")


def test_a_late_stop_of_a_dropped_agent_does_not_end_the_run_of_another(host: Host) -> None:
    claim(host)
    start(host)
    stop(host, words(1))
    agent_id = host.record()["agent_id"]
    for number in range(2, 62):
        key, agent = f"toolu_{number}", f"b{number}"
        claim(host, key, f"p\n[gaia-sessions: resume {agent_id}]")
        start(host, agent, key)
        stop(host, words(number), agent)
    claim(host, "toolu_62", f"p\n[gaia-sessions: resume {agent_id}]")
    assert (host.record()["runs"][-1]["run"], host.record()["runs_dropped"]) == (62, 12)
    before = host.record()
    for note in host.transcript.with_suffix("").rglob("*.meta.json"):
        note.unlink()  # so that only the agent's id identifies the run

    marked = f"too late\n[gaia-sessions: failed {agent_id}] what an agent of a dropped run says"
    stop(host, marked, "b5")
    stop(host, marked)

    assert host.record() == before
    assert len(list(host.root.glob("[!.]*/state.json"))) == 1


def test_each_claim_of_a_paused_session_gets_the_whole_briefing(host: Host) -> None:
    claim(host)
    start(host)
    stop(host, words(1))
    request = f"p\n[gaia-sessions: resume {host.record()['agent_id']}]"

    for key in ("toolu_2", "toolu_3"):
        told = claim(host, key, request)
        assert "x" * 3000 in told["updatedInput"]["prompt"]
        host.hear(host.event_payload("Stop"))  # the turn ended before the agent started
    assert [run.get("end") for run in host.record()["runs"]] == ["stopped", "denied", "denied"]


def test_an_old_record_with_too_many_runs_is_trimmed_by_the_next_write(host: Host) -> None:
    wake(host, 2)
    record = host.record()
    many = [{**record["runs"][0], "run": number, "last_message": words(number)[-4000:]} for number in range(1, 121)]
    state(host).write_text(json.dumps({**record, "runs": many}), encoding="utf-8")

    store = FileStore(str(host.root))
    assert len(store.read(record["agent_id"])["runs"]) == 120
    assert start(host) == "started"

    after = host.record()
    assert [run["run"] for run in after["runs"]] == list(range(72, 122))
    assert (after["runs_dropped"], len(after["runs"][0]["last_message"])) == (71, 200)
    assert len(after["runs"][-2]["last_message"]) == 4000
