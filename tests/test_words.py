"""One word, one meaning: the first version's own words stay out of every name in the code.

Checked are the names of modules, functions, classes, variables, parameters and attributes, in their words: the parts
between underscores and capitals. Exempt are the keys of JSON, which are on people's disks: the fields of a
``TypedDict``, dictionary keys, other strings, and the keyword arguments of calls, which name a parameter that is
checked where it is defined, or a key of an event.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[1]
FOLDERS = ("gaia_sessions", "hooks", "scripts")
TESTS = ("cli", "config", "contract", "doctor", "install", "store", "usecases")
"""The folders of tests whose names are checked like those of the code."""

# A regular expression of each word that is gone, with its kin, and what it became.
GONE = {
    "told|tell|tells|untold": "payload, report, message",
    "heard|hear|hears|unheard": "received, last_event",
    "news": "event",
    "our|ours": "own, hook_command",
    "doubt|doubts|doubtful": "warning",
    "dress|dressed|dresses": "apply_mode",
    "tend|tends|tended": "sweep",
    "vouch|vouched|vouches|unvouched": "mark_complete",
    "suspect|suspected|suspects": "mark_unreadable",
    "unname|unnamed|unnames": "remove_alias",
    "chance|chances": "random",
    "beginning|beginnings": "start, new",
    "leaving": "uninstall",
    "standing": "hook_status",
    "ailing|ails": "problem",
    "fine": "ok",
    "treat|treats|treated": "fix",
    "mend|mends|mended|mending": "fix",
    "obey|obeys|obeyed": "SUPPORTED_REPLIES",
    "wish|wishes|wished": "InstallRequest",
    "consent|consents|consented": "permission_rule",
    "speech": "agent_messages",
    "spoke|spoken": "has_message",
    "again": "after_block",
    "worked": "was_running",
    "unkeyed": "key_pending",
    "recurring": "reused_id",
    "unannounced": "no_start_event",
    "desk": "DirectContext",
    "climb|climbs|climbed": "run",
    "rehears.*": "preview",
}
# Words that say too little as a whole name, and are good parts of a longer one.
GONE_AS_WHOLE_NAME = {
    "over": "delegation_closed",
    "done": "result, EventResult",
    "logged": "hook_log",
    "both_ends": "tool_only_hosts",
}
# The name of a test is a sentence, in which these are plain English.
PLAIN_IN_SENTENCES = frozenset(["again", "beginning"])
GONE_AS_MODULE = {
    "verdicts": "reconcile_rules",
    "evidence": "reconcile",
    "reconciling": "reconcile",
    "arrival": "session_directory",
    "renewal": "replace",
    "removal": "delete",
    "adoption": "root_ownership",
    "foreign": "external_file",
    "shape": "schema",
    "endings": "run_ends",
    "ends": "end",
}
GONE_AS_STORE_METHOD = {"settle": "purge_trash"}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_GONE = [(re.compile(pattern), instead) for pattern, instead in GONE.items()]


class Name(NamedTuple):
    """One name where it is defined."""

    line: int
    text: str
    kind: str = "name"


def programs() -> list[Path]:
    """Every Python file of the checked folders; a script may do without the ending."""
    folders = [*FOLDERS, *(f"tests/{folder}" for folder in TESTS)]
    files = (file for folder in folders for file in (CHECKOUT / folder).rglob("*") if file.is_file())
    return sorted(file for file in files if file.suffix == ".py" or (not file.suffix and is_python_script(file)))


def is_python_script(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.readline().startswith(b"#!") and b"python" in file.read_bytes().partition(b"\n")[0]


def words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def names_in(tree: ast.AST) -> Iterator[Name]:
    """Every name that ``tree`` defines, but for the fields of a ``TypedDict``."""
    if isinstance(tree, ast.ClassDef):
        yield Name(tree.lineno, tree.name)
        if any(ast.unparse(base).endswith("TypedDict") for base in tree.bases):
            return
        yield from (Name(node.lineno, node.name, "method") for node in tree.body if isinstance(node, ast.FunctionDef))
    yield from names_at(tree)
    for child in ast.iter_child_nodes(tree):
        yield from names_in(child)


def names_at(node: ast.AST) -> Iterator[Name]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield Name(node.lineno, node.name)
        case ast.arg():
            yield Name(node.lineno, node.arg)
        case ast.Name(ctx=ast.Store()):
            yield Name(node.lineno, node.id)
        case ast.Attribute(ctx=ast.Store()):
            yield Name(node.lineno, node.attr)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield Name(node.lineno, name)
        case ast.Import() | ast.ImportFrom():
            yield from (Name(node.lineno, alias.asname) for alias in node.names if alias.asname)


def replacement(name: Name, *, in_store: bool = False) -> str | None:
    """What the field says instead of ``name``; None for a name that may stay."""
    whole = name.text.strip("_").lower()
    if name.kind == "module" and whole in GONE_AS_MODULE:
        return GONE_AS_MODULE[whole]
    if name.kind == "method" and in_store and whole in GONE_AS_STORE_METHOD:
        return GONE_AS_STORE_METHOD[whole]
    if whole in GONE_AS_WHOLE_NAME:
        return GONE_AS_WHOLE_NAME[whole]
    plain = PLAIN_IN_SENTENCES if name.text.startswith("test_") else ()
    words = [word for word in words_of(name.text) if word not in plain]
    return next((instead for pattern, instead in _GONE if any(map(pattern.fullmatch, words))), None)


def offences(file: Path) -> list[str]:
    """A line for each name in ``file`` that has a word which is gone: where it is, and what to say instead."""
    path = file.relative_to(CHECKOUT)
    names = [Name(1, path.stem, "module"), *names_in(ast.parse(file.read_text(encoding="utf-8"), str(path)))]
    replacements = {(name.line, name.text): replacement(name, in_store="store" in path.parts) for name in sorted(names)}
    return [f"{path}:{line}: {text} (say: {instead})" for (line, text), instead in replacements.items() if instead]


def test_no_name_has_a_word_that_is_gone() -> None:
    found = [offence for file in programs() for offence in offences(file)]
    assert not found, "\n" + "\n".join(found)


def test_every_program_is_read() -> None:
    read = {file.relative_to(CHECKOUT).as_posix() for file in programs()}
    assert {
        "gaia_sessions/models/building.py",
        "hooks/every_event.py",
        "scripts/bench",
        "scripts/benches/ways.py",
        "tests/cli/conftest.py",
    } <= read
    assert not {"scripts/check", "scripts/crontab.example"} & read


@pytest.mark.parametrize(
    ("source", "offenders"),
    [
        ("told = 1", ["told"]),
        ("def told_of(x): pass", ["told_of"]),
        ("class ToldBy: pass", ["ToldBy"]),
        ("def f(*, is_fine=True): pass", ["is_fine"]),
        ("self.worked = 1", ["worked"]),
        ("for over in rows: pass", ["over"]),
        ("try: pass\nexcept E as ours: pass", ["ours"]),
        ("import run as hear", ["hear"]),
        ("OBEYS: tuple = ()", ["OBEYS"]),
        ("x = [again for again in y]", ["again"]),
        ("class Box(NamedTuple):\n    news: int", ["news"]),
        ("class Box(TypedDict):\n    told_id: str", []),
        ("host.event(told_id=1, again=True)", []),
        ("def test_it_is_told_again(again): pass", ["test_it_is_told_again", "again"]),
        ("def test_it_runs_again_from_the_beginning(): pass", []),
        ("x = {'unannounced': 1, 'spoke': 2}", []),
        ("x = event.get('told_id')", []),
        ("tokens = pretend = course = overwritten = refine = hours = found_over_there = 1", []),
    ],
)
def test_a_word_that_is_gone_is_found_in_names_only(source: str, offenders: list[str]) -> None:
    assert [name.text for name in names_in(ast.parse(source)) if replacement(name)] == offenders


@pytest.mark.parametrize(
    ("name", "in_store", "instead"),
    [
        (Name(1, "evidence", "module"), False, "reconcile"),
        (Name(1, "evidence"), False, None),
        (Name(1, "settle", "method"), True, "purge_trash"),
        (Name(1, "settle", "method"), False, None),
    ],
)
def test_some_words_are_gone_in_one_place_only(name: Name, in_store: bool, instead: str | None) -> None:  # noqa: FBT001
    assert replacement(name, in_store=in_store) == instead


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HookPayload", ["hook", "payload"]),
        ("_is_told_by2", ["is", "told", "by", "2"]),
        ("SUPPORTED_REPLIES", ["supported", "replies"]),
        ("JSONValue", ["json", "value"]),
    ],
)
def test_the_words_of_a_name_are_its_parts(name: str, words: list[str]) -> None:
    assert words_of(name) == words
