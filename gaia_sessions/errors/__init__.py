"""Every error that this package raises. The number is the exit code of a command that ends with it.

An error has its data as attributes, makes its own message, and says in ``hint`` what to do next. Errors that hooks need
at every start are in ``base``; the others are loaded when they are first named. Must never import what raises them, nor
touch a file. Hints may name commands.

    SessionsError
    ├── UsageError              2   the request itself is wrong
    │   ├── UnknownPhase
    │   ├── UnknownOutcome
    │   ├── UnknownHost
    │   ├── BadArgument
    │   ├── NoSuchFolder
    │   ├── AmbiguousId
    │   └── BadSetting
    ├── SessionNotFound         3
    ├── Conflict                4   a valid record does not allow the request
    │   ├── SessionExists
    │   ├── SessionFinal
    │   ├── IllegalMove
    │   ├── ResumeNotAllowed
    │   ├── NothingToDeny
    │   ├── RevisionChanged
    │   ├── NewerSchema
    │   └── HooksElsewhere
    ├── LockTimeout             5
    ├── CorruptSession          6
    │   └── NothingReadable         no session of a folder can be read
    ├── InvalidInput            7   a text or value that was passed in is not acceptable
    │   ├── InvalidId
    │   ├── SettingsUnreadable
    │   └── TooLarge
    ├── StoreFailure            8   the system refused the operation; nothing was changed
    │   ├── LockUnsupported
    │   └── OwnedByAnother          the sessions belong to another user
    └── DurabilityUnknown       9   written, but the sync to disk failed
"""

from .base import BadSetting as BadSetting
from .base import Conflict as Conflict
from .base import CorruptSession as CorruptSession
from .base import DurabilityUnknown as DurabilityUnknown
from .base import InvalidId as InvalidId
from .base import InvalidInput as InvalidInput
from .base import LockTimeout as LockTimeout
from .base import LockUnsupported as LockUnsupported
from .base import NewerSchema as NewerSchema
from .base import SessionExists as SessionExists
from .base import SessionNotFound as SessionNotFound
from .base import SessionsError as SessionsError
from .base import StoreFailure as StoreFailure
from .base import TooLarge as TooLarge
from .base import UsageError as UsageError
from .base import plural as plural
from .base import shorten as shorten
from .base import well_formed as well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .conflicts import HooksElsewhere as HooksElsewhere
    from .conflicts import IllegalMove as IllegalMove
    from .conflicts import NothingToDeny as NothingToDeny
    from .conflicts import ResumeNotAllowed as ResumeNotAllowed
    from .conflicts import RevisionChanged as RevisionChanged
    from .conflicts import SessionFinal as SessionFinal
    from .exit_codes import EXIT_BUG as EXIT_BUG
    from .exit_codes import EXIT_CODES as EXIT_CODES
    from .exit_codes import EXIT_DONE as EXIT_DONE
    from .exit_codes import EXIT_INTERRUPTED as EXIT_INTERRUPTED
    from .exit_codes import EXIT_NO as EXIT_NO
    from .exit_codes import exit_code as exit_code
    from .files import EXPORT_ROOT_COMMAND as EXPORT_ROOT_COMMAND
    from .files import NothingReadable as NothingReadable
    from .files import OwnedByAnother as OwnedByAnother
    from .files import SettingsUnreadable as SettingsUnreadable
    from .usage import AmbiguousId as AmbiguousId
    from .usage import BadArgument as BadArgument
    from .usage import NoSuchFolder as NoSuchFolder
    from .usage import UnknownHost as UnknownHost
    from .usage import UnknownOutcome as UnknownOutcome
    from .usage import UnknownPhase as UnknownPhase
else:

    def __getattr__(name: str) -> object:
        """The error ``name``, or what there is to know about exit codes, from the module that has it."""
        from importlib import import_module

        for place in ("exit_codes", "conflicts", "usage", "files"):  # the others are not loaded for nothing
            module = import_module(f"{__name__}.{place}")
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
