"""Shared state: the scope of each key, and what a delta changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gaia_sessions.errors import InvalidInput, RevisionChanged, SessionFinal
from gaia_sessions.session.shared_keys import Delta, checked_owner, merged, with_delta, with_shared
from tests.records import record_with
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.shared_keys import Document, Scope

NOW = datetime(2026, 1, 8, 19, tzinfo=UTC)
OF_APP: Record = record_with(app="kb", user="u1", session_state={"user_id": "u1"})
KEYS = st.sampled_from(["a", "b", "c", "app:a", "user:a", "x:y"])
JSON = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text("aé:", max_size=5)
    | st.lists(st.booleans(), max_size=2)
)


@given(st.dictionaries(KEYS, JSON), st.dictionaries(KEYS, JSON), st.sets(KEYS))
def test_each_key_goes_where_its_prefix_says_and_nothing_else_changes(
    before: dict[str, Any], given_keys: dict[str, Any], cleared: set[str]
) -> None:
    cleared -= given_keys.keys()
    parts = Delta(given_keys, [*cleared]).parts(OF_APP)
    first = Delta(before).parts(OF_APP)
    documents: dict[Scope, Document | None] = {
        scope: with_shared(None, scope, first.get(scope, Delta())) for scope in (("kb",), ("kb", "u1"))
    }
    record = with_delta(record_with(app="kb", user="u1"), first.get((), Delta()), {}, NOW)
    after = with_delta(record, parts.get((), Delta()), {}, NOW)
    changed: dict[Scope, Document | None] = {
        scope: with_shared(old, scope, parts.get(scope, Delta())) for scope, old in documents.items()
    }
    assert merged(record, documents) == before
    assert merged(after, changed) == {key: one for key, one in {**before, **given_keys}.items() if key not in cleared}
    assert not any(key.startswith(("app:", "user:")) for key in after.get("session_state", {}))


def test_null_is_a_value_and_clearing_a_missing_key_does_nothing() -> None:
    after = with_delta(OF_APP, Delta({"intent": None}, ["domain_id", "user_id"]), {}, NOW)
    assert after["session_state"] == {"intent": None}


def test_an_increment_adds_to_a_whole_number_or_a_missing_key() -> None:
    assert with_delta(OF_APP, Delta(add={"n": 3}), {}, NOW)["session_state"] == {"user_id": "u1", "n": 3}
    shared = with_shared({"scope": ["kb"], "revision": 4, "state": {"n": 5}}, ("kb",), Delta(add={"n": -2}))
    assert shared == {"scope": ["kb"], "revision": 5, "state": {"n": 3}}
    others: list[Any] = ["1", 1.5, True, None, []]
    for value in others:
        with pytest.raises(InvalidInput, match=r"user:n: is .*, not a whole number"):
            with_shared(
                {"scope": ["kb", "u1"], "revision": 1, "state": {"n": value}}, ("kb", "u1"), Delta(add={"n": 1})
            )


@table("key", ["", " ", " a", "a ", "app:", "user: a", "x" * 257, "temp:x", "secret:token", "app:temp:x", "app:user:x"])
def test_an_invalid_key_or_a_key_that_is_never_stored_is_refused(key: str) -> None:
    for delta in ({"set": {key: 1}}, {"unset": [key]}, {"add": {key: 1}}):
        with pytest.raises(InvalidInput):
            Delta.of_document(delta)  # type: ignore[arg-type]  # is JSON


@table(
    "document",
    [
        [],
        {"sett": {}},
        {"set": []},
        {"unset": "intent"},
        {"unset": [1]},
        {"add": {"n": 1.5}},
        {"add": {"n": True}},
        {"set": {"a": 1}, "unset": ["a"]},
        {"set": {"a": 1}, "add": {"a": 1}},
        {"add": {"a": 1}, "unset": ["a"]},
        {"unset": ["a", "a"]},
    ],
)
def test_an_invalid_delta_is_refused(document: Any) -> None:
    with pytest.raises(InvalidInput):
        Delta.of_document(document)


def test_a_session_without_an_app_refuses_shared_keys() -> None:
    for key in ("app:x", "user:x"):
        with pytest.raises(InvalidInput, match="belongs to no app"):
            Delta({key: 1}).parts(record_with())


def test_if_keys_are_listed_no_other_key_and_no_other_type_can_be_set() -> None:
    types = {"intent": "str", "n": "int", "ratio": "number", "on": "bool", "urls": "list", "more": "dict", "any": "any"}
    values = {"intent": "x", "n": 1, "ratio": 1.5, "on": True, "urls": [], "more": {}, "any": None}
    state = with_delta(OF_APP, Delta({**values, "x:free": 1}), types, NOW)["session_state"]
    assert state == {"user_id": "u1", **values, "x:free": 1}
    wrong_types: list[tuple[str, Any]] = [
        ("intent", None),
        ("intent", 1),
        ("n", True),
        ("n", 1.5),
        ("ratio", False),
        ("on", 1),
        ("more", []),
    ]
    for key, wrong in wrong_types:
        with pytest.raises(InvalidInput, match=f"{key}: must be"):
            with_delta(OF_APP, Delta({key: wrong}), types, NOW)
    with pytest.raises(InvalidInput, match=r"url: is not a key of the setting state.keys"):
        with_delta(OF_APP, Delta({"url": "x"}), types, NOW)
    assert with_delta(OF_APP, Delta(unset=["user_id"]), types, NOW)["session_state"] == {}


def test_the_first_change_starts_a_session_of_an_app_and_no_other_session() -> None:
    for app, phase in ((True, "investigating"), (False, "initializing")):
        new = record_with(phase="initializing", resume_ready=False)
        new |= {"app": "kb", "user": "u1"} if app else {}
        assert with_delta(new, Delta({"a": 1}), {}, NOW)["phase"] == phase
    assert with_delta(record_with(phase="approval", app="kb", user="u"), Delta(), {}, NOW)["phase"] == "approval"


def test_a_change_with_a_wrong_revision_or_of_an_ended_session_is_refused() -> None:
    with pytest.raises(RevisionChanged):
        with_delta(OF_APP, Delta({"a": 1}), {}, NOW, OF_APP["revision"] + 1)
    with pytest.raises(SessionFinal):
        with_delta(record_with(phase="completed"), Delta({"a": 1}), {}, NOW)


def test_an_app_and_its_user_are_named_together_and_lose_surrounding_space() -> None:
    assert (checked_owner(" kb ", "u 1\n"), checked_owner(None, None)) == (("kb", "u 1"), (None, None))
    for names in (("kb", None), (None, "u"), ("", "u"), ("kb", " "), ("k" * 301, "u")):
        with pytest.raises(InvalidInput):
            checked_owner(*names)
