"""The record of a session: a new one, its bytes (``state.json``), and the answers in it.

A record is never changed in place: ``updates`` and ``runs`` make new ones.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from .clock import format_time
from .ids import MAX_ID_LENGTH, is_agent_id
from .phases import COMPLETED, INITIALIZING, is_final, waits_for_approval
from .schema import DEFAULTS, check_moving, check_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    from .schema import Answer, AnswerKey, GivenAnswer, Moving, Record

SCHEMA = 1

SCHEMA_WHILE_MOVING = 1_000_000
"""The schema of a record that is fenced because its session moves to another store.

No version changes a record of a schema that is newer than its own.
"""

NO_NAME = "unknown"
"""The agent's name if nobody gave one."""

NO_PURPOSE = "general"
"""The purpose of a session if nobody gave one."""


def new_record(agent_id: str, agent_name: str, purpose: str, metadata: dict[str, Json], now: datetime) -> Record:
    """Returns the record of a new session: ``initializing``, not resumable, revision 1."""
    timestamp = format_time(now)
    return {
        "agent_id": agent_id,
        "agent_name": agent_name,
        "purpose": purpose,
        "created_at": timestamp,
        "last_updated": timestamp,
        "phase": INITIALIZING,
        "metadata": metadata,
        "resume_ready": False,
        "history": [],
        "error_count": 0,
        "last_error": None,
        "schema": SCHEMA,
        "revision": 1,
    }


def encode(record: Record, limit: int = strict.DOCUMENT_LIMIT) -> bytes:
    """Returns the bytes of ``state.json``."""
    return strict.dumps(record, limit)


def decode(data: bytes, agent_id: str) -> Record:
    """Reads the record in ``data``, which must have the ID ``agent_id``."""
    document = as_stored(data)
    if not has_newer_schema(document):  # a newer record can only be shown
        document = normalize_document(document)
        check_record(document, "")
    if document.get("agent_id") != agent_id:
        raise errors.InvalidInput(
            f"is the ID of another session: {str(document.get('agent_id'))[:MAX_ID_LENGTH]!r}", "agent_id"
        )
    return document  # type: ignore[return-value]  # just checked


def as_stored(data: bytes) -> dict[str, Json]:
    """Returns the object in ``data`` with a schema and a revision; nothing else is checked or changed."""
    document = strict.load_object(data)
    # The users' own program wrote records without schema and revision.
    for key, default in DEFAULTS.items():
        document.setdefault(key, default)
    return document


def normalize_document(document: dict[str, Json]) -> dict[str, Json]:
    """Returns ``document`` without two invalid values that the users' own program may have written."""
    # A clock that was set back makes a negative duration.
    duration = document.get("duration_seconds")
    if isinstance(duration, int | float) and duration < 0:
        document = {**document, "duration_seconds": 0.0}
    if document.get("summary", "") is None:
        document = {key: value for key, value in document.items() if key != "summary"}
    return document


def has_newer_schema(record: Record | dict[str, Json]) -> bool:
    """Whether a later version wrote ``record``: such a record is shown, and never rewritten."""
    schema = record["schema"]  # not checked yet: the value can be any JSON
    return isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA


def check_readable(record: Record) -> None:
    """Refuses a record of a later version that this version does not understand."""
    if not has_newer_schema(record):
        return
    try:
        check_record(record, "")
    except errors.InvalidInput:
        raise errors.NewerSchema(record["agent_id"], record["schema"], SCHEMA) from None


def is_stand_in(record: Record) -> bool:
    """Whether the session is on a server, and this record only stands in for it in files."""
    return record.get("stand_in") is True


def stand_in_of(record: Record, now: datetime) -> Record:
    """Returns the record that stands in for ``record``: it has what matters to agents below, and is never resumed."""
    keys = ("created_at", "parent_id", "max_depth", "allowed_tools")
    copied: Record = {key: record[key] for key in keys if key in record}  # type: ignore[literal-required, assignment]  # some keys of a record
    new = new_record(record["agent_id"], record["agent_name"], record["purpose"], {}, now)
    return {**new, "phase": COMPLETED, "stand_in": True, **copied}


def with_moving(record: Record, moving: Moving | None) -> Record:
    """Returns ``record`` with the fence, or with None as it was before the fence; its revision stays."""
    if moving is not None:
        return {**record, "schema": SCHEMA_WHILE_MOVING, "moving": moving}
    kept: Record = {key: value for key, value in record.items() if key != "moving"}  # type: ignore[assignment]  # still a record
    return {**kept, "schema": SCHEMA}


def moving_of(record: Record) -> Moving | None:
    """Returns from where and to where the session is being moved; None for any other session."""
    if record["schema"] != SCHEMA_WHILE_MOVING:
        return None
    moving = record.get("moving")
    try:
        check_moving(moving, "moving")
    except errors.InvalidInput:  # somebody edited the record
        return None
    return moving


def parent_id_of(record: Record) -> str | None:
    """Returns the ID of the session above, if this version understands it."""
    parent_id: object = record.get("parent_id")
    return parent_id if isinstance(parent_id, str) and is_agent_id(parent_id) else None


def is_child(record: Record, parent_ids: Collection[str], *, open_only: bool) -> bool:
    """Whether the parent of ``record`` is one of ``parent_ids``; with ``open_only``, the session must be open too."""
    return parent_id_of(record) in parent_ids and (not open_only or is_open(record))


def is_open(record: Record) -> bool:
    """Whether the session has not ended; a record of a newer schema counts as open."""
    return has_newer_schema(record) or not is_final(record["phase"])


def is_open_of_app(record: Record, app: str, user: str | None) -> bool:
    """Whether the session is open and belongs to ``app``, and to ``user`` if one is named."""
    return is_open(record) and record.get("app") == app and user in (None, record.get("user"))


ANSWER_WORDS: dict[AnswerKey, str] = {"denial": "denied", "approval": "approved"}
"""The word of each answer by its key; if a record has both keys, ``denial`` counts."""

ANSWERED = "answered"
"""The word of an answer that was sent to the agent as text: nobody reads whether the text is a yes."""

_ANSWERS = (*ANSWER_WORDS.values(), ANSWERED)


UPDATE = "update"
"""The ``by`` of an approval that nobody gave: an update left the phase ``approval`` without an answer."""


def answer_of(record: Record) -> tuple[str, Answer] | None:
    """Returns ``approved`` or ``denied``, and the answer; None if the session does not wait, or has no answer."""
    if waits_for_approval(record["phase"]):
        for key, word in ANSWER_WORDS.items():
            if key in record:
                return word, record[key]
    return None


NOT_APPROVED_REASON = "not_approved"
"""The reason if the session waits for an approval that the caller is not allowed to give."""


def is_asking(record: Record) -> bool:
    """Whether the session waits for an answer that nobody has given."""
    return waits_for_approval(record["phase"]) and answer_of(record) is None


def given_answers(record: Record) -> list[GivenAnswer]:
    """Returns all answers, the oldest first; the answer to the current question has its whole message."""
    given, answered = [one for one in record.get("answers", ()) if one["answer"] in _ANSWERS], answer_of(record)
    if answered is None:
        return given
    word, answer = answered
    if not given or given[-1]["answer"] != word:
        given.append({"answer": word, "by": "", "timestamp": answer["timestamp"]})  # the record does not say how
    latest: GivenAnswer = given[-1]
    return [*given[:-1], {**latest, "message": answer["message"]} if answer["message"] else latest]


def words_that_are_no_answers(record: Record) -> list[str]:
    """Returns words in ``answers`` that are no answers: somebody edited the record."""
    return [one["answer"] for one in record.get("answers", ()) if one["answer"] not in _ANSWERS]


def answer_words(given: GivenAnswer, longest: int) -> str:
    """Returns an answer as a line: its word, whether an agent typed it, and its message cut to ``longest``."""
    from .visible import visible_line  # few sessions wait for an answer

    word = given["answer"] + (" in an agent's shell" if "shell" in given else "")
    return f"{word}: {visible_line(given['message'], longest)}" if given.get("message") else word
