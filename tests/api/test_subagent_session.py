"""``SubAgentSession``: sends to an agent of the program, also from several processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import EphemeralSession, Sessions, SubAgentSession
from gaia_sessions.api import at, own_runs, records
from gaia_sessions.errors import (
    AgentAtWork,
    Cancelled,
    DurabilityUnknown,
    InvalidInput,
    RunGone,
    RunNotAllowed,
    StoreFailure,
    TooDeep,
    TooLarge,
)
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions import CancellationToken

PROMPT = {"role": "system", "content": "Be brief."}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


class Agent:
    """Answers with a number and stores the messages that it got."""

    name = "counter"
    system_prompt = "Be brief."

    def __init__(self) -> None:
        self.given: list[Any] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        self.given.append(messages)
        return f"answer {len(self.given)}"


def events_of(talk: SubAgentSession[Any]) -> list[Any]:
    return [one for one in Sessions(talk.root).events(talk.agent_id) if isinstance(one, dict)]


def kinds(talk: SubAgentSession[Any]) -> list[Any]:
    """The kind of each event, and the turn or the error that it names."""
    keys = ("turn", "error")
    return [(one["kind"], *[one["evidence"][key] for key in keys if key in one["evidence"]]) for one in events_of(talk)]


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def talk(root: str, agent: Agent) -> SubAgentSession[Agent]:
    return SubAgentSession(agent, "Be brief.", root=root)


def test_the_first_send_adds_one_turn_after_the_system_prompt(talk: SubAgentSession[Agent], agent: Agent) -> None:
    turn = talk.send("How many?")

    assert agent.given == [[PROMPT, user("How many?")]]
    assert talk.transcript == [PROMPT, user("How many?"), said("answer 1")]
    assert (talk.turns, kinds(talk)) == (1, [("SubAgentStarted",), ("SubAgentCompleted",)])
    record, sessions = Sessions(talk.root).store.read(talk.agent_id), Sessions(talk.root)
    assert turn == {
        "agent_id": talk.agent_id,
        "task_id": sessions.report(talk.agent_id)["task_id"],
        "turn": 1,
        "turn_id": "0.1",
        "text": "answer 1",
        "messages": [one for one in sessions.messages(talk.agent_id) if isinstance(one, dict)][1:],
        "usage": {**sessions.usage(talk.agent_id), "elapsed_secs": turn["usage"]["elapsed_secs"]},
        "report": turn["report"],
    }
    assert (turn["report"]["status"], turn["report"]["result"]) == ("success", "answer 1")
    assert (record["phase"], record["turns"], record["error_count"]) == ("investigating", 1, 0)


def test_each_further_send_has_all_earlier_messages_and_is_recorded_as_reuse(
    talk: SubAgentSession[Agent], agent: Agent
) -> None:
    noted: list[Any] = []
    assert talk.with_events(noted.append) is talk
    turns = [talk.send(text) for text in ("one", "two", "three")]

    assert agent.given[2] == [PROMPT, user("one"), said("answer 1"), user("two"), said("answer 2"), user("three")]
    started, completed = ("SubAgentStarted",), ("SubAgentCompleted",)
    reused = [("SubAgentReused", 1), ("SubAgentReused", 2)]
    assert kinds(talk) == [started, completed, started, reused[0], completed, started, reused[1], completed]
    shown = {"seq", "root_id", "trace_id"}
    assert noted == [{key: one[key] for key in one.keys() - shown} for one in events_of(talk)]
    assert len({one["task_id"] for one in turns}) == len({one["turn_id"] for one in turns}) == 3


def test_a_reset_leaves_only_the_system_prompt_and_the_next_send_is_no_reuse(
    talk: SubAgentSession[Agent], agent: Agent
) -> None:
    noted: list[Any] = []
    talk.send("one")
    before = Sessions(talk.root).store.read(talk.agent_id)
    talk.with_events(noted.append).reset()
    assert (talk.turns, talk.transcript, [one["kind"] for one in noted]) == (0, [PROMPT], ["SessionReset"])
    assert talk.send("two")["turn_id"] == "1.1"
    assert agent.given[1] == [PROMPT, user("two")]
    assert kinds(talk)[-3:] == [("SessionReset",), ("SubAgentStarted",), ("SubAgentCompleted",)]
    after = Sessions(talk.root).store.read(talk.agent_id)
    kept = ("agent_id", "agent_name", "purpose", "created_at", "metadata")
    assert [before[key] for key in kept] == [after[key] for key in kept]  # type: ignore[literal-required]  # keys of a record


def test_without_a_system_prompt_the_agent_gets_only_the_message(root: str, agent: Agent) -> None:
    SubAgentSession(agent, root=root).send("one")
    assert agent.given == [[user("one")]]


def test_a_send_and_an_answer_may_be_lists_of_messages_or_empty(root: str) -> None:
    answers: list[Any] = [
        [
            {**said("{}"), "tool_name": "Bash", "tool_call_id": "c"},
            {"role": "tool", "content": "1", "tool_call_id": "c"},
        ],
        [],
        "",
    ]
    given: list[Any] = []

    def agent(messages: list[dict[str, str]]) -> object:
        given.append(messages)
        return answers[len(given) - 1]

    talk = SubAgentSession(agent, root=root)
    sent = [user("a"), {"role": "system", "content": "b"}]
    assert [talk.send(sent)["text"], talk.send([])["text"], talk.send(iter([user("c")]))["text"]] == ["", "", ""]
    assert given == [sent, [*sent, *answers[0]], [*sent, *answers[0], user("c")]]
    assert (talk.turns, talk.transcript) == (3, [*sent, *answers[0], user("c"), said("")])


def test_a_failed_send_records_its_error_and_a_retry_adds_the_message_once(
    talk: SubAgentSession[Agent],
) -> None:
    talk.send("one")

    def fails(_: object) -> str:
        raise ValueError("out of order")

    failing = SubAgentSession(fails, agent_id=talk.agent_id, root=talk.root)
    with pytest.raises(ValueError, match="out of order"):
        failing.send("two")

    record = Sessions(talk.root).store.read(talk.agent_id)
    assert (record["turns"], record["error_count"], record["phase"]) == (1, 1, "investigating")
    assert record["last_error"] is not None
    assert record["last_error"]["message"] == "ValueError: out of order"
    assert talk.transcript == [PROMPT, user("one"), said("answer 1")]
    assert kinds(talk)[2:] == [
        ("SubAgentStarted",),
        ("SubAgentReused", 1),
        ("SubAgentFailed", "ValueError: out of order"),
    ]
    talk.send("two")
    assert talk.transcript == [PROMPT, user("one"), said("answer 1"), user("two"), said("answer 2")]


@table(
    ("answered", "problem"),
    [
        (None, "the answer of the agent must be a text or a list of messages, not null"),
        ({"role": "assistant", "content": "x"}, "the answer of the agent must be a text or a list of messages"),
        ([{"role": "assistant"}], "message 1: 'content' is missing"),
        (
            [{"role": "assistant", "content": "x", "tool_calls": []}],
            "message 1: 'tool_calls' is not a key of a message",
        ),
    ],
)
def test_an_invalid_answer_fails_the_send(root: str, answered: object, problem: str) -> None:
    talk = SubAgentSession(lambda _: answered, root=root)
    with pytest.raises(InvalidInput) as refused:
        talk.send("one")
    assert str(refused.value).startswith(problem)
    assert (talk.turns, talk.transcript, kinds(talk)[-1][0]) == (0, [], "SubAgentFailed")


@table("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_a_stopped_send_does_not_count_as_an_error(root: str, stop: type[BaseException]) -> None:
    talk = SubAgentSession(Agent(), "Be brief.", root=root)

    def stops(_: object) -> str:
        raise stop

    with pytest.raises(stop):
        SubAgentSession(stops, agent_id=talk.agent_id, root=talk.root).send("one")

    record = Sessions(talk.root).store.read(talk.agent_id)
    run = record["runs"][-1]
    assert (run["end"], run["interruption"], record["error_count"]) == ("killed", "stopped_by_user", 0)
    assert kinds(talk)[-1] == ("SubAgentCancelled", f"stopped by {stop.__name__}")
    assert talk.send("one")["turn"] == 1


def test_a_cancellation_stops_the_current_send_and_refuses_the_next(root: str, agent: Agent) -> None:
    with EphemeralSession(None, root=root) as above:
        talk = SubAgentSession(agent, parent=above)
        token: list[Any] = []

        def waits(_: object, *, cancellation_token: CancellationToken) -> str:
            token.append(cancellation_token)
            Sessions(root).cancel(above.agent_id, "enough")
            cancellation_token.check()
            return "never"

        with pytest.raises(Cancelled):
            SubAgentSession(waits, agent_id=talk.agent_id, root=root).send("one")
        assert token[0].agent_id == talk.agent_id
        with pytest.raises(Cancelled):
            talk.send("two")
    assert agent.given == []
    record = Sessions(root).store.read(talk.agent_id)
    assert (record["phase"], record["error_count"], kinds(talk)[-1][0]) == ("abandoned", 0, "SubAgentCancelled")


@pytest.mark.parametrize("which", ["itself", "its parent"])
def test_the_report_of_a_cancelled_turn_equals_the_report_of_the_session(root: str, which: str) -> None:
    sessions = Sessions(root)
    parent = sessions.create()

    def answers(_: object) -> str:
        sessions.cancel(cancelled.agent_id if which == "itself" else parent, "not needed")
        return "the answer"

    cancelled = SubAgentSession(answers, parent=parent, root=root)
    sent = cancelled.send("go")

    told, asked = sent["report"], sessions.report(cancelled.agent_id)
    assert (told["status"], told["error"], told["partial"]) == ("cancelled", "not needed", "the answer")
    assert told == {key: asked[key] for key in told}  # type: ignore[literal-required]  # its keys
    assert sent["text"] == "the answer"


def test_an_answer_is_stored_if_the_agent_did_not_see_the_cancellation(root: str) -> None:
    def cancels(_: object) -> str:
        Sessions(root).cancel(agent_id)
        return "done"

    agent_id = Sessions(root).create()
    talk = SubAgentSession(cancels, agent_id=agent_id, root=root)
    assert talk.send("one")["text"] == "done"
    assert (Sessions(root).store.read(talk.agent_id)["phase"], talk.turns) == ("abandoned", 1)


def test_a_send_to_a_final_session_is_refused(talk: SubAgentSession[Agent], agent: Agent) -> None:
    Sessions(talk.root).finalize(talk.agent_id, "completed")
    with pytest.raises(RunNotAllowed) as refused:
        talk.send("one")
    assert refused.value.hint is not None
    assert refused.value.hint.endswith(f"gaia-sessions create --continues {talk.agent_id}")
    assert (agent.given, kinds(talk)) == ([], [])


def test_the_next_send_answers_an_approval(talk: SubAgentSession[Agent]) -> None:
    sessions = Sessions(talk.root)

    def asks(_: object) -> str:
        sessions.update(talk.agent_id, phase="approval")
        return "May I?"

    SubAgentSession(asks, agent_id=talk.agent_id, root=talk.root).send("Clean up")
    assert sessions.store.read(talk.agent_id)["phase"] == "approval"
    assert [(one["agent_id"], one["last_message"]) for one in sessions.pending()] == [(talk.agent_id, "May I?")]
    talk.send("yes")
    assert (sessions.store.read(talk.agent_id)["phase"], [*sessions.pending()]) == ("investigating", [])


def test_from_subagent_keeps_the_agent_and_uses_its_name_and_prompt(root: str, agent: Agent) -> None:
    talk = SubAgentSession.from_subagent(agent, root=root)
    assert talk.subagent() is agent
    record = Sessions(root).store.read(talk.agent_id)
    assert (record["agent_name"], talk.transcript) == ("counter", [PROMPT])
    again = SubAgentSession.from_subagent(agent, agent_id=talk.agent_id, root=root)
    assert (again.agent_id, again.subagent() is agent, len(at.read(Sessions(root), records.ids))) == (
        talk.agent_id,
        True,
        1,
    )


def test_an_existing_session_refuses_another_system_prompt(talk: SubAgentSession[Agent], agent: Agent) -> None:
    SubAgentSession(agent, "Be brief.", agent_id=talk.agent_id, root=talk.root)
    with pytest.raises(InvalidInput, match="has another system prompt"):
        SubAgentSession(agent, "Be long.", agent_id=talk.agent_id, root=talk.root)
    bare = SubAgentSession(agent, root=talk.root)
    with pytest.raises(InvalidInput, match="has no system prompt"):
        SubAgentSession(agent, "Be brief.", agent_id=bare.agent_id, root=talk.root)


def test_the_greater_depth_of_the_caller_and_of_the_session_counts(root: str, agent: Agent) -> None:
    top = Sessions(root).create(max_depth=3)
    talk = SubAgentSession(agent, parent=top, root=root)
    assert talk.with_parent_depth(2).send("one")["turn"] == 1
    assert [one["evidence"]["depth"] for one in events_of(talk)] == [3, 3]
    with pytest.raises(TooDeep) as refused:
        talk.with_parent_depth(3).send("two")
    assert str(refused.value) == "the agent would work at depth 4; the limit is 3"
    assert (len(agent.given), talk.turns, len(events_of(talk))) == (1, 1, 2)
    assert talk.with_parent_depth(0).send("two")["turn"] == 2


def test_the_agent_gets_only_the_arguments_that_it_takes(root: str) -> None:
    sink: list[Any] = []
    seen: list[Any] = []

    def takes_all(_: object, **given: object) -> str:
        seen.append(sorted(given))
        return ""

    def takes_events(_: object, events: Callable[[object], None]) -> str:
        events("mine")
        return ""

    for agent in (takes_all, takes_events, partial(takes_all, more=1), str):
        SubAgentSession(agent, root=root).with_events(sink.append).send("x")
    assert seen == [["cancellation_token", "events"], ["cancellation_token", "events", "more"]]
    assert sink.count("mine") == 1


def test_a_pruned_send_gives_the_agent_a_summary_of_earlier_turns(talk: SubAgentSession[Agent], agent: Agent) -> None:
    for number in range(8):
        talk.send(f"question {number}")
    talk.send("last", pruned=True)
    given = agent.given[-1]
    assert given[0] == PROMPT
    assert given[1]["role"] == "system"
    assert given[1]["content"].startswith("Earlier turns:\n  turn 1: question 0 -> answer 1")
    whole = [
        message for number in range(3, 8) for message in (user(f"question {number}"), said(f"answer {number + 1}"))
    ]
    assert given[2:] == [*whole, user("last")]


def test_tokens_that_the_agent_reports_are_charged(root: str) -> None:
    talk = SubAgentSession(lambda _: [{**said("a"), "tokens": 30}, {**said("b"), "tokens": 12}], root=root)
    assert talk.send("x")["usage"]["tokens"] == 42


def test_an_async_agent_is_awaited_and_stopped_with_its_task(root: str) -> None:
    async def agent(messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(0 if messages[-1]["content"] == "quick" else 60)
        return "done"

    talk = SubAgentSession(agent, root=root)

    async def main() -> None:
        assert (await talk.send("quick"))["text"] == "done"
        task = asyncio.create_task(talk.send("slow"))
        while "ended_at" in Sessions(root).store.read(talk.agent_id)["runs"][-1]:  # noqa: ASYNC110  # another process sets no event
            await asyncio.sleep(0.01)
        with pytest.raises(AgentAtWork):
            await talk.send("quick")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await talk.send("quick"))["turn"] == 2

    asyncio.run(main())
    assert [one["content"] for one in talk.transcript] == ["quick", "done", "quick", "done"]


def test_a_coroutine_returned_by_a_sync_agent_fails_the_send(root: str) -> None:
    async def later() -> str:
        return "never"

    talk = SubAgentSession(lambda _: later(), root=root)
    with pytest.raises(InvalidInput, match="returned an awaitable"):
        talk.send("x")
    assert kinds(talk)[-1][0] == "SubAgentFailed"


def test_a_send_whose_session_was_replaced_meanwhile_adds_nothing(root: str) -> None:
    def agent(_: object) -> str:
        sessions = Sessions(root)
        sessions.remove(["mine"], force=True)
        sessions.create(agent_id="mine")
        sessions.add_turn("mine", [user("other")])
        return "late"

    Sessions(root).create(agent_id="mine")
    with pytest.raises(RunGone):
        SubAgentSession(agent, agent_id="mine", root=root).send("one")
    assert SubAgentSession(agent, agent_id="mine", root=root).transcript == [user("other")]


PROGRAM = """
import os, sys, time
from gaia_sessions import SubAgentSession

def agent(messages):
    if messages[-1]["content"] == "die":
        print("at work", flush=True)
        time.sleep(60)
    return f"{len(messages)} before"

root, agent_id, *said = sys.argv[1:]
talk = SubAgentSession(agent, agent_id=agent_id, root=root)
for text in said:
    print(talk.send(text, wait=60)["text"], flush=True)
"""


def program(talk: SubAgentSession[Any], *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, talk.root, talk.agent_id, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_five_processes_add_five_turns_despite_a_killed_send(
    talk: SubAgentSession[Agent],
) -> None:
    for number in range(5):
        if number == 3:
            killed = program(talk, "die")
            assert killed.stdout is not None
            assert killed.stdout.readline() == b"at work\n"
            with pytest.raises(AgentAtWork):
                talk.send("too early")
            killed.send_signal(signal.SIGKILL)
            killed.communicate()
            assert Sessions(talk.root).report(talk.agent_id)["status"] == "error"
        done = program(talk, f"turn {number}")
        assert done.communicate() == (f"{2 + 2 * number} before\n".encode(), b"")

    said_all = [[user(f"turn {number}"), said(f"{2 + 2 * number} before")] for number in range(5)]
    assert talk.transcript == [PROMPT, *(message for turn in said_all for message in turn)]
    record = Sessions(talk.root).store.read(talk.agent_id)
    assert (record["turns"], record["error_count"], record["phase"]) == (5, 0, "investigating")
    failed = [one for one in kinds(talk) if one[0] == "SubAgentFailed"]
    assert failed == [("SubAgentFailed", "its sender crashed or was closed while the agent was at work")]


def test_two_processes_add_their_turns_one_after_the_other(talk: SubAgentSession[Agent]) -> None:
    both = [program(talk, *(f"{name}{number}" for number in range(10))) for name in "ab"]
    assert [one.communicate()[1] for one in both] == [b"", b""]
    spoken = talk.transcript[1:]
    assert [one["content"] for one in spoken[1::2]] == [f"{2 + 2 * number} before" for number in range(20)]
    for name in "ab":
        mine = [one["content"] for one in spoken[::2] if one["content"].startswith(name)]
        assert mine == [f"{name}{number}" for number in range(10)]
    assert talk.turns == 20


@pytest.mark.parametrize(("answer", "word"), [("approve", "approved"), ("deny", "denied")])
def test_the_agent_gets_the_approval_or_denial_of_the_user_once(
    talk: SubAgentSession[Agent], agent: Agent, answer: str, word: str
) -> None:
    sessions = Sessions(talk.root)
    sessions.update(talk.agent_id, phase="approval")
    getattr(sessions, answer)(talk.agent_id, "only the copy")
    talk.send("go on")
    told = {"role": "system", "content": f"Your request was {word}: only the copy"}
    assert agent.given == [[PROMPT, told, user("go on")]]
    assert talk.transcript == [PROMPT, told, user("go on"), said("answer 1")]
    talk.send("and now?")
    assert agent.given[1].count(told) == 1


def test_an_answer_that_is_the_whole_conversation_is_not_stored_twice(root: str) -> None:
    def agent(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        messages.append(said(f"{len(messages)} before"))
        return messages

    talk = SubAgentSession(agent, "Be brief.", root=root)
    assert [talk.send("one")["text"], talk.send("two")["text"]] == ["2 before", "4 before"]
    assert talk.transcript == [PROMPT, user("one"), said("2 before"), user("two"), said("4 before")]


def test_add_turn_and_reset_are_refused_during_a_send(root: str) -> None:
    refused: list[type[BaseException]] = []

    def agent(_: object) -> str:
        for act in (lambda: sessions.add_turn("talk", [user("between")]), lambda: sessions.reset("talk")):
            try:
                act()
            except AgentAtWork as error:
                refused.append(type(error))
        return "done"

    sessions = Sessions(root)
    sessions.create(agent_id="talk")
    talk = SubAgentSession(agent, agent_id="talk", root=root)
    talk.send("one")
    assert (refused, talk.transcript) == ([AgentAtWork] * 2, [user("one"), said("done")])


def test_a_send_that_was_recorded_as_lost_adds_nothing(root: str) -> None:
    """Its turn could come after a later turn."""

    def agent(_: object) -> str:
        path = Path(root, "talk", "state.json")
        record = json.loads(path.read_bytes())
        ended = {"end": "lost", "ended_at": record["last_updated"]}
        path.write_text(json.dumps({**record, "runs": [{**record["runs"][0], **ended}]}))
        return "late"

    Sessions(root).create(agent_id="talk")
    talk = SubAgentSession(agent, agent_id="talk", root=root)
    with pytest.raises(RunGone):
        talk.send("one")
    assert (talk.turns, talk.transcript) == (0, [])


def test_a_send_that_has_no_room_in_the_record_leaves_no_lock(talk: SubAgentSession[Agent]) -> None:
    path = Path(talk.root, talk.agent_id, "state.json")
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps({**record, "metadata": {"large": "x" * ((1 << 20) - path.stat().st_size - 100)}}))
    with pytest.raises(TooLarge):
        talk.send("one")
    path.write_text(json.dumps(record))
    assert SubAgentSession(Agent(), agent_id=talk.agent_id, root=talk.root).send("two")["turn"] == 1


def test_a_message_over_the_limit_is_shortened(talk: SubAgentSession[Agent], agent: Agent) -> None:
    talk.send("BEGIN" + "x" * (2 << 20) + "END")
    content = agent.given[0][-1]["content"]
    assert (content[:5], content[-3:], len(content) < 1 << 20) == ("BEGIN", "END", True)
    assert talk.transcript[1]["content"] == content


NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]


@pytest.mark.skipif(
    subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode != 0, reason="unshare"
)
def test_a_sender_in_another_pid_namespace_is_recognized_by_its_lock(talk: SubAgentSession[Agent]) -> None:
    words = [*NAMESPACE, sys.executable, "-c", PROGRAM, talk.root, talk.agent_id, "die"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == b"at work\n"
        with pytest.raises(AgentAtWork):
            talk.send("too early")
        sender.kill()
        sender.wait()
    until = time.monotonic() + 60
    while Sessions(talk.root).report(talk.agent_id)["status"] == "running" and time.monotonic() < until:
        time.sleep(0.05)
    assert talk.send("two")["turn"] == 1
    assert talk.transcript == [PROMPT, user("two"), said("answer 1")]


@pytest.mark.parametrize("ends", ["with an error", "with an answer"])
def test_a_forked_child_of_the_agent_neither_ends_nor_answers_the_send(root: str, ends: str) -> None:
    def agent(_: object) -> str:
        child = os.fork()
        if not child and ends == "with an error":
            raise ZeroDivisionError
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        return "parent" if child else "child"

    talk = SubAgentSession(agent, root=root)
    before = os.getpid()
    try:
        answered = talk.send("one")
    except (ZeroDivisionError, StoreFailure):
        os._exit(7 if os.getpid() != before else 1)
    assert (answered["text"], talk.turns, kinds(talk)[-1]) == ("parent", 1, ("SubAgentCompleted",))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), DurabilityUnknown("/root/talk", "EIO")])
def test_an_interrupt_at_the_start_of_a_send_leaves_no_open_run(
    talk: SubAgentSession[Agent], agent: Agent, monkeypatch: pytest.MonkeyPatch, interrupt: BaseException
) -> None:
    """The interrupt comes between the write of the claim and its return."""
    begin = own_runs.begin

    def interrupted(*arguments: Any) -> object:
        begin(*arguments)
        raise interrupt

    with monkeypatch.context() as patched:
        patched.setattr(own_runs, "begin", interrupted)
        with pytest.raises(KeyboardInterrupt if isinstance(interrupt, KeyboardInterrupt) else StoreFailure):
            talk.send("one")
    record = Sessions(talk.root).store.read(talk.agent_id)
    run = record["runs"][-1]
    assert (run["end"], run["interruption"], record["error_count"]) == ("killed", "stopped_by_user", 0)
    assert (talk.send("two")["turn"], len(agent.given)) == (1, 1)


def test_a_thread_that_reads_during_sends_does_not_change_the_messages(root: str) -> None:
    given: list[int] = []

    def agent(messages: list[dict[str, str]]) -> str:
        given.append(len(messages))
        return "ok"

    talk = SubAgentSession(agent, root=root)
    is_over = threading.Event()
    lengths: list[int] = []

    def read() -> None:
        while not is_over.is_set():
            lengths.append(len(talk.transcript))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(30):
        talk.send("x")
    is_over.set()
    reader.join()
    assert (given, lengths) == ([*range(1, 61, 2)], sorted(lengths))


def test_the_agent_gets_turns_and_resets_that_others_made_meanwhile(talk: SubAgentSession[Agent], agent: Agent) -> None:
    talk.send("one")
    Sessions(talk.root).add_turn(talk.agent_id, [user("by hand"), said("yes")])
    talk.send("two")
    other = SubAgentSession(agent, agent_id=talk.agent_id, root=talk.root)
    other.reset()
    talk.send("three")
    assert agent.given[1] == [PROMPT, user("one"), said("answer 1"), user("by hand"), said("yes"), user("two")]
    assert agent.given[2] == [PROMPT, user("three")]


def test_each_root_has_its_own_sessions(tmp_path: Path, agent: Agent) -> None:
    first, second = (SubAgentSession(agent, root=str(tmp_path / name)) for name in ("a", "b"))
    assert (first.root, second.root) == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert repr(first) == f"SubAgentSession({agent!r}, agent_id={first.agent_id!r}, root={first.root!r})"
