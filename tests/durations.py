"""The time of the tests of each folder: ``--durations-by-folder``."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

_began = pytest.StashKey[float]()
_KEY = "processor seconds"


class DurationsByFolder:
    """Measures each test in its worker, and adds up the reports of all workers."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        item.stash[_began] = _processor_seconds()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        item.user_properties.append((_KEY, _processor_seconds() - item.stash[_began]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = report.nodeid.partition("::")[0].split("/")
        row = self.rows[parts[1] if len(parts) > 2 else "tests"]
        row[1] += report.duration
        if report.when == "teardown":
            row[0] += 1
            row[2] += sum(used for key, used in report.user_properties if key == _KEY and isinstance(used, float))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("by folder: tests, seconds, processor seconds with those of children")
        rows = sorted(self.rows.items(), key=lambda row: -row[1][2])
        total = [sum(row[column] for _, row in rows) for column in range(3)]
        for name, (tests, wall, used) in [*rows, ("all", total)]:
            terminalreporter.write_line(f"{tests:6.0f} {wall:8.1f} {used:8.1f}  {name}")


def _processor_seconds() -> float:
    """The processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])
