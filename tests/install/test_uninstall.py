"""What leaving gives back: the file as it was, hand-made entries of ours included, but none that could only fail."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.install import backups
from gaia_sessions.install.places import HOSTS
from gaia_sessions.store import external_file
from tests.install.settings_files import BY_HAND, MIXED, OTHER, PROGRAM, WIRED_BY_HAND, to_json

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import Setup

HAND_MADE = to_json({"model": "opus", "hooks": WIRED_BY_HAND}, "\t")


def test_a_command_with_the_hook_in_it_survives_installing_and_uninstalling(setup: Setup) -> None:
    data = to_json({"hooks": {"SubagentStop": [{"hooks": [MIXED]}]}})
    setup.put(data).install()
    assert {"hooks": [MIXED]} in setup.said()["hooks"]["SubagentStop"]
    setup.uninstall()
    assert setup.held() == data


def test_what_was_wired_by_hand_is_there_again_and_that_is_said(setup: Setup) -> None:
    setup.put(HAND_MADE).install()
    kept = backups.find(setup.places.state, str(setup.file))
    assert (kept and kept.before, kept and kept.after_uninstall) == (HAND_MADE, HAND_MADE)
    assert BY_HAND not in [entry for group in setup.said()["hooks"]["SubagentStop"] for entry in group["hooks"]]

    answer = setup.uninstall()

    assert (answer["remarks"], setup.held()) == (["entries_back"], HAND_MADE)
    assert setup.uninstall()["remarks"] == []
    assert setup.said() == {"model": "opus", "hooks": {"Stop": [{"hooks": [OTHER]}]}}


def test_it_comes_back_after_other_options_too(setup: Setup) -> None:
    setup.put(HAND_MADE).install()
    setup.install(tools=True)
    setup.uninstall()
    assert setup.held() == HAND_MADE


def test_it_comes_back_after_an_installation_that_was_killed(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(external_file, "write", kill)
        with pytest.raises(KeyboardInterrupt):
            setup.put(HAND_MADE).install()
    assert backups.find(setup.places.state, str(setup.file)) is not None
    setup.install()
    setup.uninstall()
    assert setup.held() == HAND_MADE


def test_of_a_file_that_somebody_changed_since_the_copy_is_the_whole_of_it(setup: Setup) -> None:
    setup.put(to_json({"model": "opus"})).install()
    changed = (setup.held() or b"").replace(b'"opus"', b'"sonnet"')
    setup.put(changed)

    copy = setup.install(tools=True)["backup"]

    kept = backups.find(setup.places.state, str(setup.file))
    assert (copy is not None, kept and kept.before, kept and kept.after_uninstall) == (
        True,
        changed,
        to_json({"model": "sonnet"}),
    )
    setup.uninstall()
    assert setup.held() == to_json({"model": "sonnet"})


def test_a_receipt_of_before_there_were_two_copies_gives_back_the_one(setup: Setup) -> None:
    data = to_json({"model": "opus"})
    setup.put(data).install()
    [note] = setup.receipts.rglob("receipt.json")
    document: Any = json.loads(note.read_bytes())
    del document["left"]
    note.write_text(json.dumps(document), encoding="utf-8")
    setup.uninstall()
    assert setup.held() == data


def test_entries_whose_script_is_gone_by_then_do_not_come_back(setup: Setup, tmp_path: Path) -> None:
    """Python ends with 2 where its script is gone, and a host takes that for a refusal."""
    script = tmp_path / "moved" / "hooks" / "every_event.py"
    script.parent.mkdir(parents=True)
    script.write_bytes(b"")
    by_hand = {"type": "command", "command": f"python3 {script}"}
    setup.put(to_json({"a": 1, "hooks": {"Stop": [{"hooks": [OTHER, by_hand]}]}})).install()
    script.unlink()
    assert setup.uninstall()["remarks"] == []
    assert setup.held() == to_json({"a": 1, "hooks": {"Stop": [{"hooks": [OTHER]}]}})


@pytest.mark.parametrize("ask", ["install", "uninstall"])
def test_the_entry_of_a_checkout_that_moved_away_goes(setup: Setup, ask: str) -> None:
    gone = {"type": "command", "command": "/usr/bin/python3 /home/me/src/gaia/hooks/every_event.py"}
    setup.put(to_json({"hooks": {"Stop": [{"hooks": [gone]}]}}))
    getattr(setup, ask)()
    assert b"/home/me/src" not in (setup.held() or b"")
    assert (setup.held() or b"").count(PROGRAM.encode()) == (ask == "install") * len(
        HOSTS["claude-code"].entries(tools=False)
    )


@pytest.mark.parametrize("commented", ["handlers", "group", "groups"])
def test_comments_beside_what_was_own_stay(setup: Setup, commented: str) -> None:
    by_hand = json.dumps(BY_HAND)
    handlers = f"[ /* mine */ {by_hand}]" if commented == "handlers" else f"[{by_hand}]"
    group = f'{{ /* mine */ "hooks": {handlers}}}' if commented == "group" else f'{{"hooks": {handlers}}}'
    groups = f"[ /* mine */ {group}]" if commented == "groups" else f"[{group}]"
    setup.host = "qwen-code"
    setup.put(f'{{"hooks": {{"SessionEnd": {groups}}}}}'.encode())
    setup.install()
    shutil.rmtree(setup.receipts)
    assert b"/* mine */" in (setup.held() or b"")
    setup.uninstall()
    assert b"/* mine */" in (setup.held() or b"")
    assert PROGRAM.encode() not in (setup.held() or b"")
