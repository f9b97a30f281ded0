"""One call of a hook, step by step: read the input, find the host, apply the events, reply, log.

Owns the promise that a hook fails open and silent: exit code 0 in every case, at most three seconds, and no output to a
host when something went wrong. Input that cannot be read gets no answer when a host sent it (the key that names its
event is in it) or when it is empty, else one object of the direct form. The one handler that catches every exception is
here, and it logs what it caught. Must never judge an event. Only a person at a terminal is waited for.

A call is a fresh interpreter that pays for every import, so each step imports what it needs when it is reached.
"""

from __future__ import annotations

import os

from gaia_sessions import config as configs
from gaia_sessions import hosts
from gaia_sessions.errors import InvalidInput, SessionsError, well_formed
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time, utc_now
from gaia_sessions.system import streams
from gaia_sessions.system.project_root import check_owner, find_root, working_directory

from . import LOCK_TIMEOUT, READ_TIMEOUT, TimeLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.hosts.payload import Payload
    from gaia_sessions.hosts.protocol import HostModule
    from gaia_sessions.session.events import Event
    from gaia_sessions.store.file_store import FileStore

    from .arguments import HookArguments
    from .replies import Reply

INPUT_LIMIT = 8 << 20
OUTPUT_LIMIT = 2 * INPUT_LIMIT
"""Bytes. Hosts send whole prompts, and some replies hold the rewritten prompt."""

KINDS_WITH_REPLY = frozenset(["delegate", "start", "returned", "notification", "session_start"])
"""The kinds of events that may have a reply; for the others ``replies`` is not imported."""

_EVENT_NAME_KEY = "hook_event_name"
_EVENT_NAME_KEYS = (_EVENT_NAME_KEY, "hookEventName")
_STANDARD_KEYS = {"hookEventName": _EVENT_NAME_KEY, "sessionId": "session_id"}
"""How VS Code may spell two keys, and how every other host does."""

_ONLY_TRACK_TOOLS = ["--track-tools"]
"""What ``hooks install`` writes behind Claude Code's hook: it is read without importing ``arguments``."""

_TERMINAL_PROMPT = "Waiting for JSON on standard input. End it with Ctrl-D on an empty line.\n"
_LONGEST_ERROR = 500


def main(hook: str, arguments: list[str]) -> int:
    """Runs ``hook`` on standard input and returns the exit code 0; with ``--test`` or ``--help``, serves a person."""
    call = HookCall(hook)
    if arguments == _ONLY_TRACK_TOOLS:
        call.tools = True
    elif arguments:
        from . import arguments as words

        if words.is_for_people(arguments):
            from .selftest import main as test

            return test(hook, arguments)
        call.arguments = words.parse_arguments(arguments)
        call.tools = call.arguments.tools
    try:
        call.run()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a host must never notice that we failed
        call.fail(error)
    call.write_log()
    return 0


class HookCall:
    """One call of one hook, from the first byte read to the line in the log."""

    def __init__(self, hook: str) -> None:
        self.hook = hook
        self.arguments: HookArguments | None = None
        self.tools = False
        self.time = TimeLimits()
        self.now = utc_now()
        self.is_host_call = True  # until the payload shows that no host sent it
        self.is_disabled = False
        self.payload: Payload | None = None
        self.root: str | None = None
        self.line: dict[str, object] = {}

    def run(self) -> None:
        """Reads the input and does what it asks for; empty input asks for nothing."""
        data = self._read_input()
        if not data:
            return
        payload = self._parse(data)
        config = self._load_settings()
        if self.is_host_call:
            self._handle_host_payload(payload, config)
        else:
            self._handle_direct(payload, config)

    def fail(self, *errors: BaseException) -> None:
        """Logs ``errors``. A host gets no output; any other caller gets an answer that says what was wrong."""
        message = well_formed("; ".join(_error_text(error) for error in errors))[:_LONGEST_ERROR]
        self.line |= {"decision": "error", "error": message}
        if not self.is_host_call:
            from . import direct

            request = self.payload or {}
            error = direct.error_answer(request, errors[0], message)
            answer = direct.disabled_answer(request) if self.is_disabled else error
            direct.write_answer(self.hook, answer, self.payload, self.time.seconds_left())

    def write_log(self) -> None:
        """Writes one line, unless there was nothing to do, no root was found, or the hooks are switched off."""
        if self.root is None or self.is_disabled or not self.line:
            return
        from gaia_sessions.store import hook_log

        line = {"at": format_time(self.now), **self.line, "ms": self.time.milliseconds()}
        hook_log.append_line(self.root, self.hook, line)

    def _read_input(self) -> bytes:
        streams.fill_closed_streams()
        typed = streams.read_typed(_TERMINAL_PROMPT, INPUT_LIMIT, _is_complete_object)
        if typed is None:
            return streams.read_input(INPUT_LIMIT, READ_TIMEOUT)
        self.time.restart()
        return typed

    def _parse(self, data: bytes) -> Payload:
        try:
            self.payload = payload = _with_standard_keys(strict.load_object(data, INPUT_LIMIT))
        except InvalidInput:
            self.is_host_call = self.hook == hosts.HOOK or any(name.encode() in data for name in _EVENT_NAME_KEYS)
            self._load_settings()  # which find the log
            raise
        self.is_host_call = self.hook == hosts.HOOK or _EVENT_NAME_KEY in payload
        return payload

    def _load_settings(self) -> Config:
        self.is_disabled = configs.hooks_are_off(os.environ)
        root = find_root(self.arguments.root if self.arguments else None, os.environ, working_directory())
        check_owner(root)
        self.root = root
        config, faults = configs.load_with_faults(self.root, os.environ)
        if faults:
            self.line["setting"] = f"{faults[-1]}; {faults[-1].hint}"
        self.is_disabled = not config.hooks
        if self.arguments and self.arguments.ignored:
            self.line["ignored"] = self.arguments.ignored
        return config

    def _handle_host_payload(self, payload: Payload, config: Config) -> None:
        if self.is_disabled:
            return
        from gaia_sessions.hosts.payload import HookPayload
        from gaia_sessions.store import hook_log

        name, host = self._find_host(payload)
        message = HookPayload(name, payload, config, self.now, os.environ)
        found = host.events_of(self.hook, message, tools=self.tools)
        events = [event for event in found if message.is_tracked(event, host.GENERAL)]
        if found and not events:
            self.is_disabled = True
            return
        self.line |= hook_log.payload_fields(payload, _EVENT_NAME_KEY)
        self.line |= {"host": name, **hook_log.event_fields(events), "decision": "not_ours"}
        self._reply(self._apply(events, payload, config) if events else [])

    def _find_host(self, payload: Payload) -> tuple[str, HostModule]:
        configured = self.arguments.host if self.arguments else None
        if configured not in (None, *hosts.HOSTS):
            from gaia_sessions.store import hook_log

            self.line["unknown_host"] = hook_log.shorten_id(configured)
        name = hosts.host_of(configured, payload, os.environ)
        return name, hosts.module_of(name)

    def _apply(self, events: list[Event], payload: Payload, config: Config) -> list[Reply]:
        """Applies the events that wait in the inbox, then ``events``: one that fails does not stop the others."""
        store = self.time.open_store(self.root or "", config)
        if store.may_have_waiting():
            from gaia_sessions.ingest.deferred import apply_deferred

            applied = apply_deferred(store, self.now, config, self.time.is_late, new_events=events)
            self.line |= {"inbox": applied} if applied else {}
        replies, failed = [], []
        for event in events:
            try:
                replies.append(self._apply_event(event, payload, store, config))
            except Exception as error:  # noqa: BLE001  # it is logged, and the next event is not to blame
                failed.append(error)
        if failed:
            self.fail(*failed)
        return [reply for reply in replies if reply]

    def _apply_event(self, event: Event, payload: Payload, store: FileStore, config: Config) -> Reply | None:
        from gaia_sessions.ingest import dispatch

        result = dispatch.handle_event(store, event, self.now, config, LOCK_TIMEOUT)
        self.line |= {"decision": result.word, "session": result.agent_id}
        self.line |= {"refused": result.refused} if result.refused else {}
        if event["kind"] not in KINDS_WITH_REPLY or (event["kind"] == "delegate" and result.resumed is None):
            return None
        from .replies import ReplyContext, build_reply

        return build_reply(ReplyContext(payload, event, result, store, config, self.now, self.time.is_late))

    def _reply(self, replies: list[Reply]) -> None:
        if not replies:
            return
        from .replies import merge_replies

        reply = strict.dump_line(merge_replies(replies), OUTPUT_LIMIT)
        self.line["told"] = streams.write_output(reply, self.time.seconds_left())

    def _handle_direct(self, payload: Payload, config: Config) -> None:
        from . import direct

        if self.is_disabled:
            answer = direct.disabled_answer(payload)
        else:
            context = direct.DirectContext(self.root or "", config, self.now, self.time)
            answer = direct.HANDLERS[self.hook](payload, context)
            self.line |= {"inbox": context.applied} if context.applied else {}
            self.line |= {"event": "direct", "decision": answer["reason"], "session": answer["agent_id"]}
        direct.write_answer(self.hook, answer, payload, self.time.seconds_left())


def _is_complete_object(data: bytes) -> bool:
    """Whether what was typed so far is a whole JSON object."""
    try:
        strict.load_object(data, INPUT_LIMIT)
    except InvalidInput:
        return False
    return True


def _with_standard_keys(payload: Payload) -> Payload:
    """``payload`` with the standard spelling of the keys that identify an event."""
    if not any(name in payload for name in _EVENT_NAME_KEYS):
        return payload
    return {standard: payload[spelled] for spelled, standard in _STANDARD_KEYS.items() if spelled in payload} | payload


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"
