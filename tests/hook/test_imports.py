"""What a hook imports: nothing but the listed parts of the standard library and of this package.

Every call is a fresh interpreter and pays for every import, so a new name here is a decision. What the
interpreter itself brings along is found out by asking it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.hook.conftest import Host

SCRIPTS = Path(__file__).parents[2] / "hooks"
HOOKS = ["pre_delegate", "subagent_stop", "every_event"]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STANDARD = words("""
    __future__ _datetime _json encodings.ascii errno fcntl gc itertools select
""")

LADDER = words("clock config errors hooks hooks.run log options project streams strictjson quickjson") | {""}
STORE = words("""
    changes checks ids phases record retention runs shape stores stores.atomic stores.directory stores.exclusive
    stores.files stores.arrival stores.inbox stores.index stores.journal stores.renewal stores.locks stores.reading
    stores.root
""")
DIRECT = LADDER | STORE | {"hooks.direct", "lifecycle"}
PASSED_BY = LADDER | words("""
    checks events hooks.agent_files hooks.claude_code hooks.hosts hooks.marker hooks.payload hooks.speech
    ids keyfile phases shape stores stores.atomic stores.directory stores.root
""")
NEWS = words("events lifecycle lifecycle.done lifecycle.news")
FINALIZING = NEWS | words("lifecycle.beginning lifecycle.sessions")
HOST = PASSED_BY | STORE | NEWS | words("endings lifecycle.joins")
BEGINNING = HOST | words("hooks.answers lifecycle.beginning lifecycle.delegations processes")
STARTING = HOST | words("hooks.answers lifecycle.beginning lifecycle.starts processes")
ENDING = HOST | {"lifecycle.ends"}
TURNING = HOST | {"lifecycle.turns"}
DECIDING = words("hooks.answers lifecycle.resuming policy processes")
PREVIEWING = {"lifecycle.preview"}
DEFERRING = {"inbox_keys"}
WIRED = {"hooks.arguments"}
FOLLOWING = PASSED_BY | STORE | NEWS | words("endings hooks.claude_tools lifecycle.joins lifecycle.tools tool_use")
COMMAND = words("readonly shell")
ASKING = words("hooks.prompts hooks.quoting")
NAMING = {"hooks.mentions"}
OTHER = BEGINNING - {"hooks.claude_code", "hooks.agent_files"} | WIRED | {"hooks.both_ends"}
OPENSSL = words("_blake2 _hashlib hashlib")


def imported(host: Host, *command: str | Path, told: str = "") -> set[str]:
    """Every module that a fresh interpreter imports for ``command``, by its own account."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        input=told,
        capture_output=True,
        text=True,
        check=True,
        env=host.environment(),
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines[1:]}


def over_the_floor(host: Host, hook: str, told: object, *wired: str) -> tuple[set[str], set[str]]:
    """What the hook imports and a bare interpreter does not: of this package, and of everything else."""
    words = told if isinstance(told, str) else json.dumps(told)
    names = imported(host, SCRIPTS / f"{hook}.py", *wired, told=words) - imported(host, "-c", "pass")
    ours = {name for name in names if name.partition(".")[0] == "gaia_sessions"}
    return {name.removeprefix("gaia_sessions").removeprefix(".") for name in ours}, names - ours


def test_a_direct_check_reads_with_these_and_no_more(host: Host) -> None:
    agent_id = gaia_sessions.create_session(root=str(host.root))
    gaia_sessions.update_state(agent_id, "approval", root=str(host.root))

    ours, others = over_the_floor(host, "pre_delegate", {"agent_id": agent_id})

    assert sorted(ours - (DIRECT | words("lifecycle.preview lifecycle.resuming policy processes"))) == []
    assert sorted(others - STANDARD) == []


def test_a_direct_creation_writes_with_these_and_no_more(host: Host) -> None:
    ours, others = over_the_floor(host, "pre_delegate", {"create": True})

    assert sorted(ours - (DIRECT | FINALIZING)) == []
    assert sorted(others - STANDARD) == []
    assert len(host.records()) == 1


def test_a_delegation_is_taken_in_with_these_and_no_more(host: Host) -> None:
    ours, others = over_the_floor(host, "pre_delegate", host.delegation())

    assert sorted(ours - (BEGINNING)) == []
    assert sorted(others - STANDARD) == []
    assert len(host.records()) == 1


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_not_ours_is_passed_by_without_lifecycle(host: Host, hook: str) -> None:
    ours, others = over_the_floor(host, hook, host.delegation(tool_name="Bash"))

    assert sorted(ours - PASSED_BY) == []
    assert sorted(others - STANDARD) == []


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_was_told_nothing_imports_next_to_nothing(host: Host, hook: str) -> None:
    ours, others = over_the_floor(host, hook, "")

    assert sorted(ours - (LADDER - {"log"})) == []
    assert sorted(others - STANDARD) == []


def test_a_direct_stop_without_an_id_looks_at_no_session(host: Host) -> None:
    ours, others = over_the_floor(host, "subagent_stop", {})

    assert sorted(ours - (DIRECT - {"lifecycle"})) == []
    assert sorted(others - STANDARD) == []


def test_a_direct_stop_finalizes_with_these_and_no_more(host: Host) -> None:
    agent_id = gaia_sessions.create_session(root=str(host.root))

    ours, others = over_the_floor(host, "subagent_stop", {"agent_id": agent_id})

    assert sorted(ours - (DIRECT | FINALIZING)) == []
    assert sorted(others - STANDARD) == []
    assert host.record()["phase"] == "completed"


def test_a_hosts_stop_finalizes_with_these_and_no_more(host: Host) -> None:
    host.delegate()

    ours, others = over_the_floor(host, "subagent_stop", host.ending())

    assert sorted(ours - (ENDING)) == []
    assert sorted(others - STANDARD) == []
    assert host.record()["phase"] == "completed"


def test_a_direct_stop_waits_for_a_held_lock_with_these_and_no_more(host: Host) -> None:
    agent_id = gaia_sessions.create_session(root=str(host.root))

    with host.held(agent_id):
        ours, others = over_the_floor(host, "subagent_stop", {"agent_id": agent_id})

    assert sorted(ours - (DIRECT | FINALIZING | DEFERRING)) == []
    assert sorted(others - STANDARD) == []
    assert [event["kind"] for event in host.deferred()] == ["finalize"]


def test_a_hosts_stop_waits_for_a_held_lock_with_these_and_no_more(host: Host) -> None:
    with host.held(host.delegate()):
        ours, others = over_the_floor(host, "subagent_stop", host.ending())

    assert sorted(ours - (ENDING | DEFERRING)) == []
    assert sorted(others - STANDARD) == []
    assert [event["kind"] for event in host.deferred()] == ["stop"]


def test_a_delegation_waits_for_the_lock_on_its_key_with_these_and_no_more(host: Host) -> None:
    host.run("pre_delegate", host.delegation("toolu_0"))

    with host.key_held("toolu_1"):
        ours, others = over_the_floor(host, "pre_delegate", host.delegation("toolu_1"))

    assert sorted(ours - (BEGINNING | DEFERRING)) == []
    assert sorted(others - STANDARD) == []
    assert [event["kind"] for event in host.deferred()] == ["delegate"]


Told = tuple["Callable[[Host], dict[str, Any]]", frozenset[str], str]

# What the one hook is told of an agent at work, what it may import for that, and what it decides.
EVENTS: dict[str, Told] = {
    "a delegation": (lambda host: host.delegation("toolu_2"), BEGINNING, "created"),
    "a start that has to wait": (lambda host: host.starting("a2"), STARTING | DEFERRING, "deferred"),
    "a start": (lambda host: host.starting(), STARTING, "known"),
    "a launch": (lambda host: host.launching(), STARTING | DECIDING, "started"),
    "a message": (lambda host: host.messaging(), ENDING, "noted"),
    "a silent stop": (lambda host: host.ending(message=None), ENDING, "joined"),
    "a stop": (lambda host: host.ending(), ENDING, "finalized"),
    "a failure": (lambda host: host.dying(), ENDING, "paused"),
    "a return": (lambda host: host.returning(), ENDING | DECIDING, "paused"),
    "a failed delegation": (lambda host: host.failing(), ENDING, "paused"),
    "a refused delegation": (lambda host: host.refusing(), ENDING, "known"),
    "a notification": (lambda host: host.notifying("failed"), ENDING | DECIDING, "paused"),
    "the main stop": (lambda host: host.pausing(), TURNING, "known"),
    "the session's start": (lambda host: host.event_payload("SessionStart"), HOST | DECIDING | PREVIEWING, "heard"),
    "the session's end": (lambda host: host.event_payload("SessionEnd"), TURNING, "settled"),
}


@pytest.mark.parametrize(("tell", "allowed", "decision"), EVENTS.values(), ids=EVENTS)
def test_each_event_is_taken_in_with_these_and_no_more(
    host: Host, tell: Callable[[Host], dict[str, Any]], allowed: frozenset[str], decision: str
) -> None:
    host.work()

    ours, others = over_the_floor(host, "every_event", tell(host))

    assert sorted(ours - allowed) == []
    assert sorted(others - STANDARD) == []
    assert host.log("hook")[-1]["decision"] == decision


def test_a_resume_is_claimed_and_briefed_with_these_and_no_more(host: Host) -> None:
    agent_id = host.work()
    host.hear(host.ending(message="[gaia-sessions: approval]"))
    asked = {"description": "x", "prompt": f"[gaia-sessions: resume {agent_id}]"}

    ours, others = over_the_floor(host, "every_event", host.delegation("toolu_2", tool_input=asked))

    assert sorted(ours - (BEGINNING | DECIDING | ASKING)) == []
    assert sorted(others - STANDARD) == []
    assert host.log("hook")[-1]["decision"] == "claimed"


def test_what_a_delegation_names_is_kept_and_told_of_with_these_and_no_more(host: Host) -> None:
    agent_id = host.work()
    host.hear(host.ending(message="[gaia-sessions: approval]"))
    asked = {"description": "x", "prompt": f"Review the plan of {agent_id}", "subagent_type": "Explore"}

    begun = over_the_floor(host, "every_event", host.delegation("toolu_2", tool_input=asked))
    host.knows("a2", "toolu_2")
    host.hear(host.ending("a2"))
    returned = over_the_floor(host, "every_event", host.returning("toolu_2", "a2"))

    assert sorted(begun[0] - BEGINNING) == []
    assert sorted(returned[0] - (ENDING | DECIDING | NAMING)) == []
    assert sorted((begun[1] | returned[1]) - STANDARD) == []
    assert host.log("hook")[-1]["told"] is True


def test_the_paused_are_listed_with_these_and_no_more(host: Host) -> None:
    host.work()
    host.hear(host.ending(message="[gaia-sessions: approval]"))

    ours, others = over_the_floor(host, "every_event", host.event_payload("SessionStart"))

    assert sorted(ours - (HOST | DECIDING | PREVIEWING)) == []
    assert sorted(others - STANDARD) == []
    assert host.log("hook")[-1]["told"] is True


def test_a_prompt_that_somebody_typed_is_passed_by_without_lifecycle(host: Host) -> None:
    ours, others = over_the_floor(host, "every_event", host.event_payload("UserPromptSubmit", prompt="Go on."))

    assert sorted(ours - PASSED_BY) == []
    assert sorted(others - STANDARD) == []


TOOLS: dict[str, tuple[str, str, frozenset[str], str]] = {
    "one about to be used": ("PreToolUse", "Edit", FOLLOWING, "known"),
    "one that was used": ("PostToolUse", "Read", FOLLOWING, "noted"),
    "a command that only reads": ("PostToolUse", "Bash", FOLLOWING | COMMAND, "noted"),
    "an edit": ("PostToolUse", "Edit", HOST | FOLLOWING, "inferred"),
    "one that asks for permission": ("PermissionRequest", "Bash", HOST | FOLLOWING, "inferred"),
}


@pytest.mark.parametrize(("event", "name", "allowed", "decision"), TOOLS.values(), ids=TOOLS)
def test_a_tool_is_followed_with_these_and_no_more(
    host: Host, event: str, name: str, allowed: frozenset[str], decision: str
) -> None:
    host.work()
    told = host.delegation("toolu_r", hook_event_name=event, tool_name=name, tool_input={"command": "ls"})

    ours, others = over_the_floor(host, "every_event", {**told, "agent_id": "a1"}, "--track-tools")

    assert sorted(ours - allowed) == []
    assert sorted(others - STANDARD) == []
    assert host.log("hook")[-1]["decision"] == decision


# What each other host sends to begin a delegation, beside what all of them send, and what else is imported for it.
DELEGATIONS: dict[str, tuple[dict[str, object], frozenset[str], frozenset[str]]] = {
    "codex": ({"tool_name": "spawn_agent", "tool_input": {"message": "Do it"}}, frozenset(), frozenset()),
    "qwen-code": ({"tool_name": "agent", "tool_input": {"prompt": "Do it"}}, frozenset(), frozenset()),
    "gemini-cli": (
        {
            "hook_event_name": "BeforeTool",
            "tool_name": "invoke_agent",
            "tool_input": {"agent_name": "x", "prompt": "p"},
        },
        words("hooks.prompts"),
        OPENSSL,
    ),
    "cursor": (
        {"hook_event_name": "subagentStart", "subagent_id": "a", "subagent_type": "x"},
        STARTING,
        frozenset(),
    ),
    "copilot": ({"tool_name": "Agent", "tool_input": {"prompt": "Do it"}}, frozenset(), frozenset()),
    "factory": ({"tool_name": "Task", "tool_input": {"prompt": "Do it"}, "tool_use_id": None}, frozenset(), OPENSSL),
}


@pytest.mark.parametrize(("name", "told"), [(name, told) for name, (told, *_) in DELEGATIONS.items()], ids=DELEGATIONS)
def test_a_delegation_of_another_host_is_taken_in_with_its_own_module(
    host: Host, name: str, told: dict[str, object]
) -> None:
    _, more, standard = DELEGATIONS[name]
    allowed = (OTHER | more | {f"hooks.{name.replace('-', '_')}"}) - {"hooks.claude_code"}

    ours, others = over_the_floor(host, "every_event", {**host.delegation(), **told}, "--host", name)

    assert sorted(ours - allowed) == []
    assert sorted(others - STANDARD - standard) == []
    assert [record["runs"][0]["host"] for record in host.records().values()] == [name]


def test_a_tool_of_the_main_agent_is_passed_by_without_lifecycle(host: Host) -> None:
    ours, others = over_the_floor(host, "every_event", host.delegation(tool_name="Bash"), "--track-tools")

    assert sorted(ours - PASSED_BY) == []
    assert sorted(others - STANDARD) == []


def test_the_lists_have_no_third_party_and_nothing_that_is_not_there() -> None:
    assert sorted(STANDARD - sys.stdlib_module_names - {f"{package}.{part}" for package, part in PARTS}) == []
    package = Path(gaia_sessions.__file__).parent
    ours = DIRECT | BEGINNING | STARTING | ENDING | TURNING | DECIDING | FINALIZING | FOLLOWING | COMMAND
    ours |= ASKING | NAMING
    missing = [name for name in ours if not _is_module(package, name)]
    assert missing == []


PARTS = [name.split(".", 1) for name in STANDARD if "." in name]


def _is_module(package: Path, name: str) -> bool:
    place = package.joinpath(*name.split(".")) if name else package
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
