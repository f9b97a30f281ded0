"""``update``: record the progress of the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gaia_sessions.api import at, updating
from gaia_sessions.cli import output
from gaia_sessions.cli.call import HOST_AGENT, IF_REVISION, declare
from gaia_sessions.cli.option_values import METADATA, PAIRS, collect_metadata
from gaia_sessions.cli.render import cancellation, plain
from gaia_sessions.session.phases import is_abandoned

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare(
    "update agent-123 --phase approval --question 'May I drop it?'",
    "update agent-123 -m finding='issue A' --error 'no such host'",
    "update agent-123 --metadata - --if-revision 4 < findings.json",
)
@click.argument("agent_id", metavar="ID", required=False)
@HOST_AGENT
@click.option("--phase", metavar="PHASE", help="New phase; a final phase ends the session.")
@click.option("--question", metavar="TEXT", help="Question to a person. Needs --phase approval.")
@METADATA
@PAIRS
@click.option("--error", metavar="TEXT", help="Count an error and store its text.")
@click.option(
    "--resume-ready/--no-resume-ready", default=None, help="Allow or forbid resuming until the phase changes."
)
@click.option(
    "--max-tokens",
    metavar="N",
    type=click.IntRange(min=1),
    help="New budget: how many tokens the session may use in all.",
)
@IF_REVISION
def command(
    call: Call,
    agent_id: str | None,
    host_agent: tuple[str, str] | None,
    metadata: tuple[str, ...],
    pairs: tuple[str, ...],
    *,
    phase: str | None,
    question: str | None,
    error: str | None,
    resume_ready: bool | None,
    max_tokens: int | None,
    if_revision: int | None,
) -> None:
    """Update a session: phase, metadata, errors, budget. Without options, only record activity.

    `pending` shows the text of --question to a person, and the hooks show the text to the main agent.
    """
    new_metadata = collect_metadata(metadata, pairs) if metadata or pairs else None
    session_id = call.chosen_session(agent_id, host_agent)
    written = at.write(
        call.sessions(),
        updating.update,
        session_id,
        phase,
        new_metadata,
        error,
        resume_ready=resume_ready,
        max_tokens=max_tokens,
        if_revision=if_revision,
        question=question,
    )
    record = written.record
    if written.cancellation is not None and is_abandoned(record["phase"]) and phase != record["phase"]:
        output.print_notice("cancelled", *cancellation.abandoned_notice(record), as_json=call.as_json)
    call.print_result(record, lambda: [plain.update_line(record, written.decision(), written.now)])
