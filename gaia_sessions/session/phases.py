"""The nine phases of a session, every move between them, and where each event leads.

No other module compares the name of a phase.
"""

from __future__ import annotations

INITIALIZING = "initializing"
INVESTIGATING = "investigating"
PLANNING = "planning"
APPROVAL = "approval"
EXECUTING = "executing"
VALIDATING = "validating"
COMPLETED = "completed"
FAILED = "failed"
ABANDONED = "abandoned"

OUTCOMES = (COMPLETED, FAILED, ABANDONED)
RESUMABLE = (INVESTIGATING, PLANNING, APPROVAL)
MARKER_PHASES = (*RESUMABLE, FAILED)
"""The phases that the marker of a stop can name."""

_CARRYING_OUT = (EXECUTING, VALIDATING)
_WORKING_PHASES = (INVESTIGATING, PLANNING, APPROVAL, EXECUTING, VALIDATING)
OPEN = (INITIALIZING, *_WORKING_PHASES)

# Agents replan, so every move between open phases is legal, except back to the first: a stricter table would make
# agents report wrong phases. A move to the same phase is a heartbeat.
MOVES: dict[str, tuple[str, ...]] = {
    INITIALIZING: (INITIALIZING, *_WORKING_PHASES, *OUTCOMES),
    INVESTIGATING: (*_WORKING_PHASES, *OUTCOMES),
    PLANNING: (*_WORKING_PHASES, *OUTCOMES),
    APPROVAL: (*_WORKING_PHASES, *OUTCOMES),
    EXECUTING: (*_WORKING_PHASES, *OUTCOMES),
    VALIDATING: (*_WORKING_PHASES, *OUTCOMES),
    COMPLETED: (),
    FAILED: (),
    ABANDONED: (),
}

PHASES = tuple(MOVES)

# An end that was inferred, or that a hook of the host took back, can be wrong: then the work returns to its phase
# before, which can be any phase. Only a report of the host corrects an end. No command does.
CORRECTIONS: dict[str, tuple[str, ...]] = {**MOVES, **dict.fromkeys(OUTCOMES, PHASES)}

AGENT_AT_WORK = "the agent starts, or is seen at work after an assumed end"
WORK_RESUMED = "a run resumes the session, unless the question was denied"
COMMAND_STARTED = "`gaia-sessions run` starts a command"
TURN_TAKEN = "a turn is added, or a `send` begins"
SEND_RETURNED = "a `send` is answered, and the agent set no phase"
AGENT_STOPPED = "the agent stops; the last phase it set in this run is not `approval`"
AGENT_STOPPED_TO_ASK = "the agent stops; the last phase it set in this run is `approval`"
AGENT_INTERRUPTED = "the agent is interrupted, or a `send` ends without an answer"
AGENT_FAILED = "the agent fails, or the delegation returns without a stop"
COMMAND_FAILED = "a command fails, or ends at a limit without a marker"
HOST_OVER = "the conversation, client or `gaia-sessions run` ends during a run"
WORK_GIVEN_UP = "the agent is killed, the delegation denied, or the session cancelled"

# A final phase in a row is an end that can be wrong: see ``CORRECTIONS``.
EVENTS: dict[str, dict[str, str]] = {
    AGENT_AT_WORK: dict.fromkeys((INITIALIZING, *OUTCOMES), INVESTIGATING),
    WORK_RESUMED: {INITIALIZING: INVESTIGATING, APPROVAL: EXECUTING},
    COMMAND_STARTED: dict.fromkeys((INITIALIZING, *RESUMABLE), EXECUTING),
    TURN_TAKEN: {INITIALIZING: INVESTIGATING},
    SEND_RETURNED: {APPROVAL: INVESTIGATING},
    AGENT_STOPPED: dict.fromkeys(PHASES, COMPLETED),
    AGENT_STOPPED_TO_ASK: dict.fromkeys(PHASES, APPROVAL),
    AGENT_INTERRUPTED: {INITIALIZING: INVESTIGATING, **dict.fromkeys(_CARRYING_OUT, PLANNING)},
    AGENT_FAILED: dict.fromkeys((INITIALIZING, *_CARRYING_OUT), FAILED),
    COMMAND_FAILED: dict.fromkeys(OPEN, FAILED),
    HOST_OVER: {INITIALIZING: INVESTIGATING, **dict.fromkeys(_CARRYING_OUT, ABANDONED)},
    WORK_GIVEN_UP: dict.fromkeys(OPEN, ABANDONED),
}
"""Where each event leads from each phase; a phase that is missing in a row stays as it is."""


def phase_after(event: str, phase: str) -> str:
    """Returns the phase to which ``event`` leads from ``phase``."""
    return EVENTS[event].get(phase, phase)


def check_phase(phase: object) -> str:
    """Returns ``phase`` if it is one of the nine phases."""
    if not isinstance(phase, str) or phase not in MOVES:
        from gaia_sessions.errors import UnknownPhase

        raise UnknownPhase(phase, PHASES)
    return phase


def check_outcome(outcome: object) -> str:
    """Returns ``outcome`` if it is a final phase."""
    if not isinstance(outcome, str) or outcome not in OUTCOMES:
        from gaia_sessions.errors import UnknownOutcome

        raise UnknownOutcome(outcome, OUTCOMES)
    return outcome


def check_move(from_phase: str, to_phase: str) -> None:
    """Refuses a move that is not in ``MOVES``."""
    _check_in(MOVES, from_phase, to_phase)


def check_correction(from_phase: str, to_phase: str) -> None:
    """Refuses a move that not even a correction of an end allows."""
    _check_in(CORRECTIONS, from_phase, to_phase)


def _check_in(moves: dict[str, tuple[str, ...]], from_phase: str, to_phase: str) -> None:
    if to_phase not in moves[from_phase]:
        from gaia_sessions.errors import IllegalMove

        raise IllegalMove(from_phase, to_phase, moves[from_phase])


def is_final(phase: str) -> bool:
    return phase in OUTCOMES


def is_resumable(phase: str) -> bool:
    return phase in RESUMABLE


def is_marker_phase(phase: str) -> bool:
    """Whether the marker of a stop can name ``phase``."""
    return phase in MARKER_PHASES


def is_new(phase: str) -> bool:
    """Whether the work has not begun."""
    return phase == INITIALIZING


def waits_for_approval(phase: str | None) -> bool:
    """Whether work in ``phase`` waits for an answer."""
    return phase == APPROVAL


def carries_out(phase: str) -> bool:
    """Whether work in ``phase`` may change something, so that an interruption leaves it half done."""
    return phase in _CARRYING_OUT


def is_success(phase: str | None) -> bool:
    return phase == COMPLETED


def is_failure(phase: str | None) -> bool:
    return phase == FAILED


def is_abandoned(phase: str | None) -> bool:
    return phase == ABANDONED
