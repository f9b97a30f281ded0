"""Whose sessions a command is about: the root it is told or finds, and what it says of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    Gaia = Callable[..., Any]

URL = "postgresql://user:s3cret@db/agents"


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("by_option", [True, False], ids=["--root", "GAIA_SESSIONS_ROOT"])
@pytest.mark.parametrize(
    "words",
    [
        ["create"],
        ["list"],
        ["update", "a"],
        ["cleanup"],
        ["doctor", "--fix"],
        ["hooks", "install"],
        ["hooks", "status"],
    ],
    ids=" ".join,
)
def test_a_url_makes_no_folder_and_its_password_is_said_nowhere(
    program: Gaia, away_from_home: Path, words: list[str], *, by_option: bool
) -> None:
    before = everything(away_from_home)

    ended = program(
        *words, *(["--root", URL] if by_option else []), **({} if by_option else {"GAIA_SESSIONS_ROOT": URL})
    )

    origin = "--root" if by_option else "GAIA_SESSIONS_ROOT"
    assert ended.code == (1 if words[0] == "doctor" and not by_option else 2)  # doctor finds it, as it finds all else
    assert f"{origin}: is a URL".encode() in ended.out + ended.err
    assert b"s3cret" not in ended.out + ended.err
    assert everything(away_from_home) == before


@pytest.mark.parametrize("wired", [[], ["--root", URL]], ids=["in the environment", "as an option"])
def test_a_hook_that_is_told_a_url_does_nothing(program: Gaia, away_from_home: Path, wired: list[str]) -> None:
    event = b'{"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}'
    before = everything(away_from_home)

    ended = program("hook", *wired, stdin=event, **({} if wired else {"GAIA_SESSIONS_ROOT": URL}))

    assert ended.all == (0, "", "")
    assert everything(away_from_home) == before
