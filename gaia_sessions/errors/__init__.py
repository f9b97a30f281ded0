"""Every error that this package raises.

An error has its data as attributes, makes its own message, and says in ``hint`` what to do next. The root and the main
branches are in ``main_branches``; the others are loaded when they are first named. Hints may name commands.

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
    ├── Conflict                a valid record does not allow the request
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
    │   ├── TooDeep
    │   ├── TooManyChildren
    │   └── HooksElsewhere
    ├── LockTimeout
    ├── CorruptSession
    ├── InvalidInput            a text or value that was passed in is not acceptable
    │   ├── InvalidId
    │   ├── NoToolsLeft
    │   ├── SettingsUnreadable
    │   ├── TaskRefused
    │   └── TooLarge
    ├── StoreFailure            the system refused the operation; nothing was changed
    │   ├── LinkedElsewhere     a link leads the sessions out of the project
    │   ├── LockUnsupported
    │   └── OwnedByAnother      the sessions belong to another user
    ├── DurabilityUnknown       written, but the sync to disk failed
    └── Cancelled               somebody cancelled the session, or one above it
"""

from .main_branches import CorruptSession as CorruptSession
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
    from .conflicts import AgentAtWork as AgentAtWork
    from .conflicts import AnswerOfAgent as AnswerOfAgent
    from .conflicts import Cancelled as Cancelled
    from .conflicts import Conflict as Conflict
    from .conflicts import HooksElsewhere as HooksElsewhere
    from .conflicts import IllegalMove as IllegalMove
    from .conflicts import NewerSchema as NewerSchema
    from .conflicts import NoSuchTodo as NoSuchTodo
    from .conflicts import NotApproved as NotApproved
    from .conflicts import NothingToAnswer as NothingToAnswer
    from .conflicts import NotRemovable as NotRemovable
    from .conflicts import NotTheNextTurn as NotTheNextTurn
    from .conflicts import ResumeNotAllowed as ResumeNotAllowed
    from .conflicts import RevisionChanged as RevisionChanged
    from .conflicts import RunGone as RunGone
    from .conflicts import RunNotAllowed as RunNotAllowed
    from .conflicts import SessionExists as SessionExists
    from .conflicts import SessionFinal as SessionFinal
    from .conflicts import StateChanged as StateChanged
    from .conflicts import TooDeep as TooDeep
    from .conflicts import TooManyChildren as TooManyChildren
    from .files import EXPORT_ROOT_COMMAND as EXPORT_ROOT_COMMAND
    from .files import DurabilityUnknown as DurabilityUnknown
    from .files import FiguresLost as FiguresLost
    from .files import LinkedElsewhere as LinkedElsewhere
    from .files import LockUnsupported as LockUnsupported
    from .files import MessagesKeptAside as MessagesKeptAside
    from .files import OwnedByAnother as OwnedByAnother
    from .files import SettingsUnreadable as SettingsUnreadable
    from .inputs import InvalidId as InvalidId
    from .inputs import NoToolsLeft as NoToolsLeft
    from .inputs import TaskRefused as TaskRefused
    from .inputs import TooLarge as TooLarge
    from .usage import AmbiguousId as AmbiguousId
    from .usage import BadArgument as BadArgument
    from .usage import BadSetting as BadSetting
    from .usage import NoSuchFolder as NoSuchFolder
    from .usage import UnknownHost as UnknownHost
    from .usage import UnknownOutcome as UnknownOutcome
    from .usage import UnknownPhase as UnknownPhase
    from .usage import UnknownState as UnknownState
    from .usage import UnknownWord as UnknownWord
    from .usage import UsageError as UsageError
else:

    def __getattr__(name: str) -> object:
        """The error ``name``, from the module that has it."""
        for place in ("files", "inputs", "conflicts", "usage"):  # the others are not loaded for nothing
            module = __import__(f"{__name__}.{place}", fromlist=[name])  # costs less than importlib
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
