"""Which known word a wrong one was meant for.

Owns how alike a misspelt word must be to be taken for another.
"""

from __future__ import annotations

from difflib import get_close_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_CUTOFF = 0.75
"""How alike two words must be: ``phas`` is ``phase``, ``status`` is nothing."""
_MIN_PREFIX = 3


def intended_word(word: str, synonym_table: Mapping[str, str], valid_words: Collection[str]) -> str | None:
    """The one of ``known`` that ``word`` is, is ``attempted_fixes`` for, or is like."""
    return word if word in valid_words else synonym_table.get(word.casefold()) or closest_word(word, valid_words)


def closest_word(word: str, valid_words: Iterable[str]) -> str | None:
    """The one of ``known`` that ``word`` is the beginning of, or a misspelling of; None if it is neither."""
    by_bare_name = {name.lstrip("-"): name for name in valid_words}
    typed = word.lstrip("-").casefold()
    with_prefix = [name for name in by_bare_name if name.startswith(typed)] if len(typed) >= _MIN_PREFIX else []
    matches = with_prefix[:1] if len(with_prefix) == 1 else get_close_matches(typed, by_bare_name, n=1, cutoff=_CUTOFF)
    return by_bare_name[matches[0]] if matches else None
