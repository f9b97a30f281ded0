"""The texts that agents get beside a briefing: how to resume a session, and which commands to type.

``hooks install --allow-report`` allows exactly what begins like these commands.
"""

from __future__ import annotations

import os
import sys

from gaia_sessions.hosts.marker import NOTE
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.ids import MARKER_OPENING, resume_line
from gaia_sessions.session.record import answer_of, answer_words, given_answers, is_asking
from gaia_sessions.session.visible import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gaia_sessions.session.schema import Record

    Resumable = tuple[Record, str, str | None]
    """A session, its state, and until when it can be resumed; None: not before it is approved."""

LONGEST_NOTE = 1000
MOST_LINES = 5
_LONGEST_QUESTION = 300
"""Characters of a question for the main agent. ``pending`` shows the whole question."""

PROGRAM = "gaia-sessions"
UPDATE, TODOS = AGENT_COMMANDS = ("update", "todo")
"""The commands that agents are told to type."""

_TODO_SENTENCE = (
    "For a todo, type todo add instead of update, and its text instead of --phase planning; later todo done or "
    "todo cancel with its number, or todo list."
)

_LINE_PLACEMENT = "in the prompt, once, on its own line, not quoted and not in a code block:"


def resume_message(resumable: Resumable, *, nested: bool) -> str:
    """Returns how and until when a session can be resumed, and whom to ask; ``nested``: for a sub-agent."""
    record, state, until = resumable
    if is_asking(record):
        ask = _whom_to_ask(record, until, nested=nested)
        how = f"{ask}\nThen delegate to "
    else:
        how = f"The sub-agent's work is not finished ({state}, phase {record['phase']}). To resume it, delegate to "
    return (
        f"{how}{visible_line(record['agent_name'])} again. Put this line {_LINE_PLACEMENT}\n"
        f"{resume_line(record['agent_id'])}\n{_possible(until)}"
    )


def _possible(until: str | None) -> str:
    return (
        f"This is possible until {_in_minutes(until)}." if until else "Before the approval, the line resumes nothing."
    )


def refusal_message(record: Record, *, nested: bool) -> str:
    """Returns why a delegation with the resume line of ``record`` was denied, and who can approve it."""
    return f"This line resumes nothing yet, and no sub-agent was started. {_whom_to_ask(record, None, nested=nested)}"


def _who_approves(record: Record) -> str:
    """Says that only the user approves the work of ``record``, and with which command."""
    asked = _asked_by(record)
    asks = f" It asks {quoted(asked)}." if asked else ""
    return (
        f"The sub-agent's work waits for the user.{asks} Only the user can approve, in a terminal outside this client. "
        f"Ask the user to type there: gaia-sessions approve {record['agent_id']} (or deny instead of approve)."
    )


def _asked_by(record: Record) -> str:
    """Returns the question of ``record`` to a person; empty if there is none."""
    if not is_asking(record):
        return ""
    from gaia_sessions.api.questions import question_of  # most work has no question

    return question_of(record).asked


def _whom_to_ask(record: Record, until: str | None, *, nested: bool) -> str:
    """Says that only the user can say yes: to the agent before ``until``, or without ``until`` by a command."""
    asked = _asked_by(record)
    if nested:
        why = visible_line(asked, _LONGEST_QUESTION) or "what the sub-agent asks"
        before = (
            "Use the line below only after you are told that the user said yes."
            if until
            else "Its resume line works only after the user types this in a terminal outside this client: "
            f"gaia-sessions approve {record['agent_id']}"
        )
        return (
            "The sub-agent's work waits for the user. You cannot ask the user. Do not answer yourself. End your last "
            f"message with this line: {MARKER_OPENING} approval] {why}\n"
            f"{before}"
        )
    if until is None:
        return _who_approves(record)
    ask = f"Ask the user {quoted(asked)}." if asked else "Ask the user whether the sub-agent may do what it wants."
    return (
        f"The sub-agent's work waits for the user. {ask} If the user says no, type: "
        f"gaia-sessions deny {record['agent_id']}\n"
        "Use the line below only after the user says yes."
    )


def quoted(text: str) -> str:
    """Returns ``text`` in quotes. No character of ``text`` can end the quotes."""
    return '"' + visible_line(text, _LONGEST_QUESTION).replace('"', "'") + '"'


def waiting_message(record: Record) -> str:
    """Says that the work waits for the reset of a limit, and how to resume it then."""
    return (
        f"The sub-agent stopped at a limit that is reset at {_in_minutes(record['paused_until'])}. "
        "Its work is stored: do not begin it again. To resume it after that time, delegate to "
        f"{visible_line(record['agent_name'])} again. Put this line {_LINE_PLACEMENT}\n"
        f"{resume_line(record['agent_id'])}"
    )


def mentioned_message(named: list[Resumable]) -> str:
    """Returns how to resume the sessions that a delegation named without a resume."""
    heading = (
        "This delegation named work that is not finished but did not resume it. It began new work. To resume a "
        f"session, delegate to the agent type named below its line. {_first_ask(named)}Put that line {_LINE_PLACEMENT}"
    )
    return "\n".join([heading, *(_offered(one, "\n") for one in named)])


def missing_message(agent_ids: list[str]) -> str:
    """Returns which sessions that a delegation named do not exist."""
    what = "a session that does not exist" if len(agent_ids) == 1 else "sessions that do not exist"
    return f"This delegation named {what}: {', '.join(agent_ids)}. It resumed nothing and began new work."


def offer_message(offered: list[Resumable], wake_advice: str | None) -> str:
    """Returns the sessions that can be resumed, the latest first, in at most ``MOST_LINES`` lines."""
    # With ``wake_advice``, the host wakes agents by their IDs, so each line ends with one.
    room = MOST_LINES - 1
    shown = offered if len(offered) <= room else offered[: room - 1]
    can_wake = wake_advice is not None and any(_agent_of(record) for record, *_ in shown)
    heading = (
        f"Sub-agents whose work is not finished. To resume one, {f'{wake_advice}; or ' if can_wake else ''}"
        f"delegate to the agent type named after its [...]. {_first_ask(shown)}Put that [...] {_LINE_PLACEMENT}"
    )
    lines = [heading, *(_offered(one, " ") + (_agent_of(one[0]) if can_wake else "") for one in shown)]
    if len(shown) < len(offered):
        lines.append(f"and {len(offered) - len(shown)} more: gaia-sessions list --active-only")
    return "\n".join(lines)


def _agent_of(record: Record) -> str:
    """Returns the ID of the agent that worked last, as the end of a line; empty if it is unknown."""
    agents = [run["host_agent_id"] for run in record.get("runs", ())[-1:] if "host_agent_id" in run]
    return f", agent {visible_line(agents[0], 60)}" if agents else ""


def _offered(resumable: Resumable, gap: str) -> str:
    """Returns the resume line of a session and, after the ``gap``, its name, purpose and state."""
    record, state, until = resumable
    what = f"{visible_line(record['agent_name'], 60)}: {visible_line(record['purpose'], 80)}"
    stands = answer_words(given_answers(record)[-1], 80) if answer_of(record) else state
    how = resume_line(record["agent_id"]) + gap
    asked = _asked_by(record)
    asks = f", asks {quoted(asked)}" if asked else ""
    when = f"until {_in_minutes(until)}" if until else "after it is approved"
    return f"{how}{what} ({stands}, phase {record['phase']}, {when}){asks}"


def _first_ask(offered: list[Resumable]) -> str:
    """Returns what to do before work with a question is resumed; empty if no work has a question."""
    if not any(is_asking(record) for record, *_ in offered):
        return ""
    if any(until is None for *_, until in offered):
        return (
            "If one waits for the user, ask the user to type in a terminal outside this client: gaia-sessions approve "
            "ID (or deny). Until then its line resumes nothing. "
        )
    return "If one waits for the user, ask the user what it asks. Resume it only after the user says yes. "


def _in_minutes(timestamp: str) -> str:
    return f"{parse_time(timestamp):%Y-%m-%d %H:%M} UTC"


def find_program() -> str | None:
    """Returns the console script beside the running interpreter; None if there is none."""
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), PROGRAM)
    return path if os.path.isfile(path) else None


def agent_command(path: str, command: str) -> str:
    """Returns the shell words that start one of ``AGENT_COMMANDS``."""
    import shlex

    return f"{shlex.quote(path)} {command}"


def report_instructions(root: str, *session: str) -> list[str]:
    """Returns the sentences on the report and todo commands that fit beside the note; none without a command."""
    path = find_program()
    if path is None:
        return []
    import shlex

    # The command names the root: a shell of an agent has no variable that names the project.
    command = f"{agent_command(path, UPDATE)} {shlex.join(session)} --root {shlex.quote(root)} --phase planning"
    sentence = f"While you work, report your phase with: {command} (or investigating, executing, validating)."
    with_todos = f"{sentence} {_TODO_SENTENCE}"
    return next(([told] for told in (with_todos, sentence) if len(NOTE) + 1 + len(told) <= LONGEST_NOTE), [])
