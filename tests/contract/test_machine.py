"""Random operations on the file store, the store in memory and a plan: all three must give the same results.

A new plan is made after an operation that a plan does not have. A dry run must report what the operation then does.
All stores share ``fit_record``, ``aliases_of`` and ``check_writable``, so this test finds no mistake in them.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gaia_sessions.api import cancelling, cleaning, reconciling, updating
from gaia_sessions.api.creating import store_new
from gaia_sessions.api.foresight import foreseen
from gaia_sessions.config import Config
from gaia_sessions.errors import SessionsError
from gaia_sessions.ingest.deferred import apply_deferred
from gaia_sessions.session import requests
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.record import new_record
from gaia_sessions.session.runs import delegation_alias
from gaia_sessions.session.transcript import after, new_message, with_message
from gaia_sessions.session.updates import Change
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.store.planned import Plan
from gaia_sessions.store.reading import EVENTS
from tests.examples import examples
from tests.memory_store import MemoryStore
from tests.places import writing
from tests.records import LIMITS, id_found
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record, Run
    from gaia_sessions.store.port import Store

    Act = Callable[[Store], object]

NAMES = ["Explore", "explore", "terraform architect/β"]
HOSTS = ["host-1", "host-2"]
TOOLS = ["toolu_1", "toolu_2", "toolu_3"]
CHILDREN = ["child-1", "child-2"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ANY_TEXT = st.one_of(TEXTS, st.just("NUL \0"), st.just("half \ud800"))
ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(1 << 64), 1 << 64), st.floats(), ANY_TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ENTRIES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(-1e9, 1e9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
METADATA = st.one_of(st.none(), st.dictionaries(TEXTS, ANY_JSON, max_size=3), st.just(["no object"]))
JUMPS = st.one_of(st.floats(0, 60), st.sampled_from([-1.0, -400.0, 0.0, 1799.0, 1800.0, 3600.0, 86_400.0]))
POOL = ["one", "One", "two", "agent.3", "no such session", "..", "con"]
IDS = st.sampled_from(POOL)
FINAL = {"completed", "failed", "abandoned"}
STEERING = "[\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
CONFIG = Config({})


def random_bytes_of(seed: int) -> Callable[[int], bytes]:
    """Returns a source of random bytes that is the same for every store."""
    numbers = count()
    return lambda size: sha256(f"{seed} {next(numbers)}".encode()).digest()[:size]


def outcome(act: Act, store: Store) -> tuple[str, object]:
    """Returns the result of ``act``, or its error with all fields except the path."""
    try:
        return "done", act(store)
    except SessionsError as error:
        fields = {name: value for name, value in vars(error).items() if name != "path"}
        return type(error).__name__, fields


def by_id(records: list[Record]) -> dict[str, Record]:
    """Returns ``records`` by their IDs, and checks that each occurs once."""
    found = {record["agent_id"]: record for record in records}
    assert len(found) == len(records)
    return found


def entry_of(record: Record) -> dict[str, Json]:
    """Returns a journal entry with the whole record."""
    return {"record": record}  # type: ignore[dict-item]  # a record is JSON


def written(record: object) -> bytes:
    """Returns the documented form of a file: plain JSON in which characters that steer a terminal are escaped."""
    text = json.dumps(record, indent=2, ensure_ascii=False)
    return (re.sub(STEERING, lambda found: f"\\u{ord(found[0]):04x}", text) + "\n").encode()


class Twins(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.files = FileStore(f"{self.folder}/root", durable=False)
        self.memory = MemoryStore()
        self.plan_above_memory()
        self.now = datetime(2026, 1, 8, 18, 5, 30, tzinfo=UTC)
        self.seeds = count()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule()
    def plan_above_memory(self) -> None:
        below = deepcopy(self.memory)
        self.plan: Any = Plan(below, below.waiting())

    def each(self, act: Act) -> None:
        in_files, in_memory = outcome(act, self.files), outcome(act, self.memory)
        assert in_files == in_memory
        assert outcome(act, self.plan) == in_memory

    def each_store(self, act: Act) -> None:
        """Runs an act that plans do not have."""
        assert outcome(act, self.files) == outcome(act, self.memory)
        self.plan_above_memory()

    @property
    def ids(self) -> list[str]:
        return sorted(agent_id for agent_id, _ in self.memory.scan())

    def any_id(self, chosen: str, number: int) -> str:
        """Returns an existing ID in most cases: only in this way do operations use generated IDs."""
        known = self.ids
        return known[number % len(known)] if known and number else chosen

    @initialize()
    def begin(self) -> None:
        now = self.now
        self.each(
            lambda store: store_new(store, now, random_bytes_of(0), requests.NewSession("Explore", "the first of all"))
        )

    @rule(jump=JUMPS)
    def time_passes(self, jump: float) -> None:
        self.now += timedelta(seconds=jump)

    @rule(chosen=st.one_of(IDS, st.none()), name=st.sampled_from(NAMES), purpose=ANY_TEXT, metadata=METADATA)
    def create(self, chosen: str | None, name: str, purpose: str, metadata: object) -> None:
        seed, now = next(self.seeds), self.now
        self.each(
            lambda store: store_new(
                store, now, random_bytes_of(seed), requests.NewSession(name, purpose, metadata, chosen)
            )
        )

    @rule(
        chosen=IDS,
        number=st.integers(0, 20),
        phase=st.one_of(st.none(), st.sampled_from(PHASES)),
        metadata=METADATA,
        error=st.one_of(st.none(), ANY_TEXT),
        ready=st.one_of(st.none(), st.booleans()),
        revision=st.one_of(st.none(), st.integers(-1, 1)),
    )
    def update(
        self,
        chosen: str,
        number: int,
        phase: str | None,
        metadata: object,
        error: str | None,
        ready: bool | None,  # noqa: FBT001  # drawn by name
        revision: int | None,
    ) -> None:
        agent_id, now = self.any_id(chosen, number), self.now
        if revision is not None and agent_id in self.ids:
            revision += self.memory.read(agent_id)["revision"]

        def act(store: Store) -> object:
            asked: Any = {"metadata": metadata, "error": error, "resume_ready": ready, "if_revision": revision}
            return updating.update(writing(store, now), agent_id, phase, **asked).record

        self.each(act)

    @rule(
        chosen=IDS,
        number=st.integers(0, 20),
        outcome=st.sampled_from(["completed", "failed", "abandoned", "approval", "unheard of"]),
        summary=st.one_of(st.none(), ANY_TEXT),
        error=st.one_of(st.none(), ANY_TEXT),
    )
    def finalize(self, chosen: str, number: int, outcome: str, summary: str | None, error: str | None) -> None:
        agent_id, now = self.any_id(chosen, number), self.now

        def act(store: Store) -> object:
            return updating.finalize(writing(store, now), agent_id, outcome, summary, error=error).record

        self.each(act)

    @rule(chosen=IDS, number=st.integers(0, 20), reason=st.one_of(st.none(), ANY_TEXT), below=st.booleans())
    def cancel(self, chosen: str, number: int, reason: str | None, below: bool) -> None:  # noqa: FBT001  # drawn by name
        agent_id, now = self.any_id(chosen, number), self.now
        self.each(lambda store: cancelling.mark_cancelled(store, now, agent_id, reason, below=below))

    @rule(chosen=IDS, number=st.integers(0, 20))
    def ask_whether_it_is_cancelled(self, chosen: str, number: int) -> None:
        agent_id = self.any_id(chosen, number)
        self.each(lambda store: cancelling.cancellation_and_above(store, agent_id))

    @rule(hours=st.sampled_from([0, 0.01, 0.5, 1, 24, -1]))
    def clean_up(self, hours: float) -> None:
        now = self.now

        def clean(store: Store) -> object:
            report = cleaning.remove_unused(store, cleaning.CleanupPolicy(now, hours, LIMITS, keep_days=7))
            return {**report, "removed": sorted(report["removed"]), "kept": sorted(report["kept"], key=str)}

        self.foresee_and_do(clean)

    @rule()
    def reconcile(self) -> None:
        now = self.now

        def close(store: Store) -> object:
            report = reconciling.close_runs(store, now)
            return {**report, "verdicts": sorted(report["verdicts"], key=str), "kept": sorted(report["kept"], key=str)}

        self.foresee_and_do(close)

    def foresee_and_do(self, act: Act) -> None:
        """Checks that a dry run reports and leaves the same as the act does after waiting events are applied."""
        done = []
        for store in (self.files, self.memory):
            plan: Any = foreseen(store, self.now, CONFIG)
            planned = outcome(act, plan)
            apply_deferred(store, self.now, CONFIG)
            done.append((planned, outcome(act, store)))
            assert planned == done[-1][1]
            assert dict(plan.scan()) == dict(store.scan())
            assert {one: dict(plan.marks([one])) for one in POOL} == {one: dict(store.marks([one])) for one in POOL}
            for agent_id in store.ids():
                assert list(plan.entries(agent_id, EVENTS)) == list(store.entries(agent_id, EVENTS))
        assert done[0] == done[1]
        self.plan_above_memory()

    @rule(chosen=IDS, number=st.integers(0, 20), entries=st.lists(ENTRIES, max_size=3))
    def append(self, chosen: str, number: int, entries: list[Any]) -> None:
        agent_id = self.any_id(chosen, number)
        self.each(lambda store: store.append(agent_id, "events.jsonl", entries))

    @rule(chosen=IDS, number=st.integers(0, 20), texts=st.lists(ANY_TEXT, max_size=3), turns=st.booleans())
    def add_messages(self, chosen: str, number: int, texts: list[str], turns: bool) -> None:  # noqa: FBT001  # drawn by name
        agent_id, now = self.any_id(chosen, number), self.now

        def turned(record: Record) -> Record:
            changed = with_message(record, now)
            return {**changed, "turns": record.get("turns", 0) + 1} if turns else changed

        messages = [new_message("user", text, now) for text in texts]
        self.each_store(lambda store: add_messages(store, agent_id, messages, turned))

    @rule(chosen=IDS, number=st.integers(0, 20))
    def empty_the_transcript(self, chosen: str, number: int) -> None:
        agent_id = self.any_id(chosen, number)
        self.each_store(lambda store: begin_anew(store, agent_id))

    @rule(agent_id=IDS, summary=ANY_TEXT)
    def defer(self, agent_id: str, summary: str) -> None:
        self.now += timedelta(microseconds=1)
        # The inbox sorts events by time, so no two events here have the same time.
        at = self.now = max(self.now, getattr(self, "deferred_at", self.now) + timedelta(microseconds=1))
        self.deferred_at = at
        event: Event = {"kind": "finalize", "at": format_time(at), "agent_id": agent_id, "summary": summary}

        def defer(store: Store) -> None:
            store.defer(event, at)  # each store gives the event its own name

        self.each_store(defer)

    @rule()
    def dismiss_the_oldest(self) -> None:
        for store in (self.files, self.memory, self.plan):
            for name, _ in list(store.deferred())[:1]:
                store.dismiss(name)

    @rule(chosen=IDS, host=st.sampled_from(HOSTS), tool=st.sampled_from(TOOLS), name=st.sampled_from(NAMES))
    def create_for_a_delegation(self, chosen: str, host: str, tool: str, name: str) -> None:
        run: Run = {"run": 1, "host_session_id": host, "tool_use_id": tool}
        record: Record = {**new_record(chosen, name, "reported by a host", {}, self.now), "runs": [run]}
        self.each(lambda store: store.create(record, entry_of(record)))

    @rule(host=st.sampled_from(HOSTS), tool=st.sampled_from(TOOLS), child=st.sampled_from(CHILDREN))
    def join_an_agent(self, host: str, tool: str, child: str) -> None:
        agent_id = id_found(self.memory, delegation_alias(host, tool))

        def join(record: Record) -> Change:
            joined: Record = {**record, "runs": [{**record["runs"][0], "host_agent_id": child}]}
            return Change(joined, [entry_of(joined)])

        if agent_id is not None:
            self.each(lambda store: store.change(agent_id, join))

    @rule(chosen=IDS, number=st.integers(0, 20), host=st.sampled_from(HOSTS), ended=st.booleans())
    def add_a_run(self, chosen: str, number: int, host: str, ended: bool) -> None:  # noqa: FBT001  # drawn by name
        agent_id, at = self.any_id(chosen, number), format_time(self.now)

        def with_another_run(record: Record) -> Record:
            ended_keys: Run = {"ended_at": at, "end": "stopped"} if ended else {}
            runs: list[Run] = [{**run, **ended_keys} for run in record.get("runs", [])]
            return {**record, "runs": [*runs, {"run": len(runs) + 1, "host_session_id": host}]}

        self.each(lambda store: store.change(agent_id, with_another_run))

    @rule(chosen=IDS, number=st.integers(0, 20), parent_id=IDS)
    def put_below(self, chosen: str, number: int, parent_id: str) -> None:
        agent_id = self.any_id(chosen, number)
        self.each(lambda store: store.change(agent_id, lambda record: {**record, "parent_id": parent_id}))

    @rule()
    def lose_and_rebuild_the_index(self) -> None:
        shutil.rmtree(f"{self.files.root}/.index", ignore_errors=True)
        self.files.close()
        self.files.ensure_index()

    @rule(host=st.sampled_from(HOSTS), key=st.sampled_from([*TOOLS, *CHILDREN]))
    def find(self, host: str, key: str) -> None:
        kind = "agent" if key in CHILDREN else "delegation"
        self.each(lambda store: id_found(store, (kind, (host, key))))

    @rule(chosen=IDS)
    def read(self, chosen: str) -> None:
        self.each(lambda store: store.read(chosen))

    @invariant()
    def every_record_is_the_same(self) -> None:
        assert dict(self.files.scan()) == dict(self.memory.scan())
        assert dict(self.plan.scan()) == dict(self.memory.scan())
        assert sorted(self.plan.ids()) == self.ids

    @invariant()
    def every_record_is_on_the_disk_in_one_form(self) -> None:
        on_disk = {path.parent.name: path.read_bytes() for path in Path(self.files.root).glob("[!.]*/state.json")}
        assert on_disk == {agent_id: written(record) for agent_id, record in self.memory.scan()}

    @invariant()
    def every_open_session_is_active_and_every_active_one_is_open(self) -> None:
        still_open = {
            agent_id
            for agent_id, found in self.memory.scan()
            if isinstance(found, dict) and found["phase"] not in FINAL
        }
        assert {agent_id for agent_id, _ in self.files.scan(active_only=True)} == still_open
        for name in NAMES:
            in_files = dict(self.files.scan(active_only=True, agent_name=name))
            assert in_files == dict(self.memory.scan(active_only=True, agent_name=name))
        for host in HOSTS:
            in_files = dict(self.files.scan(active_only=True, host_session_id=host))
            assert in_files == dict(self.memory.scan(active_only=True, host_session_id=host))

    @invariant()
    def every_session_has_the_same_children(self) -> None:
        parent_ids = {*POOL[:4], *self.ids}
        for asked in [[parent_id] for parent_id in parent_ids] + [list(parent_ids)]:
            for open_only in (False, True):
                in_memory = by_id(self.memory.children(asked, open_only=open_only))
                assert by_id(self.files.children(asked, open_only=open_only)) == in_memory
                assert by_id(self.plan.children(asked, open_only=open_only)) == in_memory

    @invariant()
    def every_journal_is_the_same(self) -> None:
        for agent_id in self.ids:
            in_files = list(self.files.entries(agent_id, "events.jsonl"))
            assert in_files == list(self.memory.entries(agent_id, "events.jsonl"))
            assert in_files == list(self.plan.entries(agent_id, "events.jsonl"))

    @invariant()
    def every_transcript_is_the_same(self) -> None:
        for agent_id in self.ids:
            in_memory = list(self.memory.messages(agent_id))
            behind_first = [message for message in in_memory if after(1)(message)]
            for store in (self.files, self.plan):
                assert list(store.messages(agent_id)) == in_memory
                assert list(store.messages_backwards(agent_id)) == in_memory[::-1]
                assert list(store.messages(agent_id, is_wanted=after(1))) == behind_first
                assert list(store.messages_from_turn(agent_id, 1)) == in_memory

    @invariant()
    def the_inbox_is_the_same(self) -> None:
        assert list(_events(self.files)) == list(_events(self.memory))
        assert list(_events(self.plan)) == list(_events(self.memory))
        assert [keys for _, keys in self.files.waiting()] == [keys for _, keys in self.memory.waiting()]
        assert [keys for _, keys in self.plan.waiting()] == [keys for _, keys in self.memory.waiting()]


def _events(store: Store) -> Iterator[object]:
    return (event for _, event in store.deferred())


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=examples(60),
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
