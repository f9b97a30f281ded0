"""The tokens of an agent: the usage that the host reported, and the sum of its transcript."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.hosts import consumption
from gaia_sessions.hosts.claude_code.reported_usage import figures_of_notification
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.ids import resume_line
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.hook.test_lives import Life
from tests.table import table

if TYPE_CHECKING:
    from tests.hook.conftest import Host

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
VERSIONS = ["claude-code-2.1.197", "claude-code-2.1.330"]

REQUESTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "total_tokens", "tool_uses")
"""The figures of several requests, in the order of the numbers below."""

ALPHA = dict(zip(REQUESTS, (3006, 306, 9006, 66, 12384, 2), strict=True))
BETA = dict(zip(REQUESTS, (2900, 1100, 6900, 940, 11840, 1), strict=True))
"""The sums of three and of two requests of the scripted API."""


def lived(version: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, times: int = 1) -> Any:
    """The sessions by purpose after a capture with old dates, and its payloads."""
    text = (HOSTS / version / f"{name}.jsonl").read_text(encoding="utf-8")
    capture = tmp_path / f"{name}.jsonl"
    capture.write_text(re.sub(r"2026-11-2\dT", "2020-11-22T", text), encoding="utf-8")
    life = Life(tmp_path / f"life-{times}", monkeypatch)
    lines = life.lines(capture)
    life.live([line for line in lines for _ in range(times)])
    assert life.errors == []
    return {record["purpose"]: record for record in life.records()}, [line.payload for line in lines]


def response_of(payloads: list[Any], purpose: str) -> Any:
    """The response of the delegation with this description."""
    [found] = [
        payload["tool_response"]
        for payload in payloads
        if payload["hook_event_name"] == "PostToolUse" and payload.get("tool_input", {}).get("description") == purpose
    ]
    return found


def notified_figures(payloads: list[Any]) -> list[int]:
    """The tokens, tool uses and duration in the last notification."""
    prompt = [payload["prompt"] for payload in payloads if "<task-notification>" in payload.get("prompt", "")][-1]
    names = ("subagent_tokens", "tool_uses", "duration_ms")
    return [int(re.findall(rf"<{name}>(\d+)<", prompt)[-1]) for name in names]


@pytest.mark.parametrize("times", [1, 2], ids=["in order", "doubled"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_records_the_reported_usage_and_the_sum_of_its_transcript(
    version: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, payloads = lived(version, "usage", tmp_path, monkeypatch, times=times)
    returned = response_of(payloads, "Job alpha")
    [alpha], [beta] = records["Job alpha"]["runs"], records["Job beta"]["runs"]

    assert alpha["usage"] == {
        "input_tokens": returned["usage"]["input_tokens"],
        "output_tokens": returned["usage"]["output_tokens"],
        "cache_read_tokens": returned["usage"]["cache_read_input_tokens"],
        "cache_creation_tokens": returned["usage"]["cache_creation_input_tokens"],
        "total_tokens": returned["totalTokens"],
        "tool_uses": returned["totalToolUseCount"],
        "duration_ms": returned["totalDurationMs"],
    }
    assert beta["usage"] == dict(
        zip(("total_tokens", "tool_uses", "duration_ms"), notified_figures(payloads), strict=True)
    )
    assert (alpha["consumed"], beta["consumed"]) == (ALPHA, BETA)
    assert (records["Job alpha"]["usage"], records["Job beta"]["usage"]) == (ALPHA, BETA)
    assert alpha["model"] == beta["model"] == returned["resolvedModel"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_workflow_records_the_usage_of_its_notification_and_each_agent_its_own(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, payloads = lived(version, "workflow", tmp_path, monkeypatch)
    [workflow], [alpha] = records["two agents"]["runs"], records["alpha"]["runs"]

    assert list(workflow["usage"].values()) == notified_figures(payloads)
    assert "consumed" not in workflow
    assert "usage" not in records["two agents"]
    assert (alpha["usage"]["total_tokens"], alpha["usage"]["tool_uses"]) == (4027, 1)
    assert (
        records["alpha"]["usage"]
        == alpha["consumed"]
        == dict(zip(REQUESTS, (2003, 203, 6003, 43, 8252, 1), strict=True))
    )
    assert records["bad"]["runs"][0]["usage"]["total_tokens"] == 0
    assert "consumed" not in records["bad"]["runs"][0]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_names_the_worktree_that_its_host_made_for_it(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the return of a foreground agent, and from the notification of a background agent."""
    records, _ = lived(version, "worktree-changed", tmp_path, monkeypatch)

    for record in records.values():
        name = f"agent-{record['runs'][0]['host_agent_id']}"
        [path, branch] = record["runs"][0]["worktree"].values()
        assert (path.endswith(f"/project/.claude/worktrees/{name}"), branch) == (True, f"worktree-{name}")
    assert len(records) == 2


def message(number: int, at: str, *, output: object = 1, model: str = "m-1", tool: str | None = None) -> str:
    """A line of a transcript."""
    content = [{"type": "tool_use", "id": tool}] if tool else [{"type": "text", "text": "so"}]
    usage = {"input_tokens": 10, "output_tokens": output}
    told = {"id": f"msg_{number}", "model": model, "usage": usage, "content": content}
    return json.dumps({"type": "assistant", "timestamp": at, "message": told}) + "\n"


@pytest.fixture
def transcript(host: Host) -> Path:
    """The transcript of the agent ``a1``, which does not exist yet."""
    host.work()
    return Path(host.ending()["agent_transcript_path"])


def moment(seconds: float = 0) -> str:
    return format_time(utc_now() + timedelta(seconds=seconds))[:23] + "Z"


def consumed_by(host: Host) -> list[Any]:
    """The usage of each session, oldest first."""
    records = sorted(host.records().values(), key=lambda record: str(record["created_at"]))
    return [record.get("usage") for record in records]


def used(inputs: int, outputs: int, tools: int = 0) -> dict[str, int]:
    return {"input_tokens": inputs, "output_tokens": outputs, "total_tokens": inputs + outputs, "tool_uses": tools}


def test_a_message_counts_once_by_its_last_line_and_each_tool_call_once(host: Host, transcript: Path) -> None:
    lines = [message(1, moment(), output=1), message(1, moment(), output=7, tool="t1"), message(1, moment(), output=7)]
    transcript.write_text("".join([*lines, message(2, moment(), tool="t2"), message(2, moment(), tool="t2")]))
    host.hear(host.ending())
    host.hear(host.returning())

    assert consumed_by(host) == [used(20, 8, 2)]


def test_a_last_message_that_is_written_after_the_stop_counts_at_the_return(host: Host, transcript: Path) -> None:
    lines = message(1, moment()) + message(2, moment())
    transcript.write_text(lines[: lines.index("\n") + 40], encoding="utf-8")
    host.hear(host.ending())
    assert consumed_by(host) == [None]
    transcript.write_text(lines, encoding="utf-8")
    host.hear(host.returning())

    assert consumed_by(host) == [used(20, 2)]


def test_each_session_of_a_woken_agent_counts_only_its_own_usage(host: Host, transcript: Path) -> None:
    transcript.write_text(message(1, moment()), encoding="utf-8")
    host.hear(host.ending())
    host.hear(host.returning())
    host.hear(host.starting())
    time.sleep(0.002)  # transcripts have milliseconds; a message before the start belongs to the run before
    with transcript.open("a", encoding="utf-8") as file:
        file.write(message(2, moment(), output=5))
    host.hear(host.ending())
    host.hear(host.notifying(tool_use_id="toolu_message"))
    host.hear(host.returning())  # a late copy

    assert consumed_by(host) == [used(10, 1), used(10, 5)]
    total = Sessions(str(host.root)).usage_by_agent()["total"]
    assert (total["sessions"], total.get("tokens")) == (2, 26)


def test_reconcile_counts_once_what_no_hook_has_counted(host: Host, transcript: Path) -> None:
    transcript.write_text(message(1, moment()), encoding="utf-8")
    host.hear(host.ending())  # then the client is killed
    sessions = Sessions(str(host.root))
    [agent_id] = host.records()

    dry = sessions.reconcile(dry_run=True)["counted"]
    assert consumed_by(host) == [None]
    assert dry == sessions.reconcile()["counted"] == [{"agent_id": agent_id, "run": 1}]
    assert consumed_by(host) == [used(10, 1)]
    assert sessions.reconcile()["counted"] == []


@pytest.mark.parametrize("how", ["a resume line", "a message to its agent"])
def test_the_usage_of_a_crashed_run_is_counted_when_its_session_resumes(host: Host, transcript: Path, how: str) -> None:
    transcript.write_text(message(1, moment()) + message(2, moment()), encoding="utf-8")
    [agent_id] = host.records()
    [run] = host.records()[agent_id]["runs"]
    gone = {**(describe(os.getpid()) or {}), "pid": 2**22 + 1}  # no pid is as large
    host.edit(agent_id, runs=[{**run, "host_process": gone}], phase="planning")
    time.sleep(0.002)  # see above

    agent, call = ("a2", "toolu_2") if how == "a resume line" else ("a1", "toolu_1")
    if how == "a resume line":
        asked = {"description": "go on", "prompt": resume_line(agent_id), "subagent_type": "Explore"}
        host.begin(call, agent, tool_input=asked)
    host.hear(host.starting(agent))
    assert consumed_by(host) == [used(20, 2)], "before the next run is over"
    time.sleep(0.002)
    with Path(host.ending(agent)["agent_transcript_path"]).open("a", encoding="utf-8") as file:
        file.write(message(3, moment(), output=5))
    host.hear(host.ending(agent))
    host.hear(host.returning(call, agent))

    assert consumed_by(host) == [used(30, 7)]
    total = Sessions(str(host.root)).usage_by_agent()["total"]
    assert (total["sessions"], total.get("tokens"), total["unreported"]) == (1, 37, 0)
    assert Sessions(str(host.root)).reconcile()["counted"] == []


def test_counting_a_transcript_stops_when_the_time_is_over(talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_text(message(1, moment()) * 3, encoding="utf-8")
    asked = iter([False, False, True])

    run: Any = {"host": "claude-code", "transcript_path": str(path)}
    assert consumption(run, None, None, lambda: next(asked)) is None
    assert consumption(run, None, None, lambda: False) == {"consumed": used(10, 1), "model": "m-1"}


def test_a_transcript_that_grows_while_it_is_read_counts_to_its_first_length(talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_text(message(1, moment()), encoding="utf-8")
    reads = 0

    def is_late_and_writes_on() -> bool:
        nonlocal reads
        reads += 1
        with path.open("a", encoding="utf-8") as file:
            file.write(message(2, moment()))
        return reads > 9

    run: Any = {"host": "claude-code", "transcript_path": str(path)}
    assert consumption(run, None, None, is_late_and_writes_on) == {"consumed": used(10, 1), "model": "m-1"}


def test_a_transcript_line_that_is_too_long_leaves_the_sum_unknown(talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_text(message(1, "") + message(2, "")[:-2] + " " * (2 << 20) + "}\n", encoding="utf-8")

    assert consumption({"host": "claude-code", "transcript_path": str(path)}, None, None, lambda: False) is None


NO_FIGURES: dict[str, Any] = {
    "nothing": b"",
    "no JSON": b'{"type": "assistant", "usage"\n\0\xff"usage""assistant"\n',
    "no objects": b'["assistant", "usage"]\n{"type": "assistant", "message": "usage"}\n',
    "no ids": b'{"type": "assistant", "message": {"model": "m", "usage": {"input_tokens": 5}}}\n',
    "an error of the client": message(1, "", model="<synthetic>").encode(),
    "a person's words": b'{"type": "user", "message": {"id": "m", "model": "m", "usage": "assistant"}}\n',
}


@table("content", NO_FIGURES.values())
def test_a_transcript_without_figures_gives_no_usage(content: bytes, talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_bytes(content)

    assert consumption({"host": "claude-code", "transcript_path": str(path)}, None, None, lambda: False) is None


@table("figure", [-1, True, 1.5, "7", None, 1 << 60, [1]])
def test_an_invalid_figure_is_left_out_of_the_sum(figure: object, talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_text(message(1, "", output=figure), encoding="utf-8")

    counted: Any = consumption({"host": "claude-code", "transcript_path": str(path)}, None, None, lambda: False)
    assert counted["consumed"] == {"input_tokens": 10, "total_tokens": 10, "tool_uses": 0}


@table("name", ["codex", "gemini-cli", "qwen-code", "nobody", None])
def test_a_transcript_of_a_host_with_an_unknown_format_is_not_counted(name: str | None, talks: Path) -> None:
    path = talks / "a.jsonl"
    path.write_text(message(1, moment()), encoding="utf-8")
    run: Any = {"transcript_path": str(path), **({"host": name} if name else {})}

    assert consumption(run, None, None, lambda: False) is None


WORDS = "<result>It used <usage><subagent_tokens>9</subagent_tokens></usage></result>\n"
NOTIFIED: dict[str, tuple[str, dict[str, object]]] = {
    "words of the agent": (WORDS, {}),
    "figures behind its words": (f"{WORDS}<usage><subagent_tokens>5</subagent_tokens></usage>", {"total_tokens": 5}),
    "no digits": ("<usage><subagent_tokens>-5</subagent_tokens><tool_uses>٣</tool_uses></usage>", {}),
    "none": ("<usage></usage>", {}),
}


@table(("text", "figures"), NOTIFIED.values())
def test_figures_come_from_the_notification_and_not_from_the_agents_words(
    text: str, figures: dict[str, object]
) -> None:
    assert figures_of_notification(text) == ({"usage": figures} if figures else {})
