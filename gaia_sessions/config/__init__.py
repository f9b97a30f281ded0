"""The settings of one call: flag, else environment, else project file, else user file, else default.

Owns where settings are read and in which order; ``options`` says which there are. One frozen ``Config`` is built at the
edge and passed on, so no other package reads the environment or a file for a setting. Must never know what a setting
does.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import BadSetting
from gaia_sessions.session.clock import timedelta
from gaia_sessions.system.project_root import claude_folder
from gaia_sessions.system.users import config_folder

from .options import OPTIONS, display_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.session.policy import Limits

    RawSetting = tuple[str, str, object]
    """The file, variable or flag of a setting, its key there, its value."""

PREFIX = "GAIA_SESSIONS_"


class Config:
    """Every setting of one call; frozen.

    idle_minutes, max_errors: the limits of the resume policy.
    durability: ``full`` syncs every write to the disk before it is acknowledged; ``fast`` leaves that
    to the system, so a power cut may undo the last seconds (but never tears a record).
    lock_timeout: seconds that a command waits for a session that another process is writing.
    hooks: False disables the hooks. ignore_agents: agent types that the hooks ignore.
    note: which sub-agents get the instructions for pausing: ``all``, those that ``resume``, or none (``off``).
    track: ``all`` sub-agents, or only those of a ``named`` type, not the host's general one.
    report_command: whether sub-agents get the command to report with, which needs a permission rule.
    store_description, keep_last_message: whether the record keeps a delegation's description and an agent's
    last message.
    """

    __slots__ = (
        "durability",
        "hooks",
        "idle_minutes",
        "ignore_agents",
        "keep_last_message",
        "lock_timeout",
        "max_errors",
        "note",
        "report_command",
        "store_description",
        "track",
    )

    idle_minutes: float
    max_errors: int
    durability: str
    lock_timeout: float
    hooks: bool
    ignore_agents: tuple[str, ...]
    note: str
    track: str
    report_command: bool
    store_description: bool
    keep_last_message: bool

    def __init__(self, values: Mapping[str, object]) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, values.get(name, OPTIONS[name].default))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is frozen: {name}")

    @property
    def limits(self) -> Limits:
        """The limits of the resume policy."""
        from gaia_sessions.session.policy import Limits  # most hook calls decide nothing

        return Limits(timedelta(minutes=self.idle_minutes), self.max_errors)


_NOT_OPTIONS = frozenset([PREFIX + "ROOT"])


def load(root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Config:
    """The settings for the sessions at ``root``; raises ``BadSetting`` for the first unknown key or invalid value."""
    config, faults = load_with_faults(root, environ, flags)
    if faults:
        raise faults[0]
    return config


def load_with_faults(
    root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> tuple[Config, list[BadSetting]]:
    """The settings for the sessions at ``root`` without those that are faulty, and the faults."""
    faults: list[BadSetting] = []
    values: dict[str, object] = {}
    for path in (user_file(environ), project_file(root)):
        values.update(_parse_settings(_NAMES_BY_KEY, _from_file(path, faults), faults))
    values.update(_parse_settings(_NAMES_BY_VARIABLE, _from_environment(environ), faults))
    values.update(_parse_settings(_NAMES_BY_FLAG, _from_flags(flags or {}), faults))
    return Config(values), faults


def hooks_are_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment alone disables the hooks, so that no file needs to be read."""
    try:
        return not OPTIONS["hooks"].parse(environ.get(PREFIX + "HOOKS") or "on")
    except ValueError:
        return False


def project_file(root: str) -> str:
    """The settings file for ``root``: in the project's ``.claude``, or in the root itself if that is elsewhere."""
    folder = claude_folder(root)
    return os.path.join(folder, "gaia-sessions.toml") if folder else os.path.join(root, ".config.toml")


def user_file(environ: Mapping[str, str]) -> str:
    """The user's own settings file; empty where the user has no home."""
    folder = config_folder(environ)
    return os.path.join(folder, "config.toml") if folder else ""


def origin_of(name: str, root: str, environ: Mapping[str, str]) -> str | None:
    """The file or variable that sets the option ``name``; None if it has its default. Faulty settings are ignored."""
    settings = [setting for path in (user_file(environ), project_file(root)) for setting in _from_file(path, [])]
    origins = [(origin, _NAMES_BY_KEY.get(key), value) for origin, key, value in settings]
    origins += [(origin, _NAMES_BY_VARIABLE.get(key), value) for origin, key, value in _from_environment(environ)]
    return next(
        (origin for origin, option_name, value in reversed(origins) if option_name == name and _is_valid(name, value)),
        None,
    )


_NAMES_BY_KEY = {option.key: name for name, option in OPTIONS.items()}
_TABLES = {key.partition(".")[0] for key in _NAMES_BY_KEY if "." in key}
_NAMES_BY_VARIABLE = {PREFIX + name.upper(): name for name in OPTIONS}
_NAMES_BY_FLAG = {"--" + name.replace("_", "-"): name for name in OPTIONS}


def _from_file(path: str, faults: list[BadSetting]) -> list[RawSetting]:
    """The settings in the file at ``path``, if it exists; adds to ``faults`` if it cannot be read."""
    if not os.path.isabs(path) or not os.path.exists(path):
        return []
    if not os.path.isfile(path):  # opening a pipe would wait for its writer
        faults.append(BadSetting(path, "not a file", "remove it"))
        return []
    import tomllib  # costs more than a whole hook call may, so only where a file exists

    try:
        with open(path, "rb") as file:
            return [(path, key, value) for key, value in _flatten(tomllib.load(file))]
    except (OSError, ValueError, RecursionError) as error:
        faults.append(BadSetting(path, str(error), "correct the file or remove it"))
        return []


def _flatten(tables: dict[str, object]) -> list[tuple[str, object]]:
    flat = []
    for name, value in tables.items():
        if isinstance(value, dict) and name in _TABLES:
            flat += [(f"{name}.{key}", member) for key, member in value.items()]
        else:
            flat.append((name, value))
    return flat


def _from_environment(environ: Mapping[str, str]) -> list[RawSetting]:
    variables = (name for name in environ if name.startswith(PREFIX) and name not in _NOT_OPTIONS)
    return [(name, name, environ[name]) for name in variables if environ[name]]


def _from_flags(flags: Mapping[str, object]) -> list[RawSetting]:
    flag_values = (("--" + name.replace("_", "-"), value) for name, value in flags.items() if value is not None)
    return [(flag, flag, value) for flag, value in flag_values]


def _parse_settings(
    names: Mapping[str, str], settings: list[RawSetting], faults: list[BadSetting]
) -> dict[str, object]:
    """The values of ``settings`` by the names of their options; adds to ``faults`` those without a meaning."""
    parsed = {}
    for origin, key, value in settings:
        try:
            name = _option_name(names, key, origin)
            parsed[name] = _parse_value(name, value, origin)
        except BadSetting as fault:
            faults.append(fault)
    return parsed


_SIMILARITY_CUTOFF = 0.7
"""How similar an unknown key must be to a known one to be suggested; ``hooks`` does not suggest ``hooks.note``."""


def _option_name(option_names: Mapping[str, str], key: str, origin: str) -> str:
    if key in option_names:
        return option_names[key]
    from difflib import get_close_matches

    is_variable = key.startswith(PREFIX)
    names = [*option_names, *_NOT_OPTIONS] if is_variable else list(option_names)
    by_short_name = {name.removeprefix(PREFIX): name for name in names}  # the prefix would make any two similar
    typed = key.removeprefix(PREFIX).upper() if is_variable else key
    matches = get_close_matches(typed, by_short_name, n=1, cutoff=_SIMILARITY_CUTOFF)
    if matches:
        hint = f"did you mean {by_short_name[matches[0]]}?"
    elif is_variable:
        others = ", ".join(sorted(by_short_name))
        hint = f"type unset {key}; what may follow {PREFIX} is {others}"
    else:
        hint = "the settings are " + ", ".join(sorted(option_names))
    raise BadSetting(origin, f"unknown setting {key}", hint)


def _is_valid(name: str, value: object) -> bool:
    try:
        _parse_value(name, value, "")
    except BadSetting:
        return False
    return True


def _parse_value(name: str, value: object, origin: str) -> object:
    option = OPTIONS[name]
    try:
        return option.parse(value)
    except (ValueError, OverflowError):
        raise BadSetting(origin, f"{option.key} = {display_value(value)}", f"must be {option.expected}") from None
