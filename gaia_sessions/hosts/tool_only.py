"""Delegations of hosts that tell of them by their tool alone: where one begins, and where it returns.

Owns what Qwen Code, Gemini CLI, Factory and Copilot have in common: no news of the agent itself can be
joined to its delegation, so what the delegation returned stands for the stop, and the agent counts as
begun when it was delegated, unless that is refused. Knows no host's own words.
"""

from __future__ import annotations

from gaia_sessions.session import events

from .marker import BRIEFING, OPENING
from .payload import host_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.events import Event

    from .payload import Told

_DIGITS = 32
_OURS = "content-"


def unannounced(told: Told, keys: dict[str, object], programs: tuple[str, ...]) -> list[Event]:
    """A delegation of whose start nothing more is told; ``keys`` say which, and are empty for any other tool.

    programs: what runs the host's agents. The id comes again: made of what was asked it is the same for the same
    words, and the model that made it up may count from 0 in every turn.
    """
    if not keys:
        return []
    known = {**keys, "recurring": True, "unannounced": True, "host_process": host_process(programs)}
    return [told.delegation(told.asked.get("prompt"), told.asked.get("description"), **known)]


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


def keys_by_content(told: Told, agent_name: str, prompt: str) -> dict[str, object]:
    """Which delegation is meant: by the id of the host if it told one, else by what was asked of whom."""
    return {"tool_use_id": _id_of_host(told) or content_key(agent_name, prompt), "agent_name": agent_name}


def _id_of_host(told: Told) -> str | None:
    """The id it gave; none if that could be taken for one of ours."""
    told_id = told.key("tool_use_id")
    return None if told_id and told_id.startswith(_OURS) else told_id


def content_key(agent_name: str, prompt: str) -> str:
    """What stands for the id of a delegation where the host gives none: the same for the same words.

    What we, or another run of ours, put at the end of a prompt does not count: a host may tell of the
    return with the prompt as it was rewritten.
    """
    from hashlib import sha256  # loads OpenSSL: only for hosts without ids

    asked = "\0".join((agent_name, _without_our_words(prompt)))
    return f"{_OURS}{sha256(asked.encode()).hexdigest()[:_DIGITS]}"


def _without_our_words(prompt: str) -> str:
    while (asked := _without_the_last_of_ours(prompt)) != prompt:
        prompt = asked
    return prompt


def _without_the_last_of_ours(prompt: str) -> str:
    """Only what ends the prompt, and is whole, was put there by us: the same words elsewhere are somebody's own."""
    from gaia_sessions.hosts.marker import END_OF_DATA, NOTE

    if prompt.endswith(f"\n\n{NOTE}"):
        return prompt.removesuffix(f"\n\n{NOTE}")
    if not prompt.endswith(f"\n{END_OF_DATA}"):
        return prompt
    return prompt.rpartition(f"\n\n{OPENING} {BRIEFING} ")[0] or prompt
