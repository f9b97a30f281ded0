"""The ladder every hook call climbs: read, whose is it, switched off, do it, answer, one line in the log.

Owns the promise that a hook fails open and silent: exit 0 in every case, within three seconds, and no
output to a host; only a person who starts it at a terminal is waited for, and told so. Input that cannot be
read is met with silence when a host sent it (the name of the key that names its event is in it) or when
nothing came, else with one object of the direct form. Here is the one place that catches everything, and it
logs what it caught.

Each rung imports what it needs when it is reached: a fresh interpreter per call pays for every import.
"""

from __future__ import annotations

import os
import time

from gaia_sessions import config as configs
from gaia_sessions.errors import InvalidInput, SessionsError, well_formed
from gaia_sessions.hosts.protocol import HOOK
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import utc_now, write_time
from gaia_sessions.system import streams
from gaia_sessions.system.project_root import check_ours, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.errors import BadSetting
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.file_store import FileStore
    from gaia_sessions.store.locks import Release

    from .arguments import Wired
    from .replies import Answer

    Payload = dict[str, Json]

INPUT_LIMIT = 8 << 20
OUTPUT_LIMIT = 2 * INPUT_LIMIT
"""Bytes: hosts send whole prompts, and some are answered with the prompt rewritten."""

READING_LASTS = 1.5
LOCK_WAIT = 2.0
ALL_LASTS = 2.6
"""Seconds. The rest of the three belongs to starting and ending an interpreter."""

ANSWERED = frozenset(["delegate", "start", "returned", "notification", "session_start"])
"""The kinds of events that may have an answer; the others are spared the import of what makes one."""

_OF_A_HOST = "hook_event_name"
_OF_VS_CODE = "hookEventName"
_SPELLED = {_OF_VS_CODE: _OF_A_HOST, "sessionId": "session_id"}
"""How VS Code may spell two keys, and how everybody else does."""

_TOOLS = ["--track-tools"]
"""What our own installing puts behind Claude Code's hooks: spared the import of what reads all else."""

_PROMPT = "Waiting for JSON on standard input. End it with Ctrl-D on an empty line.\n"
_LONGEST_ERROR = 500


def _is_whole(data: bytes) -> bool:
    """Whether what was typed so far is a JSON object: then nothing can follow."""
    try:
        strict.load_object(data, INPUT_LIMIT)
    except InvalidInput:
        return False
    return True


def main(hook: str, arguments: list[str]) -> int:
    """Runs ``hook`` on standard input; with ``--test``, tries the whole flow. The exit code of the script: 0."""
    call = Call(hook)
    if arguments == _TOOLS:
        call.tools = True
    elif arguments:
        from . import arguments as words

        if words.for_people(arguments):
            from .selftest import main as test

            return test(hook, arguments)
        call.wired = words.read(arguments)
        call.tools = call.wired.tools
    try:
        call.climb()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a host must never notice that we failed
        call.fail(error)
    call.write_log()
    return 0


class Call:
    """One call of one hook, from the first byte read to the line in the log; ``wired`` if anything was said there."""

    def __init__(self, hook: str, wired: Wired | None = None) -> None:
        self.hook = hook
        self.wired = wired
        self.tools = wired is not None and wired.tools
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
        data = streams.read_typed(_PROMPT, INPUT_LIMIT, _is_whole)
        if data is None:
            data = streams.read_input(INPUT_LIMIT, READING_LASTS)
        else:
            self.started = time.monotonic()  # typing takes as long as it takes
        if not data:
            return
        try:
            self.payload = _in_one_spelling(strict.load_object(data, INPUT_LIMIT))
            self.of_a_host = self.hook == HOOK or _OF_A_HOST in self.payload
        except InvalidInput:
            self.of_a_host = self.hook == HOOK or any(name.encode() in data for name in (_OF_A_HOST, _OF_VS_CODE))
            self._settings()  # so that the log can tell of it
            raise
        config = self._settings()
        if self.of_a_host:
            self._take_in(self.payload, config)
        else:
            self._answer(self.payload, config)

    def fail(self, *errors: BaseException) -> None:
        """Silence for a host; for everybody else an answer that says what was wrong."""
        told = well_formed("; ".join(_told_of(error) for error in errors))[:_LONGEST_ERROR]
        self.line |= {"decision": "error", "error": told}
        if not self.of_a_host:
            from . import direct

            asked = self.payload or {}
            answer = direct.disabled(asked) if self.off else direct.refused(asked, errors[0], told)
            direct.say(self.hook, answer, self.payload, self._left())

    def write_log(self) -> None:
        """One line, if there was anything to do, a place to write it, and the hooks are not switched off."""
        if self.root is None or self.off or not self.line:
            return
        from gaia_sessions.store import hook_log

        taken = round((time.monotonic() - self.started) * 1000, 1)
        hook_log.write(self.root, self.hook, {"at": write_time(self.now), **self.line, "ms": taken})

    def _settings(self) -> Config:
        self.off = configs.hooks_are_off(os.environ)
        root = find_root(self.wired.root if self.wired else None, os.environ, working_directory())
        check_ours(root)
        self.root = root
        config = configs.load(self.root, os.environ, on_fault=self._note_fault)
        self.off = not config.hooks
        if self.wired and self.wired.ignored:
            self.line["ignored"] = self.wired.ignored
        return config

    def _take_in(self, payload: Payload, config: Config) -> None:
        if self.off:
            return
        from gaia_sessions.hosts import registry
        from gaia_sessions.store import hook_log  # for the line in any case

        if self.wired and self.wired.host not in (None, *registry.HOSTS):
            self.line["unknown_host"] = hook_log.shortened(self.wired.host)
        name = registry.named(self.wired.host if self.wired else None, payload, os.environ)
        host = registry.module_of(name)
        told = host.events_of(self.hook, payload, config, self.now, tools=self.tools)
        wanted = [event for event in told if _is_tracked(event, config, host.GENERAL)]
        if told and not wanted:
            self.off = True
            return
        self.line |= {
            **hook_log.named_in(payload, _OF_A_HOST),
            "host": name,
            **hook_log.told_by(wanted),
            "decision": "not_ours",
        }
        self._tell(self._apply_each(payload, wanted, config))

    def _apply_each(self, payload: Payload, events: list[Event], config: Config) -> list[Answer]:
        """Takes ``events`` in, each by itself: one that fails keeps no other out. What the host is to be told."""
        if not events:
            return []
        from gaia_sessions.ingest import dispatch

        store = self._store(config)
        self._note_deferred(dispatch.apply_deferred(store, self.now, config, self._is_late, before=events))
        answers, failed = [], []
        for event in events:
            try:
                answers.append(self._apply(payload, event, store, config))
            except Exception as error:  # noqa: BLE001  # it is logged, and the next event is not to blame
                failed.append(error)
        if failed:
            self.fail(*failed)
        return [answer for answer in answers if answer]

    def _apply(self, payload: Payload, event: Event, store: FileStore, config: Config) -> Answer | None:
        """Takes ``event`` in; what the host is to be told of it."""
        from gaia_sessions.ingest import dispatch

        done = dispatch.take_in(store, event, self.now, config, LOCK_WAIT)
        self.line |= {"decision": done.word, "session": done.agent_id}
        if done.refused:
            self.line["refused"] = done.refused
        if event["kind"] not in ANSWERED:
            return None
        from .replies import Answering, answer

        return answer(Answering(payload, event, done, store, config, self.now, self._is_late))

    def _tell(self, answers: list[Answer]) -> None:
        if not answers:
            return
        from .messages import together

        answer = strict.dump_line(together(answers), OUTPUT_LIMIT)
        self.line["told"] = streams.write_output(answer, self._left())

    def _answer(self, payload: Payload, config: Config) -> None:
        from . import direct

        if self.off:
            direct.say(self.hook, direct.disabled(payload), payload, self._left())
            return
        desk = direct.Desk(self._store(config), config, self.now, LOCK_WAIT, self._is_late)
        answer = direct.ANSWERS[self.hook](payload, desk)
        self._note_deferred(desk.applied)
        self.line |= {"event": "direct", "decision": answer["reason"], "session": answer["agent_id"]}
        direct.say(self.hook, answer, payload, self._left())

    def _store(self, config: Config) -> FileStore:
        from gaia_sessions.store.file_store import FileStore

        durable = config.durability == "full"
        return FileStore(
            self.root or "", durable=durable, lock_timeout=LOCK_WAIT, wait=self._wait, seconds_left=self._left
        )

    def _is_late(self) -> bool:
        """Whether what is left of the time belongs to the news at hand."""
        return time.monotonic() > self.started + READING_LASTS

    def _wait(self, folder: Directory, name: str, seconds: float) -> Release | None:
        from gaia_sessions.store.locks import sleep_and_retry

        return sleep_and_retry(folder, name, min(seconds, self._left()))

    def _left(self) -> float:
        """Seconds that are left of those for the whole call."""
        return self.started + ALL_LASTS - time.monotonic()

    def _note_fault(self, fault: BadSetting) -> None:
        self.line["setting"] = f"{fault}; {fault.hint}"

    def _note_deferred(self, applied: list[str]) -> None:
        if applied:
            self.line["inbox"] = applied


def _in_one_spelling(payload: Payload) -> Payload:
    """``payload`` with the keys by which we know an event, however its host spells them."""
    if _OF_A_HOST not in payload and _OF_VS_CODE not in payload:
        return payload
    return {ours: payload[own] for own, ours in _SPELLED.items() if own in payload} | payload


def _told_of(error: BaseException) -> str:
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"


def _is_tracked(event: Event, config: Config, general: str) -> bool:
    """Whether the settings want sessions for this agent's type; news that does not tell it is joined or not."""
    name = event.get("agent_name")
    if name is None:
        return True
    return name.casefold() not in config.ignore_agents and not (config.track == "named" and name == general)
