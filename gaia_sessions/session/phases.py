"""The nine phases of a piece of work and every move between them.

Owns the one table of moves, in which final phases have none; the table of corrections beside it, the only way out of a
final phase; and which phases are final or resumable.
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

_WORKING_PHASES = (INVESTIGATING, PLANNING, APPROVAL, EXECUTING, VALIDATING)

# Agents replan, and a stricter table would make them report wrong phases: among the open phases every move is legal,
# except back to the first. A move to the same phase is a heartbeat.
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

# An end that was inferred, or that a hook of the host took back, may prove wrong: the work is then where it was, which
# may be any phase. Only a report of the host corrects an end; no command does.
CORRECTIONS: dict[str, tuple[str, ...]] = {**MOVES, **dict.fromkeys(OUTCOMES, PHASES)}


def check_phase(phase: object) -> str:
    """Returns ``phase`` if it is one of the nine; else raises ``UnknownPhase``."""
    if not isinstance(phase, str) or phase not in MOVES:
        from gaia_sessions.errors import UnknownPhase

        raise UnknownPhase(phase, PHASES)
    return phase


def check_outcome(outcome: object) -> str:
    """Returns ``outcome`` if work may end with it; else raises ``UnknownOutcome``."""
    if not isinstance(outcome, str) or outcome not in OUTCOMES:
        from gaia_sessions.errors import UnknownOutcome

        raise UnknownOutcome(outcome, OUTCOMES)
    return outcome


def check_move(from_phase: str, to_phase: str) -> None:
    """Raises ``IllegalMove`` if the table does not have the move."""
    _check_in(MOVES, from_phase, to_phase)


def check_correction(from_phase: str, to_phase: str) -> None:
    """Raises ``IllegalMove`` if not even evidence that corrects an end allows the move."""
    _check_in(CORRECTIONS, from_phase, to_phase)


def _check_in(moves: dict[str, tuple[str, ...]], from_phase: str, to_phase: str) -> None:
    if to_phase not in moves[from_phase]:
        from gaia_sessions.errors import IllegalMove

        raise IllegalMove(from_phase, to_phase, moves[from_phase])


def is_final(phase: str) -> bool:
    """Whether no move leads out of ``phase``."""
    return phase in OUTCOMES


def is_resumable(phase: str) -> bool:
    """Whether work that paused in ``phase`` may be resumed."""
    return phase in RESUMABLE


def diagram() -> str:
    """The table of moves as a Mermaid state diagram, the open phases drawn as one group; ``docs/policy.md`` has it.

    Corrections are not drawn: they are no moves of the work.
    """
    lines = ["stateDiagram-v2", f"    [*] --> {INITIALIZING}", f"    {INITIALIZING} --> work", "    state work {"]
    lines += [f"        {phase} : {phase}{' (resumable)' if is_resumable(phase) else ''}" for phase in _WORKING_PHASES]
    lines += [
        f"        {one} --> {other}"
        for one in _WORKING_PHASES
        for other in MOVES[one]
        if other in _WORKING_PHASES and other != one
    ]
    lines += ["    }"]
    lines += [f"    {phase} --> {outcome}" for phase in (INITIALIZING, "work") for outcome in OUTCOMES]
    lines += [f"    {phase} --> [*]" for phase in PHASES if is_final(phase)]
    return "\n".join(lines) + "\n"
