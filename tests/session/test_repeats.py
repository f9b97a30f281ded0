"""How many times an agent made the same call right before, with the same result."""

from __future__ import annotations

from typing import Any

from gaia_sessions.session.repeats import REFUSED_AFTER, SECONDS_OF_A_POLL, PastCall, row_before
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
        # the result of the call before it is not written yet
        ([OWN, past("a", result=None)], 0),
        ([OWN, past("a", result=None), *alike(1)], 0),
        ([OWN, past("a", result=None), *alike(2)], None),
        ([OWN, past("a", result=None), past("b", "pwd")], 0),
        # the call itself is not written yet, nor maybe the one before it
        ([], 0),
        (alike(1), 0),
        (alike(2), None),
        (alike(4), None),
        ([past("o", "pwd"), *alike(4)], 0),
    ],
)
def test_the_row_before_a_call_is_counted_and_none_where_what_is_missing_may_change_it(
    newest_first: list[PastCall], count: int | None
) -> None:
    assert row_before("own", newest_first) == count
