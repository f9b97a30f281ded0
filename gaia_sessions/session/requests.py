"""The rules for a new session, an update or an answer, and the order in which they apply in one write.

Commands and hosts' events both use these rules.
"""

from __future__ import annotations

from gaia_sessions import errors
from gaia_sessions.jsonio import strict

from . import updates
from .checks import check_flag, check_string, integer_from
from .host_events import MAX_MESSAGE_LENGTH
from .ids import check_agent_id, new_agent_id
from .phases import check_phase, is_final, waits_for_approval
from .record import NO_NAME, NO_PURPOSE, UPDATE, answer_of, is_asking, new_record
from .retention import RESERVED_BYTES, ROOM_FOR_ENDS
from .runs import has_agent, holds_question, is_claimed, is_live, waits_with_question, with_stated_phase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import TypedDict, Unpack

    from gaia_sessions.jsonio.strict import Json

    from .ids import RandomBytes
    from .schema import AnswerKey, Record
    from .shared_keys import Delta

    class Wanted(TypedDict, total=False):
        """The values that a caller gives for a new session, as ``NewSession`` takes them; None means not given."""

        agent_name: str | None
        purpose: str | None
        parent_id: str | None
        is_parent_elsewhere: bool
        max_tokens: int | None
        allowed_tools: Sequence[str] | None

    class Asked(TypedDict, total=False):
        """The request of one update; a missing key leaves its value as it is."""

        phase: str
        metadata: dict[str, Json]
        error: str
        resume_ready: bool
        max_tokens: int
        question: str


class NewSession:
    """A request for a new session."""

    __slots__ = (
        "agent_id",
        "agent_name",
        "allowed_tools",
        "app",
        "app_id",
        "continues",
        "delta",
        "is_parent_elsewhere",
        "max_depth",
        "max_tokens",
        "metadata",
        "parent_id",
        "purpose",
        "system_prompt",
        "user",
    )

    def __init__(  # noqa: PLR0913  # what can be said of a session
        self,
        agent_name: str,
        purpose: str,
        metadata: object = None,
        agent_id: str | None = None,
        *,
        parent_id: str | None = None,
        is_parent_elsewhere: bool = False,
        max_depth: int | None = None,
        max_tokens: int | None = None,
        allowed_tools: Sequence[str] | None = None,
        system_prompt: str | None = None,
        continues: str | None = None,
        app: str | None = None,
        user: str | None = None,
        app_id: str | None = None,
        delta: Delta | None = None,
    ) -> None:
        check_string(agent_name, "agent_name")
        check_string(purpose, "purpose")
        if not agent_name.strip():
            raise errors.InvalidInput("the name of the agent is blank", hint="give a name, or leave it out")
        if not purpose.strip():
            raise errors.InvalidInput("the purpose is blank", hint="name a purpose, or leave it out")
        self.agent_name = agent_name
        self.purpose = purpose
        self.metadata = {} if metadata is None else check_metadata(metadata)
        self.agent_id = None if agent_id is None else check_agent_id(agent_id)
        self.parent_id = None if parent_id is None else check_agent_id(parent_id)
        self.is_parent_elsewhere = is_parent_elsewhere  # in another root: the record names the parent
        self.continues = None if continues is None else check_agent_id(continues)
        self.max_depth = _checked_number(max_depth, "max_depth", least=0)
        self.max_tokens = _checked_number(max_tokens, "max_tokens", least=1)
        self.allowed_tools = allowed_tools
        self.system_prompt = _checked_text(system_prompt, "system_prompt")
        self.app: str | None = None
        self.user: str | None = None
        if app is not None or user is not None:
            from .shared_keys import checked_owner  # few sessions belong to an app

            self.app, self.user = checked_owner(app, user)
        self.app_id = app_id  # the app's ID of the session, if it is not ``agent_id``
        self.delta = delta  # the first change of the shared state

    @property
    def parent_here(self) -> str | None:
        """The session above, if it is in the same root: only there it is looked up."""
        return None if self.is_parent_elsewhere else self.parent_id

    def record(self, now: datetime, random_bytes: RandomBytes) -> Record:
        """Returns the record of the session; a generated ID is made from ``now`` and ``random_bytes``."""
        agent_id = self.agent_id or new_agent_id(now, random_bytes)
        record = new_record(agent_id, self.agent_name, self.purpose, self.metadata, now)
        if self.is_parent_elsewhere and self.parent_id not in (None, agent_id):
            record["parent_id"] = self.parent_id
        if self.max_depth is not None:
            record["max_depth"] = self.max_depth
        if self.max_tokens is not None:
            record["max_tokens"] = self.max_tokens
        if self.allowed_tools is not None:
            record["allowed_tools"] = [*self.allowed_tools]
        if self.continues is not None:
            record["continues"] = self.continues
        if self.app is not None and self.user is not None:
            record |= {"app": self.app, "user": self.user}
            if self.app_id is not None:
                record["app_session"] = {"id": self.app_id}
        return record

    def after(self, earlier: Record, system_prompt: str | None) -> NewSession:
        """Returns this request for a session that continues ``earlier``; values of ``earlier`` replace defaults."""
        return NewSession(
            earlier["agent_name"] if self.agent_name == NO_NAME else self.agent_name,
            earlier["purpose"] if self.purpose == NO_PURPOSE else self.purpose,
            self.metadata,
            self.agent_id,
            parent_id=self.parent_id,
            is_parent_elsewhere=self.is_parent_elsewhere,
            max_depth=self.max_depth,
            max_tokens=self.max_tokens,
            allowed_tools=earlier.get("allowed_tools") if self.allowed_tools is None else self.allowed_tools,
            system_prompt=system_prompt if self.system_prompt is None else self.system_prompt,
            continues=earlier["agent_id"],
            app=earlier.get("app") if self.app is None else self.app,
            user=earlier.get("user") if self.user is None else self.user,
            delta=self.delta,
        )


class Start:
    """The session on which a command works: the existing session ``agent_id``, or a new session."""

    __slots__ = ("_program", "_wanted", "agent_id", "continues", "new_id")

    def __init__(
        self,
        agent_id: str | None = None,
        *,
        continues: str | None = None,
        new_id: str | None = None,
        program: str = NO_NAME,
        **wanted: Unpack[Wanted],
    ) -> None:
        self.agent_id = None if agent_id is None else check_agent_id(agent_id)
        self.continues = None if continues is None else check_agent_id(continues)  # the ended session
        self.new_id = new_id
        self._program = program  # the default name of the agent
        self._wanted = {name: value for name, value in wanted.items() if value is not None}
        self.new_session(None)  # refuses invalid values before anything is written

    @property
    def is_new_work(self) -> bool:
        """Whether there is no earlier work."""
        return self.agent_id is None and self.continues is None

    def new_session(self, earlier: Record | None) -> NewSession:
        """Returns the request for a new session, which continues ``earlier`` if that is not None."""
        name, purpose = (earlier["agent_name"], earlier["purpose"]) if earlier else (self._program, NO_PURPOSE)
        tools = earlier.get("allowed_tools") if earlier else None
        wanted = {"agent_name": name, "purpose": purpose, "allowed_tools": tools, **self._wanted}
        return NewSession(agent_id=self.new_id, continues=self.continues, **wanted)  # type: ignore[arg-type]  # the keys of ``Wanted``


def checked_update(
    phase: str | None = None,
    metadata: object = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    max_tokens: int | None = None,
    question: str | None = None,
) -> Asked:
    """Checks the values of one update, and returns them as a request; None leaves a value as it is."""
    asked: Asked = {}
    if phase is not None:
        asked["phase"] = check_phase(phase)
    if question is not None:
        asked["question"] = _checked_question(question, phase)
    if metadata is not None:
        asked["metadata"] = check_metadata(metadata)
    if error is not None:
        check_string(error, "error")
        asked["error"] = error
    if resume_ready is not None:
        check_flag(resume_ready, "resume_ready")
        asked["resume_ready"] = resume_ready
    if max_tokens is not None:
        integer_from(1)(max_tokens, "max_tokens")
        asked["max_tokens"] = max_tokens
    return asked


def outcome_of(asked: Asked) -> str | None:
    """Returns the final phase that an update asks for; None if it asks for none."""
    phase = asked.get("phase")
    return phase if phase is not None and is_final(phase) else None


def reserved_for(asked: Asked) -> int:
    """Returns how many bytes of the record an update must leave free."""
    # The user's data must leave 192 KiB for runs and ends. An end need not leave room. Any other update leaves 2 KiB.
    if "metadata" in asked or len(asked.get("error", "")) > MAX_MESSAGE_LENGTH:
        return ROOM_FOR_ENDS
    return RESERVED_BYTES if outcome_of(asked) is None else 0


def checked_answer(message: str | None, if_revision: int | None) -> str:
    """Checks and returns the message of an answer; empty if there is none."""
    check_if_revision(if_revision)
    return _checked_text(message, "message") or ""


def check_if_revision(if_revision: int | None) -> None:
    """Refuses a value that cannot be a revision; None means any revision."""
    _checked_number(if_revision, "if_revision", least=0)


def check_metadata(metadata: object) -> dict[str, Json]:
    """Returns a copy of ``metadata``, which must be a JSON object."""
    copy = strict.normalize_value(metadata, "metadata")
    if not isinstance(copy, dict):
        raise errors.InvalidInput(f"must be an object, not {strict.json_type_of(copy)}", "metadata")
    return copy


def with_update(record: Record, asked: Asked, now: datetime) -> Record:
    """Returns the record after an update; the same record if the session has already ended as asked."""
    outcome = outcome_of(asked)
    if is_final(record["phase"]):
        if asked == {"phase": record["phase"]}:
            return record
        updates.check_open(record)
    if "phase" in asked and outcome is None:
        record = with_stated_phase(record, asked["phase"], now)
    if "question" in asked:
        record = updates.with_question(record, asked["question"])
    if "metadata" in asked:
        record = updates.with_metadata(record, asked["metadata"])
    if "error" in asked:
        record = updates.with_error(record, asked["error"], now)
    if "max_tokens" in asked:
        record = {**record, "max_tokens": asked["max_tokens"]}
    record = updates.with_activity(record, now)
    if outcome is not None:
        record = with_stated_phase(record, outcome, now)
    return updates.with_resume_ready(record, asked["resume_ready"]) if "resume_ready" in asked else record


def rests_with_question(record: Record, now: datetime, dead_runs: frozenset[int]) -> bool:
    """Whether the phase is ``approval``, answered or not, and no agent at work decides the phase."""
    if not waits_for_approval(record["phase"]):
        return False
    # An agent that waits for its own work, or that a message woke, does not decide.
    waiting = [run["run"] for run in record.get("runs", ()) if waits_with_question(run)]
    return holds_question(record) or not has_agent(record, now, dead_runs.union(waiting))


def check_approved(
    record: Record, phase: str | None, now: datetime, dead_runs: frozenset[int], shell: str | None
) -> None:
    """Refuses an update that moves a session from ``approval`` to ``phase`` before a person has answered."""
    if phase is None or waits_for_approval(phase) or not rests_with_question(record, now, dead_runs):
        return
    # A person is allowed to end the session without an answer. In an agent's shell (``shell`` names its host), an end
    # needs an answer, and any other move is refused.
    answered = answer_of(record)
    has_person, enough = (answered is not None, shell is None), any if is_final(phase) else all
    if not enough(has_person):
        raise errors.NotApproved(record["agent_id"], answered and answered[0])


def with_question_passed(
    record: Record, phase: str | None, now: datetime, dead_runs: frozenset[int], shell: str | None
) -> Record:
    """Notes that an update to ``phase`` left the session's question without an answer."""
    if phase is None or is_final(phase) or waits_for_approval(phase) or not is_asking(record):
        return record
    if not rests_with_question(record, now, dead_runs):
        return record
    # The next agent is told that nobody answered.
    return updates.with_given_answer(record, "approval", now, UPDATE, shell=shell, is_told=False)


def with_answer(
    record: Record,
    key: AnswerKey,
    message: str,
    now: datetime,
    dead_runs: frozenset[int],
    *,
    by: str,
    shell: str | None,
) -> Record:
    """Adds an answer, which counts as activity and replaces an earlier answer."""
    updates.check_open(record)
    # An agent at work was told the earlier answer when it was resumed. A new answer would not reach it.
    for run in record.get("runs", ()):
        if run["run"] not in dead_runs and is_live(run) and not waits_with_question(run):
            raise errors.NothingToAnswer(record["agent_id"], "its agent is at work")
        if run["run"] not in dead_runs and is_claimed(run, now):
            raise errors.NothingToAnswer(record["agent_id"], "somebody is about to resume it")
    if not waits_for_approval(record["phase"]):
        raise errors.NothingToAnswer(record["agent_id"], f"its phase is {record['phase']}")
    return updates.with_activity(updates.with_answer(record, key, message, now, by, shell), now)


def _checked_text(value: str | None, where: str) -> str | None:
    if value is not None:
        check_string(value, where)
    return value


def _checked_question(question: str, phase: str | None) -> str:
    check_string(question, "question")
    if not waits_for_approval(phase):
        raise errors.InvalidInput("a question must come with the phase approval", hint="add --phase approval")
    if not question.strip():
        raise errors.InvalidInput("the question is blank", hint="say what you ask, or leave the question out")
    if len(question) > MAX_MESSAGE_LENGTH:
        found = f"the question has {len(question):,} characters; the limit is {MAX_MESSAGE_LENGTH:,}"
        hint = "shorten the question; to store more text, type gaia-sessions transcript ID --append assistant TEXT"
        raise errors.InvalidInput(found, hint=hint)
    return question


def _checked_number(value: int | None, where: str, *, least: int) -> int | None:
    if value is not None:
        integer_from(least)(value, where)
    return value
