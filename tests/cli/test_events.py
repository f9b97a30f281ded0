"""``events``: it prints the journal of a session in order, and reports the lines that cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from gaia_sessions import Sessions
from gaia_sessions.cli.render.words import local_time
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.trace import trace_of
from gaia_sessions.store.file_store import FileStore
from gaia_sessions.system import utc_now
from tests.cli.forks import Fork, forked
from tests.table import table

if TYPE_CHECKING:
    from tests.cli.conftest import Gaia

AT = "2026-01-08T18:05:30.123456Z"
EVIDENCE = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a1", "tool_use_id": "toolu_1"}
BEGUN = {"at": AT, "kind": "start", "run": 1, "phase": "investigating", "revision": 2, "evidence": EVIDENCE}
TRACE = trace_of("a")
FAILED = {**BEGUN, "kind": "fail", "end": "failed", "detail": "API Error\x1b[31m\n529", "revision": 3}


def journal(root: str, *lines: bytes) -> None:
    Path(root, "a", "events.jsonl").write_bytes(b"".join(lines))


def line(entry: object) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def test_each_event_is_one_line_with_its_evidence(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), line(FAILED))

    keys = "host=claude-code, host_session_id=s, host_agent_id=a1, tool_use_id=toolu_1"
    code, out, err = gaia("events", "a").all

    first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert first == f"{local_time(AT)} start, run 1, phase investigating, {keys} (event 1)"
    assert second.startswith(f"{local_time(AT)} fail, run 1, phase investigating, failed, API Error")
    assert second.endswith(f"{keys} (event 2)")
    assert "\x1b" not in second


def test_with_json_events_are_an_array_of_the_journal_entries(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), line(FAILED))

    assert gaia("events", "a", "--json").json == [{**BEGUN, "seq": 1, **TRACE}, {**FAILED, "seq": 2, **TRACE}]


@table(("since", "seqs", "complained"), [(0, [1, 2], True), (1, [2], True), (2, [], False)])
def test_since_shows_only_events_after_that_number(
    gaia: Gaia, put: Gaia, root: str, since: int, seqs: list[int], *, complained: bool
) -> None:
    put("a", phase="completed", resume_ready=False)
    journal(root, line(BEGUN), b"{torn\n", line(FAILED))

    for words in ((), ("--follow",)):
        code, out, err = forked("events", "a", "--since", str(since), "--json", *words).all
        found = [json.loads(one) for one in out.splitlines()] if words else json.loads(out)
        assert (code, [one["seq"] for one in found], "line 2" in err) == (0, seqs, complained)
    assert gaia("events", "a", "--since", "2").answer == ["No events"]
    assert gaia("events", "a", "--since", "-1").code == 2


def test_s14_eight_writers_number_events_without_gaps_or_duplicates(root: str) -> None:
    sessions = Sessions(root)
    agent_id = sessions.create()
    forks = get_context("fork")
    all_there = forks.Barrier(8)

    def write() -> None:
        all_there.wait()
        for _ in range(9):
            Sessions(root).reset(agent_id)

    writers = [forks.Process(target=write) for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # since Python 3.12: other threads are not in the fork
        for writer in writers:
            writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    events = [one for one in sessions.events(agent_id) if isinstance(one, dict)]
    assert [(one["seq"], one["revision"]) for one in events] == [(number, number + 1) for number in range(1, 73)]


def test_a_session_without_a_journal_has_no_events(gaia: Gaia, put: Gaia) -> None:
    put("a")

    assert gaia("events", "a").answer == ["No events"]
    assert gaia("events", "a", "--json").json == []


def test_a_bad_journal_line_is_reported_and_hides_no_other_line(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a")
    journal(root, line(BEGUN), b"{torn\n", line(FAILED), b'{"at": "unfin')

    code, out, err = gaia("events", "a", "--json").all

    assert (code, json.loads(out)) == (0, [{**BEGUN, "seq": 1, **TRACE}, {**FAILED, "seq": 2, **TRACE}])
    assert "events.jsonl line 2" in err


def test_events_of_a_missing_session_exits_3_and_changes_nothing(gaia: Gaia, tree: Gaia) -> None:
    before = tree()

    assert gaia("events", "nobody", "--json").error["code"] == "not_found"
    assert (gaia("events", "nobody").code, gaia("events", "../x").code) == (3, 7)
    assert tree() == before


def test_an_event_in_the_inbox_is_shown_as_it_will_be_applied(gaia: Gaia, put: Gaia, root: str) -> None:
    keys = {"host": "claude-code", "host_session_id": "s", "host_agent_id": "a1"}
    put("a", phase="executing", runs=[{"run": 1, "started_at": format_time(utc_now()), **keys}])
    event: Any = {"kind": "stop", "at": format_time(utc_now()), **keys}
    FileStore(root).defer(event, utc_now())
    before = gaia("events", "a").out.decode()
    put("b")
    assert gaia("update", "b").code == 0  # applies the event in the inbox
    assert " stop, run 1, " in before
    assert (
        gaia("events", "a").out.decode() == f"{before.rstrip()} (event 1)\n"
    )  # no number before: another event could come first


def follow(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "gaia_sessions", "events", "a", "--follow", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def running(put: Gaia, **run: str) -> None:
    put("a", phase="executing", runs=[{"run": 1, "host": "claude-code", "started_at": format_time(utc_now()), **run}])


def test_follow_prints_each_new_event_until_the_run_has_ended(put: Gaia, root: str) -> None:
    running(put)
    journal(root, line(BEGUN))
    with follow("--json") as following:
        assert json.loads(read(following.stdout)) == {**BEGUN, "seq": 1, **TRACE}
        again = {**FAILED, "phase": "planning"}
        journal(root, line(BEGUN), b'{"torn', b'": 1}\n', line(FAILED), line(again), line("text"))
        told = [json.loads(read(following.stdout)) for _ in range(4)]
        assert told == [
            {"torn": 1, "seq": 2, **TRACE},
            {**FAILED, "seq": 3, **TRACE},
            {**again, "seq": 4, **TRACE},
            "text",
        ]
        last = {**FAILED, "kind": "stop", "at": format_time(utc_now())}
        journal(root, line(BEGUN), line(FAILED), line(last))
        running(put, ended_at=format_time(utc_now()), end="stopped")
        assert (*following.communicate(), following.returncode) == (
            json.dumps({**last, "seq": 3, **TRACE}) + "\n",
            "",
            0,
        )


def test_follow_prints_the_events_of_an_ended_session_and_ends(gaia: Gaia, put: Gaia, root: str) -> None:
    put("a", phase="completed")
    journal(root, line(BEGUN), b"{\n", line(FAILED))
    assert forked("events", "a", "--follow").all == gaia("events", "a").all
    assert gaia("events", "a-2", "--follow").code == 3


def test_follow_ends_when_its_reader_closes_the_pipe(put: Gaia, root: str) -> None:
    running(put)
    journal(root, line(BEGUN))
    with follow() as following:
        assert read(following.stdout).startswith(local_time(AT))
        assert following.stdout is not None
        following.stdout.close()
        assert following.wait(60) == 0


@pytest.mark.usefixtures("interruptible")
@table("words", [(), ("--json",)])
def test_follow_without_a_started_agent_says_that_it_waits_and_how_to_stop(put: Gaia, words: tuple[str, ...]) -> None:
    put("a", phase="executing")
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as told, Fork("events", "a", "--follow", *words, stderr=writing) as following:
        os.close(writing)
        lines = [read(told), read(told)]
        while words and lines[-1] != "}\n":
            lines.append(read(told))
        following.send_signal(signal.SIGINT)
        code = following.ended().code
    message = "no agent was started for a, so only a command can end this session"
    hint = "to stop waiting for events, press Ctrl-C"
    notice = {"notice": {"code": "not_started", "message": message, "hint": hint}}
    said = "".join(lines)
    assert (json.loads(said) if words else said) == (notice if words else f"Note: {message}\nHint: {hint}\n")
    assert code == 130


def test_follow_ends_if_stdout_is_closed(gaia: Gaia, put: Gaia, root: str) -> None:
    running(put)
    journal(root, line(BEGUN))
    assert gaia("events", "a", "--follow", stdout=None).all == (0, "", "")


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_follow_with_exit_code_130(put: Gaia, root: str) -> None:
    running(put)
    journal(root, line(BEGUN))
    with follow() as following:
        read(following.stdout)
        following.send_signal(signal.SIGINT)
        following.communicate()
    assert following.returncode == 130
