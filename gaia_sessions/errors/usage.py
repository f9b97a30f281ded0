"""Requests that are wrong in themselves: an unknown word, an invalid value, a folder that does not exist.

Loaded when one of these errors is first named.
"""

from __future__ import annotations

from .main_branches import SessionsError, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MAX_LISTED = 5


class UsageError(SessionsError):
    """The request itself is wrong; nothing was read or written."""

    code = "usage"
    exit_code = 2


class BadSetting(UsageError):
    """An unknown configuration key or an invalid value; ``origin`` is the file or variable that has it.

    The message names the origin only once, even if ``problem`` does so too.
    """

    code = "bad_setting"

    def __init__(self, origin: str, problem: str, hint: str) -> None:
        self.origin = origin
        self.problem = problem
        text = shorten(problem, 500)
        super().__init__(text if origin in problem.split() else f"{origin}: {text}", hint)


class UnknownWord(UsageError):
    """A word that is none of ``known``."""

    code = "unknown_word"
    kind = "word"
    other_options: Mapping[str, Sequence[str]] = {}
    """The words of other options that may have been meant, by option."""

    def __init__(self, word: object, known: Iterable[str]) -> None:
        self.word = word
        self.known = tuple(known)
        super().__init__(f"unknown {self.kind} {shorten(repr(word))}", f"the {self.kind}s are {', '.join(self.known)}")


class UnknownPhase(UnknownWord):
    code = "unknown_phase"
    kind = "phase"


class UnknownState(UnknownWord):
    code = "unknown_state"
    kind = "state"


class UnknownOutcome(UnknownWord):
    code = "unknown_outcome"
    kind = "outcome"


class UnknownHost(UnknownWord):
    code = "unknown_host"
    kind = "host"


class BadArgument(UsageError):
    """The value of an argument is outside the range that its command or function accepts."""

    code = "bad_argument"

    def __init__(self, name: str, value: object, wanted: str) -> None:
        self.name = name
        self.value = value
        self.wanted = wanted
        super().__init__(f"{name} {shorten(repr(value))} is not valid", f"must be {wanted}")


class NoSuchFolder(UsageError):
    """There is no folder at ``path``."""

    code = "no_such_folder"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path!r} is not a folder",
            "name a project, a folder that has one folder per session, or the folder of one session",
        )


class AmbiguousId(UsageError):
    """The text typed as an ID is a part of several ids: ``candidates``."""

    code = "ambiguous_id"

    def __init__(self, typed: str, candidates: Iterable[str]) -> None:
        self.typed = typed
        self.candidates = tuple(candidates)
        listed = ", ".join(self.candidates[:_MAX_LISTED])
        more = len(self.candidates) - _MAX_LISTED
        rest = f" and {more} more" if more > 0 else ""
        super().__init__(
            f"{typed!r} is the beginning or end of {len(self.candidates)} IDs: {listed}{rest}",
            "type more of the ID: `gaia-sessions list` shows the existing sessions",
        )
