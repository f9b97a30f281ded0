from __future__ import annotations

from itertools import product

import pytest

from gaia_sessions.errors import IllegalMove, UnknownOutcome, UnknownPhase
from gaia_sessions.session.phases import (
    CORRECTIONS,
    MOVES,
    OUTCOMES,
    PHASES,
    RESUMABLE,
    check_correction,
    check_move,
    check_outcome,
    check_phase,
    diagram,
    is_final,
    is_resumable,
)

# The table as the users' documents and the design say it, drawn by hand: x is a legal move, . is none.
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
ROWS = {words[0]: words[1:] for words in (line.split() for line in EXPECTED.splitlines()[2:] if line.strip())}
LEGAL = {(one, other): mark == "x" for one, marks in ROWS.items() for other, mark in zip(ROWS, marks, strict=True)}

NOT_A_PHASE = [None, "", "Planning", "planning ", "sleeping", 1, True, ["planning"], {"planning": 1}]


def test_there_are_nine_phases_in_the_documented_order() -> None:
    assert PHASES == tuple(ROWS) == tuple(MOVES)
    assert OUTCOMES == ("completed", "failed", "abandoned")
    assert RESUMABLE == ("investigating", "planning", "approval")


@pytest.mark.parametrize(("one", "other"), list(product(ROWS, ROWS)))
def test_a_move_is_legal_exactly_when_the_drawn_table_has_it(one: str, other: str) -> None:
    if LEGAL[one, other]:
        check_move(one, other)
    else:
        with pytest.raises(IllegalMove) as caught:
            check_move(one, other)
        assert (caught.value.from_phase, caught.value.to_phase) == (one, other)
        assert set(caught.value.allowed) == {to for (start, to), legal in LEGAL.items() if start == one and legal}
    assert (other in MOVES[one]) == LEGAL[one, other]


@pytest.mark.parametrize(("one", "other"), list(product(ROWS, ROWS)))
def test_only_a_correction_leads_out_of_a_final_phase_and_it_may_lead_anywhere(one: str, other: str) -> None:
    if is_final(one) or LEGAL[one, other]:
        check_correction(one, other)
    else:
        with pytest.raises(IllegalMove) as caught:
            check_correction(one, other)
        assert caught.value.allowed == MOVES[one]
    assert (other in CORRECTIONS[one]) == (is_final(one) or LEGAL[one, other])


@pytest.mark.parametrize("phase", ROWS)
def test_each_phase_is_final_resumable_or_neither_as_documented(phase: str) -> None:
    assert (is_final(phase), is_resumable(phase)) == (
        phase in {"completed", "failed", "abandoned"},
        phase in {"investigating", "planning", "approval"},
    )


@pytest.mark.parametrize("phase", ROWS)
def test_a_known_phase_is_returned_as_it_is(phase: str) -> None:
    assert check_phase(phase) == phase


@pytest.mark.parametrize("phase", NOT_A_PHASE, ids=repr)
def test_an_unknown_phase_is_named_and_the_nine_are_listed(phase: object) -> None:
    with pytest.raises(UnknownPhase) as caught:
        check_phase(phase)
    assert vars(caught.value) == {
        "word": phase,
        "known": tuple(ROWS),
        "hint": "the phases are initializing, investigating, planning, approval, executing, validating, "
        "completed, failed, abandoned",
    }


@pytest.mark.parametrize("outcome", ["completed", "failed", "abandoned"])
def test_a_known_outcome_is_returned_as_it_is(outcome: str) -> None:
    assert check_outcome(outcome) == outcome


@pytest.mark.parametrize("outcome", [*NOT_A_PHASE, "planning", "success"], ids=repr)
def test_an_unknown_outcome_is_named_and_the_three_are_listed(outcome: object) -> None:
    with pytest.raises(UnknownOutcome) as caught:
        check_outcome(outcome)
    assert vars(caught.value) == {
        "word": outcome,
        "known": ("completed", "failed", "abandoned"),
        "hint": "the outcomes are completed, failed, abandoned",
    }


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
