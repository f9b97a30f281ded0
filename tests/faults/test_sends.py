"""A sender is killed at any system call: the last complete turn is stored, and the next send follows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions, SubAgentSession
from tests.faults.conftest import EACH_CALL, EACH_CHANGE, OPERATIONS, SPOKEN, Operation, command, root_of, run
from tests.faults.worker import PROMPT, TURN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Case

pytestmark = [
    pytest.mark.usefixtures("needs_strace"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::gaia_sessions.errors.MessagesKeptAside"),  # messages of the killed sender
]

ORDER = ["before", "at work", "answered"]
CHANGING = ("mkdirat", "fchmod", "renameat", "fsync", "fdatasync", "unlinkat", "flock")
"""The calls that make or complete files. The number of other calls differs from run to run."""


def _holds(_agent_id: str, data: bytes | None) -> bool:
    return data is not None


SEND = Operation(
    "send",
    OPERATIONS["add a turn"].prepare,
    lambda project: command("send", root_of(project), "told"),
    {f"told/{name}": _holds for name in ("state.json", "events.jsonl", "transcript.jsonl")},
)


@pytest.mark.parametrize("reach", [EACH_CHANGE, pytest.param(EACH_CALL, marks=pytest.mark.thorough)])
def test_a_killed_sender_leaves_whole_turns_and_the_next_send_works(
    case_of: Callable[[Operation], Case], reach: str
) -> None:
    case, stood = case_of(SEND), []
    for call, project, told in case.killed(reach):
        stood.append(_stands_and_goes_on(root_of(project)))
        assert "BEGUN" not in told or stood[-1] != "before", call

    assert stood == sorted(stood, key=ORDER.index)
    assert set(stood) == {*ORDER}


def test_a_killed_gaia_sessions_send_leaves_whole_turns_and_the_next_send_works(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gaia_sessions", "send", "told", "sent", "--", "printf", SPOKEN]

    def prepared(number: int) -> str:
        project = tmp_path / f"project-{number}"
        project.mkdir()
        root = root_of(str(project))
        talk = Sessions(root)
        talk.create("worker", agent_id="told", system_prompt=PROMPT)
        talk.add_turn("told", TURN)
        return root

    def ended(number: int, *faults: str) -> tuple[str, int, str]:
        root = prepared(number)
        traced = ["strace", "-y", "-e", f"trace={','.join(CHANGING)}", "-e", "signal=none", *faults]
        done = run(words, environment={"GAIA_SESSIONS_ROOT": root}, trace=[*traced, "-o", f"{root}.trace"])
        return root, done.returncode, done.stdout

    root, code, out = ended(0)
    assert (code, out) == (0, f"{SPOKEN}\n")
    calls = re.findall(r"^(\w+)\(", Path(f"{root}.trace").read_text(), re.MULTILINE)
    stood = []
    for number, name in enumerate(calls, 1):
        when = calls[:number].count(name)
        root, code, out = ended(number, "-e", f"inject={name}:signal=SIGKILL:when={when}")
        assert (code, out) == (-9, ""), (name, when)
        stood.append(_stands_and_goes_on(root))

    assert stood == sorted(stood, key=ORDER.index)
    assert set(stood) == {*ORDER}


def _stands_and_goes_on(root: str) -> str:
    """How far the killed send came. The next send must then succeed, and store each message once."""
    given = [("system", PROMPT), *((one["role"], one["content"]) for one in TURN)]
    sent = [("user", "sent"), ("assistant", SPOKEN)]
    record = Sessions(root).store.read("told")
    is_answered = record["turns"] == 2
    is_begun = bool(record.get("runs")) and not is_answered
    seen: list[list[tuple[str, str]]] = []

    def agent(messages: list[dict[str, str]]) -> str:
        seen.append([(one["role"], one["content"]) for one in messages])
        return "again"

    talk = SubAgentSession(agent, agent_id="told", root=root)
    assert talk.send("next")["turn"] == record["turns"] + 1
    before = given + (sent if is_answered else [])
    assert seen == [[*before, ("user", "next")]]
    assert [(one["role"], one["content"]) for one in talk.transcript] == [*seen[0], ("assistant", "again")]
    kinds = [one["kind"] for one in Sessions(root).events("told") if isinstance(one, dict)]
    assert kinds[-3:] == ["SubAgentStarted", "SubAgentReused", "SubAgentCompleted"]
    assert kinds.count("SubAgentFailed") == is_begun
    return "answered" if is_answered else "at work" if is_begun else "before"
