"""The fast paths around ``json``: they give the same result as ``json``, or decline and leave the work to it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio import fast, strict
from tests.table import table

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=20,
)


LIMITS = (64, 1 << 63)


def too_large(value: object) -> bool:
    """Whether an integer in ``value`` needs more than 64 bits."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(too_large, inside)) or (isinstance(value, int) and not -LIMITS[1] <= value < LIMITS[1])


@given(VALUES, st.sampled_from([None, 2, 4]))
@example({}, 2)
@example([-(1 << 63), (1 << 63) - 1], None)
@example([1 << 63], None)
@example({"a": {"b": -(1 << 63) - 1}}, 2)
@example([], None)
@example({"a": [], "b": {}}, 2)
@example([[[]], {"": {"x": [1]}}], 2)
@example("\ud7ff\u2028\x7f\x00/", None)
@example([1e16, -0.0, 5e-324, 1e22, 123456789012345680.0], None)
def test_try_dumps_writes_the_text_of_json_or_declines_too_large_numbers(value: object, indent: int | None) -> None:
    expected = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    assert fast.try_dumps(value, indent, *LIMITS) == (None if too_large(value) else expected)


class Text(str):
    __slots__ = ()


@table(
    "value",
    [(1, 2), {1: "a"}, {None: 1}, {True: 1}, Text("a"), [Text("a")], {Text("a"): 1}, {"a": (1,)}, float("nan"), b"x"],
)
def test_try_dumps_declines_values_that_json_converts_or_refuses(value: object) -> None:
    assert fast.try_dumps(value, None, *LIMITS) is None


def test_try_dumps_declines_a_value_that_is_nested_far_too_deep() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert fast.try_dumps(deep, 2, *LIMITS) is None


@table("innermost", [[], {}, [1], {"a": 1}])
def test_try_dumps_writes_values_up_to_the_depth_limit_and_no_deeper(innermost: object) -> None:
    deep: Any = innermost
    for depth in range(1, LIMITS[0]):
        deep = [deep] if depth % 2 else {"a": deep}
    assert fast.try_dumps(deep, 2, *LIMITS) == json.dumps(deep, indent=2)
    assert fast.try_dumps([deep], None, *LIMITS) is None
    assert fast.try_dumps({"a": deep}, 2, *LIMITS) is None


def scanner() -> fast.Scanner:
    return fast.Scanner(dict, int, float, lambda name: name)


@given(VALUES, st.sampled_from(["", " ", "\n\t \r"]), st.sampled_from([None, 2]))
def test_the_scanner_reads_the_same_values_as_json(value: object, blanks: str, indent: int | None) -> None:
    text = blanks + json.dumps(value, indent=indent) + blanks
    found = scanner().read(text)
    assert (found, type(found)) == (value, type(value))


BROKEN = [
    "",
    " ",
    "{",
    "[1,]",
    '{"a" 1}',
    '{"a":1,}',
    "1 2",
    "nul",
    '"a',
    "\ufeff1",
    "'a'",
    '"\n"',
    '"\\x"',
    "[1}",
    "01",
    "-",
]


@table("text", BROKEN)
def test_the_scanner_declines_text_that_is_not_json(text: str) -> None:
    assert scanner().read(text) is fast.NOT_PARSED


@given(st.text(max_size=30))
def test_the_scanner_reads_exactly_the_texts_that_json_reads(text: str) -> None:
    found = scanner().read(text)
    try:
        expected = json.loads(text, object_pairs_hook=dict, parse_constant=lambda name: name)
    except ValueError:
        expected = fast.NOT_PARSED
    assert found is expected or found == expected


def test_errors_raised_by_the_callables_pass_through() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        strict.loads(b'{"a": 1, "a": 2}')
    with pytest.raises(InvalidInput, match="overflows"):
        strict.loads(b"[1e999]")


PROGRAM = """
import sys
{prepare}
from gaia_sessions.jsonio import strict
value = strict.loads(b'{{"a": [1, null], "b": {{}}}}')
assert strict.dumps(value) == b'{{\\n  "a": [\\n    1,\\n    null\\n  ],\\n  "b": {{}}\\n}}\\n'
for broken in (b'{{"a": 1,}}', b'"\\\\x"', b'[1', b'"a'):
    try:
        strict.loads(broken)
    except strict.errors.InvalidInput as error:
        assert "not JSON" in str(error), error
    else:
        raise SystemExit(f"{{broken}} was taken")
print("json" in sys.modules)
"""


def ran(prepare: str) -> str:
    """Returns whether a new interpreter has loaded ``json`` after it ran ``prepare`` and ``PROGRAM``."""
    program = PROGRAM.format(prepare=prepare)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_mistakes_are_explained_even_if_json_was_not_loaded_before() -> None:
    assert ran("") == "True\n"


def test_an_interpreter_without_the_json_accelerator_uses_the_json_package() -> None:
    assert ran("sys.modules['_json'] = None") == "True\n"


# Replaces the accelerator with the one of another interpreter; the json package keeps the real accelerator.
FAKE = """
import json, types, _json as real
fake = types.ModuleType("_json")
fake.make_scanner, fake.encode_basestring = real.make_scanner, real.encode_basestring
def scanner_of(context):
    {wants}
    return real.make_scanner(context)
def raising(*_):
    raise {error}
{change}
sys.modules["_json"] = fake
"""

OTHERS = {
    "needs the array hook of 3.15": ("assert context.array_hook is None", "", "fake.make_scanner = scanner_of"),
    "needs an unknown hook": ("context.tuple_hook", "", "fake.make_scanner = scanner_of"),
    "needs another argument": ("", "", "fake.make_scanner = lambda context, more: None"),
    "cannot be created": ("", "RuntimeError('no')", "fake.make_scanner = raising"),
    "cannot read": ("", "AttributeError('array_hook')", "fake.make_scanner = lambda context: raising"),
    "needs another argument to read": ("", "TypeError('memo')", "fake.make_scanner = lambda context: raising"),
    "has no scanner": ("", "", "del fake.make_scanner"),
    "has no quoting": ("", "", "del fake.encode_basestring"),
    "needs another argument to quote": ("", "TypeError('two arguments')", "fake.encode_basestring = raising"),
    "has nothing": ("", "", "del fake.make_scanner, fake.encode_basestring"),
}


@table(("wants", "error", "change"), OTHERS.values())
def test_an_interpreter_with_an_unusable_json_accelerator_uses_the_json_package(
    wants: str, error: str, change: str
) -> None:
    assert ran(FAKE.format(wants=wants or "pass", error=error or "SystemExit", change=change)) == "True\n"


def test_the_json_accelerator_of_python_3_15_is_used() -> None:
    wants, _, change = OTHERS["needs the array hook of 3.15"]
    prepare = FAKE.format(wants=wants, error="SystemExit", change=change)
    program = "import sys\n" + prepare + "from gaia_sessions.jsonio import fast, strict\n"
    program += "strict._parse_or_explain = None\nassert strict.loads(b'[{}]') == [{}]\n"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_valid_json_is_read_and_written_without_loading_the_json_package() -> None:
    program = (
        "import sys; from gaia_sessions.jsonio.strict import *; dumps(loads(b'[{}]')); print('json' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
