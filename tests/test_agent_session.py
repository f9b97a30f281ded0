"""The two use cases and the sample of the users' own document.

The lines of the use cases are copied from it. If the document says that time passes, the record is aged.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gaia_sessions import (
    create_session,
    explain_resume,
    finalize_session,
    get_session,
    list_sessions,
    should_resume,
    update_state,
)
from gaia_sessions.session.clock import format_time, parse_time
from gaia_sessions.session.trace import trace_of

STORAGE = Path(".claude/session")

SAMPLE = """{
  "agent_id": "agent-20260108-180530-abc12345",
  "agent_name": "terraform-architect",
  "purpose": "approval_workflow",
  "created_at": "2026-01-08T18:05:30Z",
  "last_updated": "2026-01-08T18:10:15Z",
  "phase": "approval",
  "metadata": {
    "task_id": "T001",
    "tags": ["terraform", "infrastructure"]
  },
  "resume_ready": true,
  "history": [
    {
      "from_phase": "initializing",
      "to_phase": "investigating",
      "timestamp": "2026-01-08T18:06:00Z"
    },
    {
      "from_phase": "investigating",
      "to_phase": "approval",
      "timestamp": "2026-01-08T18:10:15Z"
    }
  ],
  "error_count": 0,
  "last_error": null
}
"""

SAMPLE_ID = "agent-20260108-180530-abc12345"


def pass_time(agent_id: str, **span: float) -> None:
    """Ages the session: every time in the record moves into the past."""
    path = STORAGE / agent_id / "state.json"
    record = json.loads(path.read_bytes())

    def earlier(text: str) -> str:
        return format_time(parse_time(text) - timedelta(**span))

    for key in ("created_at", "last_updated"):
        record[key] = earlier(record[key])
    for move in record["history"]:
        move["timestamp"] = earlier(move["timestamp"])
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def steps(record: Any) -> list[str]:
    return [record["history"][0]["from_phase"], *(move["to_phase"] for move in record["history"])]


def test_case_1_the_approval_workflow() -> None:
    # 1. Agente inicia tarea
    agent_id = create_session(
        agent_name="terraform-architect",
        purpose="approval_workflow",
        metadata={"task_id": "T001"}
    )  # fmt: skip

    # 2. Agente genera plan
    update_state(agent_id, phase="planning")

    # 3. Agente solicita aprobación
    update_state(agent_id, phase="approval")

    pass_time(agent_id, minutes=10)

    # 4. Pre-delegate hook check
    assert should_resume(agent_id)
    # Resume con contexto completo
    session = get_session(agent_id)
    # Agente continúa con session["history"] y session["metadata"]
    assert session is not None
    assert steps(session) == ["initializing", "planning", "approval"]
    assert session["metadata"] == {"task_id": "T001"}

    # 5. Agente ejecuta
    update_state(agent_id, phase="executing")

    # 6. Agente termina
    finalize_session(agent_id, outcome="completed", summary="Terraform applied successfully")

    ended = get_session(agent_id)
    assert ended is not None
    assert steps(ended) == ["initializing", "planning", "approval", "executing", "completed"]
    assert {key: ended[key] for key in ("agent_name", "purpose", "phase", "metadata", "resume_ready", "summary")} == {
        "agent_name": "terraform-architect",
        "purpose": "approval_workflow",
        "phase": "completed",
        "metadata": {"task_id": "T001"},
        "resume_ready": False,
        "summary": "Terraform applied successfully",
    }
    assert 600 <= ended["duration_seconds"] < 1800
    assert not should_resume(agent_id)


def test_case_2_the_investigation_over_several_turns() -> None:
    # Turn 1: Investigar problema
    agent_id = create_session(
        agent_name="gitops-operator",
        purpose="investigation"
    )  # fmt: skip
    update_state(agent_id, phase="investigating", metadata={"findings": ["issue A", "issue B"]})

    pass_time(agent_id, minutes=5)

    # Turn 2: Continuar investigación
    assert should_resume(agent_id)
    session = get_session(agent_id)
    assert session is not None
    previous_findings: Any = session["metadata"]["findings"]
    # Agente continúa desde donde dejó

    update_state(agent_id, metadata={"findings": previous_findings + ["issue C"]})  # noqa: RUF005  # theirs

    # Turn 3: Finalizar
    finalize_session(agent_id, outcome="completed")

    ended = get_session(agent_id)
    assert ended is not None
    assert ended["metadata"] == {"findings": ["issue A", "issue B", "issue C"]}
    assert (steps(ended), "summary" in ended) == (["initializing", "investigating", "completed"], False)
    assert 300 <= ended["duration_seconds"] < 1800


def size_of(agent_id: str) -> int:
    return sum(path.stat().st_size for path in (STORAGE / agent_id).iterdir())


def test_the_first_case_takes_1330_bytes_the_second_800_and_a_long_one_under_five_kilobytes() -> None:
    test_case_1_the_approval_workflow()
    test_case_2_the_investigation_over_several_turns()
    sizes = {line["purpose"]: size_of(line["agent_id"]) for line in list_sessions() if "problem" not in line}
    assert {purpose: round(size, -1) for purpose, size in sizes.items()} == {
        "approval_workflow": pytest.approx(1330, abs=20),
        "investigation": pytest.approx(800, abs=20),
    }

    agent_id = create_session("terraform-architect", "approval_workflow", {"task_id": "T001", "plan": "x" * 1000})
    for number in range(3):
        for phase in ("investigating", "planning", "approval", "executing"):
            update_state(agent_id, phase, {f"finding {number}": "a sentence or two about what was found"})
        update_state(agent_id, error="the provider refused the change: quota exceeded in this region")
    finalize_session(agent_id, "completed", "Terraform applied successfully after three attempts")
    assert 1000 <= size_of(agent_id) <= 5000


@pytest.fixture
def sample() -> Path:
    """The state.json of the document."""
    path = STORAGE / SAMPLE_ID / "state.json"
    path.parent.mkdir(parents=True)
    path.write_text(SAMPLE, encoding="utf-8")
    return path


def test_the_users_sample_is_read_unchanged(sample: Path) -> None:
    assert get_session(SAMPLE_ID) == {**json.loads(SAMPLE), "schema": 1, "revision": 0}
    assert sample.read_text(encoding="utf-8") == SAMPLE


@pytest.mark.usefixtures("sample")
def test_the_users_sample_is_listed() -> None:
    assert list(list_sessions(active_only=True, agent_name="terraform-architect")) == [
        {
            "agent_id": SAMPLE_ID,
            "agent_name": "terraform-architect",
            "purpose": "approval_workflow",
            "phase": "approval",
            "status": "active",
            "created_at": "2026-01-08T18:05:30Z",
            "last_updated": "2026-01-08T18:10:15Z",
            "resume_ready": True,
            "error_count": 0,
            "resume": {"should_resume": False, "reason": "expired", "until": None},
            "running": False,
            "state": "waiting",
            "state_since": "2026-01-08T18:10:15Z",
            **trace_of(SAMPLE_ID),
        }
    ]


def test_the_resume_check_works_on_the_users_sample(sample: Path) -> None:
    assert (explain_resume(SAMPLE_ID)["reason"], should_resume(SAMPLE_ID)) == ("expired", False)
    recent = datetime.now(UTC) - timedelta(minutes=4)
    sample.write_text(SAMPLE.replace("2026-01-08T18:10:15Z", f"{recent:%Y-%m-%dT%H:%M:%SZ}"), encoding="utf-8")
    assert (explain_resume(SAMPLE_ID)["reason"], should_resume(SAMPLE_ID)) == ("session_resumable", True)


@pytest.mark.usefixtures("sample")
def test_an_update_of_the_users_sample_keeps_its_other_fields() -> None:
    before = json.loads(SAMPLE)
    after: Any = update_state(SAMPLE_ID, phase="executing", metadata={"approved_by": "ana"})
    now = after["last_updated"]
    assert after == {
        **before,
        "last_updated": now,
        "phase": "executing",
        "metadata": {**before["metadata"], "approved_by": "ana"},
        "resume_ready": False,
        "history": [
            *before["history"],
            {"from_phase": "approval", "to_phase": "executing", "timestamp": now},
        ],
        "schema": 1,
        "revision": 1,
        "answers": [{"answer": "approved", "by": "update", "timestamp": now, "after_run": 0}],
    }
    assert list(after)[:11] == list(before)
    assert get_session(SAMPLE_ID) == after


def test_sessions_of_an_episode_are_found_by_since_and_until() -> None:
    agent_id = create_session("gitops-operator", "investigation")
    record = get_session(agent_id)
    assert record is not None
    begun = parse_time(record["created_at"])
    minute = timedelta(minutes=1)
    assert [line["agent_id"] for line in list_sessions(since=begun - minute, until=begun + minute)] == [agent_id]
    assert list(list_sessions(since=begun - 2 * minute, until=begun - minute)) == []


def test_list_around_an_episode_finds_an_overlapping_session_and_its_share() -> None:
    agent_id = create_session("gitops-operator", "investigation")
    finalize_session(agent_id, "completed")
    record = get_session(agent_id)
    assert record is not None
    begun = parse_time(record["created_at"])
    length = record["duration_seconds"]
    for timestamp, duration_seconds, share in [
        (begun, length, 1.0),
        (begun - timedelta(seconds=length), length * 3, 1 / 3),
        (begun - timedelta(seconds=300), 300.0, None),
        (begun + timedelta(seconds=length), 300.0, None),
    ]:
        episode: Any = {"timestamp": timestamp.isoformat(), "duration_seconds": duration_seconds}
        found: Any = list(list_sessions(around=(episode["timestamp"], episode["duration_seconds"])))
        assert {line["agent_id"]: line["overlap"]["share"] for line in found} == (
            {} if share is None else {agent_id: pytest.approx(share, rel=0.01)}
        )


def test_the_session_folder_is_ignored_by_git() -> None:
    create_session()
    assert Path(STORAGE, ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert os.listdir(".claude") == ["session"]
