"""The files of the state that the sessions of an app, or of one of its users, share.

Owns their names below ``.shared``, and their bytes. Each is replaced whole, durably, under a lock of its own that the
caller holds. Only who asks for such state loads this.
"""

from __future__ import annotations

from gaia_sessions.errors import DurabilityUnknown, InvalidInput, StoreFailure
from gaia_sessions.jsonio import strict
from gaia_sessions.session.ids import encode_key
from gaia_sessions.session.shared_keys import check_document

from . import atomic
from . import root as roots
from .directory import NotAFile, TooBig, translate_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gaia_sessions.session.shared_keys import Document, Scope

    from .directory import Directory

_KINDS = {1: "app-", 2: "user-"}
"""How the names of the files begin, by the number of names that a scope has."""

_SUFFIX = ".json"
_REPAIR = "fix the file, or move it away: then its keys are gone"


def name_of(scope: Scope) -> str:
    """The name of the file of ``scope``."""
    return f"{_KINDS[len(scope)]}{encode_key(*scope)}{_SUFFIX}"


def is_own_name(name: str) -> bool:
    """Whether a file with this ``name`` is one of these, finished or not."""
    return _is_name(name) or is_unfinished(name)


def is_unfinished(name: str) -> bool:
    """Whether ``name`` is that of a file that somebody is writing, or was killed while writing."""
    return _is_name(atomic.target_of(name))


def _is_name(name: str) -> bool:
    return name.startswith((*_KINDS.values(),)) and name.endswith(_SUFFIX)


def read(root: Directory, scope: Scope) -> Document | None:
    """The document of ``scope``, None if there is none. Raises ``StoreFailure`` for one that cannot be read."""
    return _read_named(root, name_of(scope))


def unreadable(root: Directory) -> dict[str, str]:
    """The paths of those that cannot be read, each with the reason; that of their folder if that is none."""
    found = {}
    try:
        names = root.names_below(roots.SHARED)
    except NotADirectoryError:
        return {f"{root.path}/{roots.SHARED}": "it must be a folder"}
    for name in filter(_is_name, names):
        try:
            _read_named(root, name)
        except StoreFailure as error:
            found[error.path] = error.reason
    return found


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
        raise StoreFailure("read", path, f"it is of {scope}, and has the name of another", _REPAIR)
    return document


def decode(data: bytes) -> Document:
    """The document with the bytes ``data``. Raises ``InvalidInput``."""
    document = strict.load_object(data)
    check_document(document)
    return document  # type: ignore[return-value]  # what was just checked


def encode(document: Document) -> bytes:
    """The bytes of ``document``. Raises ``TooLarge``."""
    return strict.dumps(document)


def replace_around(
    root: Directory, documents: Mapping[Scope, Document], write: Callable[[], None], *, durable: bool
) -> None:
    """Calls ``write`` when ``documents`` are on the disk and before they are in place, as ``atomic`` does.

    What cannot be written stops before it. Raises ``StoreFailure``, ``TooLarge``, ``DurabilityUnknown``.
    """
    encoded = {name_of(scope): encode(document) for scope, document in documents.items()}
    is_first = any(document["revision"] <= 1 for document in documents.values())
    with translate_errors("change", f"{root.path}/{roots.SHARED}"), root.make(roots.SHARED) as folder:
        if durable and is_first:  # whoever made the folder may have been killed before its name was on the disk
            try:
                atomic.sync_folder(root)
            except DurabilityUnknown as error:  # nothing has changed yet
                raise StoreFailure("sync", root.path, error.reason) from error
        atomic.replace_around(folder, encoded, write, durable=durable)
