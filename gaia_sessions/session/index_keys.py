"""The keys by which sessions are looked up, made from a record, in the order in which an index gets them.

``ACTIVE_KEY`` is added first and removed last: while a session has it, cleanup finds the session again.
"""

from __future__ import annotations

from .phases import is_final
from .runs import found_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .runs import Alias
    from .schema import Record

    IndexKey = tuple[str, ...]
    """A group, and the exact strings that all sessions with this key share."""

ACTIVE_KEY: IndexKey = ("active",)
"""The key of every session that is open, or that cannot be read and so may be open."""

ACTIVE_GROUPS = frozenset(["active", "name", "conversation", "open_child", "app_user"])
"""The groups of keys that a session loses at its end, so that few sessions have such a key."""

_KEYED = ("schema", "runs", "agent_name", "parent_id")
"""The keys of a record that its index keys are made of, besides the phase."""


def keys_of(record: Record) -> list[IndexKey]:
    """Returns every key by which the session of ``record`` must be found."""
    is_open, parent_id, conversations, aliases = found_by(record)
    keys = []
    if is_open:
        name: object = record.get("agent_name")  # a later version can write another value
        keys = [ACTIVE_KEY, *([name_key(name)] if isinstance(name, str) else [])]
        app, user = record.get("app"), record.get("user")
        if isinstance(app, str) and isinstance(user, str):
            keys.append(app_user_key(app, user))
    keys += [*map(conversation_key, conversations), *map(alias_key, aliases)]
    if parent_id is not None:
        keys += [parent_key(parent_id), *([open_child_key(parent_id)] if is_open else [])]
    return list(dict.fromkeys(keys))  # runs of one agent share keys


def difference(before: Record, record: Record) -> tuple[list[IndexKey], list[IndexKey]]:
    """Returns the keys that a session gets, and those that it loses, if ``record`` replaces ``before``."""
    has_equal_keys = all(before.get(key) == record.get(key) for key in _KEYED)
    if has_equal_keys and is_final(before["phase"]) == is_final(record["phase"]):
        return [], []
    old, new = dict.fromkeys(keys_of(before)), dict.fromkeys(keys_of(record))
    return [key for key in new if key not in old], [key for key in old if key not in new]


def narrowest_key(agent_name: str | None, host_session_id: str | None) -> IndexKey:
    """Returns the narrowest key of all open sessions with this name and this conversation."""
    if host_session_id is not None:
        return conversation_key(host_session_id)
    return ACTIVE_KEY if agent_name is None else name_key(agent_name)


def name_key(agent_name: str) -> IndexKey:
    """Returns the key of the open sessions with this agent name."""
    return "name", agent_name


def conversation_key(host_session_id: str) -> IndexKey:
    """Returns the key of the open sessions with a run to which the end of this conversation matters."""
    return "conversation", host_session_id


def alias_key(alias: Alias) -> IndexKey:
    """Returns the key of the sessions, open or not, with this exact key of a host."""
    kind, parts = alias
    return "host_key", kind, *parts


def parent_key(parent_id: str) -> IndexKey:
    """Returns the key of the sessions, open or not, with this parent."""
    return "parent", parent_id


def open_child_key(parent_id: str) -> IndexKey:
    """Returns the key of the open sessions with this parent."""
    return "open_child", parent_id


def app_user_key(app: str, user: str) -> IndexKey:
    """Returns the key of the open sessions of this user of an app."""
    return "app_user", app, user
