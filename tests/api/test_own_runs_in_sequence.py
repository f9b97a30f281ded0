"""Random sequences of steps with runs of commands: one agent at a time, no end is undone, no message is lost."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gaia_sessions.api import answering, own_runs, updating
from gaia_sessions.api.cancelling import mark_cancelled
from gaia_sessions.api.reconciling import close_runs
from gaia_sessions.errors import Cancelled, Conflict, RunNotAllowed
from gaia_sessions.session.own_runs import CAUSES, RunEnd
from gaia_sessions.session.phases import OUTCOMES, PHASES, RESUMABLE, is_final
from gaia_sessions.session.requests import Start
from gaia_sessions.session.schema import LOST
from gaia_sessions.system import utc_now
from gaia_sessions.system.processes import describe
from tests.memory_store import MemoryStore
from tests.places import writing

HERE: Any = describe(os.getpid())
GONE: Any = {**HERE, "pid": 2**22 + 1}  # larger than every pid
MESSAGES = ["", "done", "[gaia-sessions: approval] may I?", "so far\n[gaia-sessions: planning] more", "\0\ud800"]
Number = st.integers(0, 3)


class CommandsAreRun(RuleBasedStateMachine):
    @initialize()
    def begin_store(self) -> None:
        self.store, self.now = MemoryStore(), utc_now()
        self.ids: list[str] = []
        self.said: dict[str, int] = {}
        self.finals: dict[str, str] = {}

    def tick(self) -> None:
        self.now += timedelta(seconds=1)

    def begin(self, start: Start, wrapper: Any) -> Any:
        self.tick()
        fields: Any = {"wrapper": wrapper, "timeout_secs": 600}
        return own_runs.begin(writing(self.store, self.now), start, fields)

    def chosen(self, number: int) -> str:
        return self.ids[number % len(self.ids)]

    @rule(wrapper=st.sampled_from([HERE, GONE]), below=st.none() | Number)
    def begin_new(self, wrapper: Any, below: int | None) -> None:
        parent_id = None if below is None or not self.ids else self.chosen(below)
        with suppress(Cancelled, Conflict):
            self.ids.append(self.begin(Start(parent_id=parent_id), wrapper).record["agent_id"])

    @precondition(lambda self: self.ids)
    @rule(number=Number, wrapper=st.sampled_from([HERE, GONE]), is_continued=st.booleans())
    def go_on(self, number: int, wrapper: Any, *, is_continued: bool) -> None:
        agent_id = self.chosen(number)
        before = self.store.read(agent_id)
        open_runs = [run for run in before["runs"] if "ended_at" not in run]
        is_lost = any(run["wrapper"] == GONE for run in open_runs)
        refused, begun = None, None
        try:
            begun = self.begin(Start(continues=agent_id) if is_continued else Start(agent_id), wrapper)
        except (Cancelled, Conflict) as error:
            refused = error
        after = self.store.read(agent_id)
        if begun is None:
            assert after == before or (is_lost and isinstance(refused, RunNotAllowed))
        elif is_continued:
            assert is_final(after["phase"])
            self.ids.append(begun.record["agent_id"])
        else:
            assert before["phase"] in RESUMABLE
            assert not open_runs or is_lost
            assert (begun.record["phase"], "ended_at" in begun.run) == ("executing", False)

    @precondition(lambda self: self.ids)
    @rule(
        number=Number,
        cause=st.sampled_from(CAUSES),
        code=st.sampled_from([0, 3, 137, None]),
        message=st.sampled_from(MESSAGES),
    )
    def end(self, number: int, cause: str, code: int | None, message: str) -> None:
        """Ends the last run, also if its wrapper is gone or the run has already ended."""
        self.tick()
        agent_id = self.chosen(number)
        run = self.store.read(agent_id)["runs"][-1]
        has_ended = "ended_at" in run and run["end"] != LOST
        if not has_ended and run.get("end") == LOST:
            self.finals.pop(agent_id, None)  # an outcome that only followed from the loss

        after, _, _ = own_runs.end(writing(self.store, self.now), agent_id, run, RunEnd(cause, code, message))

        self.said[agent_id] = self.said.get(agent_id, 0) + bool(message and not has_ended)
        assert after["runs"][-1].get("end") not in (None, LOST)
        assert not has_ended or after["runs"][-1] == run

    @precondition(lambda self: self.ids)
    @rule(number=Number, what=st.sampled_from([*PHASES, "approve", "deny", "cancel", "cancel only"]))
    def somebody_acts(self, number: int, what: str) -> None:
        self.tick()
        agent_id = self.chosen(number)
        with suppress(Cancelled, Conflict):
            if what.startswith("cancel"):
                mark_cancelled(self.store, self.now, agent_id, None, below=what == "cancel")
            elif what in OUTCOMES:
                updating.finalize(writing(self.store, self.now), agent_id, what)
            elif what in PHASES:
                updating.update(writing(self.store, self.now), agent_id, what)
            else:
                key: Any = {"approve": "approval", "deny": "denial"}[what]
                answering.answer(writing(self.store, self.now), agent_id, key, "a note", None, by="command")

    @rule()
    def judge(self) -> None:
        self.tick()
        close_runs(self.store, self.now)
        for agent_id in self.ids:
            record = self.store.read(agent_id)
            lost = [run for run in record["runs"] if "ended_at" not in run and run["wrapper"] == GONE]
            assert lost == [] or is_final(record["phase"])  # runs of final sessions are not judged

    @invariant()
    def nothing_contradicts_itself(self) -> None:
        for agent_id in getattr(self, "ids", []):
            record = self.store.read(agent_id)
            runs = record["runs"]
            assert [run["run"] for run in runs] == [*range(1, len(runs) + 1)]
            assert all("ended_at" in run for run in runs[:-1])
            assert len(list(self.store.messages(agent_id))) == self.said.get(agent_id, 0)
            if is_final(record["phase"]):
                assert self.finals.setdefault(agent_id, record["phase"]) == record["phase"]
            else:
                assert agent_id not in self.finals


TestCommandsAreRun = CommandsAreRun.TestCase
TestCommandsAreRun.settings = settings(stateful_step_count=30)
