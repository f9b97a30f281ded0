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
from gaia_sessions.hosts import HOOK
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time, utc_now
from gaia_sessions.system import streams
from gaia_sessions.system.project_root import check_owner, find_root, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.jsonio.strict import Json
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.directory import Directory
    from gaia_sessions.store.file_store import FileStore
    from gaia_sessions.store.locks import Release

    from .arguments import HookArguments
    from .replies import Reply

    Payload = dict[str, Json]

INPUT_LIMIT = 8 << 20
OUTPUT_LIMIT = 2 * INPUT_LIMIT
"""Bytes: hosts send whole prompts, and some are answered with the prompt rewritten."""

READ_TIMEOUT = 1.5
LOCK_WAIT = 2.0
TOTAL_TIMEOUT = 2.6
"""Seconds. The rest of the three belongs to starting and ending an interpreter."""

KINDS_WITH_REPLY = frozenset(["delegate", "start", "returned", "notification", "session_start"])
"""The kinds of events that may have an answer; the others are spared the import of what makes one."""

_EVENT_NAME_KEY = "hook_event_name"
_VS_CODE_EVENT_NAME_KEY = "hookEventName"
_STANDARD_KEYS = {_VS_CODE_EVENT_NAME_KEY: _EVENT_NAME_KEY, "sessionId": "session_id"}
"""How VS Code may spell two keys, and how everybody else does."""

_ONLY_TRACK_TOOLS = ["--track-tools"]
"""What our own installing puts behind Claude Code's hooks: spared the import of what reads all else."""

_TERMINAL_PROMPT = "Waiting for JSON on standard input. End it with Ctrl-D on an empty line.\n"
_LONGEST_ERROR = 500


def _is_complete_object(data: bytes) -> bool:
    """Whether what was typed so far is a JSON object: then nothing can follow."""
    try:
        strict.load_object(data, INPUT_LIMIT)
    except InvalidInput:
        return False
    return True


def main(hook: str, arguments: list[str]) -> int:
    """Runs ``hook`` on standard input; with ``--test``, tries the whole flow. The exit code of the script: 0."""
    call = HookCall(hook)
    if arguments == _ONLY_TRACK_TOOLS:
        call.tools = True
    elif arguments:
        from . import arguments as words

        if words.is_for_people(arguments):
            from .selftest import main as test

            return test(hook, arguments)
        call.wired = words.parse_arguments(arguments)
        call.tools = call.wired.tools
    try:
        call.run()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a host must never notice that we failed
        call.fail(error)
    call.write_log()
    return 0


class HookCall:
    """One call of one hook, from the first byte read to the line in the log; ``wired`` if anything was said there."""

    def __init__(self, hook: str, wired: HookArguments | None = None) -> None:
        self.hook = hook
        self.wired = wired
        self.tools = wired is not None and wired.tools
        self.started = time.monotonic()
        self.now = utc_now()
        self.is_host_call = True  # until it is plain that nobody but a person can have asked
        self.is_disabled = False
        self.payload: Payload | None = None
        self.root: str | None = None
        self.line: dict[str, object] = {}

    def run(self) -> None:
        """Does what the input asks for, or nothing."""
        streams.fill_closed_streams()
        data = streams.read_typed(_TERMINAL_PROMPT, INPUT_LIMIT, _is_complete_object)
        if data is None:
            data = streams.read_input(INPUT_LIMIT, READ_TIMEOUT)
        else:
            self.started = time.monotonic()  # typing takes as long as it takes
        if not data:
            return
        try:
            self.payload = _with_standard_keys(strict.load_object(data, INPUT_LIMIT))
            self.is_host_call = self.hook == HOOK or _EVENT_NAME_KEY in self.payload
        except InvalidInput:
            self.is_host_call = self.hook == HOOK or any(
                name.encode() in data for name in (_EVENT_NAME_KEY, _VS_CODE_EVENT_NAME_KEY)
            )
            self._load_settings()  # so that the log can tell of it
            raise
        config = self._load_settings()
        if self.is_host_call:
            self._handle_host_payload(self.payload, config)
        else:
            self._handle_direct(self.payload, config)

    def fail(self, *errors: BaseException) -> None:
        """Silence for a host; for everybody else an answer that says what was wrong."""
        message = well_formed("; ".join(_error_text(error) for error in errors))[:_LONGEST_ERROR]
        self.line |= {"decision": "error", "error": message}
        if not self.is_host_call:
            from . import direct

            request = self.payload or {}
            answer = (
                direct.disabled_answer(request)
                if self.is_disabled
                else direct.error_answer(request, errors[0], message)
            )
            direct.write_answer(self.hook, answer, self.payload, self._seconds_left())

    def write_log(self) -> None:
        """One line, if there was anything to do, a place to write it, and the hooks are not switched off."""
        if self.root is None or self.is_disabled or not self.line:
            return
        from gaia_sessions.store import hook_log

        elapsed = round((time.monotonic() - self.started) * 1000, 1)
        hook_log.append_line(self.root, self.hook, {"at": format_time(self.now), **self.line, "ms": elapsed})

    def _load_settings(self) -> Config:
        self.is_disabled = configs.hooks_are_off(os.environ)
        root = find_root(self.wired.root if self.wired else None, os.environ, working_directory())
        check_owner(root)
        self.root = root
        config, faults = configs.load_with_faults(self.root, os.environ)
        if faults:
            self.line["setting"] = f"{faults[-1]}; {faults[-1].hint}"
        self.is_disabled = not config.hooks
        if self.wired and self.wired.ignored:
            self.line["ignored"] = self.wired.ignored
        return config

    def _handle_host_payload(self, payload: Payload, config: Config) -> None:
        if self.is_disabled:
            return
        from gaia_sessions.hosts import registry
        from gaia_sessions.hosts.payload import HookPayload
        from gaia_sessions.store import hook_log  # for the line in any case

        if self.wired and self.wired.host not in (None, *registry.HOSTS):
            self.line["unknown_host"] = hook_log.shorten_id(self.wired.host)
        name = registry.host_of(self.wired.host if self.wired else None, payload, os.environ)
        host = registry.module_of(name)
        message = HookPayload(name, payload, config, self.now, os.environ)
        found = host.events_of(self.hook, message, tools=self.tools)
        tracked = [event for event in found if _is_tracked(event, config, host.GENERAL)]
        if found and not tracked:
            self.is_disabled = True
            return
        self.line |= {
            **hook_log.payload_fields(payload, _EVENT_NAME_KEY),
            "host": name,
            **hook_log.event_fields(tracked),
            "decision": "not_ours",
        }
        self._tell(self._handle_events(payload, tracked, config))

    def _handle_events(self, payload: Payload, events: list[Event], config: Config) -> list[Reply]:
        """Takes ``events`` in, each by itself: one that fails keeps no other out. What the host is to be told."""
        if not events:
            return []
        from gaia_sessions.ingest import deferred

        store = self._store(config)
        self._note_deferred(deferred.apply_deferred(store, self.now, config, self._is_late, new_events=events))
        answers, failed = [], []
        for event in events:
            try:
                answers.append(self._handle_event(payload, event, store, config))
            except Exception as error:  # noqa: BLE001  # it is logged, and the next event is not to blame
                failed.append(error)
        if failed:
            self.fail(*failed)
        return [answer for answer in answers if answer]

    def _handle_event(self, payload: Payload, event: Event, store: FileStore, config: Config) -> Reply | None:
        """Takes ``event`` in; what the host is to be told of it."""
        from gaia_sessions.ingest import dispatch

        result = dispatch.handle_event(store, event, self.now, config, LOCK_WAIT)
        self.line |= {"decision": result.word, "session": result.agent_id}
        if result.refused:
            self.line["refused"] = result.refused
        if event["kind"] not in KINDS_WITH_REPLY:
            return None
        from .replies import ReplyContext, build_reply

        return build_reply(ReplyContext(payload, event, result, store, config, self.now, self._is_late))

    def _tell(self, answers: list[Reply]) -> None:
        if not answers:
            return
        from .replies import merge_replies

        answer = strict.dump_line(merge_replies(answers), OUTPUT_LIMIT)
        self.line["told"] = streams.write_output(answer, self._seconds_left())

    def _handle_direct(self, payload: Payload, config: Config) -> None:
        from . import direct

        if self.is_disabled:
            direct.write_answer(self.hook, direct.disabled_answer(payload), payload, self._seconds_left())
            return
        context = direct.DirectContext(self._store(config), config, self.now, LOCK_WAIT, self._is_late)
        answer = direct.HANDLERS[self.hook](payload, context)
        self._note_deferred(context.applied)
        self.line |= {"event": "direct", "decision": answer["reason"], "session": answer["agent_id"]}
        direct.write_answer(self.hook, answer, payload, self._seconds_left())

    def _store(self, config: Config) -> FileStore:
        from gaia_sessions.store.file_store import FileStore

        return FileStore.from_config(
            self.root or "", config, lock_timeout=LOCK_WAIT, wait=self._wait, seconds_left=self._seconds_left
        )

    def _is_late(self) -> bool:
        """Whether what is left of the time belongs to the news at hand."""
        return time.monotonic() > self.started + READ_TIMEOUT

    def _wait(self, folder: Directory, name: str, seconds: float) -> Release | None:
        from gaia_sessions.store.locks import sleep_and_retry

        return sleep_and_retry(folder, name, min(seconds, self._seconds_left()))

    def _seconds_left(self) -> float:
        """Seconds that are left of those for the whole call."""
        return self.started + TOTAL_TIMEOUT - time.monotonic()

    def _note_deferred(self, applied: list[str]) -> None:
        if applied:
            self.line["inbox"] = applied


def _with_standard_keys(payload: Payload) -> Payload:
    """``payload`` with the keys by which we know an event, however its host spells them."""
    if _EVENT_NAME_KEY not in payload and _VS_CODE_EVENT_NAME_KEY not in payload:
        return payload
    return {standard: payload[spelled] for spelled, standard in _STANDARD_KEYS.items() if spelled in payload} | payload


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"


def _is_tracked(event: Event, config: Config, general: str) -> bool:
    """Whether the settings want sessions for this agent's type; news that does not tell it is joined or not."""
    name = event.get("agent_name")
    if name is None:
        return True
    return name.casefold() not in config.ignore_agents and not (config.track == "named" and name == general)
