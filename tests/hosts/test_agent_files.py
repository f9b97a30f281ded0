"""What the note beside an agent's transcript says of its delegation, and what counts as no note."""

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
    """Where the host would write the file; nothing is there yet."""
    (talks / "c" / "subagents").mkdir(parents=True)
    return talks / "c" / "subagents" / "agent-a1.meta.json"


def read_key(path: Path) -> str | None:
    """The delegation of the agent ``a1`` by its file, as the hooks ask for it in either of two ways."""
    found = delegation_of(CLAUDE_CODE, f"{path.parent.parent}.jsonl", "a1")
    event: Any = {"host": CLAUDE_CODE, "host_agent_id": "a1", "key_file": str(path)}
    assert noted_delegation(event) == found
    return found


def key_in(path: Path, content: bytes) -> str | None:
    path.write_bytes(content)
    return read_key(path)


def test_the_key_is_what_stands_under_its_name(path: Path) -> None:
    content = b'{"agentType": "Explore", "toolUseId": "toolu_1", "more": {"toolUseId": "not this"}}\n'
    assert key_in(path, content) == "toolu_1"
    assert member_of(CLAUDE_CODE, str(path), "agentType") == "Explore"


def test_a_note_that_is_not_there_yet_has_no_key_until_it_is(path: Path) -> None:
    assert read_key(path) is None
    assert key_in(path, SOUND) == "toolu_1"


@table(
    "value",
    [
        "t",  # one character
        "x" * 512,  # 512 characters
        "ünï\ncode \u2028",  # any characters
        "../../etc/passwd",  # what looks like a path is a key like any other
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
def test_anything_else_is_no_key(path: Path, value: Any) -> None:
    assert key_in(path, json.dumps({"toolUseId": value}).encode()) is None


@table(
    "content",
    [
        b"",  # empty
        SOUND[:-1],  # half written
        b"toolu_1",  # no JSON
        b'"toolu_1"',  # a string
        b"[" + SOUND + b"]",  # an array
        b"null",  # null
        SOUND + SOUND,  # two objects
        b"{}",  # another object
        b'{"TOOLUSEID": "toolu_1"}',  # another case
        b'{"toolUseId": "toolu_1", "toolUseId": "toolu_2"}',  # two keys
        b'{"toolUseId": "toolu_\xff"}',  # no UTF-8
        b'{"toolUseId": "toolu_\\u0000"}',  # NUL
        b'{"toolUseId": "\\ud800"}',  # half of a pair
        b'{"toolUseId": "toolu_1", "n": NaN}',  # no number
        b'{"toolUseId": "toolu_1", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}",  # nesting without end
        b'{"toolUseId": "toolu_1", "n": 1' + b"0" * 5000 + b"}",  # digits without end
    ],
)
def test_what_is_no_sound_object_with_that_key_counts_as_not_there(path: Path, content: bytes) -> None:
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
