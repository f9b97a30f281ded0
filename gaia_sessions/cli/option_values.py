"""Values of options with forms of their own: metadata, tools, state, times, lengths of time."""

from __future__ import annotations

import os
import sys
from datetime import datetime

import click

from gaia_sessions.cli import output
from gaia_sessions.errors import InvalidInput, TooLarge, UsageError
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import LENGTHS, length_of_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from gaia_sessions.cli.call import Call
    from gaia_sessions.jsonio.strict import Json

    Function = TypeVar("Function", bound=Callable[..., object])

METADATA = click.option(
    "--metadata",
    metavar="JSON|-",
    multiple=True,
    help="JSON object to merge into the metadata (top level only). Use - to read it from stdin. Can be repeated.",
)
PAIRS = click.option(
    "-m", "--meta", "pairs", metavar="KEY=VALUE", multiple=True, help="Metadata with a text value; can be repeated."
)


class Names(click.ParamType[list[str]]):
    """A type for names with commas between them; empty names are left out."""

    name = "names"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:  # noqa: ARG002  # click's signature
        return [name.strip() for name in str(value).split(",") if name.strip()]


def with_tools(command: Function) -> Function:
    """Adds the options for the tools of a new session to ``command``; ``allowed_tools`` reads them."""
    wanted = click.option(
        "--tools", metavar="A,B", type=Names(), help="The only tools that the agent can use, as the client names them."
    )
    there = click.option("--available", metavar="A,B", type=Names(), help="With --tools: all tools that exist.")
    return wanted(there(command))


def allowed_tools(
    call: Call, tools: list[str] | None, available: list[str] | None, agent_name: str, parent_id: str | None
) -> list[str] | None:
    """Returns the ``tools`` that the agent can use; prints the others on stderr."""
    if tools is None:
        if available is not None:
            raise UsageError("--available needs --tools", "add the tools that the agent can use: --tools A,B")
        return None
    choice = call.sessions().choose_tools(tools, available, agent_name=agent_name, parent_id=parent_id)
    for name, reason in choice["reasons"].items():
        code = "tool_blocked" if name in choice["blocked"] else "tool_unavailable"
        output.print_aside(code, f"left out: {reason}", as_json=call.as_json)
    allowed: list[str] = choice["allowed"]
    return allowed


APP = click.option("--app", metavar="A", help="Only sessions of this app.  [default: sessions without an app]")


def with_owner(command: Function) -> Function:
    """Adds the options for the shared keys and the own keys of a new session; ``keys_of`` reads the own keys."""
    app = click.option("--app", metavar="A", help="Share the keys app:KEY of this app. Needs --user.")
    user = click.option("--user", metavar="U", help="Share the keys user:KEY of this user of the app. Needs --app.")
    state = click.option(
        "--state", metavar="JSON", help="Keys to set in the state of the new session, as a JSON object."
    )
    return app(user(state(command)))


def keys_of(typed: str | None) -> dict[str, Json] | None:
    """Returns the object that was ``typed`` for --state."""
    if typed is None:
        return None
    example = """type, for example, --state '{"key": "value"}'"""
    found = json_value(typed, "--state", example)
    if not isinstance(found, dict):
        raise InvalidInput(f"must be an object, not {strict.json_type_of(found)}", "--state", example)
    return found


def json_value(typed: str, option: str, example: str = """a text needs double quotes: '"text"'""") -> Json:
    """Returns the JSON value that was ``typed`` for ``option``."""
    try:
        return strict.loads(typed.encode("utf-8", "surrogatepass"), strict.DOCUMENT_LIMIT)
    except TooLarge:
        raise
    except InvalidInput as error:
        raise InvalidInput(error.problem, option, example if error.problem.startswith("not JSON") else "") from None


STDIN = "-"
"""If a user types this instead of a text, the text comes from standard input."""

_EXAMPLE = """--metadata '{"key": "value"}'"""


def collect_metadata(documents: tuple[str, ...], pairs: tuple[str, ...]) -> dict[str, Json] | None:
    """Merges all documents, then all pairs, into one object; returns None if there are none."""
    if not documents and not pairs:
        return None
    if documents.count(STDIN) > 1:
        raise UsageError("--metadata - was given twice", "use it once: standard input can be read only once")
    merged: dict[str, Json] = {}
    for document in documents:
        merged |= _load(document)
    return merged | dict(_split_pair(pair) for pair in pairs)


def _load(metadata: str) -> dict[str, Json]:
    """Returns the object in ``metadata``; an error names this option."""
    _reject_other_forms(metadata)
    source = f"--metadata {STDIN}" if metadata == STDIN else "--metadata"
    data = _read_bytes(metadata)
    try:
        return strict.load_object(data)
    except TooLarge:
        raise
    except InvalidInput as error:
        location = f"{source}: {error.where}" if error.where else source
        refused = InvalidInput(error.problem, location, _hint(error))
        refused.__notes__ += error.excerpts
        raise refused from None


def _reject_other_forms(metadata: str) -> None:
    """Raises an error with a better hint for a KEY=VALUE pair, the name of a file, or an empty value."""
    if not metadata.strip():
        raise InvalidInput("the value is empty", "--metadata", f"type {_EXAMPLE}, or omit the option")
    path = metadata.removeprefix("@")
    if metadata[0] not in "{[" and "\0" not in path and os.path.isfile(path):
        import shlex  # most calls need no hint

        hint = f"type --metadata {STDIN} < {shlex.quote(path)} instead"
        raise InvalidInput(f"{metadata!r} is a file, not JSON", "--metadata", hint)
    key, equals, _ = metadata.partition("=")
    if equals and key.replace("_", "").replace("-", "").isalnum():
        import shlex

        raise InvalidInput(f"{metadata!r} is not JSON", "--metadata", f"type -m {shlex.quote(metadata)} instead")


def _hint(error: InvalidInput) -> str:
    """Returns the hint for the most common mistakes: single quotes, and quotes that the shell removed."""
    if error.problem.startswith(("not JSON: single quotes", "not JSON: no quotes")):
        return f"JSON needs double quotes: {_EXAMPLE}"
    return error.hint


def _read_bytes(metadata: str) -> bytes:
    if metadata != STDIN:
        return metadata.encode("utf-8", "surrogateescape")
    return read_stdin(f"--metadata {STDIN}", strict.DOCUMENT_LIMIT, "the document")


def read_stdin(where: str, limit: int, what: str) -> bytes:
    """Returns the whole standard input; raises an error if it is empty or has more than ``limit`` bytes."""
    data = sys.stdin.buffer.read(limit + 1) if sys.stdin else b""
    if not data:
        raise InvalidInput("standard input is empty", where)
    if len(data) > limit:
        raise TooLarge(what, len(data), limit)
    return data


def text_or_stdin(typed: str, where: str, limit: int, what: str) -> str:
    """Returns what was ``typed``, or for ``-`` the text on standard input, without its last newline."""
    if typed != STDIN:
        return typed
    data = read_stdin(f"{where} {STDIN}", limit, what)
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 at byte {error.start}", f"{where} {STDIN}") from None


def _split_pair(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if pair.startswith("{"):
        import shlex

        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", f"type --metadata {shlex.quote(pair)}")
    if not equals or not key:
        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", "type, for example, -m task=T001")
    return key, value


class Time(click.ParamType[datetime]):
    """A time in the forms of ``api.times``."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, _ctx: click.Context | None) -> datetime:
        from gaia_sessions.api.times import moment_of
        from gaia_sessions.system import utc_now

        return moment_of(value, _option_name(param), utc_now())


class Length(click.ParamType[float]):
    """A length of time with its unit, or a number in the unit ``name``, which the result has too."""

    def __init__(self, unit: str, name: str) -> None:
        self._unit = unit
        self.name = name

    def convert(self, value: object, param: click.Parameter | None, _ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            return length_of_time(text, self._unit)
        except ValueError:
            message = f"{_option_name(param)} {text!r} is not a length of time"
            raise UsageError(message, f"give, for example, {LENGTHS}, or a number of {self.name}") from None


def _option_name(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "time"


TIME = Time()
HOURS = Length("h", "hours")
DAYS = Length("d", "days")
SECONDS = Length("s", "seconds")
