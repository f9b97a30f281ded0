"""``SubAgentSession``: a conversation with one sub-agent over several turns, each on disk.

The process may end at any time; the next turn follows the last complete one.
"""

from __future__ import annotations

import inspect
import time
from typing import Generic, TypeVar

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.transcript import spoken
from gaia_sessions.store.subagent_events import SESSION_RESET

from . import at, records
from .cancellation_token import CancellationToken
from .ephemeral import EphemeralSession
from .send import SECONDS_BETWEEN_TRIES, Said, Send, messages_of
from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Any, Self

    from gaia_sessions.session.schema import Run

    from .at import Root
    from .send import SentTurn, Sink

Agent = TypeVar("Agent", bound="Callable[..., Any]")


class SubAgentSession(Generic[Agent]):
    """A conversation with one agent that your program calls.

    A turn is stored in one step. Any process can add the next turn. With ``agent_id``, the session with this ID is
    opened, and its system prompt stays. Without ``agent_id``, a session is created. The errors of ``Sessions.create``
    and ``Sessions.get`` are also raised.

    Args:
        agent: a callable. It takes a list of messages, ``{role, content, tool_name?, tool_call_id?}``, and returns a
            text or a list of such messages. Each returned message can have ``tokens``. A parameter
            ``cancellation_token`` of the callable gets the token of the session. A parameter ``events`` gets the sink
            of ``with_events``. If the callable is ``async``, await ``send``.
        agent_name: by default the name of the callable.
        parent: the session above a new session, or its ID.

    Raises:
        InvalidInput: ``agent`` is not callable, or ``system_prompt`` differs from the session's prompt.
    """

    def __init__(  # every option of a session
        self,
        agent: Agent,
        system_prompt: str | None = None,
        *,
        agent_id: str | None = None,
        agent_name: str | None = None,
        purpose: str | None = None,
        parent: EphemeralSession | SubAgentSession[Any] | str | None = None,
        root: Root = None,
    ) -> None:
        if not callable(agent):
            raise InvalidInput("the agent is not callable", hint="give a function that takes a list of messages")
        above = parent if isinstance(parent, EphemeralSession | SubAgentSession) else None
        self._agent = agent
        self._sessions = Sessions(root or (above.root if above else None))
        self._sink: Sink = _ignore
        self._fields: Run = {}
        if agent_id is not None:
            records.read(self._sessions, agent_id)
            self.agent_id = agent_id
        else:
            self.agent_id = self._sessions.create(
                agent_name or _name_of(agent),
                purpose or "general",
                parent_id=above.agent_id if above else parent,  # type: ignore[arg-type]  # a text, or None
                system_prompt=system_prompt,
            )
        self._said = Said(self._sessions, self.agent_id)
        if agent_id is not None and system_prompt is not None:
            self._check_prompt(system_prompt)
        self.cancellation_token = CancellationToken(self.agent_id, root=self.root)

    @classmethod
    def from_subagent(cls, subagent: Agent, **options: Any) -> Self:  # noqa: ANN401  # the options of the constructor
        """Makes a session of a callable object, which can have a ``name`` and a ``system_prompt``.

        Args:
            options: options of the constructor; they override the ``name`` and ``system_prompt`` of the object.
        """
        if options.get("agent_id") is None:
            options.setdefault("agent_name", getattr(subagent, "name", None))
            options.setdefault("system_prompt", getattr(subagent, "system_prompt", None))
        return cls(subagent, **options)

    def subagent(self) -> Agent:
        """Returns the agent, the same object for every turn."""
        return self._agent

    def with_events(self, sink: Sink) -> Self:
        """Calls ``sink`` from now on with each [event](events.md) that ``send`` or ``reset`` adds.

        If ``sink`` raises before the agent has answered, the send ends with this error. If ``sink`` raises later, the
        error is also raised, but the turn is stored.

        Returns:
            The object itself.
        """
        self._sink = sink
        return self

    def with_parent_depth(self, depth: int) -> Self:
        """States that the caller works at ``depth``, so this agent works at least one level deeper.

        If the session is deeper in the tree, its own depth is used. If the depth is above the session's limit (default
        8), ``send`` raises ``TooDeep`` before it calls the agent.

        Returns:
            The object itself.
        """
        self._fields = {"depth": depth + 1}
        return self

    @property
    def root(self) -> str:
        """The root of the session."""
        return self._sessions.root

    @property
    def turns(self) -> int:
        """The number of complete turns since the beginning, or since the last ``reset``."""
        return at.read(self._sessions, records.as_applied, self.agent_id).get("turns", 0)

    @property
    def transcript(self) -> list[dict[str, str]]:
        """The messages that the agent gets before the next message: the system prompt and all that was said."""
        return self._said.before(at.read(self._sessions, records.as_applied, self.agent_id))

    def reset(self) -> None:
        """Begins the conversation again, as ``Sessions.reset`` does."""
        record = self._sessions.reset(self.agent_id)
        for entry in self._sessions.events(self.agent_id):
            if isinstance(entry, dict) and (entry["kind"], entry["revision"]) == (SESSION_RESET, record["revision"]):
                self._sink({key: value for key, value in entry.items() if key != "seq"})

    def send(self, said: str | Iterable[Mapping[str, object]], *, pruned: bool = False, wait: float = 0) -> Any:  # noqa: ANN401  # awaitable, if the agent is
        """Calls the agent with all that was said before and with ``said``.

        The turn is stored whole, after the answer. If the agent raises, ``error_count`` rises by 1, and the error is
        raised again. If your program is interrupted or the task is cancelled, ``error_count`` does not change.

        Args:
            said: a text of the user or a list of messages, which can be empty.
            pruned: gives the agent what ``Sessions.context`` returns, and not the whole transcript.
            wait: how many seconds to wait while another agent is at work on the session.

        Returns:
            The turn, a ``SentTurn``; a coroutine if the agent is ``async``.

        Raises:
            AgentAtWork: another agent or send is at work on the session.
            RunNotAllowed: [no send](#when-you-may-send) to this session is allowed now.
            Cancelled: the session is cancelled.
            TooDeep: see ``with_parent_depth``.
            InvalidInput: ``said`` or the answer is not acceptable.
            RunGone: another process ended the send meanwhile.
        """
        send = Send(
            self._sessions,
            self.agent_id,
            messages_of(said, "user", "the message"),
            tell=self._sink,
            fields=self._fields,
        )
        until = time.monotonic() + wait
        if _is_async(self._agent):
            return self._send_and_await(send, until, pruned=pruned)
        with send:
            while not send.began(until):
                time.sleep(SECONDS_BETWEEN_TRIES)
            given = self._given(send, pruned=pruned)
            answered = self._called(given)
            if inspect.isawaitable(answered):
                if inspect.iscoroutine(answered):
                    answered.close()
                raise InvalidInput("the agent returned an awaitable", hint="declare the agent with `async def`")
            return send.answer(answered, given)

    async def _send_and_await(self, send: Send, until: float, *, pruned: bool) -> SentTurn:
        import asyncio  # an async program has loaded it

        with send:
            while not send.began(until):  # noqa: ASYNC110  # another process sets no event
                await asyncio.sleep(SECONDS_BETWEEN_TRIES)
            given = self._given(send, pruned=pruned)
            awaitable: Awaitable[object] = self._called(given)  # type: ignore[assignment]  # it is async
            return send.answer(await awaitable, given)

    def _given(self, send: Send, *, pruned: bool) -> list[dict[str, str]]:
        """Returns what the agent gets: what was said before, and what is sent."""
        return [*self._said.before(send.record, pruned=pruned), *map(spoken, send.said)]

    def _called(self, given: list[dict[str, str]]) -> object:
        """Returns what the agent returns for its own copy of ``given``."""
        accepted = {"cancellation_token": self.cancellation_token, "events": self._sink}
        names = _parameters(self._agent)
        named = {name: value for name, value in accepted.items() if names is None or name in names}
        return self._agent([{**message} for message in given], **named)

    def _check_prompt(self, given: str) -> None:
        stored = self._said.system_prompt(records.read(self._sessions, self.agent_id))
        if stored != given:
            raise InvalidInput(
                f"session {self.agent_id!r} has {'another' if stored else 'no'} system prompt",
                hint="leave out system_prompt: a session keeps the prompt that it was created with",
            )

    def __repr__(self) -> str:
        return f"SubAgentSession({self._agent!r}, agent_id={self.agent_id!r}, root={self.root!r})"


def _ignore(_: object) -> None:
    return


def _name_of(agent: object) -> str:
    name = getattr(agent, "__name__", None) or type(agent).__name__
    return str(name).strip("<>") or "unknown"


def _is_async(agent: object) -> bool:
    return inspect.iscoroutinefunction(agent) or inspect.iscoroutinefunction(getattr(agent, "__call__", None))  # noqa: B004  # this asks how it is called


def _parameters(agent: Callable[..., object]) -> Sequence[str] | None:
    """Returns the names of the parameters of ``agent``; None if it takes any."""
    try:
        found = inspect.signature(agent).parameters.values()
    except (TypeError, ValueError):  # some callables in C have no signature
        return []
    if any(one.kind is one.VAR_KEYWORD for one in found):
        return None
    return [one.name for one in found if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
