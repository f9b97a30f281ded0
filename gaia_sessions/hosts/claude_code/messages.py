"""The messages of an agent of Claude Code, from its transcript.

Owns how a line becomes messages, as seen in runs of 2.1.197 and 2.1.330: each line names its agent and has one message,
whose content is a text or blocks of text, calls of tools and their results. Thoughts are left out. Everything in it is
untrusted. A transcript may have many MB, so it is read line by line.
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
"""What only lines with what was sent have, as the client writes them: a result and an interruption have a list."""

_WITHIN_TURN = ("[Request interrupted", "Stop hook feedback:", "[SYSTEM NOTIFICATION - NOT USER INPUT]")
"""How a text of a user begins that the client itself wrote into a turn."""

_LONGEST_INPUT = 2 * LONGEST_LINE

_FAR_BACK = 64 << 20
"""Bytes at the end of a transcript in which what a turn began with is looked for."""


def messages(run: Run) -> Iterator[NewMessage | SessionsError]:
    """The messages of the agent of ``run`` in their order.

    An error stands in place of what cannot be read: of a line, or of all.
    """
    path, agent = run.get("transcript_path", ""), run.get("host_agent_id")
    if is_workflow_itself(run):
        yield InvalidInput("it is the journal of a workflow, whose agents have sessions of their own", path)
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
                yield InvalidInput(error.problem if line else "it is longer than 2 MiB", f"{path} line {number}")
            except ValueError as error:
                yield InvalidInput(str(error), f"{path} line {number}")
    except OSError as error:
        yield StoreFailure("read", path, error.strerror or str(error), "`gaia-sessions report ID` says what is known")
    if is_of_another and not is_of_agent:
        yield InvalidInput("it is the transcript of another agent", path)


def newest_first(run: Run, last_bytes: int) -> Iterator[tuple[bool, NewMessage]]:
    """The messages of the agent of ``run``, the last first, each with whether a turn begins with it.

    Only those in so many bytes at the end of its transcript; a line that cannot be read is left out. Raises
    ``OSError`` if nothing can be read.
    """
    if is_workflow_itself(run):
        return
    for line in lines_backwards(CLAUDE_CODE, run.get("transcript_path", ""), last_bytes):
        if any(mark in line for mark in _MARKS_OF_ROLES):
            found = _messages_of_agent(line, run)
            begins = [place == 0 and _begins_turn(message) for place, message in enumerate(found)]
            yield from zip(reversed(begins), reversed(found), strict=True)


def sent_newest_first(run: Run, is_late: Callable[[], bool]) -> Iterator[tuple[bool, NewMessage]]:
    """What the turns of the agent of ``run`` began with, the last first, each with whether nothing is before it.

    It is looked for in the last 64 MiB of its transcript until it ``is_late``, in the one form that was seen there: a
    text. An agent that its client takes along to another conversation goes on in a file without the first. None is
    given from beyond one that is too long to be read: an older one is not what its turn began with.
    """
    try:
        for block, first in blocks_backwards(CLAUDE_CODE, run.get("transcript_path", ""), _FAR_BACK):
            if is_late():
                return
            for start, line in _lines_to_agent(block, first):
                if len(line) >= LONGEST_LINE:
                    return
                for message in filter(_begins_turn, _messages_of_agent(line, run)[:1]):
                    yield start == 0, message
    except OSError:  # what was found until then is there
        return


def _lines_to_agent(block: bytes, first: int) -> list[tuple[int, bytes]]:
    """The lines of ``block`` from ``first`` on with what was sent to an agent, the last first, and their places.

    It is searched forwards: there Python skips more of it. The last line may lack its end.
    """
    found: list[tuple[int, bytes]] = []
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
    except ValueError:  # no time
        return []


def _begins_turn(message: NewMessage) -> bool:
    return message["role"] == _USER and not message["content"].startswith(_WITHIN_TURN)


def _whole_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Each line that is whole, empty if it is too long; one that is being written is none."""
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
