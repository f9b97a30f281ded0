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

    from .payload import HookPayload

_DIGITS = 32
_CONTENT_PREFIX = "content-"


def delegation_events(message: HookPayload, keys: dict[str, object], programs: tuple[str, ...]) -> list[Event]:
    """A delegation of whose start nothing more is told; ``keys`` say which, and are empty for any other tool.

    programs: what runs the host's agents. The id comes again: made of what was asked it is the same for the same
    words, and the model that made it up may count from 0 in every turn.
    """
    if not keys:
        return []
    all_keys = {**keys, "recurring": True, "unannounced": True, "host_process": host_process(programs)}
    return [message.delegation(message.asked.get("prompt"), message.asked.get("description"), **all_keys)]


def report_events(message: HookPayload, report: str, **keys: object) -> list[Event]:
    """It returned with ``report``, the last that its agent said."""
    stop = message.event(events.STOP, **keys, worked=True, **message.last_message_keys(report))
    return [stop, *return_events(message, **keys)]


def return_events(message: HookPayload, **keys: object) -> list[Event]:
    """It returned, and that is all that is known: its agent may have been stopped by a limit."""
    return [message.event(events.RETURNED, **keys, worked=True)]


def failure_events(
    message: HookPayload, error: str, keys: dict[str, object], *, interrupted: bool = False
) -> list[Event]:
    """Its agent was at work and failed, or somebody stopped it."""
    return [message.failure(error, **keys, worked=True, interrupted=interrupted or None)]


def delegation_keys(message: HookPayload, agent_name: str, prompt: str) -> dict[str, object]:
    """Which delegation is meant: by the id of the host if it told one, else by what was asked of whom."""
    return {"tool_use_id": _host_tool_use_id(message) or content_key(agent_name, prompt), "agent_name": agent_name}


def _host_tool_use_id(message: HookPayload) -> str | None:
    """The id it gave; none if that could be taken for one of ours."""
    tool_use_id = message.key("tool_use_id")
    return None if tool_use_id and tool_use_id.startswith(_CONTENT_PREFIX) else tool_use_id


def content_key(agent_name: str, prompt: str) -> str:
    """What stands for the id of a delegation where the host gives none: the same for the same words.

    What we, or another run of ours, put at the end of a prompt does not count: a host may tell of the
    return with the prompt as it was rewritten.
    """
    from hashlib import sha256  # loads OpenSSL: only for hosts without ids

    content = "\0".join((agent_name, _without_additions(prompt)))
    return f"{_CONTENT_PREFIX}{sha256(content.encode()).hexdigest()[:_DIGITS]}"


def _without_additions(prompt: str) -> str:
    while (shorter := _without_last_addition(prompt)) != prompt:
        prompt = shorter
    return prompt


def _without_last_addition(prompt: str) -> str:
    """Only what ends the prompt, and is whole, was put there by us: the same words elsewhere are somebody's own."""
    from gaia_sessions.hosts.marker import END_OF_DATA, NOTE

    if prompt.endswith(f"\n\n{NOTE}"):
        return prompt.removesuffix(f"\n\n{NOTE}")
    if not prompt.endswith(f"\n{END_OF_DATA}"):
        return prompt
    return prompt.rpartition(f"\n\n{OPENING} {BRIEFING} ")[0] or prompt
