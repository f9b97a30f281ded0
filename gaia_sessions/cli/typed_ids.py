"""What people type for the id of a session: its beginning, its end, or ``latest``; and what a missing one is told.

Owns the rules for a word that is not the whole id of a session here. Imported only once that is known: a command
with the whole id of a session lists nothing.
"""

from __future__ import annotations

import os
import shlex

from gaia_sessions.errors import AmbiguousId, SessionNotFound, well_formed
from gaia_sessions.session.ids import SHORTEST_PART, fold, is_agent_id, is_generated, parts_of
from gaia_sessions.system.project_root import roots_from, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.api import Sessions

LATEST = "latest"
_UNSET = frozenset(["none", "null", "undefined"])
"""What programs print for an id that they do not have: never a part of another."""
_ALIKE = 0.6
_MISTYPED = 0.9
"""How alike two ids must be for one to be named where the other was typed; any two generated ones are rather alike."""


def session_meant(sessions: Sessions, typed: str) -> str:
    """The id of the session that ``typed`` stands for; ``typed`` itself if it stands for none.

    Raises ``AmbiguousId``.
    """
    if typed == LATEST:
        return _latest(sessions) or typed
    if len(typed) < SHORTEST_PART or typed.casefold() in _UNSET or further_up(typed):
        return typed
    found = [agent_id for agent_id in sessions.store.ids() if typed in parts_of(agent_id, len(typed))]
    if not found or typed in found:
        return typed
    if len(found) > 1:
        raise AmbiguousId(typed, sorted(found))
    return found[0]


def _latest(sessions: Sessions) -> str | None:
    """The first line of a list that can be read."""
    from gaia_sessions.usecases.listing import Filter

    return next((line["agent_id"] for line in sessions.list(Filter()) if "last_updated" in line), None)


def further_up(agent_id: str) -> str | None:
    """What to type for a session that is not where it was looked for, but in a store of ours here or further up."""
    roots = roots_from(working_directory(), os.environ) if is_agent_id(agent_id) else ()
    found = next((root for root in roots if os.path.isfile(os.path.join(root, agent_id, "state.json"))), None)
    return f"it is in another store; add --root {shlex.quote(found)}" if found else None


def explain(missing: SessionNotFound, sessions: Sessions) -> None:
    """``missing`` says where it was looked for, and what may have been meant instead."""
    if missing.root is not None:
        return
    told = _told(missing.agent_id, sessions) if missing.agent_id else None
    missing.looked_in(sessions.root, told or missing.hint)


def advice(agent_id: str, sessions: Sessions, otherwise: str) -> str:
    """The same for whoever was told already that it is missing; ``otherwise`` is what to do if it exists nowhere."""
    missing = SessionNotFound(agent_id)
    explain(missing, sessions)
    parts = [f"looked for in {well_formed(sessions.root)}", missing.hint]
    return "; ".join(parts if further_up(agent_id) else [*parts, f"or {otherwise}"])


def _told(agent_id: str, sessions: Sessions) -> str | None:
    elsewhere = further_up(agent_id)
    if elsewhere:
        return elsewhere
    ids = sessions.store.ids()
    if not ids:
        return "there are no sessions in that folder; --root DIR names another"
    if agent_id == LATEST:
        return "none of the sessions there can be read; `gaia-sessions list` says why"
    near = nearest(agent_id, ids)
    return f"the nearest id there is {near!r}; `gaia-sessions list` shows those that exist" if near else None


def nearest(typed: str, ids: Iterable[str]) -> str | None:
    """The one of ``ids`` that has ``typed`` in it, else is most like it, whole or in its beginning or end; or None."""
    names = {fold(agent_id): agent_id for agent_id in ids}
    wanted = fold(typed)
    having = [name for name in names if wanted in name] if len(wanted) >= SHORTEST_PART else []
    if having:
        return names[having[0]] if len(having) == 1 else None
    from difflib import get_close_matches

    forms = _forms(names, len(wanted))
    found = get_close_matches(wanted, forms, n=1, cutoff=_MISTYPED if is_generated(typed) else _ALIKE)
    return names[forms[found[0]]] if found else None


def _forms(names: Iterable[str], length: int) -> dict[str, str]:
    """What may have been mistyped for each of ``names``, but for what several share: that leads to none of them."""
    found: dict[str, list[str]] = {}
    for name in names:
        for form in {name, name[:length], name[-length:]}:
            found.setdefault(form, []).append(name)
    return {form: sharing[0] for form, sharing in found.items() if len(sharing) == 1}
