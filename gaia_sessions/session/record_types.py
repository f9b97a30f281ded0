"""The keys of ``state.json`` with their types: one definition for the type checker, the models and the JSON Schema.

A key that is not required is absent when it is not known, never null. ``Annotated`` adds what a type checker does not
see: a bound, the kind of a text, a description. ``schema`` has the checks of the same keys for hooks and commands. It
must never be imported at run time but by ``models``, because a hook would pay for ``typing``.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, NamedTuple, NotRequired, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json


class AtLeast(NamedTuple):
    """The bound of a number."""

    least: int


class TextKind(Enum):
    """What a string must be: a time, a phase, how a run can end, or where a todo stands."""

    TIME = "time"
    PHASE = "phase"
    END = "end"
    INTERRUPTION = "interruption"
    TODO_STATUS = "todo_status"


Time = Annotated[str, TextKind.TIME]
Phase = Annotated[str, TextKind.PHASE]
End = Annotated[str, TextKind.END]
Interruption = Annotated[str, TextKind.INTERRUPTION]
TodoStatus = Annotated[str, TextKind.TODO_STATUS]
Count = Annotated[int, AtLeast(0)]
Number = Annotated[int, AtLeast(1)]
Seconds = Annotated[float, AtLeast(0)]


class Move(TypedDict):
    """One change of the phase."""

    from_phase: Phase
    to_phase: Phase
    timestamp: Time


class LastError(TypedDict):
    """The latest error."""

    message: str
    timestamp: Time


class Denial(TypedDict):
    """The approval was denied, and why; removed with the next change of the phase, or when it is requested again."""

    message: str
    timestamp: Time


class HostProcess(TypedDict, total=False):
    """The process of the host that ran the sub-agent, by which it can be proved to be gone."""

    pid: Number
    started: str
    boot_id: str
    pid_ns: str
    machine: str


class Workflow(TypedDict):
    """The workflow run to which a run belongs: one call of a script of the host that starts agents."""

    run_id: Annotated[str, "The host's id of the workflow run; it stays the same when the host resumes the workflow."]
    key: NotRequired[Annotated[str, "The host's key of the agent in it; absent in the run of the workflow itself."]]


class Usage(TypedDict, total=False):
    """What an agent used, as its host told it; a figure that was not told is absent."""

    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count
    cache_creation_tokens: Count
    total_tokens: Count
    tool_uses: Count
    duration_ms: Count


class Worktree(TypedDict, total=False):
    """The linked worktree that the host made for the agent."""

    path: str
    branch: str


Waiting = TypedDict("Waiting", {"since": Time, "for": Annotated[str, "The tool that its agent wants to use."]})
Waiting.__doc__ = "Somebody is asked whether an agent may do what it wants to."


class Run(TypedDict, total=False):
    """One time that a host really ran the sub-agent; a key that is not known is absent."""

    run: Number
    host: str
    host_session_id: str
    current_host_session_id: Annotated[
        str, "The conversation in which the events of its agent come, if no longer host_session_id."
    ]
    host_agent_id: str
    tool_use_id: str
    parent_host_agent_id: str
    workflow: Workflow
    host_process: HostProcess
    background: bool
    unannounced: Annotated[bool, "Its host sends no event when an agent starts."]
    mentioned: Annotated[list[str], "The sessions that its delegation named without resuming one of them."]
    claimed_at: Time
    started_at: Time
    ended_at: Time
    end: Annotated[End, "Without ended_at: it stopped without a message, and may go on."]
    waiting: Annotated[Waiting, "Its agent waits for a permission; absent once it was heard of again."]
    interruption: Annotated[Interruption, "Why its agent was killed although nobody gave up the work."]
    detail: str
    reported: Phase
    inferred: Phase
    last_message: str
    transcript_path: str
    model: str
    worktree: Worktree
    usage: Annotated[Usage, "As the host reported it at the end; some hosts report their last request only."]
    consumed: Annotated[Usage, "The sum over all requests of the run, from its transcript or as the host adds it up."]


class Tools(TypedDict):
    """How often the agent used each tool; kept where the hooks track tools."""

    counts: dict[str, Number]
    recent: Annotated[list[str], "Digests of the host's keys of the latest calls that were counted."]


class Todo(TypedDict):
    """One thing that the agent means to do."""

    description: str
    status: TodoStatus


class Compaction(TypedDict):
    """What stands in place of the older messages of the memory; the transcript still has them."""

    summary: str
    through: Annotated[Number, "The number of the last message that it replaces."]
    messages: Annotated[Number, "How many messages it stands for, those of earlier summaries included."]


class Record(TypedDict):
    """The record of one sub-agent's piece of work: ``state.json``."""

    agent_id: Annotated[str, "The id of the session, and the name of its directory."]
    agent_name: Annotated[str, "The kind of agent, what hosts call its type."]
    purpose: str
    created_at: Time
    last_updated: Annotated[Time, "The last activity of the work."]
    phase: Phase
    metadata: dict[str, Json]
    resume_ready: bool
    history: Annotated[list[Move], "The newest 200 changes of the phase."]
    error_count: Count
    last_error: LastError | None
    schema: Number
    revision: Annotated[Count, "One more with every write: this is what orders writes."]
    history_dropped: NotRequired[Count]
    continues: NotRequired[Annotated[str, "The finished session whose work this one continues."]]
    imported_from: NotRequired[Annotated[str, "The folder of sessions that it was imported from."]]
    parent_id: NotRequired[Annotated[str, "The session whose agent, or whose workflow, started this one's."]]
    max_depth: NotRequired[Annotated[Count, "The greatest depth that a session below this one may be begun with."]]
    max_tokens: NotRequired[Annotated[Count, "How many tokens the work may use."]]
    denial: NotRequired[Denial]
    runs: NotRequired[Annotated[list[Run], "The newest 50, and earlier ones that have no end."]]
    runs_dropped: NotRequired[Count]
    paused_until: NotRequired[Annotated[Time, "When the limit is reset that interrupted the work."]]
    tools: NotRequired[Tools]
    usage: NotRequired[Annotated[Usage, "The sum of consumed over all runs, those that were dropped included."]]
    charged_tokens: NotRequired[Annotated[Count, "The sum of all charges."]]
    token_correction: NotRequired[
        Annotated[int, "What is added to charges, skills and consumption so that the sum is the total that was stated."]
    ]
    skills: NotRequired[Annotated[dict[str, Count], "The skills that were loaded, each with its tokens, in order."]]
    todos: NotRequired[list[Todo]]
    turns: NotRequired[Annotated[Count, "How many turns of its transcript are complete."]]
    transcript_bytes: NotRequired[Annotated[Count, "How many bytes of the transcript are committed."]]
    last_seq: NotRequired[Annotated[Count, "The number of the last message; no other is given it, whatever is lost."]]
    compaction: NotRequired[Compaction]
    transcripts_archived: NotRequired[
        Annotated[Count, "The messages are in transcript-N.jsonl; what was before is archived."]
    ]
    finalized_at: NotRequired[Time]
    duration_seconds: NotRequired[Seconds]
    summary: NotRequired[str]
