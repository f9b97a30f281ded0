"""One payload of a host. Anybody may have written it.
An ID is a short text, and a value of a wrong type counts as absent.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT, load_object
from gaia_sessions.session import host_events
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import HostProcess

    Payload = dict[str, Json]
    EventReader = Callable[["HookPayload"], list[Event]]
    EventReaders = Mapping[str, EventReader]
    """The reader of each of a host's events, by the name of the event."""


LONGEST_PURPOSE = 200

SESSION_VARIABLE = "GAIA_SESSION_ID"
"""The variable with the ID of the session for which the host works. Its main agent delegates below that session."""

_MOST_REQUESTS = 20
"""The most requests of a delegation that are recorded. More than one request resumes nothing."""

_LONGEST_KEY = 512
_LONGEST_LINE = 200
_LARGEST_FIGURE = 1 << 53

# Controls except tab and line feed, characters that change the writing direction, and line ends of Unicode.
_CONTROL_CHARACTERS = (range(9), range(0xB, 0x20), range(0x7F, 0xA0), range(0x2028, 0x202F), range(0x2066, 0x206A))


def bare_event(kind: str) -> EventReader:
    """Returns a reader for an event of which only the kind is known."""
    return lambda payload: [payload.event(kind)]


def host_process(programs: tuple[str, ...], pid: str = "") -> HostProcess | None:
    """Returns the process with the ``pid`` that the host reports, else the nearest ancestor among ``programs``."""
    from gaia_sessions.system import processes

    return processes.describe_ancestor(programs, pid)


class HookPayload:
    """One payload of ``host``, which makes events from it."""

    def __init__(self, host: str, raw: Payload, config: Config, now: datetime, variables: Mapping[str, str]) -> None:
        self.host = host
        self.raw = raw
        self.config = config
        self.now = now
        self.variables = variables
        self.host_session_id = self.key("session_id")
        self.tool_input = object_in(raw, "tool_input")

    def key(self, name: str) -> str | None:
        """Returns the ID under ``name``; None if there is none."""
        return key_in(self.raw, name)

    def text(self, name: str) -> str:
        """Returns the text under ``name``; empty if there is none."""
        return text_in(self.raw, name)

    def event(self, kind: str, **keys: object) -> Event:
        """Returns an event of this conversation, with those of ``keys`` that are not None."""
        present = {name: value for name, value in keys.items() if value is not None}
        base = {"kind": kind, "at": format_time(self.now), "host": self.host, "host_session_id": self.host_session_id}
        return {**base, **present}  # type: ignore[typeddict-item]  # callers give keys of events

    def delegation(self, prompt: Json, description: Json, **keys: object) -> Event:
        """Returns the beginning of a delegation. ``keys`` is what else the host reports; the prompt is not stored."""
        from .marker import read_mentions, read_requests

        texts = [text for text in (prompt, description) if isinstance(text, str)]
        resume = [agent_id for text in texts for agent_id in read_requests(text)][:_MOST_REQUESTS]
        all_mentioned = dict.fromkeys(agent_id for text in texts for agent_id in read_mentions(text))
        mentioned = [agent_id for agent_id in all_mentioned if agent_id not in resume]
        sessions: dict[str, object] = {"resume": resume or None, "mentioned": mentioned or None}
        if keys.get("parent_host_agent_id") is None:
            sessions["parent_id"] = self.variables.get(SESSION_VARIABLE) or None
        return self.event(host_events.DELEGATE, purpose=self.purpose(description), **sessions, **keys)

    def failure(self, error: str, **keys: object) -> Event:
        """Returns the failure of an agent. ``error`` is stored on one line, unless it is empty."""
        return self.event(host_events.FAIL, **keys, error=one_line(error, MAX_MESSAGE_LENGTH) or None)

    def last_message_keys(self, message: str) -> dict[str, object]:
        """Returns what is stored of an agent's last message: its marker, and its last words if settings allow that."""
        if not message.strip():
            return {"has_message": False}
        from .marker import read_marker

        phase, marker_id = read_marker(message)
        last_message = clean(message)[-MAX_MESSAGE_LENGTH:] if self.config.keep_last_message else None
        return {"has_message": True, "marker_phase": phase, "marker_id": marker_id, "last_message": last_message}

    def is_tracked(self, event: Event, general: str) -> bool:
        """Returns whether the settings want sessions for this agent type; ``general`` is the host's default type."""
        name = event.get("agent_name")
        if name is None:
            return True
        return name.casefold() not in self.config.ignore_agents and (self.config.track != "named" or name != general)

    def purpose(self, description: Json) -> str:
        """Returns the description of a delegation on one line; ``general`` if the settings do not allow to store it."""
        if not self.config.store_description or not isinstance(description, str):
            return "general"
        return one_line(description, LONGEST_PURPOSE) or "general"


def object_in_bytes(data: bytes, limit: int = DOCUMENT_LIMIT) -> Payload:
    """Returns the JSON object in ``data``; empty for anything else."""
    try:
        return load_object(data, limit)
    except InvalidInput:
        return {}


def key_in(payload: Payload, name: str) -> str | None:
    """Returns the ID under ``name`` in ``payload``; None if there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) and is_key(value) else None


def text_in(payload: Payload, name: str) -> str:
    """Returns the text under ``name`` in ``payload``; empty if there is none."""
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def object_in(payload: Payload, name: str) -> Payload:
    """Returns the object under ``name`` in ``payload``; empty if there is none."""
    value = payload.get(name)
    return value if isinstance(value, dict) else {}


def parts_in(message: Payload, kind: str) -> Iterator[Payload]:
    """Yields the parts of this kind in the content of ``message``; none if the content is no list."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == kind:
            yield part


def figures_in(report: Mapping[str, object], names: Mapping[str, str]) -> dict[str, int]:
    """Returns the figures in ``report``, under our names; ``names`` maps them to the host's names."""
    found = {name: report.get(name_there) for name, name_there in names.items()}
    return {name: figure for name, figure in found.items() if type(figure) is int and 0 <= figure < _LARGEST_FIGURE}


def is_key(value: str) -> bool:
    """Returns whether ``value`` can be an ID of a host."""
    return 0 < len(value) <= _LONGEST_KEY


def element_in(text: str, name: str) -> str | None:
    """Returns the content of the first XML element ``name``; None if it is missing, empty or too long."""
    _, opened, rest = text.partition(f"<{name}>")
    inside, closed, _ = rest.partition(f"</{name}>")
    found = inside.strip()
    return found if opened and closed and 0 < len(found) <= _LONGEST_KEY else None


def with_addition(tool_input: Payload, key: str, addition: str) -> Payload:
    """Returns ``tool_input`` with ``addition`` as the last paragraph of the prompt under ``key``."""
    prompt = tool_input.get(key)
    return {**tool_input, key: f"{prompt}\n\n{addition}" if isinstance(prompt, str) else addition}


def clean(text: str) -> str:
    """Returns ``text`` without control characters, except tabs and line feeds."""
    return text.translate({code: None for codes in _CONTROL_CHARACTERS for code in codes})  # few calls of a hook ask


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """Returns ``text`` on one line, without control characters, cut to ``longest`` characters."""
    return " ".join(clean(text).split())[:longest]
