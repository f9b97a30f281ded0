"""Command lines that are not quite right: what is wrong is said, and the line to type instead, in 80 columns."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from gaia_sessions.cli.group import COMMANDS
from gaia_sessions.cli.main import commands
from gaia_sessions.cli.usage import synonyms
from gaia_sessions.cli.usage.synonyms import closest_word

if TYPE_CHECKING:
    from collections.abc import Callable

    Gaia = Callable[..., Any]

WIDTH = 80
IDS = "gaia-sessions list shows the IDs"
ALL = (
    "the phases are initializing, investigating, planning, approval, executing, validating, "
    "completed, failed, abandoned"
)

WRONG = [
    # Commands
    ("updat a", "no such command: updat", "type gaia-sessions update a"),
    ("Get a", "no such command: Get", "type gaia-sessions get a"),
    ("should_resume a", "no such command: should_resume", "type gaia-sessions should-resume a"),
    ("finalise a completed", "no such command: finalise", "type gaia-sessions finalize a completed"),
    ("lis", "no such command: lis", "type gaia-sessions list"),
    ("ls -l", "no such command: ls", "type gaia-sessions list"),
    ("ls --active-only", "no such command: ls", "type gaia-sessions list --active-only"),
    ("prune --hours 2", "no such command: prune", "type gaia-sessions cleanup --hours 2"),
    ("prune a", "no such command: prune", "did you mean cleanup?"),
    ("check", "no such command: check", "type gaia-sessions doctor"),
    ("check --fix", "no such command: check", "type gaia-sessions doctor --fix"),
    ("check a", "no such command: check", "type gaia-sessions should-resume a"),
    ("approve a", "no such command: approve", "type gaia-sessions update a --phase executing"),
    ("approve a go ahead", "no such command: approve", "type gaia-sessions update ID --phase executing"),
    ("approve", "no such command: approve", "type gaia-sessions update ID --phase executing"),
    ("deny a 'too dear'", "no such command: deny", "type gaia-sessions update a --deny 'too dear'"),
    ("reject a too dear", "no such command: reject", "type gaia-sessions update a --deny 'too dear'"),
    ("deny", "no such command: deny", "type gaia-sessions update ID --deny TEXT"),
    ("clean", "no such command: clean", "type gaia-sessions cleanup"),
    ("rm a", "no such command: rm", "gaia-sessions cleanup removes old sessions; finalize ends one"),
    ("delete a", "no such command: delete", "gaia-sessions cleanup removes old sessions; finalize ends one"),
    ("resume a", "no such command: resume", "type gaia-sessions should-resume a"),
    ("resume", "no such command: resume", "type gaia-sessions should-resume ID"),
    ("status a", "no such command: status", "type gaia-sessions show a"),
    ("new --agent x", "no such command: new", "type gaia-sessions create --agent x"),
    ("end a", "no such command: end", "type gaia-sessions finalize a completed"),
    ("stop a", "no such command: stop", "type gaia-sessions finalize a abandoned"),
    ("stop", "no such command: stop", "type gaia-sessions finalize ID abandoned"),
    (
        "complete a --summary 'it works'",
        "no such command: complete",
        "type gaia-sessions finalize a completed --summary 'it works'",
    ),
    ("install", "no such command: install", "type gaia-sessions hooks install"),
    ("frobnicate", "no such command: frobnicate", "gaia-sessions --help lists the commands"),
    ("hooks add", "no such command: add", "type gaia-sessions hooks install"),
    ("hooks instal --user", "no such command: instal", "type gaia-sessions hooks install --user"),
    ("hooks frobnicate", "no such command: frobnicate", "gaia-sessions hooks --help lists the commands"),
    ("help frobnicate", "no such command: frobnicate", "gaia-sessions --help lists the commands"),
    # Outcomes and phases
    ("finalize a COMPLETED", "unknown outcome 'COMPLETED'", "type gaia-sessions finalize a completed"),
    ("finalize a done --summary x", "unknown outcome 'done'", "type gaia-sessions finalize a completed --summary x"),
    ("finalize a success", "unknown outcome 'success'", "type gaia-sessions finalize a completed"),
    ("finalize a cancelled", "unknown outcome 'cancelled'", "type gaia-sessions finalize a abandoned"),
    ("finalize a faild", "unknown outcome 'faild'", "type gaia-sessions finalize a failed"),
    ("finalize COMPLETED a", "unknown outcome 'COMPLETED'", "type gaia-sessions finalize completed a"),
    ("finalize done a", "unknown outcome 'done'", "type gaia-sessions finalize completed a"),
    ("finalize a nonsense", "unknown outcome 'nonsense'", "the outcomes are completed, failed, abandoned"),
    (
        "finalize a",
        "missing outcome: completed, failed or abandoned",
        "type gaia-sessions finalize a completed",
    ),
    ("finalize completed", "missing ID", f"type gaia-sessions finalize ID completed; {IDS}"),
    ("finalize", "missing ID", f"type gaia-sessions finalize ID completed; {IDS}"),
    (
        "finalize a completed all is well",
        "unexpected arguments: all is well",
        "type gaia-sessions finalize a completed --summary 'all is well'",
    ),
    ("usage a 500", "unexpected argument: 500", "type gaia-sessions usage a --charge 500"),
    ("usage a b", "usage takes one ID", "type gaia-sessions usage ID for each ID"),
    ("usage a --tokens 5", "no such option: --tokens", "type gaia-sessions usage a --charge 5"),
    ("charge a 500", "no such command: charge", "type gaia-sessions usage a --charge 500"),
    ("tokens a", "no such command: tokens", "type gaia-sessions usage a"),
    ("skill add", f"missing ID; {IDS}", "type gaia-sessions skill add ID NAME --tokens N"),
    ("skill add a", "missing NAME", "type gaia-sessions skill add ID NAME --tokens N"),
    ("skill add a aws", "missing --tokens", "type gaia-sessions skill add a aws --tokens N"),
    ("skill load a aws --tokens 5", "no such command: load", "type gaia-sessions skill add a aws --tokens 5"),
    (
        "todo add a write the tests",
        "unexpected arguments: the tests",
        "type gaia-sessions todo add a 'write the tests'",
    ),
    ("todo add", f"missing ID; {IDS}", "type gaia-sessions todo add ID TEXT"),
    ("todo done a", "missing N", "type gaia-sessions todo done ID N"),
    ("todo finish a 2", "no such command: finish", "type gaia-sessions todo done a 2"),
    ("todo ls", "no such command: ls", "type gaia-sessions todo list ID"),
    ("todos a", "no such command: todos", "type gaia-sessions todo list a"),
    ("todo list a b", "todo list takes one ID", "type gaia-sessions todo list ID for each ID"),
    ("update a --phase Approval", "unknown phase 'Approval'", "type gaia-sessions update a --phase approval"),
    ("update a --phase=aproval", "unknown phase 'aproval'", "type gaia-sessions update a --phase=approval"),
    ("update a --phase done", "unknown phase 'done'", "type gaia-sessions update a --phase completed"),
    ("update a --phase running", "unknown phase 'running'", "type gaia-sessions update a --phase executing"),
    ("update a --phase nonsense", "unknown phase 'nonsense'", ALL),
    ("list --phase active", "unknown phase 'active'", "type gaia-sessions list --active-only"),
    ("list --phase=running --limit 3", "unknown phase 'running'", "type gaia-sessions list --active-only --limit 3"),
    ("list --phase planing", "unknown phase 'planing'", "type gaia-sessions list --phase planning"),
    # Options
    ("update a --status approval", "no such option: --status", "type gaia-sessions update a --phase approval"),
    ("update a --state=approval", "no such option: --state", "type gaia-sessions update a --phase=approval"),
    ("update a --phas approval", "no such option: --phas", "type gaia-sessions update a --phase approval"),
    ("update a --message oops", "no such option: --message", "type gaia-sessions update a --error oops"),
    (
        "finalize a failed --message oops",
        "no such option: --message",
        "type gaia-sessions finalize a failed --summary oops",
    ),
    ("finalize a --outcome completed", "no such option: --outcome", "type gaia-sessions finalize a completed"),
    ("finalize a --outcome=done", "no such option: --outcome", "type gaia-sessions finalize a completed"),
    ("finalize a --completed", "no such option: --completed", "type gaia-sessions finalize a completed"),
    ("finalize a --status completed", "no such option: --status", "type gaia-sessions finalize a completed"),
    (
        "finalize --status failed a --error x",
        "no such option: --status",
        "type gaia-sessions finalize failed a --error x",
    ),
    (
        "update a --summary x",
        "no such option: --summary; only finalize takes a summary",
        "type gaia-sessions finalize a completed --summary x",
    ),
    (
        "update a --phase failed --summary x",
        "no such option: --summary; only finalize takes a summary",
        "type gaia-sessions finalize a failed --summary x",
    ),
    (
        "update a -m k=v --summary x",
        "no such option: --summary; only finalize takes a summary",
        "type gaia-sessions finalize ID completed --summary TEXT",
    ),
    ("update a --frobnicate", "no such option: --frobnicate", "gaia-sessions update --help lists the options"),
    ("update a --hosts", "no such option: --hosts", "gaia-sessions update --help lists the options"),
    ("create --name scribe", "no such option: --name", "type gaia-sessions create --agent scribe"),
    ("create --agnet x", "no such option: --agnet", "type gaia-sessions create --agent x"),
    ("create --agent", "Option '--agent' requires an argument.", "see gaia-sessions create --help"),
    ("list --active", "no such option: --active", "type gaia-sessions list --active-only"),
    ("list -n 5", "no such option: -n", "type gaia-sessions list --limit 5"),
    ("list --limit few", "Invalid value for '--limit': 'few' is not a whole number.", "see gaia-sessions list --help"),
    (
        "list --lock-timeout soon",
        "Invalid value for '--lock-timeout': 'soon' is not a number.",
        "see gaia-sessions list --help",
    ),
    (
        "list --since soon",
        "--since 'soon' is not a time",
        "use, for example, 2h or 3d (ago), 2026-01-08 or 2026-01-08T18:05",
    ),
    ("cleanup --dryrun", "no such option: --dryrun", "type gaia-sessions cleanup --dry-run"),
    ("cleanup --older-than 48", "no such option: --older-than", "type gaia-sessions cleanup --hours 48"),
    ("cleanup --days 1", "no such option: --days", "type gaia-sessions cleanup --hours 1d"),
    ("cleanup --days=1 --dry-run", "no such option: --days", "type gaia-sessions cleanup --hours 1d --dry-run"),
    ("list --days 1", "no such option: --days", "type gaia-sessions list --since 1d"),
    ("cleanup --hours soon", "--hours 'soon' is not a length of time", "use, for example, 24 (hours), 90m, 2h or 7d"),
    ("get a --jsn", "no such option: --jsn", "type gaia-sessions get a --json"),
    ("show --id a", "no such option: --id", "type gaia-sessions show a"),
    ("show --id=a", "no such option: --id", "type gaia-sessions show a"),
    ("-v", "no such option: -v", "type gaia-sessions --version"),
    ("should-resume a -v", "no such option: -v", "type gaia-sessions should-resume a --verbose"),
    # Orders
    ("hooks --host codex install", "--host goes after install", "type gaia-sessions hooks install --host codex"),
    ("--host codex hooks install", "--host goes after install", "type gaia-sessions hooks install --host codex"),
    ("hooks --user install", "--user goes after install", "type gaia-sessions hooks install --user"),
    ("--active-only list", "--active-only goes after list", "type gaia-sessions list --active-only"),
    ("--phase=approval update a", "--phase goes after update", "type gaia-sessions update --phase=approval a"),
    # Arguments too many or too few
    ("update a approval", "unexpected argument: approval", "type gaia-sessions update a --phase approval"),
    ("update a k=v l='w x'", "unexpected arguments: k=v 'l=w x'", "type gaia-sessions update a -m k=v -m 'l=w x'"),
    ("update a nonsense", "unexpected argument: nonsense", "see gaia-sessions update --help"),
    ("update", "missing ID", f"type gaia-sessions update ID; {IDS}"),
    ("create scribe", "unexpected argument: scribe", "type gaia-sessions create --agent scribe"),
    (
        "create scribe take notes",
        "unexpected arguments: scribe take notes",
        "type gaia-sessions create --agent scribe --purpose 'take notes'",
    ),
    ("list active", "unexpected argument: active", "type gaia-sessions list --active-only"),
    ("list approval", "unexpected argument: approval", "type gaia-sessions list --phase approval"),
    ("list scribe", "unexpected argument: scribe", "type gaia-sessions list --agent scribe"),
    ("list help", "unexpected argument: help", "type gaia-sessions list --help"),
    ("get a b", "get takes one ID", "type gaia-sessions get ID for each ID"),
    ("show a b", "show takes one ID", "type gaia-sessions show ID for each ID"),
    ("events a b c", "events takes one ID", "type gaia-sessions events ID for each ID"),
    (
        "should-resume a b --verbose",
        "should-resume takes one ID",
        "type gaia-sessions should-resume ID --verbose for each ID",
    ),
    ("update a agent-123", "update takes one ID", "type gaia-sessions update ID for each ID"),
    ("finalize a b failed", "finalize takes one ID", "type gaia-sessions finalize ID failed for each ID"),
    ("list agent-123", "list takes no ID; show shows one session", "type gaia-sessions show agent-123"),
    ("list latest", "list takes no ID; show shows one session", "type gaia-sessions show latest"),
    ("list a1 a2", "list takes no ID; show shows one session", "type gaia-sessions show ID for each ID"),
    ("list --limit 3 a1", "list takes no ID; show shows one session", f"type gaia-sessions show ID; {IDS}"),
    (
        "list terraform-architect",
        "unexpected argument: terraform-architect",
        "type gaia-sessions list --agent terraform-architect",
    ),
    ("list scribe clerk", "unexpected arguments: scribe clerk", "see gaia-sessions list --help"),
    (
        "list approval planning",
        "unexpected arguments: approval planning",
        "type gaia-sessions list --phase approval --phase planning",
    ),
    (
        "cleanup agent-123",
        "cleanup takes no ID; finalize ends one session",
        "type gaia-sessions finalize agent-123 abandoned",
    ),
    (
        "cleanup --dry-run agent-123",
        "cleanup takes no ID; finalize ends one session",
        f"type gaia-sessions finalize ID abandoned; {IDS}",
    ),
    (
        "cleanup 2 3",
        "cleanup takes no ID; finalize ends one session",
        "type gaia-sessions finalize ID abandoned for each ID",
    ),
    ("finalize a b c", "unknown outcome 'b'", "the outcomes are completed, failed, abandoned"),
    ("hooks install .", "unexpected argument: .", "type gaia-sessions hooks install"),
    ("cleanup 2 days", "unexpected arguments: 2 days", "type gaia-sessions cleanup --hours 2d"),
    ("cleanup corrupt", "unexpected argument: corrupt", "type gaia-sessions cleanup --corrupt"),
    ("doctor fix", "unexpected argument: fix", "type gaia-sessions doctor --fix"),
    ("update approval a", "unexpected argument: a", "type gaia-sessions update a --phase approval"),
    ("update a phase approval", "unexpected arguments: phase approval", "type gaia-sessions update a --phase approval"),
    (
        "update a --error no such host",
        "unexpected arguments: such host",
        "type gaia-sessions update a --error 'no such host'",
    ),
    ("update --phase approval", f"missing ID; {IDS}", "type gaia-sessions update ID --phase approval"),
    (
        "update --error boom",
        "missing ID; gaia-sessions list shows the IDs",
        "type gaia-sessions update ID --error boom",
    ),
    ("show --root=x", "missing ID", f"type gaia-sessions show ID --root=x; {IDS}"),
    ("finalize --summary x", f"missing ID; {IDS}", "type gaia-sessions finalize ID completed --summary x"),
    ("finalize failed --error x", f"missing ID; {IDS}", "type gaia-sessions finalize ID failed --error x"),
    ("create --agent x scribe", "unexpected argument: scribe", "type gaia-sessions create --agent x --purpose scribe"),
    ("create --agent x --purpose y z", "unexpected argument: z", "type gaia-sessions create --agent x --purpose 'y z'"),
    (
        "create scribe 'take notes'",
        "unexpected arguments: scribe 'take notes'",
        "type gaia-sessions create --agent scribe --purpose 'take notes'",
    ),
    (
        "finalize a completed failed",
        "a session has one outcome",
        "use only one: gaia-sessions finalize ID completed|failed|abandoned",
    ),
    (
        "finalize a completed 'Terraform applied'",
        "unexpected argument: 'Terraform applied'",
        "type gaia-sessions finalize a completed --summary 'Terraform applied'",
    ),
    (
        "finalize a completed --summary Terraform applied",
        "unexpected argument: applied",
        "type gaia-sessions finalize a completed --summary 'Terraform applied'",
    ),
    ("show", "missing ID", f"type gaia-sessions show ID; {IDS}"),
    ("should-resume", "missing ID", f"type gaia-sessions should-resume ID; {IDS}"),
    ("events", "missing ID", f"type gaia-sessions events ID; {IDS}"),
    ("cleanup 48", "unexpected argument: 48", "type gaia-sessions cleanup --hours 48"),
    ("hooks install codex", "unexpected argument: codex", "type gaia-sessions hooks install --host codex"),
    ("hooks install claude", "unexpected argument: claude", "type gaia-sessions hooks install --host claude-code"),
    (
        "hooks install nonsense",
        "unexpected argument: nonsense",
        "the hosts are claude-code, codex, qwen-code, gemini-cli",
    ),
    (
        "hooks install cursor",
        "unexpected argument: cursor",
        "the hosts are claude-code, codex, qwen-code, gemini-cli",
    ),
    ("hooks install /path", "unexpected argument: /path", "type cd /path && gaia-sessions hooks install"),
    (
        "hooks install sub/project --host codex",
        "unexpected argument: sub/project",
        "type cd sub/project && gaia-sessions hooks install --host codex",
    ),
    ("hooks install user", "unexpected argument: user", "type gaia-sessions hooks install --user"),
    # Values
    ("update a -m '{}'", "-m takes KEY=VALUE, not '{}'", "type --metadata '{}'"),
    ("update a -m plan", "-m takes KEY=VALUE, not 'plan'", "type, for example, -m task=T001"),
    ("hooks install --host claude", "unknown host 'claude'", "type gaia-sessions hooks install --host claude-code"),
    (
        "hooks install --host nonsense",
        "unknown host 'nonsense'",
        "the hosts are claude-code, codex, qwen-code, gemini-cli",
    ),
]


@pytest.mark.parametrize(("line", "error", "hint"), WRONG, ids=[line for line, _, _ in WRONG])
def test_a_wrong_line_is_answered_with_what_is_wrong_and_what_to_type(
    gaia: Gaia, put: Gaia, tree: Gaia, line: str, error: str, hint: str
) -> None:
    put("a")
    before = tree()
    assert gaia(*shlex.split(line)).all == (2, "", f"Error: {error}\nHint: {hint}\n")
    assert tree() == before
    assert [text for text in (f"Error: {error}", f"Hint: {hint}") if len(text) > WIDTH and hint != ALL] == []


REFUSED = [
    ("update a --metadata plan=x", "'plan=x' is not JSON", "type gaia-sessions update a -m plan=x"),
    ("update a --metadata=plan=x -m k=v", "'plan=x' is not JSON", "type gaia-sessions update a -m plan=x -m k=v"),
    (
        "update a --metadata @f.json",
        "'@f.json' is a file, not JSON",
        "type gaia-sessions update a --metadata - < f.json",
    ),
    (
        "update a --metadata f.json",
        "'f.json' is a file, not JSON",
        "type gaia-sessions update a --metadata - < f.json",
    ),
    ("update a --metadata ''", "the value is empty", """type --metadata '{"key": "value"}', or omit the option"""),
    (
        """update a --metadata "{'k': 'v'}" """,
        "line 1 column 2: not JSON: Expecting property name enclosed in double quotes",
        """JSON needs double quotes: --metadata '{"key": "value"}'""",
    ),
    (
        "update a --metadata '{k: v}'",
        "line 1 column 2: not JSON: Expecting property name enclosed in double quotes",
        """JSON needs double quotes: --metadata '{"key": "value"}'""",
    ),
    (
        """update a --metadata '{"k" 1}'""",
        "line 1 column 6: not JSON: Expecting ':' delimiter",
        "correct the input and try again",
    ),
    ("update a --metadata @none", "line 1 column 1: not JSON: Expecting value", "correct the input and try again"),
    ("update a --metadata '[]'", "expected a JSON object, not an array", "correct the input and try again"),
]


@pytest.mark.parametrize(("line", "problem", "hint"), REFUSED, ids=[line for line, _, _ in REFUSED])
def test_metadata_that_is_no_object_is_answered_with_the_option_and_what_to_type(
    gaia: Gaia, put: Gaia, tree: Gaia, line: str, problem: str, hint: str
) -> None:
    put("a")
    Path("f.json").write_text('{"k": "v"}', encoding="utf-8")
    before = tree()
    assert gaia(*shlex.split(line)).all == (7, "", f"Error: --metadata: {problem}\nHint: {hint}\n")
    assert tree() == before


HINTS = {hint for _, _, hint in (*WRONG, *REFUSED)}
SUGGESTED = sorted(
    hint for hint in HINTS if hint.startswith(("type gaia-sessions", "type cd sub")) and not re.search(r"ID| N$", hint)
)


@pytest.mark.usefixtures("away_from_home")
@pytest.mark.parametrize("hint", SUGGESTED)
def test_what_is_suggested_can_be_typed(gaia: Gaia, put: Gaia, monkeypatch: pytest.MonkeyPatch, hint: str) -> None:
    put("a", todos=[{"description": text, "status": "pending"} for text in ("read", "write")])
    put("agent-123")
    before, line = hint.removeprefix("type ").split("gaia-sessions ", 1)
    if before:
        Path("sub/project").mkdir(parents=True)
        monkeypatch.chdir(before.split()[1])
    words, _, file = line.partition(" < ")
    assert gaia(*shlex.split(words), stdin=b'{"k": "v"}' if file else b"").code in (0, 1)


def test_an_option_before_its_command_leaves_the_options_of_the_command_as_they_are(gaia: Gaia) -> None:
    assert [gaia("--active-only", "list").code, gaia("list", "-h").code] == [2, 0]


@pytest.mark.parametrize("command", [["create", "--id", "a"], ["update", "a"]])
def test_repeated_metadata_is_merged_in_order_and_nothing_is_dropped(
    gaia: Gaia, put: Gaia, state: Gaia, command: list[str]
) -> None:
    if command[0] == "update":
        put("a", metadata={"old": 0})
    given = ["--metadata", '{"a": 1, "b": 1}', "-m", "c=pair", "--metadata", "-", "--metadata", '{"b": 3, "c": 3}']
    assert gaia(*command, *given, stdin=b'{"b": 2, "d": 2}').code == 0
    old = {"old": 0} if command[0] == "update" else {}
    assert state("a")["metadata"] == {**old, "a": 1, "b": 3, "c": "pair", "d": 2}


def test_standard_input_is_read_for_metadata_at_most_once(gaia: Gaia, put: Gaia, tree: Gaia) -> None:
    put("a")
    before = tree()
    expected = "Error: --metadata - was given twice\nHint: standard input can be read only once: use it once\n"
    assert gaia("update", "a", "--metadata", "-", "--metadata", "-", stdin=b'{"a": 1}').all == (2, "", expected)
    assert tree() == before


def test_a_line_with_a_generated_id_and_a_sentence_is_repeated(gaia: Gaia, put: Gaia) -> None:
    agent_id = "agent-20260108-180530-abc12345"
    put(agent_id)
    line = f"type gaia-sessions finalize {agent_id} completed --summary 'the plan was applied in production'"
    ended = gaia("finalize", agent_id, "completed", "the plan was applied", "in", "production")
    expected = "Error: unexpected arguments: 'the plan was applied' in production\n"
    assert ended.all == (2, "", f"{expected}Hint: {line}\n")


def test_a_line_that_is_too_long_to_be_read_in_a_message_is_not_repeated(gaia: Gaia, put: Gaia) -> None:
    put("a")
    ended = gaia("update", "a", "--status", "approval", "--error", "e" * 150)
    assert ended.all == (2, "", "Error: no such option: --status\nHint: did you mean --phase?\n")


@pytest.mark.parametrize("words", [("completed", "a"), ("--summary", "x", "completed", "a"), ("completed", "--", "a")])
def test_finalize_takes_outcome_and_id_in_either_order(gaia: Gaia, put: Gaia, state: Gaia, words: Any) -> None:
    put("a")
    assert gaia("finalize", *words).code == 0
    assert state("a")["phase"] == "completed"


def test_a_session_that_is_called_like_an_outcome_is_ended_by_its_name(gaia: Gaia, put: Gaia, state: Gaia) -> None:
    put("failed")
    assert gaia("finalize", "failed", "completed").code == 0
    assert state("failed")["phase"] == "completed"


@pytest.mark.parametrize(
    ("typed", "hours"), [("2h", 2), ("1d", 24), ("90m", 1.5), ("1w", 168), ("24", 24), ("0.5", 0.5), ("1.5h", 1.5)]
)
def test_cleanup_takes_a_length_of_time_with_its_unit(gaia: Gaia, typed: str, hours: float) -> None:
    assert gaia("cleanup", "--hours", typed, "--json").json["hours"] == hours


@pytest.mark.parametrize("typed", ["-1", "nan", "inf", "-2h"])
def test_cleanup_refuses_a_length_of_time_that_is_none(gaia: Gaia, put: Gaia, typed: str) -> None:
    put("a")
    assert (gaia("cleanup", f"--hours={typed}").code, gaia("get", "a").code) == (2, 0)


# JSON


@pytest.mark.parametrize(
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
def test_errors_are_json_wherever_json_was_asked_for(gaia: Gaia, words: tuple[str, ...]) -> None:
    assert set(gaia(*words).error) == {"code", "message", "hint"}


@pytest.mark.parametrize("words", [("--json", "list"), ("list", "--json"), ("--json", "list", "--json")])
def test_json_may_stand_before_or_behind_the_name_of_a_command(gaia: Gaia, put: Gaia, words: tuple[str, ...]) -> None:
    put("a")
    assert [line["agent_id"] for line in gaia(*words).json] == ["a"]


@pytest.mark.usefixtures("away_from_home")
@pytest.mark.parametrize(
    "words", [("--json", "hooks", "status"), ("hooks", "--json", "status"), ("hooks", "status", "--json")]
)
def test_json_may_stand_before_each_name_of_a_nested_command(gaia: Gaia, words: tuple[str, ...]) -> None:
    assert gaia(*words).json["heard"] == {}


@pytest.mark.parametrize(
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


# The tables


def test_no_word_in_the_tables_is_a_command_or_an_option_already() -> None:
    options = {name for command in COMMANDS for param in _command(command).params for name in param.opts}
    assert set(synonyms.COMMANDS) & set(COMMANDS) == set()
    assert set(synonyms.DELETE_COMMANDS) & set(COMMANDS) == set()
    assert set(synonyms.OPTIONS) & options <= {"--state", "--id", "--reason", "--timeout", "-n"}


def test_what_the_tables_lead_to_exists() -> None:
    options = {name for command in COMMANDS for param in _command(command).params for name in param.opts}
    hooks = _command("hooks")
    assert isinstance(hooks, click.Group)
    options |= {name for inner in hooks.commands.values() for param in inner.params for name in param.opts}
    assert {meant.split()[0] for meant in synonyms.COMMANDS.values()} <= set(COMMANDS)
    for name, table in synonyms.INNER_COMMANDS.items():
        group = _command(name)
        assert isinstance(group, click.Group)
        assert set(table.values()) == set(group.commands)
        assert set(table) & set(group.commands) == set()
    assert {name for meant in synonyms.OPTIONS.values() for name in meant} <= options | {"--version"}


@pytest.mark.parametrize("typed", ["--status", "--state", "--host", "--resume", "--x", "--agents-of-mine"])
def test_what_is_only_a_little_alike_is_not_suggested(typed: str) -> None:
    names = [name for name in _options_of("update") if name != typed]
    assert closest_word(typed, names) in (None, *[name for name in names if name.startswith(typed)])


def _command(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


def _options_of(name: str) -> list[str]:
    return [word for param in _command(name).params for word in param.opts if word.startswith("--")]
