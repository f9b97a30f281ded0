"""Functions for the most used operations: each finds the root again and calls a method of ``Sessions``."""

from __future__ import annotations

from gaia_sessions.config import DEFAULT_HOURS

from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Unpack

    from gaia_sessions.session.policy import Decision
    from gaia_sessions.session.schema import Record

    from .at import Root
    from .cleaning import CleanupReport
    from .listing import Line, Wanted


def create_session(  # noqa: PLR0913  # the parameters of the method
    agent_name: str = "unknown",
    purpose: str = "general",
    metadata: Mapping[str, object] | None = None,
    *,
    agent_id: str | None = None,
    parent_id: str | None = None,
    max_depth: int | None = None,
    max_tokens: int | None = None,
    tools: Iterable[str] | None = None,
    system_prompt: str | None = None,
    continues: str | None = None,
    app: str | None = None,
    user: str | None = None,
    state: Mapping[str, object] | None = None,
    root: Root = None,
) -> str:
    """Creates a session and returns its ID: see ``Sessions.create``."""
    return Sessions(root).create(
        agent_name,
        purpose,
        metadata,
        agent_id=agent_id,
        parent_id=parent_id,
        max_depth=max_depth,
        max_tokens=max_tokens,
        tools=tools,
        system_prompt=system_prompt,
        continues=continues,
        app=app,
        user=user,
        state=state,
    )


def update_state(  # noqa: PLR0913  # the parameters of the method
    agent_id: str,
    phase: str | None = None,
    metadata: Mapping[str, object] | None = None,
    error: str | None = None,
    *,
    resume_ready: bool | None = None,
    max_tokens: int | None = None,
    if_revision: int | None = None,
    question: str | None = None,
    root: Root = None,
) -> Record:
    """Changes a session and returns the new record: see ``Sessions.update``."""
    return Sessions(root).update(
        agent_id,
        phase,
        metadata,
        error,
        resume_ready=resume_ready,
        max_tokens=max_tokens,
        if_revision=if_revision,
        question=question,
    )


def should_resume(agent_id: str, *, root: Root = None) -> bool:
    """Returns whether a session can be resumed: see ``Sessions.should_resume``."""
    return Sessions(root).should_resume(agent_id)


def get_session(agent_id: str, *, root: Root = None) -> Record | None:
    """Returns the record as it is stored, or None: see ``Sessions.get``."""
    return Sessions(root).get(agent_id)


def finalize_session(
    agent_id: str, outcome: str, summary: str | None = None, *, error: str | None = None, root: Root = None
) -> Record:
    """Ends a session and returns the record: see ``Sessions.finalize``."""
    return Sessions(root).finalize(agent_id, outcome, summary, error=error)


def explain_resume(agent_id: str, *, root: Root = None) -> Decision:
    """Returns the decision about resuming with every check: see ``Sessions.explain_resume``."""
    return Sessions(root).explain_resume(agent_id)


def list_sessions(*, root: Root = None, **wanted: Unpack[Wanted]) -> Iterator[Line]:
    """Returns an iterator of summaries, the latest activity first: see ``Sessions.list``."""
    return Sessions(root).list(**wanted)


def cleanup_sessions(
    hours: float = DEFAULT_HOURS,
    *,
    dry_run: bool = False,
    corrupt: bool = False,
    app: str | None = None,
    root: Root = None,
) -> CleanupReport:
    """Removes sessions that were not updated for ``hours``: see ``Sessions.cleanup``."""
    return Sessions(root).cleanup(hours, dry_run=dry_run, corrupt=corrupt, app=app)
