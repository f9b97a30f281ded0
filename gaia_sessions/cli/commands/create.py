"""``create``: create a session."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, creating
from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare
from gaia_sessions.cli.option_values import (
    METADATA,
    PAIRS,
    STDIN,
    allowed_tools,
    collect_metadata,
    keys_of,
    text_or_stdin,
    with_owner,
    with_tools,
)
from gaia_sessions.cli.render import cancellation, plain
from gaia_sessions.cli.typed_ids import LATEST
from gaia_sessions.errors import UsageError
from gaia_sessions.session.requests import NewSession
from gaia_sessions.session.transcript import SYSTEM_PROMPT_LIMIT
from gaia_sessions.system.mounts import network_kind

if TYPE_CHECKING:
    from gaia_sessions.api.sessions import Sessions
    from gaia_sessions.cli.call import Call

AGENT = click.option("--agent", metavar="NAME", default="unknown", help="Agent type.  [default: unknown]")
PURPOSE = click.option("--purpose", metavar="TEXT", default="general", help="What the work is for.  [default: general]")


@declare(
    "create --agent terraform-architect --purpose approval_workflow",
    "create --agent scribe -m task_id=T001",
    "create --max-tokens 200000 --tools Read,Grep",
    "create --system-prompt 'You review Terraform.'",
    'create --id agent-123 --metadata \'{"tags": ["infra"]}\'',
)
@AGENT
@PURPOSE
@click.option("--id", "agent_id", metavar="ID", help="ID to use.  [default: generated]")
@click.option("--parent", metavar="ID", help="Session above the new session.")
@click.option(
    "--max-depth", metavar="N", type=click.IntRange(min=0), help="Greatest depth of any session below.  [default: 8]"
)
@click.option(
    "--max-tokens", metavar="N", type=click.IntRange(min=1), help="Budget: how many tokens the session may use."
)
@with_tools
@click.option(
    "--system-prompt", metavar="TEXT|-", help="What the agent is told first, at most 16 KiB; - reads standard input."
)
@click.option("--continues", metavar="ID", help="Continue this session, which has ended, in the new session.")
@with_owner
@METADATA
@PAIRS
def command(
    call: Call,
    *,
    agent: str,
    purpose: str,
    agent_id: str | None,
    parent: str | None,
    max_depth: int | None,
    max_tokens: int | None,
    tools: list[str] | None,
    available: list[str] | None,
    system_prompt: str | None,
    continues: str | None,
    app: str | None,
    user: str | None,
    state: str | None,
    metadata: tuple[str, ...],
    pairs: tuple[str, ...],
) -> None:
    """Create a session and print its ID.

    The depth of a session is the number of sessions above it. At most 5 children of one parent can be working at once.
    """
    refuse_reserved_id(agent_id)
    if system_prompt == STDIN in metadata:
        raise UsageError(
            "--system-prompt - and --metadata - cannot be combined", "standard input can be read only once"
        )
    values = collect_metadata(metadata, pairs)
    if system_prompt is not None:
        system_prompt = text_or_stdin(system_prompt, "--system-prompt", SYSTEM_PROMPT_LIMIT, "the system prompt")
    sessions = call.sessions()
    parent_id, is_elsewhere = parent_of(call, parent)
    here = None if is_elsewhere else parent_id
    is_new_root = sessions.folder is not None and not os.path.lexists(sessions.folder)
    new = NewSession(
        agent,
        purpose,
        values,
        agent_id=agent_id,
        parent_id=parent_id,
        is_parent_elsewhere=is_elsewhere,
        max_depth=max_depth,
        max_tokens=max_tokens,
        allowed_tools=allowed_tools(call, tools, available, agent, here),
        system_prompt=system_prompt,
        continues=continued(call, continues),
        app=app,
        user=user,
        delta=creating.first_delta(sessions.config, keys_of(state)),
    )
    new_id = at.write(sessions, creating.create_new, new)
    warn_if_network(sessions)
    _warn_if_cancelled(call, here, new_id)
    if is_new_root:
        _print_new_root(call, sessions.root)
    call.print_result({"agent_id": new_id}, lambda: [new_id])


def parent_of(call: Call, typed: str | None) -> tuple[str | None, bool]:
    """Returns the session above, and whether it is in the other root; then nobody looks it up, as a notice says."""
    if typed is None:
        return None, False
    sessions, found = call.find(typed, writes=True, needs_server=True)
    if sessions is call.sessions():
        return found, False
    message = f"{found} is in {sessions.root}: its limits and its cancellation do not reach the new session"
    hint = f"for a session that they reach, add --root {quote(sessions.root)}"
    output.print_notice("parent_elsewhere", message, hint, as_json=call.as_json)
    return found, True


def continued(call: Call, typed: str | None) -> str | None:
    """Returns the ID of the session to continue; raises ``UsageError`` if it is in the other root."""
    if typed is None:
        return None
    sessions, found = call.find(typed, writes=True, needs_server=True)
    if sessions is not call.sessions():
        message = f"{found} is in {sessions.root}, and a session can only be continued in its own root"
        raise UsageError(message, f"add --root {quote(sessions.root)}")
    return found


def refuse_reserved_id(agent_id: str | None) -> None:
    """Raises ``UsageError`` for the word ``latest``."""
    if agent_id == LATEST:
        message = f"the ID {LATEST!r} is reserved: it means the latest session"
        raise UsageError(message, "choose another ID, or leave out --id to get a new one")


def _print_new_root(call: Call, root: str) -> None:
    """Prints where the root was created, if a person reads stderr."""
    if output.is_stderr_terminal():
        output.print_notice("root_created", *plain.new_root_notice(root), as_json=call.as_json)


def _warn_if_cancelled(call: Call, parent_id: str | None, new_id: str) -> None:
    """Prints a notice if the new session is cancelled because its parent is."""
    if parent_id is not None and call.sessions().cancellation(new_id) is not None:
        output.print_notice("cancelled", *cancellation.created_notice(new_id), as_json=call.as_json)


def warn_if_network(sessions: Sessions) -> None:
    """Prints a warning if the root is on a network file system."""
    kind = network_kind(sessions.folder) if sessions.folder is not None else None
    if kind:
        output.print_to_stderr(plain.network_warning(sessions.root, kind))
