"""``--test``: tries a hook in a temporary root. Each step starts the real script, as a host does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

from gaia_sessions.api.sessions import Sessions
from gaia_sessions.errors import well_formed
from gaia_sessions.hosts import HOOK, PRE_DELEGATE, SUBAGENT_STOP, sample_payloads
from gaia_sessions.hosts.payload import one_line
from gaia_sessions.session.ids import resume_line
from gaia_sessions.system import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from . import Arguments

    Step = tuple[str, bool]

USAGE = "reads one JSON object on standard input; --test tries the whole flow in a temporary root\n"

_SECONDS_TO_PRINT = 60.0
_AGENT_NAME = "tester"

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from gaia_sessions.cli.start import main; main()"


def main(hook: str, arguments: Arguments) -> int:
    """Runs and prints the steps of ``hook``; returns 1 if one failed, else 0."""
    try:
        failed, text = _tried(hook, arguments) if arguments["test"] else (0, f"{_SCRIPTS.get(hook, hook)}.py {USAGE}")
    except OSError as error:
        return _fail(f"cannot make a temporary folder: {error}; set TMPDIR to a folder that you may write to")
    if not streams.write_output(text.encode("utf-8", "backslashreplace"), _SECONDS_TO_PRINT):
        return _fail("the output could not be printed")
    return 1 if failed else 0


def _tried(hook: str, arguments: Arguments) -> tuple[int, str]:
    """Returns how many steps of ``hook`` failed, and the text for a person."""
    with tempfile.TemporaryDirectory() as folder:
        steps = list(_STEPS[hook](os.path.join(folder, "session")))
    failed = sum(not passed for _, passed in steps)
    lines = [f"{well_formed(one_line(word))} is not an option and is ignored" for word in arguments["ignored"]]
    lines += [f"{'passed' if passed else 'FAILED'}: {name}" for name, passed in steps]
    return failed, "\n".join([*lines, f"{len(steps) - failed} passed, {failed} failed", ""])


def _fail(said: str) -> int:
    with suppress(OSError):
        os.write(2, f"{said}\n".encode("utf-8", "backslashreplace"))
    return 1


def _pre_delegate(root: str) -> Iterator[Step]:
    answer = _run_for_json(root, {"agent_name": _AGENT_NAME})
    yield "without an ID there is nothing to resume", answer.get("reason") == "no_existing_session"
    agent_id = Sessions(root).create(_AGENT_NAME, "test")
    answer = _run_for_json(root, {"agent_name": _AGENT_NAME, "agent_id": agent_id})
    yield "a new session is not resumable", answer.get("detail") == "phase_not_resumable"
    Sessions(root).update(agent_id, "approval", {"plan": "three steps"})
    answer = _run_for_json(root, {"agent_name": _AGENT_NAME, "agent_id": agent_id})
    yield "a session that waits for approval is resumable", answer.get("reason") == "session_resumable"
    metadata = answer.get("resume_metadata") or {}
    yield (
        "the answer has its context",
        isinstance(metadata, dict) and metadata.get("session_metadata") == {"plan": "three steps"},
    )
    answer = _run_for_json(root, {"agent_name": _AGENT_NAME, "agent_id": "../elsewhere"})
    yield "an invalid ID is refused", answer.get("reason") == "invalid_input"
    delegation = sample_payloads.delegation(_AGENT_NAME)
    yield "a client's delegation is recorded, and the hook prints nothing", _run(root, PRE_DELEGATE, delegation) == ""


def _subagent_stop(root: str) -> Iterator[Step]:
    for exit_code, outcome in ((0, "completed"), (1, "failed")):
        agent_id = Sessions(root).create(_AGENT_NAME, "test")
        _run(root, SUBAGENT_STOP, {"agent_id": agent_id, "exit_code": exit_code})
        record = Sessions(root).get(agent_id)
        yield f"exit code {exit_code} ends as {outcome}", record is not None and record["phase"] == outcome
    answer = json.loads(_run(root, SUBAGENT_STOP, {"agent_id": "agent-unknown"}))
    yield "an unknown ID changes nothing", answer["finalized"] is False
    stop = sample_payloads.bare_stop()
    yield "a stop event of a client is recorded, and the hook prints nothing", _run(root, SUBAGENT_STOP, stop) == ""


def _package() -> str:
    """Returns the folder of this process's package, which need not be installed."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _run_for_json(root: str, payload: Mapping[str, object], hook: str = PRE_DELEGATE) -> dict[str, object]:
    answer: dict[str, object] = json.loads(_run(root, hook, payload))
    return answer


def _run(root: str, hook: str, payload: Mapping[str, object]) -> str:
    """Returns the output of the script, or of the command if there is no script, for ``payload``."""
    script = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), f"{_SCRIPTS.get(hook, hook)}.py")
    target = [script] if os.path.exists(script) else ["-P", "-c", _BOOT, HOOK, _package()]
    environment = {**os.environ, "GAIA_SESSIONS_ROOT": root, "GAIA_SESSIONS_HOOKS": "on"}
    stdin = json.dumps(payload)
    command = [sys.executable, *target]
    return subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, check=True).stdout


def _every_event(root: str) -> Iterator[Step]:
    delegation = sample_payloads.delegation(_AGENT_NAME)
    yield "a delegation is recorded, and the hook prints nothing", _run(root, HOOK, delegation) == ""
    started = _run_for_json(root, sample_payloads.start(_AGENT_NAME), HOOK)
    yield "a starting sub-agent gets the note on how to pause", "[gaia-sessions: approval]" in json.dumps(started)
    answer = json.dumps(_run_for_json(root, sample_payloads.completed_return(_AGENT_NAME), HOOK))
    [record] = Sessions(root).list()
    yield "after a return without a stop the work can be resumed", record.get("resume_ready") is True
    line = resume_line(record["agent_id"])
    yield "the main agent gets the line that resumes the work", line in answer
    delegation = sample_payloads.delegation(_AGENT_NAME, f"Go on.\n{line}", "toolu_again")
    resumed = _run_for_json(root, delegation, HOOK)
    yield "the delegation that resumes the work gets a briefing", "updatedInput" in json.dumps(resumed)


_STEPS = {PRE_DELEGATE: _pre_delegate, SUBAGENT_STOP: _subagent_stop, HOOK: _every_event}
_SCRIPTS = {HOOK: "every_event"}
