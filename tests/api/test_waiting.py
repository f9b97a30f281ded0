"""``wait``: until sessions have ended, with timeouts, reports and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions, create_session, finalize_session
from gaia_sessions.api.reporting import reporter
from gaia_sessions.errors import BadArgument, InvalidId
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.transcript import LINE_LIMIT
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gaia_sessions.api.at import Reading
    from gaia_sessions.api.reporting import ReportOn
    from gaia_sessions.api.standing import Standing
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record


LONGEST = 20
SOON = 0.3


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "sessions"))
    return str(tmp_path / "sessions")


class Clock:
    """The clock of ``wait``: a sleep moves it forward and runs the acts that are due."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.acts: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        due = [one for one in self.acts if one[0] <= self.time]
        for one in due:
            self.acts.remove(one)
            one[1]()

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        self.acts.append((self.time + seconds, act))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("gaia_sessions.api.waiting.time", clock)
    return clock


def with_run(root: str, **end: str) -> str:
    """A session with one run, which has ended if ``end`` says so."""
    agent_id = create_session()
    set_run(root, agent_id, **end)
    return agent_id


def set_run(root: str, agent_id: str, **end: str) -> None:
    run: Any = {"run": 1, "host": "claude-code", "started_at": format_time(utc_now()), **end}

    def rule(record: Record) -> Record:
        return {**record, "runs": [run]}

    FileStore(root).change(agent_id, rule)


def ended(end: str = "stopped") -> dict[str, str]:
    return {"ended_at": format_time(utc_now()), "end": end}


def statuses(*agent_ids: str, root: str | None = None, **options: Any) -> list[str]:
    return [found["status"] for found in Sessions(root).wait(agent_ids, **options)]


def test_the_end_of_a_run_ends_the_wait_in_any_phase(root: str, clock: Clock) -> None:
    agent_id = with_run(root)
    clock.after(SOON, lambda: set_run(root, agent_id, **ended()))

    [found] = Sessions().wait([agent_id], timeout=LONGEST)

    assert (found["status"], found.get("phase")) == ("success", "initializing")


def test_a_session_that_never_ran_is_waited_for_until_it_is_final(root: str, clock: Clock) -> None:
    agent_id = create_session()
    assert statuses(agent_id, timeout=0) == ["running"]

    clock.after(SOON, lambda: finalize_session(agent_id, "failed", error="no"))

    assert statuses(agent_id, timeout=LONGEST, root=root) == ["error"]


def test_a_cancelled_session_is_not_waited_for(root: str, clock: Clock) -> None:
    parent = create_session()
    child = create_session(parent_id=parent)
    FileStore(root).change(child, lambda record: {**record, "runs": [{"run": 1, "host": "claude-code"}]})
    clock.after(SOON, lambda: Sessions().cancel(parent, "enough"))

    found = Sessions().wait([child, parent], timeout=LONGEST)

    assert [(one["status"], one.get("error")) for one in found] == [("cancelled", "enough")] * 2


def test_l20_with_first_one_ended_session_is_enough_and_all_are_reported(root: str) -> None:
    done, at_work = with_run(root, **ended()), with_run(root)

    assert statuses(done, at_work, first=True) == ["success", "running"]
    assert statuses(done, at_work, timeout=0) == ["success", "running"]


def test_l20_a_session_that_does_not_exist_is_not_waited_for(root: str) -> None:
    assert Sessions().wait(["agent-404"]) == [{"agent_id": "agent-404", "status": "not_found"}]
    assert statuses("agent-404", with_run(root), first=True) == ["not_found", "running"]
    with pytest.raises(InvalidId):
        Sessions().wait(["../x"])


@table("text", ["agent-x", "", b"agent-x"])
def test_a_single_text_is_not_a_list_of_ids(text: Any) -> None:
    with pytest.raises(BadArgument) as raised:
        Sessions().wait(text, timeout=0)
    assert (str(raised.value), raised.value.hint) == (f"agent_ids {text!r} is not valid", "must be a list of IDs")


def test_all_ids_of_a_generator_are_reported() -> None:
    ids = [Sessions().create(agent_id=agent_id) for agent_id in ("one", "two")]
    reports = Sessions().wait((agent_id for agent_id in ids), timeout=0)
    assert [report["agent_id"] for report in reports] == ids


def test_wait_waits_for_all_sessions(root: str, clock: Clock) -> None:
    ids = [with_run(root) for _ in range(3)]
    for place, agent_id in enumerate(ids):
        clock.after(SOON * (place + 1), partial(set_run, root, agent_id, **ended()))

    assert statuses(*ids, timeout=LONGEST) == ["success"] * 3


@table("timeout", [-1, float("nan")])
def test_an_invalid_timeout_is_refused(timeout: float) -> None:
    with pytest.raises(BadArgument):
        Sessions().wait(["agent-1"], timeout=timeout)


def test_wait_ends_at_its_timeout(root: str, clock: Clock) -> None:
    agent_id, began = with_run(root), clock.time

    assert statuses(agent_id, timeout=0.5) == ["running"]
    assert clock.time - began == 0.5


@pytest.mark.usefixtures("clock")
def test_the_exit_code_of_wait_is_that_of_the_worst_session(root: str) -> None:
    good, bad, stopped = with_run(root, **ended()), with_run(root, **ended("lost")), create_session()
    Sessions().cancel(stopped)
    at_work = with_run(root)

    def code(*words: str) -> int:
        return gaia("wait", *words).code

    assert [code(good), code(good, stopped), code(good, stopped, bad)] == [0, 10, 11]
    assert [code(good, at_work, "--timeout", "0.2"), code(good, at_work, "--any"), code(good, "agent-404")] == [
        124,
        0,
        3,
    ]


@table("seconds", [0.1, 2.5, 60])
def test_an_end_is_seen_within_a_second_however_long_the_wait_has_been(root: str, clock: Clock, seconds: float) -> None:
    agent_id, ends_at = create_session(), clock.time + seconds
    clock.after(seconds, lambda: finalize_session(agent_id, "completed"))

    assert statuses(agent_id, root=root) == ["success"]
    assert clock.time - ends_at < 1


def test_the_end_of_the_client_process_ends_the_wait(root: str, clock: Clock) -> None:
    agent_id, host = create_session(), subprocess.Popen(["sleep", "60"])
    process = describe(host.pid)
    run: Any = {"run": 1, "host": "claude-code", "started_at": format_time(utc_now()), "host_process": process}
    FileStore(root).change(agent_id, lambda record: {**record, "runs": [run]})

    def kill() -> None:
        host.kill()
        host.wait()

    clock.after(SOON, kill)

    assert statuses(agent_id, timeout=LONGEST) == ["error"]


def test_a_session_that_has_ended_is_not_read_again(root: str, clock: Clock) -> None:
    done, at_work = with_run(root, **ended()), with_run(root)

    def spoil_the_one_and_end_the_other() -> None:
        Path(root, done, "state.json").write_text("no record")
        set_run(root, at_work, **ended())

    clock.after(SOON, spoil_the_one_and_end_the_other)

    assert statuses(done, at_work, done, timeout=LONGEST) == ["success"] * 3


COUNT_READS_OF_EVENTS = """
import sys
import gaia_sessions
opened = []
sys.addaudithook(lambda event, words: opened.append(words[0]) if event == "open" else None)
gaia_sessions.Sessions().wait(sys.argv[2:], timeout=0)
print([opened.count(name) for name in sys.argv[1].split(",")])
"""


def test_a_wait_for_many_sessions_reads_each_waiting_event_once(root: str) -> None:
    ids = [with_run(root) for _ in range(5)]
    names = leave_waiting(root, 3)

    command = [sys.executable, "-c", COUNT_READS_OF_EVENTS, ",".join(names), *ids]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)

    assert completed.stdout == "[1, 1, 1]\n"


def leave_waiting(root: str, count: int) -> list[str]:
    """Leaves ``count`` events in the inbox that fit no session; returns their names."""
    store = FileStore(root)
    for number in range(count):
        keys = {"host_session_id": f"c-{number}", "host_agent_id": f"a-{number}"}
        event: Any = {"kind": "start", "at": format_time(utc_now()), "host": "claude-code", **keys}
        store.defer(event, utc_now())
    return [name for name, _ in store.waiting()]


def test_reports_that_are_too_slow_for_the_timeout_are_those_of_the_first_look(
    root: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reports are slow after the first look."""
    ids = [with_run(root) for _ in range(60)]
    looks, began = count(), clock.time

    def slow_reporter(at: Reading) -> ReportOn:
        report_on, pause = reporter(at), 0.1 if next(looks) else 0

        def slowly(agent_id: str) -> tuple[Report, Standing]:
            clock.sleep(pause)
            return report_on(agent_id)

        return slowly

    monkeypatch.setattr("gaia_sessions.api.waiting.reporter", slow_reporter)
    found = Sessions(root).wait(ids, timeout=0.5)

    assert 0.5 <= clock.time - began < 3  # the whole look takes six seconds
    assert [(report["agent_id"], report["status"]) for report in found] == [(agent_id, "running") for agent_id in ids]


def test_every_session_is_read_once_even_with_timeout_zero(root: str) -> None:
    ids = [with_run(root, **(ended() if number % 2 else {})) for number in range(6)]

    assert statuses(*ids, timeout=0) == ["running", "success"] * 3


def test_wait_prints_the_longest_possible_result_as_report_does(root: str) -> None:
    agent_id = with_run(root, **ended())
    longest = LINE_LIMIT - 200  # 200 bytes for the other keys of the message
    Sessions().add_message(agent_id, "assistant", "x" * longest)

    def printed(command: str) -> Any:
        return json.loads(gaia(command, agent_id, "--json").out)

    [waited], reported = printed("wait"), printed("report")
    assert waited == {**reported, "elapsed_secs": waited["elapsed_secs"]}  # seconds pass between the two
    assert len(reported["result"]) == longest
