"""Reporting by sub-agents: the permission rule for the command, and the setting that names the command to them.

Owns the text of the rule, and the line ``report_command = true`` under ``[hooks]`` of its settings: it is added without
changing another byte, and stays as long as one settings file that relies on it has the rule. Claude Code 2.1.197 and
2.1.330 allow what begins like the rule, and refuse it when another command, a redirection or a nested command is added;
both ignore the rules of a project until its folder is trusted.
"""

from __future__ import annotations

import re

from gaia_sessions import config
from gaia_sessions.errors import BadSetting, SessionsError, StoreFailure
from gaia_sessions.hook.messages import UPDATE, find_program, update_command
from gaia_sessions.hosts.settings import USER
from gaia_sessions.store import external_file

from . import backups
from .backups import LIMIT, Backup
from .changes import CREATED_FOLDERS, Change, created_folders
from .entries import has_rule
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hosts.settings import HostSettings

    from .places import Places

RULES, SETTING = "rules", "setting"
"""Keys in the note of a backup: the rules that were added, and the file whose setting was turned on."""

_KEY = "report_command"
_LINE = f"{_KEY} = true"
_HEADER = re.compile(r"^[ \t]*\[[ \t]*hooks[ \t]*\][ \t]*(?:#[^\r\n]*)?(?:\r?\n|$)", re.MULTILINE)
_SETTING_LINE = re.compile(rf"^{_LINE}(?:\r?\n|$)", re.MULTILINE)
_REPORT_RULE = re.compile(rf"Bash\((?:.*/)?gaia-sessions'? {UPDATE} \*\)")
_FORBIDDEN_IN_RULE = frozenset("()*\\:\n\r")


def permission_rule() -> str:
    """The permission rule for the reporting command only; raises ``StoreFailure`` if a rule cannot name it."""
    path = find_program()
    if path is None:
        raise StoreFailure(
            "name the command", "gaia-sessions", "it is not installed beside this interpreter", "install it there"
        )
    if _FORBIDDEN_IN_RULE.intersection(path):
        raise StoreFailure(
            "name the command", path, "its path contains a character with a special meaning in a rule", "move it"
        )
    return f"Bash({update_command(path)} *)"


def is_report_rule(rule: object) -> bool:
    """Whether ``rule`` allows the reporting command, of this or of another installation."""
    return isinstance(rule, str) and _REPORT_RULE.fullmatch(rule) is not None


def plan_turning_on(places: Places, host: HostSettings, scope: str) -> tuple[str | None, list[Change]]:
    """The changes that turn the setting on, and the file it is in; None for the file if the user turned it on.

    Raises ``BadSetting`` if the file turns the setting off, or has no place for the line.
    """
    path = config.user_file(places.variables) if scope == USER else config.project_file(places.root)
    data = external_file.read(path, LIMIT)
    after = with_report_setting(path, data)
    if after == data:
        return (path if backups.find(places.state, path) else None), []
    folders = created_folders(path, places.files_of(host), places.state)
    return path, [Change(path, data, after, Backup.of(data, data, after, {CREATED_FOLDERS: list(folders)}))]


def plan_turning_off(places: Places, host: HostSettings, scope: str, path: str | None) -> list[Change]:
    """The changes that turn off the setting in ``path`` for ``scope``; none if another scope relies on it."""
    others = (other for other in host.files if other != scope)
    if path is None or any(_needs_setting(places, host, other, path) for other in others):
        return []
    data, backup = external_file.read(path, LIMIT), backups.find(places.state, path)
    if data is None or backup is None:
        return []
    after = backup.after_uninstall if backup.is_untouched(data) else without_report_setting(path, data)
    return [Change(path, data, after, created=backup.texts(CREATED_FOLDERS))]


def _needs_setting(places: Places, host: HostSettings, scope: str, path: str) -> bool:
    """Whether the settings of ``scope`` contain the rule and rely on the setting in ``path``."""
    file = places.file_of(host, scope)
    backup = backups.find(places.state, file)
    if backup is None or backup.text(SETTING) != path:
        return False
    try:
        text = load(file, host).text
    except SessionsError:  # an unreadable file may contain the rule
        return True
    rules = backup.texts(RULES)
    return not rules or any(has_rule(text, rule) for rule in rules)


def with_report_setting(path: str, data: bytes | None) -> bytes:
    """``data``, the content of the file ``path``, with the setting on; unchanged if it is on already.

    Raises ``BadSetting`` if the setting has another value, the file does not parse, or has no place for the line.
    """
    settings = _parse_toml(path, data or b"")
    hooks = settings.get("hooks", {})
    if isinstance(hooks, dict) and _KEY in hooks:
        if hooks[_KEY] is True:
            return data or b""
        raise BadSetting(path, f"hooks.{_KEY} = {hooks[_KEY]!r}", "remove that line first")
    text = (data or b"").decode()
    changed = _with_line(text, has_table="hooks" in settings)
    if changed is None or not _differs_only_by_line(path, text, changed):
        raise BadSetting(path, "no line can be added to [hooks] as it is written", f"add {_LINE} there manually")
    return changed.encode()


def without_report_setting(path: str, data: bytes) -> bytes:
    """``data`` without the line that ``with_report_setting`` added; unchanged if that line was edited."""
    text = data.decode(errors="surrogateescape")
    changed = _SETTING_LINE.sub("", text, count=1)
    try:
        is_only_change = _differs_only_by_line(path, changed, text)
    except BadSetting:
        return data
    return changed.encode() if is_only_change else data


def _with_line(text: str, *, has_table: bool) -> str | None:
    newline = "\r\n" if "\r\n" in text else "\n"
    if not has_table:
        blank_line = newline if text else ""
        return (
            f"{text}{'' if not text or text.endswith(newline) else newline}{blank_line}[hooks]{newline}{_LINE}{newline}"
        )
    header = _HEADER.search(text)
    if header is None:
        return None
    missing = "" if header[0].endswith("\n") else newline
    return f"{text[: header.end()]}{missing}{_LINE}{newline}{text[header.end() :]}"


def _differs_only_by_line(path: str, without: str, with_it: str) -> bool:
    """Whether the setting is the only difference; what looks like the header may be inside a string."""
    before, after = _parse_toml(path, without.encode()), _parse_toml(path, with_it.encode())
    hooks = before.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        return False
    hooks[_KEY] = True
    return before == after


def _parse_toml(path: str, data: bytes) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BadSetting(path, str(error), "fix the file; it was not changed") from None
