"""What every command owes whoever calls it: help, streams, colours, strange input, and no trace of a look."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import gaia_sessions
from gaia_sessions.cli.group import COMMANDS, GROUPS, HIDDEN
from gaia_sessions.cli.main import commands
from gaia_sessions.config import Config
from gaia_sessions.errors.exit_codes import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Gaia = Callable[..., Any]

NASTY = "\x1b[2J\x1b]0;mine\x07\x08\x7f\x9b31m\u202eevil\U000e0041\u200b\r\ttext\n"
UNSEEN = frozenset("\u202e\U000e0041\u200b")
ADK_TABLES = """
CREATE TABLE app_states (app_name, state);
CREATE TABLE user_states (app_name, user_id, state);
CREATE TABLE sessions (app_name, user_id, id, state, create_time, update_time);
CREATE TABLE events (app_name, user_id, session_id, event_data);
INSERT INTO sessions VALUES ('app', 'u1', 's1', '{"intent": "create"}', 1700000000.5, 1700000000.5);
"""

ID = "agent-20260108-180530-abc12345"

INNER = [
    *(["hooks", name] for name in ("install", "uninstall", "status")),
    ["skill", "add"],
    *(["todo", name] for name in ("add", "done", "list")),
]

EVERY = pytest.mark.parametrize("name", COMMANDS)

READING = [
    ["get", "a"],
    ["get", "nobody"],
    ["should-resume", "a"],
    ["should-resume", "nobody"],
    ["should-resume", "torn"],
    ["list"],
    ["list", "--json", "--active-only"],
    ["list", "--agent", "tester"],
    ["show", "a"],
    ["show", "nobody"],
    ["events", "a"],
    ["events", "nobody"],
    ["usage", "a"],
    ["usage", "nobody"],
    ["todo", "list", "a"],
    ["todo", "list", "nobody"],
    ["cleanup", "--dry-run"],
    ["import", ".", "--dry-run"],
    ["schema"],
    ["--help"],
    ["update", "--help"],
    ["--version"],
]


def command_of(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


# Help


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_whoever_knows_nothing_gets_help(gaia: Gaia, words: list[str]) -> None:
    ended = gaia(*words)
    assert (ended.code, ended.err, ended.out) == (0, b"", gaia("--help").out)
    assert ended.out.startswith(b"Usage: gaia-sessions [OPTIONS] [COMMAND] [ARGS]...\n")


def test_the_help_says_how_long_a_lock_is_waited_for_where_nobody_sets_it(gaia: Gaia) -> None:
    text = " ".join(gaia("--help").out.decode().split())
    assert f"a locked session. [default: {Config.lock_timeout:g}]" in text


@pytest.mark.parametrize("words", [["--root", "x", "help"], ["help", "list"]])
def test_help_is_help_wherever_it_stands(gaia: Gaia, words: list[str]) -> None:
    assert gaia(*words).code == 0


def test_the_first_help_lists_every_command_in_its_group_and_fits_54_lines(program: Gaia) -> None:
    text = program("--help", COLUMNS="80").out.decode()
    listed = text.partition("agents.\n\n")[2].partition("\n\n")[0]
    lines = [f"  {name:13}  {said}" for name, said in COMMANDS.items()]
    assert [line for line in listed.splitlines() if line.startswith(" ")] == lines
    assert [line for line in listed.splitlines() if not line.startswith(" ")] == [f"{name}:" for name in GROUPS]
    assert (len(GROUPS), len(text.splitlines()) <= 54) == (5, True)
    told = "; ".join(f"{code} {words}" for code, (words, _) in EXIT_CODES.items())
    assert " ".join(text.partition("Exit codes: ")[2].split()) == told


@pytest.mark.parametrize("words", [*([name] for name in COMMANDS), *INNER])
def test_the_help_of_a_command_has_what_all_take_in_one_line(gaia: Gaia, words: list[str]) -> None:
    text = gaia(*words, "--help").out.decode()
    assert text.count("\nCommon options: --root DIR, --lock-timeout SECONDS, --json, -h\n") == 1
    assert [text.count(option) for option in ("--root ", "--lock-timeout ", "  -h, --help")] == [1, 1, 0]


@EVERY
def test_every_command_has_help_with_examples(gaia: Gaia, name: str) -> None:
    for flag in ("-h", "--help"):
        code, out, err = gaia(name, flag).all
        assert (code, err) == (0, "")
        assert out.startswith(f"Usage: gaia-sessions {name} [OPTIONS]")
        assert f"\n    gaia-sessions {name}" in out.partition("Examples:")[2]


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS), *INNER])
def test_no_line_of_help_is_wider_than_a_terminal_of_80_columns(program: Gaia, words: list[str]) -> None:
    code, out, err = program(*words, "-h", COLUMNS="80").all
    assert (code, err, [line for line in out.splitlines() if len(line) > 80]) == (0, "", [])
    assert "..." not in out.partition("Commands:")[2], "every summary is told whole"


@pytest.mark.parametrize("name", [*COMMANDS])
def test_the_summary_in_the_table_is_how_the_help_of_the_command_begins(name: str) -> None:
    text = command_of(name).help
    assert text is not None
    assert text.startswith(COMMANDS[name].rstrip("."))


@EVERY
def test_every_option_says_what_it_is_for_and_every_short_one_has_a_long_one(name: str) -> None:
    options = [option for option in command_of(name).params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []
    assert [option.opts for option in options if not any(word.startswith("--") for word in option.opts)] == []


@EVERY
def test_every_command_takes_what_all_have_in_common(name: str) -> None:
    words = {word for option in command_of(name).params for word in option.opts}
    assert {"--root", "--lock-timeout", "--json"} <= words


def test_no_message_names_a_page_of_docs_which_an_installation_has_not() -> None:
    """Docstrings may, and ``session/shapes.py``, of which one of these pages is made."""
    package = Path(gaia_sessions.__file__).parent
    pages = ("docs/", "README.md", *(page.name for page in (package.parent / "docs").glob("*.md")))
    named = [
        text
        for path in package.rglob("*.py")
        if path != package / "session" / "shapes.py"
        for text in _texts(path)
        if any(page in text for page in pages)
    ]

    assert (named, len(pages) > 5) == ([], True)


def _texts(path: Path) -> Iterator[str]:
    """The texts in a module but for its docstrings."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def test_the_table_names_the_commands_there_are() -> None:
    folder = Path(str(import_module("gaia_sessions.cli.commands").__file__)).parent
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert files == {*COMMANDS, *HIDDEN.values()}


def examples() -> Iterator[str]:
    for text in [commands.epilog, *(command_of(name).epilog for name in COMMANDS)]:
        yield from (line.strip() for line in (text or "").splitlines() if line.startswith("  gaia-sessions"))


CLAUDE = """#!/bin/sh
read -r told
echo '{"type": "result", "is_error": false, "num_turns": 1, "result": "Done."}'
"""
"""As far as the client speaks where it has nothing to do."""


@pytest.mark.parametrize("example", list(examples()))
def test_every_example_in_the_help_works_as_it_stands(put: Gaia, root: str, tmp_path: Path, example: str) -> None:
    if " create " not in example:
        todos = [{"description": "read", "status": "pending"}]
        put("agent-123", agent_name="terraform-architect", revision=4, todos=todos)
        put(ID)
    tool = tmp_path / "bin" / "gaia-sessions"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gaia_sessions "$@"\n', encoding="utf-8")
    tool.chmod(0o700)
    for name in ("my-agent", "pytest"):
        tool.with_name(name).symlink_to("/bin/true")
    tool.with_name("claude").write_text(CLAUDE, encoding="utf-8")
    tool.with_name("claude").chmod(0o700)
    Path("../old-project/.claude/session").mkdir(parents=True)
    Path(".adk").mkdir()
    with closing(sqlite3.connect(".adk/session.db")) as database:
        database.executescript(ADK_TABLES)
    Path("output.txt").write_text("done\n", encoding="utf-8")
    said = [{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Done"}]
    Path("messages.json").write_text(json.dumps(said), encoding="utf-8")
    Path("findings.json").write_text('{"finding": "issue B"}', encoding="utf-8")
    Path("event.json").write_text('{"hook_event_name": "SessionEnd", "session_id": "s"}', encoding="utf-8")
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-c", example], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    named = [line for line in ended.stderr.splitlines() if " install" not in example or "writing /" not in line]
    tells = example.split()[1] in ("report", "wait")  # on stderr that nobody was started for the session
    assert (ended.returncode, named if not tells else []) == (0, [])
    assert os.path.isdir(root) or "schema" in example or "cleanup" in example


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_that_of_the_package(gaia: Gaia, flag: str) -> None:
    assert gaia(flag).all == (0, f"gaia-sessions, version {gaia_sessions.__version__}\n", "")


def test_the_console_script_is_this_program() -> None:
    [script] = distribution("gaia-sessions").entry_points.select(group="console_scripts")
    assert (script.name, script.load().__module__) == ("gaia-sessions", "gaia_sessions.cli.start")


# Where the sessions are


def test_the_root_may_be_given_before_and_after_the_command_and_beats_the_environment(
    gaia: Gaia, tmp_path: Path
) -> None:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    assert gaia("--root", one, "create", "--id", "a").code == 0
    assert gaia("create", "--id", "b", "--root", other).code == 0
    assert [line["agent_id"] for line in gaia("list", "--json", "--root", one).json] == ["a"]
    assert [line["agent_id"] for line in gaia("--root", other, "list", "--json").json] == ["b"]
    assert [line["agent_id"] for line in gaia("--root", other, "list", "--root", one, "--json").json] == ["a"]
    assert gaia("list", "--json").json == []


def test_a_root_given_relatively_is_below_the_current_folder(gaia: Gaia) -> None:
    assert gaia("--root", "some/where", "create", "--id", "a").code == 0
    assert os.path.isfile("some/where/a/state.json")


@pytest.mark.parametrize("words", [["list"], ["create"], ["get", "a"], ["cleanup"], ["update", "a"]])
def test_a_relative_root_in_the_environment_is_a_usage_error(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", "relative")
    before = os.listdir()
    assert gaia(*words).all == (
        2,
        "",
        "Error: GAIA_SESSIONS_ROOT: 'relative' is not absolute\nHint: give the whole path\n",
    )
    assert os.listdir() == before


def test_without_a_word_on_it_the_root_is_the_projects(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    Path(".git").mkdir()
    Path("deep/down").mkdir(parents=True)
    top = Path.cwd()
    monkeypatch.chdir("deep/down")
    assert gaia("create", "--id", "a").code == 0
    assert (top / ".claude/session/a/state.json").is_file()


def test_a_current_folder_that_is_gone_matters_only_to_whoever_needs_it(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert gaia("list", "--json").json == []
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    ended = gaia("list", "--json")
    assert (ended.code, ended.error["code"]) == (2, "bad_setting")


# Settings


@pytest.mark.parametrize(
    ("key", "unknown", "hint"),
    [
        ("idle_minute = 3", "idle_minute", "did you mean idle_minutes?"),
        ("[hooks]\nenable = true", "hooks.enable", "did you mean hooks.enabled?"),
    ],
)
@pytest.mark.parametrize("place", [".claude/gaia-sessions.toml", "elsewhere/.config.toml"])
def test_an_unknown_setting_in_a_project_file_is_a_usage_error_with_a_suggestion(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, place: str, key: str, unknown: str, hint: str
) -> None:
    file = Path(place).absolute()
    file.parent.mkdir()
    file.write_text(key, encoding="utf-8")
    root = file.parent if file.name == ".config.toml" else file.parent / "session"
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(root))
    error = gaia("list", "--json").error
    assert error == {"code": "bad_setting", "message": f"{file}: unknown setting {unknown}", "hint": hint}


@pytest.mark.parametrize(
    ("name", "value"),
    [("GAIA_SESSIONS_IDLE_MINUTE", "3"), ("GAIA_SESSIONS_MAX_ERRORS", "none"), ("GAIA_SESSIONS_DURABILITY", "some")],
)
def test_a_variable_that_means_nothing_is_a_usage_error(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    ended = gaia("list", "--json")
    assert (ended.code, ended.error["code"]) == (2, "bad_setting")


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_a_wait_that_means_nothing_is_a_usage_error(gaia: Gaia, put: Gaia, seconds: str) -> None:
    put("a")
    assert gaia("update", "a", f"--lock-timeout={seconds}").code == 2
    assert gaia(f"--lock-timeout={seconds}", "update", "a").code == 2


@pytest.mark.parametrize("wait", ["0", "500ms", "0.5 seconds", "2m"])
def test_no_wait_at_all_means_something_and_a_wait_may_have_its_unit(gaia: Gaia, put: Gaia, wait: str) -> None:
    put("a")
    assert gaia("update", "a", "--lock-timeout", wait).code == 0
    assert gaia("--lock-timeout", wait, "update", "a").code == 0


# What a start costs

LOADED = """
import sys
before = set(sys.modules)
from gaia_sessions.cli.main import main
code = main(sys.argv[1:])
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
ours = sorted(name for name in sys.modules if name.startswith("gaia_sessions.cli.commands."))
print(code, sorted(foreign), ours, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--help"], None),
        (["create"], "create"),
        (["get", "a"], "get"),
        (["update", "a", "--phase", "planning", "-m", "k=v"], "update"),
        (["should-resume", "a"], "should_resume"),
        (["should-resume", "a", "--json"], "should_resume"),
        (["list", "--json"], "list"),
        (["list", "--since", "2h"], "list"),
        (["finalize", "a", "completed"], "finalize"),
        (["cleanup"], "cleanup"),
        (["show", "a"], "show"),
    ],
)
def test_a_command_loads_click_and_nothing_else_that_is_not_its_own(
    put: Gaia, words: list[str], command: str | None
) -> None:
    put("a")
    ended = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    own = [f"gaia_sessions.cli.commands.{command}"] if command else []
    assert ended.stderr == f"0 ['click', 'gaia_sessions'] {own}\n"


# Looking leaves no trace


def everything(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in [folder, *folder.rglob("*")])


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("there", [True, False], ids=["a root", "no root"])
def test_a_command_that_only_reads_creates_and_changes_nothing(  # both sides of every look
    gaia: Gaia, put: Gaia, spoil: Gaia, tree: Gaia, away_from_home: Path, words: list[str], *, there: bool
) -> None:
    if there:
        gaia("create", "--id", "made")
        put("a")
        spoil("torn")
    before = tree(), everything(away_from_home)
    gaia(*words)
    assert (tree(), everything(away_from_home)) == before


# What a terminal would obey


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--json"],
        ["show", "nasty"],
        ["get", "nasty"],
        ["should-resume", "nasty"],
        ["should-resume", "nasty", "--json"],
        ["update", "nasty"],
        ["finalize", "nasty", "completed"],
        ["cleanup"],
        ["get", "torn"],
        ["get", "torn", "--json"],
        ["get", NASTY],
        ["get", NASTY, "--json"],
        ["should-resume", NASTY],
        ["create", "--id", NASTY],
        ["update", "nasty", "--phase", NASTY],
        ["finalize", "nasty", NASTY],
        ["update", "nasty", "-m", NASTY],
        ["list", "--since", NASTY],
        ["list", "--agent", NASTY],
        [NASTY],
        ["get", "nasty", f"--{NASTY}"],
    ],
)
def test_nothing_a_terminal_would_interpret_reaches_the_output(
    gaia: Gaia, put: Gaia, spoil: Gaia, words: list[str]
) -> None:
    moment = "2026-01-08T18:05:30Z"
    put(
        "nasty",
        agent_name=NASTY,
        purpose=NASTY,
        metadata={NASTY: {NASTY: NASTY}},
        error_count=1,
        last_error={"message": NASTY, "timestamp": moment},
        summary=NASTY,
        runs=[{"run": 1, "host": NASTY, "detail": NASTY, "last_message": NASTY, "ended_at": moment, "end": "lost"}],
    )
    spoil("torn", json.dumps({"agent_id": NASTY}).encode())
    ended = gaia(*words)
    for stream in (ended.out, ended.err):
        assert [char for char in stream.decode() if char < " " and char != "\n"] == []
        assert [char for char in stream.decode() if "\x7f" <= char < "\xa0"] == []
        if words not in (["get", "nasty"], ["list", "--json"]):  # which are JSON, and exact
            assert UNSEEN.intersection(stream.decode()) == frozenset()


@pytest.mark.parametrize("words", [["list"], ["show", "nasty"]])
def test_on_a_terminal_only_own_colours_have_effect(put: Gaia, words: list[str]) -> None:
    put("nasty", agent_name=NASTY, purpose=NASTY, metadata={NASTY: NASTY}, summary=NASTY)
    shown = on_terminal(words)
    rest = re.sub(rb"\x1b\[[0-9;]*m", b"", shown)
    assert b"evil" in rest
    assert [char for char in rest.decode() if (char < " " and char not in "\r\n") or "\x7f" <= char < "\xa0"] == []
    assert UNSEEN.intersection(rest.decode()) == frozenset()


# Terminals, colours, widths


def on_terminal(words: list[str], **environment: str) -> bytes:
    """What a command writes to a terminal."""
    own_end, their_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gaia_sessions", *words],
        stdin=their_end,
        stdout=their_end,
        stderr=their_end,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(their_end)
    shown = b""
    while True:
        try:
            chunk = os.read(own_end, 1 << 16)
        except OSError:  # a terminal nobody writes to any more
            break
        if not chunk:
            break
        shown += chunk
    os.close(own_end)
    assert process.wait() == 0, shown
    return shown


@pytest.fixture
def one(put: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    put(ID, agent_name="terraform-architect", purpose="approval_workflow", metadata={"task": "T001"})


@pytest.mark.usefixtures("one")
def test_a_terminal_gets_a_table_in_colours(gaia: Gaia) -> None:
    listed = on_terminal(["list"])
    assert (b"abc12345 " in listed, b"\x1b[1;33mwaiting" in listed) == (True, True)
    assert b"\x1b" not in gaia("list").out
    assert b"last activity" not in gaia("list").out


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("words", [["list"], ["show", ID]])
def test_no_color_means_no_colour(words: list[str]) -> None:
    codes = re.findall(rb"\x1b\[([0-9;]*)m", on_terminal(words, NO_COLOR="1"))
    assert {code for code in codes if code not in {b"", b"0", b"1", b"2"}} == set()


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("words", [["list"], ["show", ID], ["--help"]])
def test_a_dumb_terminal_gets_no_escapes(words: list[str]) -> None:
    assert b"\x1b" not in on_terminal(words, TERM="dumb")


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("words", [["list"], ["show", ID], ["--help"], ["update", "--help"]])
def test_a_narrow_terminal_still_gets_whole_ids(words: list[str]) -> None:
    shown = on_terminal(words, COLUMNS="40", NO_COLOR="1", TERM="dumb")
    wanted = {"list": b"\nabc12345 ", "show": ID.encode()}
    assert wanted.get(words[0], b"") in shown.replace(b"\r\n", b"\n")


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("words", [["list", "--json"], ["get", ID], ["should-resume", ID], ["update", ID], ["cleanup"]])
def test_json_and_single_lines_are_the_same_on_a_terminal(gaia: Gaia, words: list[str]) -> None:
    assert b"\x1b" not in on_terminal(words)
    assert gaia(*words).code == 0


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("words", [["list"], ["show", ID], ["--help"], ["list", "--json"], ["nonsense"]])
def test_in_a_pipe_there_are_no_escapes_and_the_width_of_a_terminal_changes_nothing(
    program: Gaia, words: list[str]
) -> None:
    narrow = program(*words, COLUMNS="40", TERM="xterm-256color")
    wide = program(*words, COLUMNS="200", TERM="xterm-256color")
    assert b"\x1b" not in narrow.out + narrow.err + wide.out + wide.err
    if "--help" not in words:
        assert (narrow.out, narrow.err) == (wide.out, wide.err)


# Encodings


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}])
def test_in_any_locale_text_is_kept_json_is_utf_8_and_nothing_fails(
    program: Gaia, state: Gaia, locale: dict[str, str]
) -> None:
    words = ("create", "--id", "a", "--agent", "zażółć ✓", "--metadata", '{"ü": "→"}')
    assert program(*words, **locale).all == (0, "a\n", "")
    assert (state("a")["agent_name"], state("a")["metadata"]) == ("zażółć ✓", {"ü": "→"})
    assert program("get", "a", **locale).json == state("a")
    assert program("list", "--json", **locale).json[0]["agent_name"] == "zażółć ✓"
    for line, code in (("list", 0), ("show a", 0), ("update a --phase planning", 0), ("get ✓", 7)):
        ended = program(*line.split(), **locale)
        assert (ended.code, b"Traceback" in ended.err) == (code, False)


def test_text_in_utf_8_is_kept_even_where_python_takes_arguments_for_ascii(program: Gaia, state: Gaia) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert program("create", "--id", "a", "--agent", "é", "-m", "k=é", **plain).code == 0
    assert (state("a")["agent_name"], state("a")["metadata"]) == ("é", {"k": "é"})


@pytest.mark.parametrize("option", ["--agent", "--purpose", "--metadata", "--id"])
def test_bytes_that_are_no_text_are_refused(program: Gaia, root: str, option: str) -> None:
    ended = program("create", "--json", option, b"\xff")
    assert (ended.code, ended.error["code"].startswith("invalid_"), os.path.exists(root)) == (7, True, False)


@pytest.mark.parametrize("words", [(b"\xff", "--json"), ("get", "a", "--json", b"\xff")])
def test_bytes_that_are_no_text_are_no_traceback(program: Gaia, words: tuple[str | bytes, ...]) -> None:
    ended = program(*words)
    assert (ended.code, ended.error["code"]) == (2, "usage")


@pytest.mark.parametrize(
    ("words", "code"), [(["get", "torn"], 6), (["list"], 0), (["cleanup"], 0), (["should-resume", "torn"], 6)]
)
def test_a_root_whose_name_is_no_text_can_be_named_in_json(
    program: Gaia, tmp_path: Path, words: list[str], code: int
) -> None:
    root = os.fsencode(tmp_path) + b"/\xff"
    os.makedirs(root + b"/torn")
    with open(root + b"/torn/state.json", "wb") as file:
        file.write(b"[1]")
    ended = program("--root", root, *words, "--json")
    assert (ended.code, json.loads(ended.err or ended.out) is not None) == (code, True)
