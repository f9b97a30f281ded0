"""The one table of the keys of ``state.json``, of a message and of an event: their types and meanings.

``scripts/render_models`` makes checks, models and tables from it. No module imports it at run time: hooks would pay for
``typing``. A key that is not required is absent if its value is unknown, never null.
"""

from typing import Annotated, NamedTuple, NotRequired, TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json


class Kind(NamedTuple):
    """What a value must be besides its type; ``scripts/render_models`` writes it in checks, models and tables."""

    name: str


class Default(NamedTuple):
    """The value of a key that is missing in records of the users' own program."""

    value: int


ALWAYS = "always"
"""The key is required in a document, but not by its type, since code also passes parts of a document."""

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
    """The answer to the question; removed when the phase changes or the agent asks again."""

    message: Annotated[str, "The note; empty if there is none."]
    timestamp: Time


class GivenAnswer(TypedDict):
    """One answer to a question, as it was given; it stays when the session is resumed."""

    answer: Annotated[str, "`approved`, `denied`, or `answered` if something was sent to the agent."]
    by: Annotated[
        str,
        "How the answer was given: `command` (`approve`, `deny`), `python`, `resume_line`, `run` (with the ID of "
        "the session), `send` (to the agent), `update` (which changed the phase), `message` (which woke the "
        "agent), or `workflow` (which the host resumed).",
    ]
    timestamp: Time
    message: NotRequired[Annotated[str, "The first 1,000 characters of the note."]]
    shell: NotRequired[Annotated[str, "The host in whose agent's shell the answer was given."]]
    after_run: NotRequired[
        Annotated[
            Count,
            "The number of the latest run when the answer was given; 0 if there was no run. The next run is told "
            "the answer. Absent if the answer itself resumed the work, or if a later answer replaced it.",
        ]
    ]


class HostProcess(TypedDict, total=False):
    """The process that ran the agent. These keys can prove that the process is gone."""

    pid: Number
    started: str
    boot_id: str
    pid_ns: str
    machine: str
    lock: Annotated[str, "A file that the process locks while the run lasts."]
    lease: Annotated[str, "On a server: the lease that the process renews while its run goes on."]
    lock_folder: Annotated[str, "The device and the inode of the folder of this file."]


class Workflow(TypedDict):
    """The workflow run to which a run belongs: one call of a script of the host that starts agents."""

    run_id: Annotated[str, "The host's ID of the workflow run. It stays the same when the host resumes the workflow."]
    key: NotRequired[
        Annotated[str, "The host's key of the agent in the workflow; absent in the run of the workflow itself."]
    ]


class Usage(TypedDict, total=False):
    """What an agent used, as its host reported it; a figure that was not reported is absent."""

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
    """The conversation of the client that was the command of a run; it has the messages up to ``seq``."""

    preset: Annotated[str, "[Which client](clients.md)."]
    id: Annotated[str, "The client's ID of the conversation."]
    cwd: Annotated[str, "The folder in which the client ran. The client finds its conversations by this folder."]
    generation: Annotated[Count, "The generation of the transcript with the client's messages; the first is 0."]
    seq: Annotated[Count, "The number of the last message that the client knows; 0 if there is none."]


_Tool = Annotated[str, "The tool that the agent wants to use."]
_What = Annotated[str, "A digest of the tool and its input."]
_Call = Annotated[str, "The host's key of this use, if the host reports the key with the request."]

Asked = TypedDict("Asked", {"since": Time, "for": _Tool, "asked": NotRequired[_What], "call": NotRequired[_Call]})
Asked.__doc__ = "A request for permission: the agent wants to use a tool."

Waiting = TypedDict(
    "Waiting",
    {
        "since": Time,
        "for": _Tool,
        "asked": NotRequired[_What],
        "call": NotRequired[_Call],
        "others": NotRequired[Annotated[list[Asked], "Later requests that are not known to be answered."]],
    },
)
Waiting.__doc__ = "The first request of an agent that is not known to be answered."


class OwnWork(TypedDict):
    """The tasks in the background for which the agent waits: the host wakes the agent when they are over."""

    since: Annotated[Time, "When the agent ended its turn."]
    kind: Annotated[str, "`command`, `monitor`, `agent` or `work`."]
    tasks: Annotated[list[str], "The host's IDs of the tasks."]
    assumed: NotRequired[
        Annotated[bool, "True if nobody reported that the end of the tasks wakes the agent; the agent may have ended."]
    ]


class Below(TypedDict):
    """The agents that a run started, and those that they started."""

    agents: Annotated[Count, "How many."]
    states: Annotated[dict[str, Count], "How many are in [each state](phases.md#states)."]
    tokens: NotRequired[Annotated[Count, "What they used together; absent if nobody reported any."]]


class Moving(TypedDict):
    """A move of an open session from one root to another that has not ended. Both roots have the same."""

    source: Annotated[str, "The root from which it comes."]
    target: Annotated[str, "The root to which it goes."]
    token: Annotated[str, "Random text of this move."]


class Run(TypedDict, total=False):
    """One execution of a sub-agent, or of a command, for a session; a key whose value is unknown is absent."""

    run: Annotated[Number, ALWAYS, "Number of the run, from 1."]
    host: Annotated[str, "The coding agent that ran the sub-agent, such as `claude-code`."]
    host_session_id: Annotated[str, "The host's ID of the conversation in which the run began."]
    current_host_session_id: Annotated[
        str, "The host's ID of the conversation that reports the run now, if it is not `host_session_id`."
    ]
    host_agent_id: Annotated[str, "The host's ID of the agent. For the run of a workflow: the ID of its task."]
    tool_use_id: Annotated[str, "The host's ID of the delegation."]
    parent_host_agent_id: Annotated[str, "The host's ID of the agent that delegated; absent if the main agent did."]
    workflow: Annotated[Workflow, "The workflow of the host (a script that starts agents) to which the run belongs."]
    host_process: Annotated[
        HostProcess,
        "The host's process that ran the agent. All keys together identify the process: the system can use a "
        "pid again.",
    ]
    wrapper: Annotated[
        HostProcess,
        "The process of `gaia-sessions run` or of a [send](conversations.md). Only this process writes the end of "
        "the run, unless the process is proved to be gone.",
    ]
    turn: Annotated[Number, "Number of the turn that a [send](conversations.md) adds."]
    depth: Annotated[
        Count,
        "For a [send](conversations.md): at least how many levels deep the agent works, as the caller stated it.",
    ]
    timeout_secs: Annotated[Seconds, "Seconds after which the command is asked to end."]
    hard_timeout_secs: Annotated[Seconds, "Seconds after which the command is killed."]
    background: Annotated[
        bool, "Whether the agent works in the background: its delegation returns before the agent ends."
    ]
    unannounced: Annotated[
        bool,
        "True if the host reports no start of the agent. Then the agent counts as working from the delegation on.",
    ]
    enforced: Annotated[
        bool,
        "Whether the host asks before each use of a tool, so that [limits](limits.md#limits-of-a-hosts-agents) hold.",
    ]
    mentioned: Annotated[
        list[str], "IDs of the sessions that the delegation named, if the delegation resumed none of them."
    ]
    claimed_at: Annotated[Time, "When the agent was delegated. Perhaps the agent never started."]
    started_at: Annotated[Time, "When the agent started."]
    ended_at: Annotated[Time, "When the run ended."]
    end: Annotated[
        End,
        "[How the run ended](hooks.md#how-a-run-ends). If `end` is `stopped` without `ended_at`, the agent left "
        "no message, and the run is still open.",
    ]
    waiting: Annotated[
        Waiting,
        "The tool for which the agent [asked permission](approve.md#permissions). Perhaps somebody has "
        "answered already. Removed when the agent stops.",
    ]
    unanswered: Annotated[
        bool,
        "Whether a message, or the end of the agent's own command, woke the agent before [anybody "
        "answered](approve.md#only-a-person-approves) the question. The waking approved nothing.",
    ]
    own_work: Annotated[
        OwnWork,
        "The agent's own command for which [the agent waits](hooks.md#how-a-run-ends). Removed when the agent is "
        "woken. If the run also has `ended_at`, the end of the run is assumed.",
    ]
    interruption: Annotated[
        Interruption,
        "If `end` is `killed` and the session can be resumed: [what interrupted the agent](hooks.md#how-a-run-ends).",
    ]
    detail: Annotated[str, "More about the end, such as `timeout` or `max_tokens` of a command."]
    exit_code: Annotated[int, "Exit code of the command, as shells state it: 128 + N for signal N."]
    reported: Annotated[Phase, "The phase that the agent last reported in this run."]
    last_message: Annotated[str, "The last message of the agent."]
    transcript_path: Annotated[str, "The host's file with the transcript of the agent."]
    output_path: Annotated[str, "The file with the output of the command."]
    model: Annotated[str, "The model, as the host named it."]
    searches: Annotated[list[str], "A digest for each [search that was allowed](limits.md#limits-of-a-hosts-agents)."]
    held: Annotated[list[str], "A digest for each stop after which the agent was [kept at work](limits.md#open-todos)."]
    warned_at: Annotated[Time, "When the agent was warned that most of its budget is used."]
    conversation: Annotated[
        Conversation,
        "If the command is [a client](clients.md): the conversation, which a later run can resume.",
    ]
    worktree: Annotated[
        Worktree, "The worktree that the host made for the agent, if the worktree still existed at the end of the run."
    ]
    usage: Annotated[Usage, "What the agent used, as [the host reported](figures.md#what-a-run-used) at the end."]
    consumed: Annotated[Usage, "What all requests of the agent used together."]
    below: Annotated[
        Below,
        "If the session is on a server: the agents below the run when it ended. Their sessions are [in "
        "files](many-machines.md#a-client-below-a-session).",
    ]


class Todo(TypedDict):
    """One task of the agent."""

    description: str
    status: TodoStatus


class AppSession(TypedDict, total=False):
    """Data of a session that only its app needs."""

    id: Annotated[str, "The app's ID of the session; absent if it is `agent_id`."]
    event_time: Annotated[Seconds, "The time of the latest event, in seconds since 1970."]


class Compaction(TypedDict):
    """The summary that replaces the older messages of the memory; the transcript still has them."""

    summary: str
    through: Annotated[Number, "The number of the last message that the summary replaces."]
    messages: Annotated[Number, "How many messages the summary replaces, those of earlier summaries included."]


class _EveryRecord(TypedDict):
    """The keys of every record: the eleven keys of the users' documents, in their order, and two of ours."""

    agent_id: Annotated[
        str,
        "ID of the session and name of its folder: generated as `agent-{date}-{time}-{8 hex digits}`, or [your "
        "own](#ids).",
    ]
    agent_name: Annotated[str, "Type of the agent; `unknown` by default."]
    purpose: Annotated[str, "Purpose of the session; `general` by default."]
    created_at: Annotated[Time, "When the session was created."]
    last_updated: Annotated[
        Time,
        "The last reported activity. [Writes to the transcript](phases.md#the-resume-check) are activity too, "
        "but do not change this time.",
    ]
    phase: Annotated[Phase, "[The phase](phases.md#phases) of the session."]
    metadata: Annotated[dict[str, "Json"], "Facts of your own, but no secrets or [transcripts](#transcripts)."]
    resume_ready: Annotated[bool, "True in a resumable phase, unless you switched it off."]
    history: Annotated[list[Move], "The newest 200 changes of the phase."]
    error_count: Annotated[Count, "Number of errors so far."]
    last_error: Annotated[LastError | None, "The latest error."]
    schema: Annotated[Number, Default(1), "Version of this format."]
    revision: Annotated[Count, Default(0), "Number of the last write. Each write adds 1."]


class Record(_EveryRecord, total=False):
    """The record of one session: ``state.json``."""

    history_dropped: Annotated[Count, "Number of older changes, no longer in `history`."]
    continues: Annotated[str, "ID of the ended session that this session continues."]
    imported_from: Annotated[str, "The root from which the session was [imported](ci-and-cron.md#import-sessions)."]
    parent_id: Annotated[
        str,
        "ID of the session above: the parent given at creation, or the session whose agent or workflow "
        "started this session, if the host reports this. Once set, it never changes. A main "
        "agent has no session, unless [its environment names a session](hooks.md#sessions-below-a-session).",
    ]
    stand_in: Annotated[
        bool,
        "True if the session with this ID is on a server, and this record [stands in for "
        "it](many-machines.md#a-client-below-a-session). Then the phase says nothing.",
    ]
    moving: Annotated[
        Moving,
        "[A move to another root](many-machines.md#move-a-project-to-the-server-and-back) that has not ended. Until "
        "it ends, nothing can change the session, and `schema` is 1000000.",
    ]
    max_depth: Annotated[Count, "Greatest depth that a session below this one may have."]
    max_tokens: Annotated[
        Count,
        "[Budget](limits.md#budgets) that was set for the session, in tokens.",
    ]
    allowed_tools: Annotated[
        list[str],
        "[Tools that the agent may use](limits.md#tools), if the tools are limited. Never changes.",
    ]
    app: Annotated[str, "The app whose [state](state.md) the session shares. Never changes."]
    user: Annotated[str, "The user of the app; always together with `app`."]
    app_session: Annotated[AppSession, "Data that only [the app](adk.md) needs."]
    session_state: Annotated[
        dict[str, "Json"], "[State](state.md) of this session alone, not shared with other sessions."
    ]
    question: Annotated[
        str,
        "The agent's question, given with [`update`](commands.md#update). Removed when the phase changes or the "
        "agent asks again.",
    ]
    approval: Annotated[Answer, "[Approval](approve.md#answer) of the question. `message` is the note or empty."]
    denial: Annotated[Answer, "[Denial](approve.md#answer) of the question. `message` is the reason or empty."]
    answers: Annotated[
        list[GivenAnswer],
        "The newest 20 answers to all questions, each with [who answered, and how](approve.md#who-answered). "
        "Runs after run `after_run` are told the answer.",
    ]
    runs: Annotated[list[Run], "The newest 50 runs, and older runs that have not ended."]
    runs_dropped: Annotated[Count, "Number of older runs, no longer in `runs`."]
    paused_until: Annotated[Time, "When the usage limit that interrupted the work is reset."]
    usage: Annotated[
        Usage,
        "[What all runs used](figures.md#what-a-run-used): the sum of `consumed` of all runs, dropped runs included.",
    ]
    charged_tokens: Annotated[Count, "Sum of all tokens that were [charged](limits.md#budgets)."]
    token_correction: Annotated[
        int, "The total that `usage --total` stated, minus the charged, loaded and consumed tokens at that time."
    ]
    skills: Annotated[dict[str, Count], "Skills in the order of loading, each with its tokens."]
    todos: Annotated[
        list[Todo],
        "Tasks of the agent; a status is `pending`, `in_progress`, `completed` or `cancelled`.",
    ]
    turns: Annotated[
        Count, "Number of complete [turns](#turns); in a session of an app, number of messages from the user."
    ]
    transcript_bytes: Annotated[
        Count, "How many bytes of the transcript are valid, from its beginning. Later bytes are ignored."
    ]
    last_seq: Annotated[Count, "`seq` of the last message. No other message ever gets it."]
    compaction: Annotated[
        Compaction,
        "Summary that replaces the older messages in an agent's [memory](python.md#its-memory).",
    ]
    transcripts_archived: Annotated[
        Count, "The N of `transcript-N.jsonl`, the current transcript. Earlier files are archives."
    ]
    finalized_at: Annotated[Time, "When the session ended; only in a final phase."]
    duration_seconds: Annotated[Seconds, "Time from creation to end; only in a final phase."]
    summary: Annotated[str, "Summary of the outcome; only in a final phase."]


class NewMessage(TypedDict):
    """A message to add to a transcript."""

    role: Annotated[Role, "`system`, `user`, `assistant` or `tool`."]
    content: Annotated[str, "The text."]
    timestamp: Annotated[Time, "When the message was made."]
    tool_name: NotRequired[Annotated[str, "The tool that is called; for role `tool`, the tool that gave the result."]]
    tool_call_id: NotRequired[Annotated[str, "ID of the call. The result of a call has the same ID."]]
    tokens: NotRequired[Annotated[Count, "Number of tokens of the content."]]
    run: NotRequired[Annotated[Number, "Number of the run whose command wrote the message."]]
    event: NotRequired[Annotated[str, "The event of [an app](adk.md), as JSON in the app's own form."]]
    charged: NotRequired[
        Annotated[
            bool,
            "Whether the same write charged `tokens` to the budget, as a [memory](python.md#its-memory) does.",
        ]
    ]


class _Place(TypedDict):
    """The keys that a message gets when it is stored."""

    seq: Annotated[
        Number,
        "Number of the message, from 1. No other message ever gets it. Numbers may be missing.",
    ]
    turn: Annotated[
        Count,
        "Number of the message's turn; 0 for the system prompt. In a session of an app, each message from "
        "the user begins a turn.",
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
    parent_id: Annotated[str, "The session for which the host works, as the host's environment says."]
    workflow: Annotated[Workflow, "If it has no key of an agent, the event is about the workflow itself."]
    key_file: Annotated[str, "The file in which the host will write the `tool_use_id`."]
    host_process: Annotated[HostProcess, "The process that runs the agents."]
    agent_id: str
    agent_name: str
    purpose: str
    background: bool
    unannounced: Annotated[bool, "The host reports no starts."]
    enforced: Annotated[bool, "The host asks before each use of a tool."]
    resume: Annotated[list[str], "The sessions that the resume lines name, once for each line."]
    mentioned: Annotated[list[str], "Other sessions that the text of the delegation names."]
    transcript_path: Annotated[str, "The transcript of the agent itself."]
    last_message: str
    marker_phase: Annotated[MarkerPhase, "The phase in the marker that ends `last_message`."]
    marker_id: Annotated[str, "The session in that marker."]
    briefed_id: Annotated[str, "The ID of the session that the text at the beginning of the agent's transcript names."]
    has_message: Annotated[
        bool,
        "There was a last message, stored or not. For a failure: the agent itself described it. For a notification, "
        "false: the agent did its work, and its last message comes with its stop, if the stop is reported.",
    ]
    after_block: Annotated[bool, "A hook kept the agent going after an earlier stop."]
    launch: Annotated[bool, "The host launched the agent, so this is no wake-up."]
    interrupted: Annotated[bool, "Somebody stopped the agent."]
    interruption: Annotated[Interruption, "Why the agent was stopped although nobody gave up the work."]
    interrupted_at: Annotated[Time, "When that was, by the host's files. It does not concern a run that began later."]
    paused_until: Annotated[Time, "When the usage limit is reset."]
    was_running: Annotated[bool, "The agent was at work, although no start was reported."]
    key_pending: Annotated[bool, "The host names the delegation later."]
    reused_id: Annotated[bool, "A client of this kind can use the same `tool_use_id` for several delegations."]
    running: Annotated[list[str], "The agents of the host that are alive."]
    commands: Annotated[list[str], "Other work of the host in the background, of any agent."]
    own_work: Annotated[OwnWork, "The tasks in the background for which the agent waits."]
    waits: Annotated[bool, "The event concerns an agent only if the agent waits for its own work."]
    source: Annotated[str, "The host's word for how the conversation began."]
    outcome: Outcome
    outcome_assumed: Annotated[bool, "No outcome was stated: `outcome` is the default."]
    events: "Annotated[list[Event], 'Events that were reported together.']"
    summary: str
    error: str
    tool_name: Annotated[str, "The tool that the agent uses."]
    call: Annotated[str, "The host's key of this use."]
    asked: Annotated[str, "A digest of the tool and its input."]
    usage: Annotated[Usage, "What the agent used, as the host reported."]
    consumed: Annotated[Usage, "The sum over all requests of the agent, if the host reports it."]
    model: Annotated[str, "The model of the agent."]
    worktree: Annotated[Worktree, "The worktree that the host made for the agent."]
