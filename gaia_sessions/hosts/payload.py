"""One payload of a host, read with suspicion.

Owns how it finds what reads it, and how a value is taken from JSON that can be anybody's: an id is a short
text, everything else is as if it were not there. Knows no event by name, and no host's own words.
"""

from __future__ import annotations

from gaia_sessions.session import events
from gaia_sessions.session.clock import write_time
from gaia_sessions.session.schema import LONGEST_MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.session.schema import HostProcess

    Payload = dict[str, Json]
    Reading = Callable[["Told"], list[Event]]
    Readings = Mapping[str, Reading]

LONGEST_PURPOSE = 200

_LONGEST_KEY = 512
_LONGEST_LINE = 200

# Controls but tab and line end, what turns the writing direction, and line ends that only Unicode calls so.
_STEERING = (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_CLEANED = dict.fromkeys(_STEERING)


def hear(
    host: str, readings: Readings, heard: tuple[str, ...], payload: Payload, config: Config, now: datetime
) -> list[Event]:
    """What ``payload`` tells by its event, if that is one of those ``heard``; nothing for everything else."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str) or name not in heard:
        return []
    told = Told(host, payload, config, now)
    return readings[name](told) if told.host_session_id else []


def only(kind: str) -> Reading:
    """That it happened is all there is to tell."""
    return lambda told: [told.event(kind)]


def host_process(programs: tuple[str, ...], told: str = "") -> HostProcess | None:
    """The process whose pid the host ``told``, else the nearest ancestor that is one of ``programs``; None for none."""
    from gaia_sessions.system import processes

    return processes.of_host(programs, told)


class Told:
    """What the host ``host`` told in one payload, and how events are made from it."""

    def __init__(self, host: str, payload: Payload, config: Config, now: datetime) -> None:
        self.host = host
        self.payload = payload
        self.config = config
        self.now = now
        self.host_session_id = self.key("session_id")
        asked = payload.get("tool_input")
        self.asked = asked if isinstance(asked, dict) else {}

    def key(self, name: str) -> str | None:
        """An id of the host: any short text; None if there is none."""
        return key_in(self.payload, name)

    def text(self, name: str) -> str:
        """Any text; empty if there is none."""
        value = self.payload.get(name)
        return value if isinstance(value, str) else ""

    def event(self, kind: str, **keys: object) -> Event:
        """An event of this host session with those of ``keys`` that are known."""
        known = {name: value for name, value in keys.items() if value is not None}
        base = {"kind": kind, "at": write_time(self.now), "host": self.host, "host_session_id": self.host_session_id}
        return {**base, **known}  # type: ignore[typeddict-item]

    def delegation(self, prompt: Json, description: Json, **keys: object) -> Event:
        """A delegation begins; ``keys`` are what else the host told of it.

        What asks for a resume is read from ``prompt`` and from ``description``; the prompt itself is not kept.
        """
        from .marker import read_mentions, read_requests

        texts = [text for text in (prompt, description) if isinstance(text, str)]
        resume = [agent_id for text in texts for agent_id in read_requests(text)]
        named = dict.fromkeys(agent_id for text in texts for agent_id in read_mentions(text))
        mentioned = [agent_id for agent_id in named if agent_id not in resume]
        asked = {"resume": resume or None, "mentioned": mentioned or None}
        return self.event(events.DELEGATE, purpose=self.purpose(description), **asked, **keys)

    def failure(self, error: str, **keys: object) -> Event:
        """News of a failure; ``error`` on one line, if there is anything to say."""
        return self.event(events.FAIL, **keys, error=one_line(error, LONGEST_MESSAGE) or None)

    def last_words(self, message: str) -> dict[str, object]:
        """What an event keeps of what an agent said last: its marker, and the end of it if the settings want that."""
        if not message.strip():
            return {"spoke": False}
        from .marker import read_marker

        marked, marked_id = read_marker(message)
        kept = clean(message)[-LONGEST_MESSAGE:] if self.config.keep_last_message else None
        return {"spoke": True, "marked": marked, "marked_id": marked_id, "last_message": kept}

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
    return text.translate(_CLEANED)


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """The same on one line, cut."""
    return " ".join(clean(text).split())[:longest]
