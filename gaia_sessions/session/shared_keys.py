"""The state that sessions share: which keys are allowed, who owns each key, and how a delta changes the state.

``app:x`` belongs to all sessions of an app, ``user:x`` to those of one of its users, any other key to one session.
Null is a value: only ``unset`` removes a key.
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
    """The owner of keys: () is the session, (app,) an app, (app, user) a user of an app."""
    Values: TypeAlias = dict[str, Json]

    class Document(TypedDict):
        """The keys of an app or of one of its users, without their prefix; ``revision`` counts the changes."""

        scope: list[str]
        revision: int
        state: Values


APP, USER = "app:", "user:"
NEVER_STORED = ("temp:", "secret:")
_LONGEST_KEY = 256
LONGEST_NAME = 300
"""The most characters of an app or a user: Google ADK's services accept as many."""


class Delta:
    """One change of state: the keys to ``set``, the keys to ``unset``, and the numbers to ``add`` to other keys."""

    __slots__ = ("add", "set", "unset")

    def __init__(
        self,
        set: Mapping[str, object] | None = None,  # noqa: A002  # the name in documents
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
        """Reads the delta in ``{"set": {...}, "unset": [...], "add": {...}}``; each part may be missing."""
        if not isinstance(document, dict):
            raise errors.InvalidInput(f"must be an object, not {strict.json_type_of(document)}", "the delta")
        for name in document:
            if name not in _CHECKS:
                raise errors.InvalidInput("is not part of a delta", name, f"a delta has {', '.join(_CHECKS)}")
        object_with({}, _CHECKS)(document, "")
        return cls(**document)  # type: ignore[arg-type]  # what was just checked

    def parts(self, record: Record) -> dict[Scope, Delta]:
        """Returns the part of this delta for each scope, with keys without their prefix."""
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
        """Returns ``values`` changed by this delta; messages show the keys with ``prefix``."""
        cleared = {*self.unset}
        kept = {key: value for key, value in values.items() if key not in cleared}
        for key, amount in self.add.items():
            before = kept.get(key, 0)
            if not is_integer(before):
                raise errors.InvalidInput(
                    f"is {strict.json_type_of(before)}, not a whole number",
                    prefix + key,
                    f"to set it to 0, type: gaia-sessions state set ID {quote(prefix + key)} --value-json 0",
                )
            kept[key] = strict.normalize_value(before + amount, prefix + key)
        return kept | self.set


_CHECKS = {"set": check_object, "unset": array_of(check_string), "add": map_of(check_integer)}


def check_key(key: str) -> None:
    """Refuses a text that cannot be a key; the key has the prefix of its scope."""
    check_string(key, "the key")
    name = key.removeprefix(APP) if key.startswith(APP) else key.removeprefix(USER)
    if not name or name != name.strip() or not key.isprintable() or len(key) > _LONGEST_KEY:
        problem = (
            f"is not valid: a key has 1 to {_LONGEST_KEY} printable characters, no space around it, and a name after a "
            "prefix such as app:"
        )
        raise errors.InvalidInput(f"the key {key[:_LONGEST_KEY]!r} {problem}")
    if name.startswith(NEVER_STORED):
        raise errors.InvalidInput(f"{key!r} is never stored", hint="keep it in your program, or choose another key")
    if name != key and name.startswith((APP, USER)):
        raise errors.InvalidInput(f"{key!r} has two prefixes", hint=f"use one prefix, for example {name!r}")


def checked_owner(app: str | None, user: str | None) -> tuple[str, str] | tuple[None, None]:
    """Returns an app and its user without space around them, or None for both."""
    if app is None and user is None:
        return None, None
    if app is None or user is None:
        raise errors.InvalidInput("an app needs a user, and a user needs an app", hint="give both, or neither")
    return _checked_name(app, "app"), _checked_name(user, "user")


def _checked_name(name: str, where: str) -> str:
    check_string(name, where)
    if not name.strip() or len(name) > LONGEST_NAME:
        raise errors.InvalidInput(f"is blank, or longer than {LONGEST_NAME} characters", where)
    return name.strip()


def scope_of(key: str, record: Record) -> tuple[Scope, str]:
    """Returns the owner of ``key`` in the session of ``record``, and the key without its prefix."""
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
    """Returns the whole state that the session of ``record`` sees; shared keys have their prefixes."""
    found = {**record.get("session_state", {})}
    for scope, document in documents.items():
        found |= {prefix_of(scope) + key: value for key, value in document["state"].items()} if document else {}
    return found


def prefix_of(scope: Scope) -> str:
    """Returns the prefix of the keys of ``scope``."""
    return APP if len(scope) == 1 else USER


def revision_of(document: Document | None) -> int:
    """Returns the revision of a document; 0 if there is no document."""
    return document["revision"] if document else 0


def scopes_of(record: Record) -> list[Scope]:
    """Returns the scopes that the session of ``record`` shares, in the order in which they are locked."""
    return [(record["app"],), (record["app"], record["user"])] if "app" in record else []


def with_keys(record: Record, delta: Delta, types: Mapping[str, str]) -> Record:
    """Applies ``delta`` to the session's own keys; ``types`` is the setting ``state.keys``."""
    values = delta.applied(record.get("session_state", {}))
    for key in (*delta.set, *delta.add):
        check_type(key, values[key], types)
    return {**record, "session_state": values}


def with_delta(
    record: Record, delta: Delta, types: Mapping[str, str], now: datetime, expected: int | None = None
) -> Record:
    """Applies ``delta`` as activity; this begins the work of a new session of an app."""
    check_revision(record, expected)
    check_open(record)
    changed = with_activity(with_keys(record, delta, types), now)
    return with_event(changed, TURN_TAKEN, now) if "app" in record else changed


def first_delta(values: Mapping[str, object], types: Mapping[str, str]) -> Delta:
    """Returns the delta that sets the ``values`` of a new session."""
    delta = Delta(values)
    for key, value in delta.set.items():
        check_type(key, value, types)
    return delta


def check_type(key: str, value: Json, types: Mapping[str, str]) -> None:
    """Refuses a ``key`` that ``types`` does not have, or a value of another type; a key with ":" is not checked."""
    if not types or ":" in key:
        return
    if key not in types:
        names = ", ".join(sorted(types))
        raise errors.InvalidInput("is not a key of the setting state.keys", key, f"use one of these keys: {names}")
    if not TYPES[types[key]](value):
        raise errors.InvalidInput(f"must be {types[key]}, not {strict.json_type_of(value)}", key)


def with_shared(document: Document | None, scope: Scope, delta: Delta) -> Document:
    """Returns the document of ``scope``, changed by ``delta``, with its next revision."""
    old: Document = document or {"scope": [*scope], "revision": 0, "state": {}}
    return {**old, "revision": old["revision"] + 1, "state": delta.applied(old["state"], prefix_of(scope))}


def check_document(document: Mapping[str, Json]) -> None:
    """Refuses a value that is not a ``Document``, and a document with an invalid key."""
    _CHECK_SHAPE(document, "")
    checked: Document = document  # type: ignore[assignment]  # what was just checked
    if len(checked["scope"]) not in (1, 2):
        raise errors.InvalidInput("must be an app, or an app and a user", "scope")
    if checked["revision"] < 1:
        raise errors.InvalidInput("must be 1 or more", "revision")
    for key in checked["state"]:
        check_key(prefix_of((*checked["scope"],)) + key)


_CHECK_SHAPE = object_with({"scope": array_of(check_string), "revision": check_integer, "state": check_object}, {})
