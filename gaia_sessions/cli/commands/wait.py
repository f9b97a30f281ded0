"""``wait``: wait until the work of sessions has ended."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, waiting
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.exit_codes import CODES_OF_REPORTS, EXIT_DONE
from gaia_sessions.cli.option_values import SECONDS
from gaia_sessions.cli.render import session_reports
from gaia_sessions.errors import CorruptSession, SessionNotFound, StoreFailure
from gaia_sessions.session import report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gaia_sessions.api.at import Place
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.api.waiting import Found, NoReport
    from gaia_sessions.cli.call import Call
    from gaia_sessions.cli.progress import Progress
    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.report import Report

_SEVERITY = [*CODES_OF_REPORTS]


@declare(
    "wait agent-123 --timeout 500ms || echo 'not in time'",
    "wait agent-123 agent-124 --any --timeout 0.5 || echo 'not yet'",
    "wait --children agent-123",
)
@click.argument("agent_ids", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--children", is_flag=True, help="Wait for all sessions below ID, also for new sessions, but not for ID itself."
)
@click.option("--any/--all", "first", default=False, help="Wait for the first session, or for all.  [default: --all]")
@click.option("--timeout", type=SECONDS, help="Wait at most this long: seconds, or 15m, 1h30m.  [default: no limit]")
def command(call: Call, agent_ids: tuple[str, ...], *, children: bool, first: bool, timeout: float | None) -> int:
    """Wait until the work of sessions has ended. Then print the state and the result of each session.

    Work has ended when the agent of the session has stopped, in any phase, or when the session is final or cancelled.
    So work has also ended when the agent stopped to ask you. Then `wait` exits with 0, and `gaia-sessions pending`
    shows the question. A cancelled session has ended even if its state is working. If an ID belongs to no session,
    `wait` says so at once, and waits for the others. On a terminal, `wait` shows which agents are still working, and
    which agents ask for a permission.

    If GAIA_SESSIONS_ROOT is the URL of a server, each ID can be there or in the project's own root. With --children,
    `wait` waits for all sessions below ID in both. If the server does not answer at the beginning, `wait` waits for
    the sessions of the project's own root, and then exits with 8.

    Exit codes, from best to worst: 0 success, 10 cancelled, 11 the work failed, 124 not ended in time, 3 not found.
    `wait` ends with the worst code; with --any, with 124 only if no work has ended. With --children also 6 or 8, if a
    session that may be below ID cannot be read. The exit code of the agent's own command is exit_code in --json.
    """
    found_in, unasked = _find(call, agent_ids)
    asked = [agent_id for _, agent_id in found_in]
    roots = call.both() if children else [*dict(found_in)]
    ids = _ids_below if children else _ids_there
    watched: dict[Place, Callable[[], list[str]]] = {root: partial(ids, root, found_in) for root in roots}
    with call.noticing_warnings():
        found = _wait(call, watched, first=first, timeout=timeout)
    reports = [found[agent_id][0] for agent_id in (found if children else asked)]
    unread = _unread(roots) if children else {}
    if children and not reports and not unread:
        hint = "to wait for the session itself, leave out --children"
        output.print_notice("nothing_below", f"no session is below {', '.join(asked)}", hint, as_json=call.as_json)
    if call.as_json:
        output.print_json_array(reports)
    else:
        output.print_lines(session_reports.wait_lines(reports))
    failed = output.print_failures([*unread], *[*unread.values()][:1], as_json=call.as_json)
    if unasked is not None:
        raise unasked
    return failed or (CODES_OF_REPORTS[_worst(reports, first=first)] if reports else EXIT_DONE)


def _find(call: Call, typed_ids: Iterable[str]) -> tuple[list[tuple[Sessions, str]], StoreFailure | None]:
    """Returns the root and the ID of each session; and the error, if the server that may have the others is silent."""
    found: list[tuple[Sessions, str]] = []
    unasked: StoreFailure | None = None
    for typed in typed_ids:
        try:
            found.append(call.find(typed))
        except StoreFailure as error:
            if any(root.folder is None for root in call.both()):  # there is no other root
                raise
            unasked = error
    if unasked is not None and not found:
        raise unasked
    return found, unasked


def _ids_there(root: Place, found_in: Iterable[tuple[Place, str]]) -> list[str]:
    """Returns the IDs that were found in ``root``."""
    return [agent_id for its_root, agent_id in found_in if its_root is root]


def _ids_below(root: Place, found_in: Iterable[tuple[Place, str]]) -> list[str]:
    """Returns what is below the named sessions in ``root``, also below sessions of the other root."""
    from gaia_sessions.api.families import ids_below

    below: list[str] = []
    for its_root, agent_id in found_in:
        try:
            below += at.read(root, ids_below, agent_id)
        except SessionNotFound:
            if its_root is root:
                raise
    return below


def _unread(roots: Iterable[Sessions]) -> dict[str, type[SessionsError]]:
    """Returns a message for each open session that cannot be read, with its error: perhaps the session is below ID."""
    kinds: dict[str, type[SessionsError]] = {"corrupt": CorruptSession, "unreadable": StoreFailure}
    return {
        f"{line['agent_id']} cannot be read (perhaps below a named session): {line['problem']}": kinds[line["status"]]
        for root in roots
        for line in root.list(active_only=True, every_app=True)
        if "problem" in line and line["status"] in kinds
    }


def _wait(
    call: Call, watched: Mapping[Place, Callable[[], list[str]]], *, first: bool, timeout: float | None
) -> Mapping[str, Found]:
    """Waits until the work in the ``watched`` roots has ended, with a line on a terminal; returns the reports."""
    progress, known = _progress([*watched]), set[str]()
    found: Mapping[str, Found] = {}
    try:
        for found in waiting.looks(watched, first=first, timeout=timeout):
            if new := found.keys() - known:
                if progress:
                    progress.clear()
                _say_at_once(call, [report for agent_id, (report, _) in found.items() if agent_id in new])
                known |= new
            elif progress:
                progress.show(found)
    finally:
        if progress:
            progress.clear()
    return found


def _progress(roots: Sequence[Place]) -> Progress | None:
    if not output.is_stderr_terminal():
        return None
    from gaia_sessions.cli.progress import Progress

    return Progress(roots)


def _say_at_once(call: Call, reports: Iterable[Report | NoReport]) -> None:
    """Prints a notice for each session that does not exist, or that perhaps never ends by itself."""
    for found in reports:
        agent_id = found["agent_id"]
        if found["status"] == waiting.NOT_FOUND:
            missing = SessionNotFound(agent_id)
            call.explain_missing(missing)
            output.print_notice(missing.code, str(missing), missing.hint, as_json=call.as_json)
        elif found["status"] == report.RUNNING and found["task_id"] is None and "state" in found:
            output.print_notice("not_started", *session_reports.not_started_notice(agent_id), as_json=call.as_json)


def _worst(reports: Sequence[Report | NoReport], *, first: bool) -> str:
    """Returns the worst status; with ``first``, running work counts only if no work has ended."""
    statuses = [found["status"] for found in reports]
    ended = [status for status in statuses if status != report.RUNNING]
    return max(ended if first and ended else statuses, key=_SEVERITY.index)
