"""Install and uninstall with every settings file of the table and all options."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import SessionsError
from gaia_sessions.install.hook_command import command_for, is_own_hook, new_handler
from gaia_sessions.install.permission import is_own_rule, permission_rules
from gaia_sessions.install.places import HOSTS
from tests.install.conftest import Setup
from tests.install.settings_files import BY_HAND, OTHER, REFUSED, RULE, SAME, TAKEN, to_json
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.settings_files import Row

Options = dict[str, bool]
OPTIONS: list[Options] = [
    {"enforce": enforce, "report": report} for enforce in (False, True) for report in (False, True)
]
PLAIN, ALL = OPTIONS[0], OPTIONS[-1]


def tried(one: Options) -> pytest.MarkDecorator:
    """Tries ``one`` in the quick run and all other options in the slow run."""
    rest = [pytest.param(other, marks=pytest.mark.slow) for other in OPTIONS if other is not one]
    return pytest.mark.parametrize("options", [one, *rest], ids=str)


def for_host(options: Options, row: Row) -> Options:
    """``options``, all off for a host other than Claude Code."""
    return {option: given and row.host == "claude-code" for option, given in options.items()}


@pytest.fixture
def another(tmp_path: Path) -> Callable[[Row], Setup]:
    """Makes a new project with the file of a row."""
    numbers = count()

    def make(row: Row) -> Setup:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return Setup(folder, row.host).put(row.data)

    return make


def words_for(setup: Setup, options: Options) -> list[str]:
    return command_for(HOSTS[setup.host], reports=options["report"], enforce=options["enforce"])


def own_groups(said: Any) -> list[Any]:
    return [
        (event, group.get("matcher"), [entry for entry in group["hooks"] if is_own_hook(entry)])
        for event, groups in said["hooks"].items()
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        if any(is_own_hook(entry) for entry in group["hooks"])
    ]


def of_others(said: Any) -> Any:
    """Settings without own entries and without containers that are empty then."""
    hooks = {}
    for event, groups in said.get("hooks", {}).items():
        kept = [group for group in map(group_of_others, groups) if group is not None]
        hooks[event] = kept
    permissions = dict(said.get("permissions", {}))
    permissions["allow"] = [rule for rule in permissions.get("allow", []) if not is_own_rule(rule)]
    left = {**said, "hooks": filled(hooks), "permissions": filled(permissions)}
    return {key: value for key, value in left.items() if value or key not in ("hooks", "permissions")}


def filled(members: Any) -> Any:
    return {key: value for key, value in members.items() if value != []}


def group_of_others(group: Any) -> Any:
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    kept = [entry for entry in group["hooks"] if not is_own_hook(entry)]
    return {**group, "hooks": kept} if kept else None


def signs_missing(before: bytes, after: bytes) -> list[str]:
    """The characters of ``before``, except blanks, that are not in ``after`` in the same order."""
    signs = iter(after.decode())
    return [sign for sign in before.decode() if sign not in " \t\r\n" and sign not in signs]


def times(setup: Setup) -> tuple[int, int]:
    found = setup.file.stat()
    return found.st_ino, found.st_mtime_ns


@tried(ALL)
@table("row", TAKEN)
def test_install_adds_own_entries_once_and_uninstall_removes_only_them(
    another: Callable[[Row], Setup], away_from_home: Path, row: Row, options: Options
) -> None:
    at_home = sorted(away_from_home.rglob("*"))
    setup, options = another(row), for_host(options, row)
    theirs = of_others(setup.said()) if (row.data or b"").strip(b" \n\t\r\xef\xbb\xbf") else {}
    host, words = HOSTS[row.host], words_for(setup, options)

    assert setup.install(**options, dry_run=True)["changed"]
    assert setup.held() == row.data
    answer = setup.install(**options)

    wanted = [
        (entry.event, entry.matcher, [new_handler(host, words, entry)])
        for entry in host.entries(enforce=options["enforce"])
    ]
    said = setup.said()
    assert sorted(own_groups(said), key=str) == sorted(wanted, key=str)
    rules = [rule for rule in said.get("permissions", {}).get("allow", []) if is_own_rule(rule)]
    assert rules == answer["rules"] == (permission_rules() if options["report"] else [])
    assert of_others(said) == theirs
    assert row.left is not SAME or signs_missing(row.data or b"", setup.held() or b"") == []
    assert (setup.state()["state"], setup.state()["command"]) == ("complete", words)

    first = times(setup)
    assert (setup.install(**options)["changed"], times(setup)) == (False, first), "again, nothing is written"

    left = row.left if row.unpermitted is SAME or not options["report"] else row.unpermitted
    assert setup.uninstall()["changed"]
    assert setup.held() == (row.data if left is SAME else left)
    assert setup.uninstall()["changed"] is False
    assert setup.held() == (row.data if left is SAME else left)
    assert sorted(away_from_home.rglob("*")) == at_home, "nothing is kept anywhere"


@tried(PLAIN)
@table("row", TAKEN)
def test_a_second_install_with_other_options_equals_a_first_install_with_them(
    another: Callable[[Row], Setup], row: Row, options: Options
) -> None:
    setup, fresh = another(row), another(row)
    options, others = (for_host(one, row) for one in (options, {key: not value for key, value in options.items()}))
    fresh.install(**options)
    setup.install(**others)

    setup.install(**options)

    if row.unpermitted is SAME:
        assert setup.said() == fresh.said()
    if row.left is SAME and row.unpermitted is SAME:
        assert setup.held() == fresh.held()
    setup.uninstall()
    assert setup.held() in (row.data, row.left, row.unpermitted)


@table("row", REFUSED)
@table("ask", [Setup.install, Setup.uninstall])
def test_an_invalid_settings_file_is_an_error_and_stays_unchanged(
    another: Callable[[Row], Setup], away_from_home: Path, row: Row, ask: Callable[[Setup], object]
) -> None:
    """If the error names a member of the wrong kind, uninstall has nothing to remove."""
    if ask is Setup.uninstall and row.refused.startswith("'"):
        return
    setup = another(row)
    at_home, first = sorted(away_from_home.rglob("*")), times(setup)

    with pytest.raises(SessionsError) as caught:
        ask(setup)

    assert caught.value.exit_code == 7
    assert str(setup.file) in str(caught.value)
    assert row.refused in str(caught.value)
    assert (setup.held(), times(setup)) == (row.data, first)
    assert [path.name for path in setup.file.parent.iterdir()] == [setup.file.name]
    assert sorted(away_from_home.rglob("*")) == at_home


def test_hook_entries_written_by_hand_are_reported_when_they_are_removed(setup: Setup) -> None:
    by_hand = {"matcher": "*", "hooks": [BY_HAND]}
    setup.put(to_json({"hooks": {"Stop": [{"hooks": [OTHER, BY_HAND]}], "SubagentStop": [by_hand]}}))
    found = [{"event": "Stop", "entry": {"hooks": [BY_HAND]}}, {"event": "SubagentStop", "entry": by_hand}]

    assert setup.uninstall(dry_run=True)["by_hand"] == found
    assert setup.install()["by_hand"] == found
    assert setup.install()["by_hand"] == [], "an installation wrote those"
    assert setup.uninstall()["by_hand"] == []


def test_the_entry_of_a_moved_installation_does_not_count_as_written_by_hand(setup: Setup) -> None:
    setup.host = "codex"
    setup.install()
    program = setup.state()["command"][0]
    setup.put((setup.held() or b"").replace(program.encode(), b"/home/me/src/bin/gaia-sessions-hook"))
    assert (setup.state()["state"], setup.install()["by_hand"]) == ("elsewhere", [])
    assert b"/home/me/src" not in (setup.held() or b"")


def test_the_rule_of_another_installation_is_replaced_by_the_new_rules(setup: Setup) -> None:
    setup.put(to_json({"permissions": {"allow": ["a", RULE]}}))
    answer = setup.install(report=True)
    assert (answer["rules"], answer["withdrawn"]) == (permission_rules(), [RULE])
    assert setup.said()["permissions"] == {"allow": ["a", *permission_rules()]}
    answer = setup.install()
    assert (answer["rules"], answer["withdrawn"]) == ([], permission_rules())
    assert setup.uninstall()["withdrawn"] == []


def test_entries_added_after_the_install_stay_after_the_uninstall(setup: Setup) -> None:
    setup.put(to_json({"model": "opus"})).install(report=True)
    said = setup.said()
    said["hooks"]["Stop"] += [{"hooks": [OTHER]}]
    said["permissions"]["allow"].insert(0, "a")
    said["permissions"]["deny"] = []
    setup.put(to_json(said))
    setup.uninstall()
    assert setup.held() == to_json(
        {"model": "opus", "hooks": {"Stop": [{"hooks": [OTHER]}]}, "permissions": {"allow": ["a"], "deny": []}}
    )


def test_uninstall_keeps_a_group_with_a_handler_of_somebody_else(setup: Setup) -> None:
    setup.install()
    said = setup.said()
    said["hooks"]["Stop"][0]["hooks"].append(OTHER)
    setup.put(json.dumps(said).encode())
    setup.uninstall()
    assert setup.held() == json.dumps({"hooks": {"Stop": [{"hooks": [OTHER]}]}}).encode()
