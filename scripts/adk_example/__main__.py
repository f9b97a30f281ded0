"""``python -m scripts.adk_example chat [TEXT]`` or ``serve``: see README.md."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys

from .agent import FOLDER
from .chat import BeingAnswered, Chat, UnknownSession

SESSION_FILE = FOLDER / "adk_example.session"
"""The file with the ID of the command line's session."""


async def chat(texts: list[str], *, leave: bool) -> int:
    """Sends each of ``texts``, or each line of standard input, and prints the answers; then leaves, if asked to."""
    conversation = Chat()
    session_id = SESSION_FILE.read_text(encoding="utf-8").strip() if SESSION_FILE.exists() else None
    if not leave or texts:
        for text in texts or sys.stdin:
            if not text.strip():
                continue
            answer = await conversation.send(text.strip(), session_id)
            if answer["session_id"] != session_id:
                session_id = answer["session_id"]
                SESSION_FILE.write_text(session_id, encoding="utf-8")
                print(f"[session {session_id}]", file=sys.stderr)
            print(answer["text"], flush=True)
    if leave and session_id is not None:
        await conversation.leave(session_id)
        SESSION_FILE.unlink()
        print("You left.")
    return 0


def main() -> int:
    """Returns the exit code: 3 if the session is gone, 4 while another message of it is being answered."""
    parser = argparse.ArgumentParser(prog="python -m scripts.adk_example", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    chatting = commands.add_parser("chat", help="send TEXT, or each line of standard input")
    chatting.add_argument("texts", metavar="TEXT", nargs="*")
    chatting.add_argument("--leave", action="store_true", help="end the session; the next call begins another")
    serving = commands.add_parser("serve", help="POST /chat/message and POST /chat/leave")
    serving.add_argument("--port", type=int, default=8000)
    asked = parser.parse_args()
    logging.getLogger("google_adk").setLevel(logging.ERROR)  # its advice on real models
    if asked.command == "serve":
        import uvicorn

        from .web import make_app

        print(f"http://127.0.0.1:{asked.port}/chat/message", file=sys.stderr)
        uvicorn.run(make_app(), port=asked.port, log_level="warning")
        return 0
    try:
        return asyncio.run(chat(asked.texts, leave=asked.leave))
    except UnknownSession as error:
        print(f"Session {error.args[0]} is gone: to begin a new session, remove {SESSION_FILE}.", file=sys.stderr)
        return 3
    except BeingAnswered:
        print("Another message of this session is being answered: wait for its answer.", file=sys.stderr)
        return 4


if __name__ == "__main__":
    sys.exit(main())
