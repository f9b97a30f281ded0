"""Gemini CLI's settings, as seen in runs of 0.61.0. Only ``install`` imports this module."""

from __future__ import annotations

from gaia_sessions.hosts import GEMINI_CLI
from gaia_sessions.hosts.settings import SHARED_FILES, HostSettings

SETTINGS = HostSettings(
    GEMINI_CLI,
    SHARED_FILES,
    {
        "SessionStart": None,
        "BeforeTool": "invoke_agent",
        "AfterTool": "invoke_agent",
        "AfterAgent": None,
        "SessionEnd": None,
    },
    delegation=("invoke_agent",),
    delegates="BeforeTool",
    per_second=1000,
    comments=True,  # the client removes comments before it parses
)
