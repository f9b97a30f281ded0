"""What is wrong with a text that is not JSON, as a person would say it. Loaded only for such a text.

The decoder says what it expected and where it stopped; what was meant, and where the mistake is, follows from the
characters around that place.
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
"""Characters of an excerpt."""


def explain(error: JSONDecodeError, text: str) -> InvalidInput:
    """The error for ``text``, with the line as a note; ``error`` is about a copy with blanks in place of comments."""
    if not text.strip():
        return InvalidInput("not JSON: the text is empty")
    problem, at = _problem(error.msg, error.doc, error.pos)
    explained = InvalidInput(f"not JSON: {problem}", place(text, at))
    if excerpt := _excerpt(text, at):
        explained.add_note(excerpt)
    return explained


def refuse_constant(name: str) -> float:
    """Raises the error for ``NaN`` and ``Infinity``, which Python's decoder reads."""
    raise InvalidInput(f"not JSON: {name}, a number that JSON does not have")


def place(text: str, at: int) -> str:
    """``line 3 column 5``, counted from 1."""
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"


def _problem(expected: str, text: str, at: int) -> tuple[str, int]:
    """What is wrong, and where, if the decoder ``expected`` something at ``at``."""
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
    ("Invalid \\", "", "", "a backslash within quotes that is not doubled"),
    ("", "", "\ufeff", "a byte order mark"),
    ("", "", "[#/]", "a comment"),
    ("", r"(?<![\w.])0", r"\d", "a number that begins with 0"),
    ("Extra data", "", "", "more than one value"),
    ("Expecting ':'", "", "", "no colon after the name"),
    ("Expecting ','", '"', r"\w", 'a double quote within quotes: write \\" for it'),
    ("Expecting ','", "", r'["{[\w]', "no comma between two values"),
    ("Expecting ','", "", "", "{char} after a value"),
    ("", "", "'", "single quotes, where JSON has double quotes"),
    ("", "", r"True\b", "True, which is true in JSON"),
    ("", "", r"False\b", "False, which is false in JSON"),
    ("", "", r"(None|undefined)\b", "{word}, which is null in JSON"),
    ("", "", _WORD, "no quotes around {word}"),
    ("Expecting property", "", "", "{char} where a name in double quotes is missing"),
    ("", "", "", "{char} where a value is missing"),
)
"""What is said of a mistake: what the decoder expected, what stands before the place, and what stands there."""


def _unclosed(text: str) -> tuple[str, int]:
    """That ``text`` ends too early, and where the bracket is that was not closed, if there is one."""
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] in ("{", "["):
            opened.append(token.start())
        elif token[0] in ("}", "]"):
            opened.pop()
    if not opened:
        return "it ends where a value is missing", len(text)
    return f"this {_NAMES[text[opened[-1]]]} is not closed", opened[-1]


def _excerpt(text: str, at: int) -> str:
    """The line around ``at``, and below it a caret; empty if a terminal would not show them below each other."""
    start = max(text.rfind("\n", 0, at) + 1, at - _AROUND // 2)
    line = text[start:].partition("\n")[0][:_AROUND].replace("\t", " ")
    return f"{line}\n{' ' * (at - start)}^" if line.isascii() and line.isprintable() else ""
