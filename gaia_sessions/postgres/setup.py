"""What an operator does with the tables: makes them, brings them to this version, and looks at them."""

from __future__ import annotations

import time

from .connections import server_of
from .schema import migrate

_SECONDS = 10.0


def init(url: str) -> list[int]:
    """Makes the tables, or brings them to this version; returns the versions that it has made."""
    server = server_of(url)
    with server.connection(time.monotonic() + _SECONDS) as connection:
        made = migrate(connection, url)
    server.is_checked = True
    return made
