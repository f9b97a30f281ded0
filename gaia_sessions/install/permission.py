"""What it takes that a sub-agent may report by itself: a permission rule, and the setting that names the command.

Owns the words of the rule, and putting ``report_command = true`` under ``[hooks]`` of our own settings without
touching another byte. Claude Code 2.1.197 and 2.1.330 let through what begins like the rule and refuse the same
with another command behind it, with output sent to a file and with a nested command; both ignore the rules of a
project until its folder is trusted.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import BadSetting, StoreFailure
from gaia_sessions.hook.reporting import UPDATE, find_program, update_command

_KEY = "report_command"
_LINE = f"{_KEY} = true"
_HEADER = re.compile(r"^[ \t]*\[[ \t]*hooks[ \t]*\][ \t]*(?:#[^\r\n]*)?(?:\r?\n|$)", re.MULTILINE)
_SETTING_LINE = re.compile(rf"^{_LINE}(?:\r?\n|$)", re.MULTILINE)
_REPORT_RULE = re.compile(rf"Bash\((?:.*/)?gaia-sessions'? {UPDATE} \*\)")
_FORBIDDEN_IN_RULE = frozenset("()*\\:\n\r")


def permission_rule() -> str:
    """The permission rule for our reporting command and no other; raises ``StoreFailure`` if it cannot be named."""
    path = find_program()
    if path is None:
        raise StoreFailure(
            "name the command", "gaia-sessions", "none stands beside this interpreter", "install it there"
        )
    if _FORBIDDEN_IN_RULE.intersection(path):
        raise StoreFailure(
            "name the command", path, "its path has a sign that means something else in a rule", "move it"
        )
    return f"Bash({update_command(path)} *)"


def is_report_rule(rule: object) -> bool:
    """Whether ``permission_rule`` allows our reporting command, be it here or of another installation."""
    return isinstance(rule, str) and _REPORT_RULE.fullmatch(rule) is not None


def with_report_setting(path: str, data: bytes | None) -> bytes:
    """The settings ``data`` of the file ``path`` with the setting on; themselves if it is on.

    Raises ``BadSetting`` if they say otherwise, do not parse, or are written in a way that has no place for a line.
    """
    settings = _parse_toml(path, data or b"")
    hooks = settings.get("hooks", {})
    if isinstance(hooks, dict) and _KEY in hooks:
        if hooks[_KEY] is True:
            return data or b""
        raise BadSetting(path, f"hooks.{_KEY} = {hooks[_KEY]!r}", "it was said there; take the line away first")
    text = (data or b"").decode()
    changed = _with_line(text, has_table="hooks" in settings)
    if changed is None or not _differs_only_by_line(path, text, changed):
        raise BadSetting(path, "[hooks] is written in a way that has no place for a line", f"put {_LINE} there by hand")
    return changed.encode()


def without_report_setting(path: str, data: bytes) -> bytes:
    """``data`` without the line that ``with_report_setting`` put in; themselves if it is not there as it was put."""
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
    """Whether both say the same but for the setting: a header may stand inside a text."""
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
        raise BadSetting(path, str(error), "correct the file; it was left as it is") from None
