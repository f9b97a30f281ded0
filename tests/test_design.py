"""The design document describes this tree: the files it names exist, and its rooms are in the order of imports."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from tests.table import table
from tests.test_layers import FILES, FLOORS, SOURCE

CHECKOUT = Path(__file__).resolve().parent.parent
DESIGN = (CHECKOUT / "docs" / "design.md").read_text(encoding="utf-8")
TOP = ("gaia_sessions", "hooks", "scripts", "tests", "docs")
HOST_FOLDERS = [path.name for path in (SOURCE / "hosts").iterdir() if path.is_dir()]


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


NAMED_ALIKE = ("cli/commands/", "cli/render/", "doctor/", *(f"hosts/{folder}/" for folder in HOST_FOLDERS))
"""Rooms whose files are named after subjects of others."""

AT_TWO_LEVELS = {"app_sessions", "own_runs", "run", "send"}


def test_the_name_of_a_file_serves_one_module_unless_the_design_says_why() -> None:
    own = [file for file in FILES if not file.endswith("__init__.py") and not file.startswith(NAMED_ALIKE)]
    times = Counter(file.rpartition("/")[2].removesuffix(".py") for file in own)
    assert {stem for stem, number in times.items() if number > 1} == AT_TWO_LEVELS
    assert all(f"`{stem}`" in DESIGN for stem in AT_TWO_LEVELS)


def test_each_mutation_finds_its_line_once_and_its_tests() -> None:
    mutations = tomllib.loads((CHECKOUT / "scripts" / "mutations.toml").read_text("utf-8"))
    assert len(mutations) > 40
    times = {name: (CHECKOUT / one["file"]).read_text("utf-8").count(one["old"]) for name, one in mutations.items()}
    assert {name: number for name, number in times.items() if number != 1} == {}
    named = {path for one in mutations.values() for path in [*one["tests"], *one.get("room", ())]}
    assert {path for path in named if not (CHECKOUT / path).exists()} == set()


def test_the_rooms_stand_in_the_order_of_imports() -> None:
    _, _, table = DESIGN.partition("| room | owns |")
    rows, _, _ = table.partition("\n\n")
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == [room for [room] in FLOORS if room != "__main__"]
