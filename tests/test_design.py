"""The design document describes this tree: the files it names exist, and its rooms are in the order of imports."""

from __future__ import annotations

import re
from pathlib import Path

from tests.table import table
from tests.test_layers import FLOORS

CHECKOUT = Path(__file__).resolve().parent.parent
DESIGN = (CHECKOUT / "docs" / "design.md").read_text(encoding="utf-8")
TOP = ("gaia_sessions", "hooks", "scripts", "tests", "docs")


def named_files() -> list[str]:
    """Everything in backquotes that is a path from the top of the checkout, each once."""
    quoted = re.findall(r"`([\w.-]+/[\w./-]*)`", DESIGN)
    return sorted({path for path in quoted if path.split("/")[0] in TOP})


def test_every_file_that_the_design_names_is_there() -> None:
    assert named_files()
    assert [path for path in named_files() if not (CHECKOUT / path).exists()] == []


@table(("name", "path"), re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", DESIGN))
def test_every_name_that_the_design_seeks_in_a_file_is_in_it(name: str, path: str) -> None:
    assert re.search(rf"\b{name}\b", (CHECKOUT / path).read_text(encoding="utf-8"))


def test_the_rooms_stand_in_the_order_of_imports() -> None:
    _, _, table = DESIGN.partition("| room | owns |")
    rows, _, _ = table.partition("\n\n")
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == [room for [room] in FLOORS if room != "__main__"]
