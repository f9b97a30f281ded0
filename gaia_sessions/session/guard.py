"""The guard of tasks: a task that asks for analysis stays with the main agent, since sub-agents only find and fetch.

The words are beginnings of English and Russian words. The guard is advice: a task can be worded so that it passes.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput, shorten

from .checks import check_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    class GuardAnswer(TypedDict):
        """Whether a task may be delegated.

        Keys:
            keyword: the word in the task that asks for analysis; None if the task is allowed or too long.
            reason: why not, and what to do; None if the task is allowed.
        """

        allowed: bool
        keyword: str | None
        reason: str | None


_WHOLE = ("why", "почему")
_BEGINNINGS = (
    *("analys", "analyz", "explain", "explanation", "review", "opinion", "reason", "evaluat", "compar"),
    *("анализ", "проанализ", "объясн", "обзор", "мнени", "оцен", "сравн", "выясн", "эффективн"),
)
_VERBS = (
    *("find", "search", "grep", "rg", "locate", "list", "ls", "cat", "read", "get", "fetch", "download", "clone"),
    *("найти", "найди", "найдите", "поиск", "искать", "поищи", "перечисли", "список", "покажи", "скачай", "загрузи"),
    *("прочитай", "выведи"),
)
_POLITE = ("please", "kindly", "could you", "can you", "would you", "run", "use", "пожалуйста")
_JOINS = ("and", "then", "also", "but", "и", "а", "затем", "потом", "также", "но")  # noqa: RUF001  # a Russian word


MOST_CHARACTERS = 1 << 20
"""A longer task is refused: a host ignores a hook that takes too long to check it."""

MOST_WORDS, LONGEST_WORD = 50, 50
"""How many beginnings of words the setting ``guard.words`` may add, and their longest length."""

_LONGEST_SHOWN = 80
_MOST_POLITE = 10
"""Polite words between the beginning of a clause and its request."""


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


_RETRIEVAL = re.compile(
    rf"\W*+(?:\d++[.)]\s*+)?+(?:(?:{_any_of(_POLITE)})\W++)*+(?:{_any_of(_VERBS)})\b", re.IGNORECASE
)
_CLAUSE = (
    rf"(?:[.;!?]\s++|(?<!\s)[^\S\n]*+\n\s*+|\b(?:{_any_of(_JOINS)})[\s,]++)"
    rf"(?:(?:{_any_of(_POLITE)})[\s,]++){{0,{_MOST_POLITE}}}+"
)
_NO_PATH = r"(?![\w/\\]|\.\w|-[\w-]{0,99}+\.\w)"


def guard(task: str, more: Iterable[str] = ()) -> GuardAnswer:
    """Checks whether ``task`` may be delegated; ``more`` are further beginnings of words that ask for analysis."""
    check_string(task, "task")
    if not task.strip():
        raise InvalidInput("the task is blank", hint="say what the agent must do")
    more = [*more]
    if len(task) > MOST_CHARACTERS:
        too_long = f"the task has {len(task)} characters, but at most {MOST_CHARACTERS} can be checked"
        return _refused(f"{too_long}: put the rest into a file, and name that file in the task")
    if len(more) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in more):
        return _refused(
            f"the setting guard.words has more than {MOST_WORDS} entries, or an entry of more than {LONGEST_WORD} "
            "characters: no task can be delegated until you correct the setting"
        )
    word = rf"(?:{_any_of(_WHOLE)})|(?:{_any_of((*_BEGINNINGS, *more))})[^\W\d_]*+"
    asking = re.compile(rf"({_CLAUSE})?(?<![\w./\\])({word}){_NO_PATH}", re.IGNORECASE)
    # After a verb of retrieval the words are about what to find: only "why" and the beginning of a clause count.
    is_retrieval = _RETRIEVAL.match(task) is not None
    for clause, found in (match.groups() for match in asking.finditer(task)):
        if not is_retrieval or clause is not None or found.casefold() in _WHOLE:
            keyword = shorten(found, _LONGEST_SHOWN)
            return _refused(
                f"the task asks for analysis ({keyword!r}), but sub-agents only find and fetch: "
                "ask only for what to find, and analyse the result yourself",
                keyword,
            )
    return {"allowed": True, "keyword": None, "reason": None}


def _refused(reason: str, keyword: str | None = None) -> GuardAnswer:
    return {"allowed": False, "keyword": keyword, "reason": reason}
