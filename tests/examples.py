"""The number of examples for a property: all with ``scripts/test --thorough``, otherwise a sample."""

from __future__ import annotations

from hypothesis import settings

_OF_HYPOTHESIS = 100


def examples(count: int) -> int:
    """The share of ``count`` that the profile of this run takes."""
    return count * settings().max_examples // _OF_HYPOTHESIS
