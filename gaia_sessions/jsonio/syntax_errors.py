"""Says what is wrong with a text that is not JSON, as a person would say it.

The decoder only says what it expected and where it stopped; the characters around that place show the mistake.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from json import JSONDecodeError

_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"{_STRING}|[][{{}}]", re.DOTALL)
_WORD = re.compile(r"[^\W\d][\w-]*")
_NAMES = {"{": "brace", "}": "brace", "[": "bracket", "]": "bracket"}
_AROUND = 60
"""The length of an excerpt in characters."""


def explain(error: JSONDecodeError, text: str) -> InvalidInput:
    """Returns the error for ``text``, with the line as a note; ``error.doc`` can be ``text`` without comments."""
    if not text.strip():
        return InvalidInput("not JSON: the text is empty")
    problem, at = _problem(error.msg, error.doc, error.pos)
    explained = InvalidInput(f"not JSON: {problem}", place(text, at))
    if excerpt := _excerpt(text, at):
        explained.add_note(excerpt)
    return explained


def refuse_constant(name: str) -> float:
    """Raises the error for ``NaN`` and ``Infinity``, which Python's decoder reads."""
    raise InvalidInput(f"not JSON: JSON has no {name}")


def place(text: str, at: int) -> str:
    """Returns the place as ``line 3 column 5``, counted from 1."""
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _problem(expected: str, text: str, at: int) -> tuple[str, int]:
    """Returns what is wrong, and where, if the decoder ``expected`` something at ``at``."""
    rest, before = text[at:], text[:at].rstrip()
    if expected.startswith("Expecting") and not rest.strip():
        return _unclosed(text)
    if rest[0] in "}]" and before.endswith(","):
        return f"a comma before the closing {_NAMES[rest[0]]}", len(before) - 1
    if closing := re.match(r",\s*([]}])", rest):  # Python 3.13 stops at the comma
        return f"a comma before the closing {_NAMES[closing[1]]}", at
    said = next(
        said
        for start, left, right, said in _RULES
        if expected.startswith(start) and re.search(f"{left}$", before) and re.match(right, rest)
    )
    word = _WORD.match(rest)
    return said.format(char=ascii(rest[0]), word=word and word[0][:40]), at


_RULES = (
    ("Unterminated", "", "", "no closing quote"),
    ("Invalid control", "", "", "a line break or another control character within quotes"),
    ("Invalid \\", "", "", "a single backslash within quotes: write \\\\ for it"),
    ("", "", "\ufeff", "a byte order mark"),
    ("", "", "[#/]", "a comment"),
    ("", r"(?<![\w.])0", r"\d", "a number that begins with 0"),
    ("Extra data", "", "", "more than one value"),
    ("Expecting ':'", "", "", "no colon after the name"),
    ("Expecting ','", '"', r"\w", 'a double quote within quotes: write \\" for it'),
    ("Expecting ','", "", r'["{[\w]', "no comma between two values"),
    ("Expecting ','", "", "", "{char} after a value"),
    ("", "", "'", "single quotes instead of double quotes"),
    ("", "", r"True\b", "True instead of true"),
    ("", "", r"False\b", "False instead of false"),
    ("", "", r"(None|undefined)\b", "{word} instead of null"),
    ("", "", _WORD, "no quotes around {word}"),
    ("Expecting property", "", "", "{char} instead of a name in double quotes"),
    ("", "", "", "{char} instead of a value"),
)
"""Rows for mistakes: what the decoder expected, what is before the place, what is at the place, the message."""


def _unclosed(text: str) -> tuple[str, int]:
    """Returns what is wrong if ``text`` ends too early, and where: at the last open bracket, or at the end."""
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            opened.append(token.start())
        elif token[0] in ("}", "]"):
            opened.pop()
    if not opened:
        return "there is no value", len(text)
    return f"this {_NAMES[text[opened[-1]]]} is not closed", opened[-1]


def _excerpt(text: str, at: int) -> str:
    """Returns the line around ``at`` with a caret below it; empty if a terminal would not align the two."""
    start = max(text.rfind("\n", 0, at) + 1, at - _AROUND // 2)
    line = text[start:].partition("\n")[0][:_AROUND].replace("\t", " ")
    return f"{line}\n{' ' * (at - start)}^" if line.isascii() and line.isprintable() else ""
