"""One settings file: read as a text with places.

Owns that whatever does not parse is refused by name and left as it is.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SettingsUnreadable, TooLarge
from gaia_sessions.store import external_file

from .backups import LIMIT
from .json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .json_text import Element, JsonText
    from .places import Host


class Settings:
    """What a settings file says. ``data`` is None if it is not there: then ``text`` is an empty object."""

    __slots__ = ("data", "path", "text")

    def __init__(self, path: str, data: bytes | None, text: JsonText) -> None:
        self.path = path
        self.data = data
        self.text = text

    def bytes_of(self, text: JsonText) -> bytes | None:
        """What the file holds when it says ``text``: unchanged, it is what it was to the last byte."""
        return self.data if text.text == self.text.text else text.text.encode()


def load(path: str, host: Host) -> Settings:
    """The settings of ``host`` at ``path``; raises ``SettingsUnreadable``, ``StoreFailure``."""
    try:
        data = external_file.read(path, LIMIT)
        return Settings(path, data, _parse_object(data or b"", host))
    except TooLarge:
        raise SettingsUnreadable(path, f"it is over the limit of {LIMIT} bytes", "") from None
    except InvalidInput as error:
        raise SettingsUnreadable(path, error.problem, error.where) from None


def _parse_object(data: bytes, host: Host) -> JsonText:
    text = parse(data, comments=host.comments)
    if not isinstance(text.value, dict):
        raise InvalidInput("must be a JSON object")
    _refuse_duplicate_keys(text, text.start, ("hooks", "permissions"))
    permissions = text.member(text.start, "permissions")
    if permissions is not None and isinstance(permissions.value, dict):
        _refuse_duplicate_keys(text, permissions.value_start, ("allow",))
    hooks = text.member(text.start, "hooks")
    if hooks is not None and isinstance(hooks.value, dict):
        _refuse_duplicate_keys(text, hooks.value_start, hooks.value)
        for groups in text.elements(hooks.value_start)[0]:
            _check_groups(text, groups)
    return text


def _check_groups(text: JsonText, groups: Element) -> None:
    for group in text.elements(groups.value_start)[0] if isinstance(groups.value, list) else ():
        if isinstance(group.value, dict):
            _refuse_duplicate_keys(text, group.value_start, ("matcher", "hooks"))


def _refuse_duplicate_keys(text: JsonText, start: int, keys: Iterable[str]) -> None:
    """Of two members by one name the host reads one, and we might read the other."""
    for key in keys:
        text.member(start, key)
