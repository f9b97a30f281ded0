"""The settings: their sources, values, faults and defaults."""

from __future__ import annotations

import math
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.config import TABLES, Config, load, load_with_faults, project_file, user_file
from gaia_sessions.errors import BadSetting
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = [name for table in TABLES.values() for name in table]

DEFAULTS: dict[str, object] = {
    "approvals": "any",
    "durability": "full",
    "guard_mode": "off",
    "guard_words": (),
    "hooks": True,
    "idle_minutes": 30.0,
    "ignore_agents": (),
    "keep_days": 7.0,
    "keep_figures": True,
    "keep_last_message": True,
    "limits_blocked_tools": (),
    "limits_completion_check": False,
    "limits_rounds": None,
    "limits_search_tools": (
        *("WebSearch", "WebFetch", "web_search", "web_extract", "deep_crawl", "web_markdown", "web_pdf"),
    ),
    "limits_searches": None,
    "limits_seconds": None,
    "limits_repeats": "off",
    "limits_tokens": None,
    "limits_tools": {},
    "state_keys": {},
    "lock_timeout": 10.0,
    "max_errors": 3,
    "max_tokens": 200_000,
    "note": "all",
    "quiet_minutes": 10.0,
    "store_description": True,
    "sub_agent_max_tokens": 64_000,
    "track": "all",
}


def settings(config: Config) -> dict[str, object]:
    return {name: getattr(config, name) for name in NAMES}


def write(path: str, text: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return path


def refusal(root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> tuple[str, str]:
    with pytest.raises(BadSetting) as caught:
        load(root, environ, flags)
    assert str(caught.value).count(caught.value.origin) == 1
    return str(caught.value), caught.value.hint


def test_without_settings_the_documented_defaults_hold(root: str) -> None:
    assert settings(load(root, os.environ)) == DEFAULTS


def test_reading_the_settings_creates_no_file(root: str, away_from_home: Path) -> None:
    load(root, os.environ)
    assert not os.path.exists(root)
    assert [path.name for path in away_from_home.rglob("*")] == ["elsewhere"]


def test_a_stronger_source_beats_all_weaker_ones(root: str, away_from_home: Path) -> None:
    environ = {"HOME": str(away_from_home)}
    seen = [load(root, environ).idle_minutes]
    write(user_file(environ), "idle_minutes = 1")
    seen.append(load(root, environ).idle_minutes)
    write(project_file(root), "idle_minutes = 2")
    seen.append(load(root, environ).idle_minutes)
    environ["GAIA_SESSIONS_IDLE_MINUTES"] = "3"
    seen.append(load(root, environ).idle_minutes)
    seen.append(load(root, environ, {"idle_minutes": 4.0}).idle_minutes)
    assert seen == [30.0, 1.0, 2.0, 3.0, 4.0]


def test_settings_of_different_sources_are_combined(root: str, away_from_home: Path) -> None:
    environ = {"HOME": str(away_from_home), "GAIA_SESSIONS_MAX_ERRORS": "5"}
    write(user_file(environ), 'durability = "fast"\n[hooks]\nstore_description = false\n')
    write(project_file(root), '[hooks]\nignore_agents = ["Explore"]\n')
    assert settings(load(root, environ, {"lock_timeout": 0.5, "idle_minutes": None})) == {
        **DEFAULTS,
        "durability": "fast",
        "store_description": False,
        "ignore_agents": ("explore",),
        "max_errors": 5,
        "lock_timeout": 0.5,
    }


def test_a_flag_that_is_none_is_ignored(root: str) -> None:
    assert load(root, {"GAIA_SESSIONS_LOCK_TIMEOUT": "2"}, {"lock_timeout": None}).lock_timeout == 2.0
    assert settings(load(root, {}, {"no_option": None})) == DEFAULTS


def test_an_empty_variable_counts_as_unset(root: str) -> None:
    write(project_file(root), 'max_errors = 7\n[hooks]\nignore_agents = ["Explore"]\n')
    empty = dict.fromkeys([*(f"GAIA_SESSIONS_{name.upper()}" for name in NAMES), "GAIA_SESSIONS_NO_OPTION"], "")
    assert settings(load(root, empty)) == {**DEFAULTS, "max_errors": 7, "ignore_agents": ("explore",)}


VALUES: list[tuple[str, str, str, str, object]] = [
    ("idle_minutes", "idle_minutes = 45", "IDLE_MINUTES", "45", 45.0),
    ("idle_minutes", "idle_minutes = 0.5", "IDLE_MINUTES", "0.5", 0.5),
    ("quiet_minutes", "quiet_minutes = 2.5", "QUIET_MINUTES", "2.5", 2.5),
    ("max_errors", "max_errors = 1", "MAX_ERRORS", "1", 1),
    ("max_errors", "max_errors = 2.0", "MAX_ERRORS", "2.0", 2),
    ("max_tokens", "max_tokens = 1000", "MAX_TOKENS", "1000", 1000),
    ("sub_agent_max_tokens", "sub_agent_max_tokens = 10", "SUB_AGENT_MAX_TOKENS", "10", 10),
    ("approvals", 'approvals = "explicit"', "APPROVALS", "explicit", "explicit"),
    ("durability", 'durability = "fast"', "DURABILITY", "fast", "fast"),
    ("durability", 'durability = "full"', "DURABILITY", "full", "full"),
    ("lock_timeout", "lock_timeout = 0.25", "LOCK_TIMEOUT", "0.25", 0.25),
    ("lock_timeout", 'lock_timeout = "500ms"', "LOCK_TIMEOUT", "500ms", 0.5),
    ("idle_minutes", 'idle_minutes = "1.5 hours"', "IDLE_MINUTES", "90m", 90.0),
    ("keep_days", "keep_days = 0", "KEEP_DAYS", "0", 0.0),
    ("keep_days", 'keep_days = "36h"', "KEEP_DAYS", "1.5", 1.5),
    ("keep_figures", "keep_figures = false", "KEEP_FIGURES", "off", False),
    ("lock_timeout", "lock_timeout = 0", "LOCK_TIMEOUT", "0", 0.0),
    ("lock_timeout", "lock_timeout = 0.0", "LOCK_TIMEOUT", "0.0", 0.0),
    ("hooks", "[hooks]\nenabled = false", "HOOKS", "off", False),
    ("hooks", '[hooks]\nenabled = "ON"', "HOOKS", "ON", True),
    ("store_description", "hooks.store_description = false", "STORE_DESCRIPTION", "no", False),
    ("store_description", 'hooks.store_description = "Yes"', "STORE_DESCRIPTION", "Yes", True),
    ("keep_last_message", "[hooks]\nkeep_last_message = false", "KEEP_LAST_MESSAGE", "0", False),
    ("keep_last_message", '[hooks]\nkeep_last_message = "1"', "KEEP_LAST_MESSAGE", "1", True),
    ("hooks", '[hooks]\nenabled = "true"', "HOOKS", "True", True),
    ("hooks", '[hooks]\nenabled = "false"', "HOOKS", "FALSE", False),
    (
        "ignore_agents",
        '[hooks]\nignore_agents = ["Explore", " Plan "]',
        "IGNORE_AGENTS",
        "Explore, Plan ,",
        ("explore", "plan"),
    ),
    ("guard_mode", '[guard]\nmode = "block"', "GUARD_MODE", "block", "block"),
    ("guard_words", '[guard]\nwords = ["Why", "tell me"]', "GUARD_WORDS", "Why, tell me", ("Why", "tell me")),
    ("limits_repeats", 'limits.repeats = "cancel"', "LIMITS_REPEATS", "cancel", "cancel"),
    ("limits_tokens", "limits.tokens = 64000", "LIMITS_TOKENS", "64000", 64_000),
    ("limits_rounds", "limits.rounds = 60", "LIMITS_ROUNDS", "60", 60),
    ("limits_seconds", 'limits.seconds = "10m"', "LIMITS_SECONDS", "600", 600.0),
    ("limits_searches", "limits.searches = 10", "LIMITS_SEARCHES", "10", 10),
    ("limits_search_tools", 'limits.search_tools = ["find"]', "LIMITS_SEARCH_TOOLS", "find", ("find",)),
    ("limits_completion_check", "limits.completion_check = true", "LIMITS_COMPLETION_CHECK", "on", True),
    ("limits_blocked_tools", 'limits.blocked_tools = ["Bash"]', "LIMITS_BLOCKED_TOOLS", "Bash,", ("Bash",)),
    ("ignore_agents", "[hooks]\nignore_agents = []", "IGNORE_AGENTS", ",", ()),
    ("note", '[hooks]\nnote = "all"', "NOTE", "all", "all"),
    ("note", '[hooks]\nnote = "resume"', "NOTE", "resume", "resume"),
    ("note", '[hooks]\nnote = "off"', "NOTE", "off", "off"),
    ("track", '[hooks]\ntrack = "all"', "TRACK", "all", "all"),
    ("track", '[hooks]\ntrack = "named"', "TRACK", "named", "named"),
]


@table(("name", "line", "variable", "text", "value"), VALUES)
def test_a_file_and_a_variable_can_set_the_same_value(
    root: str, name: str, line: str, variable: str, text: str, value: object
) -> None:
    expected = {**DEFAULTS, name: value}
    assert settings(load(f"{root} without a file", {f"GAIA_SESSIONS_{variable}": text})) == expected
    write(project_file(root), line)
    assert settings(load(root, {})) == expected


def test_the_table_of_values_covers_every_setting() -> None:
    assert {row[0] for row in VALUES} == set(NAMES) - {"limits_tools", "state_keys"}


def test_state_keys_is_a_table_of_types(root: str) -> None:
    write(project_file(root), '[state.keys]\nintent = "str"\nname_attempts = "int"\n')
    assert load(root, {}).state_keys == {"intent": "str", "name_attempts": "int"}
    write(project_file(root), '[state.keys]\nintent = "text"\n')
    assert 'must be a table of types, for example intent = "str"; the types are str, int, ' in refusal(root, {})[1]


def test_limits_tools_is_a_table_and_has_no_variable(root: str) -> None:
    write(project_file(root), "limits.tools = 5")
    wanted = 'must be a table with a list of at most 500 tools for each type, for example Explore = ["Read", "Grep"]'
    assert refusal(root, {})[1] == wanted
    write(project_file(root), '[limits.tools]\nExplore = ["Read", "Grep"]\n" Plan " = []\n')
    assert load(root, {}).limits_tools == {"explore": ("Read", "Grep"), "plan": ()}
    assert "unknown setting" in refusal(root, {"GAIA_SESSIONS_LIMITS_TOOLS": "Explore=Read"})[0]


MINUTES = "must be a length of time above 0: 90s, 15m, 1h30m or 2d, or a number of minutes"
DAYS = "must be a length of time: 90s, 15m, 1h30m or 2d, or a number of days"
SECONDS = "must be a length of time: 90s, 15m, 1h30m or 2d, or a number of seconds"
COUNT = "must be a whole number above 0"
SWITCH = "must be true or false"
NOTE = 'must be "all", "resume" or "off"'
TRACK = 'must be "all" or "named"'
ALL_KEYS = (
    "the settings are approvals, durability, guard.mode, guard.words, hooks.enabled, hooks.ignore_agents, "
    "hooks.keep_last_message, hooks.note, hooks.store_description, hooks.track, idle_minutes, keep_days, "
    "keep_figures, limits.blocked_tools, limits.completion_check, limits.repeats, limits.rounds, "
    "limits.search_tools, limits.searches, limits.seconds, limits.tokens, limits.tools, lock_timeout, max_errors, "
    "max_tokens, quiet_minutes, state.keys, sub_agent_max_tokens"
)
ALL_VARIABLES = (
    "names that can follow GAIA_SESSIONS_: APPROVALS, DURABILITY, FILES, GUARD_MODE, GUARD_WORDS, HOOKS, IDLE_MINUTES, "
    "IGNORE_AGENTS, KEEP_DAYS, KEEP_FIGURES, KEEP_LAST_MESSAGE, LIMITS_BLOCKED_TOOLS, LIMITS_COMPLETION_CHECK, "
    "LIMITS_REPEATS, LIMITS_ROUNDS, LIMITS_SEARCHES, LIMITS_SEARCH_TOOLS, "
    "LIMITS_SECONDS, LIMITS_TOKENS, LOCK_TIMEOUT, MAX_ERRORS, MAX_TOKENS, NOTE, QUIET_MINUTES, "
    "ROOT, STORE_DESCRIPTION, SUB_AGENT_MAX_TOKENS, TRACK"
)

BAD_LINES: list[tuple[str, str, str]] = [
    ("idle_minutes = 0", "idle_minutes = 0", MINUTES),
    ("idle_minutes = -1", "idle_minutes = -1", MINUTES),
    ("idle_minutes = nan", "idle_minutes = nan", MINUTES),
    ("idle_minutes = inf", "idle_minutes = inf", MINUTES),
    ("idle_minutes = 1e9", "idle_minutes = 1000000000.0", MINUTES),
    ("idle_minutes = true", "idle_minutes = True", MINUTES),
    ("idle_minutes = [1]", "idle_minutes = [1]", MINUTES),
    ('idle_minutes = "long"', "idle_minutes = 'long'", MINUTES),
    ("max_errors = 0", "max_errors = 0", COUNT),
    ("max_errors = 2.5", "max_errors = 2.5", COUNT),
    ("keep_days = -1", "keep_days = -1", DAYS),
    ("lock_timeout = -1", "lock_timeout = -1", SECONDS),
    ("lock_timeout = -0.5", "lock_timeout = -0.5", SECONDS),
    ("lock_timeout = nan", "lock_timeout = nan", SECONDS),
    ("lock_timeout = inf", "lock_timeout = inf", SECONDS),
    ("lock_timeout = false", "lock_timeout = False", SECONDS),
    ('lock_timeout = ""', "lock_timeout = ''", SECONDS),
    ('durability = "slow"', "durability = 'slow'", 'must be "full" or "fast"'),
    ("durability = 1", "durability = 1", 'must be "full" or "fast"'),
    ("hooks.enabled = 1", "hooks.enabled = 1", SWITCH),
    ('hooks.enabled = "maybe"', "hooks.enabled = 'maybe'", SWITCH),
    ("hooks.enabled = {a = 1}", "hooks.enabled = {'a': 1}", SWITCH),
    ("hooks.ignore_agents = 1", "hooks.ignore_agents = 1", "must be a list of at most 500 agent types"),
    ('hooks.ignore_agents = ["a", 1]', "hooks.ignore_agents = ['a', 1]", "must be a list of at most 500 agent types"),
    ("hooks.store_description = []", "hooks.store_description = []", SWITCH),
    ("hooks.keep_last_message = 0", "hooks.keep_last_message = 0", SWITCH),
    ('hooks.note = "some"', "hooks.note = 'some'", NOTE),
    ("hooks.note = false", "hooks.note = False", NOTE),
    ('hooks.note = ["all"]', "hooks.note = ['all']", NOTE),
    ('hooks.track = "off"', "hooks.track = 'off'", TRACK),
    ("hooks.track = 1", "hooks.track = 1", TRACK),
    ("hooks = true", "hooks = True", "must be a table: [hooks]"),
    ("[[limits]]\ntokens = 1", "limits = [{'tokens': 1}]", "must be a table: [limits]"),
]


@table(("line", "shown", "hint"), BAD_LINES)
def test_an_invalid_value_is_refused_with_its_file_and_a_hint(root: str, line: str, shown: str, hint: str) -> None:
    path = write(project_file(root), line)
    assert refusal(root, {}) == (f"{path}: {shown} is not valid", hint)


@table(
    ("variable", "text", "hint"),
    [
        ("IDLE_MINUTES", "soon", MINUTES),
        ("MAX_ERRORS", "-3", COUNT),
        ("LOCK_TIMEOUT", "nan", SECONDS),
        ("DURABILITY", "FAST", 'must be "full" or "fast"'),
        ("LOCK_TIMEOUT", "-1", SECONDS),
        ("NOTE", "Resume", NOTE),
        ("TRACK", "none", TRACK),
        ("HOOKS", "maybe", SWITCH),
        ("HOOKS", " ", SWITCH),
    ],
)
def test_an_invalid_variable_is_refused_by_name(root: str, variable: str, text: str, hint: str) -> None:
    name = f"GAIA_SESSIONS_{variable}"
    assert refusal(root, {name: text}) == (f"{name} = {text!r} is not valid", hint)


@table(
    ("name", "value", "flag", "hint"),
    [
        ("idle_minutes", 0, "--idle-minutes", MINUTES),
        ("max_errors", 2.5, "--max-errors", COUNT),
        ("lock_timeout", -1.0, "--lock-timeout", SECONDS),
        ("lock_timeout", math.nan, "--lock-timeout", SECONDS),
        ("lock_timeout", False, "--lock-timeout", SECONDS),
        ("lock_timeout", "", "--lock-timeout", SECONDS),
        ("hooks", "maybe", "--hooks", SWITCH),
    ],
)
def test_an_invalid_flag_is_refused_by_name(root: str, name: str, value: object, flag: str, hint: str) -> None:
    assert refusal(root, {}, {name: value}) == (f"{flag} = {value!r} is not valid", hint)


@table(
    ("name", "flag", "meant"),
    [("idle_minute", "--idle-minute", "--idle-minutes"), ("no_hooks", "--no-hooks", "--hooks")],
)
def test_an_unknown_flag_is_refused_with_the_nearest_known_flag(root: str, name: str, flag: str, meant: str) -> None:
    refused = refusal(root, {}, {name: 1})
    assert refused == (f"unknown setting {flag}", f"did you mean {meant}?")


def test_flags_have_the_same_forms_as_variables(root: str) -> None:
    flags = {"lock_timeout": 0, "max_errors": "2", "hooks": "off", "ignore_agents": "Explore, Plan"}
    assert settings(load(root, {}, flags)) == {
        **DEFAULTS,
        "lock_timeout": 0.0,
        "max_errors": 2,
        "hooks": False,
        "ignore_agents": ("explore", "plan"),
    }


@table(
    ("line", "key", "hint"),
    [
        ("idle_minute = 1", "idle_minute", "did you mean idle_minutes?"),  # one letter is missing
        ("[hooks]\nenable = true", "hooks.enable", "did you mean hooks.enabled?"),  # in a table
        ("[hook]\nenabled = true", "hook", ALL_KEYS),  # another table
        ("[hoooks]\n", "hoooks", ALL_KEYS),  # another table without keys
        ("[max_error]\na = 1", "max_error", "did you mean max_errors?"),  # a table for a setting
        ("[hooks.enable]", "hooks.enable", "did you mean hooks.enabled?"),  # a table in a table
        ("xyzzy = 1", "xyzzy", ALL_KEYS),  # no similar name
    ],
)
def test_an_unknown_key_in_a_file_is_a_fault_with_a_hint_and_no_error(
    root: str, line: str, key: str, hint: str
) -> None:
    path = write(project_file(root), line)
    config, [fault] = load_with_faults(root, {})
    assert (str(fault), fault.hint) == (f"{path}: unknown setting {key}", hint)
    assert settings(load(root, {})) == settings(config) == DEFAULTS


def test_an_unknown_key_does_not_hide_an_invalid_value(root: str) -> None:
    path = write(project_file(root), "idle_minute = 1\nmax_errors = 0\n")
    assert refusal(root, {}) == (f"{path}: max_errors = 0 is not valid", COUNT)


@table(
    ("variable", "hint"),
    [
        ("GAIA_SESSIONS_IDLE_MINUTE", "did you mean GAIA_SESSIONS_IDLE_MINUTES?"),
        ("GAIA_SESSIONS_hooks", "did you mean GAIA_SESSIONS_HOOKS?"),
        ("GAIA_SESSIONS_ROOTS", "did you mean GAIA_SESSIONS_ROOT?"),
        ("GAIA_SESSIONS_FOO", f"type `unset GAIA_SESSIONS_FOO`; {ALL_VARIABLES}"),
        ("GAIA_SESSIONS_JSON", f"type `unset GAIA_SESSIONS_JSON`; {ALL_VARIABLES}"),
    ],
)
def test_an_unknown_variable_is_refused_with_a_hint(root: str, variable: str, hint: str) -> None:
    assert refusal(root, {variable: "1"}) == (f"unknown setting {variable}", hint)


def test_a_known_table_without_keys_changes_nothing(root: str) -> None:
    write(project_file(root), "[hooks]\n")
    assert settings(load(root, {})) == DEFAULTS


def test_the_variables_of_roots_and_of_other_programs_are_ignored(root: str) -> None:
    roots = {"GAIA_SESSIONS_ROOT": "anywhere", "GAIA_SESSIONS_FILES": "anywhere"}
    environ = {**roots, "GAIA": "1", "CLAUDE_PROJECT_DIR": "x", "IDLE_MINUTES": "1"}
    assert settings(load(root, environ)) == DEFAULTS


@table(
    ("content", "why"),
    [
        (b"idle_minutes = ", "Invalid value (at end of document)"),
        (b"idle_minutes = 1\nidle_minutes = 2", "Cannot overwrite a value (at end of document)"),
        (b"\xff", "not UTF-8 at byte 1"),
        (b"# \xc3\xa9\xc3", "not UTF-8 at byte 5"),
    ],
)
def test_a_malformed_file_is_refused_with_its_path_and_the_reason(root: str, content: bytes, why: str) -> None:
    path = Path(write(project_file(root), ""))
    path.write_bytes(content)
    assert refusal(root, {}) == (f"{path}: {why}", "correct the file or remove it")


def test_a_folder_in_place_of_the_file_is_refused_with_its_path(root: str) -> None:
    path = project_file(root)
    os.makedirs(path)
    assert refusal(root, {})[0].startswith(f"{path}: ")


@table(
    "line",
    [
        "idle_minutes = 1" + "0" * 400,  # a very long number
        "max_errors = 1" + "0" * 400,  # a very long count
        "lock_timeout = 1" + "0" * 400,  # a very long wait
        "max_errors = 1" + "0" * 5000,  # more digits than Python reads
        "max_errors = 0x1" + "0" * 5000,  # more digits than Python prints
        "a = " + "[" * 5000 + "]" * 5000,  # very deep nesting
    ],
)
def test_extreme_values_in_a_file_are_a_bad_setting(root: str, line: str) -> None:
    path = write(project_file(root), line)
    assert refusal(root, {})[0].startswith(f"{path}: ")


def test_each_fault_is_returned_and_valid_settings_still_count(root: str) -> None:
    path = write(project_file(root), 'idle_minutes = 45\nmax_errors = 0\nmax_error = 1\n[hooks]\nenabled = "no"\n')
    environ = {"GAIA_SESSIONS_X": "1", "GAIA_SESSIONS_DURABILITY": "fast"}
    flags = {"idle_minutes": -1, "keep_last_message": False, "y": 1}
    config, faults = load_with_faults(root, environ, flags)
    expected = {"idle_minutes": 45.0, "hooks": False, "durability": "fast", "keep_last_message": False}
    assert settings(config) == {**DEFAULTS, **expected}
    assert [(fault.origin, str(fault)) for fault in faults] == [
        (path, f"{path}: max_errors = 0 is not valid"),
        (path, f"{path}: unknown setting max_error"),
        ("GAIA_SESSIONS_X", "unknown setting GAIA_SESSIONS_X"),
        ("--idle-minutes", "--idle-minutes = -1 is not valid"),
        ("--y", "unknown setting --y"),
    ]


def test_a_malformed_file_is_one_fault_and_is_skipped(root: str) -> None:
    path = write(project_file(root), "max_errors = 1\n?")
    config, faults = load_with_faults(root, {"GAIA_SESSIONS_MAX_ERRORS": "7"})
    assert (config.max_errors, [fault.origin for fault in faults]) == (7, [path])


@table(
    ("text", "environ", "approvals"),
    [
        ('approvals = "Explicit"', {}, "explicit"),
        ("approvals = explicit", {}, "explicit"),
        ("approvals = true", {}, "explicit"),
        ('approvals = "any"\n[[[', {}, "explicit"),
        ('\ufeffapprovals = "any"', {}, "explicit"),
        ("", {"GAIA_SESSIONS_APPROVALS": "Explicit"}, "explicit"),
        ("[[[", {"GAIA_SESSIONS_APPROVALS": "any"}, "any"),  # the variable is valid and wins
        ("max_errors = 0", {}, "any"),  # another setting is wrong
    ],
)
def test_approvals_are_explicit_if_the_setting_cannot_be_read(
    root: str, text: str, environ: dict[str, str], approvals: str
) -> None:
    write(project_file(root), text)

    config, faults = load_with_faults(root, environ)

    assert (config.approvals, len(faults)) == (approvals, 1)


def test_approvals_are_explicit_if_the_file_is_a_folder(root: str) -> None:
    Path(project_file(root)).mkdir(parents=True)

    assert load_with_faults(root, {})[0].approvals == "explicit"


@table(
    ("root", "path"),
    [
        ("/p/.claude/session", "/p/.claude/gaia-sessions.toml"),  # the default root
        ("/p/.claude/sessions", "/p/.claude/sessions/.config.toml"),  # another folder name
        ("/p/claude/session", "/p/claude/session/.config.toml"),  # another parent name
        ("/srv/agents", "/srv/agents/.config.toml"),  # another root
    ],
)
def test_the_project_file_is_beside_the_default_root_or_in_another_root(root: str, path: str) -> None:
    assert project_file(root) == path


@table(
    ("environ", "path"),
    [
        ({"HOME": "/h"}, "/h/.config/gaia-sessions/config.toml"),  # home
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/gaia-sessions/config.toml"),  # XDG
        ({"HOME": "/h", "XDG_CONFIG_HOME": ""}, "/h/.config/gaia-sessions/config.toml"),  # XDG empty
        ({"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/gaia-sessions/config.toml"),  # XDG relative
    ],
)
def test_the_user_file_follows_xdg_config_home(environ: dict[str, str], path: str) -> None:
    assert user_file(environ) == path


def test_without_home_a_file_in_the_working_directory_is_not_the_user_file(root: str) -> None:
    write(".config/gaia-sessions/config.toml", "max_errors = 1")
    assert settings(load(root, {})) == DEFAULTS


def test_a_config_is_frozen() -> None:
    config = Config({"max_errors": 1})
    for name in ("max_errors", "something_new"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(config, name, 2)
    assert settings(config) == {**DEFAULTS, "max_errors": 1}


def test_a_config_ignores_unknown_options() -> None:
    chosen: dict[str, Any] = {"idle_minutes": 1.0, "not_an_option": 1}
    assert settings(Config(chosen)) == {**DEFAULTS, "idle_minutes": 1.0}


def test_a_config_gives_the_limits_of_the_resume_policy() -> None:
    limits = Config({"idle_minutes": 0.5, "max_errors": 7, "quiet_minutes": 2}).limits
    assert (limits.idle, limits.max_errors, limits.quiet) == (timedelta(seconds=30), 7, timedelta(minutes=2))
