"""A model that follows a script, so that the example needs no key and always says the same.

It gets the requests that a real model would get, and answers with texts and calls of tools.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest

_BY_OTHERS = "For context:"
"""ADK writes this before what another agent said or did."""


class Heard:
    """What an agent heard: its instruction, what the user said last, or what its last tool returned."""

    def __init__(self, request: LlmRequest) -> None:
        self.instruction = str(request.config.system_instruction)
        self._contents = request.contents
        last = self._parts()[-1]
        # None if a tool or another agent spoke last.
        self.said = last.text if last.text and not self._is_by_others() else None
        self.tool, self.result = _returned(last)

    def _parts(self) -> list[types.Part]:
        return self._contents[-1].parts or [types.Part(text="")]

    def _is_by_others(self) -> bool:
        return (self._parts()[0].text or "").startswith(_BY_OTHERS)

    def latest(self, tool: str, since: str) -> dict[str, Any]:
        """Returns what ``tool`` of this agent returned last, after the last result of ``since``; else nothing."""
        returned = (_returned(part) for content in reversed(self._contents) for part in content.parts or [])
        this_task = takewhile(lambda found: found[0] != since, returned)
        return next((result for name, result in this_task if name == tool), {})


def _returned(part: types.Part) -> tuple[str | None, dict[str, Any]]:
    response = part.function_response
    return (response.name, dict(response.response or {})) if response else (None, {})


def say(text: str) -> types.Part:
    return types.Part(text=text)


def call(tool: str, **arguments: object) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=tool, args=arguments))


def delegate(agent: str) -> types.Part:
    """Returns a delegation: its only argument is the agent's name, all else is in the session."""
    return call("transfer_to_agent", agent_name=agent)


class Script(BaseLlm):
    """Answers with what ``decide`` makes of what was heard."""

    decide: Any

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002  # as ADK calls it
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = self.decide(Heard(llm_request))
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=0, candidates_token_count=0)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)
