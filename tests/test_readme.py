"""What the README and docs/ show is true: commands run as they stand, generated parts are current, links resolve."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pytest

from gaia_sessions.cli.group import COMMANDS, HIDDEN, Commands
from gaia_sessions.hosts import HOOK
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.system.server_url import checked
from tests import commands
from tests.hook.client import client
from tests.scripts import script
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hook.client import Client

CHECKOUT = Path(__file__).resolve().parent.parent
README = CHECKOUT / "README.md"
HOOKS_README = CHECKOUT / "hooks" / "README.md"
DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
PAGES = [README, HOOKS_README, *DOCS]

RENDER_DOCS = script("render_docs")
REPLAY = script("replay")

MOST_LINES = 120
WIDEST = 100
SCREEN = (80, 24)


def text_of(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), flags=re.MULTILINE | re.DOTALL)


def block(page: str, language: str, which: int = 0) -> str:
    return blocks(page, language)[which]


def run_python(home: Path, program: str) -> str:
    """What ``program`` prints."""
    words, environment = [sys.executable, "-c", program], {**os.environ, "HOME": str(home)}
    return subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=True).stdout


def run_in_shell(home: Path, lines: str, flags: str = "-u") -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(home), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    words = ["sh", flags, "-c", lines]
    return subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True, check=False)


def test_the_conversation_examples_run_across_processes_as_written(tmp_path: Path) -> None:
    page = "docs/conversations.md"
    (tmp_path / "cleaner.py").write_text(block(page, "python"), encoding="utf-8")
    assert len(block(page, "python").split("\n\n\n")[1].splitlines()) <= 12  # the agent

    asked = run_in_shell(tmp_path, block(page, "sh"), "-eu")
    first, second, *shown = asked.stdout.splitlines()
    assert (asked.returncode, first) == (0, "Which of the files *.tmp do you mean?")
    assert second == "Deleting old.tmp, of the files *.tmp."
    assert "\n".join(shown[shown.index("last question") :][:4]) == f"last question\n  old.tmp\nlast answer\n  {second}"

    counted = run_in_shell(tmp_path, block(page, "sh", 1), "-eu")
    assert (counted.returncode, counted.stdout, counted.stderr) == (0, "2\n4\n", "")


ANSWERS = {"approve": "completed", "deny": "abandoned", "": "approval"}
"""Where the work of the first examples ends by what a person answers; they stand there with an approval."""


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_shell_example_carries_out_only_approved_work(tmp_path: Path, answer: str) -> None:
    commands, given = block("docs/commands.md", "sh"), "gaia-sessions approve"
    assert given in commands
    commands = commands.replace(given, f"gaia-sessions {answer}" if answer else ":")

    done = run_in_shell(tmp_path, f'{commands}\necho; gaia-sessions get "$id"', "-eu")

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert f'"phase": "{ANSWERS[answer]}"' in done.stdout
    assert ("Terraform applied" in done.stdout) == (answer == "approve")
    assert "removed 0 sessions not updated for 1 day" in lines


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_python_example_carries_out_only_approved_work(tmp_path: Path, answer: str) -> None:
    program, given = written_examples()[0], "sessions.approve("
    assert given in program
    program = program.replace(given, f"sessions.{answer}(" if answer else "print(end='') or (")
    program += "print(sessions.show(agent_id)['phase'], 'context' in globals())\n"

    note = "only in staging\n" if answer == "approve" else ""
    assert run_python(tmp_path, program) == f"{note}{ANSWERS[answer]} {answer == 'approve'}\n"


def written_examples() -> list[str]:
    """The examples of the page of Python that are in no docstring: each is a whole program."""
    written = re.sub(r"<!-- (\w+).*? -->\n.*?<!-- end of \1.*? -->", "", text_of("docs/python.md"), flags=re.DOTALL)
    return re.findall(r"^```python\n(.*?)^```$", written, flags=re.MULTILINE | re.DOTALL)


OTHER_EXAMPLES = [
    (1, "[*sessions.list(every_app=True)]", "[]\n"),
    (2, "sessions.check_tool(agent_id, 'Read')['allowed']", "False\nTrue\nTrue\n"),
    (3, "token.is_cancelled", "no longer needed\nTrue\n"),
    (4, "session.report()['status'], session.report()['result']", "success It is fine.\n"),
]


@table(("which", "shown", "expected"), OTHER_EXAMPLES)
def test_the_other_python_examples_run_as_written(tmp_path: Path, which: int, shown: str, expected: str) -> None:
    home = tmp_path / str(which)
    home.mkdir()
    assert run_python(home, written_examples()[which] + f"print({shown})\n") == expected


def test_the_compose_file_is_valid_and_its_parts_fit_together() -> None:
    yaml = pytest.importorskip("yaml")
    file = yaml.safe_load(block("docs/many-machines.md", "yaml"))
    services = file["services"]
    named = {secret for service in services.values() for secret in service["secrets"]}
    assert (named, file["volumes"]) == ({*file["secrets"]}, {"data": None})
    cleanup = services["cleanup"]
    url = checked("root", cleanup["environment"]["GAIA_SESSIONS_ROOT"])
    assert f"@{services['db']['networks']['default']['aliases'][0]}/" in url
    typed = re.findall("gaia-sessions (cleanup[^;]*);", cleanup["command"][-1])
    assert [commands.gaia(*shlex.split(line), "--help").code for line in typed] == [0]


def test_every_python_example_is_tested() -> None:
    assert {0, *(which for which, _, _ in OTHER_EXAMPLES)} == {*range(len(written_examples()))}


PRINTED = {
    "create": "",
    "update": "",
    "finalize": "",
    "pending": "",
    "approve": "",
    "deny": "",
    "should_resume": "[]\n",
    "explain_resume": "False phase_not_resumable\n",
    "get": "initializing\n",
    "list": "ID reviewer new\n",
    "events": "['approval']\n",
    "report": "no issue found\n",
    "wait": "running\n",
    "messages": "['Review the plan.']\n",
    "add_turn": "True\nFalse\n",
    "state": "1\n",
    "change_state": "{'user_id': 'u1', 'attempts': 1, 'intent': 'create_domain'}\n",
    "usage": "2400\n",
    "add_todo": "[{'number': 1, 'description': 'read the diff', 'status': 'completed'}]\n",
    "cancel": "cancelled\n",
    "run": "success done\n\n",
    "cleanup": "[]\n",
}
"""What the example in the docstring of each method prints."""


@table(("method", "program"), RENDER_DOCS.examples().items())
def test_the_example_of_a_method_runs_as_written(tmp_path: Path, method: str, program: str) -> None:
    home = tmp_path / method
    home.mkdir()
    assert re.sub(r"agent-[\d-]+-\w+", "ID", run_python(home, program)) == PRINTED[method]


@pytest.mark.slow
def test_the_tutorial_runs_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    page = "docs/tutorial.md"
    auditor, *typed = blocks(page, "sh")
    (tmp_path / "auditor.sh").write_text(auditor, encoding="utf-8")
    commands, pause = "\n".join(typed), "sleep 2;"
    assert pause in commands

    begun = "until grep -q half .claude/session/slow/output-1.log; do sleep 0.1; done 2> /dev/null"
    done = run_in_shell(tmp_path, commands.replace(pause, f"{begun};"))

    said = "\n".join(steady(done.stdout))
    assert [text for text in blocks(page, "text") if "\n".join(steady(text)) not in said] == []
    assert said.count("Port 8080 is closed.\n") == 2  # of the run, and of its report
    assert re.search(r"^slow +slow +crashed ", said, flags=re.MULTILINE)
    assert "| why it stopped: gaia-sessions run crashed or was closed while the agent was at work" in said
    assert re.search(r"^ID +sleeper +failed ", said, flags=re.MULTILINE)
    assert "ID: cancelled, with everything below it: no release\n" in said
    assert (done.returncode, said.splitlines()[-1]) == (0, "removed ID  sleeper")


@table("subject", RENDER_DOCS.subjects())
def test_each_subject_of_the_python_page_has_an_example(subject: str) -> None:
    _, _, text = text_of("docs/python.md").partition(f"\n### {subject}\n")
    assert "```python" in re.split(r"^##+ ", text.replace("\n#### ", "\n"), flags=re.MULTILINE)[0]


RAISES = """Says ``a``.

Raises:
    SessionFinal, Cancelled: the session is over,
        or cancelled.
    TooLarge: the text is too large.
"""


def test_the_raises_section_becomes_a_list() -> None:
    items = "- `SessionFinal`, `Cancelled`: the session is over, or cancelled.\n- `TooLarge`: the text is too large."
    assert RENDER_DOCS.in_markdown(RAISES) == f"Says `a`.\n\nRaises:\n\n{items}"


def test_the_args_returns_and_example_sections_become_markdown() -> None:
    takes, returns = "Args:\n    x, y: two\n        numbers.", "Returns:\n    Their\n    sum."
    said = f"Says `a`.\n\n{takes}\n\n{returns}\n\nExample:\n    if a:\n        b()"
    shown = "Says `a`.\n\nArgs:\n\n- `x`, `y`: two numbers.\n\nReturns: Their sum.\n\n```python\nif a:\n    b()\n```"
    assert RENDER_DOCS.in_markdown(said) == shown


@table(("more", "problem"), [("    or too large", "has no colon"), ("\nMore: a paragraph", "has an empty line")])
def test_an_item_without_a_colon_or_text_after_a_section_is_refused(more: str, problem: str) -> None:
    with pytest.raises(SystemExit, match=rf"Raises: '.*' {problem}"):
        RENDER_DOCS.in_markdown(RAISES + more)


DICT = """
class Answer(TypedDict):
    '''What was
    answered.

    Keys:
        text, code: what it said,
            and how it ended.
    '''

    agent_id: str
    text: str
    code: NotRequired[int]
"""


def test_the_keys_section_becomes_a_list_and_an_unknown_key_is_refused() -> None:
    known, unknown = (ast.parse(text).body[0] for text in (DICT, DICT.replace("code: what", "cost: what")))

    items = "  - `agent_id`\n  - `text`, `code?`: what it said, and how it ended.\n"
    assert RENDER_DOCS.shape("Answer", known) == f"- **`Answer`**: What was answered.\n\n{items}"
    with pytest.raises(SystemExit, match="Answer has no key 'cost'"):
        RENDER_DOCS.shape("Answer", unknown)


def test_the_shared_state_example_runs_as_written(tmp_path: Path) -> None:
    done = run_in_shell(tmp_path, block("docs/state.md", "sh"), "-eu")

    agent_id = done.stdout.partition(":")[0]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{agent_id}: revision 2",
        "create_domain",
        f"{agent_id}: revision 3",
        "1",
        "name_attempts  1",
        'user_id  "u1"',
    ]


def test_the_example_of_your_own_agents_begins_and_cancels_them(tmp_path: Path) -> None:
    done = run_in_shell(tmp_path, block("docs/limits.md", "sh"))

    assert done.returncode == 10
    assert "exit code 10" in done.stdout.splitlines()
    assert done.stdout.endswith("\nnot needed\n")
    assert "1,500 of 64,000 tokens\n" in done.stderr
    assert "  1  pending      read the diff\n" in done.stderr


def test_the_example_of_tool_and_task_checks_runs_as_written(tmp_path: Path) -> None:
    done = run_in_shell(tmp_path, block("docs/limits.md", "sh", 1))

    assert done.returncode == 0
    assert done.stdout.splitlines().count("exit code 1") == 2
    assert "left out: Bash is not among the tools that are available\n" in done.stderr


def test_the_three_install_lines_of_the_readme_are_commands_that_work(tmp_path: Path) -> None:
    """Installing is left to other tests: what is here is the environment of these."""
    pip, install, listing = (line.partition("#")[0].split() for line in block("README.md", "sh").splitlines())
    environment = {**os.environ, "HOME": str(tmp_path)}
    (tmp_path / ".git").mkdir()

    done = [commands.gaia(*words[1:], environment=environment, folder=tmp_path) for words in (install, listing)]

    assert (pip[:2], install[0], listing[0]) == (["pip", "install"], "gaia-sessions", "gaia-sessions")
    assert [one.code for one in done] == [0, 0]
    assert (tmp_path / ".claude" / "settings.local.json").exists()
    assert done[1].out.startswith(b"No sessions found")


@pytest.mark.slow  # scripts/check does it before the tests
def test_the_generated_parts_are_current() -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "render_docs", "--check"], check=True)


def test_the_readme_is_short_and_narrow() -> None:
    lines = text_of("README.md").splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > WIDEST] == []


def test_the_changelog_is_narrow() -> None:
    assert [line for line in text_of("CHANGELOG.md").splitlines() if len(line) > WIDEST] == []


def test_the_readme_links_to_every_page() -> None:
    assert [page.name for page in DOCS if f"](docs/{page.name})" not in text_of("README.md")] == []


@table("page", DOCS)
def test_every_page_begins_with_its_title_and_one_sentence_that_says_who_it_is_for(page: Path) -> None:
    title, sentence, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    assert re.fullmatch(r"For [^.]+\.", sentence)


@table("name", COMMANDS)
def test_the_commands_page_links_to_every_command(name: str) -> None:
    assert f"[`{name}`](#{name})" in text_of("docs/commands.md")


def named_commands() -> list[tuple[str, str]]:
    """Every command that a page shows in a block for the shell or between backticks, with the page."""
    return [
        (page.relative_to(CHECKOUT).as_posix(), name)
        for page in (*PAGES, CHECKOUT / "CHANGELOG.md", CHECKOUT / "scripts" / "adk_example" / "README.md")
        for shown in re.findall(r"^```sh\n.*?^```$|`[^`\n]+`", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"\bgaia-sessions (?:--root \S+ |--\w+ )*([a-z][\w-]*)", shown)
    ]


@table(("page", "name"), named_commands())
def test_every_command_that_a_page_shows_exists(page: str, name: str) -> None:
    assert name in {**COMMANDS, **HIDDEN}, page


def commands_to_type(page: str, heads: str) -> set[str]:
    """Those in the table of tasks of ``page``."""
    return set(re.findall(r"`(gaia-sessions [^`]+)`", text_of(page).partition(heads)[2].partition("\n\n")[0]))


IN_README = commands_to_type("README.md", "| to | type |")
ON_PAGE = commands_to_type("docs/commands.md", "| I want to | type |")


@table("line", sorted(IN_README | ON_PAGE))
def test_every_line_of_a_task_table_is_a_command_with_known_options(line: str) -> None:
    program, *words = shlex.split(line.partition(" > ")[0])
    found: click.Command | None = Commands(name=program)
    while isinstance(found, click.Group):
        found = found.get_command(click.Context(found), words.pop(0))
    assert found, line
    known = {option for one in found.params for option in one.opts}
    assert [word for word in words if word.startswith("-") and word not in (*known, "--")] == []


def links() -> list[tuple[str, str]]:
    """Every link that stays in the checkout, with the page it is on."""
    return [
        (page.relative_to(CHECKOUT).as_posix(), link)
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8"))
    ]


@table(("page", "link"), links())
def test_every_link_leads_somewhere(page: str, link: str) -> None:
    path, _, heading = link.partition("#")
    target = (CHECKOUT / page).parent / path if path else CHECKOUT / page
    assert target.exists()
    assert not heading or heading in anchors(target)


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {RENDER_DOCS.anchor(heading) for heading in headings}


class Demo(NamedTuple):
    text: str
    picture: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """What ``scripts/demo`` shows: the end of ``sh scripts/run``, whose set-up is for a fresh machine to try."""
    folder = tmp_path_factory.mktemp("demo")
    forced = ("FORCE_COLOR", "TTY_COMPATIBLE")  # colours in a pipe
    environment = {name: value for name, value in os.environ.items() if name not in forced}
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "scripts" / "demo"), "demo.svg"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "HOME": str(folder)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return Demo(done.stdout, (folder / "demo.svg").read_text(encoding="utf-8"))


def test_the_demo_shows_the_question_the_approval_and_the_answer(demo: Demo) -> None:
    wanted = ["may I apply the plan?", "to approve and resume it, give this to your agent:", "Both ports are closed."]
    assert [text for text in wanted if text not in demo.text] == []


def test_the_demo_fits_one_screen_with_the_prompt_below_it(demo: Demo) -> None:
    lines = demo.text.splitlines()
    assert len(lines) < SCREEN[1]
    assert [line for line in lines if len(line) > SCREEN[0]] == []


def test_the_text_in_the_readme_matches_the_demo(demo: Demo) -> None:
    """To bring both up to date: ``.venv/bin/python scripts/demo docs/demo.svg``, and its text into the README."""
    assert steady(block("README.md", "text")) == steady(demo.text)


def test_the_picture_in_the_readme_matches_the_demo(demo: Demo) -> None:
    """Another version of rich may draw it otherwise: then its text counts."""
    picture = text_of("docs/demo.svg")
    assert steady(words_of(picture)) == steady(demo.text)
    if f"<!-- rich {version('rich')} -->" in picture:
        assert steady(picture) == steady(demo.picture)


def words_of(picture: str) -> str:
    """The lines of the terminal in ``picture``: texts with the same distance from the top."""
    lines: dict[str, str] = {}
    for top, text in re.findall(r'<text class="demo-r\d+" .*? y="([\d.]+)" .*?>(.*?)</text>', picture):
        lines[top] = lines.get(top, "") + html.unescape(text).replace("\xa0", " ")
    return "\n".join(lines.values())


def steady(text: str) -> list[str]:
    """The lines of ``text`` that are not empty, without what differs from run to run."""
    text = re.sub(r"agent-\d{8}-\d{6}-[0-9a-f]{8}", "ID", text.replace("&#160;", " "))
    text = re.sub(r"just now|\d+ seconds? (ago|in all)|\bidle for \d+ seconds?", "AGE", text)
    text = re.sub(r'(textLength|width)="[\d.]+"', "LENGTH", re.sub(r"for \d+ minutes\b", "AWHILE", text))
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_the_list_command_finds_no_sessions_in_an_empty_folder(tmp_path: Path) -> None:
    ran = commands.gaia("list", environment={**os.environ, "HOME": str(tmp_path)}, folder=tmp_path)

    assert (ran.code, ran.err) == (0, b"")
    assert b"No sessions found" in ran.out


class Lab:
    """A project in which a client that was seen at work lives again; ``ids`` are its sessions by the names they get."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.ids: dict[str, str] = {}
        (self.project / ".claude").mkdir(parents=True)

    def live(
        self, capture: str, of: Client | None = None, *, until: str = "", since: str = "", says: str | None = None
    ) -> set[str]:
        """Tells the hook of a capture, from the event ``since`` on and before the event ``until``; the new sessions.

        ``of`` is the client that starts the hook, if it is known. ``says`` is what the agent says last, in place of
        what it said.
        """
        before = self.sessions()
        file = CHECKOUT / "tests" / "data" / "hosts" / "claude-code-2.1.330" / f"{capture}.jsonl"
        calls = [
            json.loads(REPLAY.with_paths_below(line, self.folder)) for line in file.read_text("utf-8").splitlines()
        ]
        self._write_files_of_client(calls)
        events = [call["event"] for call in calls]
        first = events.index(since) if since else 0
        for call in calls[first : events.index(until) if until else None]:
            if isinstance(call.get("stdin"), dict):
                REPLAY.write_agent_file(call)
                if says and call["event"] == "SubagentStop":
                    call["stdin"]["last_assistant_message"] = says
                self._tell(call["stdin"], of)
        return self.sessions() - before

    def _write_files_of_client(self, calls: list[Any]) -> None:
        for path, text in next((call["files"] for call in calls if call["event"] == "__files__"), {}).items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")

    def _tell(self, payload: object, of: Client | None) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home")}
        environment["CLAUDE_PID"] = str(of.pid if of else 0)
        environment["CLAUDE_PROJECT_DIR"] = str(self.project)
        if of:
            command = [sys.executable, str(CHECKOUT / "hooks" / "every_event.py")]
            code, _, errors = of.run(command, json.dumps(payload).encode(), str(self.project), environment)
            assert (code, errors) == (0, "")
        else:
            ran = commands.hook(HOOK, payload, environment=environment, folder=self.project)
            assert (ran.code, ran.err) == (0, b"")

    def sessions(self) -> set[str]:
        return {file.parent.name for file in self.project.glob(".claude/session/[!.]*/state.json")}

    def age(self, hours: int, *names: str) -> None:
        """Makes sessions as old as if all that has happened had happened ``hours`` earlier."""

        def earlier(found: re.Match[str]) -> str:
            return format_time(parse_time(found[0]) - timedelta(hours=hours))

        for name in names:
            file = self.project / ".claude" / "session" / self.ids[name] / "state.json"
            file.write_text(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", earlier, file.read_text("utf-8")), encoding="utf-8")
        for file in self.folder.glob("home/**/*.jsonl"):
            os.utime(file, (0, file.stat().st_mtime - 3600 * hours))

    def command(self, typed: str, **words: str) -> subprocess.Popen[str]:
        """Types a line of the README in the project."""
        for word, meant in {"VENV": sys.prefix, "PROJECT": str(self.project), **words}.items():
            typed = re.sub(rf"\b{word}\b", meant, typed)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.Popen(
            ["sh", "-c", typed],
            cwd=self.project,
            env={"PATH": path, "HOME": str(self.folder / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, typed: str, **words: str) -> subprocess.CompletedProcess[str]:
        with self.command(typed, **words) as process:
            out, errors = process.communicate()
            return subprocess.CompletedProcess(typed, process.returncode, out, errors)

    def gaia(self, *words: str) -> tuple[int, str]:
        """The exit code of a command that is not in the README, and what it prints."""
        ran = commands.gaia(*words, environment={"HOME": str(self.folder / "home")}, folder=self.project)
        return ran.code, ran.out.decode()


PAUSE = "Two ports are open.\n[gaia-sessions: approval] may I apply the plan?"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """What real clients left: work that waits, ended, failed, was interrupted, and that of a client that was killed."""
    lab = Lab(tmp_path_factory.mktemp("lived"))
    [lab.ids["waiting"]] = lab.live("single", says=PAUSE)
    [lab.ids["done"]] = lab.live("custom-agent")
    [lab.ids["failed"]] = lab.live("sub-error-400")
    [lab.ids["interrupted"]] = lab.live("sub-error-529")
    lab.live("usage")
    with client() as of:
        [lab.ids["crashed"]] = lab.live("tui-hup", of, until="SessionEnd")
        of.kill()
    return lab


@pytest.fixture
def lab(lived: Lab) -> Iterator[Lab]:
    """The same for each test: what one of them does is undone."""
    kept = lived.folder / "kept"
    folders = ("project", "home")
    for name in folders:
        shutil.copytree(lived.folder / name, kept / name)
    yield lived
    for name in folders:
        shutil.rmtree(lived.folder / name)
        (kept / name).rename(lived.folder / name)


class Row(NamedTuple):
    """What a line of the table does: with which session it is tried, how it ends, what it says; and what holds then."""

    session: str
    code: int
    says: list[str]
    then: tuple[tuple[str, str, int], ...] = ()  # commands and their sessions, with their exit codes


ROWS = {
    "gaia-sessions pending": Row("waiting", 0, ["may I apply the plan?", "[gaia-sessions: resume ID]"]),
    "gaia-sessions resume": Row(
        "crashed", 0, ["general-purpose: ", "\n  ID\n", "claude 'Delegate to the agent type general-purpose"]
    ),
    "gaia-sessions resume ID": Row("done", 1, ["no: ID ", "(phase_not_resumable)"]),
    "gaia-sessions list --failed --since yesterday": Row(
        "failed", 0, ["ID  general-purpose: Job alpha  error", "  crashed"]
    ),
    "gaia-sessions report ID": Row("done", 0, ["Report of alpha: 42."]),
    "gaia-sessions usage --since yesterday": Row("done", 0, ["general-purpose  ", "all agents  ", "  8,318  "]),
    "gaia-sessions stats --since 'last week'": Row("done", 0, ["completed", "100%"]),
    "gaia-sessions cancel ID --reason 'not needed'": Row("waiting", 0, ["ID"], (("cancelled", "waiting", 10),)),
    "gaia-sessions cleanup --hours 24": Row(
        "done", 0, ["removed 1 session"], (("get", "done", 3), ("get", "waiting", 0))
    ),
    "17 * * * *  VENV/bin/gaia-sessions --root PROJECT/.claude/session cleanup --hours 24 --quiet": Row(
        "done", 0, [], (("get", "done", 3), ("get", "waiting", 0))
    ),
}
"""What is typed for a task, but for the line that waits for an end, which has a test of its own."""
WAIT = "gaia-sessions wait ID --timeout 5m"


def without_schedule(line: str) -> str:
    """A line as it is typed; of a line of cron its command, in a folder that is not the project."""
    minutes, at, rest = line.partition(" * * * * ")
    return f"cd / && {rest.strip()}" if at and minutes.isdecimal() else line


def test_every_readme_command_is_tested_and_every_tested_command_is_on_a_page() -> None:
    [cron] = re.findall(r"^ {4}(\d.*)$", text_of("docs/ci-and-cron.md"), flags=re.MULTILINE)
    cron = cron.replace("/home/you/project/.venv", "VENV").replace("/home/you/project", "PROJECT")
    assert IN_README
    assert {*ROWS, WAIT} >= IN_README
    assert {*ROWS, WAIT} <= {*IN_README, *ON_PAGE, cron}


@pytest.mark.parametrize("line", ROWS)
def test_a_command_of_a_task_table_does_its_task(lab: Lab, line: str) -> None:
    row = ROWS[line]
    agent_id = lab.ids[row.session]
    if row.then:  # "yesterday" ends at midnight, and not 24 hours ago
        lab.age(25, "done")

    done = lab.run(without_schedule(line), ID=agent_id)

    assert done.returncode == row.code
    said = done.stdout.replace(agent_id, "ID")
    assert [text for text in row.says if text not in said] == []
    assert bool(said) == bool(row.says)
    for command, session, code in row.then:
        assert lab.gaia(command, lab.ids[session])[0] == code


def test_wait_ends_when_the_agent_ends(lab: Lab) -> None:
    with client() as of:
        [agent_id] = lab.live("tui-normal", of, until="SubagentStop")
        with lab.command(WAIT, ID=agent_id) as waiting:
            lab.live("tui-normal", of, since="SubagentStop")
            out, _ = waiting.communicate()

    assert waiting.returncode == 0
    assert out == f"{agent_id}: completed\n  Report of alpha: 42.\n"


def test_the_lines_of_the_crash_page_resume_an_expired_session(lab: Lab) -> None:
    lab.age(10, "waiting", "crashed")
    crashed = lab.ids["crashed"]
    lines = block("docs/crash.md", "sh").splitlines()

    _, before = lab.gaia("resume")
    listed, pending, found, resumed = (lab.run(line, ID=crashed) for line in lines)

    assert [one.returncode for one in (listed, pending, found, resumed)] == [0, 0, 0, 0]
    assert f"{crashed}  general-purpose: Job alpha  crashed" in listed.stdout
    assert "expired 9 hours ago; to approve it" in pending.stdout
    assert f"gaia-sessions approve {lab.ids['waiting']}" in pending.stdout
    assert (crashed in before, crashed in found.stdout, crashed in resumed.stdout) == (False, False, True)


def test_the_pending_example_lists_and_approves_waiting_sessions(lab: Lab) -> None:
    program = shlex.quote(RENDER_DOCS.examples()["pending"].replace('Sessions("work")', "Sessions()"))

    done = [lab.run(f"python -c {program}") for _ in range(2)]

    assert [one.stdout for one in done] == ["general-purpose asks: may I apply the plan?\n", ""]
    assert lab.gaia("list", "--state", "approved", "-q") == (0, f"{lab.ids['waiting']}\n")


def test_a_session_idle_overnight_stays_resumable_with_a_longer_limit(lab: Lab) -> None:
    lab.age(10, "crashed")
    page = text_of("docs/crash.md")
    [setting] = re.findall(r"^With `(.*)` in `.claude/gaia-sessions.toml`", page, flags=re.MULTILINE)
    (lab.project / ".claude" / "gaia-sessions.toml").write_text(setting, encoding="utf-8")

    assert lab.ids["crashed"] in lab.gaia("resume")[1]


def test_the_readme_lists_the_tested_hosts_and_versions() -> None:
    """With all versions, on the page about hosts, and among the captures."""
    rows = re.findall(r"^\| (.*?) \| (\d[\d., ]*) \| ", text_of("README.md"), flags=re.MULTILINE)
    page = re.findall(r"^\| (.*?) \| .*? \| tested \| (.*?) \| ", text_of("docs/hosts.md"), flags=re.MULTILINE)
    captured = {folder.name for folder in (CHECKOUT / "tests" / "data" / "hosts").iterdir()}

    assert rows == [(host, re.sub(r" \(.*?\)", "", versions)) for host, versions in page]
    assert {
        f"{host.lower().replace(' ', '-')}-{one}" for host, versions in rows for one in versions.split(", ")
    } == captured
