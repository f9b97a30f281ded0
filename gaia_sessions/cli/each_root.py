"""What ``cleanup`` and ``reconcile`` have in common: they work on the server in the variable and on the own root.

If one root fails, the other is still done.
"""

from __future__ import annotations

from functools import reduce

from gaia_sessions.errors import SessionsError

from . import output
from .render.words import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    from gaia_sessions.api.sessions import Sessions

    from .call import Call

    Report: TypeAlias = Mapping[str, Any]
    Lines = Callable[[Any], Iterable[str]]
    Join = Callable[[Report, Report], Report]

_LONGEST = 500


def do_in_each(call: Call, act: Callable[[Sessions], Report], lines: Lines, join: Join) -> int:
    """Prints what ``act`` reports for each root, as ``lines``, or ``join``ed as JSON; raises the error of a root."""
    reports: dict[str, Report] = {}
    refused: list[SessionsError] = []
    for root in call.both():
        try:
            reports[root.root] = act(root)
        except SessionsError as error:
            refused.append(error)
    if not call.as_json:
        _print(reports, lines, is_named=len(call.both()) > 1)
    elif reports:
        output.print_json(reduce(join, reports.values()))
    reasons = [failed["reason"] for report in reports.values() for failed in report["failed"]]
    code = output.print_failures(reasons, as_json=call.as_json)
    for other in refused[1:]:
        output.print_failures([str(other)], type(other), as_json=call.as_json)
    if refused:
        raise refused[0]
    return code


def _print(reports: Mapping[str, Report], lines: Lines, *, is_named: bool) -> None:
    for root, report in reports.items():
        output.keep_whole(root)
        told = [*lines(report)]
        output.print_lines([f"in {safe(root, _LONGEST)}:", *told] if told and is_named else told)


def with_lists_joined(first: Report, second: Report) -> Report:
    """Returns ``first``, its lists joined with those of ``second``."""
    return {key: [*value, *second[key]] if isinstance(value, list) else value for key, value in first.items()}
