"""What all commands have in common: ``--root``, ``--lock-timeout``, ``--json``, ID, and how a command is declared."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import wraps

import click

from gaia_sessions.errors import SessionNotFound, SessionsError, StoreFailure, UsageError
from gaia_sessions.session.ids import is_agent_id, is_generated_id
from gaia_sessions.system.project_root import ROOT_VARIABLE, is_on_server

from . import output
from .group import COMMANDS, Command, Group, show_help_without_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    from gaia_sessions.api.sessions import Sessions

    from .two_roots import Pair

    _Value = TypeVar("_Value")

_CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Root(click.ParamType[str]):
    """The type of ``--root``. If a root was typed, every printed command repeats the option."""

    name = "root"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002  # click's
        if is_on_server(value):
            from gaia_sessions.system import server_url  # most roots are folders

            server_url.checked("--root", value)  # now: a URL with a password must not be repeated
        output.repeat_root(value, COMMANDS)
        return value


_ROOT = click.option(
    "--root",
    metavar="DIR",
    type=_Root(),
    help="Folder or postgresql:// URL of the sessions.  [default: the project's .claude/session]",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result, and errors, as JSON.")
_LOCK_TIMEOUT = click.option(
    "--lock-timeout", metavar="SECONDS", help="How long to wait for a locked session.  [default: 10]"
)
ID = click.argument("agent_id", metavar="ID")
"""The argument of a command for one session; ``Call.session_id`` finds the session."""

HOST_AGENT = click.option(
    "--host-agent",
    nargs=2,
    metavar="CONVERSATION AGENT",
    help="Select the session by two IDs of the client, that of the conversation and that of the agent.",
)
"""For agents, which do not know the ID of their session; ``Call.chosen_session`` finds the session."""

IF_REVISION = click.option("--if-revision", metavar="N", type=int, help="Write only if the record is at revision N.")


class Call:
    """One call of a command: its sessions, and whether the result is for a person or a program."""

    __slots__ = ("_flags", "_pair", "_sessions", "as_json", "root")

    def __init__(self, root: str | None, lock_timeout: str | None, *, as_json: bool) -> None:
        self.root = root
        self._flags = {} if lock_timeout is None else {"lock_timeout": lock_timeout}
        self.as_json = as_json
        self._sessions: Sessions | None = None
        self._pair: Pair | None = None

    def session_root(self, *, only_files: bool = False) -> str:
        """Returns the root; prints a notice if the search for the root skipped another user's project.

        only_files: as in ``find_root_and_skipped``.
        """
        from gaia_sessions.system.project_root import find_root_and_skipped, working_directory

        root, skipped = find_root_and_skipped(self.root, os.environ, working_directory(), only_files=only_files)
        output.keep_whole(root)
        if skipped:
            from gaia_sessions.system import users

            message, advice, command = users.skipped_project_notice(*skipped[0], root)
            output.print_notice("passed_over", message, f"{advice}: {command}", as_json=self.as_json)
        return root

    def sessions(self) -> Sessions:
        """Returns the root that this command uses: after ``session_id``, the root that has the session."""
        if self._sessions is None:
            self._sessions = self.sessions_in(self.session_root())
            if self.root is None and self._sessions.folder is None:
                from .two_roots import pair_of

                self._pair = pair_of(self._sessions, self._flags, as_json=self.as_json)
            if self._sessions.folder is None and self._pair is None and not self.as_json:
                self._tell_of_silence(self._sessions)
        return self._sessions

    def sessions_in(self, root: str) -> Sessions:
        """Returns the sessions in a root that the command names in its own way."""
        from gaia_sessions.api.sessions import Sessions

        return Sessions(root, self._flags)

    def _tell_of_silence(self, server: Sessions) -> None:
        if output.is_stderr_terminal():
            from .progress import tell_of_silence

            tell_of_silence(server)

    def both(self) -> list[Sessions]:
        """Returns the roots on which a command without ``--root`` works.

        These are the server in the variable and the project's own root, if that exists; else the one root. A server
        that has not answered this command is left out.
        """
        one = self.sessions()
        return [one] if self._pair is None else self._pair.roots()

    def other(self) -> Sessions | None:
        """Returns the root of the pair that this command does not use, for a hint; None if there is no pair."""
        used = self.sessions()
        if self._pair is not None:
            return self._pair.own if used is self._pair.server else self._pair.server
        if self.root is None or not is_on_server(os.environ.get(ROOT_VARIABLE, "")):
            return None
        from .two_roots import other_root

        return other_root(used, self._flags)

    def place_searched(self) -> str:
        """Returns `` on the server`` if that is the root of this command and the project has its own, too."""
        return " on the server" if self.sessions().folder is None and self.other() else ""

    def says_there_is_no_root(self) -> bool:
        """Returns whether this printed on stderr that the root does not exist; prints nothing for a program."""
        if self.as_json or self.sessions().is_there:
            return False
        from .render.plain import no_sessions_line

        output.print_to_stderr(no_sessions_line(self.sessions().root, 0, exists=False))
        return True

    def has(self, agent_id: str) -> bool:
        """Returns whether a session has this ID, readable or not."""
        from gaia_sessions.api import records

        return records.has(self.sessions(), agent_id)

    def session_id(self, typed_id: str, *, writes: bool = False, stand_ins: bool = False) -> str:
        """Returns the ID that ``typed_id`` means; from then on, ``sessions`` is the root that has this session.

        If the command ``writes``, this also prints the ID. A stand-in is no session, unless the command shows
        ``stand_ins``.
        """
        self._sessions, found = self.find(typed_id, writes=writes, stand_ins=stand_ins)
        if self._pair is not None and self._sessions is self._pair.own:
            output.repeat_root(self._pair.own_root_to_type, COMMANDS)  # an advised command is about this root
        return found

    def find(
        self, typed_id: str, *, writes: bool = False, stand_ins: bool = False, needs_server: bool = False
    ) -> tuple[Sessions, str]:
        """Returns the root that has the session that ``typed_id`` means, and the ID; options as for ``session_id``.

        needs_server: for a new session on the server, an ID in the own root is of no use if the server does not answer.
        """
        sessions = self.sessions()
        if self._pair is None:
            found = self._found_in_one(typed_id, stand_ins=stand_ins)
        else:
            sessions, found = self._pair.find(typed_id, needs_server=needs_server, writes=writes)
        # If ``typed_id`` is the end of a generated ID, nothing is printed: ``list`` shows that end.
        is_as_listed = is_generated_id(found) and found.endswith(f"-{typed_id}")
        if writes and found != typed_id and not is_as_listed:
            output.print_aside("session_taken", f"using session {found} for {typed_id}", as_json=self.as_json)
        return sessions, found

    def _found_in_one(self, typed_id: str, *, stand_ins: bool) -> str:
        found = typed_id
        # Text that means no session is returned unchanged: the store reports it missing.
        if not is_generated_id(typed_id) and is_agent_id(typed_id) and not self.has(typed_id):
            from .typed_ids import resolve_id

            found = resolve_id(self.sessions(), typed_id)
        if self.root is not None and not stand_ins and is_on_server(os.environ.get(ROOT_VARIABLE, "")):
            from .two_roots import refuse_stand_in

            refuse_stand_in(self.sessions(), found)
        return found

    def root_of_stand_in(self, agent_id: str) -> Sessions | None:
        """Returns the own root if it has the stand-in of a session on the server."""
        return self._pair.own if self._pair and self._pair.has_stand_in(agent_id) else None

    def say_where_agents_are(self, agent_id: str) -> None:
        """Says on stderr which command shows the agents of a session on the server, if they are in the own root."""
        if self._pair and not self.as_json and self._pair.has_stand_in(agent_id):
            self._pair.say_where_agents_are(agent_id)

    def chosen_session(self, agent_id: str | None, host_agent: tuple[str, str] | None, *, writes: bool = True) -> str:
        """Returns the ID of the session that ID or --host-agent selects; raises ``UsageError`` if both are given."""
        if agent_id is None and host_agent is not None:
            return self._id_of_host_agent(*host_agent)
        if host_agent is not None:
            raise UsageError("ID and --host-agent cannot be combined", "leave out one of them: both select a session")
        return self.session_id(given(agent_id, "agent_id"), writes=writes)

    def _id_of_host_agent(self, conversation: str, agent: str) -> str:
        from gaia_sessions.api import at, records

        sessions = self.sessions()
        if self._pair is None:
            return at.write(sessions, records.id_of_host_agent, conversation, agent)
        self._sessions, found = self._pair.find_host_agent(conversation, agent)
        return found

    def notice_if_abandoned(self, agent_id: str) -> None:
        """Prints a notice if the session is cancelled: then the write that just happened has ended the session."""
        from gaia_sessions.api import records
        from gaia_sessions.session.phases import is_abandoned

        from .render import cancellation

        record = records.read(self.sessions(), agent_id)
        if is_abandoned(record["phase"]) and self.sessions().cancellation(agent_id) is not None:
            output.print_notice("cancelled", *cancellation.abandoned_notice(record), as_json=self.as_json)

    @contextmanager
    def noticing_warnings(self) -> Iterator[None]:
        """Prints a notice at each of our warnings in the block: messages moved aside, figures or writes lost."""
        import warnings

        from gaia_sessions.errors import FiguresLost, MessagesKeptAside, WritesLost

        noticed = FiguresLost, MessagesKeptAside, WritesLost

        def show(message: Warning | str, *_: object, **__: object) -> None:
            if isinstance(message, noticed):
                output.print_notice(message.code, str(message), message.hint, as_json=self.as_json)

        with warnings.catch_warnings():
            for kind in noticed:
                warnings.simplefilter("always", kind)
            warnings.showwarning = show
            yield

    def explain_missing(self, missing: SessionNotFound) -> None:
        """Adds to ``missing`` the roots that were searched, and a hint at the ID that the user perhaps meant."""
        if self._sessions is not None:
            from .typed_ids import explain

            explain(missing, self.both())

    def print_result(self, result: object, lines: Callable[[], Iterable[str]]) -> None:
        """Prints ``result`` as JSON for a program, or the ``lines`` for a person."""
        if self.as_json:
            output.print_json(result)
        else:
            output.print_lines(lines())


def given(value: _Value | None, name: str) -> _Value:
    """Returns ``value``; if it is None, raises click's error for the missing parameter ``name``."""
    if value is None:
        raise click.MissingParameter(ctx=click.get_current_context(), param=param_of(name))
    return value


def param_of(name: str) -> click.Parameter:
    """Returns the parameter ``name`` of the command that was typed."""
    return next(one for one in click.get_current_context().command.params if one.name == name)


def declare(*examples: str, cls: type[Command] = Command) -> Callable[[Callable[..., int | None]], click.Command]:
    """Declares a command: its function gets a ``Call`` and returns an exit code, or None; its docstring is the help."""

    def make(function: Callable[..., int | None]) -> click.Command:
        return click.command(cls=cls, context_settings=_CONTEXT_SETTINGS, epilog=_epilog(examples))(
            _as_callback(function)
        )

    return make


def declare_group(*examples: str) -> Callable[[Callable[..., object]], Group]:
    """Declares a command with commands of its own, such as ``hooks``; the docstring of its function is the help."""

    def make(function: Callable[..., object]) -> Group:
        return declare_program(Group, str(function.__doc__), _epilog(examples))

    return make


def declare_program(cls: type[Group], summary: str, epilog: str | None = None) -> Group:
    """Returns a group of commands with the common options, which can also come before the name of a command."""
    group = cls(
        callback=show_help_without_command,
        help=summary,
        epilog=epilog,
        context_settings=_CONTEXT_SETTINGS,
        invoke_without_command=True,
        no_args_is_help=False,
    )
    for option in (_ROOT, _LOCK_TIMEOUT, _JSON):
        option(group)
    return group


def lists(command: Callable[..., _Value]) -> Callable[..., _Value]:
    """Lets a command without an ID also say how many sessions are open in the other root, even if its own fails."""
    ids = "agent_id", "agent_ids", "parent_id"

    @wraps(command)
    def run(call: Call, **options: Any) -> _Value:  # noqa: ANN401  # those of the command
        if any(options.get(name) for name in ids):  # of these, one root has a session
            return command(call, **options)
        try:
            result = command(call, **options)
        except StoreFailure:
            _say_what_else_is_open(call)
            raise
        _say_what_else_is_open(call)
        return result

    return run


def _say_what_else_is_open(call: Call) -> None:
    other = call.other()
    if other is not None:
        from .two_roots import say_what_else_is_open

        say_what_else_is_open(other, as_json=call.as_json)


def _as_callback(function: Callable[..., int | None]) -> Callable[..., int]:
    """Returns ``function`` in the form that click calls, with the common options."""

    @wraps(function)
    def run(root: str | None, lock_timeout: str | None, *, as_json: bool, **options: object) -> int:  # noqa: ARG001  # read from ctx
        call = Call(
            _innermost_option("root", str),
            _innermost_option("lock_timeout", str),
            as_json=_innermost_option("as_json", bool) or False,
        )
        try:
            return function(call, **options) or 0
        except SessionsError as error:
            if isinstance(error, SessionNotFound):
                call.explain_missing(error)
            raise

    for option in (_JSON, _LOCK_TIMEOUT, _ROOT):
        run = option(run)
    return run


def _epilog(examples: tuple[str, ...]) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  gaia-sessions {example}" for example in examples)


def _innermost_option(name: str, kind: type[_Value]) -> _Value | None:
    """Returns the value of an option, from the innermost command that has it; None if it was not given."""
    ctx: click.Context | None = click.get_current_context()
    while ctx is not None:
        value = ctx.params.get(name)
        if isinstance(value, kind) and value is not False:
            return value
        ctx = ctx.parent
    return None
