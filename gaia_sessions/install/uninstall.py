"""What a settings file holds once we have left it.

Owns the choice: a file that nobody changed since is what it was to the last byte, entries that somebody had wired by
hand included; of one that somebody did change, what is ours is taken out. An entry whose script is gone by then never
comes back: it could only fail.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SessionsError, SettingsUnreadable

from .entries import has_dead_entry, our_entries, without_hooks, without_rule
from .json_text import parse
from .own_setting import RULES
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .backups import Backup
    from .json_text import JsonText
    from .places import Host, Places
    from .settings import Settings


def original_contents(settings: Settings, backup: Backup | None) -> tuple[bytes | None, bytes | None]:
    """What to keep a copy of, and what leaving is to give back: what people wired by hand comes back with the rest."""
    if backup is None:
        return settings.data, settings.data
    if settings.data == backup.before or backup.is_untouched(settings.data):  # before: killed ere it was written
        return backup.before, backup.after_uninstall
    return settings.data, content_after_uninstall(settings, backup)


def other_installed_scopes(places: Places, host: Host, scope: str) -> list[str]:
    """The other scopes of ``host`` that have hooks of ours, as far as their files can be read."""
    return [other for other in host.files if other != scope and has_our_hooks(places.file_of(host, other), host)]


def has_our_hooks(path: str, host: Host) -> bool:
    """Whether the settings file ``path`` has hooks of ours, as far as it can be read."""
    try:
        return bool(our_entries(load(path, host).text))
    except SessionsError:
        return False


def content_after_uninstall(settings: Settings, backup: Backup | None) -> bytes | None:
    """What the file holds once we have left it, None if it is not there then.

    Raises ``SettingsUnreadable`` where the shape is another one than we know.
    """
    if backup is not None and backup.is_untouched(settings.data):
        return _without_dead_entries(backup.after_uninstall, settings)
    try:
        text = without_hooks(settings.text)
        for rule in backup.texts(RULES) if backup else []:
            text = without_rule(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    had_no_file = backup is not None and backup.after_uninstall is None and _is_empty(text)
    return None if had_no_file else settings.bytes_of(text)


def _without_dead_entries(data: bytes | None, settings: Settings) -> bytes | None:
    """``data`` as it was, but for entries that could only fail by now."""
    if data is None:
        return None
    text = parse(data, comments=settings.text.comments)
    return without_hooks(text).text.encode() if has_dead_entry(text) else data


def _is_empty(text: JsonText) -> bool:
    return text.value == {} and text.text == text.plain  # no comment either
