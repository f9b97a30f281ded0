"""One settings file of a host, read once: which entries of ours the file has, and whether they are complete."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from gaia_sessions.errors import InvalidInput, SessionsError, SettingsUnreadable, TooLarge
from gaia_sessions.hook import argument_words
from gaia_sessions.session.clock import format_time
from gaia_sessions.store import external_file

from .entries import HOOKS, all_entries
from .hook_command import arguments_of, command_for, is_mixed_entry, is_own_hook, wanted_entry_of, words_of
from .json_edit import find_place
from .json_text import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict

    from gaia_sessions.hosts.settings import HostSettings

    from .json_text import Element, JsonText
    from .places import Places

    class InstallState(TypedDict):
        """What ``hooks status`` says of one settings file."""

        host: str
        scope: str
        file: str
        state: str  # one of STATES
        problem: str | None
        command: list[str]  # empty if no command starts the hook
        allow_report: bool
        enforce: bool
        wired: list[str]
        missing: list[str]  # events that do not start the hook, or start it with another matcher or way of waiting
        changed_at: str | None  # None if the file has no hooks


LIMIT = 1 << 20
"""The largest settings file, in bytes: far larger than real ones. A plan for this size takes seconds."""

COMPLETE, INCOMPLETE, ELSEWHERE, ABSENT, UNREADABLE = STATES = (
    "complete",
    "incomplete",
    "elsewhere",
    "absent",
    "unreadable",
)
"""``elsewhere``: the command is of another version, or from another path."""


def options_of(installed: InstallState) -> list[str]:
    """Returns the options that the hooks were installed with."""
    return argument_words(reports=installed["allow_report"], enforce=installed["enforce"])


class InstalledFile:
    """The settings file of ``host`` in ``scope``, which need not exist."""

    __slots__ = ("_arguments", "command", "data", "entries", "error", "host", "mixed", "own", "path", "scope", "text")

    def __init__(self, places: Places, host: HostSettings, scope: str) -> None:
        self.host = host
        self.scope = scope
        self.path = places.file_of(host, scope)
        self.error: SessionsError | None = None
        try:
            self.data, self.text = _read(self.path, host)
        except SessionsError as error:
            self.error, self.data, self.text = error, None, parse(b"", comments=False)
        self.entries = all_entries(self.text)  # of an empty text if there is no file, or the file cannot be read
        self.own = [entry for entry in self.entries if is_own_hook(entry.handler)]
        self.mixed = [entry for entry in self.entries if is_mixed_entry(entry.handler)]
        self.command = words_of(self.own[0].handler) if self.own else []
        self._arguments = arguments_of(self.command)

    def why_no_hooks(self) -> SessionsError | None:
        """Returns why no hooks can be installed in the file; None if they can."""
        try:
            for event in self.host.wired_events():
                find_place(self.text, (HOOKS, event))
        except InvalidInput as problem:
            return SettingsUnreadable(self.path, problem.problem, problem.where)
        return self.error

    def state(self) -> InstallState:
        """Returns what is installed, compared with what an installation would write now."""
        wired = list(dict.fromkeys(entry.event for entry in self.own))
        missing = self._missing_events() if self.own else []
        why_no_hooks = self.why_no_hooks()
        return {
            "host": self.host.name,
            "scope": self.scope,
            "file": self.path,
            "state": UNREADABLE if why_no_hooks else self._state(missing),
            "problem": str(why_no_hooks) if why_no_hooks else None,
            "command": self.command,
            "allow_report": self._arguments["reports"],
            "enforce": self._arguments["enforce"],
            "wired": wired,
            "missing": missing,
            "changed_at": _time_of_change(self.path) if self.own else None,
        }

    def _state(self, missing: list[str]) -> str:
        if not self.own:
            return ABSENT
        wanted = self._wanted_command()
        if any(words_of(entry.handler) != wanted for entry in self.own):
            return ELSEWHERE
        return INCOMPLETE if missing else COMPLETE

    def _wanted_command(self) -> list[str]:
        try:
            told = self._arguments
            return command_for(self.host, reports=told["reports"], enforce=told["enforce"])
        except SessionsError:  # this installation has no working hook, so all entries are of another one
            return []

    def _missing_events(self) -> list[str]:
        present = [wanted_entry_of(entry.event, entry.matcher, entry.handler) for entry in self.own]
        wanted = self.host.entries(enforce=self._arguments["enforce"])
        return list(dict.fromkeys(entry.event for entry in wanted if entry not in present))


def read_files(places: Places, host: HostSettings) -> list[InstalledFile]:
    """Returns the settings files of ``host`` whose places are known, from the user's to the narrowest scope."""
    return [InstalledFile(places, host, scope) for scope in host.files if places.knows(host, scope)]


def _time_of_change(path: str) -> str | None:
    try:
        return format_time(datetime.fromtimestamp(os.stat(path).st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return None


def _read(path: str, host: HostSettings) -> tuple[bytes | None, JsonText]:
    """Returns the content of the settings at ``path``, None if there is no file, and the parsed text."""
    try:
        data = external_file.read(path, LIMIT)
        return data, _parse_object(data or b"", host)
    except TooLarge:
        raise SettingsUnreadable(path, f"it is over the limit of {LIMIT} bytes", "") from None
    except InvalidInput as error:
        refused = SettingsUnreadable(path, error.problem, error.where)
        refused.__notes__ += error.excerpts
        raise refused from None


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
    """Raises ``InvalidInput`` if an object has one of ``keys`` twice: perhaps a host reads the other value."""
    seen: set[str | None] = set()
    wanted = frozenset(keys)
    for element in text.elements(start)[0]:
        if element.key in seen:
            text.member(start, str(element.key))  # raises if the object has a key twice
        seen |= wanted & {element.key}
