"""One call of a hook, step by step: read the input, find the host, apply the events, reply, log.

It always exits with 0 within three seconds, and an error prints nothing for a host. Only for a person at a terminal
does it wait longer. The one handler that catches every exception is here. Each step imports what it needs when it is
reached, since every call pays for its imports.
"""

from __future__ import annotations

import os

from gaia_sessions import config as configs
from gaia_sessions import hosts
from gaia_sessions.errors import InvalidInput, SessionsError, well_formed
from gaia_sessions.jsonio import strict
from gaia_sessions.session.clock import format_time
from gaia_sessions.session.host_events import STOP
from gaia_sessions.system import streams, utc_now
from gaia_sessions.system.project_root import ROOT_VARIABLE, check_owner, find_root, is_on_server, working_directory

from . import (
    READ_TIMEOUT,
    TimeLimits,
    apply_each,
    apply_waiting,
    handle_event,
    is_countable,
    may_have_reply,
    read_arguments,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.config import Config
    from gaia_sessions.hosts import Host
    from gaia_sessions.hosts.payload import HookPayload, Payload
    from gaia_sessions.ingest import EventResult
    from gaia_sessions.session.host_events import Event
    from gaia_sessions.session.schema import Record
    from gaia_sessions.store.port import Store

    from .replies import Reply

INPUT_LIMIT = 8 << 20
OUTPUT_LIMIT = 2 * INPUT_LIMIT
"""Bytes. Hosts send whole prompts, and some replies contain the rewritten prompt."""

_TERMINAL_PROMPT = "Waiting for JSON on standard input. End it with Ctrl-D on an empty line.\n"
_LONGEST_ERROR = 500


def main(hook: str, arguments: list[str]) -> int:
    """Runs ``hook`` on standard input and returns 0; with ``--test`` or ``--help``, serves a person."""
    call = HookCall(hook, arguments)
    if call.arguments["test"] or call.arguments["help"]:
        from .selftest import main as serve_person

        return serve_person(hook, call.arguments)
    try:
        try:
            call.run()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a host must never notice that we failed
            call.fail(error)
        call.write_log()
    except (Exception, KeyboardInterrupt):  # noqa: BLE001  # a part of the package is missing
        return 0  # this happens while the package is replaced; the log may be missing too
    return 0


class HookCall:
    """One call of one hook, from the first byte of its input to its line in the log."""

    def __init__(self, hook: str, words: list[str]) -> None:
        self.hook = hook
        self.arguments = read_arguments(words)
        self.time = TimeLimits()
        self.now = utc_now()
        self.is_host_call = True  # until the payload shows that no host sent it
        self.is_disabled = False
        self.payload: Payload | None = None
        self.root: str | None = None
        self.line: dict[str, object] = {}
        self.last: tuple[Store, Record] | None = None  # the session of the log line, if it is below another session
        self.results_to_count: list[tuple[Store, Event, EventResult]] = []

    def run(self) -> None:
        """Reads the input and does what it asks for. Empty input asks for nothing."""
        data = self._read_input()
        if not data:
            return
        try:
            payload = self._parse(data)
        except InvalidInput:
            config = self._load_settings()  # they say where the log is
            if self.arguments["enforce"] and self.is_host_call:
                self._limit_unreadable(data, config)
            raise
        config = self._load_settings()
        if self.is_host_call:
            self._handle_host_payload(payload, config)
        else:
            self._handle_direct(payload, config)

    def fail(self, *errors: BaseException) -> None:
        """Logs ``errors``. A host gets no output; any other caller gets an answer with the error."""
        text = well_formed("; ".join(_error_text(error) for error in errors))[:_LONGEST_ERROR]
        self.line |= {"decision": "error", "error": text}
        if not self.is_host_call:
            from . import direct

            request = self.payload or {}
            error = direct.error_answer(request, errors[0], text)
            answer = direct.disabled_answer(request) if self.is_disabled else error
            direct.write_answer(self.hook, answer, self.payload, self.time.seconds_left())

    def write_log(self) -> None:
        """Writes one line, unless nothing was done, no root was found, or the hooks are off."""
        if self.root is None or self.is_disabled or not self.line:
            return
        from gaia_sessions.store import hook_log

        if self.last is not None:
            self._add_root(*self.last)
        line = {"at": format_time(self.now), **self.line, "ms": self.time.milliseconds()}
        hook_log.append_line(self.root, self.hook, line)

    def _add_root(self, store: Store, record: Record) -> None:
        """Adds the topmost session above ``record``, so that a tree can be found in the log."""
        from gaia_sessions.store.above import Above

        try:
            self.line["root_id"] = [*Above(store).ids_above(record)][-1]
        except SessionsError:  # what is above cannot be read
            return

    def _read_input(self) -> bytes:
        streams.fill_closed_streams()
        typed = streams.read_typed(_TERMINAL_PROMPT, INPUT_LIMIT, _is_complete_object)
        if typed is None:
            return streams.read_input(INPUT_LIMIT, READ_TIMEOUT)
        self.time.restart()
        return typed

    def _parse(self, data: bytes) -> Payload:
        try:
            self.payload = payload = strict.load_object(data, INPUT_LIMIT)
        except InvalidInput:  # the key that names its event shows that a host sent it
            self.is_host_call = self.hook == hosts.HOOK or any(key.encode() in data for key in hosts.EVENT_NAME_KEYS)
            raise
        self.is_host_call = self.hook == hosts.HOOK or any(key in payload for key in hosts.EVENT_NAME_KEYS)
        return payload

    def _load_settings(self) -> Config:
        self.is_disabled = configs.hooks_are_off(os.environ)
        root = find_root(self.arguments["root"], os.environ, working_directory(), only_files=True)
        check_owner(root)
        self.root = root
        if self.arguments["root"] is None and is_on_server(os.environ.get(ROOT_VARIABLE, "")):
            self.line["url"] = "passed_over"
        config, faults = configs.load_with_faults(self.root, os.environ)
        if faults:
            self.line["setting"] = str(faults[-1])
        self.is_disabled = not config.hooks
        if self.arguments["ignored"]:
            self.line["ignored"] = self.arguments["ignored"]
        return config

    def _handle_host_payload(self, raw: Payload, config: Config) -> None:
        if self.is_disabled:
            return
        from gaia_sessions.hosts.payload import HookPayload
        from gaia_sessions.store import hook_log

        name = self._find_host(raw)
        if name is None:
            self.line |= {**hook_log.payload_fields(raw, hosts.EVENT_NAME_KEY), "decision": "not_ours"}
            return
        host = hosts.host_named(name)
        payload = HookPayload(name, raw, config, self.now, os.environ)
        found = host.events_of(self.hook, payload)
        events = [event for event in found if payload.is_tracked(event, host.general)]
        if self.arguments["enforce"] and host.asks_before_tools:
            events = [{**event, "enforced": True} for event in events]
        asks = self.arguments["enforce"] and self._asks_before_tool(payload, host)
        if found and not (events or asks):
            self.is_disabled = True
            return
        self.line |= hook_log.payload_fields(raw, hosts.EVENT_NAME_KEY)
        self.line |= {"host": name, **hook_log.event_fields(events), "decision": "not_ours"}
        if not (events or asks):
            return
        store = self.time.open_store(self.root or "", config)
        applied = apply_waiting(store, self.now, config, events, self.time.is_late)
        self.line |= {"inbox": applied} if applied else {}
        if asks and (reply := self._limited(payload, host, store, events)):
            self._reply([reply])
            return
        self._reply(self._apply(events, payload, host, store))
        if self.results_to_count and host.consumption:
            from .counting import count_runs

            count_runs(self.results_to_count, self.time)

    def _limit_unreadable(self, data: bytes, config: Config) -> None:
        """Checks the limits with the part of the payload that comes before what an agent writes."""
        from .enforcement import payload_before, unjudged

        raw = payload_before(b'"tool_input"', data) or payload_before(b'"tool_name"', data)
        if not raw and not self.is_disabled and b'"agent_id"' in data:  # an agent sent it, but which one is unknown
            asking = [host.asks_before_tools for host in map(hosts.host_named, hosts.HOSTS)]
            output = unjudged(InvalidInput("unreadable")).output() or {}
            told = [name for name in asking if name and f'"{name}"'.encode() in data]
            self._reply([{"hookSpecificOutput": {"hookEventName": name, **output}} for name in told])
            return
        name = self._find_host(raw)
        if name is None or self.is_disabled:
            return
        from gaia_sessions.hosts.payload import HookPayload

        host, payload = hosts.host_named(name), HookPayload(name, raw, config, self.now, os.environ)
        if self._asks_before_tool(payload, host):
            store = self.time.open_store(self.root or "", config)
            applied = apply_waiting(store, self.now, config, [], self.time.is_late)  # the agent's start may wait
            self.line |= {"inbox": applied} if applied else {}
            whole = HookPayload(name, {**raw, "tool_input": {}, "tool_use_id": "unread"}, config, self.now, os.environ)
            reply = self._limited(payload, host, store, host.events_of(self.hook, whole), has_input=False)
            self._reply([reply] if reply else [])

    def _asks_before_tool(self, payload: HookPayload, host: Host) -> bool:
        """Returns whether the host asks before a use of a tool, and the agent is a tracked one."""
        name = payload.key("agent_type")
        is_tracked = name is None or payload.is_tracked({"agent_name": name}, host.general)
        return is_tracked and payload.text(hosts.EVENT_NAME_KEY) == host.asks_before_tools

    def _limited(
        self, payload: HookPayload, host: Host, store: Store, events: list[Event], *, has_input: bool = True
    ) -> Reply | None:
        """Returns the reply if the use of a tool is denied, or the agent is warned."""
        from .enforcement import unjudged, verdict

        try:
            found = verdict(payload, host, store, events, has_input=has_input)
        except Exception as error:
            if payload.key("agent_id") is None:
                raise
            found = unjudged(error)  # what an agent writes must not lift its limits
        self.line |= {"decision": found.word, "session": found.agent_id}
        self.line |= {"reason": found.denied[:_LONGEST_ERROR]} if found.denied else {}
        self.line |= {"limits": well_formed(str(found.unread))[:_LONGEST_ERROR]} if found.unread else {}
        output = found.output()
        return output and {"hookSpecificOutput": {"hookEventName": host.asks_before_tools, **output}}

    def _find_host(self, payload: Payload) -> str | None:
        configured = self.arguments["host"]
        if configured not in (None, *hosts.HOSTS):
            from gaia_sessions.store import hook_log

            self.line["unknown_host"] = hook_log.shorten_id(configured)
        return hosts.host_of(configured, payload, os.environ)

    def _apply(self, events: list[Event], payload: HookPayload, host: Host, store: Store) -> list[Reply]:
        def apply(event: Event) -> Reply | None:
            return self._apply_event(event, payload, host, store)

        replies, failed = apply_each(store, events, self.now, self.time.is_over, apply)
        if failed:
            self.fail(*failed)
        return [reply for reply in replies if reply]

    def _apply_event(self, event: Event, payload: HookPayload, host: Host, store: Store) -> Reply | None:
        if payload.config.limits_completion_check and self.arguments["enforce"] and event["kind"] == STOP:
            reply = self._held(event, payload, host, store)
            if reply:
                return reply
        result = handle_event(store, event, payload, host, self.time.is_over)
        self.line |= {"decision": result.word, "session": result.agent_id}
        self.line |= {"refused": result.refused} if result.refused else {}
        self.last = (store, result.record) if result.record and "parent_id" in result.record else None
        if is_countable(event, result):
            self.results_to_count.append((store, event, result))
        if not may_have_reply(event, result, host):
            return None
        from .replies import AppliedEvent, build_reply

        return build_reply(
            AppliedEvent(payload, event, host, result, store, self.time.is_over, reports=self.arguments["reports"])
        )

    def _held(self, event: Event, payload: HookPayload, host: Host, store: Store) -> Reply | None:
        """Returns the reply that keeps an agent with open todos at work; None if the agent may stop."""
        from .holding import hold

        try:
            held = hold(store, event, payload, host, self.time.is_late)
        except Exception as error:  # noqa: BLE001  # a failed reminder prevents no stop
            self.line["limits"] = well_formed(_error_text(error))[:_LONGEST_ERROR]
            return None
        if held is None:
            return None
        agent_id, reply = held
        self.line |= {"decision": "held", "session": agent_id}
        return reply

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
            call = direct.DirectCall(self.root or "", config, self.now, self.time)
            answer = direct.HANDLERS[self.hook](payload, call)
            self.line |= {"inbox": call.applied} if call.applied else {}
            self.line |= {"event": "direct", "decision": answer["reason"], "session": answer["agent_id"]}
        direct.write_answer(self.hook, answer, payload, self.time.seconds_left())


def _is_complete_object(data: bytes) -> bool:
    """Returns whether the typed text is a whole JSON object."""
    try:
        strict.load_object(data, INPUT_LIMIT)
    except InvalidInput:
        return False
    return True


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, SessionsError) else f"{type(error).__name__}: {error}"
