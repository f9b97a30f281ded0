"""Every command on a server root, as a person at a terminal sees it: no traceback, no password, no word of a folder."""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import CancellationToken, Sessions
from gaia_sessions.cli.group import COMMANDS
from tests.cli.conftest import everything_in
from tests.cli.forks import Fork, forked, until
from tests.records import ago
from tests.roles import WORKER, empty_url_of, shared_roles, url_of
from tests.servers import check_installed
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia
    from tests.commands import Ended

SECRET = "s3cret-of-the-environment"  # noqa: S105
FOLDER_WORDS = re.compile(r"\bfolder|director|does not exist|state\.json|network|Traceback|internal error|" + SECRET)

ON_FILES = {"hooks", "doctor", "import", "schema"}
"""These commands are about files, whatever the root is."""

TURN = b'[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]'

CALLS: dict[str, list[tuple[int, str]]] = {
    "list": [(0, "list"), (0, "list --agent nobody"), (0, "list -q"), (0, "list --around 18:05 --duration 5m")],
    "show": [(0, "show asks"), (0, "show asks --verbose"), (3, "show nobody"), (0, "show work"), (0, "show latest")],
    "report": [(124, "report asks"), (0, "report work"), (0, "report work --output"), (4, "report asks --output")],
    "pending": [(0, "pending")],
    "tree": [(0, "tree"), (0, "tree --agent nobody")],
    "usage": [(0, "usage"), (0, "usage asks")],
    "wait": [(0, "wait work"), (3, "wait nobody")],
    "approve": [(0, "approve asks"), (4, "approve work")],
    "deny": [(0, "deny asks --note 'not now'")],
    "resume": [(0, "resume"), (0, "resume asks")],
    "cancel": [(0, "cancel below"), (3, "cancel nobody")],
    "run": [(11, "run --id fails -- sh -c 'echo half; exit 3'"), (0, "run --parent asks -- echo done")],
    "cleanup": [(0, "cleanup --dry-run"), (0, "cleanup --hours 0 --verbose")],
    "create": [(0, "create --agent a --purpose p --parent asks"), (4, "create --id asks")],
    "update": [(0, "update asks --phase planning"), (3, "update nobody")],
    "get": [(0, "get asks"), (3, "get nobody"), (3, "get ask")],
    "should-resume": [(0, "should-resume asks"), (1, "should-resume work"), (3, "should-resume nobody")],
    "finalize": [(0, "finalize asks completed --summary done"), (0, "finalize work completed")],
    "send": [(0, "send asks hello -- cat"), (11, "send asks hello -- false")],
    "stats": [(0, "stats"), (0, "stats --by agent")],
    "turn": [(0, "turn asks -")],
    "context": [(0, "context work"), (0, "context asks")],
    "state": [(0, "state set asks key value"), (0, "state get asks key"), (0, "state incr asks n")],
    "todo": [(0, "todo add asks 'write tests'"), (0, "todo done asks 1"), (0, "todo list asks")],
    "skill": [(0, "skill add asks terraform --tokens 12")],
    "ensure": [(0, "ensure --id asks"), (0, "ensure --agent a")],
    "reset": [(0, "reset asks")],
    "tool": [(0, "tool check asks Read")],
    "guard": [(0, "guard check 'write tests'")],
    "cancelled": [(0, "cancelled asks"), (3, "cancelled nobody")],
    "events": [(0, "events work"), (3, "events nobody")],
    "transcript": [(0, "transcript asks --append user hello"), (0, "transcript asks"), (0, "transcript work")],
    "rm": [(0, "rm work"), (4, "rm asks"), (3, "rm nobody")],
    "reconcile": [(0, "reconcile"), (0, "reconcile --dry-run")],
    "repair": [(0, "repair asks"), (3, "repair nobody")],
    "store": [(8, "store init"), (8, "store migrate"), (0, "store info")],
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes a database with some sessions the default root; returns its URL for a worker that needs the password."""
    check_installed()
    url = url_for_password()
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", url)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    empty_url_of(WORKER)
    put_sessions()
    return url


@cache
def url_for_password() -> str:
    """The URL of the server of this process for a worker that the server asks for the password."""
    server = shared_roles()
    server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}' IN ROLE {WORKER}")
    url = url_of(server, "guarded")
    rules = Path(server.folder, "data", "pg_hba.conf")
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text(encoding="utf-8"), encoding="utf-8")
    server.execute("SELECT pg_reload_conf()")
    until(lambda: refuses(url, "wrong"))
    return url


def refuses(url: str, password: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, password=password).close()
    except psycopg.OperationalError:
        return True
    return False


def put_sessions() -> None:
    """Creates three sessions: one asks a person, one is below it, one is the finished work of a command."""
    sessions = Sessions()
    sessions.create("asker", "ask", agent_id="asks")
    sessions.update("asks", "approval", question="may I?")
    sessions.create("child", "below", agent_id="below", parent_id="asks")
    assert forked("run", "--id", "work", "--", "sh", "-c", "echo out; echo err >&2").code == 0


def at_terminal(terminal: Gaia, words: list[str]) -> Ended:
    """What a person sees; ``run``, ``send`` and ``turn`` are not at a terminal: their input would be it."""
    if words[0] not in ("run", "send", "turn"):
        shown: Ended = terminal(*words)
        return shown
    return forked(*words, stdin=TURN if words[0] == "turn" else b"")


def test_the_table_has_every_command() -> None:
    assert {*CALLS, *ON_FILES} == {*COMMANDS}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_on_a_server_works_and_speaks_of_no_folder(
    terminal: Gaia, server: str, away_from_home: Path, name: str
) -> None:
    assert os.environ["GAIA_SESSIONS_ROOT"] == server
    before = everything_in(away_from_home)
    for code, line in CALLS[name]:
        ended = at_terminal(terminal, shlex.split(line))
        shown = " ".join((ended.out + ended.err).decode("utf-8", "replace").split())  # without the ends of lines
        assert (line, ended.code, FOLDER_WORDS.findall(shown)) == (line, code, []), shown
    assert everything_in(away_from_home) == before, "nothing is stored in files"


def test_without_sessions_each_list_says_so_with_the_url(gaia: Gaia, server: str) -> None:
    empty_url_of(WORKER)
    for words in (["list"], ["tree"], ["usage"], ["stats"]):
        assert gaia(*words).answer == [f"No sessions found in {server}"]
    nothing = gaia("get", "nobody").refusal
    assert nothing == (
        3,
        f"no session 'nobody' in {server}",
        "this root has no sessions; for another root, add --root DIR",
    )


def test_create_prints_the_id_alone_even_to_a_person(terminal: Gaia, server: str) -> None:  # noqa: ARG001
    assert terminal("create", "--id", "new").out == b"new\n"


def test_a_printed_command_repeats_a_typed_url_as_one_word_of_a_shell(gaia: Gaia, server: str) -> None:
    _, _, hint = gaia("--root", server, "get", "nobody").refusal
    [command] = re.findall("`(.*)`", hint)
    assert shlex.split(command) == ["gaia-sessions", "--root", server, "list"]


def test_run_and_show_name_the_command_that_prints_the_output(gaia: Gaia, server: str) -> None:
    ended = forked("--root", server, "run", "--id", "fails", "--", "sh", "-c", "echo half; exit 3")
    [line] = re.findall("  whole output: (.*)\n", ended.err.decode())
    assert shlex.split(line) == ["gaia-sessions", "--root", server, "report", "fails", "--output"]
    assert gaia(*shlex.split(line)[1:]).out == b"half\n"
    assert "output      `gaia-sessions report fails --output`\n" in gaia("show", "fails").out.decode()


def test_run_says_which_command_prints_the_later_output_of_background_processes(gaia: Gaia, server: str) -> None:
    script = "(until test -e go; do sleep 0.02; done; echo later) & echo $! > pid; echo now"
    words = ["--root", server, "run", "--id", "{}", "--keep-background", "--", "sh", "-c", script]
    ended = forked(*[word.format("leaves") for word in words])
    said, hint = ended.err.decode().splitlines()
    assert said == "leaves: its background processes keep running without limits; their output is stored, too"
    line = hint.removeprefix("  whole output: ")
    assert shlex.split(line) == ["gaia-sessions", "--root", server, "report", "leaves", "--output"]
    notice = json.loads(forked("--json", *[word.format("says") for word in words]).err)["notice"]
    assert (notice["code"], notice["hint"]) == ("background_stored", hint.replace("leaves", "says"))
    Path("go").touch()
    until(lambda: gaia(*shlex.split(line)[1:]).out == b"now\nlater\n")


def test_the_password_of_the_environment_is_in_no_answer_as_json_and_in_no_error(
    gaia: Gaia,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for code, line in [*CALLS["show"], *CALLS["tree"], *CALLS["events"], *CALLS["store"], *CALLS["finalize"]]:
        name, *words = shlex.split(line)
        ended = gaia(name, "--json", *words)
        assert (line, ended.code, SECRET.encode() in ended.out + ended.err) == (line, code, False)
    from gaia_sessions.postgres.connections import server_of

    server_of(server).close_idle()
    monkeypatch.setenv("PGPASSWORD", "wrong-" + SECRET)
    code, said, hint = gaia("list").refusal
    assert (code, "password authentication failed" in said, SECRET in said + hint) == (8, True, False)


# Hooks


def test_hooks_pass_over_a_url_in_the_variable_and_use_the_root_that_is_found(gaia: Gaia, server: str) -> None:
    project = os.getcwd()
    Path(project, ".git").mkdir()
    for words in (["install"], ["install", "--here"], ["uninstall"]):
        done = json.loads(gaia("hooks", *words, "--json").out)
        assert (done["root"], done["changed"]) == (f"{project}/.claude/session", words != ["install", "--here"])
    status = gaia("hooks", "status")
    assert (status.code, server.encode() in status.out + status.err) == (0, False)


@table("words", [["status"], ["install"], ["install", "--here"], ["uninstall"], ["uninstall", "--user"]])
def test_hooks_refuse_a_typed_url(gaia: Gaia, server: str, away_from_home: Path, words: list[str]) -> None:
    before = everything_in(away_from_home)
    said = "--root: is a URL, but hooks store sessions in files"
    assert gaia("--root", server, "hooks", *words).refusal == (2, said, "name a folder, or leave out --root")
    assert everything_in(away_from_home) == before


# Import


def test_import_takes_messages_outputs_marks_events_and_shared_keys_into_a_server(
    gaia: Gaia, server: str, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", root)
    put_sessions()
    sessions = Sessions(root)
    sessions.add_turn("asks", [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}])
    sessions.reset("asks")
    sessions.add_turn("asks", [{"role": "user", "content": "two"}, {"role": "assistant", "content": "2"}])
    sessions.create("chat", "talk", agent_id="app", app="a", user="u", state={"app:x": 1, "user:y": 2, "z": 3})
    sessions.cancel("below", "not needed")

    empty_url_of(WORKER)
    wanted = {"asks", "below", "work", "app"}
    would = gaia("import", root, "--dry-run", "--root", server, "--json").json
    report = gaia("import", root, "--root", server, "--json").json

    assert {*would["imported"]} == {*report["imported"]} == wanted
    assert (report["root"], report["failed"]) == (server, [])
    there = Sessions(server)
    for agent_id in wanted:
        assert [*there.messages(agent_id)] == [*sessions.messages(agent_id)]
        assert [*there.events(agent_id)] == [*sessions.events(agent_id)]
    assert there.state("app")["state"] == {"app:x": 1, "user:y": 2, "z": 3}
    assert there.cancellation("below") == sessions.cancellation("below")
    assert gaia("report", "work", "--output", "--root", server).out == b"out\nerr\n"
    again = gaia("import", root, "--root", server, "--json").json
    assert (again["imported"], {*again["already_there"]}) == ([], wanted)


@table("words", [[], ["--dry-run"]])
def test_import_refuses_a_url_without_printing_it(gaia: Gaia, server: str, words: list[str]) -> None:  # noqa: ARG001
    said = "import takes folders, and not the URL of a server"
    url = f"postgresql://user:{SECRET}@db/agents"
    assert gaia("import", url, *words).refusal == (2, said, "name a folder of sessions or a project")


# Advice


def test_commands_on_a_server_advise_no_resume_line_because_no_hook_reads_it_there(
    gaia: Gaia, server: str, root: str, put: Gaia
) -> None:
    ended = {"run": 1, "started_at": ago(minutes=9), "ended_at": ago(minutes=1), "end": "killed"}
    by_host = {**ended, "host": "claude-code", "host_session_id": "c-1", "host_agent_id": "a-1"}
    put("hosted", phase="investigating", runs=[by_host])
    put("flow", phase="investigating", runs=[{**by_host, "workflow": {"run_id": "wf_1"}}])
    assert gaia("import", root, "--root", server).code == 0

    shown = [gaia(*line.split()).all for line in ("pending", "resume", "resume hosted", "report hosted")]
    for agent_id, command in (("asks", "approve"), ("hosted", "should-resume"), ("flow", "should-resume")):
        shown += [gaia(*words, agent_id).all for words in ([command], ["report"], ["show"], ["resume"])]
        told = gaia("resume", agent_id, "--json").json[0]
        way = [told.get(key) for key in ("means", "command", "prompt", "run_command", "resume_line", "problem")]
        assert way == ["run", None, None, f"gaia-sessions run {agent_id} -- COMMAND", None, None]
    assert [one for one in shown if re.search("give this to|resume line|delegate|claude", str(one))] == []
    for agent_id in ("asks", "hosted", "flow"):
        assert gaia("resume", agent_id).out.decode().count(f"\ngaia-sessions run {agent_id} -- COMMAND\n") == 1
        assert forked("run", agent_id, "--", "echo", "done").code == 0


# Lost writes


@table(
    ("line", "reads"),
    [
        ("run run-1 -- sh -c 'touch ready; while [ ! -e go ]; do sleep 0.02; done'", "ready"),
        ("wait wait-1", "no agent was started"),
        ("events events-1 --follow", "no agent was started"),
    ],
)
def test_a_command_that_goes_on_says_in_a_notice_that_the_server_has_lost_writes(
    server: str, line: str, reads: str
) -> None:
    import psycopg

    Path("ready").unlink(missing_ok=True)
    agent_id = line.split()[1]
    Sessions().create(agent_id=agent_id)
    with psycopg.connect(server, autocommit=True) as connection, ExitStack() as stack:
        stored = "SELECT record, revision, id FROM gaia_sessions.session WHERE id = %s"
        older = connection.execute(stored, [agent_id]).fetchone()
        Sessions().update(agent_id, "planning")
        fork = stack.enter_context(Fork(*shlex.split(line)))
        until(lambda: reads.encode() in fork.err or Path(reads).exists())
        connection.execute("UPDATE gaia_sessions.session SET record = %s, revision = %s WHERE id = %s", older)
        until(lambda: b"lost writes" in fork.err)
        told = fork.err.decode()
    assert f"\nNote: the server has lost writes: session {agent_id} had revision " in f"\n{told}"
    assert "WritesLost" not in told


# Cancellation


def test_a_token_of_a_session_on_a_server_sees_its_cancellation_and_that_of_a_session_above(server: str) -> None:
    sessions = Sessions(server)
    below, own = CancellationToken("below", root=server), CancellationToken("work", root=server)
    assert (below.is_cancelled, own.is_cancelled, own.wait(0)) == (False, False, False)

    sessions.cancel("asks", "stop all")
    sessions.cancel("work")

    assert own.wait(60)
    assert (below.cancellation or {})["by"] == "asks"


def test_cancel_ends_a_command_that_runs_on_a_server(gaia: Gaia, server: str) -> None:  # noqa: ARG001
    with Fork("run", "--id", "long", "--", "sh", "-c", "touch ready; sleep 60") as fork:
        until(Path("ready").exists)
        assert gaia("cancel", "long").code == 0
        assert fork.ended().code == 10


@table("words", [["hooks", "status"], ["hooks", "install"]])
def test_commands_for_hooks_say_that_hooks_store_their_sessions_in_a_folder(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    project = tmp_path / words[1]
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("GAIA_SESSIONS_ROOT", "postgresql://db.invalid/agents")

    ended = gaia(*words, folder=project)

    root = f"{project}/.claude/session"
    hint = f"Hint: to see them, type: gaia-sessions --root {root} list"
    said = f"hooks store their sessions in {root}, not on the server\n{hint}"
    assert (ended.code, said in ended.err.decode()) == (0, True), ended
