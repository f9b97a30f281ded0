"""One payload of a host, read with suspicion.

Owns how it finds what reads it, and how a value is taken from JSON that can be anybody's: an id is a short
text, everything else is as if it were not there. Knows no event by name, and no host's own words.
"""

from __future__ import annotations

from gaia_sessions.session import events
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.schema import MAX_MESSAGE_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import HostProcess

    Payload = dict[str, Json]
    EventReader = Callable[["HookPayload"], list[Event]]
    EventReaders = Mapping[str, EventReader]

LONGEST_PURPOSE = 200

_LONGEST_KEY = 512
_LONGEST_LINE = 200

# Controls but tab and line end, what turns the writing direction, and line ends that only Unicode calls so.
_CONTROL_CHARACTERS = (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_REMOVED_CHARACTERS = dict.fromkeys(_CONTROL_CHARACTERS)


def read_events(
    host: str, readers: EventReaders, event_names: tuple[str, ...], payload: Payload, config: Config, now: datetime
) -> list[Event]:
    """What ``payload`` tells by its event, if that is one of those ``event_matchers``; nothing for everything else."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str) or name not in event_names:
        return []
    message = HookPayload(host, payload, config, now)
    return readers[name](message) if message.host_session_id else []


def bare_event(kind: str) -> EventReader:
    """That it happened is all there is to tell."""
    return lambda message: [message.event(kind)]


def host_process(programs: tuple[str, ...], pid: str = "") -> HostProcess | None:
    """The process whose pid the host ``told``, else the nearest ancestor that is one of ``programs``; None for none."""
    from gaia_sessions.system import processes

    return processes.host_process(programs, pid)


class HookPayload:
    """What the host ``host`` told in one payload, and how events are made from it."""

    def __init__(self, host: str, payload: Payload, config: Config, now: datetime) -> None:
        self.host = host
        self.payload = payload
        self.config = config
        self.now = now
        self.host_session_id = self.key("session_id")
        tool_input = payload.get("tool_input")
        self.asked = tool_input if isinstance(tool_input, dict) else {}

    def key(self, name: str) -> str | None:
        """An id of the host: any short text; None if there is none."""
        return key_in(self.payload, name)

    def text(self, name: str) -> str:
        """Any text; empty if there is none."""
        value = self.payload.get(name)
        return value if isinstance(value, str) else ""

    def event(self, kind: str, **keys: object) -> Event:
        """An event of this host session with those of ``keys`` that are known."""
        present = {name: value for name, value in keys.items() if value is not None}
        base = {"kind": kind, "at": format_time(self.now), "host": self.host, "host_session_id": self.host_session_id}
        return {**base, **present}  # type: ignore[typeddict-item]

    def delegation(self, prompt: Json, description: Json, **keys: object) -> Event:
        """A delegation begins; ``keys`` are what else the host told of it.

        What asks for a resume is read from ``prompt`` and from ``description``; the prompt itself is not kept.
        """
        from .marker import read_mentions, read_requests

        texts = [text for text in (prompt, description) if isinstance(text, str)]
        resume = [agent_id for text in texts for agent_id in read_requests(text)]
        all_mentioned = dict.fromkeys(agent_id for text in texts for agent_id in read_mentions(text))
        mentioned = [agent_id for agent_id in all_mentioned if agent_id not in resume]
        sessions = {"resume": resume or None, "mentioned": mentioned or None}
        return self.event(events.DELEGATE, purpose=self.purpose(description), **sessions, **keys)

    def failure(self, error: str, **keys: object) -> Event:
        """News of a failure; ``error`` on one line, if there is anything to say."""
        return self.event(events.FAIL, **keys, error=one_line(error, MAX_MESSAGE_LENGTH) or None)

    def last_message_keys(self, message: str) -> dict[str, object]:
        """What an event keeps of what an agent said last: its marker, and the end of it if the settings want that."""
        if not message.strip():
            return {"spoke": False}
        from .marker import read_marker

        marked, marked_id = read_marker(message)
        last_message = clean(message)[-MAX_MESSAGE_LENGTH:] if self.config.keep_last_message else None
        return {"spoke": True, "marked": marked, "marked_id": marked_id, "last_message": last_message}

    def purpose(self, description: Json) -> str:
        """What a delegation says of itself, if the settings let it be kept."""
        if not self.config.store_description or not isinstance(description, str):
            return "general"
        return one_line(description, LONGEST_PURPOSE) or "general"


def key_in(payload: Payload, name: str) -> str | None:
    """The same in any object."""
    value = payload.get(name)
    return value if isinstance(value, str) and is_key(value) else None


def is_key(value: str) -> bool:
    """Whether ``value`` can be an id of a host."""
    return 0 < len(value) <= _LONGEST_KEY


def element_in(text: str, name: str) -> str | None:
    """What the element ``name`` holds; None if it is not there, is empty or too long."""
    _, opened, rest = text.partition(f"<{name}>")
    inside, closed, _ = rest.partition(f"</{name}>")
    found = inside.strip()
    return found if opened and closed and 0 < len(found) <= _LONGEST_KEY else None


def clean(text: str) -> str:
    """``text`` without what steers a terminal or a reader; tabs and line ends stay."""
    return text.translate(_REMOVED_CHARACTERS)


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """The same on one line, cut."""
    return " ".join(clean(text).split())[:longest]
