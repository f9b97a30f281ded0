"""The hosts, one folder each. The module of a folder is a plug-in with the names in ``Host``.
Only the module of the host that sent the payload is imported.
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
        """A stop of an agent that can be held back."""

        # A digest that differs for each stop of the agent.
        key: str
        # How often the host obeys this reply.
        most: int
        # The host's tool for commands.
        shell: str
        # The reply that keeps the agent at work, for a reason.
        reply: Callable[[str], dict[str, object]]

    class Work(TypedDict):
        """What a host must know about the session of a run to resume the run."""

        agent_id: str
        agent_name: str
        # The folder of the project; None if it is unknown.
        project: str | None

    @final
    class HostResumption(TypedDict):
        """How a person makes the host resume a run."""

        # ``message``, ``workflow`` or ``delegation``.
        means: str
        # For a shell.
        command: str
        # What the command says to the host.
        prompt: str


PRE_DELEGATE = "pre_delegate"
SUBAGENT_STOP = "subagent_stop"
HOOK = "hook"
"""The names of the hooks. The third hook takes every event of a host."""

EVENT_NAME_KEY = "hook_event_name"
EVENT_NAME_KEYS = (EVENT_NAME_KEY, "hookEventName")
"""The keys that can hold an event's name: the key of all hosts here, and a key documented for other hosts."""

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
"""For each host: its folder at home and in a project, the variable that moves it, its folder of conversations."""

SHELL_VARIABLES = {
    CLAUDE_CODE: "CLAUDECODE",
    CODEX: "CODEX_THREAD_ID",
    QWEN_CODE: "QWEN_CODE",
    GEMINI_CLI: "GEMINI_CLI",
}
"""The variable that each host sets in every shell of its agents. No shell of a person has this variable."""

HOSTS = (*FOLDERS,)
"""The name of each host in records. Its module has the same name, with underscores."""

SECONDS_FOR_LINE = 0.3
"""How long we wait for a line of a transcript. The host writes the line while it waits for our hook."""

_UNSUPPORTED_KEYS = ("cursor_version", "sessionId", "hookEventName")
"""Keys that unsupported hosts are documented to send. They read Claude Code's settings and run our hook."""

_GEMINI_EVENTS = ("BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent")


class Host:
    """One host: how its payloads are read, which replies it obeys, what its files say. A missing part is None."""

    # The agent type of a delegation that names no type.
    general: str
    # The reader of each event.
    readers: EventReaders
    # The events that the two hooks for users read.
    pre_delegate: tuple[str, ...] | None
    subagent_stop: tuple[str, ...] | None
    # The kinds of events whose replies the host obeys.
    replies: tuple[str, ...]
    # The event whose reply reaches a starting agent. Other events may report the same start.
    start_event: str | None
    # The part of a reply that adds a text to the prompt of a delegation.
    rewrite_prompt: Callable[[Payload, str], dict[str, object]] | None
    # How a run without an end ended.
    end_in_files: Callable[[Run], ReportedEnd | None] | None
    # The calls in the transcript of an agent at work.
    calls_seen: Callable[[Run], SeenCalls | None] | None
    # The usage of a run between two times, and its model. None if the last argument returns True: time is over.
    consumption: Callable[[Run, str | None, str | None, Callable[[], bool]], Run | None] | None
    # The messages of a run's agent in order. An error replaces each message that cannot be read.
    messages: Callable[[Run], Iterator[NewMessage | SessionsError]] | None
    # The messages in the last bytes, newest first, each with whether it begins a turn. Can raise ``OSError``.
    newest_first: Callable[[Run, int], Iterator[tuple[bool, NewMessage]]] | None
    # The first message of each turn in the last 64 MiB, newest first, each with whether it begins the file.
    sent_newest_first: Callable[[Run, Callable[[], bool]], Iterator[tuple[bool, NewMessage]]] | None
    # How a person lets the host resume a stopped run.
    resumption: Callable[[Run, Work], HostResumption | None] | None
    # A waiting event without a key, with what the host's files say by now.
    noted_since: Callable[[Event, Config], Event] | None
    # The part of a reply that denies a delegation for a reason.
    denies: Callable[[str], dict[str, object]] | None
    # The event before a use of a tool. It names the agent, and its reply can deny the use.
    asks_before_tools: str | None
    # What an agent did in some transcripts, from a time on and before a call. Can raise ``OSError``.
    work_so_far: Callable[[Collection[str], str | None, str], WorkSoFar] | None
    # The calls of an agent in a transcript, newest first. Can raise ``OSError``.
    recent_calls: Callable[[str, str], Iterator[PastCall]] | None
    # The stop in a payload, if it can be held back. The second argument: keys of known stops. Can raise ``OSError``.
    stop_to_hold: Callable[[HookPayload, Collection[str]], StopToHold | None] | None
    # What to do to wake an agent of this conversation: the second half of a sentence to the main agent.
    wake_advice: str | None

    def __init__(self, module: str) -> None:
        found = __import__(module, fromlist=["READERS"])  # costs less than importlib
        # ``LATE`` maps parts to functions of submodules, which are imported when they are called.
        # No other submodule may have the name of a part: a loaded submodule becomes an attribute of the package.
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
        """Returns the events of ``payload`` that ``hook`` reads."""
        name = payload.text(EVENT_NAME_KEY)
        is_read = name in self.events_by_hook[hook] and payload.host_session_id
        return self.readers[name](payload) if is_read else []


def _late_part(module: str, path: str) -> Callable[..., object]:
    """Returns a stand-in for the function at ``path`` below ``module``; only a call imports that function."""
    submodule, _, function = path.partition(".")

    def call(*arguments: object) -> object:
        return getattr(__import__(f"{module}.{submodule}", fromlist=[function]), function)(*arguments)

    return call


_IMPORTED: dict[str, Host] = {}
"""The hosts by name: commands ask for the host of each run."""


def host_named(name: str) -> Host:
    """Returns the host with this name, and imports its module."""
    if name not in _IMPORTED:
        _IMPORTED[name] = Host(_module_name(name))
    return _IMPORTED[name]


def denial(reason: str) -> dict[str, object]:
    """Returns the part of a reply by which most hosts deny a delegation."""
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def host_of_shell(variables: Mapping[str, str]) -> str | None:
    """Returns the host whose agent runs the shell with these variables; None if a person or a program runs it."""
    return next((host for host, name in SHELL_VARIABLES.items() if variables.get(name)), None)


def settings_of(host: str) -> HostSettings:
    """Returns the settings of ``host``. Only ``install`` needs them."""
    settings: HostSettings = __import__(f"{_module_name(host)}.settings", fromlist=["SETTINGS"]).SETTINGS
    return settings


def noted_since(event: Event, config: Config) -> Event:
    """Returns a waiting ``event`` without a key, with its agent's workflow if the host has noted that workflow now."""
    note = host_named(event["host"]).noted_since if "key_file" in event and event.get("host") in HOSTS else None
    return note(event, config) if note else event


def end_in_files(run: Run) -> ReportedEnd | None:
    """Returns how ``run`` ended, as the host's files say; None if they do not say it."""
    read = host_named(run["host"]).end_in_files if _is_known(run) else None
    return read(run) if read else None


def calls_seen(run: Run) -> SeenCalls | None:
    """Returns the calls of tools in the transcript of the agent of ``run``; None if there are none."""
    read = host_named(run["host"]).calls_seen if "transcript_path" in run and _is_known(run) else None
    return read(run) if read else None


def consumption(run: Run, since: str | None, until: str | None, is_late: Callable[[], bool]) -> Run | None:
    """Returns what ``run`` used in all, as the host's files say; None if they do not say it."""
    read = host_named(run["host"]).consumption if _is_known(run) else None
    return read(run, since, until, is_late) if read else None


def messages(run: Run) -> Iterator[NewMessage | SessionsError]:
    """Yields the messages of the agent of ``run`` in order. An error replaces each message that cannot be read."""
    path = run.get("transcript_path")
    read = host_named(run["host"]).messages if _is_known(run) else None
    if path and read:
        yield from read(run)
    elif path:
        yield InvalidInput(f"transcripts of {run.get('host', 'an unknown client')} cannot be read", path)


def messages_newest_first(run: Run, last_bytes: int) -> Iterator[tuple[bool, NewMessage]]:
    """Yields the messages in the last bytes of the host's file, newest first, each with whether it begins a turn."""
    read = host_named(run["host"]).newest_first if "transcript_path" in run and _is_known(run) else None
    if read is None:
        raise FileNotFoundError
    yield from read(run, last_bytes)


def sent_newest_first(run: Run, is_late: Callable[[], bool]) -> Iterator[tuple[bool, NewMessage]]:
    """Yields the first message of each turn of ``run``, newest first, each with whether it begins the file."""
    read = host_named(run["host"]).sent_newest_first if "transcript_path" in run and _is_known(run) else None
    if read:
        yield from read(run, is_late)


def resumption(run: Run, work: Work) -> HostResumption | None:
    """Returns how the host of ``run`` can resume the run; None if the host cannot do that, or can no longer do it."""
    resume = host_named(run["host"]).resumption if _is_known(run) else None
    return resume(run, work) if resume else None


def host_of(configured: str | None, payload: Payload, variables: Mapping[str, str]) -> str | None:
    """Returns the name of the host that sent ``payload``, or None. ``configured`` is the host in the hook's command."""
    # Some hosts read another host's settings and run our hook as that host would. So a key that only one host
    # sends beats ``configured``, and ``configured`` beats the environment.
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
    """Returns the host whose own variables are set."""
    # A client that was started inside another client inherits the variables of that client, so the IDs must be equal.
    session = variables.get("GEMINI_SESSION_ID")
    if session and session == payload.get("session_id"):
        return GEMINI_CLI
    if "timestamp" in payload and "QWEN_PROJECT_DIR" in variables:
        return QWEN_CODE
    is_other = "CLAUDE_PROJECT_DIR" not in variables and ("FACTORY_PROJECT_DIR" in variables or "timestamp" in payload)
    return None if is_other else CLAUDE_CODE
