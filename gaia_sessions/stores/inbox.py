"""Events that could not be joined or applied yet, one file each in ``.inbox``.

Owns their names, by which the oldest comes first, and nothing of what they mean. A file with any other name is left
alone; a folder of that name which somebody else keeps in a root that is not ours is neither read nor written to.
"""

from __future__ import annotations

import os

from gaia_sessions import strictjson
from gaia_sessions.clock import stamp_of
from gaia_sessions.errors import InvalidInput, StoreFailure

from . import atomic
from . import root as roots
from .directory import NotAFile, TooBig
from .root import INBOX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.events import Event
    from gaia_sessions.strictjson import Json

    from .directory import Directory

_SUFFIX = ".json"
_DIGITS = frozenset("0123456789")


def put(root: Directory, event: Event, now: datetime, *, durable: bool) -> None:
    """Keeps ``event``; two at the same moment do not meet. Raises ``StoreFailure``, ``OSError``."""
    name = f"{stamp_of(now)}-{now.microsecond:06}-{os.urandom(4).hex()}{_SUFFIX}"
    data = strictjson.dumps(event)
    added = not root.has(INBOX)
    with roots.place(root, INBOX) as inbox:
        if not roots.owns(root, INBOX):
            _claim(inbox)
        atomic.replace(inbox, name, data, durable=durable)
    if added and durable:
        atomic.confirm(root)


def _claim(inbox: Directory) -> None:
    """Marks what was ours before somebody changed the mark of the root: it holds nothing, or events of ours alone."""
    if not all(atomic.is_temporary(name) or is_our_name(name) for name in inbox.names()):
        raise StoreFailure("defer to", inbox.path, "somebody else keeps files there", "keep the sessions elsewhere")
    roots.mark(inbox)


def is_our_name(name: str) -> bool:
    """Whether ``put`` gives such a name to an event."""
    parts = name.removesuffix(_SUFFIX).split("-")
    if not name.endswith(_SUFFIX) or [len(part) for part in parts] != [8, 6, 6, 8]:
        return False
    *time, chance = parts
    return _DIGITS.issuperset("".join(time)) and atomic.HEX.issuperset(chance)


def events(root: Directory) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
    """Each event with its name, the oldest first; one taken out meanwhile is left out."""
    try:
        inbox = root.below(INBOX)
    except FileNotFoundError:
        return
    with inbox:
        names = sorted(filter(is_our_name, inbox.names()))
        for name in names if names and roots.owns(root, INBOX) else ():
            try:
                yield name, _event(inbox, name)
            except FileNotFoundError:
                continue


def _event(inbox: Directory, name: str) -> dict[str, Json] | SessionsError:
    try:
        return strictjson.load_object(inbox.read(name, strictjson.DOCUMENT_LIMIT))
    except InvalidInput as error:
        return error
    except FileNotFoundError:
        raise
    except (NotAFile, TooBig) as error:
        return InvalidInput(str(error), name)
    except OSError as error:
        return StoreFailure("read", f"{inbox.path}/{name}", error.strerror or str(error))


def remove(root: Directory, name: str) -> None:
    """Takes ``name`` out; nothing if somebody else did, or if it is no event of ours."""
    if is_our_name(name) and root.has(INBOX) and roots.owns(root, INBOX):
        with root.below(INBOX) as inbox:
            atomic.discard(inbox, name)
