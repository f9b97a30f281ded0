"""The settings of one call: flag, else environment, else project file, else user file, else default.

Every hook loads this module, so ``sources`` is loaded only if something is set. ``scripts/render_docs`` renders the
text below each setting.
"""

from __future__ import annotations

import os

from gaia_sessions.session.clock import timedelta
from gaia_sessions.system import config_folder
from gaia_sessions.system.project_root import ROOT_VARIABLES, VARIABLE_PREFIX, claude_folder

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
    """days that [`cleanup` keeps](ci-and-cron.md#what-cleanup-keeps) some open sessions; on a server: `store init`"""
    keep_figures: Switch = True
    """store [the figures of removed sessions](figures.md#what-removed-sessions-leave), for `stats`"""
    lock_timeout: Seconds = 10.0
    """seconds that a command waits for a locked session"""
    approvals: Literal["any", "explicit"] = "any"
    """`"explicit"`: [only `approve` approves](approve.md#only-a-person-approves), never a resume line"""
    durability: Literal["full", "fast"] = "full"
    """`"full"` syncs each write; `"fast"` leaves syncing to the system: see [Durability](record.md#durability)"""

    has_hooks = True  # no setting, so it has no kind; false for a server: no hook looks into one

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Config is frozen: {name}")

    @property
    def limits(self) -> Limits:
        """The limits of the resume check, and how long an agent can be silent."""
        from gaia_sessions.session.policy import Limits  # most hook calls decide nothing

        idle, quiet = timedelta(minutes=self.idle_minutes), timedelta(minutes=self.quiet_minutes)
        is_explicit = self.approvals == "explicit"
        return Limits(idle, self.max_errors, quiet, explicit_approvals=is_explicit, has_hooks=self.has_hooks)

    @property
    def budgets(self) -> DefaultBudgets:
        """The budgets of an agent's memory if its record has none."""
        from gaia_sessions.session.budget import DefaultBudgets  # no call of a hook asks

        return DefaultBudgets(self.max_tokens, self.sub_agent_max_tokens)

    @property
    def enforced_settings(self) -> list[str]:
        """The names of the settings that are set and that a client obeys only with ``hooks install --enforce``."""
        limits = {name: getattr(self, name) for name in LimitsConfig.__annotations__ if name != "limits_search_tools"}
        names = [name.replace("_", ".", 1) for name, value in limits.items() if value and value != "off"]
        return [*names, *(["guard.mode"] if self.guard_mode != "off" else [])]

    @property
    def agent_limits(self) -> AgentLimits:
        """The limits of the agents of hosts."""
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
        """Which tools are blocked for all sub-agents, and which are allowed by type of agent."""
        from gaia_sessions.session.tools import ToolRules

        return ToolRules(self.limits_blocked_tools, self.limits_tools)


TABLES = {
    "": Config.__annotations__,
    "hooks": HookConfig.__annotations__,
    "limits": LimitsConfig.__annotations__,
    "guard": GuardConfig.__annotations__,
    "state": StateConfig.__annotations__,
}
"""By table of a settings file: its settings, each with the kind of its value."""

DEFAULT_HOURS = 24.0
"""``cleanup`` removes sessions that were unused for this long, by default."""


def load(root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Config:
    """Returns the settings for ``root``; raises ``BadSetting`` for the first fault that stops commands."""
    config, faults = load_with_faults(root, environ, flags)
    for fault in faults:
        if fault.stops_commands:
            raise fault.error()
    return config


def load_with_faults(
    root: str, environ: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> tuple[Config, list[Fault]]:
    """Returns the valid settings for ``root``, and the faults; faulty limits of agents count as the strictest."""
    has_variables = _has_variables(environ)
    files = _files(root, environ)
    if not (files or flags or has_variables):
        return Config({}), []
    from .sources import read_settings

    values, faults = read_settings(TABLES, files, environ, flags or {})
    return Config(values), faults


def hooks_are_off(environ: Mapping[str, str]) -> bool:
    """Whether the environment alone switches the hooks off, so that no file needs to be read."""
    value = environ.get(VARIABLE_PREFIX + "HOOKS")
    if not value:
        return False
    from .sources import parse

    try:
        return not parse(HookConfig.__annotations__["hooks"], value)
    except ValueError:
        return False


def project_file(root: str) -> str:
    """Returns the path of the settings file of ``root``: in the project's ``.claude``, else in the root itself."""
    folder = claude_folder(root)
    return os.path.join(folder, "gaia-sessions.toml") if folder else os.path.join(root, ".config.toml")


def user_file(environ: Mapping[str, str]) -> str:
    """Returns the path of the user's own settings file, or an empty text if the user has no home."""
    folder = config_folder(environ)
    return os.path.join(folder, "config.toml") if folder else ""


def origin_of(name: str, root: str, environ: Mapping[str, str]) -> str | None:
    """Returns the file or variable that sets ``name`` without a fault; None if the setting has its default."""
    from . import sources

    return sources.origin_of(TABLES, name, _files(root, environ), environ)


def _files(root: str, environ: Mapping[str, str]) -> list[FoundFile]:
    """Returns the settings files that exist, each with its content or why it is not read; the last file decides."""
    found: list[FoundFile] = []
    # The user's own file may be a link. A link in a project is not followed: a stranger may have made it.
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
    return any(name.startswith(VARIABLE_PREFIX) and name not in ROOT_VARIABLES for name in environ)
