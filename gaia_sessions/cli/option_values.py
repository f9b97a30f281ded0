"""``--metadata`` and ``-m``: facts about the work, as JSON or as key=value."""

from __future__ import annotations

import os
import shlex
import sys

import click

from gaia_sessions.errors import InvalidInput, TooLarge, UsageError
from gaia_sessions.jsonio import strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.jsonio.strict import Json

METADATA = click.option(
    "--metadata",
    metavar="JSON|-",
    multiple=True,
    help="JSON object to merge into the metadata (top level only); - reads standard input; can be repeated.",
)
PAIRS = click.option(
    "-m", "--meta", "pairs", metavar="KEY=VALUE", multiple=True, help="Metadata with a text value; can be repeated."
)


_STDIN = "-"
_EXAMPLE = """--metadata '{"key": "value"}'"""


class OtherMetadata(InvalidInput):
    """``--metadata`` was given what another option takes, ``instead``, with ``after`` at the end of the line."""

    def __init__(self, typed: str, problem: str, instead: list[str], after: str = "") -> None:
        super().__init__(problem, "--metadata", f"type {shlex.join(instead)}{after}")
        self.typed = typed
        self.instead = instead
        self.after = after


def collect_metadata(documents: tuple[str, ...], pairs: tuple[str, ...]) -> dict[str, Json] | None:
    """All of them as one object, in their order and the pairs last; None if none was given. Raises ``InvalidInput``."""
    if not documents and not pairs:
        return None
    if documents.count(_STDIN) > 1:
        raise UsageError("--metadata - was given twice", "standard input can be read only once: type it once")
    merged: dict[str, Json] = {}
    for document in documents:
        merged |= _load(document)
    return merged | dict(_split_pair(pair) for pair in pairs)


def _load(metadata: str) -> dict[str, Json]:
    """The object, of which an error says that it came with this option."""
    _reject_other_forms(metadata)
    source = f"--metadata {_STDIN}" if metadata == _STDIN else "--metadata"
    data = _read_bytes(metadata)
    try:
        return strict.load_object(data)
    except TooLarge:
        raise
    except InvalidInput as error:
        location = f"{source}: {error.where}" if error.where else source
        raise InvalidInput(error.problem, location, _hint(data, error)) from None


def _reject_other_forms(metadata: str) -> None:
    """Raises ``OtherMetadata`` for a pair and for a file, ``InvalidInput`` for nothing at all."""
    if not metadata.strip():
        raise InvalidInput("it is empty", "--metadata", f"type {_EXAMPLE}, or leave it out")
    path = metadata.removeprefix("@")
    if metadata[0] not in "{[" and "\0" not in path and os.path.isfile(path):
        problem = f"{metadata!r} is not JSON but a file"
        raise OtherMetadata(metadata, problem, ["--metadata", _STDIN], f" < {shlex.quote(path)}")
    key, equals, _ = metadata.partition("=")
    if equals and key.replace("_", "").replace("-", "").isalnum():
        raise OtherMetadata(metadata, f"{metadata!r} is not JSON", ["-m", metadata])


def _hint(data: bytes, error: InvalidInput) -> str:
    """Single quotes for double ones, and those that the shell took away, are what goes wrong most."""
    if error.problem.startswith("not JSON") and data[:1] in b"{'" and (b"'" in data or b'"' not in data):
        return f"JSON needs double quotes: {_EXAMPLE}"
    return error.hint


def _read_bytes(metadata: str) -> bytes:
    if metadata != _STDIN:
        return metadata.encode("utf-8", "surrogateescape")
    data = sys.stdin.buffer.read(strict.DOCUMENT_LIMIT + 1) if sys.stdin else b""
    if not data.strip():
        raise InvalidInput("nothing came on standard input", f"--metadata {_STDIN}")
    return data


def _split_pair(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if pair.startswith("{"):
        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", f"type --metadata {shlex.quote(pair)}")
    if not equals or not key:
        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", "type for example -m task=T001")
    return key, value
