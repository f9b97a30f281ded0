"""The sessions of one root, and what can be done with them: a table of operations, for programs.

Each row makes a method of an operation, whose docstring is the reference in ``docs/python.md``.
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
    command, creating, families = Later("command"), Later("creating"), Later("families")
    figures_of_all, importing, keys = Later("figures_of_all"), Later("importing"), Later("keys")
    listing, permitting, reconciling = Later("listing"), Later("permitting"), Later("reconciling")
    records, remembering, removal = Later("records"), Later("remembering"), Later("removal")
    reporting, showing, standing = Later("reporting"), Later("showing"), Later("standing")
    sums, todo_list = Later("sums"), Later("todo_list")
    transcript_messages, turns, updating = Later("transcript_messages"), Later("turns"), Later("updating")
    waiting = Later("waiting")


class Sessions(Place):
    """The sessions of one directory, to be read and changed.

    ``root`` is that directory; without it, it is found as [on the command
    line](record.md#where-sessions-are-stored). ``flags`` are [settings](settings.md#settings) that take precedence
    over all others, for example ``{"lock_timeout": 2}``. It can be copied and pickled; where it arrives, the settings
    of that place hold.

    When a method that writes returns, the change is durable. Methods that only read create nothing. Records are dicts
    with the keys of [`state.json`](record.md#the-record), and values: changing one changes nothing on disk. To write
    only if nobody else has written since, pass ``if_revision=record["revision"]`` to ``update``. A time is a datetime,
    UTC if it has no offset, or a text [as on the command line](commands.md#times). What is returned is under
    [Shapes](#shapes).

    IDs are whole: ``latest`` and parts of one are for commands.

    Every method may raise [errors](#errors): ``InvalidId``, ``SessionNotFound``, ``CorruptSession``, ``StoreFailure``;
    those that write ``NewerSchema``, ``TooLarge``, ``LockTimeout`` and ``DurabilityUnknown`` too. What else one raises
    stands with it.
    """

    __slots__ = ()

    create = Writes(creating.create)
    ensure = Writes(creating.ensure)
    state = Reads(keys.state)
    change_state = Writes(keys.change_state)
    choose_tools = Reads(permitting.choose_tools)
    check_tool = Reads(permitting.check_tool)
    guard = Reads(permitting.guard)
    get = Reads(records.get)
    show = Reads(showing.show)
    update = Changes(updating.update)
    pending = Reads(pending_work.pending)
    approve = Changes(answering.approve)
    deny = Changes(answering.deny)
    finalize = Changes(updating.finalize)
    should_resume = Reads(standing.should_resume)
    explain_resume = Reads(standing.explain_resume)
    list = Reads(listing.summaries)
    tree = Reads(families.tree)
    subtree = Reads(families.subtree)
    children = Reads(families.children)
    events = Reads(records.events)
    messages = Reads(transcript_messages.messages)
    add_message = Writes(transcript_messages.add_message)
    add_turn = Writes(turns.add_turn)
    context = Reads(briefing.context)
    remembered = Reads(remembering.remembered)
    compact = Writes(remembering.compact)
    reset = Writes(turns.reset)
    usage = Reads(charging.usage)
    usage_by_agent = Reads(sums.usage_by_agent)
    stats = Reads(figures_of_all.stats)
    charge = Writes(charging.charge)
    set_token_total = Writes(charging.set_token_total)
    add_skill = Writes(charging.add_skill)
    todos = Reads(todo_list.todos)
    add_todo = Writes(todo_list.add_todo)
    set_todo_status = Writes(todo_list.set_todo_status)
    set_todos = Writes(todo_list.set_todos)
    cancel = Writes(cancelling.cancel)
    cancel_conversation = Writes(cancelling.cancel_conversation)
    cancellation = Reads(cancelling.cancellation)
    report = Reads(reporting.report)
    wait = Calls(waiting.wait)
    run = Calls(command.run)
    cleanup = Calls(cleaning.cleanup)
    remove = Writes(removal.remove)
    repair = Calls(records.repair)
    reconcile = Calls(reconciling.reconcile)
    import_from = Calls(importing.import_from)
