"""The models of the record. Made by scripts/render_models: never change one by hand."""

from typing import Literal

from pydantic import Field, JsonValue

from .bases import Count, Number, RunModel, Seconds, SessionModel, StrictModel, Time

__all__ = ["Answer", "AppSession", "Asked", "Below", "Compaction", "Conversation", "End", "GivenAnswer", "HostProcess", "Interruption", "LastError", "Move", "Moving", "OwnWork", "Phase", "Run", "Session", "Todo", "TodoStatus", "Usage", "Waiting", "Workflow", "Worktree"]

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
    """The answer to the question; removed when the phase changes or the agent asks again."""

    message: str = Field(description="The note; empty if there is none.")
    timestamp: Time


class GivenAnswer(StrictModel, frozen=True):
    """One answer to a question, as it was given; it stays when the session is resumed."""

    answer: str = Field(description="`approved`, `denied`, or `answered` if something was sent to the agent.")
    by: str = Field(description="How the answer was given: `command` (`approve`, `deny`), `python`, `resume_line`, `run` (with the ID of the session), `send` (to the agent), `update` (which changed the phase), `message` (which woke the agent), or `workflow` (which the host resumed).")
    timestamp: Time
    message: str | None = Field(default=None, description="The first 1,000 characters of the note.")
    shell: str | None = Field(default=None, description="The host in whose agent's shell the answer was given.")
    after_run: Count | None = Field(default=None, description="The number of the latest run when the answer was given; 0 if there was no run. The next run is told the answer. Absent if the answer itself resumed the work, or if a later answer replaced it.")


class HostProcess(StrictModel, frozen=True):
    """The process that ran the agent. These keys can prove that the process is gone."""

    pid: Number | None = None
    started: str | None = None
    boot_id: str | None = None
    pid_ns: str | None = None
    machine: str | None = None
    lock: str | None = Field(default=None, description="A file that the process locks while the run lasts.")
    lease: str | None = Field(default=None, description="On a server: the lease that the process renews while its run goes on.")
    lock_folder: str | None = Field(default=None, description="The device and the inode of the folder of this file.")


class Workflow(StrictModel, frozen=True):
    """The workflow run to which a run belongs: one call of a script of the host that starts agents."""

    run_id: str = Field(description="The host's ID of the workflow run. It stays the same when the host resumes the workflow.")
    key: str | None = Field(default=None, description="The host's key of the agent in the workflow; absent in the run of the workflow itself.")


class Usage(StrictModel, frozen=True):
    """What an agent used, as its host reported it; a figure that was not reported is absent."""

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
    """The conversation of the client that was the command of a run; it has the messages up to ``seq``."""

    preset: str = Field(description="Which client.")
    id: str = Field(description="The client's ID of the conversation.")
    cwd: str = Field(description="The folder in which the client ran. The client finds its conversations by this folder.")
    generation: Count = Field(description="The generation of the transcript with the client's messages; the first is 0.")
    seq: Count = Field(description="The number of the last message that the client knows; 0 if there is none.")


class Asked(StrictModel, frozen=True):
    """A request for permission: the agent wants to use a tool."""

    since: Time
    for_: str = Field(alias="for", description="The tool that the agent wants to use.")
    asked: str | None = Field(default=None, description="A digest of the tool and its input.")
    call: str | None = Field(default=None, description="The host's key of this use, if the host reports the key with the request.")


class Waiting(StrictModel, frozen=True):
    """The first request of an agent that is not known to be answered."""

    since: Time
    for_: str = Field(alias="for", description="The tool that the agent wants to use.")
    asked: str | None = Field(default=None, description="A digest of the tool and its input.")
    call: str | None = Field(default=None, description="The host's key of this use, if the host reports the key with the request.")
    others: list[Asked] | None = Field(default=None, description="Later requests that are not known to be answered.")


class OwnWork(StrictModel, frozen=True):
    """The tasks in the background for which the agent waits: the host wakes the agent when they are over."""

    since: Time = Field(description="When the agent ended its turn.")
    kind: str = Field(description="`command`, `monitor`, `agent` or `work`.")
    tasks: list[str] = Field(description="The host's IDs of the tasks.")
    assumed: bool | None = Field(default=None, description="True if nobody reported that the end of the tasks wakes the agent; the agent may have ended.")


class Below(StrictModel, frozen=True):
    """The agents that a run started, and those that they started."""

    agents: Count = Field(description="How many.")
    states: dict[str, Count] = Field(description="How many are in each state.")
    tokens: Count | None = Field(default=None, description="What they used together; absent if nobody reported any.")


class Moving(StrictModel, frozen=True):
    """A move of an open session from one root to another that has not ended. Both roots have the same."""

    source: str = Field(description="The root from which it comes.")
    target: str = Field(description="The root to which it goes.")
    token: str = Field(description="Random text of this move.")


class Run(RunModel, frozen=True):
    """One execution of a sub-agent, or of a command, for a session; a key whose value is unknown is absent."""

    run: Number = Field(description="Number of the run, from 1.")
    host: str | None = Field(default=None, description="The coding agent that ran the sub-agent, such as `claude-code`.")
    host_session_id: str | None = Field(default=None, description="The host's ID of the conversation in which the run began.")
    current_host_session_id: str | None = Field(default=None, description="The host's ID of the conversation that reports the run now, if it is not `host_session_id`.")
    host_agent_id: str | None = Field(default=None, description="The host's ID of the agent. For the run of a workflow: the ID of its task.")
    tool_use_id: str | None = Field(default=None, description="The host's ID of the delegation.")
    parent_host_agent_id: str | None = Field(default=None, description="The host's ID of the agent that delegated; absent if the main agent did.")
    workflow: Workflow | None = Field(default=None, description="The workflow of the host (a script that starts agents) to which the run belongs.")
    host_process: HostProcess | None = Field(default=None, description="The host's process that ran the agent. All keys together identify the process: the system can use a pid again.")
    wrapper: HostProcess | None = Field(default=None, description="The process of `gaia-sessions run` or of a send. Only this process writes the end of the run, unless the process is proved to be gone.")
    turn: Number | None = Field(default=None, description="Number of the turn that a send adds.")
    depth: Count | None = Field(default=None, description="For a send: at least how many levels deep the agent works, as the caller stated it.")
    timeout_secs: Seconds | None = Field(default=None, description="Seconds after which the command is asked to end.")
    hard_timeout_secs: Seconds | None = Field(default=None, description="Seconds after which the command is killed.")
    background: bool | None = Field(default=None, description="Whether the agent works in the background: its delegation returns before the agent ends.")
    unannounced: bool | None = Field(default=None, description="True if the host reports no start of the agent. Then the agent counts as working from the delegation on.")
    enforced: bool | None = Field(default=None, description="Whether the host asks before each use of a tool, so that limits hold.")
    mentioned: list[str] | None = Field(default=None, description="IDs of the sessions that the delegation named, if the delegation resumed none of them.")
    claimed_at: Time | None = Field(default=None, description="When the agent was delegated. Perhaps the agent never started.")
    started_at: Time | None = Field(default=None, description="When the agent started.")
    ended_at: Time | None = Field(default=None, description="When the run ended.")
    end: End | None = Field(default=None, description="How the run ended. If `end` is `stopped` without `ended_at`, the agent left no message, and the run is still open.")
    waiting: Waiting | None = Field(default=None, description="The tool for which the agent asked permission. Perhaps somebody has answered already. Removed when the agent stops.")
    unanswered: bool | None = Field(default=None, description="Whether a message, or the end of the agent's own command, woke the agent before anybody answered the question. The waking approved nothing.")
    own_work: OwnWork | None = Field(default=None, description="The agent's own command for which the agent waits. Removed when the agent is woken. If the run also has `ended_at`, the end of the run is assumed.")
    interruption: Interruption | None = Field(default=None, description="If `end` is `killed` and the session can be resumed: what interrupted the agent.")
    detail: str | None = Field(default=None, description="More about the end, such as `timeout` or `max_tokens` of a command.")
    exit_code: int | None = Field(default=None, description="Exit code of the command, as shells state it: 128 + N for signal N.")
    reported: Phase | None = Field(default=None, description="The phase that the agent last reported in this run.")
    last_message: str | None = Field(default=None, description="The last message of the agent.")
    transcript_path: str | None = Field(default=None, description="The host's file with the transcript of the agent.")
    output_path: str | None = Field(default=None, description="The file with the output of the command.")
    model: str | None = Field(default=None, description="The model, as the host named it.")
    searches: list[str] | None = Field(default=None, description="A digest for each search that was allowed.")
    held: list[str] | None = Field(default=None, description="A digest for each stop after which the agent was kept at work.")
    warned_at: Time | None = Field(default=None, description="When the agent was warned that most of its budget is used.")
    conversation: Conversation | None = Field(default=None, description="If the command is a client: the conversation, which a later run can resume.")
    worktree: Worktree | None = Field(default=None, description="The worktree that the host made for the agent, if the worktree still existed at the end of the run.")
    usage: Usage | None = Field(default=None, description="What the agent used, as the host reported at the end.")
    consumed: Usage | None = Field(default=None, description="What all requests of the agent used together.")
    below: Below | None = Field(default=None, description="If the session is on a server: the agents below the run when it ended. Their sessions are in files.")


class Todo(StrictModel, frozen=True):
    """One task of the agent."""

    description: str
    status: TodoStatus


class AppSession(StrictModel, frozen=True):
    """Data of a session that only its app needs."""

    id: str | None = Field(default=None, description="The app's ID of the session; absent if it is `agent_id`.")
    event_time: Seconds | None = Field(default=None, description="The time of the latest event, in seconds since 1970.")


class Compaction(StrictModel, frozen=True):
    """The summary that replaces the older messages of the memory; the transcript still has them."""

    summary: str
    through: Number = Field(description="The number of the last message that the summary replaces.")
    messages: Number = Field(description="How many messages the summary replaces, those of earlier summaries included.")


class Session(SessionModel, frozen=True):
    """The record of one session: ``state.json``."""

    agent_id: str = Field(description="ID of the session and name of its folder: generated as `agent-{date}-{time}-{8 hex digits}`, or your own.")
    agent_name: str = Field(description="Type of the agent; `unknown` by default.")
    purpose: str = Field(description="Purpose of the session; `general` by default.")
    created_at: Time = Field(description="When the session was created.")
    last_updated: Time = Field(description="The last reported activity. Writes to the transcript are activity too, but do not change this time.")
    phase: Phase = Field(description="The phase of the session.")
    metadata: dict[str, JsonValue] = Field(description="Facts of your own, but no secrets or transcripts.")
    resume_ready: bool = Field(description="True in a resumable phase, unless you switched it off.")
    history: list[Move] = Field(description="The newest 200 changes of the phase.")
    error_count: Count = Field(description="Number of errors so far.")
    last_error: LastError | None = Field(description="The latest error.")
    schema_: Number = Field(default=1, alias="schema", description="Version of this format.")
    revision: Count = Field(default=0, description="Number of the last write. Each write adds 1.")
    history_dropped: Count | None = Field(default=None, description="Number of older changes, no longer in `history`.")
    continues: str | None = Field(default=None, description="ID of the ended session that this session continues.")
    imported_from: str | None = Field(default=None, description="The root from which the session was imported.")
    parent_id: str | None = Field(default=None, description="ID of the session above: the parent given at creation, or the session whose agent or workflow started this session, if the host reports this. Once set, it never changes. A main agent has no session, unless its environment names a session.")
    stand_in: bool | None = Field(default=None, description="True if the session with this ID is on a server, and this record stands in for it. Then the phase says nothing.")
    moving: Moving | None = Field(default=None, description="A move to another root that has not ended. Until it ends, nothing can change the session, and `schema` is 1000000.")
    max_depth: Count | None = Field(default=None, description="Greatest depth that a session below this one may have.")
    max_tokens: Count | None = Field(default=None, description="Budget that was set for the session, in tokens.")
    allowed_tools: list[str] | None = Field(default=None, description="Tools that the agent may use, if the tools are limited. Never changes.")
    app: str | None = Field(default=None, description="The app whose state the session shares. Never changes.")
    user: str | None = Field(default=None, description="The user of the app; always together with `app`.")
    app_session: AppSession | None = Field(default=None, description="Data that only the app needs.")
    session_state: dict[str, JsonValue] | None = Field(default=None, description="State of this session alone, not shared with other sessions.")
    question: str | None = Field(default=None, description="The agent's question, given with `update`. Removed when the phase changes or the agent asks again.")
    approval: Answer | None = Field(default=None, description="Approval of the question. `message` is the note or empty.")
    denial: Answer | None = Field(default=None, description="Denial of the question. `message` is the reason or empty.")
    answers: list[GivenAnswer] | None = Field(default=None, description="The newest 20 answers to all questions, each with who answered, and how. Runs after run `after_run` are told the answer.")
    runs: list[Run] | None = Field(default=None, description="The newest 50 runs, and older runs that have not ended.")
    runs_dropped: Count | None = Field(default=None, description="Number of older runs, no longer in `runs`.")
    paused_until: Time | None = Field(default=None, description="When the usage limit that interrupted the work is reset.")
    usage: Usage | None = Field(default=None, description="What all runs used: the sum of `consumed` of all runs, dropped runs included.")
    charged_tokens: Count | None = Field(default=None, description="Sum of all tokens that were charged.")
    token_correction: int | None = Field(default=None, description="The total that `usage --total` stated, minus the charged, loaded and consumed tokens at that time.")
    skills: dict[str, Count] | None = Field(default=None, description="Skills in the order of loading, each with its tokens.")
    todos: list[Todo] | None = Field(default=None, description="Tasks of the agent; a status is `pending`, `in_progress`, `completed` or `cancelled`.")
    turns: Count | None = Field(default=None, description="Number of complete turns; in a session of an app, number of messages from the user.")
    transcript_bytes: Count | None = Field(default=None, description="How many bytes of the transcript are valid, from its beginning. Later bytes are ignored.")
    last_seq: Count | None = Field(default=None, description="`seq` of the last message. No other message ever gets it.")
    compaction: Compaction | None = Field(default=None, description="Summary that replaces the older messages in an agent's memory.")
    transcripts_archived: Count | None = Field(default=None, description="The N of `transcript-N.jsonl`, the current transcript. Earlier files are archives.")
    finalized_at: Time | None = Field(default=None, description="When the session ended; only in a final phase.")
    duration_seconds: Seconds | None = Field(default=None, description="Time from creation to end; only in a final phase.")
    summary: str | None = Field(default=None, description="Summary of the outcome; only in a final phase.")
