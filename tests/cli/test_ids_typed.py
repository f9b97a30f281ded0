"""What people are told of an id that they typed and no session has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.cli.typed_ids import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

WHOLE = "agent-20260108-180530-abc12345"
LISTS = "`gaia-sessions list` shows those that exist"

READING = {"get": (), "show": (), "events": (), "should-resume": ()}
WRITING = {"update": ("--phase", "planning"), "finalize": ("failed",)}
ALL = {**READING, **WRITING}

each_command = pytest.mark.parametrize("command", ALL)


def run(gaia: Gaia, command: str, typed: str, *options: str) -> Any:
    return gaia(command, typed, *ALL[command], *options)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("agent-20260108-180530-abc12346", WHOLE),
        (WHOLE.upper(), WHOLE),
        ("abc12354", WHOLE),
        ("deploy-forntend", "deploy-frontend"),
        ("depoly", "deploy-frontend"),
        ("front", "deploy-frontend"),
        ("agent-20251231-235959-77777777", None),
        ("nobody", None),
        ("y-fr", "deploy-frontend"),
    ],
)
@each_command
def test_of_a_missing_one_the_folder_and_the_nearest_id_are_named(
    gaia: Gaia, put: Gaia, root: str, command: str, typed: str, near: str | None
) -> None:
    put(WHOLE)
    put("deploy-frontend")

    ended = run(gaia, command, typed)

    message = f"no session '{typed}' in {root}"
    hint = f"the nearest id there is '{near}'; {LISTS}" if near else LISTS
    advice = f"  {message}; {hint}; start new work: there is nothing to resume\n"
    if command == "should-resume":
        assert (ended.code, ended.out.decode().endswith(advice), ended.err) == (3, True, b"")
    else:
        assert ended.all == (3, "", f"Error: {message}\nHint: {hint}\n")


def test_whether_to_resume_a_missing_one_is_answered_with_the_same_in_json(gaia: Gaia, put: Gaia, root: str) -> None:
    put("deploy-frontend")

    ended = gaia("should-resume", "deploy-forntend", "--json")

    decision = json.loads(ended.out)
    assert (ended.code, ended.err, decision["should_resume"], decision["reason"], decision["agent_id"]) == (
        3,
        b"",
        False,
        "not_found",
        "deploy-forntend",
    )
    assert decision["advice"] == (
        f"no session 'deploy-forntend' in {root}; the nearest id there is 'deploy-frontend'; {LISTS};"
        " start new work: there is nothing to resume"
    )


def test_a_beginning_that_many_share_makes_none_of_them_the_nearest() -> None:
    assert nearest("agemt-2026", [f"agent-20260108-180530-{number:08x}" for number in range(20)]) is None
    assert nearest("agemt-2026", [WHOLE]) == WHOLE
