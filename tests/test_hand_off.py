"""``scripts/hand_off``: the hand-offs of state in the users' document, between processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers import root_of

SCRIPT = Path(__file__).parents[1] / "scripts" / "hand_off"
ALWAYS = {"user_id": "u1", "user_name": "Ada", "name_attempts": 1}
DOMAIN = {"intent": "update_domain", "domain_id": 7}
DOCUMENT = {"url": "https://example.org/paper.pdf"}


on_both = pytest.mark.parametrize("kind", ["files", pytest.param("server", marks=pytest.mark.slow)])


def states(folder: Path, root: str, *words: str) -> tuple[list[Any], str]:
    """The state before and after the sub-agent, and stderr of the script."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["GAIA_SESSIONS_ROOT"] = root
    done = subprocess.run([SCRIPT, *words], env=environment, capture_output=True, text=True, check=True, cwd=folder)
    decoder, text, found = json.JSONDecoder(), done.stdout.lstrip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document["state"])
        text = text[end:].lstrip()
    return found, done.stderr


@on_both
@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        ("approved", {"intent_result": "saved 7"}),
        pytest.param("failed", {"intent_result": "error: the storage did not answer"}, marks=pytest.mark.slow),
        pytest.param("cancelled", {}, marks=pytest.mark.slow),
        pytest.param("cancelled-draft", {}, marks=pytest.mark.slow),
    ],
)
def test_the_domain_sub_agent_finds_the_intent_and_removes_it(
    tmp_path: Path, kind: str, outcome: str, result: dict[str, str]
) -> None:
    found, said = states(tmp_path, root_of(kind, tmp_path), "domain", outcome)
    assert (found, said) == (
        [{**ALWAYS, **DOMAIN}, {**ALWAYS, **result}],
        "domain lifecycle: update_domain 7 for u1\n" + "draft: Birds; approve it?\n" * (outcome != "cancelled"),
    )


@on_both
@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        pytest.param("saved", "saved 2 facts", marks=pytest.mark.slow),
        pytest.param("refused", "the user wanted none", marks=pytest.mark.slow),
        pytest.param("irrelevant", "no domain is relevant", marks=pytest.mark.slow),
        pytest.param("failed", "error: not readable", marks=pytest.mark.slow),
        pytest.param("cancelled", None, marks=pytest.mark.slow),
        ("cancelled-facts", None),
    ],
)
def test_the_document_sub_agent_finds_the_url_and_removes_it(
    tmp_path: Path, kind: str, outcome: str, result: str | None
) -> None:
    found, said = states(tmp_path, root_of(kind, tmp_path), "document", outcome)
    assert (found, said) == (
        [{**ALWAYS, **DOCUMENT}, {**ALWAYS, **({"url_result": result} if result else {})}],
        "document processor: https://example.org/paper.pdf is pdf\n" * (outcome != "cancelled"),
    )
