"""The report on a session. Its latest messages come from the transcript, or else from the host's file."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from gaia_sessions import hosts
from gaia_sessions.session.budget import usage_of
from gaia_sessions.session.phases import is_failure
from gaia_sessions.session.record import check_readable
from gaia_sessions.session.report import RECENT_MESSAGES, Findings
from gaia_sessions.session.report import report as report_of
from gaia_sessions.session.runs import is_own_run, is_send
from gaia_sessions.session.schema import MARKER_DETAIL
from gaia_sessions.session.transcript import readable
from gaia_sessions.store import has_messages

from .standing import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias, TypedDict

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.report import RecentMessage, Report
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.transcript import NewMessage
    from gaia_sessions.store.port import Reader

    from .at import Reading
    from .standing import Standing

    ReportOn: TypeAlias = Callable[[str], tuple[Report, Standing]]

    class ReportOnTurn(TypedDict):
        """The usage and the report of a session after a turn."""

        usage: TokenUsage
        report: Report


_END_OF_FILE = 1 << 18
"""How many bytes at the end of a host's file are read for the latest messages: a file may have many MB."""


def report(at: Reading, agent_id: str) -> Report:
    """Returns [the report](commands.md#reports-and-waiting) on the work of a session.

    Example:
        agent_id = sessions.create("reviewer")
        sessions.finalize(agent_id, "completed", "no issue found")
        print(sessions.report(agent_id)["result"])
    """
    return report_and_standing(at, agent_id)[0]


def report_and_standing(at: Reading, agent_id: str) -> tuple[Report, Standing]:
    """Returns the ``report`` and the ``Standing`` of the session."""
    return reporter(at)(agent_id)


def reporter(at: Reading) -> ReportOn:
    """Returns a function that reports on sessions as they are now; all its calls read the inbox only once."""
    from gaia_sessions.store.above import Above

    sessions, now, config = at.preview(), at.now, at.config
    above = Above(sessions)

    def report_on(agent_id: str) -> tuple[Report, Standing]:
        record = sessions.read(agent_id)
        check_readable(record)
        messages = latest_messages(sessions, record)
        found = standing(above.cancellation, record, now, config.limits)
        findings = Findings(messages, found.decision.get("cancellation"), found.dead_runs, why_failed(record))
        told = report_of(record, findings, now, config.limits_tokens)
        return {**told, **found.state, **above.trace(record)}, found

    return report_on


def output_of(at: Reading, agent_id: str) -> bytes:
    """Returns the stored output of the latest run of a command; raises ``Conflict`` if there was none."""
    record = at.store.read(agent_id)
    check_readable(record)
    for run in reversed(record.get("runs", ())):
        if is_own_run(run) and not is_send(run):
            return at.store.output(record, run["run"])
    from gaia_sessions.errors import Conflict  # hooks load this module

    hint = f"`gaia-sessions report {agent_id}` prints its result"
    raise Conflict(f"session {agent_id!r} has no run of a command, so no output is stored", hint)


def report_on_turn(at: Reading, record: Record, messages: Sequence[NewMessage]) -> ReportOnTurn:
    """Returns the usage and the report of ``record``, which was just written with ``messages``."""
    from gaia_sessions.store.above import Above

    # Reads no file but the marks, which raise nothing: after a turn is stored, nothing may fail.
    stands = standing(Above(at.store).cancellation, record, at.now, at.config.limits)
    latest = [as_recent(message) for message in messages[-RECENT_MESSAGES:]]
    findings = Findings(latest, stands.decision.get("cancellation"), stands.dead_runs, "")
    told = {**report_of(record, findings, at.now, at.config.limits_tokens), **stands.state}
    return {"usage": usage_of(record, at.now, at.config.limits_tokens), "report": told}  # type: ignore[typeddict-item]  # its keys


def latest_messages(sessions: Reader, record: Record) -> list[RecentMessage]:
    """Returns the latest messages of the session, the oldest of them first."""
    if has_messages(sessions, record):
        newest_first = readable(sessions.messages_backwards(record["agent_id"]))
        return [as_recent(message) for message in islice(newest_first, RECENT_MESSAGES)][::-1]
    latest: list[NewMessage] = []
    with suppress(OSError):  # the messages read before stay
        for run in record.get("runs", [])[-1:]:
            found = hosts.messages_newest_first(run, _END_OF_FILE)
            latest.extend(message for _, message in islice(found, RECENT_MESSAGES))
    return [as_recent(message) for message in reversed(latest)]


def why_failed(record: Record) -> str:
    """Returns the words after the marker with which the latest agent failed its work; empty without one."""
    runs = record.get("runs", [])
    run: Run = runs[-1] if runs else {}
    is_stated = run.get("detail") == MARKER_DETAIL and run.get("reported") == record["phase"]
    if not is_stated or not is_failure(record["phase"]):
        return ""
    from gaia_sessions.hosts.marker import read_why  # few agents fail their work by a marker

    return read_why(run.get("last_message", ""))


def as_recent(message: NewMessage) -> RecentMessage:
    return {
        "role": message["role"],
        "content": message["content"],
        "tool_name": message.get("tool_name"),
        "tool_call_id": message.get("tool_call_id"),
    }
