"""The messages of an agent of Claude Code, from its transcript, which is untrusted. As seen in runs of 2.1.197 and
2.1.330, each line names its agent and has one message: a text, or blocks of text, calls of tools and results.
A transcript may have many MB, so it is read line by line.
"""

from __future__ import annotations

from gaia_sessions.errors import InvalidInput, StoreFailure
from gaia_sessions.hosts import CLAUDE_CODE
from gaia_sessions.hosts.agent_files import LONGEST_LINE, blocks_backwards, lines, lines_backwards
from gaia_sessions.hosts.payload import key_in, object_in, object_in_bytes
from gaia_sessions.jsonio.strict import dump_line, load_object
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.runs import is_workflow_itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gaia_sessions.errors import SessionsError
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.schema import Run
    from gaia_sessions.session.transcript import NewMessage

_USER = "user"
_ROLES = (_USER, "assistant")
_MARKS_OF_ROLES = tuple(f'"{role}"'.encode() for role in _ROLES)
_MARK_OF_SENT = b'"role":"user","content":"'
"""Only lines of messages to the agent have this text. A result and an interruption have a list as content."""

_WITHIN_TURN = ("[Request interrupted", "Stop hook feedback:", "[SYSTEM NOTIFICATION - NOT USER INPUT]")
"""The beginnings of texts with the role of a user that the client itself wrote into a turn."""

_LONGEST_INPUT = 2 * LONGEST_LINE

_FAR_BACK = 64 << 20
"""Bytes at the end of a transcript in which we look for the first message of a turn."""


def messages(run: Run) -> Iterator[NewMessage | SessionsError]:
    """Yields the messages of the agent of ``run`` in order. An error replaces a line or file that cannot be read."""
    path, agent = run.get("transcript_path", ""), run.get("host_agent_id")
    if is_workflow_itself(run):
        yield InvalidInput("this is the journal of a workflow; its agents have their own sessions", path)
        return
    is_of_agent = is_of_another = False
    try:
        for number, line in enumerate(_whole_lines(lines(CLAUDE_CODE, path)), 1):
            try:
                entry = load_object(line, LONGEST_LINE)
                if agent is not None and entry.get("agentId") == agent:
                    is_of_agent = True
                    yield from _messages_in(entry)
                else:
                    is_of_another = True
            except InvalidInput as error:
                yield InvalidInput(error.problem if line else "longer than 2 MiB", f"{path} line {number}")
            except ValueError as error:
                yield InvalidInput(str(error), f"{path} line {number}")
    except OSError as error:
        hint = "to see what is recorded: gaia-sessions report ID"
        yield StoreFailure("read", path, error.strerror or str(error), hint)
    if is_of_another and not is_of_agent:
        yield InvalidInput("this is the transcript of another agent", path)


def newest_first(run: Run, last_bytes: int) -> Iterator[tuple[bool, NewMessage]]:
    """Yields the messages in the last bytes, newest first, each with whether it begins a turn; raises ``OSError``."""
    if is_workflow_itself(run):
        return
    for line in lines_backwards(CLAUDE_CODE, run.get("transcript_path", ""), last_bytes):
        if any(mark in line for mark in _MARKS_OF_ROLES):
            found = _messages_of_agent(line, run)
            begins = [place == 0 and _begins_turn(message) for place, message in enumerate(found)]
            yield from zip(reversed(begins), reversed(found), strict=True)


def sent_newest_first(run: Run, is_late: Callable[[], bool]) -> Iterator[tuple[bool, NewMessage]]:
    """Yields the first message of each turn, newest first, each with whether it begins the file."""
    try:
        for block, first in blocks_backwards(CLAUDE_CODE, run.get("transcript_path", ""), _FAR_BACK):
            if is_late():
                return
            for start, line in _lines_to_agent(block, first):
                # A message that is too long to read may be the one that began the turn, so no older one is given.
                if len(line) >= LONGEST_LINE:
                    return
                for message in filter(_begins_turn, _messages_of_agent(line, run)[:1]):
                    # If the client moves an agent to another conversation, that file lacks the agent's first message.
                    yield start == 0, message
    except OSError:  # what was found until then counts
        return


def _lines_to_agent(block: bytes, first: int) -> list[tuple[int, bytes]]:
    """Returns the lines of ``block`` after ``first`` that were sent to an agent, newest first, with their places."""
    found: list[tuple[int, bytes]] = []
    # Python searches faster forwards. The last line may lack its end.
    mark = block.find(_MARK_OF_SENT, first)
    while mark >= 0:
        start, newline = block.rfind(b"\n", first, mark) + 1 or first, block.find(b"\n", mark)
        end = newline if newline >= 0 else len(block)
        found.append((start, block[start:end]))
        mark = block.find(_MARK_OF_SENT, end)
    return found[::-1]


def _messages_of_agent(line: bytes, run: Run) -> list[NewMessage]:
    entry = object_in_bytes(line, LONGEST_LINE)
    if "host_agent_id" not in run or entry.get("agentId") != run["host_agent_id"]:
        return []
    try:
        return list(_messages_in(entry))
    except ValueError:  # the line has no valid time
        return []


def _begins_turn(message: NewMessage) -> bool:
    return message["role"] == _USER and not message["content"].startswith(_WITHIN_TURN)


def _whole_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yields each whole line, or an empty line for a line that is too long; leaves out an unfinished last line."""
    is_rest = False
    for part in parts:
        is_end = part.endswith(b"\n")
        if is_end and (is_rest or part.strip()):
            yield b"" if is_rest else part
        is_rest = not is_end


def _messages_in(line: Payload) -> Iterator[NewMessage]:
    role = line.get("type")
    if role not in _ROLES:
        return
    made = format_time(parse_time(line.get("timestamp")))
    content = object_in(line, "message").get("content")
    if isinstance(content, str):
        yield {"role": role, "content": content, "timestamp": made}
        return
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            yield from _messages_of(role, block, made)


def _messages_of(role: str, block: Payload, made: str) -> Iterator[NewMessage]:
    kind = block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str) and text.strip():
        yield {"role": role, "content": text, "timestamp": made}
    elif kind == "tool_use":
        yield _of_call(role, _input_text(block.get("input")), made, key_in(block, "id"), key_in(block, "name"))
    elif kind == "tool_result":
        yield _of_call("tool", _result_text(block.get("content")), made, key_in(block, "tool_use_id"))


def _of_call(role: str, content: str, made: str, call: str | None, tool: str | None = None) -> NewMessage:
    message: NewMessage = {"role": role, "content": content, "timestamp": made}
    if tool is not None:
        message["tool_name"] = tool
    if call is not None:
        message["tool_call_id"] = call
    return message


def _input_text(tool_input: Json) -> str:
    return dump_line(tool_input, _LONGEST_INPUT).decode().rstrip("\n") if isinstance(tool_input, dict) else ""


def _result_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "\n".join(part for part in parts if isinstance(part, str))
