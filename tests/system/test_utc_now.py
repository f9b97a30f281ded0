"""The current time."""

from __future__ import annotations

from datetime import UTC, datetime

from gaia_sessions.system import utc_now


def test_the_wall_clock_is_aware_and_utc() -> None:
    before = datetime.now(UTC)
    moment = utc_now()
    assert before <= moment <= datetime.now(UTC)
    assert moment.tzinfo is UTC
