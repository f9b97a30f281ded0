"""Events that could not be joined or applied yet, one file each in ``.inbox``.

Owns their names, by which the oldest comes first, and nothing of what they mean.
"""

from __future__ import annotations

import os

from gaia_sessions import strictjson
from gaia_sessions.clock import stamp_of
from gaia_sessions.errors import InvalidInput, StoreFailure

from . import atomic
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


def put(root: Directory, event: Event, now: datetime, *, durable: bool) -> None:
    """Keeps ``event``; two at the same moment do not meet."""
    name = f"{stamp_of(now)}-{now.microsecond:06}-{os.urandom(4).hex()}{_SUFFIX}"
    data = strictjson.dumps(event)
    added = not root.has(INBOX)
    with root.make(INBOX) as inbox:
        atomic.replace(inbox, name, data, durable=durable)
    if added and durable:
        atomic.confirm(root)


def events(root: Directory) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
    """Each event with its name, the oldest first; one taken out meanwhile is left out."""
    try:
        inbox = root.below(INBOX)
    except FileNotFoundError:
        return
    with inbox:
        for name in sorted(name for name in inbox.names() if name.endswith(_SUFFIX)):
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
    """Takes ``name`` out; nothing if somebody else did."""
    if root.has(INBOX):
        with root.below(INBOX) as inbox:
            atomic.discard(inbox, name)
