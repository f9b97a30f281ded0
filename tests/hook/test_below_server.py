"""A client below a session on a server: a stand-in in files puts its agents below the session while `run` goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.session.trace import trace_of
from tests.hook.conftest import LONGEST, refused
from tests.hook.test_enforcement import asked
from tests.servers import empty_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.conftest import Host

COMMAND = 'env -0 > variables.new; mv variables.new variables; until [ -e done ]; do sleep 0.05; done; echo "Said."'


class Outer:
    """A run on the server ``url`` whose command waits; ``settings`` are the variables that the command got."""

    def __init__(self, host: Host, url: str, *words: str) -> None:
        self.host = host
        self.url = url
        self.sessions = Sessions(url)
        started = words if words[0] == "send" else ("run", *words)
        words = (sys.executable, "-m", "gaia_sessions", *started, "--json", "--", "sh", "-c", COMMAND)
        environment = host.environment({"GAIA_SESSIONS_ROOT": url})
        self.process = subprocess.Popen(
            words, env=environment, cwd=host.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        file = host.project / "variables"
        self.until(file.exists)
        found = dict(line.split("=", 1) for line in file.read_text().split("\0") if "=" in line)
        file.unlink()
        self.settings = {name: value for name, value in found.items() if name.startswith("GAIA_")}

    def until(self, condition: Any) -> None:
        deadline = time.monotonic() + LONGEST
        while not condition():
            assert time.monotonic() < deadline, self.process.communicate() if self.process.poll() is not None else ""
            time.sleep(0.02)

    def agent(self, number: int = 1) -> str:
        """Starts an agent of a client in the command; returns its session."""
        return self.host.work(f"toolu_{number}", f"a{number}", settings=self.settings)

    def end(self) -> tuple[int, Any, str]:
        """Ends the command; returns the exit code, the report and stderr of ``run``."""
        (self.host.project / "done").touch()
        out, err = self.process.communicate(timeout=LONGEST)
        (self.host.project / "done").unlink(missing_ok=True)
        return self.process.returncode, json.loads(out or "null"), err


@contextmanager
def outer(host: Host, url: str, *options: str) -> Iterator[Outer]:
    found = Outer(host, url, *options)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


@pytest.fixture
def url() -> str:
    return empty_url()


def record_of(root: object, agent_id: str) -> Any:
    return Sessions(str(root)).get(agent_id)


def gaia(host: Host, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gaia_sessions", *words]
    environment = host.environment(settings)
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=host.project, env=environment)


def test_the_command_gets_the_server_and_the_files_for_its_hooks(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        settings = {name: run.settings[name] for name in ("GAIA_SESSIONS_ROOT", "GAIA_SESSIONS_FILES")}

    assert settings == {"GAIA_SESSIONS_ROOT": url, "GAIA_SESSIONS_FILES": str(host.root)}


def test_a_command_without_a_valid_folder_for_its_hooks_is_refused_before_anything_begins(host: Host, url: str) -> None:
    Sessions(url).create("planner", agent_id="old")
    before = record_of(url, "old")
    for words in (["run"], ["send", "old", "hello"]):
        refused = gaia(host, "--root", url, *words, "--", "true", GAIA_SESSIONS_FILES="files")
        assert (refused.returncode, refused.stdout, refused.stderr) == (
            2,
            "",
            "Error: GAIA_SESSIONS_FILES: 'files' is not absolute\nHint: set it to a path that begins with /\n",
        )

    assert [line["agent_id"] for line in Sessions(url).list()] == ["old"]
    assert record_of(url, "old") == before


def test_an_agent_of_the_client_is_below_the_session_and_its_trace_is_that_of_the_tree(host: Host, url: str) -> None:
    Sessions(url).create("planner", agent_id="top", max_depth=3)
    with outer(host, url, "--id", "outer", "--parent", "top") as run:
        agent_id = run.agent()
        tree = gaia(host, "--root", str(host.root), "tree", "--json")

    lines = [(line["agent_id"], line.get("stand_in"), line.get("depth")) for line in json.loads(tree.stdout)]
    assert lines == [(agent_id, None, 2)], tree.stderr
    shown = Sessions(str(host.root)).show(agent_id)
    assert (shown["parent_id"], shown["root_id"], shown["trace_id"]) == ("outer", "top", trace_of("top")["trace_id"])


def test_only_the_tree_shows_a_stand_in(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer", "--agent", "reviewer", "--purpose", "auth") as run:
        agent_id = run.agent()
        files = Sessions(str(host.root))
        found = [one["agent_id"] for one in files.list()], files.stats()["total"]["sessions"], files.pending()
        used = [agent["agent_name"] for agent in files.usage_by_agent()["agents"]]
        tree = gaia(host, "--root", str(host.root), "tree").stdout
        tree_of_one = gaia(host, "--root", str(host.root), "tree", "outer").stdout
        sums = files.subtree("outer")[0][1]["sums"]
        run.end()

    assert (found, used) == (([agent_id], 1, []), ["Explore"])
    assert tree == f"reviewer: auth  on the server  -  outer\n└─ Explore: Count quokkas  working  -  {agent_id}\n"
    assert (tree_of_one, sums) == (tree, {"sessions": 1, "states": {"working": 1}, "unreported": 1})


def test_the_end_of_the_run_tells_the_server_what_was_below(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        host.run("every_event", host.ending("a1"), run.settings)
        run.agent(2)
        code, report, err = run.end()
    record = record_of(url, "outer")

    assert (code, report["status"], err) == (0, "success", "")
    assert record["runs"][-1]["below"] == {"agents": 2, "states": {"completed": 1, "working": 1}}
    shown = gaia(host, "--root", url, "show", "outer").stdout
    assert re.findall("\nbelow it +(.*)\n", shown) == ["2 agents, no tokens reported: 1 completed, 1 working"], shown
    assert record_of(host.root, agent_id)["phase"] == "completed"


def test_a_run_ends_as_usual_if_a_later_version_wrote_a_record_below_it(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        host.edit(run.agent(), schema=2, runs=5)
        run.agent(2)
        code, _, err = run.end()
    ended = record_of(url, "outer")["runs"][-1]

    assert (code, err, ended["end"], ended["below"]["agents"]) == (0, "", "stopped", 1)


def test_a_cancellation_on_the_server_reaches_the_agents_of_the_client(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        Sessions(url).cancel("outer", "wrong branch")
        run.process.wait(LONGEST)
        below: Any = Sessions(str(host.root)).cancellation(agent_id)

    assert (run.process.returncode, record_of(url, "outer")["phase"]) == (10, "abandoned")
    assert (below["by"], below["reason"]) == ("outer", "wrong branch")


def test_cancel_reaches_the_agents_of_a_client_whose_run_was_killed(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        run.process.kill()
        cancelled = gaia(host, "cancel", "outer", "--reason", "wrong branch", GAIA_SESSIONS_ROOT=url)
        below: Any = Sessions(str(host.root)).cancellation(agent_id)

    assert cancelled.returncode == 0, cancelled.stderr
    assert (below["by"], below["reason"]) == ("outer", "wrong branch")


def test_cancel_says_what_it_has_cancelled_if_it_cannot_cancel_the_stand_in(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        run.agent()
        run.end()
    (host.root / ".locks" / "outer.lock").unlink()
    (host.root / ".locks" / "outer.lock").mkdir()
    tried = gaia(host, "cancel", "outer", GAIA_SESSIONS_ROOT=url)

    assert tried.stdout.startswith("outer: already completed; from now on, no new session can continue it")
    assert f"Error: {host.root}/.locks/outer.lock: cannot lock: " in tried.stderr
    assert (tried.returncode, bool(Sessions(url).cancellation("outer"))) == (8, True)


def test_a_second_run_uses_the_stand_in_of_the_first(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        first = run.agent()
        Sessions(url).update("outer", phase="planning")
        run.process.terminate()
        run.process.wait(LONGEST)
    with outer(host, url, "outer") as run:
        second = run.agent(2)
        run.end()

    files = Sessions(str(host.root))
    assert {one["agent_id"] for one in files.children("outer")} == {first, second}
    assert record_of(url, "outer")["runs"][-1]["below"]["agents"] == 1


def test_a_session_made_anew_gets_a_new_stand_in_and_earlier_agents_stay_cancelled(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        first = run.agent()
        Sessions(url).cancel("outer", "wrong branch")
        run.process.wait(LONGEST)
    Sessions(url).remove(["outer"], force=True)
    with outer(host, url, "--id", "outer") as run:
        second = run.agent(2)
        marks: Any = [Sessions(str(host.root)).cancellation(one) for one in (first, second)]
        run.end()

    assert [mark and mark["reason"] for mark in marks] == ["wrong branch", None]


def test_an_ordinary_session_with_the_same_id_is_left_alone_and_the_user_is_told(host: Host, url: str) -> None:
    host.root.mkdir()
    files = Sessions(str(host.root))
    files.create("mine", agent_id="outer")
    before = files.get("outer")
    with outer(host, url, "--id", "outer") as run:
        code, _, err = run.end()

    assert (code, files.get("outer")) == (0, before)
    assert json.loads(err)["notice"]["message"] == (
        "outer: agents that its client starts will not be below this session, so `cancel` and limits miss them: "
        f"another session has this ID in {host.root}, and they will be below that one"
    )


def test_agents_are_below_the_session_in_files_from_which_their_session_was_imported(host: Host, url: str) -> None:
    host.root.mkdir()
    files = Sessions(str(host.root))
    files.create("planner", agent_id="outer")
    before = files.get("outer")
    Sessions(url).import_from(host.root)
    with outer(host, url, "outer") as run:
        agent_id = run.agent()
        Sessions(url).cancel("outer", "wrong branch")
        _, err = run.process.communicate(timeout=LONGEST)

    assert (err, files.get("outer")) == ("", before)
    below: Any = files.cancellation(agent_id)
    assert (below["by"], below["reason"]) == ("outer", "wrong branch")


def test_no_command_goes_on_with_a_stand_in_and_show_says_what_it_is(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        run.end()
    files = ("--root", str(host.root))
    for words in (["run", "outer"], ["run", "--continues", "outer"], ["send", "outer", "hello"]):
        tried = gaia(host, *files, *words, "--", "true")
        assert (tried.returncode, tried.stdout) == (4, "")
        assert "session 'outer' cannot be used for this: it is on a server\n" in tried.stderr

    assert "\nstate      on the server\n" in gaia(host, *files, "show", "outer").stdout
    assert {*host.records()} == {"outer", agent_id}


def test_a_send_has_a_stand_in_as_a_run_has(host: Host, url: str) -> None:
    Sessions(url).create("planner", agent_id="outer")
    with outer(host, url, "send", "outer", "hello") as run:
        agent_id = run.agent()
        code, _, err = run.end()

    assert (code, record_of(host.root, agent_id)["parent_id"]) == (0, "outer"), err
    assert record_of(url, "outer")["runs"][-1]["below"]["agents"] == 1


def test_an_agent_of_the_client_may_use_only_the_tools_of_all_sessions_above(host: Host, url: str) -> None:
    host.words = ["--enforce"]
    Sessions(url).create("planner", agent_id="top", tools=["Read", "Grep"])
    with outer(host, url, "--id", "outer", "--parent", "top") as run:
        run.agent()
        denied = {tool: asked(host, "c1", tool, **run.settings) is not None for tool in ("Read", "Bash")}

    assert denied == {"Read": False, "Bash": True}


def test_the_agents_of_a_client_that_died_with_its_run_are_ended_by_reconcile(host: Host, url: str) -> None:
    with host.client() as client, outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        run.process.kill()
        client.kill()
        found = Sessions(str(host.root)).reconcile()

    assert [(one["agent_id"], one["verdict"], one["closed"]) for one in found["verdicts"]] == [(agent_id, "lost", True)]


def test_an_import_takes_the_agents_below_a_stand_in_and_not_the_stand_in(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        run.end()
    Sessions(url).remove(["outer"])

    assert Sessions(url).import_from(host.root)["imported"] == [agent_id]


def test_a_stand_in_with_nothing_below_goes_with_its_run(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        during = [*host.records()]
        run.end()

    assert (during, [*host.records()]) == (["outer"], [])


def test_a_cancellation_of_the_session_alone_does_not_cancel_its_agents(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer") as run:
        agent_id = run.agent()
        Sessions(url).cancel("outer", only=True)
        run.process.wait(LONGEST)
        files = Sessions(str(host.root))
        found = files.cancellation("outer"), files.cancellation(agent_id)

    assert (run.process.returncode, found[0] is None, found[1]) == (10, False, None)


def test_a_root_with_stand_ins_alone_has_no_sessions(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer"):
        listed = gaia(host, "--root", str(host.root), "list").stdout

    assert listed == f"No sessions found in {host.root}\n"


def test_a_resume_line_with_the_id_of_a_stand_in_begins_new_work(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer"):
        host.hear(host.resuming("outer"))
        [new] = set(host.records()) - {"outer"}

    assert "continues" not in host.records()[new]


def test_the_direct_form_of_a_hook_ends_no_session_by_its_stand_in(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer"):
        before = record_of(host.root, "outer")
        told = {"agent_id": "outer", "outcome": "failed"}
        answer = host.ask("subagent_stop", told)

    assert answer == refused("subagent_stop", told, "not_found")
    assert record_of(host.root, "outer") == before


def test_cleanup_keeps_a_stand_in_as_long_as_a_command_may_run_and_counts_it_never(host: Host, url: str) -> None:
    with outer(host, url, "--id", "outer"):
        files = Sessions(str(host.root), {"keep_days": 7})
        kept = files.cleanup(0)
        forgotten = Sessions(str(host.root), {"keep_days": 0}).cleanup(0)

    assert (kept["recent"], kept["removed"], forgotten["removed"]) == (0, [], ["outer"])
    assert files.stats()["total"]["sessions"] == 0


def test_a_run_in_a_folder_without_hooks_makes_no_files(host: Host, url: str) -> None:
    folder = host.folder / "plain"
    folder.mkdir()
    words = [sys.executable, "-m", "gaia_sessions", "--root", url, "run", "--", "true"]
    subprocess.run(words, check=True, cwd=folder, env={**os.environ, "CLAUDE_PROJECT_DIR": str(folder)})

    assert [*folder.iterdir()] == []
