"""An agent ends its turn to wait for its own command: how later events change its run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import NotApproved, NothingToAnswer
from gaia_sessions.session.clock import format_time, parse_time, timedelta
from gaia_sessions.session.host_events import MOST_TASKS
from tests import commands
from tests.hook.conftest import ASKS, gaia, own_host
from tests.ingest.test_asking import asking
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hook.conftest import Host

__all__ = ["gaia"]  # a fixture, which pytest finds by its name here

BUILD = {"id": "b1", "type": "shell", "status": "running", "command": "make"}
HERSELF = {"id": "a1", "type": "subagent", "status": "running"}
SAID = "The build runs; I wait for it."
WAITING_PROMPT = 'Agent "Job" is waiting on its own background work'


def began(host: Host, *, readable: bool = True, **changes: Any) -> str:
    """A background agent that has started a command; ``readable``: its transcript shows the start."""
    agent_id = host.work()
    host.hear(host.launching())
    if readable:
        content = [{"type": "tool_result", "content": "Command running in background with ID: b1. Output is ..."}]
        lines = [
            {"parentUuid": None, "agentId": "a1", "type": "user", "message": {"content": "Do it."}},
            {"parentUuid": "u", "agentId": "a1", "type": "user", "message": {"content": content}},
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (host.agents / "agent-a1.jsonl").write_text(text, encoding="utf-8")
    if changes:
        host.edit(agent_id, **changes)
    return agent_id


def pausing(message: str = SAID, **changes: Any) -> dict[str, Any]:
    return {"message": message, "background_tasks": [HERSELF, BUILD], **changes}


def turn_ends(host: Host, *tasks: Any) -> None:
    """A turn of the main agent ends while ``tasks`` run."""
    host.hear(host.event_payload("Stop", stop_hook_active=False, background_tasks=[*tasks]))


def stands(host: Host) -> Any:
    """The state and the phase of the only session, the end of its latest run, and its number of runs."""
    line: Any
    [line] = gaia_sessions.list_sessions(root=str(host.root))
    runs = host.record()["runs"]
    return line["state"], line["phase"], runs[-1].get("end"), len(runs)


AT_WORK = ("working", "investigating", None, 1)
DONE = ("completed", "completed", "stopped", 1)
INTERRUPTED = ("interrupted", "investigating", "killed", 1)


@table("readable", [True, False])
@own_host
def test_an_agent_that_waits_for_its_command_is_working_until_its_last_stop(host: Host, *, readable: bool) -> None:
    agent_id = began(host, readable=readable)
    host.hear(host.ending(**pausing()))
    [run] = host.record()["runs"]
    assert (stands(host), run["last_message"], run["own_work"]["tasks"]) == (AT_WORK, SAID, ["b1"])
    assert run["own_work"].get("assumed", False) is not readable
    host.hear(host.notifying(summary=WAITING_PROMPT))
    turn_ends(host, BUILD)
    assert stands(host) == AT_WORK
    assert "assumed" not in host.record()["runs"][0]["own_work"]

    host.hear(host.starting())
    assert (stands(host), "own_work" in host.record()["runs"][0]) == (AT_WORK, False)
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))

    assert stands(host) == DONE
    assert [entry["kind"] for entry in host.journal(agent_id)][-2:] == ["start", "stop"]


def test_the_state_names_the_awaited_command_and_never_becomes_quiet(host: Host, gaia: Callable[..., str]) -> None:
    with host.client():
        agent_id = began(host)
        host.hear(host.ending(**pausing()))
        since = format_time(parse_time(host.record()["last_updated"]) - timedelta(days=1))
        [run] = host.record()["runs"]
        work = {**run["own_work"], "since": since}
        host.edit(agent_id, last_updated=since, runs=[{**run, "started_at": since, "own_work": work}])

        assert "working: waits for its own command" in gaia(host, "show", agent_id)
        assert "working: waits for its own command" in gaia(host, "list")
        [line] = json.loads(gaia(host, "list", "--json"))
        assert line["liveness"] == {"state": "working", "since": since, "awaits": "command"}
        [report] = gaia_sessions.Sessions(str(host.root)).wait([agent_id], timeout=0)
        assert report["status"] == "running"
        told = host.hear(host.event_payload("SessionStart", source="startup", session_id="another"))
        assert "(working, waits for its own command)" in told["additionalContext"]


@table(
    ("told", "state"),
    [
        ("finished", DONE),
        ("waiting", AT_WORK),
        ("failed", ("error", "investigating", "failed", 1)),
        ("killed", ("abandoned", "abandoned", "killed", 1)),
        ("clear", AT_WORK),
        ("exit", ("interrupted", "investigating", "ended_with_host", 1)),
        ("returned", DONE),
        ("died", ("error", "investigating", "failed", 1)),
        ("asks", AT_WORK),
        ("launched", AT_WORK),
    ],
)
@own_host
def test_an_event_during_the_wait_ends_it_or_leaves_the_agent_working(host: Host, told: str, state: Any) -> None:
    with host.client():
        began(host)
        host.hear(host.ending(**pausing()))
        host.hear(
            {
                "finished": host.notifying(summary='Agent "Job" finished'),
                "waiting": host.notifying(summary=WAITING_PROMPT),
                "failed": host.notifying("failed"),
                "killed": host.killing(),
                "clear": host.event_payload("SessionEnd", reason="clear"),
                "exit": host.event_payload("SessionEnd", reason="prompt_input_exit"),
                "returned": host.returning(),
                "died": host.dying(),
                "asks": asking(host),
                "launched": host.launching(),
            }[told]
        )
        assert stands(host) == state
        assert ("own_work" in host.record()["runs"][0]) is (state == AT_WORK)
        assert "waiting" not in host.record()["runs"][0]


@table(
    ("readable", "goes_on", "state"),
    [
        (True, [BUILD], AT_WORK),
        (False, [BUILD], AT_WORK),
        (True, [HERSELF], AT_WORK),
        (False, [HERSELF], AT_WORK),
        (True, [], INTERRUPTED),
        (False, [], DONE),
        (True, [{**BUILD, "id": "b2"}], INTERRUPTED),
    ],
)
@own_host
def test_the_tasks_listed_at_a_main_stop_decide_whether_the_agent_still_waits(
    host: Host, goes_on: Any, state: Any, *, readable: bool
) -> None:
    began(host, readable=readable)
    host.hear(host.ending(**pausing()))
    turn_ends(host, *goes_on)
    assert stands(host) == state


def test_an_agent_woken_after_it_seemed_interrupted_works_in_the_same_run(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing()))
    turn_ends(host)
    assert stands(host) == INTERRUPTED

    host.hear(host.starting())
    assert stands(host) == AT_WORK
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))
    assert stands(host) == DONE


def test_a_stop_with_own_work_after_a_blocked_stop_puts_the_agent_back_to_work(host: Host) -> None:
    began(host)
    host.hear(host.ending(message="Done.", background_tasks=[HERSELF]))
    assert stands(host) == DONE

    host.hear(host.ending(**pausing(), stop_hook_active=True))

    assert stands(host) == AT_WORK
    assert "finalized_at" not in host.record()
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))
    assert stands(host) == DONE


def test_a_late_waiting_notification_changes_nothing(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing()))
    host.hear(host.starting())
    host.hear(host.notifying(summary=WAITING_PROMPT))
    assert stands(host) == AT_WORK
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))
    record = host.record()

    host.hear(host.notifying(summary=WAITING_PROMPT))
    assert host.record() == record


def test_a_deferred_stop_with_own_work_does_not_end_the_run(host: Host) -> None:
    agent_id = began(host)
    with host.held(agent_id):
        host.hear(host.ending(**pausing()))
        turn_ends(host, BUILD)
    assert [event["kind"] for event in host.deferred()] == ["stop", "main_stop"]

    host.hear(host.starting())
    assert (stands(host), host.deferred(), host.record()["runs"][0].get("own_work")) == (AT_WORK, [], None)
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))
    assert stands(host) == DONE


@table("marker", ["approval", "planning"])
@own_host
def test_waking_an_agent_does_not_approve_its_question(host: Host, marker: str) -> None:
    began(host)
    host.hear(host.ending(**pausing(ASKS.replace("approval", marker))))
    assert stands(host) == ("working", marker, None, 1)
    host.hear(host.starting())
    assert stands(host) == ("working", marker, None, 1)

    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))

    if marker == "planning":
        assert stands(host) == DONE
    else:
        assert stands(host) == ("waiting", "approval", "stopped", 1)
        [asked] = gaia_sessions.Sessions(str(host.root)).pending()
        assert (asked["question"], asked["last_message"].splitlines()[0]) == ("shall I?", "It is built.")


def test_a_question_stays_pending_if_the_conversation_ends_before_the_agent_is_woken(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing(ASKS)))
    host.hear(host.event_payload("SessionEnd", reason="other"))

    [asked] = gaia_sessions.Sessions(str(host.root)).pending()
    assert (asked["question"], stands(host)[:2]) == ("shall I?", ("waiting", "approval"))


def test_a_failed_marker_ends_the_session_even_with_own_work_running(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing("It cannot be built.\n[gaia-sessions: failed] no compiler")))
    assert stands(host)[:2] == ("failed", "failed")


@table("finished", [True, False])
@own_host
def test_killing_the_client_during_the_wait_leaves_a_resumable_session(host: Host, *, finished: bool) -> None:
    root = str(host.root)
    with host.client() as client:
        agent_id = began(host)
        host.hear(host.ending(**pausing()))
        meta = {"agentType": "Explore", "toolUseId": "toolu_1", **({"finished": True} if finished else {})}
        (host.agents / "agent-a1.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        assert gaia_sessions.Sessions(root).reconcile()["verdicts"][0]["verdict"] == "running"
        client.kill()

    assert stands(host)[:2] == ("crashed", "investigating")
    assert gaia_sessions.should_resume(agent_id, root=root)
    [verdict] = gaia_sessions.Sessions(root).reconcile()["verdicts"]
    assert (verdict["verdict"], verdict["closed"]) == ("lost", True)
    assert (stands(host), host.record()["runs"][0].get("own_work")) == (("crashed", "investigating", "lost", 1), None)
    assert gaia_sessions.should_resume(agent_id, root=root)


def test_the_user_can_stop_an_agent_while_it_waits(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing()))
    meta = {"agentType": "Explore", "toolUseId": "toolu_1", "finished": True, "stoppedByUser": True}
    (host.agents / "agent-a1.meta.json").write_text(json.dumps(meta), encoding="utf-8")
    host.hear(host.event_payload("UserPromptSubmit", prompt="Go on."))
    assert stands(host) == AT_WORK, "the prompt tells that the user stopped it"

    host.hear(host.event_payload("UserPromptSubmit", prompt='Background agent "Job" was stopped by the user.'))

    assert stands(host) == INTERRUPTED
    assert host.record()["runs"][0]["interruption"] == "stopped_by_user"


@table("readable", [True, False])
@own_host
def test_waking_the_agent_takes_back_the_end_that_a_main_stop_concluded(host: Host, *, readable: bool) -> None:
    agent_id = began(host, readable=readable)
    host.hear(host.ending(**pausing()))
    turn_ends(host)
    assert stands(host) == (INTERRUPTED if readable else DONE)

    host.hear(host.starting())
    assert (stands(host), "own_work" in host.record()["runs"][0]) == (AT_WORK, False)
    assert "finalized_at" not in host.record()
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))

    assert (stands(host), host.record()["runs"][0]["last_message"]) == (DONE, "It is built.")
    assert list(host.records()) == [agent_id]


@table(("readable", "last"), [(True, "Done."), (False, "Done."), (True, ASKS), (False, ASKS)])
@own_host
def test_waking_an_agent_that_seemed_to_have_ended_does_not_approve_its_question(
    host: Host, last: str, *, readable: bool
) -> None:
    agent_id = began(host, readable=readable)
    host.hear(host.ending(**pausing(ASKS)))
    turn_ends(host)
    assert stands(host)[:2] == ("waiting", "approval")

    host.hear(host.starting())
    assert stands(host) == ("working", "approval", None, 1)
    host.hear(host.ending(message=last, background_tasks=[HERSELF]))

    assert stands(host) == ("waiting", "approval", "stopped", 1)
    [asked] = gaia_sessions.Sessions(str(host.root)).pending()
    assert (asked["question"], asked["last_message"].splitlines()[0]) == ("shall I?", last.splitlines()[0])
    assert "answers" not in host.record()
    assert "approval" not in [entry["kind"] for entry in host.journal(agent_id)]


@table("readable", [True, False])
@own_host
def test_a_last_stop_counts_although_the_agent_seemed_to_have_ended(host: Host, *, readable: bool) -> None:
    began(host, readable=readable)
    host.hear(host.ending(**pausing()))
    turn_ends(host)
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))

    [run] = host.record()["runs"]
    assert (stands(host), run["last_message"], "own_work" in run) == (DONE, "It is built.", False)


@table("readable", [True, False])
@own_host
def test_a_finished_notification_counts_although_the_agent_seemed_to_have_ended(host: Host, *, readable: bool) -> None:
    began(host, readable=readable)
    host.hear(host.ending(**pausing()))
    turn_ends(host)
    host.hear(host.notifying(summary='Agent "Job" finished'))

    assert (stands(host), "own_work" in host.record()["runs"][0]) == (DONE, False)


@table("told", ["turn", "finished"])
@own_host
def test_the_phase_of_the_marker_stays_if_the_agent_is_not_woken(host: Host, told: str) -> None:
    began(host, readable=False)
    host.hear(host.ending(**pausing(ASKS.replace("approval", "planning"))))
    if told == "turn":
        turn_ends(host)
    else:
        host.hear(host.notifying(summary='Agent "Job" finished'))

    assert stands(host) == ("paused", "planning", "stopped", 1)


@table("readable", [True, False])
@own_host
def test_a_turn_of_the_next_client_does_not_complete_an_agent_of_a_killed_client(host: Host, *, readable: bool) -> None:
    with host.client() as client:
        agent_id = began(host, readable=readable)
        host.hear(host.ending(**pausing()))
        client.kill()
    host.hear(host.event_payload("SessionStart", source="resume"))
    turn_ends(host)

    assert stands(host) == ("crashed", "investigating", "lost", 1)
    assert gaia_sessions.should_resume(agent_id, root=str(host.root))


def test_a_main_stop_does_not_complete_an_agent_whose_client_is_unknown(host: Host) -> None:
    agent_id = began(host, readable=False)
    host.hear(host.ending(**pausing()))
    [run] = host.record()["runs"]
    host.edit(agent_id, runs=[{**run, "host_process": {"pid": 1}}])
    turn_ends(host)

    assert stands(host) == INTERRUPTED


@table(("readable", "first"), [(True, "turn"), (False, "turn"), (True, "prompt"), (False, "prompt")])
@own_host
def test_an_agent_that_the_user_stopped_is_interrupted_whichever_event_comes_first(
    host: Host, first: str, *, readable: bool
) -> None:
    with host.client():
        began(host, readable=readable)
        host.hear(host.ending(**pausing()))
        if first == "prompt":  # this turn ends before the client writes that the user stopped the agent
            turn_ends(host)
        meta = {"agentType": "Explore", "toolUseId": "toolu_1", "finished": True, "stoppedByUser": True}
        (host.agents / "agent-a1.meta.json").write_text(json.dumps(meta), encoding="utf-8")
        if first == "turn":
            turn_ends(host)
            assert stands(host) == INTERRUPTED
        host.hear(host.event_payload("UserPromptSubmit", prompt='Background agent "Job" was stopped by the user.'))

        assert stands(host) == INTERRUPTED
        assert host.record()["runs"][0]["interruption"] == "stopped_by_user"
        turn_ends(host)
        assert stands(host) == INTERRUPTED


def test_a_question_in_a_code_fence_stays_pending(host: Host) -> None:
    began(host)
    host.hear(host.ending(**pausing(f"It is ready.\n```\n{ASKS.splitlines()[1]}\n```")))
    host.hear(host.starting())
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))

    [asked] = gaia_sessions.Sessions(str(host.root)).pending()
    assert (asked["question"], asked["last_message"]) == ("shall I?", f"It is built.\n{ASKS.splitlines()[1]}")


@table(
    ("answer", "woken"),
    [
        (("approve", "--note", "gently"), ("working", "executing", None, 1)),
        (("deny", "--reason", "gently"), ("working", "approval", None, 1)),
    ],
)
@own_host
def test_the_user_can_answer_the_question_while_the_agent_waits(host: Host, answer: Any, woken: Any) -> None:
    root = str(host.root)
    with host.client():
        agent_id = began(host)
        host.hear(host.ending(**pausing(ASKS)))
        [asked] = gaia_sessions.Sessions(root).pending()
        assert (asked["question"], asked["state"], asked["awaits"]) == ("shall I?", "working", "command")
        assert asked["state_since"] == host.record()["runs"][0]["own_work"]["since"]
        assert not {"resume_line", "tool"} & asked.keys()
        shown = commands.gaia("pending", folder=host.project).answer
        assert shown[-4:] == [
            "  the agent waits for its background command, then gets the answer; to approve:",
            f"gaia-sessions approve {agent_id}",
            "  to deny (--reason adds a reason):",
            f"gaia-sessions deny {agent_id}",
        ]

        done = commands.gaia("--root", root, answer[0], agent_id, *answer[1:]).answer
        word = host.record()["answers"][0]["answer"]
        assert done == [f"{agent_id}: {word}; the agent gets the answer when its background work has ended"]
        assert gaia_sessions.Sessions(root).pending() == []
        assert stands(host) == ("working", "approval", None, 1)

        told = host.hear(host.starting())["additionalContext"].splitlines()
        assert f"Your request is {word}" in told[0]
        assert told[1] == "The user added: gently"
        assert stands(host) == woken
        assert commands.gaia("--root", root, answer[0], agent_id).refusal[0] == 4
        host.hear(host.ending(message="It is done.", background_tasks=[HERSELF]))
        assert stands(host) == DONE
        assert [one["message"] for one in host.record()["answers"]] == ["gently"]


@table("readable", [True, False])
@own_host
def test_an_answer_stays_recorded_if_the_agent_is_not_woken(host: Host, *, readable: bool) -> None:
    agent_id = began(host, readable=readable)
    host.hear(host.ending(**pausing(ASKS)))
    gaia_sessions.Sessions(str(host.root)).approve(agent_id, "gently")
    turn_ends(host)

    assert stands(host)[:2] == ("approved", "approval")
    assert host.record()["approval"]["message"] == "gently"


def test_an_agent_that_waits_without_a_question_cannot_be_approved(host: Host) -> None:
    agent_id = began(host)
    host.hear(host.ending(**pausing()))

    assert gaia_sessions.Sessions(str(host.root)).pending() == []
    with pytest.raises(NothingToAnswer, match="its agent is at work"):
        gaia_sessions.Sessions(str(host.root)).approve(agent_id)


def test_with_explicit_approvals_an_update_cannot_move_an_asking_agent_to_executing(host: Host) -> None:
    settings = host.project / ".claude" / "gaia-sessions.toml"
    settings.write_text('approvals = "explicit"\n', encoding="utf-8")
    agent_id = began(host)
    host.hear(host.ending(**pausing(ASKS)))

    with pytest.raises(NotApproved):
        gaia_sessions.Sessions(str(host.root)).update(agent_id, "executing")
    assert stands(host) == ("working", "approval", None, 1)

    host.hear(host.starting())
    with pytest.raises(NotApproved):
        gaia_sessions.Sessions(str(host.root)).update(agent_id, "executing")
    host.hear(host.ending(message="It is built.", background_tasks=[HERSELF]))
    assert stands(host) == ("waiting", "approval", "stopped", 1)
    [asked] = gaia_sessions.Sessions(str(host.root)).pending()
    assert (asked["question"], asked["last_message"].splitlines()[0]) == ("shall I?", "It is built.")


def test_an_agent_waits_for_all_its_tasks_even_if_not_all_are_recorded(host: Host) -> None:
    many = [{**BUILD, "id": f"b{number}"} for number in range(MOST_TASKS + 5)]
    began(host, readable=False)
    host.hear(host.ending(message=SAID, background_tasks=[HERSELF, *many]))
    turn_ends(host, *many[MOST_TASKS:])
    assert stands(host) == AT_WORK

    turn_ends(host)
    assert stands(host) == DONE


def test_reconcile_closes_an_agent_that_the_user_stopped_during_its_wait(host: Host) -> None:
    with host.client():
        agent_id = began(host)
        host.hear(host.ending(**pausing()))
        meta = {"agentType": "Explore", "toolUseId": "toolu_1", "finished": True, "stoppedByUser": True}
        (host.agents / "agent-a1.meta.json").write_text(json.dumps(meta), encoding="utf-8")

        [verdict] = gaia_sessions.Sessions(str(host.root)).reconcile()["verdicts"]
        assert (verdict["agent_id"], verdict["verdict"], verdict["closed"]) == (agent_id, "killed", True)
        assert (stands(host), host.record()["runs"][0]["interruption"]) == (INTERRUPTED, "stopped_by_user")
