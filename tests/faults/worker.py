"""One operation of the Python API in its own process: ``worker.py OPERATION ROOT ARGUMENT...``.

After the call has returned, it prints ``ACK`` and the result in one write. An error of the package gives the
documented exit code and a message on stderr; any other error gives a traceback.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from typing import TYPE_CHECKING, Any

import gaia_sessions
from gaia_sessions.adk.app_events import app_event
from gaia_sessions.api import app_sessions, at, own_runs, removal
from gaia_sessions.config import Config
from gaia_sessions.errors import DurabilityUnknown, MessagesKeptAside, SessionsError
from gaia_sessions.session.own_runs import EXITED, RunEnd
from gaia_sessions.session.requests import Start
from gaia_sessions.session.shared_keys import Delta
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.removals import remove_if
from tests.transcripts import begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable

    Operation = Callable[..., Any]

JOURNAL = "events.jsonl"
PROMPT = "Be brief."
TURN: list[dict[str, Any]] = [
    {"role": "user", "content": "How many?"},
    {"role": "assistant", "content": "{}", "tool_name": "Bash", "tool_call_id": "call_1"},
    {"role": "tool", "content": "x" * 9_000, "tool_call_id": "call_1"},
    {"role": "assistant", "content": "42", "tokens": 1},
]


def create(root: str, agent_id: str) -> object:
    return gaia_sessions.create_session("worker", "made by a worker", agent_id=agent_id, root=root)


def create_below(root: str, agent_id: str, parent_id: str) -> object:
    return gaia_sessions.create_session("worker", agent_id=agent_id, parent_id=parent_id, root=root)


def update(root: str, agent_id: str, size: str = "0") -> object:
    metadata = {"worker": "was here", "filling": "x" * int(size)}
    return gaia_sessions.update_state(agent_id, "approval", metadata, root=root)["revision"]


def change_state(root: str, agent_id: str) -> object:
    keys = {"intent": "by a worker", "app:motd": "by a worker", "user:language": "by a worker"}
    return gaia_sessions.Sessions(root).change_state(agent_id, keys, unset=["domain_id"])["app_revision"]


def append_event(root: str, agent_id: str) -> object:
    """Appends one app event that increments own and shared keys."""
    store = FileStore(root)
    record = store.read(agent_id)
    state, seen = app_sessions.values_of(store, record)
    delta = Delta({key: state.get(key, 0) + 1 for key in ("n", "app:n", "user:n")})  # type: ignore[operator]  # numbers
    event = app_event('{"author": "user", "timestamp": 1700000000.5, "content": {"parts": [{"text": "by a worker"}]}}')
    return app_sessions.append(store, utc_now(), record, seen, event, delta, {}).seq


def finalize(root: str, agent_id: str) -> object:
    return gaia_sessions.finalize_session(agent_id, "completed", "by a worker", root=root)["revision"]


def cancel(root: str, agent_id: str) -> object:
    return gaia_sessions.Sessions(root).cancel(agent_id, "by a worker")["below"]


def remove(root: str, agent_id: str) -> object:
    """Removes a session without a check of the sessions below it."""
    store = FileStore(root)
    return remove_if(store, agent_id, lambda *_: True, _leaving(store))


def _leaving(store: FileStore) -> removal.Leaving:
    return removal.Leaving(store, utc_now(), Config({}).limits)


def rm(root: str, *agent_ids: str) -> object:
    return gaia_sessions.Sessions(root).remove(agent_ids, force=True)


def cleanup(root: str, corrupt: str = "") -> object:
    report = gaia_sessions.cleanup_sessions(corrupt=bool(corrupt), root=root)
    if report["failed"]:
        sys.stderr.write("".join(line["reason"] + "\n" for line in report["failed"]))
        sys.exit(8)
    return {"removed": sorted(report["removed"])}


def append(root: str, agent_id: str) -> object:
    FileStore(root).append(agent_id, JOURNAL, [{"by": "a worker"}])
    return 1


def add_message(root: str, agent_id: str) -> object:
    return gaia_sessions.Sessions(root).add_message(agent_id, "user", "from a worker")["seq"]


def empty_transcript(root: str, agent_id: str) -> object:
    return begin_anew(FileStore(root), agent_id).get("transcripts_archived", 0)


def create_told(root: str, agent_id: str) -> object:
    return gaia_sessions.create_session("worker", agent_id=agent_id, system_prompt=PROMPT, root=root)


def add_turn(root: str, agent_id: str, number: str) -> object:
    return gaia_sessions.Sessions(root).add_turn(agent_id, TURN, number=int(number))["turn_id"]


def reset(root: str, agent_id: str) -> object:
    return gaia_sessions.Sessions(root).reset(agent_id)["turns"]


def begin_run(root: str, agent_id: str, is_new: str = "") -> object:
    """Begins a run with an incomplete description of its wrapper, so that the run cannot be found lost."""
    start = Start(new_id=agent_id) if is_new else Start(agent_id)
    return at.write(gaia_sessions.Sessions(root), own_runs.begin, start, {"wrapper": {"pid": 1}}).run["run"]


def end_run(root: str, agent_id: str) -> object:
    ended = RunEnd(EXITED, 0, "from a worker")
    sessions = gaia_sessions.Sessions(root)
    return at.write(sessions, own_runs.end, agent_id, sessions.store.read(agent_id)["runs"][0], ended)[0]["phase"]


def run_command(root: str, agent_id: str) -> object:
    """Begins and ends a run as its wrapper does. Prints ``BEGUN`` in between."""
    wrapper = describe(os.getpid())
    assert wrapper is not None
    at.write(gaia_sessions.Sessions(root), own_runs.begin, Start(new_id=agent_id), {"wrapper": wrapper})
    os.write(1, b"BEGUN\n")
    return end_run(root, agent_id)


def send(root: str, agent_id: str) -> object:
    """Sends one turn to an agent in this process. Prints ``BEGUN`` while the agent works."""

    def agent(_: object) -> str:
        os.write(1, b"BEGUN\n")
        return "from a worker"

    return gaia_sessions.SubAgentSession(agent, agent_id=agent_id, root=root).send("sent")["turn"]


def import_(root: str, directory: str) -> object:
    report = gaia_sessions.Sessions(root).import_from(directory)
    for failed in report["failed"]:
        sys.stderr.write(failed["detail"] + "\n")
        sys.exit(9 if failed["reason"] == DurabilityUnknown.code else 8)
    return report["imported"]


def entries(root: str, agent_id: str) -> object:
    return [str(entry) for entry in FileStore(root).entries(agent_id, JOURNAL)]


def messages(root: str, agent_id: str) -> object:
    return [str(message) for message in gaia_sessions.Sessions(root).messages(agent_id)]


def get(root: str, agent_id: str) -> object:
    return gaia_sessions.get_session(agent_id, root=root)


def should_resume(root: str, agent_id: str) -> object:
    return gaia_sessions.should_resume(agent_id, root=root)


def sessions(root: str) -> object:
    return list(gaia_sessions.list_sessions(root=root))


OPERATIONS: dict[str, Operation] = {
    "create": create,
    "create-below": create_below,
    "update": update,
    "change-state": change_state,
    "append-event": append_event,
    "finalize": finalize,
    "cancel": cancel,
    "remove": remove,
    "rm": rm,
    "cleanup": cleanup,
    "append": append,
    "add-message": add_message,
    "empty-transcript": empty_transcript,
    "create-told": create_told,
    "add-turn": add_turn,
    "reset": reset,
    "begin-run": begin_run,
    "end-run": end_run,
    "run-command": run_command,
    "send": send,
    "import": import_,
    "entries": entries,
    "messages": messages,
    "get": get,
    "should-resume": should_resume,
    "list": sessions,
}


def main(operation: str, *arguments: str) -> int:
    warnings.simplefilter("ignore", MessagesKeptAside)  # stderr of commands is tested elsewhere
    limit_files(int(os.environ.get("FEWEST_FILES", "0")))
    try:
        told = OPERATIONS[operation](*arguments)
    except SessionsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    os.write(1, b"ACK " + json.dumps(told).encode() + b"\n")
    return 0


def limit_files(most: int) -> None:
    """Limits the number of descriptors from here on. The start of the interpreter needs more."""
    if most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
