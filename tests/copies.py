"""A project with one session of each kind, for copies between a folder and a server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gaia_sessions import Sessions
from gaia_sessions.errors import NewerSchema
from gaia_sessions.session.record import is_open
from gaia_sessions.store.file_store import FileStore
from tests.transcripts import begin_anew

if TYPE_CHECKING:
    from gaia_sessions.api.at import Place

MIDDLE = "import sys; sys.stdout.write('a' * 1500000 + 'b' * 1500000)"


def make_project(root: str) -> None:
    """Makes sessions in the folder ``root``: ended and open ones, with all kinds of files; some were removed."""
    sessions = Sessions(root)
    for agent_id in ("gone-1", "gone-2"):
        sessions.create("worker", "old work", agent_id=agent_id)
        sessions.finalize(agent_id, "completed")
    sessions.cleanup(hours=0)
    run(root, "printed", "echo said")
    run(root, "long", f'{sys.executable} -c "{MIDDLE}"')
    run(root, "silent", "true")
    sessions.create("worker", "to be stopped", agent_id="cancelled")
    sessions.cancel("cancelled", "not needed")
    sessions.create("talker", "a long talk", agent_id="talk", system_prompt="Be brief.")
    sessions.add_turn("talk", [{"role": "user", "content": "First é"}, {"role": "assistant", "content": "Done"}])
    begin_anew(FileStore(root), "talk")
    sessions.add_message("talk", "user", "Second")
    sessions.create("worker", "to be asked", agent_id="asked")
    sessions.update("asked", "planning")
    sessions.update("asked", "approval")
    sessions.create("worker", "to be answered", agent_id="answered")
    sessions.update("answered", "planning")
    sessions.update("answered", "approval")
    sessions.approve("answered", "yes")
    sessions.create("lead", "all of it", agent_id="above", tools=["Read"])
    sessions.create("worker", "a part", agent_id="below", parent_id="above")
    FileStore(root).append("below", "events.jsonl", [{"kind": "note"}])
    for number in (1, 2):
        sessions.create("helper", "shares state", agent_id=f"app-{number}", app="kb", user=f"user {number}")
        sessions.change_state(f"app-{number}", {"app:last": number, "user:x/y": "z", "own": [number]})
    sessions.finalize("app-2", "failed")
    sessions.reconcile()


def run(root: str, agent_id: str, script: str) -> None:
    Sessions(root).create("worker", "a command", agent_id=agent_id)
    words = ["--root", root, "run", agent_id, "--task", "some work", "--", "sh", "-c", script]
    subprocess.run([sys.executable, "-m", "gaia_sessions", *words], check=True, capture_output=True)


def contents(root: str) -> dict[str, bytes]:
    """The content of every file of the sessions at ``root``, with shared state and figures, by path.

    Temporary files, which killed writers leave, do not count.
    """
    found = {}
    for path in Path(root).rglob("*"):
        name = path.relative_to(root).as_posix()
        if (
            path.is_file()
            and path.suffix != ".tmp"
            and (not name.startswith(".") or name.startswith((".shared/", ".stats")))
        ):
            found[name] = path.read_bytes()
    return found


def that_accept_changes(place: Place) -> list[str]:
    """The open sessions of ``place`` that accept changes now."""
    found = []
    with place.store as store:
        for agent_id in store.ids():
            try:
                with store.open(agent_id) as session:
                    found += [agent_id] if is_open(session.record) else []
            except NewerSchema:
                continue
    return sorted(found)
