"""The limits of sub-agents at the hook before each use of a tool, which is installed with ``--enforce``."""

from __future__ import annotations

import json
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hosts.claude_code.settings import SETTINGS
from gaia_sessions.hosts.settings import WantedEntry
from gaia_sessions.install.hook_command import new_handler
from gaia_sessions.session import agent_limits
from tests.hook.test_lives import CAPTURES, Life, of_captures
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.session.agent_limits import AgentLimits, WorkSoFar
    from gaia_sessions.session.schema import Record, Run
    from tests.hook.conftest import Host
    from tests.hook.test_lives import Line

DOCUMENT = {
    "GAIA_SESSIONS_LIMITS_ROUNDS": "60",
    "GAIA_SESSIONS_LIMITS_TOKENS": "64000",
    "GAIA_SESSIONS_LIMITS_SEARCHES": "10",
}
"""The numbers of the users' document on the life cycle of sub-agents."""


REFUSAL = agent_limits.refusal


@pytest.fixture
def enforced(host: Host) -> Host:
    host.words = ["--enforce"]
    return host


def use(host: Host, call: str, tool: str = "Bash", agent: str | None = "a1", **keys: object) -> dict[str, Any]:
    of_agent = {} if agent is None else {"agent_id": agent, "agent_type": "Explore"}
    keys = {**of_agent, "tool_name": tool, "tool_input": {"command": "ls"}, "tool_use_id": call, **keys}
    return host.event_payload("PreToolUse", **keys)


def asked(host: Host, call: str, tool: str = "Bash", agent: str | None = "a1", **settings: str) -> str | None:
    """The reason for which the use is denied, or what the agent is told besides; None for silence."""
    told = host.hear(use(host, call, tool, agent), settings)
    if told is None:
        return None
    if told.get("permissionDecision") == "deny":
        assert list(told) == ["permissionDecision", "permissionDecisionReason"]
        return str(told["permissionDecisionReason"])
    assert list(told) == ["additionalContext"]
    return f"told: {told['additionalContext']}"


def wrote(host: Host, *rounds: tuple[str, int, bool], agent: str = "a1") -> None:
    """The agent's transcript has these rounds: the call of each, the tokens of its message, whether it failed."""
    lines: list[dict[str, Any]] = []
    for number, (call, tokens, failed) in enumerate(rounds):
        usage = {"input_tokens": tokens, "cache_read_input_tokens": 7, "output_tokens": 0}
        content = [{"type": "tool_use", "id": call, "name": "Bash", "input": {"usage": {"input_tokens": 10**9}}}]
        message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "content": content, "usage": usage}
        result = {"type": "tool_result", "tool_use_id": call, "content": '"usage":{', "is_error": failed}
        lines.append({"message": message, "type": "assistant", "uuid": "u", "timestamp": at()})
        lines.append({"type": "user", "message": {"content": [result]}, "uuid": "u", "timestamp": at()})
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (host.agents / f"agent-{agent}.jsonl").write_text(text, encoding="utf-8")


def at() -> str:
    return f"{datetime.now(UTC) + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}.000Z"


def test_a_round_that_is_written_while_the_hook_looks_counts(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, ("c0", 1, False))
    rounds = [("c0", 63_000, False), ("c1", 1_000, False)]
    written = threading.Timer(0.1, lambda: wrote(enforced, *rounds))
    written.start()
    reason = asked(enforced, "c1", **DOCUMENT)
    written.join()
    assert "(64,000 of 64,000 tokens)" in str(reason)


def test_of_60_rounds_the_60th_is_refused_and_the_59th_is_not(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, *((f"c{number}", 1, False) for number in range(58)))
    assert asked(enforced, "next", **DOCUMENT) is None
    wrote(enforced, *((f"c{number}", 1, False) for number in range(59)))
    reason = str(asked(enforced, "next", **DOCUMENT))
    assert reason.startswith("Sub-agent iteration limit reached (60). Use no more tools.")
    assert asked(enforced, "c58", **DOCUMENT) is None, "the round of the call itself has not ended"


def test_of_64000_tokens_whoever_used_as_many_is_refused(enforced: Host) -> None:
    agent_id = enforced.work()
    wrote(enforced, ("c1", 63_998, False), ("c2", 1, False))
    told = str(asked(enforced, "next", **DOCUMENT))
    assert told.startswith("told: You have used 63,999 of your 64,000 tokens.")
    assert asked(enforced, "next", **DOCUMENT) is None, "it is told once"
    wrote(enforced, ("c1", 63_998, False), ("c2", 2, False))
    reason = str(asked(enforced, "next", **DOCUMENT))
    assert reason.startswith("Sub-agent token limit reached (64,000 of 64,000 tokens).")

    gaia_sessions.update_state(agent_id, max_tokens=100_000, root=str(enforced.root))
    assert asked(enforced, "next", **DOCUMENT) is None, "capped work can go on"
    gaia_sessions.update_state(agent_id, max_tokens=1000, root=str(enforced.root))
    assert asked(enforced, "next") is not None, "its own budget holds without a setting"


def test_of_searches_ten_are_allowed_and_only_those_that_were_made_count(enforced: Host) -> None:
    enforced.work()
    reason = "Search budget exceeded (11/10). Please synthesize findings from existing data instead of searching more."
    for number in range(10):
        assert asked(enforced, f"s{number}", "WebSearch", **DOCUMENT) is None
    assert asked(enforced, "s3", "WebSearch", **DOCUMENT) is None, "asked again it is the same search"
    for number in range(10, 13):
        assert asked(enforced, f"s{number}", "WebFetch", **DOCUMENT) == reason
    assert asked(enforced, "other", "Grep", **DOCUMENT) is None
    assert asked(enforced, "main", "WebSearch", None, **DOCUMENT) is None
    wrote(enforced, ("s4", 1, True), ("s10", 1, True))
    assert asked(enforced, "s13", "WebSearch", **DOCUMENT) is None, "one of the ten had failed"
    assert asked(enforced, "s14", "WebSearch", **DOCUMENT) == reason
    assert asked(enforced, "s15", "WebSearch", **{**DOCUMENT, "GAIA_SESSIONS_LIMITS_SEARCHES": "11"}) is None


def test_a_run_that_lasts_for_too_long_is_told_to_end(enforced: Host) -> None:
    agent_id = enforced.work()
    limit = {"GAIA_SESSIONS_LIMITS_SECONDS": "1m"}
    assert asked(enforced, "a", **limit) is None
    [run] = enforced.record()["runs"]
    enforced.edit(agent_id, runs=[{**run, "started_at": enforced.ago(seconds=61)}])
    reason = str(asked(enforced, "a", **limit))
    assert reason.startswith("Sub-agent time limit reached (60 s).")


def test_a_tool_that_is_blocked_or_not_allowed_is_denied_also_to_an_agent_of_which_nothing_is_known(
    enforced: Host,
) -> None:
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text('[limits.tools]\nExplore = ["Read"]\n')
    reason = (
        "Bash is not among the tools that the setting limits.tools gives Explore. Go on with what you may use: Read."
    )
    assert asked(enforced, "a") == reason
    assert asked(enforced, "a", "send_file_to_user") == (
        "send_file_to_user is blocked for sub-agents. Go on with what you may use: Read."
    )
    assert asked(enforced, "a", "Read") is None
    assert asked(enforced, "a", agent=None) is None
    enforced.work()
    assert asked(enforced, "a") == reason
    assert asked(enforced, "a", GAIA_SESSIONS_IGNORE_AGENTS="explore") is None


def test_below_a_session_with_a_list_of_tools_that_list_holds(enforced: Host) -> None:
    store = gaia_sessions.Sessions(str(enforced.root))
    above = store.create(tools=["Read"])
    settings = {"GAIA_SESSION_ID": above}
    enforced.begin(settings=settings)
    enforced.hear(enforced.starting())
    assert asked(enforced, "a", "Read") is None
    assert asked(enforced, "a") == (f"Bash is not among the tools of {above}. Go on with what you may use: Read.")


def test_a_cancelled_agent_is_denied_every_tool_and_delegates_nothing(enforced: Host) -> None:
    agent_id = enforced.work()
    gaia_sessions.Sessions(str(enforced.root)).cancel(agent_id, "not needed")
    reason = str(asked(enforced, "a"))
    assert reason.endswith(f"not needed. {agent_limits.USE_NO_MORE_TOOLS}")
    told = enforced.hear({**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"})
    assert told["permissionDecision"] == "deny"
    assert list(enforced.records()) == [agent_id]


def test_where_the_guard_is_on_a_delegation_is_denied_and_creates_nothing(enforced: Host) -> None:
    payload = enforced.delegation(tool_input={"prompt": "Explain the code", "description": "d"})
    told = enforced.hear(payload, {"GAIA_SESSIONS_GUARD_MODE": "block"})
    assert told["permissionDecision"] == "deny"
    assert "'Explain'" in told["permissionDecisionReason"]
    assert enforced.records() == {}
    assert enforced.hear(payload) is None
    assert len(enforced.records()) == 1


def test_without_the_option_nothing_is_ever_denied(host: Host) -> None:
    agent_id = host.work()
    gaia_sessions.Sessions(str(host.root)).cancel(agent_id)
    assert asked(host, "a", GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS="Bash", **DOCUMENT) is None


def test_a_session_that_is_locked_allows_the_search(enforced: Host) -> None:
    agent_id = enforced.work()
    one = {"GAIA_SESSIONS_LIMITS_SEARCHES": "1"}
    assert asked(enforced, "a", "WebSearch", **one) is None
    with enforced.held(agent_id):
        assert asked(enforced, "b", "WebSearch", **one) is None
    assert len(enforced.records()[agent_id]["runs"][0]["searches"]) == 1
    assert asked(enforced, "b", "WebSearch", **one) == agent_limits.search_refusal(1)


def test_a_sender_whose_record_cannot_be_read_is_not_limited_and_its_delegation_is_recorded(enforced: Host) -> None:
    agent_id = enforced.work()
    (enforced.root / agent_id / "state.json").write_text("{")
    payload = {**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"}
    assert enforced.hear(payload, DOCUMENT) is None
    assert enforced.log("hook")[-1]["decision"] == "created"
    assert enforced.log("hook")[-1]["session"] != agent_id
    assert asked(enforced, "a", **DOCUMENT) is None


@table("value", ['"\\u0000"', '"\\ud800"', "[" * 100 + "]" * 100, "1e999", '{"a":1,"a":2}', f'"{"x" * (9 << 20)}"'])
def test_nothing_that_an_agent_gives_to_a_tool_lifts_its_limits(enforced: Host, value: str) -> None:
    data = json.dumps(use(enforced, "a"), separators=(",", ":")).encode()
    told = data.replace(b'{"command":"ls"}', f'{{"command":{value}}}'.encode())
    assert told != data
    for settings, word in (({"GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS": "Bash"}, b'"deny"'), ({}, b"")):
        ran = enforced.run("every_event", told, settings)
        assert (ran.code, ran.err, word in ran.out, bool(ran.out)) == (0, b"", True, bool(word))


def test_an_agent_that_delegates_to_one_that_is_left_out_has_its_own_limits(enforced: Host) -> None:
    agent_id = enforced.work()
    payload = {**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"}
    payload["tool_input"] = {**payload["tool_input"], "subagent_type": "other"}
    settings = {"GAIA_SESSIONS_IGNORE_AGENTS": "other"}
    assert enforced.hear(payload, settings) is None
    gaia_sessions.Sessions(str(enforced.root)).cancel(agent_id)
    assert enforced.hear(payload, settings)["permissionDecision"] == "deny"


def test_work_that_the_agent_calls_ended_is_limited_while_it_uses_tools(enforced: Host) -> None:
    agent_id = enforced.work()
    wrote(enforced, ("c0", 64_000, False))
    gaia_sessions.Sessions(str(enforced.root)).update(agent_id, "completed")
    assert "token limit reached" in str(asked(enforced, "next", **DOCUMENT))
    enforced.hear(enforced.event_payload("SessionEnd", reason="other"))
    assert "token limit reached" in str(asked(enforced, "next", **DOCUMENT))


def test_the_type_of_an_agent_is_the_one_that_its_host_says(enforced: Host) -> None:
    enforced.work()
    settings = '[limits.tools]\nExplore = ["Read"]\nPlan = ["Bash"]\n'
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text(settings, encoding="utf-8")
    assert asked(enforced, "a", "Read") is None
    told = enforced.hear({**use(enforced, "b", "Read"), "agent_type": "Plan"})
    assert "gives Plan" in told["permissionDecisionReason"]


def test_an_agent_that_goes_on_in_a_new_session_has_the_tools_of_the_one_before(enforced: Host) -> None:
    store = gaia_sessions.Sessions(str(enforced.root))
    top = store.create(tools=["Read", "Grep"])
    earlier = store.create(parent_id=top)
    store.finalize(earlier, "completed")
    assert store.read(store.create(continues=earlier))["allowed_tools"] == ["Read", "Grep"]
    payload = enforced.delegation("toolu_2")
    payload["tool_input"]["prompt"] = f"[gaia-sessions: resume {earlier}]\nGo on"
    enforced.hear(payload)
    [new] = [record for record in enforced.records().values() if "runs" in record]
    assert (new["continues"], new["allowed_tools"]) == (earlier, ["Read", "Grep"])


def test_the_line_by_which_work_is_resumed_is_no_part_of_the_task(enforced: Host) -> None:
    payload = enforced.delegation("toolu_2")
    payload["tool_input"]["prompt"] = "[gaia-sessions: resume review-1]\nFind the review notes"
    assert enforced.hear(payload, {"GAIA_SESSIONS_GUARD_MODE": "block"}) is None


def test_an_agent_that_reaches_most_of_its_budget_by_a_delegation_is_warned_at_its_next_tool(enforced: Host) -> None:
    agent_id = enforced.work()
    wrote(enforced, ("c0", 60_000, False))
    payload = {**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"}
    assert enforced.hear(payload, DOCUMENT) is None
    assert "warned_at" not in enforced.records()[agent_id]["runs"][0]
    said = str(asked(enforced, "next", **DOCUMENT))
    assert said.startswith("told: You have used 60,000 of your 64,000 tokens.")
    assert asked(enforced, "later", **DOCUMENT) is None
    decisions = [line["decision"] for line in enforced.log("hook")]
    assert decisions[-3:] == ["created", "warned", "allowed"]


@table("told", [b"", b"{", b'{"hook_event_name": "PreToolUse", "agent_id": 3}', b"[]"])
def test_what_cannot_be_read_is_allowed(enforced: Host, told: bytes) -> None:
    ran = enforced.run("every_event", told)
    assert (ran.code, ran.out) == (0, b"")


class EnforcedLife(Life):
    """A life with ``--enforce``, in which the files of agents are whole from the start, and written after it."""

    def lines(self, capture: Path) -> list[Line]:
        self.words = ["--enforce"]
        lines = super().lines(capture)
        told = [json.loads(line) for line in capture.read_text(encoding="utf-8").splitlines()]
        kept: dict[str, str] = next((line["files"] for line in told if line["event"] == "__files__"), {})
        for path, text in kept.items():
            if path.endswith(".jsonl") and "/agent-" in path:
                file = Path(str(self.folder) + path.replace("/home/user", "/home"))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("".join(map(_as_written, text.splitlines())), encoding="utf-8")
        for line in lines:
            line.files = {path: text for path, text in line.files.items() if not path.name.startswith("agent-")}
        return lines


def _as_written(line: str) -> str:
    """A line of a transcript, which a capture may have with spaces, as its client writes it, and later than now."""
    entry = json.loads(line)
    entry |= {"timestamp": at()} if "timestamp" in entry else {}
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.mark.parametrize("settings", [{}, DOCUMENT], ids=["default", "document"])
@of_captures(*CAPTURES)
def test_of_an_agent_that_was_captured_no_tool_is_denied(
    capture: Path, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[tuple[int, int]] = []

    def refusal(record: Record, run: Run, done: WorkSoFar, limits: AgentLimits, now: datetime) -> str | None:
        looked_at.append((done.rounds, done.tokens))
        return REFUSAL(record, run, done, limits, now)

    monkeypatch.setattr(agent_limits, "refusal", refusal)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    life = EnforcedLife(tmp_path / capture.parent.name / capture.stem, monkeypatch)
    life.live(life.lines(capture))
    assert life.errors == []
    assert [answer for answer in life.answers if "permissionDecision" in str(answer)] == []
    if capture.stem == "usage":
        assert looked_at == ([(1, 3378), (0, 4940), (1, 3378)] if settings else [])


def test_the_shell_passes_over_the_main_agent_and_hands_on_whatever_a_sub_agent_sends(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    wanted = WantedEntry("PreToolUse", None, of_agents=True)
    command = new_handler(SETTINGS, ["sh", "-c", f"cat > {kept}"], wanted)["command"]

    def passes(payload: dict[str, Any]) -> bytes | None:
        kept.unlink(missing_ok=True)
        data = json.dumps(payload, separators=(",", ":")).encode()
        done = subprocess.run(["sh", "-c", str(command)], input=data, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert not kept.exists() or kept.read_bytes() == data
        return kept.read_bytes() if kept.exists() else None

    tool = {"tool_name": "Write", "tool_input": {"content": "é\\n$(touch x) `x` 'a' \" %s\\0 \n" * 40_000}}
    assert passes({"session_id": "s", "agent_id": "a", **tool}) is not None
    assert passes({"session_id": "s", **tool, "agent_id": "a"}) is None
    assert passes({"session_id": "s", "tool_name": "Write", "tool_input": {"agent_id": "a"}}) is None
    assert passes({"session_id": "s", "cwd": '/"agent_id"', **tool}) is None
