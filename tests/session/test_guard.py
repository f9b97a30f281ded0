"""The guard of tasks: which words ask for analysis, and where in a task they count."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.guard import LONGEST_WORD, MOST_CHARACTERS, MOST_WORDS, guard
from tests.table import table

BLOCKED = [
    ("Analyze the auth module", "Analyze"),
    ("Do an analysis of auth", "analysis"),
    ("ANALYSE this", "ANALYSE"),
    ("проанализируй код", "проанализируй"),
    ("Сделай анализ кода", "анализ"),
    ("Объясни код", "Объясни"),
    ("Почему падает", "Почему"),
    ("Дай оценку модуля", "оценку"),
    ("Evaluating both", "Evaluating"),
    ("Give a comparison", "comparison"),
    ("why does it fail", "why"),
    ("Tell me your opinion.", "opinion"),
    ("Do a code-review of auth", "review"),
    # after a verb of retrieval, the word counts if it begins a clause
    ("find out why it fails and explain it", "why"),
    ("Find the callers and explain them", "explain"),
    ("Find the callers, and then please explain them", "explain"),
    ("Find the callers. Explain them.", "Explain"),
    ("Find the callers\n  explain them", "explain"),
    ("Найди функции и объясни их", "объясни"),
    ("Could you find why X fails", "why"),
    ("Please run grep for X and compare both", "compare"),
]
ALLOWED = [
    "Find files about architecture review",
    "Найти все .rs файлы в src/agent/",
    "Run grep for review comments",
    "Could you find reviews of the release",
    "Get an opinion piece from the news",
    "find /var/log -name 'explain*'",
    "Fix src/review/explain.py",
    "Fix explain.py",
    "Look at review-notes.txt",
    "Open C:\\review\\x and src\\review.py",
    "Rename reasonable_default",
    "1. Find review comments",
    "Write the whyever module",
    "Build it and run the tests",
    "list: analysis, reviews",
]


@table(("task", "keyword"), BLOCKED)
def test_a_task_that_asks_for_analysis_is_refused_and_the_answer_names_the_word(task: str, keyword: str) -> None:
    answer = guard(task)
    assert (answer["allowed"], answer["keyword"]) == (False, keyword)
    assert answer["reason"] is not None
    assert repr(keyword) in answer["reason"]


@table("task", ALLOWED)
def test_a_task_that_looks_for_something_or_names_a_path_is_allowed(task: str) -> None:
    assert guard(task) == {"allowed": True, "keyword": None, "reason": None}


def test_added_beginnings_of_words_are_matched_literally_and_not_as_patterns() -> None:
    assert guard("Please INVESTIGATE it", ["investigat"])["keyword"] == "INVESTIGATE"
    assert guard("a+b", ["a+"])["keyword"] == "a+b"
    assert guard("aab", ["a+"])["allowed"]


@table("task", ["", " \n"])
def test_a_blank_task_is_refused(task: str) -> None:
    with pytest.raises(InvalidInput, match="the task is blank"):
        guard(task)


@table(
    ("task", "more"),
    [
        ("find " + "x" * (MOST_CHARACTERS - 4), []),
        ("find x", ["a"] * (MOST_WORDS + 1)),
        ("find x", ["a" * (LONGEST_WORD + 1)]),
    ],
)
def test_a_task_or_a_word_list_that_is_too_long_is_refused_without_a_word(task: str, more: list[str]) -> None:
    answer = guard(task, more)
    assert (answer["allowed"], answer["keyword"]) == (False, None)
    assert answer["reason"]
    assert guard(task[:MOST_CHARACTERS], [word[:LONGEST_WORD] for word in more[:MOST_WORDS]])["allowed"]


def test_only_the_beginning_of_a_long_word_is_named() -> None:
    answer = guard("Analyz" + "e" * 1000)
    assert answer["keyword"] == "Analyz" + "e" * 71 + "..."
    assert len(answer["reason"] or "") < 300


LONG = {
    '"find " + "and please " * 90_000': True,
    '"find " + "." * 900_000 + " and\\n" * 1000': True,
    '"find " + "a review " * 100_000': True,
    '"find x" + "\\n" * 900_000 + "review"': False,
    '"see " + "review-" * 100_000 + "x.py"': False,
}
"""Tasks as large as a record. A check in quadratic time would take hours."""


def test_very_long_tasks_are_checked_within_two_minutes() -> None:
    tasks = ", ".join(LONG)
    code = f"from gaia_sessions.session.guard import guard; print(*(guard(task)['allowed'] for task in ({tasks})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == [str(is_allowed) for is_allowed in LONG.values()]
