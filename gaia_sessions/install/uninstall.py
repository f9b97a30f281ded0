"""What a settings file holds once we have left it.

Owns the choice: a file that nobody changed since is what it was to the last byte, entries that somebody had wired by
hand included; of one that somebody did change, what is ours is taken out. An entry whose script is gone by then never
comes back: it could only fail.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, SessionsError, SettingsUnreadable

from .entries import are_dead, cleared, disallowed, of_ours
from .json_text import parse
from .own_setting import RULES
from .settings import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .backup import Receipt
    from .json_text import Text
    from .places import Host, Places
    from .settings import Settings


def originals(settings: Settings, kept: Receipt | None) -> tuple[bytes | None, bytes | None]:
    """What to keep a copy of, and what leaving is to give back: what people wired by hand comes back with the rest."""
    if kept is None:
        return settings.data, settings.data
    if settings.data == kept.before or kept.is_untouched(settings.data):  # before: killed ere it was written
        return kept.before, kept.left
    return settings.data, left_by(settings, kept)


def installed_beside(places: Places, host: Host, scope: str) -> list[str]:
    """The other scopes of ``host`` that have hooks of ours, as far as their files can be read."""
    return [other for other in host.files if other != scope and has_ours(places.file_of(host, other), host)]


def has_ours(path: str, host: Host) -> bool:
    """Whether the settings file ``path`` has hooks of ours, as far as it can be read."""
    try:
        return bool(of_ours(load(path, host).text))
    except SessionsError:
        return False


def left_by(settings: Settings, kept: Receipt | None) -> bytes | None:
    """What the file holds once we have left it, None if it is not there then.

    Raises ``SettingsUnreadable`` where the shape is another one than we know.
    """
    if kept is not None and kept.is_untouched(settings.data):
        return _without_the_dead(kept.left, settings)
    try:
        text = cleared(settings.text)
        for rule in kept.texts(RULES) if kept else []:
            text = disallowed(text, rule)
    except InvalidInput as error:
        raise SettingsUnreadable(settings.path, error.problem, error.where) from None
    only_ours = kept is not None and kept.left is None and _is_empty(text)
    return None if only_ours else settings.bytes_of(text)


def _without_the_dead(data: bytes | None, settings: Settings) -> bytes | None:
    """``data`` as it was, but for entries that could only fail by now."""
    if data is None:
        return None
    text = parse(data, comments=settings.text.comments)
    return cleared(text).text.encode() if are_dead(text) else data


def _is_empty(text: Text) -> bool:
    return text.value == {} and text.text == text.plain  # no comment either
