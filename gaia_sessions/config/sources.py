"""Reads settings from files, variables and flags, and finds their faults."""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.session.checks import TYPES
from gaia_sessions.session.clock import LENGTHS, length_of_time
from gaia_sessions.system.project_root import ROOT_VARIABLES, VARIABLE_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .files import Unread

    Tables = Mapping[str, Mapping[str, str]]
    """By table of a file: its settings, each with the kind of its value."""

    FoundFile = tuple[str, bytes | Unread]
    """The path of a settings file, and its content or why it is not read."""

    RawSetting = tuple[str, str, object]
    """The origin of a setting (file, variable or flag), its key there, and its value."""

_MOST_DOTS = 50
"""The most dots in a line: the time that ``tomllib`` takes for a dotted key grows with the square of its length."""

_MOST_WORDS = 500
"""The most words in a list: a session cannot have more tools."""

_LONGEST_SHOWN = 80
_MOST_LISTED, _LONGEST_LISTED = 10, 30
"""The most unknown names of a file in a message, and the longest beginning of each."""

_LONGEST_REASON = 200
_TOO_LARGE = 1e9
_TOOLS_BY_TYPE, _TYPES_BY_KEY = _TABLES = "ToolsByType", "TypesByKey"
"""The kinds of the settings that can be set only in a file."""
_STRICTEST = {"approvals": "explicit"}
"""Hooks use these values if a setting is invalid or its file cannot be read: the user wanted to limit agents."""


class Fault:
    """What is wrong in the settings of ``origin``: a file, a variable or a flag."""

    # The texts are made only when needed: a search for similar names takes too long for a hook.
    # An unknown name in a file stops no command: perhaps another version knows the name.
    # ``is_file`` is false if there is a link or a folder instead of a file.

    __slots__ = ("_hint", "_problem", "is_file", "origin", "stops_commands")

    def __init__(
        self,
        origin: str,
        problem: Callable[[], str],
        hint: Callable[[], str],
        *,
        stops_commands: bool = True,
        is_file: bool = True,
    ) -> None:
        self.origin = origin
        self.stops_commands = stops_commands
        self.is_file = is_file
        self._problem = problem
        self._hint = hint

    def __str__(self) -> str:
        return str(errors.BadSetting(self.origin, self._problem(), ""))

    @property
    def problem(self) -> str:
        """The fault without its origin."""
        return self._problem()

    @property
    def hint(self) -> str:
        return self._hint()

    def error(self) -> errors.BadSetting:
        """The error that a command raises."""
        return errors.BadSetting(self.origin, self._problem(), self._hint())


class Known:
    """All settings: their kinds, and their names by key, variable and flag."""

    def __init__(self, tables: Tables) -> None:
        by_table = [(table, name, kind) for table, rows in tables.items() for name, kind in rows.items()]
        self.tables = tables
        self.kinds = {name: kind for _, name, kind in by_table}
        self.keys = {name: _key(table, name) for table, name, _ in by_table}
        self.by_key = {key: name for name, key in self.keys.items()}
        self.by_variable = {
            VARIABLE_PREFIX + name.upper(): name for name, kind in self.kinds.items() if kind not in _TABLES
        }
        self.by_flag = {"--" + name.replace("_", "-"): name for name in self.kinds}


def _key(table: str, name: str) -> str:
    # ``hooks`` is ``hooks.enabled`` in a file; ``limits_tokens`` is ``limits.tokens``.
    key = "enabled" if name == table else name.removeprefix(f"{table}_")
    return f"{table}.{key}" if table else key


def read_settings(
    tables: Tables, files: Iterable[FoundFile], environ: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[dict[str, object], list[Fault]]:
    """Returns the valid settings and the faults; a setting replaces the same setting of an earlier source."""
    known = Known(tables)
    faults: list[Fault] = []
    values: dict[str, object] = {}
    for file in files:
        values.update(_parse_settings(known, known.by_key, _from_file(file, known, faults), faults))
    values.update(_parse_settings(known, known.by_variable, _from_environment(environ), faults))
    values.update(_parse_settings(known, known.by_flag, _from_flags(flags), faults))
    return values, faults


def origin_of(tables: Tables, name: str, files: Iterable[FoundFile], environ: Mapping[str, str]) -> str | None:
    """Returns the file or variable that sets ``name`` without a fault; None if the setting has its default."""
    known = Known(tables)
    settings = [setting for file in files for setting in _from_file(file, known, [])]
    origins = [(origin, known.by_key.get(key), value) for origin, key, value in settings]
    origins += [(origin, known.by_variable.get(key), value) for origin, key, value in _from_environment(environ)]
    return next(
        (
            origin
            for origin, option_name, value in reversed(origins)
            if option_name == name and _is_valid(known.kinds[name], value)
        ),
        None,
    )


def _from_file(file: FoundFile, known: Known, faults: list[Fault]) -> list[RawSetting]:
    """Returns the settings in ``file``; if the file cannot be read, adds a fault and returns the strictest."""
    path, content = file
    if not isinstance(content, bytes):
        faults.append(Fault(path, lambda: str(content), lambda: content.hint, is_file=content.is_file))
        return _strictest_of(path)
    import tomllib  # slow to load, so only if a file exists

    try:
        text = content.decode()
        _check_dots(text)
        return [(path, key, value) for key, value in _flatten(tomllib.loads(text), known.tables)]
    except UnicodeDecodeError as error:
        why = f"not UTF-8 at byte {error.start + 1}"
    except (ValueError, RecursionError) as error:
        why = str(error)
    faults.append(Fault(path, lambda: _shown(why, _LONGEST_REASON), lambda: "correct the file or remove it"))
    return _strictest_of(path)


def _strictest_of(path: str) -> list[RawSetting]:
    return [(path, name, value) for name, value in _STRICTEST.items()]


def _check_dots(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(f"more than {_MOST_DOTS} dots in line {number}")


def _flatten(document: dict[str, object], tables: Tables) -> list[tuple[str, object]]:
    flat = []
    for name, value in document.items():
        if isinstance(value, dict) and name in tables:
            flat += [(f"{name}.{key}", member) for key, member in value.items()]
        else:
            flat.append((name, value))
    return flat


def _from_environment(environ: Mapping[str, str]) -> list[RawSetting]:
    variables = (name for name in environ if name.startswith(VARIABLE_PREFIX) and name not in ROOT_VARIABLES)
    return [(name, name, environ[name]) for name in variables if environ[name]]


def _from_flags(flags: Mapping[str, object]) -> list[RawSetting]:
    flag_values = (("--" + name.replace("_", "-"), value) for name, value in flags.items() if value is not None)
    return [(flag, flag, value) for flag, value in flag_values]


def _parse_settings(
    known: Known, names: Mapping[str, str], settings: list[RawSetting], faults: list[Fault]
) -> dict[str, object]:
    """Returns the valid values by the names of the settings; adds the invalid ones to ``faults``."""
    parsed: dict[str, object] = {}
    unknown: list[tuple[str, str]] = []
    is_file = names is known.by_key
    for origin, key, value in settings:
        name = names.get(key)
        if name is None and is_file and key in known.tables and key:
            faults.append(_no_table(origin, key, value))
            continue
        if name is None:
            unknown.append((origin, key))
            continue
        kind = known.kinds[name]
        try:
            parsed[name] = parse(kind, value)
        except (ValueError, OverflowError):
            faults.append(_invalid(origin, key, value, kind))
            if kind == _TOOLS_BY_TYPE:
                parsed[name] = _tools_that_are_sure(value)
            elif name in _STRICTEST:
                parsed[name] = _STRICTEST[name]
    if unknown and is_file:
        faults.append(_unknown_in_file(unknown[0][0], [key for _, key in unknown], names))
    else:
        faults += [_unknown(origin, key, names) for origin, key in unknown]
    return parsed


_SIMILARITY_CUTOFF = 0.7
"""How similar a suggested key must be: ``hook`` does not suggest ``hooks.note``."""


def _unknown(origin: str, key: str, option_names: Mapping[str, str], *, stops_commands: bool = True) -> Fault:
    return Fault(
        origin,
        lambda: f"unknown setting {_shown(key)}",
        lambda: _meant(key, option_names),
        stops_commands=stops_commands,
    )


def _unknown_in_file(path: str, keys: list[str], option_names: Mapping[str, str]) -> Fault:
    """Returns one fault for all unknown names in a file: there can be thousands."""
    if len(keys) == 1:
        return _unknown(path, keys[0], option_names, stops_commands=False)

    def problem() -> str:
        shown = ", ".join(_shown(key, _LONGEST_LISTED) for key in keys[:_MOST_LISTED])
        rest = len(keys) - _MOST_LISTED
        return f"{len(keys):,} unknown settings: {shown}{f' and {rest:,} more' if rest > 0 else ''}"

    return Fault(path, problem, lambda: _all_that_are(option_names), stops_commands=False)


def _meant(key: str, option_names: Mapping[str, str]) -> str:
    """Returns the hint for an unknown ``key``: the most similar name, else all names."""
    from difflib import get_close_matches

    is_variable = key.startswith(VARIABLE_PREFIX)
    names = [*option_names, *ROOT_VARIABLES] if is_variable else list(option_names)
    # All variables have the same prefix, so with the prefix any two would be similar.
    by_short_name = {name.removeprefix(VARIABLE_PREFIX): name for name in names}
    typed = key.removeprefix(VARIABLE_PREFIX).upper() if is_variable else key
    matches = get_close_matches(typed[:_LONGEST_SHOWN], by_short_name, n=1, cutoff=_SIMILARITY_CUTOFF)
    if matches:
        return f"did you mean {by_short_name[matches[0]]}?"
    if is_variable:
        others = ", ".join(sorted(by_short_name))
        return f"type `unset {_shown(key)}`; names that can follow {VARIABLE_PREFIX}: {others}"
    return _all_that_are(option_names)


def _all_that_are(option_names: Mapping[str, str]) -> str:
    return "the settings are " + ", ".join(sorted(option_names))


def _no_table(origin: str, table: str, value: object) -> Fault:
    return Fault(origin, lambda: f"{table} = {_shown_value(value)} is not valid", lambda: f"must be a table: [{table}]")


def _is_valid(kind: str, value: object) -> bool:
    try:
        parse(kind, value)
    except (ValueError, OverflowError):
        return False
    return True


def _invalid(origin: str, key: str, value: object, kind: str) -> Fault:
    words = [f'"{word}"' for word in _words(kind)]
    expected = f"{', '.join(words[:-1])} or {words[-1]}" if words else _KINDS[kind][1]
    return Fault(origin, lambda: f"{key} = {_shown_value(value)} is not valid", lambda: f"must be {expected}")


def parse(kind: str, value: object) -> object:
    """Returns ``value`` as a setting of this ``kind``; raises ``ValueError`` or ``OverflowError``."""
    words = _words(kind)
    if not words:
        return _KINDS[kind][0](value)
    if value not in words:
        raise ValueError
    return value


def _words(kind: str) -> list[str]:
    """Returns the words of a ``Literal``; none for any other kind."""
    return kind.split("'")[1::2]


def _nonnegative(value: object, unit: str | None = None) -> float:
    number = -1.0
    if isinstance(value, str) and unit:
        number = length_of_time(value, unit)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        number = float(value)
    if not 0 <= number < _TOO_LARGE:
        raise ValueError
    return number


def _positive(value: object, unit: str | None = None) -> float:
    number = _nonnegative(value, unit)
    if not number:
        raise ValueError
    return number


def _count(value: object) -> int:
    number = _positive(value)
    if number != int(number):
        raise ValueError
    return int(number)


_BOOLEAN_WORDS = {
    "on": True,
    "true": True,
    "1": True,
    "yes": True,
    "off": False,
    "false": False,
    "0": False,
    "no": False,
}


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.casefold() in _BOOLEAN_WORDS:
        return _BOOLEAN_WORDS[value.casefold()]
    raise ValueError


def _names(value: object) -> tuple[str, ...]:
    return tuple(name.casefold() for name in _words_in_list(value))


def _words_in_list(value: object) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words) or len(words) > _MOST_WORDS:
        raise ValueError
    return tuple(word.strip() for word in words if word.strip())


def _tools_by_type(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004  # as for any other value
    found = {name.strip().casefold(): _words_in_list(tools) for name, tools in value.items()}
    if len(found) < len(value):  # two names of one type: which list is meant is unknown
        raise ValueError
    return found


def _tools_that_are_sure(value: object) -> dict[str, tuple[str, ...]]:
    """Returns the valid lists of a faulty table; a type with an invalid list, or with two lists, gets no tools."""
    found: dict[str, tuple[str, ...]] = {}
    for name, tools in value.items() if isinstance(value, dict) else ():
        is_sure = name.strip().casefold() not in found and _is_valid("Words", tools)
        found[name.strip().casefold()] = _words_in_list(tools) if is_sure else ()
    return found


def _types_by_key(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name in TYPES for name in value.values()):
        raise ValueError
    return value


_KINDS: dict[str, tuple[Callable[[object], object], str]] = {
    "Days": (lambda value: _nonnegative(value, "d"), f"a length of time: {LENGTHS}, or a number of days"),
    "Minutes": (lambda value: _positive(value, "m"), f"a length of time above 0: {LENGTHS}, or a number of minutes"),
    "Seconds": (lambda value: _nonnegative(value, "s"), f"a length of time: {LENGTHS}, or a number of seconds"),
    "Limit": (_count, "a whole number above 0"),
    "TimeLimit": (lambda value: _positive(value, "s"), f"a length of time above 0: {LENGTHS}, or a number of seconds"),
    "Count": (_count, "a whole number above 0"),
    "Switch": (_boolean, "true or false"),
    "Names": (_names, f"a list of at most {_MOST_WORDS} agent types"),
    "Words": (_words_in_list, f"a list of at most {_MOST_WORDS} texts"),
    _TOOLS_BY_TYPE: (
        _tools_by_type,
        f'a table with a list of at most {_MOST_WORDS} tools for each type, for example Explore = ["Read", "Grep"]',
    ),
    _TYPES_BY_KEY: (
        _types_by_key,
        f'a table of types, for example intent = "str"; the types are {", ".join(TYPES)}',
    ),
}
"""By kind: the function that reads a value, and what the hint says that the value must be."""


def _shown(text: str, longest: int = _LONGEST_SHOWN) -> str:
    """Returns the visible beginning of ``text``: a stranger can have written the file."""
    from gaia_sessions.session.visible import visible_line  # only faults need it

    return errors.shorten(visible_line(text, longest + 1), longest)


def _shown_value(value: object) -> str:
    try:
        return _shown(repr(value))
    except (ValueError, RecursionError):  # more digits than Python converts, or tables in tables without end
        return "a value too large to show"
