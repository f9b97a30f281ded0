"""The permission rules that let sub-agents report and keep todos without asking the user.

Claude Code allows commands that begin like the rule, but no added command, redirection or nested command.
"""

from __future__ import annotations

import re

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hook.texts import AGENT_COMMANDS, agent_command, find_program

from .entries import MOST_OWN, by_hand
from .json_edit import with_value, without_value
from .json_text import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .json_text import JsonText

_PROGRAM = r"(?:[\w@%+=,./-]*/)?gaia-sessions"
_QUOTED_PROGRAM = r"""'(?:[^']|'"'"')*/gaia-sessions'"""
_OWN_RULE = re.compile(rf"Bash\((?:{_PROGRAM}|{_QUOTED_PROGRAM}) ({'|'.join(AGENT_COMMANDS)}) \*\)", re.ASCII)
_FORBIDDEN_IN_RULE = frozenset("()*\\:\n\r")
_PERMISSIONS, _ALLOW = "permissions", "allow"


def permission_rules() -> list[str]:
    """Returns a rule for each command that the hooks tell agents to use, and no other rule."""
    path = find_program()
    if path is None:
        raise StoreFailure(
            "allow the command", "gaia-sessions", "it is not installed beside this interpreter", "install it there"
        )
    if _FORBIDDEN_IN_RULE.intersection(path):
        raise StoreFailure(
            "allow the command", path, "a character of its path has a special meaning in a permission rule", "move it"
        )
    return [f"Bash({agent_command(path, command)} *)" for command in AGENT_COMMANDS]


def own_rules(text: JsonText) -> list[str]:
    """Returns our rules among the allowed permissions."""
    return [rule for rule in _allowed(text) if is_own_rule(rule)]


def commands_without_rule(text: JsonText) -> list[str]:
    """Returns the commands without a rule, if others have a rule: an earlier version had fewer commands."""
    allowed = {found[1] for rule in _allowed(text) if (found := _OWN_RULE.fullmatch(rule))}
    return [command for command in AGENT_COMMANDS if command not in allowed] if allowed else []


def with_rules(text: JsonText, wanted: list[str]) -> JsonText:
    """Returns ``text`` with the ``wanted`` rules and no other rule of ours among the allowed permissions."""
    if own_rules(text) == wanted:
        return text
    text = without_rules(text)
    for rule in wanted:
        text = with_value(text, (_PERMISSIONS, _ALLOW), rule)
    return text


def without_rules(text: JsonText) -> JsonText:
    """Returns ``text`` without any rule of ours."""
    if len(own_rules(text)) > MOST_OWN:
        raise InvalidInput(by_hand("rules allow"), _PERMISSIONS)
    for number, rule in reversed([*enumerate(_allowed(text))]):  # so the other numbers stay valid
        if is_own_rule(rule):
            text = without_value(text, [_PERMISSIONS, _ALLOW, number])
    return text


def _allowed(text: JsonText) -> list[str]:
    rules = as_object(as_object(text.value).get(_PERMISSIONS)).get(_ALLOW)
    return [rule if isinstance(rule, str) else "" for rule in rules] if isinstance(rules, list) else []


def is_own_rule(rule: str) -> bool:
    """Returns whether ``rule`` allows a command of ours, of this or of another installation."""
    return _OWN_RULE.fullmatch(rule) is not None
