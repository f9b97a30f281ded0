"""The signals that a wrapper collects, when children end at any moment."""

from __future__ import annotations

import subprocess
import sys

from tests.runner.conftest import PATIENCE

STORM = """
import os, signal, subprocess, sys, threading
from gaia_sessions.runner.signals import Signals

SENDER = '''
import os, signal, sys
try:
    while True:
        os.kill(int(sys.argv[1]), signal.SIGCHLD)
except ProcessLookupError:
    pass
'''
senders = [subprocess.Popen([sys.executable, "-c", SENDER, str(os.getpid())]) for _ in range(3)]
for sender in senders:
    threading.Thread(target=sender.wait, daemon=True).start()  # a signal can come to any thread
signals = Signals()
for _ in range(2_000):
    with signals:
        signals.read()
for sender in senders:
    sender.kill()
"""


def test_a_child_that_ends_while_handlers_change_prints_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", STORM], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.stderr.count("race condition") == 0
