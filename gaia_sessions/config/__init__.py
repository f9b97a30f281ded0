"""The settings of one call, read where they stand and nowhere else.

Owns their order: flag > environment > project file > user file > default. ``options`` says what there is
to set. Built once at the edge as one frozen ``Config`` and passed on; no other room
reads the environment for a setting. Where the sessions live is found by ``project``.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import BadSetting
from gaia_sessions.session.clock import timedelta
from gaia_sessions.system.project_root import claude_folder, home

from .options import OPTIONS, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.session.policy import Limits

    Given = tuple[str, str, object]
    """Where a setting stands, its key there, its value."""

PREFIX = "GAIA_SESSIONS_"


class Config:
    """Every setting of one call; frozen.

    idle_minutes, max_errors: the limits of the resume policy.
    durability: ``full`` syncs every write to the disk before it is acknowledged; ``fast`` leaves that
    to the system, so a power cut may take back the last seconds (never tear a record).
    lock_timeout: seconds a command waits for a session somebody else is writing.
    hooks: False switches the hooks off. ignore_agents: agent types the hooks leave alone.
    note: which sub-agents are told how to pause: ``all``, those that ``resume``, or none (``off``).
    track: ``all`` sub-agents, or only those of a ``named`` type, not the host's general one.
    report_command: whether sub-agents are told the command to report with; it takes a permission rule.
    store_description, keep_last_message: whether a delegation's description and an agent's last
    message are kept in the record.
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

    def __init__(self, chosen: Mapping[str, object]) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, chosen.get(name, OPTIONS[name].default))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is frozen: {name}")

    @property
    def limits(self) -> Limits:
        """The resume policy's share."""
        from gaia_sessions.session.policy import Limits  # most hook calls decide nothing

        return Limits(timedelta(minutes=self.idle_minutes), self.max_errors)


_NOT_OPTIONS = frozenset([PREFIX + "ROOT"])


def _refuse(fault: BadSetting) -> None:
    raise fault


def _pass_over(_: BadSetting) -> None:
    return


def load(
    root: str,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    on_fault: Callable[[BadSetting], None] = _refuse,
) -> Config:
    """The settings for the sessions at ``root``.

    A key or value that means nothing is a ``BadSetting``: raised, unless ``on_fault`` takes it and the
    setting is passed over.
    """
    chosen: dict[str, object] = {}
    for path in (user_file(environ), project_file(root)):
        chosen.update(_understood(_KEYS, _from_file(path, on_fault), on_fault))
    chosen.update(_understood(_VARIABLES, _from_environment(environ), on_fault))
    chosen.update(_understood(_FLAGS, _from_flags(flags or {}), on_fault))
    return Config(chosen)


def hooks_are_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment alone switches the hooks off: then nothing else is looked at."""
    try:
        return not OPTIONS["hooks"].read(environ.get(PREFIX + "HOOKS") or "on")
    except ValueError:
        return False


def project_file(root: str) -> str:
    """Beside a project's own settings when the root is its ``.claude/session``, else in the root itself."""
    folder = claude_folder(root)
    return os.path.join(folder, "gaia-sessions.toml") if folder else os.path.join(root, ".config.toml")


def user_file(environ: Mapping[str, str]) -> str:
    """The user's own settings, by the XDG rule that a relative path counts as unset; empty where no home is known."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):
        above = home(environ)
        if not above:
            return ""
        folder = os.path.join(above, ".config")
    return os.path.join(folder, "gaia-sessions", "config.toml")


def said_in(name: str, root: str, environ: Mapping[str, str]) -> str | None:
    """The file or variable by which the option ``name`` is as it is; None for its default. Faults are passed over."""
    given = [one for path in (user_file(environ), project_file(root)) for one in _from_file(path, _pass_over)]
    said = [(where, _KEYS.get(key), value) for where, key, value in given]
    said += [(where, _VARIABLES.get(key), value) for where, key, value in _from_environment(environ)]
    return next((where for where, known, value in reversed(said) if known == name and _is_read(name, value)), None)


_KEYS = {option.key: name for name, option in OPTIONS.items()}
_TABLES = {key.partition(".")[0] for key in _KEYS if "." in key}
_VARIABLES = {PREFIX + name.upper(): name for name in OPTIONS}
_FLAGS = {"--" + name.replace("_", "-"): name for name in OPTIONS}


def _from_file(path: str, on_fault: Callable[[BadSetting], None]) -> list[Given]:
    if not os.path.isabs(path) or not os.path.exists(path):
        return []
    if not os.path.isfile(path):  # to open a pipe would be to wait for its writer
        on_fault(BadSetting(path, "not a file", "remove it"))
        return []
    import tomllib  # costs more than a whole hook may: only where a file is there

    try:
        with open(path, "rb") as file:
            return [(path, key, value) for key, value in _flatten(tomllib.load(file))]
    except (OSError, ValueError, RecursionError) as error:
        on_fault(BadSetting(path, str(error), "correct the file or remove it"))
        return []


def _flatten(tables: dict[str, object]) -> list[tuple[str, object]]:
    flat = []
    for name, value in tables.items():
        if isinstance(value, dict) and name in _TABLES:
            flat += [(f"{name}.{key}", member) for key, member in value.items()]
        else:
            flat.append((name, value))
    return flat


def _from_environment(environ: Mapping[str, str]) -> list[Given]:
    ours = (name for name in environ if name.startswith(PREFIX) and name not in _NOT_OPTIONS)
    return [(name, name, environ[name]) for name in ours if environ[name]]


def _from_flags(flags: Mapping[str, object]) -> list[Given]:
    given = (("--" + name.replace("_", "-"), value) for name, value in flags.items() if value is not None)
    return [(flag, flag, value) for flag, value in given]


def _understood(
    known: Mapping[str, str], given: list[Given], on_fault: Callable[[BadSetting], None]
) -> dict[str, object]:
    """The values of ``given`` by the names of their options."""
    understood = {}
    for origin, key, value in given:
        try:
            name = _known(known, key, origin)
            understood[name] = _read(name, value, origin)
        except BadSetting as fault:
            on_fault(fault)
    return understood


_NEAR = 0.7
"""How alike two names must be for one to be meant by the other; ``hooks`` is not ``hooks.note``."""


def _known(known: Mapping[str, str], key: str, origin: str) -> str:
    if key in known:
        return known[key]
    from difflib import get_close_matches

    of_environment = key.startswith(PREFIX)
    names = [*known, *_NOT_OPTIONS] if of_environment else list(known)
    bare = {name.removeprefix(PREFIX): name for name in names}  # the prefix alone makes any two of them alike
    typed = key.removeprefix(PREFIX).upper() if of_environment else key
    near = get_close_matches(typed, bare, n=1, cutoff=_NEAR)
    if near:
        hint = f"did you mean {bare[near[0]]}?"
    elif of_environment:
        others = ", ".join(sorted(bare))
        hint = f"type unset {key}; what may follow {PREFIX} is {others}"
    else:
        hint = "the settings are " + ", ".join(sorted(known))
    raise BadSetting(origin, f"unknown setting {key}", hint)


def _is_read(name: str, value: object) -> bool:
    try:
        _read(name, value, "")
    except BadSetting:
        return False
    return True


def _read(name: str, value: object, origin: str) -> object:
    option = OPTIONS[name]
    try:
        return option.read(value)
    except (ValueError, OverflowError):
        raise BadSetting(origin, f"{option.key} = {shown(value)}", f"must be {option.wanted}") from None
