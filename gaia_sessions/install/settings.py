"""A settings file of a host, as it is read: one that does not parse is refused by name."""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SettingsUnreadable, TooLarge
from gaia_sessions.store import external_file

from .json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.hosts.settings import HostSettings

    from .json_text import Element, JsonText

LIMIT = 1 << 20
"""The largest settings file, in bytes: far larger than real ones; a plan for that size takes seconds."""


def read_settings(path: str, host: HostSettings) -> tuple[bytes | None, JsonText]:
    """The content of the settings of ``host`` at ``path``, None if there is no file: then the text is an empty object.

    Raises ``SettingsUnreadable``, ``StoreFailure``.
    """
    try:
        data = external_file.read(path, LIMIT)
        return data, _parse_object(data or b"", host)
    except TooLarge:
        raise SettingsUnreadable(path, f"it is over the limit of {LIMIT} bytes", "") from None
    except InvalidInput as error:
        raise SettingsUnreadable(path, error.problem, error.where) from None


def _parse_object(data: bytes, host: HostSettings) -> JsonText:
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
    """Raises ``InvalidInput`` for two members with one key: the host may read the other one."""
    for key in keys:
        text.member(start, key)
