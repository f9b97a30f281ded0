"""The files of the state that the sessions of an app, or of one of its users, share (``.shared``).

Each file is replaced whole, durably, under a lock of its own that the caller holds.
"""

from __future__ import annotations

import os

from gaia_sessions.errors import DurabilityUnknown, InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.ids import encode_key
from gaia_sessions.session.shared_keys import check_document

from . import atomic
from . import root as roots
from .directory import NotAFile, TooBig, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gaia_sessions.session.shared_keys import Document, Scope

    from .directory import Directory

_KINDS = {1: "app-", 2: "user-"}
"""How the names of the files begin, by the number of names in a scope."""

_SUFFIX = ".json"
_REPAIR = "fix the file, or move it away (then its keys are lost)"


def name_of(scope: Scope) -> str:
    return f"{_KINDS[len(scope)]}{encode_key(*scope)}{_SUFFIX}"


def is_own_name(name: str) -> bool:
    """Returns whether ``name`` belongs to a document or to its temporary file."""
    return _is_name(name) or is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Returns whether ``name`` belongs to the temporary file of a document."""
    return _is_name(atomic.target_of(name))


def _is_name(name: str) -> bool:
    return name.startswith((*_KINDS.values(),)) and name.endswith(_SUFFIX)


def read(root: Directory, scope: Scope) -> Document | None:
    """Returns the document of ``scope``, or None; raises ``StoreFailure`` if it cannot be read."""
    return _read_named(root, name_of(scope))


def each(root: Directory) -> Iterator[Document | StoreFailure]:
    """Yields every document, or the error of reading it or the folder."""
    try:
        names = root.names_below(roots.SHARED)
    except NotADirectoryError:
        yield StoreFailure("read", f"{root.path}/{roots.SHARED}", "it is not a folder")
        return
    for name in filter(_is_name, names):
        try:
            document = _read_named(root, name)
        except StoreFailure as error:
            yield error
        else:
            if document is not None:
                yield document


def remove(root: Directory, scope: Scope, *, durable: bool) -> None:
    """Removes the document of ``scope``, if there is one; the caller holds its lock."""
    with translate_errors("change", f"{root.path}/{roots.SHARED}"), root.below(roots.SHARED) as folder:
        os.unlink(name_of(scope), dir_fd=folder.fd)
        if durable:
            atomic.sync_folder(folder)


def _read_named(root: Directory, name: str) -> Document | None:
    path = f"{root.path}/{roots.SHARED}/{name}"
    try:
        with root.below(roots.SHARED) as folder:
            document = decode(folder.read(name, strict.DOCUMENT_LIMIT))
    except FileNotFoundError:
        return None
    except (InvalidInput, NotAFile, TooBig) as error:
        raise StoreFailure("read", path, str(error), _REPAIR) from None
    except OSError as error:
        raise StoreFailure("read", path, error.strerror or str(error)) from error
    scope = (*document["scope"],)
    if name_of(scope) != name:
        raise StoreFailure("read", path, f"its name does not match its scope {scope}", _REPAIR)
    return document


def decode(data: bytes) -> Document:
    document = strict.load_object(data)
    check_document(document)
    return document  # type: ignore[return-value]  # what was just checked


def encode(document: Document) -> bytes:
    return strict.dumps(document)


def replace_around(
    root: Directory, documents: Mapping[Scope, Document], write: Callable[[], None], *, durable: bool
) -> None:
    """Writes ``documents`` to the disk, calls ``write``, and renames them into place (``atomic.replace_around``)."""
    encoded = {name_of(scope): encode(document) for scope, document in documents.items()}
    is_first = any(document["revision"] <= 1 for document in documents.values())
    with translate_errors("change", f"{root.path}/{roots.SHARED}"), root.make(roots.SHARED) as folder:
        if durable and is_first:  # the maker of the folder may have been killed before the folder's name was synced
            try:
                atomic.sync_folder(root)
            except DurabilityUnknown as error:  # nothing has changed yet
                raise StoreFailure("sync", root.path, error.reason) from error
        atomic.replace_around(folder, encoded, write, durable=durable)
