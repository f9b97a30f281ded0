"""Starts a real client of another host by the harness's own driver, with our hooks beside its recorder.

usage: other_clients.py HARNESS CLIENT SCENARIO PROJECT SETTINGS [PLAN]

SETTINGS is a file whose ``hooks`` are added to those that the driver writes; PLAN, another one, says what the scripted
API answers and which answers the recorder gives to hooks, in the place of the driver's scenario of that name.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main(harness: str, client: str, scenario: str, project: str, settings: str, plan: str = "") -> None:
    """Runs the client to its end; the driver prints where it left what was captured."""
    sys.path.insert(0, harness)
    driver: Any = importlib.import_module("drive_other")
    recorded = driver.hooks_json

    def with_added_hooks(*arguments: str) -> dict[str, list[Any]]:
        hooks: dict[str, list[Any]] = recorded(*arguments)
        for event, groups in json.loads(Path(settings).read_bytes())["hooks"].items():
            hooks[event] = [*hooks.get(event, []), *groups]
        return hooks

    driver.hooks_json = with_added_hooks
    if plan:
        driver.scenario = lambda _client, _name: {"hooks": {}, **json.loads(Path(plan).read_bytes())}
    sys.argv = ["drive_other.py", client, scenario, project]
    driver.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
