"""Recognizing the current boot without a boot ID, by the time when it began."""

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


def test_a_signature_from_another_process_is_recognized_as_this_boot() -> None:
    signature = subprocess.run([sys.executable, "-c", NAME], capture_output=True, check=True).stdout.strip()

    assert boots.is_this_boot(signature)
    assert abs(began(signature) - (time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))) < 1


@table("seconds", [-86_400, -60, -2, 2, 60])
def test_a_boot_that_began_two_seconds_earlier_or_later_is_another_boot(seconds: int) -> None:
    assert not boots.is_this_boot(f"since {began(boots.boot_signature()) + seconds:.3f}".encode())


@table("kept", [b"", b"since", b"since ", b"since nan", b"since inf", b"since 1e999", b"since \xff", b"unknown", b"0"])
def test_a_signature_without_a_valid_time_is_not_this_boot(kept: bytes) -> None:
    assert not boots.is_this_boot(kept)


def test_with_a_clock_that_was_never_set_no_signature_is_this_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock begins in 1970, every boot seems to begin at the same time."""
    before = boots.boot_signature()
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr(time, "time", lambda: uptime)

    assert boots.boot_signature() == b""
    assert not boots.is_this_boot(b"since 0.000")
    assert not boots.is_this_boot(b"")
    assert not boots.is_this_boot(before)


def test_a_boot_with_an_id_is_recognized_only_by_that_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    moment = boots.boot_signature()
    monkeypatch.setattr(boots, "_BOOT_ID", str(tmp_path / "boot_id"))
    (tmp_path / "boot_id").write_bytes(b"an-id\n")

    assert boots.boot_id() == boots.boot_signature() == b"an-id"
    assert boots.is_this_boot(b"an-id")
    assert not boots.is_this_boot(moment)
    assert not boots.is_this_boot(b"")
