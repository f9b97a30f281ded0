"""``create``: create a session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.option_values import METADATA, PAIRS, collect_metadata
from gaia_sessions.cli.render import plain
from gaia_sessions.cli.typed_ids import LATEST
from gaia_sessions.errors import UsageError
from gaia_sessions.session.requests import NewSession
from gaia_sessions.system.mounts import network_kind

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call

AGENT = click.option("--agent", metavar="NAME", default="unknown", help="Kind of agent.  [default: unknown]")
PURPOSE = click.option("--purpose", metavar="TEXT", default="general", help="What the work is for.  [default: general]")


@declare(
    "create --agent terraform-architect --purpose approval_workflow",
    "create --agent scribe -m task_id=T001",
    'create --id agent-123 --metadata \'{"tags": ["infra"]}\'',
)
@AGENT
@PURPOSE
@click.option("--id", "agent_id", metavar="ID", help="ID to use.  [default: generated]")
@METADATA
@PAIRS
def command(
    call: Call, agent: str, purpose: str, agent_id: str | None, metadata: tuple[str, ...], pairs: tuple[str, ...]
) -> None:
    """Create a session and print its ID."""
    _refuse_reserved_id(agent_id)
    sessions = call.sessions()
    is_new_root = not os.path.lexists(sessions.root)
    new_id = sessions.create(NewSession(agent, purpose, collect_metadata(metadata, pairs), agent_id))
    warn_if_network(sessions.root)
    if is_new_root:
        _print_new_root(call, sessions.root)
    call.print_result({"agent_id": new_id}, lambda: [new_id])


def _refuse_reserved_id(agent_id: str | None) -> None:
    if agent_id == LATEST:
        message = f"--id {LATEST} is reserved: it means the most recent session"
        raise UsageError(message, "choose another ID, or omit --id to have one generated")


def _print_new_root(call: Call, root: str) -> None:
    """Says where the directory of the sessions was created, if a person reads stderr."""
    if output.is_stderr_terminal():
        output.print_notice("root_created", *plain.new_root_notice(root), as_json=call.as_json)


def warn_if_network(root: str) -> None:
    """Warns about a network file system while it is still easy to choose another place."""
    kind = network_kind(root)
    if kind:
        output.print_to_stderr(plain.network_warning(root, kind))
