"""How payloads of Claude Code become events: known keys are taken, all others are left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gaia_sessions.config import Config
from gaia_sessions.hosts import CLAUDE_CODE, HOOK, host_named
from gaia_sessions.hosts.payload import HookPayload
from gaia_sessions.session.event_checks import check_event
from tests.hook.conftest import own_host
from tests.table import table

if TYPE_CHECKING:
    from typing import Any

    from tests.hook.conftest import Host

NOW = datetime(2026, 1, 8, 18, 5, 30, 123456, tzinfo=UTC)
AT = "2026-01-08T18:05:30.123456Z"
DEFAULTS = Config({})
NO_HOST = {"CLAUDE_PID": "0"}


def only(payload: Any, config: Config = DEFAULTS) -> Any:
    """The only event of ``payload``."""
    [event] = read(payload, config)
    return event


def read(payload: Any, config: Config = DEFAULTS) -> Any:
    return host_named(CLAUDE_CODE).events_of(HOOK, HookPayload(CLAUDE_CODE, payload, config, NOW, NO_HOST))


def test_a_delegation_is_an_event_without_its_prompt(host: Host) -> None:
    event = only(host.delegation())

    assert event == {
        "kind": "delegate",
        "at": AT,
        "host": "claude-code",
        "host_session_id": host.SESSION,
        "tool_use_id": "toolu_1",
        "agent_name": "Explore",
        "purpose": "Count quokkas",
    }


def test_a_delegation_event_names_the_delegating_agent_and_the_background_option(host: Host) -> None:
    asked = {"description": "Count", "prompt": "x", "run_in_background": False}

    event = only(host.delegation(tool_input=asked, agent_id="a0"))

    assert (event["parent_host_agent_id"], event["background"]) == ("a0", False)


@table("value", ["yes", 1, None, []])
@own_host
def test_a_background_option_that_is_not_a_boolean_is_left_out(host: Host, value: object) -> None:
    event = only(host.delegation(tool_input={"run_in_background": value}))

    assert "background" not in event


def stop_of(host: Host, **more: object) -> dict[str, object]:
    """The event of a stop of ``a1``, with these keys."""
    known = {"host": "claude-code", "host_session_id": host.SESSION, "host_agent_id": "a1", "agent_name": "Explore"}
    return {"kind": "stop", "at": AT, **known, "after_block": False, **more}


def test_a_stop_event_names_the_delegation_that_the_host_noted(host: Host) -> None:
    host.knows("a1", "toolu_7")

    event = only(host.ending(message="So far.\n[gaia-sessions: approval agent-5] why"))

    assert event == stop_of(
        host,
        tool_use_id="toolu_7",
        transcript_path=str(host.agents / "agent-a1.jsonl"),
        has_message=True,
        marker_phase="approval",
        marker_id="agent-5",
        last_message="So far.\n[gaia-sessions: approval agent-5] why",
    )


def test_a_stop_without_details_is_still_an_event(host: Host) -> None:
    payload = host.ending(message=None, transcript_path=None, agent_transcript_path=7, stop_hook_active="true")

    event = only(payload)

    assert event == stop_of(host, has_message=False)


@table("message", [7, ["Done."], {"text": "Done."}, True])
@own_host
def test_a_last_message_that_is_not_text_is_left_out(host: Host, message: Any) -> None:
    event = only(host.ending(message=message))

    assert event["has_message"] is False
    assert "last_message" not in event


def test_the_marker_is_read_even_if_messages_are_not_stored(host: Host) -> None:
    config = Config({"keep_last_message": False})

    event = only(host.ending(message="[gaia-sessions: failed]"), config)

    assert (event["has_message"], event["marker_phase"]) == (True, "failed")
    assert "last_message" not in event


def test_the_marker_is_read_before_the_message_is_shortened(host: Host) -> None:
    event = only(host.ending(message="[gaia-sessions: approval]" + " " * 5_000))

    assert (event["marker_phase"], len(event["last_message"])) == ("approval", 4_000)


def test_a_torn_meta_file_of_the_host_gives_no_delegation_id(host: Host) -> None:
    host.agents.mkdir(parents=True)
    (host.agents / "agent-a1.meta.json").write_bytes(b'{"toolUseId": "tool')

    event = only(host.ending())

    assert "tool_use_id" not in event


@table("agent", ["../a1", "a/1", "a1.", "a 1", "ä1", "a1\n"])
@own_host
def test_an_agent_id_that_is_no_file_name_gives_no_delegation_id(host: Host, agent: str) -> None:
    host.knows("a1", "toolu_1")

    event = only(host.ending(agent))

    assert "tool_use_id" not in event


@table("changes", [{}, {"agent_id": "a0"}, {"tool_input": {"run_in_background": True}}])
@own_host
def test_every_delegation_event_has_a_shape_that_the_inbox_accepts(host: Host, changes: dict[str, Any]) -> None:
    event = only(host.delegation(**changes))

    check_event(event, "")


@table("message", [None, "Done.", "[gaia-sessions: failed agent-1]"])
@own_host
def test_every_stop_event_has_a_shape_that_the_inbox_accepts(host: Host, message: str | None) -> None:
    host.knows("a1", "toolu_1")

    check_event(only(host.ending(message=message)), "")
