"""Real clients as commands of ``run`` and ``send``, with an API that counts their tokens."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gaia_sessions.hosts.clients import is_conversation_id
from tests.hook.preset_client import LONGEST, CodexPreset, at_end_gone, last_run, preset_of, ran, until, used, waiting
from tests.hook.test_realclient import CHECKOUT, delegation
from tests.hook.test_realclient import client as client  # noqa: PLC0414  # a fixture
from tests.hook.test_realclient_others import start as start  # noqa: PLC0414  # a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.preset_client import Preset
    from tests.hook.test_realclient import Client

pytestmark = pytest.mark.realclient

TASK = "[[main]] Do it."
STEP = {"text": "A step.", "tools": [ran("print(6 * 7)")], "usage": {"output_tokens": 300}}
LONG_STEP = {"text": "A step.", "tools": [waiting(300)], "usage": {"output_tokens": 20_000}}
REPORT = {"text": "Half of it is done.", "usage": {"output_tokens": 20_000}}


def four_at_work() -> dict[str, Any]:
    """Four sub-agents at once, each with a long call of Bash."""
    names = ["one", "two", "three", "four"]
    return {
        "main": [{"tools": [delegation(name) for name in names]}, {"text": "All are at work."}],
        "subs": {name: [{"text": "A step.", "tools": [waiting(300)]}] for name in names},
    }


def has_four_tools(preset: Preset) -> bool:
    commands = preset.processes().values()
    return sum(one.startswith(b"python3") and b"time.sleep(300)" in one for one in commands) == 4


def test_a_client_in_run_does_its_task_and_its_last_message_is_stored(client: Client) -> None:
    scenario = {"main": [STEP, {"text": "It is 42.", "usage": {"output_tokens": 400}}]}
    with preset_of(client, scenario) as preset:
        code, out, err = preset.run("--id", "work", "--task", TASK, "--context", "Be brief.")

        record: Any = preset.sessions.get("work")
        run = last_run(record)
        assert (code, out) == (0, "A step.\nIt is 42.\n")
        assert 'Bash: python3 -c "print(6 * 7)"; echo done' in err
        assert (record["phase"], run["end"], run["exit_code"]) == ("completed", "stopped", 0)
        assert run["last_message"] == "It is 42."
        assert run["consumed"]["total_tokens"] == record["usage"]["total_tokens"] == used(preset, scenario) == 900
        assert run["consumed"]["tool_uses"] == 1
        where = {"preset": "claude", "cwd": os.path.realpath(client.host.project), "generation": 0, "seq": 1}
        assert {**where, "id": run["conversation"]["id"]} == run["conversation"]
        [asked] = [one for one in preset.heard() if "Do it." in one]
        assert asked.startswith(f"{TASK}\n\nAdditional context:\nBe brief.\n\nIf you stop before the work is done")


def test_a_refusal_of_the_api_fails_the_run_and_is_reported(client: Client) -> None:
    with preset_of(client, {"main": [{"status": 400, "message": "scripted 400"}]}) as preset:
        code, out, err = preset.run("--id", "work", "--task", TASK)

        record: Any = preset.sessions.get("work")
        assert (code, out) == (11, "")
        assert "API Error: 400 scripted 400" in err
        assert (record["phase"], last_run(record)["end"]) == ("failed", "failed")
        assert "API Error: 400 scripted 400" in record["last_error"]["message"]


def test_the_report_of_a_client_at_the_time_limit_is_stored(client: Client) -> None:
    with preset_of(client, {"main": [LONG_STEP, REPORT]}) as preset:
        code, out, _ = preset.run("--id", "work", "--task", TASK, "--timeout", "4", "--grace", "20")

        report = preset.sessions.report("work")
        assert (code, out) == (124, "A step.\nHalf of it is done.\n")
        assert (report["status"], report["recent_messages"][-1]["content"]) == ("timeout", "Half of it is done.")
        assert preset.sessions.usage("work")["tokens"] == 40_200
        assert preset.processes() == {}


def test_a_client_reports_at_the_time_limit_while_only_background_agents_work(client: Client) -> None:
    job = delegation("alpha")
    job["input"]["run_in_background"] = True
    main = [{"tools": [job]}, {"text": "It is at work."}, {"text": "Alpha is not done."}]
    scenario = {"main": main, "subs": {"alpha": [LONG_STEP, {"text": "Never said."}]}}
    with preset_of(client, scenario) as preset:
        code, out, _ = preset.run("--id", "work", "--task", TASK, "--timeout", "10", "--grace", "20")

        assert (code, out) == (124, "It is at work.\nAlpha is not done.\n")
        assert "Report now" in preset.heard()[-1]
        assert preset.sessions.report("work")["partial"] == "Alpha is not done."
        assert preset.processes() == {}


@pytest.mark.parametrize("tool", [waiting(300), ran("print(6 * 7)")], ids=["slow", "fast"])
@pytest.mark.parametrize("last", [REPORT, None], ids=["reports", "goes on"])
def test_a_client_beyond_its_budget_makes_at_most_one_more_request(
    client: Client, tool: dict[str, Any], last: dict[str, Any] | None
) -> None:
    step = {"text": "A step.", "tools": [tool], "usage": {"output_tokens": 20_000}}
    with preset_of(client, {"main": [step, last or step]}) as preset:
        code, _, _ = preset.run("--id", "work", "--task", TASK, "--max-tokens", "15000", "--grace", "20")

        record: Any = preset.sessions.get("work")
        assert code == 11
        assert len(preset.requests("main")) <= 2
        assert last_run(record)["detail"] == "max_tokens"
        assert last_run(record)["last_message"] in ("A step.", "Half of it is done.")
        assert preset.sessions.usage("work")["tokens"] >= 20_100
        assert preset.processes() == {}


def test_tokens_of_sub_agents_count_against_the_budget_of_the_run(client: Client) -> None:
    subs = {"alpha": [STEP, LONG_STEP, {"text": "Never said."}]}
    scenario = {"main": [{"tools": [delegation("alpha")]}, {"text": "It is at work."}], "subs": subs}
    with preset_of(client, scenario) as preset:
        code, _, _ = preset.run("--id", "work", "--task", TASK, "--max-tokens", "15000", "--grace", "5")

        assert (code, last_run(preset.sessions.get("work"))["detail"]) == (11, "max_tokens")
        assert len(preset.requests("sub:alpha")) == 2
        assert preset.sessions.usage("work")["tokens"] < 1000, "it is charged its own alone"
        assert preset.processes() == {}


def test_cancel_from_another_terminal_ends_all_tools_of_the_client(client: Client) -> None:
    with preset_of(client, four_at_work()) as preset:
        process = preset.start("run", "--id", "work", "--task", TASK, "--", *preset.words)
        until(lambda: has_four_tools(preset))
        preset.sessions.add_todo("work", "count")
        assert preset.type("cancel", "work", "--reason", "enough")[0] == 0
        _, err = process.communicate(timeout=LONGEST)

        assert (process.returncode, preset.processes()) == (10, {}), err
        report = preset.sessions.report("work")
        assert (report["status"], [one["description"] for one in report["todos"]]) == ("cancelled", ["count"])
        assert preset.type("finalize", "work", "completed")[0] != 0
        assert preset.sessions.report("work")["status"] == "cancelled"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_client_is_resumed_in_its_conversation(client: Client) -> None:
    with preset_of(client, {"main": [LONG_STEP, {"text": "Carried out."}]}) as preset:
        process = preset.start("run", "--id", "work", "--task", TASK, "--", *preset.words)
        until(lambda: any(b"time.sleep(300)" in one and b"python3" in one for one in preset.processes().values()))
        os.kill(preset.sessions.store.read("work")["runs"][0]["wrapper"]["pid"], signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST)
        assert process.returncode == 130, err
        assert preset.sessions.usage("work")["tokens"] == 20_100

        assert preset.type("run", "work", "--", *preset.words)[:2] == (0, "Carried out.\n")
        first, second = (run["conversation"] for run in preset.sessions.store.read("work")["runs"])
        assert (second["id"], preset.heard()[-1]) == (first["id"], "Resume the work.")


def test_a_send_that_reaches_its_time_limit_asks_for_no_report(client: Client) -> None:
    with preset_of(client, {"main": [LONG_STEP, REPORT]}) as preset:
        preset.type("create", "--id", "talk")
        code, out, _ = preset.type("send", "talk", TASK, "--timeout", "4", "--", *preset.words)

        assert (code, out, len(preset.requests("main"))) == (124, "", 1)
        assert preset.sessions.usage("talk")["tokens"] == 20_100


@pytest.mark.parametrize("options", [[], ["--contain"]], ids=["", "contained"])
def test_a_client_whose_wrapper_was_killed_is_shown_as_crashed(client: Client, options: list[str]) -> None:
    with preset_of(client, four_at_work()) as preset:
        process = preset.start("run", "--id", "work", *options, "--task", TASK, "--", *preset.words)
        until(lambda: has_four_tools(preset))
        before = preset.sessions.usage("work")["tokens"]
        pid = preset.sessions.store.read("work")["runs"][0]["wrapper"]["pid"]
        os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=LONGEST)

        assert before > 0, "what was used is in the record while it works"
        until(lambda: preset.sessions.report("work")["status"] == "error")
        if options:
            until(lambda: preset.processes() == {})
        code, out, _ = preset.type("show", "work")
        assert (code, "crashed" in out) == (0, True), out


def test_a_client_and_its_sub_agents_get_only_the_tools_of_the_session(client: Client) -> None:
    scenario = {
        "main": [{"tools": [delegation("scout")]}, STEP, {"text": "Done."}],
        "subs": {"scout": [STEP, {"text": "Found it."}]},
    }
    with preset_of(client, scenario) as preset:
        code, out, _ = preset.run("--id", "work", "--tools", "Read,Agent,Task", "--task", TASK)

        offered = {one["role"]: set(preset.offered(one["n"])) for one in preset.requests()}
        assert (code, out) == (0, "A step.\nDone.\n")
        of_client = {"Agent", "Task", "DeferredToolPlaceholder"}  # the last is no tool: 2.1.330 always has it
        assert offered["main"] - of_client == {"Read"}
        assert offered["sub:scout"] - of_client == {"Read"}


def test_a_client_with_sub_agents_is_a_tree_that_counts_no_token_twice(client: Client) -> None:
    client.install()
    alpha = [STEP, {"text": "Report alpha.", "usage": {"output_tokens": 410}}]
    beta = [{**STEP, "tools": [waiting(3)]}, {"text": "Report beta.", "usage": {"output_tokens": 620}}]
    main = [
        {"tools": [delegation("alpha"), delegation("beta")], "usage": {"output_tokens": 11}},
        {"text": "Both began.", "usage": {"output_tokens": 13}},
    ]
    scenario = {"main": main, "subs": {"alpha": alpha, "beta": beta}}
    with preset_of(client, scenario) as preset:
        code, _, err = preset.run("--id", "work", "--task", TASK)

        assert code == 0, err
        records = client.host.records()
        work = records.pop("work")
        ends = [(one["parent_id"], one["phase"], last_run(one)["end"]) for one in records.values()]
        assert ends == [("work", "completed", "stopped")] * 2
        assert (work["phase"], len(work["runs"]), last_run(work)["end"]) == ("completed", 1, "stopped")
        tokens = [one["usage"]["total_tokens"] for one in (work, *records.values())]
        assert sum(tokens) == used(preset, scenario)
        assert "gaia-sessions: resume" not in json.dumps([preset.heard(0), preset.heard()]), "no offer of its own task"


def test_a_client_that_another_client_starts_works_in_a_session_below(client: Client) -> None:
    with preset_of(client, {"main": []}) as preset:
        nested = " ".join(["gaia-sessions", "run", "--task", "'[[sub:inner]] Do it.'", "--", *preset.words[:1]])
        call = {"name": "Bash", "input": {"command": nested, "description": "Run it"}}
        inner = [{"text": "Inner report.", "usage": {"output_tokens": 700}}]
        scenario = {"main": [{"tools": [call]}, {"text": "All done."}], "subs": {"inner": inner}}
        preset.begin(scenario)
        code, out, err = preset.run("--id", "work", "--task", TASK)

        assert (code, out) == (0, "All done.\n"), err
        records = client.host.records()
        outer = records.pop("work")
        [below] = records.values()
        assert (below["parent_id"], below["phase"], last_run(below)["last_message"]) == (
            "work",
            "completed",
            "Inner report.",
        )
        assert outer["usage"]["total_tokens"] + below["usage"]["total_tokens"] == used(preset, scenario)


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["there", "deleted"])
def test_a_client_is_resumed_after_its_question_was_answered_elsewhere(client: Client, *, is_forgotten: bool) -> None:
    asks = {"text": "The plan is ready.\n\n[gaia-sessions: approval] may I?"}
    with preset_of(client, {"main": [asks, {"text": "Carried out."}]}) as preset:
        preset.run("--id", "work", "--task", TASK)
        assert preset.sessions.store.read("work")["phase"] == "approval"
        preset.type("approve", "work", "--note", "only the copy", cwd=client.host.folder)
        if is_forgotten:
            preset.forget_conversations()
            preset.begin({"main": [{"text": "Carried out."}]})
        code, _, err = preset.type("run", "work", "--task", TASK, "--", *preset.words)

        record: Any = preset.sessions.get("work")
        first, second = (run["conversation"] for run in record["runs"])
        heard = preset.heard()
        assert (code, record["phase"]) == (0, "completed"), err
        if is_forgotten:
            assert first["id"] != second["id"]
            assert "its conversation is gone; a new conversation starts" in err
            assert "| approved: only the copy" in heard[0]
            assert heard[0].count("The plan is ready.") == 1
            assert second["cwd"] == first["cwd"]
        else:
            assert second == {**first, "seq": 2}
            assert heard[1:] == [
                "The plan is ready.\n\n[gaia-sessions: approval] may I?",
                f"Your request is approved. Carry it out.\nonly the copy\n\n{TASK}",
            ]


def test_the_model_sees_each_turn_once_despite_a_kill_and_a_deleted_conversation(
    client: Client,
) -> None:
    names = ["one", "two", "three", "four", "five"]
    answers = [{"text": f"Answer {number}."} for number in range(5)]
    slow = [*answers[:3], {"text": "Never said.", "delay": 60}]
    with preset_of(client, {"main": slow}) as preset:
        preset.type("create", "--id", "talk", "--system-prompt", "You count. [[main]]")
        for number, name in enumerate(names[:3]):
            assert preset.send("talk", f"Say {name}.") == (0, f"Answer {number}.\n", "")
        assert preset.heard()[1:] == ["Answer 0.", "Say two.", "Answer 1.", "Say three."]

        process = preset.start("send", "talk", "Say four.", "--", *preset.words)
        until(lambda: preset.requests()[-1]["turn"] == 3)
        os.kill(last_run(preset.sessions.store.read("talk"))["wrapper"]["pid"], signal.SIGKILL)
        process.communicate(timeout=LONGEST)
        preset.begin({"main": [{"text": "Answer 3."}, {"text": "Answer 4."}]})
        assert preset.send("talk", "Say four.")[:2] == (0, "Answer 3.\n")
        assert seen(preset) == {**dict.fromkeys(names[:4], 1), "five": 0}

        preset.forget_conversations()
        code, out, err = preset.send("talk", "Say five.")
        assert (code, out, "a new conversation starts" in err) == (0, "Answer 3.\n", True)
        assert seen(preset) == dict.fromkeys(names, 1)
        assert preset.sessions.store.read("talk")["turns"] == 5


def seen(preset: Preset) -> dict[str, int]:
    """How often the latest request has each text that was sent."""
    told = "\n".join(preset.heard())
    return {name: told.count(f"Say {name}.") for name in ("one", "two", "three", "four", "five")}


PAGE = CHECKOUT / "docs" / "ci-and-cron.md"
RUN = re.compile(r"^        run: \|\n((?: {10}.*\n)+)", re.MULTILINE)


def test_the_ci_job_of_the_page_stores_work_that_another_machine_resumes(client: Client) -> None:
    page = PAGE.read_text("utf-8").partition("## In CI")[2]
    steps = [textwrap.dedent(step) for step in RUN.findall(page)]
    [elsewhere] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    job, other = client.host.folder / "job", client.host.folder / "other"
    for folder in (job, other):
        (folder / ".github").mkdir(parents=True)
        (folder / ".github" / "review.md").write_text("[[main]] Review it.\n", encoding="utf-8")
    asks = {"text": "One test is slow.\n\n[gaia-sessions: approval] may I remove it?"}
    with preset_of(client, {"main": [asks]}) as preset:
        summary = job / "summary"
        preset.settings |= {
            "GAIA_SESSIONS_ROOT": str(job / "sessions"),
            "GITHUB_RUN_ID": "7",
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        assert [preset.shell(step, job)[0] for step in steps] == [0, 0]
        assert "may I remove it?" in summary.read_text("utf-8")

        shutil.copytree(job / "sessions", other / "sessions", ignore=shutil.ignore_patterns(".*"))
        shutil.rmtree(job)
        preset.forget_conversations()
        preset.settings |= {"GAIA_SESSIONS_ROOT": str(other / "root")}
        preset.begin({"main": [{"text": "It is removed."}]})
        code, out, err = preset.shell(elsewhere, other)
        assert (code, out.endswith("It is removed.\n")) == (0, True), err
        [heard] = preset.heard()
        assert heard.startswith("[[main]] Review it.\n")
        assert "| approved: only the tests" in heard


@pytest.fixture
def codex(start: Any) -> Iterator[CodexPreset]:
    """Codex, with an API that answers nothing yet."""
    other = start("codex")
    packages = Path(os.environ["REALCLIENT_BASE"], "cli-codex", "node_modules")
    [program] = packages.glob("@openai/codex-linux-x64/vendor/*/bin/codex")
    words = [str(program), "--skip-git-repo-check", "-s", "danger-full-access"]
    with at_end_gone(CodexPreset(other.host, other.harness, words, {"main": []})) as preset:
        yield preset


def shell(command: str) -> dict[str, Any]:
    return {"text": "A step.", "tools": [{"name": "exec_command", "input": {"cmd": command}}]}


def test_codex_asks_and_is_resumed_in_the_same_conversation(codex: CodexPreset) -> None:
    asks = {"text": "The plan is ready.\n\n[gaia-sessions: approval] may I?"}
    codex.begin({"main": [shell("echo hi"), asks, {"text": "Carried out."}]})

    code, out, err = codex.run("--id", "work", "--task", TASK)
    first: Any = codex.sessions.store.read("work")
    assert (code, first["phase"], first["usage"]["total_tokens"]) == (0, "approval", 240), err
    assert out == "A step.\nThe plan is ready.\n\n[gaia-sessions: approval] may I?\n"
    assert "command_execution: /bin/bash -lc 'echo hi'" in err

    assert codex.type("run", "work", "--", *codex.words)[0] == 0
    record: Any = codex.sessions.get("work")
    assert (record["phase"], last_run(record)["last_message"]) == ("completed", "Carried out.")
    assert [run["consumed"]["total_tokens"] for run in record["runs"]] == [240, 120]
    assert last_run(record)["conversation"] == {**first["runs"][0]["conversation"], "seq": 2}
    [asked] = json.loads((codex.api / f"request-{codex.requests()[-1]['n']:03}.json").read_text("utf-8"))["body"][
        "input"
    ][-1:]
    assert asked["content"][0]["text"] == "Your request is approved. Carry it out."


def test_a_run_of_codex_can_fail_and_reach_its_time_and_token_limits(codex: CodexPreset) -> None:
    codex.begin({"main": [{"status": 400, "message": "scripted 400"}]})
    code, _, err = codex.run("--id", "failing", "--task", TASK)
    assert (code, "scripted 400" in err, codex.sessions.store.read("failing")["phase"]) == (11, True, "failed")

    codex.begin({"main": [shell("sleep 300; sleep 301")]})
    code, out, _ = codex.run("--id", "slow", "--task", TASK, "--timeout", "4", "--grace", "10")
    report = codex.sessions.report("slow")
    assert (code, out, report["status"], report["partial"]) == (124, "A step.\n", "timeout", "A step.")
    assert codex.processes() == {}

    codex.begin({"main": [shell("echo hi")]})
    before = len(codex.requests())
    code, _, _ = codex.run("--id", "dear", "--task", TASK, "--max-tokens", "100")
    assert (code, last_run(codex.sessions.store.read("dear"))["detail"]) == (11, "max_tokens")
    assert len(codex.requests()) - before <= 2
    assert codex.sessions.usage("dear")["tokens"] >= 120


def test_codex_without_a_file_reports_its_tokens_at_the_end_of_a_turn(codex: CodexPreset) -> None:
    codex.words.append("--ephemeral")
    codex.begin({"main": [shell("echo hi"), {"text": "Done."}]})
    code, out, err = codex.run("--id", "cheap", "--task", TASK, "--max-tokens", "300")
    assert (code, out, codex.sessions.usage("cheap")["tokens"]) == (0, "A step.\nDone.\n", 240), err
    assert [*codex.home.glob(codex.CONVERSATIONS)] == []

    asks = {"text": "The plan is ready.\n\n[gaia-sessions: approval] may I?"}
    codex.begin({"main": [shell("echo hi"), asks]})
    codex.run("--id", "dear", "--task", TASK, "--max-tokens", "200")
    before, record = len(codex.requests()), codex.sessions.store.read("dear")
    assert (record["phase"], codex.sessions.usage("dear")["tokens"]) == ("approval", 240)
    code, _, err = codex.type("run", "dear", "--task", TASK, "--", *codex.words)
    assert (code, "tokens are used up" in err, len(codex.requests())) == (4, True, before)


def test_codex_is_told_each_turn_once_even_if_its_conversation_is_deleted(codex: CodexPreset) -> None:
    codex.begin({"main": [{"text": f"Answer {number}."} for number in range(4)]})
    codex.type("create", "--id", "talk", "--system-prompt", "You count. [[main]]")
    for number, name in enumerate(["one", "two"]):
        assert codex.send("talk", f"Say {name}.")[:2] == (0, f"Answer {number}.\n")
    codex.forget_conversations()
    code, out, err = codex.send("talk", "Say three.")

    assert (code, out, "a new conversation starts" in err) == (0, "Answer 0.\n", True), err
    body = (codex.api / f"request-{codex.requests()[-1]['n']:03}.json").read_text("utf-8")
    assert {name: body.count(f"Say {name}.") for name in ("one", "two", "three")} == {"one": 1, "two": 1, "three": 1}


def test_claude_code_resumes_in_a_linked_worktree_but_not_in_a_moved_worktree(client: Client) -> None:
    with preset_of(client, {"main": []}) as preset:
        goes_on_in_its_folder_alone(preset)


def test_codex_resumes_in_a_linked_worktree_but_not_in_a_moved_worktree(codex: CodexPreset) -> None:
    goes_on_in_its_folder_alone(codex)


def goes_on_in_its_folder_alone(preset: Preset) -> None:
    asks = {"text": "The plan is ready.\n\n[gaia-sessions: approval] may I?"}
    preset.begin({"main": [asks, asks, asks]})
    project = preset.host.project
    tree, moved = project.parent / "a tree", project.parent / "moved"
    named = ["-c", "user.name=me", "-c", "user.email=me@here"]
    for words in (
        ["init", "-q"],
        [*named, "commit", "-qm", "x", "--allow-empty"],
        ["worktree", "add", "-q", "--detach", tree],
    ):
        subprocess.run(["git", "-C", project, *words], check=True)

    preset.run("--id", "work", "--cwd", str(tree), "--task", TASK)
    on = preset.type("run", "work", "--cwd", str(tree), "--task", TASK, "--", *preset.words)
    elsewhere = preset.type("run", "work", "--task", TASK, "--", *preset.words)
    subprocess.run(["git", "-C", project, "worktree", "move", tree, moved], check=True)
    preset.type("run", "work", "--cwd", str(moved), "--task", TASK, "--", *preset.words)
    tree.mkdir()
    back = preset.type("run", "work", "--cwd", str(tree), "--task", TASK, "--", *preset.words)
    tree.rmdir()
    gone = preset.type("run", "work", "--cwd", str(moved), "--task", TASK, "--", *preset.words)

    record: Any = preset.sessions.store.read("work")
    places = [run["conversation"] for run in record["runs"]]
    folders = [tree, tree, project, moved, tree, moved]
    assert [place["cwd"] for place in places] == [os.path.realpath(folder) for folder in folders]
    assert places[1] == {**places[0], "seq": 2}
    assert len({place["id"] for place in places}) == 5
    assert (on[0], "conversation" in on[2]) == (0, False), on
    anew = "; a new conversation starts and is told what was said so far\n"
    assert (
        f"its conversation is in folder {tree}{anew}to use the old one, stop this command and add --cwd '{tree}'\n"
        in elsewhere[2]
    )
    assert (
        f"its conversation is in folder {moved}{anew}to use the old one, stop this command and add --cwd {moved}\n"
        in back[2]
    )
    assert f"its conversation is in {tree}, which is not your folder now{anew}" in gone[2]


PROBE = "touch $PROBE"
HOOKS = json.dumps({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": PROBE}]}]}})


@pytest.mark.parametrize("name", [f"--settings={HOOKS}", "--dangerously-skip-permissions", "../../x"])
def test_the_text_of_a_record_sets_no_option_or_folder_of_claude_code(client: Client, name: str) -> None:
    with preset_of(client, {"main": []}) as preset:
        obeys_no_record(preset, name)


@pytest.mark.parametrize("name", ['-cmcp_servers.x={command="sh",args=["-c","touch $PROBE"]}', "--last", "../../x"])
def test_the_text_of_a_record_sets_no_option_or_folder_of_codex(codex: CodexPreset, name: str) -> None:
    obeys_no_record(codex, name)


def obeys_no_record(preset: Preset, name: str) -> None:
    preset.begin({"main": [{"text": "The plan is ready.\n\n[gaia-sessions: approval] may I?"}]})
    evil, probe = preset.host.folder / "evil", preset.host.folder / "probe"
    preset.settings |= {"PROBE": str(probe)}
    (evil / ".claude").mkdir(parents=True)
    (evil / ".claude" / "settings.json").write_text(HOOKS, encoding="utf-8")
    preset.run("--id", "work", "--task", TASK)
    path = preset.root / "work" / "state.json"
    for change in ({"id": name}, {"cwd": str(evil)}, {"id": name, "cwd": str(evil)}):
        record = json.loads(path.read_bytes())
        record["runs"][-1]["conversation"] |= change
        path.write_text(json.dumps(record), encoding="utf-8")
        code, _, err = preset.type("run", "work", "--task", TASK, "--", *preset.words)
        assert (code, "a new conversation starts" in err) == (0, True), err
    places = [run["conversation"] for run in json.loads(path.read_bytes())["runs"]]
    assert (places[-1]["cwd"], probe.exists()) == (os.path.realpath(preset.host.project), False)
    assert is_conversation_id(places[-1]["id"])
