"""The direct form of ``pre_delegate``: checks, creation, and the examples of the users' documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import gaia_sessions
from tests.hook.conftest import own_host, refused, whole
from tests.table import table

if TYPE_CHECKING:
    from typing import Any

    from tests.hook.conftest import Host

SCRIPT = Path(__file__).parents[2] / "hooks" / "pre_delegate.py"


def paused(host: Host) -> str:
    """A session that waits for approval."""
    root = str(host.root)
    agent_id = gaia_sessions.create_session("terraform-architect", "approval_workflow", agent_id="agent-123", root=root)
    gaia_sessions.update_state(agent_id, "investigating", {"ticket": "T-1", "found": ["a", 2, None]}, root=root)
    gaia_sessions.update_state(agent_id, "approval", root=root)
    return agent_id


@pytest.fixture
def waiting(host: Host) -> str:
    return paused(host)


def context_of(record: Any) -> dict[str, object]:
    return {
        "previous_phase": record["phase"],
        "created_at": record["created_at"],
        "last_updated": record["last_updated"],
        "history": record["history"],
        "session_metadata": record["metadata"],
    }


def test_the_example_of_the_users_documents_works_as_written(host: Host, waiting: str) -> None:
    asked = '{"agent_name": "terraform-architect", "agent_id": "agent-123"}'
    line = f"echo '{asked}' | '{sys.executable}' '{SCRIPT}'"

    done = subprocess.run(line, shell=True, cwd=host.project, capture_output=True, text=True, check=True)  # noqa: S602

    assert done.stderr == ""
    assert list(json.loads(done.stdout).items()) == [
        ("should_resume", True),
        ("reason", "session_resumable"),
        ("agent_id", waiting),
        ("resume_metadata", context_of(host.record())),
        ("original_context", json.loads(asked)),
    ]


@table(("command", "key"), [("approve", "approval"), ("deny", "denial")])
@own_host
def test_the_resume_metadata_include_an_approval_or_a_denial(host: Host, command: str, key: str) -> None:
    waiting = paused(host)
    getattr(gaia_sessions.Sessions(str(host.root)), command)(waiting, "too dear")

    context = host.ask("pre_delegate", {"agent_id": waiting})["resume_metadata"]

    assert context == {**context_of(host.record()), key: host.record()[key]}
    assert context[key]["message"] == "too dear"


def test_a_session_written_as_in_the_documents_is_resumable(host: Host) -> None:
    created, updated = host.ago(minutes=10)[:19] + "Z", host.ago(minutes=5)[:19] + "Z"
    record = {
        "agent_id": "agent-20260108-180530-abc12345",
        "agent_name": "terraform-architect",
        "purpose": "approval_workflow",
        "created_at": created,
        "last_updated": updated,
        "phase": "approval",
        "metadata": {"task_id": "T001", "tags": ["terraform", "infrastructure"]},
        "resume_ready": True,
        "history": [
            {"from_phase": "initializing", "to_phase": "investigating", "timestamp": created},
            {"from_phase": "investigating", "to_phase": "approval", "timestamp": updated},
        ],
        "error_count": 0,
        "last_error": None,
    }
    folder = host.root / str(record["agent_id"])
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps(record, indent=2), encoding="utf-8")
    asked = {"agent_name": "terraform-architect", "agent_id": record["agent_id"], "task_id": "T001"}

    assert host.ask("pre_delegate", asked) == {
        "should_resume": True,
        "reason": "session_resumable",
        "agent_id": record["agent_id"],
        "resume_metadata": context_of(record),
        "original_context": asked,
    }


@table("asked", [{"agent_name": "x"}, {"agent_name": "x", "agent_id": None}, {}])
def test_a_request_without_an_id_answers_no_existing_session(host: Host, asked: dict[str, object]) -> None:
    assert host.ask("pre_delegate", asked) == refused("pre_delegate", asked, "no_existing_session")
    assert not host.root.exists()


DETAILS = {
    "not_found": {"agent_id": "agent-404"},
    "phase_not_resumable": {"phase": "executing"},
    "not_ready": {"resume_ready": False},
    "expired": {"last_updated": {"minutes": 31}},
    "clock_skew": {"last_updated": {"minutes": -6}},
    "too_many_errors": {"error_count": 3},
    "corrupt": {"history": "lost"},
    "running": {"runs": [{"run": 1, "host_agent_id": "a1"}]},
}


@table(("detail", "changes"), DETAILS.items())
@own_host
def test_the_answer_gives_the_reason_why_a_session_cannot_be_resumed(
    host: Host, detail: str, changes: dict[str, Any]
) -> None:
    waiting = paused(host)
    asked = {"agent_name": "terraform-architect", "agent_id": changes.get("agent_id", waiting)}
    if "last_updated" in changes:
        changes = {"last_updated": host.ago(**changes["last_updated"])}
    host.edit(waiting, **{key: value for key, value in changes.items() if key != "agent_id"})
    before = (host.root / waiting / "state.json").read_bytes()

    assert host.ask("pre_delegate", asked) == refused("pre_delegate", asked, "session_not_resumable", detail=detail)
    assert (host.root / waiting / "state.json").read_bytes() == before


def test_the_direct_form_uses_the_idle_and_error_limits_of_the_settings(host: Host, waiting: str) -> None:
    host.edit(waiting, last_updated=host.ago(minutes=31), error_count=3)
    settings = {"GAIA_SESSIONS_IDLE_MINUTES": "60", "GAIA_SESSIONS_MAX_ERRORS": "4"}

    assert host.ask("pre_delegate", {"agent_id": waiting}, settings)["reason"] == "session_resumable"


def test_a_check_changes_nothing_in_the_root(host: Host, waiting: str) -> None:
    before = host.tree(host.root)

    host.ask("pre_delegate", {"agent_id": waiting})

    assert host.tree(host.root) == before


def test_create_without_an_id_makes_a_session_with_a_generated_id(host: Host) -> None:
    asked = {"agent_name": "terraform-architect", "create": True, "metadata": {"ticket": "T-1"}}

    answer = host.ask("pre_delegate", asked)

    record = host.record()
    created = record["agent_id"]
    assert answer == refused("pre_delegate", asked, "no_existing_session", created_agent_id=created)
    made = whole(agent_name="terraform-architect", purpose="general", metadata={"ticket": "T-1"})
    assert host.timeless(record) == made


def test_create_with_a_free_id_makes_a_session_with_that_id(host: Host) -> None:
    asked = {"agent_id": "agent-wanted", "create": True}

    answer = host.ask("pre_delegate", asked)

    made = {"detail": "not_found", "created_agent_id": "agent-wanted"}
    assert answer == refused("pre_delegate", asked, "session_not_resumable", **made)
    assert host.record()["agent_name"] == "unknown"


def test_create_with_the_id_of_a_final_session_makes_a_new_session(host: Host, waiting: str) -> None:
    gaia_sessions.finalize_session(waiting, "failed", root=str(host.root))
    before = host.records()[waiting]

    created = host.ask("pre_delegate", {"agent_id": waiting, "create": True})["created_agent_id"]

    assert set(host.records()) == {waiting, created}
    assert host.records()[waiting] == before


def test_create_with_the_id_of_a_resumable_session_makes_no_session(host: Host, waiting: str) -> None:
    asked = {"agent_id": waiting, "create": True, "metadata": {"not": "kept"}}

    answer = host.ask("pre_delegate", asked)

    assert answer == {
        "should_resume": True,
        "reason": "session_resumable",
        "agent_id": waiting,
        "resume_metadata": context_of(host.record()),
        "original_context": asked,
    }


WRONG = {
    "agent_id: must be a string, not a number": {"agent_id": 5},
    "agent_id: must be a string, not an array": {"agent_id": ["agent-1"]},
    "agent_name: must be a string, not a boolean": {"agent_name": True},
    "the name of the agent is blank": {"create": True, "agent_name": " "},
    "create: must be true or false, not a string": {"create": "yes"},
    "metadata: must be an object, not an array": {"create": True, "metadata": [1]},
    "'../x' is not a session ID: has a character other than letters, digits, . _ -": {"agent_id": "../x"},
    "'' is not a session ID: empty": {"agent_id": ""},
}


@table(("error", "asked"), WRONG.items())
def test_a_request_with_a_wrong_value_is_refused_and_creates_nothing(
    host: Host, error: str, asked: dict[str, object]
) -> None:
    assert host.ask("pre_delegate", asked) == refused("pre_delegate", asked, "invalid_input", error=error)
    assert not host.root.exists()


def test_a_text_hook_event_name_does_not_make_a_request_a_host_payload(host: Host) -> None:
    asked = {"agent_name": "hook_event_name"}

    assert host.ask("pre_delegate", asked)["original_context"] == asked


def test_a_check_does_not_wait_for_a_held_lock(host: Host, waiting: str) -> None:
    with host.held(waiting):
        assert host.ask("pre_delegate", {"agent_id": waiting})["reason"] == "session_resumable"


def test_every_call_leaves_one_line_in_the_log(host: Host, waiting: str) -> None:
    host.ask("pre_delegate", {"agent_id": waiting})
    host.ask("pre_delegate", {"agent_id": "agent-404", "metadata": {"secret": "hunter2"}})
    host.ask("pre_delegate", {"agent_id": "../x"})

    lines = host.timeless(host.log("pre_delegate"))
    assert all(line.pop("ms") >= 0 for line in lines)
    assert lines == [
        {"at": "TIME", "event": "direct", "decision": "session_resumable", "session": waiting},
        {"at": "TIME", "event": "direct", "decision": "session_not_resumable", "session": "agent-404"},
        {
            "at": "TIME",
            "decision": "error",
            "error": "'../x' is not a session ID: has a character other than letters, digits, . _ -",
        },
    ]
