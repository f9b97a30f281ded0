"""Clients that are run as commands, such as ``claude``: what each tells of itself, and where its conversation stands.

A client keeps what was said too, and can go on with that. It is told only what is new if its conversation ends with the
turn that the session ended with; otherwise it begins another one. Pure.
"""

from __future__ import annotations

from .runs import updated_run
from .transcript import current_turn, generation_of
from .usage import with_consumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from .schema import Conversation, Record, Run

    class Place(TypedDict):
        """Where a client has its conversation: which client, the ID of the conversation, and where the client ran."""

        preset: str
        id: str
        cwd: str


class Told:
    """What a client that is a command tells of itself.

    figures: what its main agent used so far, ``consumed``, and its ``model``, as fields of the run; empty if nothing is
    known. conversation: where it has what was said, if that ends with its last words.
    """

    __slots__ = ("conversation", "figures")

    def __init__(self, figures: Run | None = None, conversation: Place | None = None) -> None:
        self.figures: Run = figures or {}
        self.conversation = conversation


def with_figures(record: Record, run: Run, told: Told) -> tuple[Record, Run]:
    """``record`` and its ``run`` with the figures that a client tells."""
    if "consumed" not in told.figures:
        return record, run
    counted = with_consumed(record, run["run"], told.figures)
    return counted, updated_run(counted, run)


def conversation_fields(record: Record, told: Told) -> Run:
    """The field of a run whose end completes the next turn of ``record``, which the client has by then."""
    if told.conversation is None:
        return {}
    place = told.conversation
    return {"conversation": {**place, "generation": generation_of(record), "turn": current_turn(record)}}


def conversation_to_go_on(record: Record, preset: str, earlier: Sequence[Run]) -> Conversation | None:
    """Where the client of ``preset`` has all that was said in ``record`` so far, and nothing else; None if nowhere.

    ``earlier`` are the runs so far. The latest of them has it, if it was the latest to say anything.
    """
    [run] = [*earlier[-1:]] or [{}]
    found = run.get("conversation")
    if found is None or found["preset"] != preset:
        return None
    stands = (found["generation"], found["turn"]) == (generation_of(record), record.get("turns", 0))
    return found if stands else None
