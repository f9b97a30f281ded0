"""The table of hosts: each has a module with what is known of it, and settings."""

from __future__ import annotations

from gaia_sessions import hosts
from tests.table import table


@table("name", hosts.HOSTS)
def test_each_host_has_a_module_of_its_name_that_says_what_it_is(name: str) -> None:
    assert isinstance(hosts.host_named(name), hosts.Host)


@table("name", hosts.HOSTS)
def test_each_host_has_settings_that_install_writes(name: str) -> None:
    assert hosts.settings_of(name).name == name
