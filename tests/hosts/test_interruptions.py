"""Which texts of Claude Code mean an interruption, and when the limit in such a text is reset."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gaia_sessions.hosts.claude_code.interruptions import (
    end_in_transcript,
    in_transcript,
    interrupted_agents,
    keys_of_failure,
    reset_time,
)
from gaia_sessions.session.clock import parse_time
from tests.table import table

if TYPE_CHECKING:
    from pathlib import Path

    from gaia_sessions.session.schema import Run

NOW = datetime(2026, 11, 22, 12, 22, 20, tzinfo=UTC)
EARLY = "Agent terminated early due to an API error: "


@table(
    ("error", "text", "interruption"),
    [
        ("rate_limit", "You've hit your limit · resets 2:23pm (UTC)", "usage_limit"),
        ("rate_limit", "API Error: Request rejected (429) · This request would exceed ...", "usage_limit"),
        ("server_error", "API Error: 529 Overloaded. This is a server-side issue", "overloaded"),
        ("server_error", "API Error: Repeated 529 Overloaded errors.", "overloaded"),
        ("server_error", "API Error: Connection dropped (ECONNRESET). Check the gateway", "connection_lost"),
        ("server_error", "API Error: Unable to connect to API (ECONNRESET)", "connection_lost"),
        ("server_error", "API Error: 500 Internal server error", None),
        ("unknown", "API Error: 400 scripted 400", None),
        ("unknown", "API Error: 529 Overloaded.", None),
        (None, f"{EARLY}API Error: Repeated 529 Overloaded errors. (error type server_error)", "overloaded"),
        (None, f'Agent "Job alpha" failed: {EARLY}You\'ve hit your limit · resets 2:23pm (UTC)', "usage_limit"),
        (None, "You've hit your session limit · resets 2pm", "usage_limit"),
        (None, f"{EARLY}API Error: 400 scripted 400 (error type unknown, HTTP 400)", None),
        (None, "I report that the server was overloaded and answered 529 .", None),
        (None, 'Agent "x" failed: it said: You\'ve hit your limit', None),
        (None, "", None),
    ],
)
def test_only_the_clients_own_error_messages_count_as_interruptions(
    error: str | None, text: str, interruption: str | None
) -> None:
    assert keys_of_failure(error, text, None, NOW).get("interruption") == interruption


@table(
    ("text", "moment"),
    [
        ("resets 2:23pm (UTC)", "2026-11-22T14:23:00Z"),
        ("resets 2pm (UTC)", "2026-11-22T14:00:00Z"),
        ("resets 12:30am (UTC)", "2026-11-23T00:30:00Z"),
        ("resets 12:21pm (UTC)", "2026-11-22T12:21:00Z"),  # a minute ago, so today
        ("resets 12:17pm (UTC)", "2026-11-23T12:17:00Z"),
        ("resets 9:23am (America/New_York)", "2026-11-22T14:23:00Z"),
        ("resets Nov 24, 7:56pm (UTC)", "2026-11-24T19:56:00Z"),
        ("resets Jan 2, 7am (UTC)", "2027-01-02T07:00:00Z"),
        ("resets 2:23pm (Nowhere/At_All)", None),
        ("resets Feb 30, 7pm (UTC)", None),
        ("resets 2:75pm (UTC)", None),
        ("resets 3pm (../../etc/passwd)", None),
        ("resets 3pm ()", "2026-11-22T15:00:00Z"),
        ("resets soon", None),
        ("Request rejected (429)", None),
    ],
)
def test_the_reset_time_is_read_from_the_text(text: str, moment: str | None) -> None:
    found = reset_time(f"You've hit your limit · {text}", None, NOW)
    assert (found and parse_time(found)) == (moment and parse_time(moment))


@table(
    ("now", "text", "moment"),
    [
        ("2026-03-02T00:01Z", "11:59pm (UTC)", "2026-03-01T23:59Z"),  # just past, before midnight
        ("2027-01-01T00:01Z", "Dec 31, 11:59pm (UTC)", "2026-12-31T23:59Z"),  # just past, last year
        ("2026-03-01T10:00Z", "12am (UTC)", "2026-03-02T00:00Z"),  # midnight is tomorrow
        ("2028-02-28T10:00Z", "Feb 29, 3pm (UTC)", "2028-02-29T15:00Z"),  # a leap day
        ("2027-12-28T10:00Z", "Feb 29, 3pm (UTC)", "2028-02-29T15:00Z"),  # the leap day of next year
        ("2026-02-28T10:00Z", "Feb 29, 3pm (UTC)", None),  # no leap year
        ("2026-03-29T00:30Z", "2:30am (Europe/Berlin)", "2026-03-29T01:30Z"),  # the clock skips this time
        (
            "2026-10-25T00:10Z",
            "2:30am (Europe/Berlin)",
            "2026-10-25T00:30Z",
        ),  # the clock shows this time twice: the first
        (
            "2026-10-25T00:50Z",
            "2:30am (Europe/Berlin)",
            "2026-10-25T01:30Z",
        ),  # the clock shows this time twice: the second
        ("9999-12-31T23:00Z", "3pm (UTC)", None),  # after the last day
        ("9999-12-31T23:00Z", "3pm (Pacific/Kiritimati)", None),  # the last day has ended in this time zone
        ("0001-01-01T01:00Z", "Jan 1, 3pm (America/New_York)", None),  # before the first day
    ],
)
def test_the_reset_is_the_next_such_time_in_its_time_zone(now: str, text: str, moment: str | None) -> None:
    found = reset_time(f"You've hit your limit · resets {text}", None, parse_time(now))
    assert (found and parse_time(found)) == (moment and parse_time(moment))


def transcript(folder: Path, *lines: dict[str, Any]) -> str:
    file = folder / "agent-a1.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(file)


def test_the_exact_reset_time_in_the_transcript_overrides_the_text(talks: Path) -> None:
    line = {"error": "rate_limit", "apiErrorParams": {"rate_limit_info": {"resetsAt": 1795357339}}}
    found = reset_time("resets 2:22pm (UTC)", transcript(talks, {"type": "user"}, line), NOW)
    assert found == "2026-11-22T14:22:19.000000Z"


@table("seconds", [1795357339000, 253402300799, 10**400, -(10**18), 0, True, "1795357339", None, [], 1e300])
def test_an_impossible_reset_time_in_the_transcript_is_ignored(seconds: object, talks: Path) -> None:
    line = {"apiErrorParams": {"rate_limit_info": {"resetsAt": seconds}}}
    found = reset_time("resets 2:22pm (UTC)", transcript(talks, line), NOW)
    assert found == "2026-11-22T14:22:00.000000Z"


SAID = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
}
IN_TOOL = {"type": "user", "message": {"content": "[Request interrupted by user for tool use]"}}
ELSE = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Report of alpha."}]}}


@table(
    ("lines", "stopped", "interruption"),
    [
        ([ELSE, SAID], False, "interrupted"),
        ([IN_TOOL], False, "interrupted"),
        ([SAID], True, "stopped_by_user"),
        ([SAID, ELSE], False, None),
        ([{**SAID, "type": "assistant"}], False, None),
        ([ELSE], True, None),
        ([], False, None),
        ([{"message": []}], False, None),
    ],
)
def test_the_last_line_of_a_transcript_shows_an_interruption(
    talks: Path, lines: list[dict[str, Any]], interruption: str | None, *, stopped: bool
) -> None:
    path = transcript(talks, *lines)
    (talks / "agent-a1.meta.json").write_text(json.dumps({"stoppedByUser": stopped}), encoding="utf-8")

    keys = {"interruption": interruption} if interruption else {}
    assert in_transcript(path) == keys
    assert list(interrupted_agents(str(talks))) == ([("a1", keys)] if interruption else [])


def test_an_interruption_before_a_run_does_not_end_that_run(talks: Path) -> None:
    path = transcript(talks, {**SAID, "timestamp": "2026-11-22T13:49:42.750Z"})
    run: Run = {"run": 2, "transcript_path": path}
    end = ("killed", {"detail": "interrupted", "interruption": "interrupted"})

    assert in_transcript(path) == {"interruption": "interrupted", "interrupted_at": "2026-11-22T13:49:42.750000Z"}
    assert end_in_transcript({**run, "started_at": "2026-11-22T13:49:42.751000Z"}) is None
    assert end_in_transcript({**run, "started_at": "2026-11-22T13:49:42.750000Z"}) == end
    assert end_in_transcript(run) == end


@table("content", [b"", b"\n\n", b"\xff\xfe", b"[" * 70_000, b'{"message": 7}\n'])
def test_a_malformed_transcript_shows_no_interruption(talks: Path, content: bytes) -> None:
    talks /= content[:2].hex() or "empty"
    talks.mkdir()
    (talks / "agent-a1.jsonl").write_bytes(content)
    (talks / "agent-b.jsonl").mkdir()
    (talks / "agent-c.jsonl").symlink_to("/etc/passwd")

    assert list(interrupted_agents(str(talks))) == []
    assert list(interrupted_agents(str(talks / "missing"))) == []
