"""``events``: what hosts told of a session, in its order; what cannot be read is named and hides nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gaia_sessions.cli.render.words import local_time

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

AT = "2026-01-08T18:05:30.123456Z"
EVIDENCE = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a1", "tool_use_id": "toolu_1"}
BEGUN = {"at": AT, "kind": "start", "run": 1, "phase": "investigating", "revision": 2, "evidence": EVIDENCE}
FAILED = {**BEGUN, "kind": "fail", "end": "failed", "detail": "API Error\x1b[31m\n529", "revision": 3}


def journal(root: str, *lines: bytes) -> None:
    Path(root, "a", "events.jsonl").write_bytes(b"".join(lines))


def line(entry: object) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def test_each_is_a_line_for_people_with_its_evidence(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), line(FAILED))

    keys = "host=claude-code, host_session_id=s, host_agent_id=a1, tool_use_id=toolu_1"
    code, out, err = gaia("events", "a").all

    first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert first == f"{local_time(AT)} start, run 1, phase investigating, {keys}"
    assert second.startswith(f"{local_time(AT)} fail, run 1, phase investigating, failed, API Error")
    assert second.endswith(keys)
    assert "\x1b" not in second


def test_as_json_they_are_an_array_of_the_entries_as_they_are(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), line(FAILED))

    assert gaia("events", "a", "--json").json == [BEGUN, FAILED]


def test_a_session_that_nobody_reported_has_none(gaia: Gaia, put: Gaia) -> None:
    put("a")

    assert gaia("events", "a").all == (0, "No events\n", "")
    assert gaia("events", "a", "--json").json == []


def test_a_bad_line_is_complained_of_and_hides_no_other(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), b"{torn\n", line(FAILED), b'{"at": "unfin')

    code, out, err = gaia("events", "a", "--json").all

    assert (code, json.loads(out)) == (0, [BEGUN, FAILED])
    assert "events.jsonl line 2" in err


def test_a_session_that_is_not_there_has_none_to_show(gaia: Gaia, tree: Gaia) -> None:
    before = tree()

    assert gaia("events", "nobody", "--json").error["code"] == "not_found"
    assert (gaia("events", "nobody").code, gaia("events", "../x").code) == (3, 7)
    assert tree() == before
