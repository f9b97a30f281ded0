"""Only ``hosts`` has names of hosts and their events. Other rooms ask the module of the host.

``hook`` may name keys of payloads: it must know a host's call from a direct call before it knows the host.
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
# A word in small letters, such as a tool of Qwen Code, can also be an ordinary word.
WORDS = {word for word in EVENTS | TOOLS if not word.islower()} | set(hosts.HOSTS) | MODULES

# Names of hosts that other rooms may use, because existing records have them.
ON_DISK = {
    ("session/runs.py", "claude-code"),  # records have the name of the host, and the index depends on the name
}


def names_in(source: str) -> Iterator[str]:
    """The names of hosts, events and tools in the code of ``source``, without docstrings."""
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


def test_names_of_hosts_and_their_events_occur_only_in_hosts() -> None:
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


def test_each_host_with_unique_agents_exists() -> None:
    assert set(hosts.HOSTS) >= HOSTS_WITH_UNIQUE_AGENTS
