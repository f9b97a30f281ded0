"""The change of a settings file, shown as a patch."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def patch_lines(path: str, before: bytes | None, after: bytes | None, base: str) -> Iterator[str]:
    """Yields a unified diff for ``patch -p1`` in the folder ``base``; None means that there is no file."""
    from difflib import unified_diff

    name = os.path.relpath(path, base) if path.startswith(base.rstrip(os.sep) + os.sep) else path.lstrip(os.sep)
    old = "/dev/null" if before is None else f"a/{name}"
    new = "/dev/null" if after is None else f"b/{name}"
    for line in unified_diff(_lines(before), _lines(after), old, new):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _lines(data: bytes | None) -> list[str]:
    """Returns the lines as ``patch`` splits them: only a newline ends a line."""
    whole = (data or b"").decode(errors="surrogateescape").split("\n")
    return [line + "\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
