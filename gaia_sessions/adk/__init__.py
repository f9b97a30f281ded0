"""Google ADK: a session service on our store. Only ``service`` loads google-adk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .service import GaiaSessionService as GaiaSessionService
    from .service import register as register
else:

    def __getattr__(name: str) -> object:
        """Returns ``GaiaSessionService`` or ``register``, and loads google-adk."""
        if name not in {"GaiaSessionService", "register"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from . import service
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "google":
                raise
            advice = "type: pip install 'gaia-sessions[adk]'"
            raise ImportError(f"{name} cannot be loaded ({error}): {advice}", name=error.name) from error
        return getattr(service, name)
