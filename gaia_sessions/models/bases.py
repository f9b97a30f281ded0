"""Bases of the models: types of values, and rules that types cannot express. ``scripts/render_models`` uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.clock import parse_time
from gaia_sessions.session.schema import check_owner_keys, check_run_end, check_run_numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


def _check_time(text: str) -> str:
    parse_time(text)
    return text


Time = Annotated[str, AfterValidator(_check_time), Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0)]


class StrictModel(BaseModel, strict=True, extra="allow", frozen=True):
    """An object whose optional keys can be absent, but not null; None means an absent key."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, document: object) -> object:
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key, value in document.items() if isinstance(document, dict) else ():
            if value is None and key in fields and not fields[key].is_required():
                raise ValueError(f"{key} may be absent, not null")
        return document

    def _check(self, check: Callable[[Any, str], None]) -> Self:
        """Runs a ``check`` of the session package; raises the ``ValueError`` that pydantic expects."""
        try:
            check(self.model_dump(by_alias=True, exclude_unset=True), "")
        except InvalidInput as error:
            raise ValueError(str(error)) from None
        return self


class RunModel(StrictModel, frozen=True):
    """A run; if it has ended, it says how and when."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"ended_at": ["end"]},
            "anyOf": [{"required": ["ended_at"]}, {"properties": {"end": {"const": "stopped"}}}],
        }
    )

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        return self._check(check_run_end)


class SessionModel(StrictModel, frozen=True):
    """A record whose runs are in the order of their numbers, and which has an app and a user, or neither."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"app": ["user"], "user": ["app"]}})

    @model_validator(mode="after")
    def _check_run_numbers(self) -> Self:
        return self._check(check_run_numbers)

    @model_validator(mode="after")
    def _check_owner_keys(self) -> Self:
        return self._check(check_owner_keys)
