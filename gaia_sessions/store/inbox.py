"""Events that could not be joined or applied yet, one file each in ``.inbox``; their names sort the oldest first."""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import compact_timestamp
from gaia_sessions.session.ids import random_hex

from . import atomic
from . import root as roots
from .directory import NotAFile, TooBig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event

    from .directory import Directory
    from .inbox_keys import WaitingEvent

_SUFFIX = ".json"
_DIGITS = b"0123456789"
_HEX_DIGITS = _DIGITS + b"abcdef"
_TIME_LENGTH = len("20260108-180530-123456-")
_RANDOM_LENGTH = _KEY_LENGTH = len("01234567")
_KEYS_START = _TIME_LENGTH + _RANDOM_LENGTH + 1


def put(root: Directory, event: Event, now: datetime, *, durable: bool) -> str:
    """Stores ``event`` and returns its name; two events of one moment get different names."""
    name = _new_name(event, now)
    data = strict.dumps(event)
    added = not root.has(roots.INBOX)
    with root.make(roots.INBOX) as inbox:
        atomic.replace(inbox, name, data, durable=durable)
    if added and durable:
        atomic.sync_folder(root)
    return name


def _new_name(event: Event, now: datetime) -> str:
    """Returns a name for ``event``: its time, random digits, and the keys of the agents it concerns."""
    from .inbox_keys import keys_of_event

    keys = keys_of_event(event)
    parts = [compact_timestamp(now), f"{now.microsecond:06}", random_hex(_RANDOM_LENGTH, os.urandom)]
    return "-".join([*parts, keys] if keys else parts) + _SUFFIX


def is_event_name(name: str) -> bool:
    """Returns whether ``put`` can give this ``name``; a name has no keys if they are unknown."""
    # A hook asks this for each waiting event, so C code checks the characters: ``translate`` returns the wrong ones.
    data = name.encode("utf-8", "surrogatepass")
    time, digits = data[:_TIME_LENGTH], data[_TIME_LENGTH : -len(_SUFFIX)]
    if time[8::7] != b"---" or time.translate(None, _DIGITS) != b"---" or name[-len(_SUFFIX) :] != _SUFFIX:
        return False
    wrong, keys_length = digits.translate(None, _HEX_DIGITS), len(digits) - _RANDOM_LENGTH - 1
    if keys_length <= 0:
        return keys_length == -1 and not wrong
    return keys_length % _KEY_LENGTH == 0 and wrong == b"-" and digits[_RANDOM_LENGTH] == wrong[0]


def is_unfinished(name: str) -> bool:
    """Returns whether ``name`` belongs to the temporary file of an event."""
    return is_event_name(atomic.target_of(name))


def in_order(names: Iterable[str]) -> list[str]:
    """Returns those of ``names`` that belong to events, the oldest first."""
    return sorted(filter(is_event_name, names))


def with_keys(names: Iterable[str]) -> list[WaitingEvent]:
    """Returns what ``in_order`` returns, each name with its keys as one text, which is empty if they are unknown."""
    return [(name, name[_KEYS_START : -len(_SUFFIX)]) for name in in_order(names)]


def events(root: Directory, wanted_names: Iterable[str]) -> Iterator[tuple[str, dict[str, Json] | SessionsError]]:
    """Yields each event of ``wanted_names`` with its name; missing files and other names are left out."""
    try:
        inbox = root.below(roots.INBOX)
    except FileNotFoundError:
        return
    with inbox:
        for name in filter(is_event_name, wanted_names):
            try:
                yield name, _read_event(inbox, name)
            except FileNotFoundError:
                continue


def _read_event(inbox: Directory, name: str) -> dict[str, Json] | SessionsError:
    try:
        return strict.load_object(inbox.read(name, strict.DOCUMENT_LIMIT))
    except InvalidInput as error:
        return error
    except FileNotFoundError:
        raise
    except (NotAFile, TooBig) as error:
        return InvalidInput(str(error), name)
    except OSError as error:
        return StoreFailure("read", f"{inbox.path}/{name}", error.strerror or str(error))


def remove(root: Directory, name: str) -> None:
    """Removes the event ``name`` if it exists; a name that no event has is ignored."""
    if not is_event_name(name):
        return
    try:
        inbox = root.below(roots.INBOX)
    except FileNotFoundError:
        return
    with inbox:
        atomic.discard(inbox, name)
