"""The rows of ``Sessions``: each makes a method of one operation, whose module is imported on the first call."""

from __future__ import annotations

from . import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, Generic, ParamSpec, TypeVar, overload

    from gaia_sessions.session.schema import Record

    from .at import Place, Reading, Writing
    from .updating import Written

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")

    class _Row(Generic[Arguments, Result]):
        @overload
        def __get__(self, place: None, owner: type) -> Callable[Concatenate[Place, Arguments], Result]: ...
        @overload
        def __get__(self, place: Place, owner: type) -> Callable[Arguments, Result]: ...
        def __get__(self, place: Place | None, owner: type) -> object: ...

    class Calls(_Row[Arguments, Result]):
        """A method for an operation that opens the root itself: more than once, or never."""

        def __init__(self, do: Callable[Concatenate[Place, Arguments], Result]) -> None: ...

    class Reads(_Row[Arguments, Result]):
        """A method that reads."""

        def __init__(self, do: Callable[Concatenate[Reading, Arguments], Result]) -> None: ...

    class Writes(_Row[Arguments, Result]):
        """A method that writes."""

        def __init__(self, do: Callable[Concatenate[Writing, Arguments], Result]) -> None: ...

    class Changes(_Row[Arguments, Record]):
        """A method that writes one session, and returns its record."""

        def __init__(self, do: Callable[Concatenate[Writing, Arguments], Written]) -> None: ...

else:
    from types import MethodType

    _DOCSTRING = property(lambda row: row.__wrapped__.__doc__)
    """The docstring of the operation; each class names it, or it would have its own."""

    class Calls:
        __doc__ = _DOCSTRING

        def __init__(self, do: Named) -> None:
            self._named = do
            self._do = None

        def __set_name__(self, owner: type, name: str) -> None:
            if hasattr(self, "__name__"):  # a subclass may give it a second name
                return
            self.__name__ = name
            self.__qualname__ = f"{owner.__name__}.{name}"
            self.__module__ = owner.__module__
            self.__call__ = MethodType(self, owner)  # ``mock`` takes the signature from here

        def __get__(self, place: Place | None, owner: type) -> object:
            return self if place is None else MethodType(self, place)

        def __call__(self, place: Place, /, *arguments: object, **named: object) -> object:
            return self.__wrapped__(place, *arguments, **named)

        def __reduce__(self) -> str:
            return self.__qualname__  # by reference, as functions are copied and pickled

        @property
        def __wrapped__(self) -> Callable[..., object]:
            """The operation, which has the signature and the docstring."""
            if self._do is None:
                self._do = self._named.load()
            return self._do

    class Reads(Calls):
        __doc__ = _DOCSTRING

        def __call__(self, place: Place, /, *arguments: object, **named: object) -> object:
            return at.read(place, self.__wrapped__, *arguments, **named)

    class Writes(Calls):
        __doc__ = _DOCSTRING

        def __call__(self, place: Place, /, *arguments: object, **named: object) -> object:
            return at.write(place, self.__wrapped__, *arguments, **named)

    class Changes(Calls):
        __doc__ = _DOCSTRING

        def __call__(self, place: Place, /, *arguments: object, **named: object) -> Record:
            return at.write(place, self.__wrapped__, *arguments, **named).record

        @property
        def __signature__(self) -> object:
            from inspect import signature

            return signature(self.__wrapped__).replace(return_annotation="Record")


class Later:
    """A module of this package that is imported on the first call of an operation."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Named:
        return Named(self._module, name)


class Named:
    """An operation, by its module and name."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def load(self) -> Callable[..., object]:
        """Returns the operation, and imports its module if needed."""
        module = __import__(f"gaia_sessions.api.{self._module}", fromlist=[self._name])
        found: Callable[..., object] = getattr(module, self._name)
        return found
