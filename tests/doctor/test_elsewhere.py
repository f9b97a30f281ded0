"""The report on a folder that others use as well: what is not ours is neither fixed nor named in a fix."""

from __future__ import annotations

import os
from pathlib import Path

import gaia_sessions
from gaia_sessions.doctor.report import WHOLE_ROOT_CHECKS, examine, examine_and_fix


def shared(root: str) -> dict[str, int]:
    """One session of ours beside somebody's files; these, with their modes."""
    theirs = {"src/a.py": 0o644, ".trash/keep.0123456789abcdef/doc": 0o644, ".inbox/mail.json": 0o640}
    for name, mode in theirs.items():
        Path(root, name).parent.mkdir(parents=True, exist_ok=True)
        Path(root, name).write_bytes(b"theirs")
        Path(root, name).chmod(mode)
        os.utime(Path(root, name), (0, 0))
    gaia_sessions.create_session(root=root)
    return theirs


def test_a_fix_of_everything_is_neither_made_nor_named(root: str) -> None:
    theirs = shared(root)

    report = examine_and_fix(root, os.environ)

    assert report["fixed"] == []
    assert {name: Path(root, name).stat().st_mode & 0o777 for name in theirs} == theirs
    assert all(Path(root, name).read_bytes() == b"theirs" for name in theirs)
    problems = [found for found in report["checks"] if found["name"] in WHOLE_ROOT_CHECKS and not found["ok"]]
    assert "modes" in [found["name"] for found in problems]
    assert [found["fix"] for found in problems if found["fix"] or found["fixable"]] == []


def test_a_root_that_lost_its_mark_is_still_for_us_to_fix(root: str) -> None:
    gaia_sessions.create_session(root=root)
    Path(root, ".gitignore").unlink()

    [missing] = [found for found in examine(root, os.environ)["checks"] if found["name"] == "ignored"]

    assert missing["fixable"]
    assert {"name": "ignored", "done": "kept out of version control"} in examine_and_fix(root, os.environ)["fixed"]
    assert Path(root, ".gitignore").read_bytes() == b"*\n"
