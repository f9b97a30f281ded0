"""Every settings file people may have: what is theirs stays, ours comes once and goes again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import SessionsError, exit_code
from gaia_sessions.install.hook_command import command_for, is_own_hook, new_handler
from gaia_sessions.install.places import HOSTS
from tests.install.conftest import Setup
from tests.install.settings_files import REFUSED, ROWS, SAME, TAKEN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.settings_files import Row

TAKEN_ROWS = pytest.mark.parametrize("row", TAKEN.values(), ids=TAKEN)
# Not where our own bytes are taken away and put in again.
OTHERS = {name: row for name, row in TAKEN.items() if b"every_event.py" not in (row.data or b"") or row.left is SAME}
ROWS_OF_OTHERS = pytest.mark.parametrize("row", OTHERS.values(), ids=OTHERS)
# Nothing of ours is in a member of the wrong kind, which refusals name in quotation marks: nothing is to be taken out.
REFUSALS = [
    pytest.param(row, ask, id=f"{ask}-{name}")
    for name, row in REFUSED.items()
    for ask in ("install", "uninstall")
    if ask == "install" or not row.refused.startswith("'")
]


def before(setup: Setup, row: Row) -> Setup:
    setup.host = row.host
    return setup.put(row.data)


def of_others(said: Any) -> Any:
    """Settings without our entries, nor what is empty without them."""
    hooks = {}
    for event, groups in said.get("hooks", {}).items():
        kept = [group_of_others(group) for group in groups]
        hooks[event] = [group for group in kept if group is not None]
    return {**said, "hooks": {event: groups for event, groups in hooks.items() if groups}}


def group_of_others(group: Any) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    kept = [entry for entry in group["hooks"] if not is_own_hook(entry)]
    return {**group, "hooks": kept} if kept or not group["hooks"] else None


def test_there_are_enough_of_them() -> None:
    assert len(ROWS) >= 40


@TAKEN_ROWS
def test_installing_adds_own_entries_once_and_changes_nothing_else_that_is_said(setup: Setup, row: Row) -> None:
    before(setup, row)
    theirs = of_others(setup.said()) if (row.data or b"").strip(b" \n\t\r\xef\xbb\xbf") else {"hooks": {}}
    host = HOSTS[row.host]

    setup.install()

    said = setup.said()
    words = command_for(host, tools=False)
    own_entries_found = [
        (event, group.get("matcher"), [entry for entry in group["hooks"] if is_own_hook(entry)])
        for event, groups in said["hooks"].items()
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        if any(is_own_hook(entry) for entry in group["hooks"])
    ]
    wanted = [(entry.event, entry.matcher, [new_handler(host, words, entry)]) for entry in host.entries(tools=False)]
    assert sorted(own_entries_found, key=str) == sorted(wanted, key=str)
    assert of_others(said) == theirs


@ROWS_OF_OTHERS
def test_installing_takes_no_byte_of_others_away(setup: Setup, row: Row) -> None:
    before(setup, row)
    setup.install()

    left = iter((setup.held() or b"").decode())
    theirs = (row.data or b"").decode()
    missing = [sign for sign in theirs if sign not in " \t\r\n" and sign not in left]
    assert missing == []


@TAKEN_ROWS
def test_installing_again_writes_nothing(setup: Setup, row: Row) -> None:
    before(setup, row).install()
    first = setup.file.stat()
    kept = {path: path.stat().st_mtime_ns for path in setup.receipts.rglob("*")}

    answer = setup.install()

    second = setup.file.stat()
    assert (first.st_ino, first.st_mtime_ns) == (second.st_ino, second.st_mtime_ns)
    assert {path: path.stat().st_mtime_ns for path in setup.receipts.rglob("*")} == kept
    assert answer["changed"] == []


@TAKEN_ROWS
def test_uninstalling_gives_the_original_bytes_back(setup: Setup, row: Row) -> None:
    before(setup, row).install()
    dead_before = b"/opt/gaia_sessions" in (row.data or b"")

    setup.uninstall()

    assert setup.held() == (row.left if dead_before else row.data)
    assert not setup.receipts.parent.exists(), "nothing of ours is left"


@TAKEN_ROWS
def test_uninstalling_without_a_receipt_removes_own_entries_and_nothing_else(setup: Setup, row: Row) -> None:
    before(setup, row).install()
    shutil.rmtree(setup.receipts)

    setup.uninstall()

    assert setup.held() == (row.data if row.left is SAME else row.left)


@TAKEN_ROWS
@pytest.mark.parametrize("tools", [True, False])
def test_other_options_leave_what_a_first_installation_with_them_would(
    setup: Setup, tmp_path: Path, row: Row, *, tools: bool
) -> None:
    (tmp_path / "other").mkdir()
    fresh = before(Setup(tmp_path / "other"), row)
    fresh.install(tools=tools)
    before(setup, row).install(tools=not tools)

    setup.install(tools=tools)

    assert setup.held() == fresh.held()
    fresh.uninstall()
    setup.uninstall()
    assert setup.held() == fresh.held()


@pytest.mark.parametrize(("row", "ask"), REFUSALS)
def test_what_does_not_parse_is_named_and_left_alone(setup: Setup, row: Row, ask: str) -> None:
    before(setup, row)
    first = setup.file.stat()

    with pytest.raises(SessionsError) as caught:
        getattr(setup, ask)()

    assert exit_code(caught.value) == 7
    assert str(setup.file) in str(caught.value)
    assert row.refused in str(caught.value)
    second = setup.file.stat()
    assert (setup.held(), first.st_mtime_ns, first.st_ino) == (row.data, second.st_mtime_ns, second.st_ino)
    assert [path.name for path in setup.file.parent.iterdir()] == [setup.file.name]
    assert not setup.receipts.exists()
