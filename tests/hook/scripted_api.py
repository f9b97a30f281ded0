"""The scripted API of the harness in ``GAIA_REALCLIENT``; it can also repeat lines that our hooks told the agents.

Replaced with text from the request: ``{{resume:N}}`` (resume line N, from 0), ``{{id:N}}`` (its session ID),
``{{report}}`` and ``{{todo add}}`` (commands to report, and to add the todo ``it``), ``{{close:N}}`` (to close todo N).
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

_REPORT = re.compile(r"report your phase with: (.+?) \(or ")
_CLOSE = re.compile(r"Mark each finished todo as done, by its number N: (.+? todo done .+)")
_RESUME = re.compile(r"\[gaia-sessions: resume agent-[0-9a-f-]+\]")


class Seen(threading.local):
    """Our lines in the current request. Also finds the agents of the host, as the harness does."""

    def __init__(self, agents: re.Pattern[str]) -> None:
        self.agents = agents
        self.lines: list[str] = []
        self.report = self.close = ""

    def findall(self, text: str) -> list[str]:
        self.lines = list(dict.fromkeys(_RESUME.findall(text)))
        self.report = next(iter(_REPORT.findall(text)), "")
        self.close = next(iter(_CLOSE.findall(text)), "")
        return self.agents.findall(text)

    def filled(self, value: Any) -> Any:
        if isinstance(value, str):
            value = re.sub(r"\{\{resume:(\d+)\}\}", lambda match: self.lines[int(match[1])], value)
            value = re.sub(r"\{\{id:(\d+)\}\}", lambda match: _id_in(self.lines[int(match[1])]), value)
            value = re.sub(r"\{\{close:(\d+)\}\}", lambda match: self.close.replace(" N ", f" {match[1]} "), value)
            todo = self.report.replace(" update ", " todo add ").replace("--phase planning", "it")
            return value.replace("{{todo add}}", todo).replace("{{report}}", self.report)
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        return value


def _id_in(line: str) -> str:
    return line.rsplit(maxsplit=1)[-1].removesuffix("]")


def harness() -> Any:
    """The module of the harness, with our replacements added."""
    file = Path(os.environ["GAIA_REALCLIENT"], "fake_messages_api.py")
    spec = importlib.util.spec_from_file_location("fake_messages_api", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fill, seen = module.fill, Seen(module.AGENT_ID)
    module.AGENT_ID = seen
    module.fill = lambda value, ids: seen.filled(fill(value, ids))
    return module


def main(script: str, log: str, port_file: str) -> None:
    """Serves until it is killed."""
    import json

    module = harness()
    module.SCRIPT = json.loads(Path(script).read_text(encoding="utf-8"))
    module.LOG = log
    Path(log).mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), module.Handler)
    server.daemon_threads = True
    written = Path(port_file + ".tmp")
    written.write_text(str(server.server_address[1]), encoding="utf-8")
    written.replace(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
