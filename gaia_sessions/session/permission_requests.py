"""The permission requests of a run, and which of them are answered.

Hosts may report neither the answer nor the use of the tool. So answers are found in the agent's transcript.
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

# Claude Code 2.1.330 wrote the last line before the dialog 0.1 to 0.4 seconds before the request.
FLUSH_TIME = timedelta(seconds=1)
"""How long after a request a client may still write down the messages that led to the request."""

MOST_REQUESTS = 20
"""The most open requests of a run that are stored."""


class SeenCall:
    """A call of a tool in an agent's transcript."""

    __slots__ = ("answered_at", "asked", "at", "round", "tool")

    def __init__(self, tool: str, asked: str, at: datetime, round_number: int) -> None:
        self.tool = tool
        self.asked = asked  # a digest of the tool and its input
        self.at = at  # when the call was written
        self.round = round_number  # of the message with the call
        self.answered_at: datetime | None = None  # when the result was written


class SeenCalls:
    """The calls and results at the end of an agent's transcript."""

    __slots__ = ("calls", "other_results", "rounds")

    def __init__(self) -> None:
        self.calls: dict[str, SeenCall] = {}  # by the host's keys
        self.rounds: list[datetime] = []  # when each message of the agent began, after all earlier results
        self.other_results: dict[str, datetime] = {}  # when the results without a call in ``calls`` were written


def requests_of(run: Run) -> list[Asked]:
    """Returns the stored requests of ``run``, the oldest first."""
    if "waiting" not in run:
        return []
    others = run["waiting"].get("others", [])
    first: Asked = {key: value for key, value in run["waiting"].items() if key != "others"}  # type: ignore[assignment]  # it has its keys
    return [first, *others]


def renewed(run: Run, transcript: str | None) -> Run:
    """Returns ``run`` with ``transcript`` as the file that its agent writes now."""
    # An agent of a workflow keeps its transcript, which is among the files of the workflow.
    return {**run, "transcript_path": transcript} if transcript and "workflow" not in run else run


def with_request(record: Record, run: Run, request: Asked, seen: SeenCalls | None) -> Record:
    """Adds ``request`` to the requests of ``run`` that are not answered."""
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
    """Returns the unanswered requests of ``run``; if ``seen`` is None, the time of the last write decides."""
    requests = requests_of(run)
    if seen is not None:
        return unanswered(requests, seen)
    if written_at is None or is_ahead(written_at, now):
        return requests
    return [one for one in requests if written_at <= parse_time(one["since"]) + FLUSH_TIME]


def unanswered(requests: Sequence[Asked], seen: SeenCalls) -> list[Asked]:
    """Returns the ``requests`` for which the transcript shows no answer."""
    all_asked = {one.get("asked") for one in requests}
    left, unknown = [], []
    # A result answers the request for its call. Without calls, a result answers the latest request before the result.
    # The agent's next message comes after all answers.
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
    """Returns the calls for which ``request`` may have been made."""
    if "call" in request:
        found = seen.calls.get(request["call"])
        return [found] if found else []
    # The input that a host shows the hook can differ from the input in the transcript. Then the tool decides.
    before = (call for call in seen.calls.values() if call.at <= since + FLUSH_TIME)
    possible = [call for call in before if call.answered_at is None or call.answered_at > since]
    exact = [call for call in possible if call.asked == request.get("asked")]
    return exact or [call for call in possible if call.tool == request["for"] and call.asked not in all_asked]


def _is_same(one: Asked, other: Asked) -> bool:
    """Whether both requests are for the same use of a tool."""
    if "call" in one and "call" in other:
        return one["call"] == other["call"]
    return "asked" in one and "asked" in other and one["asked"] == other["asked"]


def request_at(now: datetime, tool: str, asked: str | None, call: str | None) -> Asked:
    """Makes a request for ``tool`` at ``now``; some hosts report no ``call``."""
    request: Asked = {"since": format_time(now), "for": tool}
    if asked is not None:
        request["asked"] = asked
    if call is not None:
        request["call"] = call
    return request
