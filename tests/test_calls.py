"""``tests.calls``: a program that runs in this process, with its own streams, environment and folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.calls import call

if TYPE_CHECKING:
    from pathlib import Path


def test_output_through_descriptors_and_python_streams_is_collected() -> None:
    def talk() -> int:
        told = sys.stdin.read()
        sys.stdout.write(f"{told} by Python\n")
        sys.stderr.write("an error")
        sys.stdout.flush()
        os.write(1, b"by the system")
        return 3

    assert call(talk, b"heard", os.environ, ".") == (3, b"heard by Python\nby the system", b"an error")


def test_a_call_has_its_own_environment_folder_and_streams(tmp_path: Path) -> None:
    before = dict(os.environ), os.getcwd(), sys.stdout

    def look() -> int:
        os.environ["CHANGED"] = "1"
        sys.stdout.write(f"{os.getcwd()} {os.environ['TOLD']} {'HOME' in os.environ}")
        return 0

    ran = call(look, b"", {"TOLD": "x"}, tmp_path)

    assert ran.out.decode() == f"{tmp_path} x False"
    assert (dict(os.environ), os.getcwd(), sys.stdout) == before


def test_a_closed_stream_is_none_and_exceptions_pass_through() -> None:
    def fail() -> int:
        assert sys.stdin is None
        raise LookupError

    with pytest.raises(LookupError):
        call(fail, None, os.environ, ".")
