"""The root directory: how it is opened, made, and what stands in it beside the sessions.

Owns the names with a leading dot, which no session id can have. Knows no record.
"""

from __future__ import annotations

import os

from gaia_sessions.ids import is_agent_id

from . import atomic
from .directory import Directory

LOCKS = ".locks"
STAGE = ".stage"
TRASH = ".trash"
INBOX = ".inbox"

_IGNORE = ".gitignore"


def make(path: str, *, durable: bool) -> Directory:
    """The root at ``path``, created with the folders above it if need be, and kept out of version control."""
    above, name = os.path.split(path)
    _make_folders(above, durable=durable)
    with Directory.at(above or os.curdir) as parent:
        if name and not parent.has(name):
            parent.add(name)
            _sync(parent, durable=durable)
    root = Directory.at(path)
    if not root.has(_IGNORE):
        atomic.replace(root, _IGNORE, b"*\n", durable=durable)
    return root


def _make_folders(path: str, *, durable: bool) -> None:
    """The folders above the root are the project's, so they get the mode that the user's umask says."""
    if not path or os.path.isdir(path):
        return
    above = os.path.dirname(path)
    _make_folders(above, durable=durable)
    os.makedirs(path, exist_ok=True)
    with Directory.at(above or os.curdir) as parent:
        _sync(parent, durable=durable)


def _sync(folder: Directory, *, durable: bool) -> None:
    if durable:
        folder.sync()


def sessions(root: Directory) -> list[str]:
    """The names in ``root`` that may be sessions: all that are ids and not plain files, in no order."""
    with os.scandir(root.fd) as entries:
        return [entry.name for entry in entries if is_agent_id(entry.name) and not entry.is_file(follow_symlinks=False)]
