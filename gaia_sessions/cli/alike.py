"""Which known word a wrong one was meant for.

Owns how alike a misspelt word must be to be taken for another.
"""

from __future__ import annotations

from difflib import get_close_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_NEAR = 0.75
"""How alike two words must be: ``phas`` is ``phase``, ``status`` is nothing."""
_SHORTEST_BEGINNING = 3


def meant_by(word: str, tried: Mapping[str, str], known: Collection[str]) -> str | None:
    """The one of ``known`` that ``word`` is, is ``tried`` for, or is like."""
    return word if word in known else tried.get(word.casefold()) or nearest(word, known)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that ``word`` is the beginning of, or a misspelling of; None if it is neither."""
    bare = {name.lstrip("-"): name for name in known}
    typed = word.lstrip("-").casefold()
    begun = [name for name in bare if name.startswith(typed)] if len(typed) >= _SHORTEST_BEGINNING else []
    near = begun[:1] if len(begun) == 1 else get_close_matches(typed, bare, n=1, cutoff=_NEAR)
    return bare[near[0]] if near else None
