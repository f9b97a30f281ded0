"""What people and agents ask of a transcript: the last messages, those since a time, what a memory keeps of them.

Owns which messages are taken, and when those of a memory are replaced.
"""

from __future__ import annotations

import sys
from itertools import chain, islice, takewhile

from gaia_sessions import hosts
from gaia_sessions.errors import BadArgument, InvalidInput, NotTheNextTurn, SessionsError, StoreFailure
from gaia_sessions.session.checks import is_integer
from gaia_sessions.session.clock import FUTURE_TOLERANCE, parse_time
from gaia_sessions.session.compaction import compaction_of, summary_message, with_compaction
from gaia_sessions.session.report import turn_id_of
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.rounds import without_lone_results
from gaia_sessions.session.transcript import (
    after,
    is_same_turn,
    is_system_prompt,
    readable,
    replaced_through,
    system_prompt,
    turn_rule,
)

from .claiming import check_no_send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import TypedDict

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Messages, Reader, Store

    class TurnName(TypedDict):
        """A turn of the present transcript: its number, and an ID that no other turn of the session has."""

        turn: int
        turn_id: str

    class Turn(TurnName):
        """A turn that is complete. added: whether by this call; messages: those that were given, as they are stored."""

        agent_id: str
        added: bool
        messages: list[Message]


def add_turn(
    store: Store, now: datetime, agent_id: str, messages: Sequence[NewMessage], number: int | None = None
) -> Turn:
    """Adds ``messages`` as the rest of a turn, which is complete then, in one commit.

    With a ``number``, a turn that is complete with the same messages stays as it is. Raises ``NotTheNextTurn`` for any
    other that is not the next, ``AgentAtWork`` while a send is at work, ``InvalidInput`` without messages, and what
    ``Store.add_messages`` and its rule raise.
    """
    if not messages:
        raise InvalidInput("a turn has no messages", hint="give what was sent, and what was answered")
    try:
        rule = turn_rule(number, now)
        record, added = store.add_messages(
            agent_id, messages, lambda record: check_no_send(rule(record)), reserved=RESERVED_BYTES
        )
    except NotTheNextTurn:
        if number is None:
            raise
        record = store.read(agent_id)
        added = _messages_of_turn(store, agent_id, number)  # which nobody changes any more
        if not is_same_turn(added, messages):
            raise
        return {"agent_id": agent_id, **_named(record, number), "added": False, "messages": added[-len(messages) :]}
    return {"agent_id": agent_id, **_named(record, record["turns"]), "added": True, "messages": added}


def _named(record: Record, number: int) -> TurnName:
    return {"turn": number, "turn_id": turn_id_of(record, {"turn": number})}


def _messages_of_turn(sessions: Reader, agent_id: str, number: int) -> list[Message]:
    """The messages of a turn that can be read; the cost follows those that came after it."""
    found = sessions.messages(agent_id, is_wanted=lambda one: isinstance(one, SessionsError) or one["turn"] >= number)
    return [message for message in readable(found) if message["turn"] == number]


def compact(store: Store, now: datetime, agent_id: str) -> bool:
    """Puts a summary in place of the older messages of the memory; False if too few are there.

    Messages that are added meanwhile stay. Raises ``SessionNotFound``, ``CorruptSession``, ``SessionFinal``,
    ``TooLarge``.
    """
    seen = store.read(agent_id)
    readable_messages = readable(store.messages(agent_id, is_wanted=after(replaced_through(seen))))
    not_replaced = [message for message in readable_messages if not is_system_prompt(message)]
    found = compaction_of(not_replaced, seen.get("compaction"))
    if found is None:
        return False

    def rule(record: Record) -> Record:
        is_other = any(record.get(key) != seen.get(key) for key in ("compaction", "transcripts_archived"))
        return record if is_other else with_compaction(record, *found, now)

    changed = store.change(agent_id, rule, reserved=RESERVED_BYTES)
    return changed.get("compaction") == found[0]


def remembered(sessions: Reader, agent_id: str, last: int | None = None) -> list[Message]:
    """The messages of the memory, the oldest first, or the ``last`` ones; one that cannot be read is left out.

    The first are the system prompt and the summary, where there are some. Of the last ones a result is left out whose
    call is not among them. The cost follows what is taken.
    """
    most = _checked_number(last)
    record = sessions.read(agent_id)
    through = replaced_through(record)
    newest_first = takewhile(lambda message: message["seq"] > through, readable(sessions.messages_backwards(agent_id)))
    found = list(islice(newest_first, most))[::-1]
    prompt = (
        system_prompt(sessions.messages(agent_id)) if through else None
    )  # which is among the others without a summary
    beginning = [*filter(None, [prompt]), *summary_message(record)]
    if last is None:
        return beginning + found
    room = max(0, last - len(found))
    return [*beginning[max(0, len(beginning) - room) :], *without_lone_results(found)]


def messages(
    sessions: Reader, agent_id: str, last: int | None = None, since: datetime | None = None
) -> Iterator[Message | SessionsError]:
    """The messages in order: all, at most the ``last`` ones, only those made at ``since`` or later.

    The cost follows what is taken, of which few at a time are in memory. Raises ``BadArgument`` for a ``last`` that is
    no number of messages.
    """
    if last is None and since is None:
        return sessions.messages(agent_id)
    newest = _Newest(last, since)
    return newest.taken_of(sessions.messages(agent_id, is_wanted=newest.is_wanted))


def messages_of_agents(
    record: Record, last: int | None = None, since: datetime | None = None
) -> Iterator[NewMessage | SessionsError]:
    """What ``messages`` does, of the transcripts that hosts keep of the agents of all runs, which may have many MB.

    They have no number and no turn. Raises ``StoreFailure`` if there are some, and none can be opened.
    """
    most = _checked_number(last)
    if most is None:
        return _of_all_runs(record, since)
    number = sum(1 for _ in _of_all_runs(record, since))
    return islice(_of_all_runs(record, since), max(0, number - most), number)  # more may have been written meanwhile


def _of_all_runs(record: Record, since: datetime | None) -> Iterator[NewMessage | SessionsError]:
    by_file = {run.get("transcript_path"): run for run in record.get("runs", [])}
    begun = [(first, rest) for rest in map(hosts.messages, by_file.values()) if (first := next(rest, None)) is not None]
    failures = [first for first, _ in begun if isinstance(first, StoreFailure)]
    if failures and len(failures) == len(begun):
        raise failures[0]
    for message in chain.from_iterable(chain([first], rest) for first, rest in begun):
        if since is None or isinstance(message, SessionsError) or parse_time(message["timestamp"]) >= since:
            yield message


class _Newest:
    """Which messages are taken, found out from the newest one on: at most the ``last`` ones, those made at ``since``.

    Messages stand in the order in which they were stored. Times may differ from it by as much as clocks do, or as long
    as a writer waited for another; so the search ends at the first message that is older by more than that. One that
    cannot be read is taken if one before it is.
    """

    def __init__(self, last: int | None, since: datetime | None) -> None:
        self._last = _checked_number(last)
        self._since = since
        self._number = 0
        self._unreadable = 0

    def is_wanted(self, message: Message | SessionsError) -> bool:
        """Whether the search goes on to the message before this one."""
        if self._last is not None and self._number >= self._last:
            return False
        if self._since is None:
            self._number += 1
        elif isinstance(message, SessionsError):
            self._unreadable += 1
        else:
            made = parse_time(message["timestamp"])
            if made < self._since - FUTURE_TOLERANCE:
                return False
            if made >= self._since:
                self._number += 1 + self._unreadable
                self._unreadable = 0
        return True

    def taken_of(self, found: Messages) -> Messages:
        """Those that are taken of ``found``: the wanted ones, of which the first comes when the search has ended."""
        place = 0
        for message in found:
            if self._is_taken(message, is_behind_one=place > 0):
                place += 1
                if self._last is None or place > self._number - self._last:
                    yield message

    def _is_taken(self, message: Message | SessionsError, *, is_behind_one: bool) -> bool:
        if self._since is None:
            return True
        if isinstance(message, SessionsError):
            return is_behind_one
        return parse_time(message["timestamp"]) >= self._since


def _checked_number(last: int | None) -> int | None:
    """As many messages as ``islice`` can count to; None for all."""
    if last is not None and (not is_integer(last) or last < 0):
        raise BadArgument("last", last, "a whole number from 0")
    return None if last is None else min(last, sys.maxsize)
