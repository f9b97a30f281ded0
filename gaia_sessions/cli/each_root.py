"""What ``cleanup`` and ``reconcile`` have in common: they work on the server in the variable and on the own root.

If one root fails, the other is still done.
"""

from __future__ import annotations

from collections import Counter
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

_LONGEST = 500


def do_in_each(call: Call, act: Callable[[Sessions], Report], lines: Lines) -> int:
    """Prints what ``act`` reports for each root, as one document or as ``lines``; raises the error of a root."""
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
        output.print_json(reduce(_joined, reports.values()))
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


def _joined(first: Report, second: Report) -> Report:
    """Returns one report: the lists of both joined, the numbers of sessions added, other values of ``first``."""
    joined = {**first}
    for key, value in second.items():
        if isinstance(value, list):
            joined[key] = [*first[key], *value]
        elif key == "recent":
            joined[key] = first[key] + value
        elif key == "left_out":
            joined[key] = {**(Counter(first.get(key, {})) + Counter(value))}
    return joined
