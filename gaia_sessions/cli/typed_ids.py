"""What people type for the id of a session (its beginning, its end, or ``latest``), and the hint if there is none.

Owns the rules for text that is not the whole id of an existing session. Loaded only for such text: given a whole id, a
command must never list all sessions.
"""

from __future__ import annotations

import os

from gaia_sessions.api import at, records
from gaia_sessions.errors import AmbiguousId, SessionNotFound, well_formed
from gaia_sessions.session.ids import (
    RANDOM_DIGITS,
    SHORTEST_ABBREVIATION,
    abbreviations,
    fold_id,
    is_agent_id,
    is_generated_id,
)
from gaia_sessions.system.project_root import own_roots_from, working_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gaia_sessions.api.sessions import Sessions

LATEST = "latest"
_UNSET = frozenset(["none", "null", "undefined"])
"""What programs print for an id that they do not have; never taken as a part of an id."""
_CUTOFF = 0.8
"""How similar an id must be to be suggested: of five characters, four are right."""
_LISTS = "`gaia-sessions list` shows the existing sessions"


def resolve_id(sessions: Sessions, typed_id: str) -> str:
    """The id of the session that ``typed_id`` names; ``typed_id`` itself if it names none. Raises ``AmbiguousId``."""
    if typed_id == LATEST:
        return _latest(sessions) or typed_id
    if len(typed_id) < SHORTEST_ABBREVIATION or typed_id.casefold() in _UNSET or other_root_hint(typed_id):
        return typed_id
    ids = at.read(sessions, records.ids)
    found = [agent_id for agent_id in ids if typed_id in abbreviations(agent_id, len(typed_id))]
    if not found or typed_id in found:
        return typed_id
    if len(found) > 1:
        raise AmbiguousId(typed_id, sorted(found))
    return found[0]


def _latest(sessions: Sessions) -> str | None:
    """The id of the most recently active session that can be read."""
    return next((line["agent_id"] for line in sessions.list(every_app=True) if "last_updated" in line), None)


def other_root_hint(agent_id: str) -> str | None:
    """What to type for a session that is in another of the user's stores, here or in a folder above."""
    roots = own_roots_from(working_directory(), os.environ) if is_agent_id(agent_id) else ()
    found = next((root for root in roots if os.path.isfile(os.path.join(root, agent_id, "state.json"))), None)
    if found is None:
        return None
    from shlex import quote  # most texts name a session here

    return f"it is in another store; add --root {quote(found)}"


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
    ids = at.read(sessions, records.ids)
    if not ids:
        return "there are no sessions in that folder; use --root DIR for another folder"
    if agent_id == LATEST:
        return "none of the sessions in that folder can be read; `gaia-sessions list` says why"
    if len(agent_id) < SHORTEST_ABBREVIATION:
        return _too_short_hint(agent_id, ids)
    closest = closest_id(agent_id, ids)
    return f"did you mean {closest}? {_LISTS}" if closest else None


def _too_short_hint(typed: str, ids: Iterable[str]) -> str:
    found = [agent_id for agent_id in ids if typed in abbreviations(agent_id, len(typed))]
    rule = f"a part of an ID takes {SHORTEST_ABBREVIATION} characters or more"
    if len(found) == 1:
        return f"{rule}; did you mean {found[0]}?"
    listed = f"{len(found)} IDs begin or end so: gaia-sessions list -q | grep {typed}"
    return f"{rule}; {listed if found else _LISTS}"


def closest_id(typed_id: str, ids: Iterable[str]) -> str | None:
    """The one id that contains ``typed_id``, else the one that it nearly is, or nearly begins or ends; or None."""
    names = {fold_id(agent_id): agent_id for agent_id in ids}
    wanted = fold_id(typed_id)
    found = [name for name in names if wanted in name] or [name for name in names if _is_near(wanted, name)]
    return names[found[0]] if len(found) == 1 else None


def _is_near(typed: str, name: str) -> bool:
    """Of a generated id the random digits are compared: all the others are alike in many."""
    from difflib import get_close_matches

    if is_generated_id(name):
        typed, name = typed[-RANDOM_DIGITS:], name[-RANDOM_DIGITS:]
    return bool(get_close_matches(typed, {name, name[: len(typed)], name[-len(typed) :]}, 1, _CUTOFF))
