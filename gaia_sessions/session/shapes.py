"""The one table of the keys of ``state.json``, of a message and of an event: the type of each, and what it means.

``scripts/render_models`` makes the checks, the models and the tables of ``docs/record.md`` of it. Nothing imports it at
run time: a hook would pay for ``typing``. What is not required is absent when not known, never null.
"""

from typing import Annotated, NamedTuple, NotRequired, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json


class Kind(NamedTuple):
    """What a value must be besides its type; ``scripts/render_models`` says what that is in each thing it makes."""

    name: str


class Default(NamedTuple):
    """The value of a key that a record of the users' own program does not have."""

    value: int


ALWAYS = "always"
"""The key is required in a document, though not by its type, since code also passes parts of it."""

Time = Annotated[str, Kind("time")]
Phase = Annotated[str, Kind("phase")]
End = Annotated[str, Kind("end")]
Interruption = Annotated[str, Kind("interruption")]
TodoStatus = Annotated[str, Kind("todo status")]
Role = Annotated[str, Kind("role")]
EventKind = Annotated[str, Kind("event kind")]
MarkerPhase = Annotated[str, Kind("marker phase")]
Outcome = Annotated[str, Kind("outcome")]
Count = Annotated[int, Kind("from 0")]
Number = Annotated[int, Kind("from 1")]
Seconds = Annotated[float, Kind("from 0")]


class Move(TypedDict):
    """One change of the phase."""

    from_phase: Phase
    to_phase: Phase
    timestamp: Time


class LastError(TypedDict):
    """The latest error."""

    message: str
    timestamp: Time


class Answer(TypedDict):
    """The answer to what the work waits for; removed with the next change of the phase, or when it asks again."""

    message: Annotated[str, "What was said with it; empty for nothing."]
    timestamp: Time


class GivenAnswer(TypedDict):
    """One answer to what the work waited for, as it was given; kept when the work goes on."""

    answer: Annotated[str, "`approved`, `denied`, or `answered` by what was sent."]
    by: Annotated[
        str,
        "How it was given: `command` (`approve`, `deny`), `python`, `resume_line`, `run` (`gaia-sessions run ID`), "
        "`send` (to its agent), `update` (which moved it on), `message` (one that woke its agent), or `workflow` "
        "(resumed by its host).",
    ]
    timestamp: Time
    message: NotRequired[Annotated[str, "What was said with it, the first 1,000 characters."]]
    shell: NotRequired[Annotated[str, "The host in whose agent's shell that was typed, if it was."]]
    after_run: NotRequired[
        Annotated[
            Count,
            "The last run when it was given, or 0: whoever begins a later one is told of it. "
            "Absent if the work went on with it, or if a later answer replaced it.",
        ]
    ]


class HostProcess(TypedDict, total=False):
    """The process that ran the sub-agent, by which it can be proved to be gone."""

    pid: Number
    started: str
    boot_id: str
    pid_ns: str
    machine: str
    lock: Annotated[str, "A file that it has locked for as long as its run lasts."]
    lock_folder: Annotated[str, "The device and the inode of its folder: elsewhere the same name may lead to another."]


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


class Conversation(TypedDict):
    """Where the client that was the command of a run has what was said in the session, up to one message."""

    preset: Annotated[str, "[Which client](clients.md)."]
    id: Annotated[str, "Its ID of the conversation."]
    cwd: Annotated[str, "Where the client ran: it finds its conversations by that."]
    generation: Annotated[Count, "The generation of the transcript that has the message; the first is 0."]
    seq: Annotated[Count, "The number of the last message that it knows; 0 if there is none."]


_Tool = Annotated[str, "The tool that its agent wants to use."]
_What = Annotated[str, "A digest of that tool and of what it is given."]
_Call = Annotated[str, "The host's key of that use, where it tells one with the request."]

Asked = TypedDict("Asked", {"since": Time, "for": _Tool, "asked": NotRequired[_What], "call": NotRequired[_Call]})
Asked.__doc__ = "Somebody is asked whether an agent may do what it wants to."

Waiting = TypedDict(
    "Waiting",
    {
        "since": Time,
        "for": _Tool,
        "asked": NotRequired[_What],
        "call": NotRequired[_Call],
        "others": NotRequired[Annotated[list[Asked], "What it has asked for since, and waits for as well."]],
    },
)
Waiting.__doc__ = "The first request of an agent that is not known to be answered."


class OwnWork(TypedDict):
    """What an agent began in the background and waits for: its host wakes it when that is over."""

    since: Annotated[Time, "When it ended its turn."]
    kind: Annotated[str, "`command`, `monitor`, `agent` or `work`."]
    tasks: Annotated[list[str], "The host's IDs of them."]
    assumed: NotRequired[Annotated[bool, "Nobody said that they wake it; if not, it has ended for good."]]


class Run(TypedDict, total=False):
    """One time that a host really ran the sub-agent; a key that is not known is absent."""

    run: Annotated[Number, ALWAYS, "Its number, from 1."]
    host: Annotated[str, "Which host ran it."]
    host_session_id: Annotated[str, "The host's ID of the conversation in which it began."]
    current_host_session_id: Annotated[
        str, "The conversation in which the events of its agent come, if no longer `host_session_id`."
    ]
    host_agent_id: Annotated[str, "The host's ID of the agent; in the run of a workflow that of its task."]
    tool_use_id: Annotated[str, "The host's ID of the delegation."]
    parent_host_agent_id: Annotated[str, "The host's ID of the agent that delegated, if it was not the main agent."]
    workflow: Annotated[Workflow, "The workflow run that it belongs to."]
    host_process: Annotated[
        HostProcess, "The process that ran it. All of this identifies it: a pid alone is used again."
    ]
    wrapper: Annotated[
        HostProcess,
        "The process that began it, which is no host: it runs a command, or sends something to an agent. "
        "Only that process ends the run, or the proof that it is gone.",
    ]
    turn: Annotated[Number, "Which turn it is to add, if it is [a send](conversations.md)."]
    depth: Annotated[Count, "How deep its agent works at least, as whoever calls it said."]
    timeout_secs: Annotated[Seconds, "After how many seconds its command is asked to end."]
    hard_timeout_secs: Annotated[Seconds, "After how many seconds its command is killed."]
    background: Annotated[bool, "Whether its agent works in the background, so that its delegation returns before."]
    unannounced: Annotated[bool, "Its host sends no event when an agent starts."]
    enforced: Annotated[bool, "Its host asks before each use of a tool, so that [limits](hooks.md#limits) hold."]
    mentioned: Annotated[list[str], "The sessions that its delegation named without resuming one of them."]
    claimed_at: Annotated[Time, "When it was delegated: its agent may never have started."]
    started_at: Annotated[Time, "When its agent started."]
    ended_at: Annotated[Time, "When it ended."]
    end: Annotated[End, "[How it ended](hooks.md#how-a-run-ends). Without `ended_at`: silently, so it may go on."]
    waiting: Annotated[
        Waiting,
        "Its agent [waits for a permission](hooks.md#who-waits-for-a-person); absent once it is heard of again.",
    ]
    unanswered: Annotated[
        bool,
        "A message, or its own work, woke its agent while [nobody had answered](phases.md#only-a-person-approves) "
        "what it asked, and approved nothing.",
    ]
    own_work: Annotated[
        OwnWork,
        "Its agent ended its turn to [wait for its own command](hooks.md#how-a-run-ends); absent once it is woken. "
        "With `ended_at`: its end is only concluded.",
    ]
    interruption: Annotated[
        Interruption, "Why its agent was killed [although nobody gave up the work](hooks.md#how-a-run-ends)."
    ]
    detail: Annotated[str, "What is known of its end besides."]
    exit_code: Annotated[int, "What its command ended with, as shells say it: 128 + N for signal N."]
    reported: Annotated[Phase, "The last phase that its agent reported."]
    last_message: Annotated[str, "What its agent said last."]
    transcript_path: Annotated[str, "The transcript of its agent, a file of the host."]
    output_path: Annotated[str, "The file with what its command wrote."]
    model: Annotated[str, "The model that its host named."]
    searches: Annotated[list[str], "Digests of the host's keys of the searches that it [was allowed](hooks.md#limits)."]
    held: Annotated[list[str], "Digests of the stops of its agent that [were held back](hooks.md#open-todos)."]
    warned_at: Annotated[Time, "When its agent was told that most of its budget is used."]
    conversation: Annotated[
        Conversation, "Where a client that was its command has what was said, so that it can go on with that."
    ]
    worktree: Annotated[Worktree, "The worktree that its host made for the agent, if it was still there at the end."]
    usage: Annotated[Usage, "As [its host reported it](hooks.md#what-a-run-cost) when the agent was done."]
    consumed: Annotated[Usage, "The sum over all its requests."]


class Todo(TypedDict):
    """One thing that the agent means to do."""

    description: str
    status: TodoStatus


class AppSession(TypedDict, total=False):
    """What the app of a session knows of it that nobody else needs."""

    id: Annotated[str, "The ID that the app gave it; absent where that is `agent_id`."]
    event_time: Annotated[Seconds, "The time that its latest event has, in seconds since 1970."]


class Compaction(TypedDict):
    """What stands in place of the older messages of the memory; the transcript still has them."""

    summary: str
    through: Annotated[Number, "The number of the last message that it replaces."]
    messages: Annotated[Number, "How many messages it stands for, those of earlier summaries included."]


class _EveryRecord(TypedDict):
    """What every record has: the eleven keys of the users' documents, in their order, and two of ours."""

    agent_id: Annotated[
        str,
        "The ID of the session, and the name of its directory: "
        "generated as `agent-{date}-{time}-{8 hex digits}`, or [your own](#ids).",
    ]
    agent_name: Annotated[str, "The kind of agent, what hosts call its type; by default `unknown`."]
    purpose: Annotated[str, "What it is for; by default `general`."]
    created_at: Annotated[Time, "When it was created."]
    last_updated: Annotated[
        Time,
        "The last activity of the work that was reported; while its agent works, "
        "[what it writes to its transcript](phases.md#may-the-work-be-resumed) counts too.",
    ]
    phase: Annotated[Phase, "[Where the work stands](phases.md#phases)."]
    metadata: Annotated[dict[str, "Json"], "For facts, not for secrets or [transcripts](#transcripts)."]
    resume_ready: Annotated[bool, "Follows the phase; can be switched off by hand."]
    history: Annotated[list[Move], "The newest 200 changes of the phase."]
    error_count: Annotated[Count, "How many errors were counted."]
    last_error: Annotated[LastError | None, "The latest of them."]
    schema: Annotated[Number, Default(1), "The version of this shape."]
    revision: Annotated[Count, Default(0), "One more with every write: this is what orders writes."]


class Record(_EveryRecord, total=False):
    """The record of one sub-agent's piece of work: ``state.json``."""

    history_dropped: Annotated[Count, "How many changes of the phase there were before those in `history`."]
    continues: Annotated[str, "The finished session whose work this one continues."]
    imported_from: Annotated[
        str, "The folder of sessions that it was [imported](settings.md#import-sessions-from-another-folder) from."
    ]
    parent_id: Annotated[
        str,
        "The session below which this one was created, or whose agent or workflow started this one's. "
        "Once set it never changes, and nothing else says who is above whom. For a host's agents only where the host "
        "tells; its main agent has no session, unless its environment names one: "
        "see [Hooks](hooks.md#sessions-below-a-session).",
    ]
    max_depth: Annotated[Count, "The greatest depth that a session below this one may be created with."]
    max_tokens: Annotated[
        Count,
        "How many tokens the work may use: [the budget](commands.md#budgets-skills-and-todos), "
        "where it has one of its own.",
    ]
    allowed_tools: Annotated[
        list[str],
        "[The tools that its agent may use](commands.md#tools-and-tasks), if they are limited; never changed.",
    ]
    app: Annotated[str, "The app whose [state it shares](state.md); never changed."]
    user: Annotated[str, "The user of that app; it is there with `app`."]
    app_session: Annotated[AppSession, "What only [its app](adk.md) knows of it."]
    session_state: Annotated[
        dict[str, "Json"], "[What its agents hand each other](state.md), without what others share."
    ]
    question: Annotated[
        str, "What it asks, as it was said [with the phase](commands.md#update); gone once it moves on, or asks again."
    ]
    approval: Annotated[Answer, "[What it waits for was approved](phases.md#approvals-and-denials)."]
    denial: Annotated[Answer, "[What it waits for was denied](phases.md#approvals-and-denials)."]
    answers: Annotated[
        list[GivenAnswer],
        "The newest 20 answers to what it waited for, also those that the work went on with: "
        "[who answered, and how](phases.md#who-answered).",
    ]
    runs: Annotated[list[Run], "The newest 50, and earlier ones that have no end."]
    runs_dropped: Annotated[Count, "How many other runs there were."]
    paused_until: Annotated[Time, "When the limit is reset that interrupted the work."]
    usage: Annotated[
        Usage,
        "[What all its runs used](hooks.md#what-a-run-cost): the sum of their `consumed`, "
        "those of dropped runs included.",
    ]
    charged_tokens: Annotated[Count, "The sum of all charges."]
    token_correction: Annotated[
        int, "What is added to charges, skills and consumption so that the sum is the total that was stated."
    ]
    skills: Annotated[dict[str, Count], "The skills that were loaded, each with its tokens, in their order."]
    todos: Annotated[
        list[Todo],
        "What its agent means to do; a status is `pending`, `in_progress`, `completed` or `cancelled`.",
    ]
    turns: Annotated[
        Count, "How many [turns](#transcripts) of its transcript are complete; of an app, how often a user spoke."
    ]
    transcript_bytes: Annotated[Count, "How many bytes of the transcript are committed."]
    last_seq: Annotated[Count, "The number of the last message; no other is given it, whatever is lost."]
    compaction: Annotated[
        Compaction,
        "The summary that stands in place of the older messages in "
        "[the memory](python.md#a-session-for-an-agent-of-your-own) of an agent.",
    ]
    transcripts_archived: Annotated[
        Count, "The N of `transcript-N.jsonl`, which has the messages; what was before is archived."
    ]
    finalized_at: Annotated[Time, "When the work ended; only in a final phase."]
    duration_seconds: Annotated[Seconds, "The time from its creation to its end; only in a final phase."]
    summary: Annotated[str, "What was said of the outcome; only in a final phase."]


class NewMessage(TypedDict):
    """A message that is to be added to a transcript."""

    role: Annotated[Role, "`system`, `user`, `assistant` or `tool`."]
    content: Annotated[str, "Its text."]
    timestamp: Annotated[Time, "When it was made."]
    tool_name: NotRequired[Annotated[str, "The tool that it calls, or of role `tool` the one whose result it is."]]
    tool_call_id: NotRequired[Annotated[str, "That call: a result has the ID of its call."]]
    tokens: NotRequired[Annotated[Count, "How many tokens its content has."]]
    run: NotRequired[Annotated[Number, "The run that said it, if that was one of a command."]]
    event: NotRequired[
        Annotated[str, "The event of [an app](adk.md) that it was made of, as JSON in the app's own form."]
    ]
    charged: NotRequired[
        Annotated[
            bool,
            "Whether its tokens were charged to the budget with it, as those of a "
            "[memory](python.md#a-session-for-an-agent-of-your-own) are.",
        ]
    ]


class _Place(TypedDict):
    """What a message is given when it is stored."""

    seq: Annotated[
        Number,
        "Its number, from 1. No other message of the session ever gets it, whatever is lost or emptied; "
        "a number may be missing.",
    ]
    turn: Annotated[
        Count,
        "The turn it belongs to: one more than `turns` of the record was; 0 of the system prompt. "
        "In a session of an app a message of the user begins the turn, and `turns` already counts it.",
    ]


class Message(_Place, NewMessage):
    """A message as it is stored."""


class Event(TypedDict, total=False):
    """What the hook of any host reports, without the host's raw JSON."""

    kind: Annotated[EventKind, ALWAYS]
    at: Annotated[Time, ALWAYS, "When the hook was called."]
    host: str
    host_session_id: str
    host_agent_id: str
    tool_use_id: str
    parent_host_agent_id: str
    parent_id: Annotated[str, "The session for which the host of a delegation works, as its environment says."]
    workflow: Annotated[Workflow, "Without the key of an agent in it, the event is about the workflow itself."]
    key_file: Annotated[str, "Where the host will write the `tool_use_id`."]
    host_process: Annotated[HostProcess, "The process that runs the agents."]
    agent_id: str
    agent_name: str
    purpose: str
    background: bool
    unannounced: Annotated[bool, "The host reports no starts."]
    enforced: Annotated[bool, "The host asks before each use of a tool."]
    resume: Annotated[list[str], "The sessions that the resume lines name, each as often as it stands there."]
    mentioned: Annotated[list[str], "Other sessions that the text of the delegation names."]
    transcript_path: Annotated[str, "That of the agent itself."]
    last_message: str
    marker_phase: Annotated[MarkerPhase, "The phase in the marker that ends `last_message`."]
    marker_id: Annotated[str, "The session in that marker."]
    briefed_id: Annotated[str, "The session in the note at the beginning of the agent's transcript."]
    has_message: Annotated[
        bool,
        "There was a last message, kept or not; of a failure, the agent itself described it; of a notification, false: "
        "the agent did its work, and what it said last comes with its stop, if that is reported.",
    ]
    after_block: Annotated[bool, "A hook kept the agent going after an earlier stop."]
    launch: Annotated[bool, "The host launched the agent, which therefore did not wake."]
    interrupted: Annotated[bool, "Somebody stopped the agent."]
    interruption: Annotated[Interruption, "Why it was stopped although nobody gave up the work."]
    interrupted_at: Annotated[Time, "When that was, by the host's files: it says nothing of a run that began later."]
    paused_until: Annotated[Time, "Until when it must wait."]
    was_running: Annotated[bool, "The agent was at work, though no start was reported."]
    key_pending: Annotated[bool, "The host names the delegation later."]
    reused_id: Annotated[bool, "The host uses a `tool_use_id` more than once."]
    running: Annotated[list[str], "The agents of the host that are alive."]
    commands: Annotated[list[str], "What else of the host runs in the background, whoever began it."]
    own_work: Annotated[OwnWork, "The agent stopped only until this is over."]
    waits: Annotated[bool, "It says this of an agent that waits for its own work, and nothing of any other."]
    source: Annotated[str, "How a conversation began, in the host's word."]
    outcome: Outcome
    outcome_assumed: Annotated[bool, "None was stated, and `outcome` is the default."]
    events: "Annotated[list[Event], 'Those that were reported together.']"
    summary: str
    error: str
    tool_name: Annotated[str, "The tool that the agent uses."]
    call: Annotated[str, "The host's key of that single use."]
    asked: Annotated[str, "A digest of the tool and of what it is given."]
    usage: Annotated[Usage, "What the agent used, as its host told it."]
    consumed: Annotated[Usage, "The sum over all its requests, if the host adds that up itself."]
    model: Annotated[str, "The one that the agent ran on."]
    worktree: Annotated[Worktree, "The one that the host made for it."]
