"""The limits of sub-agents in the hook before each tool call, with ``--enforce``."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.hosts.claude_code.settings import SETTINGS
from gaia_sessions.hosts.settings import WantedEntry
from gaia_sessions.install.hook_command import new_handler
from gaia_sessions.session import agent_limits
from gaia_sessions.session.guard import MOST_CHARACTERS
from gaia_sessions.store import MOST_ABOVE, atomic
from gaia_sessions.store.directory import Directory
from tests import commands
from tests.hook.conftest import own_host
from tests.hook.test_lives import CAPTURES, Life, of_captures
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.agent_limits import AgentLimits, WorkSoFar
    from gaia_sessions.session.schema import Record, Run
    from tests.hook.conftest import Host
    from tests.hook.test_lives import Line

DOCUMENT = {
    "GAIA_SESSIONS_LIMITS_ROUNDS": "60",
    "GAIA_SESSIONS_LIMITS_TOKENS": "64000",
    "GAIA_SESSIONS_LIMITS_SEARCHES": "10",
}
"""The limits of the users' document on the life cycle of sub-agents."""


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
    """The reason why the tool call is denied, or the warning; None if the hook is silent."""
    told = host.hear(use(host, call, tool, agent), settings)
    if told is None:
        return None
    if told.get("permissionDecision") == "deny":
        assert list(told) == ["permissionDecision", "permissionDecisionReason"]
        return str(told["permissionDecisionReason"])
    assert list(told) == ["additionalContext"]
    return f"told: {told['additionalContext']}"


def wrote(host: Host, *rounds: tuple[str, int, bool], agent: str = "a1") -> None:
    """Writes a transcript with these rounds: call id, tokens, and whether the call failed."""
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


def test_a_round_written_while_the_hook_reads_the_transcript_counts(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, ("c0", 1, False))
    rounds = [("c0", 63_000, False), ("c1", 1_000, False)]
    written = threading.Timer(0.1, lambda: wrote(enforced, *rounds))
    written.start()
    reason = asked(enforced, "c1", **DOCUMENT)
    written.join()
    assert "(64,000 of 64,000 tokens)" in str(reason)


def test_the_60th_of_60_rounds_is_refused_and_the_59th_is_allowed(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, *((f"c{number}", 1, False) for number in range(58)))
    assert asked(enforced, "next", **DOCUMENT) is None
    wrote(enforced, *((f"c{number}", 1, False) for number in range(59)))
    reason = str(asked(enforced, "next", **DOCUMENT))
    assert reason.startswith("Sub-agent iteration limit reached (60). Use no more tools.")
    assert asked(enforced, "c58", **DOCUMENT) is None, "the round of the call itself has not ended"


def test_after_clear_rounds_from_before_it_still_count(enforced: Host) -> None:
    enforced.work()
    wrote(enforced, ("c0", 1, False), ("c1", 1, False))
    payload = {**use(enforced, "next"), "transcript_path": str(enforced.transcript.with_name("other.jsonl"))}
    four, five, six = ({"GAIA_SESSIONS_LIMITS_ROUNDS": number} for number in "456")
    assert enforced.hear(payload, four) is None, "there is no other file yet"
    old = enforced.agents / "agent-a1.jsonl"
    new = enforced.transcript.with_name("other") / "subagents" / old.name
    new.parent.mkdir(parents=True)
    new.write_text(old.read_text().replace("msg_", "msg_new"), encoding="utf-8")
    assert enforced.hear(payload, six) is None
    assert "iteration limit reached (5)" in enforced.hear(payload, five)["permissionDecisionReason"]
    new.write_bytes(old.read_bytes())
    assert enforced.hear(payload, four) is None, "a message that was taken along counts once"


def test_an_agent_is_refused_at_64000_tokens_and_its_own_budget_overrides_the_setting(enforced: Host) -> None:
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


@table(
    ("words", "settings", "own", "shown"),
    [
        ([], {}, None, (None, False, "70,000 tokens", "70,000")),
        ([], {"GAIA_SESSIONS_LIMITS_TOKENS": "5000"}, None, (None, False, "70,000 tokens", "70,000")),
        ([], {}, 1000, (None, False, "70,000 tokens", "70,000; the limit of 1,000 is not enforced")),
        (["--enforce"], {}, None, (None, False, "70,000 tokens", "70,000")),
        (
            ["--enforce"],
            {"GAIA_SESSIONS_LIMITS_TOKENS": "5000"},
            None,
            (5000, True, "70,000 of 5,000 tokens", "70,000 of 5,000 tokens, limit reached"),
        ),
        (
            ["--enforce"],
            {"GAIA_SESSIONS_LIMITS_TOKENS": "5000"},
            90_000,
            (90_000, False, "70,000 of 90,000 tokens", "70,000 of 90,000 tokens"),
        ),
    ],
)
def test_commands_show_only_the_budget_that_the_hooks_enforce(
    host: Host, words: list[str], settings: dict[str, str], own: int | None, shown: tuple[object, ...]
) -> None:
    host.words = words
    agent_id = host.work(f"toolu_{len(host.records())}", f"a{len(host.records())}")
    host.edit(agent_id, charged_tokens=70_000, **({} if own is None else {"max_tokens": own}))

    def told(*line: str) -> Any:
        return commands.gaia(*line, "--root", str(host.root), environment={**os.environ, **settings})

    usage, report = (json.loads(told(word, agent_id, "--json").out) for word in ("usage", "report"))
    assert (usage["max_tokens"], usage["limit_reached"]) == shown[:2]
    assert (report["max_tokens"], report["limit_reached"]) == shown[:2]
    assert str(shown[2]) in told("report", agent_id).err.decode()
    assert f"\ntokens     {shown[3]}\n" in told("show", agent_id).out.decode()
    [line] = json.loads(told("list", "--agent", "Explore", "--limit", "1", "--json").out)
    assert line.get("max_tokens") == (own if words else None)


def test_ten_searches_are_allowed_and_only_searches_that_were_made_count(enforced: Host) -> None:
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


def test_a_run_beyond_its_time_limit_is_denied_its_tools(enforced: Host) -> None:
    agent_id = enforced.work()
    limit = {"GAIA_SESSIONS_LIMITS_SECONDS": "1m"}
    assert asked(enforced, "a", **limit) is None
    [run] = enforced.record()["runs"]
    enforced.edit(agent_id, runs=[{**run, "started_at": enforced.ago(seconds=61)}])
    reason = str(asked(enforced, "a", **limit))
    assert reason.startswith("Sub-agent time limit reached (60 s).")


def test_a_blocked_or_unlisted_tool_is_denied_even_to_an_unknown_agent(
    enforced: Host,
) -> None:
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text('[limits.tools]\nExplore = ["Read"]\n')
    reason = "Bash is not among the tools that the setting limits.tools gives Explore. Use only these tools: Read."
    assert asked(enforced, "a") == reason
    assert asked(enforced, "a", "send_file_to_user") == (
        "send_file_to_user is blocked for sub-agents. Use only these tools: Read."
    )
    assert asked(enforced, "a", "Read") is None
    assert asked(enforced, "a", agent=None) is None
    enforced.work()
    assert asked(enforced, "a") == reason
    assert asked(enforced, "a", GAIA_SESSIONS_IGNORE_AGENTS="explore") is None


def test_the_tool_list_of_a_session_also_limits_the_agents_below_it(enforced: Host) -> None:
    store = gaia_sessions.Sessions(str(enforced.root))
    above = store.create(tools=["Read"])
    settings = {"GAIA_SESSION_ID": above}
    enforced.begin(settings=settings)
    enforced.hear(enforced.starting())
    assert asked(enforced, "a", "Read") is None
    assert asked(enforced, "a") == (f"Bash is not among the tools of {above}. Use only these tools: Read.")


def test_a_cancelled_agent_is_denied_every_tool_and_delegates_nothing(enforced: Host) -> None:
    agent_id = enforced.work()
    gaia_sessions.Sessions(str(enforced.root)).cancel(agent_id, "not needed")
    reason = str(asked(enforced, "a"))
    assert reason.endswith(f"not needed. {agent_limits.USE_NO_MORE_TOOLS}")
    told = enforced.hear({**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"})
    assert told["permissionDecision"] == "deny"
    assert list(enforced.records()) == [agent_id]


def test_the_guard_denies_a_delegation_and_no_session_is_created(enforced: Host) -> None:
    payload = enforced.delegation(tool_input={"prompt": "Explain the code", "description": "d"})
    told = enforced.hear(payload, {"GAIA_SESSIONS_GUARD_MODE": "block"})
    assert told["permissionDecision"] == "deny"
    assert "'Explain'" in told["permissionDecisionReason"]
    assert enforced.records() == {}
    assert enforced.hear(payload) is None
    assert len(enforced.records()) == 1


def test_the_guard_denies_a_prompt_that_is_too_long_to_check(enforced: Host) -> None:
    prompt = "find x" + "\nfind it" * (MOST_CHARACTERS // 8)
    payload = enforced.delegation(tool_input={"prompt": prompt, "description": "d"})
    told = enforced.hear(payload, {"GAIA_SESSIONS_GUARD_MODE": "block"})
    assert told["permissionDecision"] == "deny"
    assert f"at most {MOST_CHARACTERS} can be checked" in told["permissionDecisionReason"]
    assert enforced.records() == {}


def test_a_hook_without_enforce_denies_nothing(host: Host) -> None:
    agent_id = host.work()
    gaia_sessions.Sessions(str(host.root)).cancel(agent_id)
    assert asked(host, "a", GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS="Bash", **DOCUMENT) is None


def test_a_search_is_allowed_while_its_session_is_locked(enforced: Host) -> None:
    agent_id = enforced.work()
    one = {"GAIA_SESSIONS_LIMITS_SEARCHES": "1"}
    assert asked(enforced, "a", "WebSearch", **one) is None
    with enforced.held(agent_id):
        assert asked(enforced, "b", "WebSearch", **one) is None
    assert len(enforced.records()[agent_id]["runs"][0]["searches"]) == 1
    assert asked(enforced, "b", "WebSearch", **one) == agent_limits.search_refusal(1)


def unsure(reason: str | None) -> bool:
    """Whether the tool call was denied because the limits are unknown."""
    text = reason or ""
    return text.startswith("The limits of this agent are unknown: ") and text.endswith(agent_limits.USE_NO_MORE_TOOLS)


def refused_by_the_system(folder: Path) -> Callable[[pytest.MonkeyPatch], None]:
    """The system refuses to open this folder."""
    below = Directory.below

    def refusing(directory: Directory, *names: str) -> Directory:
        if names[-1] == folder.name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return below(directory, *names)

    return lambda patched: patched.setattr(Directory, "below", refusing)


def newer(file: Path, **keys: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "schema": 99, **keys}), encoding="utf-8")


def moved_away(file: Path) -> None:
    file.parent.rename(file.parent.with_name("moved"))
    file.parent.symlink_to("moved")


def without_file(plant: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(file: Path) -> None:
        file.unlink()
        plant(file)

    return replace


DAMAGES: dict[str, Callable[[Path], object]] = {
    "half a record": lambda file: file.write_text("{"),
    "another record": lambda file: file.write_text(file.read_text().replace('"agent_id"', '"agent"')),
    "a pipe": without_file(os.mkfifo),
    "a folder": without_file(Path.mkdir),
    "a link": without_file(lambda file: file.symlink_to("/dev/zero")),
    "a link in place of its folder": moved_away,
    "a later version": lambda file: newer(file, agent_name=None),
}


@table("name", [*DAMAGES])
@own_host
def test_an_agent_with_an_unreadable_record_is_denied_every_tool(host: Host, name: str) -> None:
    host.words = ["--enforce"]
    agent_id = host.work()
    assert asked(host, "a", "Read") is None
    DAMAGES[name](host.root / agent_id / "state.json")
    assert unsure(asked(host, "b", "Read"))
    payload = {**host.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"}
    assert unsure(host.hear(payload)["permissionDecisionReason"])
    assert asked(host, "c", "Read", agent="a2") is None, "another agent is none of its business"
    assert asked(host, "d", agent=None) is None
    line = host.log("hook")[-4]
    assert (line["decision"], agent_id in line["limits"], agent_id in line["reason"]) == ("denied", True, True)


@table("name", [*DAMAGES])
@table("whose", ["parent", "root"])
@own_host
def test_an_agent_below_an_unreadable_session_is_denied_every_tool(host: Host, whose: str, name: str) -> None:
    host.words = ["--enforce"]
    store = gaia_sessions.Sessions(str(host.root))
    root = store.create(agent_id="root", tools=["Read"])
    settings = {"GAIA_SESSION_ID": store.create(agent_id="parent", parent_id=root)}
    host.begin(settings=settings)
    host.hear(host.starting())
    assert asked(host, "a", "Read") is None
    DAMAGES[name](host.root / whose / "state.json")
    assert unsure(asked(host, "b", "Read"))


@table("name", [*DAMAGES])
@own_host
def test_an_agent_that_begins_below_an_unreadable_session_has_its_limits_when_it_can_be_read(
    host: Host, name: str
) -> None:
    host.words = ["--enforce"]
    parent = gaia_sessions.Sessions(str(host.root)).create(agent_id="parent", tools=["Read"], max_depth=3)
    folder, kept = host.root / parent, host.folder / "kept"
    shutil.copytree(folder, kept)
    DAMAGES[name](folder / "state.json")
    host.begin(settings={"GAIA_SESSION_ID": parent})
    host.hear(host.starting())
    [agent_id] = {path.name for path in host.root.glob("[!.]*")} - {"parent", "moved"}
    assert json.loads((host.root / agent_id / "state.json").read_bytes())["parent_id"] == parent
    assert unsure(asked(host, "a", "Read"))
    folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    kept.rename(folder)
    assert asked(host, "b", "Read") is None
    assert "Bash is not among the tools of parent." in str(asked(host, "c"))


def test_the_tool_list_in_a_complete_record_of_a_later_schema_holds(enforced: Host) -> None:
    above = gaia_sessions.Sessions(str(enforced.root)).create(tools=["Read"])
    enforced.begin(settings={"GAIA_SESSION_ID": above})
    enforced.hear(enforced.starting())
    newer(enforced.root / above / "state.json", unheard_of=[1])
    assert asked(enforced, "a", "Read") is None
    assert f"Bash is not among the tools of {above}." in str(asked(enforced, "b"))


def test_an_agent_below_too_many_sessions_to_read_is_denied_every_tool(enforced: Host) -> None:
    agent_id = enforced.work()
    record = enforced.record()
    above = [agent_id, *(f"above-{number}" for number in range(MOST_ABOVE + 1))]
    for one, other in pairwise(above):
        (enforced.root / other).mkdir()
        (enforced.root / other / "state.json").write_text(json.dumps({**record, "agent_id": other, "runs": []}))
        enforced.edit(one, parent_id=other)
    assert unsure(asked(enforced, "a"))


def test_an_agent_is_denied_if_the_system_refuses_to_open_its_session(
    enforced: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id = enforced.work()
    with monkeypatch.context() as patched:
        refused_by_the_system(enforced.root / agent_id)(patched)
        assert unsure(asked(enforced, "a"))
    assert asked(enforced, "a") is None


def test_the_tool_settings_hold_without_the_parent_session_and_without_a_root(enforced: Host) -> None:
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text('[limits.tools]\nExplore = ["Read"]\n')
    store = gaia_sessions.Sessions(str(enforced.root))
    enforced.begin(settings={"GAIA_SESSION_ID": store.create(agent_id="parent", tools=["Grep"])})
    enforced.hear(enforced.starting())
    assert "tools of parent" in str(asked(enforced, "a", "Read"))
    shutil.rmtree(enforced.root / "parent")
    assert asked(enforced, "a", "Read") is None
    assert "gives Explore" in str(asked(enforced, "a"))
    shutil.rmtree(enforced.root)
    for is_file in (False, True):
        if is_file:
            enforced.root.touch()
        assert asked(enforced, "a", "Read") is None
        assert "gives Explore" in str(asked(enforced, "a"))
    assert enforced.log("hook")[-1]["limits"].startswith(f"{enforced.root}: cannot open")


NO_NAMES: list[object] = [
    *["mcp__my files__delete", "mcp__files__delete,all", "x" * 201, "Bash ", " Bash", "Bash\n", "\u202eBash", ""],
    *["Bash\0", "\ud800", 3, None, ["Read"], {"Read": "Read"}],
]


@table("name", NO_NAMES)
@own_host
def test_an_invalid_tool_name_is_denied_to_every_sub_agent_with_check_tools_reason(host: Host, name: object) -> None:
    host.words = ["--enforce"]
    store = gaia_sessions.Sessions(str(host.root))
    above = store.create(tools=["Read"])
    host.begin("toolu_1", "limited", {"GAIA_SESSION_ID": above})
    host.begin("toolu_2", "free")
    host.hear(host.starting("limited"))
    host.hear(host.starting("free"))
    settings = host.project / ".claude" / "gaia-sessions.toml"

    def answer(agent: str | None) -> str:
        payload = {**use(host, "a", agent=agent), "tool_name": name}
        told = host.hear(payload if name is not None else {key: payload[key] for key in payload if key != "tool_name"})
        return str(told and told["permissionDecisionReason"])

    seen = name if isinstance(name, str) and (name.isprintable() or name in ("Bash\n", "\u202eBash")) else ""
    refusal = f"{store.check_tool(above, seen)['reason']}. "
    limited, free = f"{refusal}Use only these tools: Read.", f"{refusal}Work without it."
    assert [answer(agent) for agent in ("limited", "free", "unknown")] == [limited, free, free]
    settings.write_text("[limits]\nblocked_tools = ['Bash']\n", encoding="utf-8")
    assert [answer(agent) for agent in ("limited", "free", "unknown")] == [limited, free, free]
    settings.write_text('[limits.tools]\nExplore = ["Read"]\n', encoding="utf-8")
    assert [answer(agent) for agent in ("limited", "free", "unknown")] == [limited] * 3
    assert answer(None) == "None", "the main agent is not limited"


@table("agent", [3, True, ["a1"], {"a": 1}, "a" * 513])
def test_an_agent_with_an_invalid_id_has_the_limits_of_its_type(enforced: Host, agent: object) -> None:
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text('[limits.tools]\nExplore = ["Read"]\n')
    told = enforced.hear({**use(enforced, "a"), "agent_id": agent})
    assert "gives Explore" in told["permissionDecisionReason"]
    assert enforced.hear({**use(enforced, "a", "Read"), "agent_id": agent}) is None
    assert "gives Explore" in enforced.hear({**use(enforced, "a"), "session_id": agent})["permissionDecisionReason"]
    for nobody in (None, ""):
        assert enforced.hear({**use(enforced, "a"), "agent_id": nobody}) is None


@table(
    ("text", "told"),
    [
        ('[limits.tools]\nExplore = 5\nPlan = ["Bash"]\n', "gives Explore. Use no more tools."),
        ('[limits.tools]\nExplore = ["Read"]\nPlan = 5\n', "gives Explore. Use only these tools: Read."),
        ('limits.rounds = -1\nlimits.blocked_tools = ["Bash"]\n', "Bash is blocked for sub-agents. Work without it."),
        ("[limits", "Grep is blocked for sub-agents. Work without it."),
        ("[[limits]]\nblocked_tools = ['Bash']", "Grep is blocked for sub-agents. Work without it."),
    ],
)
def test_an_invalid_setting_lifts_no_other_limit(enforced: Host, text: str, told: str) -> None:
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text(text, encoding="utf-8")
    variable = {"GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS": "Grep"} if told.startswith("Grep") else {}
    tool = "Grep" if variable else "Bash"
    assert told in str(asked(enforced, "a", tool, **variable))
    assert ".claude/gaia-sessions.toml: " in enforced.log("hook")[-1]["setting"]


TRANSCRIPTS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "not there yet": (Path.unlink, True),
    "empty": (lambda file: file.write_bytes(b""), True),
    "a folder": (without_file(Path.mkdir), False),
    "a pipe": (without_file(os.mkfifo), False),
    "a link": (without_file(lambda file: file.symlink_to("/dev/null")), False),
}


@table("name", [*TRANSCRIPTS])
@own_host
def test_an_unreadable_transcript_denies_tools_under_a_round_or_token_limit(host: Host, name: str) -> None:
    host.words = ["--enforce"]
    change, is_allowed = TRANSCRIPTS[name]
    host.work()
    wrote(host, ("c0", 1, False))
    change(host.agents / "agent-a1.jsonl")
    for setting in ("ROUNDS", "TOKENS"):
        reason = asked(host, "a", **{f"GAIA_SESSIONS_LIMITS_{setting}": "60"})
        assert (reason is None, unsure(reason)) == (is_allowed, not is_allowed)
    assert asked(host, "a", "WebSearch", GAIA_SESSIONS_LIMITS_SECONDS="60", GAIA_SESSIONS_LIMITS_SEARCHES="1") is None


@table(
    ("number", "is_allowed"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False), (errno.EROFS, False), (errno.EIO, False)],
)
@own_host
def test_a_search_that_cannot_be_counted_is_denied_unless_the_disk_is_full(
    host: Host,
    number: int,
    is_allowed: bool,  # noqa: FBT001
) -> None:
    host.words = ["--enforce"]
    host.work()

    def replace(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(atomic, "replace", replace)
        reason = asked(host, "a", "WebSearch", GAIA_SESSIONS_LIMITS_SEARCHES="1")
        assert (reason is None, unsure(reason)) == (is_allowed, not is_allowed)
        wrote(host, ("c0", 60_000, False))
        assert str(asked(host, "b", **DOCUMENT)).startswith("told: "), "who is only warned may go on"


def test_a_search_is_denied_if_its_record_has_no_room_for_it(enforced: Host) -> None:
    agent_id = enforced.work()
    enforced.edit(agent_id, metadata={"filled": "x" * ((1 << 20) - 3_000)})
    assert unsure(asked(enforced, "a", "WebSearch", GAIA_SESSIONS_LIMITS_SEARCHES="1"))
    assert asked(enforced, "b", **DOCUMENT) is None


@table("value", ['"\\u0000"', '"\\ud800"', "[" * 100 + "]" * 100, "1e999", '{"a":1,"a":2}', f'"{"x" * (9 << 20)}"'])
def test_no_tool_input_lifts_the_limits_of_an_agent(enforced: Host, value: str) -> None:
    data = json.dumps(use(enforced, "a"), separators=(",", ":")).encode()
    told = data.replace(b'{"command":"ls"}', f'{{"command":{value}}}'.encode())
    assert told != data
    for settings, word in (({"GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS": "Bash"}, b'"deny"'), ({}, b"")):
        ran = enforced.run("every_event", told, settings)
        assert (ran.code, ran.err, word in ran.out, bool(ran.out)) == (0, b"", True, bool(word))


def unreadable(payload: dict[str, Any], **keys: str) -> bytes:
    """``payload`` with a NUL character at the end of these texts of its tool input."""
    told = {**payload, "tool_input": {**payload["tool_input"], **{key: f"{text} \0" for key, text in keys.items()}}}
    return json.dumps(told, separators=(",", ":")).encode()


def test_an_agent_with_an_unreadable_tool_input_has_the_tools_of_its_parent(enforced: Host) -> None:
    above = gaia_sessions.Sessions(str(enforced.root)).create(tools=["Read"])
    enforced.begin(settings={"GAIA_SESSION_ID": above})
    ran = enforced.run("every_event", unreadable(use(enforced, "a"), command="ls"))
    assert f"Bash is not among the tools of {above}.".encode() in ran.out, "its start had waited until then"


@table("agent", [None, "a1"])
def test_the_guard_denies_a_task_that_cannot_be_read(enforced: Host, agent: str | None) -> None:
    payload = {key: value for key, value in enforced.delegation().items() if key not in ("tool_input", "tool_use_id")}
    payload |= {} if agent is None else {"agent_id": agent, "agent_type": "Explore"}
    payload |= {"tool_input": enforced.delegation()["tool_input"], "tool_use_id": "t"}
    told = unreadable(payload, prompt="Explain the code")
    ran = enforced.run("every_event", told, {"GAIA_SESSIONS_GUARD_MODE": "block"})
    assert b'"deny"' in ran.out
    assert b"the task cannot be read" in ran.out
    assert enforced.run("every_event", told).out == b""
    other = unreadable({**payload, "tool_name": "SendMessage"}, prompt="Explain the code")
    assert enforced.run("every_event", other, {"GAIA_SESSIONS_GUARD_MODE": "block"}).out == b""


def test_an_agent_that_delegates_to_an_ignored_agent_keeps_its_own_limits(enforced: Host) -> None:
    agent_id = enforced.work()
    payload = {**enforced.delegation("toolu_2"), "agent_id": "a1", "agent_type": "Explore"}
    payload["tool_input"] = {**payload["tool_input"], "subagent_type": "other"}
    settings = {"GAIA_SESSIONS_IGNORE_AGENTS": "other"}
    assert enforced.hear(payload, settings) is None
    gaia_sessions.Sessions(str(enforced.root)).cancel(agent_id)
    assert enforced.hear(payload, settings)["permissionDecision"] == "deny"


def test_the_token_limit_holds_for_tools_used_after_the_session_completed(enforced: Host) -> None:
    agent_id = enforced.work()
    wrote(enforced, ("c0", 64_000, False))
    gaia_sessions.Sessions(str(enforced.root)).update(agent_id, "completed")
    assert "token limit reached" in str(asked(enforced, "next", **DOCUMENT))
    enforced.hear(enforced.event_payload("SessionEnd", reason="other"))
    assert "token limit reached" in str(asked(enforced, "next", **DOCUMENT))


def test_the_limits_follow_the_agent_type_that_the_host_reports(enforced: Host) -> None:
    enforced.work()
    settings = '[limits.tools]\nExplore = ["Read"]\nPlan = ["Bash"]\n'
    (enforced.project / ".claude" / "gaia-sessions.toml").write_text(settings, encoding="utf-8")
    assert asked(enforced, "a", "Read") is None
    told = enforced.hear({**use(enforced, "b", "Read"), "agent_type": "Plan"})
    assert "gives Plan" in told["permissionDecisionReason"]


def test_a_session_that_continues_another_has_the_tools_of_the_earlier_session(enforced: Host) -> None:
    sessions = gaia_sessions.Sessions(str(enforced.root))
    top = sessions.create(tools=["Read", "Grep"])
    earlier = sessions.create(parent_id=top)
    sessions.finalize(earlier, "completed")
    assert sessions.store.read(sessions.create(continues=earlier))["allowed_tools"] == ["Read", "Grep"]
    payload = enforced.delegation("toolu_2")
    payload["tool_input"]["prompt"] = f"[gaia-sessions: resume {earlier}]\nGo on"
    enforced.hear(payload)
    [new] = [record for record in enforced.records().values() if "runs" in record]
    assert (new["continues"], new["allowed_tools"]) == (earlier, ["Read", "Grep"])


@table("name", [*DAMAGES])
@table("whose", ["top", "root"])
@own_host
def test_a_session_that_continues_one_with_unreadable_limits_gets_no_tools(host: Host, whose: str, name: str) -> None:
    host.words = ["--enforce"]
    store = gaia_sessions.Sessions(str(host.root))
    store.create(agent_id="root", tools=["Read"])
    store.create(agent_id="top", parent_id="root")
    store.create(agent_id="ended", parent_id="top")
    store.finalize("ended", "completed")
    host.begin("toolu_1", settings={"GAIA_SESSION_ID": "top"})
    host.hear(host.starting())
    host.hear(host.ending())
    host.hear(
        host.event_payload("PostToolUse", tool_name="Agent", tool_use_id="toolu_1", tool_response={"agentId": "a1"})
    )
    [woken] = [record["agent_id"] for record in host.records().values() if "runs" in record]
    store.finalize(woken, "completed")
    DAMAGES[name](host.root / whose / "state.json")

    payload = host.delegation("toolu_2")
    payload["tool_input"]["prompt"] = "[gaia-sessions: resume ended]\nGo on"
    host.hear(payload)
    host.hear(host.messaging())
    host.hear(host.starting())

    assert unsure(asked(host, "a", "Read"))
    (host.root / whose).rename(host.folder / "away")
    new = {one["continues"]: one for one in host.records().values() if "continues" in one}
    told = {agent_id: (one["allowed_tools"], one.get("parent_id")) for agent_id, one in new.items()}
    assert told == {"ended": ([], None), woken: ([], "top")}
    assert "Read is not among the tools of " in str(asked(host, "b", "Read"))


def test_the_guard_ignores_the_resume_line_of_a_prompt(enforced: Host) -> None:
    payload = enforced.delegation("toolu_2")
    payload["tool_input"]["prompt"] = "[gaia-sessions: resume review-1]\nFind the review notes"
    assert enforced.hear(payload, {"GAIA_SESSIONS_GUARD_MODE": "block"}) is None


def test_an_agent_that_nears_its_budget_at_a_delegation_is_warned_at_its_next_tool(enforced: Host) -> None:
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


@table("told", [b"", b"{", b"[]"])
def test_an_unreadable_payload_is_allowed(enforced: Host, told: bytes) -> None:
    ran = enforced.run("every_event", told)
    assert (ran.code, ran.out) == (0, b"")


@table("before", ["agent_type\0", "\ud800", "\ufeff"])
def test_a_sub_agent_whose_type_is_unreadable_is_denied_its_tool(enforced: Host, before: str) -> None:
    """The text before the tool name is unreadable, so nobody knows which limits apply."""
    payload = {"agent_type": before, **enforced.event_payload("PreToolUse", agent_id="a1", tool_name="Bash")}
    told = json.dumps(payload).encode() if before != "\ufeff" else b"\xef\xbb\xbf" + json.dumps(payload).encode()
    ran = enforced.run("every_event", told)
    assert (ran.code, b'"permissionDecision": "deny"' in ran.out) == (0, True)
    main = {key: value for key, value in payload.items() if key != "agent_id"}
    assert enforced.run("every_event", json.dumps(main).encode()).out == b""


class EnforcedLife(Life):
    """A life with ``--enforce``. The files of agents are complete from the start and newer than it."""

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
    """A captured transcript line in the form of its client, with a time later than now."""
    entry = json.loads(line)
    entry |= {"timestamp": at()} if "timestamp" in entry else {}
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.mark.parametrize("settings", [{}, DOCUMENT], ids=["default", "document"])
@of_captures(*CAPTURES)
def test_no_tool_of_a_captured_agent_is_denied(
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


def test_the_shell_command_drops_main_agent_payloads_and_passes_sub_agent_payloads_unchanged(tmp_path: Path) -> None:
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
