"""The checks of the root and of the machine: file system, modes, disk space, clock, packages."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import gaia_sessions
from gaia_sessions.doctor import machine, own_files, root_folder
from gaia_sessions.doctor.inspection import Inspection
from gaia_sessions.system import mounts
from tests.table import table

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone may give files away")


def case_of(root: str, ago: timedelta = timedelta()) -> Inspection:
    return Inspection(root, dict(os.environ), datetime.now(UTC) - ago)


@pytest.fixture
def made(root: str) -> str:
    gaia_sessions.create_session(agent_id="a", root=root)
    return root


@table("kind", sorted(mounts.NETWORK))
def test_every_network_file_system_is_a_problem(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {made} rw - {kind} x rw\n", encoding="utf-8")
    monkeypatch.setattr(mounts, "_TABLE", str(table))
    finding = root_folder.file_system(case_of(made))
    assert finding["state"] == "problem"
    assert finding["found"].startswith(f"{made} is on {kind}: ")
    assert finding["fix"] is None
    assert "GAIA_SESSIONS_ROOT" in finding["found"]
    assert root_folder.file_system(case_of(str(tmp_path)))["found"] == "ext4"


@as_root
def test_make_private_does_not_change_files_of_another_user(made: str) -> None:
    state = Path(made, "a", "state.json")
    state.chmod(0o644)
    os.chown(state, 65534, 65534)
    assert own_files.make_private(made, 0) == 0
    assert state.stat().st_mode & 0o777 == 0o644


def test_the_settings_file_in_the_root_may_have_any_mode(made: str) -> None:
    path = Path(made, ".config.toml")
    path.write_text("", encoding="utf-8")
    path.chmod(0o644)
    assert root_folder.modes(case_of(made))["state"] == "ok"


def test_a_full_disk_is_a_problem(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result([4096, 4096, 10**6, 100, 100, 10**6, 5, 5, 0, 255])
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    finding = root_folder.space(case_of(made))
    assert (finding["state"], finding["fix"]) == ("problem", None)  # the user decides what to delete
    assert finding["found"] == f"0 MiB free, 5 files at {made}; free some space there"


@pytest.fixture
def linked(made: str, tmp_path: Path) -> str:
    """A link to the root."""
    link = tmp_path / "linked"
    link.symlink_to(made)
    return str(link)


def test_modes_in_a_linked_root_are_checked_and_fixed(made: str, linked: str) -> None:
    state = Path(made, "a", "state.json")
    state.chmod(0o644)

    finding = root_folder.modes(case_of(linked))

    assert finding["found"] == f"1 entry that others can open, or that the owner cannot: {linked}/a/state.json (644)"
    subprocess.run(["sh", "-euc", finding["fix"] or ""], check=True)
    assert state.stat().st_mode & 0o777 == 0o600
    state.chmod(0o644)
    assert own_files.make_private(linked, os.geteuid()) == 1
    assert state.stat().st_mode & 0o777 == 0o600


def test_make_private_changes_no_target_of_a_link_and_no_hard_link(made: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    secret = outside / "file"
    secret.write_text("mine", encoding="utf-8")
    secret.chmod(0o644)
    os.symlink(outside, f"{made}/linked")
    os.symlink(secret, f"{made}/a/events.jsonl")
    os.link(secret, f"{made}/a/transcript.jsonl")
    links = {f"{made}/linked", f"{made}/a/events.jsonl"}
    assert {entry.path for entry in own_files.walk(made)} & {*links, str(secret)} == set()
    assert own_files.make_private(made, os.geteuid()) == 0
    assert (outside.stat().st_mode & 0o777, secret.stat().st_mode & 0o777) == (0o755, 0o644)


def test_make_private_repairs_a_folder_without_permissions_and_its_files(tmp_path: Path) -> None:
    made = str(tmp_path / ".claude" / "session")
    gaia_sessions.create_session(agent_id="a", root=made)
    state, folder = Path(made, "a", "state.json"), Path(made, "a")
    state.chmod(0o666)
    folder.chmod(0o000)
    assert own_files.make_private(made, os.geteuid()) == 2
    assert (folder.stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_clock_behind_the_newest_record_is_a_problem(made: str) -> None:
    assert machine.clock(case_of(made))["state"] == "ok"
    finding = machine.clock(case_of(made, timedelta(days=1)))
    assert (finding["state"], finding["fix"]) == ("problem", None)
    assert f"{made}/a/state.json" in finding["found"]


@table("version", ["3.25.2", "4.2.0", "5.0.0"])
def test_packages_that_are_missing_or_unsuitable_are_named(made: str, version: str) -> None:
    assert machine.packages(case_of(made))["state"] == "ok"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine, "version_of", lambda _: version)
        patched.setattr(machine, "find_spec", lambda name: None if name == "rich" else object())
        finding: Any = machine.packages(case_of(made))
    assert finding["found"] == "packages are missing or have an unsuitable version: rich, filelock>=4.2.1,<5"
    assert finding["fix"] == f"{sys.executable} -P -m pip install rich 'filelock>=4.2.1,<5'"
