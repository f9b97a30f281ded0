"""How a type of ``session.record_types`` becomes a pydantic model.

Owns how the type of a key becomes a field, and the rules that the types cannot express.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    create_model,
    model_validator,
)

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session import record_types
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.phases import PHASES
from gaia_sessions.session.record import SCHEMA
from gaia_sessions.session.schema import ENDS, INTERRUPTIONS, TODO_STATUSES, check_run_end, check_run_numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TypeAlias

DEFAULTS = {"schema": SCHEMA, "revision": 0}
"""The values of the keys that a record of the users' own program does not have."""

_ALWAYS_WRITTEN = frozenset(["run"])
"""What every run in a record has; its type has no required key, since code also passes parts of a run."""


def _check_time(text: str) -> str:
    parse_time(text)
    return text


Time = Annotated[str, AfterValidator(_check_time), Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
if TYPE_CHECKING:  # a type checker cannot read the tables
    Phase: TypeAlias = str
    End: TypeAlias = str
    Interruption: TypeAlias = str
    TodoStatus: TypeAlias = str
else:
    Phase = Literal[PHASES]
    End = Literal[ENDS]
    Interruption = Literal[INTERRUPTIONS]
    TodoStatus = Literal[TODO_STATUSES]

_TEXTS: dict[record_types.TextKind, Any] = {
    record_types.TextKind.TIME: Time,
    record_types.TextKind.PHASE: Phase,
    record_types.TextKind.END: End,
    record_types.TextKind.INTERRUPTION: Interruption,
    record_types.TextKind.TODO_STATUS: TodoStatus,
}


class StrictModel(BaseModel):
    """An object whose optional keys may be absent, not null: None stands for an absent key."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, document: object) -> object:
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key, value in document.items() if isinstance(document, dict) else ():
            if value is None and key in fields and not fields[key].is_required():
                raise ValueError(f"{key} may be absent, not null")
        return document

    def _check(self, check: Callable[[Any, str], None]) -> Self:
        """Returns itself if it passes a ``check`` of the domain; raises the ``ValueError`` that pydantic expects."""
        try:
            check(self.model_dump(by_alias=True, exclude_unset=True), "")
        except InvalidInput as error:
            raise ValueError(str(error)) from None
        return self


class RunModel(StrictModel):
    """A run that has ended says how and when."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"ended_at": ["end"]},
            "anyOf": [{"required": ["ended_at"]}, {"properties": {"end": {"const": "stopped"}}}],
        }
    )

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        return self._check(check_run_end)


class SessionModel(StrictModel):
    """A record whose runs are numbered in their order."""

    @model_validator(mode="after")
    def _check_run_numbers(self) -> Self:
        return self._check(check_run_numbers)


def model_of(keys: type, name: str, base: type[StrictModel] = StrictModel) -> type[StrictModel]:
    """The model called ``name`` with the fields of the ``TypedDict`` ``keys`` and the rules of ``base``."""
    hints = get_type_hints(keys, localns={**_MODELS, "Json": JsonValue}, include_extras=True)
    fields: dict[str, Any] = {}
    for key, hint in hints.items():
        attribute, alias = (f"{key}_", key) if hasattr(BaseModel, key) or iskeyword(key) else (key, None)
        fields[attribute] = _field(key, hint, alias, is_required=_is_required(keys, key, hint))
    model = create_model(name, __base__=base, __module__=__package__, __doc__=keys.__doc__, **fields)
    _MODELS[keys.__name__] = model
    return model


_MODELS: dict[str, type[StrictModel]] = {}
"""The models by the names of the types that they are made of."""


def _is_required(keys: type, key: str, hint: object) -> bool:
    is_total = getattr(keys, "__total__", True)
    return get_origin(hint) is not NotRequired if is_total else key in _ALWAYS_WRITTEN


def _field(key: str, hint: object, alias: str | None, *, is_required: bool) -> tuple[object, object]:
    """The annotation and the field of ``key`` for ``create_model``."""
    plain = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
    _, *marks = get_args(plain) if get_origin(plain) is Annotated else (plain,)
    description = next((mark for mark in marks if isinstance(mark, str)), None)
    annotation = _annotation(plain)
    if is_required:
        default = DEFAULTS.get(key, ...)
        return annotation, Field(default, alias=alias, description=description)
    return annotation | None, Field(None, alias=alias, description=description)


def _annotation(hint: Any) -> Any:  # noqa: ANN401  # types are values here
    """``hint`` with the marks of ``record_types`` as pydantic has them, at any depth."""
    if get_origin(hint) is Annotated:
        plain, *marks = get_args(hint)
        return _marked(_annotation(plain), marks)
    if get_origin(hint) in (list, dict):
        return get_origin(hint)[tuple(map(_annotation, get_args(hint)))]
    return hint


def _marked(annotation: Any, marks: list[object]) -> Any:  # noqa: ANN401  # see above
    for mark in marks:
        match mark:
            case record_types.AtLeast(least):
                annotation = Annotated[annotation, Field(ge=least)]
            case record_types.TextKind():
                annotation = _TEXTS[mark]
    return annotation
