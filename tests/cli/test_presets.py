"""Clients as commands of ``run`` and ``send``; a program that answers like ``claude`` records what it gets."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.errors import BadArgument, InvalidInput, UsageError
from gaia_sessions.hosts.clients import is_conversation_id
from tests.cli.conftest import records
from tests.cli.forks import forked
from tests.config.test_files import as_root
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


SCRIPT = """#!{python} -IS
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
plan = json.load(open(folder + "/plan"))
told = json.loads(sys.stdin.readline())["message"]["content"]
with open(folder + "/calls", "a") as file:
    file.write(json.dumps({{"words": sys.argv[1:], "told": told, "cwd": os.getcwd()}}) + "\\n")
if "unknown" in plan and "--resume" in sys.argv:
    plan = {{"is_error": True, "num_turns": 0, "errors": ["No conversation found with session ID: x"], "code": 1}}
def say(**line):
    print(json.dumps(line), flush=True)
def event(kind, **more):
    say(type="stream_event", parent_tool_use_id=None, event=dict(type=kind, **more))
text = plan.get("text", "")
if "runs" in plan:
    import subprocess
    *words, told = plan["runs"]
    subprocess.run([sys.executable, "-m", "gaia_sessions", *words], input=told.encode(), check=True)
event("message_start", message={{"id": "m", "model": "opus", "usage": {{"input_tokens": 100, "output_tokens": 1}}}})
event("content_block_delta", delta={{"text": text}})
event("content_block_stop")
event("message_delta", usage={{"output_tokens": 20}})
if plan.get("no_result"):
    print("error: unknown option", file=sys.stderr)
else:
    result = {{"is_error": False, "num_turns": 1, "result": text, **plan}}
    say(type="result", **result)
    sys.stdin.read()
sys.exit(plan.get("code", 0))
"""
FLAGS = [
    *("-p", "--verbose", "--output-format", "stream-json", "--include-partial-messages"),
    *("--input-format", "stream-json", "--session-id"),
]
MARK = "[gaia-sessions: approval] may I?"


class Claude:
    """The program, its answer, and its calls."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = str(folder / "claude")
        Path(self.path).write_text(SCRIPT.format(python=sys.executable), encoding="utf-8")
        Path(self.path).chmod(0o755)
        self.says("Answer.")

    def says(self, text: str, **plan: Any) -> None:
        (self.folder / "plan").write_text(json.dumps({"text": text, **plan}), encoding="utf-8")

    def calls(self) -> list[Any]:
        return [json.loads(line) for line in (self.folder / "calls").read_text("utf-8").splitlines()]

    def ids(self) -> list[tuple[str, str]]:
        """For each call, the option that starts or resumes a conversation, and the ID."""
        options = ("--session-id", "--resume")
        found = [(one["words"], next(word for word in one["words"] if word in options)) for one in self.calls()]
        return [(option, words[words.index(option) + 1]) for words, option in found]


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Claude(folder)


def sessions(root: str) -> list[Any]:
    return [*records(root).values()]


@table("words", [["-p"], ["say hello"], ["--resume", "x"], ["--model", "opus", "say"]])
def test_words_that_the_preset_sets_itself_are_refused_and_nothing_is_created(
    gaia: Gaia, root: str, claude: Claude, words: list[str]
) -> None:
    ended = gaia("run", "--task", "Do it.", "--", claude.path, *words)
    assert (ended.code, ended.out, sessions(root)) == (2, b"", [])
    assert b"--no-preset" in ended.err
    assert gaia("send", "agent", "hello", "--", claude.path, *words).code == 2


def test_the_preset_puts_its_options_before_the_options_of_the_command(claude: Claude) -> None:
    ended = forked("run", "--task", "Do it.", "--", claude.path, "--allowedTools", "Bash", "Edit")

    assert ended.all[:2] == (0, "Answer.\n")
    [call] = claude.calls()
    assert call["words"][:9] == [*FLAGS, claude.ids()[0][1]]
    assert call["words"][9:] == ["--allowedTools", "Bash", "Edit"]
    assert call["told"].startswith("Do it.\n\nIf you stop before the work is done")


def test_without_a_task_option_stdin_is_the_task_and_must_not_be_empty(root: str, claude: Claude) -> None:
    assert forked("run", "--", claude.path, stdin=b"Do that.\n").code == 0
    assert claude.calls()[0]["told"].startswith("Do that.\n\nIf you")

    ended = forked("run", "--", claude.path, stdin=b"")
    assert (ended.code, len(sessions(root)), b"--task 'Review src/auth'" in ended.err) == (7, 1, True)


def test_the_preset_options_decide_whether_a_program_is_run_as_a_client(root: str, claude: Claude) -> None:
    other = claude.folder / "other"
    other.write_bytes(Path(claude.path).read_bytes())
    other.chmod(0o755)
    assert forked("run", "--preset", "claude", "--task", "Do it.", "--", str(other)).out == b"Answer.\n"

    assert forked("run", "--no-preset", "--", claude.path, "-p", stdin=b'{"message": {"content": "x"}}\n').code == 0
    assert claude.calls()[-1]["words"] == ["-p"]
    assert [one["runs"][0].get("consumed", {}).get("total_tokens") for one in sessions(root)].count(120) == 1


@table(
    ("plan", "detail"),
    [
        ({"is_error": True, "result": "API Error: 529"}, "API Error: 529"),
        ({"is_error": True, "result": None, "errors": ["one", "two"]}, "one; two"),
        ({"no_result": True}, "it ended without a result: error: unknown option"),
        ({"no_result": True, "code": 3}, "it ended without a result: error: unknown option"),
    ],
)
def test_a_client_that_reports_an_error_or_no_result_fails_with_any_exit_code(
    root: str, claude: Claude, plan: dict[str, Any], detail: str
) -> None:
    claude.says("So far.", **plan)
    ended = forked("run", "--json", "--task", "Do it.", "--", claude.path)
    [record] = sessions(root)
    shutil.rmtree(root)

    report = json.loads(ended.out)
    assert (ended.code, report["status"], report["partial"]) == (11, "error", "So far.")
    assert detail in report["error"]
    assert (record["runs"][0]["end"], record["usage"]["total_tokens"]) == ("failed", 120)
    assert ("conversation" in record["runs"][0]) == ("no_result" not in plan)


def test_a_run_resumes_its_conversation_only_in_its_folder_and_otherwise_names_the_folder(
    gaia: Gaia, root: str, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude.says(f"A plan.\n{MARK}")
    one = tmp_path / "one of two"
    one.mkdir()
    forked("run", "--id", "work", "--cwd", str(one), "--task", "Do it.", "--", claude.path)
    gaia("deny", "work", "--reason", "too risky")
    forked("run", "work", "--cwd", str(one), "--context", "Be quick.", "--", claude.path)
    monkeypatch.chdir(one)
    forked("run", "work", "--", claude.path)
    monkeypatch.chdir(claude.folder.parent)
    elsewhere = forked("run", "work", "--", "bin/claude")
    forked("run", "work", "--cwd", str(claude.folder), "--", claude.path)
    forked("run", "work", "--cwd", str(claude.folder), "--", "./claude")
    sent = forked("send", "work", "Go on.", "--cwd", str(claude.folder), "--", "./claude")

    (_, first), *others = claude.ids()
    assert [option for option, _ in others] == [*["--resume"] * 2, *["--session-id"] * 2, *["--resume"] * 2]
    assert [name == first for _, name in others] == [True, True, False, False, False, False]
    said = f"work: its conversation is in folder {one}; a new conversation starts and is told what was said so far\n"
    assert f"{said}to use the old one, stop this command and add --cwd '{one}'\n" in elsewhere.all[2]
    assert (sent.code, b"conversation" in sent.err) == (0, False)
    told = [call["told"] for call in claude.calls()]
    denied = "Your request is denied. Do not do it. Find another way, or end.\ntoo risky"
    assert told[1] == f"{denied}\n\nAdditional context:\nBe quick."
    assert told[2] == "Your request is approved. Carry it out."
    assert "[gaia-sessions: briefing work]" in told[3]
    folders = [Path(call["cwd"]).name for call in claude.calls()]
    assert folders == [*["one of two"] * 3, tmp_path.name, *["bin"] * 3]
    assert [one["turns"] for one in sessions(root)] == [7]


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("words", [["run", "work"], ["send", "work", "Go on."]])
def test_a_conversation_in_another_folder_stays_current_until_a_new_one_has_answered(
    gaia: Gaia, claude: Claude, tmp_path: Path, words: list[str]
) -> None:
    """A user who stops the new one at once, and does what stderr says, resumes the old one."""
    claude.says(MARK)
    one = tmp_path / "one"
    one.mkdir()
    forked("run", "--id", "work", "--cwd", str(one), "--task", "Do it.", "--", claude.path)
    silent = claude.folder / "silent"
    silent.write_text("#!/bin/sh\nkill -INT $PPID\nexec sleep 60\n", encoding="utf-8")
    silent.chmod(0o755)
    for _ in range(2):
        stopped = forked(*words, "--preset", "claude", "--", str(silent))
        assert f"--cwd {one}\n" in stopped.all[2]
    gaia("update", "work", "--phase", "planning", "--resume-ready")
    assert forked(*words, "--cwd", str(one), "--", claude.path).code == 0
    assert [option for option, _ in claude.ids()] == ["--session-id", "--resume"]


EVIL_IDS = [
    *("--dangerously-skip-permissions", "-cmcp_servers.x={}", "-", "", "*", "../../x", "a b", "x" * 10_000, "0" * 32),
    *("{00000000-0000-4000-8000-000000000000}", "urn:uuid:00000000-0000-4000-8000-000000000000"),
    "00000000-0000-4000-8000-00000000000A",
]


RECORDER = """#!{python} -IS
import json, sys
with open(sys.argv[0] + ".calls", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""


@pytest.mark.parametrize("preset", ["claude", "codex"])
def test_a_record_cannot_add_words_to_the_command_line_of_a_client(root: str, tmp_path: Path, preset: str) -> None:
    program = tmp_path / preset
    program.write_text(RECORDER.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    for name in EVIL_IDS:
        for words in (("run", "work", "--task", "Go on."), ("send", "work", "Go on.")):
            with_conversation(root, {"preset": preset, "id": name, "cwd": str(tmp_path)})
            said = forked(*words, "--cwd", str(tmp_path), "--", str(program), "--model", "m").all[2]
            assert f"work: its record names no conversation of this client; {NEW_CONVERSATION}" in said, name
            shutil.rmtree(root)
    calls = [json.loads(line) for line in Path(f"{program}.calls").read_text("utf-8").splitlines()]
    assert len(calls) == 2 * len(EVIL_IDS)
    for words in calls:
        fresh = [word for word in words if not is_conversation_id(word)]
        assert fresh == (["exec", "--model", "m", "--json"] if preset == "codex" else [*FLAGS, "--model", "m"])


@pytest.mark.parametrize(
    "evil", ["own", "link", "gone", "file", "relative", "odd", pytest.param("other's", marks=as_root)]
)
def test_a_record_cannot_choose_the_folder_in_which_a_client_starts(
    root: str, claude: Claude, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: str
) -> None:
    for name in ("own", "other's", "odd\x1b[2J"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/claude").write_text("#!/bin/sh\ntouch ran\n", "utf-8")
        (tmp_path / name / "bin/claude").chmod(0o755)
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "file").touch()
    if evil == "other's":
        os.chown(tmp_path / "other's", 12345, 12345)
    cwd = {"relative": "own", "odd": f"{tmp_path}/odd\x1b[2J"}.get(evil, f"{tmp_path}/{evil}")
    with_conversation(root, {"preset": "claude", "id": "00000000-0000-4000-8000-000000000000", "cwd": cwd})
    monkeypatch.chdir(tmp_path)

    said = forked("run", "work", "--task", "Go on.", "--", "bin/claude").all[2]

    [call] = claude.calls()
    assert (call["cwd"], "--resume" in call["words"]) == (str(tmp_path), False)
    assert not [*tmp_path.rglob("ran")]
    hint = f"to use the old one, stop this command and add --cwd {cwd}\n"
    assert (hint in said) == (evil in ("own", "link")), said
    assert (f"which is not your folder now; {NEW_CONVERSATION}" in said) == (evil not in ("own", "link")), said
    assert "\x1b[2J" not in said


NEW_CONVERSATION = "a new conversation starts and is told what was said so far"


def with_conversation(root: str, place: dict[str, object]) -> None:
    """Creates the session ``work``; its record says that its run had a conversation at ``place``."""
    gaia_sessions.Sessions(root).create("reviewer", agent_id="work")
    path = Path(root, "work/state.json")
    record = json.loads(path.read_bytes())
    run = {"run": 1, "wrapper": {"pid": 1}, "started_at": record["created_at"], "ended_at": record["last_updated"]}
    run |= {"end": "stopped", "conversation": {**place, "generation": 0, "seq": 0}}
    path.write_text(json.dumps({**record, "runs": [run]}), encoding="utf-8")


def test_a_lost_or_outdated_conversation_is_replaced_by_one_that_gets_the_earlier_messages(
    gaia: Gaia, claude: Claude
) -> None:
    gaia("create", "--id", "talk", "--system-prompt", "You count.")
    forked("send", "talk", "One.", "--", claude.path)
    claude.says("Answer two.", unknown=True)
    ended = forked("send", "talk", "Two.", "--", claude.path)
    gaia("turn", "talk", "-", stdin=b'[{"role": "user", "content": "Aside."}]')
    claude.says("Answer three.")
    forked("send", "talk", "Three.", "--", claude.path)
    forked("send", "talk", "Four.", "--", claude.path)

    assert ended.all[:2] == (0, "Answer two.\n")
    assert f"its conversation is gone; {NEW_CONVERSATION}" in ended.all[2]
    options = [option for option, _ in claude.ids()]
    assert options == ["--session-id", "--resume", "--session-id", "--session-id", "--resume"]
    told = [call["told"] for call in claude.calls()]
    assert told[0] == "You count.\n\nOne."
    assert told[1] == "Two."
    begun = "You count.\n\nEarlier messages, the oldest first:\nTurn 1:\n  user: One.\n  assistant: Answer.\n"
    assert told[2] == f"{begun}End of the earlier messages. The new message:\n\nTwo."
    assert told[3].startswith(f"{begun}Turn 2:\n  user: Two.\n  assistant: Answer two.\nTurn 3:\n  user: Aside.\n")
    assert told[4] == "Four."


def test_messages_added_by_hand_make_the_next_run_start_a_new_conversation(gaia: Gaia, claude: Claude) -> None:
    asks = f"A plan.\n{MARK}"
    claude.says(asks)
    forked("run", "--id", "work", "--task", "Do it.", "--", claude.path)
    gaia("transcript", "work", "--append", "user", "By hand.")
    forked("run", "work", "--", claude.path)
    by_hand = b'[{"role": "user", "content": "Meanwhile."}, {"role": "assistant", "content": "Yes."}]'
    claude.says(asks, runs=["turn", "work", "-", by_hand.decode()])
    forked("run", "work", "--", claude.path)
    claude.says(asks)
    forked("run", "work", "--", claude.path)
    gaia("reset", "work")
    forked("run", "work", "--", claude.path)

    assert [option for option, _ in claude.ids()] == [
        *("--session-id", "--session-id", "--resume", "--session-id", "--session-id")
    ]
    told = [call["told"] for call in claude.calls()]
    assert ["By hand." in one for one in told] == [False, True, False, True, False]
    assert ["Meanwhile." in one for one in told] == [False, False, False, True, False]


@pytest.mark.parametrize("command", [["run", "--id", "work", "--task", "Do it."], ["send", "work", "Do it."]])
def test_an_answer_that_is_too_long_and_has_a_nul_is_still_stored(
    gaia: Gaia, root: str, claude: Claude, command: list[str]
) -> None:
    if command[0] == "send":
        gaia("create", "--id", "work")
    claude.says("Begin\0ning " + "x" * (5 << 18) + " end.")

    ended = forked(*command, "--", claude.path)

    assert ended.code == 0, ended.err
    [record] = sessions(root)
    messages: list[Any] = [*gaia_sessions.Sessions(root).messages("work")]
    content = messages[-1]["content"]
    assert (content.startswith("Begin"), content.endswith(" end."), len(content) < 1 << 20) == (True, True, True)
    assert record["runs"][0]["conversation"]["seq"] == record["last_seq"]


def test_a_run_in_a_folder_whose_path_is_not_utf_8_records_no_conversation(
    root: str, claude: Claude, tmp_path: Path
) -> None:
    folder = os.fsencode(tmp_path) + b"/d\xff"
    os.mkdir(folder)
    ended = forked("run", "--task", "Do it.", "--cwd", folder, "--", claude.path)

    assert (ended.code, "conversation" in sessions(root)[0]["runs"][0]) == (0, False), ended.err


def test_stderr_says_when_a_new_conversation_is_not_told_the_task(claude: Claude) -> None:
    claude.says(MARK)
    forked("run", "--id", "work", "--task", "Do it.", "--", claude.path)
    claude.says("Done.", unknown=True)
    told = b"not told the task, because the task is not recorded; give it again with --task"
    assert told in forked("run", "work", "--", claude.path).err


def test_every_run_limits_the_client_to_the_tools_of_the_session(
    root: str, claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude.says(MARK)
    new = ("--id", "work", "--tools", "Read,Bash", "--available", "Read,Grep")
    ended = forked("run", *new, "--task", "Do it.", "--", claude.path, "--model", "m")
    assert (ended.code, b"left out: Bash is not among the tools that are available" in ended.err) == (0, True)
    forked("send", "work", "Go on.", "--", claude.path)
    monkeypatch.setenv("GAIA_SESSIONS_LIMITS_BLOCKED_TOOLS", "WebSearch")
    forked("run", "--id", "free", "--task", "Do it.", "--", claude.path)
    limits = [[word for word in one["words"] if "ools" in word] for one in claude.calls()]
    assert limits == [["--tools=Read"], ["--tools=Read"], ["--disallowedTools=WebSearch"]]

    ended = forked("run", "--id", "b", "--task", "Do it.", "--tools", "Bash", "--available", "ls", "--", claude.path)
    assert (ended.code, len(claude.calls())) == (7, 3)
    assert sorted(record["agent_id"] for record in sessions(root)) == ["free", "work"]


def test_invalid_tool_names_in_a_record_do_not_reach_the_command_line(root: str, claude: Claude) -> None:
    forked("run", "--id", "work", "--tools", "Read", "--task", "Do it.", "--", claude.path)
    path = Path(root, "work/state.json")
    record = json.loads(path.read_bytes())
    names = ["Read,Bash", "Bash --settings {}", "-p", "", " Read", "Read\n", "x" * 201, "Grep"]
    del record["runs"]
    record |= {"phase": "planning", "resume_ready": True, "allowed_tools": names}
    path.write_text(json.dumps(record), encoding="utf-8")

    assert forked("run", "work", "--task", "Go on.", "--", claude.path).code == 0

    [_, words] = [call["words"] for call in claude.calls()]
    assert words[len(FLAGS) + 1 :] == ["--tools=-p,Grep"]


def test_a_client_that_cannot_be_limited_to_the_tools_of_the_session_is_not_started(root: str, claude: Claude) -> None:
    new = forked("run", "--tools", "Read", "--task", "Do it.", "--", claude.path, "--tools", "Bash")
    assert (new.code, b"the command has --tools" in new.err, sessions(root)) == (2, True, [])
    claude.says(MARK)
    assert forked("run", "--id", "work", "--tools", "Read", "--task", "Do it.", "--", claude.path).code == 0
    before = sessions(root)
    for words in (("run", "work", "--"), ("send", "work", "Go on.", "--")):
        assert forked(*words, claude.path, "--tools", "Bash").code == 2
        assert forked(*words, "codex").code == 2
    assert (sessions(root), len(claude.calls())) == (before, 1)


def test_a_session_without_tokens_left_is_not_run_and_stays_in_approval(gaia: Gaia, root: str, claude: Claude) -> None:
    claude.says(MARK)
    ended = forked("run", "--id", "work", "--max-tokens", "100", "--task", "Do it.", "--", claude.path)
    assert b"reached its token limit" in ended.err

    ended = forked("run", "work", "--", claude.path)
    [record] = sessions(root)
    assert (ended.code, record["phase"], len(claude.calls())) == (4, "approval", 1)
    assert b"its 100 tokens are used up" in ended.err

    [more] = re.findall(rb"gaia-sessions (update work --max-tokens \d+)", ended.err)
    assert gaia(*map(os.fsdecode, more.split())).code == 0
    [given] = sessions(root)
    assert given["max_tokens"] == record["usage"]["total_tokens"] + 100
    assert gaia("update", "work", "--max-tokens", "1000000").code == 0
    claude.says("Done.")
    assert forked("run", "work", "--", claude.path).code == 0


def test_python_runs_a_client_with_the_same_checks_as_the_command(root: str, claude: Claude) -> None:
    store = gaia_sessions.Sessions(root)
    assert store.run([claude.path], task="Do it.")["result"] == "Answer."
    for error, words, more in (
        (UsageError, [claude.path, "-p"], {"task": "Do it."}),
        (InvalidInput, [claude.path], {}),
        (BadArgument, [claude.path], {"task": "Do it.", "preset": "emacs"}),
    ):
        with pytest.raises(error):
            store.run(words, **more)  # type: ignore[arg-type]
    assert len(sessions(root)) == 1
