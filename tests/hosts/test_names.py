"""Names of hosts and of their events stand in ``hosts``: the rooms below decide by what a host's module says of it.

``hook`` is among those rooms: it may name the payload's keys that tell a host's call from a direct one, since it must
do that before it knows the host; those keys are no names of hosts or events.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import gaia_sessions
from gaia_sessions import hosts
from gaia_sessions.session.runs import HOSTS_WITH_UNIQUE_AGENTS
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(gaia_sessions.__file__).parent
ROOMS = ["session", "system", "config", "store", "ingest", "hook"]

MODULES = {name.replace("-", "_") for name in hosts.HOSTS}
CONSTANTS = {name.upper() for name in MODULES}
TITLES = {name.replace("-", " ") for name in hosts.HOSTS if "-" in name}
EVENTS = {event for name in hosts.HOSTS for event in hosts.host_named(name).events_by_hook[hosts.HOOK]}
TOOLS = {tool for name in hosts.HOSTS for tool in hosts.settings_of(name).delegation}
# A word in small letters, as Qwen Code calls a tool, may be anybody's.
WORDS = {word for word in EVENTS | TOOLS if not word.islower()} | set(hosts.HOSTS) | MODULES

# What is on people's disks names a host, and hosts are unknown to whoever reads it there.
ON_DISK = {
    ("session/runs.py", "claude-code"),  # records have a host by its name alone, and the index depends on it
}


def names_in(source: str) -> Iterator[str]:
    """The names of hosts, of their events and of their tools in the code of ``source``, but for its prose."""
    tree = ast.parse(source)
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in prose:
                if text in WORDS or any(title in text.casefold() for title in TITLES):
                    yield text
            case ast.alias(name=name) | ast.Attribute(attr=name) | ast.Name(id=name):
                if name in CONSTANTS or MODULES & set(name.split(".")):
                    yield name
            case ast.ImportFrom(module=str(module)) if MODULES & set(module.split(".")):
                yield module


def test_names_of_hosts_and_of_their_events_stand_in_hosts_only() -> None:
    files = [file for room in ROOMS for file in sorted((SOURCE / room).rglob("*.py"))]
    found = {(str(file.relative_to(SOURCE)), name) for file in files for name in names_in(file.read_text("utf-8"))}

    assert found == ON_DISK


@table(
    ("source", "found"),
    [
        ("if host == 'claude-code': pass", ["claude-code"]),
        ("if name == 'SubagentStart': pass", ["SubagentStart"]),
        ("x = {'tool_name': 'Task'}", ["Task"]),
        ("raise Error(f'only Claude Code has it')", ["only Claude Code has it"]),
        ("from gaia_sessions.hosts import CODEX", ["CODEX"]),
        ("x = hosts.CLAUDE_CODE", ["CLAUDE_CODE"]),
        ("from gaia_sessions.hosts.codex import events_of", ["gaia_sessions.hosts.codex"]),
        ("from gaia_sessions.hosts import claude_code", ["claude_code"]),
        ('"""Seen in runs of Claude Code."""', []),
        ("payload.get('hook_event_name')", []),
        ("kind = 'stop'", []),
    ],
)
def test_a_name_is_found_in_code_and_not_in_prose(source: str, found: list[str]) -> None:
    assert list(names_in(source)) == found


def test_the_names_on_disk_are_those_of_hosts_that_exist() -> None:
    assert set(hosts.HOSTS) >= HOSTS_WITH_UNIQUE_AGENTS
