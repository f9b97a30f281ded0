"""Google ADK: a session service on our store.

Owns all that knows ADK. Only ``service`` loads google-adk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .service import GaiaSessionService as GaiaSessionService
    from .service import register as register
else:

    def __getattr__(name: str) -> object:
        """``GaiaSessionService`` or ``register``, with which google-adk is loaded."""
        if name not in {"GaiaSessionService", "register"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import service

        return getattr(service, name)
