"""The filter of tools: (requested and available) - blocked, and the lists of the sessions above."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidInput, NoToolsLeft, shorten
from gaia_sessions.session.requests import NewSession
from gaia_sessions.session.retention import ROOM_FOR_ENDS, fit_record
from gaia_sessions.session.stated_ends import with_ending
from gaia_sessions.session.tools import ALWAYS_BLOCKED, LONGEST_NAME, MOST_TOOLS, ToolRules, chosen_tools, may_use
from tests.records import record_with
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

RULES = ToolRules()
DELEGATE, SEND_FILE = ALWAYS_BLOCKED


def limited(agent_id: str, *tools: str) -> Record:
    return session(agent_id) | {"allowed_tools": [*tools]}


def session(agent_id: str, name: str = "x") -> Record:
    return record_with() | {"agent_id": agent_id, "agent_name": name}


def test_a_requested_tool_is_allowed_if_it_is_available() -> None:
    assert chosen_tools(["execute_command", "cat"], ["execute_command"], RULES) == {
        "allowed": ["execute_command"],
        "blocked": [],
        "unavailable": ["cat"],
        "reasons": {"cat": "cat is not among the tools that are available"},
    }


def test_the_always_blocked_tools_are_blocked_even_if_they_are_available() -> None:
    requested = [DELEGATE, SEND_FILE, "cat"]
    assert chosen_tools(requested, requested, RULES) == {
        "allowed": ["cat"],
        "blocked": [DELEGATE, SEND_FILE],
        "unavailable": [],
        "reasons": {name: f"{name} is blocked for sub-agents" for name in ALWAYS_BLOCKED},
    }


@table(("available", "shown"), [(["rm", "ls"], "requested: cat; available: rm, ls"), ([], "available: none")])
def test_if_no_tool_is_left_the_error_names_both_lists(available: list[str], shown: str) -> None:
    with pytest.raises(NoToolsLeft, match=shown) as raised:
        chosen_tools(["cat"], available, RULES)
    assert (raised.value.requested, raised.value.available) == (("cat",), (*available,))


def test_requesting_only_blocked_tools_is_refused_even_if_all_are_available() -> None:
    with pytest.raises(NoToolsLeft, match="available: all"):
        chosen_tools(["Bash"], None, ToolRules(["Bash"]))


@table("names", [[], ["a", ""], [" a"], ["a\nb"], ["a,b"], [1], "Bash", ["x" * 201], map(str, range(501))])
def test_an_empty_list_or_a_list_with_an_invalid_name_is_refused(names: Any) -> None:
    with pytest.raises(InvalidInput):
        chosen_tools(names, None, RULES)


NAMES = st.lists(st.sampled_from(["a", "b", "c", "d", DELEGATE, SEND_FILE]), max_size=8)


@given(NAMES, NAMES, NAMES, st.lists(NAMES, max_size=3))
def test_the_filter_gives_the_documented_set_in_the_order_of_the_request(
    requested: list[str], available: list[str], blocked: list[str], above: list[list[str]]
) -> None:
    rules = ToolRules(blocked)
    sessions = [limited(f"above-{number}", *tools) for number, tools in enumerate(above)]
    wanted = {*requested}.intersection(available, *above) - {*blocked, *ALWAYS_BLOCKED}
    if not wanted:
        with pytest.raises(InvalidInput):
            chosen_tools(requested, available, rules, sessions)
        return
    choice = chosen_tools(requested, available, rules, sessions)
    assert choice["allowed"] == [name for name in dict.fromkeys(requested) if name in wanted]
    kinds = (choice["allowed"], choice["blocked"], choice["unavailable"])
    assert sorted(name for kind in kinds for name in kind) == sorted({*requested})
    created = limited("new", *choice["allowed"])
    for name in ("a", "b", "c", "d", *ALWAYS_BLOCKED):
        assert may_use(name, [created, *sessions], rules)["allowed"] == (name in wanted)


def test_each_list_above_narrows_the_tools_and_the_reason_names_the_list_without_the_tool() -> None:
    own, above = limited("own", "Read", "Bash", "Grep"), limited("above", "Grep", "Read")
    rules = ToolRules(["Grep"])
    assert may_use("Bash", [own, above], rules) == {
        "agent_id": "own",
        "tool": "Bash",
        "allowed": False,
        "reason": "Bash is not among the tools of above",
        "usable_tools": ["Read"],
    }
    assert may_use("Read", [own, above], rules)["reason"] is None
    assert may_use("Grep", [own, above], rules)["reason"] == "Grep is blocked for sub-agents"
    answer = may_use("Grep", [session("below"), session("p", "Planner")], ToolRules(by_type={"planner": ("Bash",)}))
    assert answer["reason"] == "Grep is not among the tools that the setting limits.tools gives Planner"


def test_without_a_list_an_agent_may_use_every_tool_that_is_not_blocked() -> None:
    answer = may_use("anything", [session("free")], RULES)
    assert (answer["allowed"], answer["usable_tools"]) == (True, None)


NO_NAMES: list[tuple[Any, str]] = [
    ("", "it is empty"),
    (" ", "it has white space"),
    ("a b", "it has white space"),
    ("a,b", "it has a comma"),
    ("a ", "it has white space"),
    (" a", "it has white space"),
    ("a\n", "it has white space"),
    ("\x1b[1m", "it has a character that cannot be shown"),
    ("\u202ea", "it has a character that cannot be shown"),
    ("x" * 201, "it has more than 200 characters"),
    ("\ud800", "it has a character that cannot be shown"),
    (None, "it is not a text"),
    (3, "it is not a text"),
    (["a"], "it is not a text"),
]


@table(("name", "why"), NO_NAMES)
@table("rules", [RULES, ToolRules(by_type={"x": ("a", "a b", "")})])
def test_an_agent_may_not_use_a_tool_with_an_invalid_name(name: Any, why: str, rules: ToolRules) -> None:
    for records in ([session("own")], [limited("own", "a")], [session("own"), limited("above", "a")]):
        answer = may_use(name, records, rules)
        assert (answer["allowed"], answer["tool"]) == (False, name)
        said = f"{shorten(repr(name))} cannot be the name of a tool ({why}): type the name as its client does"
        assert answer["reason"] == said


def test_the_tool_list_of_its_type_also_limits_a_new_agent() -> None:
    rules = ToolRules(by_type={"explore": ("Read",)})
    choice = chosen_tools(["Read", "Bash"], None, rules, agent_name="Explore")
    assert (choice["allowed"], choice["unavailable"]) == (["Read"], ["Bash"])
    why = "Bash is not among the tools that the setting limits.tools gives Explore"
    assert choice["reasons"] == {"Bash": why}
    with pytest.raises(NoToolsLeft, match=r"requested: Bash; available: Read\n"):
        chosen_tools(["Bash"], None, rules, agent_name="Explore")


def test_the_largest_list_leaves_room_in_the_record_for_the_end_of_the_work() -> None:
    names = [f"{n:03}".ljust(LONGEST_NAME, "\U0001f600") for n in range(MOST_TOOLS)]
    allowed = chosen_tools(names, None, RULES)["allowed"]
    assert len(allowed) == MOST_TOOLS
    now = datetime(2026, 1, 8, tzinfo=UTC)
    record, _ = fit_record(NewSession("a", "b", allowed_tools=allowed).record(now, lambda _: b"1234"), ROOM_FOR_ENDS)
    ended, _ = fit_record(with_ending(record, "completed", now, "s" * 10_000), 0)
    assert (ended["phase"], ended["allowed_tools"]) == ("completed", allowed)


def test_an_invalid_name_in_a_list_is_not_a_usable_tool() -> None:
    odd = ["Read,Bash", "", " ", "Read ", "two words", "x" * (LONGEST_NAME + 1), "a\x1b"]
    answer = may_use("Read", [limited("one", "Read", *odd), limited("two", *odd, "Read")], RULES)
    assert (answer["allowed"], answer["usable_tools"]) == (True, ["Read"])
