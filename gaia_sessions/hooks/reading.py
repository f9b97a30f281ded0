"""How the payload of a host finds what reads it, and which process runs that host's agents.

Owns what the modules of the other hosts do alike. Knows no host's own words.
"""

from __future__ import annotations

from .payload import Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from gaia_sessions.config import Config
    from gaia_sessions.events import Event
    from gaia_sessions.shape import HostProcess
    from gaia_sessions.strictjson import Json

    Payload = dict[str, Json]
    Reading = Callable[[Told], list[Event]]
    Readings = Mapping[str, Reading]


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


def host_process(programs: tuple[str, ...]) -> HostProcess | None:
    """The nearest ancestor of this process that is one of ``programs``; None if it cannot be told."""
    from gaia_sessions import processes

    return processes.of_host(programs)
