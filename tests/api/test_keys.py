"""What agents hand each other by Python: keys, scopes, and one id for a conversation."""

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


def test_what_a_root_agent_sets_another_process_reads_and_clears_and_the_rest_stays(sessions: Sessions) -> None:
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


def test_who_is_begun_below_a_parent_holds_its_documents_before_it_locks_the_parent(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever changes the keys of the parent does: else the two could wait for each other."""
    parent_id = sessions.create("root", app="kb", user="u1")
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "0")
    store = FileStore(sessions.root)
    document = store.lock_key(document_lock_key(("kb",)))
    with document, store.open(parent_id), pytest.raises(LockTimeout, match="document"):
        Sessions(sessions.root).create("below", parent_id=parent_id, app="kb", user="u1", state={"app:a": 1})


def test_confirming_records_the_result_in_the_same_step(sessions: Sessions) -> None:
    agent_id = sessions.create("root", state={**ALWAYS, **HAND_OFF})
    before = sessions.state(agent_id)["revision"]
    told = sessions.change_state(agent_id, {"domain_result": "saved"}, unset=[*HAND_OFF])
    assert (told["state"], told["revision"]) == ({**ALWAYS, "domain_result": "saved"}, before + 1)


def test_keys_of_an_app_and_of_a_user_are_shared_as_their_prefix_says_and_outlive_sessions(sessions: Sessions) -> None:
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


def test_what_is_never_stored_leaves_no_trace_on_the_disk(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1")
    for key in ("temp:needle", "secret:needle"):
        with pytest.raises(InvalidInput):
            sessions.create(app="kb", user="u1", state={key: "needle"})
        with pytest.raises(InvalidInput):
            sessions.change_state(agent_id, {key: "needle", "user:x": "needle"})
    files = [path for path in Path(sessions.root).rglob("*") if path.is_file()]
    assert [path for path in files if "needle" in path.read_text("utf-8", "replace")] == []


def test_a_delta_that_is_refused_changes_nothing_anywhere(sessions: Sessions) -> None:
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


def test_a_shared_document_that_cannot_be_read_is_named_and_keeps_what_it_has(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"a": 1, "app:b": 2})
    file = Path(sessions.root, ".shared", "app-kb.json")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(StoreFailure, match=r"app-kb\.json: cannot read"):
        sessions.state(agent_id)
    with pytest.raises(StoreFailure, match=r"app-kb\.json: cannot read"):
        sessions.change_state(agent_id, {"a": 2, "app:b": 3})
    assert (file.read_text(encoding="utf-8"), sessions.store.read(agent_id)["session_state"]) == ("{", {"a": 1})
    assert sessions.store.read(agent_id)["revision"] == 1


def test_ensure_goes_on_while_a_session_is_open_and_begins_one_that_continues_it_then(sessions: Sessions) -> None:
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


def test_an_id_that_is_no_session_is_never_adopted(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFound):
        sessions.ensure("nobody")
    assert [*sessions.list()] == []
    sessions.create(agent_id="own")
    with pytest.raises(SessionExists):
        sessions.create(agent_id="own", state={"a": 1})
    with pytest.raises(InvalidInput):
        sessions.create(agent_id="own ")


def test_a_shared_document_that_the_change_does_not_touch_is_read_before_it(sessions: Sessions) -> None:
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
    with pytest.raises(StoreFailure, match="has the name of another"):
        sessions.state(one)


def test_a_conversation_of_another_user_is_not_gone_on_with(sessions: Sessions) -> None:
    agent_id = sessions.ensure(app="kb", user="u1")
    assert sessions.ensure(agent_id, app="kb", user="u1") == sessions.ensure(agent_id) == agent_id
    for app, user in (("kb", "u2"), ("other", "u1")):
        with pytest.raises(InvalidInput, match="is not of this app and user"):
            sessions.ensure(agent_id, app=app, user=user)


def test_what_ended_before_it_was_cancelled_is_final_and_no_more(sessions: Sessions) -> None:
    top = sessions.create()
    below = sessions.create(parent_id=top, state={"a": 1})
    sessions.finalize(below, "completed")
    sessions.cancel(top)
    with pytest.raises(SessionFinal):
        sessions.change_state(below, {"a": 2})


def test_of_a_session_that_is_cancelled_nothing_is_changed(sessions: Sessions) -> None:
    agent_id = sessions.create(app="kb", user="u1", state={"a": 1, "app:b": 1})
    sessions.cancel(agent_id)
    with pytest.raises(Cancelled):
        sessions.change_state(agent_id, {"a": 2, "app:b": 2})
    assert state(sessions, agent_id) == {"a": 1, "app:b": 1}


def test_sessions_of_an_app_are_listed_and_cleaned_up_by_its_name_alone(sessions: Sessions) -> None:
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


def test_what_is_told_of_a_session_names_the_root_of_its_tree(sessions: Sessions) -> None:
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


def test_an_import_brings_what_was_shared_where_there_is_none(sessions: Sessions, tmp_path: Path) -> None:
    elsewhere = Sessions(str(tmp_path / "elsewhere"))
    agent_id = elsewhere.create(app="kb", user="u1", state={"a": 1, "app:x": 1, "user:y": 1})
    sessions.create(app="kb", user="u2", state={"app:x": 2})
    assert sessions.import_from(elsewhere.root)["imported"] == [agent_id]
    assert state(sessions, agent_id) == {"a": 1, "app:x": 2, "user:y": 1}


def test_an_import_takes_no_document_that_nobody_could_have_written(sessions: Sessions, tmp_path: Path) -> None:
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
    with pytest.raises(CorruptSession, match="an app and a user stand together"):
        sessions.state(agent_id)


def test_what_cannot_be_put_in_place_after_the_commit_is_no_refusal(
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
