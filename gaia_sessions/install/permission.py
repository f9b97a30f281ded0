"""The permission rule by which sub-agents may report without being asked.

Claude Code 2.1.197 and 2.1.330 allow what begins like the rule, and refuse it when another command, a redirection or a
nested command is added; both ignore the rules of a project until its folder is trusted. A rule is known by our command
in it, of this or of another installation.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hook.messages import UPDATE, find_program, update_command

from .entries import MOST_OWN, by_hand
from .json_edit import append_value, with_member, without_value
from .json_text import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .json_text import JsonText

_PROGRAM = r"(?:[\w@%+=,./-]*/)?gaia-sessions"
_QUOTED_PROGRAM = r"""'(?:[^']|'"'"')*/gaia-sessions'"""
_REPORT_RULE = re.compile(rf"Bash\((?:{_PROGRAM}|{_QUOTED_PROGRAM}) {UPDATE} \*\)", re.ASCII)
_FORBIDDEN_IN_RULE = frozenset("()*\\:\n\r")
_PERMISSIONS, _ALLOW = "permissions", "allow"


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


def own_rules(text: JsonText) -> list[str]:
    """The allowed permissions that are ours."""
    return [rule for rule in _allowed(text) if is_own_rule(rule)]


def with_rule(text: JsonText, rule: str) -> JsonText:
    """``text`` with ``rule`` and no other of ours among the allowed permissions."""
    if own_rules(text) == [rule]:
        return text
    text = without_rules(text)
    text, permissions = with_member(text, text.start, _PERMISSIONS, {})
    text, rules = with_member(text, permissions, _ALLOW, [])
    return append_value(text, rules, rule)


def without_rules(text: JsonText) -> JsonText:
    """``text`` without any rule of ours; the last goes first, so that the other numbers stay valid.

    Raises ``InvalidInput``.
    """
    if len(own_rules(text)) > MOST_OWN:
        raise InvalidInput(by_hand("rules allow"), _PERMISSIONS)
    for number, rule in reversed([*enumerate(_allowed(text))]):
        if is_own_rule(rule):
            text = without_value(text, [_PERMISSIONS, _ALLOW, number])
    return text


def _allowed(text: JsonText) -> list[str]:
    rules = as_object(as_object(text.value).get(_PERMISSIONS)).get(_ALLOW)
    return [rule if isinstance(rule, str) else "" for rule in rules] if isinstance(rules, list) else []


def is_own_rule(rule: str) -> bool:
    """Whether ``rule`` allows the reporting command, of this or of another installation."""
    return _REPORT_RULE.fullmatch(rule) is not None
