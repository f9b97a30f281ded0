"""Every other error, in the order of the drawn tree, and two warnings: loaded when one of them is first named."""

from __future__ import annotations

from .main_branches import InvalidInput, SessionsError, StoreFailure, plural, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

EXPORT_ROOT_COMMAND = 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
"""What a user may type who cannot use the sessions here; a host started after it passes the value on to its hooks."""

_MOST_IDS = 5
_LONGEST_LIST = 500


class UsageError(SessionsError):
    """The request itself is wrong; nothing was read or written."""

    code = "usage"
    exit_code = 2


class UnknownWord(UsageError):
    """A word that is none of ``known``."""

    code = "unknown_word"
    kind = "word"
    other_options: Mapping[str, Sequence[str]] = {}
    """The words of other options that may have been meant, by option."""

    def __init__(self, word: object, known: Iterable[str]) -> None:
        self.word = word
        self.known = tuple(known)
        super().__init__(f"unknown {self.kind} {shorten(repr(word))}", f"the {self.kind}s are {', '.join(self.known)}")


class UnknownPhase(UnknownWord):
    code = "unknown_phase"
    kind = "phase"


class UnknownState(UnknownWord):
    code = "unknown_state"
    kind = "state"


class UnknownOutcome(UnknownWord):
    code = "unknown_outcome"
    kind = "outcome"


class UnknownHost(UnknownWord):
    code = "unknown_host"
    kind = "host"


class BadArgument(UsageError):
    """The value of an argument is outside the range that its command or function accepts."""

    code = "bad_argument"

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name = name
        self.value = value
        self.wanted = wanted
        super().__init__(f"{name} {shorten(repr(value))} is not valid", f"must be {wanted}")


class NoSuchFolder(UsageError):
    """There is no folder at ``path``."""

    code = "no_such_folder"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path!r} is not a folder",
            "name a project, a folder that has one folder per session, or the folder of one session",
        )


class AmbiguousId(UsageError):
    """The text typed as an ID is a part of several ids: ``candidates``."""

    code = "ambiguous_id"

    def __init__(self, typed: str, candidates: Iterable[str]) -> None:
        self.typed = typed
        self.candidates = tuple(candidates)
        listed = ", ".join(self.candidates[:_MOST_IDS])
        more = len(self.candidates) - _MOST_IDS
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"{typed!r} is the beginning or end of {len(self.candidates)} IDs: {listed}{rest}",
            "type more of the ID: `gaia-sessions list` shows the existing sessions",
        )


class BadSetting(UsageError):
    """An unknown configuration key or an invalid value; ``origin`` is the file or variable that has it.

    The message names the origin only once, even if ``problem`` does so too.
    """

    code = "bad_setting"

    def __init__(self, origin: str, problem: str, hint: str) -> None:
        self.origin = origin
        self.problem = problem
        text = shorten(problem, 500)
        super().__init__(text if origin in problem.split() else f"{origin}: {text}", hint)


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
        if len(self.open_below) > _MOST_IDS:
            hint = f"to see what is below it, type gaia-sessions tree {kept['above_open'][0]}"
        elif kept["above_open"]:
            hint = f"to remove them all, type gaia-sessions rm --force {' '.join([*self.wanted, *self.open_below])}"
        super().__init__("; ".join(said), f"nothing was removed; {hint}")


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


class NoToolsLeft(InvalidInput):
    """Of the tools ``requested`` none is allowed, for the ``reasons``. available: None if that is not limited."""

    code = "no_tools_left"

    def __init__(self, requested: Sequence[str], available: Sequence[str] | None, reasons: Sequence[str]) -> None:
        self.requested = (*requested,)
        self.available = None if available is None else (*available,)
        self.reasons = (*reasons,)
        there = "all" if available is None else ", ".join(available) or "none"
        super().__init__(
            f"no allowed tools are left: {shorten('; '.join(reasons), _LONGEST_LIST)}; "
            f"requested: {shorten(', '.join(requested), _LONGEST_LIST)}; "
            f"available: {shorten(there, _LONGEST_LIST)}",
            hint="request a tool that is available and not blocked",
        )


class SettingsUnreadable(InvalidInput):
    """A host's settings file is not in the expected form; it is left unchanged."""

    code = "settings_unreadable"

    def __init__(self, path: str, problem: str, place: str) -> None:
        self.path = path
        self.place = place
        super().__init__(problem, f"{path}: {place}" if place else path, "correct the file; it was not changed")


class TaskRefused(InvalidInput):
    """The guard does not let a task be delegated; ``keyword`` is the word in it by which it asks for analysis."""

    code = "task_refused"

    def __init__(self, keyword: str, problem: str) -> None:
        self.keyword = keyword
        super().__init__(
            problem,
            hint="word the task so that it asks for facts, or type GAIA_SESSIONS_GUARD_MODE=off before the command",
        )


class TooLarge(InvalidInput):
    code = "too_large"

    def __init__(
        self, what: str, size: int, limit: int, hint: str = "keep long texts in a file and store its name"
    ) -> None:
        self.what = what
        self.size = size
        self.limit = limit
        super().__init__(f"{what} is over the limit of {limit} bytes", hint=hint)


class LinkedElsewhere(StoreFailure):
    """A link leads the sessions of a project out of it, to ``target``; nothing was read or created there.

    A project may come from a stranger, and its links with it.
    """

    code = "linked_elsewhere"

    def __init__(self, path: str, target: str) -> None:
        from shlex import quote

        self.target = target
        hint = "remove the link"
        if target.isprintable():
            hint += f", or, if it is yours, name the folder itself: export GAIA_SESSIONS_ROOT={quote(target)}"
        super().__init__("use the sessions", path, f"a link leads out of the project, to {target}", hint)


class LockUnsupported(StoreFailure):
    code = "lock_unsupported"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("lock", path, reason, "keep the sessions on a local file system")


class OwnedByAnother(StoreFailure):
    """The sessions, or the project they would be in, belong to another user; nothing was read or created."""

    code = "other_user"

    def __init__(self, path: str, owner: str, user: str) -> None:
        self.owner = owner
        self.user = user
        super().__init__(
            "use the sessions",
            path,
            f"it belongs to {owner}, and you are {user}",
            f"sessions are private to a user; store yours elsewhere: {EXPORT_ROOT_COMMAND}",
        )


class DurabilityUnknown(SessionsError):
    """The change is in place and visible, but the directory could not be synced: a power failure may undo it."""

    code = "durability_unknown"
    exit_code = 9

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: written, but the sync to disk failed: {reason}", "check the disk; the change is visible"
        )


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


class MessagesKeptAside(UserWarning):
    """A write found lines of a transcript that its record did not commit, and moved them to ``path``; it was done.

    No error: Python's ``warnings`` show it, or whoever catches them.
    """

    code = "kept_aside"

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.number = number
        self.hint = "add each that you miss with 'gaia-sessions transcript ID --append ROLE TEXT', then remove the file"
        super().__init__(path, number)

    def __str__(self) -> str:
        return (
            f"{plural(self.number, 'message')} of the transcript had been written but never acknowledged, or the"
            f" record was restored from an older copy: kept in {self.path}"
        )


class FiguresLost(UserWarning):
    """Sessions were removed, and what ``stats`` should have kept of them could not be written, or not for certain.

    No error: Python's ``warnings`` show it, or whoever catches them. cause: why it could not be.
    """

    code = "figures_lost"

    def __init__(self, cause: SessionsError) -> None:
        self.cause = cause
        self.hint = "'gaia-sessions doctor' says what is wrong; with the setting keep_figures = false none are kept"
        super().__init__(cause)

    def __str__(self) -> str:
        if isinstance(self.cause, DurabilityUnknown):
            return f"it is not sure that the figures of removed sessions were kept: {self.cause}"
        return f"the figures of removed sessions cannot be kept: {self.cause}"
