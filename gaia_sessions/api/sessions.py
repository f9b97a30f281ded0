"""The sessions of one root, and what can be done with them: the one object for programs, commands and agents.

Owns that every write first applies the events that wait in the inbox, and that ``now`` is read from the clock here. The
docstrings are the reference in ``docs/python.md``, but for those that begin with "For commands".
"""

from __future__ import annotations

from gaia_sessions.system import utc_now

from . import at
from .at import Place
from .rows import Asks, Changes, Later, Reads, Writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Concatenate, ParamSpec, TypeVar

    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    from .preview import Preview

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")

    from . import (
        answering,
        asking,
        briefing,
        cancelling,
        charging,
        cleaning,
        command,
        creating,
        ending,
        families,
        figures_of_all,
        importing,
        keys,
        listing,
        permitting,
        reconciling,
        records,
        remembering,
        removal,
        repairing,
        reporting,
        resetting,
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
    answering, cancelling, creating = Later("answering"), Later("cancelling"), Later("creating")
    ending, keys, permitting, updating = Later("ending"), Later("keys"), Later("permitting"), Later("updating")
    charging, command, todo_list = Later("charging"), Later("command"), Later("todo_list")
    cleaning, importing, reconciling = Later("cleaning"), Later("importing"), Later("reconciling")
    removal, repairing = Later("removal"), Later("repairing")
    families, listing = Later("families"), Later("listing")
    standing = Later("standing")
    briefing, remembering, resetting = Later("briefing"), Later("remembering"), Later("resetting")
    transcript_messages, turns = Later("transcript_messages"), Later("turns")
    sums = Later("sums")
    records, showing = Later("records"), Later("showing")
    asking, figures_of_all = Later("asking"), Later("figures_of_all")
    reporting, waiting = Later("reporting"), Later("waiting")


class Sessions(Place):
    """The sessions of one directory, to be read and changed.

    ``root`` is that directory; without it, it is found as [on the command
    line](store.md#where-sessions-are-stored). ``flags`` are [settings](operations.md#settings) that take precedence
    over all others, for example ``{"lock_timeout": 2}``. It can be copied and pickled; where it arrives, the settings
    of that place hold.

    When a method that writes returns, the change is durable. Methods that only read create nothing. Records are dicts
    with the keys of [`state.json`](store.md#the-record), and values: changing one changes nothing on disk. To write
    only if nobody else has written since, pass ``if_revision=record["revision"]`` to ``update``. A time is a datetime,
    UTC if it has no offset, or a text [as on the command line](shell.md#times). What is returned is under
    [Shapes](#shapes).

    IDs are whole: ``latest`` and parts of one are for commands.

    Every method may raise [errors](#errors): ``InvalidId``, ``SessionNotFound``, ``CorruptSession``, ``StoreFailure``;
    those that write ``NewerSchema``, ``TooLarge``, ``LockTimeout`` and ``DurabilityUnknown`` too. What else one raises
    stands with it.
    """

    __slots__ = ()

    create = Writes(creating.create)
    ensure = Writes(creating.ensure)
    update = Changes(updating.update)
    approve = Changes(answering.approve)
    deny = Changes(answering.deny)
    finalize = Changes(ending.finalize)
    cancel = Writes(cancelling.cancel)
    cancel_conversation = Writes(cancelling.cancel_conversation)
    cancellation = Reads(cancelling.cancellation)
    choose_tools = Reads(permitting.choose_tools)
    check_tool = Reads(permitting.check_tool)
    guard = Reads(permitting.guard)
    state = Reads(keys.state)
    change_state = Writes(keys.change_state)
    usage = Reads(charging.usage)
    charge = Writes(charging.charge)
    set_token_total = Writes(charging.set_token_total)
    add_skill = Writes(charging.add_skill)
    todos = Reads(todo_list.todos)
    add_todo = Writes(todo_list.add_todo)
    set_todo_status = Writes(todo_list.set_todo_status)
    set_todos = Writes(todo_list.set_todos)
    usage_by_agent = Reads(sums.usage_by_agent)
    messages = Reads(transcript_messages.messages)
    add_message = Writes(transcript_messages.add_message)
    add_turn = Writes(turns.add_turn)
    context = Reads(briefing.context)
    remembered = Reads(remembering.remembered)
    compact = Writes(remembering.compact)
    reset = Writes(resetting.reset)

    get = Reads(records.get)
    show = Reads(showing.show)
    children = Reads(showing.children)
    events = Reads(records.events)
    should_resume = Reads(standing.should_resume)
    explain_resume = Reads(standing.explain_resume)
    pending = Reads(asking.pending)
    list = Reads(listing.summaries)
    tree = Reads(families.tree)
    subtree = Reads(families.subtree)
    stats = Reads(figures_of_all.stats)
    report = Reads(reporting.report)
    wait = Asks(waiting.wait)
    run = Asks(command.run)
    cleanup = Asks(cleaning.cleanup)
    remove = Writes(removal.remove)
    repair = Asks(repairing.repair)
    reconcile = Asks(reconciling.reconcile)
    import_from = Asks(importing.import_from)

    def has(self, agent_id: str) -> bool:
        """For commands: whether there is a session with this id, readable or not."""
        return self.store.has(agent_id)

    def read(self, agent_id: str) -> Record:
        """For commands: what ``get`` returns. Raises ``SessionNotFound``."""
        return self.store.read(agent_id)

    def preview(self, agent_id: str) -> Record:
        """For commands: the record as it will be once the waiting events are applied. Raises what ``read`` raises."""
        return self._preview().read(agent_id)

    def session_of_host_agent(self, host_session_id: str, host_agent_id: str) -> str:
        """For commands: the id of the session that an agent of a host works on. Raises ``SessionNotFound``."""
        from gaia_sessions.ingest import join

        found = self._write(lambda store, _: join.session_of_agent(store, host_session_id, host_agent_id))
        return found["agent_id"]

    def root_of(self, agent_id: str) -> str:
        """For commands: the first session above this one; itself if there is none."""
        from gaia_sessions.store.above import Above

        return Above(self.store).root_id(self.read(agent_id))

    def _preview(self) -> Preview:
        from .preview import Preview

        return Preview(self.store, utc_now(), self.config)

    def _write(
        self,
        do: Callable[Concatenate[Store, datetime, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """What ``do`` returns for the store and the time of the call, and ``arguments``."""
        return at.write(self, lambda writing: do(writing.store, writing.now, *arguments, **named))
