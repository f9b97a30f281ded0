"""One settings file: read as a text with places.

Owns that whatever does not parse is refused by name and left as it is.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SettingsUnreadable
from gaia_sessions.stores import foreign

from .jsontext import parse
from .receipts import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .hosts import Host
    from .jsontext import Text


class Settings:
    """What a settings file says. ``data`` is None if it is not there: then ``text`` is an empty object."""

    __slots__ = ("data", "path", "text")

    def __init__(self, path: str, data: bytes | None, text: Text) -> None:
        self.path = path
        self.data = data
        self.text = text

    def bytes_of(self, text: Text) -> bytes | None:
        """What the file holds when it says ``text``: unchanged, it is what it was to the last byte."""
        return self.data if text.text == self.text.text else text.text.encode()


def load(path: str, host: Host) -> Settings:
    """The settings of ``host`` at ``path``; raises ``SettingsUnreadable``, ``TooLarge``, ``StoreFailure``."""
    data = foreign.read(path, LIMIT)
    try:
        return Settings(path, data, _object(data or b"", host))
    except InvalidInput as error:
        raise SettingsUnreadable(path, error.problem, error.where) from None


def _object(data: bytes, host: Host) -> Text:
    text = parse(data, comments=host.comments)
    if not isinstance(text.value, dict):
        raise InvalidInput("a JSON object is wanted")
    hooks = text.member(text.start, "hooks")
    if hooks is not None and isinstance(hooks.value, dict):
        for event in hooks.value:
            text.member(hooks.value_start, event)  # of two, the host reads one and we might read the other
    return text
