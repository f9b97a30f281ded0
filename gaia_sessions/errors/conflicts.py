"""Requests that a valid record, or an existing installation, does not allow.

Loaded when one of them is first named.
"""

from __future__ import annotations

from .main_branches import SessionsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Conflict(SessionsError):
    """The record is valid and does not allow the request; nothing was written."""

    code = "conflict"
    exit_code = 4


class SessionExists(Conflict):
    code = "exists"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        super().__init__(f"session {agent_id!r} already exists", "leave out the ID to have one generated")


class SessionFinal(Conflict):
    code = "final"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} is {phase} and can no longer be changed", "create a new session for further work"
        )


class IllegalMove(Conflict):
    code = "illegal_move"

    def __init__(self, from_phase: str, to_phase: str, allowed: Iterable[str]) -> None:
        self.from_phase = from_phase
        self.to_phase = to_phase
        self.allowed = tuple(allowed)
        ways = ", ".join(self.allowed) or "no other phase: it is final"
        super().__init__(
            f"a session cannot go from {from_phase} to {to_phase}", f"from {from_phase} it can go to {ways}"
        )


class ResumeNotAllowed(Conflict):
    code = "resume_not_allowed"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} cannot be made ready to resume while {phase}",
            "move it to investigating, planning or approval first",
        )


class NotApproved(Conflict):
    """With ``approvals = "explicit"``: the work waits for an approval, and nothing but ``approve`` gives it.

    Or it was ``answered``, ``approved`` or ``denied``, and an agent's shell moves it on.
    """

    code = "not_approved"

    def __init__(self, agent_id: str, answered: str | None = None) -> None:
        self.agent_id = agent_id
        self.answered = answered
        if answered is not None:
            super().__init__(
                f"session {agent_id!r} was {answered}, and an agent's shell does not move it on",
                "its resume line goes on with it, and tells its agent what was answered",
            )
            return
        super().__init__(
            f"session {agent_id!r} waits for an approval, which only a person gives",
            f"a person types this in a terminal, then the same again: gaia-sessions approve {agent_id}",
        )


class AnswerOfAgent(Conflict):
    """With ``approvals = "explicit"``: the answer was given in a shell that an agent of ``client`` runs."""

    code = "answer_of_agent"

    def __init__(self, agent_id: str, client: str, command: str) -> None:
        self.agent_id = agent_id
        self.client = client
        self.command = command
        super().__init__(
            f"only a person answers for session {agent_id!r}, and this is a shell of {client}'s agent",
            f"a person types this in a terminal outside of {client}: gaia-sessions {command} {agent_id}",
        )


class NothingToAnswer(Conflict):
    """The session does not wait for an approval; ``problem`` says what it does."""

    code = "nothing_to_answer"

    def __init__(self, agent_id: str, problem: str) -> None:
        self.agent_id = agent_id
        self.problem = problem
        super().__init__(
            f"session {agent_id!r} is not waiting for an approval: {problem}",
            "`gaia-sessions pending` shows what waits, and how it is answered",
        )


class RunNotAllowed(Conflict):
    """The work of the session may not go on now; ``problem`` says how it stands."""

    code = "run_not_allowed"

    def __init__(self, agent_id: str, problem: str, hint: str) -> None:
        self.agent_id = agent_id
        self.problem = problem
        super().__init__(f"session {agent_id!r} cannot go on: {problem}", hint)


class AgentAtWork(RunNotAllowed):
    """The work of the session may not go on now, since somebody is at work on it, or is about to be."""

    code = "agent_at_work"


class RunGone(Conflict):
    """The end of a run cannot be written: its session has no run with this ``number`` any more, or another one."""

    code = "run_gone"

    def __init__(self, agent_id: str, number: int) -> None:
        self.agent_id = agent_id
        self.number = number
        problem = "somebody took it to be gone, or the session was removed and created again, or restored from a copy"
        super().__init__(
            f"session {agent_id!r} does not have this run {number} any more: {problem}",
            f"`gaia-sessions show {agent_id}` shows what it has",
        )


class NotTheNextTurn(Conflict):
    """A turn with this ``number`` is not the one that comes next, which is ``following``."""

    code = "not_the_next_turn"

    def __init__(self, agent_id: str, number: int | None, following: int) -> None:
        self.agent_id = agent_id
        self.number = number
        self.following = following
        is_there = number is not None and 0 < number < following
        problem = "is complete, with other messages" if is_there else "is not the next one"
        super().__init__(
            f"turn {number} of session {agent_id!r} {problem}",
            f"the next is {following}: `gaia-sessions turn {agent_id} - --number {following}`",
        )


class NoSuchTodo(Conflict):
    """The session has no todo with this ``number``; it has ``count`` of them, numbered from 1."""

    code = "no_such_todo"

    def __init__(self, agent_id: str, number: int, count: int) -> None:
        self.agent_id = agent_id
        self.number = number
        self.count = count
        todos = f"its todos are numbered from 1 to {count}" if count else "it has no todos"
        super().__init__(
            f"session {agent_id!r} has no todo {number}: {todos}",
            f"`gaia-sessions todo list {agent_id}` shows its todos"
            if count
            else f"`gaia-sessions todo add {agent_id} TEXT` adds one",
        )


class RevisionChanged(Conflict):
    code = "revision_changed"

    def __init__(self, agent_id: str, asked: int, actual: int) -> None:
        self.agent_id = agent_id
        self.asked = asked
        self.actual = actual
        super().__init__(
            f"session {agent_id!r} is at revision {actual}, not {asked}",
            "read the session again and retry with its current revision",
        )


class StateChanged(Conflict):
    """Somebody has changed ``what`` since the program that writes has read it."""

    code = "state_changed"

    def __init__(self, agent_id: str, what: str) -> None:
        self.agent_id = agent_id
        self.what = what
        super().__init__(f"{agent_id}: {what} since it was read", "read the session again, and repeat the change")


class NewerSchema(Conflict):
    code = "newer_schema"

    def __init__(self, agent_id: str, schema: int, known: int) -> None:
        self.agent_id = agent_id
        self.schema = schema
        self.known = known
        super().__init__(
            f"session {agent_id!r} has schema {schema}; this version writes {known} and can only show newer ones",
            "update gaia-sessions",
        )


class TooDeep(Conflict):
    """A session below ``parent_id``, or an agent that is called by one, would be deeper than any may be there."""

    code = "too_deep"

    def __init__(self, parent_id: str | None, depth: int, max_depth: int) -> None:
        self.parent_id = parent_id
        self.depth = depth
        self.max_depth = max_depth
        if parent_id is None:
            super().__init__(
                f"the agent would work at depth {depth}; the limit is {max_depth}", "call it from further up"
            )
            return
        super().__init__(
            f"a session below {parent_id!r} would have depth {depth}; the limit is {max_depth}",
            "create it below a session further up: `gaia-sessions tree` shows all levels",
        )


class TooManyChildren(Conflict):
    """As many children of ``parent_id`` are at work, those of ``at_work``, as may be at once."""

    code = "too_many_children"

    def __init__(self, parent_id: str, at_work: Iterable[str], limit: int) -> None:
        self.parent_id = parent_id
        self.at_work = tuple(at_work)
        self.limit = limit
        super().__init__(
            f"session {parent_id!r} has {len(self.at_work)} children at work; the limit is {limit}",
            f"wait until one of them has ended, or cancel one: {', '.join(self.at_work)}",
        )


class NotRemovable(Conflict):
    """Sessions must stay: ``reasons`` has the code of why for each of them, ``wanted`` what was to be removed.

    open_below: what is open below those that must stay for the reason ``above_open``.
    """

    code = "not_removable"

    def __init__(self, reasons: Mapping[str, str], wanted: Iterable[str], open_below: Iterable[str]) -> None:
        self.reasons = {**reasons}
        self.wanted = tuple(wanted)
        self.open_below = tuple(open_below)
        kept = {reason: [agent_id for agent_id in reasons if reasons[agent_id] == reason] for reason in _WHY_KEPT}
        said = (_says(agent_ids, *_WHY_KEPT[reason]) for reason, agent_ids in kept.items() if agent_ids)
        hint = f"add --force to remove {'it' if len(self.wanted) == 1 else 'them'} all the same"
        if len(self.open_below) > _MOST_TYPED:
            hint = f"to see what is below it, type gaia-sessions tree {kept['above_open'][0]}"
        elif kept["above_open"]:
            hint = f"to remove them all, type gaia-sessions rm --force {' '.join([*self.wanted, *self.open_below])}"
        super().__init__("; ".join(said), f"nothing was removed; {hint}")


_MOST_TYPED = 5
_WHY_KEPT = {
    "open": ("is open", "are open"),
    "running": ("has ended, but an agent may still be at work on it", "have ended, but agents may be at work on them"),
    "above_open": ("has an open one below it", "have open ones below them"),
    "continued": ("is continued by an open one", "are continued by open ones"),
}
"""What is said of a session for each reason, and of several."""


def _says(agent_ids: list[str], of_one: str, of_several: str) -> str:
    """``session 'a' is open``, ``2 sessions are open: 'a', 'b'``."""
    if len(agent_ids) == 1:
        return f"session {agent_ids[0]!r} {of_one}"
    return f"{len(agent_ids)} sessions {of_several}: {', '.join(map(repr, agent_ids))}"


class Cancelled(SessionsError):
    """The session, or without an id the work, is cancelled; ``by`` is the session above whose cancellation that is.

    ``at`` is a time as records have it.
    """

    code = "cancelled"
    exit_code = 10

    def __init__(
        self, agent_id: str | None, at: str | None = None, reason: str | None = None, by: str | None = None
    ) -> None:
        self.agent_id = agent_id
        self.at = at
        self.reason = reason
        self.by = by
        what = "the work is" if agent_id is None else f"session {agent_id!r} is"
        message = f"{what} cancelled" + (f" since {at}" if at else "") + (f", with {by!r} above it" if by else "")
        super().__init__(f"{message}: {reason}" if reason else message, "stop; what was stored so far is kept")


class HooksElsewhere(Conflict):
    """Another settings file of the project has the hooks; installed in both, they would receive each event twice."""

    code = "hooks_elsewhere"

    def __init__(self, host: str, path: str, scope: str) -> None:
        self.host = host
        self.path = path
        self.scope = scope
        super().__init__(
            f"{path} already has the hooks for {host}",
            f"update them there with --{scope}, or remove them first: gaia-sessions hooks uninstall --{scope}",
        )
