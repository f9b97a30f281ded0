"""The checkout as a plugin of Claude Code: the manifest, the hooks and the skill fit the package."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.cli.group import COMMANDS
from gaia_sessions.hosts.claude_code import READERS
from gaia_sessions.hosts.claude_code.settings import SETTINGS
from gaia_sessions.install.hook_command import wanted_entry_of
from gaia_sessions.session.phases import PHASES

if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import WantedEntry

CHECKOUT = Path(__file__).parents[1]
SKILL = CHECKOUT / "hooks" / "skills" / "gaia-sessions" / "SKILL.md"


def document(*names: str) -> Any:
    return json.loads(CHECKOUT.joinpath(*names).read_text(encoding="utf-8"))


def test_the_manifest_has_this_version_and_points_to_the_skills() -> None:
    manifest = document(".claude-plugin", "plugin.json")

    assert (manifest["name"], manifest["version"]) == ("gaia-sessions", gaia_sessions.__version__)
    assert CHECKOUT.joinpath(manifest["skills"], "gaia-sessions", "SKILL.md").is_file()
    assert "hooks" not in manifest, "the client takes hooks/hooks.json by itself, and named again it is an error"


def test_the_checkout_is_a_marketplace_with_one_plugin() -> None:
    market = document(".claude-plugin", "marketplace.json")

    [plugin] = market["plugins"]
    assert (market["name"], plugin["name"], plugin["source"]) == ("gaia-sessions", "gaia-sessions", "./")


def test_the_plugin_sends_every_supported_event_to_one_script() -> None:
    hooks = document("hooks", "hooks.json")["hooks"]

    assert set(hooks) == set(READERS)
    script = "${CLAUDE_PLUGIN_ROOT}/hooks/every_event.py"
    handlers = [handler for groups in hooks.values() for group in groups for handler in group["hooks"]]
    assert {(entry["type"], entry["command"], *entry["args"], entry["timeout"]) for entry in handlers} == {
        ("command", "python3", "-S", script, 5)
    }
    assert CHECKOUT.joinpath("hooks", "every_event.py").is_file()


def test_the_plugin_has_the_same_hook_entries_as_hooks_install_writes() -> None:
    assert sorted(entries(document("hooks", "hooks.json")), key=str) == sorted(SETTINGS.entries(), key=str)


def entries(settings: Any) -> list[WantedEntry]:
    return [
        wanted_entry_of(event, group.get("matcher"), handler)
        for event, groups in settings["hooks"].items()
        for group in groups
        for handler in group["hooks"]
    ]


def test_the_skill_names_commands_phases_and_markers_that_exist() -> None:
    text = SKILL.read_text(encoding="utf-8")

    assert text.startswith("---\nname: gaia-sessions\ndescription: ")
    named = set(re.findall(r"(?:`|^ +)gaia-sessions ([a-z-]+)", text, re.MULTILINE))
    assert {"update", "list", "should-resume"} <= named <= set(COMMANDS)
    assert {f"`{phase}`" for phase in PHASES} <= set(re.findall(r"`[a-z]+`", text))
