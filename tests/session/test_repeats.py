"""Repeated calls: how many equal calls with equal results came directly before a call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gaia_sessions.hook import enforcement
from gaia_sessions.session import agent_limits, repeats
from gaia_sessions.session.repeats import REFUSED_AFTER, SECONDS_OF_A_POLL, PastCall, is_own_refusal, row_before
from tests.records import START, WHEN, record_with
from tests.table import table


def past(key: str, text: str = "ls", result: str | None = "ok", **more: Any) -> PastCall:
    keys = {"message": f"msg_{key}", "seconds": 0.0, "was_refused": False, **more}
    return PastCall(key=key, call_text=text, result=result, **keys)


def alike(number: int) -> list[PastCall]:
    return [past(f"c{place}") for place in range(number)]


OWN = past("own", result=None)
REFUSED = past("r", result="no", was_refused=True)


@table(
    ("newest_first", "count"),
    [
        ([OWN], 0),
        ([OWN, *alike(1)], 1),
        ([OWN, *alike(3)], 3),
        ([OWN, *alike(9)], REFUSED_AFTER),
        ([OWN, *alike(2), past("o", "pwd"), *alike(2)], 2),
        ([OWN, past("a", result="1"), past("b", result="2"), past("c", result="1")], 1),
        ([OWN, REFUSED, *alike(2), REFUSED, past("d")], 3),
        ([OWN, past("a"), past("b", seconds=SECONDS_OF_A_POLL), past("c")], 1),
        ([OWN, past("a", message="m"), past("b", message="m"), past("c")], 2),
        ([OWN, past("a", result=None, message="msg_own"), *alike(3)], 3),
        ([past("behind", "pwd"), OWN, *alike(3)], 3),
        # the result of the call before is not written yet
        ([OWN, past("a", result=None)], 0),
        ([OWN, past("a", result=None), *alike(1)], 0),
        ([OWN, past("a", result=None), *alike(2)], None),
        ([OWN, past("a", result=None), past("b", "pwd")], 0),
        # the call itself is not written yet, and maybe not the call before
        ([], 0),
        (alike(1), 0),
        (alike(2), None),
        (alike(4), None),
        ([past("o", "pwd"), *alike(4)], 0),
    ],
)
def test_equal_calls_before_a_call_are_counted_unless_missing_data_could_change_the_count(
    newest_first: list[PastCall], count: int | None
) -> None:
    assert row_before("own", newest_first) == count


def by_limit(**limits: Any) -> str | None:
    run = {"run": 1, "host": "claude-code", "started_at": WHEN}
    so_far = agent_limits.WorkSoFar(9, 900, (), has_call=True)
    one, most = record_with(run), agent_limits.AgentLimits(**limits)
    return agent_limits.refusal(one, one["runs"][0], so_far, most, START + timedelta(hours=1))


@table(
    "text",
    [
        repeats.refusal("Bash", cancels=False),
        repeats.refusal("Bash", cancels=True),
        by_limit(tokens=1),
        by_limit(rounds=1),
        by_limit(seconds=1.0),
        agent_limits.search_refusal(3),
        enforcement.unjudged(ValueError()).denied,
    ],
)
def test_each_refusal_by_gaia_sessions_is_recognized_by_its_text(text: str) -> None:
    assert is_own_refusal(text)


@table("text", ["", "Go on.", "Exit code 1", "Permission denied", "see Search budget exceeded (3/2)"])
def test_other_results_of_tools_are_not_recognized_as_refusals(text: str) -> None:
    assert not is_own_refusal(text)
