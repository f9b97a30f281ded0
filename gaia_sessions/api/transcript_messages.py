"""Adds a message to a transcript, and reads the last messages, or the messages since a time."""

from __future__ import annotations

import sys
from itertools import chain, islice

from gaia_sessions.errors import BadArgument, SessionsError, StoreFailure
from gaia_sessions.session.budget import charged_message, with_charge
from gaia_sessions.session.checks import is_integer
from gaia_sessions.session.clock import FUTURE_TOLERANCE, parse_time
from gaia_sessions.session.record import check_readable
from gaia_sessions.session.retention import RESERVED_BYTES
from gaia_sessions.session.transcript import new_message, with_message
from gaia_sessions.store import has_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Messages

    from .at import Reading, Writing


def add_message(  # noqa: PLR0913  # what can be said of a message
    at: Writing,
    agent_id: str,
    role: str,
    content: str,
    *,
    tool_name: str | None = None,
    tool_call_id: str | None = None,
    tokens: int | None = None,
    is_charged: bool = False,
) -> Message:
    """Adds one message to [the transcript](record.md#transcripts).

    Args:
        role: ``system``, ``user``, ``assistant`` or ``tool``.
        tokens: the number of tokens in ``content``.
        is_charged: the same write counts ``tokens`` against the budget; without ``tokens``, every 4 bytes count as one
            token.

    Returns:
        The message as it is stored.

    Raises:
        BadArgument: ``role`` is none of the four.
        InvalidInput: another value is not acceptable.
        TooLarge: the message has more than 1 MiB.
    """
    message = new_message(role, content, at.now, tool_name=tool_name, tool_call_id=tool_call_id, tokens=tokens)
    with at.store.open(agent_id) as session:
        if is_charged:
            message = charged_message(message)
            record = with_charge(session.record, message["tokens"], at.now)
        else:
            record = with_message(session.record, at.now)
        session.commit(record, reserved=RESERVED_BYTES, messages=[message])
        return session.added[0]


def messages(
    at: Reading, agent_id: str, *, last: int | None = None, since: datetime | str | None = None
) -> Iterator[Message | SessionsError]:
    """Returns an iterator of the messages of the transcript, the oldest first.

    For a message that cannot be read, you get an error object.

    Args:
        last: returns at most so many of the newest messages.
        since: returns the messages made at this time or later.

    Raises:
        BadArgument: ``last`` or ``since`` is not acceptable.

    Example:
        agent_id = sessions.create("reviewer", system_prompt="You review.")
        sessions.add_message(agent_id, "user", "Review the plan.")
        print([one["content"] for one in sessions.messages(agent_id, last=1)])
    """
    if last is None and since is None:
        return at.store.messages(agent_id)
    made_since = None
    if since is not None:
        from .times import moment_of

        made_since = moment_of(since, "since", at.now)
    newest = _Newest(last, made_since)
    return newest.taken_of(at.store.messages(agent_id, is_wanted=newest.is_wanted))


def messages_of_agents(
    at: Reading, agent_id: str, *, last: int | None = None, since: datetime | None = None
) -> tuple[Sequence[str], Iterator[NewMessage | SessionsError]]:
    """Returns the paths and the messages of the transcripts of hosts, for a session without own messages."""
    sessions = at.preview()
    record = sessions.read(agent_id)
    check_readable(record)
    if has_messages(sessions, record):
        return [], iter(())
    paths = dict.fromkeys(run["transcript_path"] for run in record.get("runs", []) if "transcript_path" in run)
    most = checked_number(last)
    if most is None:
        return [*paths], _of_all_runs(record, since)
    number = sum(1 for _ in _of_all_runs(record, since))  # more may be written meanwhile
    return [*paths], islice(_of_all_runs(record, since), max(0, number - most), number)


def _of_all_runs(record: Record, since: datetime | None) -> Iterator[NewMessage | SessionsError]:
    from gaia_sessions import hosts  # most sessions have messages of their own

    by_file = {run.get("transcript_path"): run for run in record.get("runs", [])}
    begun = [(first, rest) for rest in map(hosts.messages, by_file.values()) if (first := next(rest, None)) is not None]
    failures = [first for first, _ in begun if isinstance(first, StoreFailure)]
    if failures and len(failures) == len(begun):
        raise failures[0]
    for message in chain.from_iterable(chain([first], rest) for first, rest in begun):
        if since is None or isinstance(message, SessionsError) or parse_time(message["timestamp"]) >= since:
            yield message


class _Newest:
    """Selects messages from the newest back: at most the ``last`` ones, made at ``since`` or later."""

    def __init__(self, last: int | None, since: datetime | None) -> None:
        self._last = checked_number(last)
        self._since = since
        self._number = 0
        self._unreadable = 0

    def is_wanted(self, message: Message | SessionsError) -> bool:
        """Returns whether to look at the message before this one, too."""
        if self._last is not None and self._number >= self._last:
            return False
        if self._since is None:
            self._number += 1
        elif isinstance(message, SessionsError):
            self._unreadable += 1
        else:
            made = parse_time(message["timestamp"])
            # Stored order and times differ by at most the tolerance, so only such an old message ends the search.
            if made < self._since - FUTURE_TOLERANCE:
                return False
            if made >= self._since:
                self._number += 1 + self._unreadable
                self._unreadable = 0
        return True

    def taken_of(self, found: Messages) -> Messages:
        """Yields the selected messages of ``found``, which are the messages from the end of the search on."""
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
            return is_behind_one  # an unreadable message is taken if one before it is
        return parse_time(message["timestamp"]) >= self._since


def checked_number(last: int | None) -> int | None:
    """Returns ``last``, at most what ``islice`` can count; None means all."""
    if last is not None and (not is_integer(last) or last < 0):
        raise BadArgument("last", last, "a whole number from 0")
    return None if last is None else min(last, sys.maxsize)
