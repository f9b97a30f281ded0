"""Text is changed where it must be and nowhere else, whatever it looks like."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.install.entries import with_hooks, without_hooks
from gaia_sessions.install.json_edit import append_value, remove_element
from gaia_sessions.install.json_text import JsonText, parse
from gaia_sessions.install.permission import with_rules
from gaia_sessions.install.places import HOSTS
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

BLANKS = st.sampled_from(["", "", " ", "  ", "\n", "\n  ", "\r\n\t", "\n\n    "])
COMMENTS = st.sampled_from(["", "", "", " ", "\n  ", " // one, two: {\n", "/* [ */", "/* a\n b */", "//\n"])
KEYS = st.text('abc{}[],:"\\/é\u2028', max_size=4)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), KEYS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
WORDS = ["/opt/bin/gaia-sessions-hook"]
RULES = ["Bash(/opt/bin/gaia-sessions update *)", "Bash(/opt/bin/gaia-sessions todo *)"]


@st.composite
def written(draw: st.DrawFn, value: Any, blanks: st.SearchStrategy[str]) -> str:
    """``value`` as JSON with blanks, and maybe comments, wherever there may be some."""

    def gap() -> str:
        return draw(blanks)

    def write(part: Any) -> str:
        if isinstance(part, dict):
            inner = ",".join(
                f"{gap()}{json.dumps(key, ensure_ascii=False)}{gap()}:{gap()}{write(item)}{gap()}"
                for key, item in part.items()
            )
            return f"{{{inner or gap()}}}"
        if isinstance(part, list):
            inner = ",".join(f"{gap()}{write(item)}{gap()}" for item in part)
            return f"[{inner or gap()}]"
        return json.dumps(part, ensure_ascii=False)

    return gap() + write(value) + gap()


def texts(values: st.SearchStrategy[Any], blanks: st.SearchStrategy[str], *, comments: bool) -> Any:
    return values.flatmap(lambda value: written(value, blanks)).map(lambda text: JsonText(text, comments=comments))


FULL = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)
ARRAYS = st.lists(VALUES, max_size=4)
EITHER = st.one_of(
    texts(st.one_of(FULL, ARRAYS), BLANKS, comments=False), texts(st.one_of(FULL, ARRAYS), COMMENTS, comments=True)
)


@given(EITHER, VALUES)
def test_what_is_put_in_is_last_and_the_rest_is_what_it_was(text: JsonText, value: Any) -> None:
    key = None if isinstance(text.value, list) else "new"

    changed = append_value(text, text.start, value, key)

    assert members(changed) == [*members(text), (key, value) if key else value]


def plain(text: JsonText) -> Any:
    """The value of ``text`` by the standard library, which takes no comments."""
    return json.loads(STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text.text))


def members(text: JsonText) -> list[Any]:
    """The elements of an array, the keys and values of an object."""
    value = plain(text)
    return value if isinstance(value, list) else list(value.items())


@given(EITHER, VALUES)
def test_what_was_put_in_beside_others_goes_without_a_trace(text: JsonText, value: Any) -> None:
    key = None if isinstance(text.value, list) else "new"
    count = len(text.elements(text.start)[0])

    back = remove_element(append_value(text, text.start, value, key), text.start, count)

    assert plain(back) == plain(text)
    assert back.text == text.text or count == 0


@given(EITHER, st.data())
def test_each_element_can_be_taken_out_and_comments_stay(text: JsonText, data: st.DataObject) -> None:
    elements, _ = text.elements(text.start)
    if not elements:
        return
    number = data.draw(st.integers(0, len(elements) - 1))

    left = remove_element(text, text.start, number)

    wanted = members(text)
    wanted.pop(number)
    assert members(left) == wanted
    gone = text.text[elements[number].start : elements[number].end]
    assert comments_in(left.text) >= comments_in(text.text) - comments_in(gone)


def comments_in(text: str) -> int:
    return len([found for found in STRING_OR_COMMENT.findall(text) if found.startswith("/")])


HANDLERS = st.fixed_dictionaries({"type": st.just("command"), "command": KEYS})
GROUPS = st.fixed_dictionaries({"hooks": st.lists(HANDLERS, max_size=2)}, optional={"matcher": KEYS, "note": VALUES})
WIRED = ["Stop", "PreToolUse", "SessionEnd"]
EVENTS = st.sampled_from([*WIRED, "Notification"])
HOOKS = st.dictionaries(EVENTS, st.lists(GROUPS, max_size=3), max_size=3)
PERMISSIONS = st.fixed_dictionaries({}, optional={"allow": st.lists(st.sampled_from(["a", "b"])), "deny": VALUES})
SETTINGS = st.fixed_dictionaries({}, optional={"x": VALUES, "hooks": HOOKS, "permissions": PERMISSIONS, "z": VALUES})
LINE_ENDS = st.sampled_from(["", "\n", "\r\n", "\n\n\n"])


@st.composite
def settings_files(draw: st.DrawFn) -> bytes:
    """Settings as bytes: with a byte order mark or not, indented in any way or laid out at random, with any end."""
    value = draw(st.permutations(list(draw(SETTINGS).items())).map(dict))
    layout = draw(st.sampled_from([None, None, None, 0, 1, 2, 4, "\t"]))
    if layout is None:
        text = draw(written(value, BLANKS))
    else:
        colon = draw(st.sampled_from([":", ": ", " : "]))
        text = json.dumps(value, indent=layout, ensure_ascii=draw(st.booleans()), separators=(",", colon))
        text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return (draw(st.sampled_from(["", "\ufeff"])) + text + draw(LINE_ENDS)).encode()


def emptied(value: Any) -> Any:
    """``value`` without the containers on our path that hold nothing."""
    permissions = {key: part for key, part in value.get("permissions", {}).items() if (key, part) != ("allow", [])}
    hooks = {event: groups for event, groups in value.get("hooks", {}).items() if groups or event not in WIRED}
    left = {**value, "permissions": permissions, "hooks": hooks}
    return {key: part for key, part in left.items() if part or key not in ("permissions", "hooks")}


@given(settings_files(), st.booleans())
def test_installing_and_uninstalling_gives_the_same_bytes_whatever_the_layout(data: bytes, enforce: bool) -> None:  # noqa: FBT001
    text = parse(data, comments=False)
    words = [*WORDS, "--enforce"] if enforce else WORDS
    there = with_rules(with_hooks(text, HOSTS[CLAUDE_CODE], words), RULES)
    assert with_rules(with_hooks(there, HOSTS[CLAUDE_CODE], words), RULES) is there

    left = with_rules(without_hooks(parse(there.text.encode(), comments=False)), [])

    value = json.loads(data.decode("utf-8-sig"))
    assert left.value == emptied(value)
    assert left.text.encode() == data or emptied(value) != value or value == {}


@given(texts(SETTINGS, COMMENTS, comments=True))
def test_the_same_between_comments(text: JsonText) -> None:
    there = with_hooks(text, HOSTS["qwen-code"], WORDS)

    left = without_hooks(there)

    value = plain(text)
    hooks = value.get("hooks", {"Stop": [{}]})
    is_filled = value != {} and hooks != {} and all(hooks.get(event, [{}]) for event in WIRED)
    assert left.text == text.text or not is_filled


def on(text: str) -> JsonText:
    return parse(text.encode(), comments=True)


SPLICES: list[tuple[str, str, Callable[[JsonText], JsonText]]] = [
    ('{"a":1}', '{"a":1,"k":[2]}', lambda text: append_value(text, 0, [2], "k")),
    ('{"a": 1}', '{"a": 1, "k": [2]}', lambda text: append_value(text, 0, [2], "k")),
    ("[1, 2]", "[1, 2, 3]", lambda text: append_value(text, 0, 3)),
    ("[1,2]", "[1,2,3]", lambda text: append_value(text, 0, 3)),
    ("{}", '{\n  "k": 1\n}', lambda text: append_value(text, 0, 1, "k")),
    ("{\r\n}", '{\r\n  "k": 1\r\n}', lambda text: append_value(text, 0, 1, "k")),
    (
        '{\n\t"a": []\n}',
        '{\n\t"a": [\n\t\t{\n\t\t\t"b": 1\n\t\t}\n\t]\n}',
        lambda text: append_value(text, 8, {"b": 1}),
    ),
    ('{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "k": 2\n}', lambda text: append_value(text, 0, 2, "k")),
    ('{\n  "a": 1, // one\n  "b": 2\n}', '{\n  // one\n  "b": 2\n}', lambda text: remove_element(text, 0, 0)),
    ("[1, // one\n 2]", "[1 // one\n]", lambda text: remove_element(text, 0, 1)),
    ("[1 // one\n, 2]", "[// one\n2]", lambda text: remove_element(text, 0, 0)),
    ("[ 1 ]", "[]", lambda text: remove_element(text, 0, 0)),
    ("[ 1 /* x */ ]", "[ /* x */ ]", lambda text: remove_element(text, 0, 0)),
]


@table(("text", "wanted", "change"), SPLICES)
def test_a_change_looks_like_its_neighbours(text: str, wanted: str, change: Callable[[JsonText], JsonText]) -> None:
    assert change(on(text)).text == wanted
