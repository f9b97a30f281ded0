"""The turns of a session, from the files of its hosts and from its own transcript, read from the end.

If a host's file is missing, the record's last message replaces it. Reading takes no lock.
"""

from __future__ import annotations

from gaia_sessions import hosts
from gaia_sessions.errors import SessionsError
from gaia_sessions.hosts.marker import without_additions
from gaia_sessions.hosts.payload import clean
from gaia_sessions.session.context import Turn
from gaia_sessions.session.host_events import MAX_MESSAGE_LENGTH
from gaia_sessions.session.record import check_readable
from gaia_sessions.session.rounds import is_answer, is_sent
from gaia_sessions.session.runs import has_ended, has_started, is_own_run, is_send, is_workflow_itself
from gaia_sessions.session.transcript import (
    is_system_prompt,
    last_seq,
    readable,
    replaced_through,
    system_prompt,
    without_place,
)
from gaia_sessions.store import has_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.session.context import TurnOf
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Reader

    _Found = tuple[bool, NewMessage] | None
    """A message, and whether a turn begins with it; None if there are no more messages."""

    _Said = tuple[TurnOf, NewMessage, bool]
    """A message, its turn, and whether the turn begins with it."""

    _Beginning = tuple[NewMessage | None, bool]
    """The first message of a turn, if known, and whether older messages are left."""

_END_OF_FILE = 1 << 20
"""Bytes at the end of a host's file that are read: a file may have many MB, and a hook has little time."""

_LATEST = 5
"""How many agents of the latest runs are checked beforehand for unreadable files."""

_MOST_EARLIER = 50
"""How many continued sessions are followed back."""

_MESSAGE_COST = 40
"""How many characters each message counts in addition to its text."""

_FEWEST = 4
"""How many messages of a turn are read at any length: a result comes only with its call."""

_NEVER = ""


class Turns:
    """The turns of ``record``, after those of the session that it continues, in the form for ``session.context``."""

    def __init__(
        self,
        sessions: Reader,
        record: Record,
        is_late: Callable[[], bool] | None = None,
        known: frozenset[str] = frozenset(),
        *,
        has_own: bool = True,
        most_earlier: int = _MOST_EARLIER,
    ) -> None:
        self._sessions = sessions
        self._record = record
        self._is_late = is_late or (lambda: False)
        self._has_own = has_own
        self._agents = [
            agent for agent in _agents_of(sessions, record) if agent.run.get("transcript_path") not in known
        ]
        for agent in self._agents[:_LATEST]:
            agent.look()
        self.is_cut = False
        self.summary = record["compaction"]["summary"] if has_own and "compaction" in record else None
        prompt = system_prompt(self._own_messages())
        self.system_prompt = prompt["content"] if prompt else None
        self.notices = list(_notices(self._agents[:_LATEST]))
        self._earlier: Turns | None = None
        if "continues" in record and self.summary is None and most_earlier:
            self._earlier = self._continued(record["continues"], known, most_earlier - 1)
        elif "continues" in record:
            self.is_cut = True

    def _continued(self, agent_id: str, known: frozenset[str], most_earlier: int) -> Turns | None:
        """Returns the turns of the continued session; None if the session is unreadable or continues itself."""
        if agent_id in known or agent_id == self._record["agent_id"]:
            return None
        try:
            record = self._sessions.read(agent_id)
            check_readable(record)
        except SessionsError:
            self.notices.append(
                f"the session continues {agent_id}, which cannot be read; what was said there is unknown"
            )
            return None
        files = {run["transcript_path"] for agent in self._agents for run in agent.runs if "transcript_path" in run}
        earlier = Turns(
            self._sessions,
            record,
            self._is_late,
            known | files | {self._record["agent_id"]},
            has_own=self._has_own,
            most_earlier=most_earlier,
        )
        self.notices += [f"of {agent_id}: {notice}" for notice in earlier.notices]
        self.summary = earlier.summary
        self.system_prompt = self.system_prompt or earlier.system_prompt
        return earlier

    @property
    def is_empty(self) -> bool:
        """Whether no message, no agent of a host and no earlier session is known."""
        if self._agents or (self._has_own and has_messages(self._sessions, self._record)):
            return False
        return self._earlier is None or self._earlier.is_empty

    def records(self) -> list[Record]:
        """Returns the records of the sessions whose turns these are, the oldest first."""
        return [*(self._earlier.records() if self._earlier else []), self._record]

    def newest_first(self, to_read: int) -> Iterator[Turn]:
        """Yields the turns, the newest first, until about ``to_read`` characters are read."""
        streams = [_Stream(self._of_hosts(), self._beginning_of_hosts), _Stream(self._own(), self._own_beginning)]
        while to_read > 0 and not self._is_late():
            stream = max(streams, key=_Stream.time)
            if stream.head is None:
                break
            turn = stream.turn(stream.head, to_read)
            to_read -= sum(map(_cost, turn.messages))
            yield turn
        self.is_cut = self.is_cut or self._is_late() or any(one.is_cut or one.head for one in streams)
        if self._earlier and not self.is_cut and to_read > 0:
            for turn in self._earlier.newest_first(to_read):
                of: TurnOf = {"session": self._record["continues"], **turn.of}
                yield Turn(of, turn.asked, turn.messages, is_whole=turn.is_whole)
            self.is_cut = self._earlier.is_cut
        elif self._earlier:
            self.is_cut = True

    def _own_messages(self) -> Iterator[Message]:
        """Yields the messages of the session's own transcript, the oldest first; none if it is unreadable."""
        if not (self._has_own and last_seq(self._record)):
            return
        try:
            yield from readable(self._sessions.messages(self._record["agent_id"]))
        except SessionsError:
            return

    def _of_hosts(self) -> Iterator[_Said]:
        """Yields the messages of the agents of hosts, the newest first."""
        for agent in self._agents:
            if self._is_late():
                return
            agent.look()
            yield from agent.newest_first(self._is_late)

    def _beginning_of_hosts(self, of: TurnOf, until: str) -> _Beginning:
        agent = next(agent for agent in self._agents if any(run["run"] == of.get("run") for run in agent.runs))
        asked, is_cut = agent.beginning(of, until, self._is_late)
        return asked, is_cut or agent is not self._agents[-1]

    def _own(self) -> Iterator[_Said]:
        """Yields those messages of the session's own transcript that an agent is told, the newest first."""
        record = self._record
        if not (self._has_own and last_seq(record)):
            return
        has_file = bool(self._agents) and self._agents[0].run is record["runs"][-1] and self._agents[0].is_readable
        through, complete = replaced_through(record), record.get("turns", 0)
        of: TurnOf | None = None
        try:
            newest_first = readable(self._sessions.messages_backwards(record["agent_id"]))
            message = next(newest_first, None)
            while message and message["seq"] > through and not is_system_prompt(message):
                before = next(newest_first, None)
                begins = before is None or before["turn"] != message["turn"]
                of = of or _turn_of(message)
                if message["turn"] <= complete or not has_file:
                    yield of, without_place(message), begins
                message, of = before, None if begins else of
        except SessionsError:
            self.is_cut = True

    def _own_beginning(self, of: TurnOf, _: str) -> _Beginning:
        number = of["turn"]
        try:
            first = next(readable(self._sessions.messages_from_turn(self._record["agent_id"], number)), None)
        except SessionsError:
            return None, True
        if first is None or first["turn"] != number:
            return None, True
        return without_place(first), number > 1 and first["seq"] > replaced_through(self._record) + 1


class _Stream:
    """Messages, the newest first; ``head`` is the next one."""

    def __init__(self, said: Iterator[_Said], find_beginning: Callable[[TurnOf, str], _Beginning]) -> None:
        self._said = said
        self._find_beginning = find_beginning
        self.head = next(said, None)
        self.is_cut = False

    def time(self) -> str:
        return self.head[1]["timestamp"] if self.head else ""

    def turn(self, head: _Said, to_read: int) -> Turn:
        """Returns the turn whose newest message is ``head``: its beginning and about ``to_read`` characters."""
        of, begins = head[0], False
        newest: list[NewMessage] = []
        while self.head and self.head[0] == of and not begins and (to_read > 0 or len(newest) < _FEWEST):
            _, message, begins = self.head
            newest.append(message)
            to_read -= _cost(message)
            self.head = next(self._said, None)
        asked: NewMessage | None = newest[-1] if begins else None
        if not begins:
            asked, is_cut = self._find_beginning(of, newest[-1]["timestamp"])
            self.is_cut = self.is_cut or is_cut
            if to_read <= 0:
                self.head = None  # it belongs to the same turn
        if asked and not is_sent(asked):
            asked = None
        elif begins:
            newest.pop()
        return Turn(of, asked, newest[::-1], is_whole=begins)


def _cost(message: NewMessage) -> int:
    return len(message["content"]) + _MESSAGE_COST


class _Agent:
    """An agent of a host with its runs, and the messages in its file."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.run = runs[-1]
        self._messages: Iterator[tuple[bool, NewMessage]] | None = None
        self._newest: _Found = None

    @property
    def is_readable(self) -> bool:
        """Whether the agent's file has a message, as far as we looked."""
        return self._newest is not None

    def look(self) -> None:
        """Opens its file, and reads the newest message."""
        if self._messages is None:
            self._messages = hosts.messages_newest_first(self.run, _END_OF_FILE)
            self._newest = self._next()

    def newest_first(self, is_late: Callable[[], bool]) -> Iterator[_Said]:
        """Yields its messages, the newest first; without a file, the last message of each run."""
        found = self._newest
        if found is None:
            yield from (said for run in reversed(self.runs) for said in _last_said(run, begins=True))
            return
        if self.lacks_last_message():
            yield from _last_said(self.run, begins=False)
        of, begins = _of(self.run), True
        while found and not is_late():
            if begins:
                of = _of(self._run_at(found[1]["timestamp"]))
            begins, message = found
            yield of, _as_sent(message), begins
            found = self._next()

    def lacks_last_message(self) -> bool:
        """Returns whether the run ended with a message that is not at the end of its file."""
        kept = self.run.get("last_message", "").strip()
        if not kept or self._newest is None:
            return False
        message = self._newest[1]
        said = clean(message["content"]).strip() if is_answer(message) else ""
        return not (said and (kept.endswith(said[-MAX_MESSAGE_LENGTH:].strip()) or said.endswith(kept)))

    def beginning(self, of: TurnOf, until: str, is_late: Callable[[], bool]) -> _Beginning:
        """Returns the message that began the turn of the message at ``until``, and whether older ones may exist."""
        begun = (one for one in hosts.sent_newest_first(self.run, is_late) if one[1]["timestamp"] <= until)
        is_first, asked = next(begun, (False, None))
        if asked is None or _of(self._run_at(asked["timestamp"])) != of:
            return None, True
        return _as_sent(asked), not is_first

    def _next(self) -> _Found:
        try:
            return next(self._messages, None) if self._messages else None
        except OSError:
            return None

    def _run_at(self, time: str) -> Run:
        """Returns the run that had begun at ``time``."""
        return next((run for run in reversed(self.runs) if run.get("started_at", "") <= time), self.runs[0])


def _agents_of(sessions: Reader, record: Record) -> list[_Agent]:
    """Returns the agents of hosts that worked, the latest first; runs with the same file are one agent."""
    runs_by_file: dict[str, list[Run]] = {}
    runs = record.get("runs", ())
    commands = [run["run"] for run in runs if is_own_run(run) and not is_send(run)]
    told = [] if commands and has_messages(sessions, record) else commands  # else its own messages include their turns
    for run in runs:
        is_told = not is_own_run(run) or run["run"] in told
        if is_told and (has_started(run) or "last_message" in run):
            file = run.get("transcript_path") or str(run["run"])
            runs_of_file = runs_by_file.pop(file, [])
            runs_of_file.append(run)
            runs_by_file[file] = runs_of_file
    return [_Agent(runs) for runs in reversed(runs_by_file.values())]


def _notices(agents: list[_Agent]) -> Iterator[str]:
    for agent in agents:
        if is_workflow_itself(agent.run):
            yield f"run {agent.run['run']} is a workflow; its agents have their own sessions"
        elif not agent.is_readable and not is_own_run(agent.run):
            which, has_last = f"run {agent.run['run']}", "last_message" in agent.run
            known = f"only the last message of {which} is known" if has_last else f"what was said in {which} is unknown"
            yield f"{known}, because no file of this run can be read"
    for agent in agents[:1]:
        number = agent.run["run"]
        if agent.lacks_last_message():
            yield f"the last message of run {number} was recovered: the client's file does not end with it"
        elif agent.is_readable and has_ended(agent.run) and "last_message" not in agent.run:
            yield f"run {number} ended without a last message; what it said was recovered from the client's file"


def _of(run: Run) -> TurnOf:
    return {"run": run["run"]}


def _last_said(run: Run, *, begins: bool) -> list[_Said]:
    return [(_of(run), message, begins) for message in _last_message(run)]


def _last_message(run: Run) -> list[NewMessage]:
    if "last_message" not in run:
        return []
    made = run.get("ended_at", run.get("started_at", _NEVER))
    return [{"role": "assistant", "content": run["last_message"], "timestamp": made}]


def _as_sent(message: NewMessage) -> NewMessage:
    """Returns ``message`` without what our hooks added."""
    return {**message, "content": without_additions(message["content"])} if message["role"] == "user" else message


def _turn_of(last: Message) -> TurnOf:
    """Returns the turn of its ``last`` message; if that message ended a run, the turn is this run."""
    turn: TurnOf = {"turn": last["turn"]}
    if "run" in last:
        turn["run"] = last["run"]
    return turn
