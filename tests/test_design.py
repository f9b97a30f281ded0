"""``docs/design.md`` describes this checkout: the named files exist, and the rooms are in the order of imports."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from tests.table import table
from tests.test_layers import FILES, FLOOR_OF, FLOORS, SOURCE

CHECKOUT = Path(__file__).resolve().parent.parent
DESIGN = (CHECKOUT / "docs" / "design.md").read_text(encoding="utf-8")
TOP = ("gaia_sessions", "hooks", "scripts", "tests", "docs")
HOST_FOLDERS = [path.name for path in (SOURCE / "hosts").iterdir() if path.is_dir()]


def named_files() -> list[str]:
    """Every path in backquotes that is in this checkout or ends with .py, each once."""
    quoted = set(re.findall(r"`([\w.-]+/[\w./-]*)`", DESIGN))
    return sorted(path for path in quoted if top_of(path) in {*TOP, *FLOOR_OF} or path.endswith(".py"))


def top_of(path: str) -> str:
    return path.partition("/")[0]


def place_of(path: str) -> Path:
    """The place of ``path``: below the package, unless it begins with another folder of the checkout."""
    return (CHECKOUT if top_of(path) in TOP else SOURCE) / path


def test_every_file_that_the_design_page_names_exists() -> None:
    assert len(named_files()) > 180
    assert [path for path in named_files() if not place_of(path).exists()] == []


def names_sought() -> list[tuple[str, str]]:
    """Each identifier that the design page names together with a file, and that file."""
    sought = re.findall(r"((?:`\w+`, )*`\w+`) (?:in|of) `([\w/]+\.py)`", DESIGN)
    return [(name, path) for names, path in sought for name in re.findall(r"\w+", names)]


def test_the_design_page_names_more_than_35_identifiers_in_files() -> None:
    assert len(names_sought()) > 35


@table(("name", "path"), names_sought())
def test_every_identifier_that_the_design_page_names_is_in_its_file(name: str, path: str) -> None:
    assert re.search(rf"\b{name}\b", place_of(path).read_text(encoding="utf-8"))


NAMED_ALIKE = ("postgres/", "cli/commands/", "cli/render/", "doctor/", *(f"hosts/{folder}/" for folder in HOST_FOLDERS))
"""Folders whose files are named after subjects of other rooms."""

AT_TWO_LEVELS = {"app_sessions", "own_runs", "run", "send"}


def test_the_name_of_a_file_serves_one_module_unless_the_design_says_why() -> None:
    own = [file for file in FILES if not file.endswith("__init__.py") and not file.startswith(NAMED_ALIKE)]
    times = Counter(file.rpartition("/")[2].removesuffix(".py") for file in own)
    assert {stem for stem, number in times.items() if number > 1} == AT_TWO_LEVELS
    assert all(f"`{stem}`" in DESIGN for stem in AT_TWO_LEVELS)


def test_each_mutation_matches_one_line_and_its_tests_exist() -> None:
    mutations = tomllib.loads((CHECKOUT / "scripts" / "mutations.toml").read_text("utf-8"))
    assert len(mutations) > 40
    times = {name: (CHECKOUT / one["file"]).read_text("utf-8").count(one["old"]) for name, one in mutations.items()}
    assert {name: number for name, number in times.items() if number != 1} == {}
    named = {path for one in mutations.values() for path in [*one["tests"], *one.get("room", ())]}
    assert {path for path in named if not (CHECKOUT / path).exists()} == set()


def test_the_design_page_lists_the_rooms_in_the_order_of_imports() -> None:
    _, _, table = DESIGN.partition("| room | owns |")
    rows, _, _ = table.partition("\n\n")
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == [room for [room] in FLOORS if room != "__main__"]
