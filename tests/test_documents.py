"""The command lines of the users' own document, typed into a shell, and their tool ``agent_session.py``.

The blocks are copied from the document. Only ``<agent_id>`` and the path in the cron line are replaced. The folder has
``tools/4-memory/agent_session.py`` and ``hooks/``, as the document says, and ``python3`` has the package.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gaia_sessions.cli import agent_session, main
from tests.commands import gaia
from tests.table import table

if TYPE_CHECKING:
    import click

CHECKOUT = Path(__file__).resolve().parents[1]
TOOL = "python3 tools/4-memory/agent_session.py"
PATIENCE = 60

QUICK_START = """
# Crear sesión nueva
python3 tools/4-memory/agent_session.py create --agent terraform-architect --purpose approval_workflow

# Actualizar fase
python3 tools/4-memory/agent_session.py update agent-20260108-abc123 --phase approval

# Verificar si debe resumir
python3 tools/4-memory/agent_session.py should-resume agent-20260108-abc123

# Listar sesiones activas
python3 tools/4-memory/agent_session.py list --active-only

# Finalizar sesión
python3 tools/4-memory/agent_session.py finalize agent-20260108-abc123 completed

# Cleanup sesiones viejas
python3 tools/4-memory/agent_session.py cleanup --hours 24
"""
THEIR_ID = "agent-20260108-abc123"

CASE_1 = """
# 1. Agente inicia tarea
agent_id = create_session(
    agent_name="terraform-architect",
    purpose="approval_workflow",
    metadata={"task_id": "T001"}
)

# 2. Agente genera plan
update_state(agent_id, phase="planning")

# 3. Agente solicita aprobación
update_state(agent_id, phase="approval")

# [Usuario aprueba después de 10 minutos]

# 4. Pre-delegate hook check
if should_resume(agent_id):
    # Resume con contexto completo
    session = get_session(agent_id)
    # Agente continúa con session["history"] y session["metadata"]

# 5. Agente ejecuta
update_state(agent_id, phase="executing")

# 6. Agente termina
finalize_session(agent_id, outcome="completed", summary="Terraform applied successfully")
"""

CASE_2 = """
# Turn 1: Investigar problema
agent_id = create_session(
    agent_name="gitops-operator",
    purpose="investigation"
)
update_state(agent_id, phase="investigating", metadata={"findings": ["issue A", "issue B"]})

# [Usuario hace pregunta adicional después de 5 minutos]

# Turn 2: Continuar investigación
if should_resume(agent_id):
    session = get_session(agent_id)
    previous_findings = session["metadata"]["findings"]
    # Agente continúa desde donde dejó

update_state(agent_id, metadata={"findings": previous_findings + ["issue C"]})

# Turn 3: Finalizar
finalize_session(agent_id, outcome="completed")
"""

HOOK = """
echo '{"agent_name": "terraform-architect", "agent_id": "agent-123"}' | \\
python3 hooks/pre_delegate.py
"""

CLEANUP = """
# Manual
python3 tools/4-memory/agent_session.py cleanup --hours 24

# Programado (agregar a cron)
0 * * * * cd /path/to/gaia-ops && python3 tools/4-memory/agent_session.py cleanup --hours 24
"""

TESTING = """
# Test completo del flujo
python3 hooks/pre_delegate.py --test

# Test CLI agent_session
cd tools/4-memory
python3 agent_session.py create --agent test-agent --purpose test
python3 agent_session.py list
"""

DEBUG = """
python3 tools/4-memory/agent_session.py get <agent_id>
"""

CORRUPT = """
# Ver estado raw
cat .claude/session/<agent_id>/state.json

# Eliminar sesión corrupta
rm -rf .claude/session/<agent_id>
"""

METRICS = """
# Ver sesiones activas
python3 tools/4-memory/agent_session.py list --active-only

# Ver todas las sesiones
python3 tools/4-memory/agent_session.py list

# Filtrar por agente
python3 tools/4-memory/agent_session.py list --agent terraform-architect
"""


class Said(NamedTuple):
    """The result of a command line, with ``ID`` and ``TIME`` in place of generated IDs and times."""

    code: int
    out: str
    err: str = ""


class Folder:
    """The users' project, without any settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session = path / ".claude" / "session"

    def run(self, line: str, where: str = ".", **environment: str) -> Said:
        """Runs ``line`` in a shell that finds the Python with the package first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.path / where,
            env={"HOME": str(self.path.parent), "PATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Said(done.returncode, plain(done.stdout), plain(done.stderr))

    def typed(self, line: str) -> Said:
        """Runs a ``line`` of the document that calls the tool and needs no shell."""
        assert line.startswith(TOOL)
        return self.tool(line.removeprefix(TOOL))

    def tool(self, words: str) -> Said:
        """Runs the tool with ``words``."""
        return self._say(words, agent_session.group, TOOL)

    def ours(self, words: str) -> Said:
        """Runs gaia-sessions with ``words``."""
        return self._say(words, main.commands, "gaia-sessions")

    def _say(self, words: str, group: click.Group, name: str) -> Said:
        home = {"HOME": str(self.path.parent)}
        ran = gaia(*shlex.split(words), group=group, name=name, environment=home, folder=self.path)
        return Said(ran.code, plain(ran.out.decode()), plain(ran.err.decode()))

    def python(self, program: str) -> Said:
        return self.run(f"python3 - <<'END'\n{program}\nEND\n", PYTHONPATH="tools/4-memory", PYTHONSAFEPATH="")

    def only_id(self) -> str:
        [folder] = self.session.glob("[!.]*")
        return folder.name

    def put(self, agent_id: str, idle: timedelta, phase: str = "approval") -> None:
        """Makes a session as the earlier tool did."""
        moment = (datetime.now(UTC) - idle).isoformat()
        record = {
            "agent_id": agent_id,
            "agent_name": "terraform-architect",
            "purpose": "approval_workflow",
            "created_at": moment,
            "last_updated": moment,
            "phase": phase,
            "metadata": {},
            "resume_ready": phase == "approval",
            "history": [],
            "error_count": 0,
            "last_error": None,
        }
        path = self.session / agent_id / "state.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record, indent=2), encoding="utf-8")


def plain(text: str) -> str:
    text = re.sub(r"agent-\d{8}-\d{6}-[0-9a-f]{8}", "ID", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "TIME", text)


def commands(block: str) -> list[str]:
    """The command lines of a block, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def lay_out(path: Path, *, link: bool = False) -> Folder:
    tool, script = path / "tools" / "4-memory" / "agent_session.py", CHECKOUT / "scripts" / "agent_session.py"
    tool.parent.mkdir(parents=True)
    if link:
        tool.symlink_to(script)
    else:
        shutil.copy(script, tool)
    (path / "hooks").mkdir()
    for name in ("pre_delegate.py", "subagent_stop.py"):
        shutil.copy(CHECKOUT / "hooks" / name, path / "hooks" / name)
    return Folder(path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return lay_out(tmp_path / "gaia-ops")


def listed(status: str = "ACTIVE", phase: str = "initializing", agent: str = "terraform-architect") -> str:
    return f"\nFound 1 sessions:\n\n{status} ID\n  Agent: {agent}, Phase: {phase}\n  Last updated: TIME\n\n"


def test_the_quick_start_works_with_the_id_that_it_printed(folder: Folder) -> None:
    create, *rest = commands(QUICK_START)
    said = [folder.run(create)]
    said += [folder.run(line.replace(THEIR_ID, folder.only_id())) for line in rest]
    assert said == [
        Said(0, "Created session: ID\n"),
        Said(0, "Updated session: ID\n"),
        Said(0, "Should resume ID: True\n"),
        Said(0, listed(phase="approval")),
        Said(0, "Finalized session: ID\n"),
        Said(0, "Cleaned up 0 sessions older than 24h\n"),
    ]


def test_a_link_to_the_script_works(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "gaia-ops", link=True)
    assert folder.run(commands(QUICK_START)[0]) == Said(0, "Created session: ID\n")
    assert folder.only_id()


def test_the_quick_start_works_word_for_word_if_its_session_exists(folder: Folder) -> None:
    folder.put(THEIR_ID, timedelta(minutes=1), phase="investigating")
    said = [folder.typed(line) for line in commands(QUICK_START)[1:]]
    assert said == [
        Said(0, f"Updated session: {THEIR_ID}\n"),
        Said(0, f"Should resume {THEIR_ID}: True\n"),
        Said(0, listed(phase="approval").replace("ID", THEIR_ID)),
        Said(0, f"Finalized session: {THEIR_ID}\n"),
        Said(0, "Cleaned up 0 sessions older than 24h\n"),
    ]


def test_the_quick_start_without_its_session_says_so_and_does_the_rest(folder: Folder) -> None:
    said = [folder.typed(line) for line in commands(QUICK_START)]
    missing = said[1], said[4]
    assert [(one.code, one.out) for one in missing] == [
        (3, f"Failed to update session: {THEIR_ID}\n"),
        (3, f"Failed to finalize session: {THEIR_ID}\n"),
    ]
    for one in missing:
        error, hint = one.err.splitlines()
        assert error.startswith(f"Error: no session '{THEIR_ID}'")
        assert hint.startswith("Hint: ")
    assert (said[2].code, said[2].out) == (3, f"Should resume {THEIR_ID}: False\n")
    assert said[2].err.startswith("not_found: ")
    assert [said[0], said[3], said[5]] == [
        Said(0, "Created session: ID\n"),
        Said(0, listed()),
        Said(0, "Cleaned up 0 sessions older than 24h\n"),
    ]


@table(
    ("case", "metadata"),
    [(CASE_1, {"task_id": "T001"}), (CASE_2, {"findings": ["issue A", "issue B", "issue C"]})],
)
def test_a_use_case_runs_with_the_functions_of_the_agent_session_module(
    tmp_path: Path, case: str, metadata: dict[str, object]
) -> None:
    folder = lay_out(tmp_path / next(iter(metadata)))
    names = "create_session, finalize_session, get_session, should_resume, update_state"
    assert folder.python(f"from agent_session import {names}\n{case}") == Said(0, "")
    record = json.loads((folder.session / folder.only_id() / "state.json").read_bytes())
    assert (record["phase"], record["metadata"]) == ("completed", metadata)


def test_the_hook_sample_answers_as_the_document_shows(folder: Folder) -> None:
    [line] = commands(HOOK)
    folder.put("agent-123", timedelta(minutes=1))
    said = folder.run(line)
    answer = json.loads(said.out)
    assert (said.code, said.err) == (0, "")
    assert {key: answer[key] for key in ("should_resume", "reason", "agent_id")} == {
        "should_resume": True,
        "reason": "session_resumable",
        "agent_id": "agent-123",
    }
    context = answer["resume_metadata"]
    shown = {key: context[key] for key in ("previous_phase", "created_at", "history")}
    assert shown == {"previous_phase": "approval", "created_at": "TIME", "history": []}
    assert (folder.path / ".claude" / "logs" / "pre_delegate.log").read_text(encoding="utf-8").count("\n") == 1


def test_the_hook_sample_without_its_session_answers_not_found(folder: Folder) -> None:
    [line] = commands(HOOK)
    said = folder.run(line)
    answer = json.loads(said.out)
    assert (said.code, said.err, answer["should_resume"]) == (0, "", False)
    assert (answer["reason"], answer["detail"]) == ("session_not_resumable", "not_found")


def test_the_subagent_stop_hook_ends_the_session_named_in_task_info(folder: Folder) -> None:
    folder.put("agent-123", timedelta(minutes=1), phase="executing")
    said = folder.run("""echo '{"task_info": {"agent_id": "agent-123"}}' | python3 hooks/subagent_stop.py""")
    assert (said.code, json.loads(said.out)["outcome"], said.err) == (0, "completed", "")
    assert folder.run("chmod +x hooks/*.py && hooks/subagent_stop.py < /dev/null").code == 0


def test_the_cleanup_lines_remove_old_sessions_whatever_folder_they_start_in(folder: Folder) -> None:
    by_hand, by_cron = commands(CLEANUP)
    *_fields, command = by_cron.split(maxsplit=5)
    command = command.replace("/path/to/gaia-ops", str(folder.path))
    for line, where in ((by_hand, "."), (command, "..")):
        folder.put("old", timedelta(hours=25), phase="executing")
        folder.put("young", timedelta(hours=23), phase="executing")
        assert folder.run(line, where) == Said(0, "Cleaned up 1 sessions older than 24h\n")
        assert folder.only_id() == "young"
        shutil.rmtree(folder.session / "young")
    assert not (folder.path.parent / ".claude").exists()


def test_the_tests_of_the_document_pass_and_the_tool_finds_its_sessions(folder: Folder) -> None:
    said = folder.run(TESTING)
    tried, _, rest = said.out.partition(" passed, 0 failed\n")
    assert (said.code, said.err, "FAILED" in tried) == (0, "", False)
    assert rest == "Created session: ID\n" + listed(agent="test-agent")


def test_the_tests_of_the_document_use_the_existing_sessions_of_the_project(folder: Folder) -> None:
    folder.typed(commands(QUICK_START)[0])
    said = folder.run(TESTING).out
    agents = [line for line in said.splitlines() if "Agent: " in line]
    assert agents == [f"  Agent: {agent}, Phase: initializing" for agent in ("test-agent", "terraform-architect")]
    assert not (folder.path / "tools" / "4-memory" / ".claude").exists()


def test_the_lines_for_a_corrupt_session_show_it_and_remove_it(folder: Folder) -> None:
    [get], [cat, remove] = commands(DEBUG), commands(CORRUPT)
    folder.typed(commands(QUICK_START)[0])
    agent_id = folder.only_id()
    shown = folder.typed(get.replace("<agent_id>", agent_id))
    assert (shown.code, json.loads(shown.out)["phase"], shown.err) == (0, "initializing", "")
    path = folder.session / agent_id / "state.json"
    path.write_text("{", encoding="utf-8")
    said = folder.typed(get.replace("<agent_id>", agent_id))
    assert (said.code, said.out, said.err.splitlines()[0]) == (
        6,
        "",
        plain(f"Error: {path}: line 1 column 1: not JSON: this brace is not closed"),
    )
    [problem] = [line for line in folder.typed(commands(METRICS)[1]).out.splitlines() if "CORRUPT" in line]
    assert problem == "CORRUPT ID"
    assert folder.run(cat.replace("<agent_id>", agent_id)) == Said(0, "{")
    assert folder.run(remove.replace("<agent_id>", agent_id)) == Said(0, "")
    assert folder.typed(commands(METRICS)[1]).out == "No sessions found\n"


def test_the_metrics_lines_list_open_sessions_all_sessions_and_those_of_an_agent(folder: Folder) -> None:
    folder.typed(commands(QUICK_START)[0])
    folder.tool(f"finalize {folder.only_id()} failed --summary no")
    said = [folder.typed(line) for line in commands(METRICS)]
    ended = Said(0, listed("INACTIVE", "failed"))
    assert said == [Said(0, "No sessions found\n"), ended, ended]


def test_a_failed_command_never_exits_with_0_and_says_what_to_type(folder: Folder) -> None:
    folder.put("a", timedelta(hours=1))
    folder.put("done", timedelta(hours=1), phase="completed")
    wrong = {
        "update a --phase nonsense": 2,
        "finalize a nonsense": 2,
        "nonsense": 2,
        "list --nonsense": 2,
        "cleanup --hours -1": 2,
        "get nobody": 3,
        "update done --phase approval": 4,
        "get ../a": 7,
    }
    said = {words: folder.tool(words) for words in wrong}
    assert {words: one.code for words, one in said.items()} == wrong
    assert {words: one.out for words, one in said.items() if one.out} == {
        "update a --phase nonsense": "Failed to update session: a\n",
        "finalize a nonsense": "Failed to finalize session: a\n",
        "get nobody": "Session nobody not found\n",
        "update done --phase approval": "Failed to update session: done\n",
    }
    assert [one for one in said.values() if not re.fullmatch("Error: .+\nHint: .+\n", one.err)] == []
    assert said["list --nonsense"].err.endswith(f"Hint: {TOOL} list --help lists the options\n")
    assert folder.tool("should-resume a")[:2] == (1, "Should resume a: False\n")
    assert folder.tool("should-resume ../a")[:2] == (7, "Should resume ../a: False\n")


def test_a_missing_session_and_an_unstored_summary_are_reported_as_by_gaia_sessions(folder: Folder) -> None:
    folder.put("a", timedelta(hours=1), phase="completed")
    lists = "`gaia-sessions list` shows the existing sessions"
    advice = f"searched in {plain(str(folder.session))}; {lists}; or start new work"
    assert folder.tool("should-resume nobody") == Said(3, "Should resume nobody: False\n", f"not_found: {advice}\n")
    note = (
        "Note: the session had already ended (completed); the summary was not stored\n"
        "Hint: `gaia-sessions show a` shows what is stored\n"
    )
    assert folder.tool("finalize a completed --summary x") == Said(0, "Finalized session: a\n", note)
    assert folder.tool("cleanup --hours 30m") == Said(0, "Cleaned up 1 sessions older than 0.5h\n")


def test_list_shows_the_number_of_errors_of_a_session(folder: Folder) -> None:
    folder.put("a", timedelta(minutes=1))
    assert folder.tool("update a --error boom") == Said(0, "Updated session: a\n")
    assert folder.tool("list").out == listed(phase="approval").replace("ID", "a").replace(
        "TIME\n", "TIME\n  Errors: 1\n"
    )


def test_the_tool_without_a_command_lists_its_seven_commands(folder: Folder) -> None:
    said = folder.tool("")
    names = ["cleanup", "create", "finalize", "get", "list", "should-resume", "update"]
    assert (said.code, said.err) == (0, "")
    assert [line.split()[0] for line in said.out.partition("Commands:\n")[2].splitlines()] == names


@table(
    "words",
    [
        "create",
        "list",
        "get a",
        "update a --error boom",
        "should-resume a",
        "finalize a completed",
        "cleanup --hours 9",
    ],
)
def test_with_json_the_tool_answers_like_gaia_sessions(tmp_path: Path, words: str) -> None:
    folder, other = (lay_out(tmp_path / words.partition(" ")[0] / name) for name in ("one", "other"))
    for each in (folder, other):
        each.put("a", timedelta(minutes=1))
    theirs = folder.tool(f"{words} --json")
    ours = other.ours(f"{words} --json")
    unsteady = r"(\"(idle_seconds|actual|duration_seconds)\": )[0-9.]+"
    said = [(one.code, re.sub(unsteady, r"\1N", one.out), one.err) for one in (theirs, ours)]
    assert said[0] == said[1]


def other_pythons() -> list[tuple[str, str]]:
    """Pythons of this machine that are too old, and one without the package, each with the expected reason."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "/root/.pyenv"), "versions")
    old = [str(path) for version in ("2.7", "3.6", "3.10") for path in pyenv.glob(f"{version}.*/bin/python")]
    return [
        *((python, r"it is Python [23]\.\d+") for python in old),
        (f"{sys.executable} -I -S", "No module named '\\w+'"),
    ]


@table(("python", "reason"), other_pythons())
@table("words", ["list", "cleanup --hours 24"])
def test_a_python_that_cannot_run_the_tool_gets_one_sentence(
    folder: Folder, python: str, reason: str, words: str
) -> None:
    said = folder.run(f"{python} tools/4-memory/agent_session.py {words}")
    assert re.fullmatch(
        rf"tools/4-memory/agent_session\.py: \S+ cannot run it \({reason}\):"
        r" use Python 3\.11 or later with gaia-sessions, which"
        r" `python3 -m pip install /path/to/gaia-sessions` installs\n",
        said.err,
    )
    assert (said.code, said.out) == (8, "")


def test_shared_options_can_precede_the_command_and_a_wrong_command_gets_a_hint(folder: Folder) -> None:
    folder.put("a", timedelta(hours=1), phase="completed")
    assert json.loads(folder.tool("--json list").out)[0]["agent_id"] == "a"
    assert folder.tool("--root ./elsewhere list")[:2] == (0, "No sessions found\n")
    assert folder.tool("lst") == Said(2, "", "Error: No such command 'lst'.\nHint: did you mean list?\n")
    line = f"{TOOL} finalize a completed"
    said = f"Error: unknown outcome 'complete'\nHint: type {line}\n"
    assert folder.tool("finalize a complete") == Said(2, "Failed to finalize session: a\n", said)
    assert folder.typed(line).code == 0
