"""What another user can put at a path, and recorders of opened files and sent signals."""

from __future__ import annotations

import builtins
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.config.test_files import as_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECRET = "the secret of somebody else"  # noqa: S105  # no password
AGENT = "a1"


def line(text: str = SECRET) -> str:
    """A line of a transcript of Claude Code: a message of the agent ``AGENT``."""
    usage = {"input_tokens": 7_000_007, "output_tokens": 1}
    message = {"id": "m", "model": "m", "role": "assistant", "content": text, "usage": usage}
    told = {"type": "assistant", "agentId": AGENT, "timestamp": "2026-01-08T18:05:30.000Z", "message": message}
    return json.dumps(told, separators=(",", ":")) + "\n"


class Folders:
    """The folder of a client with the files of an agent, and a folder elsewhere with files of the same names.

    ``own`` is the transcript that the client would write, ``secret`` the other one, which contains ``SECRET``.
    """

    def __init__(self, talks: Path, outside: Path) -> None:
        self.talks, self.outside = talks, outside
        self.own, self.secret = (above / f"conversation/subagents/agent-{AGENT}.jsonl" for above in (talks, outside))
        for file in (self.own, self.secret):
            file.parent.mkdir(parents=True)
        for file in self.files(self.secret):
            file.write_text(line() if file.suffix == ".jsonl" else '{"toolUseId": "toolu_secret"}', encoding="utf-8")

    @staticmethod
    def files(transcript: Path) -> list[Path]:
        """The transcript, the note beside it, and the transcript of the conversation."""
        conversation = transcript.parent.parent
        return [transcript, transcript.with_suffix(".meta.json"), conversation.with_name(f"{conversation.name}.jsonl")]

    def linked(self) -> None:
        for file, other in zip(self.files(self.own), self.files(self.secret), strict=True):
            file.symlink_to(other)

    def linked_above(self) -> None:
        self.own.parent.rmdir()
        self.own.parent.symlink_to(self.secret.parent)

    def pipes(self) -> None:
        for file in self.files(self.own):
            os.mkfifo(file)

    def folders(self) -> None:
        for file in self.files(self.own):
            file.mkdir()

    def huge(self) -> None:
        for file in self.files(self.own):
            file.write_text(line(), encoding="utf-8")
            os.truncate(file, 2 << 30)

    def of_others(self) -> None:
        for file in self.files(self.own):
            file.write_text(line(), encoding="utf-8")
            os.chown(file, 12345, 12345)


MADE = {
    "a link": Folders.linked,
    "a folder that is a link": Folders.linked_above,
    "a pipe": Folders.pipes,
    "a folder": Folders.folders,
    "2 GiB": Folders.huge,
    "somebody else's": Folders.of_others,
}
"""What can be in place of the transcript of an agent."""

NAMED: dict[str, Callable[[Folders], str]] = {
    "outside": lambda at: str(at.secret),
    "above": lambda at: f"{at.talks}/../../../{os.path.relpath(at.secret, at.talks.parents[2])}",
    "relative": lambda at: os.path.relpath(at.secret),
    "a pattern": lambda at: f"{at.talks}/*/subagents/*.jsonl",
    "an option": lambda _: "--help",
    "a device": lambda _: "/dev/zero",
    "nothing": lambda at: str(at.own),
}
"""The paths that can be named as the transcript."""

PLACES = [
    pytest.param(name, marks=as_root) if name == "somebody else's" else pytest.param(name) for name in (*MADE, *NAMED)
]


def place(name: str, talks: Path, outside: Path) -> str:
    """Prepares the case ``name``. Returns the path that is named as the transcript of ``AGENT``."""
    at = Folders(talks, outside)
    if name in MADE:
        MADE[name](at)
    return NAMED.get(name, NAMED["nothing"])(at)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Records the real paths of files and folders that this process opens until the end of the block."""
    found: list[str] = []
    open_fd, open_file, listdir, scandir = os.open, builtins.open, os.listdir, os.scandir

    def noting_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = open_fd(path, flags, mode, dir_fd=dir_fd)
        found.append(os.readlink(f"/proc/self/fd/{fd}"))
        return fd

    def noting(call: Any) -> Any:
        def noting_path(path: Any = ".", *words: Any, **options: Any) -> Any:
            if not isinstance(path, int):
                found.append(os.path.realpath(path))
            return call(path, *words, **options)

        return noting_path

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "open", noting_open)
        patched.setattr(builtins, "open", noting(open_file))
        patched.setattr(os, "listdir", noting(listdir))
        patched.setattr(os, "scandir", noting(scandir))
        yield found


@contextmanager
def signalled() -> Iterator[list[tuple[int, int]]]:
    """Records the signals to other processes until the end of the block, as pid and number. It sends only signal 0."""
    sent: list[tuple[int, int]] = []

    def noting(call: Any) -> Any:
        def noting_pid(pid: int, number: int) -> None:
            sent.append((pid, number))
            if number == 0:
                call(pid, number)

        return noting_pid

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "kill", noting(os.kill))
        patched.setattr(os, "killpg", noting(os.killpg))
        yield sent
