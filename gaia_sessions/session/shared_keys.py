"""The state that agents hand each other: which keys it may have, whose each of them is, and what one delta makes of it.

Owns the scopes: ``app:x`` belongs to all sessions of an app, ``user:x`` to those of one of its users, any other key to
its session. A delta changes keys of several scopes at once; an increment is part of it, so that it is exact whoever
else writes. Null is a value, and clearing a key is an operation of its own: the users' document on hand-off asks that
keys are cleared explicitly. Pure: ``now`` is an argument.
"""

from __future__ import annotations

from shlex import quote

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from .checks import TYPES, array_of, check_integer, check_object, check_string, is_integer, map_of, object_with
from .phases import TURN_TAKEN
from .updates import check_open, check_revision, with_activity, with_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import TypeAlias, TypedDict

    from gaia_sessions.jsonio.strict import Json

    from .schema import Record

    Scope: TypeAlias = tuple[str, ...]
    """Whose keys: () of the session, (app,) of an app, (app, user) of one of its users."""
    Values: TypeAlias = dict[str, Json]

    class Document(TypedDict):
        """The keys of an app, or of one of its users, without their prefix. revision: how often it was changed."""

        scope: list[str]
        revision: int
        state: Values


APP, USER = "app:", "user:"
NEVER_STORED = ("temp:", "secret:")
_LONGEST_KEY = 256
LONGEST_NAME = 300
"""Of an app or a user, in characters: what Google ADK's services take, and what a file name is made of."""


class Delta:
    """One change: the keys to ``set``, those to ``unset``, and by how much to ``add`` to others.

    Raises ``InvalidInput`` for a key that is in two of them or cannot be one, and for values that are not JSON.
    """

    __slots__ = ("add", "set", "unset")

    def __init__(
        self,
        set: Mapping[str, object] | None = None,  # noqa: A002  # as documents call it
        unset: Sequence[str] = (),
        add: Mapping[str, int] | None = None,
    ) -> None:
        values = strict.normalize_value({} if set is None else set, "set")
        if not isinstance(values, dict):
            raise errors.InvalidInput("must be an object", "set")
        _CHECKS["unset"](unset if isinstance(unset, str) else [*unset], "unset")
        _CHECKS["add"]({} if add is None else add, "add")
        self.set: Values = values
        self.unset = [*unset]
        self.add = dict(add or {})
        seen: dict[str, None] = {}
        for key in (*self.set, *self.unset, *self.add):
            check_key(key)
            if key in seen:
                raise errors.InvalidInput(f"{key!r} would be changed twice", hint="name each key once")
            seen[key] = None

    @classmethod
    def of_document(cls, document: Json) -> Delta:
        """The delta that is written ``{"set": {...}, "unset": [...], "add": {...}}``, each of which may be missing."""
        if not isinstance(document, dict):
            raise errors.InvalidInput(f"must be an object, not {strict.json_type_of(document)}", "the delta")
        for name in document:
            if name not in _CHECKS:
                raise errors.InvalidInput("is not part of a delta", name, f"it has {', '.join(_CHECKS)}")
        object_with({}, _CHECKS)(document, "")
        return cls(**document)  # type: ignore[arg-type]  # what was just checked

    def parts(self, record: Record) -> dict[Scope, Delta]:
        """The delta of each scope, with keys as its document has them.

        Raises ``InvalidInput`` for a key of an app or a user where ``record`` has none.
        """
        found: dict[Scope, Delta] = {}

        def part_with(key: str) -> tuple[Delta, str]:
            scope, name = scope_of(key, record)
            return found.setdefault(scope, Delta()), name

        for key, value in self.set.items():
            part, name = part_with(key)
            part.set[name] = value
        for key, amount in self.add.items():
            part, name = part_with(key)
            part.add[name] = amount
        for key in self.unset:
            part, name = part_with(key)
            part.unset.append(name)
        return found

    def applied(self, values: Values, prefix: str = "") -> Values:
        """The ``values`` after it; ``prefix`` is what stands before their keys for those who name them.

        Raises ``InvalidInput`` for an increment of what is no whole number.
        """
        cleared = {*self.unset}
        kept = {key: value for key, value in values.items() if key not in cleared}
        for key, amount in self.add.items():
            before = kept.get(key, 0)
            if not is_integer(before):
                raise errors.InvalidInput(
                    f"is {strict.json_type_of(before)}, no whole number to add to",
                    prefix + key,
                    f"gaia-sessions state set ID {quote(prefix + key)} --value-json 0 makes it one",
                )
            kept[key] = strict.normalize_value(before + amount, prefix + key)
        return kept | self.set


_CHECKS = {"set": check_object, "unset": array_of(check_string), "add": map_of(check_integer)}


def check_key(key: str) -> None:
    """Raises ``InvalidInput`` if ``key``, with the prefix of its scope, cannot be one."""
    check_string(key, "the key")
    name = key.removeprefix(APP) if key.startswith(APP) else key.removeprefix(USER)
    if not name or name != name.strip() or not key.isprintable() or len(key) > _LONGEST_KEY:
        problem = f"is blank, longer than {_LONGEST_KEY} characters, has space around it or is no line of text"
        raise errors.InvalidInput(f"the key {key[:_LONGEST_KEY]!r} {problem}")
    if name.startswith(NEVER_STORED):
        raise errors.InvalidInput(f"{key!r} is never stored", hint="keep it in your program, or choose another key")
    if name != key and name.startswith((APP, USER)):
        raise errors.InvalidInput(f"{key!r} has two prefixes", hint=f"choose one of them, as {name!r}")


def checked_owner(app: str | None, user: str | None) -> tuple[str, str] | tuple[None, None]:
    """An app and its user without space around them, or neither. Raises ``InvalidInput`` for one without the other."""
    if app is None and user is None:
        return None, None
    if app is None or user is None:
        raise errors.InvalidInput("an app and a user are named together", hint="give both, or neither")
    return _checked_name(app, "app"), _checked_name(user, "user")


def _checked_name(name: str, where: str) -> str:
    check_string(name, where)
    if not name.strip() or len(name) > LONGEST_NAME:
        raise errors.InvalidInput(f"is blank, or longer than {LONGEST_NAME} characters", where)
    return name.strip()


def scope_of(key: str, record: Record) -> tuple[Scope, str]:
    """Whose ``key`` is in the session of ``record``, and what it is called there. Raises ``InvalidInput``."""
    for prefix, scope in ((APP, ("app",)), (USER, ("app", "user"))):
        if key.startswith(prefix):
            if "app" not in record:
                raise errors.InvalidInput(
                    f"{record['agent_id']} belongs to no app, so it has no {prefix} keys",
                    key,
                    "create the session with --app and --user, or choose a key without a prefix",
                )
            return tuple(record[name] for name in scope), key.removeprefix(prefix)  # type: ignore[literal-required]
    return (), key


def merged(record: Record, documents: Mapping[Scope, Document | None]) -> Values:
    """The whole state that the session of ``record`` sees, with the prefixes of what it shares with others."""
    found = {**record.get("session_state", {})}
    for scope, document in documents.items():
        found |= {prefix_of(scope) + key: value for key, value in document["state"].items()} if document else {}
    return found


def prefix_of(scope: Scope) -> str:
    """How the keys of what ``scope`` shares begin for its sessions."""
    return APP if len(scope) == 1 else USER


def revision_of(document: Document | None) -> int:
    """How often what is shared was changed; 0 if there is nothing."""
    return document["revision"] if document else 0


def scopes_of(record: Record) -> list[Scope]:
    """The scopes that the session of ``record`` shares with others, in the order in which they are locked."""
    return [(record["app"],), (record["app"], record["user"])] if "app" in record else []


def with_keys(record: Record, delta: Delta, types: Mapping[str, str]) -> Record:
    """The record with the ``delta`` of its own keys. Raises ``InvalidInput``.

    ``types`` are those of the setting ``state.keys``: where there are some, no other key may be set.
    """
    values = delta.applied(record.get("session_state", {}))
    for key in (*delta.set, *delta.add):
        check_type(key, values[key], types)
    return {**record, "session_state": values}


def with_delta(
    record: Record, delta: Delta, types: Mapping[str, str], now: datetime, expected: int | None = None
) -> Record:
    """What ``with_keys`` makes of the record, and activity; a session of an app has begun with it.

    Raises ``InvalidInput``, ``SessionFinal``, and ``RevisionChanged`` if another revision is ``expected``.
    """
    check_revision(record, expected)
    check_open(record)
    changed = with_activity(with_keys(record, delta, types), now)
    return with_event(changed, TURN_TAKEN, now) if "app" in record else changed


def first_delta(values: Mapping[str, object], types: Mapping[str, str]) -> Delta:
    """What makes the ``values`` of a new session. Raises ``InvalidInput``."""
    delta = Delta(values)
    for key, value in delta.set.items():
        check_type(key, value, types)
    return delta


def check_type(key: str, value: Json, types: Mapping[str, str]) -> None:
    """Raises ``InvalidInput`` if ``types`` do not have the ``key``, or another type for it; one with a ":" is free."""
    if not types or ":" in key:
        return
    if key not in types:
        names = ", ".join(sorted(types))
        raise errors.InvalidInput("is not among the keys of the setting state.keys", key, f"use one of them: {names}")
    if not TYPES[types[key]](value):
        raise errors.InvalidInput(f"must be {types[key]}, not {strict.json_type_of(value)}", key)


def with_shared(document: Document | None, scope: Scope, delta: Delta) -> Document:
    """The document of ``scope`` with the ``delta`` of its keys, at its next revision."""
    old: Document = document or {"scope": [*scope], "revision": 0, "state": {}}
    return {**old, "revision": old["revision"] + 1, "state": delta.applied(old["state"], prefix_of(scope))}


def check_document(document: Mapping[str, Json]) -> None:
    """Raises ``InvalidInput`` for what is no ``Document``, and for one with a key that nobody could set."""
    _CHECK_SHAPE(document, "")
    checked: Document = document  # type: ignore[assignment]  # what was just checked
    if len(checked["scope"]) not in (1, 2):
        raise errors.InvalidInput("must be an app, or an app and a user", "scope")
    if checked["revision"] < 1:
        raise errors.InvalidInput("must be 1 or more", "revision")
    for key in checked["state"]:
        check_key(prefix_of((*checked["scope"],)) + key)


_CHECK_SHAPE = object_with({"scope": array_of(check_string), "revision": check_integer, "state": check_object}, {})
