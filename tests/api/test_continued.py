"""A session that continues an ended session: its context and messages include the earlier turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions, SubAgentSession
from gaia_sessions.api import at, records
from gaia_sessions.errors import Cancelled, NotRemovable, RunNotAllowed, SessionNotFound
from gaia_sessions.session.context import context_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

PROMPT = {"role": "system", "content": "Be brief."}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.fixture
def sessions(root: str) -> Sessions:
    """The session ``first`` has two turns and has ended."""
    sessions = Sessions(root)
    sessions.create("tester", "try it", agent_id="first", system_prompt="Be brief.")
    sessions.add_turn("first", [user("one"), said("1")])
    sessions.add_turn("first", [user("two"), said("2")])
    sessions.finalize("first", "completed")
    return sessions


def told(sessions: Sessions, agent_id: str, **options: Any) -> Sequence[str]:
    return context_lines(sessions.context(agent_id, **options))


OF_FIRST = [
    "Turn 1 of first:",
    "  user: one",
    "  assistant: 1",
    "Turn 2 of first:",
    "  user: two",
    "  assistant: 2",
]
SYSTEM = ["System prompt:", "  Be brief."]


def test_a_continuing_session_inherits_name_purpose_and_prompt_unless_given(sessions: Sessions) -> None:
    sessions.create(agent_id="second", continues="first")
    sessions.create("other", "else", agent_id="third", continues="first", system_prompt="Be long.")
    second, third = sessions.store.read("second"), sessions.store.read("third")
    assert [second[key] for key in ("agent_name", "purpose", "continues", "phase")] == [
        "tester",
        "try it",
        "first",
        "initializing",
    ]
    assert (third["agent_name"], third["purpose"]) == ("other", "else")
    assert told(sessions, "second") == [*SYSTEM, *OF_FIRST]
    assert told(sessions, "third")[:2] == ["System prompt:", "  Be long."]


def test_the_context_begins_with_the_turns_of_the_continued_sessions_in_order(sessions: Sessions) -> None:
    sessions.create(agent_id="second", continues="first")
    sessions.add_turn("second", [user("three"), said("3")])
    sessions.finalize("second", "failed")
    sessions.create(agent_id="third", continues="second")
    sessions.add_turn("third", [user("four"), said("4")])

    of_second = ["Turn 1 of second:", "  user: three", "  assistant: 3"]
    own = ["Turn 1:", "  user: four", "  assistant: 4"]
    assert told(sessions, "third") == [*SYSTEM, *OF_FIRST, *of_second, *own]
    earlier = ["Earlier turns:", "  turn 1 of first: one -> 1", "  turn 2 of first: two -> 2"]
    assert told(sessions, "third", turns=2) == [*SYSTEM, *earlier, *of_second, *own]
    found = sessions.context("third", turns=1)
    ids = [(one.get("session"), one["turn_id"]) for one in (*found["earlier"], *found["turns"])]
    assert ids == [("first", "0.1"), ("first", "0.2"), ("second", "0.1"), (None, "0.1")]


def test_the_context_of_a_continuing_session_respects_max_tokens(sessions: Sessions) -> None:
    sessions.create(agent_id="second", continues="first")
    for number in range(5):
        sessions.add_turn("second", [user(f"{number} " * 40), said("word " * 30)])
    for tokens in (50, 60, 80, 100, 150):
        lines = told(sessions, "second", max_tokens=tokens)
        assert sum(len(line.encode()) + 1 for line in lines[len(SYSTEM) :]) <= 4 * tokens, tokens


def test_the_agent_gets_all_messages_of_the_continued_session(sessions: Sessions) -> None:
    given: list[Any] = []

    def agent(messages: list[dict[str, str]]) -> str:
        given.append(messages)
        return "3"

    sessions.create(agent_id="second", continues="first")
    talk = SubAgentSession(agent, agent_id="second", root=sessions.root)
    talk.send("three")
    earlier = [PROMPT, user("one"), said("1"), user("two"), said("2")]
    assert given == [[*earlier, user("three")]]
    assert talk.transcript == [*earlier, user("three"), said("3")]
    assert talk.turns == 1


def test_the_context_says_that_the_continued_session_is_gone(sessions: Sessions) -> None:
    sessions.create(agent_id="second", continues="first")
    sessions.add_turn("second", [user("three"), said("3")])
    sessions.remove(["first"], force=True)
    notice = "(the session continues first, which cannot be read; what was said there is unknown)"
    own = ["Turn 1:", "  user: three", "  assistant: 3"]
    assert told(sessions, "second") == [notice, *SYSTEM, *own]


def test_sessions_that_continue_each_other_cause_no_endless_loop(sessions: Sessions) -> None:
    sessions.create(agent_id="second", continues="first")
    path = Path(sessions.root, "first", "state.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "continues": "second"}))
    sessions.add_turn("second", [user("three"), said("3")])
    assert told(sessions, "second")[2:8] == OF_FIRST
    talk = SubAgentSession(lambda _: "", agent_id="second", root=sessions.root)
    assert [one["content"] for one in talk.transcript].count("one") == 1


def test_only_a_session_that_has_ended_and_is_not_cancelled_can_be_continued(sessions: Sessions) -> None:
    sessions.create(agent_id="open")
    with pytest.raises(RunNotAllowed) as refused:
        sessions.create(continues="open")
    assert refused.value.problem == "it has not ended"
    sessions.add_turn("open", [user("x")])
    with pytest.raises(RunNotAllowed) as refused:
        sessions.create(continues="open")
    assert refused.value.hint == "to resume it instead, type gaia-sessions send open TEXT -- COMMAND"
    sessions.cancel("open")
    with pytest.raises(Cancelled):
        sessions.create(continues="open")
    with pytest.raises(SessionNotFound):
        sessions.create(continues="nobody")
    assert sorted(at.read(sessions, records.ids)) == ["first", "open"]


def test_the_next_agent_gets_the_messages_of_an_earlier_run_of_a_client(root: str, talks: Path) -> None:
    sessions = Sessions(root)
    lines = [
        {
            "agentId": "a",
            "type": "user",
            "timestamp": "2026-01-08T18:05:30Z",
            "message": {"role": "user", "content": "Count the files"},
        },
        {
            "agentId": "a",
            "type": "assistant",
            "timestamp": "2026-01-08T18:05:40Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "There are 42."}]},
        },
    ]
    transcript = talks / "agent.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    sessions.create(agent_id="begun")
    path = Path(root, "begun", "state.json")
    record = json.loads(path.read_bytes())
    run = {"run": 1, "host": "claude-code", "host_agent_id": "a", "started_at": "2026-01-08T18:05:30Z"}
    ended = {"ended_at": "2026-01-08T18:05:41Z", "end": "stopped", "last_message": "There are 42."}
    record |= {
        "phase": "planning",
        "resume_ready": True,
        "runs": [{**run, **ended, "transcript_path": str(transcript)}],
    }
    path.write_text(json.dumps(record))
    given: list[Any] = []

    def agent(messages: list[dict[str, str]]) -> str:
        given.append(messages)
        return "ok"

    talk = SubAgentSession(agent, agent_id="begun", root=root)
    talk.send("And folders?")
    talk.send("Sure?")
    told_before = {"role": "system", "content": "Run 1:\n  user: Count the files\n  assistant: There are 42."}
    assert given == [
        [told_before, user("And folders?")],
        [told_before, user("And folders?"), said("ok"), user("Sure?")],
    ]
    assert [run["run"] for run in sessions.store.read("begun")["runs"]] == [1, 2, 3]


def test_a_chain_keeps_its_order_and_sessions_that_an_open_one_continues_stay(
    sessions: Sessions,
) -> None:
    sessions.create(agent_id="second", continues="first")
    sessions.add_turn("second", [user("three"), said("3")])
    sessions.finalize("second", "completed")
    sessions.create(agent_id="third", continues="second")
    talk = SubAgentSession(lambda _: "", agent_id="third", root=sessions.root)
    assert [one["content"] for one in talk.transcript] == ["Be brief.", "one", "1", "two", "2", "three", "3"]

    report = sessions.cleanup(hours=0)
    kept = {one["agent_id"]: one["reason"] for one in report["kept"]}
    assert ({one: kept[one] for one in ("first", "second")}, "third" in report["removed"]) == (
        {"first": "continued", "second": "continued"},
        True,
    )
    sessions.create(agent_id="third", continues="second")
    with pytest.raises(NotRemovable) as refused:
        sessions.remove(["first"])
    assert str(refused.value) == "session 'first' is continued by an open session"
    sessions.finalize("third", "completed")
    assert [one["agent_id"] for one in sessions.remove(["first"])] == ["first"]
