"""The guard of tasks: sub-agents fetch, and a task that asks for analysis stays with whoever delegates.

Owns the words, English and Russian, of the users' document on the life cycle of sub-agents, as beginnings of words, so
that every form of them counts. A task that begins with a verb of retrieval is about what is to be found, so there only
"why" counts, and a word that begins a clause. It is advice about wording, and no boundary for whoever words a task so
that it passes. Pure.
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
"""What is longer may not be delegated: a host does without a hook that takes too long to look through it."""

MOST_WORDS, LONGEST_WORD = 50, 50
"""For so many beginnings, each of so many characters, tasks are looked through beside those that are known."""

_LONGEST_SHOWN = 80
_MOST_POLITE = 10
"""Of such words between the beginning of a clause and what it asks for."""


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
    """Whether ``task`` may be delegated; ``more`` are beginnings of words that ask for analysis, too.

    Raises ``InvalidInput`` for a task that is blank.
    """
    check_string(task, "task")
    if not task.strip():
        raise InvalidInput("the task is blank", hint="say what is to be done")
    more = [*more]
    if len(task) > MOST_CHARACTERS:
        most = f"a task may have {MOST_CHARACTERS} characters where it is looked through for what it asks"
        return _refused(f"{most}, and this one has {len(task)}: name a file in it that has the rest")
    if len(more) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in more):
        return _refused(
            f"the setting guard.words may have {MOST_WORDS} beginnings of words, of {LONGEST_WORD} characters each, "
            "and has more: until that is corrected, no task may be delegated"
        )
    word = rf"(?:{_any_of(_WHOLE)})|(?:{_any_of((*_BEGINNINGS, *more))})[^\W\d_]*+"
    asking = re.compile(rf"({_CLAUSE})?(?<![\w./\\])({word}){_NO_PATH}", re.IGNORECASE)
    is_retrieval = _RETRIEVAL.match(task) is not None
    for clause, found in (match.groups() for match in asking.finditer(task)):
        if not is_retrieval or clause is not None or found.casefold() in _WHOLE:
            keyword = shorten(found, _LONGEST_SHOWN)
            return _refused(
                f"the task asks for analysis ({keyword!r}), and sub-agents find and fetch: "
                "word it as what is to be found, and leave the analysis to whoever delegates",
                keyword,
            )
    return {"allowed": True, "keyword": None, "reason": None}


def _refused(reason: str, keyword: str | None = None) -> GuardAnswer:
    return {"allowed": False, "keyword": keyword, "reason": reason}
