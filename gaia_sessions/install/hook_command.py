"""The hook command in a host's settings: how it is written, and how it is recognized as ours.

A command is ours only if it is nothing but the hook program, or an interpreter and a hook script, with options. A
command that also does something else belongs to the user.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from functools import lru_cache

from gaia_sessions.errors import StoreFailure, well_formed
from gaia_sessions.hook import VALUES, argument_words, read_arguments
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.settings import WantedEntry

from .executable import HOOK_PROGRAM_NAME, hook_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.hook import Arguments
    from gaia_sessions.hosts.settings import HostSettings
    from gaia_sessions.jsonio.strict import Json

HOOK_TIMEOUT = 5
"""Seconds after which a host is allowed to end a hook. A hook ends by itself after three seconds."""

_SCRIPT = "every_event.py"
_SCRIPTS = (_SCRIPT, "pre_delegate.py", "subagent_stop.py")
_PACKAGE_NAMES = ("gaia_sessions", "gaia-sessions")
_SCRIPT_PATH = os.path.join("hooks", _SCRIPT)
_PROGRAM = re.compile(rf"(?<![\w.-]){HOOK_PROGRAM_NAME}(?![\w.-])")
_INTERPRETERS = ("python", "pypy", "graalpy")
_FLAGS = frozenset("-BEIOPSsu")
_MOST_WORDS = 100
_LONGEST_WORD = 1 << 14
"""The longest word that is searched: our words are far shorter, and a search in longer words takes long."""
_SUBSTITUTES = ("`", "$(", "\n")

# In all payloads that were seen, the agent is named before the input of the tool.
_OF_AGENTS = """p=$(cat); case ${p%%'"tool_input"'*} in *'"agent_id"'*) printf %s "$p" | """
_END_OF_AGENTS = ";; esac"
"""These start a command only for payloads of sub-agents; for the main agent, a shell is cheaper than Python."""


def command_for(host: HostSettings, *, reports: bool, enforce: bool) -> list[str]:
    """Returns the command for ``host``, which does nothing after the hook program was removed."""
    name = None if host.name == CLAUDE_CODE else host.name
    words = [*hook_program(), *argument_words(host=name, reports=reports, enforce=enforce)]
    for word in words:
        if well_formed(word) != word:
            raise StoreFailure("write it to settings", well_formed(word), "its path is not UTF-8", "move it")
    return words


def new_handler(host: HostSettings, words: list[str], wanted: WantedEntry) -> dict[str, Json]:
    """Returns what makes ``host`` run the command ``words`` for the entry ``wanted``."""
    rest: dict[str, Json] = {"timeout": HOOK_TIMEOUT * host.per_second}
    if not wanted.is_awaited:
        rest["async"] = True
    if wanted.of_agents:
        return {"type": "command", "command": f"{_OF_AGENTS}{shlex.join(words)}{_END_OF_AGENTS}", **rest}
    if host.exec_form:
        return {"type": "command", "command": words[0], "args": list(words[1:]), **rest}
    return {"type": "command", "command": shlex.join(words), **rest}


def wanted_entry_of(event: str, matcher: Json, handler: Json) -> WantedEntry:
    """Returns the wanted entry to which this handler of ours in the settings belongs."""
    is_awaited = not (isinstance(handler, dict) and handler.get("async") is True)
    command = handler.get("command") if isinstance(handler, dict) else None
    of_agents = isinstance(command, str) and _bare(command) != command
    return WantedEntry(event, matcher, is_awaited, of_agents)  # type: ignore[arg-type]  # it is only compared


def words_of(entry: Json) -> list[str]:
    """Returns the words of an entry's command, with shell operators as separate words; empty without a command."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str):
        return []
    arguments = entry.get("args")
    if isinstance(arguments, list):
        return [command, *(word for word in arguments if isinstance(word, str))]
    # A command that no shell can parse, or that is very long, is one word.
    return list(_split(_bare(command))) if len(command) <= _LONGEST_WORD else [command]


def _bare(command: str) -> str:
    """Returns ``command`` without the shell code that starts it only for sub-agents."""
    if command.startswith(_OF_AGENTS) and command.endswith(_END_OF_AGENTS):
        return command[len(_OF_AGENTS) : -len(_END_OF_AGENTS)]
    return command


@lru_cache(maxsize=1 << 14)  # a plan splits each command many times
def _split(command: str) -> tuple[str, ...]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return tuple(lexer)
    except ValueError:
        return (command,)


def arguments_of(words: list[str]) -> Arguments:
    """Returns the arguments for the hook in ``words``, a command of ours."""
    return read_arguments(_words_after_hook(words) or [])


def is_own_hook(entry: Json) -> bool:
    """Returns whether an entry starts a hook of gaia-sessions and nothing else."""
    words = words_of(entry)
    if len(words) > _MOST_WORDS or any(len(word) > _LONGEST_WORD for word in words):
        return False
    return _are_hook_options(_words_after_hook(words)) and not _has_substitution(entry, words)


def is_mixed_entry(entry: Json) -> bool:
    """Returns whether an entry starts a hook of ours and something else, or starts the hook in an unknown way."""
    words = words_of(entry)
    is_named = any(_SCRIPT_PATH in word or _PROGRAM.search(word) for word in words)
    first = words[:_MOST_WORDS]
    return not is_own_hook(entry) and (
        is_named or any(_words_after_hook(first[at:]) is not None for at in range(len(first)))
    )


def own_scripts(entry: Json) -> list[str]:
    """Returns the paths of hook scripts, or of the hook program, in the command of an entry."""
    return [word for word in words_of(entry) if is_own_script(word)]


def starts_script_directly(entry: Json) -> bool:
    """Returns whether an entry starts a hook script directly, without Python: then a missing script does no harm."""
    return any(is_own_script(word) for word in words_of(entry)[:1])


def is_own_script(word: str) -> bool:
    """Returns whether ``word`` is the path of a hook script of ours, which need not exist."""
    folder, name = os.path.split(word)
    if name == HOOK_PROGRAM_NAME:
        return True
    above, hooks = os.path.split(folder)
    if name not in _SCRIPTS or hooks != "hooks":
        return False
    # Users have scripts called subagent_stop.py, so that name alone does not count. The other names are ours at any
    # path, also in a checkout that was moved.
    is_known = name == _SCRIPT or os.path.basename(above) in _PACKAGE_NAMES
    return is_known or os.path.isfile(os.path.join(above, "gaia_sessions", "hook", "__init__.py"))


def _words_after_hook(words: list[str]) -> list[str] | None:
    """Returns the words after those that start a hook of ours; None if ``words`` do not start one."""
    rest = _words_after_interpreter(words)
    if rest and is_own_script(rest[0]):
        return rest[1:]
    if rest is not words and rest[:1] == ["-m"]:
        rest = rest[1:]
    if not rest or os.path.basename(rest[0]) not in _PACKAGE_NAMES:
        return None
    while rest[1:2] == ["--root"]:
        rest = rest[2:]
    return rest[2:] if rest[1:2] == ["hook"] else None


def _words_after_interpreter(words: list[str]) -> list[str]:
    rest = words[1:] if words and os.path.basename(words[0]) == "env" else words
    if not rest or not _is_interpreter(rest[0]):
        return words
    rest = rest[1:]
    while rest and rest[0].startswith("-") and _FLAGS.issuperset(rest[0]):
        rest = rest[1:]
    return rest


def _is_interpreter(word: str) -> bool:
    return os.path.basename(word).startswith(_INTERPRETERS) or word == os.path.abspath(sys.executable)


def _are_hook_options(words: list[str] | None) -> bool:
    """Returns whether ``words`` are only options, known or unknown ones."""
    if words is None or not all(_is_plain_word(word) for word in words):
        return False
    ignored = read_arguments(words)["ignored"]
    return all(word.startswith("--") and word.partition("=")[0] not in VALUES for word in ignored)


def _is_plain_word(word: str) -> bool:
    return bool(word) and not set(word) & set("();<>|&")


def _has_substitution(entry: Json, words: list[str]) -> bool:
    """Returns whether a shell would substitute a part of the command."""
    command = entry.get("command") if isinstance(entry, dict) and "args" not in entry else None
    if not isinstance(command, str) or _bare(command) == shlex.join(words):
        return False
    return any(sign in _bare(command).strip() for sign in _SUBSTITUTES)
