"""The content of a settings file after an uninstall.

Owns the choice between two contents. A file that nobody changed since the installation is restored to the last byte,
including own entries that a person had added before. From a file that was changed, only own entries and rules are
removed. An entry whose script no longer exists is never restored, because it could only fail.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SettingsUnreadable

from .entries import has_dead_entry, without_hooks, without_rule
from .json_text import parse
from .permission import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .backups import Backup
    from .json_text import JsonText
    from .settings import Settings


def original_contents(settings: Settings, backup: Backup | None) -> tuple[bytes | None, bytes | None]:
    """What the backup keeps of the file before an installation, and what an uninstall restores."""
    if backup is None:
        return settings.data, settings.data
    was_never_written = settings.data == backup.before  # the process was killed after it kept the backup
    if was_never_written or backup.is_untouched(settings.data):
        return backup.before, backup.after_uninstall
    return settings.data, content_after_uninstall(settings, backup)


def content_after_uninstall(settings: Settings, backup: Backup | None) -> bytes | None:
    """The content of the file after an uninstall; None if the file is to be removed.

    Raises ``SettingsUnreadable`` if the hooks or permissions do not have the expected structure.
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
    """``data`` without the own entries if one of them names a script that no longer exists."""
    if data is None:
        return None
    text = parse(data, comments=settings.text.comments)
    return without_hooks(text).text.encode() if has_dead_entry(text) else data


def _is_empty(text: JsonText) -> bool:
    return text.value == {} and text.text == text.plain  # and without a comment
