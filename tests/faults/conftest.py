"""Shared by the fault tests: file trees to compare, the start of commands, and strace.

A *case* is a project folder in which one operation will run, with or without an injected fault.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gaia_sessions import Sessions
from gaia_sessions.api import cancelling, updating
from gaia_sessions.api.creating import store_new
from gaia_sessions.errors import InvalidInput
from gaia_sessions.session import own_runs, requests, runs
from gaia_sessions.session.record import decode, new_record
from gaia_sessions.session.transcript import new_message
from gaia_sessions.store.file_store import FileStore
from tests.faults.worker import PROMPT, TURN
from tests.forks import PATIENCE, forks
from tests.places import writing
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from _pytest.mark import ParameterSet

    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Run as RunOfHost

    Tree = dict[str, tuple[str, int, bytes]]
    Ended = subprocess.CompletedProcess[str]
    Run = Callable[..., Ended]
    Documents = dict[str, bytes]
    Holds = Callable[[str, bytes | None], bool]

WORKER = str(Path(__file__).with_name("worker.py"))
HOOKS = Path(__file__).parents[2] / "hooks"
ASIDE = "transcript-aside.jsonl"
JOURNAL = "events.jsonl"
SPOKEN = "from a worker"


def command(operation: str, root: str, *arguments: str) -> list[str]:
    """The command line that runs an operation in its own process."""
    return [sys.executable, WORKER, operation, root, *arguments]


def run(
    words: Sequence[str],
    *,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    through: Sequence[str] = (),
    trace: Sequence[str] = (),
) -> Ended:
    """Runs ``words`` in an environment without the user's settings, and with a time limit.

    through: a command that starts them. trace: a command that traces them.
    """
    known = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **(environment or {})}
    if not through:
        return forks().run(words, stdin, trace, environment=known)
    return subprocess.run(
        [*through, *words], input=stdin, env=known, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def copy(top: str | Path, folder: str | Path) -> str:
    """A copy of everything below ``top``. Hard links stay hard links."""
    names: dict[int, str] = {}

    def copy_file(source: str, target: str) -> None:
        first = names.setdefault(os.lstat(source).st_ino, target)
        shutil.copy2(source, target, follow_symlinks=False) if first == target else os.link(first, target)

    return str(shutil.copytree(top, folder, symlinks=True, copy_function=copy_file))


def tree(top: str | Path) -> Tree:
    """Everything below ``top``: kind, mode, and content or link target of each path."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = b""
            if stat.S_ISREG(status.st_mode):
                content = Path(path).read_bytes()
            elif stat.S_ISLNK(status.st_mode):
                content = os.fsencode(os.readlink(path))
            kind = stat.filemode(status.st_mode)[0]
            found[os.path.relpath(path, top)] = (kind, stat.S_IMODE(status.st_mode), content)
    return found


def documents(root: str | Path) -> Documents:
    """The files of sessions and shared state, and those of a snapshot, by path, without messages that were kept aside.

    A session without a record counts as one with an empty record.
    """
    found: Documents = {}
    for path in Path(root).glob("[!.]*"):
        found[f"{path.name}/state.json"] = b""
        for file in path.glob("[!.]*"):
            if file.name != ASIDE:
                found[f"{path.name}/{file.name}"] = file.read_bytes()
        for name in [name for name in found if name.startswith(f"{path.name}/transcript")]:
            found[name] = _committed(name, found[name], found[f"{path.name}/state.json"])
    found |= {f".shared/{path.name}": path.read_bytes() for path in Path(root, ".shared").glob("[!.]*")}
    for path in Path(f"{root}-snapshot").glob("[!.]*/*"):
        found[f"snapshot of {path.parent.name}/{path.name}"] = path.read_bytes()
    return {name: data for name, data in found.items() if data or "/transcript" not in name}


def _committed(name: str, data: bytes, state: bytes) -> bytes:
    """The committed part of a transcript. It is empty if the transcript is later than the record."""
    record = json.loads(state or b"{}")
    number = name.rpartition("transcript-")[2].removesuffix(".jsonl")
    generation, latest = int(number) if number.isdecimal() else 0, record.get("transcripts_archived", 0)
    return data[: record.get("transcript_bytes", 0)] if generation == latest else data * (generation < latest)


def message_lines(root: str | Path) -> set[bytes]:
    """Every whole line of the transcripts of agent-1, committed or not."""
    files = [path.read_bytes() for path in Path(root, "agent-1").glob("transcript*.jsonl")]
    return {line for data in files for line in data.splitlines(keepends=True) if line.endswith(b"}\n")}


def leftovers(root: str | Path) -> list[str]:
    """Temporary files and folders of operations that did not finish."""
    top = Path(root)
    parts = [*top.glob("**/*.tmp"), *top.glob("**/.*.tmp"), *top.glob(".stage/*"), *top.glob(".trash/*")]
    return sorted({str(path.relative_to(top)) for path in parts})


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of a case.

    own: the documents that it changes, each with a check of the new content ("+": any new document).
    aside: documents that it may change too. spare: documents that it may make after a killed run.
    noted: the kind of the journal entry that it adds. A fault can lose this entry if the session is old.
    words: its command, given the project folder. again: the exit codes of a repetition.
    """

    name: str
    prepare: Callable[[str], None]
    words: Callable[[str], list[str]]
    own: Mapping[str, Holds]
    aside: Mapping[str, Holds] = field(default_factory=dict)
    spare: Mapping[str, Holds] = field(default_factory=dict)
    noted: str = ""
    stdin: str = ""
    again: frozenset[int] = frozenset([0])
    is_hook: bool = False

    def outcome_of(self, before: Documents, after: Documents) -> str:
        """``old``, ``new`` or ``partly``; any other text is a fault."""
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        journals = {name for name in changed if self.noted and name.endswith(JOURNAL)}
        lines = {name: after.get(name) for name in journals if after.get(name) != b""}  # without those still empty
        changed -= journals
        if any(not _is_noted(data, self.noted) for data in lines.values()):
            return f"noted wrongly: {lines}"
        for name in sorted(changed):
            known = {**self.own, **self.aside, **self.spare}
            holds = known.get(name) or (self.own.get("+") if name not in before else None)
            if holds is None or not holds(name.split("/")[0], after.get(name)):
                return f"{name} is neither old nor new: {after.get(name)!r}"
        added = {name for name in changed if name not in before} - self.own.keys() - self.spare.keys()
        if len(added) > 1:
            return f"done twice: {sorted(added)}"
        done = {name for name in self.own if name in changed or (name == "+" and added)}
        due = {name.replace("state.json", JOURNAL) for name in added} if self.noted else set()
        if not due <= lines.keys() or (lines and not done):
            return f"noted {sorted(lines)}, done {sorted(done)}"
        return "new" if done == self.own.keys() else "partly" if done else "old"

    def start(self, project: str, *, trace: Sequence[str] = ()) -> Ended:
        environment = {"CLAUDE_PROJECT_DIR": project}
        return run(self.words(project), stdin=self.stdin, environment=environment, trace=trace)


def root_of(project: str | Path) -> str:
    return f"{project}/.claude/session"


def _populate(root: str) -> None:
    store, now = FileStore(root), datetime.now(UTC)
    store_new(store, now, os.urandom, requests.NewSession("worker", "young", {"kept": True}, "agent-1"))
    updating.update(writing(store, now), "agent-1", "planning")
    store_new(store, now, os.urandom, requests.NewSession("worker", "young", None, "agent-2"))
    store.append("agent-1", JOURNAL, [{"by": "somebody before"}])
    old = now - timedelta(days=2)
    for agent_id in ("old-1", "old-2"):
        store_new(store, old, os.urandom, requests.NewSession("worker", "old", None, agent_id))
    updating.finalize(writing(store, old), "old-2", "failed")


def _populate_and_defer(root: str) -> None:
    _populate(root)
    now = datetime.now(UTC)
    ending: Event = {
        "kind": "finalize",
        "at": now.isoformat(),
        "agent_id": "agent-2",
        "outcome": "completed",
    }
    FileStore(root).defer(ending, now)


def _populate_and_delegate(root: str) -> None:
    _populate(root)
    now = datetime.now(UTC)
    keys: RunOfHost = {"host": "claude-code", "host_session_id": "s-1", "tool_use_id": "toolu_1"}
    record = new_record("delegated", "Explore", "look around", {}, now)
    FileStore(root).create(runs.with_claimed_run(record, keys, now))


def _populate_below_cancelled(root: str) -> None:
    """The session parent is cancelled, and agent-1 below it is cancelled too."""
    _populate(root)
    store, now = FileStore(root), datetime.now(UTC)
    store_new(store, now, os.urandom, requests.NewSession("worker", "above", None, "parent"))
    store.change("agent-1", lambda record: {**record, "parent_id": "parent"})
    cancelling.mark_cancelled(store, now, "parent", "by a worker", below=True)


def _populate_and_talk(root: str) -> None:
    """agent-1 has a committed transcript, followed by the partial line of a killed writer."""
    _populate(root)
    messages = [new_message("user", f"before {number}", datetime.now(UTC)) for number in range(3)]
    add_messages(FileStore(root), "agent-1", messages)
    with open(f"{root}/agent-1/transcript.jsonl", "ab") as file:
        file.write(b'{"seq": 4, "turn": 1, "role": "user", "content": "nev')


def _populate_and_restore(root: str) -> None:
    """The record of agent-1 is older than its last two acknowledged messages."""
    _populate_and_talk(root)
    path = Path(root, "agent-1", "state.json")
    older = path.read_bytes()
    for number in range(2):
        add_messages(
            FileStore(root),
            "agent-1",
            [new_message("user", f"lost {number}", datetime.now(UTC))],
            lambda record: record,
        )
    path.write_bytes(older)


def _populate_and_archive(root: str) -> None:
    """agent-1 has an archived transcript and no newer message."""
    _populate_and_talk(root)
    begin_anew(FileStore(root), "agent-1")


def _populate_and_converse(root: str) -> None:
    """The session told has a system prompt and a turn, followed by the partial line of a killed writer."""
    _populate(root)
    talk = Sessions(root)
    talk.create("worker", agent_id="told", system_prompt=PROMPT)
    talk.add_turn("told", TURN)
    with open(f"{root}/told/transcript.jsonl", "ab") as file:
        file.write(b'{"seq": 6, "turn": 2, "role": "user", "content": "nev')


def _populate_with_state(root: str) -> None:
    """The session kept has its own state, and state that it shares with its app and its user."""
    _populate(root)
    state = {"domain_id": 7, "app:motd": "before", "user:language": "de"}
    Sessions(root).create("worker", agent_id="kept", app="kb", user="u1", state=state)


def _populate_and_take_snapshot(root: str) -> None:
    """A snapshot of the root has a hard link to every file."""
    _populate_and_talk(root)
    subprocess.run(["cp", "-al", root, f"{root}-snapshot"], check=True)


def _populate_elsewhere(root: str) -> None:
    """Another root has one session with one file of each kind, and a waiting event of another session."""
    _populate(root)
    there, now = FileStore(_elsewhere(Path(root).parents[1])), datetime.now(UTC)
    store_new(there, now, os.urandom, requests.NewSession("worker", "from elsewhere", None, "agent-new"))
    updating.update(writing(there, now), "agent-new", "planning")
    for text in ("archived", "before 0"):
        begin_anew(there, "agent-new")
        add_messages(there, "agent-new", [new_message("user", text, now)])
    there.append("agent-new", JOURNAL, [{"by": "somebody before"}])
    cancelling.mark_cancelled(there, now, "agent-new", "by a worker", below=True)
    ending: Event = {"kind": "finalize", "at": now.isoformat(), "agent_id": "agent-2", "outcome": "completed"}
    there.defer(ending, now)


def _elsewhere(project: str | Path) -> str:
    return f"{project}/elsewhere"


def _populate_and_pause(root: str) -> None:
    _populate(root)
    store, now = FileStore(root), datetime.now(UTC)
    store_new(store, now, os.urandom, requests.NewSession("Explore", "paused", None, "paused"))
    updating.update(writing(store, now), "paused", "planning")


def _populate_and_begin(root: str) -> None:
    """A command is at work on the session command."""
    _populate(root)
    now = datetime.now(UTC)
    record = new_record("command", "worker", "young", {}, now)
    FileStore(root).create(own_runs.with_run_begun(record, {"wrapper": {"pid": 1}}, now))


def _populate_and_cancel(root: str) -> None:
    """agent-2 is cancelled, and the session below it is cancelled too."""
    _populate(root)
    store, now = FileStore(root), datetime.now(UTC)
    below = requests.NewSession("worker", "young", None, "below", parent_id="agent-2")
    store_new(store, now, os.urandom, below)
    cancelling.mark_cancelled(store, now, "agent-2", "before", below=True)


def _record(condition: Callable[[Mapping[str, object]], bool]) -> Holds:
    def holds(agent_id: str, data: bytes | None) -> bool:
        try:
            return data is not None and condition(decode(data, agent_id))
        except InvalidInput:
            return False

    return holds


def _shares(state: object) -> Holds:
    return lambda _agent_id, data: json.loads(data or b"{}").get("state") == state


def _counts_too(_agent_id: str, data: bytes | None) -> bool:
    return bool(json.loads(data or b"{}")["state"]["n"] >= 1)


def _has_events(_agent_id: str, data: bytes | None) -> bool:
    lines = [json.loads(line) for line in (data or b"").splitlines()]
    return bool(lines) and all(line["content"] == "by a worker" and line["event"] for line in lines)


def _is_gone(_agent_id: str, data: bytes | None) -> bool:
    return data is None


def _is_appended(_agent_id: str, data: bytes | None) -> bool:
    first, *lines = (data or b"").splitlines(keepends=True)
    return json.loads(first) == {"by": "somebody before"} and set(lines) == {b'{"by": "a worker"}\n'}


def _has_messages(before: int, revisions: set[int], name: str = "transcript.jsonl") -> dict[str, Holds]:
    """One message of the worker after ``before`` others, or two if the first was not acknowledged."""

    def holds(_agent_id: str, data: bytes | None) -> bool:
        messages = [json.loads(line) for line in (data or b"").splitlines()]
        spoken = [message["content"] for message in messages]
        numbers = [message["seq"] for message in messages]
        numbered = numbers == sorted(set(numbers))
        return (
            numbered
            and spoken[:before] == [f"before {number}" for number in range(before)]
            and (spoken[before:] in ([SPOKEN], [SPOKEN, SPOKEN]))
        )

    def counts(record: Mapping[str, object]) -> bool:
        return bool(record["transcript_bytes"]) and record["revision"] in revisions

    return {"agent-1/state.json": _record(counts), f"agent-1/{name}": holds}


_EMPTIED: dict[str, Holds] = {
    "agent-1/state.json": _record(
        lambda record: (record["transcript_bytes"], record["transcripts_archived"], record["revision"]) == (0, 1, 4)
    )
}
"""Only the record changes: the committed lines stay in their file."""


def _has_turns(*numbers: int) -> Holds:
    """The system prompt and these turns, each whole and once, even after a repeated request."""
    spoken = [(0, PROMPT), *((number, message["content"]) for number in numbers for message in TURN)]

    def holds(_agent_id: str, data: bytes | None) -> bool:
        messages = [json.loads(line) for line in (data or b"").splitlines()]
        seqs = [message["seq"] for message in messages]
        return [(one["turn"], one["content"]) for one in messages] == spoken and seqs == sorted(set(seqs))

    return holds


def _counts(record: Mapping[str, object]) -> tuple[object, ...]:
    return (record.get("turns"), record.get("transcripts_archived", 0), record["revision"])


def _is_noted(data: bytes | None, kind: str) -> bool:
    """The entry is there once, or twice if the operation was repeated."""
    told = [json.loads(line)["kind"] for line in (data or b"").splitlines()]
    return set(told) == {kind} and len(told) in {1, 2}


def _is_updated(record: Mapping[str, object]) -> bool:
    """The update was made once, or twice: a killed client cannot know that its update succeeded."""
    metadata = record["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("worker") == "was here" and metadata["kept"] is True and record["revision"] in {3, 4}


def _has_run(record: Mapping[str, object]) -> bool:
    had = record.get("runs")
    return isinstance(had, list) and [run["tool_use_id"] for run in had] == ["toolu_new"]


def _has_ended(record: Mapping[str, object]) -> bool:
    had = record["runs"]
    return record["phase"] == "approval" and isinstance(had, list) and [run.get("end") for run in had] == ["stopped"]


def _has_command(record: Mapping[str, object]) -> bool:
    had = record["runs"]
    return record["phase"] == "executing" and isinstance(had, list) and [run["wrapper"] for run in had] == [{"pid": 1}]


def _has_ended_well(record: Mapping[str, object]) -> bool:
    """The run was ended once, or twice: a killed wrapper cannot know that it succeeded."""
    had = record["runs"]
    ends = [(run["end"], run["last_message"]) for run in had] if isinstance(had, list) else []
    is_once = (record["turns"], ends) == (1, [("stopped", SPOKEN)])
    return record["phase"] == "completed" and is_once and record["revision"] in {2, 3}


def _says_once(_agent_id: str, data: bytes | None) -> bool:
    return [json.loads(line)["content"] for line in (data or b"").splitlines()] == [SPOKEN]


def _is_abandoned(record: Mapping[str, object]) -> bool:
    metadata = record["metadata"]
    assert isinstance(metadata, dict)
    return (record["phase"], record["revision"], metadata.get("worker")) == ("abandoned", 2, "was here")


def _is_cancelled(_agent_id: str, data: bytes | None) -> bool:
    mark = json.loads(data or b"{}")
    return (mark.get("reason"), mark.get("below")) == ("by a worker", True)


_completed = _record(lambda record: record["phase"] == "completed" and record["revision"] in {2, 3})


def _by_worker(name: str, *arguments: str) -> Callable[[str], list[str]]:
    return lambda project: command(name, root_of(project), *arguments)


def _by_hook(name: str) -> Callable[[str], list[str]]:
    return lambda _project: [sys.executable, str(HOOKS / f"{name}.py")]


_CREATED = {"agent-new/state.json": _record(lambda record: record["revision"] == 1)}
_UPDATED = {"agent-1/state.json": _record(_is_updated)}
_IMPORTED: dict[str, Holds] = {
    "agent-new/state.json": _record(
        lambda record: record["phase"] == "abandoned" and str(record["imported_from"]).endswith("/elsewhere")
    ),
    "agent-new/cancelled.json": _is_cancelled,
    "agent-new/transcript.jsonl": lambda _agent_id, data: (data or b"").count(b"\n") == 1,
    "agent-new/transcript-1.jsonl": lambda _agent_id, data: (data or b"").count(b"\n") == 1,
    "agent-new/events.jsonl": lambda _agent_id, data: (data or b"").startswith(b'{"by": "somebody before"}\n'),
}
_GONE: dict[str, Holds] = {"old-1/state.json": _is_gone, "old-2/state.json": _is_gone}

_DELEGATION = {
    "hook_event_name": "PreToolUse",
    "session_id": "s-1",
    "tool_name": "Agent",
    "tool_use_id": "toolu_new",
    "tool_input": {"description": "look around", "prompt": "Look.", "subagent_type": "Explore"},
}
_RESUME = {
    **_DELEGATION,
    "tool_input": {"description": "go on", "prompt": "[gaia-sessions: resume paused]", "subagent_type": "Explore"},
}
_STOP = {
    "hook_event_name": "SubagentStop",
    "session_id": "s-1",
    "agent_id": "a1b2",
    "agent_type": "Explore",
    "last_assistant_message": "Done so far.\n[gaia-sessions: approval delegated] please look",
}

OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation(
            "create in a fresh root",
            lambda _root: None,
            _by_worker("create", "agent-new"),
            _CREATED,
            again=frozenset([0, 4]),
        ),
        Operation("create", _populate, _by_worker("create", "agent-new"), _CREATED, again=frozenset([0, 4])),
        Operation("update", _populate, _by_worker("update", "agent-1"), _UPDATED),
        Operation(
            "update with an event waiting",
            _populate_and_defer,
            _by_worker("update", "agent-1"),
            _UPDATED,
            {"agent-2/state.json": _completed},
        ),
        Operation(
            "change state in three documents",
            _populate_with_state,
            _by_worker("change-state", "kept"),
            {
                "kept/state.json": _record(lambda record: record["session_state"] == {"intent": "by a worker"}),
                ".shared/app-kb.json": _shares({"motd": "by a worker"}),
                ".shared/user-kb.u1.json": _shares({"language": "by a worker"}),
            },
        ),
        Operation(
            "append an event of an app",
            _populate_with_state,
            _by_worker("append-event", "kept"),
            {
                "kept/state.json": _record(
                    lambda record: record.get("session_state") == {"domain_id": 7, "n": record.get("turns")}
                ),
                "kept/transcript.jsonl": _has_events,
                ".shared/app-kb.json": _counts_too,
                ".shared/user-kb.u1.json": _counts_too,
            },
        ),
        Operation("finalize", _populate, _by_worker("finalize", "agent-1"), {"agent-1/state.json": _completed}),
        Operation("cancel", _populate, _by_worker("cancel", "agent-1"), {"agent-1/cancelled.json": _is_cancelled}),
        Operation(
            "update below a cancelled session",
            _populate_and_cancel,
            _by_worker("update", "below"),
            {"below/state.json": _record(_is_abandoned)},
            again=frozenset([0, 4]),
        ),
        Operation(
            "create below a cancelled session",
            _populate_and_cancel,
            _by_worker("create-below", "agent-new", "below"),
            {"agent-new/state.json": _record(lambda record: record["parent_id"] == "below")},
            again=frozenset([0, 4]),
        ),
        Operation(
            "remove a cancelled session",
            _populate_below_cancelled,
            _by_worker("remove", "parent"),
            {"parent/state.json": _is_gone, "parent/cancelled.json": _is_gone},
            {"agent-1/cancelled.json": _is_cancelled},
            again=frozenset([0, 3]),
        ),
        Operation(
            "remove an open session",
            _populate_and_talk,
            _by_worker("rm", "agent-1"),
            {f"agent-1/{name}": _is_gone for name in ("state.json", JOURNAL, "transcript.jsonl")},
            again=frozenset([0, 3]),
        ),
        Operation("cleanup", _populate, _by_worker("cleanup"), _GONE),
        Operation("append", _populate, _by_worker("append", "agent-1"), {f"agent-1/{JOURNAL}": _is_appended}),
        Operation("add a first message", _populate, _by_worker("add-message", "agent-1"), _has_messages(0, {3, 4})),
        Operation("add a message", _populate_and_talk, _by_worker("add-message", "agent-1"), _has_messages(3, {4, 5})),
        Operation(
            "add a message after emptying",
            _populate_and_archive,
            _by_worker("add-message", "agent-1"),
            _has_messages(0, {5, 6}, "transcript-1.jsonl"),
        ),
        Operation("empty a transcript", _populate_and_talk, _by_worker("empty-transcript", "agent-1"), _EMPTIED),
        Operation(
            "create with a system prompt",
            _populate,
            _by_worker("create-told", "agent-new"),
            {**_CREATED, "agent-new/transcript.jsonl": _has_turns()},
            again=frozenset([0, 4]),
        ),
        Operation(
            "add a turn",
            _populate_and_converse,
            _by_worker("add-turn", "told", "2"),
            {
                "told/state.json": _record(lambda record: _counts(record) == (2, 0, 3)),
                "told/transcript.jsonl": _has_turns(1, 2),
            },
        ),
        Operation(
            "reset",
            _populate_and_converse,
            _by_worker("reset", "told"),
            {
                "told/state.json": _record(
                    lambda record: (
                        _counts(record) in {(0, 1, 3), (0, 1, 4), (0, 2, 3)} and bool(record["transcript_bytes"])
                    )
                ),
            },
            noted="SessionReset",
            spare={"told/transcript-1.jsonl": _has_turns(), "told/transcript-2.jsonl": _has_turns()},
        ),
        Operation(
            "append beside a snapshot",
            _populate_and_take_snapshot,
            _by_worker("append", "agent-1"),
            {f"agent-1/{JOURNAL}": _is_appended},
        ),
        Operation(
            "add a message beside a snapshot",
            _populate_and_take_snapshot,
            _by_worker("add-message", "agent-1"),
            _has_messages(3, {4, 5}),
        ),
        Operation(
            "empty a transcript beside a snapshot",
            _populate_and_take_snapshot,
            _by_worker("empty-transcript", "agent-1"),
            _EMPTIED,
        ),
        Operation(
            "add a message to a restored record",
            _populate_and_restore,
            _by_worker("add-message", "agent-1"),
            _has_messages(3, {4, 5}),
        ),
        Operation(
            "empty the transcript of a restored record",
            _populate_and_restore,
            _by_worker("empty-transcript", "agent-1"),
            _EMPTIED,
        ),
        Operation(
            "begin a run in a new session",
            _populate,
            _by_worker("begin-run", "agent-new", "new"),
            {"agent-new/state.json": _record(_has_command)},
            noted="SubAgentStarted",
            again=frozenset([0, 4]),
        ),
        Operation(
            "begin a run of a session",
            _populate_and_pause,
            _by_worker("begin-run", "paused"),
            {"paused/state.json": _record(_has_command)},
            noted="SubAgentStarted",
            again=frozenset([0, 4]),
        ),
        Operation(
            "end a run",
            _populate_and_begin,
            _by_worker("end-run", "command"),
            {"command/state.json": _record(_has_ended_well), "command/transcript.jsonl": _says_once},
            noted="SubAgentCompleted",
        ),
        Operation(
            "import a session from elsewhere",
            _populate_elsewhere,
            lambda project: command("import", root_of(project), _elsewhere(project)),
            _IMPORTED,
        ),
        Operation(
            "pre_delegate of a host",
            _populate,
            _by_hook("pre_delegate"),
            {"+": _record(_has_run)},
            noted="delegate",
            stdin=json.dumps(_DELEGATION),
            is_hook=True,
        ),
        Operation(
            "pre_delegate of a host that resumes",
            _populate_and_pause,
            _by_hook("pre_delegate"),
            {"paused/state.json": _record(_has_run)},
            noted="delegate",
            stdin=json.dumps(_RESUME),
            is_hook=True,
        ),
        Operation(
            "subagent_stop, direct",
            _populate,
            _by_hook("subagent_stop"),
            {"agent-1/state.json": _completed},
            stdin=json.dumps({"agent_id": "agent-1", "exit_code": 0}),
            is_hook=True,
        ),
        Operation(
            "subagent_stop of a host",
            _populate_and_delegate,
            _by_hook("subagent_stop"),
            {"delegated/state.json": _record(_has_ended)},
            noted="stop",
            stdin=json.dumps(_STOP),
            is_hook=True,
        ),
    )
}


@dataclass(frozen=True)
class Call:
    """A system call of a trace that touched the project: the ``ordinal``-th of its ``name`` in the process."""

    name: str
    ordinal: int
    line: str

    def __str__(self) -> str:
        return f"{self.name} {self.ordinal}: {self.line}"

    @property
    def changes(self) -> bool:
        """Whether the call can change files or output. Only these calls matter for the state after a kill."""
        return self.name not in _LOOKING and (not self.name.startswith("open") or "O_CREAT" in self.line)


A_SAMPLE, EACH_CHANGE, EACH_CALL = "a sample", "each call that changes something", "each call"


def reached(calls: Sequence[Call], reach: str) -> list[Call]:
    """The calls at which a process is killed, in the order of the trace."""
    if reach == EACH_CALL:
        return [*calls]
    changing = [call for call in calls if call.changes]
    return (
        changing
        if reach == EACH_CHANGE
        else sorted({*changing[:: len(changing) // 6], *changing[-1:]}, key=changing.index)
    )


class Case:
    """An operation, its system calls, and copies of its project in which it runs with a fault."""

    def __init__(self, operation: Operation, folder: Path) -> None:
        self.operation = operation
        self.folder = folder
        self.made = folder / "prepared"
        self.made.mkdir(parents=True)
        operation.prepare(root_of(self.made))
        self.before = documents(root_of(self.made))
        self.numbers = count()

    def root(self, project: str) -> str:
        return root_of(project)

    def outcome_of(self, project: str) -> str:
        return self.operation.outcome_of(self.before, documents(root_of(project)))

    def documents(self, project: str) -> Documents:
        return documents(root_of(project))

    def is_as_before(self, project: str, name: str) -> bool:
        return self.documents(project).get(name) == self.before.get(name)

    def leftovers(self, project: str) -> list[str]:
        return leftovers(root_of(project))

    def copy(self) -> str:
        """A new copy of the prepared project folder."""
        return copy(self.made, self.folder / f"copy-{next(self.numbers)}")

    @cached_property
    def calls(self) -> list[Call]:
        """Every call with which the operation touches the project when no fault is injected. The last one answers."""
        project = self.copy()
        trace = f"{project}.trace"
        ended = self.operation.start(project, trace=[*STRACE, "-o", trace])
        assert (ended.returncode, ended.stderr) == (0, "")
        assert self.outcome_of(project) == "new"
        return list(touching(trace, project))

    def killed(self, reach: str) -> Iterator[tuple[Call, str, str]]:
        """For each of the calls, a copy in which the operation was killed there, and its output until then."""
        for call in reached(self.calls, reach):
            project = self.copy()
            ended, calls = self.start_with(f"{call.name}:signal=SIGKILL:when={call.ordinal}", project)
            died_at = [(last.name, last.ordinal) for last in calls[-1:]]
            assert (ended.returncode, died_at) == (-9, [(call.name, call.ordinal)]), f"not killed at {call}"
            assert "ACK" not in ended.stdout
            yield call, project, ended.stdout

    def start_with(self, fault: str, project: str) -> tuple[Ended, list[Call]]:
        """Runs the operation with ``fault`` injected. Returns the result, and the calls of that name on the project."""
        trace = f"{project}.trace"
        words = _strace(fault.partition(":")[0])
        ended = self.operation.start(project, trace=[*words, "-e", f"inject={fault}", "-o", trace])
        return ended, list(touching(trace, project))


def _strace(names: str) -> list[str]:
    return ["strace", "-f", "-y", "-e", f"trace={names}", "-e", "signal=none"]


# Every call with a file name or a descriptor. No operation starts a process or a thread, so one count is enough.
STRACE = _strace("%file,%desc,flock")

_LOOKING = frozenset(
    ["newfstatat", "fstat", "stat", "lstat", "read", "pread64", "getdents64", "lseek", "fcntl", "readlink", "close"]
)

_CALL = re.compile(r"^\d+ +(\w+)\(")


def touching(trace: str, project: str) -> Iterator[Call]:
    counts: dict[str, int] = {}
    for line in Path(trace).read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if not found:
            continue
        name = found[1]
        counts[name] = counts.get(name, 0) + 1
        answers = name == "write" and "write(1<" in line
        if (f"{project}/" in line or answers) and name != "execve":
            yield Call(name, counts[name], line[found.start(1) :].replace(f"{project}/", ""))


@cache
def _why_not_strace() -> str:
    """The reason why strace cannot be used here; empty if it can."""
    if not shutil.which("strace"):
        return "needs strace to refuse a call or to kill at it"
    try:
        run([sys.executable, "-c", ""], trace=[*STRACE, "-o", os.devnull])
    except AssertionError as error:
        return f"needs strace and the right to trace: {error}"
    return ""


@pytest.fixture
def needs_strace() -> None:
    reason = _why_not_strace()
    if reason:
        pytest.skip(reason)


@pytest.fixture(name="tree")
def tree_of() -> Callable[[str | Path], Tree]:
    return tree


@pytest.fixture(name="run")
def run_of() -> Run:
    """Runs an operation of the worker on a root: ``run("update", root, "agent-1")``."""

    def start(*words: str, environment: Mapping[str, str] | None = None, through: Sequence[str] = ()) -> Ended:
        return run(command(*words), environment=environment, through=through)

    return start


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = str(tmp_path_factory.mktemp("populated") / "session")
    _populate_and_talk(root)
    return root


@pytest.fixture
def populate(prepared: str, tmp_path: Path) -> Callable[[], str]:
    """Makes roots with two old sessions and two young sessions, one of which has a journal and a transcript."""
    numbers = count()
    return lambda: copy(prepared, tmp_path / f"populated-{next(numbers)}")


@pytest.fixture
def populated(prepared: str, root: str) -> str:
    """The same, at the root of the test."""
    return copy(prepared, root)


@pytest.fixture(name="documents")
def documents_of() -> Callable[[str | Path], Documents]:
    return documents


@pytest.fixture(name="leftovers")
def leftovers_of() -> Callable[[str | Path], list[str]]:
    return leftovers


@pytest.fixture
def operation_named() -> Callable[[str], Operation]:
    return OPERATIONS.__getitem__


QUICK = ("update", "subagent_stop, direct")
"""A command and a hook."""


def sweep(slowly: Callable[[str], str]) -> pytest.MarkDecorator:
    """Operations with faults at some of their calls. ``slowly`` says at how many calls in a slow test."""

    def row(name: str, reach: str, *marks: pytest.MarkDecorator) -> ParameterSet:
        return pytest.param(OPERATIONS[name], reach, marks=marks, id=f"{name}, {reach}")

    rows = [
        *(row(name, A_SAMPLE) for name in QUICK),
        *(row(name, slowly(name), pytest.mark.slow) for name in OPERATIONS),
        *(row(name, EACH_CALL, pytest.mark.thorough) for name in OPERATIONS if slowly(name) != EACH_CALL),
    ]
    return pytest.mark.parametrize(("operation", "reach"), rows)


short_and_whole = pytest.mark.parametrize("reach", [A_SAMPLE, pytest.param(EACH_CHANGE, marks=pytest.mark.slow)])


@pytest.fixture(scope="session")
def case_of(folder_on_disk: Path) -> Callable[[Operation], Case]:
    """The case of an operation. It is prepared and traced only once."""
    numbers = count()
    return cache(lambda operation: Case(operation, folder_on_disk / f"case-{next(numbers)}"))
