"""The phases: legal moves, properties, what each event leads to, and the diagram in the documentation."""

from __future__ import annotations

from itertools import product

import pytest

from gaia_sessions.errors import IllegalMove, UnknownOutcome, UnknownPhase
from gaia_sessions.session.phases import (
    AGENT_INTERRUPTED,
    CORRECTIONS,
    EVENTS,
    MARKER_PHASES,
    MOVES,
    OPEN,
    OUTCOMES,
    PHASES,
    RESUMABLE,
    carries_out,
    check_correction,
    check_move,
    check_outcome,
    check_phase,
    is_abandoned,
    is_failure,
    is_final,
    is_marker_phase,
    is_resumable,
    is_success,
    phase_after,
    waits_for_approval,
)
from tests.scripts import script
from tests.table import table

# The moves of the users' documents and the design, written by hand: x is a legal move, . is not.
EXPECTED = """
                 init inve plan appr exec vali comp fail aban
    initializing  x    x    x    x    x    x    x    x    x
    investigating .    x    x    x    x    x    x    x    x
    planning      .    x    x    x    x    x    x    x    x
    approval      .    x    x    x    x    x    x    x    x
    executing     .    x    x    x    x    x    x    x    x
    validating    .    x    x    x    x    x    x    x    x
    completed     .    .    .    .    .    .    .    .    .
    failed        .    .    .    .    .    .    .    .    .
    abandoned     .    .    .    .    .    .    .    .    .
"""
EXPECTED_EVENTS = """
    init inve plan appr exec vali comp fail aban
    inve .    .    .    .    .    inve inve inve  the agent starts, or is seen at work after an assumed end
    inve .    .    exec .    .    .    .    .     a run resumes the session, unless the question was denied
    exec exec exec exec .    .    .    .    .     `gaia-sessions run` starts a command
    inve .    .    .    .    .    .    .    .     a turn is added, or a `send` begins
    .    .    .    inve .    .    .    .    .     a `send` is answered, and the agent set no phase
    comp comp comp comp comp comp comp comp comp  the agent stops; the last phase it set in this run is not `approval`
    appr appr appr appr appr appr appr appr appr  the agent stops; the last phase it set in this run is `approval`
    inve .    .    .    plan plan .    .    .     the agent is interrupted, or a `send` ends without an answer
    fail .    .    .    fail fail .    .    .     the agent fails, or the delegation returns without a stop
    fail fail fail fail fail fail .    .    .     a command fails, or ends at a limit without a marker
    inve .    .    .    aban aban .    .    .     the conversation, client or `gaia-sessions run` ends during a run
    aban aban aban aban aban aban .    .    .     the agent is killed, the delegation denied, or the session cancelled
"""
EXPECTED_PROPERTIES = {
    "initializing": "",
    "investigating": "resumable marker",
    "planning": "resumable marker",
    "approval": "resumable marker waits",
    "executing": "carries-out",
    "validating": "carries-out",
    "completed": "final success",
    "failed": "final marker failure",
    "abandoned": "final abandoned",
}
PROPERTIES = {
    "final": is_final,
    "resumable": is_resumable,
    "marker": is_marker_phase,
    "waits": waits_for_approval,
    "carries-out": carries_out,
    "success": is_success,
    "failure": is_failure,
    "abandoned": is_abandoned,
}
ROWS = {words[0]: words[1:] for words in (line.split() for line in EXPECTED.splitlines()[2:] if line.strip())}
LEGAL = {(one, other): mark == "x" for one, marks in ROWS.items() for other, mark in zip(ROWS, marks, strict=True)}

NOT_A_PHASE = [None, "", "Planning", "planning ", "sleeping", 1, True, ["planning"], {"planning": 1}]


def test_there_are_nine_phases_in_the_documented_order() -> None:
    assert PHASES == tuple(ROWS) == tuple(MOVES)
    assert OUTCOMES == ("completed", "failed", "abandoned")
    assert RESUMABLE == ("investigating", "planning", "approval")
    assert (*OPEN, *OUTCOMES) == PHASES
    assert MARKER_PHASES == ("investigating", "planning", "approval", "failed")


@table(("one", "other"), list(product(ROWS, ROWS)))
def test_a_move_is_legal_exactly_when_the_drawn_table_has_it(one: str, other: str) -> None:
    if LEGAL[one, other]:
        check_move(one, other)
    else:
        with pytest.raises(IllegalMove) as caught:
            check_move(one, other)
        assert (caught.value.from_phase, caught.value.to_phase) == (one, other)
        assert set(caught.value.allowed) == {to for (start, to), legal in LEGAL.items() if start == one and legal}
    assert (other in MOVES[one]) == LEGAL[one, other]


@table(("one", "other"), list(product(ROWS, ROWS)))
def test_only_a_correction_leads_out_of_a_final_phase_and_it_may_lead_anywhere(one: str, other: str) -> None:
    if is_final(one) or LEGAL[one, other]:
        check_correction(one, other)
    else:
        with pytest.raises(IllegalMove) as caught:
            check_correction(one, other)
        assert caught.value.allowed == MOVES[one]
    assert (other in CORRECTIONS[one]) == (is_final(one) or LEGAL[one, other])


@table("phase", ROWS)
def test_each_phase_has_the_properties_that_the_table_says(phase: str) -> None:
    assert " ".join(word for word, holds in PROPERTIES.items() if holds(phase)) == EXPECTED_PROPERTIES[phase]


def test_each_event_leads_from_each_phase_to_the_phase_in_the_drawn_table() -> None:
    head, *lines = EXPECTED_EVENTS.strip().splitlines()
    full = {phase[:4]: phase for phase in ROWS}
    drawn = {
        event: [full.get(word, phase) for word, phase in zip(line.split(), ROWS, strict=False)]
        for line in lines
        for event in [line.split(maxsplit=len(ROWS))[-1]]
    }
    assert head.split() == list(full)
    assert drawn == {event: [phase_after(event, phase) for phase in ROWS] for event in EVENTS}


def test_an_event_makes_only_legal_moves_from_an_open_phase() -> None:
    assert [(event, one) for event, one in product(EVENTS, OPEN) if not LEGAL[one, phase_after(event, one)]] == []


@table("phase", OPEN)
def test_an_interruption_leads_to_a_resumable_phase(phase: str) -> None:
    assert is_resumable(phase_after(AGENT_INTERRUPTED, phase))


@table("phase", ROWS)
def test_a_known_phase_is_returned_as_it_is(phase: str) -> None:
    assert check_phase(phase) == phase


@table("phase", NOT_A_PHASE)
def test_an_unknown_phase_is_named_and_the_nine_are_listed(phase: object) -> None:
    with pytest.raises(UnknownPhase) as caught:
        check_phase(phase)
    error = caught.value
    assert (error.word, error.known) == (phase, tuple(ROWS))
    assert error.hint == (
        "the phases are initializing, investigating, planning, approval, executing, validating, "
        "completed, failed, abandoned"
    )


@table("outcome", ["completed", "failed", "abandoned"])
def test_a_known_outcome_is_returned_as_it_is(outcome: str) -> None:
    assert check_outcome(outcome) == outcome


@table("outcome", [*NOT_A_PHASE, "planning", "success"])
def test_an_unknown_outcome_is_named_and_the_three_are_listed(outcome: object) -> None:
    with pytest.raises(UnknownOutcome) as caught:
        check_outcome(outcome)
    error = caught.value
    assert (error.word, error.known) == (outcome, ("completed", "failed", "abandoned"))
    assert error.hint == "the outcomes are completed, failed, abandoned"


def diagram() -> str:
    """The diagram of phases in ``docs/phases.md``."""
    drawn: str = script("render_docs").phases()
    return drawn.removeprefix("```mermaid\n").removesuffix("```\n")


def test_the_diagram_draws_every_move_and_no_other() -> None:
    work = ["investigating", "planning", "approval", "executing", "validating"]
    head, *lines = diagram().splitlines()
    arrows = {tuple(line.split(" --> ")) for line in map(str.strip, lines) if "-->" in line}
    assert head == "stateDiagram-v2"
    assert arrows == {
        ("[*]", "initializing"),
        ("initializing", "work"),
        *((one, other) for one in work for other in work if one != other),
        *((one, outcome) for one in ("initializing", "work") for outcome in ("completed", "failed", "abandoned")),
        *((outcome, "[*]") for outcome in ("completed", "failed", "abandoned")),
    }


def test_the_diagram_names_the_open_phases_and_says_which_are_resumable() -> None:
    lines = [line.strip() for line in diagram().splitlines()]
    start, end = lines.index("state work {"), lines.index("}")
    assert [line for line in lines[start + 1 : end] if "-->" not in line] == [
        "investigating : investigating (resumable)",
        "planning : planning (resumable)",
        "approval : approval (resumable)",
        "executing : executing",
        "validating : validating",
    ]
