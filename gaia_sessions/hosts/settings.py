"""What ``install`` must know of a host's settings: files, events, matchers, form. No hook imports it."""

from __future__ import annotations

from typing import NamedTuple

Matchers = dict[str, str | None]
"""The events that our hook reads, each with its matcher in the settings; None for no matcher."""

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")

SHARED_FILES = {USER: "settings.json", PROJECT: "settings.json"}
"""The files of a host that has no separate settings for one person in one project."""


class WantedEntry(NamedTuple):
    """One entry of our hook that belongs in the settings."""

    event: str
    matcher: str | None
    # Whether the host waits for the hook. If not, the host obeys no reply.
    is_awaited: bool = True
    # Whether the host starts the hook for sub-agents alone.
    of_agents: bool = False


class HostSettings(NamedTuple):
    """The settings of one host."""

    name: str
    # The settings file of each scope.
    files: dict[str, str]
    # The events for which the host waits.
    events: Matchers
    # The tool that starts a sub-agent, under each name that the tool has had.
    delegation: tuple[str, ...]
    # The event that announces a delegation.
    delegates: str = "PreToolUse"
    # The events for which the host does not wait. They may arrive in any order.
    unawaited: Matchers = {}  # noqa: RUF012  # never changed
    # The additional events of sub-agents if limits are enforced; empty if the host names no agent.
    enforced: Matchers = {}  # noqa: RUF012  # never changed
    # The unit of the host's timeouts.
    per_second: int = 1
    # Whether the host starts a program without a shell.
    exec_form: bool = False
    # Whether the settings may have comments.
    comments: bool = False

    def entries(self, *, enforce: bool = False) -> list[WantedEntry]:
        """Returns the entries in the order of the settings: for one event, awaited entries come first."""
        return [
            *(WantedEntry(event, matcher) for event, matcher in self.events.items()),
            *(WantedEntry(event, matcher, of_agents=True) for event, matcher in self.enforced.items() if enforce),
            *(WantedEntry(event, matcher, is_awaited=False) for event, matcher in self.unawaited.items()),
        ]

    def wired_events(self) -> list[str]:
        """Returns the events that have an entry, each once."""
        return [*self.events, *self.unawaited]
