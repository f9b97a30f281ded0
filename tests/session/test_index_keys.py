"""The keys under which the index finds a session, and which keys a change adds and removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.session.index_keys import (
    ACTIVE_KEY,
    alias_key,
    app_user_key,
    conversation_key,
    difference,
    keys_of,
    name_key,
    open_child_key,
    parent_key,
)
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import agent_alias, delegation_alias
from tests.table import table

if TYPE_CHECKING:
    from datetime import datetime

    from gaia_sessions.session.schema import Record, Run

DELEGATED: Run = {"run": 1, "host_session_id": "host", "tool_use_id": "tool/1"}
ALIAS = alias_key(delegation_alias("host", "tool/1"))
EXPLORE = name_key("Explore")


def record_with(now: datetime, **more: Any) -> Record:  # keys of a record, with any values
    return {**new_record("one", "Explore", "-", {}, now), **more}  # type: ignore[typeddict-item]


@table(
    ("more", "keys"),
    [
        ({}, [ACTIVE_KEY, EXPLORE]),
        ({"phase": "completed"}, []),
        ({"runs": [DELEGATED]}, [ACTIVE_KEY, EXPLORE, conversation_key("host"), ALIAS]),
        ({"runs": [DELEGATED], "phase": "failed"}, [ALIAS]),
        ({"parent_id": "above"}, [ACTIVE_KEY, EXPLORE, parent_key("above"), open_child_key("above")]),
        ({"parent_id": "above", "phase": "failed"}, [parent_key("above")]),
        ({"app": "a", "user": "u"}, [ACTIVE_KEY, EXPLORE, app_user_key("a", "u")]),
        ({"app": "a", "user": "u", "phase": "completed"}, []),
        ({"agent_name": None}, [ACTIVE_KEY]),
        ({"schema": 99, "phase": "unknown", "runs": [DELEGATED]}, [ACTIVE_KEY, EXPLORE]),
    ],
)
def test_a_session_is_indexed_by_the_keys_of_its_record(
    now: datetime, more: dict[str, object], keys: list[tuple[str, ...]]
) -> None:
    assert keys_of(record_with(now, **more)) == keys


@table(
    ("before", "after", "added", "removed"),
    [
        ({}, {}, [], []),
        ({}, {"phase": "approval"}, [], []),
        ({"runs": [DELEGATED]}, {"runs": [DELEGATED], "phase": "failed"}, [], [ACTIVE_KEY, EXPLORE, "host"]),
        ({"runs": [DELEGATED], "phase": "failed"}, {"runs": [DELEGATED]}, [ACTIVE_KEY, EXPLORE, "host"], []),
        ({"parent_id": "a"}, {"parent_id": "b"}, ["b", "open b"], ["a", "open a"]),
        ({"agent_name": "Explore"}, {"agent_name": "Plan"}, [name_key("Plan")], [EXPLORE]),
    ],
)
def test_a_change_adds_and_removes_only_the_keys_that_differ(
    now: datetime, before: dict[str, object], after: dict[str, object], added: list[Any], removed: list[Any]
) -> None:
    short = {
        "host": conversation_key("host"),
        **{name: parent_key(name) for name in "ab"},
        **{f"open {name}": open_child_key(name) for name in "ab"},
    }
    wanted = tuple([short.get(key, key) for key in keys] for keys in (added, removed))
    assert difference(record_with(now, **before), record_with(now, **after)) == wanted


def test_a_key_that_several_runs_share_is_indexed_once(now: datetime) -> None:
    agent: Run = {"host": "claude-code", "host_session_id": "host", "host_agent_id": "child"}
    runs: list[Run] = [{**agent, "run": number} for number in range(1, 51)]

    keys = keys_of(record_with(now, runs=runs))

    assert keys == [
        ACTIVE_KEY,
        EXPLORE,
        conversation_key("host"),
        alias_key(agent_alias("host", "child", "claude-code")),
    ]
