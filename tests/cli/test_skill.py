"""``skill``: it records each loaded skill once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_e8_adding_a_skill_twice_says_so_changes_nothing_and_succeeds(gaia: Gaia, state: Gaia, session: str) -> None:
    assert gaia("skill", "add", session, "aws", "--tokens", "100").answer == ["agent-123: skill aws loaded, 100 tokens"]
    before = state(session)
    assert gaia("skill", "add", session, "aws", "--tokens", "500").answer == [
        "agent-123: skill aws was loaded already, 100 tokens"
    ]
    assert state(session) == before
    assert (before["skills"], before["revision"]) == ({"aws": 100}, 2)


def test_skill_add_json_says_whether_the_skill_was_added(gaia: Gaia, session: str) -> None:
    def add(name: str, tokens: str) -> Any:
        return gaia("skill", "add", session, name, "--tokens", tokens, "--json").json

    assert add("aws", "100") == {"agent_id": session, "name": "aws", "tokens": 100, "added": True, "skill_tokens": 100}
    assert (add("aws", "500")["added"], add("aws", "500")["skill_tokens"]) == (False, 100)
    assert add("git", "7")["skill_tokens"] == 107


@table(
    ("name", "tokens", "code"), [("", "5", 7), ("a\nb", "5", 7), ("x" * 201, "5", 7), ("aws", "-5", 2), ("aws", "x", 2)]
)
def test_an_invalid_skill_name_or_token_number_is_refused(
    gaia: Gaia, tree: Gaia, session: str, name: str, tokens: str, code: int
) -> None:
    before = tree()
    assert gaia("skill", "add", session, name, "--tokens", tokens).code == code
    assert tree() == before
