"""A command whose server stops or hangs: it goes on, its end is stored when the server is back, and nothing is silent.

"Gone" is a server that refuses connections; a server that "hangs" takes them and never answers.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import at, reporting
from gaia_sessions.postgres.setup import init
from gaia_sessions.runner import run
from gaia_sessions.runner.run import environment
from tests import servers
from tests.cli.forks import forked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 50  # seconds, less than the minute for which an end is tried
SCRIPT = "cat; echo begun; touch begun; while [ ! -e go ]; do sleep 0.1; done; echo over; exit {}"
SILENT = "agent-1: the server does not answer; without it, the command goes on until TIME"
NOT_STORED = [
    "agent-1: it has ended, but its end is not stored yet; this is tried until TIME",
    "  to end the tries, press Ctrl-C",
]
LOST = (
    "Hint: others see the run as lost once its lease has lapsed, unless its end arrived; when the server is back, "
    "`gaia-sessions report agent-1 --output` prints what is stored of the output"
)
REFUSED = "Error: URL: cannot store the {}: REASON"

pytestmark = pytest.mark.slow


class Losable:
    """A server that can be lost in one of two ways, and one command of ours on it."""

    def __init__(self, folder: Path, how: str) -> None:
        self._folder = folder
        self._is_gone = how == "gone"
        self._started: list[subprocess.Popen[bytes]] = []
        self.server = servers.Server()
        init(self.server.url)
        self.sessions = Sessions(self.server.url)

    def lose(self) -> None:
        if self._is_gone:
            self.server.stop("immediate")
        else:
            self.server.hang()

    def come_back(self) -> None:
        if self._is_gone:
            self.server.start()
        else:
            self.server.go_on()

    def start(self, *words: str, code: int = 0) -> None:
        """Starts a command of ours whose command ends with ``code`` once it may; returns when that one has begun."""
        command = [sys.executable, "-m", "gaia_sessions", *words, "--", "sh", "-c", SCRIPT.format(code)]
        environment = {**os.environ, "GAIA_SESSIONS_ROOT": self.server.url}
        with (self._folder / "out").open("wb") as out, (self._folder / "err").open("wb") as err:
            self.process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        self._started.append(self.process)
        self.until((self._folder / "begun").exists)

    def let_end(self) -> None:
        (self._folder / "go").touch()

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until ``condition`` is true; the command of ours must run until then."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            assert self.process.poll() is None, self.err
            time.sleep(0.1)

    def ended(self) -> tuple[int, str, list[str]]:
        """Waits for the end of the command of ours; returns its exit code, its output and its lines on stderr."""
        return self.process.wait(PATIENCE), self.out, self.err

    @property
    def out(self) -> str:
        return (self._folder / "out").read_text(encoding="utf-8")

    @property
    def err(self) -> list[str]:
        """The lines on stderr."""
        return [self.fixed(line) for line in (self._folder / "err").read_text(encoding="utf-8").splitlines()]

    def fixed(self, line: str) -> str:
        """The line with words for the URL, a time, and what the driver says."""
        line = re.sub(r"until \d\d:\d\d:\d\d(?=$|\")", "until TIME", line.replace(self.server.url, "URL"))
        return re.sub(r"^((Error: )?URL: cannot store the [a-z ]+): .*", r"\1: REASON", line)

    def stored(self) -> tuple[str, str]:
        """The phase of the session, and the stored output."""
        output = at.read(self.sessions, reporting.output_of, "agent-1")
        return self.sessions.report("agent-1")["phase"], output.decode()

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
        self.server.remove()


@pytest.fixture(params=["gone", "hanging"])
def losable(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Losable]:
    servers.check_installed()
    losable = Losable(tmp_path, request.param)
    yield losable
    losable.close()


def test_a_command_whose_server_is_lost_for_a_while_goes_on_and_says_so_once(losable: Losable) -> None:
    losable.server.set_lapse("60 seconds")
    losable.start("run", "--id", "agent-1")

    losable.lose()
    losable.until(lambda: losable.err)
    losable.come_back()
    losable.until(lambda: len(losable.err) > 1)
    losable.let_end()

    assert losable.ended() == (0, "begun\nover\n", [SILENT, "agent-1: the server answers again"])
    assert losable.stored() == ("completed", "begun\nover\n")


def test_a_command_whose_server_starts_again_at_once_says_nothing(losable: Losable) -> None:
    losable.start("run", "--id", "agent-1")

    losable.lose()
    losable.come_back()
    losable.let_end()

    assert losable.ended() == (0, "begun\nover\n", [])
    assert losable.stored() == ("completed", "begun\nover\n")


def test_the_end_of_a_command_is_stored_when_its_server_is_back(losable: Losable) -> None:
    losable.start("run", "--id", "agent-1")

    losable.lose()
    losable.let_end()
    losable.until(lambda: losable.err)
    losable.come_back()

    assert losable.ended() == (0, "begun\nover\n", [*NOT_STORED, "agent-1: its end is stored now"])
    assert losable.stored() == ("completed", "begun\nover\n")


def test_a_command_whose_end_cannot_be_stored_is_reported_with_its_own_status(losable: Losable) -> None:
    losable.server.set_lapse("16 seconds")
    losable.start("run", "--json", "--id", "agent-1", code=3)

    losable.lose()
    losable.let_end()
    code, out, err = losable.ended()

    report = json.loads(out)
    kept = {name: report[name] for name in ("agent_id", "status", "phase", "state", "error", "exit_code", "partial")}
    assert (code, kept) == (
        8,
        {
            "agent_id": "agent-1",
            "status": "error",
            "phase": "failed",
            "state": "failed",
            "error": "exit code 3",
            "exit_code": 3,
            "partial": "begun\nover\n",
        },
    )
    notice, error = json.loads("[" + "\n".join(err).replace("\n}\n{", "\n},{") + "]")
    error["error"]["message"] = losable.fixed(error["error"]["message"])
    assert notice == {"notice": {"code": "end_not_stored", "message": NOT_STORED[0], "hint": NOT_STORED[1]}}
    assert error == {
        "error": {
            "code": "io_error",
            "message": REFUSED.format("end of the run").removeprefix("Error: "),
            "hint": LOST.removeprefix("Hint: "),
        }
    }


def test_run_says_that_nothing_was_started_if_the_server_is_lost_at_the_begin(
    losable: Losable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losable.server.set_lapse("16 seconds")
    monkeypatch.chdir(tmp_path)

    def lost_before(*arguments: Any) -> dict[str, str]:
        losable.lose()
        return environment(*arguments)

    monkeypatch.setattr(run, "environment", lost_before)
    url = losable.server.url
    ended = forked("--lock-timeout", "1", "run", "--id", "agent-1", "--", "touch", "begun", GAIA_SESSIONS_ROOT=url)

    told = [re.sub("started: .*", "started: REASON", losable.fixed(line)) for line in ended.err.decode().splitlines()]
    nothing = "agent-1: nothing was started: REASON"
    notice = [line.format("8s") for line in NOT_STORED]
    assert (ended.code, told) == (8, [*notice, nothing, REFUSED.format("end of the run"), LOST])
    assert not (tmp_path / "begun").exists()


def test_a_command_whose_server_stays_away_is_ended_when_its_lease_is_over(losable: Losable) -> None:
    losable.server.set_lapse("16 seconds")
    losable.start("run", "--id", "agent-1")

    losable.lose()

    why = "agent-1: its lease on the server lapsed, so the command was ended"
    assert losable.ended() == (8, "begun\n", [SILENT, *NOT_STORED, why, REFUSED.format("end of the run"), LOST])


def test_run_says_how_a_command_ended_whose_end_cannot_be_stored(losable: Losable) -> None:
    losable.server.set_lapse("16 seconds")
    losable.start("run", "--id", "agent-1")

    losable.lose()
    losable.let_end()

    code, out, err = losable.ended()
    notice = [line.format("8s") for line in NOT_STORED]
    assert (code, out, err[-2:]) == (8, "begun\nover\n", [REFUSED.format("end of the run"), LOST])
    assert err[:-2] == [*notice, "agent-1: completed"]


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_tries_to_store_the_end_of_a_command(losable: Losable) -> None:
    losable.start("run", "--quiet", "--id", "agent-1", code=3)

    losable.lose()
    losable.let_end()
    losable.until(lambda: losable.err)
    losable.process.send_signal(signal.SIGINT)

    assert losable.ended() == (
        8,
        "exit code 3\n\nits output ended with:\n\nbegun\nover\n",
        [*NOT_STORED, REFUSED.format("end of the run"), LOST],
    )


def test_the_answer_of_a_send_that_cannot_be_stored_is_printed(losable: Losable) -> None:
    losable.server.set_lapse("16 seconds")
    losable.sessions.create("worker", agent_id="agent-1")
    losable.start("send", "agent-1", "hello")

    losable.lose()
    losable.let_end()
    code, out, err = losable.ended()

    hint = "Hint: unless it arrived, send the message again when the server is back"
    assert (code, out.splitlines()[1:], err) == (8, ["begun", "over"], [*NOT_STORED, REFUSED.format("answer"), hint])
