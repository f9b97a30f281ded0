"""A command that writes very much: how much memory and disk space ``run`` takes, and what it stores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gaia_sessions.store.file_store import FileStore
from tests.runner.conftest import becomes, linux

pytestmark = linux

MIB = 1 << 20
FLOOD = """
import os, sys, time
piece = bytes(range(32, 127)) * 690
for _ in range(int(sys.argv[1])):
    os.write(1, piece[:65536])
os.write(1, b"the end\\n")
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
"""


def peak_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@pytest.mark.parametrize("reader", ["shown", "quiet"])
@pytest.mark.parametrize("mebibytes", [48, pytest.param(1024, marks=pytest.mark.thorough)])
def test_a_flood_of_output_takes_little_memory_and_disk_space(
    root: str, tmp_path: Path, mebibytes: int, reader: str
) -> None:
    written, go = tmp_path / "written", tmp_path / "go"
    words = [sys.executable, "-c", FLOOD, str(mebibytes * 16), str(written), str(go)]
    quiet = ["--quiet"] if reader == "quiet" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "gaia_sessions", "--root", root, "run", *quiet, "--", *words], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    shown = 0
    while reader == "shown" and shown < mebibytes * MIB + len("the end\n"):
        shown += len(os.read(process.stdout.fileno(), 1 << 20))
    assert becomes(written.exists, 300)
    peak = peak_memory(process.pid)
    sizes = [path.stat().st_size for path in Path(root).glob("*/output-1.log")]
    go.touch()
    process.communicate(timeout=60)

    assert process.returncode == 0
    assert peak < 64 * MIB
    assert max(sizes) <= 3 * MIB + 100
    [record] = [json.loads(path.read_bytes()) for path in Path(root).glob("*/state.json")]
    log = FileStore(root).output(FileStore(root).read(record["agent_id"]), 1)
    left_out = (mebibytes - 2) * MIB + len("the end\n")
    assert (len(log) < 2 * MIB + 100, log[-8:]) == (True, b"the end\n")
    assert f"\n[gaia-sessions: {left_out} bytes left out]\n".encode() in log
    assert record["runs"][0]["last_message"][-8:] == "the end\n"
    messages: Any = list(FileStore(root).messages(record["agent_id"]))
    assert [len(message["content"]) for message in messages] == [65536]
