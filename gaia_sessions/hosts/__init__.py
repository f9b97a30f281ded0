"""What is known of each host: how its payloads are read, which replies it obeys, where its settings are.

A folder per host, listed here; its module is the plug-in, by the names in ``Host``. Only the module of the host that
sent a payload is imported.
Some hosts read the settings of another one and run our hook as if they were that one. Therefore a key that only one
host sends beats the host that the hook was installed for, and that one beats the environment.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import TypedDict, final

    from gaia_sessions.config import Config
    from gaia_sessions.errors import SessionsError
    from gaia_sessions.session.agent_limits import WorkSoFar
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.permission_requests import SeenCalls
    from gaia_sessions.session.repeats import PastCall
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run
    from gaia_sessions.session.transcript import NewMessage

    from .payload import EventReaders, HookPayload, Payload
    from .settings import HostSettings

    class StopToHold(TypedDict):
        """A stop that may be held back.

        key: what tells it from all others of its agent. most: how often the host obeys. shell: its tool for commands.
        reply: by which the agent goes on, for a reason.
        """

        key: str
        most: int
        shell: str
        reply: Callable[[str], dict[str, object]]

    class Work(TypedDict):
        """What a host is told about the session of a run. project: the folder of the project, if that is known."""

        agent_id: str
        agent_name: str
        project: str | None

    @final
    class HostResumption(TypedDict):
        """The host's own way to go on with a run.

        means: ``message``, ``workflow`` or ``delegation``. command: for a shell. prompt: what it says to the host.
        """

        means: str
        command: str
        prompt: str


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

FOLDERS: dict[str, tuple[str, str | None, str]] = {
    CLAUDE_CODE: (".claude", "CLAUDE_CONFIG_DIR", "projects"),
    CODEX: (".codex", "CODEX_HOME", "sessions"),
    QWEN_CODE: (".qwen", None, "projects"),
    GEMINI_CLI: (".gemini", None, "tmp"),
}
"""Of each host: its folder at home and in a project, the variable that names another one in place of that at home, and
the folder in there for conversations."""

SHELL_VARIABLES = {
    CLAUDE_CODE: "CLAUDECODE",
    CODEX: "CODEX_THREAD_ID",
    QWEN_CODE: "QWEN_CODE",
    GEMINI_CLI: "GEMINI_CLI",
}
"""The variable that each host sets in every shell that its agents run, and that no shell of a person has."""

HOSTS = (*FOLDERS,)
"""Each host by its name in records. The name of its module is the same, with underscores."""

SECONDS_FOR_LINE = 0.3
"""How long a line of a transcript is waited for that a host writes while it waits for us."""

_UNSUPPORTED_KEYS = ("cursor_version", "sessionId", "hookEventName")
"""What is documented of hosts without support that read Claude Code's settings, and run our hook from there."""

_GEMINI_EVENTS = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent")


class Host:
    """One host: how its payloads are read, which replies it obeys, and what its files say.

    The host's module has these parts, the constants with their names in capitals; ``LATE`` there has the submodule and
    the function of those that are loaded when they are called. What a host has not is None. A submodule may only have
    the name of a part that stands in ``LATE``.

    general: the agent type that it uses where a delegation names none. readers: what reads each of its events;
    pre_delegate and subagent_stop are those that the two users' hooks read. replies: the kinds of events to which it
    obeys a reply. start_event: the event whose reply reaches a sub-agent that starts; others may report the same start.
    rewrite_prompt: the part of a reply that makes it delegate with a text added to the prompt of its tool's input.
    end_in_files: how a run without an end ended. calls_seen: what the transcript of an agent at work says of its calls.
    consumption: what a run used in all from one time to another, and its model, None if it is late: the last argument
    says that, again and again. messages: those of the agent of a run in their order, an error in place of what cannot
    be read. newest_first: those in so many bytes at the end, the last first, each with whether a turn begins with it;
    it alone raises, ``OSError`` for a file that cannot be read. sent_newest_first: what turns began with, in the last
    64 MiB, each with whether nothing is before it. resumption: how a person lets it go on with a run that stopped.
    noted_since: an event that waits without a key, with what the files say by now. denies: the part of a reply to a
    delegation that makes it fail for a reason. asks_before_tools: the event before a use of a tool, which names the
    agent that wants it, and whose reply may deny it. work_so_far: what an agent did in the transcripts at some paths,
    from a time on and before a call; it may raise ``OSError``. recent_calls: the calls of an agent in the transcript at
    a path, the newest first; it may raise ``OSError``. stop_to_hold: the stop of an agent that a payload tells of, if
    it may be held back, where these keys of earlier ones are known; it may raise ``OSError``. wake_advice: how a
    conversation that continues wakes an agent of its own, whom it names by ID, as the end of "To go on with one, ...".
    """

    general: str
    readers: EventReaders
    pre_delegate: tuple[str, ...] | None
    subagent_stop: tuple[str, ...] | None
    replies: tuple[str, ...]
    start_event: str | None
    rewrite_prompt: Callable[[Payload, str], dict[str, object]] | None
    end_in_files: Callable[[Run], ReportedEnd | None] | None
    calls_seen: Callable[[Run], SeenCalls | None] | None
    consumption: Callable[[Run, str | None, str | None, Callable[[], bool]], Run | None] | None
    messages: Callable[[Run], Iterator[NewMessage | SessionsError]] | None
    newest_first: Callable[[Run, int], Iterator[tuple[bool, NewMessage]]] | None
    sent_newest_first: Callable[[Run, Callable[[], bool]], Iterator[tuple[bool, NewMessage]]] | None
    resumption: Callable[[Run, Work], HostResumption | None] | None
    noted_since: Callable[[Event, Config], Event] | None
    denies: Callable[[str], dict[str, object]] | None
    asks_before_tools: str | None
    work_so_far: Callable[[Collection[str], str | None, str], WorkSoFar] | None
    recent_calls: Callable[[str, str], Iterator[PastCall]] | None
    stop_to_hold: Callable[[HookPayload, Collection[str]], StopToHold | None] | None
    wake_advice: str | None

    def __init__(self, module: str) -> None:
        found = __import__(module, fromlist=["READERS"])  # costs less than importlib
        late: dict[str, str] = getattr(found, "LATE", {})
        for name in Host.__annotations__:
            part = getattr(found, name.upper(), None) or getattr(found, name, None)
            setattr(self, name, _late_part(module, late[name]) if name in late else part)
        self.events_by_hook = {
            PRE_DELEGATE: self.pre_delegate or ("PreToolUse",),
            SUBAGENT_STOP: self.subagent_stop or ("SubagentStop",),
            HOOK: tuple(self.readers),
        }

    def events_of(self, hook: str, payload: HookPayload) -> list[Event]:
        """The events that ``payload`` reports, as far as ``hook`` reads them."""
        name = payload.text(EVENT_NAME_KEY)
        is_read = name in self.events_by_hook[hook] and payload.host_session_id
        return self.readers[name](payload) if is_read else []


def _late_part(module: str, path: str) -> Callable[..., object]:
    """The function at ``path`` below ``module``, which is imported when it is called."""
    submodule, _, function = path.partition(".")

    def call(*arguments: object) -> object:
        return getattr(__import__(f"{module}.{submodule}", fromlist=[function]), function)(*arguments)

    return call


_IMPORTED: dict[str, Host] = {}
"""By name: commands ask for the host of each run."""


def host_named(name: str) -> Host:
    """The host of this name, whose module is imported."""
    if name not in _IMPORTED:
        _IMPORTED[name] = Host(_module_name(name))
    return _IMPORTED[name]


def denial(reason: str) -> dict[str, object]:
    """The part of a reply by which most hosts deny a delegation."""
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def host_of_shell(variables: Mapping[str, str]) -> str | None:
    """The host whose agent runs the shell with these ``variables``; None for that of a person or a program."""
    return next((host for host, name in SHELL_VARIABLES.items() if variables.get(name)), None)


def settings_of(host: str) -> HostSettings:
    """Where ``host`` keeps the settings that start our hooks. Only ``install`` needs them."""
    settings: HostSettings = __import__(f"{_module_name(host)}.settings", fromlist=["SETTINGS"]).SETTINGS
    return settings


def noted_since(event: Event, config: Config) -> Event:
    """``event``, which waits without a key, with the workflow of its agent if the host has noted that since."""
    note = host_named(event["host"]).noted_since if "key_file" in event and event.get("host") in HOSTS else None
    return note(event, config) if note else event


def end_in_files(run: Run) -> ReportedEnd | None:
    """How ``run`` ended, from what its host keeps about the agent on disk; None if that does not say."""
    read = host_named(run["host"]).end_in_files if _is_known(run) else None
    return read(run) if read else None


def calls_seen(run: Run) -> SeenCalls | None:
    """What the transcript of the agent of ``run`` says of its calls of tools; None if it says nothing."""
    read = host_named(run["host"]).calls_seen if "transcript_path" in run and _is_known(run) else None
    return read(run) if read else None


def consumption(run: Run, since: str | None, until: str | None, is_late: Callable[[], bool]) -> Run | None:
    """What ``run`` used in all, from what its host keeps about the agent on disk; None if that does not say."""
    read = host_named(run["host"]).consumption if _is_known(run) else None
    return read(run, since, until, is_late) if read else None


def messages(run: Run) -> Iterator[NewMessage | SessionsError]:
    """The messages of the agent of ``run`` in their order, from the file of its host, if it is known.

    An error stands in place of what cannot be read.
    """
    path = run.get("transcript_path")
    read = host_named(run["host"]).messages if _is_known(run) else None
    if path and read:
        yield from read(run)
    elif path:
        yield InvalidInput(f"transcripts of {run.get('host', 'an unknown host')} cannot be read", path)


def messages_newest_first(run: Run, last_bytes: int) -> Iterator[tuple[bool, NewMessage]]:
    """The messages of the agent of ``run`` in so many bytes at the end of its host's file, the last first.

    With each, whether a turn begins with it. Raises ``OSError`` if that file cannot be read, also while it goes on.
    """
    read = host_named(run["host"]).newest_first if "transcript_path" in run and _is_known(run) else None
    if read is None:
        raise FileNotFoundError
    yield from read(run, last_bytes)


def sent_newest_first(run: Run, is_late: Callable[[], bool]) -> Iterator[tuple[bool, NewMessage]]:
    """What the turns of the agent of ``run`` began with, the last first, each with whether nothing is before it.

    ``is_late``: whether the time to look for them is over.
    """
    read = host_named(run["host"]).sent_newest_first if "transcript_path" in run and _is_known(run) else None
    if read:
        yield from read(run, is_late)


def resumption(run: Run, work: Work) -> HostResumption | None:
    """The command by which the host of ``run`` goes on with it; None if that host has none, or none any more."""
    resume = host_named(run["host"]).resumption if _is_known(run) else None
    return resume(run, work) if resume else None


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


def _is_known(run: Run) -> bool:
    return run.get("host") in HOSTS


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
