"""Claude Code as a command: ``claude -p`` that reads and writes a JSON object a line (stream-json).
As seen in runs of 2.1.197 and 2.1.330.
"""

from __future__ import annotations

import glob
import os
import sys
import uuid

from gaia_sessions.errors import UsageError, well_formed
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.clients import JsonLines, Options, check_words, shown_text
from gaia_sessions.hosts.host_files import conversations_of
from gaia_sessions.hosts.payload import figures_in, key_in, object_in, parts_in, text_in
from gaia_sessions.jsonio.strict import dump_line
from gaia_sessions.session.budget import consumed_tokens
from gaia_sessions.session.usage import sum_of, with_total_tokens
from gaia_sessions.session.visible import visible_line

from .reported_usage import REQUEST_FIGURES
from .transcripts import NO_MODEL, consumption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.schema import Run, Usage

PRESET = "claude"

_FLAGS = (
    *("-p", "--verbose", "--output-format", "stream-json", "--include-partial-messages"),
    *("--input-format", "stream-json"),
)
_INTERRUPT = {"type": "control_request", "request_id": "end", "request": {"subtype": "interrupt"}}
_REPORT = (
    "You must stop: your time or your tokens are used up. Use no more tools. Report now what you did, what you found, "
    "and what is left to do."
)
_TOOLS = "--tools"
_UNKNOWN_CONVERSATION = "No conversation found"
_LONGEST_CALL = 100
_MOST_SAID = 4 << 20
"""Characters of one message that are stored: four times what a transcript takes of a message."""

_OPTIONS = Options(
    own=(
        *("-p", "--print", "-r", "--resume", "-c", "--continue", "--session-id", "--fork-session", "--from-pr"),
        *("--input-format", "--output-format", "--replay-user-messages", "--teleport", "--remote-control"),
        *("--bg", "--background", "--cloud", "--desktop", "--tmux", "-h", "--help", "-v", "--version"),
    ),
    without_value=(
        *("--allow-dangerously-skip-permissions", "--ax-screen-reader", "--bare", "--brief", "--chrome", "--no-chrome"),
        *("--dangerously-skip-permissions", "--disable-slash-commands", "--exclude-dynamic-system-prompt-sections"),
        *("--forward-subagent-text", "--ide", "--include-hook-events", "--include-partial-messages", "--restricted"),
        *("--no-session-persistence", "--safe-mode", "--strict-mcp-config", "--verbose"),
    ),
    with_one_value=(
        *(
            "--agent",
            "--agents",
            "--append-system-prompt",
            "--autocompact",
            "--debug-file",
            "--effort",
            "--json-schema",
        ),
        *("--fallback-model", "--max-budget-usd", "--model", "-n", "--name", "--permission-mode", "--plugin-dir"),
        *("--permission-prompts", "--plugin-url", "--setting-sources", "--settings", "--system-prompt"),
        *("-d", "--debug", "-w", "--worktree", "--prompt-suggestions", "--system-prompt-snapshot", "--environment"),
    ),
)


class ClaudeCode:
    """One process of the client: see ``hosts.clients.Client``."""

    def __init__(self, text: str, environment: Mapping[str, str], conversation_id: str | None) -> None:
        self._is_resumed = conversation_id is not None
        self.conversation_id = conversation_id or str(uuid.uuid4())
        self.is_told_all = False
        self.may_report = True
        self._folder = conversations_of(CLAUDE_CODE, environment)
        self._to_say = [_user_message(text)]
        self._lines = JsonLines()
        self._result: Payload | None = None
        self.must_be_killed = False
        self._has_begun = self._wants_report = self._is_asking = self._is_ending = False
        self._agents: set[str] = set()  # the IDs of agents at work
        self._requests_left = float("inf")
        self._main = _Agent()
        self._tokens_in_lines: dict[str, int] = {}  # by the IDs of messages of sub-agents
        self._counted: dict[str, tuple[int, int]] = {}  # transcripts of sub-agents: their sizes, and the tokens in them
        self._agents_before = self._tokens_in_transcripts()

    @staticmethod
    def check(words: Sequence[str]) -> None:
        check_words(PRESET, words[1:], _OPTIONS)

    @staticmethod
    def with_tools(words: Sequence[str], allowed: Sequence[str] | None, blocked: Sequence[str]) -> list[str]:
        limits = [] if allowed is None else [f"{_TOOLS}={','.join(allowed)}"]
        if limits and any(word.partition("=")[0] == _TOOLS for word in words):  # the client would add both lists
            raise UsageError(f"the command has {_TOOLS}, but the session has its own list of tools", f"remove {_TOOLS}")
        limits += [f"--disallowedTools={','.join(blocked)}"] if blocked else []
        return [words[0], *limits, *words[1:]]

    @property
    def is_at_rest(self) -> bool:
        return self._result is not None and self._result.get("num_turns") != 0

    @property
    def message(self) -> str:
        is_result = self._result is not None and self.problem is None
        return text_in(self._result or {}, "result") if is_result else self._main.last_words

    @property
    def problem(self) -> str | None:
        if self._result is None:
            return "it ended without a result"
        if self._result.get("is_error") is False:
            return None
        errors = self._result.get("errors")
        told = [str(one) for one in errors] if isinstance(errors, list) else []
        return text_in(self._result, "result") or "; ".join(told) or text_in(self._result, "subtype")

    @property
    def is_refused(self) -> bool:
        has_begun = self._result is None or self._result.get("num_turns") != 0
        return self._is_resumed and not has_begun and _UNKNOWN_CONVERSATION in (self.problem or "")

    def words(self, words: Sequence[str]) -> list[str]:
        option = "--resume" if self._is_resumed else "--session-id"
        return [words[0], *_FLAGS, option, self.conversation_id, *words[1:]]

    def to_say(self) -> bytes:
        said, self._to_say = b"".join(self._to_say), []
        return said

    def hear(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        for line, told in self._lines.add(data):
            if told:
                yield from self._heard(told)
            elif not line.startswith(b"{"):  # it does not belong to the protocol
                yield 1, line + b"\n"

    def asks_to_end(self, *, is_out_of_tokens: bool) -> bool:
        if self.is_told_all or not self.may_report:
            return False
        self._is_ending = True
        self._wants_report = not self.is_at_rest
        if not self._wants_report:
            self._to_say.append(_user_message(_REPORT))
        # At ``interrupt`` the client ends its turn and the tools in the turn, and sends a result that says so. Then it
        # takes a new message. Between two turns, an interrupt would stop the client's agents.
        elif self._has_begun:  # before its first request the client ignores an interrupt
            self._to_say.append(dump_line(_INTERRUPT))
        if is_out_of_tokens:
            self._requests_left = 0 if self._is_asking else 1
        return True

    def figures(self) -> Run:
        return self._main.figures()

    def tokens_of_agents(self) -> int:
        # The lines of sub-agents have only one token of output each, so their transcripts are added up.
        return max(sum(self._tokens_in_lines.values()), self._tokens_in_transcripts() - self._agents_before)

    def _tokens_in_transcripts(self) -> int:
        folder = os.path.join(glob.escape(self._folder), "*", self.conversation_id, "subagents")
        for place in (folder, os.path.join(folder, "workflows", "*")):  # "**" would follow links in circles
            for path in glob.iglob(os.path.join(place, "agent-*.jsonl")):
                self._count(path)
        return sum(tokens for _, tokens in self._counted.values())

    def _count(self, path: str) -> None:
        try:
            size = os.stat(path).st_size
        except OSError:  # it was removed meanwhile
            return
        if self._counted.get(path, (0, 0))[0] != size:
            used = consumption({"transcript_path": path}, None, None, lambda: False)
            if used:
                self._counted[path] = size, consumed_tokens(used["consumed"])

    def _heard(self, told: Payload) -> Iterator[tuple[int, bytes]]:
        kind, is_of_main = told.get("type"), told.get("parent_tool_use_id") is None
        if kind == "stream_event" and is_of_main:
            yield from self._heard_event(object_in(told, "event"))
        elif kind == "assistant":
            yield from self._heard_message(object_in(told, "message"), is_of_main=is_of_main)
        elif kind == "user":
            yield from _failures_in(object_in(told, "message"), is_of_main=is_of_main)
        elif kind == "system" and told.get("subtype") == "api_retry":
            why = visible_line(f"{told.get('error_status')}, {text_in(told, 'error')}", _LONGEST_CALL)
            yield 2, shown_text(f"  the API failed ({why}); the client tries again\n")
        elif kind == "system":
            self._heard_of_work(told)
        elif kind == "result":
            self._heard_result(told)

    def _heard_event(self, event: Payload) -> Iterator[tuple[int, bytes]]:
        kind = event.get("type")
        if kind == "message_start":
            self._main.begin(object_in(event, "message"))
        elif kind == "content_block_delta":
            text = text_in(object_in(event, "delta"), "text")
            if text:
                self._main.say(text)
                yield 1, shown_text(text)
        elif kind == "content_block_stop" and self._main.ends_line():
            yield 1, b"\n"
        elif kind == "message_delta":  # a request ends; only this event has the true figures of the main agent
            self._is_asking = False
            self._main.use(object_in(event, "usage"))
            calls_tools = object_in(event, "delta").get("stop_reason") == "tool_use"
            self.must_be_killed = self._requests_left <= 0 and calls_tools

    def _heard_message(self, message: Payload, *, is_of_main: bool) -> Iterator[tuple[int, bytes]]:
        message_id = key_in(message, "id") or ""
        if message.get("model") != NO_MODEL and not is_of_main:
            used = figures_in(object_in(message, "usage"), REQUEST_FIGURES)
            self._tokens_in_lines[message_id] = consumed_tokens(used)  # type: ignore[arg-type]  # it has their names
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                if is_of_main:
                    self._main.calls.add(key_in(block, "id") or "")
                yield 2, shown_text(_call_line(block, is_of_main=is_of_main))

    def _heard_of_work(self, told: Payload) -> None:
        """Notes that a request of the main agent begins, or that a sub-agent begins or is done."""
        if told.get("status") == "requesting":
            self._result, self._is_asking = None, True
            self._requests_left -= 1
            if self._wants_report and not self._has_begun:
                self._to_say.append(dump_line(_INTERRUPT))
            self._has_begun = True
        elif told.get("subtype") == "task_started" and told.get("task_type") == "local_agent":
            self._agents.add(key_in(told, "task_id") or "")
        elif told.get("subtype") == "task_notification":
            self._agents.discard(key_in(told, "task_id") or "")
            self.is_told_all = self.is_told_all or (self._result is not None and not self._agents)

    def _heard_result(self, told: Payload) -> None:
        self._result, self._is_asking = told, False
        is_report = told.get("is_error") is False
        if self._wants_report and not is_report and self._requests_left > 0:
            self._to_say.append(_user_message(_REPORT))
        # The client ends when its stdin is closed and all its agents are done. Each of these agents causes one more
        # result. So stdin is closed after a result if no agent is at work.
        elif self._is_ending or not self._agents:
            self.is_told_all = True
        self._wants_report = False


CLIENT = ClaudeCode


class _Agent:
    """What the main agent said and used. Its messages come piece by piece."""

    def __init__(self) -> None:
        self.calls: set[str] = set()
        self._used_before: Usage = {}
        self._used: Usage = {}  # in the latest message
        self._model: str | None = None
        self._said: list[str] = []
        self._length = 0
        self._said_before = ""
        self._has_open_line = False

    @property
    def last_words(self) -> str:
        return "".join(self._said).strip() or self._said_before

    def begin(self, message: Payload) -> None:
        self._said_before, self._said, self._length = self.last_words, [], 0
        self._used_before, self._used = sum_of((self._used_before, self._used)), {}
        self._model = key_in(message, "model") or self._model
        self.use(object_in(message, "usage"))

    def use(self, usage: Payload) -> None:
        self._used.update(figures_in(usage, REQUEST_FIGURES))  # type: ignore[typeddict-item]  # it has their names

    def say(self, text: str) -> None:
        if self._length < _MOST_SAID:
            self._said.append(text)
            self._length += len(text)
        self._has_open_line = not text.endswith("\n")

    def ends_line(self) -> bool:
        """Returns whether the block that ends now left a line open, and ends that line."""
        if not self._has_open_line:
            return False
        self._said.append("\n")
        self._has_open_line = False
        return True

    def figures(self) -> Run:
        total = with_total_tokens(sum_of((self._used_before, self._used)))
        if not total:
            return {}
        found: Run = {"consumed": {**total, "tool_uses": len(self.calls)}}
        return {**found, "model": well_formed(self._model)} if self._model else found


def _user_message(text: str) -> bytes:
    message = {"type": "user", "message": {"role": "user", "content": well_formed(text)}}
    return dump_line(message, limit=sys.maxsize)


def _call_line(block: Payload, *, is_of_main: bool) -> str:
    """Returns a line for a call of a tool: its name, and its first text. Calls of sub-agents are indented."""
    given = next((value for value in object_in(block, "input").values() if isinstance(value, str)), "")
    name = visible_line(text_in(block, "name"), _LONGEST_CALL)
    return f"{'' if is_of_main else '  '}  {name}: {visible_line(given, _LONGEST_CALL)}\n"


def _failures_in(message: Payload, *, is_of_main: bool) -> Iterator[tuple[int, bytes]]:
    """Yields a line for each call that failed, or that nobody permitted."""
    for block in parts_in(message, "tool_result"):
        if block.get("is_error") is True:
            why = visible_line(str(block.get("content")), _LONGEST_CALL)
            yield 2, shown_text(f"{'' if is_of_main else '  '}  failed: {why}\n")
