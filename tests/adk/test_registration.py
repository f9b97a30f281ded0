"""How ADK finds the service: by a URI, in Python or ``services.yaml``, and in real servers of ADK."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.adk.cli import service_registry

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService, register
from tests.adk.parts import PATIENCE, PORT, on_both, post, served
from tests.table import table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SERVICES = (Path(__file__).parents[2] / "scripts" / "adk_example" / "services.yaml").read_text(encoding="utf-8")

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
    ("uri", "url"),
    [
        ("gaia+postgresql://h:1,h:2/db?host=/x&none_clears=true&sslmode=require", "h:1,h:2/db?host=/x&sslmode=require"),
        ("gaia+postgresql:///db?none_clears=true", "/db"),
        ("postgres://me@h/db?none_clears=true", "me@h/db"),
        ("postgresql://h/db?none_clears=true", "h/db"),
    ],
)
def test_a_uri_names_a_database_without_the_options_that_are_no_options_of_the_driver(
    registry: service_registry.ServiceRegistry, uri: str, url: str
) -> None:
    register()
    made = GaiaSessionService(uri=uri)
    assert (made.root, made.none_clears) == (f"postgresql://{url}", True)
    if uri.startswith("gaia"):  # ADK's own service has the other schemes
        by_adk = registry.create_session_service(uri, agents_dir="/nowhere")
        assert isinstance(by_adk, GaiaSessionService)
        assert (by_adk.root, by_adk.none_clears) == (made.root, True)


def test_a_uri_with_a_password_is_refused_without_a_word_of_it() -> None:
    for uri in ("gaia+postgresql://me:zq@h/db", "postgresql://h/db?password=zq", "gaia+mysql://me:zq@h/db"):
        with pytest.raises(ValueError, match=r"uri: has a password|the URI names no") as refused:
            GaiaSessionService(uri=uri)
        assert "zq" not in str(refused.value)


@table(
    "uri",
    [
        "gaia://host/path",
        "gaia+postgresql://h/db?none_clears=1",
        "gaia+postgresql://h/db#b",
        "mysql://h/db",
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
    with pytest.raises(ValueError, match=r"gaia:///absolute/path or gaia\+postgresql://HOST/DATABASE"):
        GaiaSessionService(uri=uri)
    with pytest.raises(ValueError, match="not both"):
        GaiaSessionService(uri="gaia:///a", root="/b")


def uri_of(root: str) -> str:
    return f"gaia+{root}" if "://" in root else f"gaia://{root}"


@on_both
def test_services_yaml_registers_the_service_without_code(
    registry: service_registry.ServiceRegistry, agents: Path, root: str
) -> None:
    service_registry.load_services_module(str(agents))
    assert isinstance(registry.create_session_service(uri_of(root), agents_dir=str(agents)), GaiaSessionService)


def server(kind: str, agents: Path, root: str) -> AbstractContextManager[str]:
    """A server of ADK at its address."""
    words = ["google.adk.cli", kind, f"--session_service_uri={uri_of(root)}", "--port"]
    return served([*words, PORT, str(agents)], "/list-apps")


def say(address: str, session_id: str, text: str) -> str:
    message = {"role": "user", "parts": [{"text": text}]}
    events = post(f"{address}/run", {"appName": "echo", "userId": "u", "sessionId": session_id, "newMessage": message})
    return str(events[-1]["content"]["parts"][0]["text"])


@on_both
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
