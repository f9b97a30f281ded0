"""What an agent at work asks a person for: the requests of a run, and which of them are answered.

A host may tell neither that a permission was given nor which use of a tool it was asked for. So an answer belongs to a
request by the key of the use where both have one, else by the tool and its input, and the agent waits until all of them
are answered. Only what is later than a request answers it. Pure.
"""

from __future__ import annotations

from .clock import format_time, is_ahead, parse_time, timedelta
from .phases import is_final
from .runs import is_live, with_run
from .updates import with_activity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from .schema import Asked, Record, Run

FLUSH_TIME = timedelta(seconds=1)
"""How long after a request a client may still write down what led to it; then nothing more until one is answered.

Seen in Claude Code 2.1.330: the last line before the dialog was written 0.1 to 0.4 seconds before the request.
"""

MOST_REQUESTS = 20
"""More at a time are not kept: the agent waits anyway."""


class SeenCall:
    """A call of a tool in an agent's transcript.

    asked: the digest of its tool and input. at: when it was written. round: the number of the message that has it.
    answered_at: when its result was written; None if there is none.
    """

    __slots__ = ("answered_at", "asked", "at", "round", "tool")

    def __init__(self, tool: str, asked: str, at: datetime, round_number: int) -> None:
        self.tool = tool
        self.asked = asked
        self.at = at
        self.round = round_number
        self.answered_at: datetime | None = None


class SeenCalls:
    """What the end of an agent's transcript says of its calls.

    calls: by the host's keys. rounds: when each message of the agent began, which comes after all results of the one
    before. other_results: when those were written whose calls are not in it, by the host's keys.
    """

    __slots__ = ("calls", "other_results", "rounds")

    def __init__(self) -> None:
        self.calls: dict[str, SeenCall] = {}
        self.rounds: list[datetime] = []
        self.other_results: dict[str, datetime] = {}


def requests_of(run: Run) -> list[Asked]:
    """The requests of ``run`` that are kept, the first one first; old records have one at most."""
    if "waiting" not in run:
        return []
    others = run["waiting"].get("others", [])
    first: Asked = {key: value for key, value in run["waiting"].items() if key != "others"}  # type: ignore[assignment]  # it has its keys
    return [first, *others]


def renewed(run: Run, transcript: str | None) -> Run:
    """``run`` with the file to which its agent writes by now: another one once its conversation has become another.

    The agents of a workflow keep theirs, which is among the files of the workflow.
    """
    return {**run, "transcript_path": transcript} if transcript and "workflow" not in run else run


def with_request(record: Record, run: Run, request: Asked, seen: SeenCalls | None) -> Record:
    """The host asks a person whether the agent of ``run`` may do what ``request`` says.

    ``seen`` says which of the earlier requests are answered.
    """
    if not is_live(run) or "end" in run or "own_work" in run:
        return record
    now = parse_time(request["since"])
    earlier = [one for one in requests_of(run) if not is_ahead(parse_time(one["since"]), now)]
    if seen is not None:
        earlier = unanswered(earlier, seen)
    if any(_is_same(request, one) for one in earlier):
        return record
    requests = sorted([*earlier, request], key=lambda one: parse_time(one["since"]))
    first, *others = requests[:MOST_REQUESTS]
    record = with_run(record, {**run, "waiting": {**first, "others": others} if others else first})  # type: ignore[typeddict-item]  # a request with others
    return record if is_final(record["phase"]) else with_activity(record, now)


def still_asked(run: Run, now: datetime, written_at: datetime | None, seen: SeenCalls | None) -> list[Asked]:
    """The requests of ``run`` that are not answered; where its transcript tells nothing, the time of that has to do."""
    requests = requests_of(run)
    if seen is not None:
        return unanswered(requests, seen)
    if written_at is None or is_ahead(written_at, now):
        return requests
    return [one for one in requests if written_at <= parse_time(one["since"]) + FLUSH_TIME]


def unanswered(requests: Sequence[Asked], seen: SeenCalls) -> list[Asked]:
    """Those of ``requests`` of which the agent's transcript does not show that they are answered.

    A result answers the request for its own call. One of a call that is not there answers one of the requests whose
    calls are not there either, the last one first. The next message of the agent comes after all of them.
    """
    all_asked = {one.get("asked") for one in requests}
    left, unknown = [], []
    for one in requests:
        since = parse_time(one["since"])
        calls = _calls_for(one, since, seen, all_asked)
        if calls:
            is_over = len(seen.rounds) > max(call.round for call in calls)
            if not is_over and any(call.answered_at is None for call in calls):
                left.append(one)
        elif not any(began > since + FLUSH_TIME for began in seen.rounds) and one.get("call") not in seen.other_results:
            unknown.append(one)
    left += _without_results(unknown, seen.other_results.values())
    return [one for one in requests if one in left]


def _without_results(requests: list[Asked], results: Iterable[datetime]) -> list[Asked]:
    left = [*requests]
    for at in sorted(results):
        last = next((one for one in reversed(left) if "call" not in one and at > parse_time(one["since"])), None)
        if last is not None:
            left.remove(last)
    return left


def _calls_for(request: Asked, since: datetime, seen: SeenCalls, all_asked: set[str | None]) -> list[SeenCall]:
    """The calls that ``request`` may be for: one that was over before is none.

    A host may show a hook another input than its transcript has; then the tool decides.
    """
    if "call" in request:
        found = seen.calls.get(request["call"])
        return [found] if found else []
    before = (call for call in seen.calls.values() if call.at <= since + FLUSH_TIME)
    possible = [call for call in before if call.answered_at is None or call.answered_at > since]
    exact = [call for call in possible if call.asked == request.get("asked")]
    return exact or [call for call in possible if call.tool == request["for"] and call.asked not in all_asked]


def _is_same(one: Asked, other: Asked) -> bool:
    """Whether both are about the same use of a tool."""
    if "call" in one and "call" in other:
        return one["call"] == other["call"]
    return "asked" in one and "asked" in other and one["asked"] == other["asked"]


def request_at(now: datetime, tool: str, asked: str | None, call: str | None) -> Asked:
    """What an agent asks for at ``now``; the host may tell no ``call``."""
    request: Asked = {"since": format_time(now), "for": tool}
    if asked is not None:
        request["asked"] = asked
    if call is not None:
        request["call"] = call
    return request
