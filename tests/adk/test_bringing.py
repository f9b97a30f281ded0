"""The recipe of docs/adk.md copies sessions from other services of ADK, and only what is missing here."""

from __future__ import annotations

import asyncio
import re
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib.util import find_spec
from io import StringIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from gaia_sessions import Sessions
from gaia_sessions.adk import GaiaSessionService
from gaia_sessions.store import documents
from tests.adk.parts import Adk, on_both, run, said
from tests.cli.conftest import everything_in, ids_in
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.sessions import BaseSessionService

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adk.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
[RECIPE] = [block for block in BLOCKS if "def bring" in block]
FUNCTIONS = RECIPE.rpartition("\n\n\n")[0]
SHARED = ("app:", "user:")
IN_BOTH = "ValueError('it went on in both services, and stays as it is here')"


class Old(Adk):
    """The service whose sessions are copied."""

    def __init__(self, service: BaseSessionService) -> None:
        self.service: Any = service


def execute(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102  # the code of the page
    return names


def bring(old: Old, root: str, times: int = 1) -> list[str]:
    """What the recipe prints; it runs ``times`` times at once."""
    bring_all = execute(FUNCTIONS)["bring_all"]

    async def at_once() -> None:
        new = GaiaSessionService(root=root)
        await asyncio.gather(*(bring_all(old.service, new, "app") for _ in range(times)))

    with redirect_stdout(StringIO()) as told:
        run(at_once())
    return told.getvalue().splitlines()


async def fill(service: BaseSessionService) -> None:
    """Two sessions of one user and an empty session of another user.

    The first session has the newest event; the second session wrote ``app:count`` last.
    """
    create = partial(service.create_session, app_name="app")
    first = await create(user_id="u1", session_id="s/1", state={"intent": "create", "n": -1, "app:motd": "hi"})
    second = await create(user_id="u1", session_id="s2", state={"user:language": "de", "user:theme": None})
    await create(user_id="u2", session_id="quiet", state={"k": [1, {"a": None}], "user:language": "fr"})
    for number in range(2):
        question = said(f"question {number}", at=1700000000.25 + number, n=number, app__count=number)
        await service.append_event(first, question)
        answer = said("\x1b[2J answer", at=1700000000.5 + number, user__level=number, answered={"by": number})
        answer.author = "agent"
        await service.append_event(first, answer)
    await service.append_event(second, said("counted", at=1600000000.0, app__count=9))


@pytest.fixture
def old(tmp_path: Path) -> Old:
    service = SqliteSessionService(str(tmp_path / "session.db"))
    run(fill(service))
    return Old(service)


@pytest.fixture
def another(tmp_path: Path) -> Callable[[], str]:
    """Gives a new empty root each time."""
    numbers = count()
    return lambda: str(tmp_path / "roots" / str(next(numbers)))


async def as_read(service: BaseSessionService) -> list[dict[str, Any]]:
    """Every session of the app as a program reads it; events without app and user keys."""
    found = []
    for one in (await service.list_sessions(app_name="app")).sessions:
        session = await service.get_session(app_name="app", user_id=one.user_id, session_id=one.id)
        assert session is not None
        for event in session.events:
            delta = event.actions.state_delta
            event.actions.state_delta = {key: delta[key] for key in delta if not key.startswith(SHARED)}
        found.append({**session.model_dump(), "last_update_time": session.last_update_time if session.events else None})
    return sorted(found, key=lambda one: (one["user_id"], one["id"]))


def read(adk: Adk) -> list[dict[str, Any]]:
    return run(as_read(adk.service))


def test_the_recipe_copies_all_sessions_with_their_ids_states_and_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(".adk", "session.db")
    file.parent.mkdir()
    old = Old(SqliteSessionService(str(file)))
    run(fill(old.service))
    before = file.read_bytes()
    execute(RECIPE)
    adk = Old(GaiaSessionService())
    assert (read(adk), file.read_bytes()) == (read(old), before)
    assert [len(session["events"]) for session in read(adk)] == [4, 1, 0]
    shared = {"app:motd": "hi", "app:count": 9, "user:language": "de", "user:theme": None, "user:level": 1}
    assert adk.loaded("s/1").state == {"intent": "create", "n": 1, "answered": {"by": 1}, **shared}
    assert capsys.readouterr().out == "looked at 3 sessions of app\n"


@on_both
@pytest.mark.parametrize(
    "kind",
    [
        "memory",
        pytest.param(
            "database",
            marks=pytest.mark.skipif(not find_spec("sqlalchemy"), reason="needs SQLAlchemy for DatabaseSessionService"),
        ),
    ],
)
def test_the_recipe_copies_sessions_of_other_adk_services(root: str, tmp_path: Path, kind: str) -> None:
    async def move(old: BaseSessionService) -> None:
        await fill(old)
        await execute(FUNCTIONS)["bring_all"](old, GaiaSessionService(root=root), "app")
        assert await as_read(GaiaSessionService(root=root)) == await as_read(old)

    async def move_from_database() -> None:
        from google.adk.sessions import DatabaseSessionService

        async with DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path}/sessions.db") as old:
            await move(old)

    run(move(InMemorySessionService()) if kind == "memory" else move_from_database())


def test_a_second_copy_changes_nothing(root: str, old: Old) -> None:
    first = bring(old, root)
    before = everything_in(Path(root))
    assert (bring(old, root), everything_in(Path(root))) == (first, before)


class Interrupted(BaseException):
    """Ends a copy, as Ctrl-C does."""


def is_interrupted(monkeypatch: pytest.MonkeyPatch, old: Old, root: str, calls: int) -> bool:
    """Copies, with an interruption after ``calls`` changes; whether it was interrupted."""
    left = calls

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Interrupted
            return await real(*arguments, **named)

        return call

    with monkeypatch.context() as counting:
        for name in ("create_session", "append_event", "delete_session"):
            counting.setattr(GaiaSessionService, name, counted(getattr(GaiaSessionService, name)))
        with suppress(Interrupted):
            bring(old, root)
            return False
    return True


def test_the_next_copy_completes_an_interrupted_copy(
    monkeypatch: pytest.MonkeyPatch, old: Old, another: Callable[[], str]
) -> None:
    whole = another()
    bring(old, whole)
    for calls in count():
        root = another()
        if not is_interrupted(monkeypatch, old, root, calls):
            break
        bring(old, root)
        assert (calls, read(Adk(root)), ids_in(root)) == (calls, read(old), ids_in(whole))
    assert calls > 10  # three sessions, five events, and keys for two users


def test_the_next_copy_completes_a_copy_that_was_killed_before_it_replaced_shared_keys(
    monkeypatch: pytest.MonkeyPatch, root: str, old: Old
) -> None:
    def kill(_root: object, _documents: object, write: Callable[[], None], **_: object) -> None:
        write()
        raise Interrupted

    with monkeypatch.context() as killing:
        killing.setattr(documents, "replace_around", kill)
        with pytest.raises(Interrupted):
            bring(old, root)
    bring(old, root)
    assert (read(Adk(root)), len(ids_in(root))) == (read(old), 3)


@on_both
def test_two_copies_at_once_store_nothing_twice(root: str, old: Old) -> None:
    bring(old, root, times=2)
    bring(old, root)
    assert (read(Adk(root)), len(Sessions(root).store.ids())) == (read(old), 3)


def test_the_next_copy_adds_new_sessions_and_events_of_the_old_service(root: str, old: Old) -> None:
    bring(old, root)
    old.append(old.loaded("s/1"), said("later", n=9, user__new=1))
    old.append(old.loaded("quiet", "u2"), said("the first", user__new=2))
    old.create("s3", user="u3", k=3)
    bring(old, root)
    assert read(Adk(root)) == read(old)
    assert (Adk(root).loaded("s/1").state["n"], len(Adk(root).loaded("s/1").events)) == (9, 5)


def test_a_session_with_new_events_here_or_in_both_services_stays_unchanged(root: str, old: Old) -> None:
    bring(old, root)
    adk = Adk(root)
    adk.append(adk.loaded("s/1"), said("here", n=100))
    before = everything_in(Path(root))
    assert bring(old, root) == ["looked at 3 sessions of app"]
    assert everything_in(Path(root)) == before
    old.append(old.loaded("s/1"), said("there", n=200))
    for _ in range(2):
        assert bring(old, root) == [f"'s/1' of 'u1': {IN_BOTH}", "looked at 3 sessions of app"]
        assert everything_in(Path(root)) == before
    old.append(old.loaded("s2"), said("later"))
    bring(old, root)
    assert (len(adk.loaded("s/1").events), len(adk.loaded("s2").events)) == (5, 2)


def test_a_session_with_new_events_after_an_interrupted_copy_is_not_mixed(
    monkeypatch: pytest.MonkeyPatch, root: str, old: Old
) -> None:
    adk, calls = Adk(root), count()
    while not adk.get("s/1") or not adk.loaded("s/1").events:
        is_interrupted(monkeypatch, old, root, next(calls))
    adk.append(adk.loaded("s/1"), said("here"))
    assert bring(old, root) == [f"'s/1' of 'u1': {IN_BOTH}", "looked at 3 sessions of app"]
    assert [event.author for event in adk.loaded("s/1").events] == ["user", "agent", "user"]


@table("forgotten", [[], ["s2"], ["s/1", "s2", "quiet"]])
def test_app_and_user_keys_that_changed_here_stay(old: Old, another: Callable[[], str], forgotten: list[str]) -> None:
    """Also if a session is copied again, and no session is left that shows the keys."""
    root = another()
    bring(old, root)
    adk = Adk(root)
    adk.append(adk.loaded("s2"), said("here", app__motd="ours", app__count=100, user__language="en"))
    for session_id in forgotten:
        adk.delete(session_id, "u2" if session_id == "quiet" else "u1")
    old.append(old.loaded("s/1"), said("later", app__motd="theirs", app__count=10))
    bring(old, root)
    state = adk.loaded("s2").state
    assert (state["app:motd"], state["app:count"], state["user:language"]) == ("ours", 100, "en")
    assert adk.loaded("quiet", "u2").state["user:language"] == "fr"
    assert len(adk.loaded("s/1").events) == len(old.loaded("s/1").events)


def test_an_app_key_that_is_first_set_here_during_a_copy_stays(
    monkeypatch: pytest.MonkeyPatch, old: Old, another: Callable[[], str]
) -> None:
    append = GaiaSessionService.append_event
    for calls in count():
        root, left = another(), [calls]

        async def set_first(service: GaiaSessionService, *given: Any, root: str = root, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] == -1:
                other = GaiaSessionService(root=root)
                session = await other.create_session(app_name="app", user_id="u3")
                await append(other, session, said("here", app__motd="ours"))
            return await append(service, *given)

        with monkeypatch.context() as setting:
            setting.setattr(GaiaSessionService, "append_event", set_first)
            bring(old, root)
        if left[0] >= 0:
            break
        bring(old, root)
        assert (calls, Adk(root).loaded("s/1").state) == (calls, {**old.loaded("s/1").state, "app:motd": "ours"})
        assert (calls, len(ids_in(root))) == (calls, 4)
    assert calls == 7  # five events, and keys for two users


def corrupt(root: str, agent_id: str) -> None:
    Path(root, agent_id, "state.json").write_text("{", encoding="utf-8")


@table(
    ("change", "told"),
    [
        (lambda root, agent_id: Sessions(root).finalize(agent_id, "completed"), "SessionNotFoundError"),
        (lambda root, agent_id: Sessions(root).cancel(agent_id), "SessionNotFoundError"),
        (corrupt, "CorruptSession"),
    ],
)
def test_a_session_that_takes_no_events_here_is_named_and_the_others_are_copied(
    old: Old, another: Callable[[], str], change: Callable[[str, str], object], told: str
) -> None:
    root = another()
    bring(old, root)
    [agent_id] = [found for found in ids_in(root) if found.startswith("s2")]
    change(root, agent_id)
    before = everything_in(Path(root, agent_id))
    old.append(old.loaded("s2"), said("later"))
    old.append(old.loaded("s/1"), said("later"))
    [named, last] = bring(old, root)
    assert (named.startswith(f"'s2' of 'u1': {told}("), last) == (True, "looked at 3 sessions of app")
    assert everything_in(Path(root, agent_id)) == before
    assert len(Adk(root).loaded("s/1").events) == len(old.loaded("s/1").events)


def test_a_complete_session_that_has_ended_here_is_not_named(root: str, old: Old) -> None:
    bring(old, root)
    for agent_id in ids_in(root):
        Sessions(root).finalize(agent_id, "completed")
    before = everything_in(Path(root))
    assert (bring(old, root), everything_in(Path(root))) == (["looked at 3 sessions of app"], before)


def test_a_session_that_was_deleted_here_is_copied_again(root: str, old: Old) -> None:
    bring(old, root)
    Adk(root).delete("s/1")
    bring(old, root)
    assert read(Adk(root)) == read(old)


def test_another_session_with_the_same_id_stays_unchanged(root: str, old: Old) -> None:
    adk = Adk(root)
    adk.append(adk.create("s/1", plan="ours"), said("ours"))
    assert bring(old, root)[0] == f"'s/1' of 'u1': {IN_BOTH}"
    session = adk.loaded("s/1")
    assert (session.state["plan"], "n" in session.state, len(session.events)) == ("ours", False, 1)
    assert len(adk.loaded("s2").events) == 1


def test_a_session_is_copied_up_to_an_event_that_cannot_be_stored(root: str, old: Old) -> None:
    old.append(old.loaded("s/1"), said("x" * (9 << 20)))
    old.append(old.loaded("s/1"), said("behind it"))
    [named, _] = bring(old, root)
    assert named.startswith("'s/1' of 'u1': ValueError('a message of the transcript is over the limit")
    [first, *others], [before, *others_before] = read(Adk(root)), read(old)
    assert (others, first["events"]) == (others_before, before["events"][:4])


@table(("prefix", "named", "counts"), [("", ["s/1"], [1, 0]), ("app:", ["quiet", "s/1", "s2"], [5, 1, 0])])
def test_a_key_that_cannot_be_stored_blocks_no_other_session(
    another: Callable[[], str], prefix: str, named: list[str], counts: list[int]
) -> None:
    root, old = another(), Old(InMemorySessionService())
    run(fill(old.service))
    old.append(old.loaded("s/1"), said("hello", delta={prefix + "k" * 257: 1}))
    told = bring(old, root)
    assert sorted(line.partition(":")[0] for line in told[:-1]) == [
        f"'{name}' of 'u{1 + (name == 'quiet')}'" for name in named
    ]
    assert [len(session["events"]) for session in read(Adk(root))] == counts


def test_the_recipe_prints_names_without_control_characters(root: str, old: Old) -> None:
    old.create("\x1b[2Js", user="\x1b]0;u\x07")
    adk = Adk(root)
    bring(old, root)
    adk.append(adk.loaded("\x1b[2Js", "\x1b]0;u\x07"), said("here"))
    old.append(old.loaded("\x1b[2Js", "\x1b]0;u\x07"), said("there", delta={"\x1b": 1}))
    assert bring(old, root)[0] == rf"'\x1b[2Js' of '\x1b]0;u\x07': {IN_BOTH}"
