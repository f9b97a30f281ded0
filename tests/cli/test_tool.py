"""``tool check``, and the options by which ``create`` limits the tools of an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from gaia_sessions.api import at, permitting
from gaia_sessions.errors import CorruptSession, NoToolsLeft, SessionNotFound
from gaia_sessions.session.requests import Start
from tests.cli.conftest import ids_in
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_create_stores_the_allowed_tools_and_says_which_it_left_out(gaia: Gaia) -> None:
    ended = gaia("create", "--id", "work", "--tools", "Read, Bash,send_file_to_user", "--available", "Read,Grep")
    assert (ended.code, json.loads(gaia("get", "work").out)["allowed_tools"]) == (0, ["Read"])
    assert ended.err.decode().splitlines() == [
        "left out: Bash is not among the tools that are available",
        "left out: send_file_to_user is blocked for sub-agents",
    ]
    assert "may use    Read" in gaia("show", "work").lines
    assert gaia("tool", "check", "work", "Read").answer == ["yes: the agent of work may use Read"]
    refused = (1, "no: Bash is not among the tools of work\n  allowed: Read\n", "")
    assert gaia("tool", "check", "work", "Bash").all == refused


@table(
    ("options", "said"),
    [
        (["--tools", " , "], "the list of tools is empty"),
        (["--tools", "cat", "--available", "ls"], "requested: cat; available: ls"),
        (["--tools", "delegate_to_sub_agent"], "requested: delegate_to_sub_agent; available: all"),
    ],
)
def test_create_with_no_usable_tool_creates_nothing(gaia: Gaia, root: str, options: list[str], said: str) -> None:
    ended = gaia("create", "--id", "work", *options)
    assert (ended.code, said in ended.err.decode(), ids_in(root)) == (7, True, [])


def test_available_without_tools_is_a_usage_error(gaia: Gaia) -> None:
    ended = gaia("create", "--available", "ls")
    assert (ended.code, "--tools" in ended.err.decode()) == (2, True)


def test_a_child_is_limited_to_its_parents_tools_and_a_continuing_session_inherits_them(root: str) -> None:
    sessions = gaia_sessions.Sessions(root)
    top = sessions.create(tools=["Read", "Grep"])
    below = sessions.create(parent_id=top, tools=["Bash", "Grep"])
    free = sessions.create(parent_id=below)
    assert sessions.store.read(below)["allowed_tools"] == ["Grep"]
    assert [sessions.check_tool(free, name)["allowed"] for name in ("Grep", "Read", "Bash")] == [True, False, False]
    count = len(ids_in(root))
    with pytest.raises(NoToolsLeft):
        sessions.create(parent_id=below, tools=["Read"])
    with pytest.raises(SessionNotFound):
        sessions.create(parent_id="nobody", tools=["Read"])
    assert len(ids_in(root)) == count
    sessions.finalize(top, "completed")
    assert sessions.store.read(sessions.create(continues=top))["allowed_tools"] == ["Read", "Grep"]
    assert sessions.store.read(sessions.create(continues=top, tools=["Bash"]))["allowed_tools"] == ["Bash"]


def test_settings_can_block_tools_for_all_agents_and_limit_one_agent_type(
    gaia: Gaia, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(root).mkdir(parents=True, exist_ok=True)
    settings = '[limits]\nblocked_tools = ["WebSearch"]\n[limits.tools]\nexplore = ["Read", "WebSearch"]\n'
    (Path(root) / ".config.toml").write_text(settings)
    gaia("create", "--id", "work", "--agent", "Explore")
    gaia("create", "--id", "other")
    codes = {
        (agent_id, tool): gaia("tool", "check", agent_id, tool).code
        for agent_id in ("work", "other")
        for tool in ("Read", "WebSearch", "Bash")
    }
    assert codes == {
        ("work", "Read"): 0,
        ("work", "WebSearch"): 1,
        ("work", "Bash"): 1,
        ("other", "Read"): 0,
        ("other", "WebSearch"): 1,
        ("other", "Bash"): 0,
    }
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS", "Bash,Read")
    assert json.loads(gaia("tool", "check", "work", "Read", "--json").out) == {
        "agent_id": "work",
        "tool": "Read",
        "allowed": False,
        "reason": "Read is blocked for sub-agents",
        "usable_tools": ["WebSearch"],
    }


def test_the_agent_of_a_cancelled_session_may_use_no_tool(gaia: Gaia) -> None:
    gaia("create", "--id", "work", "--tools", "Read")
    gaia("cancel", "work")
    ended = gaia("tool", "check", "work", "Read", "--json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["allowed"], answer["usable_tools"]) == (1, False, [])
    assert answer["reason"].startswith("session 'work' was cancelled at ")


def test_an_invalid_tool_name_is_never_allowed_and_never_stored(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "work")
    gaia("create", "--id", "limited", "--tools", "Read")
    said = "no: 'Read ' cannot be the name of a tool (it has white space): type the name as its client does\n"
    assert gaia("tool", "check", "work", "Read ").all == (1, said, "")
    assert gaia("tool", "check", "limited", "Read ").all == (1, f"{said}  allowed: Read\n", "")
    assert gaia("create", "--id", "other", "--tools", "Read,x y").code == 7
    assert sorted(ids_in(root)) == ["limited", "work"]


def test_tool_check_and_create_fail_below_an_unreadable_session(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "top", "--tools", "Read")
    gaia("create", "--id", "middle", "--parent", "top")
    gaia("create", "--id", "work", "--parent", "middle")
    Path(root, "top", "state.json").write_text("{", encoding="utf-8")
    for words in (("tool", "check", "work", "Bash"), ("create", "--parent", "middle", "--tools", "Bash")):
        ended = gaia(*words)
        assert (ended.code, ended.out, b"top/state.json" in ended.err) == (6, b"", True)
    with pytest.raises(CorruptSession):
        at.read(gaia_sessions.Sessions(root), permitting.tools_of, Start(agent_id="work"))


def test_a_session_below_an_unreadable_one_cannot_be_continued(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "top", "--tools", "Read")
    gaia("create", "--id", "middle", "--parent", "top")
    gaia("create", "--id", "work", "--parent", "middle")
    gaia("finalize", "work", "completed")
    Path(root, "top", "state.json").write_text("{", encoding="utf-8")
    for words in (("create", "--continues", "work"), ("run", "--continues", "work", "--", "true")):
        ended = gaia(*words)
        assert (ended.code, ended.out, b"top/state.json" in ended.err) == (6, b"", True)
    with pytest.raises(CorruptSession):
        at.read(gaia_sessions.Sessions(root), permitting.tools_of, Start(continues="work"))
    assert sorted(ids_in(root)) == ["middle", "top", "work"]


def test_show_prints_inherited_tools_and_a_refusal_names_the_limiting_parent(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS", "Grep")
    gaia("create", "--id", "top", "--tools", "Read,Bash")
    gaia("create", "--id", "below", "--parent", "top")
    assert "may use    Read, Bash" in gaia("show", "below").lines
    refused = gaia("create", "--id", "wider", "--parent", "top", "--tools", "Write")
    assert refused.code == 7
    assert b"no requested tool can be used: Write is not among the tools of top; requested: Write" in refused.err


def test_tool_check_of_a_missing_session_exits_with_3(gaia: Gaia) -> None:
    assert gaia("tool", "check", "nobody", "Read").code == 3
