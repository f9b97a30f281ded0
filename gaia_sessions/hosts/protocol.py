"""What the module of a host must have. Only a type checker imports this module, so it costs a hook nothing.

``module_of`` promises this type, and ``tests/hosts/test_registry.py`` checks each module against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict, final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.session.events import Event
    from gaia_sessions.session.report import RecentMessage
    from gaia_sessions.session.run_ends import ReportedEnd
    from gaia_sessions.session.schema import Run

    from .payload import HookPayload, Payload

    ReadConsumption = Callable[[Run, str | None, str | None, Callable[[], bool]], Run | None]
    """Reads ``consumed`` and the model of a run from one time to another; None if that is not known, or if it is late.

    The last argument says whether it is late, and is asked again and again.
    """
    ReviveByHost = Callable[[Run, "Work"], "HostRevival | None"]
    """How the host of a run goes on with it; None where the host has no such command, or none any more."""


class Work(TypedDict):
    """What a host is told about the session of a run. project: the folder of the project, if that is known."""

    agent_id: str
    agent_name: str
    project: str | None


@final
class HostRevival(TypedDict):
    """The host's own way to go on with a run.

    means: ``message``, ``workflow`` or ``delegation``. command: for a shell. prompt: what it says to the host.
    """

    means: str
    command: str
    prompt: str


class HostModule(Protocol):
    """One host: how its payloads are read, and which replies it obeys."""

    @property
    def GENERAL(self) -> str:  # noqa: N802  # the constant of a module
        """The agent type that the host uses where a delegation names none."""

    @property
    def EVENTS_BY_HOOK(self) -> Mapping[str, tuple[str, ...]]:  # noqa: N802  # see above
        """For each hook, the names of the host's events that it reads; it passes over all others."""

    @property
    def SUPPORTED_REPLIES(self) -> frozenset[str]:  # noqa: N802  # see above
        """The kinds of events to which the host obeys a reply."""

    @property
    def START_EVENT(self) -> str | None:  # noqa: N802  # see above
        """The host's event whose reply reaches a sub-agent that starts; other events may report the same start.

        None where no reply does; then ``events.START`` is not among the supported ones.
        """

    def events_of(self, hook: str, payload: HookPayload, *, tools: bool = False) -> list[Event]:
        """The events that ``payload`` reports, as far as ``hook`` reads them. Raises nothing, whatever it holds.

        tools: also the events about the tools that a sub-agent uses.
        """

    @property
    def rewrite_prompt(self) -> Callable[[Payload, str], dict[str, object]] | None:
        """The part of a reply that makes the host delegate with a text added to the prompt of its tool's input.

        None where the host obeys no such reply; then ``events.DELEGATE`` is not among the supported ones.
        """

    @property
    def end_in_files(self) -> Callable[[Run], ReportedEnd | None] | None:
        """How a run without an end ended, from the files that the host keeps about its agents; raises nothing.

        None where no such files are known.
        """

    @property
    def consumption(self) -> ReadConsumption | None:
        """What a run used in all, from the files that the host keeps about its agents; raises nothing.

        None where no such files are known.
        """

    @property
    def recent_messages(self) -> Callable[[Run, int], list[RecentMessage]] | None:
        """The latest messages of the agent of a run, at most so many, the oldest first, in full; raises nothing.

        None where no such files are known.
        """

    @property
    def revival(self) -> ReviveByHost | None:
        """The command by which a person lets the host go on with a run that was stopped; raises nothing.

        None where no such command is known; then a new delegation with the resume line is all that is left.
        """

    @property
    def WAKE_ADVICE(self) -> str | None:  # noqa: N802  # see above
        """How a conversation that continues wakes an agent of its own, as the end of "To go on with one, ...".

        The agents are named by their IDs. None where the host wakes no agent.
        """
