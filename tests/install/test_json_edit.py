"""Edits of JSON texts change only the wanted part, whatever the layout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.install.entries import with_hooks, without_hooks
from gaia_sessions.install.json_edit import append_value, remove_element, with_value
from gaia_sessions.install.json_text import JsonText, parse
from gaia_sessions.install.permission import with_rules, without_rules
from gaia_sessions.install.places import HOSTS
from tests.table import table

BLANKS = st.sampled_from(["", "", " ", "  ", "\n", "\n  ", "\r\n\t", "\n\n    "])
COMMENTS = st.sampled_from(
    ["", "", "", " ", "\n  ", " // one, two: {\n", " // \r\n\t", "/* [ */", "/* a\n b */", "//\n"]
)
KEYS = st.text('abc{}[],:"\\/é\u2028', max_size=4)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), KEYS)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
WORDS = ["/opt/bin/gaia-sessions-hook"]
RULES = ["Bash(/opt/bin/gaia-sessions update *)", "Bash(/opt/bin/gaia-sessions todo *)"]


@st.composite
def written(draw: st.DrawFn, value: Any, blanks: st.SearchStrategy[str]) -> str:
    """``value`` as JSON with blanks, and maybe comments, at every place that allows them."""

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
def test_an_appended_value_is_one_block_and_its_removal_restores_the_text(text: JsonText, value: Any) -> None:
    """Blanks between empty brackets are the only text that is lost."""
    key = None if isinstance(text.value, list) else "new"
    elements, close = text.elements(text.start)
    spot = len(text.text[:close].rstrip(" \t\r\n"))
    end = elements[-1].end if elements else spot
    is_kept = bool(elements) or text.has_comments(text.start)

    changed = append_value(text, text.start, value, key)

    assert members(changed) == [*members(text), (key, value) if key else value]
    assert changed.text.startswith(text.text[:end] + "," * bool(elements) + text.text[end:spot])
    assert changed.text.endswith(text.text[spot if is_kept else close :])

    back = remove_element(changed, text.start, len(elements))

    assert back.text == (text.text if is_kept else text.text[:spot] + text.text[close:])


def plain(text: JsonText) -> Any:
    """The value of ``text`` as the standard library reads it without the comments."""
    whole = text.text.removeprefix("\ufeff")
    return json.loads(STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", whole))


def members(text: JsonText) -> list[Any]:
    """The elements of an array, or the keys and values of an object."""
    value = plain(text)
    return value if isinstance(value, list) else list(value.items())


@given(EITHER, st.data())
def test_each_element_can_be_removed_and_other_comments_stay(text: JsonText, data: st.DataObject) -> None:
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
    """Settings as bytes: with or without a byte order mark, with any indentation, layout and end."""
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
    """``value`` without the empty containers that an installation would use."""
    permissions = {key: part for key, part in value.get("permissions", {}).items() if (key, part) != ("allow", [])}
    hooks = {event: groups for event, groups in value.get("hooks", {}).items() if groups or event not in WIRED}
    left = {**value, "permissions": permissions, "hooks": hooks}
    return {key: part for key, part in left.items() if part or key not in ("permissions", "hooks")}


Change = Callable[[JsonText], JsonText]
THINGS: list[tuple[Change, Change]] = [
    (lambda text: with_hooks(text, HOSTS[CLAUDE_CODE], WORDS), without_hooks),
    (lambda text: with_hooks(text, HOSTS[CLAUDE_CODE], [*WORDS, "--enforce"]), without_hooks),
    (lambda text: with_hooks(text, HOSTS["qwen-code"], WORDS), without_hooks),
    (lambda text: with_rules(text, RULES), without_rules),
]
ANY_SETTINGS = st.one_of(
    settings_files().map(lambda data: parse(data, comments=False)), texts(SETTINGS, COMMENTS, comments=True)
)
HOOKS_AND_RULES = st.tuples(st.sampled_from(THINGS[:-1]), st.just(THINGS[-1])).flatmap(st.permutations)


@given(ANY_SETTINGS, HOOKS_AND_RULES, st.booleans())
def test_hooks_and_rules_are_removed_in_any_order_and_leave_the_original_bytes(
    text: JsonText,
    things: list[tuple[Change, Change]],
    last_goes_first: bool,  # noqa: FBT001
) -> None:
    there = text
    for put_in, _ in things:
        there = put_in(there)
    assert all(put_in(there) is there for put_in, _ in things), "again, nothing is changed"

    left = parse(there.text.encode(), comments=text.comments)
    for _, take_out in reversed(things) if last_goes_first else things:
        left = take_out(left)

    value = plain(text)
    assert emptied(plain(left)) == emptied(value)
    if emptied(value) == value != {}:
        assert left.text == text.text
        rest = iter(there.text)
        assert all(sign in rest for sign in text.text), "all of it stayed, in its order"
    elif not text.comments:
        assert plain(left) == emptied(value)


def on(text: str) -> JsonText:
    return parse(text.encode(), comments=True)


SPLICES: list[tuple[str, str, Change]] = [
    ('{"a":1}', '{"a":1, "k": [2]}', lambda text: append_value(text, 0, [2], "k")),
    ("[1, 2]", "[1, 2, 3]", lambda text: append_value(text, 0, 3)),
    ("[\n\t1\n]", "[\n\t1,\n\t3\n]", lambda text: append_value(text, 0, 3)),
    ("{}", '{\n  "k": 1\n}', lambda text: append_value(text, 0, 1, "k")),
    ("{\r\n}", '{\r\n  "k": 1\r\n}', lambda text: append_value(text, 0, 1, "k")),
    (
        '{\n\t"a": []\n}',
        '{\n\t"a": [\n\t\t{\n\t\t\t"b": 1\n\t\t}\n\t]\n}',
        lambda text: append_value(text, 8, {"b": 1}),
    ),
    ('{\n  "a": [1]\n}', '{\n  "a": [1,\n    2]\n}', lambda text: append_value(text, 9, 2)),
    ('{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "k": 2\n}', lambda text: append_value(text, 0, 2, "k")),
    ('{\n  "a": 1, // one\n  "b": 2\n}', '{\n  // one\n  "b": 2\n}', lambda text: remove_element(text, 0, 0)),
    ("[1, // one\n 2]", "[1 // one\n ]", lambda text: remove_element(text, 0, 1)),
    ("[1 // one\n, 2]", "[// one\n 2]", lambda text: remove_element(text, 0, 0)),
    ("[ 1 ]", "[]", lambda text: remove_element(text, 0, 0)),
    ("[ 1 /* x */ ]", "[ /* x */ ]", lambda text: remove_element(text, 0, 0)),
    ('{"a": {}, "k": 1}', '{"a": { "b": {"c": [2]} }, "k": 1}', lambda text: with_value(text, ("a", "b", "c"), 2)),
]


@table(("text", "wanted", "change"), SPLICES)
def test_a_change_has_the_layout_of_its_neighbours(text: str, wanted: str, change: Change) -> None:
    assert change(on(text)).text == wanted
