"""The note beside an agent's transcript: the delegation that it names, and which notes count as missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts import CLAUDE_CODE, CODEX
from gaia_sessions.hosts.agent_files import delegation_of, member_of, noted_delegation
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_NOTE = 1 << 16
SOUND = b'{"toolUseId": "toolu_1"}'


@pytest.fixture
def path(talks: Path) -> Path:
    """The path of the host's note; the file does not exist yet."""
    (talks / "c" / "subagents").mkdir(parents=True)
    return talks / "c" / "subagents" / "agent-a1.meta.json"


def read_key(path: Path) -> str | None:
    """The delegation in the note of the agent ``a1``; both functions of the hooks must agree."""
    found = delegation_of(CLAUDE_CODE, f"{path.parent.parent}.jsonl", "a1")
    event: Any = {"host": CLAUDE_CODE, "host_agent_id": "a1", "key_file": str(path)}
    assert noted_delegation(event) == found
    return found


def key_in(path: Path, content: bytes) -> str | None:
    path.write_bytes(content)
    return read_key(path)


def test_the_key_is_the_value_of_the_top_level_member(path: Path) -> None:
    content = b'{"agentType": "Explore", "toolUseId": "toolu_1", "more": {"toolUseId": "not this"}}\n'
    assert key_in(path, content) == "toolu_1"
    assert member_of(CLAUDE_CODE, str(path), "agentType") == "Explore"


def test_a_missing_note_gives_no_key_until_it_is_written(path: Path) -> None:
    assert read_key(path) is None
    assert key_in(path, SOUND) == "toolu_1"


@table(
    "value",
    [
        "t",  # one character
        "x" * 512,  # 512 characters
        "ünï\ncode \u2028",  # any characters
        "../../etc/passwd",  # a path is also a key
    ],
)
def test_any_short_text_is_a_key(path: Path, value: str) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) == value


@table(
    "value",
    [
        "",  # empty
        "x" * 513,  # 513 characters
        *(None, True, 0, 1.5, [], ["toolu_1"], {}, {"a": "toolu_1"}),
    ],
)
def test_a_value_that_is_not_a_short_text_is_no_key(path: Path, value: Any) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) is None


@table(
    "content",
    [
        b"",  # empty
        SOUND[:-1],  # half written
        b"toolu_1",  # not JSON
        b'"toolu_1"',  # a string
        b"[" + SOUND + b"]",  # an array
        b"null",  # null
        SOUND + SOUND,  # two objects
        b"{}",  # another object
        b'{"TOOLUSEID": "toolu_1"}',  # capital letters
        b'{"toolUseId": "toolu_1", "toolUseId": "toolu_2"}',  # two keys
        b'{"toolUseId": "toolu_\xff"}',  # not UTF-8
        b'{"toolUseId": "toolu_\\u0000"}',  # NUL
        b'{"toolUseId": "\\ud800"}',  # half of a surrogate pair
        b'{"toolUseId": "toolu_1", "n": NaN}',  # not a number
        b'{"toolUseId": "toolu_1", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}",  # deep nesting
        b'{"toolUseId": "toolu_1", "n": 1' + b"0" * 5000 + b"}",  # too many digits
    ],
)
def test_a_malformed_note_gives_no_key(path: Path, content: bytes) -> None:
    assert key_in(path, content) is None


def test_a_note_may_be_as_large_as_64_kib(path: Path) -> None:
    assert key_in(path, SOUND.ljust(LONGEST_NOTE)) == "toolu_1"
    assert key_in(path, SOUND.ljust(LONGEST_NOTE + 1)) is None


def test_an_event_reads_only_the_file_of_its_own_agent(path: Path) -> None:
    path.write_bytes(SOUND)

    def noted(**changes: str) -> str | None:
        event: Any = {"host": CLAUDE_CODE, "key_file": str(path), **changes}
        return noted_delegation(event)

    assert [noted(), *(noted(host_agent_id=agent) for agent in ("a2", "../a1", ""))] == [None] * 4
    assert noted(host_agent_id="a1") == "toolu_1"
    assert [noted(host_agent_id="a1", host=host) for host in (CODEX, "x")] == [None] * 2
