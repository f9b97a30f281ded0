"""What a process remembers of the leases of runs on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.system import leases

if TYPE_CHECKING:
    import pytest


def test_a_process_forgets_leases_that_it_has_not_seen_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_seen", {})
    names = [f"lease-{number}" for number in range(30_000)]
    for lease in names:
        leases.note([names[0], lease], {lease: (True, 0.0)})
        assert leases.is_valid(lease) is True
    known = [lease for lease in names if leases.is_valid(lease) is not None]
    assert known[0] == names[0]
    assert known[1:] == names[-len(known) + 1 :]
    assert 5_000 < len(known) <= 10_002
