"""The check of the hooks: what a command can mend is a finding with that command, everything else a remark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.clock import utc_now
from gaia_sessions.doctor import wired
from gaia_sessions.doctor.case import Case

if TYPE_CHECKING:
    from gaia_sessions.doctor.findings import Finding


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the hooks in its settings."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / ".claude").mkdir()
    shell(f"gaia-sessions --root {tmp_path}/.claude/session hooks install")
    return tmp_path


def settings(project: Path) -> Path:
    return project / ".claude" / "settings.json"


def shell(command: str) -> None:
    subprocess.run(["sh", "-euc", command], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def look(project: Path, **environment: str) -> Finding:
    root = str(project / ".claude" / "session")
    return wired.hooks(Case(root, {**os.environ, **environment}, utc_now()))


def test_hooks_that_are_not_installed_are_a_remark(tmp_path: Path) -> None:
    assert look(tmp_path) == {
        "name": "hooks",
        "ok": True,
        "found": "not installed, which `gaia-sessions hooks install` does",
        "mend": None,
        "fixable": False,
    }


def test_installed_and_not_heard_yet_is_a_remark(project: Path) -> None:
    finding = look(project)
    assert (finding["ok"], finding["mend"]) == (True, None)
    assert finding["found"].startswith("claude-code (project): complete; no event of claude-code was heard")


def test_an_event_that_is_missing_is_mended_by_installing_again(project: Path) -> None:
    document: Any = json.loads(settings(project).read_bytes())
    del document["hooks"]["SubagentStop"]
    settings(project).write_text(json.dumps(document), encoding="utf-8")
    finding = look(project)
    assert (finding["ok"], "incomplete, without SubagentStop" in finding["found"]) == (False, True)
    shell(finding["mend"] or "")
    assert look(project)["ok"]


def test_hooks_installed_twice_are_taken_out_once(project: Path) -> None:
    shell(f"gaia-sessions --root {project}/.claude/session hooks install --user")
    finding = look(project)
    assert not finding["ok"]
    assert "every event is taken in more than once" in finding["found"]
    shell(finding["mend"] or "")
    assert look(project)["ok"]


def test_an_entry_twice_in_one_file_is_mended_by_installing_again(project: Path) -> None:
    document: Any = json.loads(settings(project).read_bytes())
    document["hooks"]["Stop"] *= 2
    settings(project).write_text(json.dumps(document), encoding="utf-8")
    finding = look(project)
    assert (finding["ok"], "more than one entry of ours" in finding["found"]) == (False, True)
    shell(finding["mend"] or "")
    assert look(project)["ok"]


def test_hooks_switched_off_name_the_switch(project: Path) -> None:
    assert look(project, GAIA_SESSIONS_HOOKS="off")["mend"] == "unset GAIA_SESSIONS_HOOKS"
    ours = project / ".claude" / "gaia-sessions.toml"
    ours.write_text("[hooks]\nenabled = false\n", encoding="utf-8")
    assert look(project)["mend"] == f'"${{EDITOR:-vi}}" {ours}'


def test_what_only_the_user_may_change_is_opened_for_them(project: Path) -> None:
    document = {**json.loads(settings(project).read_bytes()), "disableAllHooks": True}
    settings(project).write_text(json.dumps(document), encoding="utf-8")
    assert look(project)["mend"] == f'"${{EDITOR:-vi}}" {settings(project)}'
    settings(project).write_text("{", encoding="utf-8")
    finding = look(project)
    assert (finding["ok"], finding["mend"]) == (False, f'"${{EDITOR:-vi}}" {settings(project)}')
