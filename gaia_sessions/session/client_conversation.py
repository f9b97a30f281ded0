"""Clients that are run as commands, such as ``claude``: what each tells of itself, and where its conversation stands.

A client keeps what was said too, and can go on with that. It is told only what is new if its conversation ends with the
message that the session ends with; otherwise it begins another one. Pure.
"""

from __future__ import annotations

from .runs import updated_run
from .transcript import generation_of, last_seq
from .usage import with_consumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from .schema import Conversation, Record, Run

    Standing = tuple[int, int]

    class Whereabouts(TypedDict):
        """Where a client has its conversation: which client, the ID of the conversation, and where the client ran."""

        preset: str
        id: str
        cwd: str


class Told:
    """What a client that is a command tells of itself.

    figures: what its main agent used so far, ``consumed``, and its ``model``, as fields of the run; empty if nothing is
    known. conversation: where it has what was said, if that ends with its last words. untouched: where that is which it
    did not continue, and which holds as long as it adds nothing. began: where the session stood when it began, as
    ``standing_of`` says it.
    """

    __slots__ = ("began", "conversation", "figures", "untouched")

    def __init__(
        self,
        figures: Run | None = None,
        conversation: Whereabouts | None = None,
        began: Standing | None = None,
        untouched: Whereabouts | None = None,
    ) -> None:
        self.figures: Run = figures or {}
        self.untouched = untouched
        self.conversation = conversation
        self.began = began


def standing_of(record: Record) -> Standing:
    """The generation of the transcript, and the number of its last message."""
    return generation_of(record), last_seq(record)


def with_figures(record: Record, run: Run, told: Told) -> tuple[Record, Run]:
    """``record`` and its ``run`` with the figures that a client tells."""
    if "consumed" not in told.figures:
        return record, run
    counted = with_consumed(record, run["run"], told.figures)
    return counted, updated_run(counted, run)


def conversation_fields(record: Record, told: Told, messages: int, *, is_kept: bool) -> Run:
    """The field of a run whose end adds so many ``messages`` to ``record``, which the client has by then.

    Empty where somebody else has added or removed messages since it began. is_kept: whether ``record`` has what the
    client was told and said.
    """
    generation, seq = standing_of(record)
    place = (told.conversation if is_kept else None) or (None if messages else told.untouched)
    if place is None or told.began != (generation, seq):
        return {}
    return {"conversation": {**place, "generation": generation, "seq": seq + messages}}


def conversation_to_go_on(record: Record, preset: str, earlier: Sequence[Run]) -> Conversation | None:
    """Where the client of ``preset`` has all that was said in ``record`` so far, and nothing else; None if nowhere.

    ``earlier`` are the runs so far. The latest of them has it, if it was the latest to say anything.
    """
    found = earlier[-1].get("conversation") if earlier else None
    if found is None or found["preset"] != preset:
        return None
    return found if (found["generation"], found["seq"]) == standing_of(record) else None
