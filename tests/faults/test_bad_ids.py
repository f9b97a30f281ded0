"""Three hundred invalid IDs: each is refused, and nothing changes inside or outside the root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import InvalidId
from gaia_sessions.store.file_store import FileStore
from tests.faults.conftest import tree
from tests.removals import deleted
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faults.conftest import Tree

DEVICES = ("con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10)))
OURS = (".locks", ".stage", ".trash", ".index", ".inbox", ".logs", ".gitignore", ".config.toml")

FAMILIES: dict[str, list[object]] = {
    "climbs out": [
        *("../" * steps + name for steps in range(1, 5) for name in ("victim", "victim/state.json", "session", "")),
        *("agent-1/" + "../" * steps + "victim" for steps in range(1, 4)),
        *(".", "..", "...", "a..b", "..a", "a..", "agent-1/..", "agent-1/.", "./agent-1", "../session/agent-1"),
    ],
    "is a path": [
        *("/", "//", "/agent-1", "/etc/passwd", "agent-1/", "agent-1/state.json", "a/b", "a//b", "~", "~/x", "~root"),
        *("\\", "a\\b", "..\\victim", "C:", "C:\\x", "\\\\host\\share", "a:b", "file:///x", "agent-1:stream"),
    ],
    "is a name that the store uses": [*OURS, *(name + "/x" for name in OURS), *(name.upper() for name in OURS)],
    "is a device": [
        *DEVICES,
        *(name.upper() for name in DEVICES),
        *(name + ".txt" for name in DEVICES),
        *(name + ".a.b" for name in DEVICES),
        *("Con.tar.gz", "nUL.json", "COM1.state", "Aux.", "NUL "),
    ],
    "begins wrong": ["-", "-rf", "--root", "--help", "_a", ".a", " a", "\ta", "+a", "@a", "#a", "=a", "%a", "!a", "$a"],
    "ends wrong": ["a.", "a..", "a ", "a\n", "a\r", "a\t", "a\0", "a/", "a\\", "agent-1\n", "agent-1\r\n", "a.\n"],
    "has a character that is not allowed": [
        *(f"a{char}b" for char in " \t\n\r\v\f\0\x01\x1b\x7f!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~"),
        *("%2e%2e", "%2e%2e%2fvictim", "a%00b", "$(id)", "`id`", "a;rm", "a|b", "a&b", "{}", "\x1b[31mred"),
    ],
    "is not ASCII": [
        *(
            "é",
            "e\u0301",
            "agent-é",
            "\uff41gent",
            "агент",
            "代理",
            "\u017f",
            "\u212a",
            "İ",
            "١٢٣",
            "a\u202eb",
            "a\u200bb",
        ),
        *(
            "🤖",
            "a\ufeff",
            "\ufeffa",
            "a\u00a0b",
            "a\u2028b",
            "a\u2044b",
            "..\u2215x",
            "\u2024\u2024",
            "\ud800",
            "a\udcff",
        ),
    ],
    "is empty or too long": ["", "a" * 129, "a" * 255, "a" * 256, "a" * 4096, "a" * 10_000, "a/" * 2000, "." * 300],
    "is not a text": [
        *(None, True, False, 0, 1, -1, 1.5, float("nan"), 1 << 70, b"agent-1", b"", bytearray(b"a")),
        *([], ["agent-1"], {}, {"agent_id": "agent-1"}, (), ("agent-1",), {"agent-1"}, object(), print, str),
    ],
}
BAD = [value for ids in FAMILIES.values() for value in ids]


@pytest.fixture
def before(populated: str, tmp_path: Path) -> Tree:
    """All files: a root, and a folder beside it that an ID might lead to."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "state.json").write_bytes(b"{}")
    assert populated
    return tree(tmp_path)


@table("bad", BAD)
def test_a_bad_id_is_refused_and_touches_nothing(bad: Any, populated: str, tmp_path: Path, before: Tree) -> None:
    for name, call in _calls(populated).items():
        if name == "create" and bad is None:  # None asks for a generated ID
            continue
        with pytest.raises(InvalidId) as refused:
            call(bad)
        assert len(str(refused.value)) < 300
    assert gaia_sessions.should_resume(bad, root=populated) is False
    assert tree(tmp_path) == before


def test_the_table_has_three_hundred_different_bad_ids() -> None:
    values = [*map(repr, BAD)]

    assert len(values) >= 300
    assert len(set(values)) >= 295


def _calls(root: str) -> dict[str, Callable[[Any], object]]:
    store = FileStore(root)
    return {
        "create": lambda bad: gaia_sessions.create_session(agent_id=bad, root=root),
        "get": lambda bad: gaia_sessions.get_session(bad, root=root),
        "explain": lambda bad: gaia_sessions.explain_resume(bad, root=root),
        "update": lambda bad: gaia_sessions.update_state(bad, "planning", root=root),
        "finalize": lambda bad: gaia_sessions.finalize_session(bad, "completed", root=root),
        "append": lambda bad: store.append(bad, "events.jsonl", [{}]),
        "entries": lambda bad: list(store.entries(bad, "events.jsonl")),
        "delete": lambda bad: deleted(store, bad, lambda _found: True),
    }
