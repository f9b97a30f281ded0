"""The chat as a web service: ``POST /chat/message`` and ``POST /chat/leave``."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from .chat import Answer, BeingAnswered, Chat, UnknownSession


class Message(BaseModel):
    """What a client sends. Only its first message has no ``session_id``; later ones have the one in the last answer."""

    message: str = Field(min_length=1)
    session_id: str | None = None


class Leaving(BaseModel):
    """The session that a client leaves."""

    session_id: str


def make_app() -> FastAPI:
    """Returns the service, with its own connection to the sessions."""
    app, chat = FastAPI(title="adk_example"), Chat()

    @app.post("/chat/message", response_model=None)
    async def message(said: Message) -> Answer:
        return await chat.send(said.message, said.session_id)

    @app.post("/chat/leave")
    async def leave(left: Leaving) -> dict[str, str]:
        await chat.leave(left.session_id)
        return {"session_id": left.session_id, "status": "left"}

    @app.exception_handler(UnknownSession)
    async def unknown(_request: Request, error: UnknownSession) -> JSONResponse:
        problem = f"session {error.args[0]!r} is gone: to begin a new one, leave out session_id"
        return JSONResponse({"error": problem}, status_code=404)

    @app.exception_handler(BeingAnswered)
    async def overtaken(_request: Request, _error: BeingAnswered) -> JSONResponse:
        problem = "another message of this session is being answered: wait for its answer"
        return JSONResponse({"error": problem}, status_code=409)

    return app
