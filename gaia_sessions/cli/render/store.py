"""What ``store`` did to the tables on a server, and what is there."""

from __future__ import annotations

from shlex import quote

from gaia_sessions.errors import plural
from gaia_sessions.system.project_root import ROOT_VARIABLE, is_on_server

from .words import Copyable, Prose, duration, local_time, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.api.copying import Copied
    from gaia_sessions.postgres.health import Info, Table, Timeline
    from gaia_sessions.postgres.setup import Changed

_INDENT = 12
_MOST_TABLES = 5
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_BYTES_OF_UNIT = 1024


def changed_lines(changed: Changed, root: str) -> Iterator[str]:
    """Yields what was done to the tables, and how long ``cleanup`` keeps sessions."""
    version, where = changed["schema"], safe(root, 500)
    if not changed["made"]:
        yield f"{where} has the tables of version {version} already"
    elif changed["made"][0] == 1:
        yield f"made the tables of version {version} in {where}"
    else:
        yield f"brought the tables in {where} from version {changed['made'][0] - 1} to version {version}"
    yield f"cleanup keeps open sessions with turns or an open question for {_days(changed['keep_days'])}"


def copied_lines(report: Copied, variable: str) -> Iterator[str]:
    """Yields what was moved and copied, what stayed and why, and how to use the target.

    variable: the value of ``GAIA_SESSIONS_ROOT``.
    """
    source, target = (safe(report[root], 500) for root in ("source", "target"))
    yield f"from {source} to {target}:"
    moved, copied, there = (len(report[name]) for name in ("moved", "copied", "already_there"))
    if moved or copied or not there:
        yield f"moved {plural(moved, 'open session')}, copied {plural(copied, 'ended session')}"
    if there:
        yield f"{plural(there, 'ended session')} had been copied before"
    if report["documents"]:
        yield f"moved the shared state of {plural(report['documents'], 'app or user', 'apps and users')}"
    if report["figures"]:
        yield f"copied the figures of {plural(report['figures'], 'removed session')}"
    if report["stayed"]:
        yield f"not moved: {plural(len(report['stayed']), 'open session')}"
        yield from (f"  {stayed['agent_id']}: {safe(stayed['reason'], 500)}" for stayed in report["stayed"])
        yield "When that has changed, type the same command again."
    if report["waiting"]:
        yield f"not copied: {plural(report['waiting'], 'event')} waiting in {source}"
    if (moved or copied) and variable != report["target"] and (variable or is_on_server(report["target"])):
        yield Copyable(f"export {ROOT_VARIABLE}={quote(target)}", "To use it from now on, type: ")


def info_lines(info: Info) -> Iterator[str]:
    """Yields a line for each fact; further lines of a fact are indented."""
    for name, text in _facts(info):
        yield Prose(f"{name:<{_INDENT}}{text}", _INDENT)


def _facts(info: Info) -> Iterator[tuple[str, str]]:
    yield "server", safe(f"{info['host']}, port {info['port']}", 500)
    yield "database", safe(f"{info['database']}, as the user {info['user']}", 500)
    yield "PostgreSQL", safe(info["postgresql"])
    yield "schema", f"version {info['schema']}"
    yield "sessions", f"{info['sessions']:,}, open: {info['open_sessions']:,}"
    if info["oldest"]:
        yield "oldest", f"began {local_time(info['oldest'])}"
    yield "cleanup", f"last at {local_time(info['last_cleanup'])}" if info["last_cleanup"] else "never"
    yield "size", _size(info["bytes"])
    for table in info["tables"][:_MOST_TABLES]:
        yield "", _table(table)
    others = info["tables"][_MOST_TABLES:]
    if others:
        yield "", f"{plural(len(others), 'other table')}: {_size(sum(table['bytes'] for table in others))}"
    yield "keep_days", f"{_days(info['keep_days'])}; `store init --keep-days N` changes it"
    for number, timeline in enumerate(info["timelines"]):
        yield "" if number else "timeline", _timeline(timeline, is_first=number == 0)
    if len(info["timelines"]) > 1:
        yield "", "a standby took over, or a backup was restored: sessions written before that may be lost"


def _table(table: Table) -> str:
    return f"{safe(table['table'])}: {_size(table['bytes'])}, about {plural(table['rows'], 'row')}"


def _timeline(timeline: Timeline, *, is_first: bool) -> str:
    seen = local_time(timeline["seen_at"])
    return f"{'' if is_first else 'changed to '}{timeline['timeline']}, first seen {seen}"


def _days(days: float) -> str:
    return duration(round(days * 86400), 2)


def _size(size: float) -> str:
    """Returns ``12.3 MiB``."""
    unit = 0
    while size >= _BYTES_OF_UNIT and unit < len(_UNITS) - 1:
        size, unit = size / _BYTES_OF_UNIT, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} bytes"
