"""``usage``: the tokens of a session and of all agents, and how to charge them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from gaia_sessions.session.clock import format_time, parse_time
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


WANTED = "must be a whole number from 0 to 1,000,000,000,000"


def test_usage_json_has_the_tokens_the_budget_and_the_elapsed_time(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=1), max_tokens=500, charged_tokens=120, skills={"aws": 30})

    usage = gaia("usage", "a", "--json").json

    assert 3600 <= usage.pop("elapsed_secs") < 3700
    assert usage == {"agent_id": "a", "tokens": 150, "max_tokens": 500, "limit_reached": False, "skill_tokens": 30}


def test_usage_prints_the_tokens_budget_and_time_on_one_line(gaia: Gaia, put: Gaia) -> None:
    put("a", idle=timedelta(hours=3), max_tokens=64_000, charged_tokens=1500, skills={"aws": 300})
    put("b", idle=timedelta(hours=3), max_tokens=1, charged_tokens=1)

    assert gaia("usage", "a").answer == ["a: 1,800 of 64,000 tokens used, 300 for skills, 3 hours in all"]
    assert gaia("usage", "b").answer == ["b: 1 of 1 token used, limit reached, 3 hours in all"]


def test_l8_e11_charging_succeeds_below_at_and_above_the_limit(gaia: Gaia, put: Gaia) -> None:
    put("a", parent_id="p", max_tokens=64_000)

    answers = [gaia("usage", "a", "--charge", str(tokens), "--json").json for tokens in (63_999, 1, 1)]

    assert [(answer["tokens"], answer["limit_reached"]) for answer in answers] == [
        (63_999, False),
        (64_000, True),
        (64_001, True),
    ]
    assert gaia("usage", "a").code == 0


def test_total_replaces_the_counted_tokens_and_charge_adds_to_them(gaia: Gaia, session: str) -> None:
    gaia("usage", session, "--charge", "700")
    assert gaia("usage", session, "--total", "50", "--json").json["tokens"] == 50
    assert gaia("usage", session, "--charge", "1", "--json").json["tokens"] == 51


@table("option", ["--charge", "--total"])
@table("number", ["-1", "1000000000001", "9" * 30])
def test_impossible_token_numbers_are_usage_errors(
    gaia: Gaia, tree: Gaia, session: str, option: str, number: str
) -> None:
    before = tree()
    ended = gaia("usage", session, option, number)
    assert (ended.code, ended.out, ended.err.decode().splitlines()[1]) == (2, b"", f"Hint: {WANTED}")
    assert tree() == before


def test_a_charge_and_a_total_together_are_refused(gaia: Gaia, tree: Gaia, session: str) -> None:
    before = tree()
    assert gaia("usage", session, "--charge", "1", "--total", "2").refusal == (
        2,
        "--charge and --total cannot be combined",
        "leave out one of them: a total includes all charges",
    )
    assert tree() == before


def test_an_ended_session_shows_its_usage_but_cannot_be_charged(gaia: Gaia, put: Gaia) -> None:
    document = put("a", idle=timedelta(hours=2))
    ended = format_time(parse_time(document["created_at"]) + timedelta(seconds=90))
    put("a", idle=timedelta(hours=2), phase="completed", resume_ready=False, finalized_at=ended)

    assert gaia("usage", "a").answer == ["a: no tokens reported, 1 minute in all"]
    assert gaia("usage", "a", "--charge", "1").code == 4


@pytest.fixture
def agents(put: Gaia, spoil: Gaia) -> None:
    """Sessions of four agents: some without reported tokens, some with a budget, one corrupt."""
    hour = timedelta(hours=1)
    put("a", agent_name="Explore", charged_tokens=900, max_tokens=1000)
    put(
        "b",
        agent_name="Explore",
        usage={"total_tokens": 1600, "cache_read_tokens": 500},
        max_tokens=1000,
        idle=3 * hour,
    )
    put("c", agent_name="Explore", parent_id="b", usage={"tool_uses": 3})
    put("d", agent_name="\ud55c\uae00", skills={"aws": 5}, idle=3 * hour, phase="completed", resume_ready=False)
    put("e", agent_name="workflow", max_tokens=5)
    put("f", agent_name="planner", charged_tokens=0)
    spoil("torn")


def test_usage_of_a_single_agent_has_no_line_with_totals(gaia: Gaia, put: Gaia) -> None:
    put("a", agent_name="Explore", charged_tokens=900)
    assert gaia("usage").answer == [
        "agent    sessions  tokens  unreported  of budget",
        "Explore         1     900           -  -",
    ]


@pytest.mark.usefixtures("agents")
def test_usage_without_an_id_is_a_table_of_agents_with_a_dash_for_unreported_tokens(gaia: Gaia, terminal: Gaia) -> None:
    lines = (
        "agent       sessions  tokens  unreported  of budget\n"
        "Explore            3   2,000           1  100%, 1 at its limit\n"
        "\ud55c\uae00               1       5           -  -\n"
        "planner            1       0           -  -\n"
        "workflow           1       -           1  -\n"
        "all agents         6   2,005           2  100%, 1 at its limit\n"
        "2 of 6 sessions reported no tokens\n"
        "1 session cannot be read: `gaia-sessions list` says why\n"
    )
    assert gaia("usage").all == (0, lines, "")
    assert terminal("usage").all == (0, lines, "")


@pytest.mark.usefixtures("agents")
@table(
    ("columns", "heading", "first"),
    [
        (30, "agent         sessions  tokens", "Explore              3   2,000"),
        (
            60,
            "agent                 sessions  tokens  of budget",
            "Explore                      3   2,000  100%, 1 at its limit",
        ),
        (
            80,
            "agent                         sessions  tokens  unreported  of budget",
            "Explore                              3   2,000           1  100%, 1 at its limit",
        ),
    ],
)
def test_the_usage_table_fits_the_terminal_by_cutting_names_and_dropping_columns(
    terminal: Gaia, put: Gaia, columns: int, heading: str, first: str
) -> None:
    put("g", agent_name="a-very-long-name-of-an-agent-that-does-all", charged_tokens=7)
    put("h", agent_name="\ud55c\uae00" * 30, charged_tokens=9)
    shown = terminal("usage", columns=columns).lines
    rows = shown[:8]
    assert (rows[0], rows[-1].startswith("all agents")) == (heading, True)
    assert first in rows
    assert [line for line in rows if cell_len(line) > columns] == []


@pytest.mark.usefixtures("agents")
def test_usage_since_counts_only_sessions_active_since_then(gaia: Gaia) -> None:
    assert gaia("usage", "--since", "2h").out.decode() == (
        "agent       sessions  tokens  unreported  of budget\n"
        "Explore            2     900           1  90%\n"
        "planner            1       0           -  -\n"
        "workflow           1       -           1  -\n"
        "all agents         4     900           2  90%\n"
        "2 of 4 sessions reported no tokens\n"
    )
    found = gaia("usage", "--since", "2h", "--json").json
    assert [(agent["agent_name"], agent["sums"]["sessions"]) for agent in found["agents"]] == [
        ("Explore", 2),
        ("planner", 1),
        ("workflow", 1),
    ]
    assert found["total"] == {
        "sessions": 4,
        "states": {"waiting": 4},
        "tokens": 900,
        "unreported": 2,
        "budgets": {"sessions": 1, "tokens": 900, "max_tokens": 1000, "limit_reached": 0},
    }
    assert found["unread"] == 0
    nothing = gaia("usage", "--since", "now", "--json").json
    assert nothing == {"agents": [], "total": {"sessions": 0, "states": {}, "unreported": 0}, "unread": 0}
    assert gaia("usage", "--since", "now").out.decode().endswith("with these options; without them, there are 7\n")


@table(
    ("words", "said"),
    [
        (["a", "--since", "2h"], "--since and ID cannot be combined"),
        (["--charge", "1"], "--charge needs the ID of a session"),
        (["--total", "0"], "--total needs the ID of a session"),
    ],
)
def test_options_for_one_session_and_for_all_cannot_be_mixed(
    gaia: Gaia, put: Gaia, tree: Gaia, words: list[str], said: str
) -> None:
    put("a")
    before = tree()
    ended = gaia("usage", *words, "--json")
    assert (ended.code, ended.error["message"]) == (2, said)
    assert tree() == before


def test_the_tokens_of_children_do_not_count_for_their_parent(gaia: Gaia) -> None:
    gaia("create", "--id", "parent", "--agent", "planner")
    gaia("create", "--id", "child", "--agent", "reviewer", "--parent", "parent")
    gaia("usage", "parent", "--charge", "100")
    gaia("usage", "child", "--charge", "7")
    gaia("usage", "child", "--total", "5")

    found = gaia("usage", "--json").json
    used = {agent["agent_name"]: agent["sums"]["tokens"] for agent in found["agents"]}
    assert (used, found["total"]["tokens"]) == ({"planner": 100, "reviewer": 5}, 105)
    assert [line["sums"]["tokens"] for line in gaia("tree", "--json").json] == [105, 5]
