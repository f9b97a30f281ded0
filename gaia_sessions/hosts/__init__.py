"""What is known of each host: how its payloads are read, which replies it obeys, where its settings are.

A folder per host, listed here; ``protocol`` says what each must have. Only the module of the host that sent a payload
is imported. Some hosts read the settings of another one and run our hook as if they were that one. Therefore a key that
only one host sends beats the host that the hook was installed for, and that one beats the environment.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.config import Config
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.report import RecentMessage
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

    from .payload import Payload
    from .protocol import HostModule, HostRevival, Work
    from .settings import HostSettings

PRE_DELEGATE = "pre_delegate"
SUBAGENT_STOP = "subagent_stop"
HOOK = "hook"
"""The names of the hooks. The third one takes every event of a host."""

EVENT_NAME_KEY = "hook_event_name"
EVENT_NAME_KEYS = (EVENT_NAME_KEY, "hookEventName")
"""The keys under which hosts name their event: that of each host here, and one that others are documented to use."""

CLAUDE_CODE = "claude-code"
CODEX = "codex"
QWEN_CODE = "qwen-code"
GEMINI_CLI = "gemini-cli"

HOSTS = (CLAUDE_CODE, CODEX, QWEN_CODE, GEMINI_CLI)
"""Each host by its name in records. The name of its module is the same, with underscores."""

_UNSUPPORTED_KEYS = ("cursor_version", "sessionId", "hookEventName")
"""What is documented of hosts without support that read Claude Code's settings, and run our hook from there."""

_GEMINI_EVENTS = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent")


def module_of(host: str) -> HostModule:
    """The module that reads the payloads of ``host``."""
    return __import__(_module_name(host), fromlist=["GENERAL"])  # costs less than importlib


def settings_of(host: str) -> HostSettings:
    """Where ``host`` keeps the settings that start our hooks. Only ``install`` needs them."""
    settings: HostSettings = __import__(f"{_module_name(host)}.settings", fromlist=["SETTINGS"]).SETTINGS
    return settings


def noted_since(event: Event, config: Config) -> Event:
    """``event``, which waits without a key, with the workflow of its agent if the host has noted that since."""
    if event.get("host") != CLAUDE_CODE or "key_file" not in event:
        return event
    agents = __import__(f"{_module_name(CLAUDE_CODE)}.agents", fromlist=["with_workflow"])
    found: Event = agents.with_workflow(event, config)
    return found


def end_in_files(run: Run) -> ReportedEnd | None:
    """How ``run`` ended, from what its host keeps about the agent on disk; None if that does not say."""
    read = module_of(run["host"]).end_in_files if run.get("host") in HOSTS else None
    return read(run) if read else None


def label_in_files(run: Run) -> str | None:
    """What the work of the agent of ``run`` is called, if its host noted that when the agent's workflow was over."""
    if run.get("host") != CLAUDE_CODE or "key" not in run.get("workflow", {}):
        return None
    label: str | None = __import__(f"{_module_name(CLAUDE_CODE)}.labels", fromlist=["label_of"]).label_of(run)
    return label


def consumption(run: Run, since: str | None, until: str | None, is_late: Callable[[], bool]) -> Run | None:
    """What ``run`` used in all, from what its host keeps about the agent on disk; None if that does not say."""
    read = module_of(run["host"]).consumption if run.get("host") in HOSTS else None
    return read(run, since, until, is_late) if read else None


def recent_messages(run: Run, most: int) -> list[RecentMessage]:
    """The latest messages of the agent of ``run``, from what its host keeps on disk; none if that is not known."""
    read = module_of(run["host"]).recent_messages if run.get("host") in HOSTS else None
    return read(run, most) if read else []


def revival(run: Run, work: Work) -> HostRevival | None:
    """The command by which the host of ``run`` goes on with it; None if that host has none, or none any more."""
    revive = module_of(run["host"]).revival if run.get("host") in HOSTS else None
    return revive(run, work) if revive else None


def host_of(configured: str | None, payload: Payload, variables: Mapping[str, str]) -> str | None:
    """The name of the host that sent ``payload``; None for one without support.

    configured: the host that the hook was installed for, if its command names one. variables: the environment.
    """
    if any(key in payload for key in _UNSUPPORTED_KEYS):
        return None
    if "turn_id" in payload and "model" in payload:
        return CODEX
    if payload.get(EVENT_NAME_KEY) in _GEMINI_EVENTS:
        return GEMINI_CLI
    installed_for = configured if configured in HOSTS else CLAUDE_CODE
    return _host_by_environment(payload, variables) if installed_for == CLAUDE_CODE else installed_for


def _module_name(host: str) -> str:
    return f"gaia_sessions.hosts.{host.replace('-', '_')}"


def _host_by_environment(payload: Payload, variables: Mapping[str, str]) -> str | None:
    """The host by the variables that only it sets. A client that was started inside another inherits that one's."""
    session = variables.get("GEMINI_SESSION_ID")
    if session and session == payload.get("session_id"):
        return GEMINI_CLI
    if "timestamp" in payload and "QWEN_PROJECT_DIR" in variables:
        return QWEN_CODE
    is_other = "CLAUDE_PROJECT_DIR" not in variables and ("FACTORY_PROJECT_DIR" in variables or "timestamp" in payload)
    return None if is_other else CLAUDE_CODE
