"""What the module of a host must have. Only a type checker imports this module, so it costs a hook nothing.

``module_of`` promises this type, and ``tests/hosts/test_registry.py`` checks each module against it. Must never contain
code that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.session.events import Event

    from .payload import HookPayload, Payload


class HostModule(Protocol):
    """One host: how its payloads are read, and which replies it obeys."""

    @property
    def GENERAL(self) -> str:  # noqa: N802  # constants of a module
        """The agent type that the host uses where a delegation names none."""

    @property
    def EVENTS_BY_HOOK(self) -> Mapping[str, tuple[str, ...]]:  # noqa: N802
        """For each hook, the names of the host's events that it reads; it passes over all others."""

    @property
    def SUPPORTED_REPLIES(self) -> frozenset[str]:  # noqa: N802
        """The kinds of events to which the host obeys a reply."""

    def events_of(self, hook: str, message: HookPayload, *, tools: bool = False) -> list[Event]:
        """The events that ``message`` reports, as far as ``hook`` reads them. Raises nothing, whatever it holds.

        tools: also the events about the tools that a sub-agent uses.
        """

    @property
    def rewrite_prompt(self) -> Callable[[Payload, str], dict[str, object]] | None:
        """The part of a reply that makes the host delegate with a text added to the prompt of its tool's input.

        None where the host obeys no such reply; then ``events.DELEGATE`` is not among the supported ones.
        """
