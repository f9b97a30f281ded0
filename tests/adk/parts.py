"""Helpers of the tests of the session service."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from gaia_sessions.adk import GaiaSessionService

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence
    from typing import TypeVar

    from google.adk.sessions import Session

    Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def said(text: str = "", at: float | None = None, delta: Mapping[str, object] | None = None, **keys: object) -> Event:
    """An event with a text of the user. ``keys`` are added to ``delta``; ``__`` in their names means a colon."""
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    actions = EventActions(state_delta={**(delta or {}), **_with_colons(keys)})
    event = Event(author="user", content=content, actions=actions)
    if at is not None:
        event.timestamp = at
    return event


def _with_colons(keys: Mapping[str, object]) -> dict[str, object]:
    return {key.replace("__", ":"): value for key, value in keys.items()}


class Adk:
    """The service with blocking calls, by default for one user of one app."""

    def __init__(self, root: str, *, none_clears: bool = False) -> None:
        self.service = GaiaSessionService(root=root, none_clears=none_clears)

    def create(self, session_id: str | None = "s1", user: str = "u1", app: str = "app", **state: object) -> Session:
        keys = _with_colons(state)
        return run(self.service.create_session(app_name=app, user_id=user, session_id=session_id, state=keys))

    def get(self, session_id: str = "s1", user: str = "u1", app: str = "app", **config: Any) -> Session | None:
        from google.adk.sessions.base_session_service import GetSessionConfig

        return run(
            self.service.get_session(
                app_name=app, user_id=user, session_id=session_id, config=GetSessionConfig(**config)
            )
        )

    def loaded(self, session_id: str = "s1", user: str = "u1", app: str = "app", **config: Any) -> Session:
        found = self.get(session_id, user, app, **config)
        assert found is not None
        return found

    def append(self, session: Session, event: Event) -> Event:
        return run(self.service.append_event(session, event))

    def ids(self, user: str | None = "u1", app: str = "app") -> list[str]:
        return [one.id for one in run(self.service.list_sessions(app_name=app, user_id=user)).sessions]

    def delete(self, session_id: str = "s1", user: str = "u1", app: str = "app") -> None:
        run(self.service.delete_session(app_name=app, user_id=user, session_id=session_id))


on_both = pytest.mark.parametrize("root", ["files", "server"], indirect=True)
"""Runs a test on files and on a server."""

PATIENCE = 60
PORT = "{port}"
"""A placeholder for a free port in the words of a server."""


@contextmanager
def served(module: Sequence[str], path: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a server that ``python -m`` starts, once ``path`` answers; kills the server at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", *(word.replace(PORT, str(port)) for word in module)]
    checkout = Path(__file__).parents[2]
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=checkout
    ) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address + path, process)
            yield address
        finally:
            process.kill()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url).close()  # noqa: S310  # local
        except URLError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"{url} does not answer: {process.poll()}")


def post(url: str, document: object) -> Any:
    """The answer of the server, also if it is an error."""
    request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})  # noqa: S310  # local
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310  # local
            return json.load(answer)
    except HTTPError as error:
        with error:
            return {"status": error.code, **json.load(error)}
