"""``repair`` restores a record with extra bytes behind it in its file; ``doctor`` suggests it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

REST = b'"phase": "approval"}}\n' + b"x" * 1111


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is on the path, as after an installation."""
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}")


def spoil(root: str, agent_id: str, rest: bytes = REST) -> Path:
    file = Path(root, agent_id, "state.json")
    file.write_bytes(file.read_bytes() + rest)
    return file


def corrupt(gaia: Gaia) -> list[tuple[str, str]]:
    checks: list[dict[str, Any]] = json.loads(gaia("doctor", "--json").out)["checks"]
    return [(one["found"], one["fix"]) for one in checks if (one["name"], one["state"]) == ("corrupt", "problem")]


def test_the_repair_command_from_doctor_restores_the_records(gaia: Gaia, put: Gaia, root: str) -> None:
    before = [put(agent_id, phase="planning") for agent_id in ("a", "b")]
    damaged = [spoil(root, agent_id).read_bytes() for agent_id in ("a", "b")]
    [(found, fix)] = corrupt(gaia)
    assert found.startswith("2 corrupt sessions: ")
    assert found.endswith("; the file begins with a whole record; to keep the record, type:")
    assert fix == f"gaia-sessions --root {root} repair a b"
    refused = gaia("update", "a", "--phase", "executing")
    assert (refused.code, "gaia-sessions doctor" in refused.err.decode()) == (6, True)

    aside = [f"{root}/{agent_id}/state-damaged-1.json" for agent_id in ("a", "b")]
    said = [f"repaired {agent_id}; the old file is now {path}" for agent_id, path in zip("ab", aside, strict=True)]
    assert gaia(*fix.split()[3:]).answer == said
    assert [gaia("get", agent_id).json for agent_id in ("a", "b")] == before
    assert [Path(path).read_bytes() for path in aside] == damaged
    assert corrupt(gaia) == []

    assert gaia("repair", "a").answer == ["nothing to repair: the record of a can be read"]
    assert gaia("repair", "a", "--json").json == {"repaired": [{"agent_id": "a", "kept_aside": None}]}


def test_doctor_suggests_rm_only_for_the_session_that_cannot_be_repaired(gaia: Gaia, put: Gaia, root: str) -> None:
    for agent_id in ("a", "b"):
        put(agent_id, phase="planning")
    spoil(root, "a")
    Path(root, "b", "state.json").write_bytes(b"{")
    (_, keeping), (_, removing) = corrupt(gaia)
    assert (keeping, removing) == (
        f"gaia-sessions --root {root} repair a",
        f"gaia-sessions --root {root} rm --force b",
    )
    assert gaia(*removing.split()[3:]).code == 0
    assert gaia(*keeping.split()[3:]).code == 0
    assert gaia("list", "--json").json[0]["agent_id"] == "a"


def test_repair_leaves_a_file_without_a_whole_record_unchanged(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    file = Path(root, "a", "state.json")
    file.write_bytes(b"{")
    told = gaia("repair", "a", "--json").error
    problem = "line 1 column 1: not JSON: this brace is not closed"
    why_not = "it does not begin with a complete JSON document"
    assert (told["code"], told["message"]) == ("corrupt", f"{file}: {problem}; it cannot be repaired: {why_not}")
    assert file.read_bytes() == b"{"
    assert gaia("repair", "nobody").code == 3
