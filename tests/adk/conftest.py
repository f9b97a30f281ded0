"""Skips the tests if google-adk is not installed (it comes with the extra ``adk``)."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("google") and find_spec("google.adk") else ["test_*.py"]
