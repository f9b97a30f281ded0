"""``GAIA_SESSIONS_ROOT`` can be the URL of a server: hooks keep their files, and their log says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import gaia_sessions
from gaia_sessions.install.executable import hook_program
from tests.hook.conftest import ASKS, LONGEST, SCRIPTS, SILENT, another
from tests.hook.test_imports import imported
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from tests.hook.conftest import Host

PASSED_OVER = {"url": "passed_over"}
URLS = [
    "postgresql://db/agents",
    "postgresql://user:s3cret@db/agents",
    "postgres://db/agents?password=s3cret",
    "https://user:s3cret@db",
    "://s3cret",
]
COMMANDS: dict[str, Callable[[], Sequence[str]]] = {
    "every_event.py": lambda: [sys.executable, str(SCRIPTS / "every_event.py")],
    "wired by hooks install": hook_program,
}


_NAME_OF_EVENT = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{8}")


def with_url(host: Host, url: str = URLS[0]) -> dict[str, str]:
    return host.environment({"GAIA_SESSIONS_ROOT": url})


def send(command: Sequence[str], payload: object, folder: Path, environment: Mapping[str, str]) -> bytes:
    """What the hook answers; a host sees no failure."""
    done = subprocess.run(
        command,
        input=json.dumps(payload).encode(),
        capture_output=True,
        timeout=LONGEST,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def live(host: Host, call: Callable[[object], bytes]) -> list[bytes]:
    """A conversation with an agent that pauses, gets a message and ends; returns the answers to all its events."""
    first = [
        host.event_payload("SessionStart", source="startup"),
        host.event_payload("PreToolUse", tool_name="Bash", tool_input={"command": "true"}, tool_use_id="toolu_b"),
        host.delegation(),
        host.starting(),
    ]
    others = [
        host.ending(message=ASKS),
        host.returning(),
        host.messaging(),
        host.starting(),
        host.ending(),
        host.notifying(),
        host.pausing(),
        host.event_payload("SessionEnd", reason="other"),
    ]
    answers = [call(event) for event in first]
    host.knows("a1", "toolu_1")
    return answers + [call(event) for event in others]


def everything(host: Host, answers: list[bytes]) -> dict[str, Any]:
    """What was answered, stored and logged, without what differs between two hosts."""
    records, journals = [*host.records().values()], [host.journal(agent_id) for agent_id in host.records()]
    told = {"answers": [answer.decode() for answer in answers], "records": records, "journals": journals}
    log = [{**line, "ms": 0} for line in host.log("hook")]
    text = json.dumps(host.timeless({**told, "waiting": host.deferred(), "log": log})).replace(
        host.folder.name, "FOLDER"
    )
    found: dict[str, Any] = json.loads(_NAME_OF_EVENT.sub("NAME", text))
    return found


@table("command", COMMANDS)
def test_with_a_url_in_the_variable_hooks_record_every_event_in_the_files_of_the_project(
    host: Host, command: str
) -> None:
    with_variable, without = another(host), another(host)
    words = COMMANDS[command]()

    answers = live(with_variable, lambda event: send(words, event, with_variable.project, with_url(with_variable)))
    expected = live(without, lambda event: send(words, event, without.project, without.environment()))

    found, wanted = everything(with_variable, answers), everything(without, expected)
    assert [line["url"] for line in found["log"]] == ["passed_over"] * len(found["log"])
    assert found == {**wanted, "log": [{**line, **PASSED_OVER} for line in wanted["log"]]}
    assert [record["phase"] for record in found["records"]] == ["completed"]
    assert len(found["log"]) == len(answers)
    assert sorted(path.name for path in with_variable.project.iterdir()) == [".claude"]


@table("hook", ["pre_delegate", "subagent_stop"])
def test_with_a_url_in_the_variable_the_direct_form_uses_the_files_of_the_project(host: Host, hook: str) -> None:
    agent_id = gaia_sessions.create_session(agent_id=f"agent-{hook}", root=str(host.root))

    answer = host.start(hook, {"agent_id": agent_id}, {"GAIA_SESSIONS_ROOT": URLS[0]}).answer

    assert answer["agent_id"] == agent_id
    [line] = host.log(hook)
    assert (line["url"], line["session"], line["decision"]) == ("passed_over", agent_id, answer["reason"])


@table("url", URLS)
@table("data", [b"{", b'{"hook_event_name": "PreToolUse", "tool_name": "Agent"}', b'{"hook_event_name": 3}'])
def test_the_log_has_no_text_of_the_url(host: Host, url: str, data: bytes) -> None:
    own = another(host)

    assert own.start("every_event", data, {"GAIA_SESSIONS_ROOT": url}) == SILENT
    assert own.run("every_event", own.delegation(), {"GAIA_SESSIONS_ROOT": url}) == SILENT

    assert [line.get("url") for line in own.log("hook")] == ["passed_over"] * 2
    written = [path.read_bytes() for path in own.folder.rglob("*") if path.is_file()]
    assert [text for text in written if url.encode() in text or b"s3cret" in text] == []


def test_the_log_names_no_url_if_the_variable_has_none_or_the_command_names_a_folder(host: Host) -> None:
    host.run("every_event", host.delegation())
    host.words = ["--root", str(host.root)]
    host.run("every_event", host.delegation("toolu_2"), {"GAIA_SESSIONS_ROOT": URLS[0]})

    assert [line["decision"] for line in host.log("hook")] == ["created", "created"]
    assert [line for line in host.log("hook") if "url" in line] == []


def test_hooks_that_are_off_write_nothing_about_the_url(host: Host) -> None:
    before = host.tree(host.folder)

    host.run("every_event", host.delegation(), {"GAIA_SESSIONS_ROOT": URLS[0], "GAIA_SESSIONS_HOOKS": "off"})

    assert host.tree(host.folder) == before


def test_with_a_url_in_the_variable_a_hook_loads_the_same_modules(host: Host) -> None:
    run = partial(imported, SCRIPTS / "every_event.py")
    host.run("every_event", host.delegation("toolu_0"))  # the first call of all makes the index

    without = run(payload=json.dumps(host.delegation()), environment=host.environment())
    with_variable = run(payload=json.dumps(host.delegation("toolu_2")), environment=with_url(host))

    assert len(host.records()) == 3
    assert with_variable == without
