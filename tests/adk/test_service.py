"""The session service for Google ADK: what it stores, what it refuses, and when a session is stale."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions import Session
from google.genai import types

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService
from gaia_sessions.errors import SessionExists, StoreFailure
from gaia_sessions.jsonio.strict import DOCUMENT_LIMIT
from gaia_sessions.postgres.store import PostgresStore
from gaia_sessions.session.record import encode
from gaia_sessions.session.retention import ROOM_FOR_ENDS
from gaia_sessions.store.file_store import FileStore
from tests.adk.parts import Adk, run, said
from tests.commands import gaia
from tests.servers import empty_url, root_of, tables_of
from tests.table import table

NEEDLE = "what must be in no file"


on_files = pytest.mark.parametrize("root", ["files"], indirect=True)


@pytest.fixture(params=["files", "server"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return root_of(request.param, tmp_path)


@pytest.fixture
def adk(root: str) -> Adk:
    return Adk(root)


def texts(session: Session) -> list[str]:
    return [event.content.parts[0].text for event in session.events]  # type: ignore[union-attr, index, misc]  # a text


def only_line(root: str) -> dict[str, Any]:
    [line] = Sessions(root).list(app="app")
    return dict(line)


def is_on_server(root: str) -> bool:
    return "://" in root


def everything_in(root: str) -> str:
    if not is_on_server(root):
        return "".join(path.read_text(encoding="utf-8") for path in Path(root).rglob("*") if path.is_file())
    with psycopg.connect(root) as connection:
        tables = [psycopg.sql.Identifier("gaia_sessions", name) for name in tables_of(connection)]
        ask = psycopg.sql.SQL("SELECT t::text FROM {} t")
        return "".join(str(connection.execute(ask.format(table)).fetchall()) for table in tables)


def corrupt(root: str, agent_id: str) -> None:
    if not is_on_server(root):
        Path(root, agent_id, "state.json").write_text("{", encoding="utf-8")
        return
    with psycopg.connect(root) as connection:
        connection.execute("UPDATE gaia_sessions.session SET record = '{' WHERE id = %s", (agent_id,))


def test_a_session_loads_as_stored_and_gets_a_new_id_if_none_is_given(root: str, adk: Adk) -> None:
    session = adk.create(None, k=1, app__motd="hi", user__language="de")
    assert session.state == {"k": 1, "app:motd": "hi", "user:language": "de"}
    adk.append(session, said("hello", k=2))
    assert Adk(root).loaded(session.id) == session
    assert Sessions(root).store.read(session.id)["app"] == "app"
    assert adk.create(None).id != adk.create("  ").id != session.id


def test_app_and_user_keys_are_shared_by_prefix_and_outlive_their_session(adk: Adk) -> None:
    first = adk.create("s1")
    adk.append(first, said(plain=1, app__x=1, user__y=1))
    adk.create("s2", user="u2")
    assert adk.loaded("s2", user="u2").state == {"app:x": 1}
    adk.delete("s1")
    adk.delete("s1")  # deleting a missing session is no error
    assert (adk.get("s1"), adk.create("s1").state) == (None, {"app:x": 1, "user:y": 1})
    assert run(adk.service.get_user_state(app_name="app", user_id="u1")) == {"y": 1}
    assert run(adk.service.get_user_state(app_name="app", user_id="nobody")) == {}


def test_temp_and_secret_keys_reach_the_session_object_but_no_file(root: str, adk: Adk) -> None:
    session = adk.create("s1", temp__a=NEEDLE, secret__a=NEEDLE, kept="x")
    assert session.state == {"kept": "x"}
    event = adk.append(session, said("hello", temp__b=NEEDLE, secret__b=NEEDLE, plain=1))
    assert session.state == {"kept": "x", "plain": 1, "temp:b": NEEDLE, "secret:b": NEEDLE}
    assert event.actions.state_delta == {"plain": 1}
    assert Adk(root).loaded().state == {"kept": "x", "plain": 1}
    assert NEEDLE not in (found := everything_in(root))
    assert "plain" in found


def test_none_is_a_value_unless_none_clears_is_set(root: str, adk: Adk) -> None:
    session = adk.create("s1", intent="create", user__x=1)
    adk.append(session, said(intent=None, user__x=None))
    assert adk.loaded().state == session.state == {"intent": None, "user:x": None}
    clearing = Adk(root, none_clears=True)
    session = clearing.loaded()
    clearing.append(session, said(intent=None, user__x=None, missing=None))
    assert clearing.loaded().state == session.state == {}
    assert clearing.create("s2", a=None, b=1).state == {"b": 1}


def test_an_append_to_a_stale_session_raises_and_stores_nothing(adk: Adk) -> None:
    adk.create("s1", n=0, app__n=0)
    first, second = adk.loaded(), adk.loaded()
    adk.append(first, said("first", n=1, app__n=1))
    with pytest.raises(StaleSessionError, match="modified in storage"):
        adk.append(second, said("second", n=1, app__n=5, m=1))
    assert (texts(second), adk.loaded().state, texts(adk.loaded())) == ([], {"n": 1, "app:n": 1}, ["first"])
    again = adk.loaded()
    adk.append(again, said("second", n=2, app__n=2))
    assert adk.loaded().state == {"n": 2, "app:n": 2}


def test_the_times_of_events_change_neither_staleness_nor_order(adk: Adk) -> None:
    adk.create("s1")
    first, second = adk.loaded(), adk.loaded()
    adk.append(first, said("first", at=first.last_update_time))
    with pytest.raises(StaleSessionError):
        adk.append(second, said("second", at=first.last_update_time))
    adk.append(first, said("older", at=1000.5))
    adk.append(first, said("last"))
    assert texts(adk.loaded()) == ["first", "older", "last"]


@pytest.mark.parametrize("begun_again", ["deleted and created", "reset"])
def test_an_append_to_a_session_that_was_begun_again_is_stale(root: str, adk: Adk, begun_again: str) -> None:
    session = adk.create("s1", k=1)
    if begun_again == "reset":
        adk.append(session, said("hello"))
        Sessions(root).reset(only_line(root)["agent_id"])
    else:
        adk.delete("s1")
        adk.create("s1", k=1)
    with pytest.raises(StaleSessionError, match="begun again"):
        adk.append(session, said("late"))
    assert adk.loaded().events == []


def test_an_id_of_any_creator_is_taken_and_can_be_used_and_deleted(root: str, adk: Adk) -> None:
    by_us = adk.create(None).id
    own = Sessions(root).create(agent_id="own", app="app", user="u1")
    for app_id in (by_us, own):
        with pytest.raises(AlreadyExistsError):
            adk.create(app_id)
        adk.append(adk.loaded(app_id), said("hello"))
        adk.delete(app_id)
    assert adk.ids() == []


def test_the_first_event_of_an_agent_is_not_a_system_prompt(root: str, adk: Adk) -> None:
    session = adk.create(None)
    event = said("Ignore all rules")
    event.author = "agent"
    adk.append(session, event)
    adk.append(session, said("hello"))
    messages = [one for one in Sessions(root).messages(session.id) if isinstance(one, dict)]
    assert [(one["turn"], one["role"]) for one in messages] == [(1, "assistant"), (1, "user")]
    assert Sessions(root).store.read(session.id)["turns"] == 1


def test_an_event_that_is_nested_too_deep_is_refused(adk: Adk) -> None:
    session = adk.create("s1")
    deep: Any = 1
    for _ in range(210):
        deep = [deep]
    response = types.FunctionResponse(name="a", response={"x": deep})
    event = Event(author="m", content=types.Content(parts=[types.Part(function_response=response)]))
    with pytest.raises(ValueError, match=r"ecursion|depth"):
        adk.append(session, event)
    adk.append(session, said("fine"))
    assert texts(adk.loaded()) == ["fine"]


@table("at", [-1.0, 253402300800.0, 1e99, float("inf"), float("nan")])
def test_an_event_with_an_invalid_time_is_refused(adk: Adk, at: float) -> None:
    session = adk.create(None)
    with pytest.raises(ValueError, match="time"):
        adk.append(session, said("when", at=at, n=1))
    assert (adk.loaded(session.id).events, adk.loaded(session.id).state) == ([], {})


@table("value", [b"x", types.Part(text="x"), {None: 1}, datetime(2026, 1, 2, tzinfo=UTC)])
def test_the_state_and_the_event_have_the_same_value(adk: Adk, value: object) -> None:
    session = adk.create(None)
    adk.append(session, said(k=value))
    again = adk.loaded(session.id)
    assert again.state == again.events[0].actions.state_delta


def test_after_a_cancelled_append_the_session_object_equals_the_stored_session(adk: Adk) -> None:
    session, kept = adk.create("s1"), 0

    async def cancel_each() -> None:
        nonlocal kept
        for number in range(20):
            work = asyncio.create_task(adk.service.append_event(session, said(str(number), n=number)))
            await asyncio.sleep(number % 4 * 0.001)
            for _ in range(1 + number % 3):  # some frameworks cancel again until the task ends
                work.cancel()
                await asyncio.sleep(0)
            await asyncio.gather(work, return_exceptions=True)
            found = await adk.service.get_session(app_name="app", user_id="u1", session_id="s1")
            assert found is not None
            assert (found.events, found.state) == (session.events, session.state)
            kept = len(found.events)

    run(cancel_each())
    adk.append(session, said("last"))
    assert (len(adk.loaded().events), adk.loaded()) == (kept + 1, session)


@table("marker", ["", "1" * 5000, "x", "1.a.1"])
def test_a_session_with_an_unknown_storage_marker_is_stale(adk: Adk, marker: str) -> None:
    session = adk.create(None)
    session._storage_update_marker = marker
    with pytest.raises(StaleSessionError, match="load it with get_session"):
        adk.append(session, said("hello"))


def test_sessions_create_refuses_an_id_that_the_same_user_has_in_the_app(root: str, adk: Adk) -> None:
    adk.create("taken", k=1)
    with pytest.raises(SessionExists):
        Sessions(root).create(agent_id="taken", app="app", user="u1")
    Sessions(root).create(agent_id="taken", app="app", user="u2")
    assert (adk.loaded("taken").state, adk.loaded("taken", user="u2").state) == ({"k": 1}, {})


def test_a_load_does_not_mix_events_of_a_session_that_is_begun_again(
    root: str, adk: Adk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = adk.create("s1", v="old")
    adk.append(session, said("old"))
    kind: Any = PostgresStore if is_on_server(root) else FileStore
    messages = kind.messages_backwards

    def begin_again_first(store: Any, agent_id: str) -> Any:
        monkeypatch.setattr(kind, "messages_backwards", messages)
        other = Adk(root)
        other.delete("s1")
        other.append(other.create("s1", v="new"), said("new"))
        return messages(store, agent_id)

    monkeypatch.setattr(kind, "messages_backwards", begin_again_first)
    found = adk.loaded("s1")
    assert (texts(found), found.state) == (["new"], {"v": "new"})


def test_an_impossible_id_is_not_found_and_cannot_be_created(adk: Adk) -> None:
    for app_id in ("a\0b", "\ud800", ""):
        assert adk.get(app_id) is None
        adk.delete(app_id)
    for app_id in ("a\0b", "\ud800"):
        with pytest.raises(ValueError, match="session_id"):
            adk.create(app_id)


@on_files
@table("left", [0, 10, -1])
def test_a_session_with_lost_events_can_neither_be_loaded_nor_appended_to(root: str, adk: Adk, left: int) -> None:
    session = adk.create(None)
    adk.append(session, said("one"))
    adk.append(session, said("two"))
    file = Path(root, session.id, "transcript.jsonl")
    file.write_bytes(file.read_bytes()[:left])
    for _ in range(2):
        with pytest.raises(StoreFailure, match="messages are missing"):
            adk.append(session, said("three"))
        with pytest.raises(StoreFailure, match="messages are missing"):
            adk.get(session.id)


def test_a_session_that_cannot_be_read_can_be_deleted(root: str, adk: Adk) -> None:
    adk.create("s1")
    corrupt(root, only_line(root)["agent_id"])
    adk.delete("s1")
    assert adk.create("s1").id == "s1"


@pytest.mark.parametrize("change", ["a plain key", "a shared key", "an event of another"])
def test_only_an_unseen_change_of_the_state_or_the_events_makes_a_session_stale(
    root: str, adk: Adk, change: str
) -> None:
    session = adk.create("s1", n=0, user__n=0)
    agent_id = only_line(root)["agent_id"]
    Sessions(root).update(agent_id, metadata={"seen": "by a person"})
    Sessions(root).set_todos(agent_id, [{"description": "look", "status": "pending"}])
    adk.append(session, said("fine", n=1))
    if change == "a plain key":
        Sessions(root).change_state(agent_id, {"m": 1})
    elif change == "a shared key":
        adk.create("s2", user__n=7)
        adk.append(session, said("what is shared is not written", n=2))
    else:
        adk.append(adk.loaded(), said("from elsewhere"))
    with pytest.raises(StaleSessionError, match="Load it again with get_session"):
        adk.append(session, said("late", user__n=1))
    adk.append(adk.loaded(), said("in time", user__n=8))
    assert adk.loaded().state["user:n"] == 8


def test_a_session_restored_from_json_is_stale_and_a_deep_copy_is_not(adk: Adk) -> None:
    copied = Session.model_validate_json(adk.create("s1").model_dump_json())
    with pytest.raises(StaleSessionError, match="load it with get_session"):
        adk.append(copied, said("hello"))
    deep = adk.loaded().model_copy(deep=True)
    adk.append(deep, said("hello"))
    assert texts(adk.loaded()) == ["hello"]


def test_an_id_may_have_300_characters_of_any_kind_and_is_stripped(adk: Adk) -> None:
    ids = ["a/b", "../../etc/passwd", "é" * 300, "con", ".hidden", "a" * 300, "agent-20260101-000000-0123abcd"]
    for app_id in ids:
        assert adk.create(f" {app_id}\n").id == app_id
        assert adk.loaded(f"{app_id} ").id == app_id
        with pytest.raises(AlreadyExistsError):
            adk.create(app_id)
    assert sorted(adk.ids()) == sorted(ids)
    with pytest.raises(ValueError, match="1 to 300 characters"):
        adk.create("a" * 301)
    assert adk.get("a" * 301) is None
    assert adk.get(ids[-1], user="u2") is None


@table(
    ("app", "user", "named"), [("", "u", "app"), ("a", "", "user"), ("a ", "u", "app_name"), ("a", "x" * 301, "user")]
)
def test_an_invalid_name_of_an_app_or_a_user_is_refused(adk: Adk, app: str, user: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        adk.create("s1", user=user, app=app)
    assert (adk.get("s1", user, app), adk.ids(user, app)) == (None, [])


@table(
    ("key", "value"),
    [("zq", lambda: 1), ("zq", float("nan")), ("zq", 1 << 70), ("zq", "a\0b"), ("zq" * 200, 1), ("user:zq\n", 1)],
)
def test_an_invalid_state_entry_is_a_value_error_that_names_the_key(adk: Adk, key: str, value: object) -> None:
    session = adk.create(None, n=1)
    with pytest.raises(ValueError, match="zq"):
        adk.append(session, said("late", delta={"n": 2, key: value}))
    with pytest.raises(ValueError, match="zq"):
        run(adk.service.create_session(app_name="app", user_id="u1", state={key: value}))
    adk.append(session, said("fine", n=3))
    assert (texts(adk.loaded(session.id)), adk.loaded(session.id).state) == (["fine"], {"n": 3})
    assert adk.ids() == [session.id]
    adk.delete(session.id)


def test_events_can_be_loaded_by_number_and_by_time(adk: Adk) -> None:
    session = adk.create("s1")
    for number in range(5):
        adk.append(session, said(str(number), at=1000.0 + number))
    told = [texts(adk.loaded(num_recent_events=number)) for number in (0, 2, 9)]
    assert told == [[], ["3", "4"], ["0", "1", "2", "3", "4"]]
    assert texts(adk.loaded(after_timestamp=1003.0)) == ["3", "4"]
    assert texts(adk.loaded(after_timestamp=1001.0, num_recent_events=2)) == ["3", "4"]
    assert texts(adk.loaded(after_timestamp=2000.0)) == []
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        adk.get(num_recent_events=-1)


def test_a_partial_event_is_returned_and_not_stored(adk: Adk) -> None:
    session = adk.create("s1")
    event = Event(author="agent", partial=True)
    assert adk.append(session, event) is event
    assert (session.events, adk.loaded().events) == ([], [])


def test_a_session_that_has_ended_can_be_read_but_not_appended_to(root: str, adk: Adk) -> None:
    session = adk.create("s1", k=1)
    adk.append(session, said("hello"))
    cancelled = adk.create("s2")
    second, first = sorted([str(line["agent_id"]) for line in Sessions(root).list(app="app")], reverse=True)
    Sessions(root).finalize(first, "completed")
    Sessions(root).cancel(second)
    assert (adk.ids(), adk.ids(None), texts(adk.loaded("s1"))) == ([], [], ["hello"])
    for one in (session, cancelled, adk.loaded("s1")):
        with pytest.raises(SessionNotFoundError):
            adk.append(one, said("late"))
    with pytest.raises(AlreadyExistsError):
        adk.create("s1")
    adk.delete("s1")
    adk.delete("s2")
    assert [*Sessions(root).list(app="app")] == []
    with pytest.raises(SessionNotFoundError):
        adk.append(session, said("late"))


def test_the_transcript_has_all_events_and_each_user_message_begins_a_turn(root: str, adk: Adk) -> None:
    session = adk.create("s1")
    call = types.Part(function_call=types.FunctionCall(id="c1", name="create_domain", args={"name": "x"}))
    result = types.Part(function_response=types.FunctionResponse(id="c1", name="create_domain", response={"ok": True}))
    adk.append(session, said("Please create\na domain"))
    adk.append(session, Event(author="root", content=types.Content(role="model", parts=[call])))
    adk.append(session, Event(author="root", content=types.Content(role="user", parts=[result])))
    adk.append(session, Event(author="root", error_code="429", error_message="too\0 many"))
    adk.append(session, said("And another"))
    line = only_line(root)
    assert (line["purpose"], line["phase"], Sessions(root).store.read(line["agent_id"])["turns"]) == (
        "Please create a domain",
        "investigating",
        2,
    )
    messages = [one for one in Sessions(root).messages(line["agent_id"]) if isinstance(one, dict)]
    told = [
        (one["turn"], one["role"], one["content"], one.get("tool_name"), one.get("tool_call_id")) for one in messages
    ]
    assert told == [
        (1, "user", "Please create\na domain", None, None),
        (1, "assistant", '{"name": "x"}', "create_domain", "c1"),
        (1, "tool", '{"ok": true}', "create_domain", "c1"),
        (1, "assistant", "429: too\ufffd many", None, None),
        (2, "user", "And another", None, None),
    ]


@table("command", ["show", "report", "should-resume"])
def test_commands_say_that_the_app_resumes_the_session(root: str, adk: Adk, command: str) -> None:
    adk.append(adk.create(f"order {command}"), said("hello"))
    [agent_id] = [str(line["agent_id"]) for line in Sessions(root).list(app="app")]
    ended = gaia("--root", root, command, agent_id)
    told = (ended.out + ended.err).decode()
    resumes = "app resumes the session with the app's next event"
    assert [part in told for part in (resumes, "send", "resume order", "wait")] == [
        True,
        *[False] * 3,
    ]
    if command == "show":
        assert f"app        app, user u1; its ID there is order {command}\n" in told
    adk.delete(f"order {command}")


def test_concurrent_appends_to_one_session_object_are_all_stored(adk: Adk) -> None:
    session = adk.create("s1")

    async def add_all() -> None:
        events = (said(str(number), delta={f"k{number}": number}) for number in range(20))
        await asyncio.gather(*(adk.service.append_event(session, event) for event in events))

    run(add_all())
    assert sorted(map(int, texts(adk.loaded()))) == [*range(20)]
    assert adk.loaded() == session


def test_an_image_of_two_megabytes_is_stored_unchanged(adk: Adk) -> None:
    session = adk.create("s1")
    image = os.urandom(2_000_000)
    part = types.Part.from_bytes(data=image, mime_type="image/png")
    event = Event(
        author="user", content=types.Content(role="user", parts=[part]), custom_metadata={"nul": "\0", "n": 1 << 70}
    )
    adk.append(session, event)
    assert adk.loaded() == session
    [read] = adk.loaded().events
    assert read.content == event.content


def test_an_event_of_more_than_16_mib_is_refused_and_changes_nothing(adk: Adk) -> None:
    session = adk.create("s1")
    with pytest.raises(ValueError, match="over the limit of 16777216 bytes"):
        adk.append(session, said("x" * (17 << 20), n=1))
    assert (adk.loaded().events, adk.loaded().state) == ([], {})


@on_files
def test_events_can_be_appended_if_the_state_is_at_its_size_limit(root: str, adk: Adk) -> None:
    adk.append(adk.create("s1", notes=""), said("0"))
    size = len(encode(Sessions(root).store.read(only_line(root)["agent_id"])))
    state = {"notes": "x" * (DOCUMENT_LIMIT - ROOM_FOR_ENDS - size - 5)}
    adk.append(adk.loaded(), said("1", delta=state))
    with pytest.raises(ValueError, match="over the limit"):
        adk.append(adk.loaded(), said("more", n=1))

    session = adk.loaded()
    for number in range(2, 120):
        adk.append(session, said(str(number)))
    assert (texts(adk.loaded()), adk.loaded().state) == ([*map(str, range(120))], state)


def test_one_corrupt_session_does_not_fail_the_list(root: str, adk: Adk) -> None:
    adk.create("good")
    corrupt(root, adk.create(None).id)
    assert adk.ids() == adk.ids(None) == ["good"]


def test_a_datetime_and_a_model_are_stored_as_adk_writes_them(adk: Adk) -> None:
    session = adk.create("s1")
    adk.append(session, said(at_=datetime(2026, 1, 2, tzinfo=UTC), part=types.Part(text="x"), pair=(1, 2)))
    assert adk.loaded().state == {"at_": "2026-01-02T00:00:00Z", "part": adk.loaded().state["part"], "pair": [1, 2]}
    assert adk.loaded().state["part"]["text"] == "x"


@on_files
def test_a_list_of_sessions_rebuilds_an_incomplete_index(root: str, adk: Adk) -> None:
    adk.create("s1")
    Path(root, ".index", "complete").unlink()
    assert (adk.ids(), Path(root, ".index", "complete").exists()) == (["s1"], True)


@on_files
def test_the_setting_state_keys_limits_the_keys_of_the_state(root: str) -> None:
    Adk(root).create("first")
    Path(root, ".config.toml").write_text('[state.keys]\nintent = "str"\n', encoding="utf-8")
    adk = Adk(root)
    session = adk.create("s1", intent="x")
    for delta in ({"url": "x"}, {"intent": 1}):
        with pytest.raises(ValueError, match=next(iter(delta))):
            adk.append(session, said(delta=delta))
    assert adk.loaded().state == {"intent": "x"}


def test_on_a_server_the_settings_of_the_working_directory_limit_the_keys() -> None:
    settings = Path(".claude", "gaia-sessions.toml")
    settings.parent.mkdir()
    settings.write_text('[state.keys]\nintent = "str"\n', encoding="utf-8")
    adk = Adk(empty_url())
    with pytest.raises(ValueError, match="url"):
        adk.append(adk.create("s1", intent="x"), said(url="x"))


def test_the_sessions_class_reads_and_changes_what_the_service_stored(root: str, adk: Adk) -> None:
    session = adk.create(None, intent="create_domain")
    assert Sessions(root).state(session.id)["state"] == {"intent": "create_domain"}
    Sessions(root).change_state(session.id, {"url_type": "pdf"})
    assert adk.loaded(session.id).state == {"intent": "create_domain", "url_type": "pdf"}
    record = Sessions(root).store.read(session.id)
    assert (record["agent_name"], record["user"]) == ("app", "u1")


def test_the_default_root_is_below_the_working_directory() -> None:
    service = GaiaSessionService(agents_dir="/nowhere")
    run(service.create_session(app_name="app", user_id="u1"))
    assert service.root == os.path.join(os.getcwd(), ".adk", "gaia-sessions")
    assert Path(service.root).is_dir()
