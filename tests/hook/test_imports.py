"""What a hook loads: no third-party module, only the standard modules listed here, and few of our modules.

Every call starts a new interpreter, so every import costs time. ``tests/test_instructions.py`` counts that cost.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import gaia_sessions
from tests.hook.conftest import SCRIPTS, Host, own_host, paused
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Prepare = Callable[[Host], dict[str, Any]]

HOOKS = ["pre_delegate", "subagent_stop", "every_event"]

STANDARD = frozenset(
    ["__future__", "_datetime", "_json", "encodings.ascii", "errno", "fcntl", "gc", "itertools", "select"]
)
"""The standard modules that a hook may load, beside the modules of a bare interpreter."""

OPENSSL = frozenset(["_blake2", "_hashlib", "hashlib"])
"""The modules for a digest of a prompt, for hosts that give a delegation no id."""

ROOMS = frozenset(["errors", "jsonio", "session", "system", "config", "store", "ingest", "api", "hosts", "hook"])
"""The packages that a hook may load."""

# The largest number of our modules that a call may load, with package files.
MOST_FOR_NOTHING = 16
MOST_FOR_SILENCE = 26
MOST_FOR_DIRECT = 46
MOST_FOR_EVENT = 59
MOST_FOR_COUNTING = 6
"""More modules if the call counts a transcript and records its usage."""
MOST_FOR_RESUMING = 6
"""More modules if an agent resumes and is briefed."""

MOST_FOR_ASKING = 1
"""More modules if the main agent is told what to ask the user."""


class Loaded(NamedTuple):
    """The modules that a hook loads and a bare interpreter does not: ours, without the package name, and others."""

    ours: set[str]
    others: set[str]

    def rooms(self) -> set[str]:
        return {name.partition(".")[0] for name in self.ours} - {""}


def imported(*command: str | Path, payload: str = "", environment: Mapping[str, str] | None = None) -> frozenset[str]:
    """Every module that a new interpreter reports as imported for ``command``."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        input=payload,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return frozenset(line.rpartition("|")[2].strip() for line in lines[1:])


bare = cache(lambda: imported("-c", "pass"))
"""The modules that any interpreter imports."""


def loaded(
    host: Host, hook: str, payload: object, *arguments: str, most: int, more: frozenset[str] = frozenset()
) -> Loaded:
    """The modules that ``hook`` loads for ``payload``: at most ``most`` of ours, and only allowed others."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    names = imported(SCRIPTS / f"{hook}.py", *arguments, payload=text, environment=host.environment()) - bare()
    ours = {name for name in names if name.partition(".")[0] == "gaia_sessions"}
    found = Loaded({name.removeprefix("gaia_sessions").removeprefix(".") for name in ours}, {*names} - ours)
    assert sorted(found.rooms() - ROOMS) == []
    assert [name for name in found.ours if name.endswith("settings")] == []
    assert sorted(found.others - STANDARD - more) == []
    assert len(found.ours) <= most
    return found


def is_quiet(found: Loaded) -> bool:
    """Whether the call loaded nothing that reads or writes sessions."""
    return not found.rooms() & {"ingest", "api"} and "store.file_store" not in found.ours


def test_every_allowed_standard_module_is_in_the_standard_library() -> None:
    assert {name.partition(".")[0] for name in STANDARD | OPENSSL} <= sys.stdlib_module_names


@table("hook", HOOKS)
def test_empty_input_loads_few_modules_and_no_store(host: Host, hook: str) -> None:
    found = loaded(host, hook, "", most=MOST_FOR_NOTHING)

    assert not found.rooms() & {"store", "ingest", "api"}


SILENT: dict[str, tuple[str, Prepare]] = {
    **{f"another tool, {hook}": (hook, lambda host: host.delegation(tool_name="Bash")) for hook in HOOKS},
    "a prompt that somebody typed": (
        "every_event",
        lambda host: host.event_payload("UserPromptSubmit", prompt="Go on."),
    ),
}


@table(("hook", "prepare"), SILENT.values())
@own_host
def test_a_payload_that_concerns_no_agent_loads_no_store(host: Host, hook: str, prepare: Prepare) -> None:
    found = loaded(host, hook, prepare(host), most=MOST_FOR_SILENCE)

    assert is_quiet(found)


def test_a_direct_stop_without_an_id_loads_neither_ingest_nor_api(host: Host) -> None:
    found = loaded(host, "subagent_stop", {}, most=MOST_FOR_DIRECT)

    assert not found.rooms() & {"ingest", "api"}


def approved(host: Host) -> dict[str, Any]:
    agent_id = gaia_sessions.create_session(root=str(host.root))
    gaia_sessions.update_state(agent_id, "approval", root=str(host.root))
    return {"agent_id": agent_id}


def created(host: Host) -> dict[str, Any]:
    return {"agent_id": gaia_sessions.create_session(root=str(host.root))}


DIRECT: dict[str, tuple[str, Prepare, list[str]]] = {
    "a check": ("pre_delegate", approved, ["approval"]),
    "a creation": ("pre_delegate", lambda _: {"create": True}, ["initializing"]),
    "a stop": ("subagent_stop", created, ["completed"]),
}


@table(("hook", "prepare", "phases"), DIRECT.values())
@own_host
def test_a_direct_request_loads_few_modules(host: Host, hook: str, prepare: Prepare, phases: list[str]) -> None:
    found = loaded(host, hook, prepare(host), most=MOST_FOR_DIRECT)

    assert [name for name in found.ours if name.startswith(("hosts.", "errors.others"))] == []
    assert [record["phase"] for record in host.records().values()] == phases


# Payloads about an agent at work, and the decision of the hook.
EVENTS: dict[str, tuple[Prepare, str]] = {
    "a delegation": (lambda host: host.delegation("toolu_2"), "created"),
    "a start that has to wait": (lambda host: host.starting("a2"), "deferred"),
    "a start": (lambda host: host.starting(), "known"),
    "a launch": (lambda host: host.launching(), "started"),
    "a message": (lambda host: host.messaging(), "noted"),
    "a silent stop": (lambda host: host.ending(message=None), "joined"),
    "a stop": (lambda host: host.ending(), "finalized"),
    "a failure": (lambda host: host.dying(), "broken_off"),
    "a return": (lambda host: host.returning(), "broken_off"),
    "a failed delegation": (lambda host: host.failing(), "broken_off"),
    "a notification": (lambda host: host.notifying("failed"), "broken_off"),
    "the main stop": (lambda host: host.pausing("a1"), "settled"),
    "the session's start": (lambda host: host.event_payload("SessionStart"), "conversation_started"),
    "the session's end": (lambda host: host.event_payload("SessionEnd"), "settled"),
}


@table(("prepare", "decision"), EVENTS.values())
@own_host
def test_an_event_of_an_agent_loads_few_modules(host: Host, prepare: Prepare, decision: str) -> None:
    host.work()

    found = loaded(host, "every_event", prepare(host), most=MOST_FOR_EVENT)

    assert not found.ours & {"session.cancellation", "session.lineage", "store.marks"}, "nothing is cancelled"
    assert "errors.others" not in found.ours, "nothing goes wrong"
    assert host.log("hook")[-1]["decision"] == decision


def test_counting_a_transcript_loads_few_more_modules(host: Host) -> None:
    host.work()
    stop = host.ending()
    told = {"id": "m", "model": "m-1", "usage": {"output_tokens": 5}}
    line = json.dumps({"type": "assistant", "timestamp": "2020-01-08T18:05:30.123Z", "message": told})
    Path(stop["agent_transcript_path"]).write_text(f"{line}\n", encoding="utf-8")
    host.hear(stop)

    loaded(host, "every_event", host.returning(totalTokens=5), most=MOST_FOR_EVENT + MOST_FOR_COUNTING)

    [record] = host.records().values()
    assert record["usage"]["output_tokens"] == 5


def test_applying_a_start_from_the_inbox_loads_few_modules(host: Host) -> None:
    host.begin()

    loaded(host, "every_event", host.event_payload("SessionStart", source="startup"), most=MOST_FOR_EVENT)

    assert host.record()["phase"] == "investigating"


@table("hook", ["pre_delegate", "every_event"])
@own_host
def test_a_first_delegation_loads_few_modules(host: Host, hook: str) -> None:
    loaded(host, hook, host.delegation(), most=MOST_FOR_EVENT)

    assert len(host.records()) == 1


def resuming(host: Host) -> dict[str, Any]:
    payload = host.resuming(paused(host))
    said = {"type": "assistant", "timestamp": "2020-01-08T18:05:30.123Z", "message": {"content": "Done."}}
    (host.agents / "agent-a1.jsonl").write_text(json.dumps({**said, "agentId": "a1"}) + "\n", encoding="utf-8")
    return payload


def returning_with_a_mention(host: Host) -> dict[str, Any]:
    asked = {"description": "x", "prompt": f"Review the plan of {paused(host)}", "subagent_type": "Explore"}
    host.hear(host.delegation("toolu_2", tool_input=asked))
    host.knows("a2", "toolu_2")
    host.hear(host.ending("a2"))
    return host.returning("toolu_2", "a2")


def starting_beside_paused_work(host: Host) -> dict[str, Any]:
    paused(host)
    return host.event_payload("SessionStart")


REPLIES: dict[str, tuple[Prepare, int]] = {
    "a resume": (resuming, MOST_FOR_RESUMING),
    "a return that names paused work": (returning_with_a_mention, MOST_FOR_ASKING),
    "a conversation beside paused work": (starting_beside_paused_work, 0),
}


@table(("prepare", "more"), REPLIES.values())
@own_host
def test_a_reply_loads_few_modules(host: Host, prepare: Prepare, more: int) -> None:
    payload = prepare(host)

    loaded(host, "every_event", payload, most=MOST_FOR_EVENT + more)

    assert host.log("hook")[-1]["told"] is True


def stopped_directly(host: Host, stack: ExitStack) -> Any:
    agent_id = gaia_sessions.create_session(root=str(host.root))
    stack.enter_context(host.held(agent_id))
    return {"agent_id": agent_id}


def stopped_by_its_host(host: Host, stack: ExitStack) -> Any:
    stack.enter_context(host.held(host.delegate()))
    return host.ending()


def delegated_meanwhile(host: Host, stack: ExitStack) -> Any:
    host.run("pre_delegate", host.delegation("toolu_0"))
    stack.enter_context(host.key_held("toolu_1"))
    return host.delegation("toolu_1")


WAITING: list[tuple[str, Callable[[Host, ExitStack], Any], int, str]] = [
    ("subagent_stop", stopped_directly, MOST_FOR_DIRECT, "finalize"),
    ("subagent_stop", stopped_by_its_host, MOST_FOR_EVENT, "stop"),
    ("pre_delegate", delegated_meanwhile, MOST_FOR_EVENT, "delegate"),
]


def test_an_event_deferred_because_of_a_held_lock_loads_few_modules(host: Host) -> None:
    """All calls wait at the same time, each for the lock of its own project."""
    hosts = [Host(host.folder / str(number)) for number in range(len(WAITING))]
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        payloads = [prepare(one, stack) for one, (_, prepare, *_) in zip(hosts, WAITING, strict=True)]
        looks = [
            pool.submit(loaded, one, hook, payload, most=most)
            for one, (hook, _, most, _), payload in zip(hosts, WAITING, payloads, strict=True)
        ]
        for look in looks:
            look.result()

    assert [[event["kind"] for event in one.deferred()] for one in hosts] == [[kind] for *_, kind in WAITING]


def test_a_request_for_permission_loads_few_modules(host: Host) -> None:
    host.work()
    payload = host.delegation("", hook_event_name="PermissionRequest", tool_name="Bash", tool_input={"command": "ls"})

    loaded(host, "every_event", {**payload, "agent_id": "a1"}, most=MOST_FOR_EVENT)

    assert host.log("hook")[-1]["decision"] == "noted"


# The keys with which each other host begins a delegation, and the modules that this needs.
DELEGATIONS: dict[str, tuple[dict[str, object], frozenset[str]]] = {
    "codex": ({"tool_name": "spawn_agent", "tool_input": {"message": "Do it"}}, frozenset()),
    "qwen-code": ({"tool_name": "agent", "tool_input": {"prompt": "Do it"}}, frozenset()),
    "gemini-cli": (
        {
            "hook_event_name": "BeforeTool",
            "tool_name": "invoke_agent",
            "tool_input": {"agent_name": "x", "prompt": "p"},
        },
        OPENSSL,
    ),
}


@table("name", DELEGATIONS)
@own_host
def test_a_delegation_loads_only_the_module_of_its_own_host(host: Host, name: str) -> None:
    payload, more = DELEGATIONS[name]

    found = loaded(
        host, "every_event", {**host.delegation(), **payload}, "--host", name, most=MOST_FOR_EVENT, more=more
    )

    modules = {host_name.replace("-", "_") for host_name in (*DELEGATIONS, "claude-code")}
    assert {part for part in modules if f"hosts.{part}" in found.ours} == {name.replace("-", "_")}
    assert [record["runs"][0]["host"] for record in host.records().values()] == [name]
