"""Consent to report is one rule and one line, and both go with us."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import config
from gaia_sessions.errors import BadSetting, StoreFailure, exit_code
from gaia_sessions.install import permission
from tests.install.settings_files import PRETTY

if TYPE_CHECKING:
    from tests.install.conftest import Setup

LINE = "report_command = true"


@pytest.fixture(autouse=True)
def beside_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A console script stands beside the interpreter."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder


def own(setup: Setup) -> Path:
    """Our own settings, of the project or of the user."""
    of_user = setup.scope == "user"
    return Path(config.user_file(setup.places.variables) if of_user else config.project_file(setup.root))


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_the_rule_and_the_setting_come_together_and_go_together(
    setup: Setup, beside_the_interpreter: Path, scope: str
) -> None:
    setup.scope = scope
    setup.put(PRETTY)

    answer = setup.install(report=True)

    rule = f"Bash({beside_the_interpreter}/gaia-sessions update *)"
    assert answer["rules"] == [rule]
    assert setup.said()["permissions"] == {"allow": ["Bash(ls *)", rule], "deny": []}
    assert tomllib.loads(own(setup).read_text(encoding="utf-8")) == {"hooks": {"report_command": True}}
    assert answer["changed"] == [str(setup.file), str(own(setup))]
    assert setup.install(report=True)["changed"] == []
    setup.uninstall()
    assert (setup.held(), own(setup).exists()) == (PRETTY, False)


def test_permission_can_be_given_later_and_is_taken_back_by_installing_without_it(setup: Setup) -> None:
    setup.put(PRETTY).install()
    setup.install(report=True)
    assert permission.permission_rule() in setup.said()["permissions"]["allow"]

    answer = setup.install(tools=True)

    assert (answer["rules"], answer["withdrawn"]) == ([], [permission.permission_rule()])
    assert setup.said()["permissions"] == {"allow": ["Bash(ls *)"], "deny": []}
    assert not own(setup).exists()
    setup.uninstall()
    assert (setup.held(), own(setup).exists()) == (PRETTY, False)


@pytest.mark.parametrize("order", [("project", "local"), ("local", "project")])
@pytest.mark.parametrize("leave", ["uninstall", "install"])
def test_the_setting_stays_until_the_last_of_those_who_share_it_leaves(
    setup: Setup, order: tuple[str, str], leave: str
) -> None:
    for setup.scope in ("project", "local"):
        setup.install(report=True)
    first, last = order
    setup.scope = first
    getattr(setup, leave)()
    assert tomllib.loads(own(setup).read_text(encoding="utf-8")) == {"hooks": {"report_command": True}}
    setup.scope = last
    assert permission.permission_rule() in setup.said()["permissions"]["allow"]
    getattr(setup, leave)()
    assert not own(setup).exists()


def test_a_rule_that_names_another_command_by_now_gives_way_to_the_new_one(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.put(PRETTY).install(report=True)
    old = permission.permission_rule()
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert setup.install(report=True)["withdrawn"] == [old]
    assert setup.said()["permissions"]["allow"] == ["Bash(ls *)", permission.permission_rule()]
    setup.uninstall()
    assert setup.held() == PRETTY


def test_uninstalling_files_that_somebody_changed_takes_rule_and_line_and_nothing_else(setup: Setup) -> None:
    setup.put(PRETTY).install(report=True)
    setup.file.write_bytes(setup.file.read_bytes().replace(b'"opus"', b'"sonnet"'))
    own(setup).write_text(own(setup).read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")

    setup.uninstall()

    assert setup.held() == PRETTY.replace(b'"opus"', b'"sonnet"')
    assert own(setup).read_text(encoding="utf-8") == "[hooks]\n# mine\n"


def test_a_rule_and_a_setting_of_the_users_own_stay(setup: Setup) -> None:
    theirs = PRETTY.replace(b'"Bash(ls *)"', b'"%b"' % permission.permission_rule().encode())
    setup.put(theirs)
    own(setup).write_text(f"[hooks]\n{LINE}\n", encoding="utf-8")

    setup.install(report=True)
    assert setup.uninstall()["remarks"] == ["rule_stays"]

    assert setup.held() == theirs
    assert own(setup).read_text(encoding="utf-8") == f"[hooks]\n{LINE}\n"


def test_without_a_receipt_nobody_knows_whose_the_rule_is_and_it_stays_and_that_is_said(setup: Setup) -> None:
    setup.put(PRETTY).install(report=True)
    shutil.rmtree(setup.receipts)
    assert [setup.uninstall()["remarks"] for _ in range(2)] == [["rule_stays"]] * 2
    assert "hooks" not in setup.said()
    assert permission.permission_rule() in setup.said()["permissions"]["allow"]


@pytest.mark.parametrize(
    ("rule", "is_report_rule_text"),
    [
        ("Bash(gaia-sessions update *)", True),
        ("Bash('/my place/gaia-sessions' update *)", True),
        ("Bash(/opt/bin/gaia-sessions update *)", True),
        ("Bash(my-gaia-sessions update *)", False),
        ("Bash(gaia-sessions list *)", False),
        ("Read(gaia-sessions update *)", False),
        (None, False),
    ],
)
def test_a_rule_of_another_installation_is_known_too(rule: object, *, is_report_rule_text: bool) -> None:
    assert permission.is_report_rule(rule) is is_report_rule_text


TOMLS = [
    ("", f"[hooks]\n{LINE}\n"),
    ("idle_minutes = 5\n", f"idle_minutes = 5\n\n[hooks]\n{LINE}\n"),
    ("idle_minutes = 5", f"idle_minutes = 5\n\n[hooks]\n{LINE}\n"),
    ("[hooks]\nenabled = true\n", f"[hooks]\n{LINE}\nenabled = true\n"),
    ("a = 1\n[ hooks ] # ours\n\nnote = 'all'\n[x]\n", f"a = 1\n[ hooks ] # ours\n{LINE}\n\nnote = 'all'\n[x]\n"),
    ("[hooks]", f"[hooks]\n{LINE}\n"),
    ("[hooks]\r\nenabled = true\r\n", f"[hooks]\r\n{LINE}\r\nenabled = true\r\n"),
]


@pytest.mark.parametrize(("text", "wanted"), TOMLS, ids=[repr(row[0]) for row in TOMLS])
def test_the_line_goes_under_its_table_and_every_other_byte_stays(text: str, wanted: str) -> None:
    assert permission.with_report_setting("f", text.encode()) == wanted.encode()
    assert permission.with_report_setting("f", wanted.encode()) == wanted.encode()
    assert tomllib.loads(permission.without_report_setting("f", wanted.encode()).decode()).get("x", {}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "[hooks]\nreport_command = false\n",
        'hooks.report_command = "off"\n',
        "hooks = {enabled = true}\n",
        "hooks.enabled = true\n",
        'a = """\n[hooks]\n"""\nhooks.enabled = true\n',
        "hooks = 1\n",
        "[hooks\n",
    ],
)
def test_settings_that_say_otherwise_or_have_no_place_for_it_stop_everything(setup: Setup, text: str) -> None:
    setup.put(PRETTY)
    own(setup).write_text(text, encoding="utf-8")

    with pytest.raises(BadSetting) as caught:
        setup.install(report=True)

    assert str(own(setup)) in str(caught.value)
    assert (setup.held(), own(setup).read_text(encoding="utf-8")) == (PRETTY, text)


def test_without_a_command_there_is_nothing_to_allow(setup: Setup, beside_the_interpreter: Path) -> None:
    (beside_the_interpreter / "gaia-sessions").unlink()
    setup.put(PRETTY)
    with pytest.raises(StoreFailure) as caught:
        setup.install(report=True)
    assert (exit_code(caught.value), setup.held()) == (8, PRETTY)


def test_a_path_is_quoted_in_the_rule_as_it_is_in_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert permission.permission_rule() == f"Bash('{folder}/gaia-sessions' update *)"


def test_a_path_that_a_rule_cannot_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a (b)"
    folder.mkdir()
    (folder / "gaia-sessions").write_bytes(b"")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    with pytest.raises(StoreFailure):
        permission.permission_rule()
