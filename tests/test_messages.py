"""The list of messages that `scripts/messages` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scripts import script
from .table import table

if TYPE_CHECKING:
    from pathlib import Path


@table(
    "source, messages",
    [
        ('raise Bad("no such folder")', [(1, "no such folder")]),
        (
            'print(f"{len(ids)} sessions were removed")',
            [(1, "{len(ids)} sessions were removed")],
        ),
        ('say("the file "\n    "is gone")', [(1, "the file is gone")]),
        (
            '@declare("show ID")\ndef command():\n    """Show one session."""',
            [(1, "show ID"), (2, "Show one session.")],
        ),
        ('"""Of a module."""\ndef do():\n    """Does it all."""', []),
        ('KEYS = ("agent_id", "in_phase", "-", "a {b c}")', []),
        ('print(f"{one or two}")', []),
    ],
)
def test_messages_are_texts_of_two_words_and_the_help_of_commands(
    tmp_path: Path, source: str, messages: list[tuple[int, str]]
) -> None:
    file = tmp_path / "module.py"
    file.write_text(source, encoding="utf-8")

    assert [*script("messages").messages(file)] == messages
