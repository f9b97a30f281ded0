"""``transcript``: it adds messages and shows them, without control characters as text and unchanged as JSON."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.cli.main import main
from gaia_sessions.cli.render.words import local_time
from gaia_sessions.errors import BadArgument
from gaia_sessions.session.transcript import new_message
from gaia_sessions.store.file_store import FileStore
from tests.cli.conftest import fresh_table
from tests.table import table
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


def test_messages_are_added_and_shown_with_their_whole_text(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    assert gaia("transcript", "a", "--append", "user", "look:\n    deep \x1b[31m\u202ered").answer == [
        "a: message 1 of user, turn 1"
    ]
    called = Sessions(root).add_message("a", "tool", "", tool_name="Bash", tool_call_id="toolu_1", tokens=1)

    first, second = (local_time(message["timestamp"]) for message in gaia("transcript", "a", "--json").json)
    assert gaia("transcript", "a").lines == [
        f"1  {first}  user, turn 1",
        "  look:",
        "      deep  [31mred",
        f"2  {second}  tool, turn 1, Bash, toolu_1, 1 token",
    ]
    assert (called["seq"], called["turn"]) == (2, 1)


def test_transcript_json_is_an_array_of_the_stored_messages(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    added = [gaia("transcript", "a", "--append", role, role, "--json").json for role in ("system", "user", "assistant")]

    assert gaia("transcript", "a", "--json").json == added == list(Sessions(root).messages("a"))
    assert [message["seq"] for message in added] == [1, 2, 3]
    assert list(added[0]) == ["seq", "turn", "role", "content", "timestamp"]


def test_recent_and_since_select_the_latest_messages(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    stored = [Sessions(root).add_message("a", "user", str(number)) for number in range(5)]

    assert gaia("transcript", "a", "--recent", "2", "--json").json == stored[-2:]
    assert gaia("transcript", "a", "--recent", "0", "--json").json == []
    assert gaia("transcript", "a", "--recent", "9", "--json").json == stored
    assert gaia("transcript", "a", "--recent", "9" * 30, "--json").json == stored
    assert gaia("transcript", "a", "--since", stored[2]["timestamp"], "--json").json == stored[2:]
    assert gaia("transcript", "a", "--since", stored[2]["timestamp"], "--recent", "1", "--json").json == stored[-1:]
    assert gaia("transcript", "a", "--since", "1h", "--json").json == stored
    assert gaia("transcript", "a", "--since", "2100-01-01").answer == ["No messages"]
    assert list(Sessions(root).messages("a", since=stored[3]["timestamp"], last=5)) == stored[3:]
    with pytest.raises(BadArgument):
        Sessions(root).messages("a", last=-1)


def peak_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The peak memory of the command in bytes, without its imports."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", nowhere)
        assert main(["transcript", "small", *words]) == 0
        tracemalloc.start()
        code = main(["transcript", "large", *words])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert code == 0
    return peak


def test_a_large_transcript_is_never_in_memory_at_once(put: Gaia, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for agent_id, commits in (("small", [1]), ("large", [500] * 2)):
        put(agent_id)
        for count in commits:
            said = [new_message("user", "x" * 2000, datetime.now(UTC)) for _ in range(count)]
            add_messages(FileStore(root, durable=False), agent_id, said)

    assert Path(root, "large", "transcript.jsonl").stat().st_size > 2_000_000
    for words in (("--since", "1h"), ("--since", "1h", "--json"), ("--recent", "9999999")):
        assert peak_of(monkeypatch, *words) < 600_000, words


def of_host(path: Path, agent: str, *texts: str, minute: int = 0) -> dict[str, object]:
    """A run with a transcript at ``path`` that has one of ``texts`` each second."""
    with path.open("w") as file:
        for second, text in enumerate(texts):
            message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
            time = f"2026-01-08T18:{minute:02}:{second % 60:02}.500Z"
            line = {"type": "assistant", "agentId": agent, "timestamp": time, "message": message}
            file.write(json.dumps(line) + "\n")
    return {"run": minute + 1, "host": "claude-code", "host_agent_id": agent, "transcript_path": str(path)}


MARKDOWN = "# Plan\n\n1. *one*\n\n```sh\n\techo  two\n```\n"


def test_a_transcript_path_with_blanks_is_quoted_and_never_wrapped(terminal: Gaia, put: Gaia, talks: Path) -> None:
    folder = talks / "the settings of somebody" / "and a folder below them"
    folder.mkdir(parents=True)
    put("a", runs=[of_host(folder / "1.jsonl", "a1", "Begun.")])

    lines = terminal("transcript", "a", columns=60).lines

    assert lines[:4] == [
        "Note: a has no stored messages; these come from the files of",
        "      its client:",
        f"'{folder}/1.jsonl'",
        "Hint: `gaia-sessions report a` prints only the result",
    ]


def test_a_session_without_stored_messages_shows_those_of_the_hosts_transcripts(
    gaia: Gaia, put: Gaia, talks: Path
) -> None:
    first = of_host(talks / "1.jsonl", "a1", "Begun.", MARKDOWN)
    second = of_host(talks / "2.jsonl", "a2", "\x1b[31mDone.", minute=1)
    put("a", runs=[first, second, {**second, "run": 3}])

    code, out, err = gaia("transcript", "a").all

    times = [local_time(f"2026-01-08T18:0{minute}:0{second}.5Z") for minute, second in ((0, 0), (0, 1), (1, 0))]
    lines = ["# Plan", "", "1. *one*", "", "```sh", "    echo  two", "```"]
    assert (code, out.splitlines()) == (
        0,
        [
            *(f"{times[0]}  assistant", "  Begun.", f"{times[1]}  assistant"),
            *(f"  {line}".rstrip() for line in lines),
            *(f"{times[2]}  assistant", "   [31mDone."),
        ],
    )
    assert err.startswith("Note: a has no stored messages; these come from the files of its client: ")
    assert f"{talks}/1.jsonl, {talks}/2.jsonl" in err
    notice = json.loads(gaia("transcript", "a", "--json").err)
    assert (list(notice), notice["notice"]["code"]) == (["notice"], "of_agent")

    def contents(*words: str) -> list[str]:
        ended = gaia("transcript", "a", "--json", *words)
        found = json.loads(ended.out)
        assert (ended.code, json.loads(ended.err or b"{}")) == (0, notice if found else {})
        assert {tuple(message) for message in found} <= {("role", "content", "timestamp")}
        return [message["content"] for message in found]

    assert contents() == ["Begun.", MARKDOWN, "\x1b[31mDone."]
    assert contents("--recent", "2") == [MARKDOWN, "\x1b[31mDone."]
    assert contents("--recent", "0") == []
    assert contents("--recent", "9" * 30) == contents()
    assert contents("--since", "2026-01-08T18:00:01Z") == contents("--recent", "2")
    assert contents("--since", "2026-01-08T18:00:01Z", "--recent", "1") == ["\x1b[31mDone."]
    assert contents("--since", "2100-01-01") == []

    gaia("transcript", "a", "--append", "user", "mine")
    assert [message["content"] for message in gaia("transcript", "a", "--json").json] == ["mine"]


def test_transcript_names_the_host_files_that_it_cannot_read(gaia: Gaia, put: Gaia, talks: Path) -> None:
    run, gone = of_host(talks / "t.jsonl", "a1", "Done."), f"{talks}/gone.jsonl"
    put("some", runs=[{**run, "transcript_path": gone}, {**run, "run": 2}])
    put("none", runs=[{**run, "transcript_path": gone}])
    put("codex", runs=[{**run, "host": "codex"}])
    put("other", runs=[{**run, "host_agent_id": "a2"}])
    put("bare")
    put("evil", runs=[{**run, "transcript_path": f"{talks}/\x1b]0;mine\x07\u202e.jsonl"}, {**run, "run": 2}])

    ended = gaia("transcript", "some")
    assert (ended.code, b"  Done.\n" in ended.out) == (0, True)
    assert f"skipped: {gone}: cannot read: No such file or directory\n" in ended.err.decode()
    code, out, err = gaia("transcript", "none").all
    assert (code, out, "Note" in err) == (8, "", False)
    assert f"Error: {gone}: cannot read: No such file or directory\n" in err
    assert "Hint: to see what is recorded: gaia-sessions report ID" in err
    for agent_id, problem in (("codex", "transcripts of codex cannot be read"), ("other", "this is the transcript of")):
        code, out, err = gaia("transcript", agent_id).all
        assert (code, out, f"skipped: {talks}/t.jsonl: {problem}" in err) == (0, "No messages\n", True)
    assert gaia("transcript", "bare").answer == ["No messages"]
    assert f"skipped: {talks}/ ]0;mine .jsonl: cannot read" in gaia("transcript", "evil").all[2]


def test_a_large_host_transcript_is_never_in_memory_at_once(
    put: Gaia, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent_id, count in (("small", 1), ("large", 1000)):
        put(agent_id, runs=[of_host(talks / f"{agent_id}.jsonl", "a1", *["x" * 2000] * count)])

    assert Path(talks, "large.jsonl").stat().st_size > 2_000_000
    for words in ((), ("--recent", "9999999"), ("--since", "2026-01-01", "--json")):
        assert peak_of(monkeypatch, *words) < 600_000, words


@fresh_table(
    ("given", "content"),
    [
        (b"one\ntwo\n", "one\ntwo"),
        (b"\n", ""),
        (b"no newline", "no newline"),
        ("ünïcode \x9b".encode(), "ünïcode \x9b"),
    ],
)
def test_a_text_may_come_on_standard_input(gaia: Gaia, put: Gaia, given: bytes, content: str) -> None:
    put("a")

    assert gaia("transcript", "a", "--append", "tool", "-", "--json", stdin=given).json["content"] == content


@table(
    ("given", "problem"),
    [
        (b"", "empty"),
        (b"ok \xff", "not UTF-8 at byte 3"),
        (b"a\0b", "NUL"),
        (b"x" * (1 << 20), "1048576 bytes"),
        ("é".encode() * (1 << 20), "1048576 bytes"),
    ],
)
def test_an_invalid_message_is_refused_and_nothing_is_added(
    gaia: Gaia, put: Gaia, root: str, given: bytes, problem: str
) -> None:
    put("a")
    before = Path(root, "a", "state.json").read_bytes()

    code, out, err = gaia("transcript", "a", "--append", "user", "-", stdin=given).all

    assert (code, out, problem in err) == (7, "", True)
    assert Path(root, "a", "state.json").read_bytes() == before


def test_an_unknown_role_is_refused_with_the_list_of_roles(gaia: Gaia, put: Gaia) -> None:
    put("a")

    error = gaia("transcript", "a", "--append", "human", "hello", "--json").error
    assert (error["code"], error["hint"]) == ("bad_argument", "must be one of system, user, assistant, tool")
    assert gaia("transcript", "a", "--append", "human", "hello").code == 2


def test_an_ended_session_takes_no_message_but_still_shows_its_messages(gaia: Gaia, put: Gaia) -> None:
    put("a")
    gaia("transcript", "a", "--append", "user", "hello")
    gaia("finalize", "a", "completed")

    assert gaia("transcript", "a", "--append", "user", "more", "--json").error["code"] == "final"
    assert gaia("transcript", "a", "--append", "user", "more").code == 4
    assert [message["content"] for message in gaia("transcript", "a", "--json").json] == ["hello"]


def test_transcript_of_a_missing_session_is_an_error(gaia: Gaia, tree: Gaia) -> None:
    before = tree()

    assert gaia("transcript", "nobody", "--json").error["code"] == "not_found"
    assert gaia("transcript", "nobody", "--append", "user", "hello").code == 3
    assert (gaia("transcript", "../x").code, gaia("transcript").code) == (7, 2)
    assert tree() == before


def test_an_unreadable_line_is_reported_and_hides_no_other(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    stored = [gaia("transcript", "a", "--append", "user", text, "--json").json for text in ("one", "two", "three")]
    path = Path(root, "a", "transcript.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"two\n'))

    code, out, err = gaia("transcript", "a", "--json").all

    assert (code, out.count('"seq"')) == (0, 2)
    assert [message["content"] in out for message in stored] == [True, False, True]
    assert err.count("skipped: ") == 2
    assert f"{path} byte " in err


@pytest.mark.parametrize("as_json", [False, True])
def test_messages_newer_than_a_restored_record_are_moved_aside_and_reported(
    gaia: Gaia,
    root: str,
    as_json: bool,  # noqa: FBT001
) -> None:
    gaia("create", "--id", "a")
    gaia("transcript", "a", "--append", "user", "one")
    older = Path(root, "a", "state.json").read_bytes()
    lost = [gaia("transcript", "a", "--append", "user", text, "--json").json for text in ("two", "three")]
    Path(root, "a", "state.json").write_bytes(older)
    aside = Path(root, "a", "transcript-aside.jsonl")

    code, out, err = gaia("transcript", "a", "--append", "user", "new", *["--json"] * as_json).all

    assert (code, "message 4" in out or '"seq":4' in out.replace(" ", "")) == (0, True)
    notice = json.loads(err)["notice"] if as_json else {"message": err, "hint": err}
    assert "the transcript had 2 messages that the record does not include" in notice["message"]
    assert str(aside) in notice["message"].replace("\n", "")
    assert (
        "`gaia-sessions transcript ID --append ROLE TEXT` adds a lost message again; then remove the file"
        in notice["hint"]
    )
    assert [json.loads(line) for line in aside.read_bytes().splitlines()] == lost
    assert gaia("transcript", "a", "--append", "user", "newer").err == b""

    [found] = [check for check in json.loads(gaia("doctor", "--json").out)["checks"] if check["state"] == "problem"]
    assert (found["name"], str(aside) in found["found"], found["fix"]) == ("messages", True, None)
    gaia("finalize", "a", "completed")
    assert json.loads(gaia("cleanup", "--hours", "0", "--json").out)["removed"] == ["a"]
    assert not Path(root, "a").exists()


def test_append_cannot_be_combined_with_recent_or_since(gaia: Gaia, put: Gaia) -> None:
    put("a")

    assert gaia("transcript", "a", "--append", "user", "hello", "--recent", "3").code == 2
    assert gaia("transcript", "a", "--append", "user", "hello", "--since", "1h").code == 2
    assert gaia("transcript", "a", "--json").json == []


def test_doctor_accepts_several_transcripts_and_cleanup_removes_them(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    gaia("transcript", "a", "--append", "user", "hello")
    begin_anew(FileStore(root), "a")
    gaia("transcript", "a", "--append", "user", "hello")
    assert gaia("doctor", "--json").json["problems"] == 0
    gaia("finalize", "a", "completed")

    assert gaia("cleanup", "--hours", "0", "--json").json["removed"] == ["a"]
    assert not Path(root, "a").exists()
