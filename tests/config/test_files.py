"""Unusual settings files and extreme contents. A project, and so its settings file, may come from a stranger."""

from __future__ import annotations

import difflib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.config import load, load_with_faults, project_file, user_file
from gaia_sessions.errors import BadSetting
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    Plant = Callable[[Path], object]

LIMIT = 64 << 10
SECRET = "token = 'hunter2'\n"  # noqa: S105  # not a real secret
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who alone may give files away")


def size(number: int) -> Plant:
    """A file of ``number`` bytes: a setting and blanks."""
    return lambda path: path.write_bytes(b"max_errors = 7\n".ljust(number))


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 2 << 30)


def bound(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
    os.chdir(here)


def link(target: str) -> Plant:
    """A link to ``target``, which is relative to the folder of the link; a file and a pipe are beside it."""

    def plant(path: Path) -> None:
        path.with_name("beside").write_text(SECRET + "max_errors = 7\n", encoding="utf-8")
        os.mkfifo(path.with_name("pipe"))
        path.symlink_to(target)

    return plant


REMOVE, SHORTEN, COPY = "remove it", "shorten or remove it", "replace the link with a copy of the file"
NO_FILES: dict[str, tuple[Plant, str, str]] = {
    "a folder": (Path.mkdir, "not a file", REMOVE),
    "a pipe": (os.mkfifo, "not a file", REMOVE),
    "a socket": (bound, "No such device or address", REMOVE),
    "2 GiB of zeros": (sparse, "larger than 64 KiB", SHORTEN),
    "one byte too many": (size(LIMIT + 1), "larger than 64 KiB", SHORTEN),
}
LINKS = {
    "a link to a file": "beside",
    "a link out of the project": os.devnull,
    "a link to an endless file": "/dev/zero",
    "a link to a pipe": "pipe",
    "a link to itself": "config.toml",
    "a broken link": "nothing",
}


def refused(root: str) -> tuple[str, str]:
    """The message of the only fault, without the path, and its hint. Only a file that is too large is a file."""
    config, [fault] = load_with_faults(root, os.environ)
    with pytest.raises(BadSetting) as raised:
        load(root, os.environ)
    assert (str(raised.value), raised.value.hint, config.max_errors) == (str(fault), fault.hint, 3)
    assert fault.is_file == (fault.hint == SHORTEN)
    return str(fault).removeprefix(f"{fault.origin}: "), fault.hint


@table("name", [*NO_FILES])
@table("place", ["project", "user"])
def test_an_irregular_or_large_file_is_one_fault_and_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    plant, *said = NO_FILES[name]
    path = planted(tmp_path / place / name, place, monkeypatch)
    plant(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "read", lambda *_: pytest.fail("it was read"))
        assert refused(str(tmp_path / place / name / "root")) == (*said,)


def planted(folder: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the settings file of a new root, or of a new user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg"))
    path = Path(user_file(os.environ) if place == "user" else project_file(str(folder / "root")))
    path.parent.mkdir(parents=True)
    return path


@table("name", [*LINKS])
def test_a_project_file_that_is_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    link(LINKS[name])(planted(tmp_path / name, "project", monkeypatch))
    assert refused(str(tmp_path / name / "root")) == ("a link, not a file", COPY)


@table(
    ("name", "why"),
    [
        ("a link to an endless file", "not a file"),
        ("a link out of the project", "not a file"),
        ("a link to a pipe", "not a file"),
        ("a link to itself", "Too many levels of symbolic links"),
    ],
)
def test_the_link_of_a_user_to_an_irregular_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    link(LINKS[name])(planted(tmp_path / name, "user", monkeypatch))
    assert refused(str(tmp_path / name / "root")) == (why, REMOVE)


def test_the_link_of_a_user_is_followed_and_a_broken_link_sets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = planted(tmp_path, "user", monkeypatch)
    path.with_name("beside").write_text("max_errors = 7\n", encoding="utf-8")
    path.symlink_to("beside")
    assert load(str(tmp_path / "root"), os.environ).max_errors == 7
    path.with_name("beside").unlink()
    assert load(str(tmp_path / "root"), os.environ).max_errors == 3


def test_a_file_of_exactly_64_kib_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size(LIMIT)(planted(tmp_path, "project", monkeypatch))
    assert load(str(tmp_path / "root"), os.environ).max_errors == 7


@as_root
@table(
    ("of_file", "of_folder", "why"), [(65534, 0, "it belongs to the user 65534"), (65534, 65534, ""), (0, 65534, "")]
)
def test_the_file_of_another_user_counts_only_in_a_folder_of_that_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_file: int, of_folder: int, why: str
) -> None:
    folder = tmp_path / f"{of_file}-{of_folder}"
    path = planted(folder, "project", monkeypatch)
    size(100)(path)
    os.chown(path, of_file, of_file)
    os.chown(path.parent, of_folder, of_folder)
    root = str(folder / "root")
    said = (why, "chown it or remove it") if why else 7
    assert (refused(root) if why else load(root, os.environ).max_errors) == said


@as_root
@table(("of_link", "of_target", "why"), [(65534, 0, "a link of another user"), (65534, 65534, ""), (0, 0, "")])
def test_root_follows_the_link_of_a_user_only_to_files_of_that_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_link: int, of_target: int, why: str
) -> None:
    folder = tmp_path / f"{of_link}-{of_target}"
    path = planted(folder, "user", monkeypatch)
    target = path.with_name("target")
    size(100)(target)
    path.symlink_to("target")
    os.chown(path, of_link, of_link, follow_symlinks=False)
    os.chown(target, of_target, of_target)
    os.chown(path.parent, of_link, of_link)
    root = str(folder / "root")
    assert (refused(root) if why else load(root, os.environ).max_errors) == ((why, REMOVE) if why else 7)


def test_each_file_is_opened_once_and_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = planted(tmp_path, "project", monkeypatch)
    asked: list[tuple[str, object]] = []

    def noting(name: str) -> Callable[..., object]:
        call = getattr(os, name)

        def note(*words: object, **more: object) -> object:
            asked.append((name, words[0] if name != "fstat" else "an open file"))
            return call(*words, **more)

        return note

    with monkeypatch.context() as patched:
        for name in ("open", "stat", "lstat", "fstat"):
            patched.setattr(os, name, noting(name))
        load(str(tmp_path / "root"), os.environ)
        looked = [("open", user_file(os.environ)), ("open", str(path))]
        assert asked == looked
        size(100)(path)
        asked.clear()
        assert load(str(tmp_path / "root"), os.environ).max_errors == 7
        assert asked == [*looked, ("fstat", "an open file")]


def one_of(path: Path, text: str) -> tuple[str, str]:
    """The message of the only fault of a file with ``text``, without the path, and its hint."""
    path.write_text(text, encoding="utf-8")
    _, [fault] = load_with_faults(str(path.parent), {})
    return str(fault).removeprefix(f"{path}: "), fault.hint


DEEP = ".".join("a" * 40) + "=" + "{a=" * 200 + "1" + "}" * 200
CONTENTS: dict[str, tuple[str, str]] = {
    "a very long dotted key": ("idle_minutes." + ".".join("a" * 30_000) + " = 1", "more than 50 dots in line 1"),
    "a table with a very long dotted key": ("# .\n[" + ".".join("a" * 30_000) + "]\n", "more than 50 dots in line 2"),
    "lists in lists": ("idle_minutes = " + "[" * 200 + "]" * 200, "idle_minutes = " + "[" * 77 + "..."),
    "very deep lists": ("idle_minutes = " + "[" * 30_000, "maximum recursion depth exceeded"),
    "tables in tables": (f"idle_minutes.{DEEP}", "idle_minutes = " + ("{'a': " * 13)[:77] + "..."),
    "a number too large to print": ("max_errors = 0x" + "f" * 60_000, "max_errors = a value too large to show"),
    "a number too large to print in a list": (
        "idle_minutes = [0x" + "f" * 60_000 + "]",
        "idle_minutes = a value too large to show",
    ),
    "a very long fraction": ("max_errors = 0." + "1" * 60_000, "max_errors = 0.1111111111111111"),
    "a very long text": (f"idle_minutes = '{'x' * 60_000}'", "idle_minutes = '" + "x" * 76 + "..."),
    "a very long length of time": (f"lock_timeout = '{'1ms' * 20_000}x'", "lock_timeout = '" + "1ms" * 25 + "1..."),
    "a control character": ("durability = '\x7f'", "Found invalid character '\\x7f' (at line 1, column 15)"),
    "an escaped control character": ('durability = "\\u001b[2J\\u202e"', "durability = '\\x1b[2J\\u202e'"),
    "invisible characters": ('durability = "a\ufe0f\U000e0100"', "durability = 'a'"),
    "a key with control characters": ('"\\u001b[2Jx\\u202e" = 1', "unknown setting [2Jx"),
    "a very long key": (f"'{'k' * 60_000}' = 1", "unknown setting " + "k" * 77 + "..."),
    "too many words": (f"guard.words = '{'a,' * 501}'", "guard.words = '" + "a," * 38 + "..."),
}


@table("name", [*CONTENTS])
def test_messages_about_extreme_values_are_short_and_printable(tmp_path: Path, name: str) -> None:
    text, said = CONTENTS[name]
    shown, hint = one_of(tmp_path / ".config.toml", text)
    assert (shown.removesuffix(" is not valid"), shown.isprintable(), len(hint) < 600) == (said, True, True)


def test_dots_in_comments_and_strings_do_not_count_as_a_key(tmp_path: Path) -> None:
    names = ",\n".join(f'"a.b.{number}"' for number in range(400))
    (tmp_path / ".config.toml").write_text(f"# {'.' * 80}\nlimits.search_tools = [\n{names}\n]\n", encoding="utf-8")
    assert len(load(str(tmp_path), {}).limits_search_tools) == 400


def test_thousands_of_unknown_names_cause_no_search_for_the_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"k{number}" for number in range(8_000)]
    (tmp_path / ".config.toml").write_text("\n".join(f"{name}=1" for name in names), encoding="utf-8")
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_, **__: pytest.fail("it was looked for"))
    assert load(str(tmp_path), {}).max_errors == 3
    assert len(load_with_faults(str(tmp_path), {})[1]) == 1


@table(
    ("lines", "lists"),
    [
        ('Explore = ["Read"]\nPlan = 5', {"explore": ("Read",), "plan": ()}),
        ('Explore = ["Read"]\nPlan = ["Read", 5]', {"explore": ("Read",), "plan": ()}),
        ('Explore = ["Read"]\n"explore " = ["Bash"]', {"explore": ()}),
        ('Explore = ["Read"]\nPlan.a.b = 1', {"explore": ("Read",), "plan": ()}),
        (f'Explore = ["Read"]\nPlan = {["Bash"] * 501}', {"explore": ("Read",), "plan": ()}),
    ],
)
def test_an_agent_type_with_an_invalid_list_may_use_no_tool(
    tmp_path: Path, lines: str, lists: dict[str, tuple[str, ...]]
) -> None:
    (tmp_path / ".config.toml").write_text(f"[limits.tools]\n{lines}\n", encoding="utf-8")
    config, [fault] = load_with_faults(str(tmp_path), {})
    assert (config.limits_tools, " limits.tools = " in str(fault)) == (lists, True)


@table("lines", ["limits = 5", "[[limits]]\nblocked_tools = 'Bash'", "limits.tools = 5", "limits.blocked_tools = 5"])
def test_an_invalid_limit_sets_nothing_and_other_settings_count(tmp_path: Path, lines: str) -> None:
    (tmp_path / ".config.toml").write_text(f"max_errors = 7\n{lines}\n", encoding="utf-8")
    config, [_] = load_with_faults(str(tmp_path), {"GAIA_SESSIONS_LIMITS_ROUNDS": "5"})
    found = config.max_errors, config.limits_rounds, config.limits_tools, config.limits_blocked_tools
    assert found == (7, 5, {}, ())
