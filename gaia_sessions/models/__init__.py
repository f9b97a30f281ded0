"""The record as pydantic models, and the JSON Schema of ``state.json``. Unknown keys are allowed.

No other package imports pydantic: it is too slow to load for hooks and commands.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from gaia_sessions.errors import InvalidInput
from gaia_sessions.session.record import has_newer_schema, normalize_document
from gaia_sessions.session.schema import DEFAULTS, check_record

from .bases import Count as Count
from .bases import Number as Number
from .bases import Time as Time
from .classes import *  # noqa: F403  # all models
from .classes import Session


def validate(document: object) -> Session:
    """Returns the model of a decoded ``state.json``.

    Raises:
        InvalidInput: the document is not a valid record; ``where`` is the place.
    """
    if isinstance(document, dict) and not has_newer_schema({"schema": None, **document}):
        document = normalize_document(document)
    try:
        return Session.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    check_record({**DEFAULTS, **document} if isinstance(document, dict) else document, "")  # the usual words
    raise InvalidInput(first["msg"], ".".join(str(part) for part in first["loc"]))  # only the model refuses


class _FileSchemaGenerator(GenerateJsonSchema):
    """Leaves null out of the schema if None is the default: such a key is absent on disk."""

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        inner = schema["schema"]
        if schema.get("default", ...) is None and inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        return super().default_schema(schema)


def json_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of ``state.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Session.model_json_schema(schema_generator=_FileSchemaGenerator),
    }
