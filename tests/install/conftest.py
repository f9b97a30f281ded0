"""A project with the settings files of the hosts, and helpers to install and uninstall hooks there."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import PROJECT
from gaia_sessions.install import plan
from gaia_sessions.install.installed_file import InstalledFile
from gaia_sessions.install.places import HOSTS, Places

if TYPE_CHECKING:
    from gaia_sessions.install.installed_file import InstallState
    from gaia_sessions.install.plan import InstallResult

COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Setup:
    """One settings file of one host in one scope."""

    def __init__(self, folder: Path, host: str = CLAUDE_CODE, scope: str = PROJECT) -> None:
        self.project = folder / "project"
        self.root = str(self.project / ".claude" / "session")
        self.host = host
        self.scope = scope
        self.project.mkdir(exist_ok=True)

    @property
    def places(self) -> Places:
        return Places(self.root, os.environ)

    @property
    def file(self) -> Path:
        return Path(self.places.file_of(HOSTS[self.host], self.scope))

    def put(self, data: bytes | None) -> Setup:
        """Writes ``data`` to the settings file; for None it only creates the folder."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if data is not None:
            self.file.write_bytes(data)
        return self

    def held(self) -> bytes | None:
        return self.file.read_bytes() if self.file.exists() else None

    def said(self) -> Any:
        """The settings as the host parses them."""
        text = self.file.read_text(encoding="utf-8-sig")
        plain = COMMENT.sub(lambda found: found[1] or "", text) if HOSTS[self.host].comments else text
        return json.loads(plain, parse_int=lambda digits: int(digits) if len(digits) < 20 else digits)

    def install(self, *, report: bool = False, enforce: bool = False, dry_run: bool = False) -> InstallResult:
        request = plan.InstallRequest(plan.INSTALL, self.host, self.scope, report=report, enforce=enforce)
        return plan.carry_out(self.places, request, lambda _: None, dry_run=dry_run)

    def uninstall(self, *, dry_run: bool = False) -> InstallResult:
        request = plan.InstallRequest(plan.UNINSTALL, self.host, self.scope)
        return plan.carry_out(self.places, request, lambda _: None, dry_run=dry_run)

    def state(self) -> InstallState:
        return InstalledFile(self.places, HOSTS[self.host], self.scope).state()


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)
