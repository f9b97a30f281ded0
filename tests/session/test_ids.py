"""IDs of sessions, file names of keys, random digits and digests."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from string import ascii_letters, digits
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidId
from gaia_sessions.session.ids import (
    bytes_made_of,
    check_agent_id,
    encode_key,
    fold_id,
    is_agent_id,
    is_generated_id,
    is_hex,
    new_agent_id,
    quick_digest,
    random_hex,
    short_digest,
)
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = [
    "a",
    "7",
    "agent-123",
    "agent-20260108-180530-abc12345",
    "A.b_c-D",
    "a.b.c",
    "a-",
    "a_",
    "console",
    "com",
    "com10",
    "lpt",
    "a.con",
    "nul-1",
    "x" * 128,
]

NO_SUCH_CHARACTER = "has a character other than letters, digits, . _ -"
BEGINS_BADLY = "does not begin with a letter or digit"
DOTS = "has two dots in a row or one at the end"
DEVICE = "is a device name on Windows"

BAD: list[tuple[object, str]] = [
    (None, "not a string"),
    (7, "not a string"),
    (True, "not a string"),
    (b"agent-1", "not a string"),
    (["agent-1"], "not a string"),
    ("", "empty"),
    ("x" * 129, "longer than 128 characters"),
    ("a/b", NO_SUCH_CHARACTER),  # slash
    ("/etc/passwd", NO_SUCH_CHARACTER),  # absolute path
    ("../../x", NO_SUCH_CHARACTER),  # path to a folder above
    ("a\\b", NO_SUCH_CHARACTER),  # backslash
    ("a b", NO_SUCH_CHARACTER),  # space
    ("agent-1\n", NO_SUCH_CHARACTER),  # newline at the end
    ("a\0b", NO_SUCH_CHARACTER),  # NUL
    ("a:b", NO_SUCH_CHARACTER),  # colon
    ("ärger", NO_SUCH_CHARACTER),  # umlaut
    ("аgent", NO_SUCH_CHARACTER),  # letter of another script  # noqa: RUF001  # a Cyrillic a
    ("agent-٣", NO_SUCH_CHARACTER),  # digit of another script
    ("a\ud800", NO_SUCH_CHARACTER),  # lone surrogate
    ("~", NO_SUCH_CHARACTER),  # tilde
    (".locks", BEGINS_BADLY),  # hidden
    (".", BEGINS_BADLY),
    ("..", BEGINS_BADLY),  # two dots
    ("-rf", BEGINS_BADLY),  # option
    ("_a", BEGINS_BADLY),  # underscore first
    ("a..b", DOTS),  # two dots inside
    ("a.", DOTS),  # dot at the end
    ("con", DEVICE),
    ("CON", DEVICE),
    ("nul.txt", DEVICE),
    ("Aux.tar.gz", DEVICE),
    ("prn", DEVICE),
    *((f"{port}{digit}", DEVICE) for port in ("com", "LPT") for digit in digits),
]


@table("value", GOOD)
def test_a_good_id_is_returned_as_it_is(value: str) -> None:
    assert (check_agent_id(value), is_agent_id(value)) == (value, True)


@table(("value", "problem"), BAD)
def test_an_impossible_id_is_refused_with_the_rule_it_breaks(value: object, problem: str) -> None:
    with pytest.raises(InvalidId) as caught:
        check_agent_id(value)
    assert (caught.value.value, str(caught.value).split(" is not a session ID: ")[1]) == (value, problem)
    assert not is_agent_id(value)


_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_DEVICE_NAME = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\..*)?", re.ASCII | re.IGNORECASE)


@given(st.one_of(st.text(), st.text(ascii_letters + digits + "._-", max_size=140)))
@example("com1.x")
def test_an_id_is_accepted_exactly_when_the_documented_rule_holds(value: str) -> None:
    holds = bool(_RULE.fullmatch(value)) and not value.endswith(".") and ".." not in value
    assert is_agent_id(value) == (holds and not _DEVICE_NAME.fullmatch(value))


@table(
    ("moment", "chance", "made"),
    [
        (
            datetime(2026, 1, 8, 18, 5, 30, 999999, tzinfo=UTC),
            b"\xab\xc1\x23\x45",
            "agent-20260108-180530-abc12345",
        ),  # UTC; the fraction is cut
        (
            datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2))),
            b"\0\0\0\x01",
            "agent-20251231-223000-00000001",
        ),  # another zone is converted to UTC; zeros stay
    ],
)
def test_a_generated_id_contains_the_time_in_utc_and_random_digits(moment: datetime, chance: bytes, made: str) -> None:
    assert new_agent_id(moment, lambda size: chance[:size]) == made


@given(st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)), st.binary(min_size=4, max_size=4))  # noqa: DTZ001
def test_a_generated_id_is_valid_and_has_the_documented_form(moment: datetime, chance: bytes) -> None:
    made = new_agent_id(moment, lambda size: chance[:size])
    assert check_agent_id(made) == made
    assert re.fullmatch(r"agent-[0-9]{8}-[0-9]{6}-[0-9a-f]{8}", made)


@given(st.text(ascii_letters + digits + "._-"))
def test_ids_that_differ_only_in_case_fold_into_one(agent_id: str) -> None:
    assert fold_id(agent_id.upper()) == fold_id(agent_id.lower()) == fold_id(fold_id(agent_id))


@table(
    ("parts", "name"),
    [
        (("explore",), "explore"),  # a plain word stays
        (("a-b_c-1",), "a-b_c-1"),  # dash and underscore stay
        (("Explore",), "%45xplore"),  # an upper-case letter is escaped: names do not depend on case
        (("a.b",), "a%2eb"),  # a dot is escaped: it separates parts
        (("a", "b"), "a.b"),  # two parts
        (("%45",), "%2545"),  # a percent sign is escaped
        (("a/b\n:",), "a%2fb%0a%3a"),  # path separator, newline and colon
        (("é",), "%c3%a9"),  # UTF-8, byte by byte
        (("\ud800",), "%ed%a0%80"),  # half of a surrogate pair
        (("",), "%"),  # an empty part has a name too
        (("", ""), "%.%"),  # two empty parts
        (("x" * 200,), "x" * 200),  # 200 characters stay whole
        (
            ("x" * 201,),
            "x" * 100 + "+" + "84a0678c90937f5dcf9994d5866668da6b995109c8ad845410559b48a4ecafed",
        ),  # of 201 the beginning stays, and a SHA-256 follows
    ],
)
def test_a_key_becomes_a_readable_file_name(parts: tuple[str, ...], name: str) -> None:
    assert encode_key(*parts) == name


@given(st.integers(0, 20).map(lambda half: 2 * half))
def test_random_hex_gives_as_many_hexadecimal_digits_as_asked_for(length: int) -> None:
    made = random_hex(length, lambda size: b"\xfe" * size)
    assert made == "fe" * (length // 2)
    assert is_hex(made, length)


@table("text", ["", "abc", "abcde", "ABCD", "abcg", "ab-d", "abc\n", "\u0660123"])
def test_a_text_of_another_length_or_with_another_character_is_not_hexadecimal(text: str) -> None:
    assert not is_hex(text, 4)


def test_a_short_digest_is_the_beginning_of_the_sha_256() -> None:
    assert short_digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223"


@pytest.mark.parametrize("letters", [str, str.upper, str.title])
@given(st.datetimes(min_value=datetime(1900, 1, 1)), st.binary(min_size=4, max_size=4))  # noqa: DTZ001  # UTC below
def test_every_generated_id_is_recognized_in_upper_and_lower_case(
    letters: Callable[[str], str], moment: datetime, chance: bytes
) -> None:
    assert is_generated_id(letters(new_agent_id(moment.replace(tzinfo=UTC), lambda size: chance[:size])))


@table(
    "agent_id",
    [
        "",
        "agent",
        "agent-123",
        "agent-20260108-180530",
        "agent-20260108-180530-",
        "agent-20260108-180530-abc1234",
        "agent-20260108-180530-abc123456",
        "agent-20260108-180530-abc1234g",
        "agent-2026010x-180530-abc12345",
        "agent-20260108-18053x-abc12345",
        "agent-20260108-180530-abc12345-2",
        "agents-20260108-180530-abc12345",
        "event-20260108-180530-abc12345",
        "20260108-180530-abc12345",
    ],
)
def test_an_id_of_another_form_is_not_a_generated_id(agent_id: str) -> None:
    assert not is_generated_id(agent_id)


_ANY_TEXT = st.text(st.characters(), max_size=30)
_KEYS = st.lists(
    st.one_of(
        _ANY_TEXT,
        st.text("aA.%+-", max_size=4),
        st.builds(str.__mul__, st.text(st.characters(), min_size=1, max_size=5), st.integers(20, 200)),
    ),
    min_size=1,
    max_size=3,
)


@given(_KEYS)
@example(["\ud800" * 300])
@example(["", "", ""])
def test_any_key_becomes_a_name_that_every_file_system_takes(parts: list[str]) -> None:
    name = encode_key(*parts)
    assert re.fullmatch(r"[a-z0-9_%.+-]+", name)
    assert len(name.encode()) <= 255
    assert name not in {".", ".."}


@given(st.lists(_KEYS, min_size=2, max_size=6, unique_by=tuple))
@example([["a", "b"], ["a.b"], ["a%2eb"], ["a", "", "b"]])
@example([["A"], ["a"], ["%41"]])
@example([["x" * 300], ["x" * 301], ["x" * 150, "x" * 150]])
@example([[""], ["%"], ["", ""]])
def test_different_keys_have_different_names_even_if_case_is_ignored(keys: list[list[str]]) -> None:
    names = {encode_key(*parts).casefold() for parts in keys}
    assert len(names) == len(keys)


def test_ids_made_from_a_text_are_reproducible_and_all_different() -> None:
    now, texts = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC), [f"2026-01-08 h1 a{number} start" for number in range(50)]

    made, again = ([[new_agent_id(now, make) for _ in range(3)] for make in map(bytes_made_of, texts)] for _ in (1, 2))

    assert made == again
    assert len({agent_id for ids in made for agent_id in ids}) == 150
    assert all(is_generated_id(agent_id) for ids in made for agent_id in ids)


@table("form", ["toolu_{:08}", "agent-{}", "2026-01-08T18:05:30.{:06}Z s a None start", "{:06x}"])
def test_texts_that_differ_in_a_number_have_different_digests(form: str) -> None:
    assert len({quick_digest(form.format(number)) for number in range(100_000)}) == 100_000
