"""``state``, ``ensure``, and the keys that sessions of one app share."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from gaia_sessions.session.trace import trace_of, traceparent
from tests.cli.conftest import fresh_table
from tests.cli.forks import forked

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Gaia


OWNED = ("--app", "kb", "--user", "u1")


def shown(gaia: Gaia, agent_id: str = "a") -> dict[str, Any]:
    return dict(json.loads(gaia("state", "show", agent_id, "--json").out)["state"])


def test_state_sets_reads_and_unsets_keys_and_an_unset_key_exits_with_1(gaia: Gaia) -> None:
    gaia("create", "--id", "a", "--state", '{"user_id": "u1"}')
    assert gaia("state", "set", "a", "intent", "create domain").answer == ["a: revision 2"]
    assert gaia("state", "get", "a", "intent").answer == ["create domain"]
    assert gaia("state", "get", "a", "intent", "--json").json == {
        "agent_id": "a",
        "key": "intent",
        "set": True,
        "value": "create domain",
    }
    assert gaia("state", "unset", "a", "intent", "domain_id").answer == ["a: revision 3"]
    assert gaia("state", "get", "a", "intent").all == (1, "", "")
    assert gaia("state", "show", "a").all == (0, 'user_id  "u1"\n', "")
    assert '\nkeys\n  user_id    "u1"\n' in gaia("show", "a").out.decode()


@fresh_table(
    ("typed", "value", "printed"),
    [("null", None, "null"), ('"x"', "x", "x"), ("[1, {}]", [1, {}], "[1, {}]"), ("1.5", 1.5, "1.5")],
)
def test_a_value_may_be_any_json(gaia: Gaia, typed: str, value: object, printed: str) -> None:
    gaia("create", "--id", "a")
    assert gaia("state", "set", "a", "key", "--value-json", typed).code == 0
    assert shown(gaia) == {"key": value}
    assert gaia("state", "get", "a", "key").answer == [printed]


def test_increments_and_deltas_change_own_and_shared_keys(gaia: Gaia) -> None:
    gaia("create", "--id", "a", *OWNED, "--state", '{"app:n": 1, "user:old": 1}')
    gaia("create", "--id", "b", *OWNED)
    assert gaia("state", "incr", "a", "app:n", "--by", "2").answer == ["3"]
    assert gaia("state", "incr", "b", "name_attempts").answer == ["1"]
    delta = b'{"set": {"app:x": null}, "unset": ["user:old"], "add": {"app:n": 1}}'
    told = gaia("state", "delta", "b", "-", "--json", stdin=delta).json
    assert told == {
        "agent_id": "b",
        "app": "kb",
        "user": "u1",
        "revision": 3,
        "app_revision": 3,
        "user_revision": 2,
        "state": {"name_attempts": 1, "app:n": 4, "app:x": None},
    }
    assert shown(gaia) == {"app:n": 4, "app:x": None}


@fresh_table(
    ("words", "code", "said"),
    [
        (["set", "a", "temp:x", "1"], 7, "'temp:x' is never stored"),
        (["set", "a", "secret:x", "1"], 7, "'secret:x' is never stored"),
        (["set", "a", "app:x", "1"], 7, "a belongs to no app, so it has no app: keys"),
        (["set", "a", "x"], 2, "give either VALUE or --value-json"),
        (["set", "a", "x", "1", "--value-json", "1"], 2, "give either VALUE or --value-json"),
        (["set", "a", "x", "--value-json", "{"], 7, "--value-json: "),
        (["incr", "a", "text"], 7, "text: is a string, not a whole number"),
        (["incr", "a", "n", "--by", "9" * 30], 7, "n " + "9" * 30 + ": a number that overflows 64 bits"),
        (["incr", "a", "n", "--by", "x"], 2, "--by"),
        (["set", "a", "x", "1", "--if-revision", "9"], 4, "revision"),
        (["set", "ended", "x", "1"], 4, "can no longer be changed"),
        (["get", "nobody", "x"], 3, "no session"),
        (["get", "a", "app:x"], 7, "a belongs to no app, so it has no app: keys"),
        (["get", "a", "temp:x"], 7, "'temp:x' is never stored"),
        (["delta", "a", "file"], 2, "the delta comes from standard input, not from 'file'"),
    ],
)
def test_a_refused_state_command_says_why_and_changes_nothing(
    gaia: Gaia, words: list[str], code: int, said: str
) -> None:
    gaia("create", "--id", "a", "--state", '{"text": "x"}')
    gaia("create", "--id", "ended", "--state", '{"y": 1}')
    gaia("finalize", "ended", "completed")
    ended = gaia("state", *words)
    assert (ended.code, said in ended.err.decode()) == (code, True), ended.err.decode()
    assert (shown(gaia), shown(gaia, "ended")) == ({"text": "x"}, {"y": 1})


def test_a_session_has_both_an_app_and_a_user_or_neither(gaia: Gaia) -> None:
    for words in (("--app", "kb"), ("--user", "u1"), ("--app", " ", "--user", "u1"), (*OWNED, "--state", "[]")):
        assert gaia("create", *words).code == 7
    assert gaia("list", "-q").out == gaia("list", "-q", "--app", "kb").out == b""
    gaia("create", "--id", "a", *OWNED)
    assert gaia("list").out.decode().endswith(" with these options; --app kb has 1\n")
    assert gaia("show", "latest").out.startswith(b"unknown")
    assert [gaia("list", "-q", *words).out for words in ((), ("--app", "kb"), ("--app", "x"))] == [b"", b"a\n", b""]


def test_the_settings_define_the_allowed_keys_and_types(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a")
    with open(f"{root}/.config.toml", "w", encoding="utf-8") as file:
        file.write('[state.keys]\nintent = "str"\n')
    assert gaia("state", "set", "a", "intent", "x").code == 0
    refused = gaia("state", "set", "a", "intent", "--value-json", "1")
    assert (refused.code, b"intent: must be str, not a number" in refused.err) == (7, True)
    assert gaia("state", "set", "a", "url", "x").code == gaia("create", "--state", '{"url": 1}').code == 7
    assert shown(gaia) == {"intent": "x"}


def test_ensure_prints_the_id_of_the_open_session_or_of_one_that_continues_it(gaia: Gaia) -> None:
    first = gaia("ensure", "--agent", "root", *OWNED).out.decode().strip()
    assert gaia("ensure", "--id", first, "--json").json == {"agent_id": first, "begun": False}
    gaia("finalize", first, "completed")
    ended = gaia("ensure", "--id", first, "--state", '{"user_id": "u2"}')
    second = ended.out.decode().strip()
    assert ended.err.decode() == f"{first} has ended: {second} continues it\n"
    record = json.loads(gaia("get", second).out)
    assert (record["continues"], record["app"], record["session_state"]) == (first, "kb", {"user_id": "u2"})
    for made_up in ("made-up-by-a-client", "web client/42", first[-8:], first[:10], "latest"):
        unknown = gaia("ensure", "--id", made_up)
        assert (unknown.code, unknown.out) == (3, b"")
    assert gaia("list", "-q", "--app", "kb").out.decode().split() == [second, first]


def test_a_command_of_run_gets_the_root_session_and_the_trace_in_its_environment(
    gaia: Gaia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    gaia("create", "--id", "top")
    told = 'printf "%s %s" "$GAIA_ROOT_SESSION_ID" "$TRACEPARENT"'
    ended = forked("run", "--id", "below", "--parent", "top", "--json", "--", "sh", "-c", told)
    report = json.loads(ended.out)
    assert report["result"] == f"top {traceparent('top', 'below', 1)}"
    assert {**report, **trace_of("top")} == report
    assert traceparent("top", "below", 1).split("-")[1] == trace_of("top")["trace_id"]
    monkeypatch.setenv("TRACEPARENT", "of somebody else")
    ended = forked("run", "--id", "other", "--", "sh", "-c", told)
    assert ended.out == b"other of somebody else"


@fresh_table(
    "content",
    [
        "[]",
        '{"scope": ["kb"], "revision": 1, "state": {"temp:x": 1}}',
        '{"scope": ["kb"], "revision": 0, "state": {}}',
        '{"scope": [], "revision": 1, "state": {}}',
    ],
)
def test_doctor_finds_a_shared_document_that_cannot_be_read(gaia: Gaia, root: str, content: str) -> None:
    gaia("create", "--id", "a", *OWNED, "--state", '{"app:x": 1}')
    file = f"{root}/.shared/app-kb.json"
    with open(file, "w", encoding="utf-8") as damaged:
        damaged.write(content)
    ended = gaia("state", "get", "a", "app:x")
    assert (ended.code, f"{file}: cannot read".encode() in ended.err) == (8, True)
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "shared"]
    assert (found["state"], file in found["found"]) == ("problem", True)


def test_doctor_names_the_fix_for_a_file_in_place_of_the_shared_folder(gaia: Gaia, root: str) -> None:
    gaia("create", "--id", "a", *OWNED)
    shared = f"{root}/.shared"
    with open(shared, "w", encoding="utf-8"):
        pass
    ended = gaia("cleanup")
    assert (ended.code, shared in ended.err.decode()) == (8, True)
    [found] = [one for one in json.loads(gaia("doctor", "--json").out)["checks"] if one["name"] == "shared"]
    assert (found["state"], found["fix"]) == ("problem", f"mv -- {shared} {shared}.away")
    os.rename(shared, f"{shared}.away")
    assert gaia("cleanup").code == 0


def test_a_value_that_begins_with_a_dash_must_follow_a_double_dash(gaia: Gaia) -> None:
    gaia("create", "--id", "a")
    assert b"ID KEY -- -5\n" in gaia("state", "set", "a", "n", "-5").err
    assert gaia("state", "set", "a", "n", "--", "-5").code == 0
    assert shown(gaia) == {"n": "-5"}
