"""``usage``: how much of its budget a session has used, charged from a shell."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.session.clock import format_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

WANTED = "must be a whole number from 0 to 1,000,000,000,000"


def test_as_json_it_has_what_was_used_of_how_much(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=1), max_tokens=500, charged_tokens=120, skills={"aws": 30})

    usage = gaia("usage", "a", "--json").json

    assert 3600 <= usage.pop("elapsed_secs") < 3700
    assert usage == {"agent_id": "a", "tokens": 150, "max_tokens": 500, "limit_reached": False, "skill_tokens": 30}


def test_a_line_says_it_to_a_person(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=3), max_tokens=64_000, charged_tokens=1500, skills={"aws": 300})
    put("b", idle=timedelta(hours=3), max_tokens=1, charged_tokens=1)

    assert gaia("usage", "a").all == (0, "a: 1,800 of 64,000 tokens, 300 for skills, 3 hours\n", "")
    assert gaia("usage", "b").all == (0, "b: 1 of 1 token, limit reached, 3 hours\n", "")


def test_l8_e11_charging_ends_with_0_below_at_and_above_the_limit(gaia: Gaia, put: Gaia) -> None:
    put("a", parent_id="p")

    answers = [gaia("usage", "a", "--charge", str(tokens), "--json").json for tokens in (63_999, 1, 1)]

    assert [(answer["tokens"], answer["limit_reached"]) for answer in answers] == [
        (63_999, False),
        (64_000, True),
        (64_001, True),
    ]
    assert gaia("usage", "a").code == 0


def test_a_total_replaces_what_was_counted_and_a_charge_adds_to_it(gaia: Gaia, session: str) -> None:
    gaia("usage", session, "--charge", "700")
    assert gaia("usage", session, "--total", "50", "--json").json["tokens"] == 50
    assert gaia("usage", session, "--charge", "1", "--json").json["tokens"] == 51


def test_a_charge_is_one_revision_and_activity(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    before = put("a", idle=timedelta(minutes=20))
    gaia("usage", "a", "--charge", "7")
    after = state("a")
    assert after == {**before, "charged_tokens": 7, "revision": 2, "last_updated": after["last_updated"]}
    assert after["last_updated"] > before["last_updated"]


@pytest.mark.parametrize("option", ["--charge", "--total"])
@pytest.mark.parametrize("number", ["-1", "1000000000001", "9" * 30])
def test_numbers_that_nobody_can_have_used_are_usage_errors(
    gaia: Gaia, tree: Gaia, session: str, option: str, number: str
) -> None:
    before = tree()
    ended = gaia("usage", session, option, number)
    assert (ended.code, ended.out, ended.err.decode().splitlines()[1]) == (2, b"", f"Hint: {WANTED}")
    assert tree() == before


def test_a_charge_and_a_total_together_are_refused(gaia: Gaia, tree: Gaia, session: str) -> None:
    before = tree()
    assert gaia("usage", session, "--charge", "1", "--total", "2").all == (
        2,
        "",
        ("Error: --charge and --total cannot be combined\nHint: omit one of them: a total includes all charges\n"),
    )
    assert tree() == before


def test_a_final_session_can_be_asked_and_not_charged(gaia: Gaia, put: Gaia) -> None:
    document = put("a", idle=timedelta(hours=2))
    ended = format_time(parse_time(document["created_at"]) + timedelta(seconds=90))
    put("a", idle=timedelta(hours=2), phase="completed", resume_ready=False, finalized_at=ended)

    assert gaia("usage", "a").all == (0, "a: 0 of 200,000 tokens, 1 minute\n", "")
    assert gaia("usage", "a", "--charge", "1").code == 4


def test_defaults_come_from_the_settings(program: Gaia, put: Gaia) -> None:
    put("a", runs=[{"run": 1, "started_at": "2026-01-08T18:05:30Z"}])
    put("b")
    settings = {"GAIA_SESSIONS_MAX_TOKENS": "20", "GAIA_SESSIONS_SUB_AGENT_MAX_TOKENS": "10"}

    assert [program("usage", one, "--json", **settings).json["max_tokens"] for one in ("a", "b")] == [10, 20]
    assert [program("usage", one, "--json").json["max_tokens"] for one in ("a", "b")] == [64_000, 200_000]
