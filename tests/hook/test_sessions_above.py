"""A host that works for a session: its delegations are below that session and are never refused.

It is offered only sessions below that session.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import gaia_sessions
from gaia_sessions.errors import TooManyChildren
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

MISSING = "agent-20260108-180530-00000000"
ANEW = "It resumed nothing and began new work."


def above(host: Host, agent_id: str) -> dict[str, Any]:
    record = host.records()[agent_id]
    return {key: record[key] for key in ("parent_id", "root_id", "depth", "max_depth") if key in record}


def created(host: Host, **options: Any) -> str:
    return gaia_sessions.create_session(root=str(host.root), **options)


def delegate(host: Host, variable: str, tool_use_id: str = "toolu_1", agent: str = "a1") -> str:
    return host.work(tool_use_id, agent, settings={"GAIA_SESSION_ID": variable})


def test_a_delegation_of_the_main_agent_is_below_the_session_of_the_environment(host: Host) -> None:
    root_id = created(host)
    middle_id = created(host, parent_id=root_id, max_depth=1)

    agent_id = delegate(host, middle_id)

    assert above(host, agent_id) == {"parent_id": middle_id, "max_depth": 1}
    assert host.log("hook")[0]["root_id"] == root_id


def test_a_delegation_of_a_sub_agent_is_below_the_session_of_the_sub_agent(host: Host) -> None:
    root_id = created(host)
    child_id = delegate(host, root_id)
    before = set(host.records())

    host.hear(host.delegation("toolu_2", agent_id="a1", agent_type="Explore"), {"GAIA_SESSION_ID": root_id})

    [nested_id] = set(host.records()) - before
    assert above(host, nested_id) == {"parent_id": child_id}


@table("variable", ["agent-nobody", "../etc", ""])
@own_host
def test_an_unknown_session_in_the_environment_becomes_no_parent(host: Host, variable: str) -> None:
    created(host)
    assert above(host, delegate(host, variable)) == {}


def test_a_host_may_delegate_more_children_than_create_allows(host: Host) -> None:
    root_id = created(host)
    found = [delegate(host, root_id, f"toolu_{number}", f"a{number}") for number in range(6)]

    assert {above(host, agent_id)["parent_id"] for agent_id in found} == {root_id}
    with pytest.raises(TooManyChildren):
        created(host, parent_id=root_id)


def test_a_delegation_that_waited_in_the_inbox_keeps_its_parent(host: Host) -> None:
    root_id = created(host)
    with host.key_held("toolu_1"):
        host.hear(host.delegation(), {"GAIA_SESSION_ID": root_id})
    host.hear(host.event_payload("SessionStart", source="startup"))

    [agent_id] = set(host.records()) - {root_id}
    assert above(host, agent_id)["parent_id"] == root_id


class Tree(NamedTuple):
    """A session for which a conversation works, with sessions above, beside and below it; all are paused."""

    root: str
    beside: str
    own: str
    child: str
    grandchild: str


def paused_tree(host: Host) -> Tree:
    ids: list[str] = []
    for number, parent in enumerate((None, 0, 0, 2, 3)):
        agent = f"a{number}"
        ids.append(delegate(host, "" if parent is None else ids[parent], f"toolu_{number}", agent))
        host.hear(host.ending(agent, "[gaia-sessions: planning] x"))
    return Tree(*ids)


def offered(told: Any) -> set[str]:
    """The sessions whose resume lines are in a reply."""
    return set(re.findall(r"\[gaia-sessions: resume (\S+)\]", told["additionalContext"])) if told else set()


def starting(host: Host, source: str = "startup", **settings: str) -> Any:
    return host.hear(host.event_payload("SessionStart", source=source), settings)


@table("source", ["startup", "resume", "compact", "clear"])
@own_host
def test_a_conversation_that_works_for_a_session_is_offered_only_sessions_below_it(host: Host, source: str) -> None:
    tree = paused_tree(host)
    host.edit(tree.root, parent_id=tree.grandchild)  # a circle: every session is above every other

    def told(agent_id: str) -> set[str]:
        return offered(starting(host, source, GAIA_SESSION_ID=agent_id))

    assert told(tree.grandchild) == {tree.root, tree.beside, tree.own, tree.child}
    host.edit(tree.root, parent_id=None)
    assert told(tree.own) == {tree.child, tree.grandchild}
    assert told(tree.child) == {tree.grandchild}
    assert (told(tree.grandchild), told("agent-nobody"), told("../etc")) == (set(), set(), set())
    named = starting(host, source)["additionalContext"]
    assert "Sub-agents whose work is not finished." in named
    assert named == starting(host, source, GAIA_SESSION_ID="")["additionalContext"]


def test_the_reply_to_a_missing_id_lists_only_sessions_below(host: Host) -> None:
    tree = paused_tree(host)
    for_it = {"GAIA_SESSION_ID": tree.own}
    named = f"{tree.root}, {tree.own}, {tree.child}\n[gaia-sessions: resume {MISSING}]"
    asked = {"description": "Review", "prompt": f"See {named}", "subagent_type": "Explore"}
    host.begin("toolu_9", "a9", for_it, tool_input=asked)
    host.hear(host.ending("a9", "Reviewed."), for_it)

    told = host.hear(host.returning("toolu_9", "a9"), for_it)

    named_and_open, missing, others = told["additionalContext"].split("\n\n")
    assert named_and_open.startswith("This delegation named work that is not finished but did not resume it")
    assert missing == f"This delegation named a session that does not exist: {MISSING}. {ANEW}"
    assert [offered({"additionalContext": text}) for text in (named_and_open, others)] == [
        {tree.child},
        {tree.child, tree.grandchild},
    ]


def test_a_new_conversation_is_told_only_of_agents_at_work_below_its_session(host: Host) -> None:
    with host.client():
        above_id, beside_id = host.work("toolu_1", "a1"), host.work("toolu_2", "a2")
        below_id = delegate(host, above_id, "toolu_3", "a3")
        host.hear(host.starting("a3"))
        purposes = {above_id: "Dig", beside_id: "Rest", below_id: "Count"}
        for agent_id, purpose in purposes.items():
            host.edit(agent_id, purpose=purpose)
        other = host.event_payload("SessionStart", source="startup", session_id="other")
        lines = [host.hear(other, {"GAIA_SESSION_ID": agent_id}) for agent_id in ("", above_id, beside_id)]

    told = [line and line["additionalContext"].split("\n")[1:] for line in lines]
    assert sorted(told[0]) == [f"- Explore: {purpose} (working)" for purpose in ("Count", "Dig", "Rest")]
    assert told[1:] == [["- Explore: Count (working)"], None]


NOT_ITS_OWN: dict[str, list[dict[str, Any]]] = {
    "of another host": [{"run": 1, "host": "codex", "end": "stopped", "ended_at": "2026-01-08T18:05:30.000000Z"}],
    "of a command": [{"run": 1, "wrapper": {"pid": 1}, "end": "stopped", "ended_at": "2026-01-08T18:05:30.000000Z"}],
    "of nobody": [],
    "that a command went on with": [
        {"run": 1, "host": "claude-code", "end": "stopped", "ended_at": "2026-01-08T18:05:30.000000Z"},
        {"run": 2, "wrapper": {"pid": 1}, "end": "stopped", "ended_at": "2026-01-08T18:05:30.000000Z"},
    ],
}


@table("runs", NOT_ITS_OWN.values())
@own_host
def test_a_host_is_offered_only_sessions_whose_last_run_was_its_own(host: Host, runs: list[dict[str, Any]]) -> None:
    agent_id = created(host, agent_name="Explore", purpose="Count")
    gaia_sessions.update_state(agent_id, "approval", root=str(host.root))
    host.edit(agent_id, runs=runs)
    named = f"{agent_id}\n[gaia-sessions: resume {MISSING}]"
    host.begin(tool_input={"description": "x", "prompt": f"See {named}", "subagent_type": "Explore"})
    host.hear(host.ending())

    told = host.hear(host.returning())["additionalContext"]

    assert told == f"This delegation named a session that does not exist: {MISSING}. {ANEW}"
    assert starting(host) is None
    host.words = ["--host", "codex"]
    assert offered(starting(host)) == ({agent_id} if runs and runs[-1].get("host") == "codex" else set())
