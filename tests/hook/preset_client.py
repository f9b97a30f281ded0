"""A real client as the command of ``run`` and ``send``, with its scripted API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.hook.conftest import Host
    from tests.hook.test_realclient import Client

LONGEST = 120
Found = TypeVar("Found", bound="Preset")


def ran(code: str) -> dict[str, Any]:
    """A call of Bash that runs ``code``; the client does not treat it as mere waiting."""
    return {"name": "Bash", "input": {"command": f'python3 -c "{code}"; echo done', "description": "Run it"}}


def waiting(seconds: int) -> dict[str, Any]:
    return ran(f"import time; time.sleep({seconds})")


class Preset:
    """A client, started with ``words`` in the folder of the project, and its scripted API."""

    SERVER = "fake_messages_api.py"
    FOLDER = ".claude"
    CONVERSATIONS = "projects/*/*.jsonl"

    def __init__(self, host: Host, harness: Path, words: list[str], scenario: dict[str, Any]) -> None:
        self.host = host
        self.harness = harness
        self.words = words
        self.root = host.root
        self.sessions = gaia_sessions.Sessions(str(self.root))
        self.api = host.folder / "api"
        self.home = host.folder / self.FOLDER
        self._script = host.folder / "script.json"
        self._port = host.folder / "port"
        self.settings: dict[str, str] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self.begin(scenario)

    def begin(self, scenario: dict[str, Any]) -> None:
        """Restarts the API with ``scenario``, in its own network if possible."""
        self.end()
        self._script.write_text(json.dumps({"subs": {}, **scenario}), encoding="utf-8")
        self._port.unlink(missing_ok=True)
        server = [sys.executable, str(self.harness / self.SERVER)]
        command = [*server, str(self._script), str(self.api), str(self._port)]
        if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0:
            command = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *command]
        self._server = subprocess.Popen(command)
        until(self._port.exists)
        self.configure(f"http://127.0.0.1:{self._port.read_text('utf-8')}")

    def configure(self, url: str) -> None:
        """Lets the client use the API at ``url``."""
        self.settings |= {
            "CLAUDE_CONFIG_DIR": str(self.home),
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def end(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.host.folder),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "PATH": f"{Path(sys.executable).parent}:{Path(self.words[0]).parent}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "GAIA_SESSIONS_ROOT": str(self.root),
            "TAG_OF_TEST": str(self.root),
            **self.settings,
        }

    def start(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """``gaia-sessions`` with these words, in the network of the API."""
        return self._started([sys.executable, "-m", "gaia_sessions", *words], cwd or self.host.project)

    def shell(self, script: str, cwd: Path) -> tuple[int, str, str]:
        """Runs a script that finds the client on PATH; returns exit code, stdout and stderr."""
        process = self._started(["bash", "-eo", "pipefail", "-c", script], cwd)
        out, err = process.communicate(timeout=LONGEST)
        return process.returncode, out, err

    def _started(self, command: list[str], cwd: Path) -> subprocess.Popen[str]:
        assert self._server is not None
        network = f"/proc/{self._server.pid}/ns/net"
        if os.readlink(network) != os.readlink("/proc/self/ns/net"):
            command = ["nsenter", f"--net={network}", "--", *command]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=self.environment,
        )

    def type(self, *words: str, cwd: Path | None = None) -> tuple[int, str, str]:
        """Runs ``gaia-sessions`` with these words; returns exit code, stdout and stderr."""
        process = self.start(*words, cwd=cwd)
        out, err = process.communicate(timeout=LONGEST)
        return process.returncode, out, err

    def run(self, *options: str) -> tuple[int, str, str]:
        return self.type("run", *options, "--", *self.words)

    def send(self, agent_id: str, text: str) -> tuple[int, str, str]:
        return self.type("send", agent_id, text, "--", *self.words)

    def requests(self, role: str | None = None) -> list[dict[str, Any]]:
        """The requests to the API, in order."""
        log = self.api / "api.jsonl"
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []
        return [line for line in lines if "role" in line and role in (None, line["role"])]

    def heard(self, number: int = -1) -> list[str]:
        """The messages of a request to the model, without what the client adds."""
        name = f"request-{self.requests()[number]['n']:03}.json"
        messages = json.loads((self.api / name).read_text("utf-8"))["body"]["messages"]
        return [text for message in messages if message["role"] != "system" and (text := text_of(message))]

    def offered(self, number: int) -> list[str]:
        """The tools that request ``number`` offered to the model."""
        body = json.loads((self.api / f"request-{number:03}.json").read_text("utf-8"))["body"]
        return [tool["name"] for tool in body.get("tools", ())]

    def processes(self) -> dict[int, bytes]:
        """All processes of this client, found by a variable in their environment."""
        tag, found = f"TAG_OF_TEST={self.root}".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                if tag in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes()
        return found

    def forget_conversations(self) -> None:
        """Removes the conversation files of the client."""
        for file in self.home.glob(self.CONVERSATIONS):
            file.unlink()


class CodexPreset(Preset):
    """The same for Codex, whose settings are a file."""

    SERVER = "fake_other_api.py"
    FOLDER = ".codex"
    CONVERSATIONS = "sessions/**/*.jsonl"

    def configure(self, url: str) -> None:
        self.home.mkdir(exist_ok=True)
        provider = {"name": "fake", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "FAKE_KEY"}
        lines = ['model = "fake-model"', 'model_provider = "fake"', "", "[model_providers.fake]"]
        lines += [f'{key} = "{value}"' for key, value in provider.items()]
        lines += ["request_max_retries = 1", "[features]", "enable_request_compression = false", ""]
        (self.home / "config.toml").write_text("\n".join(lines), encoding="utf-8")
        self.settings |= {"CODEX_HOME": str(self.home), "FAKE_KEY": "dummy"}


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    blocks = [content] if isinstance(content, str) else [one.get("text", "") for one in content]
    told = [text for text in blocks if not text.startswith("<system-reminder>")]
    return "\n".join(told).strip()


def used(preset: Preset, scenario: dict[str, Any]) -> int:
    """The tokens of all requests, as the API counted them."""
    total = 0
    for request in preset.requests():
        role = request["role"]
        turns = scenario["main"] if role == "main" else scenario["subs"][role.removeprefix("sub:")]
        total += 100 + turns[min(request["turn"], len(turns) - 1)].get("usage", {}).get("output_tokens", 20)
    return total


def until(is_so: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it never became so"
        time.sleep(0.05)


@contextmanager
def at_end_gone(found: Found) -> Iterator[Found]:
    """Ends ``found`` and kills all its processes at the end."""
    try:
        yield found
    finally:
        found.end()
        for pid in found.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def preset_of(client: Client, scenario: dict[str, Any]) -> AbstractContextManager[Preset]:
    """Claude Code with an API that answers by ``scenario``."""
    words = [str(client.program), "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Agent"]
    return at_end_gone(Preset(client.host, client.harness, words, scenario))


def last_run(record: Any) -> Any:
    return record["runs"][-1]
