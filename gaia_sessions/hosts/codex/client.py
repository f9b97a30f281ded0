"""Codex as a command: ``codex exec --json``, as seen in runs of 0.169.0."""

from __future__ import annotations

import glob
import os
from functools import partial

from gaia_sessions.errors import UsageError
from gaia_sessions.hosts import CODEX, host_files
from gaia_sessions.hosts.clients import JsonLines, Options, check_words, is_conversation_id, shown_text
from gaia_sessions.hosts.payload import figures_in, key_in, object_in, object_in_bytes, text_in
from gaia_sessions.session.usage import add_usage, with_total_tokens
from gaia_sessions.session.visible import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.session.schema import Run, Usage

PRESET = "codex"

_EXEC = ("exec", "e")
_LONGEST_CALL = 100
_LONGEST_ENTRY = 1 << 20
_LONGEST_PART = 16 << 20
"""Bytes of a rollout file that are read at once. Of older lines only the sum would matter, and newer lines have it."""

_FIGURES = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cached_input_tokens",
}

_OPTIONS = Options(
    own=("--json", "-h", "--help", "-V", "--version", "--last", "--all"),
    without_value=(
        *("--oss", "--strict-config", "--approve-for-me", "--dangerously-bypass-approvals-and-sandbox", "--worktree"),
        *("--dangerously-bypass-hook-trust", "--skip-git-repo-check", "--trust", "--ephemeral", "--ignore-user-config"),
        "--ignore-rules",
    ),
    with_one_value=(
        *("-c", "--config", "--enable", "--disable", "-m", "--model", "--local-provider", "-p", "--profile", "-s"),
        *("--sandbox", "-C", "--cd", "--add-dir", "--thread-source", "--cyber-access-program", "--output-schema"),
        *("--color", "-o", "--output-last-message"),
    ),
)


class Codex:
    """One process of the client: see ``hosts.clients.Client``."""

    is_told_all = True  # it reads its input from stdin, until the end of stdin
    must_be_killed = False
    may_report = False  # it obeys only SIGINT

    def __init__(self, text: str, environment: Mapping[str, str], conversation_id: str | None) -> None:
        self.conversation_id = conversation_id
        self._resumed = conversation_id
        self._text = text
        self._lines = JsonLines()
        self._calls: set[str] = set()
        self._has_spoken = False
        self._is_complete = False
        self._error: str | None = None
        self.message = ""
        self._rollout = _Rollout(host_files.conversations_of(CODEX, environment))
        self._told: Usage = {}
        self._before = self._rollout.total(conversation_id)

    @staticmethod
    def check(words: Sequence[str]) -> None:
        check_words(PRESET, _arguments(words), _OPTIONS)

    @property
    def is_at_rest(self) -> bool:
        return self._is_complete

    @property
    def problem(self) -> str | None:
        return None if self._is_complete else self._error or "it ended without a result"

    @property
    def is_refused(self) -> bool:
        return self._resumed is not None and not self._has_spoken and not self._rollout.is_there

    @staticmethod
    def with_tools(words: Sequence[str], allowed: Sequence[str] | None, blocked: Sequence[str]) -> list[str]:  # noqa: ARG004  # it has no names for tools
        if allowed is not None:
            raise UsageError(
                f"{PRESET} cannot limit tools, but this agent may use only: {', '.join(allowed) or 'none'}",
                "use another client; to see whose list this is: gaia-sessions tool check ID NAME",
            )
        return [*words]

    def words(self, words: Sequence[str]) -> list[str]:
        # An option may take any number of values, but no other option. So ``--json`` comes after them.
        going_on = [] if self._resumed is None else ["resume", self._resumed, "-"]
        return [words[0], "exec", *_arguments(words), "--json", *going_on]

    def to_say(self) -> bytes:
        said, self._text = self._text, ""
        return said.encode("utf-8", "surrogateescape")

    def hear(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        for line, told in self._lines.add(data):
            self._has_spoken = True
            if told:
                yield from self._heard(told)
            elif not line.startswith(b"{"):  # it does not belong to the protocol
                yield 1, line + b"\n"

    def asks_to_end(self, *, is_out_of_tokens: bool) -> bool:  # noqa: ARG002  # it obeys only SIGINT
        return False

    def figures(self) -> Run:
        total = self._total()
        if not total:
            return {}
        used = add_usage({}, total, self._before)
        # The host's input tokens include the tokens read from a cache.
        fresh = used.get("input_tokens", 0) - used.get("cache_read_tokens", 0)
        return {
            "consumed": {**with_total_tokens({**used, "input_tokens": max(0, fresh)}), "tool_uses": len(self._calls)}
        }

    def _total(self) -> Usage:
        """Returns what all requests of its conversation used so far, as its file and its stdout say."""
        # The rollout file has a sum over the whole conversation for each request. Stdout has it only at the end
        # of the turn, and with ``--ephemeral`` there is no file.
        in_file, told = self._rollout.total(self.conversation_id), self._told
        return {name: max(in_file.get(name, 0), told.get(name, 0)) for name in {**in_file, **told}}  # type: ignore[call-overload, return-value]  # both have its names

    def tokens_of_agents(self) -> int:
        return 0  # its sub-agents have their own conversations, and this process reports nothing about them

    def _heard(self, told: Payload) -> Iterator[tuple[int, bytes]]:
        kind, item = told.get("type"), object_in(told, "item")
        if kind == "thread.started":
            thread = text_in(told, "thread_id")
            self.conversation_id = thread if is_conversation_id(thread) else None
        elif kind == "turn.started":
            self._is_complete = False
        elif kind == "turn.completed":
            self._is_complete = True
            self._told = figures_in(object_in(told, "usage"), _FIGURES)  # type: ignore[assignment]  # it has their names
        elif kind == "turn.failed":
            self._error = text_in(object_in(told, "error"), "message")
        elif kind == "item.started":
            self._calls.add(key_in(item, "id") or "")
            yield 2, shown_text(_call_line(item))
        elif kind == "item.completed" and item.get("type") == "agent_message":
            self.message = text_in(item, "text")
            yield 1, shown_text(f"{self.message}\n")
        elif kind == "item.completed" and item.get("type") == "error":
            yield 2, shown_text(f"  {visible_line(text_in(item, 'message'))}\n")


CLIENT = Codex


class _Rollout:
    """The file of a conversation. Each call reads what is new."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path: str | None = None
        self._read = 0
        self._total: Usage = {}

    @property
    def is_there(self) -> bool:
        return self._path is not None

    def total(self, conversation_id: str | None) -> Usage:
        """Returns what all requests of the conversation used so far, under our names. Input includes cached tokens."""
        if conversation_id is not None and self._path is None:
            days = os.path.join(glob.escape(self._folder), "*", "*", "*")
            pattern = os.path.join(days, f"rollout-*-{conversation_id}.jsonl")
            self._path = next(filter(partial(host_files.is_file, CODEX), glob.iglob(pattern)), None)
        if self._path is not None:
            for line in self._new_lines(self._path):
                if b'"token_count"' in line:
                    info = object_in(object_in(object_in_bytes(line, _LONGEST_ENTRY), "payload"), "info")
                    figures = figures_in(object_in(info, "total_token_usage"), _FIGURES)
                    self._total = figures or self._total  # type: ignore[assignment]  # it has their names
        return self._total

    def _new_lines(self, path: str) -> list[bytes]:
        try:
            fd, found = host_files.open_file(CODEX, path)
            with open(fd, "rb") as file:
                self._read = max(self._read, found.st_size - _LONGEST_PART)
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
        except OSError:  # it was removed meanwhile
            return []
        self._read += len(whole)
        return whole.splitlines()


def _arguments(words: Sequence[str]) -> Sequence[str]:
    """Returns the arguments of ``exec``, with or without the word ``exec`` in ``words``."""
    found = words[2:] if words[1:2] and words[1] in _EXEC else words[1:]
    return found[:-1] if found[-1:] == ["--"] else found


def _call_line(item: Payload) -> str:
    """Returns a line for a call of a tool: its kind, and its first argument."""
    given = next((item[key] for key in ("command", "query", "tool") if isinstance(item.get(key), str)), "")
    return f"  {visible_line(text_in(item, 'type'), _LONGEST_CALL)}: {visible_line(str(given), _LONGEST_CALL)}\n"
