"""A call in this process: what it says is heard, by whatever way it says it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.calls import call

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_by_descriptors_and_by_pythons_own_streams_is_collected() -> None:
    def talk() -> int:
        told = sys.stdin.read()
        sys.stdout.write(f"{told} by Python\n")
        sys.stderr.write("an error")
        sys.stdout.flush()
        os.write(1, b"by the system")
        return 3

    assert call(talk, b"heard", os.environ, ".") == (3, b"heard by Python\nby the system", b"an error")


def test_environment_folder_and_streams_are_its_own(tmp_path: Path) -> None:
    before = dict(os.environ), os.getcwd(), sys.stdout

    def look() -> int:
        os.environ["CHANGED"] = "1"
        sys.stdout.write(f"{os.getcwd()} {os.environ['TOLD']} {'HOME' in os.environ}")
        return 0

    ran = call(look, b"", {"TOLD": "x"}, tmp_path)

    assert ran.out.decode() == f"{tmp_path} x False"
    assert (dict(os.environ), os.getcwd(), sys.stdout) == before


def test_a_closed_stream_is_closed_and_what_is_raised_comes_through() -> None:
    def fail() -> int:
        assert sys.stdin is None
        raise LookupError

    with pytest.raises(LookupError):
        call(fail, None, os.environ, ".")
