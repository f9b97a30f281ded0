"""Waiting until the work of sessions has ended, from another process or thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import (
    cancel_session,
    create_session,
    finalize_session,
    wait_sessions,
)
from gaia_sessions.api import waiting
from gaia_sessions.api.sessions import Sessions
from gaia_sessions.errors import BadArgument, InvalidId
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record


LONGEST = 20
SOON = 0.3


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(tmp_path / "sessions"))
    return str(tmp_path / "sessions")


@pytest.fixture(params=["with watchfiles", "by polling"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by polling":
        monkeypatch.setattr(waiting, "find_spec", lambda _: None)


def meanwhile(act: Callable[[], object]) -> threading.Thread:
    """``act`` a moment from now, while the caller waits."""
    thread = threading.Timer(SOON, act)
    thread.start()
    return thread


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


def statuses(*agent_ids: str, **options: Any) -> list[str]:
    return [found["status"] for found in wait_sessions(agent_ids, **options)]


def test_the_end_of_a_run_ends_the_wait_whatever_phase_it_leaves(root: str) -> None:
    agent_id = with_run(root)
    meanwhile(lambda: set_run(root, agent_id, **ended()))

    [found] = wait_sessions([agent_id], timeout=LONGEST)

    assert (found["status"], found.get("phase")) == ("success", "initializing")


def test_a_session_that_never_ran_is_waited_for_until_it_is_final(root: str) -> None:
    agent_id = create_session()
    assert statuses(agent_id, timeout=0) == ["running"]

    meanwhile(lambda: finalize_session(agent_id, "failed", error="no"))

    assert statuses(agent_id, timeout=LONGEST, root=root) == ["error"]


def test_a_cancelled_session_is_not_waited_for(root: str) -> None:
    parent = create_session()
    child = create_session(parent_id=parent)
    FileStore(root).change(child, lambda record: {**record, "runs": [{"run": 1, "host": "claude-code"}]})
    meanwhile(lambda: cancel_session(parent, "enough"))

    found = wait_sessions([child, parent], timeout=LONGEST)

    assert [(one["status"], one.get("error")) for one in found] == [("cancelled", "enough")] * 2


def test_l20_the_first_of_several_is_enough_if_asked_so_and_the_others_are_reported_too(root: str) -> None:
    done, at_work = with_run(root, **ended()), with_run(root)

    assert statuses(done, at_work, first=True) == ["success", "running"]
    assert statuses(done, at_work, timeout=0) == ["success", "running"]


def test_l20_a_session_that_does_not_exist_is_not_waited_for(root: str) -> None:
    assert wait_sessions(["agent-404"]) == [{"agent_id": "agent-404", "status": "not_found"}]
    assert statuses("agent-404", with_run(root), first=True) == ["not_found", "running"]
    with pytest.raises(InvalidId):
        wait_sessions(["../x"])


def test_all_are_waited_for(root: str) -> None:
    ids = [with_run(root) for _ in range(3)]
    for place, agent_id in enumerate(ids):
        threading.Timer(SOON * (place + 1), lambda one=agent_id: set_run(root, one, **ended())).start()

    assert statuses(*ids, timeout=LONGEST) == ["success"] * 3


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_time_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(BadArgument):
        wait_sessions(["agent-1"], timeout=timeout)


def test_the_time_is_kept(root: str) -> None:
    agent_id, began = with_run(root), time.monotonic()

    assert statuses(agent_id, timeout=0.5) == ["running"]
    assert 0.5 <= time.monotonic() - began < LONGEST


def test_the_command_waits_in_another_process_and_its_exit_code_is_that_of_the_worst(root: str) -> None:
    good, bad, stopped = with_run(root, **ended()), with_run(root, **ended("lost")), create_session()
    cancel_session(stopped)

    def code(*words: str) -> int:
        command = [sys.executable, "-m", "gaia_sessions", "wait", *words]
        return subprocess.run(command, capture_output=True, check=False).returncode

    at_work = with_run(root)
    assert [code(good), code(good, stopped), code(good, stopped, bad)] == [0, 10, 11]
    assert [code(good, at_work, "--timeout", "0.2"), code(good, at_work, "--any"), code(good, "agent-404")] == [
        124,
        0,
        3,
    ]


WITHOUT_WATCHES = ("unshare", "--user", "--map-root-user", "sh", "-c")
NO_WATCH_LEFT = 'echo 0 >"/proc/sys/user/max_inotify_$1" && shift && exec "$@"'


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("scarce", ["instances", "watches"])
def test_a_wait_ends_where_other_programs_have_all_watches_of_the_user(scarce: str) -> None:
    if subprocess.run([*WITHOUT_WATCHES, NO_WATCH_LEFT, "sh", scarce, "true"], check=False).returncode:
        pytest.skip("needs a user namespace, to take all watches away")
    agent_id = create_session()
    script = "import gaia_sessions, sys; print(gaia_sessions.wait_sessions(sys.argv[1:], timeout=20)[0]['status'])"
    words = [*WITHOUT_WATCHES, NO_WATCH_LEFT, "sh", scarce, sys.executable, "-c", script, agent_id]

    meanwhile(lambda: finalize_session(agent_id, "completed"))
    completed = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "success\n", "")


def test_an_end_right_after_the_first_look_is_seen_at_once(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_id = create_session()
    monkeypatch.setattr(waiting, "_LONGEST_WAIT", 3600.0)

    class EndedAfterOneLook(Sessions):
        def report(self, agent_id: str) -> tuple[Report, bool]:
            found = super().report(agent_id)
            finalize_session(agent_id, "completed")
            return found

    began = time.monotonic()
    [found] = waiting.wait(EndedAfterOneLook(root), [agent_id], timeout=LONGEST)

    assert found["status"] == "success"
    assert time.monotonic() - began < LONGEST
