"""The log of the hooks: its place, its mode, its maximum size, and that it never makes a hook fail."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from gaia_sessions.store import hook_log
from tests.table import table

CHECKOUT = Path(__file__).resolve().parents[2]

PLACES = {
    ".claude/session": ".claude/logs",
    ".claude/sessions": ".claude/sessions/.logs",
    "session": "session/.logs",
    "var/lib/gaia": "var/lib/gaia/.logs",
}


@table(("root", "folder"), PLACES.items())
def test_logs_are_beside_the_root_of_a_project_and_inside_any_other_root(
    tmp_path: Path, root: str, folder: str
) -> None:
    tmp_path /= root.replace("/", "-")
    (tmp_path / ".claude").mkdir(parents=True)

    hook_log.append_line(str(tmp_path / root), "pre_delegate", {"decision": "created"})

    assert hook_log.log_folder(str(tmp_path / root)) == str(tmp_path / folder)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.log")] == [f"{folder}/pre_delegate.log"]


def test_a_log_line_creates_no_project_folder(tmp_path: Path) -> None:
    hook_log.append_line(str(tmp_path / ".claude" / "session"), "hook", {"decision": "not_ours"})

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    return tmp_path / ".claude" / "logs"


@pytest.fixture
def session(logs: Path) -> str:
    return str(logs.with_name("session"))


def test_a_new_log_folder_is_private_and_ignored_by_git(session: str, logs: Path) -> None:
    hook_log.append_line(session, "pre_delegate", {"decision": "created"})

    assert {entry.name: entry.read_bytes() for entry in logs.iterdir()} == {
        ".gitignore": b"*\n",
        "pre_delegate.log": b'{"decision": "created"}\n',
    }
    modes = [oct(path.stat().st_mode & 0o777) for path in (logs, logs / "pre_delegate.log", logs / ".gitignore")]
    assert modes == ["0o700", "0o600", "0o600"]
    assert not Path(session).exists()


def test_an_existing_log_folder_keeps_its_mode_and_gets_no_gitignore(session: str, logs: Path) -> None:
    logs.mkdir(parents=True, mode=0o755)

    hook_log.append_line(session, "pre_delegate", {"decision": "created"})

    assert [entry.name for entry in logs.iterdir()] == ["pre_delegate.log"]
    assert logs.stat().st_mode & 0o777 == 0o755


def test_the_owner_can_read_the_log_even_with_umask_777(session: str, logs: Path) -> None:
    before = os.umask(0o077)
    try:
        logs.parent.mkdir(parents=True, exist_ok=True)
        os.umask(0o777)
        hook_log.append_line(session, "pre_delegate", {"decision": "created"})
    finally:
        os.umask(before)

    modes = [oct(path.stat().st_mode & 0o777) for path in (logs, logs / "pre_delegate.log")]
    assert modes == ["0o700", "0o600"]


def test_each_call_adds_one_line_with_one_json_object(session: str, logs: Path) -> None:
    lines: list[dict[str, object]] = [{"error": "two\nlines\x1b[31m\x9b"}, {"session": None}, {"ms": 1.5}]
    for line in lines:
        hook_log.append_line(session, "subagent_stop", line)

    written = (logs / "subagent_stop.log").read_bytes().splitlines()
    assert [json.loads(line) for line in written] == lines
    assert b"\x1b" not in written[0]
    assert b"\x9b" not in written[0]


def test_a_full_log_replaces_the_only_old_log(session: str, logs: Path) -> None:
    logs.mkdir(parents=True)
    current, old = logs / "pre_delegate.log", logs / "pre_delegate.log.old"
    current.write_bytes(b"x" * (hook_log.MAX_LOG_BYTES - 1))

    hook_log.append_line(session, "pre_delegate", {"number": 1})
    assert not old.exists()
    hook_log.append_line(session, "pre_delegate", {"number": 2})

    assert current.read_bytes() == b'{"number": 2}\n'
    assert old.read_bytes() == b"x" * (hook_log.MAX_LOG_BYTES - 1) + b'{"number": 1}\n'
    current.write_bytes(b"y" * hook_log.MAX_LOG_BYTES)
    hook_log.append_line(session, "pre_delegate", {"number": 3})
    assert old.read_bytes() == b"y" * hook_log.MAX_LOG_BYTES
    assert sorted(entry.name for entry in logs.iterdir()) == [current.name, old.name]


def test_a_line_that_cannot_be_written_is_lost_without_an_error(session: str, logs: Path) -> None:
    logs.parent.mkdir(parents=True, exist_ok=True)
    logs.write_text("in the way", encoding="utf-8")

    hook_log.append_line(session, "pre_delegate", {"decision": "created"})

    assert logs.read_text(encoding="utf-8") == "in the way"


def test_a_line_that_cannot_be_encoded_is_lost_without_an_error(session: str, logs: Path) -> None:
    hook_log.append_line(session, "pre_delegate", {"half": "\ud800"})
    hook_log.append_line(session, "pre_delegate", {"decision": "created"})

    assert (logs / "pre_delegate.log").read_bytes() == b'{"decision": "created"}\n'


def test_a_log_that_is_a_link_is_not_followed(session: str, logs: Path, tmp_path: Path) -> None:
    logs.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (logs / "pre_delegate.log").symlink_to(victim)

    hook_log.append_line(session, "pre_delegate", {"decision": "created"})

    assert victim.read_text(encoding="utf-8") == "mine"


def test_every_decision_that_the_hooks_page_explains_is_in_the_code() -> None:
    _, _, log = (CHECKOUT / "docs" / "hooks.md").read_text(encoding="utf-8").partition("## The log\n")
    rows = re.findall(r"^- (.*?): ", log.partition("\n## ")[0], re.MULTILINE)
    programs = [path for room in ("ingest", "hook") for path in (CHECKOUT / "gaia_sessions" / room).rglob("*.py")]
    words = set(re.findall(r'"(\w+)"', "\n".join(path.read_text(encoding="utf-8") for path in programs)))

    explained = {word for row in rows for word in re.findall(r"`(\w+)`", row)}

    assert len(explained) >= 20
    assert explained - words == set()
