"""How many examples of a property are tried: each of them with ``scripts/test --all``, otherwise a sample."""

from __future__ import annotations

from hypothesis import settings

_OF_HYPOTHESIS = 100


def examples(count: int) -> int:
    """As many as the profile of the run takes where all would be ``count``."""
    return count * settings().max_examples // _OF_HYPOTHESIS
