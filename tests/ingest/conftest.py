"""What events do to records is shown by the real hooks, which a host starts in a project on disk."""

from __future__ import annotations

from tests.hook.conftest import host  # noqa: F401  # a fixture, which pytest finds by its name here
