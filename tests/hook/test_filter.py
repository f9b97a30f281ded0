"""The filter before the hook of a batch of tools and of a prompt: it starts the hook unless that could change nothing.

Whether the hook was started is told by its log, which has a line for each call.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook.conftest import SCRIPTS, SILENT, Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.hook.conftest import Host

FILTER = SCRIPTS / "filter.sh"
SHELLS = [name for name in ("sh", "dash", "bash") if shutil.which(name)]
LONGEST = 10
UNSET = ""


class Batches:
    """A host that sends batches of tools through the filter, and the marks that are there afterwards."""

    def __init__(self, host: Host, shell: str) -> None:
        self.host = host
        self.shell = shell
        self.cache = Path(os.environ["HOME"]) / ".cache"

    @property
    def folder(self) -> Path:
        return self.cache / "gaia-sessions" / "batches"

    def send(self, payload: object, settings: Mapping[str, str] | None = None, *arguments: str) -> Ran:
        """The filter is started as the plugin does it; ``payload`` is compact, as the host writes it."""
        data = payload if isinstance(payload, bytes) else compact(payload)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        variables = self.host.environment({"PATH": path, **(settings or {})})
        done = subprocess.run(
            [self.shell, FILTER, *arguments],
            input=data,
            capture_output=True,
            timeout=LONGEST,
            check=False,
            cwd=self.host.project,
            env={name: value for name, value in variables.items() if value != UNSET},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def is_heard(self, payload: object, settings: Mapping[str, str] | None = None) -> bool:
        """Whether the hook was started for ``payload``; in any case without a word."""
        before = len(self.host.log("hook"))
        assert self.send(payload, settings) == SILENT
        lines = self.host.log("hook")[before:]
        assert [line for line in lines if line["decision"] == "error"] == []
        return bool(lines)

    def marks(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("[!.]*"))

    def age(self, seconds: float) -> None:
        """So many seconds go by, as far as the marks are concerned."""
        for path in self.folder.iterdir():
            found = path.stat()
            os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


def compact(payload: object) -> bytes:
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.fixture(params=SHELLS)
def batches(host: Host, request: pytest.FixtureRequest) -> Batches:
    return Batches(host, request.param)


def batch(host: Host, agent: str | None = "a1", tool: str = "Bash", response: object = "42") -> dict[str, Any]:
    """A batch with one call, with its keys in the order of the host."""
    of_agent = {"agent_id": agent, "agent_type": "Explore"} if agent else {}
    call = {"tool_name": tool, "tool_input": {}, "tool_use_id": "toolu_1", "tool_response": response}
    payload = host.event_payload("PostToolBatch", tool_calls=[call])
    event, calls = payload.pop("hook_event_name"), payload.pop("tool_calls")
    return {**payload, **of_agent, "hook_event_name": event, "tool_calls": calls}


def asking(host: Host) -> dict[str, Any]:
    return host.event_payload(
        "PermissionRequest", agent_id="a1", agent_type="Explore", tool_name="Bash", tool_input={"command": "make"}
    )


def test_of_an_agent_at_work_one_batch_a_minute_is_heard(batches: Batches) -> None:
    batches.host.work()

    assert [batches.is_heard(batch(batches.host)) for _ in range(3)] == [True, False, False]
    batches.age(59)
    assert not batches.is_heard(batch(batches.host))
    batches.age(2)
    assert [batches.is_heard(batch(batches.host)) for _ in range(2)] == [True, False]
    assert batches.is_heard(batch(batches.host, "a2")), "each agent has a mark of its own"


def test_after_a_request_for_permission_the_next_batch_is_heard_and_ends_the_wait(batches: Batches) -> None:
    batches.host.work()
    assert batches.is_heard(batch(batches.host))

    batches.host.hear(asking(batches.host))

    assert (batches.marks(), batches.host.record()["runs"][0]["waiting"]["for"]) == ([], "Bash")
    assert batches.is_heard(batch(batches.host))
    assert "waiting" not in batches.host.record()["runs"][0]
    assert not batches.is_heard(batch(batches.host))


def test_while_an_agent_waits_every_batch_is_heard(batches: Batches) -> None:
    agent_id = batches.host.work()
    batches.host.hear(asking(batches.host))
    runs = batches.host.record()["runs"]
    runs[0]["waiting"]["since"] = batches.host.ago(seconds=-100)
    batches.host.edit(agent_id, runs=runs)

    assert [batches.is_heard(batch(batches.host)) for _ in range(2)] == [True, True]
    assert batches.marks() == []


@pytest.mark.slow
def test_a_batch_that_met_a_held_lock_leaves_no_mark(batches: Batches) -> None:
    with batches.host.held(batches.host.work()):
        assert batches.is_heard(batch(batches.host))

    assert (batches.host.log("hook")[-1]["decision"], batches.marks()) == ("busy", [])


def test_an_agent_that_no_session_has_is_asked_after_once_a_minute(batches: Batches) -> None:
    assert [batches.is_heard(batch(batches.host)) for _ in range(2)] == [True, False]


def test_a_batch_of_the_main_agent_is_passed_over(batches: Batches) -> None:
    assert not batches.is_heard(batch(batches.host, None))
    assert not batches.is_heard(b"")
    assert not batches.folder.exists()


@pytest.mark.parametrize("tool", ["Agent", "Task", "Workflow"])
@pytest.mark.parametrize("agent", [None, "a1"])
def test_a_batch_with_a_delegation_is_always_heard(batches: Batches, tool: str, agent: str | None) -> None:
    assert [batches.is_heard(batch(batches.host, agent, tool)) for _ in range(2)] == [True, True]


def test_the_hook_is_given_the_input_to_the_byte(batches: Batches) -> None:
    batches.host.hear(batches.host.delegation())
    refused = batch(batches.host, None, "Agent", "100%s \\n \\c \\\\ 'é' `no` $(no) \"Denied\"")

    assert batches.is_heard(refused)

    [run] = batches.host.record()["runs"]
    assert run["detail"] == refused["tool_calls"][0]["tool_response"]


def spaced(host: Host) -> bytes:
    return json.dumps(batch(host)).encode()


def of_another_event(host: Host) -> dict[str, Any]:
    return {**batch(host), "hook_event_name": "SubagentStop", "last_assistant_message": "Done."}


def with_the_agent_last(host: Host) -> dict[str, Any]:
    payload = batch(host)
    return {**{key: payload[key] for key in payload if key != "agent_id"}, "agent_id": "a1"}


def without_tools(host: Host) -> dict[str, Any]:
    return {key: value for key, value in batch(host).items() if key != "tool_calls"}


UNSURE: dict[str, Callable[[Host], object]] = {
    "spaces after colons": spaced,
    "another event": of_another_event,
    "the agent after the tools": with_the_agent_last,
    "no tools": without_tools,
    "a path as id": lambda host: batch(host, "../a1"),
    "a dot in the id": lambda host: batch(host, "a1.until"),
    "a blank in the id": lambda host: batch(host, "a 1"),
    "a letter of another script": lambda host: batch(host, "ä1"),
    "a quote in the id": lambda host: batch(host, 'a"1'),
    "a long id": lambda host: batch(host, "a" * 300),
    "several megabytes": lambda host: batch(host, response="x\n" * 2_000_000),
}


@pytest.mark.parametrize("payload", UNSURE.values(), ids=UNSURE)
def test_a_payload_that_may_mean_something_else_is_heard(batches: Batches, payload: Callable[[Host], object]) -> None:
    assert batches.is_heard(batch(batches.host))

    assert [batches.is_heard(payload(batches.host)) for _ in range(2)] == [True, True]


def prompt(host: Host, text: str = "Go on, please.", **changed: object) -> dict[str, Any]:
    """A prompt with its keys in the order of the host, in a conversation of which no agent has a file."""
    payload = host.event_payload("UserPromptSubmit", **changed)
    path, event = payload.pop("transcript_path"), payload.pop("hook_event_name")
    return {**payload, "transcript_path": path, "hook_event_name": event, "prompt": text}


PLAIN_PROMPTS = {
    "a line": "Go on, please.",
    "quotes and keys": 'Say "agent_id":"a1", "Agent" and "tool_calls":[]; then $(touch x) `no` %s \\n',
    "lines": "one\ntwo\ttabbed\n",
    "another script": "Привет, объясни код 🙂",
    "nothing": "",
}


@pytest.mark.parametrize("text", PLAIN_PROMPTS.values(), ids=PLAIN_PROMPTS)
def test_a_prompt_in_a_conversation_without_agents_is_passed_over(batches: Batches, text: str) -> None:
    assert not batches.is_heard(prompt(batches.host, text))


def test_a_prompt_of_a_conversation_that_has_had_an_agent_is_heard(batches: Batches) -> None:
    payload = prompt(batches.host)
    Path(payload["transcript_path"].removesuffix(".jsonl"), "subagents").mkdir(parents=True)

    assert batches.is_heard(payload)


UNSURE_PROMPTS: dict[str, Callable[[Host], object]] = {
    "a notification": lambda host: prompt(host, "<task-notification>\n<task-id>a1</task-id>\n</task-notification>"),
    "a notification after blanks": lambda host: prompt(host, "\n <task-notification>\n</task-notification>"),
    "an escaped letter": lambda host: json.dumps(prompt(host, "é")).encode().replace(b" ", b""),
    "spaces after colons": lambda host: json.dumps(prompt(host)).encode(),
    "another event": lambda host: {**prompt(host), "hook_event_name": "SubagentStop"},
    "an event with a longer name": lambda host: {**prompt(host), "hook_event_name": "UserPromptSubmitted"},
    "no transcript": lambda host: {**prompt(host), "transcript_path": ""},
    "a transcript without a folder": lambda host: {**prompt(host), "transcript_path": "a.jsonl"},
    "a transcript with a quote": lambda host: {**prompt(host), "transcript_path": '/a"b.jsonl'},
    "several megabytes": lambda host: prompt(host, "x\n" * 2_000_000),
    "no JSON": lambda _: b"Go on, please.",
}


@pytest.mark.parametrize("payload", UNSURE_PROMPTS.values(), ids=UNSURE_PROMPTS)
def test_a_prompt_that_may_mean_something_else_starts_the_hook(
    batches: Batches, payload: Callable[[Host], object]
) -> None:
    before = len(batches.host.log("hook"))

    assert batches.send(payload(batches.host)) == SILENT

    assert len(batches.host.log("hook")) == before + 1


NOWHERE: dict[str, Mapping[str, str]] = {
    "no home": {"HOME": UNSET},
    "a home that is no path": {"HOME": "home"},
    "another cache": {"XDG_CACHE_HOME": "/proc/nothing"},
}


@pytest.mark.parametrize("settings", NOWHERE.values(), ids=NOWHERE)
def test_where_no_mark_can_be_every_batch_is_heard(batches: Batches, settings: Mapping[str, str]) -> None:
    assert [batches.is_heard(batch(batches.host), settings) for _ in range(2)] == [True, True]
    assert not batches.folder.exists()


def file_in_its_place(batches: Batches) -> None:
    shutil.rmtree(batches.folder)
    batches.folder.write_bytes(b"")


def folder_of_everybody(batches: Batches) -> None:
    batches.age(61)
    batches.folder.chmod(0o777)


def clock_set_back(batches: Batches) -> None:
    batches.age(-30)
    batches.folder.chmod(0o722)  # the hook cannot make it anew


def time_cannot_be_told(batches: Batches) -> None:
    (batches.folder / ".now").unlink(missing_ok=True)
    (batches.folder / ".now").mkdir()


def mark_without_an_end(batches: Batches) -> None:
    (batches.folder / "a1.until").unlink()
    batches.folder.chmod(0o722)


SPOILT = [file_in_its_place, folder_of_everybody, clock_set_back, time_cannot_be_told, mark_without_an_end]


@pytest.mark.parametrize("spoil", SPOILT, ids=[spoil.__name__ for spoil in SPOILT])
def test_a_mark_that_cannot_be_relied_on_does_not_count(batches: Batches, spoil: Callable[[Batches], None]) -> None:
    assert [batches.is_heard(batch(batches.host)) for _ in range(2)] == [True, False]

    spoil(batches)

    assert [batches.is_heard(batch(batches.host)) for _ in range(2)] == [True, True]


def test_marks_are_where_the_variable_says_and_private(batches: Batches, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    batches.cache = tmp_path / "cache"
    batches.cache.symlink_to(tmp_path / "elsewhere")
    settings = {"XDG_CACHE_HOME": str(batches.cache)}

    assert [batches.is_heard(batch(batches.host), settings) for _ in range(2)] == [True, False]
    assert batches.marks() == ["a1", "a1.until"]
    assert stat.S_IMODE(batches.folder.stat().st_mode) == 0o700


def test_whoever_writes_a_mark_removes_those_of_another_day(batches: Batches) -> None:
    assert batches.is_heard(batch(batches.host))
    batches.age(25 * 60 * 60)
    batches.host.hear(batch(batches.host, "a2"))

    assert batches.marks() == ["a2", "a2.until"]


@pytest.mark.parametrize("program", [None, b"#!/gone/python\n"])
@pytest.mark.parametrize("shell", SHELLS)
def test_without_a_program_it_does_nothing(tmp_path: Path, shell: str, program: bytes | None) -> None:
    alone = Path(shutil.copy(FILTER, tmp_path))
    if program:
        (tmp_path / "gaia-sessions-hook").write_bytes(program)
        (tmp_path / "gaia-sessions-hook").chmod(0o755)
    payload = b'{"agent_id":"a1","hook_event_name":"PostToolBatch","tool_calls":[]}'

    done = subprocess.run([shell, alone], input=payload, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_is_tried_is_the_hook_itself(batches: Batches) -> None:
    code, out, err = batches.send(b"", None, "--test")

    assert (code, err, b"passed" in out) == (0, b"", True), out
