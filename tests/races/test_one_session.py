"""Many processes change one session: no acknowledged change is lost, and one of several rivals wins."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gaia_sessions
from gaia_sessions.session.phases import OUTCOMES
from tests.table import table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Start = Callable[[Sequence[Sequence[object]]], Any]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine, no process gives up: these tests are not about fairness."""
    monkeypatch.setenv("GAIA_SESSIONS_LOCK_TIMEOUT", "120")


def record_of(root: str, agent_id: str) -> Any:
    """The record, which must be the same from the API and from its file."""
    record = gaia_sessions.get_session(agent_id, root=root)
    assert record == json.loads(Path(root, agent_id, "state.json").read_bytes())
    return record


def many(*sizes: tuple[int, int]) -> pytest.MarkDecorator:
    """A small race and a slow race, each with a number of processes and a number of times."""
    return pytest.mark.parametrize(("many", "times"), [sizes[0], pytest.param(*sizes[1], marks=pytest.mark.slow)])


@many((4, 10), (16, 40))
def test_no_acknowledged_update_is_lost_and_readers_never_see_an_older_revision(
    root: str, tmp_path: Path, race: Start, many: int, times: int
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)
    stop = tmp_path / "stop"

    writers = [("updates", root, agent_id, f"w{number}", times) for number in range(many)]
    running = race([*writers, *[("reads", root, agent_id, stop)] * 2])
    acknowledged = [key for keys in running.results(len(writers)) for key in keys]
    stop.touch()
    readers = running.results()[len(writers) :]

    record = record_of(root, agent_id)
    assert len(acknowledged) == many * times
    assert record["metadata"] == {key: int(key.rpartition(".")[2]) for key in acknowledged}
    assert record["revision"] == many * times + 1
    assert [reader["wrong"] for reader in readers] == [[], []]
    assert all(reader["count"] > 0 and 1 <= reader["seen"] <= many * times + 1 for reader in readers)


@pytest.mark.parametrize("many", [6, pytest.param(64, marks=pytest.mark.slow)])
def test_exactly_one_of_many_creators_of_an_id_wins_and_writes_the_record(root: str, race: Start, many: int) -> None:
    told = race([("creates", root, "wanted", f"c{number}") for number in range(many)]).results()

    assert Counter(told) == {"wanted": 1, "exists": many - 1}
    assert record_of(root, "wanted")["metadata"] == {"winner": f"c{told.index('wanted')}"}
    assert [line["agent_id"] for line in gaia_sessions.list_sessions(root=root)] == ["wanted"]
    assert list(Path(root, ".stage").iterdir()) == []


@pytest.mark.parametrize("many", [9, pytest.param(20, marks=pytest.mark.slow)])
def test_exactly_one_outcome_of_many_concurrent_finalizations_wins(root: str, race: Start, many: int) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)

    asked = [OUTCOMES[number % 3] for number in range(many)]
    told = race([("finalizes", root, agent_id, number, outcome) for number, outcome in enumerate(asked)]).results()

    record = record_of(root, agent_id)
    won = record["phase"]
    assert told == [outcome if outcome == won else f"final: {won}" for outcome in asked]
    assert won in OUTCOMES
    assert [move["to_phase"] for move in record["history"]] == [won]
    assert record["revision"] == 2
    assert asked[int(record["summary"].removeprefix("by "))] == won


@many((3, 20), (8, 100))
def test_e12_tokens_that_many_processes_charge_at_once_add_up_exactly(
    root: str, race: Start, many: int, times: int
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)

    told = race([("charges", root, agent_id, times)] * many).results()

    every = many * times
    assert sorted(tokens for process in told for tokens in process) == list(range(1, every + 1))
    record = record_of(root, agent_id)
    assert (record["charged_tokens"], record["revision"]) == (every, every + 1)
    assert gaia_sessions.Sessions(root).usage(agent_id)["tokens"] == every


@many((3, 30), (8, 200))
def test_exactly_one_process_updates_the_session_from_each_revision(
    root: str, race: Start, many: int, times: int
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)

    told = race([("compares_and_sets", root, agent_id, f"p{number}", times + 1) for number in range(many)]).results()

    record = record_of(root, agent_id)
    moved = sorted(revision for revisions in told for revision in revisions)
    assert moved == list(range(2, record["revision"] + 1))
    assert record["revision"] == times + 1
    by = {revision - 1: f"p{number}" for number, revisions in enumerate(told) for revision in revisions}
    assert record["metadata"] == {str(before): by[before] for before in range(1, times + 1)}


def answers_in_journal(root: str, agent_id: str) -> list[Any]:
    entries: list[Any] = [*gaia_sessions.Sessions(root).events(agent_id)]
    return [entry for entry in entries if entry["kind"] in ("approval", "denial")]


def test_the_last_of_many_concurrent_answers_holds_and_the_journal_has_all(root: str, race: Start) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)
    gaia_sessions.update_state(agent_id, "approval", root=root)

    told = race([("answers", root, agent_id, number) for number in range(12)]).results()

    record, entries = record_of(root, agent_id), answers_in_journal(root, agent_id)
    assert told == [str(number) for number in range(12)]
    assert [entry["revision"] for entry in entries] == list(range(3, 15))
    said: list[Any] = [(entry["kind"], entry["evidence"]["message"]) for entry in entries]
    assert sorted(said, key=lambda answer: int(answer[1])) == [
        ("denial" if number % 2 else "approval", str(number)) for number in range(12)
    ]
    held = {key: record[key]["message"] for key in ("approval", "denial") if key in record}
    assert held == {said[-1][0]: said[-1][1]}


@table("time", range(3))
def test_the_briefing_has_the_last_answer_before_the_claim_and_later_answers_are_refused(
    tmp_path: Path, race: Start, time: int
) -> None:
    root = str(tmp_path / str(time))
    agent_id = gaia_sessions.create_session("racer", root=root)
    gaia_sessions.update_state(agent_id, "approval", root=root)
    answering = [("answers", root, agent_id, number) for number in range(6)]

    *told, briefing = race([*answering, ("claims", root, agent_id)]).results()

    taken = answers_in_journal(root, agent_id)
    late = "somebody is about to resume it"
    assert sorted(entry["evidence"]["message"] for entry in taken) == [answer for answer in told if answer != late]
    assert set(told) <= {*map(str, range(6)), late}
    words = {"approval": "approved", "denial": "denied"}
    last = [f"| {words[entry['kind']]}: {entry['evidence']['message']}" for entry in taken[-1:]]
    assert [line for line in briefing.split("\n") if line.startswith(("| approved", "| denied"))] == last


@many((3, 20), (8, 100))
def test_journal_entries_that_many_processes_append_are_all_whole_and_in_order(
    root: str, race: Start, many: int, times: int
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)

    told = race([("appends", root, agent_id, str(number), times) for number in range(many)]).results()

    lines = Path(root, agent_id, "events.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    entries = [json.loads(line) for line in lines]
    assert told == [times] * many
    assert len(entries) == many * times
    for me in map(str, range(many)):
        mine = [entry for entry in entries if entry["by"] == me]
        assert [entry["number"] for entry in mine] == list(range(times))
        assert all(set(entry["fill"]) <= {me} for entry in mine)


def turns_of(root: str, agent_id: str) -> list[list[list[str]]]:
    """The words of the messages of each turn, in their order, without the long last word."""
    messages: list[Any] = [*gaia_sessions.Sessions(root).messages(agent_id)]
    assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
    found = groupby(messages, lambda message: message["turn"])
    turns = [(number, [message["content"].split(" ")[:-1] for message in said]) for number, said in found]
    assert [number for number, _ in turns] == list(range(1, len(turns) + 1))
    return [said for _, said in turns]


def test_turns_of_two_processes_are_in_sequence_and_readers_see_only_whole_turns(
    root: str, tmp_path: Path, race: Start
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)
    stop = tmp_path / "stop"

    running = race([*[("takes_turns", root, agent_id, me, 40) for me in "01"], ("sees_turns", root, agent_id, stop)])
    told = running.results(2)
    stop.touch()
    reader = running.results()[2]

    turns = turns_of(root, agent_id)
    for said in turns:
        me, number, _, size = said[0]
        assert said == [[me, number, str(place), size] for place in range(int(size))]
    for me, numbers in zip("01", told, strict=True):
        assert [(turns[number - 1][0][0], turns[number - 1][0][1]) for number in numbers] == [
            (me, str(each)) for each in range(40)
        ]
    assert sorted(told[0] + told[1]) == list(range(1, 81))
    assert (record_of(root, agent_id)["turns"], record_of(root, agent_id)["revision"]) == (80, 81)
    assert (reader["wrong"], reader["count"] > 0) == ([], True)


@pytest.mark.parametrize("times", [12, pytest.param(40, marks=pytest.mark.slow)])
@table("them", ["0123", "0000"])
def test_exactly_one_of_four_processes_adds_each_numbered_turn_even_with_equal_content(
    tmp_path: Path, race: Start, them: str, times: int
) -> None:
    root = str(tmp_path / them)
    agent_id = gaia_sessions.create_session("racer", root=root)

    told = race([("takes_numbered_turns", root, agent_id, me, times) for me in them]).results()

    takers = {number: me for me, numbers in zip(them, told, strict=True) for number in numbers}
    assert sorted(number for numbers in told for number in numbers) == list(range(1, times + 1))
    assert turns_of(root, agent_id) == [
        [[takers[number], str(place), "3"] for place in range(3)] for number in range(1, times + 1)
    ]
    assert (record_of(root, agent_id)["turns"], record_of(root, agent_id)["revision"]) == (times, times + 1)


@many((3, 12), (6, 30))
def test_each_message_of_many_processes_is_stored_once_while_new_transcripts_begin(
    root: str, tmp_path: Path, race: Start, many: int, times: int
) -> None:
    agent_id = gaia_sessions.create_session("racer", root=root)
    stop = tmp_path / "stop"

    speakers = [("speaks", root, agent_id, str(number), times) for number in range(many)]
    running = race([*speakers, ("empties", root, agent_id, times * 2 // 3), *[("listens", root, agent_id, stop)] * 2])
    acknowledged = running.results(len(speakers) + 1)
    stop.touch()
    readers = running.results()[len(acknowledged) :]

    archived = record_of(root, agent_id)["transcripts_archived"]
    names = ["transcript.jsonl", *(f"transcript-{number}.jsonl" for number in range(1, archived + 1))]
    names = names if record_of(root, agent_id)["transcript_bytes"] else names[:-1]
    spoken: list[tuple[str, int]] = []
    numbers: list[int] = []
    for name in names:
        messages = [json.loads(line) for line in Path(root, agent_id, name).read_bytes().splitlines()]
        numbers += [message["seq"] for message in messages]
        spoken += [(by, int(number)) for by, number, _ in (message["content"].split(" ") for message in messages)]
    assert numbers == list(range(1, many * times + 1))
    for me in map(str, range(many)):
        assert [number for by, number in spoken if by == me] == list(range(times))
    assert {path.name for path in Path(root, agent_id).iterdir()} == {"state.json", *names}
    assert (len(spoken), archived > 0) == (many * times, True)
    assert [reader["wrong"] for reader in readers] == [[], []]
    assert all(reader["count"] > 0 for reader in readers)
