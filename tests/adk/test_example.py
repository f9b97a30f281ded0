"""The Google ADK example: a root agent and two sub-agents that share the state of a stored session."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from scripts.adk_example import __main__ as program
from scripts.adk_example import agent, chat
from scripts.adk_example.knowledge import Knowledge
from tests.adk.parts import PORT, on_both, post, run, served
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CHECKOUT = Path(__file__).parents[2]
OF_A_TASK = {"intent", "domain_id", "url", "url_type"}
KNOWN = {"user_id": "user-1", "user_name": "Ada", "name_attempts": 1}
BEGIN = ("bob", "ada")
CREATE = (*BEGIN, "create a domain", "infra: terraform state locking", "approve")
CAN = "Say create a domain, update domain N, or send a link."
LINK = "https://example.com/notes-on-terraform-state"


def move_to(folder: Path, patch: pytest.MonkeyPatch, root: str | None = None) -> None:
    """Makes the example store everything in ``folder``, or its sessions at ``root``."""
    patch.setattr(chat, "ROOT", root or str(folder / "gaia-sessions"))
    patch.setattr(agent, "knowledge", Knowledge(folder / "knowledge.json"))
    patch.setattr(program, "SESSION_FILE", folder / program.SESSION_FILE.name)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all files of the example."""
    move_to(tmp_path, monkeypatch, root)
    return tmp_path


class Talk:
    """A client of the chat: each message goes to a new ``Chat`` without memory."""

    def __init__(self, session_id: str | None = None) -> None:
        self.session_id = session_id
        self.texts: list[str] = []

    def say(self, *texts: str) -> str:
        for text in texts:
            answer = run(chat.Chat().send(text, self.session_id))
            assert self.session_id in (None, answer["session_id"])
            self.session_id = answer["session_id"]
            self.texts.append(answer["text"])
        return self.texts[-1]

    def session(self) -> Any:
        service, session_id = chat.Chat().service, str(self.session_id)
        return run(service.get_session(app_name=chat.APP, user_id=chat.VISITOR, session_id=session_id))

    def state(self) -> dict[str, Any]:
        return dict(self.session().state)

    def payloads(self, name: str) -> list[dict[str, Any]]:
        """The arguments of the calls of the agent ``name``."""
        events = [event for event in self.session().events if event.author == name]
        return [dict(call.args) for event in events for call in event.get_function_calls()]


@pytest.fixture
def talk() -> Talk:
    return Talk()


@cache
def conversation(folder: Path) -> str:
    """Creates a domain in ``folder`` once; the ID of the session."""
    with pytest.MonkeyPatch.context() as patch:
        move_to(folder, patch)
        talk = Talk()
        talk.say(*CREATE)
        return str(talk.session_id)


@pytest.fixture
def created(
    tmp_path: Path, root: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Talk]:
    """Moves to a new copy of a conversation that has created a domain."""
    original, numbers = tmp_path_factory.getbasetemp() / "created", count()

    def copy() -> Talk:
        if "://" in root:  # a database cannot be copied
            talk = Talk()
            talk.say(*CREATE)
            return talk
        session_id, folder = conversation(original), tmp_path / str(next(numbers))
        shutil.copytree(original, folder)
        move_to(folder, monkeypatch)
        return Talk(session_id)

    return copy


@on_both
def test_the_root_agent_delegates_by_state_keys_that_are_cleared_after_the_task(talk: Talk) -> None:
    assert talk.say(*CREATE[:3]) == "Describe the domain as `name: what it is about`, or cancel."
    assert talk.state() == {**KNOWN, "intent": "create_domain"}
    assert (
        talk.say(CREATE[3])
        == "Infra: Terraform state locking (locking, state, terraform). Approve, correct it, or cancel."
    )
    assert talk.say(CREATE[4]) == f"Saved as domain 1. Your domains: 1 Infra. {CAN}"
    done = {"intent": "create_domain", "domain_id": 1, "status": "done"}
    assert talk.state() == {**KNOWN, "intent_result": done}
    assert talk.say("update domain 1").startswith("Now it is Infra: Terraform state locking")
    assert talk.state() == {**KNOWN, "intent_result": done, "intent": "update_domain", "domain_id": 1}
    talk.say("infra: terraform", "infra: terraform modules", "approve")
    assert talk.state() == {**KNOWN, "intent_result": {**done, "intent": "update_domain"}}
    assert [domain["description"] for domain in agent.knowledge.domains("user-1")] == ["Terraform modules"]


def test_no_payload_between_agents_repeats_keys_of_the_session_state(created: Callable[[], Talk]) -> None:
    talk = created()
    talk.say(LINK, "1", "update domain 1", "cancel")
    delegations = [one for one in talk.payloads(agent.ROOT) if "agent_name" in one]
    assert delegations == [{"agent_name": name} for name in (agent.DOMAINS, agent.DOCUMENTS, agent.DOMAINS)]
    of_subagents = [*talk.payloads(agent.DOMAINS), *talk.payloads(agent.DOCUMENTS)]
    assert of_subagents
    assert [one for one in of_subagents if {*one} & {"user_id", "intent", "domain_id", "url", "pending_draft"}] == []


@table(
    "before",
    [
        ("create a domain",),
        ("create a domain", "infra: terraform"),
        ("create a domain", "infra: terraform", "infra: terraform modules"),
        ("update domain 1",),
        ("update domain 1", "infra: terraform"),
        (LINK,),
    ],
)
def test_a_cancel_at_any_point_clears_only_the_keys_of_the_task(
    created: Callable[[], Talk], before: Sequence[str]
) -> None:
    talk = created()
    kept = talk.state()
    talk.say(*before)
    assert OF_A_TASK & {*talk.state()}
    assert "cancel" in talk.say("cancel")
    assert talk.state() == kept
    assert talk.say("what do I have") == f"Your domains: 1 Infra. {CAN}"


def test_a_domain_that_cannot_be_saved_is_an_error_and_its_keys_are_cleared(talk: Talk) -> None:
    assert talk.say(*BEGIN, "create", "broken: things", "approve").startswith("That failed: the storage of domains")
    reason = "the storage of domains does not answer"
    result = {"intent": "create_domain", "domain_id": None, "status": "error", "reason": reason}
    assert talk.state() == {**KNOWN, "intent_result": result}


@table(
    ("url", "url_type", "answer", "status", "saved"),
    [
        (f"{LINK}.pdf", "pdf", "1, 2", "saved", 2),
        ("https://youtu.be/terraform-state", "youtube", "2", "saved", 1),
        (LINK, "page", "none", "refused", 0),
        ("https://example.com/cats", "page", None, "irrelevant", 0),
        ("https://example.com/broken.pdf", "pdf", None, "error", 0),
    ],
)
def test_a_link_is_in_the_session_state_until_it_is_processed(
    created: Callable[[], Talk], url: str, url_type: str, answer: str | None, status: str, saved: int
) -> None:
    talk = created()
    talk.say(url)
    if answer is not None:
        assert {key: talk.state()[key] for key in ("url", "url_type")} == {"url": url, "url_type": url_type}
        talk.say(answer)
    assert not OF_A_TASK & {*talk.state()}
    assert talk.state()["url_result"] == {"url": url, "url_type": url_type, "status": status}
    facts = agent.knowledge.facts()
    assert [(fact["user_id"], fact["domain_id"], fact["source_url"]) for fact in facts] == [("user-1", 1, url)] * saved


def test_a_failed_tool_is_reported_gets_a_response_and_clears_its_task(
    created: Callable[[], Talk], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such table")

    talk = created()
    talk.say(LINK)
    monkeypatch.setattr(agent.knowledge, "save_facts", fail)
    assert "save_facts failed: no such table" in talk.say("1")
    assert not OF_A_TASK & {*talk.state()}
    responses = [found for event in talk.session().events for found in event.get_function_responses()]
    calls = [found.id for event in talk.session().events for found in event.get_function_calls()]
    assert [found.id for found in responses] == calls
    assert {"status": "error", "reason": "save_facts failed: no such table"} in [found.response for found in responses]
    assert talk.say("what do I have") == f"Your domains: 1 Infra. {CAN}"


@table(("said", "answered"), [("what do I have", 0), ("create a domain", 0), ("create a domain", 1)])
def test_a_storage_error_is_reported_and_the_session_stays_usable(
    folder: Path, monkeypatch: pytest.MonkeyPatch, said: str, answered: int
) -> None:
    """The storage fails in a tool of the root agent, or after ``answered`` answers in a tool of a sub-agent."""
    calls: list[str] = []

    def domains(user_id: str) -> list[dict[str, Any]]:
        calls.append(user_id)
        if len(calls) > answered:
            raise RuntimeError("no answer")
        return []

    move_to(folder / f"{said} {answered}", monkeypatch)
    talk = Talk()
    talk.say(*BEGIN)
    with monkeypatch.context() as failing:
        failing.setattr(agent.knowledge, "domains", domains)
        assert "no answer" in talk.say(said)
    assert talk.state() == KNOWN
    assert talk.say("what do I have").startswith("Your domains: none yet.")


def test_after_an_invalid_answer_the_question_is_asked_again(created: Callable[[], Talk]) -> None:
    talk = created()
    talk.say(LINK)
    for answer in ("7", "hello", "0"):
        assert talk.say(answer).startswith("I did not understand.")
    assert talk.state()["url"] == LINK
    assert talk.say("2").startswith("Done with the link: facts saved: 1.")


@on_both
def test_a_message_to_a_cancelled_session_begins_a_new_session(talk: Talk) -> None:
    talk.say("ada")
    first = str(talk.session_id)
    Sessions(chat.ROOT).cancel(first)
    run(chat.Chat().leave(first))
    answer = run(chat.Chat().send("ada", first))
    assert answer["session_id"] != first


@on_both
@table("end", ["cancel", "leave", "remove"])
def test_a_session_that_ends_during_its_answer_is_an_unknown_session(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    talk = Talk()
    talk.say("ada")
    session_id, check = str(talk.session_id), agent.knowledge.domains

    def domains(user_id: str) -> list[dict[str, Any]]:
        sessions = Sessions(chat.ROOT)
        if end == "remove":
            sessions.remove([session_id], force=True)
        elif end == "cancel":
            sessions.cancel(session_id)
        else:
            sessions.finalize(session_id, "completed")
        return check(user_id)

    with monkeypatch.context() as ending:
        ending.setattr(agent.knowledge, "domains", domains)
        with pytest.raises(chat.UnknownSession):
            run(chat.Chat().send("what do I have", session_id))


@on_both
def test_one_message_of_a_session_is_answered_at_a_time(talk: Talk) -> None:
    talk.say("ada")
    same, another = chat.Chat(), chat.Chat()

    async def send_two(second: chat.Chat) -> list[object]:
        sent = (one.send("what do I have", talk.session_id) for one in (same, second))
        return await asyncio.gather(*sent, return_exceptions=True)

    for second in (same, another):
        answers = run(send_two(second))
        assert sorted(isinstance(one, chat.BeingAnswered) for one in answers) == [False, True]
    assert talk.say("what do I have").startswith("Your domains: none yet.")


@pytest.mark.parametrize(
    ("root", "fatals"),
    [("files", [4]), ("server", [4]), pytest.param("files", range(1, 12), marks=pytest.mark.slow)],
    indirect=["root"],
)
@table("said", [CREATE[2:], (LINK, "1")])
def test_a_conversation_stays_usable_after_a_crash_at_any_event(
    created: Callable[[], Talk], fatals: Iterable[int], said: Sequence[str]
) -> None:
    """After the crash, the user sends the same text again."""
    for fatal in fatals:
        crashed = created()
        for text in said:
            run(crashing(str(crashed.session_id), text, fatal))
            crashed.say(text)
        crashed.say("cancel", "what do I have")
        assert not OF_A_TASK & {*crashed.state()}


async def crashing(session_id: str, text: str, fatal: int) -> None:
    """Sends ``text`` in a process that is killed before it stores the event with this number."""
    sender, number = chat.Chat(), iter(range(1, 100))
    append = sender.service.append_event

    async def append_or_die(session: Any, event: Any) -> Any:
        if next(number) == fatal:
            raise KeyboardInterrupt
        return await append(session, event)

    sender.service.append_event = append_or_die  # type: ignore[method-assign]  # as if the process were killed there
    with suppress(KeyboardInterrupt):
        await sender.send(text, session_id)


@on_both
def test_after_three_unknown_names_every_name_is_refused(talk: Talk) -> None:
    for number, name in enumerate(("bob", "eve", "mallory"), 1):
        talk.say(name)
        assert talk.state() == {"name_attempts": number}
    assert talk.texts == [
        *["I do not know this name. Please tell me another."] * 2,
        "Those were too many names. Please leave, and come again.",
    ]
    assert talk.say("ada") == talk.texts[2]
    assert talk.state() == {"name_attempts": 3}


def test_an_update_of_an_unknown_domain_is_not_delegated(talk: Talk) -> None:
    assert talk.say(*BEGIN, "update domain 9") == "That cannot be: you have no domain 9."
    assert talk.state() == KNOWN


def test_an_undeclared_state_key_is_refused(talk: Talk) -> None:
    talk.say("ada")
    session = talk.session()
    with pytest.raises(ValueError, match="pending_draft"):
        run(_append(session, {"pending_draft": "infra"}))
    assert "pending_draft" not in talk.state()


async def _append(session: Any, delta: dict[str, Any]) -> None:
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions

    await chat.Chat().service.append_event(session, Event(author="x", actions=EventActions(state_delta=delta)))


@on_both
@pytest.mark.slow
def test_the_web_server_accepts_only_session_ids_that_it_gave(tmp_path: Path) -> None:
    environment = {**os.environ, "ADK_EXAMPLE": str(tmp_path), "ADK_EXAMPLE_ROOT": chat.ROOT}
    words = ["scripts.adk_example", "serve", "--port", PORT]
    with served(words, "/openapi.json", environment) as address:
        first = post(f"{address}/chat/message", {"message": "ada"})
    session_id = first["session_id"]
    with served(words, "/openapi.json", environment) as address:  # after the first server was killed
        second = post(f"{address}/chat/message", {"message": "what do I have", "session_id": session_id})
        assert second == {
            "session_id": session_id,
            "text": f"Your domains: none yet. {CAN}",
            "trace_id": first["trace_id"],
        }
        for path in ("message", "leave"):
            made_up = post(f"{address}/chat/{path}", {"message": "hello", "session_id": "made-up"})
            assert (made_up["status"], "leave out session_id" in made_up["error"]) == (404, True)
        assert post(f"{address}/chat/leave", {"session_id": session_id})["status"] == "left"
        third = post(f"{address}/chat/message", {"message": "ada", "session_id": session_id})
    sessions = Sessions(chat.ROOT)
    listed = {str(line["agent_id"]): line for line in sessions.list(app=chat.APP)}
    assert {key: line.get("phase") for key, line in listed.items()} == {
        session_id: "completed",
        third["session_id"]: "investigating",
    }
    assert listed[session_id].get("trace_id") == first["trace_id"] != third["trace_id"]


def call_here(words: list[str], said: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["chat", *words])
        patch.setattr(sys, "stdin", io.StringIO(said))
        patch.setattr(logging.getLogger("google_adk"), "level", logging.NOTSET)
        return program.main()


def call_process(words: list[str], said: str) -> int:
    """Runs the program in another process and copies its output."""
    command = [sys.executable, "-m", "scripts.adk_example", *words]
    environment = {**os.environ, "ADK_EXAMPLE": str(program.SESSION_FILE.parent), "ADK_EXAMPLE_ROOT": chat.ROOT}
    ended = subprocess.run(
        command, input=said, capture_output=True, text=True, check=True, cwd=CHECKOUT, env=environment
    )
    sys.stdout.write(ended.stdout)
    sys.stderr.write(ended.stderr)
    return ended.returncode


@on_both
@pytest.mark.parametrize("start", [call_here, pytest.param(call_process, marks=pytest.mark.slow)])
def test_the_command_line_stores_its_session_id_between_calls(
    capsys: pytest.CaptureFixture[str], start: Callable[[list[str], str], int]
) -> None:
    def call(*words: str, said: str = "") -> tuple[str, str]:
        assert start(["chat", *words], said) == 0
        return capsys.readouterr()

    first, session = call(said="ada\ncreate a domain\n\ninfra: terraform\n")
    assert first.splitlines()[-1] == "Infra: Terraform (terraform). Approve, correct it, or cancel."
    assert call("approve")[0] == f"Saved as domain 1. Your domains: 1 Infra. {CAN}\n"
    assert call("--leave")[0] == "You left.\n"
    again, another_session = call("hello")
    assert again == "I do not know this name. Please tell me another.\n"
    assert session != another_session
    assert session.startswith("[session agent-")
