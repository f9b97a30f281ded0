"""``--metadata`` and ``-m``: facts about the work, as JSON or as key=value."""

from __future__ import annotations

import sys

import click

from gaia_sessions import strictjson
from gaia_sessions.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.strictjson import Json

METADATA = click.option(
    "--metadata", metavar="JSON|-", help="An object to merge in, top level only; - reads it from stdin."
)
PAIRS = click.option("-m", "--meta", "pairs", metavar="KEY=VALUE", multiple=True, help="One text to merge in.")


def collected(metadata: str | None, pairs: tuple[str, ...]) -> dict[str, Json] | None:
    """Both as one object, the pairs last; None if neither was given. Raises ``InvalidInput``."""
    if metadata is None and not pairs:
        return None
    known = {} if metadata is None else strictjson.load_object(_bytes_of(metadata))
    return known | dict(_split(pair) for pair in pairs)


def _bytes_of(metadata: str) -> bytes:
    if metadata != "-":
        return metadata.encode("utf-8", "surrogateescape")
    data = sys.stdin.buffer.read(strictjson.DOCUMENT_LIMIT + 1) if sys.stdin else b""
    if not data.strip():
        raise InvalidInput("nothing came on standard input", "--metadata -")
    return data


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="'-m'")
    return key, value
