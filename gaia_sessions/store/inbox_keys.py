"""Keys that say whom an event in the inbox concerns. They are short enough for the name of the event's file.

The keys are digests: if two IDs have the same key, an event is tried once more than necessary.
"""

from __future__ import annotations

from gaia_sessions.session.host_events import MAIN_STOP, SESSION_END, SESSION_LEFT
from gaia_sessions.session.ids import quick_digest
from gaia_sessions.session.record import has_newer_schema
from gaia_sessions.session.runs import conversation_of, is_orphan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gaia_sessions.session.schema import Record

    WaitingEvent = tuple[str, str]
    """The name of an event in the inbox, and its keys as one text, which is empty if they are unknown."""

MAX_KEYS = 12
"""An event with more keys counts as an event that may concern any agent."""

MAX_MATCHING = 32
"""At most this many waiting events of the same sessions are tried before a new event."""

_KEY_LENGTH = 8

_SESSION, _AGENT, _DELEGATION, _CONVERSATION, _PENDING_KEY = "satcl"
"""The kinds of IDs that keys are made of, as letters: equal IDs of different kinds have different keys."""

CONVERSATION_KINDS = (MAIN_STOP, SESSION_END, SESSION_LEFT)
"""The kinds of events that concern every agent of a conversation."""


def keys_of_event(event: Mapping[str, object]) -> str:
    """Returns the keys by which a waiting ``event`` is found, the narrowest first; empty if unknown or too many."""
    keys = list(dict.fromkeys([*keys_named_in(event), *_conversation_keys(event)]))
    return "".join(keys) if len(keys) <= MAX_KEYS else ""


def keys_named_in(event: Mapping[str, object]) -> list[str]:
    """Returns the keys of the agents, the delegation and the sessions that ``event`` names."""
    values = [(_SESSION, event.get("agent_id")), (_AGENT, event.get("host_agent_id"))]
    running = event.get("running")
    values += [(_AGENT, agent) for agent in running] if isinstance(running, list) else []
    values += [(_DELEGATION, event.get("tool_use_id"))]
    values += [(_SESSION, agent_id) for agent_id in sessions_named_in(event)]
    values += [(_AGENT, event.get("parent_host_agent_id"))]  # an agent waits for the start of its parent
    return [_key(kind, value) for kind, value in values if isinstance(value, str)]


def sessions_named_in(event: Mapping[str, object]) -> Iterator[str]:
    """Yields the session IDs in any member of ``event``."""
    for name in ("agent_id", "marker_id", "briefed_id"):
        value = event.get(name)
        if isinstance(value, str):
            yield value
    for name in ("resume", "mentioned"):
        agent_ids = event.get(name)
        yield from agent_ids if isinstance(agent_ids, list) else ()


def may_concern_others(event: Mapping[str, object]) -> bool:
    """Returns whether ``event`` may concern other agents than the agent and the delegation that it names."""
    return event.get("kind") in CONVERSATION_KINDS or any(sessions_named_in(event))


def keys_of_record(record: Record) -> set[str]:
    """Returns the keys of every event that may change ``record``."""
    keys = {_key(_SESSION, record["agent_id"])}
    for run in record.get("runs", ()):
        values = [(_AGENT, run.get("host_agent_id")), (_DELEGATION, run.get("tool_use_id"))]
        values += [(_CONVERSATION, conversation_of(run))]
        values += [(_AGENT, run.get("parent_host_agent_id") if is_orphan(record, run) else None)]
        if "host_agent_id" not in run:  # only such a run is joined by a key that the host notes later
            values += [(_PENDING_KEY, run.get("host_session_id"))]
        keys.update(_key(kind, value) for kind, value in values if value is not None)
    return keys


def all_keys(waiting: Iterable[WaitingEvent]) -> set[str] | None:
    """Returns every key of the events; None if one of them may concern any agent."""
    keys = [event_keys for _, event_keys in waiting]
    if not all(keys):
        return None
    return {*_each_key("".join(keys))}


def may_change(record: Record, waiting_keys: set[str] | None) -> bool:
    """Returns whether an event with one of ``waiting_keys`` may change ``record``; False if its schema is newer."""
    return not has_newer_schema(record) and (
        waiting_keys is None or not waiting_keys.isdisjoint(keys_of_record(record))
    )


def matching_events(waiting: Iterable[WaitingEvent], keys: set[str]) -> list[WaitingEvent]:
    """Returns the events that have one of ``keys``, and those whose keys are unknown."""
    return [(name, event_keys) for name, event_keys in waiting if not event_keys or _has_one_of(event_keys, keys)]


def events_to_try(waiting: Iterable[WaitingEvent], keys: set[str], other_count: int, random_number: int) -> list[str]:
    """Returns the events that a call tries: the oldest with one of ``keys``, and ``other_count`` others."""
    # The others begin at a random place, so an event that can never be applied does not block the rest. Events with the
    # same first key stay together: they belong to one agent and are applied in the order in which they came.
    groups: dict[str, list[str]] = {}
    names: list[str] = []
    matching: list[str] = []
    for name, event_keys in waiting:
        names.append(name)
        if not _has_one_of(event_keys, keys):
            groups.setdefault(event_keys[:_KEY_LENGTH] or name, []).append(name)
        elif len(matching) < MAX_MATCHING:
            matching.append(name)
    chosen = frozenset([*matching, *_names_from_groups(list(groups.values()), other_count, random_number)])
    return [name for name in names if name in chosen]


def _has_one_of(event_keys: str, keys: set[str]) -> bool:
    return not keys.isdisjoint(_each_key(event_keys))


def _each_key(joined: str) -> list[str]:
    return [joined[offset : offset + _KEY_LENGTH] for offset in range(0, len(joined), _KEY_LENGTH)]


def _names_from_groups(groups: list[list[str]], limit: int, random_number: int) -> list[str]:
    names: list[str] = []
    start = random_number % len(groups) if groups else 0
    for group in (*groups[start:], *groups[:start]):
        names += group[: limit - len(names)]
        if len(names) == limit:
            break
    return names


def _conversation_keys(event: Mapping[str, object]) -> list[str]:
    session = event.get("host_session_id")
    if not isinstance(session, str):
        return []
    keys = [_key(_CONVERSATION, session)] if event.get("kind") in CONVERSATION_KINDS else []
    is_key_pending = "tool_use_id" not in event and ("key_file" in event or "key_pending" in event)
    return [*keys, _key(_PENDING_KEY, session)] if is_key_pending else keys


def _key(kind: str, value: str) -> str:
    return quick_digest(f"{kind}{value}")
