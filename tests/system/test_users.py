"""The home of a user, the XDG folders for settings and state, and the name of a user."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

from gaia_sessions.system import config_folder, home_folder, state_folder
from gaia_sessions.system.users import user_name
from tests.table import table

if TYPE_CHECKING:
    import pytest


@table(
    ("environ", "config", "state"),
    [
        ({"HOME": "/h"}, "/h/.config/gaia-sessions", "/h/.local/state/gaia-sessions"),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"},
            "/c/gaia-sessions",
            "/s/gaia-sessions",
        ),
        (
            {"HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "s"},
            "/h/.config/gaia-sessions",
            "/h/.local/state/gaia-sessions",
        ),
        ({"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": ""}, "/c/gaia-sessions", ""),
    ],
)
def test_the_folders_for_settings_and_state_follow_the_xdg_rules(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], config: str, state: str
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    assert (config_folder(environ), state_folder(environ)) == (config, state)


def _nobody(uid: int) -> None:
    raise KeyError(uid)


@table("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_usable_home_variable_the_home_comes_from_the_user_database(environ: dict[str, str]) -> None:
    assert home_folder(environ) == pwd.getpwuid(os.getuid()).pw_dir


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    assert user_name(4242) == "user 4242"
