"""``tree``, and sessions below others: depth, number of children, and broken trees."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import fresh_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Gaia


DAY = timedelta(hours=25)


@pytest.fixture
def child(gaia: Gaia) -> Callable[..., str]:
    """Creates a session below another one and returns its ID."""

    def create(parent: str, agent_id: str, *words: str) -> str:
        assert gaia("create", "--parent", parent, "--id", agent_id, *words).answer == [agent_id]
        return agent_id

    return create


def levels(out: bytes) -> list[tuple[int, str]]:
    """The level and the ID of each line without the sums."""
    lines = [line for line in out.decode().splitlines() if not re.match(r"\d+ sessions, ", line)]
    return [((len(line) - len(line.lstrip("│├└─ "))) // 3, line.split()[-1]) for line in lines]


def test_a_child_shows_its_parent_root_depth_and_limits(gaia: Gaia, state: Gaia, child: Gaia) -> None:
    gaia("create", "--id", "root", "--max-depth", "3", "--max-tokens", "9000")
    child("root", "middle", "--max-depth", "7")
    child("middle", "leaf", "--max-tokens", "10")

    keys = ("parent_id", "root_id", "depth", "max_depth", "max_tokens")
    found = [{key: state(agent_id)[key] for key in keys if key in state(agent_id)} for agent_id in ("root", "leaf")]
    assert found == [{"max_depth": 3, "max_tokens": 9000}, {"parent_id": "middle", "max_depth": 3, "max_tokens": 10}]
    lines = {line["agent_id"]: line for line in gaia("list", "--json").json}
    assert [lines["leaf"][key] for key in ("parent_id", "root_id", "depth")] == ["middle", "root", 2]
    shown = gaia("show", "leaf", "--verbose").lines
    assert {"  max_depth     3", "  max_tokens    10"} <= set(shown)


def test_create_accepts_part_of_the_parents_id_and_refuses_a_missing_parent(gaia: Gaia, root: str, tree: Gaia) -> None:
    missing = gaia("create", "--parent", "nobody", "--json")
    assert (missing.code, missing.error["code"], Path(root).exists()) == (3, "not_found", False)
    gaia("create", "--id", "agent-root")
    before = tree()
    assert gaia("create", "--parent", "nobody").code == 3
    assert tree() == before
    code, out, err = gaia("create", "--parent", "root", "--id", "b").all
    assert (code, out, err) == (0, "b\n", "using session agent-root for root\n")


def test_a_session_is_at_most_eight_deep_unless_the_limit_is_narrower(gaia: Gaia, child: Gaia) -> None:
    gaia("create", "--id", "d0")
    for depth in range(1, 9):
        child(f"d{depth - 1}", f"d{depth}", "--max-depth", "20")
    refused = gaia("create", "--parent", "d8", "--json")
    assert (refused.code, refused.error["code"]) == (4, "too_deep")
    gaia("create", "--id", "flat", "--max-depth", "0")
    assert gaia("create", "--parent", "flat").code == 4


def test_s11_neither_an_option_nor_metadata_makes_a_session_less_deep(gaia: Gaia, child: Gaia) -> None:
    forged = ("-m", "depth=0", "-m", "max_depth=99", "-m", "parent_id=")
    gaia("create", "--id", "d0", "--max-depth", "1", *forged)
    child("d0", "d1", "--max-depth", "20", *forged)
    assert gaia("update", "d1", *forged).code == 0
    refused = gaia("create", "--parent", "d1", *forged, "--json")
    assert (refused.code, refused.error["code"]) == (4, "too_deep")


def test_l19_a_sixth_child_is_refused_until_one_has_ended(gaia: Gaia, child: Gaia, root: str) -> None:
    gaia("create", "--id", "root")
    for number in range(5):
        child("root", f"c{number}")
    refused = gaia("create", "--parent", "root", "--id", "c5", "--json")
    assert (refused.code, refused.error["code"], Path(root, "c5").exists()) == (4, "too_many_children", False)
    gaia("finalize", "c3", "completed")
    child("root", "c5")
    assert gaia("create", "--parent", "root").code == 4


def test_a_final_parent_may_have_children(gaia: Gaia, child: Gaia) -> None:
    gaia("create", "--id", "root")
    gaia("finalize", "root", "completed")
    child("root", "late")


@fresh_table("words", [["--active-only"], ["--limit", "0"], ["--grep", ""], ["--state", "new"]])
def test_tree_with_an_id_refuses_filter_options(gaia: Gaia, child: Gaia, words: list[str]) -> None:
    gaia("create", "--id", "root")
    child("root", "below")
    refused = gaia("tree", "root", *words).all
    hint = "Hint: leave out the ID, or leave out the options\n"
    assert refused == (2, "", f"Error: ID cannot be combined with options that filter\n{hint}")
    assert gaia("tree", *words).code == 0


def test_tree_with_an_id_shows_that_session_and_all_below_it(gaia: Gaia, child: Gaia) -> None:
    gaia("create", "--id", "root")
    child("root", "middle")
    child("root", "other")
    child("middle", "leaf")
    assert levels(gaia("tree", "middle").out) == [(0, "middle"), (1, "leaf")]
    assert levels(gaia("tree", "leaf").out) == [(0, "leaf")]
    found = gaia("tree", "middle", "--json").json
    assert [(line["agent_id"], line.get("parent_status")) for line in found] == [("middle", None), ("leaf", None)]
    assert (gaia("tree", "nobody").code, gaia("tree", "../etc").code) == (3, 7)


def test_tree_prints_the_sums_above_and_json_has_them_for_each_session(gaia: Gaia, put: Gaia, spoil: Gaia) -> None:
    put("root", parent_id="gone", usage={"total_tokens": 1500, "cache_read_tokens": 300}, max_tokens=1000)
    put("silent", parent_id="root", phase="failed", resume_ready=False)
    put("leaf", parent_id="silent", skills={"aws": 30})
    put("alone", charged_tokens=0)
    spoil("torn")
    put("below", parent_id="torn", charged_tokens=5)

    leaf = {"sessions": 1, "states": {"waiting": 1}, "tokens": 30, "unreported": 0}
    used = {"sessions": 1, "tokens": 1200, "max_tokens": 1000, "limit_reached": 1}
    sums = {
        "root": {
            "sessions": 3,
            "states": {"waiting": 2, "failed": 1},
            "tokens": 1230,
            "unreported": 1,
            "budgets": used,
        },
        "silent": {"sessions": 2, "states": {"waiting": 1, "failed": 1}, "tokens": 30, "unreported": 1},
        "leaf": leaf,
        "alone": {**leaf, "tokens": 0},
        "torn": {"sessions": 2, "states": {"corrupt": 1, "waiting": 1}, "tokens": 5, "unreported": 1},
        "below": {**leaf, "tokens": 5},
    }
    assert {line["agent_id"]: line["sums"] for line in gaia("tree", "--json").json} == sums
    for agent_id, found in sums.items():
        below = gaia("tree", agent_id, "--json").json
        assert {line["agent_id"]: line["sums"] for line in below}[agent_id] == found
        assert {line["agent_id"]: line["sums"] for line in below}.items() <= sums.items()
    assert gaia("tree", "silent").lines[0] == ("2 sessions, 30 tokens (1 reported none): 1 waiting, 1 failed")


def test_tree_draws_branches_in_ascii_if_the_encoding_is_ascii(
    program: Gaia, terminal: Gaia, gaia: Gaia, child: Gaia
) -> None:
    gaia("create", "--id", "root", "--agent", "Pr\u00fcfer", "--purpose", "plan")
    for name in ("one", "two"):
        child("root", name, "--agent", "tester", "--purpose", f"{name} {'x' * 90}")
    child("one", "leaf")

    in_pipe = program("tree", PYTHONIOENCODING="ascii").out.decode("ascii").splitlines()
    at_terminal = terminal("tree", PYTHONIOENCODING="ascii", PYTHONUTF8="0", NO_COLOR="1", TERM="dumb").out
    shown = at_terminal.decode("ascii").splitlines()

    starts = ["Pr\\xfcfer: plan", "|- tester: one xxx", "|  `- unknown", "`- tester: two xxx"]
    for lines in (in_pipe[1:], shown[2:]):
        assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    assert ["~" in line for line in shown[2:]] == [False, True, False, True]
    assert max(map(len, shown[:2] + shown[3:])) <= 80


def test_a_tree_of_a_thousand_levels_fits_on_a_terminal(terminal: Gaia, put: Gaia) -> None:
    put("level-0")
    for level in range(1, 1000):
        put(f"level-{level}", parent_id=f"level-{level - 1}", purpose=f"{level} deep down", charged_tokens=1)

    heading, sums, *rows = terminal("tree", NO_COLOR="1", TERM="dumb").lines
    assert (heading.split(), sums) == (
        ["agent:", "purpose", "state", "tokens", "id"],
        "1000 sessions, 999 tokens (1 reported none): 1000 waiting",
    )
    assert max(map(len, rows)) <= 80
    assert [row.split()[-1] for row in rows] == [f"level-{level}" for level in range(1000)]
    assert all(f"tester: {level} deep" in row for level, row in enumerate(rows) if level)


def test_tree_and_doctor_report_a_parent_that_was_removed_by_hand(gaia: Gaia, root: str, child: Gaia) -> None:
    """E16."""
    gaia("create", "--id", "root")
    child("root", "middle")
    child("middle", "leaf")
    shutil.rmtree(Path(root, "middle"))

    assert levels(gaia("tree").out) == [(0, "middle"), (1, "leaf"), (0, "root")]
    assert levels(gaia("tree", "leaf").out) == [(0, "middle"), (1, "leaf")]
    assert levels(gaia("tree", "middle").out) == [(0, "middle"), (1, "leaf")]
    assert [line["parent_status"] for line in gaia("tree", "leaf", "--json").json] == ["gone"]
    missing = "open sessions below a gone or unreadable session, so a cancellation from above cannot reach them"
    missing += "; finalize or cancel each"
    assert finding(gaia) == ("problem", f"{missing}: leaf (below middle)")
    gaia("finalize", "leaf", "completed")
    assert finding(gaia) == ("ok", "1 session below another one")


def test_tree_and_doctor_report_parents_that_form_a_circle(gaia: Gaia, put: Gaia) -> None:
    """E16: each session of the circle gets a clear report, and no command hangs."""
    put("a", parent_id="c")
    put("b", parent_id="a")
    put("c", parent_id="b")
    put("d", parent_id="c")

    for first, rest in {"a": "bcd", "b": "cad", "c": "abd"}.items():
        lines = gaia("tree", first, "--json").json
        assert [lines[0]["agent_id"], lines[0]["parent_status"]] == [first, "circle"]
        assert sorted(line["agent_id"] for line in lines[1:]) == sorted(rest)
    assert finding(gaia) == ("problem", "parents that form a circle: a, b, c")
    code = gaia("create", "--parent", "b").code
    assert code == 0


def finding(gaia: Gaia) -> tuple[str, str]:
    checks = {check["name"]: check for check in json.loads(gaia("doctor", "--json").out)["checks"]}
    return checks["parents"]["state"], checks["parents"]["found"]


def test_cleanup_keeps_all_sessions_above_an_open_session(gaia: Gaia, put: Gaia) -> None:
    final = {"phase": "completed", "resume_ready": False}
    put("root", idle=DAY, **final)
    put("middle", idle=DAY, parent_id="root", **final)
    put("leaf", parent_id="middle")
    put("lonely", idle=DAY, **final)
    put("child", idle=DAY, parent_id="lonely", **final)

    for words in (["--dry-run"], []):
        report = gaia("cleanup", "--json", *words).json
        assert sorted(report["removed"]) == ["child", "lonely"]
        kept = [(one["agent_id"], one["reason"]) for one in report["kept"]]
        assert sorted(kept) == [(one, "above_open") for one in ("middle", "root")]
    gaia("finalize", "leaf", "completed")
    assert sorted(gaia("cleanup", "--json").json["removed"]) == ["middle", "root"]
