"""What people type for the id of a session (its beginning, its end, or ``latest``), and the hint if there is none.

Owns the rules for text that is not the whole id of an existing session. Loaded only for such text: given a whole id, a
command must never list all sessions.
"""

from __future__ import annotations

import os
import shlex

from gaia_sessions.errors import AmbiguousId, SessionNotFound, well_formed
from gaia_sessions.session.ids import SHORTEST_ABBREVIATION, abbreviations, fold_id, is_agent_id, is_generated_id
from gaia_sessions.system.project_root import own_roots_from, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.api.sessions import Sessions

LATEST = "latest"
_UNSET = frozenset(["none", "null", "undefined"])
"""What programs print for an id that they do not have; never taken as a part of an id."""
_CUTOFF = 0.6
_GENERATED_CUTOFF = 0.9
"""How similar an id must be to be suggested; generated ids are all rather similar, so they need more."""


def resolve_id(sessions: Sessions, typed_id: str) -> str:
    """The id of the session that ``typed_id`` names; ``typed_id`` itself if it names none. Raises ``AmbiguousId``."""
    if typed_id == LATEST:
        return _latest(sessions) or typed_id
    if len(typed_id) < SHORTEST_ABBREVIATION or typed_id.casefold() in _UNSET or other_root_hint(typed_id):
        return typed_id
    found = [agent_id for agent_id in sessions.ids() if typed_id in abbreviations(agent_id, len(typed_id))]
    if not found or typed_id in found:
        return typed_id
    if len(found) > 1:
        raise AmbiguousId(typed_id, sorted(found))
    return found[0]


def _latest(sessions: Sessions) -> str | None:
    """The id of the most recently active session that can be read."""
    return next((line["agent_id"] for line in sessions.list() if "last_updated" in line), None)


def other_root_hint(agent_id: str) -> str | None:
    """What to type for a session that is in another of the user's stores, here or in a folder above."""
    roots = own_roots_from(working_directory(), os.environ) if is_agent_id(agent_id) else ()
    found = next((root for root in roots if os.path.isfile(os.path.join(root, agent_id, "state.json"))), None)
    return f"it is in another store; add --root {shlex.quote(found)}" if found else None


def explain(missing: SessionNotFound, sessions: Sessions) -> None:
    """Adds to ``missing`` where the session was searched for, and what may have been meant."""
    if missing.root is not None:
        return
    hint = _missing_id_hint(missing.agent_id, sessions) if missing.agent_id else None
    missing.set_root(sessions.root, hint or missing.hint)


def advice(agent_id: str, sessions: Sessions, fallback: str) -> str:
    """What to do about a missing session: what ``explain`` would say, or ``fallback`` if it exists in no store."""
    missing = SessionNotFound(agent_id)
    explain(missing, sessions)
    parts = [f"searched in {well_formed(sessions.root)}", missing.hint]
    return "; ".join(parts if other_root_hint(agent_id) else [*parts, f"or {fallback}"])


def _missing_id_hint(agent_id: str, sessions: Sessions) -> str | None:
    hint = other_root_hint(agent_id)
    if hint:
        return hint
    ids = sessions.ids()
    if not ids:
        return "there are no sessions in that folder; use --root DIR for another folder"
    if agent_id == LATEST:
        return "none of the sessions in that folder can be read; `gaia-sessions list` says why"
    closest = closest_id(agent_id, ids)
    return f"the closest ID is {closest!r}; `gaia-sessions list` shows the existing sessions" if closest else None


def closest_id(typed_id: str, ids: Iterable[str]) -> str | None:
    """The id that contains ``typed_id``, else the one most similar to it, whole or in its beginning or end; or None."""
    names = {fold_id(agent_id): agent_id for agent_id in ids}
    wanted = fold_id(typed_id)
    containing = [name for name in names if wanted in name] if len(wanted) >= SHORTEST_ABBREVIATION else []
    if containing:
        return names[containing[0]] if len(containing) == 1 else None
    from difflib import get_close_matches

    forms = _unique_forms(names, len(wanted))
    closest = get_close_matches(wanted, forms, 1, _GENERATED_CUTOFF if is_generated_id(typed_id) else _CUTOFF)
    return names[forms[closest[0]]] if closest else None


def _unique_forms(names: Iterable[str], length: int) -> dict[str, str]:
    """The forms of ``names`` that may have been mistyped: whole, beginning and end, without those that names share."""
    found: dict[str, list[str]] = {}
    for name in names:
        for form in {name, name[:length], name[-length:]}:
            found.setdefault(form, []).append(name)
    return {form: names_of_form[0] for form, names_of_form in found.items() if len(names_of_form) == 1}
