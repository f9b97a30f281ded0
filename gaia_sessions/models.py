"""The record as typed models: full validation at the edges, and the JSON Schema of ``state.json``.

The one door to pydantic. States the shape of ``shape`` a second time, for people, editors and other
programs; unknown keys are allowed, as they are on disk. Nothing a hook or an ordinary command does
imports this.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from .errors import InvalidInput
from .session.clock import parse_time
from .session.record import has_newer_schema, normalize_document

Phase = Literal[
    "initializing",
    "investigating",
    "planning",
    "approval",
    "executing",
    "validating",
    "completed",
    "failed",
    "abandoned",
]

End = Literal["killed", "failed", "stopped", "returned", "ended_with_host", "lost", "denied"]


def _check_time(text: str) -> str:
    parse_time(text)
    return text


Time = Annotated[str, AfterValidator(_check_time), Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int, Field(ge=1)]


class _StrictModel(BaseModel):
    """None stands for an absent key, so a null on disk is no value for it."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, document: object) -> object:
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key, value in document.items() if isinstance(document, dict) else ():
            if value is None and key in fields and not fields[key].is_required():
                raise ValueError(f"{key} may be absent, not null")
        return document


class _FileSchemaGenerator(GenerateJsonSchema):
    """On disk what is not known is absent: None as a default makes no null in the schema."""

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        inner = schema["schema"]
        if schema.get("default", ...) is None and inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        return super().default_schema(schema)


class Move(_StrictModel):
    """One step of the work from phase to phase."""

    from_phase: Phase
    to_phase: Phase
    timestamp: Time


class LastError(_StrictModel):
    """The latest error."""

    message: str
    timestamp: Time


class Denial(_StrictModel):
    """Whoever was asked for approval said no, and why; gone with the next move, or the next time it is asked for."""

    message: str
    timestamp: Time


class HostProcess(_StrictModel):
    """The process of the host that ran the sub-agent, so that it can be seen to be gone."""

    pid: Number | None = None
    started: str | None = None
    boot_id: str | None = None
    pid_ns: str | None = None
    machine: str | None = None


class Run(_StrictModel):
    """One stretch in which a host really ran the sub-agent; what is not known is absent."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"ended_at": ["end"]},
            "anyOf": [{"required": ["ended_at"]}, {"properties": {"end": {"const": "stopped"}}}],
        }
    )

    run: Number
    host: str | None = None
    host_session_id: str | None = None
    current_host_session_id: str | None = Field(
        default=None, description="The conversation in which news of its agent comes, if no longer host_session_id."
    )
    host_agent_id: str | None = None
    tool_use_id: str | None = None
    parent_host_agent_id: str | None = None
    host_process: HostProcess | None = None
    background: bool | None = None
    unannounced: bool | None = Field(default=None, description="Its host tells of no starts.")
    mentioned: list[str] | None = Field(
        default=None, description="The sessions that its delegation named without resuming one of them."
    )
    claimed_at: Time | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    end: End | None = Field(default=None, description="Without ended_at: it stopped without a word, and may go on.")
    detail: str | None = None
    reported: Phase | None = None
    inferred: Phase | None = None
    last_message: str | None = None
    transcript_path: str | None = None

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.ended_at is not None and self.end is None:
            raise ValueError("a run that has ended says how: end is missing")
        if self.ended_at is None and self.end not in (None, "stopped"):
            raise ValueError("a run that has ended says when: ended_at is missing")
        return self


class Tools(_StrictModel):
    """How often the agent used each tool; kept where the host was asked to tell of tools."""

    counts: dict[str, Number]
    recent: list[str] = Field(description="The host's keys of the latest calls that were counted.")


class Session(_StrictModel):
    """The record of one sub-agent's piece of work: ``state.json``."""

    agent_id: str = Field(description="The id of the session, and the name of its directory.")
    agent_name: str = Field(description="The kind of agent, what hosts call its type.")
    purpose: str
    created_at: Time
    last_updated: Time = Field(description="The last activity of the work.")
    phase: Phase
    metadata: dict[str, JsonValue]
    resume_ready: bool
    history: list[Move] = Field(description="The newest 200 moves.")
    error_count: Count
    last_error: LastError | None
    schema_: Number = Field(alias="schema", default=1)
    revision: Count = Field(default=0, description="One more with every write: what orders writes.")
    history_dropped: Count | None = None
    continues: str | None = Field(default=None, description="The finished session whose work this one goes on with.")
    denial: Denial | None = None
    runs: list[Run] | None = Field(default=None, description="The newest 50, and earlier ones that have no end.")
    runs_dropped: Count | None = None
    tools: Tools | None = None
    finalized_at: Time | None = None
    duration_seconds: Annotated[float, Field(ge=0)] | None = None
    summary: str | None = None

    @model_validator(mode="after")
    def _check_run_numbers(self) -> Session:
        numbers = [run.run for run in self.runs or ()]
        is_rising = all(one < other for one, other in pairwise(numbers))
        if numbers and not (is_rising and numbers[-1] == len(numbers) + (self.runs_dropped or 0)):
            raise ValueError("runs are numbered from 1 in their order, those that were dropped included")
        return self


def validate(document: object) -> Session:
    """The typed session of a decoded ``state.json``; ``InvalidInput`` names the first place that is wrong.

    What the users' own program wrote reads as it does everywhere: see ``normalize_document``.
    """
    if isinstance(document, dict) and not has_newer_schema({"schema": None, **document}):
        document = normalize_document(document)
    try:
        return Session.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InvalidInput(first["msg"], ".".join(str(part) for part in first["loc"])) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of ``state.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Session.model_json_schema(schema_generator=_FileSchemaGenerator),
    }
