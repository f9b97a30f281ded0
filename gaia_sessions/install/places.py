"""The hosts whose settings we write to: which file, which events with which matchers, in which form.

Owns the one table. What the events mean is known by the modules in ``hooks``. Claude Code 2.1.197 and 2.1.330
both honour ``args``, refuse comments, take a byte order mark, and pass over the whole file when it does not
parse, without a word; Qwen Code and Gemini CLI strip comments before they parse.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import BadSetting
from gaia_sessions.hosts.registry import CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE
from gaia_sessions.system.project_root import SESSIONS_PATH, claude_folder, find_root, working_directory
from gaia_sessions.system.users import home_folder, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Matchers = dict[str, str | None]
    """Events, each with what it is heard for; None hears all there is."""

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")

HOOK_TIMEOUT = 5
"""What a hook may take; it ends by itself after three."""


class Host:
    """One host.

    events: what we hear; tools: what we also hear when tools are followed. delegates: the event that announces a
    delegation, and delegation: its tool under every name it has had. per_second: its unit of time. exec_form:
    whether it starts a program without a shell. comments: whether its settings may have some. home: the variable
    that names the user's folder, if it has one.
    """

    __slots__ = (
        "comments",
        "delegates",
        "delegation",
        "events",
        "exec_form",
        "files",
        "folder",
        "home",
        "name",
        "per_second",
        "tools",
    )

    def __init__(  # noqa: PLR0913  # a word for each column of the table
        self,
        name: str,
        folder: str,
        files: dict[str, str],
        events: Matchers,
        *,
        delegation: tuple[str, ...],
        delegates: str = "PreToolUse",
        tools: Matchers | None = None,
        home: str | None = None,
        per_second: int = 1,
        exec_form: bool = False,
        comments: bool = False,
    ) -> None:
        self.name = name
        self.folder = folder
        self.files = files
        self.events = events
        self.delegation = delegation
        self.delegates = delegates
        self.tools = tools or {}
        self.home = home
        self.per_second = per_second
        self.exec_form = exec_form
        self.comments = comments

    def event_matchers(self, *, tools: bool) -> Matchers:
        """The events with their matchers, as they are to stand in the settings."""
        return {**self.events, **self.tools} if tools else self.events


_SETTINGS = {USER: "settings.json", PROJECT: "settings.json"}

_CLAUDE_EVENTS: Matchers = {
    "SessionStart": None,
    "UserPromptSubmit": None,
    "PreToolUse": "Agent|Task|SendMessage",
    "PostToolUse": "Agent|Task|TaskStop",
    "PostToolUseFailure": "Agent|Task",
    "PostToolBatch": None,
    "SubagentStart": None,
    "SubagentStop": None,
    "StopFailure": None,
    "Stop": None,
    "SessionEnd": None,
}

# Its namespaced spawn bypasses matchers, so everything is heard and the module sorts it out.
_CODEX_EVENTS: Matchers = dict.fromkeys(
    [
        *("SessionStart", "SessionEnd", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop"),
        *("UserPromptSubmit", "Interrupt"),
    ]
)

# Its news of the agents themselves has an id that nothing else has: none of it could be joined.
_QWEN_EVENTS: Matchers = {
    "SessionStart": None,
    "PreToolUse": "agent",
    "PostToolUse": "agent",
    "PostToolUseFailure": "agent",
    "StopFailure": None,
    "Stop": None,
    "SessionEnd": None,
}

_GEMINI_EVENTS: Matchers = {
    "SessionStart": None,
    "BeforeTool": "invoke_agent",
    "AfterTool": "invoke_agent",
    "AfterAgent": None,
    "SessionEnd": None,
}

HOSTS = {
    host.name: host
    for host in (
        Host(
            CLAUDE_CODE,
            ".claude",
            {**_SETTINGS, LOCAL: "settings.local.json"},
            _CLAUDE_EVENTS,
            delegation=("Agent", "Task"),
            tools={
                **dict.fromkeys(["PreToolUse", "PostToolUse", "PostToolUseFailure"], "*"),
                "PermissionRequest": None,
            },
            home="CLAUDE_CONFIG_DIR",
            exec_form=True,
        ),
        Host(
            CODEX,
            ".codex",
            {USER: "hooks.json", PROJECT: "hooks.json"},
            _CODEX_EVENTS,
            delegation=("spawn_agent", "Agent"),
            home="CODEX_HOME",
        ),
        Host(
            QWEN_CODE,
            ".qwen",
            _SETTINGS,
            _QWEN_EVENTS,
            delegation=("agent",),
            per_second=1000,
            comments=True,
        ),
        Host(
            GEMINI_CLI,
            ".gemini",
            _SETTINGS,
            _GEMINI_EVENTS,
            delegation=("invoke_agent",),
            delegates="BeforeTool",
            per_second=1000,
            comments=True,
        ),
    )
}


class Places:
    """Where settings and our own files are, for one user and one project.

    root: where the sessions are. project: the folder with the settings, ``beside`` if given. here: where a client
    would be started now. state: ours. Raises ``BadSetting`` where nobody knows a home: nothing relative will do.
    """

    __slots__ = ("here", "home", "project", "root", "state", "variables")

    def __init__(self, root: str, variables: Mapping[str, str], beside: str | None = None) -> None:
        self.variables = variables
        self.root = root
        self.here = beside or _start_folder(variables)
        self.project = beside or _project_of(root, variables, self.here)
        self.home = home_folder(variables)
        if not self.home:
            raise BadSetting("HOME", "is not set, and the system knows no home of yours", "set it to your folder")
        self.state = state_folder(variables)

    def folder_of(self, host: Host, scope: str) -> str:
        """The folder of ``host`` in ``scope``, which may not be there."""
        if scope != USER:
            return os.path.join(self.project, host.folder)
        configured = self.variables.get(host.home, "") if host.home else ""
        return configured if os.path.isabs(configured) else os.path.join(self.home, host.folder)

    @property
    def hooks_root(self) -> str:
        """Where hooks of the project's settings keep their sessions, if a host has the environment we have."""
        fixed = self.variables.get("GAIA_SESSIONS_ROOT", "")
        return os.path.normpath(fixed) if os.path.isabs(fixed) else _sessions_of(self.project)

    @property
    def is_hooks_root(self) -> bool:
        """Whether that is where we look, too."""
        return os.path.realpath(self.root) == os.path.realpath(self.hooks_root)

    def file_of(self, host: Host, scope: str) -> str:
        """The settings file of ``host`` in ``scope``, which may not be there."""
        return os.path.join(self.folder_of(host, scope), host.files[scope])

    def files_of(self, host: Host) -> list[str]:
        return [self.file_of(host, scope) for scope in host.files]


def _project_of(root: str, variables: Mapping[str, str], here: str) -> str:
    """The project whose sessions are at ``root``; of a root elsewhere, the one around the working directory.

    Of a project with linked worktrees it is the one we stand in: a client started there reads the settings there.
    """
    folder = claude_folder(root)
    if folder is None:
        elsewhere = {name: value for name, value in variables.items() if name != "GAIA_SESSIONS_ROOT"}
        folder = os.path.dirname(find_root(None, elsewhere, working_directory()))
    return _worktree_of(os.path.dirname(folder), here) or os.path.dirname(folder)


def _worktree_of(project: str, here: str) -> str | None:
    """The linked worktree of ``project`` around ``here``, if that is in one."""
    sessions = os.path.realpath(os.path.join(project, SESSIONS_PATH))
    while here not in (project, os.path.dirname(here)):
        if os.path.isfile(os.path.join(here, ".git")):
            return here if os.path.realpath(_sessions_of(here)) == sessions else None
        here = os.path.dirname(here)
    return None


def _start_folder(variables: Mapping[str, str]) -> str:
    project_folder = variables.get("CLAUDE_PROJECT_DIR", "")
    return os.path.normpath(project_folder) if os.path.isabs(project_folder) else working_directory()


def _sessions_of(project: str) -> str:
    """Where hooks keep the sessions of a client that was started in ``project``."""
    return find_root(None, {"CLAUDE_PROJECT_DIR": project}, "")
