"""The head of a record, read without decoding it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gaia_sessions.session.record import encode
from gaia_sessions.session.record_head import HEAD_KEYS, head_of
from tests.session.test_record import AGENT, USERS_SAMPLE, sample
from tests.table import table

_HEADS: list[tuple[dict[str, Any], bool]] = [
    ({"parent_id": "root", "continues": "it", "app": "mail", "user": "ann"}, True),
    ({"metadata": {"last_updated": "x", "parent_id": ["x"], "app": {"app": "x"}}}, True),
    ({"purpose": '\n  "phase": "failed"\n  "app": "x",\n}\n'}, True),
    ({"app": '"', "user": "ann"}, False),
    ({"agent_id": "another"}, False),
    ({"app": "", "user": "ann"}, False),
    ({"schema": 2}, False),
    ({"schema": 10}, False),
    ({"last_updated": "yesterday"}, False),
    ({"phase": None}, False),
]


@table("changed, found", _HEADS)
def test_the_head_says_what_the_record_says_or_nothing(changed: dict[str, Any], found: bool) -> None:  # noqa: FBT001  # a row
    record: Any = sample(**changed)
    head = {key: record[key] for key in ("agent_id", "schema", *HEAD_KEYS) if key in record}
    updated = datetime(2026, 1, 8, 18, 10, 15, tzinfo=UTC)

    heads = [head_of(encode(record), AGENT, since) for since in (None, updated - timedelta(seconds=1), updated)]

    assert heads == ([head, head, None] if found else [None, None, None])


@table("data", [USERS_SAMPLE, encode(sample())[:-2], b""])  # type: ignore[arg-type]  # a record
def test_what_is_not_in_the_written_form_has_no_head(data: bytes) -> None:
    assert head_of(data, AGENT, None) is None
