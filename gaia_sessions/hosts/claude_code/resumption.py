"""How a person resumes stopped work in Claude Code: the command to type depends on which untrusted files still exist.

{projects}/{folder}/{conversation}.jsonl has {"cwd"} in most lines, {conversation}/subagents/agent-{id}.jsonl is the
transcript of an agent, and {conversation}/workflows/scripts/{name}-{run_id}.js a script.
"""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from itertools import islice

from gaia_sessions.hosts import CLAUDE_CODE, agent_files, host_files
from gaia_sessions.hosts.clients import is_conversation_id
from gaia_sessions.hosts.payload import is_key, key_in, object_in_bytes
from gaia_sessions.session.ids import resume_line
from gaia_sessions.session.runs import was_only_delegated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.hosts import HostResumption, Work
    from gaia_sessions.session.schema import Run

_PROGRAM = "claude"
_TRANSCRIPT = ".jsonl"
_WORKFLOWS = "/subagents/workflows/"
_MOST_LINES = 200
_MOST_SCRIPTS = 10
_LONGEST_NAME = 60
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_TYPE = re.compile(r"[A-Za-z0-9_.:-]+")
"""What an ID in a prompt can be: words would be read as part of the prompt."""


def resumption(run: Run, work: Work) -> HostResumption | None:
    """Returns the cheapest way in which a client can resume ``run``; None for a workflow that is no longer on disk."""
    if "workflow" in run:
        return _workflow(run)
    return _message(run) or _repeated_delegation(run, work) or _delegation(work)


def _message(run: Run) -> HostResumption | None:
    """Returns a message that wakes the agent with all that it knows; None if its file or its conversation is gone."""
    agent = run.get("host_agent_id", "")
    for conversation in _conversations(run):
        path = conversation + _TRANSCRIPT
        transcript = agent_files.transcript_of(path, agent) if agent else None
        if transcript and _is_file(path) and _is_file(transcript):
            # Real clients (2.1.197, 2.1.330) wake an agent by its ID, also one that was in the foreground, and also
            # after SIGKILL, after an error of the API, at a limit of turns, and for nested agents.
            prompt = (
                f"Use SendMessage to tell the agent {agent} to resume its work, and to check first what it has done "
                "already. Do not do its work yourself, and do not delegate that work again."
            )
            return _resumed("message", conversation, prompt)
    return None


def _delegation(work: Work) -> HostResumption:
    """Returns a delegation of the work to a new agent, with a briefing."""
    prompt = (
        f"Delegate {_to_type(work['agent_name'])}to resume unfinished work. "
        f"Put this line in the prompt once, on its own line, not quoted: {resume_line(work['agent_id'])}"
    )
    return _resumption("delegation", [_PROGRAM, prompt], work["project"])


def _repeated_delegation(run: Run, work: Work) -> HostResumption | None:
    """Returns the same delegation again, if its agent never started; else None."""
    # Only the conversation has the prompt, as long as it is on disk.
    name, project = run.get("host_session_id", ""), work["project"]
    if not was_only_delegated(run) or project is None or not is_conversation_id(name):
        return None
    folders = host_files.conversation_folders(CLAUDE_CODE)
    conversations = (os.path.join(folder, _name_of_folder(project), name) for folder in folders)
    conversation = next((found for found in conversations if _is_file(found + _TRANSCRIPT)), None)
    if conversation is None:
        return None
    prompt = (
        f"Your last delegation {_to_type(work['agent_name'])}ended before its agent started. Repeat the delegation "
        "with the same prompt. Add this line to the prompt once, on its own line, not quoted: "
        f"{resume_line(work['agent_id'])}"
    )
    return _resumed("delegation", conversation, prompt)


def _to_type(name: str) -> str:
    """Returns the words for the type of agent; empty if the name would be read as part of the prompt."""
    return f"to the agent type {name} " if _TYPE.fullmatch(name) and len(name) <= _LONGEST_NAME else ""


def _workflow(run: Run) -> HostResumption | None:
    conversation, found, _ = run.get("transcript_path", "").partition(_WORKFLOWS)
    run_id = run["workflow"]["run_id"]
    script = _script(os.path.join(conversation, "workflows", "scripts"), run_id) if found else None
    if script is None or not _NAME.fullmatch(run_id) or not _is_file(conversation + _TRANSCRIPT):
        return None
    # ``resumeFromRunId`` runs a workflow again without repeating finished work.
    prompt = f"Call the Workflow tool with scriptPath {script} and resumeFromRunId {run_id}, and with nothing else."
    return _resumed("workflow", conversation, prompt)


def _script(folder: str, run_id: str) -> str | None:
    names = agent_files.newest_names(CLAUDE_CODE, folder, _MOST_SCRIPTS, suffix=f"-{run_id}.js")
    paths = (os.path.join(folder, name) for name in names if _NAME.fullmatch(name))
    return next(filter(_is_file, paths), None)


def _conversations(run: Run) -> Iterator[str]:
    """Yields the folders of conversations that may know the agent: ``/clear`` and ``/resume`` move the agent."""
    conversation, folder = os.path.split(os.path.dirname(run.get("transcript_path", "")))
    if folder != "subagents":
        return
    yield conversation
    for name in (run.get("current_host_session_id"), run.get("host_session_id")):
        if name and is_key(name) and "/" not in name:
            yield os.path.join(os.path.dirname(conversation), name)


def _resumed(means: str, conversation: str, prompt: str) -> HostResumption | None:
    """Returns the resumption by ``prompt`` in a conversation; None if its name is no ID that a client gives."""
    name = os.path.basename(conversation)
    if not is_conversation_id(name):
        return None
    return _resumption(means, [_PROGRAM, "--resume", name, prompt], _working_directory(conversation))


def _resumption(means: str, words: list[str], directory: str | None) -> HostResumption:
    command = shlex.join(words)
    # 2.1.197 finds a conversation only from the folder where it began, and the project's hooks are read from there.
    if directory is not None and _may_be_shown(directory):
        command = f"cd {shlex.quote(directory)} && {command}"
    return {"means": means, "command": command, "prompt": words[-1]}


def _is_file(path: str) -> bool:
    return host_files.is_file(CLAUDE_CODE, path)


def _working_directory(conversation: str) -> str | None:
    """Returns the folder in which the conversation began: the client names the conversation's folder after it."""
    folder = os.path.basename(os.path.dirname(conversation))
    with suppress(OSError):
        for line in islice(agent_files.lines(CLAUDE_CODE, conversation + _TRANSCRIPT), _MOST_LINES):
            directory = key_in(object_in_bytes(line, agent_files.LONGEST_LINE), "cwd") if b'"cwd"' in line else None
            if directory and _may_be_shown(directory) and _name_of_folder(directory) == folder:
                return directory
    return None


def _name_of_folder(directory: str) -> str:
    """Returns the client's name of the folder for conversations that began in ``directory``."""
    return re.sub(r"[^A-Za-z0-9]", "-", directory)


def _may_be_shown(directory: str) -> bool:
    """Returns whether terminals and shells read the name of ``directory`` as nothing but a name."""
    return directory.isprintable() and os.path.isabs(directory)
