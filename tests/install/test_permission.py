"""The rules that let agents report: how they are written, and which rules are own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import StoreFailure
from gaia_sessions.install import permission
from tests.install.settings_files import PRETTY
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import Setup


@table(
    ("rule", "is_own"),
    [
        ("Bash(gaia-sessions update *)", True),
        ("Bash('/my place/gaia-sessions' update *)", True),
        ("Bash(/opt/bin/gaia-sessions update *)", True),
        ("""Bash('/it'"'"'s mine/gaia-sessions' update *)""", True),
        ("Bash('/héré/gaia-sessions' update *)", True),
        ("Bash(/opt/bin/gaia-sessions todo *)", True),
        ("Bash(my-gaia-sessions update *)", False),
        ("Bash(cd /x && /opt/gaia-sessions update *)", False),
        ("Bash(sudo /opt/bin/gaia-sessions update *)", False),
        ("Bash('/bin/echo' '/opt/gaia-sessions' update *)", False),
        ("Bash(gaia-sessions list *)", False),
        ("Read(gaia-sessions update *)", False),
    ],
)
def test_a_rule_is_own_if_its_command_is_gaia_sessions_update_or_todo(rule: str, *, is_own: bool) -> None:
    assert permission.is_own_rule(rule) is is_own


def test_install_with_report_fails_if_the_command_is_missing(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    setup.put(PRETTY)
    with pytest.raises(StoreFailure) as caught:
        setup.install(report=True)
    assert (caught.value.exit_code, setup.held()) == (8, PRETTY)


def test_a_path_with_a_space_is_quoted_in_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert permission.permission_rules() == [
        f"Bash('{folder}/gaia-sessions' update *)",
        f"Bash('{folder}/gaia-sessions' todo *)",
    ]


def test_a_path_with_parentheses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a (b)"
    folder.mkdir()
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(StoreFailure):
        permission.permission_rules()
