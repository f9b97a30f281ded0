"""Wrong command lines: the error and the hint say what is wrong and what to type, in 80 columns."""

from __future__ import annotations

import json
import shlex
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from gaia_sessions.cli import mistakes
from gaia_sessions.cli.group import COMMANDS, HIDDEN
from gaia_sessions.cli.main import commands
from gaia_sessions.hosts.marker import read_marker
from gaia_sessions.session.state import STATES as STATE_WORDS
from gaia_sessions.session.trace import trace_of
from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Gaia


WIDTH = 80
FINALIZE = "usage: gaia-sessions finalize [OPTIONS] ID completed|failed|abandoned"
PHASES = (
    "the phases are initializing, investigating, planning, approval, executing, validating, "
    "completed, failed, abandoned"
)
STATES = "the states are " + ", ".join(STATE_WORDS)

WRONG = [
    # Commands
    ("updat a", "No such command 'updat'.", "did you mean update?"),
    ("should_resume a", "No such command 'should_resume'.", "did you mean should-resume?"),
    ("lsit", "No such command 'lsit'.", "did you mean list?"),
    ("Doctro", "No such command 'Doctro'.", "did you mean doctor?"),
    ("frobnicate", "No such command 'frobnicate'.", "gaia-sessions --help lists the commands"),
    ("hooks instal", "No such command 'instal'.", "did you mean install or uninstall?"),
    ("hooks frobnicate", "No such command 'frobnicate'.", "gaia-sessions hooks --help lists the commands"),
    ("help frobnicate", "No such command 'frobnicate'.", "gaia-sessions --help lists the commands"),
    ("help hooks instal", "No such command 'instal'.", "did you mean install or uninstall?"),
    ("help list x", "Got unexpected extra argument (x)", "usage: gaia-sessions list [OPTIONS]"),
    ("help prune", "No such command 'prune'.", "type gaia-sessions help cleanup"),
    ("help hooks add", "No such command 'add'.", "type gaia-sessions help hooks install"),
    ("help status", "No such command 'status'.", "did you mean gaia-sessions show ID?"),
    ("Status a", "No such command 'Status'.", "type gaia-sessions show a"),
    ("stauts a", "No such command 'stauts'.", "type gaia-sessions show a"),
    ("stauts", "No such command 'stauts'.", "did you mean gaia-sessions show ID?"),
    ("resum a", "No such command 'resum'.", "did you mean resume?"),
    ("revive", "No such command 'revive'.", "type gaia-sessions resume"),
    ("Continue --host-session b", "No such command 'Continue'.", "type gaia-sessions resume --host-session b"),
    ("watch", "No such command 'watch'.", "did you mean gaia-sessions events ID --follow?"),
    ("tail -f a", "No such command 'tail'.", "did you mean gaia-sessions events ID --follow?"),
    (
        "--json=x list",
        "Option '--json' does not take a value.",
        "type --help after the name of a command to see its options",
    ),
    # Outcomes and phases
    ("finalize a COMPLETED", "unknown outcome 'COMPLETED'", "type gaia-sessions finalize a completed"),
    ("finalize COMPLETED a", "unknown outcome 'COMPLETED'", "type gaia-sessions finalize completed a"),
    ("finalize a faild --error x", "unknown outcome 'faild'", "type gaia-sessions finalize a failed --error x"),
    ("finalize a done", "unknown outcome 'done'", "type gaia-sessions finalize a completed"),
    ("finalize a cancelled", "unknown outcome 'cancelled'", "the outcomes are completed, failed, abandoned"),
    ("finalize a failed-x", "unknown outcome 'failed-x'", "type gaia-sessions finalize a failed"),
    ("update a --phase Approval", "unknown phase 'Approval'", "type gaia-sessions update a --phase approval"),
    ("update a --phase=aproval", "unknown phase 'aproval'", "type gaia-sessions update a --phase=approval"),
    ("update a --phase aproval --error aproval", "unknown phase 'aproval'", "did you mean approval?"),
    ("update a --phase running", "unknown phase 'running'", PHASES),
    ("list --phase planing --limit 3", "unknown phase 'planing'", "type gaia-sessions list --phase planning --limit 3"),
    ("list --phase active", "unknown phase 'active'", PHASES),
    ("list --phase activ", "unknown phase 'activ'", PHASES),
    ("list --phase done", "unknown phase 'done'", "type gaia-sessions list --phase completed"),
    # States
    ("list --phase error", "unknown phase 'error'", "type gaia-sessions list --state error"),
    ("list --phase=waiting --limit 3", "unknown phase 'waiting'", "type gaia-sessions list --state waiting --limit 3"),
    ("list --phase running", "unknown phase 'running'", "type gaia-sessions list --state working"),
    ("list --phase interupted", "unknown phase 'interupted'", "type gaia-sessions list --state interrupted"),
    ("list --state planning", "unknown state 'planning'", "type gaia-sessions list --phase planning"),
    ("list --state cut-short", "unknown state 'cut-short'", "type gaia-sessions list --state 'cut short'"),
    ("list --state error,crashd", "unknown state 'crashd'", "type gaia-sessions list --state error,crashed"),
    ("list --state Waiting", "unknown state 'Waiting'", "type gaia-sessions list --state waiting"),
    ("list --state sleeping", "unknown state 'sleeping'", STATES),
    ("list --state ''", "unknown state ''", STATES),
    # No command line is suggested: both filters together would select something else.
    ("list --phase planning --phase error", "unknown phase 'error'", "did you mean --state error?"),
    ("list --phase planning,error", "unknown phase 'error'", "did you mean --state error?"),
    ("list --state new --phase error", "unknown phase 'error'", "did you mean --state error?"),
    ("update a --phase error", "unknown phase 'error'", PHASES),
    ("hooks install --host codx", "unknown host 'codx'", "type gaia-sessions hooks install --host codex"),
    # A missing command
    *(
        (typed, "no command given", f"put a command after --, for example: gaia-sessions {meant} -- ./agent")
        for typed, meant in [
            ("run", "run"),
            ("run --timeout 3 --", "run"),
            ("run a", "run a"),
            ("run a --", "run a"),
            ("send a", "send ID TEXT"),
        ]
    ),
    ("run sh ask.sh", "no command given", "put -- before the command: gaia-sessions run -- sh ask.sh"),
    # Options
    ("get a --jsn", "No such option '--jsn'.", "did you mean --json?"),
    ("update a --frobnicate", "No such option '--frobnicate'.", "gaia-sessions update --help lists the options"),
    ("cleanup --days 1", "No such option '--days'.", "gaia-sessions cleanup --help lists the options"),
    (
        "hooks --host codex install",
        "No such option '--host'.",
        "options go after the name of their command: see gaia-sessions hooks --help",
    ),
    (
        "create --agent",
        "Option '--agent' requires an argument.",
        "type --help after the name of a command to see its options",
    ),
    (
        "list --limit few",
        "Invalid value for '--limit': 'few' is not a valid integer range.",
        "see gaia-sessions list --help",
    ),
    (
        "list --since soon",
        "--since 'soon' is not valid",
        "must be a time like 2h, 18:05, yesterday, 'last week' or 2026-01-08",
    ),
    (
        "cleanup --hours soon",
        "--hours 'soon' is not a length of time",
        "give, for example, 90s, 15m, 1h30m or 2d, or a number of hours",
    ),
    ("update a -m '{}'", "-m takes KEY=VALUE, not '{}'", "type --metadata '{}'"),
    ("update a -m plan", "-m takes KEY=VALUE, not 'plan'", "type, for example, -m task=T001"),
    # Arguments
    ("update", "Missing argument 'ID'.", "type an ID from gaia-sessions list, or gaia-sessions update latest"),
    (
        "update -m k=v",
        "Missing argument 'ID'.",
        "type an ID from gaia-sessions list, or gaia-sessions update -m k=v latest",
    ),
    ("wait", "Missing argument 'ID...'.", "type an ID from gaia-sessions list, or gaia-sessions wait latest"),
    (
        "should-resume",
        "Missing argument 'ID'.",
        "type an ID from gaia-sessions list, or gaia-sessions should-resume latest",
    ),
    ("approve", "Missing argument 'ID'.", "gaia-sessions pending shows who waits, and what to type"),
    (
        "rm --force",
        "Missing argument 'ID...'.",
        "the IDs: `gaia-sessions list`; to remove old ones: `gaia-sessions cleanup`",
    ),
    ("finalize", "Missing argument 'ID'.", FINALIZE),
    ("finalize a", "Missing argument 'completed|failed|abandoned'.", FINALIZE),
    ("skill add a aws", "Missing option '--tokens'.", "see gaia-sessions skill add --help"),
    ("todo done a", "Missing argument 'N'.", "usage: gaia-sessions todo done [OPTIONS] ID N"),
    ("update a approval", "Got unexpected extra argument (approval)", "usage: gaia-sessions update [OPTIONS] ID"),
    ("list a1 a2", "Got unexpected extra arguments (a1 a2)", "usage: gaia-sessions list [OPTIONS]"),
    ("list failed", "Got unexpected extra argument (failed)", "did you mean --state failed?"),
    ("list -q Dead", "Got unexpected extra argument (Dead)", "did you mean --state crashed?"),
    ("list --state failed error", "Got unexpected extra argument (error)", "usage: gaia-sessions list [OPTIONS]"),
    ("approve a -m ok", "No such option '-m'.", "did you mean --note?"),
    ("approve a --message ok", "No such option '--message'.", "did you mean --note?"),
    ("finalize a b failed", "Got unexpected extra argument (failed)", FINALIZE),
]


@table(("line", "error", "hint"), WRONG)
def test_a_wrong_command_line_prints_the_error_and_a_hint(
    gaia: Gaia, put: Gaia, tree: Gaia, line: str, error: str, hint: str
) -> None:
    put("a")
    before = tree()
    assert gaia(*shlex.split(line)).refusal == (2, error, hint)
    assert tree() == before
    lines = (f"Error: {error}", f"Hint: {hint}")
    assert [text for text in lines if len(text) > WIDTH and hint not in (PHASES, STATES)] == []


@fresh_table("hint", sorted({hint for _, _, hint in WRONG if hint.startswith("type gaia-sessions")}))
def test_each_suggested_command_line_works(gaia: Gaia, put: Gaia, hint: str) -> None:
    put("a")
    assert gaia(*shlex.split(hint)[2:]).code == 0


REFUSED = [
    ("update a --metadata plan=x", "'plan=x' is not JSON", "type -m plan=x instead"),
    ("update a --metadata=plan=x -m k=v", "'plan=x' is not JSON", "type -m plan=x instead"),
    ("update a --metadata @f.json", "'@f.json' is a file, not JSON", "type --metadata - < f.json instead"),
    ("update a --metadata f.json", "'f.json' is a file, not JSON", "type --metadata - < f.json instead"),
    ("update a --metadata ''", "the value is empty", """type --metadata '{"key": "value"}', or omit the option"""),
    (
        """update a --metadata "{'k': 'v'}" """,
        "line 1 column 2: not JSON: single quotes instead of double quotes\n  {'k': 'v'}\n   ^",
        """JSON needs double quotes: --metadata '{"key": "value"}'""",
    ),
    (
        "update a --metadata '{k: v}'",
        "line 1 column 2: not JSON: no quotes around k\n  {k: v}\n   ^",
        """JSON needs double quotes: --metadata '{"key": "value"}'""",
    ),
    (
        """update a --metadata '{"k":1,}'""",
        'line 1 column 7: not JSON: a comma before the closing brace\n  {"k":1,}\n        ^',
        "",
    ),
    ("update a --metadata @none", "line 1 column 1: not JSON: '@' instead of a value\n  @none\n  ^", ""),
    ("update a --metadata '[]'", "expected a JSON object, not an array", ""),
]


@table(("line", "problem", "hint"), REFUSED)
def test_invalid_metadata_prints_the_problem_and_a_hint_and_changes_nothing(
    gaia: Gaia, put: Gaia, tree: Gaia, line: str, problem: str, hint: str
) -> None:
    put("a")
    Path("f.json").write_text('{"k": "v"}', encoding="utf-8")
    before = tree()
    advice = f"Hint: {hint}\n" if hint else ""
    assert gaia(*shlex.split(line)).all == (7, "", f"Error: --metadata: {problem}\n{advice}")
    assert tree() == before


@fresh_table("command", [["create", "--id", "a"], ["update", "a"]])
def test_repeated_metadata_is_merged_in_order_and_nothing_is_dropped(
    gaia: Gaia, put: Gaia, state: Gaia, command: list[str]
) -> None:
    if command[0] == "update":
        put("a", metadata={"old": 0})
    given = ["--metadata", '{"a": 1, "b": 1}', "-m", "c=pair", "--metadata", "-", "--metadata", '{"b": 3, "c": 3}']
    assert gaia(*command, *given, stdin=b'{"b": 2, "d": 2}').code == 0
    old = {"old": 0} if command[0] == "update" else {}
    assert state("a")["metadata"] == {**old, "a": 1, "b": 3, "c": "pair", "d": 2}


def test_metadata_from_standard_input_twice_is_refused(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    put("a")
    before = tree()
    expected = "Error: --metadata - was given twice\nHint: use it once: standard input can be read only once\n"
    assert gaia("update", "a", "--metadata", "-", "--metadata", "-", stdin=b'{"a": 1}').all == (2, "", expected)
    assert tree() == before


@table("words", [("completed", "a"), ("--summary", "x", "completed", "a"), ("completed", "--", "a")])
def test_finalize_takes_outcome_and_id_in_either_order(gaia: Gaia, put: Gaia, state: Gaia, words: Any) -> None:
    put("a")
    assert gaia("finalize", *words).code == 0
    assert state("a")["phase"] == "completed"


def test_finalize_can_end_a_session_whose_id_is_an_outcome(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("failed")
    assert gaia("finalize", "failed", "completed").code == 0
    assert state("failed")["phase"] == "completed"


@table(("typed", "hours"), [("2 hours", 2), ("1w", 168), ("0.5", 0.5), ("1.5h", 1.5)])
def test_cleanup_takes_a_length_of_time_with_its_unit(gaia: Gaia, typed: str, hours: float) -> None:
    assert gaia("cleanup", "--hours", typed, "--json").json["hours"] == hours


@table(("typed", "code"), [("50ms", 124), ("0.05", 124), ("0 minutes", 124), ("5x", 2), ("-1s", 2)])
def test_wait_takes_a_length_of_time_with_its_unit(gaia: Gaia, put: Gaia, typed: str, code: int) -> None:
    put("a")
    assert gaia("wait", "a", f"--timeout={typed}").code == code


# JSON


@table(
    "words",
    [
        ("--json", "nope"),
        ("nope", "--json"),
        ("--json", "get"),
        ("hooks", "--json", "nope"),
        ("--json", "update", "a", "--nope"),
        ("update", "a", "--nope", "--json"),
        ("--json", "finalize", "a", "done"),
        ("--root", "x", "--json", "get", "a"),
    ],
)
def test_errors_are_json_wherever_the_json_option_is(gaia: Gaia, words: tuple[str, ...]) -> None:
    assert set(gaia(*words).error) == {"code", "message", "hint"}


@table("words", [("--json", "list"), ("list", "--json"), ("--json", "list", "--json")])
def test_the_json_option_may_come_before_or_after_the_command(gaia: Gaia, put: Gaia, words: tuple[str, ...]) -> None:
    put("a")
    assert [line["agent_id"] for line in gaia(*words).json] == ["a"]


@pytest.mark.usefixtures("away_from_home")
@table("words", [("--json", "hooks", "status"), ("hooks", "--json", "status"), ("hooks", "status", "--json")])
def test_the_json_option_works_at_every_place_in_a_nested_command(gaia: Gaia, words: tuple[str, ...]) -> None:
    assert gaia(*words).json["last_received"] == {}


@table(
    "words",
    [
        ("finalize", "nobody", "completed", "--summary", "--json"),
        ("update", "nobody", "-m", "--json"),
        ("update", "--host-agent", "s", "--json"),
        ("get", "--", "--json"),
    ],
)
def test_json_as_a_value_or_an_argument_is_not_the_option(gaia: Gaia, words: tuple[str, ...]) -> None:
    ended = gaia(*words)
    assert (ended.code > 0, ended.err.startswith(b"Error: ")) == (True, True)


# Words of other tools

FILLED = {"ID": "a", "TEXT": "too dear", "N": "2", "NAME": "aws"}
"""The words that are typed for the placeholders."""

EVENT = {"at": "2026-01-08T18:05:30Z", "kind": "start"}

MORE = {"add ID NAME": ["--tokens", "5"], "rm ID": ["--force"]}
"""More words that a command line needs."""


def settings_exist(answer: Any, *_: object) -> bool:
    return Path(answer["file"]).exists()


DOES: dict[str, Callable[[Any, Any, str], bool]] = {
    "create": lambda answer, _, root: Path(root, answer["agent_id"], "state.json").exists(),
    "get ID": lambda answer, record, _: answer == record,
    "show ID": lambda answer, _, __: (answer["agent_id"], answer["resume"]["should_resume"]) == ("a", True),
    "update ID": lambda answer, record, _: (answer, record["phase"], record["revision"]) == (record, "approval", 2),
    "pending": lambda answer, _, __: "a" in [one["agent_id"] for one in answer],
    "approve ID": lambda _, record, __: record["approval"]["message"] == "",
    "deny ID --reason TEXT": lambda _, record, __: record["denial"]["message"] == "too dear",
    "finalize ID completed": lambda _, record, __: record["phase"] == "completed",
    "finalize ID failed": lambda _, record, __: record["phase"] == "failed",
    "finalize ID abandoned": lambda _, record, __: record["phase"] == "abandoned",
    "resume": lambda answer, record, _: (answer, record["revision"]) == ([], 1),
    "should-resume ID": lambda answer, _, __: answer["should_resume"] is True,
    "cleanup": lambda answer, record, _: (answer["removed"], record["revision"]) == (["old"], 1),
    "rm ID": lambda answer, record, _: [one["agent_id"] for one in answer["removed"]] == ["a"] and record is None,
    "doctor": lambda answer, _, __: "problems" in answer,
    "wait ID": lambda answer, _, __: [report["status"] for report in answer] == ["success"],
    "report ID": lambda answer, _, __: answer["result"] == "here is the plan",
    "usage": lambda answer, *_: [one["agent_name"] for one in answer["agents"]] == ["tester"],
    "usage ID": lambda answer, record, _: (answer["tokens"], record["revision"]) == (0, 1),
    "usage ID --charge N": lambda answer, record, _: answer["tokens"] == record["charged_tokens"] == 2,
    "transcript ID": lambda answer, _, __: answer == [],
    "events ID": lambda answer, _, __: answer == [{**EVENT, "seq": 1, **trace_of("a")}],
    "events ID --follow": lambda answer, _, __: answer == {**EVENT, "seq": 1, **trace_of("a")},
    "list --grep TEXT": lambda answer, _, __: [line["agent_id"] for line in answer] == ["a"],
    "hooks install": settings_exist,
    "hooks uninstall": lambda answer, *_: not settings_exist(answer),
    "hooks status": lambda answer, _, __: "last_received" in answer,
    "todo list ID": lambda answer, _, __: [todo["description"] for todo in answer] == ["read", "write"],
    "todo add ID TEXT": lambda _, record, __: record["todos"][2]["description"] == "too dear",
    "todo done ID N": lambda _, record, __: [todo["status"] for todo in record["todos"]] == ["pending", "completed"],
    "skill add ID NAME": lambda answer, _, __: answer["added"] is True,
}
"""For each command line: whether its answer, the record and the root show what it did."""


@fresh_table("word", mistakes.COMMANDS)
def test_a_command_name_of_another_tool_gets_a_working_command_line_as_a_hint(
    gaia: Gaia, put: Gaia, tree: Gaia, state: Gaia, root: str, word: str
) -> None:
    run = {"run": 1, "host_session_id": "s", "started_at": "2026-01-08T18:05:30Z", "ended_at": "2026-01-08T18:06:30Z"}
    put(
        "a",
        purpose="why it is too dear",
        todos=[{"description": text, "status": "pending"} for text in ("read", "write")],
        runs=[{**run, "end": "stopped", "last_message": "here is the plan"}],
    )
    Path(root, "a", "events.jsonl").write_text(f"{json.dumps(EVENT)}\n", encoding="utf-8")
    put("old", phase="completed", resume_ready=False, idle=timedelta(days=3))
    gaia("hooks", "install")
    before, form = tree(), mistakes.COMMANDS[word]
    *group, name = word.split()
    more = [*MORE.get(form, []), "--json"]
    line = [*group, *(FILLED.get(part, part) for part in form.split()), *more]

    error = gaia(*word.split(), *(FILLED[part] for part in form.split() if part in FILLED), *more).error

    assert (error["code"], error["message"]) == ("usage", f"No such command '{name}'.")
    assert error["hint"] == f"type gaia-sessions {shlex.join(line)}"
    assert tree() == before
    ended = gaia(*line)
    assert DOES[" ".join([*group, form])](json.loads(ended.out), state("a") if Path(root, "a").exists() else None, root)


@table(
    ("line", "hint"),
    [
        ("status", "did you mean gaia-sessions show ID?"),
        ("status a b", "did you mean gaia-sessions show ID?"),
        ("status a --limit 3", "did you mean gaia-sessions show ID?"),
        ("status a --help", "type gaia-sessions show a --help"),
        ("--root 'my sessions' status a", "type gaia-sessions --root 'my sessions' show a"),
        ("set --phase planning", "did you mean gaia-sessions update ID?"),
        ("set a --phase planning", "type gaia-sessions update a --phase planning"),
        ("reject a too dear", "did you mean gaia-sessions deny ID --reason TEXT?"),
        (f"reject a '{'too dear ' * 20}'", "did you mean gaia-sessions deny ID --reason TEXT?"),
        ("tokens a", "type gaia-sessions usage a"),
        ("charge a much", "did you mean gaia-sessions usage ID --charge N?"),
        ("prune a", "did you mean gaia-sessions cleanup?"),
        ("prune --hours 2d", "type gaia-sessions cleanup --hours 2d"),
        ("prune --hours soon", "did you mean gaia-sessions cleanup?"),
        ("install --host codx", "did you mean gaia-sessions hooks install?"),
        ("hooks --json add", "type gaia-sessions hooks --json install"),
    ],
)
def test_a_whole_line_is_suggested_only_if_it_is_valid_and_has_all_typed_words(
    gaia: Gaia, tree: Gaia, line: str, hint: str
) -> None:
    before = tree()
    ended = gaia(*shlex.split(line))
    assert (ended.code, ended.out, hint in ended.err.decode()) == (2, b"", True)
    assert tree() == before


@table("words", [[word, *more] for word in mistakes.NO_COMMAND for more in ([], ["a"])])
def test_a_word_without_a_command_gets_advice_and_no_line_to_type(
    gaia: Gaia, put: Gaia, tree: Gaia, words: list[str]
) -> None:
    put("a")
    before = tree()
    hint = mistakes.NO_COMMAND[words[0]]
    assert gaia(*words).refusal == (2, f"No such command '{words[0]}'.", hint)
    assert (tree(), "type " in hint, len(f"Hint: {hint}") <= WIDTH) == (before, False, True)


def test_the_advice_for_words_without_a_command_is_correct(gaia: Gaia, put: Gaia, root: str, tmp_path: Path) -> None:
    said = mistakes.NO_COMMAND
    last_line = said["pause"].removeprefix("an agent pauses with this last line: ")
    assert read_marker(last_line) == ("approval", None)
    put("a")

    assert said["export"] == "to export, copy the session's folder; to import: gaia-sessions import DIR"
    shutil.copytree(f"{root}/a", tmp_path / "copies" / "a")
    assert said["purge"].startswith("one session: `gaia-sessions rm ID`;")
    assert gaia("rm", "a", "--force").code == 0
    assert (gaia("list", "--json").json, gaia("get", "a").code) == ([], 3)
    assert gaia("import", str(tmp_path / "copies")).code == 0
    assert gaia("get", "a").json["phase"] == "approval"

    assert said["end"] == "to end a session: gaia-sessions finalize ID completed|failed|abandoned"
    assert [gaia("finalize", "a", outcome).code for outcome in ("completed", "failed", "abandoned")] == [0, 4, 4]
    assert said["undo"] == "nobody can undo an end; to continue: gaia-sessions create --continues ID"
    assert gaia("update", "a", "--phase", "planning").code == 4
    assert gaia("create", "--continues", "a").code == 0

    put("b", runs=[{"run": 1, "host_session_id": "s", "started_at": "2026-01-08T18:05:30Z"}])
    assert "to cancel its work: gaia-sessions cancel ID" in said["stop"]
    gaia("cancel", "b")
    assert [gaia("cancelled", "b").code, Path(root, "b", "cancelled.json").exists()] == [10, True]
    assert gaia("get", "b").json["phase"] == "approval"
    assert "for new work: gaia-sessions create" in said["uncancel"]
    assert gaia("create", "--id", "c", "--json").json == {"agent_id": "c"}
    assert said["edit"] == "gaia-sessions update ID takes --phase PHASE, -m KEY=VALUE, --error TEXT"
    changed = gaia("update", "c", "--phase", "planning", "-m", "k=v", "--error", "no disk", "--json").json
    assert [changed[key] for key in ("phase", "metadata", "error_count")] == ["planning", {"k": "v"}, 1]
    assert "to check it: gaia-sessions doctor" in said["config"]
    Path(root, ".config.toml").write_text("nonsense = 1\n", encoding="utf-8")
    assert b"unknown setting nonsense" in gaia("doctor").out


def test_no_word_in_the_table_of_mistakes_is_a_command() -> None:
    words = [*mistakes.COMMANDS, *mistakes.NO_COMMAND]
    names = {path for path, _ in every_command()} | set(HIDDEN)
    assert (len(set(words)), [word for word in words if word in names]) == (len(words), [])


@table("name", [name for name, meant in HIDDEN.items() if meant == "list"])
@table("words", [[], ["--active-only"], ["--json"], ["--limit", "1"], ["--nonsense"], ["a1"]])
def test_ls_and_ps_are_aliases_of_list(gaia: Gaia, put: Gaia, name: str, words: list[str]) -> None:
    put("a")
    put("b", phase="completed")
    code, out, err = gaia("list", *words).all
    assert gaia(name, *words).all == (code, out, err.replace("gaia-sessions list", f"gaia-sessions {name}"))


def every_command() -> Iterator[tuple[str, click.Command]]:
    """The path of each command, nested ones too, and the command; first the program, with an empty path."""
    yield "", commands
    for name in COMMANDS:
        command = commands.get_command(click.Context(commands), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", found) for inner, found in command.commands.items())
        yield name, command


OPTIONS = [
    (path, typed, next(name for name in meant if name in names))
    for path, command in every_command()
    for names in [{name for param in command.params for name in (*param.opts, str(param.name))}]
    for typed, meant in mistakes.OPTIONS.items()
    if typed not in names and names & set(meant)
]
"""Each command without an option of another tool but with the option or argument that is meant."""


@table(("path", "typed", "meant"), OPTIONS)
def test_an_option_of_another_tool_gets_the_right_option_as_a_hint(
    gaia: Gaia, path: str, typed: str, meant: str
) -> None:
    ended = gaia(*path.split(), typed, "x")
    said = f"did you mean {meant}?" if meant.startswith("-") else f"usage: gaia-sessions {path} [OPTIONS] "
    assert (ended.code, ended.err.decode().startswith(f"Error: No such option '{typed}'.\nHint: {said}")) == (2, True)


def test_every_option_in_the_table_is_missing_from_some_command() -> None:
    assert {typed for _, typed, _ in OPTIONS} == set(mistakes.OPTIONS)
    assert {meant for _, _, meant in OPTIONS} == {name for meant in mistakes.OPTIONS.values() for name in meant}
