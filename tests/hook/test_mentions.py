"""A prompt that only names a session resumes nothing: the session stays as it is, and the reply says how to resume."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import gaia_sessions
from tests.hook.conftest import own_host
from tests.ingest.test_resume import NOT_ANSWERED, decision, expired, logged, paused, request
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.hook.conftest import Host

UNKNOWN = "agent-20260108-180530-00000000"
INSTEAD = (
    "This delegation named work that is not finished but did not resume it. It began new work. To resume a session, "
    "delegate to the agent type named below its line. If one waits for the user, ask the user what it asks. "
    "Resume it only after the user says yes. Put that line in the prompt, once, on its own line, not quoted and "
    "not in a code block:"
)
PAUSED = (
    "Sub-agents whose work is not finished. To resume one, delegate to the agent type named after its [...]. If "
    "one waits for the user, ask the user what it asks. Resume it only after the user says yes. Put that [...] in the "
    "prompt, once, on its own line, not quoted and not in a code block:"
)


def in_prose(agent_id: str) -> str:
    return f"Review the plan of {agent_id}; the user has NOT approved it."


def in_a_quote(agent_id: str) -> str:
    return f"The plan says:\n\n> Ready to apply.\n> {request(agent_id)}\n\nReview it."


def twice(agent_id: str) -> str:
    return f"{request(agent_id)}\nApply it.\n{request(agent_id)}"


def asking(prompt: str, description: str = "Review", kind: str = "Explore") -> dict[str, Any]:
    return {"description": description, "prompt": prompt, "subagent_type": kind}


def named(host: Host, asked: dict[str, Any], tool_use_id: str = "toolu_2", agent: str = "a2") -> dict[str, Any]:
    """A delegation with this tool input begins a new session without a briefing; returns the record."""
    before = set(host.records())
    assert host.begin(tool_use_id, agent, tool_input=asked) is None
    [fresh] = set(host.records()) - before
    record: dict[str, Any] = host.records()[fresh]
    return record


def told(host: Host, tool_use_id: str = "toolu_2", agent: str = "a2") -> Any:
    """What the main agent is told when the agent returns."""
    host.hear(host.ending(agent, "Reviewed."))
    answer = host.hear(host.returning(tool_use_id, agent))
    return answer and host.timeless(answer)["additionalContext"].replace(until(answer), "TIME")


def until(answer: Any) -> str:
    _, _, rest = answer["additionalContext"].partition(", until ")
    return str(rest.partition(")")[0]) if rest else "\0"


WAITS = 'Explore: Count quokkas (waiting, phase approval, until TIME), asks "shall I?"'
OFFER = f"{INSTEAD}\n[gaia-sessions: resume ID]\n{WAITS}"


@table("quote", [in_prose, in_a_quote, twice])
@own_host
def test_a_quoted_id_resumes_nothing_and_the_reply_says_how_to_resume(host: Host, quote: Callable[[str], str]) -> None:
    agent_id = paused(host)
    file = host.root / agent_id / "state.json"
    before, decided = file.read_bytes(), decision(host, agent_id)

    fresh = named(host, asking(quote(agent_id)))

    assert ("continues" in fresh, len(fresh["runs"]), fresh["runs"][0]["mentioned"]) == (False, 1, [agent_id])
    assert told(host) == OFFER
    assert host.records()[fresh["agent_id"]]["phase"] == "completed"
    assert (file.read_bytes(), decision(host, agent_id)) == (before, decided)
    assert decided["reason"] == "session_resumable"


def test_the_resume_line_of_the_reply_resumes_the_session(host: Host) -> None:
    agent_id = paused(host)
    named(host, asking(in_prose(agent_id)))
    host.hear(host.ending("a2"))
    [line] = [
        line
        for line in host.hear(host.returning("toolu_2", "a2"))["additionalContext"].split("\n")
        if line.startswith("[")
    ]

    answer = host.hear(host.delegation("toolu_3", tool_input=asking(f"The user says yes.\n{line}\nApply it.")))

    assert f"[gaia-sessions: briefing {agent_id}]\n{NOT_ANSWERED}\n" in answer["updatedInput"]["prompt"]


def test_a_resume_line_in_both_prompt_and_description_resumes_nothing(host: Host) -> None:
    agent_id = paused(host)

    named(host, asking(f"{request(agent_id)}\nApply it.", description=request(agent_id)))

    assert logged(host)[0] != "claimed"
    assert host.log("hook")[-2]["refused"] == "several_requests"
    assert told(host) == OFFER


def test_resume_lines_for_two_sessions_resume_neither_and_the_reply_offers_both(host: Host) -> None:
    one, other = paused(host, "toolu_1", "a1"), paused(host, "toolu_5", "a5")
    before = host.records()

    named(host, asking(f"{request(one)}\n{request(other)}"))

    text = told(host)
    assert {agent_id: host.records()[agent_id] for agent_id in before} == before
    lines = (
        '\n[gaia-sessions: resume ID]\nExplore: Count quokkas (waiting, phase approval, until TIME), asks "shall I?"'
    )
    assert text == INSTEAD + lines * 2


def test_the_notification_of_a_background_agent_says_how_to_resume(host: Host) -> None:
    agent_id = paused(host)
    named(host, asking(in_prose(agent_id)))
    assert host.hear(host.launching("toolu_2", "a2")) is None
    assert host.hear(host.ending("a2")) is None

    answer = host.hear(host.notifying(agent="a2", tool_use_id="toolu_2"))

    assert request(agent_id) in answer["additionalContext"].split("\n")


def test_the_notification_of_a_woken_agent_offers_no_session_of_its_first_prompt(host: Host) -> None:
    agent_id = paused(host)
    named(host, asking(in_prose(agent_id)))
    host.hear(host.launching("toolu_2", "a2"))
    host.hear(host.ending("a2", "[gaia-sessions: planning] what now?"))
    host.hear(host.starting("a2"))
    host.hear(host.ending("a2", "Done."))

    assert host.hear(host.notifying(agent="a2", tool_use_id="toolu_m")) is None


def test_the_reply_offers_a_paused_agent_before_the_sessions_of_its_prompt(host: Host) -> None:
    agent_id = paused(host)
    fresh = named(host, asking(in_prose(agent_id)))
    host.hear(host.ending("a2", "[gaia-sessions: planning] what now?"))

    answer = host.hear(host.returning("toolu_2", "a2"))

    way_back, offer = answer["additionalContext"].split("\n\n")
    assert request(fresh["agent_id"]) in way_back.split("\n")
    assert offer.startswith(INSTEAD)
    assert request(agent_id) in offer.split("\n")


def test_a_session_of_another_agent_type_is_offered_for_that_type(host: Host) -> None:
    agent_id = paused(host)

    named(host, asking(in_prose(agent_id), kind="Plan"))

    assert told(host) == OFFER


def finished(host: Host, agent_id: str) -> None:
    gaia_sessions.finalize_session(agent_id, "completed", root=str(host.root))


def at_work(host: Host, agent_id: str) -> None:
    gaia_sessions.update_state(agent_id, "executing", root=str(host.root))


def corrupt(host: Host, agent_id: str) -> None:
    (host.root / agent_id / "state.json").write_bytes(b"{torn")


def of_a_later_version(host: Host, agent_id: str) -> None:
    host.edit(agent_id, schema=2)


@table("change", [expired, finished, at_work, corrupt, of_a_later_version])
@own_host
def test_a_session_that_is_not_resumable_at_the_report_is_not_offered(
    host: Host, change: Callable[[Host, str], None]
) -> None:
    agent_id = paused(host)
    named(host, asking(in_prose(agent_id)))
    change(host, agent_id)

    assert told(host) is None


@table("change", [finished, corrupt, of_a_later_version])
@own_host
def test_a_named_session_that_is_not_open_is_not_recorded(host: Host, change: Callable[[Host, str], None]) -> None:
    agent_id = paused(host)
    change(host, agent_id)

    before = set(host.root.glob("agent-*"))
    host.hear(host.delegation("toolu_2", tool_input=asking(in_prose(f"{agent_id} and {UNKNOWN}"))))

    [fresh] = set(host.root.glob("agent-*")) - before
    assert "mentioned" not in json.loads((fresh / "state.json").read_bytes())["runs"][0]


def test_only_the_first_five_open_sessions_that_a_prompt_names_are_recorded(host: Host) -> None:
    ids = [gaia_sessions.create_session("Explore", root=str(host.root)) for _ in range(8)]
    gaia_sessions.finalize_session(ids[1], "completed", root=str(host.root))

    fresh = named(host, asking("\n".join(f"- {agent_id}: ?" for agent_id in ids)))

    assert fresh["runs"][0]["mentioned"] == [ids[0], *ids[2:6]]


def test_thousands_of_resume_lines_resume_nothing_and_only_five_are_recorded(host: Host) -> None:
    agent_id = paused(host)

    fresh = named(host, asking("\n".join(map(request, [agent_id, *(f"gone-{number}" for number in range(5000))]))))

    assert fresh["runs"][0]["mentioned"] == [agent_id, *(f"gone-{number}" for number in range(4))]


def test_the_reply_to_a_missing_id_says_so_and_lists_paused_sessions(host: Host) -> None:
    paused(host)

    fresh = named(host, asking(request("My.work_1")))

    assert fresh["runs"][0]["mentioned"] == ["My.work_1"]
    assert told(host) == (
        "This delegation named a session that does not exist: My.work_1. It resumed nothing and began new work.\n\n"
        f"{PAUSED}\n[gaia-sessions: resume ID] {WAITS}"
    )


def test_the_reply_to_a_missing_id_says_so_if_nothing_is_paused(host: Host) -> None:
    named(host, asking(f"{request(UNKNOWN)}\n{request(UNKNOWN)}"))

    assert told(host) == (
        "This delegation named a session that does not exist: ID. It resumed nothing and began new work."
    )


def test_the_reply_to_several_missing_ids_names_all_of_them(host: Host) -> None:
    named(host, asking(f"{request('one')}\n{request('other')}"))

    assert told(host) == (
        "This delegation named sessions that do not exist: one, other. It resumed nothing and began new work."
    )


def test_a_named_session_that_was_removed_is_reported_as_missing(host: Host) -> None:
    agent_id = paused(host)
    named(host, asking(in_prose(agent_id)))
    shutil.rmtree(host.root / agent_id)

    assert told(host) == (
        "This delegation named a session that does not exist: ID. It resumed nothing and began new work."
    )


def test_a_waiting_delegation_of_an_earlier_version_does_not_resume_named_sessions(host: Host) -> None:
    agent_id = paused(host)
    before = host.record()
    event = {
        "kind": "delegate",
        "at": host.ago(minutes=1),
        "host": "claude-code",
        "host_session_id": host.SESSION,
        "tool_use_id": "toolu_2",
        "agent_name": "Explore",
        "purpose": "Apply",
        "mentioned": [agent_id, "../x"],
    }
    (host.root / ".inbox").mkdir(exist_ok=True)
    file = host.root / ".inbox" / "20260108-180530-000000-00000000.json"
    file.write_text(json.dumps(event), encoding="utf-8")

    host.hear(host.starting("a2"))

    assert host.log("hook")[-1]["inbox"] == [f"{file.name} created"]
    records = host.records()
    assert records.pop(agent_id) == before
    [fresh] = records.values()
    assert fresh["runs"][0]["mentioned"] == [agent_id]


def test_an_invalid_id_in_the_record_is_skipped_in_the_reply(host: Host) -> None:
    agent_id = paused(host)
    fresh = named(host, asking(in_prose(agent_id)))
    runs = host.records()[fresh["agent_id"]]["runs"]
    host.edit(fresh["agent_id"], runs=[{**runs[0], "mentioned": ["../x", agent_id]}])

    assert told(host) == OFFER


def test_the_reply_names_only_the_first_five_of_thousands_of_recorded_ids(host: Host) -> None:
    agent_id = paused(host)
    fresh = named(host, asking(in_prose(agent_id)))
    runs = host.records()[fresh["agent_id"]]["runs"]
    host.edit(fresh["agent_id"], runs=[{**runs[0], "mentioned": [f"gone-{number}" for number in range(5000)]}])

    gone = ", ".join(f"gone-{number}" for number in range(5))
    assert told(host).startswith(f"This delegation named sessions that do not exist: {gone}. It resumed nothing")


def test_a_delegation_that_names_no_session_gets_no_reply(host: Host) -> None:
    paused(host)

    fresh = named(host, asking("Count the sub-agent-like quokkas"))

    assert "mentioned" not in fresh["runs"][0]
    assert told(host) is None
