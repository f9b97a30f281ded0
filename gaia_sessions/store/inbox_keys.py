"""Whom an event in the inbox concerns, told by keys short enough to stand in the name of its file.

Owns which keys an event and a record have, and which of many waiting events one call tries. The keys are digests:
two different ids may have the same one, and then an event is tried once more than it need be. Pure.
"""

from __future__ import annotations

from gaia_sessions.session.events import MAIN_STOP, SESSION_END, SESSION_LEFT
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.runs import conversation_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gaia_sessions.session.schema import Record

    Waiting = tuple[str, str]
    """The name of an event in the inbox, and its keys, one after the other; empty if they are not known."""

MOST_KEYS = 12
"""An event with more is one that may concern anybody."""

MOST_CONCERNED = 32
"""At most this many events that concern the news at hand are tried before it."""

_LENGTH, _PRIME = 8, (1 << 32) - 5
"""Hexadecimal digits of a key, and the largest prime number that fits into them."""

_SESSION, _AGENT, _DELEGATION, _CONVERSATION, _KEYED_LATER = "satcl"
OF_A_CONVERSATION = (MAIN_STOP, SESSION_END, SESSION_LEFT)


def keys_of_event(event: Mapping[str, object]) -> str:
    """What ``event`` is found by while it waits, the most telling key first; empty if that is not known."""
    keys = list(dict.fromkeys([*keys_of_news(event), *_of_conversation(event)]))
    return "".join(keys) if len(keys) <= MOST_KEYS else ""


def keys_of_news(event: Mapping[str, object]) -> list[str]:
    """The keys of the agents, the delegation and the sessions that ``event`` names."""
    named = [(_SESSION, event.get("agent_id")), (_AGENT, event.get("host_agent_id"))]
    running = event.get("running")
    named += [(_AGENT, agent) for agent in running] if isinstance(running, list) else []
    named += [(_DELEGATION, event.get("tool_use_id"))]
    named += [(_SESSION, agent_id) for agent_id in sessions_named_in(event)]
    return [_key(kind, value) for kind, value in named if isinstance(value, str)]


def sessions_named_in(event: Mapping[str, object]) -> Iterator[str]:
    """The ids of sessions that ``event`` names in any of its keys."""
    for name in ("agent_id", "marked_id", "told_id"):
        value = event.get(name)
        if isinstance(value, str):
            yield value
    for name in ("resume", "mentioned"):
        several = event.get(name)
        yield from several if isinstance(several, list) else ()


def is_of_others(event: Mapping[str, object]) -> bool:
    """Whether only records can say whom ``event`` concerns besides the agent and the delegation that it names."""
    return event.get("kind") in OF_A_CONVERSATION or any(sessions_named_in(event))


def keys_of_record(record: Record) -> set[str]:
    """The keys of every event that may change ``record`` when it is applied."""
    keys = {_key(_SESSION, record["agent_id"])}
    for run in record.get("runs", ()):
        named = [(_AGENT, run.get("host_agent_id")), (_DELEGATION, run.get("tool_use_id"))]
        named += [(_CONVERSATION, conversation_of(run))]
        if "host_agent_id" not in run:  # only such a run is joined by a key that the host notes later
            named += [(_KEYED_LATER, run.get("host_session_id"))]
        keys.update(_key(kind, value) for kind, value in named if value is not None)
    return keys


def all_keys(waiting: Iterable[Waiting]) -> set[str] | None:
    """Every key that one of the events has; None if one may concern anybody."""
    keys: set[str] = set()
    for _, told in waiting:
        if not told:
            return None
        keys.update(told[place : place + _LENGTH] for place in range(0, len(told), _LENGTH))
    return keys


def may_change(record: Record, known: set[str] | None) -> bool:
    """Whether one of the events with the keys ``known`` may change ``record``; none does that of a later version."""
    return not has_newer_schema(record) and (known is None or not known.isdisjoint(keys_of_record(record)))


def concerned(waiting: Iterable[Waiting], keys: set[str]) -> list[Waiting]:
    """The events that have one of ``keys``, or may have."""
    return [(name, told) for name, told in waiting if not told or any(key in told for key in keys)]


def chosen(waiting: Iterable[Waiting], keys: set[str], others: int, chance: int) -> list[str]:
    """The names of those events that are tried by a call whose news has ``keys``, in the order of ``waiting``.

    The oldest of those that have one of its keys, and so many ``others``, beginning at a place that ``chance`` says:
    none that can never be applied keeps another from being tried. Those that have their first key in common stay
    together: they are of one agent, and are applied in the order in which they came.
    """
    groups: dict[str, list[str]] = {}
    order: dict[str, int] = {}
    mine: list[str] = []
    for number, (name, told) in enumerate(waiting):
        order[name] = number
        if not any(key in told for key in keys):
            groups.setdefault(told[:_LENGTH] or name, []).append(name)
        elif len(mine) < MOST_CONCERNED:
            mine.append(name)
    return sorted([*mine, *_some_of(list(groups.values()), others, chance)], key=order.__getitem__)


def _some_of(groups: list[list[str]], most: int, chance: int) -> list[str]:
    names: list[str] = []
    start = chance % len(groups) if groups else 0
    for group in (*groups[start:], *groups[:start]):
        names += group[: most - len(names)]
        if len(names) == most:
            break
    return names


def _of_conversation(event: Mapping[str, object]) -> list[str]:
    session = event.get("host_session_id")
    if not isinstance(session, str):
        return []
    keys = [_key(_CONVERSATION, session)] if event.get("kind") in OF_A_CONVERSATION else []
    keyed_later = "tool_use_id" not in event and ("key_file" in event or "unkeyed" in event)
    return [*keys, _key(_KEYED_LATER, session)] if keyed_later else keys


def _key(kind: str, value: str) -> str:
    data = f"{kind}{value}".encode("utf-8", "surrogatepass")
    return f"{int.from_bytes(data) % _PRIME:0{_LENGTH}x}"
