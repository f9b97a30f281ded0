"""All errors. Each error makes its own message, and has its data and a ``hint`` as attributes.

``others`` is loaded when code first names one of its errors: most calls of a hook need none of them.

    SessionsError
    ├── UsageError              the request itself is wrong
    │   ├── UnknownWord
    │   │   ├── UnknownPhase
    │   │   ├── UnknownState
    │   │   ├── UnknownOutcome
    │   │   └── UnknownHost
    │   ├── BadArgument
    │   ├── NoSuchFolder
    │   ├── AmbiguousId
    │   └── BadSetting
    ├── SessionNotFound
    ├── Conflict                the record is valid, but does not allow the request
    │   ├── SessionExists
    │   ├── SessionFinal
    │   ├── IllegalMove
    │   ├── ResumeNotAllowed
    │   ├── AnswerOfAgent
    │   ├── NotApproved
    │   ├── NothingToAnswer
    │   ├── RunGone
    │   ├── RunNotAllowed
    │   │   └── AgentAtWork
    │   ├── NotTheNextTurn
    │   ├── NoSuchTodo
    │   ├── NotRemovable
    │   ├── RevisionChanged
    │   ├── StateChanged
    │   ├── NewerSchema
    │   │   └── SessionMoving
    │   ├── TooDeep
    │   ├── TooManyChildren
    │   └── HooksElsewhere
    ├── LockTimeout
    ├── CorruptSession
    ├── InvalidInput            a value that was passed in is not acceptable
    │   ├── InvalidId
    │   ├── NoToolsLeft
    │   ├── SettingsUnreadable
    │   ├── TaskRefused
    │   └── TooLarge
    ├── StoreFailure            the system refused the operation; nothing was changed
    │   ├── LinkedElsewhere     a link leads out of the project
    │   ├── LockUnsupported
    │   ├── NotWritten          the connection to the server was lost before the commit
    │   └── OwnedByAnother      the sessions belong to another user
    ├── DurabilityUnknown       written, but the sync to disk failed
    │   └── OutcomeUnknown      the connection to the server was lost during the commit
    └── Cancelled               the session, or a session above it, is cancelled
"""

from .main_branches import CorruptSession as CorruptSession
from .main_branches import InvalidId as InvalidId
from .main_branches import InvalidInput as InvalidInput
from .main_branches import LockTimeout as LockTimeout
from .main_branches import SessionNotFound as SessionNotFound
from .main_branches import SessionsError as SessionsError
from .main_branches import StoreFailure as StoreFailure
from .main_branches import plural as plural
from .main_branches import shorten as shorten
from .main_branches import well_formed as well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .others import *  # noqa: F403  # type checkers see every error
else:

    def __getattr__(name: str) -> object:
        """Returns the error ``name`` from ``others``."""
        from .others import __dict__ as others  # `from . import others` would call this function again

        if name in others:
            return others[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
