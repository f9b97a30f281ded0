"""A settings file of a host: how it is read, and the lock for changing it.

Owns that a file that does not parse is refused by name and left unchanged, and that one process at a time reads
settings in order to write them. The lock is in the folder of gaia-sessions in the user's state directory; whoever holds
the lock creates that folder, and removes it again if it is empty.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import InvalidInput, LockTimeout, SessionsError, SettingsUnreadable, TooLarge
from gaia_sessions.store import external_file, locks
from gaia_sessions.store.directory import Directory, translate_errors

from .backups import LIMIT
from .json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from gaia_sessions.hosts.settings import HostSettings

    from .json_text import Element, JsonText

_LOCK_NAME = "settings" + locks.SUFFIX
_TIMEOUT = 10.0


class Settings:
    """The content of a settings file. ``data`` is None if there is no file: then ``text`` is an empty object."""

    __slots__ = ("data", "path", "text")

    def __init__(self, path: str, data: bytes | None, text: JsonText) -> None:
        self.path = path
        self.data = data
        self.text = text

    def bytes_of(self, text: JsonText) -> bytes | None:
        """The content of the file with ``text``; if that is unchanged, the content as it was read."""
        return self.data if text.text == self.text.text else text.text.encode()


def load(path: str, host: HostSettings) -> Settings:
    """The settings of ``host`` at ``path``; raises ``SettingsUnreadable``, ``StoreFailure``."""
    try:
        data = external_file.read(path, LIMIT)
        return Settings(path, data, _parse_object(data or b"", host))
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


class SettingsLock:
    """A lock that is held until the ``with`` block ends; raises ``LockTimeout`` if it cannot be had in time.

    Where the system cannot lock, the block runs without the lock: an uninstall must be possible there, and an
    installation fails at the backup, which needs the same folder.
    """

    __slots__ = ("_created", "_folder", "_lock", "_state")

    def __init__(self, state: str) -> None:
        self._state = state
        self._folder: Directory | None = None
        self._lock: locks.Lock | None = None
        self._created: list[str] = []
        """The folders that did not exist before, the innermost first."""

    def __enter__(self) -> Self:
        try:
            while not self._acquire():
                continue
        except LockTimeout:
            raise
        except SessionsError:
            return self
        return self

    def _acquire(self) -> bool:
        """Whether the lock is held; False if its last holder removed the folder while this process waited."""
        with translate_errors("make", self._state):
            self._created += _folders_to_create(self._state)
            os.makedirs(self._state, mode=0o700, exist_ok=True)
            try:
                folder = Directory.at(self._state)
            except FileNotFoundError:
                return False
        try:
            self._lock = locks.acquire(folder, _LOCK_NAME, _TIMEOUT, locks.sleep_and_retry)
        except SessionsError:
            is_removed = os.fstat(folder.fd).st_nlink == 0
            os.close(folder.fd)
            if is_removed:
                return False
            raise
        self._folder = folder
        return True

    def __exit__(self, *_: object) -> None:
        if self._lock is None or self._folder is None:
            return
        with self._folder, self._lock:
            try:
                self._lock.remove()
                for folder in dict.fromkeys((self._state, *self._created)):
                    os.rmdir(folder)
            except OSError:  # backups are in there, or files of other programs
                return


def _folders_to_create(path: str) -> list[str]:
    """``path`` and the folders above it that do not exist, the innermost first."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing
