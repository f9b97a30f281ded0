"""What every command has in common: ``--root``, ``--lock-timeout``, ``--json``, and how a command is declared.

Owns the one frozen value that a command gets beside its own options.
"""

from __future__ import annotations

from functools import wraps

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gaia_sessions.api import Sessions

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

ROOT = click.option("--root", metavar="DIR", help="Where the sessions are.  [default: the project's .claude/session]")
JSON = click.option("--json", "as_json", is_flag=True, help="Answer, and report errors, in JSON.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout", metavar="SECONDS", type=float, help="Wait so long for who holds a session.  [default: 10]"
)


class Call:
    """One call of a command: whose sessions, and for whom the answer is."""

    __slots__ = ("_flags", "as_json", "root")

    def __init__(self, root: str | None, lock_timeout: float | None, *, as_json: bool) -> None:
        self.root = root
        self._flags = {"lock_timeout": lock_timeout}
        self.as_json = as_json

    def sessions(self) -> Sessions:
        """The sessions it is about."""
        from gaia_sessions.api import Sessions

        return Sessions(self.root, self._flags)


def declare(*examples: str) -> Callable[[Callable[..., int | None]], click.Command]:
    """Declares a command: its function gets a ``Call`` first and returns its exit code, None for 0.

    The function's docstring is the help, ``examples`` stand below it.
    """

    def make(function: Callable[..., int | None]) -> click.Command:
        @wraps(function)
        def run(root: str | None, lock_timeout: float | None, *, as_json: bool, **options: object) -> int:
            outer = click.get_current_context().find_root().params
            call = Call(root or outer["root"], _first(lock_timeout, outer["lock_timeout"]), as_json=as_json)
            return function(call, **options) or 0

        for option in (JSON, LOCK_TIMEOUT, ROOT):
            run = option(run)
        epilog = "\b\nExamples:\n" + "\n".join(f"  gaia-sessions {example}" for example in examples)
        return click.command(context_settings=CONTEXT, epilog=epilog)(run)

    return make


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one
