"""The sessions of one root, and what programs can do with them: a table of operations.

The docstring of each operation makes ``docs/python.md``; the comments above the rows are the subjects of that page.
"""

from __future__ import annotations

from .at import Place
from .rows import Calls, Changes, Later, Reads, Writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (
        answering,
        briefing,
        cancelling,
        charging,
        cleaning,
        command,
        copying,
        creating,
        families,
        figures_of_all,
        importing,
        keys,
        listing,
        pending_work,
        permitting,
        reconciling,
        records,
        remembering,
        removal,
        reporting,
        showing,
        standing,
        sums,
        todo_list,
        transcript_messages,
        turns,
        updating,
        waiting,
    )
else:
    answering, pending_work, briefing = Later("answering"), Later("pending_work"), Later("briefing")
    cancelling, charging, cleaning = Later("cancelling"), Later("charging"), Later("cleaning")
    command, copying, creating, families = Later("command"), Later("copying"), Later("creating"), Later("families")
    figures_of_all, importing, keys = Later("figures_of_all"), Later("importing"), Later("keys")
    listing, permitting, reconciling = Later("listing"), Later("permitting"), Later("reconciling")
    records, remembering, removal = Later("records"), Later("remembering"), Later("removal")
    reporting, showing, standing = Later("reporting"), Later("showing"), Later("standing")
    sums, todo_list = Later("sums"), Later("todo_list")
    transcript_messages, turns, updating = Later("transcript_messages"), Later("turns"), Later("updating")
    waiting = Later("waiting")


class Sessions(Place):
    """Reads and changes the sessions of one root, the folder that holds them.

    You can copy and pickle the object. The copy has the same root, but no ``flags``.

    When a method that writes returns, the change is durable. Methods that only read create nothing. A record is a dict
    with the keys of [`state.json`](record.md#the-record). If you change the dict, nothing on disk changes. To write
    only if nobody else wrote after you read, pass ``if_revision=record["revision"]`` to ``update``.

    A time is a datetime or a text [as on the command line](commands.md#times). A datetime without an offset is in UTC.
    IDs are whole: only commands accept ``latest`` and parts of an ID.

    Any method can raise the first five [errors](errors.md#errors-in-python) of this list; a method that writes can
    raise all. Each method lists only its other errors.

    Args:
        root: the folder, as a text or a path, or the URL of a server. Without it, the root is
            [found as on the command line](record.md#where-sessions-are-stored).
        flags: [settings](settings.md) that override all others, for example ``{"lock_timeout": 2}``.

    Raises:
        InvalidId: the text cannot be an ID.
        SessionNotFound: no session has this ID.
        CorruptSession: the record of the session, or of a session above, cannot be used.
        StoreFailure: the system refused the operation.
        NewerSchema: a later version wrote the record.
        SessionFinal: the session has ended, so it cannot be changed.
        TooLarge: the record or a text would be larger than its limit.
        LockTimeout: another process did not release a lock in time.
        DurabilityUnknown: the change is written, but a power failure may undo it.

    Example:
        from gaia_sessions import Sessions

        sessions = Sessions("work")  # the examples of the methods below begin with these lines
    """

    __slots__ = ()

    # Create and end
    create = Writes(creating.create)
    ensure = Writes(creating.ensure)
    update = Changes(updating.update)
    finalize = Changes(updating.finalize)

    # Answer and resume
    pending = Reads(pending_work.pending)
    approve = Changes(answering.approve)
    deny = Changes(answering.deny)
    should_resume = Reads(standing.should_resume)
    explain_resume = Reads(standing.explain_resume)

    # Look and wait
    get = Reads(records.get)
    show = Reads(showing.show)
    list = Reads(listing.summaries)
    tree = Reads(families.tree)
    subtree = Reads(families.subtree)
    children = Reads(families.children)
    events = Reads(records.events)
    report = Reads(reporting.report)
    wait = Calls(waiting.wait)
    stats = Reads(figures_of_all.stats)
    usage_by_agent = Reads(sums.usage_by_agent)

    # Messages and turns
    messages = Reads(transcript_messages.messages)
    add_message = Writes(transcript_messages.add_message)
    add_turn = Writes(turns.add_turn)
    context = Reads(briefing.context)
    remembered = Reads(remembering.remembered)
    compact = Writes(remembering.compact)
    reset = Writes(turns.reset)

    # Shared state
    state = Reads(keys.state)
    change_state = Writes(keys.change_state)

    # Tools and the guard
    choose_tools = Reads(permitting.choose_tools)
    check_tool = Reads(permitting.check_tool)
    guard = Reads(permitting.guard)

    # Budget, skills and todos
    usage = Reads(charging.usage)
    charge = Writes(charging.charge)
    set_token_total = Writes(charging.set_token_total)
    add_skill = Writes(charging.add_skill)
    todos = Reads(todo_list.todos)
    add_todo = Writes(todo_list.add_todo)
    set_todo_status = Writes(todo_list.set_todo_status)
    set_todos = Writes(todo_list.set_todos)

    # Cancel sessions
    cancel = Writes(cancelling.cancel)
    cancel_conversation = Writes(cancelling.cancel_conversation)
    cancellation = Reads(cancelling.cancellation)

    # Run a command
    run = Calls(command.run)

    # Clean up and repair
    cleanup = Calls(cleaning.cleanup)
    remove = Writes(removal.remove)
    repair = Calls(records.repair)
    reconcile = Calls(reconciling.reconcile)
    import_from = Calls(importing.import_from)
    copy_to = Calls(copying.copy_to)
