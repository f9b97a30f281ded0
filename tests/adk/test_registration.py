"""How ADK finds the service: by a URI, in Python or ``services.yaml``, and in real servers of ADK."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from google.adk.cli import service_registry

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService, register
from tests.adk.parts import PATIENCE, PORT, post, served
from tests.table import table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

SERVICES = """
services:
  - scheme: gaia
    type: session
    class: gaia_sessions.adk.GaiaSessionService
"""

AGENT = """
from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Echo(BaseLlm):
    async def generate_content_async(self, request, stream=False):
        heard = [part.text for content in request.contents for part in content.parts]
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="heard " + " | ".join(heard))]))


root_agent = Agent(name="echo", model=Echo(model="echo"))
"""


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> service_registry.ServiceRegistry:
    monkeypatch.setattr(service_registry, "_service_registry_instance", None)
    return service_registry.get_service_registry()


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A folder of agents for ADK, with one agent that repeats its input, and without code of this package."""
    folder = tmp_path / "agents"
    (folder / "echo").mkdir(parents=True)
    (folder / "services.yaml").write_text(SERVICES, encoding="utf-8")
    (folder / "echo" / "__init__.py").write_text("from . import agent\n", encoding="utf-8")
    (folder / "echo" / "agent.py").write_text(AGENT, encoding="utf-8")
    return folder


def test_a_uri_names_the_root_and_may_set_none_clears(registry: service_registry.ServiceRegistry, root: str) -> None:
    register()
    register()
    made = registry.create_session_service(f"gaia://{root}", agents_dir="/nowhere")
    assert isinstance(made, GaiaSessionService)
    assert (made.root, made.none_clears) == (root, False)
    clearing = registry.create_session_service(f"gaia://{root}%20x?none_clears=true")
    assert isinstance(clearing, GaiaSessionService)
    assert (clearing.root, clearing.none_clears) == (f"{root} x", True)


@table(
    "uri",
    [
        "gaia://host/path",
        "gaia:relative/path",
        "gaia://",
        "gaia:///",
        "gaia:///a?none_clears=1",
        "gaia:///a?x=1",
        "file:///a",
        "gaia:///a#b",
    ],
)
def test_an_invalid_uri_is_a_value_error_that_shows_the_right_form(uri: str) -> None:
    with pytest.raises(ValueError, match="gaia:///absolute/path"):
        GaiaSessionService(uri=uri)
    with pytest.raises(ValueError, match="not both"):
        GaiaSessionService(uri="gaia:///a", root="/b")


def test_services_yaml_registers_the_service_without_code(
    registry: service_registry.ServiceRegistry, agents: Path, root: str
) -> None:
    service_registry.load_services_module(str(agents))
    assert isinstance(registry.create_session_service(f"gaia://{root}", agents_dir=str(agents)), GaiaSessionService)


def server(kind: str, agents: Path, root: str) -> AbstractContextManager[str]:
    """A server of ADK at its address."""
    words = ["google.adk.cli", kind, f"--session_service_uri=gaia://{root}", "--port"]
    return served([*words, PORT, str(agents)], "/list-apps")


def say(address: str, session_id: str, text: str) -> str:
    message = {"role": "user", "parts": [{"text": text}]}
    events = post(f"{address}/run", {"appName": "echo", "userId": "u", "sessionId": session_id, "newMessage": message})
    return str(events[-1]["content"]["parts"][0]["text"])


@pytest.mark.slow
def test_a_new_server_resumes_the_session_of_a_killed_server(agents: Path, root: str) -> None:
    with server("api_server", agents, root) as address:
        session_id = post(f"{address}/apps/echo/users/u/sessions", {})["id"]
        assert say(address, session_id, "one") == "heard one"
    with server("api_server", agents, root) as address:
        assert say(address, session_id, "two") == "heard one | heard one | two"
    record = Sessions(root).store.read(session_id)
    assert (record["turns"], record["app"], record["user"]) == (2, "echo", "u")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_the_page_of_adk_web_shows_a_session_that_another_server_began(agents: Path, root: str, tmp_path: Path) -> None:
    with server("api_server", agents, root) as address:
        session_id = post(f"{address}/apps/echo/users/u/sessions", {})["id"]
        say(address, session_id, "kept on disk")
    with server("web", agents, root) as address:
        page = f"{address}/dev-ui/?app=echo&session={session_id}&userId=u"
        words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
        shown = subprocess.run(
            [*words, f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom", page],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, "HOME": str(tmp_path)},
        )
    assert "heard kept on disk" in shown.stdout, shown.stderr
