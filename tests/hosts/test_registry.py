"""The table of hosts: each has a module of the promised type, and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gaia_sessions import hosts
from gaia_sessions.hosts import claude_code, codex, gemini_cli, qwen_code

if TYPE_CHECKING:
    from gaia_sessions.hosts.protocol import HostModule

# mypy compares each module with the protocol here: `hosts` imports by name, which no type checker can follow.
MODULES: dict[str, HostModule] = {
    hosts.CLAUDE_CODE: claude_code,
    hosts.CODEX: codex,
    hosts.QWEN_CODE: qwen_code,
    hosts.GEMINI_CLI: gemini_cli,
}


def test_each_host_of_the_table_is_compared_with_the_protocol() -> None:
    assert list(MODULES) == list(hosts.HOSTS)


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_the_module_of_a_host_is_the_one_of_its_name(name: str) -> None:
    assert hosts.module_of(name) is MODULES[name]


@pytest.mark.parametrize("name", hosts.HOSTS)
def test_each_host_has_settings_that_install_writes(name: str) -> None:
    assert hosts.settings_of(name).name == name
