"""The ladder every hook call climbs: read, whose is it, switched off, do it, answer, one line in the log.

Owns the promise that a hook fails open and silent: exit 0 in every case, within three seconds, and no
output to a host. Input that cannot be read is met with silence when a host sent it (the bytes
``hook_event_name`` are in it) or when nothing came, else with one object of the direct form. Here is
the one place that catches everything, and it logs what it caught.

Each rung imports what it needs when it is reached: a fresh interpreter per call pays for every import.
"""

from __future__ import annotations

import os
import time
from functools import partial

from gaia_sessions import config as configs
from gaia_sessions import streams, strictjson
from gaia_sessions.clock import utc_now, write_time
from gaia_sessions.errors import InvalidInput, SessionsError, UnknownOutcome, well_formed
from gaia_sessions.project import find_root, working_directory

from . import HOOK, PRE_DELEGATE, SUBAGENT_STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.errors import BadSetting
    from gaia_sessions.events import Event
    from gaia_sessions.stores.directory import Directory
    from gaia_sessions.stores.files import FileStore
    from gaia_sessions.stores.locks import Release
    from gaia_sessions.strictjson import Json

    from .answers import Answer

    Payload = dict[str, Json]

INPUT_LIMIT = 8 << 20
OUTPUT_LIMIT = 2 * INPUT_LIMIT
"""Bytes: hosts send whole prompts, and an answer has its question in it."""

READING_LASTS = 1.5
LOCK_WAIT = 2.0
ALL_LASTS = 2.6
"""Seconds. The rest of the three belongs to starting and ending an interpreter."""

ANSWERED = frozenset(["delegate", "start", "returned", "notification", "session_start"])
"""The kinds of events that may have an answer; the others are spared the import of what makes one."""

_OF_A_HOST = "hook_event_name"
_BLANK: dict[str, dict[str, object]] = {
    PRE_DELEGATE: {"should_resume": False},
    SUBAGENT_STOP: {"finalized": False, "outcome": None},
}
_LONGEST_ID = 128
_LONGEST_ERROR = 500


def main(hook: str, arguments: list[str]) -> int:
    """Runs ``hook`` on standard input; with ``--test``, tries the whole flow. The exit code of the script: 0."""
    wiring = _wiring(arguments)
    if wiring is None:
        from .selftest import main as test

        return test(hook, arguments)
    host, tools = wiring
    call = Call(hook, host, tools=tools)
    try:
        call.climb()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a host must never notice that we failed
        call.fail(error)
    call.write_log()
    return 0


class Call:
    """One call of one hook, from the first byte read to the line in the log.

    host: the host that the hook was wired for, if that was said. tools: whether what sub-agents do with their
    tools is followed.
    """

    def __init__(self, hook: str, host: str | None = None, *, tools: bool = False) -> None:
        self.hook = hook
        self.host = host
        self.tools = tools
        self.started = time.monotonic()
        self.now = utc_now()
        self.of_a_host = True  # until it is plain that nobody but a person can have asked
        self.off = False
        self.payload: Payload | None = None
        self.root: str | None = None
        self.line: dict[str, object] = {}

    def climb(self) -> None:
        """Does what the input asks for, or nothing."""
        streams.secure()
        data = streams.read_input(INPUT_LIMIT, READING_LASTS)
        if not data:
            return
        try:
            self.payload = strictjson.load_object(data, INPUT_LIMIT)
            self.of_a_host = self.hook == HOOK or _OF_A_HOST in self.payload
        except InvalidInput:
            self.of_a_host = self.hook == HOOK or _OF_A_HOST.encode() in data
            self._settings()  # so that the log can tell of it
            raise
        config = self._settings()
        if self.of_a_host:
            self._take_in(self.payload, config)
        else:
            self._answer(self.payload, config)

    def fail(self, error: BaseException) -> None:
        """Silence for a host; for everybody else an answer that says what was wrong."""
        kind = "" if isinstance(error, SessionsError) else f"{type(error).__name__}: "
        told = well_formed(f"{kind}{error}")[:_LONGEST_ERROR]
        self.line |= {"decision": "error", "error": told}
        if self.off and not self.of_a_host:
            self._say({"reason": "disabled", "agent_id": self._asked_id()})
        elif not self.of_a_host:
            reason = "invalid_input" if isinstance(error, InvalidInput | UnknownOutcome) else "error"
            self._say({"reason": reason, "agent_id": self._asked_id(), "error": told})

    def write_log(self) -> None:
        """One line, if there was anything to do, a place to write it, and the hooks are not switched off."""
        if self.root is None or self.off or not self.line:
            return
        from gaia_sessions import log

        taken = round((time.monotonic() - self.started) * 1000, 1)
        log.write(self.root, self.hook, {"at": write_time(self.now), **self.line, "ms": taken})

    def _settings(self) -> Config:
        self.off = configs.hooks_are_off(os.environ)
        self.root = find_root(None, os.environ, working_directory())
        config = configs.load(self.root, os.environ, on_fault=self._note_fault)
        self.off = not config.hooks
        return config

    def _take_in(self, payload: Payload, config: Config) -> None:
        if self.off:
            return
        from . import hosts

        host = hosts.module_of(hosts.named(self.host, payload, os.environ))
        told = host.events_of(self.hook, payload, config, self.now, tools=self.tools)
        wanted = [event for event in told if _is_tracked(event, config, host.GENERAL)]
        if told and not wanted:
            self.off = True
            return
        self.line |= {"event": _shortened(payload.get(_OF_A_HOST)), **_ids(payload), "decision": "not_ours"}
        told = [self._apply(payload, event, config) for event in wanted]
        self._tell([words for words in told if words])

    def _apply(self, payload: Payload, event: Event, config: Config) -> Answer | None:
        """Takes ``event`` in; what the host is to be told of it."""
        from gaia_sessions.lifecycle import news

        store = self._store(config)
        enough = partial(_is_past, self.started + READING_LASTS)
        self._note_deferred(news.apply_deferred(store, self.now, config, enough))
        done = news.take_in(store, event, self.now, config, LOCK_WAIT)
        self.line |= {"decision": done.word, "session": done.agent_id}
        if done.refused:
            self.line["refused"] = done.refused
        if event["kind"] not in ANSWERED:
            return None
        from .answers import Answering, answer

        return answer(Answering(payload, event, done, store, config, self.now))

    def _tell(self, answers: list[Answer]) -> None:
        if not answers:
            return
        from .speech import together

        self.line["told"] = True
        streams.write_output(strictjson.dump_line(together(answers), OUTPUT_LIMIT))

    def _answer(self, payload: Payload, config: Config) -> None:
        if self.off:
            self._say({"reason": "disabled", "agent_id": self._asked_id()})
            return
        from . import direct

        desk = direct.Desk(self._store(config), config, self.now, LOCK_WAIT)
        answer = direct.ANSWERS[self.hook](payload, desk)
        self._note_deferred(desk.applied)
        self.line |= {"event": "direct", "decision": answer["reason"], "session": answer["agent_id"]}
        self._say(answer)

    def _store(self, config: Config) -> FileStore:
        from gaia_sessions.stores.files import FileStore

        wait = partial(_wait_until, self.started + ALL_LASTS)
        return FileStore(self.root or "", durable=config.durability == "full", lock_timeout=LOCK_WAIT, wait=wait)

    def _say(self, answer: dict[str, object]) -> None:
        whole = {**_BLANK[self.hook], **answer}
        try:
            data = strictjson.dump_line({**whole, "original_context": self.payload}, OUTPUT_LIMIT)
        except InvalidInput:  # the question was as deep or as long as may be, and the answer around it is more
            data = strictjson.dump_line({**whole, "agent_id": None, "original_context": None}, OUTPUT_LIMIT)
        streams.write_output(data)

    def _asked_id(self) -> Json:
        """The id the question was about, said back as it was."""
        asked = self.payload or {}
        told = asked.get("task_info")
        return (told if isinstance(told, dict) else asked).get("agent_id")

    def _note_fault(self, fault: BadSetting) -> None:
        self.line["setting"] = f"{fault}; {fault.hint}"

    def _note_deferred(self, applied: list[str]) -> None:
        if applied:
            self.line["inbox"] = applied


def _wiring(arguments: list[str]) -> tuple[str | None, bool] | None:
    """The host and whether tools are followed, as whoever wired the hook wrote it; None for what only people write."""
    given = iter(arguments)
    host, tools = None, False
    for word in given:
        if word == "--host":
            host = next(given, None)
        elif word == "--track-tools":
            tools = True
        else:
            return None
    return host, tools


def _is_tracked(event: Event, config: Config, general: str) -> bool:
    """Whether the settings want sessions for this agent's type; news that does not tell it is joined or not."""
    name = event.get("agent_name")
    if name is None:
        return True
    return name.casefold() not in config.ignore_agents and not (config.track == "named" and name == general)


def _is_past(moment: float) -> bool:
    return time.monotonic() > moment


def _wait_until(end: float, folder: Directory, name: str, seconds: float) -> Release | None:
    from gaia_sessions.stores.locks import sleep_and_retry

    return sleep_and_retry(folder, name, min(seconds, end - time.monotonic()))


def _ids(payload: Payload) -> dict[str, object]:
    """The ids in a payload that help to find the call again."""
    names = ("session_id", "agent_id", "tool_use_id", "tool_name", "agent_type")
    return {name: _shortened(payload[name]) for name in names if name in payload}


def _shortened(value: Json) -> str:
    """What a host calls something can be anybody's text, of any length."""
    return str(value)[:_LONGEST_ID]
