"""``turn``, ``reset`` and ``create --system-prompt``: input, output and exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia


HINT = "Hint: to add the next turn, type gaia-sessions turn a - --number 2 < FILE"
SAID = [{"role": "user", "content": "How many?"}, {"role": "assistant", "content": "42"}]


def as_json(messages: object) -> bytes:
    return json.dumps(messages).encode()


def test_a_turn_is_added_and_may_be_repeated(gaia: Gaia, put: Gaia) -> None:
    put("a")
    assert gaia("turn", "a", "-", stdin=as_json(SAID)).answer == ["a: turn 1 is complete, 2 messages"]
    again = gaia("turn", "a", "-", "--number", "1", stdin=as_json(SAID))
    assert again.answer == ["a: turn 1 was already complete, 2 messages"]
    assert gaia("turn", "a", "-", "--number", "1", stdin=as_json(SAID[:1])).all == (
        4,
        "",
        f"Error: turn 1 of session 'a' already has other messages\n{HINT}\n",
    )
    told = gaia("turn", "a", "-", "--number", "2", "--json", stdin=as_json(SAID)).json
    assert (told["turn"], told["turn_id"], told["added"], len(told["messages"])) == (2, "0.2", True, 2)
    assert [one["turn"] for one in gaia("transcript", "a", "--json").json] == [1, 1, 2, 2]


def test_an_invalid_turn_is_refused(gaia: Gaia, put: Gaia) -> None:
    put("a")
    bad = {
        b"": (7, "standard input is empty"),
        b"{}": (7, "must be an array of messages"),
        b"[": (7, "not JSON"),
        b"[]": (7, "the turn has no messages"),
        as_json([*SAID, {"role": "user"}]): (7, "message 3: 'content' is missing"),
        b'[{"role": "user", "content": "\xff"}]': (7, "UTF-8"),
        b'[{"role": "user", "content": "a", "content": "b"}]': (7, "content"),
        b" " * ((64 << 20) + 1): (7, "over the limit"),
    }
    for data, (code, said) in bad.items():
        ended = gaia("turn", "a", "-", stdin=data)
        assert (ended.code, ended.out, said in ended.err.decode()) == (code, b"", True), ended.err
    assert gaia("turn", "a", "messages.json").code == 2
    assert gaia("turn", "a", "-", "--number", "0", stdin=as_json(SAID)).code == 2
    assert gaia("transcript", "a", "--json").json == []


def test_reset_begins_a_new_transcript_with_the_system_prompt(gaia: Gaia) -> None:
    assert gaia("create", "--id", "a", "--system-prompt", "-", stdin=b"Be brief.\n").code == 0
    gaia("turn", "a", "-", stdin=as_json(SAID))
    assert [one["turn"] for one in gaia("transcript", "a", "--json").json] == [0, 1, 1]

    assert gaia("reset", "a").answer == ["a: a new transcript begins, with no turns"]
    assert gaia("reset", "a", "--json").json["turns"] == 0

    [prompt] = gaia("transcript", "a", "--json").json
    assert (prompt["content"], prompt["role"], prompt["turn"]) == ("Be brief.", "system", 0)
    gaia("finalize", "a", "completed")
    assert [gaia(*words, stdin=as_json(SAID)).code for words in (("reset", "a"), ("turn", "a", "-"))] == [4, 4]
    assert gaia("reset", "b").code == 3


def test_an_invalid_system_prompt_is_refused(gaia: Gaia) -> None:
    for prompt, stdin in ((" ", b""), ("-", b""), ("-", b"x" * 16385), ("-", b"\xff"), ("x" * 16385, b"")):
        assert gaia("create", "--id", "a", "--system-prompt", prompt, stdin=stdin).code == 7
    assert gaia("create", "--system-prompt", "-", "--metadata", "-").code == 2
    assert gaia("get", "a").code == 3
