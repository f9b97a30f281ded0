"""Contract of transcripts: adding messages, emptying a transcript, and all ways to read messages."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from gaia_sessions.errors import InvalidId, InvalidInput, NewerSchema, SessionFinal, SessionNotFound, TooLarge
from gaia_sessions.session.transcript import LINE_LIMIT, after, new_message, number_messages, with_message
from gaia_sessions.session.updates import Change
from tests.contract.conftest import never, not_planned, untouched
from tests.removals import deleted
from tests.transcripts import add_messages, begin_anew

if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import NewMessage
    from gaia_sessions.store.port import Store
    from tests.contract.conftest import New

pytestmark = not_planned


NOW = datetime(2026, 1, 8, 19, 0, tzinfo=UTC)


def said(*contents: str, role: str = "user") -> list[NewMessage]:
    return [new_message(role, content, NOW) for content in contents]


def turned(record: Record) -> Record:
    return {**record, "turns": record.get("turns", 0) + 1}


def contents(store: Store, agent_id: str = "agent-1") -> list[str]:
    found = [message for message in store.messages(agent_id) if isinstance(message, dict)]
    assert list(store.messages_backwards(agent_id)) == found[::-1]
    return [message["content"] for message in found]


def size_of(messages: list[NewMessage], first_seq: int = 1, turn: int = 1) -> int:
    return len(number_messages(messages, first_seq, turn)[1])


def test_messages_are_numbered_and_come_back_in_their_order_from_both_ends(store: Store, new: New) -> None:
    store.create(new())

    _, first = add_messages(store, "agent-1", said("one", "two"))
    _, second = add_messages(store, "agent-1", said("three", role="assistant"))

    assert [(message["seq"], message["content"]) for message in [*first, *second]] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
    assert list(store.messages("agent-1")) == [*first, *second]
    assert list(store.messages_backwards("agent-1")) == [*first, *second][::-1]


def test_messages_from_a_turn_on_begin_with_the_first_message_of_that_turn(store: Store, new: New) -> None:
    store.create(new())
    stored = []
    for number in range(1, 41):
        texts = [f"{number}.{place} " + "x" * 40 * number for place in range(number % 5 + 1)]
        stored += add_messages(store, "agent-1", said(*texts), turned)[1]
    for number in range(43):
        wanted = [message for message in stored if message["turn"] >= number]
        assert list(store.messages_from_turn("agent-1", number)) == wanted, number


def test_a_commit_applies_the_rule_and_the_new_size_in_one_revision(store: Store, new: New) -> None:
    store.create(new())
    messages = said("one", "two")

    record, _ = add_messages(store, "agent-1", messages, lambda record: {**record, "purpose": "talk"})

    assert record == new(purpose="talk", transcript_bytes=size_of(messages), last_seq=2, revision=2)
    assert store.read("agent-1") == record


def test_a_commit_with_messages_adds_the_entry_of_its_rule_to_the_journal(store: Store, new: New) -> None:
    store.create(new())

    add_messages(store, "agent-1", said("one"), lambda record: Change(record, [{"number": 1}]))

    assert list(store.entries("agent-1", "events.jsonl")) == [{"number": 1}]
    assert contents(store) == ["one"]


def test_a_message_belongs_to_the_turn_before_the_rule_is_applied(store: Store, new: New) -> None:
    store.create(new())

    for rule in (untouched, turned, untouched, turned):
        add_messages(store, "agent-1", said("said"), rule)

    turns = [message["turn"] for message in store.messages("agent-1") if isinstance(message, dict)]
    assert (turns, store.read("agent-1")["turns"]) == ([1, 1, 2, 2], 2)


def test_every_key_of_a_message_is_read_back(store: Store, new: New) -> None:
    store.create(new())
    called = new_message("tool", "\u2028\n\x1b[31m ünïcode", NOW, tool_name="Bash", tool_call_id="toolu_1", tokens=12)

    add_messages(store, "agent-1", [called])

    assert list(store.messages("agent-1")) == [{"seq": 1, "turn": 1, **called}]


def test_a_commit_without_messages_only_applies_the_rule(store: Store, new: New) -> None:
    store.create(new())

    assert add_messages(store, "agent-1", []) == (new(), [])
    assert add_messages(store, "agent-1", [], turned) == (new(turns=1, revision=2), [])


def test_messages_can_be_read_after_a_number_or_backwards_from_the_newest(store: Store, new: New) -> None:
    store.create(new())
    _, stored = add_messages(store, "agent-1", said(*map(str, range(1, 30))))

    for seq in (0, 1, 17, 28, 29, 100):
        assert list(store.messages("agent-1", is_wanted=after(seq))) == stored[seq:]
    assert list(islice(store.messages_backwards("agent-1"), 3)) == stored[:-4:-1]


def test_the_search_for_wanted_messages_goes_back_and_stops_at_the_first_unwanted_one(store: Store, new: New) -> None:
    store.create(new())
    _, stored = add_messages(store, "agent-1", said(*map(str, range(1, 30))))
    asked: list[object] = []

    def is_wanted(message: object) -> bool:
        asked.append(message)
        return len(asked) <= 3

    assert list(store.messages("agent-1", is_wanted=is_wanted)) == stored[-3:]
    assert asked == stored[:-5:-1]
    assert list(store.messages("agent-1", is_wanted=lambda _: False)) == []


def test_long_messages_come_back_whole_from_both_ends(store: Store, new: New) -> None:
    store.create(new())
    lengths = [0, 10, 16_300, 16_384, 40_000, 1, 900_000, 3]

    add_messages(store, "agent-1", said(*("x" * length for length in lengths)))

    assert [len(content) for content in contents(store)] == lengths
    for seq in range(len(lengths)):
        assert len(list(store.messages("agent-1", is_wanted=after(seq)))) == len(lengths) - seq


def test_a_new_session_has_no_messages_and_no_transcript_keys(store: Store, new: New) -> None:
    store.create(new())

    assert contents(store) == []
    assert not {"turns", "transcript_bytes", "last_seq", "transcripts_archived"} & store.read("agent-1").keys()


def test_the_transcripts_of_two_sessions_and_their_journals_are_separate(store: Store, new: New) -> None:
    store.create(new())
    store.create(new("agent-2"))

    add_messages(store, "agent-1", said("one"))
    store.append("agent-1", "events.jsonl", [1])
    add_messages(store, "agent-2", said("two"))

    assert (contents(store), contents(store, "agent-2")) == (["one"], ["two"])
    assert list(store.entries("agent-1", "events.jsonl")) == [1]


def test_a_change_of_the_record_keeps_the_messages(store: Store, new: New) -> None:
    store.create(new())
    add_messages(store, "agent-1", said("one"))

    store.change("agent-1", turned)
    add_messages(store, "agent-1", said("two"))

    assert contents(store) == ["one", "two"]


def test_a_commit_with_a_rule_that_raises_adds_no_message(store: Store, new: New) -> None:
    store.create(new(phase="completed"))
    before = store.read("agent-1")

    with pytest.raises(SessionFinal):
        add_messages(store, "agent-1", said("one"), lambda record: with_message(record, NOW))

    assert (contents(store), store.read("agent-1")) == ([], before)


def test_a_commit_with_one_message_over_the_limit_is_refused_whole(store: Store, new: New) -> None:
    store.create(new())
    add_messages(store, "agent-1", said("one"))
    before = store.read("agent-1")

    with pytest.raises(TooLarge):
        add_messages(store, "agent-1", said("two", "x" * LINE_LIMIT), turned)

    assert (contents(store), store.read("agent-1")) == (["one"], before)


def test_a_commit_with_a_record_over_the_limit_adds_no_message(store: Store, new: New) -> None:
    store.create(new())

    with pytest.raises(TooLarge):
        add_messages(store, "agent-1", said("one"), lambda record: {**record, "metadata": {"x": "x" * LINE_LIMIT}})

    assert (contents(store), store.read("agent-1")) == ([], new())
    add_messages(store, "agent-1", said("one"))
    assert contents(store) == ["one"]


def test_a_message_that_could_not_be_read_back_is_refused(store: Store, new: New) -> None:
    store.create(new())
    for bad in (*said("NUL \0", "half \ud800"), {**said("one")[0], "role": "human"}):
        with pytest.raises(InvalidInput):
            add_messages(store, "agent-1", [bad])  # type: ignore[list-item]  # invalid on purpose

    assert store.read("agent-1") == new()


def test_a_session_with_a_newer_schema_refuses_messages_and_emptying(store: Store, new: New) -> None:
    store.create(new(schema=2))

    with pytest.raises(NewerSchema):
        add_messages(store, "agent-1", said("one"), never)
    with pytest.raises(NewerSchema):
        begin_anew(store, "agent-1", never)


def test_a_transcript_is_emptied_in_one_revision_and_its_numbers_are_not_reused(store: Store, new: New) -> None:
    store.create(new())
    add_messages(store, "agent-1", said("one", "two"), turned)

    record = begin_anew(store, "agent-1", lambda record: {**record, "turns": 0})

    emptied = new(turns=0, transcript_bytes=0, last_seq=2, transcripts_archived=1, revision=3)
    assert record == emptied == store.read("agent-1")
    assert contents(store) == []
    _, [first] = add_messages(store, "agent-1", said("three"))
    assert (first["seq"], first["turn"], contents(store)) == (3, 1, ["three"])


def test_no_message_number_is_given_twice_even_after_an_emptying(store: Store, new: New) -> None:
    store.create(new(transcript_bytes=0, last_seq=80))

    _, stored = add_messages(store, "agent-1", said("one", "two"))
    begin_anew(store, "agent-1")
    stored += add_messages(store, "agent-1", said("three"))[1]

    assert [message["seq"] for message in stored] == [81, 82, 83]
    assert list(store.messages("agent-1", is_wanted=after(80))) == stored[-1:]
    assert store.read("agent-1")["last_seq"] == 83


def test_an_empty_transcript_is_not_archived(store: Store, new: New) -> None:
    store.create(new())

    assert begin_anew(store, "agent-1") == new()
    assert begin_anew(store, "agent-1", turned) == new(turns=1, revision=2)

    add_messages(store, "agent-1", said("one"))
    begin_anew(store, "agent-1")
    before = store.read("agent-1")
    assert begin_anew(store, "agent-1") == before == store.read("agent-1")


PROMPT = new_message("system", "Be brief.", NOW)


def test_a_system_prompt_is_the_first_message_and_belongs_to_no_turn(store: Store, new: New) -> None:
    store.create(new(), system_prompt=PROMPT)
    _, [said_first] = add_messages(store, "agent-1", said("one"), turned)

    prompt = {"seq": 1, "turn": 0, **PROMPT}
    assert list(store.messages("agent-1")) == [prompt, said_first]
    assert (said_first["seq"], said_first["turn"]) == (2, 1)
    size = size_of([PROMPT], turn=0) + size_of(said("one"), 2)
    assert store.read("agent-1") == new(transcript_bytes=size, last_seq=2, turns=1, revision=2)


def test_each_generation_begins_with_the_system_prompt(store: Store, new: New) -> None:
    store.create(new(), system_prompt=PROMPT)
    for number in (1, 2):
        add_messages(store, "agent-1", said("one"), turned)
        record = begin_anew(store, "agent-1", lambda record: {**record, "turns": 0})

        assert list(store.messages("agent-1")) == [{"seq": 1 + 2 * number, "turn": 0, **PROMPT}]
        assert (record["transcripts_archived"], record["last_seq"]) == (number, 1 + 2 * number)
        assert begin_anew(store, "agent-1") == record == store.read("agent-1")
    _, [first] = add_messages(store, "agent-1", said("two"))
    assert (contents(store), first["seq"]) == (["Be brief.", "two"], 6)


def test_a_transcript_with_only_the_system_prompt_is_not_archived(store: Store, new: New) -> None:
    store.create(new(), system_prompt=PROMPT)
    before = store.read("agent-1")

    assert begin_anew(store, "agent-1") == before == store.read("agent-1")
    assert "transcripts_archived" not in begin_anew(store, "agent-1", turned)
    assert contents(store) == ["Be brief."]


def test_an_emptying_with_a_rule_that_raises_changes_nothing(store: Store, new: New) -> None:
    store.create(new())
    add_messages(store, "agent-1", said("one"))
    before = store.read("agent-1")

    with pytest.raises(AssertionError):
        begin_anew(store, "agent-1", never)

    assert (contents(store), store.read("agent-1")) == (["one"], before)


def test_a_reader_that_has_begun_gets_all_old_messages_despite_an_emptying(store: Store, new: New) -> None:
    store.create(new())
    _, stored = add_messages(store, "agent-1", said("one", "x" * 50_000, "three"))
    forwards, backwards = store.messages("agent-1"), store.messages_backwards("agent-1")
    read: list[list[object]] = [[next(forwards)], [next(backwards)]]

    add_messages(store, "agent-1", said("four"))
    begin_anew(store, "agent-1")
    add_messages(store, "agent-1", said("new"))

    assert [[*begun, *rest] for begun, rest in zip(read, (forwards, backwards), strict=True)] == [stored, stored[::-1]]


def test_deleting_a_session_deletes_its_transcript(store: Store, new: New) -> None:
    store.create(new())
    add_messages(store, "agent-1", said("one"))

    deleted(store, "agent-1", lambda _found: True)
    store.create(new())

    assert contents(store) == []
    _, [first] = add_messages(store, "agent-1", said("two"))
    assert (first["seq"], contents(store)) == (1, ["two"])


def test_transcript_methods_refuse_missing_sessions_and_invalid_ids(store: Store, new: New) -> None:
    store.create(new("another"))

    asked: list[Callable[[str], object]] = [
        lambda agent_id: add_messages(store, agent_id, said("one"), never),
        lambda agent_id: begin_anew(store, agent_id, never),
        store.messages,
        store.messages_backwards,
        lambda agent_id: store.messages_from_turn(agent_id, 1),
    ]
    for ask in asked:
        with pytest.raises(SessionNotFound):
            ask("agent-1")
        with pytest.raises(InvalidId):
            ask("../another")
