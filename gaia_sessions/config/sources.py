"""Settings as they are found: in files, in the environment, in flags.

Owns how each is read, what an unknown key might have meant, and what is said of an invalid value. Loaded only where
something is set.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import BadSetting
from gaia_sessions.system.project_root import ROOT_VARIABLE, VARIABLE_PREFIX

from .options import OPTIONS, display_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    RawSetting = tuple[str, str, object]
    """The file, variable or flag of a setting, its key there, its value."""

_NOT_OPTIONS = frozenset([ROOT_VARIABLE])
_NAMES_BY_KEY = {option.key: name for name, option in OPTIONS.items()}
_TABLES = {key.partition(".")[0] for key in _NAMES_BY_KEY if "." in key}
_NAMES_BY_VARIABLE = {VARIABLE_PREFIX + name.upper(): name for name in OPTIONS}
_NAMES_BY_FLAG = {"--" + name.replace("_", "-"): name for name in OPTIONS}


def read_settings(
    files: Iterable[str], environ: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[dict[str, object], list[BadSetting]]:
    """The value of each option that is set without a fault, and the faults; a later source replaces an earlier one."""
    faults: list[BadSetting] = []
    values: dict[str, object] = {}
    for path in files:
        values.update(_parse_settings(_NAMES_BY_KEY, _from_file(path, faults), faults))
    values.update(_parse_settings(_NAMES_BY_VARIABLE, _from_environment(environ), faults))
    values.update(_parse_settings(_NAMES_BY_FLAG, _from_flags(flags), faults))
    return values, faults


def origin_of(name: str, files: Iterable[str], environ: Mapping[str, str]) -> str | None:
    """The file or variable that sets the option ``name``; None if it has its default. Faulty settings are ignored."""
    settings = [setting for path in files for setting in _from_file(path, [])]
    origins = [(origin, _NAMES_BY_KEY.get(key), value) for origin, key, value in settings]
    origins += [(origin, _NAMES_BY_VARIABLE.get(key), value) for origin, key, value in _from_environment(environ)]
    return next(
        (origin for origin, option_name, value in reversed(origins) if option_name == name and _is_valid(name, value)),
        None,
    )


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
    variables = (name for name in environ if name.startswith(VARIABLE_PREFIX) and name not in _NOT_OPTIONS)
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

    is_variable = key.startswith(VARIABLE_PREFIX)
    names = [*option_names, *_NOT_OPTIONS] if is_variable else list(option_names)
    # The prefix would make any two variables similar.
    by_short_name = {name.removeprefix(VARIABLE_PREFIX): name for name in names}
    typed = key.removeprefix(VARIABLE_PREFIX).upper() if is_variable else key
    matches = get_close_matches(typed, by_short_name, n=1, cutoff=_SIMILARITY_CUTOFF)
    if matches:
        hint = f"did you mean {by_short_name[matches[0]]}?"
    elif is_variable:
        others = ", ".join(sorted(by_short_name))
        hint = f"type unset {key}; what may follow {VARIABLE_PREFIX} is {others}"
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
