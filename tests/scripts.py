"""Loads Python scripts of the checkout as modules."""

from __future__ import annotations

from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@cache
def script(name: str) -> Any:
    loader = SourceFileLoader(name, str(SCRIPTS / name))
    spec = spec_from_loader(name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
