"""What ``install`` must know of a host's settings: which file, which events with which matchers, in which form.

Owns the shape of that table; each supported host has its row in its own ``settings`` module. Must never open a file,
and no hook imports this module.
"""

from __future__ import annotations

from typing import NamedTuple

Matchers = dict[str, str | None]
"""The events that our hook reads, each with the matcher that stands in the settings; None for no matcher."""

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")

SHARED_FILES = {USER: "settings.json", PROJECT: "settings.json"}
"""The files of a host that has no settings for one person in one project."""


class HostSettings(NamedTuple):
    """The settings of one host.

    folder: the folder of its settings, in a project and at home. files: the settings file of each scope. events: what
    our hook reads; tools: what it also reads when tools are tracked. delegates: the event that announces a delegation;
    delegation: the tool that starts one, under every name it has had. per_second: the unit of its timeouts. exec_form:
    whether it starts a program without a shell. comments: whether its settings may have comments. home: the variable
    that names the user's folder, if there is one.
    """

    name: str
    folder: str
    files: dict[str, str]
    events: Matchers
    delegation: tuple[str, ...]
    delegates: str = "PreToolUse"
    tools: Matchers = {}  # noqa: RUF012  # never changed
    home: str | None = None
    per_second: int = 1
    exec_form: bool = False
    comments: bool = False

    def event_matchers(self, *, tools: bool) -> Matchers:
        """The events with their matchers, as they stand in the settings."""
        return {**self.events, **self.tools} if tools else self.events
