"""One send to the agent of a session: it begins, and is answered or ends without an answer.

A send ends with its process: leaving the block ends the run, and frees the lock.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TypedDict

from gaia_sessions.errors import (
    AgentAtWork,
    Cancelled,
    DurabilityUnknown,
    InvalidInput,
    LockTimeout,
    SessionsError,
    StoreFailure,
    well_formed,
)
from gaia_sessions.jsonio.strict import json_type_of
from gaia_sessions.session.context import TURNS, context_lines, context_messages, context_of
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.own_runs import CANCELLED, EXITED, SIGNALLED, RunEnd, answer_message, fitted
from gaia_sessions.session.report import task_id_of, turn_id_of
from gaia_sessions.session.requests import Start
from gaia_sessions.session.rounds import last_answer
from gaia_sessions.session.runs import is_own_run
from gaia_sessions.session.transcript import (
    SYSTEM,
    after,
    conversation,
    generation_of,
    is_system_prompt,
    message_of,
    readable,
    spoken,
)
from gaia_sessions.session.visible import visible_line
from gaia_sessions.system import utc_now

from . import at, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.client_conversation import Told
    from gaia_sessions.session.report import Report
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Entry

    from .at import Reading
    from .sessions import Sessions

    Sink = Callable[[Entry], object]
    """A function that gets each journal entry that a send adds."""

SECONDS_BETWEEN_TRIES = 0.1
"""The pause between two tries while another agent is at work."""

_SECONDS_TO_WRITE = 10
"""How long to try to write an answer."""


def messages_of(given: object, role: str, what: str) -> list[NewMessage]:
    """Returns ``given`` (a text of ``role``, or messages) as messages; the error calls ``given`` ``what``."""
    now = utc_now()
    if isinstance(given, str):
        return [message_of({"role": role, "content": well_formed(given.replace("\0", ""))}, 1, now)]
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise InvalidInput(f"{what} must be a text or a list of messages, not {json_type_of(given)}")
    return [message_of(message, place, now) for place, message in enumerate(given, 1)]


def error_text(error: BaseException) -> str:
    """Returns the last lines of a traceback of ``error``, as a record stores them."""
    from traceback import format_exception_only

    printed = "".join(format_exception_only(error)).replace("\0", " ")
    return visible_line(well_formed(printed), MAX_MESSAGE_LENGTH)


class Said:
    """What was said in a session, as its agent gets it; each part is read once."""

    def __init__(self, sessions: Sessions, agent_id: str) -> None:
        self._sessions = sessions
        self._agent_id = agent_id
        self._reading = threading.Lock()
        self._own: list[Message] = []
        self._generation = 0  # of the transcript
        self._earlier: Sequence[dict[str, str]] = ()
        self._earlier_of: list[Run] | None = None

    def before(self, record: Record, *, pruned: bool = False) -> list[dict[str, str]]:
        """Returns all that was said as of ``record``, or with ``pruned`` what ``Sessions.context`` returns."""
        if pruned:
            return context_messages(self._sessions.context(self._agent_id))
        hosts = [run for run in record.get("runs", []) if not is_own_run(run)]
        with self._reading:
            self._read_more(record)
            if self._earlier_of != hosts:
                self._earlier, self._earlier_of = at.read(self._sessions, _said_earlier, record), hosts
            return conversation(self._earlier, self._own)

    def system_prompt(self, record: Record) -> str | None:
        """Returns the system prompt; None if there is none."""
        with self._reading:
            self._read_more(record)
            return next((one["content"] for one in self._own[:1] if is_system_prompt(one)), None)

    def _read_more(self, record: Record) -> None:
        """Reads the messages that are new since the last read; after a reset, reads from the beginning."""
        if self._generation != generation_of(record):
            self._own, self._generation = [], generation_of(record)
        last = self._own[-1]["seq"] if self._own else 0
        with self._sessions.store as store:
            self._own += [*readable(store.messages(record["agent_id"], is_wanted=after(last)))]


def _said_earlier(at: Reading, record: Record) -> list[dict[str, str]]:
    """Returns what was said before the session's own messages: in continued sessions, and by agents of hosts."""
    from .briefing import LONGEST_BRIEFING
    from .earlier_turns import Turns

    found: list[dict[str, str]] = []
    hosts = Turns(at.store, record, has_own=False)
    if hosts.notices or not hosts.is_empty:
        told = context_of(hosts, turns=TURNS, room=LONGEST_BRIEFING, measure=len)
        found.append({"role": SYSTEM, "content": "\n".join(context_lines(told))})
    for earlier in hosts.records()[:-1]:
        own = readable(at.store.messages(earlier["agent_id"]))
        found += [spoken(message) for message in own if not is_system_prompt(message)]
    return found


class SentTurn(TypedDict):
    """One answered turn of a conversation.

    Keys:
        task_id: an ID that no other turn of any session has.
        text: the last answer; empty if there was none.
        messages: what was sent and answered, as it is stored.
        usage, report: of the session after the turn.
    """

    agent_id: str
    task_id: str
    turn: int
    turn_id: str
    text: str
    messages: list[Message]
    usage: TokenUsage
    report: Report


class Send:
    """A send to the agent of a session; ``is_cut`` says whether a message was too long."""

    record: Record
    run: Run

    def __init__(
        self,
        sessions: Sessions,
        agent_id: str,
        said: Sequence[NewMessage],
        *,
        fields: Run | None = None,
        tell: Sink = lambda _: None,
    ) -> None:
        self._sessions = sessions
        self._agent_id = agent_id
        self.said: Sequence[NewMessage] = [fitted(message) for message in said]
        self._fields: Run = fields or {}
        self._tell = tell
        with sessions.store as store:
            self.lease = store.lease(agent_id)
        self._holder: int | None = None
        self.is_cut = self.said != said
        self.is_given_up = False

    def began(self, until: float) -> bool:
        """Begins the send; False if somebody else is at work and the monotonic time ``until`` is not reached."""
        from . import own_runs  # only a send needs this

        self._wrapper = self.lease.holder()
        fields: Run = {"wrapper": self._wrapper, **self._fields}
        self._holder = os.getpid()  # from here on the run may be written, even if we are interrupted
        try:
            begun = at.write(self._sessions, own_runs.begin, Start(self._agent_id), fields, self.lease)
        except DurabilityUnknown as error:  # the agent was not called
            raise StoreFailure("begin the send", error.path, error.reason) from error
        except SessionsError as error:
            self._release()
            if isinstance(error, AgentAtWork) and time.monotonic() < until:
                return False
            raise
        self.record, self.run = begun.record, begun.run
        self.said = [*answer_message(self.record, utc_now()), *self.said]
        for entry in begun.noted:
            self._tell(entry)
        return True

    def give_up(self) -> None:
        """Leaves the send without an end, because the server does not answer: its lease lapses."""
        self.is_given_up = True
        self._release()

    @property
    def is_over(self) -> bool:
        """Whether the send has ended, or never began."""
        return self._holder is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, raised: BaseException | None, __: TracebackType | None) -> None:
        if self._holder != os.getpid():  # not begun, ended, or in a forked child
            return
        try:
            if hasattr(self, "run"):
                self.end(_end_by(raised))
            elif self._was_begun():
                self.end(RunEnd(SIGNALLED, detail="nobody was asked"))
        except (SessionsError, OSError) as failure:
            if raised is None:
                raise
            raised.add_note(f"the end of the send to session {self._agent_id!r} is not recorded yet: {failure}")
        finally:
            self._release()

    def answer(
        self,
        answered: object,
        given: Sequence[dict[str, str]] = (),
        told: Told | None = None,
        *,
        seconds: float = _SECONDS_TO_WRITE,
    ) -> SentTurn:
        """Completes the turn with what was ``answered``, without a repetition of ``given``; tries for ``seconds``."""
        from . import reporting

        self._check_holder()
        whole = messages_of(answered, "assistant", "the answer of the agent")
        new = whole[len(given) :] if given and [*map(spoken, whole[: len(given)])] == [*given] else whole
        messages = [fitted(message) for message in new]
        self.is_cut = self.is_cut or messages != new
        ended = RunEnd(EXITED, message=last_answer(messages), told=told, said=self.said, answered=messages)
        record, stored = self._written(ended, seconds)
        turn = record["turns"]
        return {
            "agent_id": self._agent_id,
            "task_id": task_id_of(record, self.run["run"]),
            "turn": turn,
            "turn_id": turn_id_of(record, {"turn": turn}),
            "text": ended.message,
            "messages": [*stored],
            **at.read(self._sessions, reporting.report_on_turn, record, stored),
        }

    def end(self, ended: RunEnd) -> None:
        """Ends the send without an answer, and stores no message of the turn."""
        self._written(ended, 0)

    def _written(self, ended: RunEnd, seconds: float) -> tuple[Record, Sequence[Message]]:
        """Writes the end, with tries for ``seconds``; returns the record and the stored turn."""
        from . import own_runs

        last_try = time.monotonic() + seconds
        while True:
            try:
                record, stored, noted = at.write(self._sessions, own_runs.end, self._agent_id, self.run, ended)
                break
            except DurabilityUnknown:  # it is written
                self._release()
                raise
            except (LockTimeout, StoreFailure):
                if time.monotonic() >= last_try:
                    raise
                time.sleep(SECONDS_BETWEEN_TRIES)
        self._release()
        for entry in noted:
            self._tell(entry)
        return record, stored

    def _was_begun(self) -> bool:
        """Returns whether the record has the run, for a send that was interrupted at its beginning."""
        if not self.lease.is_held:
            return False
        # While this lease is held, no other send can have an open run.
        runs = records.read(self._sessions, self._agent_id).get("runs", [])
        mine = [run for run in runs if run.get("wrapper") == self._wrapper and "ended_at" not in run]
        if mine:
            self.run = mine[-1]
        return bool(mine)

    def _check_holder(self) -> None:
        """Raises ``StoreFailure`` in a forked child: what it returns is not the agent's answer."""
        if self._holder != os.getpid():
            reason = (
                f"the send belongs to process {self._holder}, which forked this process"
                if self._holder
                else "the send has ended"
            )
            raise StoreFailure("end the send", self._agent_id, reason)

    def _release(self) -> None:
        if self._holder is not None:
            self._holder = None
            self.lease.__exit__()


def _end_by(raised: BaseException | None) -> RunEnd:
    if isinstance(raised, Cancelled):
        return RunEnd(CANCELLED)
    if isinstance(raised, Exception):
        return RunEnd(EXITED, detail=error_text(raised))
    return RunEnd(SIGNALLED, detail=f"stopped by {type(raised).__name__}" if raised else "nothing was answered")
