"""Delegations of hosts that tell of them by their tool alone: where one begins, and where it returns.

Owns what Qwen Code, Gemini CLI, Factory and Copilot have in common: no news of the agent itself can be
joined to its delegation, so what the delegation returned stands for the stop, and the agent counts as
begun when it was delegated. Knows no host's own words.
"""

from __future__ import annotations

from gaia_sessions import events

from .marker import BRIEFING, OPENING, read_mentions, read_requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.events import Event
    from gaia_sessions.strictjson import Json

    from .payload import Told

_DIGITS = 32


def delegation(told: Told, prompt: Json, description: Json, **keys: object) -> list[Event]:
    """A delegation begins; ``keys`` are what else the host told of it.

    What asks for a resume is read from ``prompt`` and ``description``; the prompt itself is not kept.
    """
    words = f"{prompt}\n{description}"
    asked = {"resume": read_requests(words) or None, "mentioned": read_mentions(words) or None}
    return [told.event(events.DELEGATE, purpose=told.purpose(description), **asked, **keys)]


def reported(told: Told, report: str, **keys: object) -> list[Event]:
    """It returned with ``report``, the last that its agent said."""
    stop = told.event(events.STOP, **keys, worked=True, **told.last_words(report))
    return [stop, *cut_short(told, **keys)]


def cut_short(told: Told, **keys: object) -> list[Event]:
    """It returned, and that is all that is known: its agent may have been stopped by a limit."""
    return [told.event(events.RETURNED, **keys, worked=True)]


def failed(told: Told, error: str, keys: dict[str, object], *, interrupted: bool = False) -> list[Event]:
    """Its agent was at work and failed, or somebody stopped it."""
    return [told.failure(error, **keys, worked=True, interrupted=interrupted or None)]


def session_end(told: Told) -> list[Event]:
    """The conversation is over. What was refused these hosts tell before, by the end of the main agent's turn."""
    return [told.event(events.SESSION_END, worked=True)]


def content_key(agent_name: str, prompt: str) -> str:
    """What stands for the id of a delegation where the host gives none: the same for the same words.

    What we, or another run of ours, put at the end of a prompt does not count: a host may tell of the
    return with the prompt as it was rewritten.
    """
    from hashlib import sha256  # loads OpenSSL: only for hosts without ids

    asked = "\0".join((agent_name, _without_our_words(prompt)))
    return f"content-{sha256(asked.encode()).hexdigest()[:_DIGITS]}"


def _without_our_words(prompt: str) -> str:
    from .speech import NOTE

    return prompt.partition(f"\n\n{NOTE}")[0].partition(f"\n\n{OPENING} {BRIEFING} ")[0]
