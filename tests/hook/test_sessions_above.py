"""A host that works for a session: what its main agent delegates is below that one, and nothing is ever refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import TooManyChildren

if TYPE_CHECKING:
    from tests.hook.conftest import Host


def above(host: Host, agent_id: str) -> dict[str, Any]:
    record = host.records()[agent_id]
    return {key: record[key] for key in ("parent_id", "root_id", "depth", "max_depth") if key in record}


def created(host: Host, **options: Any) -> str:
    return gaia_sessions.create_session(root=str(host.root), **options)


def delegate(host: Host, variable: str, tool_use_id: str = "toolu_1", agent: str = "a1") -> str:
    before = set(host.records())
    host.begin(tool_use_id, agent, {"GAIA_SESSION_ID": variable})
    [agent_id] = set(host.records()) - before
    return agent_id


def test_what_the_main_agent_delegates_is_below_the_session_of_the_environment(host: Host) -> None:
    root_id = created(host)
    middle_id = created(host, parent_id=root_id, max_depth=1)

    agent_id = delegate(host, middle_id)

    assert above(host, agent_id) == {"parent_id": middle_id, "max_depth": 1}


def test_a_delegation_of_a_sub_agent_is_below_that_one(host: Host) -> None:
    root_id = created(host)
    child_id = delegate(host, root_id)
    before = set(host.records())

    host.hear(host.delegation("toolu_2", agent_id="a1", agent_type="Explore"), {"GAIA_SESSION_ID": root_id})

    [nested_id] = set(host.records()) - before
    assert above(host, nested_id) == {"parent_id": child_id}


@pytest.mark.parametrize("variable", ["agent-nobody", "../etc", ""])
def test_a_session_that_this_root_does_not_know_is_nobodys_parent(host: Host, variable: str) -> None:
    created(host)
    assert above(host, delegate(host, variable)) == {}


def test_more_delegations_than_may_be_begun_by_hand_are_all_recorded(host: Host) -> None:
    root_id = created(host)
    found = [delegate(host, root_id, f"toolu_{number}", f"a{number}") for number in range(6)]

    assert {above(host, agent_id)["parent_id"] for agent_id in found} == {root_id}
    with pytest.raises(TooManyChildren):
        created(host, parent_id=root_id)


def test_a_delegation_that_had_to_wait_keeps_its_parent(host: Host) -> None:
    root_id = created(host)
    with host.key_held("toolu_1"):
        host.hear(host.delegation(), {"GAIA_SESSION_ID": root_id})
    host.hear(host.event_payload("SessionStart", source="startup"))

    [agent_id] = set(host.records()) - {root_id}
    assert above(host, agent_id)["parent_id"] == root_id
