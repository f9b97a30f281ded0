"""The shared state in Python: keys, their scopes, and ``ensure``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.errors import (
    Cancelled,
    CorruptSession,
    DurabilityUnknown,
    InvalidInput,
    LockTimeout,
    RevisionChanged,
    SessionExists,
    SessionFinal,
    SessionNotFound,
    StoreFailure,
)
from gaia_sessions.session.trace import trace_of
from gaia_sessions.store import document_lock_key
from gaia_sessions.store.file_store import FileStore

HAND_OFF = {"intent": "create_domain", "domain_id": 7}
ALWAYS = {"user_id": "u1", "user_name": "Ada", "name_attempts": 1}


@pytest.fixture
def sessions(root: str) -> Sessions:
    return Sessions(root)


def state(sessions: Sessions, agent_id: str) -> dict[str, Any]:
    return dict(sessions.state(agent_id)["state"])


def test_another_process_reads_and_clears_keys_and_the_other_keys_stay(sessions: Sessions) -> None:
    agent_id = sessions.create("root", state=ALWAYS)
    sessions.change_state(agent_id, HAND_OFF)
    code = (
        "import sys, gaia_sessions; s = gaia_sessions.Sessions(sys.argv[1]); "
        "print(sorted(s.state(sys.argv[2])['state'])); s.change_state(sys.argv[2], unset=['intent', 'domain_id'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, sessions.root, agent_id], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{sorted({*ALWAYS, *HAND_OFF})}\n"
    assert state(sessions, agent_id) == ALWAYS
    assert "intent" not in Path(sessions.root, agent_id, "state.json").read_text(encoding="utf-8")


def test_creating_a_child_locks_shared_documents_before_the_parent(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the keys of the parent has the same order of locks; otherwise a deadlock is possible."""
    parent_id = sessions.create("root", app="kb", user="u1")
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "0")
    store = FileStore(sessions.root)
    document = store.lock_key(document_lock_key(("kb",)))
    with document, store.open(parent_id), pytest.raises(LockTimeout, match="document"):
        Sessions(sessions.root).create("below", parent_id=parent_id, app="kb", user="u1", state={"app:a": 1})


def test_one_change_sets_and_unsets_keys_in_one_revision(sessions: Sessions) -> None:
    agent_id = sessions.create("root", state={**ALWAYS, **HAND_OFF})
    before = sessions.state(agent_id)["revision"]
    told = sessions.change_state(agent_id, {"domain_result": "saved"}, unset=[*HAND_OFF])
    assert (told["state"], told["revision"]) == ({**ALWAYS, "domain_result": "saved"}, before + 1)


def test_app_and_user_keys_are_shared_by_prefix_and_outlive_sessions(sessions: Sessions) -> None:
    one = sessions.create(app="kb", user="u1", state={"app:motd": "hi", "user:lang": "de", "plain": 1})
    two, other = sessions.create(app="kb", user="u2"), sessions.create(app="else", user="u1")
    again = sessions.create(app=" kb ", user="u1")
    assert state(sessions, two) == {"app:motd": "hi"}
    assert state(sessions, again) == {"app:motd": "hi", "user:lang": "de"}
    assert state(sessions, other) == {}
    sessions.change_state(two, {"app:motd": "ho", "user:lang": "en"})
    assert state(sessions, one) == {"app:motd": "ho", "user:lang": "de", "plain": 1}
    sessions.remove([one, two, again], force=True)
    sessions.cleanup(0, app="kb")
    assert state(sessions, sessions.create(app="kb", user="u1")) == {"app:motd": "ho", "user:lang": "de"}


def test_temp_and_secret_keys_are_refused_and_reach_no_file(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1")
    for key in ("temp:needle", "secret:needle"):
        with pytest.raises(InvalidInput):
            sessions.create(app="kb", user="u1", state={key: "needle"})
        with pytest.raises(InvalidInput):
            sessions.change_state(agent_id, {key: "needle", "user:x": "needle"})
    files = [path for path in Path(sessions.root).rglob("*") if path.is_file()]
    assert [path for path in files if "needle" in path.read_text("utf-8", "replace")] == []


def test_a_refused_delta_changes_no_key_of_any_scope(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"app:n": "text", "a": 1, "user:b": 1})
    before = sessions.state(agent_id)
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (InvalidInput, {"set": {"a": 2, "user:b": 2}, "add": {"app:n": 1}}),
        (InvalidInput, {"set": {"user:b": 2}, "add": {"a": 1, "x": 0.5}}),
        (RevisionChanged, {"set": {"a": 2, "app:n": 2, "user:b": 2}, "if_revision": before["revision"] + 1}),
    ]
    for error, words in refused:
        with pytest.raises(error):
            sessions.change_state(agent_id, **words)
        assert sessions.state(agent_id) == before
    sessions.finalize(agent_id, "completed")
    with pytest.raises(SessionFinal):
        sessions.change_state(agent_id, {"app:n": 2})
    assert state(sessions, agent_id) == before["state"]


def test_an_unreadable_shared_document_is_named_and_stays_unchanged(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"a": 1, "app:b": 2})
    file = Path(sessions.root, ".shared", "app-kb.json")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(StoreFailure, match=r"app-kb\.json: cannot read"):
        sessions.state(agent_id)
    with pytest.raises(StoreFailure, match=r"app-kb\.json: cannot read"):
        sessions.change_state(agent_id, {"a": 2, "app:b": 3})
    assert (file.read_text(encoding="utf-8"), sessions.store.read(agent_id)["session_state"]) == ("{", {"a": 1})
    assert sessions.store.read(agent_id)["revision"] == 1


def test_ensure_returns_an_open_session_and_continues_one_that_has_ended(sessions: Sessions) -> None:
    first = sessions.ensure(agent_name="root", app="kb", user="u1", state={"user_id": "u1", "app:x": 1})
    assert sessions.ensure(first) == first
    sessions.finalize(first, "completed")
    second = sessions.ensure(first)
    record = sessions.store.read(second)
    told = (record["continues"], record["agent_name"], record["app"], record["user"])
    assert (told, state(sessions, second)) == ((first, "root", "kb", "u1"), {"app:x": 1})
    sessions.cancel(second)
    third = sessions.ensure(second)
    assert (sessions.store.read(third)["continues"], sessions.store.read(second)["phase"]) == (second, "abandoned")
    assert sessions.cancellation(third) is None
    assert len({first, second, third, sessions.ensure()}) == 4


def test_ensure_refuses_an_unknown_id_and_create_a_taken_or_padded_one(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFound):
        sessions.ensure("nobody")
    assert [*sessions.list()] == []
    sessions.create(agent_id="own")
    with pytest.raises(SessionExists):
        sessions.create(agent_id="own", state={"a": 1})
    with pytest.raises(InvalidInput):
        sessions.create(agent_id="own ")


def test_a_change_fails_if_a_shared_document_beside_it_cannot_be_read(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"user:x": 1})
    Path(sessions.root, ".shared", "user-kb.u1.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreFailure):
        sessions.change_state(agent_id, add={"n": 1})
    assert "session_state" not in sessions.store.read(agent_id)


def test_a_document_under_the_name_of_another_user_is_refused(sessions: Sessions) -> None:
    one = sessions.create(app="kb", user="u1", state={"user:x": 1})
    sessions.create(app="kb", user="u2", state={"user:needle": 1})
    shared = Path(sessions.root, ".shared")
    (shared / "user-kb.u2.json").replace(shared / "user-kb.u1.json")
    with pytest.raises(StoreFailure, match="does not match its scope"):
        sessions.state(one)


def test_ensure_refuses_a_session_of_another_app_or_user(sessions: Sessions) -> None:
    agent_id = sessions.ensure(app="kb", user="u1")
    assert sessions.ensure(agent_id, app="kb", user="u1") == sessions.ensure(agent_id) == agent_id
    for app, user in (("kb", "u2"), ("other", "u1")):
        with pytest.raises(InvalidInput, match="does not belong to this app and user"):
            sessions.ensure(agent_id, app=app, user=user)


def test_a_session_that_ended_before_a_cancellation_counts_as_final(sessions: Sessions) -> None:
    top = sessions.create()
    below = sessions.create(parent_id=top, state={"a": 1})
    sessions.finalize(below, "completed")
    sessions.cancel(top)
    with pytest.raises(SessionFinal):
        sessions.change_state(below, {"a": 2})


def test_the_state_of_a_cancelled_session_cannot_be_changed(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"a": 1, "app:b": 1})
    sessions.cancel(agent_id)
    with pytest.raises(Cancelled):
        sessions.change_state(agent_id, {"a": 2, "app:b": 2})
    assert state(sessions, agent_id) == {"a": 1, "app:b": 1}


def test_sessions_of_an_app_are_listed_and_cleaned_up_only_by_its_name(sessions: Sessions) -> None:
    mine, plain = sessions.create(app="kb", user="u1"), sessions.create()
    other = sessions.create(app="else", user="u1")

    def ids(**wanted: Any) -> list[str]:
        return [line["agent_id"] for line in sessions.list(**wanted)]

    assert (ids(), ids(app="kb"), ids(app="else"), ids(app="none")) == ([plain], [mine], [other], [])
    sessions.update(mine, "approval")
    sessions.update(plain, "approval")
    asking = [[(one["agent_id"], one.get("app")) for one in sessions.pending(app)] for app in (None, "kb", "else")]
    assert asking == [[(mine, "kb"), (plain, None)], [(mine, "kb")], []], "who waits for a person is left out nowhere"
    for agent_id in (mine, plain, other):
        sessions.finalize(agent_id, "completed")
    cleaned = sessions.cleanup(0)
    assert (cleaned["removed"], cleaned["left_out"]) == ([plain], {"kb": 1, "else": 1})
    cleaned = sessions.cleanup(0, app="kb")
    assert (cleaned["removed"], "left_out" in cleaned) == ([mine], False)
    assert ids(app="else") == [other]


def test_reports_lists_and_events_name_the_root_of_the_tree(sessions: Sessions) -> None:
    top = sessions.create(agent_id="top")
    below = sessions.create(parent_id=sessions.create(parent_id=top))
    trace = trace_of(top)
    assert len(trace["trace_id"]) == 32
    for told in (sessions.report(below), sessions.show(below), next(iter(sessions.list())), sessions.report(top)):
        assert {**told, **trace} == told
    sessions.update(below, "approval")
    sessions.approve(below)
    assert [isinstance(entry, dict) and entry["trace_id"] for entry in sessions.events(below)] == [trace["trace_id"]]
    assert "trace_id" not in Path(sessions.root, below, "state.json").read_text(encoding="utf-8")
    assert json.loads(Path(sessions.root, below, "events.jsonl").read_text(encoding="utf-8")).keys().isdisjoint(trace)


def test_an_import_copies_a_shared_document_only_if_there_is_none(sessions: Sessions, tmp_path: Path) -> None:
    elsewhere = Sessions(str(tmp_path / "elsewhere"))
    agent_id = elsewhere.create(app="kb", user="u1", state={"a": 1, "app:x": 1, "user:y": 1})
    sessions.create(app="kb", user="u2", state={"app:x": 2})
    assert sessions.import_from(elsewhere.root)["imported"] == [agent_id]
    assert state(sessions, agent_id) == {"a": 1, "app:x": 2, "user:y": 1}


def test_an_import_refuses_a_session_with_an_invalid_shared_document(sessions: Sessions, tmp_path: Path) -> None:
    elsewhere = Sessions(str(tmp_path / "elsewhere"))
    agent_id = elsewhere.create(app="kb", user="u1", state={"app:x": 1})
    file = Path(elsewhere.root, ".shared", "app-kb.json")
    file.write_text('{"scope": ["kb"], "revision": 1, "state": {"temp:x": 1}}', encoding="utf-8")
    [failed] = sessions.import_from(elsewhere.root)["failed"]
    assert (failed["agent_id"], "'app:temp:x' is never stored" in failed["detail"]) == (agent_id, True)
    assert [*sessions.list(app="kb")] == []


def test_a_record_with_an_app_and_no_user_is_corrupt(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"a": 1})
    file = Path(sessions.root, agent_id, "state.json")
    record = json.loads(file.read_bytes())
    del record["user"]
    file.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(CorruptSession, match="a record has an app and a user, or neither"):
        sessions.state(agent_id)


def test_a_failed_replacement_after_the_commit_raises_durability_unknown(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"n": 0, "app:n": 0, "user:n": 0})
    rename = os.rename

    def refused(source: str, target: str, **folders: Any) -> None:
        if target.startswith("app-"):
            raise OSError(5, "Input/output error")
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", refused)
    with pytest.raises(DurabilityUnknown, match=r"app-kb\.json: .* not replaced"):
        sessions.change_state(agent_id, add={"n": 1, "app:n": 1, "user:n": 1})
    monkeypatch.undo()
    assert state(sessions, agent_id) == {"n": 1, "app:n": 0, "user:n": 1}
    assert sorted(os.listdir(Path(sessions.root, ".shared"))) == ["app-kb.json", "user-kb.u1.json"]
