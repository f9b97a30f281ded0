"""The models of the record. Made by scripts/render_models: never change one by hand."""

from typing import Literal

from pydantic import Field, JsonValue

from .bases import Count, Number, RunModel, Seconds, SessionModel, StrictModel, Time

__all__ = ["Answer", "AppSession", "Asked", "Compaction", "Conversation", "End", "GivenAnswer", "HostProcess", "Interruption", "LastError", "Move", "OwnWork", "Phase", "Run", "Session", "Todo", "TodoStatus", "Usage", "Waiting", "Workflow", "Worktree"]

Phase = Literal["initializing", "investigating", "planning", "approval", "executing", "validating", "completed", "failed", "abandoned"]
End = Literal["killed", "failed", "stopped", "returned", "ended_with_host", "lost", "denied"]
Interruption = Literal["interrupted", "stopped_by_user", "usage_limit", "overloaded", "connection_lost"]
TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]


class Move(StrictModel, frozen=True):
    """One change of the phase."""

    from_phase: Phase
    to_phase: Phase
    timestamp: Time


class LastError(StrictModel, frozen=True):
    """The latest error."""

    message: str
    timestamp: Time


class Answer(StrictModel, frozen=True):
    """The answer to what the work waits for; removed with the next change of the phase, or when it asks again."""

    message: str = Field(description="What was said with it; empty for nothing.")
    timestamp: Time


class GivenAnswer(StrictModel, frozen=True):
    """One answer to what the work waited for, as it was given; kept when the work goes on."""

    answer: str = Field(description="`approved`, `denied`, or `answered` by what was sent.")
    by: str = Field(description="How it was given: `command` (`approve`, `deny`), `python`, `resume_line`, `run` (`gaia-sessions run ID`), `send` (to its agent), `update` (which moved it on), `message` (one that woke its agent), or `workflow` (resumed by its host).")
    timestamp: Time
    message: str | None = Field(default=None, description="What was said with it, the first 1,000 characters.")
    shell: str | None = Field(default=None, description="The host in whose agent's shell that was typed, if it was.")
    after_run: Count | None = Field(default=None, description="The last run when it was given, or 0: whoever begins a later one is told of it. Absent if the work went on with it, or if a later answer replaced it.")


class HostProcess(StrictModel, frozen=True):
    """The process that ran the sub-agent, by which it can be proved to be gone."""

    pid: Number | None = None
    started: str | None = None
    boot_id: str | None = None
    pid_ns: str | None = None
    machine: str | None = None
    lock: str | None = Field(default=None, description="A file that it has locked for as long as its run lasts.")
    lock_folder: str | None = Field(default=None, description="The device and the inode of its folder: elsewhere the same name may lead to another.")


class Workflow(StrictModel, frozen=True):
    """The workflow run to which a run belongs: one call of a script of the host that starts agents."""

    run_id: str = Field(description="The host's id of the workflow run; it stays the same when the host resumes the workflow.")
    key: str | None = Field(default=None, description="The host's key of the agent in it; absent in the run of the workflow itself.")


class Usage(StrictModel, frozen=True):
    """What an agent used, as its host told it; a figure that was not told is absent."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_creation_tokens: Count | None = None
    total_tokens: Count | None = None
    tool_uses: Count | None = None
    duration_ms: Count | None = None


class Worktree(StrictModel, frozen=True):
    """The linked worktree that the host made for the agent."""

    path: str | None = None
    branch: str | None = None


class Conversation(StrictModel, frozen=True):
    """Where the client that was the command of a run has what was said in the session, up to one message."""

    preset: str = Field(description="Which client.")
    id: str = Field(description="Its ID of the conversation.")
    cwd: str = Field(description="Where the client ran: it finds its conversations by that.")
    generation: Count = Field(description="The generation of the transcript that has the message; the first is 0.")
    seq: Count = Field(description="The number of the last message that it knows; 0 if there is none.")


class Asked(StrictModel, frozen=True):
    """Somebody is asked whether an agent may do what it wants to."""

    since: Time
    for_: str = Field(alias="for", description="The tool that its agent wants to use.")
    asked: str | None = Field(default=None, description="A digest of that tool and of what it is given.")
    call: str | None = Field(default=None, description="The host's key of that use, where it tells one with the request.")


class Waiting(StrictModel, frozen=True):
    """The first request of an agent that is not known to be answered."""

    since: Time
    for_: str = Field(alias="for", description="The tool that its agent wants to use.")
    asked: str | None = Field(default=None, description="A digest of that tool and of what it is given.")
    call: str | None = Field(default=None, description="The host's key of that use, where it tells one with the request.")
    others: list[Asked] | None = Field(default=None, description="What it has asked for since, and waits for as well.")


class OwnWork(StrictModel, frozen=True):
    """What an agent began in the background and waits for: its host wakes it when that is over."""

    since: Time = Field(description="When it ended its turn.")
    kind: str = Field(description="`command`, `monitor`, `agent` or `work`.")
    tasks: list[str] = Field(description="The host's IDs of them.")
    assumed: bool | None = Field(default=None, description="Nobody said that they wake it; if not, it has ended for good.")


class Run(RunModel, frozen=True):
    """One time that a host really ran the sub-agent; a key that is not known is absent."""

    run: Number = Field(description="Its number, from 1.")
    host: str | None = Field(default=None, description="Which host ran it.")
    host_session_id: str | None = Field(default=None, description="The host's ID of the conversation in which it began.")
    current_host_session_id: str | None = Field(default=None, description="The conversation in which the events of its agent come, if no longer `host_session_id`.")
    host_agent_id: str | None = Field(default=None, description="The host's ID of the agent; in the run of a workflow that of its task.")
    tool_use_id: str | None = Field(default=None, description="The host's ID of the delegation.")
    parent_host_agent_id: str | None = Field(default=None, description="The host's ID of the agent that delegated, if it was not the main agent.")
    workflow: Workflow | None = Field(default=None, description="The workflow run that it belongs to.")
    host_process: HostProcess | None = Field(default=None, description="The process that ran it. All of this identifies it: a pid alone is used again.")
    wrapper: HostProcess | None = Field(default=None, description="The process that began it, which is no host: it runs a command, or sends something to an agent. Only that process ends the run, or the proof that it is gone.")
    turn: Number | None = Field(default=None, description="Which turn it is to add, if it is a send.")
    depth: Count | None = Field(default=None, description="How deep its agent works at least, as whoever calls it said.")
    timeout_secs: Seconds | None = Field(default=None, description="After how many seconds its command is asked to end.")
    hard_timeout_secs: Seconds | None = Field(default=None, description="After how many seconds its command is killed.")
    background: bool | None = Field(default=None, description="Whether its agent works in the background, so that its delegation returns before.")
    unannounced: bool | None = Field(default=None, description="Its host sends no event when an agent starts.")
    enforced: bool | None = Field(default=None, description="Its host asks before each use of a tool, so that limits hold.")
    mentioned: list[str] | None = Field(default=None, description="The sessions that its delegation named without resuming one of them.")
    claimed_at: Time | None = Field(default=None, description="When it was delegated: its agent may never have started.")
    started_at: Time | None = Field(default=None, description="When its agent started.")
    ended_at: Time | None = Field(default=None, description="When it ended.")
    end: End | None = Field(default=None, description="How it ended. Without `ended_at`: silently, so it may go on.")
    waiting: Waiting | None = Field(default=None, description="Its agent waits for a permission; absent once it is heard of again.")
    unanswered: bool | None = Field(default=None, description="A message, or its own work, woke its agent while nobody had answered what it asked, and approved nothing.")
    own_work: OwnWork | None = Field(default=None, description="Its agent ended its turn to wait for its own command; absent once it is woken. With `ended_at`: its end is only concluded.")
    interruption: Interruption | None = Field(default=None, description="Why its agent was killed although nobody gave up the work.")
    detail: str | None = Field(default=None, description="What is known of its end besides.")
    exit_code: int | None = Field(default=None, description="What its command ended with, as shells say it: 128 + N for signal N.")
    reported: Phase | None = Field(default=None, description="The last phase that its agent reported.")
    last_message: str | None = Field(default=None, description="What its agent said last.")
    transcript_path: str | None = Field(default=None, description="The transcript of its agent, a file of the host.")
    output_path: str | None = Field(default=None, description="The file with what its command wrote.")
    model: str | None = Field(default=None, description="The model that its host named.")
    searches: list[str] | None = Field(default=None, description="Digests of the host's keys of the searches that it was allowed.")
    held: list[str] | None = Field(default=None, description="Digests of the stops of its agent that were held back.")
    warned_at: Time | None = Field(default=None, description="When its agent was told that most of its budget is used.")
    conversation: Conversation | None = Field(default=None, description="Where a client that was its command has what was said, so that it can go on with that.")
    worktree: Worktree | None = Field(default=None, description="The worktree that its host made for the agent, if it was still there at the end.")
    usage: Usage | None = Field(default=None, description="As its host reported it when the agent was done.")
    consumed: Usage | None = Field(default=None, description="The sum over all its requests.")


class Todo(StrictModel, frozen=True):
    """One thing that the agent means to do."""

    description: str
    status: TodoStatus


class AppSession(StrictModel, frozen=True):
    """What the app of a session knows of it that nobody else needs."""

    id: str | None = Field(default=None, description="The ID that the app gave it; absent where that is `agent_id`.")
    event_time: Seconds | None = Field(default=None, description="The time that its latest event has, in seconds since 1970.")


class Compaction(StrictModel, frozen=True):
    """What stands in place of the older messages of the memory; the transcript still has them."""

    summary: str
    through: Number = Field(description="The number of the last message that it replaces.")
    messages: Number = Field(description="How many messages it stands for, those of earlier summaries included.")


class Session(SessionModel, frozen=True):
    """The record of one sub-agent's piece of work: ``state.json``."""

    agent_id: str = Field(description="The ID of the session, and the name of its directory: generated as `agent-{date}-{time}-{8 hex digits}`, or your own.")
    agent_name: str = Field(description="The kind of agent, what hosts call its type; by default `unknown`.")
    purpose: str = Field(description="What it is for; by default `general`.")
    created_at: Time = Field(description="When it was created.")
    last_updated: Time = Field(description="The last activity of the work that was reported; while its agent works, what it writes to its transcript counts too.")
    phase: Phase = Field(description="Where the work stands.")
    metadata: dict[str, JsonValue] = Field(description="For facts, not for secrets or transcripts.")
    resume_ready: bool = Field(description="Follows the phase; can be switched off by hand.")
    history: list[Move] = Field(description="The newest 200 changes of the phase.")
    error_count: Count = Field(description="How many errors were counted.")
    last_error: LastError | None = Field(description="The latest of them.")
    schema_: Number = Field(default=1, alias="schema", description="The version of this shape.")
    revision: Count = Field(default=0, description="One more with every write: this is what orders writes.")
    history_dropped: Count | None = Field(default=None, description="How many changes of the phase there were before those in `history`.")
    continues: str | None = Field(default=None, description="The finished session whose work this one continues.")
    imported_from: str | None = Field(default=None, description="The folder of sessions that it was imported from.")
    parent_id: str | None = Field(default=None, description="The session below which this one was created, or whose agent or workflow started this one's. Once set it never changes, and nothing else says who is above whom. For a host's agents only where the host tells; its main agent has no session, unless its environment names one: see Hooks.")
    max_depth: Count | None = Field(default=None, description="The greatest depth that a session below this one may be created with.")
    max_tokens: Count | None = Field(default=None, description="How many tokens the work may use: the budget, where it has one of its own.")
    allowed_tools: list[str] | None = Field(default=None, description="The tools that its agent may use, if they are limited; never changed.")
    app: str | None = Field(default=None, description="The app whose state it shares; never changed.")
    user: str | None = Field(default=None, description="The user of that app; it is there with `app`.")
    app_session: AppSession | None = Field(default=None, description="What only its app knows of it.")
    session_state: dict[str, JsonValue] | None = Field(default=None, description="What its agents hand each other, without what others share.")
    question: str | None = Field(default=None, description="What it asks, as it was said with the phase; gone once it moves on, or asks again.")
    approval: Answer | None = Field(default=None, description="What it waits for was approved.")
    denial: Answer | None = Field(default=None, description="What it waits for was denied.")
    answers: list[GivenAnswer] | None = Field(default=None, description="The newest 20 answers to what it waited for, also those that the work went on with: who answered, and how.")
    runs: list[Run] | None = Field(default=None, description="The newest 50, and earlier ones that have no end.")
    runs_dropped: Count | None = Field(default=None, description="How many other runs there were.")
    paused_until: Time | None = Field(default=None, description="When the limit is reset that interrupted the work.")
    usage: Usage | None = Field(default=None, description="What all its runs used: the sum of their `consumed`, those of dropped runs included.")
    charged_tokens: Count | None = Field(default=None, description="The sum of all charges.")
    token_correction: int | None = Field(default=None, description="What is added to charges, skills and consumption so that the sum is the total that was stated.")
    skills: dict[str, Count] | None = Field(default=None, description="The skills that were loaded, each with its tokens, in their order.")
    todos: list[Todo] | None = Field(default=None, description="What its agent means to do; a status is `pending`, `in_progress`, `completed` or `cancelled`.")
    turns: Count | None = Field(default=None, description="How many turns of its transcript are complete; of an app, how often a user spoke.")
    transcript_bytes: Count | None = Field(default=None, description="How many bytes of the transcript are committed.")
    last_seq: Count | None = Field(default=None, description="The number of the last message; no other is given it, whatever is lost.")
    compaction: Compaction | None = Field(default=None, description="The summary that stands in place of the older messages in the memory of an agent.")
    transcripts_archived: Count | None = Field(default=None, description="The N of `transcript-N.jsonl`, which has the messages; what was before is archived.")
    finalized_at: Time | None = Field(default=None, description="When the work ended; only in a final phase.")
    duration_seconds: Seconds | None = Field(default=None, description="The time from its creation to its end; only in a final phase.")
    summary: str | None = Field(default=None, description="What was said of the outcome; only in a final phase.")
