"""The guard of tasks: sub-agents fetch, and a task that asks for analysis stays with whoever delegates.

Owns the words, English and Russian, of the users' document on the life cycle of sub-agents, as beginnings of words, so
that every form of them counts. A task that begins with a verb of retrieval is about what is to be found, so there only
"why" counts, and a word that begins a clause. It is advice about wording, and no boundary for whoever words a task so
that it passes. Pure.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput

from .checks import check_string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    class GuardAnswer(TypedDict):
        """Whether a task may be delegated. keyword: the word that asks for analysis, as it stands in the task.

        reason: why not, and what to do; both are None for a task that may.
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


_LOOKBACK = 100
"""Characters before a word that are looked at: more than the longest beginning of a clause has."""


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


_RETRIEVAL = re.compile(rf"\W*(?:\d+[.)]\s*)?(?:(?:{_any_of(_POLITE)})\W+)*(?:{_any_of(_VERBS)})\b", re.IGNORECASE)
_CLAUSE = re.compile(
    rf"(?:[.;!?]\s++|\n\s*+|\b(?:{_any_of(_JOINS)})[\s,]++)(?:(?:{_any_of(_POLITE)})[\s,]++)*+$", re.IGNORECASE
)


def guard(task: str, more: Iterable[str] = ()) -> GuardAnswer:
    """Whether ``task`` may be delegated; ``more`` are beginnings of words that ask for analysis, too.

    Raises ``InvalidInput`` for a task that is blank.
    """
    check_string(task, "task")
    if not task.strip():
        raise InvalidInput("the task is blank", hint="say what is to be done")
    beginnings = (*_BEGINNINGS, *more)
    keyword = re.compile(
        rf"(?<![\w./\\])(?:(?:{_any_of(_WHOLE)})|(?:{_any_of(beginnings)})[^\W\d_]*)(?![\w/\\]|\.\w|-[\w-]{{0,99}}\.\w)",
        re.IGNORECASE,
    )
    is_retrieval = _RETRIEVAL.match(task) is not None
    for found in keyword.finditer(task):
        if (
            not is_retrieval
            or found[0].casefold() in _WHOLE
            or _CLAUSE.search(task, max(0, found.start() - _LOOKBACK), found.start())
        ):
            reason = (
                f"the task asks for analysis ({found[0]!r}), and sub-agents find and fetch: "
                "word it as what is to be found, and leave the analysis to whoever delegates"
            )
            return {"allowed": False, "keyword": found[0], "reason": reason}
    return {"allowed": True, "keyword": None, "reason": None}
