"""What ``install`` must know of a host's settings: which file, which events with which matchers, in which form.

Owns the shape of that table; each supported host has its row in its own ``settings`` module. No hook imports this
module.
"""

from __future__ import annotations

from typing import NamedTuple

Matchers = dict[str, str | None]
"""The events that our hook reads, each with the matcher that stands in the settings; None for no matcher."""

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")

SHARED_FILES = {USER: "settings.json", PROJECT: "settings.json"}
"""The files of a host that has no settings for one person in one project."""


class WantedEntry(NamedTuple):
    """One entry of our hook that belongs in the settings.

    is_awaited: whether the host waits for the hook; where it does not, it obeys no reply. of_agents: whether the hook
    is started for sub-agents alone.
    """

    event: str
    matcher: str | None
    is_awaited: bool = True
    of_agents: bool = False


class HostSettings(NamedTuple):
    """The settings of one host.

    files: the settings file of each scope. events: what our hook reads while the host waits. unawaited: what it reads
    while the host goes on, which may be heard in any order. enforced: what it reads besides where limits are held, of
    sub-agents alone; empty where the host does not name them. delegates: the event that announces a delegation;
    delegation: the tool that starts one, under every name it has had. per_second: the unit of its timeouts. exec_form:
    whether it starts a program without a shell. comments: whether its settings may have comments.
    """

    name: str
    files: dict[str, str]
    events: Matchers
    delegation: tuple[str, ...]
    delegates: str = "PreToolUse"
    unawaited: Matchers = {}  # noqa: RUF012  # never changed
    enforced: Matchers = {}  # noqa: RUF012  # never changed
    per_second: int = 1
    exec_form: bool = False
    comments: bool = False

    def entries(self, *, enforce: bool = False) -> list[WantedEntry]:
        """The entries as they stand in the settings; of one event, those that the host waits for come first."""
        return [
            *(WantedEntry(event, matcher) for event, matcher in self.events.items()),
            *(WantedEntry(event, matcher, of_agents=True) for event, matcher in self.enforced.items() if enforce),
            *(WantedEntry(event, matcher, is_awaited=False) for event, matcher in self.unawaited.items()),
        ]

    def wired_events(self) -> list[str]:
        """The events that have an entry, each once."""
        return [*self.events, *self.unawaited]
