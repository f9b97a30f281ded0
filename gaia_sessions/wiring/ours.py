"""Our command in a host's settings: how it is written, and how it is known again.

Owns both sides of one thing. People have scripts called ``subagent_stop.py`` of their own, so a name alone says
nothing: the script has to stand in a checkout of ours or in the shared folder of an installation.
"""

from __future__ import annotations

import os
import shlex
import sys
from itertools import pairwise
from site import getuserbase

from gaia_sessions.errors import StoreFailure

from .hosts import CLAUDE_CODE, SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.strictjson import Json

    from .hosts import Host

TRACK_TOOLS = "--track-tools"

_SCRIPT = "every_event.py"
_SCRIPTS = (_SCRIPT, "pre_delegate.py", "subagent_stop.py")
_NAMES = ("gaia_sessions", "gaia-sessions")
_SHARED = os.path.join("share", "gaia-sessions")


def script() -> str:
    """The script that hosts start: that of the checkout this package is in, else the installed one.

    Raises ``StoreFailure`` if there is neither.
    """
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = (checkout, os.path.join(sys.prefix, _SHARED), os.path.join(getuserbase(), _SHARED))
    places = [os.path.join(folder, "hooks", _SCRIPT) for folder in folders]
    found = next((place for place in places if os.path.isfile(place)), None)
    if found is None:
        raise StoreFailure("find the hook script", places[1], "it is not there", "install gaia-sessions again")
    return found


def command_for(host: Host, *, tools: bool) -> list[str]:
    """The words that ``host`` is to start us with; a virtual environment's own interpreter stays itself."""
    if not sys.executable:
        raise StoreFailure(
            "name the interpreter", "sys.executable", "it is not known", "run it with a Python of its own"
        )
    named = [] if host.name == CLAUDE_CODE else ["--host", host.name]
    return [os.path.abspath(sys.executable), script(), *named, *([TRACK_TOOLS] if tools else [])]


def handler(host: Host, words: list[str]) -> dict[str, Json]:
    """The entry in the settings that makes ``host`` start ``words``."""
    timeout = SECONDS * host.per_second
    if host.exec_form:
        return {"type": "command", "command": words[0], "args": list(words[1:]), "timeout": timeout}
    return {"type": "command", "command": shlex.join(words), "timeout": timeout}


def words_of(entry: Json) -> list[str]:
    """What an entry of the settings starts; empty for what is no command."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(command, str):
        return []
    given = entry.get("args")
    if isinstance(given, list):
        return [command, *(word for word in given if isinstance(word, str))]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_ours(entry: Json) -> bool:
    """Whether an entry of the settings starts one of our hooks."""
    words = words_of(entry)
    pairs = pairwise(words)
    return any(is_our_script(word) for word in words) or any(
        os.path.basename(word) in _NAMES and following == "hook" for word, following in pairs
    )


def is_our_script(word: str) -> bool:
    """Whether ``word`` is the path of one of our scripts, be it there or gone."""
    folder, name = os.path.split(word)
    above, hooks = os.path.split(folder)
    if name not in _SCRIPTS or hooks != "hooks":
        return False
    named = os.path.basename(above) in _NAMES
    return named or os.path.isfile(os.path.join(above, "gaia_sessions", "hooks", "__init__.py"))
