"""Errors for texts that are not JSON: the mistake, its place and an excerpt."""

from __future__ import annotations

import random

import pytest

from gaia_sessions.errors import InvalidInput
from gaia_sessions.install import json_text
from gaia_sessions.jsonio import strict
from tests.table import table

MISTAKES = [
    ('{"a": 1,}', "a comma before the closing brace", 8),
    ("[1, 2, ]", "a comma before the closing bracket", 6),
    ("{'a': 1}", "single quotes instead of double quotes", 2),
    ("{\"a\": 'b'}", "single quotes instead of double quotes", 7),
    ("{a: 1}", "no quotes around a", 2),
    ('{"a": yes}', "no quotes around yes", 7),
    ('{"a": "b}', "no closing quote", 7),
    ('{"a": [1, {}', "this bracket is not closed", 7),
    ('{"a": [1, "]"]', "this brace is not closed", 1),
    ('{"a":', "this brace is not closed", 1),
    ("[1}", "'}' after a value", 3),
    ('{"a": }', "'}' instead of a value", 7),
    ('{"a": 1, 2}', "'2' instead of a name in double quotes", 10),
    ('{"a": True}', "True instead of true", 7),
    ('{"a": False}', "False instead of false", 7),
    ('{"a": None}', "None instead of null", 7),
    ('{"a" 1}', "no colon after the name", 6),
    ('{"a": 1 "b": 2}', "no comma between two values", 9),
    ("[1 2]", "no comma between two values", 4),
    ('["a "word""]', 'a double quote within quotes: write \\" for it', 6),
    ('"C:\\Users"', "a single backslash within quotes: write \\\\ for it", 4),
    ('"a\tb"', "a line break or another control character within quotes", 3),
    ("{} {}", "more than one value", 4),
    ("[1, 007]", "a number that begins with 0", 6),
    ("{} # why", "a comment", 4),
    ("[ /* why */ 1]", "a comment", 3),
]


@table(("text", "problem", "column"), MISTAKES)
def test_both_json_readers_report_a_mistake_with_its_place(text: str, problem: str, column: int) -> None:
    excerpts = [f"{text}\n{' ' * (column - 1)}^"] if "\t" not in text else None
    for before, line in (("", 1), ("\n\n", 3)):
        for read in (strict.loads, lambda data: json_text.parse(data, comments=False)):
            with pytest.raises(InvalidInput) as refused:
                read((before + text).encode())
            assert str(refused.value) == f"line {line} column {column}: not JSON: {problem}"
            assert excerpts in (None, refused.value.excerpts)


def test_the_excerpt_of_a_long_line_is_the_part_around_the_mistake() -> None:
    with pytest.raises(InvalidInput) as refused:
        strict.loads(b'{"a": "' + b"x" * 500 + b'", "b": 1, "c": nope, "d": "' + b"y" * 500 + b'"}')
    line, mark = refused.value.excerpts[0].splitlines()
    assert len(line) == 60
    assert line[mark.index("^") :].startswith("nope")


def test_every_random_mistake_is_read_or_refused_with_a_plain_problem() -> None:
    whole, chance = '{"a": [1.5, true, null, {"b": "c\\n", "d": []}], "e": -0}', random.Random(26)
    said: set[str] = set()
    for _ in range(3000):
        at, end = sorted(chance.sample(range(len(whole) + 1), 2))
        typed = "".join(chance.choices("{}[],:'\"\\0/ aN\n\ufeff\0", k=chance.randrange(3)))
        text = whole[:at] + typed + whole[end if chance.random() < 0.5 else at :]
        try:
            strict.loads(text.encode())
        except InvalidInput as error:
            said.add(error.problem)
    assert len(said) > 20
    assert [problem for problem in said if "Expecting" in problem] == []
