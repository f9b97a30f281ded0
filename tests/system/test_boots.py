"""Which boot this is, by the moment it began: sure, or not this one."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.system import boots
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

NAME = "from gaia_sessions.system import boots; boots._BOOT_ID = ''; print(boots.boot_signature().decode())"


@pytest.fixture(autouse=True)
def without_boot_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "_BOOT_ID", "")


def began(name: bytes) -> float:
    return float(name.removeprefix(b"since "))


def test_another_process_of_this_boot_knows_it_again() -> None:
    signature = subprocess.run([sys.executable, "-c", NAME], capture_output=True, check=True).stdout.strip()

    assert boots.is_this_boot(signature)
    assert abs(began(signature) - (time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))) < 1


@table("seconds", [-86_400, -60, -2, 2, 60])
def test_a_boot_that_began_seconds_before_or_after_is_another(seconds: int) -> None:
    assert not boots.is_this_boot(f"since {began(boots.boot_signature()) + seconds:.3f}".encode())


@table("kept", [b"", b"since", b"since ", b"since nan", b"since inf", b"since 1e999", b"since \xff", b"unknown", b"0"])
def test_what_is_no_moment_is_no_boot(kept: bytes) -> None:
    assert not boots.is_this_boot(kept)


def test_a_clock_that_was_never_set_tells_no_boot_from_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a machine whose clock begins in 1970 every boot begins at the same moment."""
    before = boots.boot_signature()
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(time, "time", lambda: uptime)

    assert boots.boot_signature() == b""
    assert not boots.is_this_boot(b"since 0.000")
    assert not boots.is_this_boot(b"")
    assert not boots.is_this_boot(before)


def test_a_boot_with_an_id_is_known_by_that_and_by_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    moment = boots.boot_signature()
    monkeypatch.setattr(boots, "_BOOT_ID", str(tmp_path / "boot_id"))
    (tmp_path / "boot_id").write_bytes(b"an-id\n")

    assert boots.boot_id() == boots.boot_signature() == b"an-id"
    assert boots.is_this_boot(b"an-id")
    assert not boots.is_this_boot(moment)
    assert not boots.is_this_boot(b"")
