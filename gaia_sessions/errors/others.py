"""All other errors, in the order of the tree in ``__init__``, and two warnings."""

from __future__ import annotations

from .main_branches import InvalidInput, SessionsError, StoreFailure, plural, shorten, well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

EXPORT_ROOT_COMMAND = 'export GAIA_SESSIONS_ROOT="$HOME/gaia-sessions"'
"""The command that chooses another root. A client that starts after this command passes the variable to its hooks."""

_MOST_IDS = 5
_LONGEST_LIST = 500


class UsageError(SessionsError):
    """The request itself is wrong; nothing was read or written."""

    code = "usage"
    exit_code = 2


class UnknownWord(UsageError):
    """The ``word`` is none of the ``known`` words."""

    code = "unknown_word"
    kind = "word"
    other_options: Mapping[str, Sequence[str]] = {}
    """Words that the user perhaps meant for another option, by the name of that option."""

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
    """The command or function does not accept the ``value`` of the argument ``name``.

    wanted: what the value must be.
    """

    code = "bad_argument"

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name = name
        self.value = value
        self.wanted = wanted
        super().__init__(f"{name} {shorten(repr(value))} is not valid", f"must be {wanted}")


class NoSuchFolder(UsageError):
    """``path`` is not a folder."""

    code = "no_such_folder"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"no folder at {path!r}",
            "give a project, a folder with one folder per session, or the folder of one session",
        )


class AmbiguousId(UsageError):
    """The text ``typed`` as an ID is the beginning or end of several IDs: ``candidates``."""

    code = "ambiguous_id"

    def __init__(self, typed: str, candidates: Iterable[str]) -> None:
        self.typed = typed
        self.candidates = tuple(candidates)
        listed = ", ".join(self.candidates[:_MOST_IDS])
        more = len(self.candidates) - _MOST_IDS
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"{typed!r} is the beginning or end of {len(self.candidates)} IDs: {listed}{rest}",
            "type more of the ID, for example its end as `gaia-sessions list` shows it",
        )


class BadSetting(UsageError):
    """A setting is unknown, or its value is invalid.

    origin: the file, the variable or the option that has the setting.
    problem: what is wrong.
    """

    code = "bad_setting"

    def __init__(self, origin: str, problem: str, hint: str) -> None:
        self.origin = origin
        self.problem = problem
        text = shorten(problem, 500)  # the problem of a variable names its origin already
        super().__init__(text if origin in problem.split() else f"{origin}: {text}", hint)


class Conflict(SessionsError):
    """The record is valid, but does not allow the request; nothing was written."""

    code = "conflict"
    exit_code = 4


class SessionExists(Conflict):
    """The ID for a new session belongs to a session already."""

    code = "exists"

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        super().__init__(
            f"session {agent_id!r} already exists", "choose another ID, or leave out the ID to get a new one"
        )


class SessionFinal(Conflict):
    """The session has ended, so it cannot be changed; ``continuable``: perhaps a new session can continue it."""

    code = "final"

    def __init__(self, agent_id: str, phase: str, *, continuable: bool = True) -> None:
        self.agent_id = agent_id
        self.phase = phase
        self.continuable = continuable
        super().__init__(
            f"session {agent_id!r} has ended ({phase}) and can no longer be changed",
            f"to continue it in a new session, type gaia-sessions create --continues {agent_id}"
            if continuable
            else "for new work, type gaia-sessions create",
        )


class IllegalMove(Conflict):
    """A session cannot change its phase in this way.

    allowed: the phases that are possible from ``from_phase``.
    """

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
    """Resuming cannot be switched on, because the phase is not resumable."""

    code = "resume_not_allowed"

    def __init__(self, agent_id: str, phase: str) -> None:
        self.agent_id = agent_id
        self.phase = phase
        super().__init__(
            f"session {agent_id!r} cannot be resumed: its phase is {phase}",
            f"first change its phase to investigating, planning or approval: "
            f"gaia-sessions update {agent_id} --phase planning",
        )


class AnswerOfAgent(Conflict):
    """An answer in the shell of an agent does not count, because the setting ``approvals`` is ``explicit``.

    client: the client of this agent.
    command: ``approve`` or ``deny``.
    """

    code = "answer_of_agent"

    def __init__(self, agent_id: str, client: str, command: str) -> None:
        self.agent_id = agent_id
        self.client = client
        self.command = command
        super().__init__(
            f"only a person can answer for session {agent_id!r}, and this is the shell of an agent of {client}",
            f"a person must type this in a terminal outside {client}: gaia-sessions {command} {agent_id}",
        )


class NotApproved(Conflict):
    """The phase cannot change before a person has answered, because the setting ``approvals`` is ``explicit``.

    answered: ``approved`` or ``denied`` if a person has answered; an agent's shell cannot change the phase even then.
    """

    code = "not_approved"

    def __init__(self, agent_id: str, answered: str | None = None) -> None:
        self.agent_id = agent_id
        self.answered = answered
        if answered is not None:
            super().__init__(
                f"session {agent_id!r} was {answered}; its phase cannot be changed in the shell of an agent",
                f"resume it, which tells its agent the answer; this says how: gaia-sessions resume {agent_id}",
            )
            return
        super().__init__(
            f"session {agent_id!r} waits for approval, and only a person can approve",
            f"first, a person must type this in a terminal: gaia-sessions approve {agent_id}",
        )


class NothingToAnswer(Conflict):
    """The session cannot be approved or denied, because it does not wait for approval.

    problem: why the session does not wait.
    """

    code = "nothing_to_answer"

    def __init__(self, agent_id: str, problem: str) -> None:
        self.agent_id = agent_id
        self.problem = problem
        super().__init__(
            f"session {agent_id!r} does not wait for approval: {problem}",
            "`gaia-sessions pending` shows which sessions wait, and how to answer",
        )


class RunGone(Conflict):
    """The end of a run cannot be written: somebody else has ended the run, or the run is no longer in the record."""

    code = "run_gone"

    def __init__(self, agent_id: str, number: int) -> None:
        self.agent_id = agent_id
        self.number = number
        problem = "the run's process seemed gone, or the session was removed and created again, or restored from a copy"
        super().__init__(
            f"session {agent_id!r} no longer has this run {number}: {problem}",
            f"`gaia-sessions show {agent_id}` shows its runs",
        )

    @classmethod
    def superseded(cls, agent_id: str, number: int) -> Self:
        """Returns the error of a run that was counted as lost, so that others may have gone on with its work."""
        error = cls(agent_id, number)
        problem = "its lease on the server had lapsed, so it was counted as lost"
        error.args = (well_formed(f"the end of run {number} of session {agent_id!r} does not count: {problem}"),)
        return error


class RunNotAllowed(Conflict):
    """The session cannot be resumed or continued now.

    problem: why not.
    """

    code = "run_not_allowed"

    def __init__(self, agent_id: str, problem: str, hint: str) -> None:
        self.agent_id = agent_id
        self.problem = problem
        super().__init__(f"session {agent_id!r} cannot be used for this: {problem}", hint)


class AgentAtWork(RunNotAllowed):
    """The session cannot be resumed or continued now, because an agent works on it, or is about to start."""

    code = "agent_at_work"


class NotTheNextTurn(Conflict):
    """The next turn of the session is ``following``, not ``number``."""

    code = "not_the_next_turn"

    def __init__(self, agent_id: str, number: int | None, following: int) -> None:
        self.agent_id = agent_id
        self.number = number
        self.following = following
        is_there = number is not None and 0 < number < following
        there = f"turn {number} of session {agent_id!r} already has other messages"
        super().__init__(
            there if is_there else f"the next turn of session {agent_id!r} is {following}, not {number}",
            f"to add the next turn, type gaia-sessions turn {agent_id} - --number {following} < FILE",
        )


class NoSuchTodo(Conflict):
    """The session has no todo with this ``number``.

    count: how many todos the session has; their numbers begin with 1.
    """

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
            else f"`gaia-sessions todo add {agent_id} TEXT` adds a todo",
        )


class NotRemovable(Conflict):
    """Some sessions cannot be removed; nothing was removed.

    reasons: by ID, why this session must stay: ``open``, ``running``, ``above_open`` or ``continued``.
    wanted: the IDs of all sessions to remove.
    open_below: the IDs of the open sessions below those with the reason ``above_open``.
    """

    code = "not_removable"

    def __init__(self, reasons: Mapping[str, str], wanted: Iterable[str], open_below: Iterable[str]) -> None:
        self.reasons = {**reasons}
        self.wanted = tuple(wanted)
        self.open_below = tuple(open_below)
        kept = {reason: [agent_id for agent_id in reasons if reasons[agent_id] == reason] for reason in _WHY_KEPT}
        said = (_says(agent_ids, *_WHY_KEPT[reason]) for reason, agent_ids in kept.items() if agent_ids)
        hint = f"add --force to remove {'it' if len(self.wanted) == 1 else 'them'} anyway"
        if len(self.open_below) > _MOST_IDS:
            hint = f"to see the sessions below it, type gaia-sessions tree {kept['above_open'][0]}"
        elif kept["above_open"]:
            hint = f"to remove all of them, type gaia-sessions rm --force {' '.join([*self.wanted, *self.open_below])}"
        super().__init__("; ".join(said), f"nothing was removed; {hint}")


_WHY_KEPT = {
    "open": ("is open", "are open"),
    "running": ("has ended, but an agent may still be at work on it", "have ended, but agents may be at work on them"),
    "above_open": ("has an open session below it", "have open sessions below them"),
    "continued": ("is continued by an open session", "are continued by open sessions"),
}
"""For each reason: the words about one session, and the words about several."""


def _says(agent_ids: list[str], of_one: str, of_several: str) -> str:
    """Returns ``session 'a' is open`` or ``2 sessions are open: 'a', 'b'``."""
    if len(agent_ids) == 1:
        return f"session {agent_ids[0]!r} {of_one}"
    return f"{len(agent_ids)} sessions {of_several}: {', '.join(map(repr, agent_ids))}"


class RevisionChanged(Conflict):
    """The record has another revision than the caller ``asked`` for.

    actual: the revision of the record.
    """

    code = "revision_changed"

    def __init__(self, agent_id: str, asked: int, actual: int) -> None:
        self.agent_id = agent_id
        self.asked = asked
        self.actual = actual
        super().__init__(
            f"session {agent_id!r} is at revision {actual}, not {asked}",
            f"read the session again (`gaia-sessions get {agent_id}`), then retry with its current revision",
        )


class StateChanged(Conflict):
    """Somebody else changed the session after this program read it.

    what: what was changed.
    """

    code = "state_changed"

    def __init__(self, agent_id: str, what: str) -> None:
        self.agent_id = agent_id
        self.what = what
        super().__init__(
            f"{agent_id}: {what} since you read the session", "read the session again, then repeat the change"
        )


class NewerSchema(Conflict):
    """A newer version of gaia-sessions wrote the record, so this version cannot change it.

    schema: the schema of the record.
    known: the newest schema that this version can write.
    """

    code = "newer_schema"

    def __init__(self, agent_id: str, schema: int, known: int) -> None:
        self.agent_id = agent_id
        self.schema = schema
        self.known = known
        super().__init__(
            f"session {agent_id!r} was written by a newer version (schema {schema}, not {known}) and can only be shown",
            "install a newer version of gaia-sessions",
        )


class SessionMoving(NewerSchema):
    """The session is being moved from the root ``source`` to the root ``target``, so nothing can change it now."""

    code = "moving"

    def __init__(self, agent_id: str, source: str, target: str) -> None:
        self.agent_id = agent_id
        self.source = source
        self.target = target
        Conflict.__init__(
            self,
            f"session {agent_id!r} is being moved from {source} to {target}, so it cannot be changed",
            # Anybody may have written the roots into the record: a command with them would send sessions anywhere.
            "to end the move, type again the `store copy` that was interrupted",
        )


class TooDeep(Conflict):
    """A session below ``parent_id``, or without ``parent_id`` an agent, would be deeper than ``max_depth``."""

    code = "too_deep"

    def __init__(self, parent_id: str | None, depth: int, max_depth: int) -> None:
        self.parent_id = parent_id
        self.depth = depth
        self.max_depth = max_depth
        if parent_id is None:
            super().__init__(
                f"the agent would work at depth {depth}; the limit is {max_depth}",
                "call the agent from a session higher up",
            )
            return
        super().__init__(
            f"a session below {parent_id!r} would have depth {depth}; the limit is {max_depth}",
            "choose a parent higher up: `gaia-sessions tree` shows all levels",
        )


class TooManyChildren(Conflict):
    """``parent_id`` already has ``limit`` children at work.

    at_work: the IDs of these children.
    """

    code = "too_many_children"

    def __init__(self, parent_id: str, at_work: Iterable[str], limit: int) -> None:
        self.parent_id = parent_id
        self.at_work = tuple(at_work)
        self.limit = limit
        super().__init__(
            f"session {parent_id!r} has {len(self.at_work)} children at work; the limit is {limit}",
            f"wait until one of them ends, or cancel one with `gaia-sessions cancel ID`: {', '.join(self.at_work)}",
        )


class HooksElsewhere(Conflict):
    """Another settings file, ``path``, has the hooks already; with both files, each event would arrive twice."""

    code = "hooks_elsewhere"

    def __init__(self, host: str, path: str, scope: str) -> None:
        self.host = host
        self.path = path
        self.scope = scope
        super().__init__(
            f"{path} already has the hooks for {host}",
            f"use --{scope}, or first remove the hooks there: gaia-sessions hooks uninstall --host {host} --{scope}",
        )


class NoToolsLeft(InvalidInput):
    """None of the tools ``requested`` can be used, for the ``reasons``.

    available: the tools that exist; None for all tools.
    """

    code = "no_tools_left"

    def __init__(self, requested: Sequence[str], available: Sequence[str] | None, reasons: Sequence[str]) -> None:
        self.requested = (*requested,)
        self.available = None if available is None else (*available,)
        self.reasons = (*reasons,)
        there = "all" if available is None else ", ".join(available) or "none"
        super().__init__(
            f"no requested tool can be used: {shorten('; '.join(reasons), _LONGEST_LIST)}; "
            f"requested: {shorten(', '.join(requested), _LONGEST_LIST)}; "
            f"available: {shorten(there, _LONGEST_LIST)}",
            hint="request at least one tool that is available and not blocked",
        )


class SettingsUnreadable(InvalidInput):
    """A settings file of a client is not in the expected form; the file is not changed.

    place: where in the file.
    """

    code = "settings_unreadable"

    def __init__(self, path: str, problem: str, place: str) -> None:
        self.path = path
        self.place = place
        super().__init__(problem, f"{path}: {place}" if place else path, "correct the file; it was not changed")


class TaskRefused(InvalidInput):
    """The guard refuses the task, because the task asks for analysis.

    keyword: the word of the task that asks for analysis.
    """

    code = "task_refused"

    def __init__(self, keyword: str, problem: str) -> None:
        self.keyword = keyword
        super().__init__(
            problem,
            hint="ask for facts, or switch the guard off: type GAIA_SESSIONS_GUARD_MODE=off before the command",
        )


class TooLarge(InvalidInput):
    """A text or document is larger than its ``limit``; both are in bytes.

    what: which text or document.
    """

    code = "too_large"

    def __init__(
        self, what: str, size: int, limit: int, hint: str = "put long texts into a file, and store its name"
    ) -> None:
        self.what = what
        self.size = size
        self.limit = limit
        super().__init__(f"{what} is over the limit of {limit} bytes", hint=hint)


class LinkedElsewhere(StoreFailure):
    """A link in the project leads to a folder outside of the project, ``target``; nothing was read or created there."""

    code = "linked_elsewhere"

    def __init__(self, path: str, target: str) -> None:
        from shlex import quote

        self.target = target
        hint = "remove the link"
        if target.isprintable():
            hint += f"; or, if you made the link, type export GAIA_SESSIONS_ROOT={quote(target)}"
        super().__init__("use the sessions", path, f"a link leads out of the project, to {target}", hint)


class LockUnsupported(StoreFailure):
    """The file system of ``path`` has no locks."""

    code = "lock_unsupported"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("lock", path, reason, "store the sessions on a local file system, for example with --root DIR")


class NotWritten(StoreFailure):
    """The connection to the server was lost before the change was committed: nothing is written."""

    code = "not_written"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("write", path, reason, "nothing is written: try again")


class OwnedByAnother(StoreFailure):
    """The sessions, or their project, belong to another user; nothing was read or created.

    owner: the name of that user.
    user: your name.
    """

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
    """The change is written, but the sync to the disk failed: a power failure may undo the change."""

    code = "durability_unknown"
    exit_code = 9

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: written, but the sync to disk failed: {reason}",
            "check the disk: a power failure may undo the change",
        )


class OutcomeUnknown(DurabilityUnknown):
    """The connection to the server was lost during the commit, and the server cannot be asked if it succeeded."""

    code = "outcome_unknown"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.args = (well_formed(f"{path}: the connection was lost during the commit: {reason}"),)
        self.hint = "when the server can be reached, check whether the change is written"


class Cancelled(SessionsError):
    """The session is cancelled, so nothing can start there; without ``agent_id``, the work of a token is cancelled.

    at: when it was cancelled, in the form of times in records.
    by: the ID of the session above that was cancelled; None if the session itself was cancelled.
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
        what = "the work was" if agent_id is None else f"session {agent_id!r} was"
        message = f"{what} cancelled" + (f" at {at}" if at else "") + (f", together with {by!r} above it" if by else "")
        hint = "stop this work: a cancelled session cannot be resumed or continued; what it has stored is kept"
        super().__init__(f"{message}: {reason}" if reason else message, hint)


class MessagesKeptAside(UserWarning):
    """A warning: the transcript had ``number`` messages that its record does not include; they are in ``path`` now."""

    code = "kept_aside"

    def __init__(self, path: str, number: int) -> None:
        self.path = path
        self.number = number
        self.hint = "`gaia-sessions transcript ID --append ROLE TEXT` adds a lost message again; then remove the file"
        super().__init__(path, number)

    def __str__(self) -> str:
        found = plural(self.number, "message")
        why = "a crash came before they were recorded, or the record is an older copy"
        return f"the transcript had {found} that the record does not include ({why}); they are now in {self.path}"


class FiguresLost(UserWarning):
    """A warning: the figures of removed sessions could not be written, or perhaps not, because of ``cause``."""

    code = "figures_lost"

    def __init__(self, cause: SessionsError) -> None:
        self.cause = cause
        self.hint = "`gaia-sessions doctor` says what is wrong; to store no figures, set keep_figures = false"
        super().__init__(cause)

    def __str__(self) -> str:
        if isinstance(self.cause, DurabilityUnknown):
            return f"the figures of removed sessions may be lost after a power failure: {self.cause}"
        return f"the figures of removed sessions could not be stored: {self.cause}"


class WritesLost(UserWarning):
    """A warning: the server has an older revision of a session than it had before, so it has lost writes."""

    code = "writes_lost"

    def __init__(self, path: str, agent_id: str, seen: int, found: int) -> None:
        self.path = path
        self.agent_id = agent_id
        self.seen = seen
        self.found = found
        self.hint = "a failover to a standby that is not synchronous loses writes: `gaia-sessions store info`"
        super().__init__(path, agent_id, seen, found)

    def __str__(self) -> str:
        was = f"session {self.agent_id} had revision {self.seen}, and now has revision {self.found}"
        return f"the server has lost writes: {was}"
