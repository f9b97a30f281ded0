"""What holds for every command: help, root, settings, imports, colours, encodings; reading changes no file."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import gaia_sessions
from gaia_sessions.cli.exit_codes import EXIT_CODES
from gaia_sessions.cli.group import COMMANDS, GROUPS, HIDDEN
from gaia_sessions.cli.main import commands
from gaia_sessions.config import Config
from tests.cli.conftest import everything_in, fresh_table
from tests.cli.forks import forked
from tests.commands import Ended
from tests.servers import empty_url
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Gaia


NASTY = "\x1b[2J\x1b]0;mine\x07\x08\x7f\x9b31m\u202eevil\U000e0041\u200b\r\ttext\n"
UNSEEN = frozenset("\u202e\U000e0041\u200b")
ID = "agent-20260108-180530-abc12345"

INNER = [
    *(["hooks", name] for name in ("install", "uninstall", "status")),
    ["skill", "add"],
    *(["store", name] for name in ("init", "migrate", "info")),
    *(["todo", name] for name in ("add", "done", "cancel", "list")),
]

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


@table("words", [[], ["-h"], ["--help"], ["help"]])
def test_no_arguments_and_each_form_of_help_print_the_same_help(gaia: Gaia, words: list[str]) -> None:
    ended = gaia(*words)
    assert (ended.code, ended.err, ended.out) == (0, b"", gaia("--help").out)
    assert ended.out.startswith(b"Usage: gaia-sessions [OPTIONS] [COMMAND] [ARGS]...\n")


def test_the_full_help_shows_the_default_lock_timeout(gaia: Gaia) -> None:
    text = " ".join(gaia("--help", "--all").out.decode().split())
    assert f"how long to wait for a lock [default: {Config.lock_timeout:g}]" in text


@table("words", [["--root", "x", "help"], ["help", "list"]])
def test_help_works_after_an_option_and_before_a_command(gaia: Gaia, words: list[str]) -> None:
    assert gaia(*words).code == 0


FOR_PEOPLE = [
    "list",
    "show",
    "report",
    "pending",
    "tree",
    "usage",
    "wait",
    "approve",
    "deny",
    "resume",
    "cancel",
    "run",
    "hooks",
    "doctor",
    "cleanup",
]


@table("words", [[], ["--help"]])
def test_the_short_help_explains_common_commands_names_all_others_and_fits_a_small_terminal(
    terminal: Gaia, words: list[str]
) -> None:
    """The help and the next prompt fit into 24 rows."""
    shown = terminal(*words, columns=80).out.decode().splitlines()
    people, *others = GROUPS.values()
    said, blank, names, more = shown[3:18], shown[18], shown[19:22], shown[22:]

    assert (len(shown) < 24, [line for line in shown if len(line) > 80], blank) == (True, [], "")
    assert said == [f"  {name:7}  {people[name]}" for name in FOR_PEOPLE]
    assert re.findall(r"(?<=[:,])\s+([a-z-]+)", "\n".join(names)) == [name for group in others for name in group]
    assert sorted([*people, *(name for group in others for name in group)]) == sorted(COMMANDS)
    assert more == ["All commands, and exit codes: --help --all. One command: COMMAND --help."]


@table("words", [["--help", "--all"], ["--all"], ["-h", "--all"], ["--all", "help"], ["help", "--all"]])
def test_help_all_lists_every_command_in_its_group_and_the_exit_codes(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = gaia(*words).answer
    end = text.index("", 4)
    listed = [
        line
        for group in GROUPS
        for line in (f"{group}:", *(f"  {name:13}  {COMMANDS[name]}" for name in GROUPS[group]))
    ]
    assert (text[4:end], [line for line in text if len(line) > 80]) == (listed, [])
    told = "; ".join(f"{code} {words}" for code, (words, _) in EXIT_CODES.items())
    assert " ".join("\n".join(text[end:]).partition("Exit codes: ")[2].split()) == told


@table("words", [[], *([name] for name in COMMANDS), *INNER])
def test_the_help_of_each_command_has_examples_common_options_and_no_line_over_80_columns(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, text, err = gaia(*words, "-h").all
    assert (code, err, [line for line in text.splitlines() if len(line) > 80]) == (0, "", [])
    assert gaia(*words, "--help").all == (code, text, err)
    assert "..." not in text.partition("Commands:")[2], "every summary is told whole"
    if words:
        assert text.count("\nCommon options: --root DIR, --lock-timeout SECONDS, --json, -h\n") == 1
        assert [text.count(option) for option in ("--root ", "--lock-timeout ", "  -h, --help")] == [1, 1, 0]
    if len(words) == 1:
        assert text.startswith(f"Usage: gaia-sessions {words[0]} [OPTIONS]")
        assert f"\n    gaia-sessions {words[0]}" in text.partition("Examples:")[2]


@table("name", COMMANDS)
def test_every_command_has_the_common_options_and_explains_each_option(name: str) -> None:
    """The help begins with the summary in the table, and every short option has a long form."""
    command = command_of(name)
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert (command.help or "").startswith(COMMANDS[name].rstrip("."))
    assert [option.name for option in options if not option.help] == []
    assert [option.opts for option in options if not any(word.startswith("--") for word in option.opts)] == []
    assert {"--root", "--lock-timeout", "--json"} <= {word for option in command.params for word in option.opts}


def test_no_message_names_a_documentation_page_that_is_not_installed() -> None:
    """Docstrings may name one, and so may ``session/shapes.py``: a page is generated from that module."""
    package = Path(gaia_sessions.__file__).parent
    pages = ("docs/", "README.md", *(page.name for page in (package.parent / "docs").glob("*.md")))
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    named = [
        text
        for path, source in sources.items()
        if path != package / "session" / "shapes.py" and any(page in source for page in pages)
        for text in _texts(source)
        if any(page in text for page in pages)
    ]

    assert (named, len(pages) > 5) == ([], True)


def _texts(source: str) -> Iterator[str]:
    """The string literals of a module without its docstrings."""
    nodes = [*ast.walk(ast.parse(source))]
    docstrings = [node.value for node in nodes if isinstance(node, ast.Expr)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def test_the_table_of_commands_matches_the_command_modules() -> None:
    folder = Path(str(import_module("gaia_sessions.cli.commands").__file__)).parent
    files = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert files == {*COMMANDS, *HIDDEN.values()}


def examples() -> Iterator[str]:
    for text in [commands.epilog, *(command_of(name).epilog for name in COMMANDS)]:
        yield from (line.strip() for line in (text or "").splitlines() if line.startswith("  gaia-sessions"))


OF_STORE = "gaia-sessions store "
CLAUDE = """#!/bin/sh
read -r told
echo '{"type": "result", "is_error": false, "num_turns": 1, "result": "Done."}'
"""
"""A client that answers at once."""


def typed(gaia: Gaia, line: str) -> Ended:
    """The output and the exit code of ``line``, as if typed in a shell."""
    left, operator, right = re.fullmatch(r"(.*?)(?: (\|\||&&) (.*))?", line).groups()  # type: ignore[union-attr]
    left, _, file = left.partition(" < ")
    _, *words = shlex.split(left.partition(" > ")[0])
    run = forked if words[0] in ("run", "send") else gaia
    ended: Ended = run(*words, stdin=Path(file).read_bytes() if file else b"")
    if operator is None or (ended.code == 0) != (operator == "&&"):
        return Ended(0 if operator == "||" else ended.code, ended.out, ended.err)
    return typed(gaia, right) if right.startswith("gaia-sessions") else Ended(0, b"", ended.err)


@fresh_table("example", [example for example in examples() if not example.startswith(OF_STORE)])
def test_every_example_in_the_help_works_as_typed(
    gaia: Gaia, put: Gaia, root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, example: str
) -> None:
    if " create " not in example:
        todos = [{"description": "read", "status": "pending" if " todo " in example else "completed"}]
        put("agent-123", agent_name="terraform-architect", revision=4, todos=todos)
        put(ID)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("my-agent", "pytest"):
        (tools / name).symlink_to("/bin/true")
    (tools / "claude").write_text(CLAUDE, encoding="utf-8")
    (tools / "claude").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    project = tmp_path / "projects" / "project"
    (project.parent / "old-project" / ".claude" / "session").mkdir(parents=True)
    project.mkdir()
    monkeypatch.chdir(project)
    Path("output.txt").write_text("done\n", encoding="utf-8")
    said = [{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Done"}]
    Path("messages.json").write_text(json.dumps(said), encoding="utf-8")
    Path("findings.json").write_text('{"finding": "issue B"}', encoding="utf-8")
    Path("event.json").write_text('{"hook_event_name": "SessionEnd", "session_id": "s"}', encoding="utf-8")
    ended = typed(gaia, example)
    err = ended.err.decode().splitlines()
    named = [line for line in err if " install" not in example or "writing /" not in line]
    tells = example.split()[1] in ("report", "wait")  # they say on stderr that no agent was started
    assert (ended.code, named if not tells else []) == (0, [])
    assert os.path.isdir(root) or any(word in example for word in ("schema", "cleanup"))


def test_every_example_of_a_server_in_the_help_works_as_typed(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = empty_url()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    monkeypatch.chdir(tmp_path)
    Path(".claude", "session").mkdir(parents=True)
    named = [example for example in examples() if example.startswith(OF_STORE)]
    lines = [example.replace("postgresql://db.example.com/agents", shlex.quote(url)) for example in named]
    ended = [typed(gaia, line) for line in lines]
    assert [(one.code, one.err) for one in ended] == [(0, b"")] * len(lines)
    assert lines


@table("flag", ["--version", "-V"])
def test_version_prints_the_version_of_the_package(gaia: Gaia, flag: str) -> None:
    assert gaia(flag).answer == [f"gaia-sessions, version {gaia_sessions.__version__}"]


def test_the_console_script_is_this_program() -> None:
    [script] = distribution("gaia-sessions").entry_points.select(group="console_scripts")
    assert (script.name, script.load().__module__) == ("gaia-sessions", "gaia_sessions.cli.start")


# The root


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


def test_a_relative_root_option_is_below_the_current_folder(gaia: Gaia) -> None:
    assert gaia("--root", "some/where", "create", "--id", "a").code == 0
    assert os.path.isfile("some/where/a/state.json")


@table("words", [["list"], ["create"], ["get", "a"], ["cleanup"], ["update", "a"]])
def test_a_relative_root_in_the_environment_is_a_usage_error(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", "relative")
    before = os.listdir()
    assert gaia(*words).refusal == (
        2,
        "GAIA_SESSIONS_ROOT: 'relative' is not absolute",
        "set it to a path that begins with /",
    )
    assert os.listdir() == before


def test_the_default_root_is_in_the_folder_of_the_project(gaia: Gaia, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAIA_SESSIONS_ROOT")
    Path(".git").mkdir()
    Path("deep/down").mkdir(parents=True)
    top = Path.cwd()
    monkeypatch.chdir("deep/down")
    assert gaia("create", "--id", "a").code == 0
    assert (top / ".claude/session/a/state.json").is_file()


def test_a_deleted_current_folder_is_an_error_only_without_a_set_root(
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


@table(
    ("key", "unknown", "hint"),
    [
        ("idle_minute = 3", "idle_minute", "did you mean idle_minutes?"),
        ("[hooks]\nenable = true", "hooks.enable", "did you mean hooks.enabled?"),
    ],
)
@table("place", [".claude/gaia-sessions.toml", "elsewhere/.config.toml"])
def test_an_unknown_setting_in_a_projects_file_stops_no_command_and_doctor_has_a_suggestion(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, place: str, key: str, unknown: str, hint: str
) -> None:
    file = Path(place).absolute()
    file.parent.mkdir(exist_ok=True)
    file.write_text(key, encoding="utf-8")
    root = file.parent if file.name == ".config.toml" else file.parent / "session"
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", str(root))
    assert gaia("list", "--json").json == []
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "settings"]
    assert (found["state"], found["found"]) == ("problem", f"{file}: unknown setting {unknown} ({hint})")


@table(
    ("name", "value"),
    [("GAIA_SESSIONS_IDLE_MINUTE", "3"), ("GAIA_SESSIONS_MAX_ERRORS", "none"), ("GAIA_SESSIONS_DURABILITY", "some")],
)
def test_an_invalid_settings_variable_is_a_usage_error(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(name, value)
        ended = gaia("list", "--json")
    assert (ended.code, ended.error["code"]) == (2, "bad_setting")


@table("seconds", ["-1", "nan", "inf", "soon"])
def test_an_invalid_lock_timeout_is_a_usage_error(gaia: Gaia, put: Gaia, seconds: str) -> None:
    put("a")
    assert gaia("update", "a", f"--lock-timeout={seconds}").code == 2
    assert gaia(f"--lock-timeout={seconds}", "update", "a").code == 2


@table("wait", ["0", "500ms", "0.5 seconds", "2m"])
def test_a_lock_timeout_may_be_0_and_may_have_a_unit(gaia: Gaia, put: Gaia, wait: str) -> None:
    put("a")
    assert gaia("update", "a", "--lock-timeout", wait).code == 0
    assert gaia("--lock-timeout", wait, "update", "a").code == 0


# What a command imports

LOADED = """
import json, os, sys
before = set(sys.modules)
from gaia_sessions.cli.main import main
told = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDWR), 1)
for words in json.loads(sys.argv[1]):
    if not os.fork():
        code = main(words)
        foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
        ours = [name.removeprefix("gaia_sessions.cli.") for name in sys.modules]
        ours = sorted(name for name in ours if name.startswith("commands.") or name == "mistakes")
        os.write(told, json.dumps([words, code, sorted(foreign), ours]).encode() + bytes([10]))
        os._exit(0)
    os.wait()
"""
LOADS = [
    (["--help"], 0, []),
    (["create"], 0, ["commands.create"]),
    (["get", "a"], 0, ["commands.get"]),
    (["update", "a", "--phase", "planning", "-m", "k=v"], 0, ["commands.update"]),
    (["should-resume", "a"], 0, ["commands.should_resume"]),
    (["should-resume", "a", "--json"], 0, ["commands.should_resume"]),
    (["list"], 0, ["commands.list"]),
    (["list", "--json"], 0, ["commands.list"]),
    (["list", "--since", "2h"], 0, ["commands.list"]),
    (["finalize", "a", "completed"], 0, ["commands.finalize"]),
    (["cleanup"], 0, ["commands.cleanup"]),
    (["show", "a"], 0, ["commands.show"]),
    (["get", "b"], 3, ["commands.get"]),
    (["lis"], 2, ["mistakes"]),
    (["ls", "--nonsense"], 2, ["commands.list", "mistakes"]),
]


def test_a_command_imports_only_click_and_its_module_and_the_mistakes_table_only_on_errors(
    put: Gaia,
) -> None:
    put("a")
    command = [sys.executable, "-c", LOADED, json.dumps([words for words, _, _ in LOADS])]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [
        [words, code, ["click", "gaia_sessions"], loaded] for words, code, loaded in LOADS
    ]


# Reading changes no file


@pytest.mark.parametrize("there", [True, False], ids=["a root", "no root"])
@table("words", READING)
def test_a_read_only_command_creates_and_changes_no_file(
    gaia: Gaia, put: Gaia, spoil: Gaia, tree: Gaia, away_from_home: Path, words: list[str], *, there: bool
) -> None:
    if there and not Path(os.environ["GAIA_SESSIONS_ROOT"], "made").exists():
        gaia("create", "--id", "made")
        put("a")
        spoil("torn")
    before = tree(), everything_in(away_from_home)
    gaia(*words)
    assert (tree(), everything_in(away_from_home)) == before


# Control characters


@fresh_table(
    "words",
    [
        ["list"],
        ["list", "--json"],
        ["show", "nasty"],
        ["get", "nasty"],
        ["should-resume", "nasty"],
        ["should-resume", "nasty", "--json"],
        ["resume", "nasty"],
        ["resume", NASTY],
        ["resume", "denied"],
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
def test_no_control_character_reaches_the_output(gaia: Gaia, put: Gaia, spoil: Gaia, words: list[str]) -> None:
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
    put("denied", denial={"message": NASTY, "timestamp": moment})
    spoil("torn", json.dumps({"agent_id": NASTY}).encode())
    ended = gaia(*words)
    for stream in (ended.out, ended.err):
        assert [char for char in stream.decode() if char < " " and char != "\n"] == []
        assert [char for char in stream.decode() if "\x7f" <= char < "\xa0"] == []
        if words not in (["get", "nasty"], ["list", "--json"]):  # JSON keeps every character
            assert UNSEEN.intersection(stream.decode()) == frozenset()


@table("words", [["list"], ["show", "nasty"]])
def test_on_a_terminal_only_the_programs_own_colours_are_control_characters(
    terminal: Gaia, put: Gaia, words: list[str]
) -> None:
    put("nasty", agent_name=NASTY, purpose=NASTY, metadata={NASTY: NASTY}, summary=NASTY)
    rest = re.sub(rb"\x1b\[[0-9;]*m", b"", shown_on(terminal, words))
    assert b"evil" in rest
    assert [char for char in rest.decode() if (char < " " and char not in "\r\n") or "\x7f" <= char < "\xa0"] == []
    assert UNSEEN.intersection(rest.decode()) == frozenset()


# Terminals, colours, widths


def shown_on(terminal: Gaia, words: list[str], columns: int = 100, **environment: str) -> bytes:
    ended = terminal(*words, columns=columns, **environment)
    assert ended.code == 0, ended
    return bytes(ended.out)


@pytest.fixture
def one(put: Gaia) -> None:
    put(ID, agent_name="terraform-architect", purpose="approval_workflow", metadata={"task": "T001"})


@pytest.mark.usefixtures("one")
def test_a_terminal_gets_a_table_in_colours(gaia: Gaia, terminal: Gaia) -> None:
    listed = shown_on(terminal, ["list"])
    assert (b"abc12345 " in listed, b"\x1b[1;33mwaiting" in listed) == (True, True)
    assert b"\x1b" not in gaia("list").out
    assert b"last activity" not in gaia("list").out


@pytest.mark.usefixtures("one")
@table("words", [["list"], ["show", ID]])
def test_no_color_means_no_colour(terminal: Gaia, words: list[str]) -> None:
    codes = re.findall(rb"\x1b\[([0-9;]*)m", shown_on(terminal, words, NO_COLOR="1"))
    assert {code for code in codes if code not in {b"", b"0", b"1", b"2"}} == set()


@pytest.mark.usefixtures("one")
@table("words", [["list"], ["show", ID], ["--help"]])
def test_a_dumb_terminal_gets_no_escapes(terminal: Gaia, words: list[str]) -> None:
    assert b"\x1b" not in shown_on(terminal, words, TERM="dumb")


@pytest.mark.usefixtures("one")
@table(
    ("words", "shown"),
    [(["list"], b"\nabc12345 "), (["show", ID], ID.encode()), (["--help"], b""), (["update", "--help"], b"")],
)
def test_a_narrow_terminal_still_gets_whole_ids(terminal: Gaia, words: list[str], shown: bytes) -> None:
    assert shown in shown_on(terminal, words, columns=40, NO_COLOR="1", TERM="dumb")


@pytest.mark.usefixtures("one")
@table("words", [["list", "--json"], ["get", ID], ["should-resume", ID], ["update", ID], ["cleanup"]])
def test_json_and_single_line_answers_have_no_escapes_on_a_terminal(
    gaia: Gaia, terminal: Gaia, words: list[str]
) -> None:
    assert b"\x1b" not in shown_on(terminal, words)
    assert gaia(*words).code == 0


@pytest.mark.usefixtures("one")
@table("words", [["list"], ["show", ID], ["--help"], ["list", "--json"], ["nonsense"]])
def test_piped_output_has_no_escapes_and_ignores_the_terminal_width(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    narrow = gaia(*words)
    monkeypatch.setenv("COLUMNS", "200")
    wide = gaia(*words)
    assert b"\x1b" not in narrow.out + narrow.err + wide.out + wide.err
    if "--help" not in words:
        assert narrow.all == wide.all


@pytest.mark.usefixtures("one")
def test_a_separate_process_prints_the_same_list_into_a_pipe(gaia: Gaia, program: Gaia) -> None:
    assert program("list", COLUMNS="40", TERM="xterm-256color").all == gaia("list").all


# Encodings


@table(("agent_id", "locale"), [("a", {"LC_ALL": "C"}), ("b", {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})])
def test_in_an_ascii_locale_text_is_stored_unchanged_and_json_is_utf_8(
    program: Gaia, state: Gaia, agent_id: str, locale: dict[str, str]
) -> None:
    words = ("create", "--id", agent_id, "--agent", "zażółć ✓", "--metadata", '{"ü": "→"}')
    assert program(*words, **locale).answer == [agent_id]
    assert (state(agent_id)["agent_name"], state(agent_id)["metadata"]) == ("zażółć ✓", {"ü": "→"})
    assert program("get", agent_id, **locale).json == state(agent_id)
    for line, code in (("list", 0), ("get ✓", 7)):
        ended = program(*line.split(), **locale)
        assert (ended.code, b"Traceback" in ended.err) == (code, False)


def test_with_ascii_streams_json_is_utf_8_and_no_command_fails(gaia: Gaia) -> None:
    gaia("create", "--id", "a", "--agent", "zażółć ✓", "--metadata", '{"ü": "→"}')
    for line in ("list --json", "show a", "update a --phase planning"):
        ended = gaia(*line.split(), environment={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert (ended.code, b"Traceback" in ended.err) == (0, False)
        if "--json" in line:
            assert ended.json[0]["agent_name"] == "zażółć ✓"


def test_utf_8_arguments_are_stored_unchanged_even_if_python_decodes_arguments_as_ascii(
    program: Gaia, state: Gaia
) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert program("create", "--id", "a", "--agent", "é", "-m", "k=é", **plain).code == 0
    assert (state("a")["agent_name"], state("a")["metadata"]) == ("é", {"k": "é"})


@table("option", ["--agent", "--purpose", "--metadata", "--id"])
def test_create_refuses_an_option_value_that_is_not_utf_8(gaia: Gaia, root: str, option: str) -> None:
    ended = gaia("create", "--json", option, "\udcff")
    assert (ended.code, ended.error["code"].startswith("invalid_"), os.path.exists(root)) == (7, True, False)


@table("words", [(b"\xff", "--json"), ("get", "a", "--json", b"\xff")])
def test_arguments_that_are_not_utf_8_are_usage_errors_in_json(program: Gaia, words: tuple[str | bytes, ...]) -> None:
    ended = program(*words)
    assert (ended.code, ended.error["code"]) == (2, "usage")


@table(("words", "code"), [(["get", "torn"], 6), (["list"], 0), (["cleanup"], 0), (["should-resume", "torn"], 6)])
def test_a_root_whose_path_is_not_utf_8_works_with_json(
    gaia: Gaia, tmp_path: Path, words: list[str], code: int
) -> None:
    root = os.fsencode(tmp_path) + b"/\xff"
    os.makedirs(root + b"/torn", exist_ok=True)
    with open(root + b"/torn/state.json", "wb") as file:
        file.write(b"[1]")
    ended = gaia("--root", os.fsdecode(root), *words, "--json")
    assert (ended.code, json.loads(ended.err or ended.out) is not None) == (code, True)


OF_A_SERVER = """
import json, os, sys
from gaia_sessions.cli.main import main
told = os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDWR), 1)
for words in json.loads(sys.argv[1]):
    if not os.fork():
        code = main(words)
        needed = "psycopg", "gaia_sessions.postgres", "gaia_sessions.api.stand_ins"
        loaded = [name for name in sys.modules if name.startswith(needed)]
        os.write(told, json.dumps([words, code, loaded]).encode() + bytes([10]))
        os._exit(0)
    os.wait()
"""


def test_no_command_on_files_imports_what_a_server_needs(put: Gaia) -> None:
    put("a")
    typed = [
        "create",
        "update a",
        "list",
        "pending",
        "show a",
        "tree",
        "run -- true",
        "send a hi -- echo yes",
        "finalize a completed",
    ]
    rows = [line.split() for line in [*typed, "wait a", "report a", "stats", "reconcile", "cleanup", "rm a"]]
    command = [sys.executable, "-c", OF_A_SERVER, json.dumps(rows)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in ended.stdout.splitlines()] == [[words, 0, []] for words in rows]
