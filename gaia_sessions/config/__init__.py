"""The settings of one call: flag, else environment, else project file, else user file, else default.

Owns the defaults, where settings are looked for and in which order. ``options`` says how each is written, ``sources``
reads them; both are loaded only where something is set, because every hook loads this module. One frozen ``Config`` is
built at the edge and passed on, so no other package reads the environment or a file for a setting.
"""

from __future__ import annotations

import os

from gaia_sessions.session.clock import timedelta
from gaia_sessions.system import config_folder
from gaia_sessions.system.project_root import ROOT_VARIABLE, VARIABLE_PREFIX, claude_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gaia_sessions.errors import BadSetting
    from gaia_sessions.session.budget import DefaultBudgets
    from gaia_sessions.session.policy import Limits

DEFAULTS: dict[str, object] = {
    "idle_minutes": 30.0,
    "quiet_minutes": 10.0,
    "max_errors": 3,
    "max_tokens": 200_000,
    "sub_agent_max_tokens": 64_000,
    "durability": "full",
    "lock_timeout": 10.0,
    "hooks": True,
    "ignore_agents": (),
    "note": "all",
    "track": "all",
    "store_description": True,
    "keep_last_message": True,
}
"""The value of each option where nobody sets it."""


class Config:
    """Every setting of one call; frozen.

    idle_minutes: minutes without activity after which work may not be resumed.
    quiet_minutes: minutes without a sign of life after which a running agent is called quiet.
    max_errors: the number of errors from which on work may not be resumed.
    max_tokens: how many tokens a session may use whose record does not say it.
    sub_agent_max_tokens: the same for the session of a sub-agent.
    durability: ``full`` syncs every write to the disk before it is acknowledged; ``fast`` leaves that
    to the system, so a power cut may undo the last seconds (but never tears a record).
    lock_timeout: seconds that a command waits for a session that another process is writing.
    hooks: False disables the hooks.
    ignore_agents: agent types that the hooks ignore.
    note: which sub-agents get the instructions for pausing: ``all``, those that ``resume``, or none (``off``).
    track: ``all`` sub-agents, or only those of a ``named`` type, not the host's general one.
    store_description: whether the record keeps a delegation's description.
    keep_last_message: whether the record keeps an agent's last message.
    """

    __slots__ = tuple(DEFAULTS)

    idle_minutes: float
    quiet_minutes: float
    max_errors: int
    max_tokens: int
    sub_agent_max_tokens: int
    durability: str
    lock_timeout: float
    hooks: bool
    ignore_agents: tuple[str, ...]
    note: str
    track: str
    store_description: bool
    keep_last_message: bool

    def __init__(self, values: Mapping[str, object]) -> None:
        for name, default in DEFAULTS.items():
            object.__setattr__(self, name, values.get(name, default))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is frozen: {name}")

    @property
    def limits(self) -> Limits:
        """The limits of the resume policy, and that of silence."""
        from gaia_sessions.session.policy import Limits  # most hook calls decide nothing

        idle, quiet = timedelta(minutes=self.idle_minutes), timedelta(minutes=self.quiet_minutes)
        return Limits(idle, self.max_errors, quiet)

    @property
    def budgets(self) -> DefaultBudgets:
        """How many tokens a session may use whose record does not say it."""
        from gaia_sessions.session.budget import DefaultBudgets  # no call of a hook asks

        return DefaultBudgets(self.max_tokens, self.sub_agent_max_tokens)


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
    files = [path for path in _files(root, environ) if os.path.exists(path)]
    if not (files or flags or _has_variables(environ)):
        return Config({}), []
    from .sources import read_settings

    values, faults = read_settings(files, environ, flags or {})
    return Config(values), faults


def hooks_are_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment alone disables the hooks, so that no file needs to be read."""
    value = environ.get(VARIABLE_PREFIX + "HOOKS")
    if not value:
        return False
    from .options import OPTIONS

    try:
        return not OPTIONS["hooks"].parse(value)
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
    from . import sources

    return sources.origin_of(name, _files(root, environ), environ)


def _files(root: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The settings files, the one that decides last."""
    return user_file(environ), project_file(root)


def _has_variables(environ: Mapping[str, str]) -> bool:
    return any(name.startswith(VARIABLE_PREFIX) and name != ROOT_VARIABLE for name in environ)
