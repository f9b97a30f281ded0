"""Shows one session, with the decision about resuming, its agent, budget, parent and children."""

from __future__ import annotations

from contextlib import suppress
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from gaia_sessions.errors import NewerSchema, StoreFailure
from gaia_sessions.session.budget import usage_of
from gaia_sessions.session.policy import resume_summary
from gaia_sessions.session.record import check_readable, parent_id_of
from gaia_sessions.session.rounds import is_answer
from gaia_sessions.session.runs import is_conversation
from gaia_sessions.session.state import WAITING
from gaia_sessions.session.tools import usable_tools
from gaia_sessions.session.transcript import readable
from gaia_sessions.store.above import Above

from .families import children_of, line_of
from .questions import what_waits
from .standing import standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NotRequired

    from gaia_sessions.session.budget import TokenUsage
    from gaia_sessions.session.cancellation import Cancellation
    from gaia_sessions.session.liveness import Liveness
    from gaia_sessions.session.policy import ResumeSummary
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Reader

    from .at import Reading
    from .listing import Line
    from .questions import Question
    from .standing import Standing

    class Shown(Record):
        """A record with more keys, mostly as in ``Summary``.

        Keys:
            resume: the decision about resuming.
            cancellation: present if the session is cancelled.
            children: the IDs of the sessions right below, if there are any.
        """

        state: NotRequired[str]
        state_since: NotRequired[str]
        resume: NotRequired[ResumeSummary]
        cancellation: NotRequired[Cancellation]
        liveness: NotRequired[Liveness]
        children: NotRequired[list[str]]
        root_id: NotRequired[str]
        trace_id: NotRequired[str]


_USER = "user"
_MOST_OF_TURN = 1000
"""How many messages of a turn are searched for what was sent."""


class LastTurn(NamedTuple):
    """The last sent message and its answer; a text is empty if there is none."""

    question: str
    answer: str


class View(NamedTuple):
    """What a person sees of a session; ``question`` is set only while the session waits for an answer."""

    record: Record
    standing: Standing
    usage: TokenUsage
    parent: Line | None
    children: list[Line]
    last_turn: LastTurn | None
    usable_tools: list[str] | None
    question: Question | None = None


def view(at: Reading, agent_id: str) -> View:
    """Returns what a person sees of a session."""
    sessions, now, config = at.preview(), at.now, at.config
    record = sessions.read(agent_id)
    check_readable(record)
    above, parent_id, family = Above(sessions), parent_id_of(record), [record]
    with suppress(StoreFailure):
        family += filter(None, sessions.ancestors(record).values())
        above.know(family)
    parent = None if parent_id is None else line_of(sessions, above, parent_id, now, config.limits, family)
    stands = standing(above.cancellation, record, now, config.limits)
    return View(
        record,
        stands,
        usage_of(record, now, config.limits_tokens),
        parent,
        children_of(sessions, above, agent_id, now, config.limits),
        _last_turn(sessions, record) if is_conversation(record) and record.get("turns") else None,
        usable_tools(family, config.tool_rules),
        what_waits(sessions, record) if stands.state.get("state") == WAITING and stands.alive is None else None,
    )


def _last_turn(sessions: Reader, record: Record) -> LastTurn:
    newest_first = readable(sessions.messages_backwards(record["agent_id"]))
    complete = dropwhile(lambda one: one["turn"] > record["turns"], newest_first)
    messages = [*islice(takewhile(lambda one: one["turn"] == record["turns"], complete), _MOST_OF_TURN)]
    answer = next((one["content"] for one in messages if is_answer(one)), "")
    return LastTurn(next((one["content"] for one in messages if one["role"] == _USER), ""), answer)


def show(at: Reading, agent_id: str) -> Shown:
    """Returns the record with all waiting events applied, and with the keys of [`Shown`](#shapes).

    For a record that a later version wrote, only the key ``children`` is added.
    """
    sessions, now, limits = at.preview(), at.now, at.config.limits
    record, above = sessions.read(agent_id), Above(sessions)
    found: Shown = {**record}  # type: ignore[typeddict-item]  # the other keys follow
    try:
        check_readable(record)
    except NewerSchema:
        pass
    else:
        stands = standing(above.cancellation, record, now, limits)
        found["resume"] = resume_summary(stands.decision)
        if "cancellation" in stands.decision:
            found["cancellation"] = stands.decision["cancellation"]
        if stands.alive:
            found["liveness"] = stands.alive
        found.update({**stands.state, **above.trace(record)})  # type: ignore[typeddict-item]  # ``Shown`` has these keys
    if below := children_of(sessions, above, agent_id, now, limits):
        found["children"] = [line["agent_id"] for line in below]
    return found
