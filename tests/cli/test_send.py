"""``send``: a conversation with a command, with real processes: what it reads, what is stored, how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api.send import Send
from tests.cli.forks import Fork, forked, until
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia


ECHO = "import json, sys; given = json.load(sys.stdin); print(len(given), given[-1]['content'], sys.argv[1:])"
AGENT = ("--", sys.executable, "-IS", "-c", ECHO)
SHELL = ("--", "sh", "-c")


@pytest.fixture
def sessions(root: str) -> Sessions:
    sessions = Sessions(root)
    sessions.create("tester", agent_id="talk", system_prompt="Be brief.")
    return sessions


def spoken(sessions: Sessions) -> list[tuple[int, str, str]]:
    found = [one for one in sessions.messages("talk") if isinstance(one, dict)]
    return [(one["turn"], one["role"], one["content"]) for one in found[1:]]


def kinds(sessions: Sessions) -> list[Any]:
    return [one["kind"] for one in sessions.events("talk") if isinstance(one, dict)]


def is_begun(sessions: Sessions) -> bool:
    """Whether a send is at work."""
    return bool(kinds(sessions)) and kinds(sessions)[-1] in ("SubAgentStarted", "SubAgentReused")


def test_a_command_reads_all_messages_and_its_output_is_the_answer(program: Gaia, sessions: Sessions) -> None:
    assert program("send", "talk", "How many?", *AGENT, "a secret").answer == ["2 How many? ['a secret']"]
    assert forked("send", "talk", "-", *AGENT, stdin=b"two\nlines\n").answer == ["4 two", "lines []"]

    answers = ["2 How many? ['a secret']", "4 two\nlines []"]
    assert spoken(sessions) == [
        (1, "user", "How many?"),
        (1, "assistant", answers[0]),
        (2, "user", "two\nlines"),
        (2, "assistant", answers[1]),
    ]
    started, completed = "SubAgentStarted", "SubAgentCompleted"
    assert kinds(sessions) == [started, completed, started, "SubAgentReused", completed]
    record = sessions.store.read("talk")
    assert (record["turns"], record["phase"], [run["end"] for run in record["runs"]]) == (
        2,
        "investigating",
        ["returned", "returned"],
    )
    assert not os.path.exists(os.path.join(sessions.root, "talk", "output"))


def test_the_arguments_of_the_command_are_not_stored(sessions: Sessions) -> None:
    assert forked("send", "talk", "x", *SHELL, "echo done # hunter2").code == 0
    kept = b"".join(path.read_bytes() for path in Path(sessions.root, "talk").iterdir())
    assert (b"done" in kept, b"hunter2" in kept) == (True, False)


def test_a_printed_array_of_messages_is_stored_with_its_tools_and_tokens(sessions: Sessions) -> None:
    answer = [
        {"role": "assistant", "content": "{}", "tool_name": "Bash", "tool_call_id": "c", "tokens": 5},
        {"role": "tool", "content": "42", "tool_call_id": "c"},
        {"role": "assistant", "content": "It is 42.", "tokens": 4},
    ]
    ended = forked("send", "talk", "x", "--json", *SHELL, f"echo '{json.dumps(answer)}'")
    assert (ended.code, ended.json["text"], ended.json["turn"], ended.json["usage"]["tokens"]) == (0, "It is 42.", 1, 9)
    assert [content for _, _, content in spoken(sessions)] == ["x", "{}", "42", "It is 42."]
    assert ended.json["messages"] == [one for one in sessions.messages("talk") if isinstance(one, dict)][1:]
    for other in ('[1, {"role": "user"}]', "[]", "[broken", '{"role": "user"}'):
        assert forked("send", "talk", "x", *SHELL, f"echo '{other}'").answer == [other]


def test_an_array_with_an_invalid_message_is_refused_and_printed(sessions: Sessions) -> None:
    ended = forked("send", "talk", "x", *SHELL, """echo '[{"role": "assistant", "text": "lost"}]'""")
    assert (ended.code, ended.out) == (7, b'[{"role": "assistant", "text": "lost"}]\n')
    assert "message 1: 'text' is not a key of a message" in ended.err.decode()
    assert (spoken(sessions), kinds(sessions)) == ([], ["SubAgentStarted", "SubAgentFailed"])


def test_an_answer_over_1_mib_is_cut_in_the_middle_with_a_note(sessions: Sessions) -> None:
    script = "print('BEGIN', 'x' * (3 << 20), 'END')"
    ended = forked("send", "talk", "x", "--", sys.executable, "-c", script)
    assert (ended.code, ended.err) == (0, b"a message is larger than 1 MiB: its middle is left out\n")
    [_, (_, _, answer)] = spoken(sessions)
    assert (answer[:7], answer[-5:], "characters left out ...]" in answer) == ("BEGIN x", "x END", True)
    assert ended.out.decode() == f"{answer}\n"


@pytest.mark.parametrize(
    ("words", "script", "code", "status", "detail"),
    [
        ((), "echo partly; echo why >&2; exit 3", 11, "error", "exit code 3"),
        ((), "kill -9 $$", 11, "error", "killed by signal 9 (SIGKILL)"),
        (("--timeout", "0.2", "--grace", "0.2"), "sleep 60", 124, "timeout", "timeout"),
    ],
)
def test_a_failed_command_stores_its_error_but_no_messages(
    sessions: Sessions, words: tuple[str, ...], script: str, code: int, status: str, detail: str
) -> None:
    ended = forked("send", "talk", "x", *words, *SHELL, script)
    stored = b"  your message was not stored\n"
    assert (ended.code, ended.out, ended.err.count(stored)) == (code, b"", 1)
    record, report = sessions.store.read("talk"), sessions.report("talk")
    run = record["runs"][-1]
    assert (run["end"], run["detail"], record["error_count"], report["status"]) == ("failed", detail, 1, status)
    assert (spoken(sessions), kinds(sessions)) == ([], ["SubAgentStarted", "SubAgentFailed"])
    assert forked("send", "talk", "x", *AGENT).answer == ["2 x []"]


def test_a_command_that_cannot_be_started_is_an_error_with_its_reason(sessions: Sessions) -> None:
    ended = forked("send", "talk", "x", "--", "/no/such/program")
    why = "cannot be started: /no/such/program: No such file or directory"
    assert (ended.code, ended.out, f"  {why}\n" in ended.err.decode()) == (11, b"", True)
    record = sessions.store.read("talk")
    assert (record["runs"][-1]["detail"], record["error_count"]) == (why, 1)


def test_stderr_of_the_command_is_shown_but_not_stored(sessions: Sessions) -> None:
    ended = forked("send", "talk", "x", *SHELL, "echo thinking >&2; echo done")
    assert ended.all == (0, "done\n", "thinking\n")
    assert spoken(sessions)[-1] == (1, "assistant", "done")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_send_leaves_no_turn_and_no_error(sessions: Sessions, number: int) -> None:
    with Fork("send", "talk", "x", *SHELL, "sleep 60") as sender:
        until(lambda: is_begun(sessions))
        sender.send_signal(number)
        assert sender.ended().code == 130
    record = sessions.store.read("talk")
    run = record["runs"][-1]
    assert (run["end"], run["interruption"], record["error_count"]) == ("killed", "stopped_by_user", 0)
    assert (spoken(sessions), kinds(sessions)) == ([], ["SubAgentStarted", "SubAgentCancelled"])
    assert forked("send", "talk", "x", *AGENT).code == 0


SLOW = ("send", "talk", "first", *SHELL, "until test -e go; do sleep 0.02; done; echo slow")


@pytest.fixture
def is_waited(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether a send has waited for another one."""
    began = Send.began

    def noted(*arguments: Any) -> bool:
        has_begun = began(*arguments)
        if not has_begun:
            Path("waits").touch()
        return has_begun

    monkeypatch.setattr(Send, "began", noted)
    return lambda: os.path.exists("waits")


def test_concurrent_sends_never_interleave_and_a_waiting_send_is_next(
    sessions: Sessions, is_waited: Callable[[], bool]
) -> None:
    with Fork(*SLOW) as sender:
        until(lambda: is_begun(sessions))
        refused = forked("send", "talk", "second", *AGENT)
        assert (refused.code, refused.out) == (4, b"")
        assert refused.err.decode() == (
            "Error: session 'talk' cannot be used for this: its agent is at work\n"
            "Hint: to wait until the agent is done, add --wait (in Python: wait=60)\n"
        )
        assert not is_waited()
        assert forked("send", "talk", "second", "--wait", "0.1", *AGENT).code == 4
        Path("waits").unlink()
        with Fork("send", "talk", "third", "--wait", *AGENT) as third:
            until(is_waited)
            Path("go").touch()
            assert third.ended().out == b"4 third []\n"
        assert sender.ended().out == b"slow\n"
    assert [content for _, _, content in spoken(sessions)] == ["first", "slow", "third", "4 third []"]


def test_the_next_send_works_after_a_sender_was_killed(sessions: Sessions) -> None:
    forked("send", "talk", "first", *AGENT)
    with Fork("send", "talk", "x", *SHELL, "sleep 60") as sender:
        until(lambda: is_begun(sessions))
        sender.kill()
    assert forked("send", "talk", "x", *AGENT).answer == ["4 x []"]
    assert [content for _, _, content in spoken(sessions)] == ["first", "2 first []", "x", "4 x []"]
    assert kinds(sessions)[2:5] == ["SubAgentStarted", "SubAgentReused", "SubAgentFailed"]
    assert (sessions.store.read("talk")["turns"], kinds(sessions).count("SubAgentFailed")) == (2, 1)


def test_cancelling_the_session_stops_the_command_of_a_send(sessions: Sessions) -> None:
    with Fork("send", "talk", "x", *SHELL, "sleep 60") as sender:
        until(lambda: is_begun(sessions))
        sessions.cancel("talk", "enough")
        assert sender.ended().code == 10
    assert (sessions.store.read("talk")["phase"], kinds(sessions)[-1]) == ("abandoned", "SubAgentCancelled")
    assert forked("send", "talk", "x", *AGENT).code == 10


def test_with_pruned_the_command_gets_old_turns_in_short_and_recent_ones_whole(gaia: Gaia, sessions: Sessions) -> None:
    for number in range(7):
        texts = {"user": f"question {number}", "assistant": f"{2 + 2 * number} question {number} []"}
        turn = [{"role": role, "content": text} for role, text in texts.items()]
        assert gaia("turn", "talk", "-", stdin=json.dumps(turn).encode()).code == 0
    ended = forked("send", "talk", "x", "--pruned", *SHELL, "printf 'given: '; cat")
    contents = [one["content"] for one in json.loads(ended.out.decode().removeprefix("given: "))]
    assert contents[0] == "Be brief."
    assert contents[1].startswith("Earlier turns:\n  turn 1: question 0 -> 2 question 0")
    assert contents[2:] == [content for _, _, content in spoken(sessions)[4:14]] + ["x"]


@table("text", ["", "  \n"])
def test_a_blank_message_is_not_sent(gaia: Gaia, sessions: Sessions, text: str) -> None:
    assert gaia("send", "talk", text, *AGENT).code == 7
    assert gaia("send", "talk", "-", *AGENT, stdin=text.encode()).code == 7
    assert (kinds(sessions), sessions.store.read("talk")["revision"]) == ([], 1)


def test_send_refuses_a_session_that_has_ended(sessions: Sessions) -> None:
    sessions.finalize("talk", "completed")
    ended = forked("send", "talk", "x", *AGENT)
    assert (ended.code, ended.err.decode().splitlines()[-1]) == (
        4,
        "Hint: to continue it in a new session, type gaia-sessions create --continues talk",
    )


def test_send_accepts_part_of_an_id_or_latest(sessions: Sessions) -> None:
    agent_id = sessions.create()
    assert forked("send", agent_id[-8:], "x", *AGENT).out == b"1 x []\n"
    assert forked("send", "latest", "x", *AGENT).out == b"3 x []\n"
    assert forked("send", "nobody", "x", *AGENT).code == 3


@pytest.mark.usefixtures("interruptible")
def test_a_waiting_send_can_be_interrupted_and_has_started_nothing(
    sessions: Sessions, is_waited: Callable[[], bool]
) -> None:
    with Fork(*SLOW) as sender:
        until(lambda: is_begun(sessions))
        with Fork("send", "talk", "second", "--wait", *AGENT) as waiting:
            until(is_waited)
            waiting.send_signal(signal.SIGINT)
            assert waiting.ended().code == 130
        Path("go").touch()
        assert sender.ended().out == b"slow\n"
    assert [content for _, _, content in spoken(sessions)] == ["first", "slow"]
    assert forked("send", "talk", "third", *AGENT).code == 0


def test_after_a_reset_no_command_shows_the_earlier_messages(gaia: Gaia, sessions: Sessions) -> None:
    forked("send", "talk", "first", *AGENT)
    sessions.reset("talk")
    for command in ("show", "report", "context"):
        assert b"first" not in gaia(command, "talk").out
