"""``guard check``, and the tasks that ``run`` refuses if the guard is on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.errors import TaskRefused
from tests.cli.forks import forked

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

TRUE = ("--", "true")


def test_guard_check_answers_in_every_mode(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in ("off", "block"):
        monkeypatch.setenv("GAIA_SESSIONS_GUARD_MODE", mode)
        assert gaia("guard", "check", "Find it").answer == ["yes: the task can be delegated"]
        ended = gaia("guard", "check", "-", stdin="Объясни код\n".encode())
        assert (ended.code, "'Объясни'" in ended.out.decode(), ended.err) == (1, True, b"")
    answer = json.loads(gaia("guard", "check", "Explain it", "--json").out)
    assert (list(answer), answer["allowed"], answer["keyword"]) == (["allowed", "keyword", "reason"], False, "Explain")
    assert gaia("guard", "check", " ").code == 7


def test_with_the_guard_on_run_refuses_a_forbidden_task_and_creates_nothing(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert forked("run", "--id", "a", "--task", "Explain the code", *TRUE).code == 0
    monkeypatch.setenv("GAIA_SESSIONS_GUARD_MODE", "block")
    monkeypatch.setenv("GAIA_SESSIONS_GUARD_WORDS", "investigat")
    for task in ("Explain the code", "Investigate it"):
        ended = forked("run", "--id", "b", "--task", task, *TRUE)
        assert (ended.code, f"'{task.split()[0]}'" in ended.err.decode()) == (7, True)
        with pytest.raises(TaskRefused) as raised:
            gaia_sessions.Sessions(root).run(TRUE[1:], task=task)
        assert raised.value.keyword == task.split()[0]
    assert forked("run", "--id", "c", "--task", "Find the code", *TRUE).code == 0
    assert forked("run", "--id", "d", *TRUE).code == 0
    assert sorted(path.name for path in Path(root).glob("[!.]*")) == ["a", "c", "d"]
