"""``schema``: the JSON Schema of ``state.json``; every process prints the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gaia_sessions.models import json_schema

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_schema_prints_the_json_schema_of_the_models(gaia: Gaia) -> None:
    assert gaia("schema").json == json_schema()
    assert gaia("schema", "--json").out == gaia("schema").out


def test_another_process_prints_the_same_bytes(program: Gaia, gaia: Gaia) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    assert program("schema", PYTHONHASHSEED=seed).all == gaia("schema").all


def test_schema_needs_no_root_and_creates_none(gaia: Gaia, tree: Gaia) -> None:
    before = tree()
    assert gaia("schema").code == 0
    assert tree() == before
