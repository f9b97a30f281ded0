"""The settings of one call: flag, else environment, else project file, else user file, else default.

A setting is an attribute here: its kind, its value where nobody sets it, and what the page says of it. ``sources``
reads what is set, and is loaded only then, because every hook loads this module. One frozen ``Config`` is built at the
edge and passed on, so no other package reads the environment or a file for a setting.
"""

from __future__ import annotations

import os

from gaia_sessions.session.clock import timedelta
from gaia_sessions.system import config_folder
from gaia_sessions.system.project_root import ROOT_VARIABLE, VARIABLE_PREFIX, claude_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from gaia_sessions.session.agent_limits import AgentLimits
    from gaia_sessions.session.budget import DefaultBudgets
    from gaia_sessions.session.policy import Limits
    from gaia_sessions.session.tools import ToolRules

    from .sources import Fault, FoundFile

    Days = float
    Minutes = float
    Seconds = float
    Count = int
    Switch = bool
    Names = tuple[str, ...]
    Words = tuple[str, ...]
    Limit = int | None
    TimeLimit = float | None
    TypesByKey = Mapping[str, str]
    ToolsByType = Mapping[str, tuple[str, ...]]


class HookConfig:
    """The settings in the table ``[hooks]`` of a file."""

    hooks: Switch = True
    """false, or `GAIA_SESSIONS_HOOKS=off`, switches the hooks off"""
    ignore_agents: Names = ()
    """agent types that the hooks ignore"""
    track: Literal["all", "named"] = "all"
    """`"named"`: the hooks ignore agents of the host's general type, such as `general-purpose`"""
    note: Literal["all", "resume", "off"] = "all"
    """who is told how to pause: `"all"` sub-agents; `"resume"`: only sub-agents that resume a session; `"off"`: none"""
    store_description: Switch = True
    """store the description of a delegation as `purpose`; the prompt is never stored"""
    keep_last_message: Switch = True
    """store an agent's last message: 4,000 characters for the latest run, 200 for earlier runs"""


class LimitsConfig:
    """The settings in the table ``[limits]`` of a file."""

    limits_tokens: Limit = None
    """[with `hooks install --enforce`](limits.md#limits-of-a-hosts-agents): the budget of a session without its own"""
    limits_rounds: Limit = None
    """with `--enforce`: the most rounds of a run; a round is one request to the model, with its tool calls"""
    limits_seconds: TimeLimit = None
    """with `--enforce`: the most seconds of a run"""
    limits_searches: Limit = None
    """with `--enforce`: the most searches of a run"""
    limits_repeats: Literal["off", "deny", "cancel"] = "off"
    """with `--enforce`: `"deny"` denies [a loop](limits.md#loops), `"cancel"` also cancels the session above"""
    limits_search_tools: Words = (
        *("WebSearch", "WebFetch", "web_search", "web_extract", "deep_crawl", "web_markdown", "web_pdf"),
    )
    """the tools that count as searches"""
    limits_completion_check: Switch = False
    """with `--enforce`: [an agent that stops with open todos](limits.md#open-todos) is kept at work"""
    limits_blocked_tools: Words = ()
    """tools that no sub-agent may use, besides [those that are always blocked](limits.md#tools)"""
    limits_tools: ToolsByType = {}  # noqa: RUF012  # never changed
    """the tools that a type of agent may use: `Explore = ["Read", "Grep"]` in the table `[limits.tools]`"""


class GuardConfig:
    """The settings in the table ``[guard]`` of a file."""

    guard_mode: Literal["off", "block"] = "off"
    """`"block"`: `run`, and hooks with `--enforce`, refuse [tasks that ask for analysis](limits.md#the-guard)"""
    guard_words: Words = ()
    """at most 50 prefixes of words that ask for analysis, besides the words that the guard knows"""


class StateConfig:
    """The settings in the table ``[state]`` of a file."""

    state_keys: TypesByKey = {}  # noqa: RUF012  # never changed
    """the keys that [shared state](state.md) can have: `intent = "str"` in the table `[state.keys]`"""


class Config(HookConfig, LimitsConfig, GuardConfig, StateConfig):
    """Every setting of one call; frozen."""

    idle_minutes: Minutes = 30.0
    """a session that was idle for this many minutes cannot be resumed"""
    quiet_minutes: Minutes = 10.0
    """an agent without a sign of life for more minutes than this is [`quiet`](phases.md#states)"""
    max_errors: Count = 3
    """a session with this many errors cannot be resumed"""
    max_tokens: Count = 200_000
    """the budget of [an agent's memory in Python](python.md#its-memory), if the session has no budget of its own"""
    sub_agent_max_tokens: Count = 64_000
    """used instead of `max_tokens` if the session is below another session or has runs"""
    keep_days: Days = 7.0
    """days that [`cleanup`](ci-and-cron.md#what-cleanup-keeps) keeps open sessions with turns or an open question"""
    keep_figures: Switch = True
    """store [the figures of removed sessions](figures.md#what-removed-sessions-leave), for `stats`"""
    lock_timeout: Seconds = 10.0
    """seconds that a command waits for a locked session"""
    approvals: Literal["any", "explicit"] = "any"
    """`"explicit"`: [only `approve` approves](approve.md#only-a-person-approves), never a resume line"""
    durability: Literal["full", "fast"] = "full"
    """`"full"` syncs each write; `"fast"` leaves syncing to the system: see [Durability](record.md#durability)"""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is frozen: {name}")

    @property
    def limits(self) -> Limits:
        """The limits of the resume policy, and that of silence."""
        from gaia_sessions.session.policy import Limits  # most hook calls decide nothing

        idle, quiet = timedelta(minutes=self.idle_minutes), timedelta(minutes=self.quiet_minutes)
        return Limits(idle, self.max_errors, quiet, explicit_approvals=self.approvals == "explicit")

    @property
    def budgets(self) -> DefaultBudgets:
        """How many tokens the memory of an agent has room for whose record does not say it."""
        from gaia_sessions.session.budget import DefaultBudgets  # no call of a hook asks

        return DefaultBudgets(self.max_tokens, self.sub_agent_max_tokens)

    @property
    def enforced_settings(self) -> list[str]:
        """The names of the settings that say something and that only ``hooks install --enforce`` holds in a client."""
        limits = {name: getattr(self, name) for name in LimitsConfig.__annotations__ if name != "limits_search_tools"}
        names = [name.replace("_", ".", 1) for name, value in limits.items() if value and value != "off"]
        return [*names, *(["guard.mode"] if self.guard_mode != "off" else [])]

    @property
    def agent_limits(self) -> AgentLimits:
        """What the agents of hosts may use at most."""
        from gaia_sessions.session.agent_limits import AgentLimits

        return AgentLimits(
            tokens=self.limits_tokens,
            rounds=self.limits_rounds,
            seconds=self.limits_seconds,
            searches=self.limits_searches,
            search_tools=self.limits_search_tools,
        )

    @property
    def tool_rules(self) -> ToolRules:
        """Which tools no sub-agent may use, and which ones those of a type may."""
        from gaia_sessions.session.tools import ToolRules

        return ToolRules(self.limits_blocked_tools, self.limits_tools)


TABLES = {
    "": Config.__annotations__,
    "hooks": HookConfig.__annotations__,
    "limits": LimitsConfig.__annotations__,
    "guard": GuardConfig.__annotations__,
    "state": StateConfig.__annotations__,
}
"""By the table of a file that has them: the settings, and of what kind the value of each is."""

DEFAULT_HOURS = 24.0
"""How long a session must have been unused before ``cleanup`` removes it, unless the caller says otherwise."""


def load(root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Config:
    """The settings for the sessions at ``root``; raises ``BadSetting`` for the first fault that stops commands."""
    config, faults = load_with_faults(root, environ, flags)
    for fault in faults:
        if fault.stops_commands:
            raise fault.error()
    return config


def load_with_faults(
    root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> tuple[Config, list[Fault]]:
    """The settings for the sessions at ``root`` without those that are faulty, and the faults.

    Of a faulty ``limits.tools`` what is sure is kept, and ``approvals`` is explicit then: see ``sources``.
    """
    has_variables = _has_variables(environ)
    files = _files(root, environ)
    if not (files or flags or has_variables):
        return Config({}), []
    from .sources import read_settings

    values, faults = read_settings(TABLES, files, environ, flags or {})
    return Config(values), faults


def hooks_are_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment alone disables the hooks, so that no file needs to be read."""
    value = environ.get(VARIABLE_PREFIX + "HOOKS")
    if not value:
        return False
    from .sources import parse

    try:
        return not parse(HookConfig.__annotations__["hooks"], value)
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

    return sources.origin_of(TABLES, name, _files(root, environ), environ)


def _files(root: str, environ: Mapping[str, str]) -> list[FoundFile]:
    """The settings files that are there, each with its content or why that is not read; the last one decides.

    A user may keep the own file elsewhere and link to it. Where a link in a project leads is up to whoever wrote that.
    """
    found: list[FoundFile] = []
    for path, may_be_link in ((user_file(environ), True), (project_file(root), False)):
        opened: int | OSError
        try:
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            continue
        except OSError as error:
            opened = error
        from .files import content_of

        content = content_of(path, opened, may_be_link=may_be_link)
        found += [] if content is None else [(path, content)]
    return found


def _has_variables(environ: Mapping[str, str]) -> bool:
    return any(name.startswith(VARIABLE_PREFIX) and name != ROOT_VARIABLE for name in environ)
