"""``wait`` for all sessions below one, and what a terminal shows meanwhile."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import termios
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.render.columns import cells
from gaia_sessions.session.clock import format_time
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.cli.conftest import PATIENCE
from tests.cli.forks import Fork
from tests.servers import shared_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions import Sessions
    from tests.cli.conftest import Gaia
    from tests.servers import Server


PARENT = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a", "parent_id": "top"}


def at_work(**more: Any) -> list[dict[str, Any]]:
    return [{"run": 1, "host": "claude-code", "host_session_id": "s", "started_at": format_time(utc_now()), **more}]


def end(root: str, agent_id: str, **more: Any) -> None:
    runs: Any = at_work(ended_at=format_time(utc_now()), end="stopped", **more)
    FileStore(root).change(agent_id, lambda record: {**record, "runs": runs})


class Screen:
    """A running command and what its stderr shows on a terminal of 80 columns."""

    def __init__(self, command: Fork, terminal: int) -> None:
        self.command = command
        self.shown = ""
        self._terminal = terminal

    def until(self, pattern: str) -> str:
        """Waits until ``pattern`` is shown, and returns all that was shown."""
        while not re.search(pattern, self.shown):
            if not select.select([self._terminal], [], [], PATIENCE)[0]:
                raise TimeoutError(self.shown)
            self.shown += os.read(self._terminal, 1 << 16).decode()
        return self.shown

    def rest(self) -> str:
        self.ended = self.command.ended()
        with suppress(OSError):  # a closed terminal ends with an error
            while chunk := os.read(self._terminal, 1 << 16):
                self.shown += chunk.decode()
        return self.shown


@contextmanager
def watched(*words: str) -> Iterator[Screen]:
    own_end, their_end = pty.openpty()
    termios.tcsetwinsize(their_end, (24, 80))
    with Fork(*words, stderr=their_end) as command:
        os.close(their_end)
        yield Screen(command, own_end)
    os.close(own_end)


def left_on(shown: str) -> list[str]:
    """The lines that the terminal shows in the end."""
    lines = []
    for line in shown.replace("\r\n", "\n").split("\n"):
        left: list[str] = []
        for part in line.split("\r"):
            drawn = [cell for character in part for cell in (character, *[""] * (cells(character) - 1))]
            left[: len(drawn)] = drawn
        lines.append("".join(left).rstrip())
    return lines


def test_wait_children_waits_for_all_children_even_new_ones_but_not_for_the_parent(
    root: str, put: Gaia, gaia: Gaia
) -> None:
    put("top", phase="executing", runs=at_work())
    put("one", parent_id="top", phase="executing", runs=at_work())
    with watched("wait", "--children", "top") as screen:
        screen.until("waiting for tester: test, working")
        put("two", parent_id="one", phase="executing", runs=at_work())
        end(root, "one", last_message="first")
        screen.until("1 of 2 ended")
        end(root, "two", last_message="second")
        screen.rest()
    said = "one: paused\n  first\ntwo: paused\n  second\n"
    assert screen.ended.all[:2] == (0, said)
    assert gaia("wait", "--children", "top").all == (0, said, "")


def test_wait_reports_a_child_that_is_removed_meanwhile_as_not_found(root: str, put: Gaia, gaia: Gaia) -> None:
    put("top")
    put("one", parent_id="top", phase="executing", runs=at_work())
    put("two", parent_id="one", phase="executing", runs=at_work())
    with watched("wait", "--children", "top", "top") as screen:
        screen.until("0 of 2 ended")
        assert gaia("rm", "--force", "two").code == 0
        end(root, "one", last_message="first")
        screen.rest()
    assert screen.ended.all[:2] == (3, "one: paused\n  first\ntwo: not found\n")


def test_wait_waits_for_sessions_of_both_roots_in_one_call(gaia: Gaia, pair: tuple[Sessions, Sessions]) -> None:
    server, own = pair
    server.create("far", agent_id="far")
    own.create("near", agent_id="near")
    with watched("wait", "near", "far", "nobody") as screen:
        screen.until("1 of 3 ended, waiting for far")
        server.finalize("far", "failed")
        screen.until("2 of 3 ended, waiting for near")
        own.finalize("near", "completed")
        screen.rest()
    assert screen.ended.all[:2] == (3, "near: completed\nfar: failed\n  failed\nnobody: not found\n")
    assert f"no session 'nobody' in {server.root} or in {own.root}" in " ".join(screen.shown.split())
    assert gaia("wait", "far", "--root", own.root).code == 3


def test_wait_children_sees_what_is_below_in_both_roots_but_no_stand_in(
    gaia: Gaia, pair: tuple[Sessions, Sessions], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, own = pair
    for agent_id, parent in (("top", None), ("below", "top")):
        server.create("far", agent_id=agent_id, parent_id=parent)
        stand_in: Any = {**(server.get(agent_id) or {}), "agent_name": "stand-in", "stand_in": True}
        FileStore(own.root).create(stand_in)
    own.create("near", agent_id="agent", parent_id="below")
    with watched("wait", "--children", "top") as screen:
        screen.until("0 of 2 ended, waiting for near")
        own.finalize("agent", "completed")
        screen.until("1 of 2 ended, waiting for far")
        server.finalize("below", "completed")
        screen.rest()
    assert screen.ended.all[:2] == (0, "agent: completed\nbelow: completed\n")
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", own.root)
    assert gaia("wait", "--children", "top").out == b"agent: completed\n"


@pytest.mark.parametrize("way", ["stopped", pytest.param("suspended", marks=pytest.mark.slow)])
def test_while_a_server_is_away_a_wait_sees_the_ends_in_the_own_root(pair: tuple[Sessions, Sessions], way: str) -> None:
    server, own = pair
    server.create("far", agent_id="far")
    own.create("near", agent_id="near")
    with watched("wait", "far", "near") as screen:
        screen.until("0 of 2 ended")
        with away(shared_server(), way):
            own.finalize("near", "completed")
            screen.until("1 of 2 ended, waiting for far")
        server.finalize("far", "completed")
        screen.rest()
    assert screen.ended.all[:2] == (0, "far: completed\nnear: completed\n")


@contextmanager
def away(server: Server, way: str) -> Iterator[None]:
    """In the block, the server is stopped and refuses connections, or it is suspended and answers nobody."""
    server.stop() if way == "stopped" else os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        server.start() if way == "stopped" else os.kill(server.pid, signal.SIGCONT)


def test_wait_children_exits_with_the_worst_result_and_any_waits_for_the_first(
    gaia: Gaia, put: Gaia, root: str
) -> None:
    put("top")
    put("fine", parent_id="top", phase="completed", runs=at_work(ended_at=format_time(utc_now()), end="stopped"))
    put("going", parent_id="top", phase="executing", runs=at_work())
    assert gaia("wait", "--children", "top", "--any").code == 0
    assert gaia("wait", "--children", "top", "--timeout", "0").code == 124
    put("bad", parent_id="fine", phase="failed")
    end(root, "going")
    assert gaia("wait", "--children", "top").code == 11
    reports = json.loads(gaia("wait", "--children", "top", "--json").out)
    assert {one["agent_id"] for one in reports} == {"fine", "going", "bad"}


def test_wait_children_reports_a_corrupt_session_that_may_be_a_child(gaia: Gaia, put: Gaia, root: str) -> None:
    put("top")
    put("one", parent_id="top", phase="executing", runs=at_work())
    Path(root, "one", "state.json").write_bytes(b"{")
    path = f"{root}/one/state.json: line 1 column 1: not JSON: this brace is not closed"
    said = f"one cannot be read (perhaps below a named session): {path}"
    shown = (6, "", f"Error: {said}\nHint: fix the reported problem and try again\n")
    assert gaia("wait", "--children", "top").all == shown
    put("two", parent_id="top", phase="failed")
    ended = gaia("wait", "--children", "top", "--json")
    assert (ended.code, [report["agent_id"] for report in json.loads(ended.out)]) == (6, ["two"])
    assert json.loads(ended.err)["error"]["message"] == said
    assert gaia("wait", "two").code == 11


def test_wait_children_succeeds_without_children_but_fails_for_a_missing_session(gaia: Gaia, put: Gaia) -> None:
    put("top")
    note = "Note: no session is below top\nHint: to wait for the session itself, leave out --children\n"
    assert gaia("wait", "--children", "top").all == (0, "", note)
    assert gaia("wait", "--children", "top-2").code == 3


def test_a_terminal_shows_the_awaited_agent_in_one_line_that_is_erased_at_the_end(put: Gaia, root: str) -> None:
    put("one", agent_name="reviewer", purpose="read the diff " * 20, phase="executing", runs=at_work())
    put("two", agent_name="fixer", purpose="日本語" * 40, phase="executing", runs=at_work())
    with watched("wait", "one", "two") as screen:
        screen.until(r"0 of 2 ended, waiting for reviewer: read the diff .*…, working for \d+ seconds?")
        end(root, "one")
        screen.until(r"1 of 2 ended, waiting for fixer: 日本語.*…, working for \d+ seconds?")
        end(root, "two")
        shown = screen.rest()
    assert screen.ended.code == 0
    assert left_on(shown) == [""]
    assert max(len(part) for part in shown.split("\r")) < 80
    assert "\n" not in shown


def test_a_terminal_shows_first_an_agent_that_asks_for_a_permission(put: Gaia) -> None:
    asked = {"since": format_time(utc_now()), "for": "Bash"}
    put("busy", phase="executing", runs=at_work())
    put("asks", agent_name="reviewer", purpose="read", phase="executing", runs=at_work(waiting=asked))
    with watched("wait", "busy", "asks") as screen:
        screen.until("0 of 2 ended, waiting for reviewer: read, which asks you to permit Bash")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_wait_erases_its_progress_line(put: Gaia) -> None:
    put("one", phase="executing", runs=at_work())
    with watched("wait", "one") as screen:
        screen.until("waiting for tester: test, working")
        screen.command.send_signal(signal.SIGINT)
        shown = screen.rest()
    assert screen.ended.code == 130
    assert left_on(shown)[:2] == ["", "Error: interrupted"]
