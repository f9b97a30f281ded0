"""``schema``: print the JSON Schema of ``state.json``, for editors and other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.cli import output
from gaia_sessions.cli.call import declare

if TYPE_CHECKING:
    from gaia_sessions.cli.call import Call


@declare("schema > state.schema.json")
def command(_call: Call) -> None:
    """Print the JSON Schema of state.json."""
    from gaia_sessions.models import json_schema

    output.print_json(json_schema())
