"""``--metadata`` and ``-m``: facts about the work, as JSON or as key=value."""

from __future__ import annotations

import shlex
import sys

import click

from gaia_sessions import strictjson
from gaia_sessions.errors import InvalidInput, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.strictjson import Json

METADATA = click.option(
    "--metadata",
    metavar="JSON|-",
    help="JSON object to merge into the metadata (top level only); - reads standard input.",
)
PAIRS = click.option(
    "-m", "--meta", "pairs", metavar="KEY=VALUE", multiple=True, help="Metadata with a text value; can be repeated."
)


def collected(metadata: str | None, pairs: tuple[str, ...]) -> dict[str, Json] | None:
    """Both as one object, the pairs last; None if neither was given. Raises ``InvalidInput``."""
    if metadata is None and not pairs:
        return None
    known = {} if metadata is None else _loaded(metadata)
    return known | dict(_split(pair) for pair in pairs)


def _loaded(metadata: str) -> dict[str, Json]:
    key, equals, _ = metadata.partition("=")
    if equals and key.replace("_", "").replace("-", "").isalnum():
        raise InvalidInput(f"{metadata!r} is not JSON", "--metadata", f"type -m {shlex.quote(metadata)}")
    return strictjson.load_object(_bytes_of(metadata))


def _bytes_of(metadata: str) -> bytes:
    if metadata != "-":
        return metadata.encode("utf-8", "surrogateescape")
    data = sys.stdin.buffer.read(strictjson.DOCUMENT_LIMIT + 1) if sys.stdin else b""
    if not data.strip():
        raise InvalidInput("nothing came on standard input", "--metadata -")
    return data


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if pair.startswith("{"):
        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", f"type --metadata {shlex.quote(pair)}")
    if not equals or not key:
        raise UsageError(f"-m takes KEY=VALUE, not {pair!r}", "type for example -m task=T001")
    return key, value
