"""Clients as commands: their arguments and stdin, and how their captured output is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.errors import UsageError
from gaia_sessions.hosts.clients import BY_NAME, PRESETS, client_class, preset_for
from tests.table import table

if TYPE_CHECKING:
    from gaia_sessions.hosts.clients import Client

DATA = Path(__file__).parents[1] / "data" / "clients"
VERSIONS = ("2.1.197", "2.1.330")
ID = "01a218c0-d312-7172-bb7f-bc3b5a1fef36"


def captured(name: str) -> bytes:
    return (DATA / f"{name}.jsonl").read_bytes()


def parts(name: str, *marks: bytes) -> list[bytes]:
    """The captured output, cut after the first line with each of the ``marks`` in turn."""
    rest, found = captured(name).splitlines(keepends=True), []
    for mark in marks:
        place = next(number for number, line in enumerate(rest, 1) if mark in line)
        found.append(b"".join(rest[:place]))
        rest = rest[place:]
    return [*found, b"".join(rest)]


def begun(preset: str = "claude", conversation_id: str | None = None, folder: Path = Path("/nowhere")) -> Client:
    environment = {"CLAUDE_CONFIG_DIR": str(folder), "CODEX_HOME": str(folder)}
    return client_class(preset)("Do it.", environment, conversation_id)


def shown(client: Client, data: bytes, size: int | None = None) -> dict[int, str]:
    """What is shown on each stream if ``data`` comes in pieces of ``size``."""
    streams = {1: b"", 2: b""}
    step = size or len(data)
    for start in range(0, len(data), step):
        for number, part in client.hear(data[start : start + step]):
            assert part, "an empty part would end the stream"
            streams[number] += part
    return {number: part.decode() for number, part in streams.items()}


def lines(*told: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in told)


RESULT = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "All done."}
UNKNOWN = {
    **RESULT,
    "subtype": "error_during_execution",
    "is_error": True,
    "num_turns": 0,
    "result": None,
    "errors": [f"No conversation found with session ID: {ID}"],
}


@table("size", [1, 7, 4096, None])
@table("version", VERSIONS)
def test_texts_and_calls_are_shown_and_the_clients_own_figures_are_counted(version: str, size: int | None) -> None:
    client = begun()
    streams = shown(client, captured(f"claude-{version}-agents"), size)

    is_late = version == "2.1.330"  # both agents run in the background, and each return makes a turn
    final = "Final: both done."
    assert streams[1] == "Main says alpha done.\n" + f"{final}\n" * (2 if is_late else 0)
    calls = ["Agent: Job alpha", "Agent: Job beta", "Bash: echo hi", "Bash: python3 -c 'import time; time.sleep(4)'"]
    assert sorted(streams[2].splitlines()) == sorted(f"  {'' if 'Agent' in call else '  '}{call}" for call in calls)
    requests, output = (4, 11 + 13 + 17 + 17) if is_late else (2, 11 + 13)
    figures = client.figures()
    assert figures["consumed"] == {
        "input_tokens": 100 * requests,
        "output_tokens": output,
        "cache_read_tokens": 0,
        "cache_creation_tokens": 0,
        "total_tokens": 100 * requests + output,
        "tool_uses": 2,
    }
    assert figures["model"].startswith("claude-")
    assert client.message == (final if is_late else "Main says alpha done.")
    assert (client.problem, client.is_at_rest, client.is_told_all, client.is_refused) == (None, True, True, False)
    # For each request of an agent, one line has the input and one token of output; the last request may lack it.
    assert client.tokens_of_agents() == (4 if is_late else 2) * 101


@table("version", VERSIONS)
def test_a_client_that_is_told_to_end_is_asked_for_a_report(version: str) -> None:
    client = begun()
    assert json.loads(client.to_say())["message"]["content"] == "Do it."
    before, ended, report = parts(f"claude-{version}-interrupted", b'"message_delta"', b'"error_during_execution"')

    shown(client, before)
    assert client.asks_to_end(is_out_of_tokens=True)
    assert json.loads(client.to_say())["request"] == {"subtype": "interrupt"}
    assert shown(client, ended)[1] == ""
    assert "Report now" in json.loads(client.to_say())["message"]["content"]
    assert not client.is_told_all
    assert shown(client, report)[1] == "Report: half done.\n"
    assert (client.message, client.problem, client.is_at_rest) == ("Report: half done.", None, True)
    assert (client.is_told_all, client.must_be_killed, client.to_say()) == (True, False, b"")
    assert not client.asks_to_end(is_out_of_tokens=True), "its stdin is closed"


@table("version", VERSIONS)
def test_a_client_out_of_tokens_during_a_request_is_not_asked_for_a_report(version: str) -> None:
    client = begun()
    shown(client, parts(f"claude-{version}-interrupted", b'"status":"requesting"')[0])

    assert client.asks_to_end(is_out_of_tokens=True)
    client.to_say()
    failed = {**RESULT, "subtype": "error_during_execution", "is_error": True, "result": None, "errors": ["ended"]}
    shown(client, lines(failed))

    assert (client.to_say(), client.is_told_all, client.problem) == (b"", True, "ended")


@table("version", VERSIONS)
def test_without_a_result_the_last_text_of_the_client_is_its_message(version: str) -> None:
    client = begun()
    shown(client, parts(f"claude-{version}-interrupted", b'"message_delta"')[0])

    assert (client.message, client.problem, client.is_at_rest) == ("Step.", "it ended without a result", False)


@table("version", VERSIONS)
def test_an_interrupted_client_is_at_rest_and_has_failed(version: str) -> None:
    client = begun()
    ended, _ = parts(f"claude-{version}-interrupted", b'"error_during_execution"')
    assert "  failed: The user doesn't want to proceed" in shown(client, ended)[2]
    assert (client.message, client.is_at_rest, client.problem is None) == ("Step.", True, False)


def test_a_failure_of_the_api_is_shown_at_once() -> None:
    told = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
    assert shown(begun(), lines(told))[2] == "  the API failed (401, authentication_failed); the client tries again\n"


def test_a_client_that_may_not_report_is_not_asked_to_end() -> None:
    client = begun()
    client.may_report = False
    assert not client.asks_to_end(is_out_of_tokens=False)


def test_a_new_request_after_a_result_needs_a_new_result() -> None:
    client = begun()
    asked = {"type": "system", "subtype": "status", "status": "requesting"}
    shown(client, lines(RESULT, asked))
    assert (client.is_at_rest, client.problem) == (False, "it ended without a result")

    shown(client, lines({**RESULT, "result": "Again."}))
    assert (client.is_at_rest, client.problem, client.message) == (True, None, "Again.")


def test_a_client_told_to_end_too_early_is_interrupted_at_its_first_request() -> None:
    client = begun()
    client.to_say()
    assert (client.asks_to_end(is_out_of_tokens=False), client.to_say()) == (True, b"")

    asked = lines({"type": "system", "subtype": "status", "status": "requesting"})
    shown(client, asked)
    assert b"interrupt" in client.to_say()
    shown(client, asked)
    assert client.to_say() == b""


def test_only_an_unknown_conversation_counts_as_refused() -> None:
    for conversation_id, told, is_refused in ((ID, UNKNOWN, True), (None, UNKNOWN, False), (ID, RESULT, False)):
        client = begun(conversation_id=conversation_id)
        shown(client, lines(told))
        assert client.is_refused == is_refused
    assert not begun(conversation_id=ID).is_refused


def test_a_line_that_is_not_json_is_shown_and_a_too_long_line_is_not() -> None:
    client = begun()
    huge = lines({"type": "user", "message": {"content": "x" * (8 << 20)}})

    assert shown(client, b"2.1.330 (Claude Code)\n\n" + huge + lines(RESULT), 1 << 16)[1] == "2.1.330 (Claude Code)\n"
    assert client.message == "All done."


def test_half_a_surrogate_pair_does_not_lose_a_line() -> None:
    client = begun()
    delta = {"type": "content_block_delta", "delta": {"text": "half \ud83d"}}
    told = lines({"type": "stream_event", "event": delta}, {**RESULT, "result": "All \ud83d done."})

    assert shown(client, b'{"type": "cut\n' + told)[1] == "half ?"
    assert (client.message, client.problem) == ("All \ud83d done.", None)


def test_the_tokens_of_sub_agents_are_read_from_their_transcripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    client = begun(folder=tmp_path)
    folder = tmp_path / "projects" / "-project" / str(client.conversation_id) / "subagents"
    folder.mkdir(parents=True)
    for agent, output in (("a1", 300), ("b2", 400)):
        usage = {"input_tokens": 100, "output_tokens": output, "cache_read_input_tokens": 1000}
        message = {"id": "m", "model": "claude-opus", "usage": usage, "content": []}
        (folder / f"agent-{agent}.jsonl").write_bytes(lines({"type": "assistant", "message": message}))

    assert client.tokens_of_agents() == 900
    with (folder / "agent-a1.jsonl").open("ab") as file:
        again = {"id": "n", "model": "claude-opus", "usage": {"output_tokens": 5}, "content": []}
        file.write(lines({"type": "assistant", "message": again}))
    assert client.tokens_of_agents() == 905
    assert begun("claude", client.conversation_id, tmp_path).tokens_of_agents() == 0, "those were of an earlier run"


def test_a_resumed_codex_counts_only_tokens_since_it_was_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    folder = tmp_path / "sessions" / "2026" / "11" / "26"
    folder.mkdir(parents=True)
    rollout = folder / f"rollout-2026-11-26T16-46-59-{ID}.jsonl"

    def count(used: int, cached: int, output: int) -> bytes:
        total = {"input_tokens": used, "cached_input_tokens": cached, "output_tokens": output}
        return lines({"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}}})

    rollout.write_bytes(count(1000, 400, 50))
    client = begun("codex", ID, tmp_path)
    assert client.figures()["consumed"]["total_tokens"] == 0
    with rollout.open("ab") as file:
        file.write(count(3000, 1400, 80))
    told: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": ID},
        {"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "ls\n-l"}},
        {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "All done."}},
        {"type": "turn.completed", "usage": {}},
    ]

    assert shown(client, lines(*told), 5) == {1: "All done.\n", 2: "  command_execution: ls -l\n"}
    assert client.figures()["consumed"] == {
        "input_tokens": 1000,
        "output_tokens": 30,
        "cache_read_tokens": 1000,
        "total_tokens": 2030,
        "tool_uses": 1,
    }
    assert (client.message, client.problem, client.is_at_rest, client.is_refused) == ("All done.", None, True, False)
    assert not begun("codex", ID, tmp_path).is_refused, "its rollout is there: something else is wrong"
    rollout.unlink()
    assert begun("codex", ID, tmp_path).is_refused
    assert begun("codex").words(["codex", "exec", "--oss", "--"]) == ["codex", "exec", "--oss", "--json"]
    shown(client, lines({"type": "thread.started", "thread_id": "--last"}))
    assert client.conversation_id is None, "an ID becomes a word of a command"


USED = {"input_tokens": 3000, "cached_input_tokens": 1400, "output_tokens": 80, "reasoning_output_tokens": 7}
CONSUMED = {
    "input_tokens": 1600,
    "output_tokens": 80,
    "cache_read_tokens": 1400,
    "total_tokens": 3080,
    "tool_uses": 0,
}


@table(
    ("usage", "consumed"),
    [
        (USED, CONSUMED),
        ({"input_tokens": 100}, {"input_tokens": 100, "total_tokens": 100, "tool_uses": 0}),
        ({"input_tokens": 5, "cached_input_tokens": 9, "output_tokens": -1}, None),
        ({"input_tokens": "3000", "output_tokens": True}, {}),
        ({}, {}),
        ("", {}),
        ([3000], {}),
    ],
)
def test_codex_without_a_rollout_file_reports_its_tokens_at_the_end_of_the_turn(usage: Any, consumed: Any) -> None:
    client = begun("codex")
    shown(client, lines({"type": "thread.started", "thread_id": ID}, {"type": "turn.started"}))
    assert client.figures() == {}

    shown(client, lines({"type": "turn.completed", "usage": usage}))

    if consumed is None:  # more cached tokens than input tokens
        consumed = {"input_tokens": 0, "cache_read_tokens": 9, "total_tokens": 9, "tool_uses": 0}
    assert client.figures().get("consumed", {}) == consumed
    assert client.is_at_rest


def test_codex_counts_the_larger_figures_of_rollout_file_and_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    folder = tmp_path / "sessions" / "2026" / "11" / "26"
    folder.mkdir(parents=True)
    rollout = folder / f"rollout-2026-11-26T16-46-59-{ID}.jsonl"
    info = {"total_token_usage": {"input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 50}}
    rollout.write_bytes(lines({"type": "event_msg", "payload": {"type": "token_count", "info": info}}))
    client = begun("codex", ID, tmp_path)

    shown(client, lines({"type": "turn.completed", "usage": USED}))
    more = client.figures()["consumed"]
    assert more == {
        "input_tokens": 1000,
        "output_tokens": 30,
        "cache_read_tokens": 1000,
        "total_tokens": 2030,
        "tool_uses": 0,
    }
    shown(client, lines({"type": "turn.completed", "usage": {"input_tokens": 1}}))
    assert client.figures()["consumed"]["total_tokens"] == 0, "the file knows more"


NAMED = [
    (["claude"], "claude"),
    (["/usr/bin/claude", "--model", "opus"], "claude"),
    (["codex", "exec", "-m", "o3"], "codex"),
    (["claude.sh"], None),
    (["pytest", "-p", "x"], None),
]


@table(("words", "preset"), NAMED)
def test_a_preset_is_chosen_by_the_name_of_the_program(words: list[str], preset: str | None) -> None:
    assert preset_for(words, BY_NAME) == preset
    assert preset_for(words, None) is None
    assert {preset_for([words[0]], named) for named in PRESETS} == {*PRESETS}


TAKEN = {
    "claude": [
        "--allowedTools Bash Edit",
        "--allowedTools Bash --model opus",
        "--permission-mode acceptEdits --strict-mcp-config",
        "--tools=Read,Bash -n name",
        "--append-system-prompt text --add-dir a b c",
        "--an-option-of-tomorrow value",
        "-d api",
        "--",
    ],
    "codex": ["exec -s read-only", "e -m o3 --oss", "-i a.png b.png", "-c model=o3 --skip-git-repo-check"],
}
REFUSED = {
    "claude": {
        "-p": "-p",
        "--model opus -p": "-p",
        "-pc": "-p",
        "--resume": "--resume",
        f"--resume={ID}": "--resume",
        f"--session-id {ID}": "--session-id",
        "--input-format text": "--input-format",
        "--output-format=json": "--output-format",
        "--continue": "--continue",
        "say": "say",
        "--model opus say": "say",
        "--verbose say": "say",
        "--permission-mode=plan say": "say",
        "-dapi say": "say",
        "--allowedTools Bash -- say": "say",
    },
    "codex": {
        "--json": "--json",
        "exec say": "say",
        "-mo3 say": "say",
        "resume": "resume",
        "-m o3 say": "say",
        "--last": "--last",
    },
}


@table(("preset", "typed"), [(name, one) for name, found in TAKEN.items() for one in found])
def test_the_users_options_are_passed_on_to_the_client(preset: str, typed: str) -> None:
    words = [f"/bin/{preset}", *typed.split()]
    assert preset_for(words, BY_NAME) == preset
    given = begun(preset).words(words)
    own = [word for word in words[1:] if word not in {"exec", "e"}]
    assert (given[0], [word for word in given if word in own]) == (words[0], own)
    resumed = begun(preset, ID).words(words)
    assert ID in resumed
    assert ("resume" in resumed) == (preset == "codex")


def test_claude_limits_tools_by_its_own_options_and_codex_refuses_to() -> None:
    with_tools = client_class("claude").with_tools
    words = ["/bin/claude", "--model", "m"]
    assert with_tools(words, None, []) == words
    assert with_tools(words, ["Read", "Grep"], []) == ["/bin/claude", "--tools=Read,Grep", "--model", "m"]
    assert with_tools(words, None, ["Bash"]) == ["/bin/claude", "--disallowedTools=Bash", "--model", "m"]
    assert with_tools(words, ["A"], ["B"])[1:3] == ["--tools=A", "--disallowedTools=B"]
    for own in (["--tools", "Bash"], ["--tools=Bash"]):
        with pytest.raises(UsageError, match="the command has --tools"):
            with_tools(["claude", *own], ["Read"], [])
        assert with_tools(["claude", *own], None, []) == ["claude", *own]
    assert client_class("codex").with_tools(["codex"], None, ["Bash"]) == ["codex"]
    with pytest.raises(UsageError, match="codex cannot limit tools"):
        client_class("codex").with_tools(["codex"], ["Read"], [])


@table(("preset", "typed"), [(name, one) for name, found in REFUSED.items() for one in found])
def test_options_of_the_preset_and_a_prompt_are_refused(preset: str, typed: str) -> None:
    with pytest.raises(UsageError) as refused:
        preset_for([preset, *typed.split()], BY_NAME)

    assert (refused.value.exit_code, "--no-preset" in refused.value.hint) == (2, True)
    assert REFUSED[preset][typed] in str(refused.value)
    assert preset_for([preset, *typed.split()], None) is None


@pytest.mark.parametrize("preset", ["claude", "codex"])
def test_links_in_the_folder_of_a_client_are_not_walked_in_circles(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two such links would make 2 ** 40 paths.
    monkeypatch.setenv("CLAUDE_CONFIG_DIR" if preset == "claude" else "CODEX_HOME", str(tmp_path))
    below = ("projects", "-p", ID, "subagents") if preset == "claude" else ("sessions", "2026", "11", "26")
    folder = tmp_path.joinpath(*below)
    folder.mkdir(parents=True)
    for above in (folder, folder.parent):
        for name in ("one", "two"):
            (above / name).symlink_to(".")
    client = begun(preset, ID, tmp_path)
    assert (client.tokens_of_agents(), client.figures()) == (0, {})


def test_impossible_figures_of_a_client_are_made_to_fit_into_a_record() -> None:
    client = begun()
    usage = {"input_tokens": (1 << 53) - 1, "output_tokens": 1}
    for number in range(1100):
        message = {"id": f"m{number}", "model": "a\ud800", "usage": usage}
        begins = {"type": "stream_event", "event": {"type": "message_start", "message": message}}
        shown(client, lines(begins))
    found = client.figures()
    assert found["consumed"]["input_tokens"] == found["consumed"]["total_tokens"] == (1 << 63) - 1
    assert found["model"] == r"a\ud800"
