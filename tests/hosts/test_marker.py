"""The lines of gaia_sessions in texts of agents: which lines count, and what they name."""

from __future__ import annotations

import json
import time

import pytest

from gaia_sessions.hosts.marker import (
    read_briefing_id,
    read_marker,
    read_mentions,
    read_requests,
    read_why,
    without_marker,
)
from gaia_sessions.session.ids import resume_line
from tests.table import table

COUNTS = [
    ("[gaia-sessions: approval] shall I apply it?", "approval", None),
    ("[gaia-sessions: planning]", "planning", None),
    ("[gaia-sessions: investigating] the log is still open", "investigating", None),
    ("[gaia-sessions: failed] no access", "failed", None),
    ("All looked through.\nNothing is applied yet.\n[gaia-sessions: approval] why", "approval", None),
    ("[GAIA-Sessions: APPROVAL] why", "approval", None),
    ("[gaia-sessions:approval] no blank", "approval", None),
    ("[gaia-sessions:   approval   ] many blanks", "approval", None),
    ("[gaia-sessions: approval]why without a blank", "approval", None),
    ("[gaia-sessions: approval] a [second] bracket", "approval", None),
    ("[gaia-sessions: approval agent-123] why", "approval", "agent-123"),
    ("[gaia-sessions: failed agent-20260108-180530-abc12345] why", "failed", "agent-20260108-180530-abc12345"),
    ("[gaia-sessions: approval Agent_1.b] the case of an id is kept", "approval", "Agent_1.b"),
    ("[gaia-sessions: approval agent-123 and more] why", "approval", "agent-123"),
    ("[gaia-sessions: approval ../x] an impossible id is none", "approval", None),
    ("[gaia-sessions: approval agent-1.] so is one with a dot at its end", "approval", None),
    ("  \t[gaia-sessions: approval] indented", "approval", None),
    ("[gaia-sessions: approval] windows\r\n", "approval", None),
    ("**[gaia-sessions: approval] bold**", "approval", None),
    ("**[gaia-sessions: approval]** bold in part", "approval", None),
    ("__[gaia-sessions: approval] bold__", "approval", None),
    ("> [gaia-sessions: approval] quoted", "approval", None),
    ("> > *[gaia-sessions: approval] quoted twice*", "approval", None),
    ("`[gaia-sessions: approval] code`", "approval", None),
    ("```\n[gaia-sessions: approval] in a fence\n```", "approval", None),
    ("~~~\n[gaia-sessions: approval] in the other fence\n~~~", "approval", None),
    ("````\n[gaia-sessions: approval] in a longer fence\n````\n", "approval", None),
    ("[gaia-sessions: approval] blank lines after it\n\n  \n\t\n", "approval", None),
    ("[gaia-sessions: approval] dressed lines after it\n***\n>\n```\n", "approval", None),
    ("[gaia-sessions: planning] first\n[gaia-sessions: approval] the last one counts", "approval", None),
]

DOES_NOT = [
    "",
    "\n \n```\n",
    "Done.",
    "approval",
    "I wait for approval.",
    "0 errors found, none failed.",
    "[gaia-sessions: approval] why\nAnd one line more.",
    "See [gaia-sessions: approval] in the middle of a line",
    "- [gaia-sessions: approval] in a list",
    "```text\n[gaia-sessions: approval] why\n```sh",
    "[gaia-sessions: completed] not a reason to pause",
    "[gaia-sessions: abandoned]",
    "[gaia-sessions: executing]",
    "[gaia-sessions: initializing]",
    "[gaia-sessions: resume agent-123]",
    "[gaia-sessions: approved]",
    "[gaia-sessions: agent-123 approval] the wrong way round",
    "[gaia-sessions: approval, please]",
    "[gaia-sessions:]",
    "[gaia-sessions: ] approval",
    "[gaia-sessions approval]",
    "[gaia-sessions: approval",
    "gaia-sessions: approval]",
    "(gaia-sessions: approval)",
    "[other-sessions: approval] why",
]


@table(("message", "phase", "agent_id"), COUNTS)
def test_a_marker_in_the_last_line_names_a_phase_and_maybe_an_id(
    message: str, phase: str, agent_id: str | None
) -> None:
    assert read_marker(message) == (phase, agent_id)


@table("message", DOES_NOT)
def test_no_other_text_counts_as_a_marker(message: str) -> None:
    assert read_marker(message) == (None, None)


def test_the_marker_of_a_message_of_a_million_lines_is_found() -> None:
    assert read_marker("line\n" * 1_000_000 + "[gaia-sessions: approval]") == ("approval", None)


ONE, OTHER = "agent-20260108-180530-abc12345", "agent-20260108-180530-abc12346"

ASKS = f"[gaia-sessions: resume {ONE}]"

REQUESTS: dict[str, str] = {
    "alone": ASKS,
    "among other lines": f"Go on:\n{ASKS}\nand apply it.",
    "any case": f"[Gaia-Sessions: RESUME {ONE}]",
    "without blanks": f"[gaia-sessions:resume {ONE}]",
    "with tabs": f"[gaia-sessions:\tresume\t{ONE}\t]\t",
    "indented by three": f"   {ASKS}",
    "in a list": f"- {ASKS}",
    "in another list": f"* {ASKS}",
    "in a third list": f"  + {ASKS}",
    "in a list, behind a tab": f"-\t{ASKS}",
    "numbered": f"1. Read the plan.\n2. {ASKS}\n3. Apply it.",
    "numbered with a bracket": f"12) {ASKS}",
    "emphasised": f"*{ASKS}*",
    "emphasised with underscores": f"__{ASKS}__",
    "bold code": f"  **`{ASKS}`** ",
    "code": f"``` {ASKS} ```",
    "approved": f"Approved: {ASKS}",
    "three words in capitals": f"NOW PLEASE PROCEED: {ASKS}",
    "a lead-in of two words that count as one": f"Please go on: {ASKS}",
    "words with commas": f"Approved, then continue:{ASKS}",
    "a lead-in in bold, in a list, numbered": f"2. **Continue:** `{ASKS}`",
    "a lead-in half in bold": f"**Please** *resume*: {ASKS}",
    "Windows": f"Approved.\r\n{ASKS}\r\nApply it.\r\n",
    "lone carriage returns": f"Approved.\r{ASKS}\rApply it.\r",
    "after a fence": f"```sh\nls\n```\n{ASKS}",
    "after a fence that another sign does not close": f"```\n~~~\n```\n{ASKS}",
    "after a longer end of a fence": f"~~~ sh\nls\n~~~~~~ \n{ASKS}",
    "after a fence in a list": f"- ```\n  ls\n  ```\n- {ASKS}",
    "after an indented fence": f"    ```\n    ls\n    ```\n{ASKS}",
    "after code with three backticks on its line": f"```ls``` lists.\n{ASKS}",
    "after a quote and a blank line": f"> Yes, do it.\n \t\n{ASKS}",
    "after an arrow": f"-> apply it\n{ASKS}",
    "after a fence in a list of a list": f"- 1. ```\n     ls\n     ```\n{ASKS}",
    "after a sign of greater than": f"The sum of\n- a + b\nis > 2\n-> 3\n1) 5 > 3\n{ASKS}",
    "beside its own quotation": f"> {ASKS}\n\n{ASKS}\n```\n{ASKS}\n```",
    "at the end of a briefing": f"| > {ASKS.replace(ONE, OTHER)}\n{ASKS}",
}

QUOTES: dict[str, str] = {
    "nothing": "",
    "only the id": f"resume {ONE}",
    "within a line": f"see {ASKS}",
    "with more on its line": f"{ASKS} now",
    "with a full stop": f"{ASKS}.",
    "without an id": "[gaia-sessions: resume]",
    "an impossible id": "[gaia-sessions: resume ../x]",
    "with more in its brackets": f"[gaia-sessions: resume {ONE} {OTHER}]",
    "another word": f"[gaia-sessions: approval {ONE}]",
    "unfinished": f"[gaia-sessions: resume {ONE}",
    "over two lines": f"[gaia-sessions: resume\n{ONE}]",
    "quoted in a briefing": f"| > {ASKS}",
    "quoted": f"> {ASKS}",
    "quoted without a blank": f">{ASKS}",
    "quoted in a quotation": f"> > {ASKS}",
    "quoted, and indented": f"   > **{ASKS}**",
    "quoted in a list": f"- > {ASKS}",
    "the second line of a quote that is marked once": f"> The log says:\n{ASKS}",
    "the third line of a quote that is marked once": f"> The log\nsays:\n{ASKS}",
    "the second line of a quote in a list": f"- > The log says:\n  {ASKS}",
    "the second line of a quote in a list of a list": f"- - > The log says:\n{ASKS}",
    "the second line of a quote in a numbered list of a list": f"+ 1. > The log says:\n{ASKS}",
    "the second line of a quote in many lists": f"{'- ' * 50}> The log says:\n{ASKS}",
    "fenced": f"```\n{ASKS}\n```",
    "fenced by tildes": f"~~~\n{ASKS}\n~~~",
    "fenced by more": f"`````\n```\n{ASKS}\n```\n`````",
    "fenced by more tildes": f"~~~~ a `b` c\n~~~\n{ASKS}\n~~~~",
    "fenced with a language": f"  ```text title=x\n{ASKS}\n  ```",
    "fenced to the end": f"```\nls\n\n{ASKS}",
    "fenced, where what looks like the end has more on it": f"```\n``` sh\n{ASKS}",
    "fenced, where what looks like the end is indented": f"```\n    ```\n{ASKS}",
    "fenced, where what looks like the end is quoted": f"```\n> ```\n{ASKS}",
    "fenced, where what looks like the end has another line end": f"```\n```\u2028\n{ASKS}",
    "fenced, where what looks like the end is the beginning of another": f"- ```\n  ls\n```\n{ASKS}\n```",
    "fenced, after indented backticks": f"    ```\n\n```\n{ASKS}\n```",
    "fenced in a list": f"1. ```\n   {ASKS}\n   ```",
    "fenced, with Windows line ends": f"```\r\n{ASKS}\r\n```\r\n",
    "fenced by lone carriage returns": f"```\r{ASKS}\r```",
    "fenced by form feeds": f"```\f{ASKS}\f```",
    "fenced, after backticks behind a form feed": f"\f ```\n  ```\n{ASKS}\n  ```",
    "fenced in a list of a list": f"- - ```\n{ASKS}\n    ```",
    "indented by four": f"Sample:\n\n    {ASKS}",
    "indented by a tab": f"Sample:\n\n\t{ASKS}",
    "indented by blanks and a tab": f"  \t{ASKS}",
    "in quotation marks": f'"{ASKS}"',
    "in brackets": f"({ASKS})",
    "struck out": f"~~{ASKS}~~",
    "removed in a patch": f"-{ASKS}",
    "added in a patch": f"+{ASKS}",
    "in a table": f"| {ASKS} |",
    "a task that is not done": f"- [ ] {ASKS}",
    "a link": f"{ASKS}(https://example.org)",
    "another lead-in": f"The log says: {ASKS}",
    "rejected": f"Rejected: {ASKS}",
    "a negation": f"Do not resume: {ASKS}",
    "not yet": f"Not approved: {ASKS}",
    "four words of the table": f"Now please go on: {ASKS}",
    "the first half of a lead-in": f"Go: {ASKS}",
    "the second half of a lead-in": f"On: {ASKS}",
    "a lead-in without a colon": f"Approved {ASKS}",
    "a colon without a lead-in": f": {ASKS}",
    "a comma and a colon without a lead-in": f", : {ASKS}",
    "commas and emphasis without a lead-in": f"- *,* ,: {ASKS}",
    "two lead-ins": f"Log: continue: {ASKS}",
    "two list markers": f"- - {ASKS}",
    "a foreign letter that looks like a Latin one": f"\u0421ontinue: {ASKS}",
    "a no-break space": f"\u00a0{ASKS}",
    "after a Unicode line end": f"Continue\u2028{ASKS}",
    "a long s": f"[gaia-\u017fessions: resume {ONE}]",
}


@table("text", REQUESTS.values())
def test_a_resume_line_that_says_nothing_else_is_a_request(text: str) -> None:
    assert read_requests(text) == [ONE]


@table("text", QUOTES.values())
def test_a_quoted_or_altered_resume_line_is_no_request(text: str) -> None:
    assert read_requests(text) == []


def test_a_request_can_name_a_custom_id() -> None:
    assert read_requests("[gaia-sessions: resume My.work_1]") == ["My.work_1"]


def test_repeated_requests_for_one_session_all_count() -> None:
    text = f"{ASKS}\n- {ASKS.replace(ONE, OTHER)}\nContinue: {ASKS}"

    assert read_requests(text) == [ONE, OTHER, ONE]


MENTIONS: dict[str, tuple[str, list[str]]] = {
    "alone": (ONE, [ONE]),
    "in a sentence": (f"Go on with {ONE}.", [ONE]),
    "in brackets": (f"({ONE}), '{OTHER}'", [ONE, OTHER]),
    "twice the same": (f"{ONE} {ONE}", [ONE]),
    "nothing": ("the agent-", []),
    "an ID after the word agent": (f"agent-agent {ONE} sub-agent-based", [ONE]),
    "a custom ID": ("My.work_1", []),
    "a longer word": (f"x{ONE} {ONE}x {ONE}-old my-{ONE} a.{ONE} {ONE}\u00e9 agent-{ONE}", []),
    "too few digits": ("agent-20260108-180530-abc1234", []),
    "too few digits of the time": ("agent-20260108-18053-abc12345", []),
    "other signs between the parts": ("agent-20260108_180530_abc12345", []),
    "a digit that is not hexadecimal": ("agent-20260108-180530-abc1234g", []),
    "digits of another script": ("agent-\uff120260108-180530-abc12345", []),
    "in lines of gaia_sessions": (
        f"[gaia-sessions: briefing {ONE}]\n| > [GAIA-sessions: approval {OTHER}]",
        [ONE, OTHER],
    ),
    "quoted": (f"> {ASKS}", [ONE]),
    "a custom ID, quoted": ("> [GAIA-Sessions: Resume My.work_1] says [it]", ["My.work_1"]),
    "an impossible id, quoted": ("> [gaia-sessions: resume ../x]", []),
    "unfinished": ("[gaia-sessions: resume My.work_1", []),
}


@table(("text", "mentioned"), MENTIONS.values())
def test_a_text_mentions_a_session_by_a_generated_id_or_a_resume_line(text: str, mentioned: list[str]) -> None:
    assert read_mentions(text) == mentioned


def test_only_the_first_twenty_ids_of_a_text_count() -> None:
    ids = [f"agent-20260108-180530-{number:08x}" for number in range(30)]

    assert read_mentions("\n".join(ids)) == ids[:20]


HUGE = 8 << 20
HOSTILE: dict[str, str] = {
    "line ends": "\n",
    "short lines": "x\n",
    "quotes": "> a\n",
    "indented lines": "    a\n",
    "fences": "```\n",
    "lines that hold three backticks": "a```\n",
    "backticks": "`",
    "list markers": "- ",
    "list markers on lines": "- a\n",
    "brackets": "[",
    "openings": "[gaia-sessions:",
    "unfinished lines": "[gaia-sessions: resume ",
    "tabs": "\t",
    "carriage returns": "\r",
    "beginnings of ids": "agent-",
    "nearly ids": "agent-20260108-",
    "quoted requests": f"> {ASKS}\n",
    "lines with a bracket": "a [\n",
    "lines with brackets and no quote": "a [>\n",
    "lines with a sign of greater than": "a > b\n",
    "beginnings of lines": "[g",
    "one opening per line": "[gaia-sessions:\n",
    "numbers of lists": "1. ",
    "blanks": " ",
    "lines of blanks": " \n",
    "words": "a ",
    "letters of other scripts": "\u00e9\n",
    "fences of both kinds": "~~~\n```\n",
    "requests": f"{ASKS}\n",
    "requests behind quotes": f"> a\n{ASKS}\n\n",
    "requests in fences": f"```\n{ASKS}\n```\n",
    "continued quotes": f"{ASKS}: no\n",
}


WRAPPED: dict[str, tuple[str, str]] = {
    "between lines": (f"> a\n{ASKS}\n", f"\n{ASKS}"),
    "on one line": ("", f":{ASKS}"),
    "in the brackets": ("[gaia-sessions: resume ", "]"),
    "in a quote": ("> a\n", f"> {ASKS}"),
}


BETWEEN, *OTHERS = WRAPPED


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (BETWEEN, HUGE >> 3),
        pytest.param(BETWEEN, HUGE, marks=pytest.mark.slow),
        *(pytest.param(name, HUGE >> 3, marks=pytest.mark.slow) for name in OTHERS),
        *(pytest.param(name, HUGE, marks=pytest.mark.thorough) for name in OTHERS),
    ],
)
@table("piece", HOSTILE.values())
def test_a_hostile_text_of_several_mebibytes_is_read_within_three_seconds(piece: str, name: str, size: int) -> None:
    before, after = WRAPPED[name]
    text = before + piece * (size // len(piece)) + after
    begun = time.process_time()

    read_requests(text)
    read_mentions(text)

    assert time.process_time() - begun < 3  # seconds, the whole time of a hook; 8 MiB took 0.2 seconds


@table("piece", ["x [\n", "<b>\n", "- a\n", "\n", "[x]: y\n"])
def test_a_request_is_found_among_millions_of_other_lines(piece: str) -> None:
    lines = piece * 1_000_000

    assert read_requests(f"{lines}{ASKS}\n{lines}") == [ONE]


@table("piece", ["> a\n\n", "```\n```\n", "[gaia-sessions:\n", f"{ASKS.replace(ONE, OTHER)}\n"])
def test_a_text_with_too_many_relevant_lines_contains_no_request(piece: str) -> None:
    assert read_requests(piece * 1_000 + ASKS)[-1:] == [ONE]
    assert read_requests(piece * 10_000 + ASKS) == []
    assert read_requests(ASKS + "\n" + piece * 10_000 + ASKS) == []


HEADING, OTHER_HEADING = f"[gaia-sessions: briefing {ONE}]", f"[gaia-sessions: briefing {OTHER}]"
ECHOED = json.dumps({"content": f"Go on.\n\n{OTHER_HEADING}\nYou go on"})
"""A line of a transcript, as a tool shows it."""

BRIEFED: dict[str, tuple[str, str | None]] = {
    "a briefing": (f"Go on.\n\n{HEADING}\nYou go on", ONE),
    "at the beginning": (f"{HEADING}\nYou go on", ONE),
    "within JSON": (json.dumps({"content": f"Go on.\n\n{HEADING}\nYou go on"}), ONE),
    "within JSON, after a backslash": (json.dumps({"content": f"Go on. \\\n{HEADING}\nYou go on"}), ONE),
    "JSON that is cut off": (json.dumps({"content": f"Go on.\n\n{HEADING}\nYou go on"})[:-8], ONE),
    "the last of two briefings": (f"{OTHER_HEADING}\nYou\n{HEADING}\nYou", ONE),
    "a briefing that quotes another": (f"{HEADING}\nYou go on\n| {OTHER_HEADING}\n| You go on", ONE),
    "a briefing that quotes another, within JSON": (
        json.dumps({"content": f"Go.\n\n{HEADING}\nYou go on\n|   user: {OTHER_HEADING}\n| You go on"}),
        ONE,
    ),
    "a briefing that quotes the JSON of another, within JSON": (
        json.dumps({"c": f"Go.\n{HEADING}\nYou\n| {ECHOED}\n"}),
        ONE,
    ),
    "a briefing that quotes JSON within JSON, within JSON": (
        json.dumps({"c": f"Go.\n{HEADING}\nYou\n| {json.dumps(ECHOED)}\n"}),
        ONE,
    ),
    "a briefing line after other text": (f"Read this: {HEADING}\nYou go on", None),
    "a briefing line with more text": (f"{HEADING} is what I saw\nYou go on", None),
    "none": ("Go on.", None),
    "an impossible id": ("[gaia-sessions: briefing ../x]\n", None),
    "an impossible ID after a possible one": (f"{HEADING}\nYou\n[gaia-sessions: briefing ../x]\n", ONE),
    "unfinished": (f"[gaia-sessions: briefing {ONE}", None),
}


@table(("text", "told"), BRIEFED.values())
def test_a_briefing_names_its_session(text: str, told: str | None) -> None:
    assert read_briefing_id(text) == told


def test_the_generated_resume_line_is_read_as_a_request() -> None:
    assert read_requests(f"Go on.\n{resume_line(ONE)}\n") == [ONE]


@table(
    ("message", "asked", "before"),
    [
        ("Two ports are open.\n\n[gaia-sessions: approval] may I?", "may I?", "Two ports are open."),
        ("a\n  b\n**[gaia-sessions: approval] may I?**\n```\n\n", "may I?", "a\n  b"),
        ("[gaia-sessions: approval] see [gaia-sessions: x]", "see [gaia-sessions: x]", ""),
        (
            "[gaia-sessions: approval] earlier\nİİ\n[gaia-sessions: planning]",
            "",
            "[gaia-sessions: approval] earlier\nİİ",
        ),
        ("No marker.\n", "", "No marker.\n"),
        ("", "", ""),
    ],
)
def test_a_message_is_split_into_its_question_and_the_text_before(message: str, asked: str, before: str) -> None:
    assert (read_why(message), without_marker(message)) == (asked, before)
