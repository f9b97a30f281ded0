"""The roles of docs/many-machines.md, made by the statements of that page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.servers import check_installed, empty, shared_server

if TYPE_CHECKING:
    from tests.servers import Server

PAGE = Path(__file__).resolve().parent.parent / "docs" / "many-machines.md"
OWNER, WORKER, READER = "gaia_owner", "gaia_worker", "gaia_reader"


def blocks(language: str) -> list[str]:
    """The blocks of the page in this language."""
    return re.findall(f"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def make_roles(server: Server) -> None:
    """Makes the roles, their database and its tables."""
    import psycopg

    from gaia_sessions.postgres.setup import init

    of_administrator, of_owner = blocks("sql")
    for statement in of_administrator.splitlines():
        server.execute(statement)
    url = url_of(server, OWNER)
    init(url)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in of_owner.splitlines():
            connection.execute(statement.encode())


def url_of(server: Server, role: str) -> str:
    return server.url.replace("postgres@/postgres", f"{role}@/agents")


@cache
def shared_roles() -> Server:
    """The server of this process, with the roles and their empty tables."""
    server = shared_server()
    make_roles(server)
    return server


def empty_url_of(role: str) -> str:
    """The URL for this role of a database with empty tables; skips the test if there is no PostgreSQL."""
    check_installed()
    server = shared_roles()
    empty(url_of(server, OWNER))
    return url_of(server, role)
