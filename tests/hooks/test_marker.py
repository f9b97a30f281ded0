"""Our own words in what agents write: which lines count, and what each of them names."""

from __future__ import annotations

import pytest

from gaia_sessions.hooks.marker import read_briefed, read_marker, read_mentions, read_requests

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


@pytest.mark.parametrize(("message", "phase", "agent_id"), COUNTS)
def test_a_marker_in_the_last_line_names_a_phase_and_maybe_an_id(
    message: str, phase: str, agent_id: str | None
) -> None:
    assert read_marker(message) == (phase, agent_id)


@pytest.mark.parametrize("message", DOES_NOT)
def test_nothing_else_in_a_message_is_read_for_meaning(message: str) -> None:
    assert read_marker(message) == (None, None)


def test_a_message_of_a_million_lines_is_read_from_its_end() -> None:
    assert read_marker("line\n" * 1_000_000 + "[gaia-sessions: approval]") == ("approval", None)


ONE, OTHER = "agent-20260108-180530-abc12345", "agent-20260108-180530-abc12346"

REQUESTS: dict[str, tuple[str, list[str]]] = {
    "alone": (f"[gaia-sessions: resume {ONE}]", [ONE]),
    "among other lines": (f"Go on:\n[gaia-sessions: resume {ONE}]\nand apply it.", [ONE]),
    "dressed up": (f"  > **`[gaia-sessions: resume {ONE}]`** \r\n", [ONE]),
    "any case": (f"[Gaia-Sessions: RESUME {ONE}]", [ONE]),
    "an id of one's own": ("[gaia-sessions: resume My.work_1]", ["My.work_1"]),
    "twice the same": (f"[gaia-sessions: resume {ONE}]\n[gaia-sessions:resume {ONE}]", [ONE]),
    "two": (f"[gaia-sessions: resume {ONE}]\n[gaia-sessions: resume {OTHER}]", [ONE, OTHER]),
    "nothing": ("", []),
    "only the id": (f"resume {ONE}", []),
    "within a line": (f"see [gaia-sessions: resume {ONE}]", []),
    "with more on its line": (f"[gaia-sessions: resume {ONE}] now", []),
    "without an id": ("[gaia-sessions: resume]", []),
    "an impossible id": ("[gaia-sessions: resume ../x]", []),
    "with more in its brackets": (f"[gaia-sessions: resume {ONE} {OTHER}]", []),
    "another word": (f"[gaia-sessions: approval {ONE}]", []),
    "unfinished": (f"[gaia-sessions: resume {ONE}", []),
    "quoted in a briefing": (f"| > [gaia-sessions: resume {ONE}]", []),
}


@pytest.mark.parametrize(("text", "asked"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_is_a_line_of_its_own_that_names_one_id(text: str, asked: list[str]) -> None:
    assert read_requests(text) == asked


MENTIONS: dict[str, tuple[str, list[str]]] = {
    "alone": (ONE, [ONE]),
    "in a sentence": (f"Go on with {ONE}.", [ONE]),
    "in brackets": (f"({ONE}), '{OTHER}'", [ONE, OTHER]),
    "twice the same": (f"{ONE} {ONE}", [ONE]),
    "nothing": ("the agent-", []),
    "an id of one's own": ("My.work_1", []),
    "a longer word": (f"x{ONE} {ONE}x {ONE}-old my-{ONE} a.{ONE}", []),
    "too few digits": ("agent-20260108-180530-abc1234", []),
    "digits of another script": ("agent-\uff120260108-180530-abc12345", []),
    "in a line of ours": (f"[gaia-sessions: resume {ONE}]\n| > [GAIA-sessions: approval {ONE}]", []),
}


@pytest.mark.parametrize(("text", "mentioned"), MENTIONS.values(), ids=MENTIONS)
def test_a_mention_is_a_generated_id_as_a_word_of_its_own(text: str, mentioned: list[str]) -> None:
    assert read_mentions(text) == mentioned


BRIEFED: dict[str, tuple[str, str | None]] = {
    "a briefing": (f"Go on.\n\n[gaia-sessions: briefing {ONE}]\nYou go on", ONE),
    "as JSON has it": (f'{{"content":"Go on.\\n\\n[gaia-sessions: briefing {ONE}]\\nYou go on"}}', ONE),
    "the last counts, for ours comes last": (f"[gaia-sessions: briefing {OTHER}] [gaia-sessions: briefing {ONE}]", ONE),
    "none": ("Go on.", None),
    "an impossible id": ("[gaia-sessions: briefing ../x]", None),
    "unfinished": (f"[gaia-sessions: briefing {ONE}", ONE),
}


@pytest.mark.parametrize(("text", "told"), BRIEFED.values(), ids=BRIEFED)
def test_a_briefing_names_its_session(text: str, told: str | None) -> None:
    assert read_briefed(text) == told
