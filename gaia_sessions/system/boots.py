"""Which boot of the machine this is: by the id that Linux gives it, on other systems by the time at which it started.

Owns the id, and the comparison of two start times. Must never mistake another boot for this one, which would hide
sessions; the opposite mistake costs only a rebuild of the index. A later boot starts after the index of an earlier one
was written, so two start times that are nearly equal are of one boot, unless the clock was set back by exactly the time
between. That happens where every boot resets the clock, so a clock that was never set proves nothing.
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
    """The id of this boot; empty where the system gives none."""
    try:
        with open(_BOOT_ID, "rb", buffering=0) as file:  # as text it would import a codec
            return file.read().strip()
    except OSError:
        return b""


def boot_signature() -> bytes:
    """What identifies this boot to ``is_this_boot``; empty if nothing does."""
    id_of_boot = boot_id()
    if id_of_boot:
        return id_of_boot
    boot_time = _boot_time()
    return b"" if boot_time is None else _PREFIX + f"{boot_time:.3f}".encode()


def is_this_boot(signature: bytes) -> bool:
    """Whether ``boot_signature`` returned ``signature`` in this boot; False if that is uncertain."""
    id_of_boot = boot_id()
    if id_of_boot:
        return signature == id_of_boot
    boot_time = _boot_time()
    if boot_time is None or not signature.startswith(_PREFIX):
        return False
    try:
        return abs(float(signature.removeprefix(_PREFIX)) - boot_time) <= _TOLERANCE
    except ValueError:
        return False


def _boot_time() -> float | None:
    now = time.time()
    return now - time.clock_gettime(_CLOCK) if now >= _EARLIEST_SET_TIME else None
