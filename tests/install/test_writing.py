"""How a settings file is written: atomically, through links, with its mode, and not over changes of others."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import SessionsError, SettingsUnreadable, StoreFailure
from gaia_sessions.install import plan
from tests.install.conftest import Setup
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

DATA = b'{\n  "model": "opus"\n}\n'


def refused(setup: Setup) -> str:
    """The error of ``install``; checks that nothing changed."""
    before = setup.file.read_bytes() if setup.file.is_file() else None
    with pytest.raises(SessionsError) as caught:
        setup.install()
    assert caught.value.exit_code == 8
    assert (setup.file.read_bytes() if setup.file.is_file() else None) == before
    assert leftovers(setup.file.parent) == []
    return str(caught.value)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


@table("mode", [0o600, 0o644, 0o664, 0o666])
def test_install_and_uninstall_keep_the_mode_of_the_file(setup: Setup, mode: int) -> None:
    setup.put(DATA).file.chmod(mode)
    setup.install()
    assert stat.S_IMODE(setup.file.stat().st_mode) == mode
    setup.uninstall()
    assert stat.S_IMODE(setup.file.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone may give files away")
def test_install_keeps_the_owner_of_the_file(setup: Setup) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(setup.put(DATA).file, nobody.pw_uid, nobody.pw_gid)
    setup.install()
    assert (setup.file.stat().st_uid, setup.file.stat().st_gid) == (nobody.pw_uid, nobody.pw_gid)


@pytest.mark.usefixtures("on_disk")
def test_install_and_uninstall_keep_extended_attributes(setup: Setup) -> None:
    setup.put(DATA)
    try:
        os.setxattr(setup.file, "user.note", b"mine\xff")
    except OSError:
        pytest.skip("needs a file system with extended attributes")
    setup.install()
    assert os.getxattr(setup.file, "user.note") == b"mine\xff"
    setup.uninstall()
    assert os.getxattr(setup.file, "user.note") == b"mine\xff"


@table("chain", [1, 2])
def test_a_link_stays_a_link_and_its_target_is_changed(tmp_path: Path, chain: int) -> None:
    folder = tmp_path / str(chain)
    folder.mkdir()
    setup, target = Setup(folder), folder / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_bytes(DATA)
    setup.put(None)
    pointed = target
    for number in range(chain - 1):
        link = target.parent / f"link{number}"
        link.symlink_to(pointed)
        pointed = link
    setup.file.symlink_to(pointed)

    setup.install()

    assert (setup.file.is_symlink(), target.is_symlink()) == (True, False)
    assert "hooks" in setup.said()
    assert leftovers(target.parent) == []
    setup.uninstall()
    assert (setup.file.is_symlink(), target.read_bytes()) == (True, DATA)
    target.write_bytes(b"{}")
    setup.install()
    setup.uninstall()
    assert (setup.file.is_symlink(), target.exists()) == (True, False)
    setup.install()
    assert (setup.file.is_symlink(), "hooks" in setup.said()) == (True, True)


def test_install_creates_the_missing_target_of_a_link(setup: Setup, tmp_path: Path) -> None:
    setup.put(None).file.symlink_to(tmp_path / "dotfiles" / "claude.json")
    setup.install()
    assert (setup.file.is_symlink(), "hooks" in setup.said()) == (True, True)
    setup.uninstall()
    assert (setup.file.is_symlink(), [*(tmp_path / "dotfiles").iterdir()]) == (True, [])


def test_a_read_only_file_is_refused(setup: Setup) -> None:
    setup.put(DATA).file.chmod(0o444)
    assert refused(setup).endswith("cannot write: it is read-only")


def test_a_file_with_a_second_hard_link_is_refused(setup: Setup) -> None:
    os.link(setup.put(DATA).file, setup.project / "other")
    assert "it has a second hard link" in refused(setup)


def test_a_pipe_or_folder_in_place_of_the_file_is_refused(setup: Setup) -> None:
    setup.put(None)
    os.mkfifo(setup.file)
    assert "not a regular file" in refused(setup)
    setup.file.unlink()
    setup.file.mkdir()
    assert "settings.json" in refused(setup)


def test_a_file_in_place_of_the_settings_folder_is_refused(setup: Setup) -> None:
    setup.file.parent.write_bytes(b"in the way")
    with pytest.raises(StoreFailure):
        setup.install()
    assert setup.file.parent.read_bytes() == b"in the way"


def test_install_removes_only_old_temporary_files_of_killed_writers(setup: Setup) -> None:
    folder = setup.put(DATA).file.parent
    name = f".{setup.file.name}"
    left, young = folder / f"{name}.{'a' * 16}.tmp", folder / f"{name}.{'b' * 16}.tmp"
    others = [folder / other for other in (".x.tmp", f"{name}.my-notes-on-them.tmp", f"{name}.{'A' * 16}.tmp")]
    for path in (left, young, *others):
        path.write_bytes(b"torn")
    for path in (left, *others):
        os.utime(path, (0, 0))

    setup.install()

    assert [path.exists() for path in (left, young, *others)] == [False, True, True, True, True]


def request(setup: Setup, action: str = "install") -> plan.InstallRequest:
    return plan.InstallRequest(action, setup.host, setup.scope)


def test_a_change_of_the_file_just_before_the_write_is_kept(setup: Setup) -> None:
    path = setup.put(DATA).file

    def write(_: str) -> None:
        path.write_bytes(b'{"model": "sonnet"}')

    assert plan.carry_out(setup.places, request(setup), write)["changed"]
    assert (setup.said()["model"], "hooks" in setup.said()) == ("sonnet", True)
    setup.uninstall()
    assert setup.held() == b'{"model": "sonnet"}'


def test_a_file_that_becomes_invalid_before_the_write_is_refused_and_unchanged(setup: Setup) -> None:
    path = setup.put(DATA).file

    def tear(_: str) -> None:
        path.write_bytes(b'{"model": ')

    with pytest.raises(SettingsUnreadable):
        plan.carry_out(setup.places, request(setup), tear)
    assert setup.held() == b'{"model": '


CALL = """
import os, sys
from gaia_sessions.install import plan
from gaia_sessions.install.places import Places
request = plan.InstallRequest(sys.argv[2], "claude-code", "project", enforce="enforce" in sys.argv)
plan.carry_out(Places(sys.argv[1], os.environ), request, lambda _: None)
"""


@pytest.mark.parametrize("pairs", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_concurrent_installs_succeed_and_one_uninstall_restores_the_original(setup: Setup, pairs: int) -> None:
    setup.put(DATA)
    calls = [[sys.executable, "-c", CALL, setup.root, "install", enforce] for enforce in ("", "enforce") * pairs]
    running = [subprocess.Popen(call) for call in calls]
    assert [process.wait() for process in running] == [0] * 2 * pairs
    assert setup.state()["state"] == "complete"
    setup.uninstall()
    assert setup.held() == DATA


RENAME, SYNC = "rename,renameat,renameat2", "fsync,fdatasync"
MOMENTS = [(RENAME, 1), *(pytest.param(SYNC, when, marks=pytest.mark.slow) for when in (1, 2))]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to stop the kernel at one call")
@pytest.mark.parametrize(("calls", "when"), MOMENTS)
@table("action", ["install", "uninstall"])
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(
    setup: Setup, action: str, calls: str, when: int
) -> None:
    setup.put(DATA).install()
    installed = setup.held()
    if action == "install":
        setup.uninstall()

    killed = subprocess.run(
        [
            *("strace", "-f", "-o", "/dev/null", "-e", f"inject={calls}:signal=KILL:when={when}"),
            *(sys.executable, "-c", CALL, setup.root, action),
        ],
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL
    assert setup.held() in (DATA, installed)
    setup.uninstall()
    assert setup.held() == DATA
