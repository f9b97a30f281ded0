"""How much longer a real client takes with the hooks that ``hooks install`` writes than without hooks.

``GAIA_REALCLIENT`` names the folder of a scripted API, ``REALCLIENT_BASE`` the folder with an installed client; without
them nothing is measured. The medians of the rounds' ratios count: on a busy machine, single times mean little.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from .findings import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS = 9
_CALLS = 15
_LONGEST = 120
_PACKAGE = Path("client", "node_modules", "@anthropic-ai", "claude-code-linux-x64", "claude")
_IN_OWN_NETWORK = ("unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")

_NO_HOOKS = None
_INSTALLED: tuple[str, ...] = ()
_ENFORCING = ("--enforce",)
_WITH_TRUE = ("true",)
"""As installed, and a program that does nothing before each use of a tool, where ``--enforce`` has ours."""

_STEP = {"text": "A step.", "tools": [{"name": "Bash", "input": {"command": "echo step", "description": "Run it"}}]}
_INPUT = {
    "description": "Job alpha",
    "prompt": "[[sub:alpha]] Do the job called alpha and report.",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
_MAIN = [{"text": "I delegate.", "tools": [{"name": "Agent", "input": _INPUT}]}, {"text": "All done."}]


class Took(NamedTuple):
    """Seconds of a conversation: of the whole client, and of its sub-agent from its first request to its last."""

    client: float
    agent: float


def client(folder: str) -> Iterator[Finding]:
    """Measures fifteen tool calls of a sub-agent, and a whole conversation with one delegation."""
    harness, base = os.environ.get("GAIA_REALCLIENT"), os.environ.get("REALCLIENT_BASE")
    if not harness or not base:
        print("client: not measured; GAIA_REALCLIENT and REALCLIENT_BASE name no client", file=sys.stderr)
        return
    api, program = Path(harness, "fake_messages_api.py"), Path(base, _PACKAGE)
    clients = Conversations(Path(folder), api, program)
    rounds = clients.rounds([_STEP] * _CALLS, (_NO_HOOKS, _INSTALLED))
    agent = [[took.agent for took in of_round] for of_round in rounds]
    yield _finding(f"{_CALLS} tool calls of a sub-agent, as installed", agent, 1, 1.2)
    rounds = clients.rounds([_STEP] * _CALLS, (_NO_HOOKS, _ENFORCING))
    agent = [[took.agent for took in of_round] for of_round in rounds]
    yield _finding(f"{_CALLS} tool calls of a sub-agent, --enforce", agent, 1, 2.0)
    rounds = clients.rounds([], (_NO_HOOKS, _WITH_TRUE, _ENFORCING), [_STEP] * _CALLS)
    main = [[took.client for took in of_round] for of_round in rounds]
    true = median(one[1] / one[0] for one in main)
    yield _finding(f"{_CALLS} tool calls of the main agent, --enforce ({true:.2f} with true)", main, 2, true + 0.05)
    rounds = clients.rounds([], (_NO_HOOKS, _INSTALLED))
    yield _finding(
        "a client with one delegation, as installed", [[took.client for took in one] for one in rounds], 1, 1.25
    )


def _finding(what: str, rounds: list[list[float]], wiring: int, limit: float) -> Finding:
    """Returns the time of the rounds with this wiring, as a multiple of the time without hooks."""
    bare, wired = (median(one[number] for one in rounds) for number in (0, wiring))
    ratio = median(one[wiring] / one[0] for one in rounds)
    return Finding(f"{what}: {wired:.2f} s, {bare:.2f} s without", ratio, limit)


class Conversations:
    """Conversations of one client with a scripted API, each in a new project."""

    def __init__(self, folder: Path, api: Path, program: Path) -> None:
        self.folder = folder
        self.api = api
        self.program = program
        self.number = 0
        self.first: list[dict[str, Any]] = []

    def rounds(
        self,
        steps: list[dict[str, Any]],
        wirings: tuple[tuple[str, ...] | None, ...],
        first: list[dict[str, Any]] | None = None,
    ) -> list[list[Took]]:
        """Returns the times with each of ``wirings``, by round; ``first``: what the main agent does first."""
        self.first = first or []
        self._converse(steps, wirings[-1])  # now everything is compiled and read
        found = []
        for number in range(_ROUNDS):
            shift = number % len(wirings)
            order = [*range(len(wirings))][shift:] + [*range(len(wirings))][:shift]
            times = {wiring: self._converse(steps, wirings[wiring]) for wiring in order}
            found.append([times[wiring] for wiring in range(len(wirings))])
        return found

    def _converse(self, steps: list[dict[str, Any]], wiring: tuple[str, ...] | None) -> Took:
        self.number += 1
        run = self.folder / str(self.number)
        project = run / "project"
        (project / ".claude").mkdir(parents=True)
        (run / "home" / ".claude").mkdir(parents=True)
        if wiring is not None:
            options = () if wiring == _WITH_TRUE else wiring
            words = ("hooks", "install", "--project", "--root", str(project / ".claude" / "session"), *options)
            command = (sys.executable, "-m", "gaia_sessions", *words)
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(run / "home")})
        if wiring == _WITH_TRUE:
            file = project / ".claude" / "settings.json"
            settings = json.loads(file.read_text(encoding="utf-8"))
            settings["hooks"]["PreToolUse"].append({"hooks": [{"type": "command", "command": "true"}]})
            file.write_text(json.dumps(settings), encoding="utf-8")
        script = {"main": [*self.first, *_MAIN], "subs": {"alpha": [*steps, {"text": "Report of alpha."}]}}
        (run / "script.json").write_text(json.dumps(script), encoding="utf-8")
        words = (sys.executable, "-m", __name__, str(self.api), str(self.program), str(run))
        prefix = _IN_OWN_NETWORK if _has_own_network() else ()
        subprocess.run((*prefix, *words), check=True, cwd=Path(__file__).parents[2])
        if wiring is not None:
            _check(project)
        took = Took(*json.loads((run / "took.json").read_text(encoding="utf-8")))
        shutil.rmtree(run)
        return took


def _check(project: Path) -> None:
    """Raises unless the hooks have recorded the work."""
    [file] = project.glob(".claude/session/agent-*/state.json")
    record = json.loads(file.read_bytes())
    if (record["phase"], record["runs"][0].get("end")) != ("completed", "stopped"):
        raise RuntimeError(f"the hooks recorded something else: {record}")


def _has_own_network() -> bool:
    """Returns whether a process may get a network without a way out."""
    if not shutil.which("unshare"):
        return False
    return subprocess.run(("unshare", "-n", "true"), check=False, capture_output=True).returncode == 0


def main(api: str, program: str, run: str) -> None:
    """Runs one conversation with its API, and writes the times into ``run``."""
    folder = Path(run)
    log, port = folder / "api", folder / "port"
    with subprocess.Popen((sys.executable, api, str(folder / "script.json"), str(log), str(port))) as server:
        try:
            while not port.exists():
                time.sleep(0.02)
            began = time.monotonic()
            words = (program, "-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "Agent")
            environment = _environment(folder, port.read_text(encoding="utf-8"))
            _converse_once(words, folder / "project", environment)
            whole = time.monotonic() - began
        finally:
            server.kill()
    lines = [json.loads(line) for line in (log / "api.jsonl").read_text(encoding="utf-8").splitlines()]
    times = [line["t"] for line in lines if line.get("role") == "sub:alpha"]
    (folder / "took.json").write_text(json.dumps([whole, max(times) - min(times)]), encoding="utf-8")


def _converse_once(words: tuple[str, ...], project: Path, environment: dict[str, str]) -> None:
    """Runs the client to its end."""
    # A wait with a time limit looks only every 50 ms, which would distort the measurement.
    with subprocess.Popen(
        words, cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as client:
        limit = threading.Timer(_LONGEST, client.kill)
        limit.start()
        client.communicate(b"[[main]] Please delegate the work.")
        limit.cancel()
    if client.returncode:
        raise subprocess.CalledProcessError(client.returncode, words)


def _environment(folder: Path, port: str) -> dict[str, str]:
    home = str(folder / "home")
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "CLAUDE_CONFIG_DIR": f"{home}/.claude",
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
