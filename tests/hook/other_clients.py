"""Starts a real client of another host with the driver of the harness, with our hooks beside its recorder.

usage: other_clients.py HARNESS CLIENT SCENARIO PROJECT SETTINGS [PLAN]. The ``hooks`` in the file SETTINGS are added to
the driver's. The file PLAN has the answers of the scripted API and of the recorder; it replaces the driver's scenario.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main(harness: str, client: str, scenario: str, project: str, settings: str, plan: str = "") -> None:
    """Runs the client to its end; the driver prints the folder of its capture."""
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
