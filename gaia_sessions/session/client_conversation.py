"""Clients that run as commands, such as ``claude``: what a client reports, and where its conversation is.

If a client's own conversation ends with the session's last message, the client gets only what is new.
If not, the client begins another conversation.
"""

from __future__ import annotations

from .runs import updated_run
from .transcript import generation_of, last_seq
from .usage import with_consumed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from .schema import Below, Conversation, Record, Run

    Standing = tuple[int, int]

    class Whereabouts(TypedDict):
        """A client, the ID of its conversation, and the folder in which it ran."""

        preset: str
        id: str
        cwd: str


class Told:
    """What is known of a client that is a command: what it reports of itself, and the agents ``below`` it."""

    __slots__ = ("began", "below", "conversation", "figures", "untouched")

    def __init__(
        self,
        figures: Run | None = None,
        conversation: Whereabouts | None = None,
        began: Standing | None = None,
        untouched: Whereabouts | None = None,
    ) -> None:
        self.figures: Run = figures or {}  # ``consumed`` and ``model`` of the main agent, if known
        self.untouched = untouched  # an earlier conversation; still valid if this run adds no message
        self.conversation = conversation  # set if it ends with the client's last words
        self.began = began  # ``standing_of`` at the beginning
        self.below: Below | None = None


def standing_of(record: Record) -> Standing:
    """Returns the generation of the transcript, and the number of its last message."""
    return generation_of(record), last_seq(record)


def with_figures(record: Record, run: Run, told: Told) -> tuple[Record, Run]:
    """Adds the figures that a client reports to the record and its run."""
    if "consumed" not in told.figures:
        return record, run
    counted = with_consumed(record, run["run"], told.figures)
    return counted, updated_run(counted, run)


def conversation_fields(record: Record, told: Told, messages: int, *, is_kept: bool) -> Run:
    """Returns the ``conversation`` of a run that adds ``messages``; empty if the client lacks some message."""
    generation, seq = standing_of(record)
    # is_kept: the record has what the client was told and said. If not, only the untouched conversation is complete.
    place = (told.conversation if is_kept else None) or (None if messages else told.untouched)
    if place is None or told.began != (generation, seq):  # or somebody else changed the transcript
        return {}
    return {"conversation": {**place, "generation": generation, "seq": seq + messages}}


def conversation_to_go_on(record: Record, preset: str, earlier: Sequence[Run]) -> Conversation | None:
    """Returns the client's conversation if it has exactly the messages of ``record``; else None."""
    found = earlier[-1].get("conversation") if earlier else None  # only the latest run can have it
    if found is None or found["preset"] != preset:
        return None
    return found if (found["generation"], found["seq"]) == standing_of(record) else None
