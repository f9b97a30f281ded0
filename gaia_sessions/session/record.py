"""The record of one piece of work: how a new one looks, how it is encoded and decoded.

Owns the bytes of ``state.json``. ``updates`` and ``runs`` make new records from old ones; a record is never changed in
place.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from .clock import format_time
from .ids import MAX_ID_LENGTH, is_agent_id
from .phases import INITIALIZING, is_final, waits_for_approval
from .schema import DEFAULTS, check_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from gaia_sessions.jsonio.strict import Json

    from .schema import Answer, AnswerKey, GivenAnswer, Record

SCHEMA = 1

NO_NAME = "unknown"
"""The name of an agent of which nobody said what kind it is."""

NO_PURPOSE = "general"
"""The purpose of a session of which nobody said what it is for."""


def new_record(agent_id: str, agent_name: str, purpose: str, metadata: dict[str, Json], now: datetime) -> Record:
    """The record of a new session: ``initializing``, not resumable, revision 1."""
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
    """The bytes of ``state.json``; raises ``InvalidInput`` or ``TooLarge`` if they could not be read back."""
    return strict.dumps(record, limit)


def decode(data: bytes, agent_id: str) -> Record:
    """The record in ``data``, which must be that of ``agent_id``; ``InvalidInput`` names what is wrong and where.

    A record without ``schema`` and ``revision``, as in the users' documents, reads as if they were 1 and 0;
    ``normalize_document`` corrects what their own program wrote. Of a record with a newer schema only the id is
    checked: it can be shown and no more.
    """
    document = strict.load_object(data)
    for key, default in DEFAULTS.items():
        document.setdefault(key, default)
    if not has_newer_schema(document):
        document = normalize_document(document)
        check_record(document, "")
    if document.get("agent_id") != agent_id:
        raise errors.InvalidInput(
            f"the id of another session, {str(document.get('agent_id'))[:MAX_ID_LENGTH]!r}", "agent_id"
        )
    return document  # type: ignore[return-value]  # just checked


def normalize_document(document: dict[str, Json]) -> dict[str, Json]:
    """``document`` without the two invalid values that the users' own program may have written.

    A negative duration, from a clock that was set back, becomes zero; a summary that is null is removed.
    """
    duration = document.get("duration_seconds")
    if isinstance(duration, int | float) and duration < 0:
        document = {**document, "duration_seconds": 0.0}
    if document.get("summary", "") is None:
        document = {key: value for key, value in document.items() if key != "summary"}
    return document


def has_newer_schema(record: Record | dict[str, Json]) -> bool:
    """Whether a later version wrote ``record``: such a record is shown, and never rewritten."""
    schema = record["schema"]  # as read, and not checked yet: it may be any JSON
    return isinstance(schema, int) and not isinstance(schema, bool) and schema > SCHEMA


def check_readable(record: Record) -> None:
    """Raises ``NewerSchema`` if a later version wrote ``record`` and this version does not understand it."""
    if not has_newer_schema(record):
        return
    try:
        check_record(record, "")
    except errors.InvalidInput:
        raise errors.NewerSchema(record["agent_id"], record["schema"], SCHEMA) from None


def parent_id_of(record: Record) -> str | None:
    """The id of the session above that of ``record``; None if it has none that this version understands."""
    parent_id: object = record.get("parent_id")
    return parent_id if isinstance(parent_id, str) and is_agent_id(parent_id) else None


def is_child(record: Record, parent_ids: Collection[str], *, open_only: bool) -> bool:
    """Whether the parent of ``record`` is one of ``parent_ids``, and with ``open_only`` it is not final."""
    return parent_id_of(record) in parent_ids and (not open_only or is_open(record))


def is_open(record: Record) -> bool:
    """Whether the work is not final; a record of a newer schema counts as open, because its phase may be unknown."""
    return has_newer_schema(record) or not is_final(record["phase"])


def is_open_of_app(record: Record, app: str, user: str | None) -> bool:
    """Whether the work is not final, and of this app and of this user of it, if one is named."""
    return is_open(record) and record.get("app") == app and user in (None, record.get("user"))


ANSWER_WORDS: dict[AnswerKey, str] = {"denial": "denied", "approval": "approved"}
"""The word of each answer, by the key that has it; of both in a record that somebody wrote, the first counts."""

ANSWERED = "answered"
"""The word of an answer that was sent to the agent in words of its own: nobody reads whether those are a yes."""

_ANSWERS = (*ANSWER_WORDS.values(), ANSWERED)


UPDATE = "update"
"""How an answer was given that is none: an update moved on what waited."""


def answer_of(record: Record) -> tuple[str, Answer] | None:
    """``approved`` or ``denied``, and what was said with it; None if nobody has answered what the work waits for.

    Of a record that somebody wrote by hand, a denial counts first, and none where the work waits for no answer.
    """
    if waits_for_approval(record["phase"]):
        for key, word in ANSWER_WORDS.items():
            if key in record:
                return word, record[key]
    return None


NOT_APPROVED_REASON = "not_approved"
"""The work waits for an approval, and whoever would go on with it may not give that."""


def is_asking(record: Record) -> bool:
    """Whether the work waits for an answer that nobody has given."""
    return waits_for_approval(record["phase"]) and answer_of(record) is None


def given_answers(record: Record) -> list[GivenAnswer]:
    """All answers that the work was given, in their order, the one that holds with all that was said with it.

    How it was given is empty where the record does not say. What is no answer in a record that somebody wrote is none.
    """
    given, answered = [one for one in record.get("answers", ()) if one["answer"] in _ANSWERS], answer_of(record)
    if answered is None:
        return given
    word, answer = answered
    if not given or given[-1]["answer"] != word:
        given.append({"answer": word, "by": "", "timestamp": answer["timestamp"]})
    latest: GivenAnswer = given[-1]
    return [*given[:-1], {**latest, "message": answer["message"]} if answer["message"] else latest]


def words_that_are_no_answers(record: Record) -> list[str]:
    """What stands among the answers of a record that somebody wrote, and is none."""
    return [one["answer"] for one in record.get("answers", ()) if one["answer"] not in _ANSWERS]


def answer_words(given: GivenAnswer, longest: int) -> str:
    """An answer, whether an agent typed it, and what was said with it, in at most ``longest`` characters."""
    from .visible import visible_line  # most work waits for no answer

    word = given["answer"] + (" in an agent's shell" if "shell" in given else "")
    return f"{word}: {visible_line(given['message'], longest)}" if given.get("message") else word
