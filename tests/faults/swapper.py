"""The attacker: ``swapper.py SESSION ASIDE VICTIM STOP`` swaps a session for a link to a victim, again and again.

It stops when the file STOP exists, and then puts the session back if possible. It ignores refused moves.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time

LONGEST_REST = 0.002
"""Seconds. Each state lasts a random time up to this, so that every step of a writer can meet both."""


def swap(session: str, aside: str, victim: str) -> None:
    with contextlib.suppress(OSError):
        os.rename(session, aside)
    with contextlib.suppress(OSError):
        os.symlink(victim, session)
    rest()
    put_back(session, aside)
    rest()


def rest() -> None:
    time.sleep(random.random() * LONGEST_REST)


def put_back(session: str, aside: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(session)
    with contextlib.suppress(OSError):
        os.rename(aside, session)


def main(session: str, aside: str, victim: str, stop: str) -> None:
    os.write(1, b"ready\n")
    while not os.path.exists(stop):
        swap(session, aside, victim)
    put_back(session, aside)


if __name__ == "__main__":
    main(*sys.argv[1:])
