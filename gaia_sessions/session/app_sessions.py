"""Sessions that an app keeps for its users: under which id one is found, and whether it is still as a program saw it.

Owns what makes a program's view of a session old: a message that was added, another value of its own state, another
session under its id, and, for who changes it, another revision of what it shares. A heartbeat, a todo or an update does
not. Pure.
"""

from __future__ import annotations

import re

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from .checks import check_string
from .clock import parse_time
from .ids import short_digest
from .phases import TURN_TAKEN
from .record import NO_PURPOSE
from .shared_keys import LONGEST_NAME, prefix_of, revision_of
from .transcript import generation_of, last_seq
from .updates import check_open, with_activity, with_event
from .visible import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from .schema import Record
    from .shared_keys import Document, Scope
    from .transcript import NewMessage

_LONGEST_PURPOSE = 80
_READABLE = 40
"""How many characters of an app's id stand in ours, so that a person recognizes it."""


def check_names(app: str, user: str, app_id: str | None) -> None:
    """Raises ``InvalidInput`` if they cannot name an app, its user and a session of it: each is what others compare."""
    for name, value in (("app_name", app), ("user_id", user), ("session_id", app_id)):
        if value is None:
            continue
        check_string(strict.normalize_value(value, name), name)
        if not value or value != value.strip() or len(value) > LONGEST_NAME:
            problem = f"is empty, longer than {LONGEST_NAME} characters, or has space around it"
            raise errors.InvalidInput(problem, name)


def agent_id_of(app: str, user: str, app_id: str) -> str:
    """Under which id of ours the session is found that the app calls ``app_id``."""
    digest = short_digest(strict.dump_line([app, user, app_id]))
    return "-".join([*re.findall("[A-Za-z0-9]+", app_id[:_READABLE]), digest])


def app_id_of(record: Record) -> str:
    """What the app calls the session of ``record``."""
    return record.get("app_session", {}).get("id", record["agent_id"])


def event_time(record: Record) -> float:
    """The time of its latest event, or of its creation, in seconds since 1970."""
    found = record.get("app_session", {}).get("event_time")
    return parse_time(record["created_at"]).timestamp() if found is None else found


def is_same(record: Record, later: Record) -> bool:
    """Whether ``later`` is of the same session with the same transcript: neither was begun anew."""
    return _beginning(record) == _beginning(later)


def _beginning(record: Record) -> tuple[str, int]:
    """What another session under the same id has otherwise, and another transcript."""
    return record["created_at"], generation_of(record)


class AppEvent:
    """An event of an app as a message, and the time that it has, in seconds since 1970."""

    __slots__ = ("at", "message")

    def __init__(self, message: NewMessage, at: float) -> None:
        self.message = message
        self.at = at

    def in_turn(self, turns: int) -> NewMessage:
        """The message in its turn, after so many ``turns``: what a user says begins one, and so does the first."""
        return {**self.message, "turn": max(1, turns + self.begins_turn)}  # type: ignore[typeddict-unknown-key]  # a store takes it

    @property
    def begins_turn(self) -> bool:
        """Whether a user said it."""
        return self.message["role"] == "user"


def with_app_event(record: Record, event: AppEvent, now: datetime) -> Record:
    """The record with ``event``, and activity; the first words of a user are what the work is for.

    Raises ``SessionFinal``.
    """
    check_open(record)
    changed: Record = {**record, "app_session": {**record.get("app_session", {}), "event_time": event.at}}
    if event.begins_turn:
        content = event.message["content"]
        changed["turns"] = record.get("turns", 0) + 1
        if record["purpose"] == NO_PURPOSE and content.strip():
            changed["purpose"] = visible_line(content, _LONGEST_PURPOSE)
    return with_event(with_activity(changed, now), TURN_TAKEN, now)


class Seen:
    """What a program saw of a session: its last message, its own state, and the revisions of what it shares.

    own: a digest of its state, of when it was created, and of which transcript it has.
    """

    __slots__ = ("own", "seq", "shared")

    def __init__(self, seq: int, own: str, shared: Iterable[int]) -> None:
        self.seq = seq
        self.own = own
        self.shared = tuple(shared)

    @classmethod
    def of(cls, record: Record, documents: Iterable[Document | None]) -> Seen:
        """What is seen of ``record``, and of the ``documents`` that it shares, in the order of ``scopes_of``."""
        return cls(last_seq(record), _digest(record), map(revision_of, documents))

    @classmethod
    def from_text(cls, text: str) -> Seen | None:
        """What ``text`` made; None for another text."""
        numbers = re.fullmatch(r"([0-9]{1,18})\.([0-9a-f]+)\.([0-9]{1,18})\.([0-9]{1,18})", text)
        return cls(int(numbers[1]), numbers[2], (int(numbers[3]), int(numbers[4]))) if numbers else None

    def text(self) -> str:
        """All of it on one line, for a program to keep."""
        return ".".join([str(self.seq), self.own, *map(str, self.shared)])

    def check(self, record: Record) -> None:
        """Raises ``StateChanged`` unless the session itself is as it was."""
        if last_seq(record) != self.seq:
            raise errors.StateChanged(record["agent_id"], "another message was added")
        if _digest(record) != self.own:
            raise errors.StateChanged(record["agent_id"], "its state was changed, or it was begun anew,")

    def check_shared(
        self, agent_id: str, documents: Mapping[Scope, Document | None], written: Collection[Scope]
    ) -> None:
        """Raises ``StateChanged`` unless those of ``documents`` that are to be ``written`` are as they were."""
        for (scope, document), revision in zip(documents.items(), self.shared, strict=True):
            if scope in written and revision_of(document) != revision:
                raise errors.StateChanged(agent_id, f"what {prefix_of(scope)} keys share was changed")

    def after(self, record: Record, documents: Mapping[Scope, Document | None], written: Collection[Scope]) -> Seen:
        """What has been seen once this program has stored ``record``, and has ``written`` some of ``documents``."""
        pairs = zip(documents.items(), self.shared, strict=True)
        shared = [revision_of(document) if scope in written else old for (scope, document), old in pairs]
        return Seen(last_seq(record), _digest(record), shared)


def _digest(record: Record) -> str:
    return short_digest(strict.dump_line([*_beginning(record), record.get("session_state", {})]))
