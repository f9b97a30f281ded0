"""Sessions that an app has for its users: their IDs, and whether a program's view of a session is still up to date.

A view gets old if the session gets a message, if its own state changes, or if another session replaces it.
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
"""How many characters of the app's ID our ID contains, so that people recognize the session."""


def check_names(app: str, user: str, app_id: str | None) -> None:
    """Raises ``InvalidInput`` if the values cannot name an app, its user and a session."""
    for name, value in (("app_name", app), ("user_id", user), ("session_id", app_id)):
        if value is None:
            continue
        check_string(strict.normalize_value(value, name), name)
        if not value or value != value.strip() or len(value) > LONGEST_NAME:
            problem = f"must have 1 to {LONGEST_NAME} characters, and no space at the beginning or end"
            raise errors.InvalidInput(problem, name)


def agent_id_of(app: str, user: str, app_id: str) -> str:
    """Returns our ID of the session that the app calls ``app_id``."""
    digest = short_digest(strict.dump_line([app, user, app_id]))
    return "-".join([*re.findall("[A-Za-z0-9]+", app_id[:_READABLE]), digest])


def app_id_of(record: Record) -> str:
    """Returns the app's ID of the session of ``record``."""
    return record.get("app_session", {}).get("id", record["agent_id"])


def event_time(record: Record) -> float:
    """Returns the time of the latest event, or of the creation, in seconds since 1970."""
    found = record.get("app_session", {}).get("event_time")
    return parse_time(record["created_at"]).timestamp() if found is None else found


def is_same(record: Record, later: Record) -> bool:
    """Whether both are records of the same session with the same transcript."""
    return _beginning(record) == _beginning(later)


def _beginning(record: Record) -> tuple[str, int]:
    """Returns what differs if the session or its transcript has begun again."""
    return record["created_at"], generation_of(record)


class AppEvent:
    """An event of an app as a message, with its time in seconds since 1970."""

    __slots__ = ("at", "message")

    def __init__(self, message: NewMessage, at: float) -> None:
        self.message = message
        self.at = at

    def in_turn(self, turns: int) -> NewMessage:
        """Returns the message with the number of its turn; there were ``turns`` turns before."""
        return {**self.message, "turn": max(1, turns + self.begins_turn)}  # type: ignore[typeddict-unknown-key]  # a store takes it

    @property
    def begins_turn(self) -> bool:
        """Whether a user sent the message, which then begins a turn."""
        return self.message["role"] == "user"


def with_app_event(record: Record, event: AppEvent, now: datetime) -> Record:
    """Adds ``event``, which counts as activity; the first message of a user becomes the purpose."""
    check_open(record)
    changed: Record = {**record, "app_session": {**record.get("app_session", {}), "event_time": event.at}}
    if event.begins_turn:
        content = event.message["content"]
        changed["turns"] = record.get("turns", 0) + 1
        if record["purpose"] == NO_PURPOSE and content.strip():
            changed["purpose"] = visible_line(content, _LONGEST_PURPOSE)
    return with_event(with_activity(changed, now), TURN_TAKEN, now)


class Seen:
    """What a program saw of a session."""

    __slots__ = ("own", "seq", "shared")

    def __init__(self, seq: int, own: str, shared: Iterable[int]) -> None:
        self.seq = seq  # of the last message
        self.own = own  # a digest of the state, the creation and the generation of the transcript
        self.shared = tuple(shared)  # revisions of the shared documents

    @classmethod
    def of(cls, record: Record, documents: Iterable[Document | None]) -> Seen:
        """Returns what is seen of ``record`` and of its shared ``documents``, in the order of ``scopes_of``."""
        return cls(last_seq(record), _digest(record), map(revision_of, documents))

    @classmethod
    def from_text(cls, text: str) -> Seen | None:
        """Reads what ``text()`` wrote; None for any other text."""
        numbers = re.fullmatch(r"([0-9]{1,18})\.([0-9a-f]+)\.([0-9]{1,18})\.([0-9]{1,18})", text)
        return cls(int(numbers[1]), numbers[2], (int(numbers[3]), int(numbers[4]))) if numbers else None

    def text(self) -> str:
        """Returns this view as one line that a program can store."""
        return ".".join([str(self.seq), self.own, *map(str, self.shared)])

    def check(self, record: Record) -> None:
        """Raises ``StateChanged`` if the session itself has changed."""
        if last_seq(record) != self.seq:
            raise errors.StateChanged(record["agent_id"], "another message was added")
        if _digest(record) != self.own:
            raise errors.StateChanged(record["agent_id"], "its state was changed, or the session was begun again,")

    def check_shared(
        self, agent_id: str, documents: Mapping[Scope, Document | None], written: Collection[Scope]
    ) -> None:
        """Raises ``StateChanged`` if one of the documents that will be ``written`` has changed."""
        for (scope, document), revision in zip(documents.items(), self.shared, strict=True):
            if scope in written and revision_of(document) != revision:
                raise errors.StateChanged(agent_id, f"a shared {prefix_of(scope)} key was changed")

    def after(self, record: Record, documents: Mapping[Scope, Document | None], written: Collection[Scope]) -> Seen:
        """Returns what this program has seen after it has stored ``record`` and the ``written`` documents."""
        pairs = zip(documents.items(), self.shared, strict=True)
        shared = [revision_of(document) if scope in written else old for (scope, document), old in pairs]
        return Seen(last_seq(record), _digest(record), shared)


def _digest(record: Record) -> str:
    return short_digest(strict.dump_line([*_beginning(record), record.get("session_state", {})]))
