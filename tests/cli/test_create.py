"""``create``: it creates a session and prints only the ID."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.clock import parse_time
from gaia_sessions.system import utc_now
from tests.cli.conftest import fresh_table
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

MADE = re.compile(r"agent-\d{8}-\d{6}-[0-9a-f]{8}")


def test_create_prints_only_the_new_id_and_writes_a_full_record(gaia: Gaia, state: Gaia) -> None:
    before = utc_now()
    code, out, err = gaia("create", "--agent", "terraform-architect", "--purpose", "approval_workflow").all
    after = utc_now()

    agent_id = out.removesuffix("\n")
    assert (code, err, bool(MADE.fullmatch(agent_id))) == (0, "", True)
    kept = state(agent_id)
    assert kept == {
        "agent_id": agent_id,
        "agent_name": "terraform-architect",
        "purpose": "approval_workflow",
        "created_at": kept["created_at"],
        "last_updated": kept["created_at"],
        "phase": "initializing",
        "metadata": {},
        "resume_ready": False,
        "history": [],
        "error_count": 0,
        "last_error": None,
        "schema": 1,
        "revision": 1,
    }
    assert before <= parse_time(kept["created_at"]) <= after


def test_without_options_the_agent_is_unknown_and_the_purpose_is_general(gaia: Gaia, state: Gaia) -> None:
    kept = state(gaia("create").out.decode().strip())
    assert (kept["agent_name"], kept["purpose"], kept["metadata"]) == ("unknown", "general", {})


BLANK = [
    ("", "purpose", "the name of the agent is blank", "give a name, or leave it out"),
    (" \n", "purpose", "the name of the agent is blank", "give a name, or leave it out"),
    ("scribe", "", "the purpose is blank", "name a purpose, or leave it out"),
    ("scribe", "\t ", "the purpose is blank", "name a purpose, or leave it out"),
    ("", "", "the name of the agent is blank", "give a name, or leave it out"),
]


@table(("agent", "purpose", "message", "hint"), BLANK)
def test_command_and_api_refuse_a_blank_name_or_purpose_and_create_nothing(
    gaia: Gaia, root: str, agent: str, purpose: str, message: str, hint: str
) -> None:
    expected = (7, "", f"Error: {message}\nHint: {hint}\n")
    assert gaia("create", "--agent", agent, "--purpose", purpose).all == expected
    with pytest.raises(InvalidInput) as raised:
        Sessions(root).create(agent, purpose)
    assert (str(raised.value), raised.value.hint, os.path.exists(root)) == (message, hint, False)


def test_create_uses_a_given_id_and_prints_it_as_an_object_with_json(gaia: Gaia, state: Gaia) -> None:
    assert gaia("create", "--id", "agent-124", "--json").json == {"agent_id": "agent-124"}
    assert gaia("create", "--id", "agent-123").answer == ["agent-123"]
    assert state("agent-123")["agent_id"] == "agent-123"


def test_an_id_that_exists_is_a_conflict_and_the_old_session_stays(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "agent-123", "--agent", "first")
    before = Path(root, "agent-123", "state.json").read_bytes()
    assert gaia("create", "--id", "agent-123", "--agent", "second").refusal == (
        4,
        "session 'agent-123' already exists",
        "choose another ID, or leave out the ID to get a new one",
    )
    assert Path(root, "agent-123", "state.json").read_bytes() == before


@fresh_table(
    ("words", "metadata"),
    [
        (["-m", "task_id=T001"], {"task_id": "T001"}),  # a pair
        (["--meta", "a=1", "-m", "b="], {"a": "1", "b": ""}),  # the values are strings, also empty ones
        (["-m", "a=b=c"], {"a": "b=c"}),  # the first equals sign divides
        (["-m", "a=1", "-m", "a=2"], {"a": "2"}),  # the last of two equal keys wins
        (["--metadata", '{"tags": ["infra"]}'], {"tags": ["infra"]}),  # JSON
        (["--metadata", '{"a": 1, "b": 2}', "-m", "a=x"], {"a": "x", "b": 2}),  # pairs beat JSON
        (["--metadata", "{}"], {}),  # an empty object
        (["--metadata", '{"a": 1}', "--metadata", '{"b": 2}'], {"a": 1, "b": 2}),  # JSON twice
        (["-m", "ключ=значение ✓"], {"ключ": "значение ✓"}),  # any script
    ],
)
def test_create_stores_the_metadata_of_its_options(
    gaia: Gaia, state: Gaia, words: list[str], metadata: dict[str, Any]
) -> None:
    assert gaia("create", "--id", "a", *words).code == 0
    assert state("a")["metadata"] == metadata


def test_a_dash_reads_metadata_from_stdin(gaia: Gaia, state: Gaia) -> None:
    assert gaia("create", "--id", "a", "--metadata", "-", stdin=b'{"from": "stdin"}\n').code == 0
    assert state("a")["metadata"] == {"from": "stdin"}


@table(
    ("metadata", "problem"),
    [
        ("[1]", "expected a JSON object, not an array"),
        ("null", "expected a JSON object, not null"),
        ('"text"', "expected a JSON object, not a string"),
        ("", "--metadata: the value is empty"),
        ("{", "line 1 column 1: not JSON: this brace is not closed"),
        ('{"a": 1, "a": 2}', "key 'a': the same key twice in an object"),
        ('{"a": 1e999}', "1e999: a number that overflows"),
        ('{"a": "\\u0000"}', "a: a NUL character in a string"),
        ('{"a": "\\ud800"}', "a: half of a surrogate pair in a string"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64"),
    ],
)
def test_metadata_that_is_not_a_valid_json_object_is_refused_and_nothing_is_created(
    gaia: Gaia, root: str, metadata: str, problem: str
) -> None:
    error = gaia("create", "--json", "--metadata", metadata).error
    assert error["code"] == "invalid_input"
    assert problem in error["message"]
    assert not os.path.exists(root)


def test_metadata_over_the_limit_is_refused_and_nothing_is_made(gaia: Gaia, root: str) -> None:
    too_much = b'{"a": "%s"}' % (b"x" * (1 << 20))
    ended = gaia("create", "--json", "--metadata", "-", stdin=too_much)
    assert (ended.code, ended.error["code"]) == (7, "too_large")
    assert not os.path.exists(root)


@table("pair", ["a", "=x", ""])
def test_a_pair_without_a_key_or_an_equals_sign_is_a_usage_error(gaia: Gaia, root: str, pair: str) -> None:
    ended = gaia("create", "-m", pair)
    assert ended.refusal == (2, f"-m takes KEY=VALUE, not {pair!r}", "type, for example, -m task=T001")
    assert not os.path.exists(root)


@table("agent_id", ["../x", "/abs", "a/b", "..", ".", "", "x" * 129, "a\nb", "a b", "nul.txt", "é"])
def test_an_invalid_id_is_refused_and_nothing_is_created(gaia: Gaia, root: str, agent_id: str) -> None:
    ended = gaia("create", "--json", "--id", agent_id)
    assert (ended.code, ended.error["code"]) == (7, "invalid_id")
    assert os.listdir(os.path.dirname(root)) == []


def test_the_command_refuses_the_id_latest_but_the_api_accepts_it(gaia: Gaia, root: str) -> None:
    assert gaia("create", "--id", "latest").refusal == (
        2,
        "the ID 'latest' is reserved: it means the latest session",
        "choose another ID, or leave out --id to get a new one",
    )
    assert not os.path.exists(root)
    assert Sessions(root).create("tester", "test", agent_id="latest") == "latest"


def test_new_folders_and_records_are_private_whatever_the_umask(gaia: Gaia, root: str) -> None:
    before = os.umask(0)
    try:
        gaia("create", "--id", "a")
    finally:
        os.umask(before)
    paths = [Path(root), *Path(root).rglob("*")]
    modes = {stat.S_IMODE(path.lstat().st_mode) for path in paths if path.is_dir()}
    assert modes == {0o700}
    assert stat.S_IMODE(Path(root, "a", "state.json").stat().st_mode) == 0o600


def test_at_a_terminal_create_names_the_root_that_it_created(terminal: Gaia, root: str, tmp_path: Path) -> None:
    expected = (
        f"Note: created the folder {root} for sessions\n"
        "Hint: to use another one, add --root DIR or set GAIA_SESSIONS_ROOT\n"
    )
    with (tmp_path / "id").open("wb") as file:  # as in id=$(gaia-sessions create)
        first = terminal("create", "--id", "a", stdout=file.fileno())
        second = terminal("create", "--id", "b", stdout=file.fileno())

    shown = first.out.decode().replace("\n      ", " ").replace("Note:\n", "Note: ")
    assert (first.code, " ".join(shown.split()), second.all) == (0, " ".join(expected.split()), (0, "", ""))
    assert (tmp_path / "id").read_text(encoding="utf-8") == "a\nb\n"


def test_at_a_terminal_with_json_the_created_root_is_a_json_notice(terminal: Gaia, root: str) -> None:
    shown = terminal("create", "--id", "a", "--json").out.decode()
    notice, answer = shown.replace("}\n{", "}\0{").split("\0")
    assert json.loads(answer) == {"agent_id": "a"}
    assert json.loads(notice)["notice"]["message"] == f"created the folder {root} for sessions"


def test_an_argument_too_many_is_a_usage_error(gaia: Gaia, root: str) -> None:
    assert gaia("create", "extra").refusal == (
        2,
        "Got unexpected extra argument (extra)",
        "usage: gaia-sessions create [OPTIONS]",
    )
    assert not os.path.exists(root)


def test_the_ids_of_parent_and_child_may_differ_only_in_case(gaia: Gaia, state: Gaia) -> None:
    for agent_id, above in (("A", []), ("a", ["--parent", "A"])):
        assert gaia("--lock-timeout", "0", "create", "--id", agent_id, *above).answer == [agent_id]
    assert state("a")["parent_id"] == "A"
