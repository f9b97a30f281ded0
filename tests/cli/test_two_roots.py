"""A project whose variable holds the URL of a server has two roots: the server, and its own, in which hooks store."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import at, stand_ins
from gaia_sessions.cli.group import COMMANDS
from gaia_sessions.session.record import new_record
from gaia_sessions.system import utc_now
from tests.cli.forks import Fork, forked
from tests.servers import check_installed, shared_server
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Gaia
    from tests.commands import Ended

TURN = b'[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]'

CALLS: dict[str, list[str]] = {
    "approve": ["approve asks"],
    "cancel": ["cancel below", "cancel --conversation talk"],
    "cancelled": ["cancelled asks"],
    "context": ["context work"],
    "deny": ["deny asks"],
    "events": ["events work", "events work --follow"],
    "finalize": ["finalize asks completed"],
    "get": ["get asks", "get belo"],
    "list": ["list --parent asks"],
    "repair": ["repair asks"],
    "report": ["report work", "report work --output"],
    "reset": ["reset asks"],
    "resume": ["resume asks"],
    "rm": ["rm work", "rm --force below asks"],
    "run": ["run asks -- echo done"],
    "send": ["send asks hello -- cat"],
    "should-resume": ["should-resume asks"],
    "show": ["show asks"],
    "skill": ["skill add asks terraform --tokens 12"],
    "state": ["state set asks key value", "state get asks key", "state incr asks n", "state show asks"],
    "todo": ["todo add asks 'write tests'", "todo add --host-agent talk a1 'write tests'", "todo list asks"],
    "tool": ["tool check asks Read"],
    "transcript": ["transcript asks --append user hello", "transcript asks"],
    "tree": ["tree asks"],
    "turn": ["turn asks -"],
    "update": ["update asks --phase approval", "update --host-agent talk a1"],
    "usage": ["usage asks", "usage asks --charge 5"],
}
"""For each command that takes an ID: calls with a session that only the project's own root has."""

WITHOUT = {"create", "ensure", "guard", "pending", "stats", "hooks", "doctor", "import", "schema", "store"}
"""Commands that take no ID of an existing session, or that use the server's alone."""

IN_BOTH = {"cleanup", "reconcile", "wait"}
"""Commands that work on both roots at once."""


def put_in(root: str) -> None:
    """Creates three sessions: one asks a person, one is below it, one is the finished work of a command."""
    sessions = Sessions(root)
    sessions.create("asker", "ask", agent_id="asks")
    sessions.update("asks", "approval", question="may I?")
    sessions.create("child", "below", agent_id="below", parent_id="asks")
    assert forked("--root", root, "run", "--id", "work", "--", "sh", "-c", "echo out").code == 0


def put_agent() -> None:
    """Lets hooks record an agent of a client."""
    asked = {"description": "look", "prompt": "look", "subagent_type": "Explore"}
    delegation = {"session_id": "talk", "tool_use_id": "toolu_1", "tool_name": "Agent", "tool_input": asked}
    told = {"status": "async_launched", "agentId": "a1"}
    for event in ({"hook_event_name": "PreToolUse"}, {"hook_event_name": "PostToolUse", "tool_response": told}):
        assert forked("hook", stdin=json.dumps({**delegation, **event}).encode()).code == 0


def put_stand_in(root: str, agent_id: str) -> None:
    """Stores a stand-in, as ``run`` does for a session on a server."""
    at.write(Sessions(root), stand_ins.put, [new_record(agent_id, "twin", "stand", {}, utc_now())])


def ids_in(root: str) -> set[str]:
    return {line["agent_id"] for line in Sessions(root).list(every_app=True)}


@pytest.fixture
def both(pair: tuple[Sessions, Sessions]) -> tuple[Sessions, Sessions]:
    """The server with one session, and the own root with the sessions of ``put_in`` and an agent of a client."""
    server, own = pair
    server.create("other", agent_id="there")
    put_agent()
    put_in(own.root)
    return pair


def test_the_tables_have_every_command() -> None:
    assert {*CALLS, *WITHOUT, *IN_BOTH} == {*COMMANDS}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_with_an_id_of_the_own_root_works_there_and_leaves_the_server_alone(
    both: tuple[Sessions, Sessions], name: str
) -> None:
    there, own = both
    before = there.get("there")
    for line in CALLS[name]:
        ended = forked(*shlex.split(line), stdin=TURN if name == "turn" else b"")
        assert (line, ended.code) == (line, 0), ended
        assert "server" not in ended.err.decode()
    assert ids_in(there.root) == {"there"}
    assert there.get("there") == before
    assert own.folder is not None


def test_new_sessions_and_imports_go_to_the_server(url: str, own: str, tmp_path: Path) -> None:
    Sessions(str(tmp_path / "old")).create("old", agent_id="old")
    for line in ["create --id made", "run --id ran -- true", "ensure --agent a", f"import {tmp_path}/old"]:
        assert forked(*shlex.split(line)).code == 0
    assert {"made", "ran", "old"} < ids_in(url)
    assert ids_in(own) == set()


# Which root has the ID


def test_the_server_wins_for_a_whole_id_that_both_roots_have(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create("on the server", agent_id="same")
    Sessions(own).create("in files", agent_id="same")
    assert gaia("get", "same").json["agent_name"] == "on the server"
    assert gaia("get", "same", "--root", own).json["agent_name"] == "in files"
    assert gaia("get", "same", "--root", url).json["agent_name"] == "on the server"


def test_a_whole_id_in_the_own_root_wins_over_a_part_of_an_id_on_the_server(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create("longer", agent_id="work-1")
    Sessions(own).create("whole", agent_id="work")
    assert gaia("get", "work").json["agent_name"] == "whole"


def test_a_part_that_fits_one_id_in_each_root_is_ambiguous(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create(agent_id="work-1")
    Sessions(own).create(agent_id="work-2")
    code, said, _ = gaia("get", "work").refusal
    assert (code, said) == (2, "'work' is the beginning or end of 2 IDs: work-1, work-2")


def test_a_part_that_fits_one_id_of_the_own_root_alone_means_that_session(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create(agent_id="other")
    Sessions(own).create(agent_id="work-2")
    ended = gaia("update", "work")
    assert (ended.code, ended.err) == (0, b"using session work-2 for work\n")


def test_latest_is_the_latest_on_the_server(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create(agent_id="there")
    Sessions(own).create(agent_id="here")
    assert gaia("get", "latest").json["agent_id"] == "there"
    assert gaia("show", "--json").json["agent_id"] == "there"


@table(
    "words",
    [["get"], ["update"], ["cancel"], ["approve"], ["rm"], ["finalize", "completed"], ["send", "hi", "--", "cat"]],
)
def test_an_id_in_neither_root_is_missing_in_both(gaia: Gaia, url: str, own: str, words: list[str]) -> None:
    code, said, _ = gaia(words[0], "nobody", *words[1:]).refusal
    assert (code, said) == (3, f"no session 'nobody' in {url} or in {own}")


def test_an_agent_of_a_client_that_no_root_knows_is_missing_in_both(gaia: Gaia, url: str, own: str) -> None:
    code, said, _ = gaia("update", "--host-agent", "talk", "a9").refusal
    assert (code, said) == (3, f"no session of agent 'a9' in conversation 'talk' in {url} or in {own}")
    code, said, _ = gaia("cancel", "--conversation", "nothing").refusal
    assert (code, said) == (3, f"no session of conversation 'nothing' in {url} or in {own}")


def test_the_id_of_ensure_is_one_on_the_server(gaia: Gaia, url: str, own: str) -> None:
    Sessions(own).create(agent_id="here")
    hint = f"the session is in another root; add --root {own}"
    assert gaia("ensure", "--id", "here").refusal == (3, f"no session 'here' in {url}", hint)


@table("line", ["get work", "should-resume work", "list --parent work"])
def test_with_a_typed_root_only_that_root_is_searched(gaia: Gaia, both: tuple[Sessions, Sessions], line: str) -> None:
    server, own = both
    assert gaia(*shlex.split(line), "--root", server.root).code == 3
    assert gaia("get", "there", "--root", own.root).code == 3


@pytest.mark.usefixtures("both")
def test_commands_that_are_advised_for_a_session_of_the_own_root_name_that_root(gaia: Gaia) -> None:
    continued = "gaia-sessions --root .claude/session run --continues work -- COMMAND"
    assert continued in gaia("run", "work", "--", "true").refusal[2]
    assert "`gaia-sessions --root .claude/session pending` shows" in gaia("report", "asks").err.decode()


@pytest.mark.usefixtures("both")
def test_pending_and_resume_say_that_there_is_nothing_on_the_server(gaia: Gaia) -> None:
    assert gaia("pending").lines[0] == "Nobody waits for you on the server"
    nothing = "Nothing to resume on the server: no work that stopped or was answered can be resumed now"
    assert gaia("resume").lines[0] == nothing


def test_show_and_tree_of_a_session_say_where_the_agents_of_its_client_are(gaia: Gaia, url: str, own: str) -> None:
    Sessions(url).create("real", agent_id="twin-1")
    put_stand_in(own, "twin-1")
    said = (
        "agents of its client are in the project's own files\n"
        "To see them, type: gaia-sessions tree twin-1 --root .claude/session\n"
    )
    assert [gaia(name, "twin-1").err.decode() for name in ("show", "tree")] == [said, said]


def test_each_session_of_resume_and_repair_is_found_in_its_root(gaia: Gaia, both: tuple[Sessions, Sessions]) -> None:
    server, _ = both
    server.update("there", "approval")
    assert {one["agent_id"] for one in gaia("resume", "there", "asks", "--json").json} == {"there", "asks"}
    assert len(gaia("repair", "there", "asks", "--json").json["repaired"]) == 2


def test_sessions_of_two_roots_are_not_removed_together(gaia: Gaia, both: tuple[Sessions, Sessions]) -> None:
    server, own = both
    said = f"there is in {server.root}, but work is in {own.root}"
    hint = "nothing was removed; remove the sessions of each root with a command of its own"
    assert gaia("rm", "--force", "there", "work").refusal == (2, said, hint)
    assert (server.get("there") is None, own.get("work") is None) == (False, False)
    missing = f"no session 'nobody' in {server.root} or in {own.root}"
    for ids in (["work", "nobody"], ["nobody", "work"]):
        assert gaia("rm", "--force", *ids).refusal[:2] == (3, missing)


# Stand-ins


def test_a_stand_in_is_no_session(gaia: Gaia, url: str, own: str) -> None:
    put_stand_in(own, "twin-1")
    assert gaia("get", "twin-1").refusal[:2] == (3, f"no session 'twin-1' in {url} or in {own}")
    assert gaia("get", "twin").refusal[0] == 3
    Sessions(url).create("real", agent_id="twin-1")
    assert gaia("get", "twin").json["agent_name"] == "real"
    assert gaia("list", "--json").err == b""


@pytest.mark.usefixtures("url")
def test_a_stand_in_in_a_typed_root_is_refused_except_by_tree(gaia: Gaia, own: str) -> None:
    put_stand_in(own, "twin-1")
    said = (3, f"no session 'twin-1' in {own}", "the session is on the server: leave out --root")
    for words in (["get", "twin-1"], ["update", "twin"], ["resume", "twin-1"], ["create", "--parent", "twin-1"]):
        assert gaia("--root", own, *words).refusal == said
    assert gaia("--root", own, "tree", "twin-1").code == 0


# Parents


@table("line", ["create --parent asks --id new --tools Read", "run --parent asks --id new2 --tools Read -- true"])
def test_a_parent_in_the_own_root_is_named_and_not_looked_up(
    gaia: Gaia, both: tuple[Sessions, Sessions], line: str
) -> None:
    server, own = both
    words = shlex.split(line)
    ended = forked(*words)
    said = f"Note: asks is in {own.root}: its limits and its cancellation do not reach the new session\n"
    assert (ended.code, ended.err.decode().startswith(said)) == (0, True), ended
    record = server.get(words[4])
    assert record is not None
    assert (record["parent_id"], record["allowed_tools"]) == ("asks", ["Read"])
    own.cancel("asks")
    assert gaia("cancelled", words[4]).code == 0
    assert gaia("tree").code == 0


@table("line", ["create --continues work", "run --continues work -- true"])
def test_a_session_is_continued_only_in_its_own_root(both: tuple[Sessions, Sessions], line: str) -> None:
    server, own = both
    said = f"work is in {own.root}, and a session can only be continued in its own root"
    assert forked(*shlex.split(line)).refusal == (2, said, f"add --root {own.root}")
    assert forked("--root", own.root, *shlex.split(line)).code == 0
    assert ids_in(server.root) == {"there"}


def test_the_parent_in_the_environment_counts_only_on_the_server(both: tuple[Sessions, Sessions]) -> None:
    server, _ = both
    for parent, new in (("asks", "new1"), ("there", "new2")):
        assert forked("run", "--id", new, "--", "true", GAIA_SESSION_ID=parent).code == 0
    parents = {line["agent_id"]: line.get("parent_id") for line in server.list()}
    assert parents == {"there": None, "new1": None, "new2": "there"}


# Lists


@pytest.mark.usefixtures("both")
@table("name", ["list", "list -q", "pending", "tree", "stats", "usage", "resume", "list --agent nobody"])
def test_a_list_tells_what_is_open_in_the_own_root(name: str) -> None:
    ended = forked(*shlex.split(name))
    said = (
        "3 more sessions are open in the project's own files, 1 waits for you\n"
        "To see them, type: gaia-sessions list --root .claude/session\n"
    )
    assert (ended.code, ended.err.decode().endswith(said)) == (0, True), ended
    assert "asks" not in ended.out.decode()
    assert forked(*shlex.split(name), "--root", ".claude/session").code == 0


@pytest.mark.usefixtures("both")
@table(
    "line",
    [
        "list --root .claude/session",
        "--root=.claude/session list -q",
        "--root ./.claude/session/ tree --active-only",
    ],
)
def test_a_list_of_the_own_root_tells_what_is_open_on_the_server(gaia: Gaia, line: str) -> None:
    ended = gaia(*shlex.split(line))
    said = "1 more session is open on the server\nTo see them, type: gaia-sessions list\n"
    assert (ended.code, ended.err.decode()) == (0, said)


@pytest.mark.usefixtures("both")
def test_as_json_the_other_root_is_a_notice(gaia: Gaia) -> None:
    ended = gaia("list", "--json", "--grep", "it's")
    message = "3 more sessions are open in the project's own files, 1 waits for you"
    hint = "To see them, type: gaia-sessions list --root .claude/session"
    assert json.loads(ended.out) == []
    assert json.loads(ended.err) == {"notice": {"code": "other_root", "message": message, "hint": hint}}


def test_nothing_is_said_if_the_other_root_has_nothing_open_or_a_session_was_named(
    gaia: Gaia, url: str, own: str
) -> None:
    Sessions(url).create(agent_id="there")
    Sessions(own).create(agent_id="here")
    Sessions(own).finalize("here", "completed")
    assert gaia("list").err == b""
    Sessions(own).create(agent_id="here2")
    for line in ["tree there", "usage there", "get there"]:
        assert gaia(*shlex.split(line)).err == b""


def test_a_typed_third_root_or_no_folder_gets_no_line(gaia: Gaia, url: str, own: str, tmp_path: Path) -> None:
    Sessions(url).create(agent_id="there")
    Sessions(str(tmp_path / "third")).create(agent_id="third")
    Sessions(own).create(agent_id="here")
    assert gaia("list", "--root", str(tmp_path / "third")).err == b""
    Path(own).rename(tmp_path / "away")
    assert gaia("list").err == b""


def test_a_link_out_of_the_project_gets_advice_that_keeps_the_url(gaia: Gaia, url: str, own: str) -> None:
    Path(own).rmdir()
    Path(own).symlink_to("/etc")
    ended = gaia("list")
    hint = "Hint: remove the link; or, if you made the link, type export GAIA_SESSIONS_FILES=/etc\n"
    assert (ended.code, ended.err.decode().endswith(hint)) == (8, True), ended
    assert os.environ["GAIA_SESSIONS_ROOT"] == url


# A server that does not answer

SILENT = "no answer within 2 seconds"


@pytest.fixture(params=["stopped", "drops"])
def silent(request: pytest.FixtureRequest, own: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Makes a server that accepts a connection and never answers the root in the variable."""
    check_installed()
    put_in(own)
    put_stand_in(own, "twin-1")
    if request.param == "stopped":
        server = shared_server()
        monkeypatch.setenv("GAIA_SESSIONS_ROOT", server.url)
        os.kill(server.pid, signal.SIGSTOP)
        yield server.url
        os.kill(server.pid, signal.SIGCONT)
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"postgresql://127.0.0.1:{listening.getsockname()[1]}/agents"
        monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
        yield url


def at_once(*lines: str) -> dict[str, Ended]:
    """Runs command lines at the same time, each to its end."""
    with ExitStack() as stack:
        forks = {line: stack.enter_context(Fork(*shlex.split(line), stderr=None)) for line in lines}
        return {line: fork.ended() for line, fork in forks.items()}


def only_own(own: str, reason: str) -> str:
    hint = "check that the server runs and can be reached, then try again"
    return f"Note: the server could not be asked ({reason}), so only {own} was searched\nHint: {hint}\n"


def test_beside_a_server_that_does_not_answer_an_id_of_the_own_root_still_works(silent: str, own: str) -> None:
    assert silent
    for line, ended in at_once("get asks", "update below", "rm work", "get asks --lock-timeout 0").items():
        assert (ended.code, ended.err.decode()) == (0, only_own(own, SILENT)), line


def test_beside_a_server_that_does_not_answer_an_import_and_the_store_ask_once(silent: str, own: str) -> None:
    said = f"{silent}: cannot connect: no answer within 2 seconds"
    for words in (["import", own], ["store", "info"]):
        ended = forked(*words)
        assert (ended.code, ended.out, ended.err.decode().splitlines()[0]) == (8, b"", f"Error: {said}"), ended


@pytest.mark.usefixtures("silent")
def test_beside_a_server_that_does_not_answer_a_part_of_an_id_is_enough_only_to_look(own: str) -> None:
    cancelled = forked("cancel", "belo")
    assert (cancelled.code, "or type the whole ID: below" in cancelled.err.decode()) == (8, True), cancelled
    assert forked("get", "belo").code == 0
    assert Sessions(own).cancellation("below") is None


def test_beside_a_server_that_does_not_answer_a_wait_for_an_id_of_the_own_root_reports_it(
    silent: str, own: str
) -> None:
    Sessions(own).finalize("below", "completed")
    ended = Sessions(own).create("child", "ended", agent_id="ended", parent_id="asks")
    Sessions(own).finalize(ended, "failed")
    found = at_once("wait below", "wait --children asks", "wait far below", "wait far")
    assert [(one.code, one.out.decode()) for one in found.values()] == [
        (0, "below: completed\n"),
        (11, "below: completed\nended: failed\n  failed\n"),
        (8, "below: completed\n"),
        (8, ""),
    ]
    *known, with_far, far = (one.err.decode() for one in found.values())
    missing = f"Error: no session 'far' in {own}, and {silent}: cannot connect: {SILENT}\n"
    assert {*known} == {only_own(own, SILENT)}
    assert [with_far.startswith(only_own(own, SILENT) + missing), far.startswith(missing)] == [True, True]


@pytest.mark.usefixtures("own")
def test_beside_a_server_that_does_not_answer_other_commands_fail_soon(silent: str) -> None:
    lines = "get latest", "create", "run -- true", "create --parent asks", "ensure"
    for ended in at_once(*lines).values():
        assert ended.code == 8, ended
        assert ended.err.decode().startswith(f"Error: {silent}: cannot connect: {SILENT}\n")


def test_beside_a_server_that_does_not_answer_an_unknown_id_is_named_in_the_error(silent: str, own: str) -> None:
    unknown = {
        "get nobody": "no session 'nobody'",
        "get twin-1": "no session 'twin-1'",
        "resume no1 no2": "no session 'no1'",
        "rm work zz": "no session 'zz'",
        "update --host-agent talk a9": "no session of agent 'a9' in conversation 'talk'",
    }
    for line, ended in at_once(*unknown).items():
        said = f"Error: {unknown[line]} in {own}, and {silent}: cannot connect: {SILENT}\n"
        assert (ended.code, said in ended.err.decode()) == (8, True), ended


def test_doctor_says_soon_that_the_server_does_not_answer(silent: str, own: str) -> None:
    [ended] = at_once("doctor").values()
    shown = " ".join(ended.out.decode().split())
    assert ended.code == 1
    assert shown.startswith(f"problem: the server {silent} cannot be used: {SILENT} (")
    assert f"checks of the files of the hooks in {own} are fine: " in shown


@pytest.mark.usefixtures("own")
def test_lists_beside_a_server_that_does_not_answer_name_the_own_root(silent: str) -> None:
    said = (
        "2 more sessions are open in the project's own files, 1 waits for you\n"
        "To see them, type: gaia-sessions list --root .claude/session\n"
        f"Error: {silent}: cannot connect: {SILENT}\n"
    )
    found = at_once("list", "list --root .claude/session")
    ended, local = found.values()
    assert (ended.code, ended.err.decode().startswith(said)) == (8, True), ended
    assert (local.code, local.err.decode()) == (0, f"sessions on the server could not be counted: {SILENT}\n")


@pytest.mark.slow
def test_without_an_own_root_a_person_is_told_that_the_server_does_not_answer_yet(terminal: Gaia) -> None:
    check_installed()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"postgresql://127.0.0.1:{listening.getsockname()[1]}/agents?connect_timeout=4"
        ended = terminal("list", "--lock-timeout", "4", GAIA_SESSIONS_ROOT=url, NO_COLOR="1")
    told = f"{url} does not answer yet; this waits for 2 seconds more Error: {url}: cannot connect: "
    assert (ended.code, " ".join(ended.out.decode().split()).startswith(told)) == (8, True), ended


def test_a_hook_does_not_notice_that_the_server_does_not_answer(silent: str, own: str) -> None:
    assert silent
    put_agent()
    assert len(ids_in(own)) == 4


def test_a_refused_connection_is_told_with_its_reason(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", "postgresql://agents@/agents?host=/nowhere")
    put_in(own)
    ended = forked("get", "asks")
    found = re.match(r"Note: the server could not be asked \((.*)\), so only", ended.err.decode())
    assert (ended.code, found is not None and "No such file" in found[1]) == (0, True), ended
    assert forked("list").code == 8
