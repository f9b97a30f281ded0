"""Which boot of the machine this is: by Linux's boot ID; on other systems by the time at which the boot started.

Another boot must never count as this one: that would hide sessions. The opposite mistake costs a rebuild of the index.
"""

from __future__ import annotations

import time

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on Linux CLOCK_MONOTONIC stops in sleep
_TOLERANCE = 1.0
"""Seconds by which two readings in one boot may differ: clocks are adjusted, and no machine reboots that fast."""

_EARLIEST_SET_TIME = 1_735_689_600.0
"""2025-01-01: a clock that shows an earlier time was never set since the machine started."""

_PREFIX = b"since "


def boot_id() -> bytes:
    """Returns the ID of this boot; empty if the system has none."""
    try:
        with open(_BOOT_ID, "rb", buffering=0) as file:  # as text it would import a codec
            return file.read().strip()
    except OSError:
        return b""


def boot_signature() -> bytes:
    """Returns what identifies this boot to ``is_this_boot``; empty if nothing does."""
    id_of_boot = boot_id()
    if id_of_boot:
        return id_of_boot
    boot_time = _boot_time()
    return b"" if boot_time is None else _PREFIX + f"{boot_time:.3f}".encode()


def is_this_boot(signature: bytes) -> bool:
    """Returns whether ``boot_signature`` returned ``signature`` in this boot; False if that is uncertain."""
    id_of_boot = boot_id()
    if id_of_boot:
        return signature == id_of_boot
    boot_time = _boot_time()
    if boot_time is None or not signature.startswith(_PREFIX):
        return False
    try:
        # A later boot starts after the signature was written. So nearly equal times mean one boot, unless the clock was
        # set back by exactly the difference. A machine that resets its clock at every boot does that, so a time before
        # ``_EARLIEST_SET_TIME`` does not count.
        return abs(float(signature.removeprefix(_PREFIX)) - boot_time) <= _TOLERANCE
    except ValueError:
        return False


def _boot_time() -> float | None:
    now = time.time()
    return now - time.clock_gettime(_CLOCK) if now >= _EARLIEST_SET_TIME else None
