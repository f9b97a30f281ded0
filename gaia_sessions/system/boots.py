"""Which boot of the machine this is: by the id that Linux gives it, elsewhere by the moment at which it began.

Owns the id, and the comparison of two such moments. If unsure, it says that this is another boot: that costs a rebuild
of the index; the opposite mistake hides sessions. Every later boot begins after the index of an earlier one was
written, so two moments that are nearly the same are one boot, unless the clock was set back meanwhile by exactly the
time between. That happens where the clock begins anew with every boot, so a clock that was never set proves nothing.
"""

from __future__ import annotations

import time

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # on Linux the other one stops while the machine sleeps
_TOLERANCE = 1.0
"""Seconds between two readings in one boot: clocks are set a little, and no machine starts anew that fast."""

_EARLIEST_SET_TIME = 1_735_689_600.0
"""2025-01-01: a clock that shows an earlier time began with the machine."""

_PREFIX = b"since "


def boot_id() -> bytes:
    """The id of this boot; empty where the system gives none."""
    try:
        with open(_BOOT_ID, "rb") as file:  # as text it would load a codec first
            return file.read().strip()
    except OSError:
        return b""


def boot_signature() -> bytes:
    """What to keep of this boot, for ``is_this_boot``; empty if it cannot be told from others."""
    id_of_boot = boot_id()
    if id_of_boot:
        return id_of_boot
    boot_time = _boot_time()
    return b"" if boot_time is None else _PREFIX + f"{boot_time:.3f}".encode()


def is_this_boot(signature: bytes) -> bool:
    """Whether ``signature`` is what ``boot_signature`` returned in this very boot; False if that is not sure."""
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
