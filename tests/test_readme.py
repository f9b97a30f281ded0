"""What the README and docs/ show is true: commands run as they stand, generated parts are current, links resolve."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gaia_sessions.cli.group import COMMANDS

CHECKOUT = Path(__file__).resolve().parent.parent
README = CHECKOUT / "README.md"
HOOKS_README = CHECKOUT / "hooks" / "README.md"
DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
PAGES = [README, HOOKS_README, *DOCS]

MOST_LINES = 120
WIDEST = 100


def text_of(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def block(page: str, language: str, which: int = 0) -> str:
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text_of(page), flags=re.MULTILINE | re.DOTALL)
    return blocks[which]


def test_the_commands_for_the_shell_run_as_they_stand(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run(
        ["sh", "-eu", "-c", block("docs/shell.md", "sh")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "resume it" in lines
    assert sum("  completed  " in line for line in lines) == 1
    assert lines[-1] == "removed 0 sessions not updated for 24 hours"


def test_the_python_example_runs_as_it_stands(tmp_path: Path) -> None:
    program = block("docs/python.md", "python") + "print(sessions.show(agent_id)['phase'], context)\n"

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert done.stdout == "completed {'task_id': 'T001'}\n"


@pytest.mark.parametrize(
    ("which", "shown", "expected"),
    [
        (1, "token.is_cancelled", "no longer needed\nTrue\n"),
        (2, "session.report()['status'], session.report()['result']", "success It is fine.\n"),
    ],
    ids=["cancellation", "an agent of your own"],
)
def test_the_other_python_examples_run_as_they_stand(tmp_path: Path, which: int, shown: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("docs/python.md", "python", which) + f"print({shown})\n"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert done.stdout == expected


def test_the_readme_delegates_waits_and_cancels_as_it_stands(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run(
        ["sh", "-u", "-c", block("README.md", "sh", 1)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 10
    assert "exit code 10" in done.stdout.splitlines()
    assert done.stdout.endswith("\nnot needed\n")
    assert "1,500 of 64,000 tokens\n" in done.stderr
    assert "todo 1: pending: read the diff\n" in done.stderr


def test_the_three_lines_for_an_agent_of_your_own_are_commands_that_exist(tmp_path: Path) -> None:
    """Installing is left to other tests: what is here is the environment of these."""
    pip, install, listing = (line.partition("#")[0].split() for line in block("README.md", "sh").splitlines())
    environment = {**os.environ, "HOME": str(tmp_path)}
    (tmp_path / ".git").mkdir()

    done = [
        subprocess.run(
            [sys.executable, "-m", "gaia_sessions", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for words in (install[1:], listing[1:])
    ]

    assert (pip[:2], install[0], listing[0]) == (["pip", "install"], "gaia-sessions", "gaia-sessions")
    assert [one.returncode for one in done] == [0, 0]
    assert (tmp_path / ".claude" / "settings.local.json").exists()
    assert done[1].stdout.startswith("No sessions found")


def test_the_generated_parts_are_current() -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "render_docs", "--check"], check=True)


def test_the_readme_is_short_and_narrow() -> None:
    lines = text_of("README.md").splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > WIDEST] == []


def test_the_readme_leads_to_every_page() -> None:
    assert [page.name for page in DOCS if f"](docs/{page.name})" not in text_of("README.md")] == []


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_page_begins_with_its_title_and_one_sentence_that_says_who_it_is_for(page: Path) -> None:
    title, sentence, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    assert re.fullmatch(r"For [^.]+\.", sentence)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_table(name: str) -> None:
    assert f"| [`{name}`](#{name}) |" in text_of("docs/shell.md")


def links() -> list[tuple[str, str]]:
    """Every link that stays in the checkout, with the page it is on."""
    return [
        (page.relative_to(CHECKOUT).as_posix(), link)
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("page", "link"), links())
def test_every_link_leads_somewhere(page: str, link: str) -> None:
    path, _, heading = link.partition("#")
    target = (CHECKOUT / page).parent / path if path else CHECKOUT / page
    assert target.exists()
    assert not heading or heading in anchors(target)


def anchors(page: Path) -> set[str]:
    """The headings of ``page`` as links name them: lower case, blanks as hyphens, nothing else but words."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ``scripts/demo`` prints: the end of ``sh scripts/run``, whose set-up is for a fresh machine to try."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "scripts" / "demo")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(folder)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_script_for_a_first_look_shows_what_it_promises(demo: str) -> None:
    wanted = ["to approve, give this to your agent:", "$ gaia-sessions report latest", "  completed  "]
    assert [text for text in wanted if text not in demo] == []


def test_the_first_look_fits_one_screen(demo: str) -> None:
    lines = demo.splitlines()
    assert len(lines) <= 40
    assert [line for line in lines if len(line) > WIDEST] == []


def test_the_picture_in_the_readme_is_what_the_first_look_shows(demo: str) -> None:
    assert steady(block("README.md", "text")) == steady(demo)


def steady(text: str) -> list[str]:
    """The words of ``text``, without what differs from run to run."""
    text = " ".join(text.split())
    text = re.sub(r"agent-\d{8}-\d{6}-[0-9a-f]{8}", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:\d\d)?", "TIME", text)
    text = re.sub(r"just now|\d+ seconds? ago|\b\d s\b", "AGE", text)
    return re.sub(r"idle for \d+ seconds?|for \d+ min\b", "AWHILE", text).split()


def test_a_command_in_the_place_of_the_first_look_is_run(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "gaia_sessions", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "No sessions found" in done.stdout
