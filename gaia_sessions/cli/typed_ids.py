"""Text that is not the whole ID of a session: the beginning or the end of an ID, or ``latest``; and hints if none fits.

Loaded only for such text: for a whole ID, no command may list all sessions.
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
    from collections.abc import Iterable, Sequence

    from gaia_sessions.api.sessions import Sessions

LATEST = "latest"
_UNSET = frozenset(["none", "null", "undefined"])
"""Programs print these words if they have no ID. No command takes these words for a part of an ID."""
_CUTOFF = 0.8
"""How similar a suggested ID must be: four of five characters are right."""
_LISTS = "`gaia-sessions list` shows the existing sessions"


def resolve_id(sessions: Sessions, typed_id: str) -> str:
    """Returns the ID that ``typed_id`` means, or ``typed_id`` if there is none; raises ``AmbiguousId`` for several."""
    if typed_id == LATEST:
        return latest(sessions) or typed_id
    found = ids_with_part(sessions, typed_id)
    if not found or typed_id in found or other_root_hint(typed_id, [sessions]):
        return typed_id
    if len(found) > 1:
        raise AmbiguousId(typed_id, sorted(found))
    return found[0]


def ids_with_part(sessions: Sessions, typed_id: str) -> list[str]:
    """Returns the IDs of ``sessions`` that begin or end with ``typed_id``, if that is long enough."""
    if len(typed_id) < SHORTEST_ABBREVIATION or typed_id.casefold() in _UNSET:
        return []
    ids = at.read(sessions, records.ids)
    return [agent_id for agent_id in ids if typed_id in abbreviations(agent_id, len(typed_id))]


def latest(sessions: Sessions) -> str | None:
    """Returns the ID of the most recently active session that can be read."""
    return next((line["agent_id"] for line in sessions.list(every_app=True) if "last_updated" in line), None)


def other_root_hint(agent_id: str, searched: Iterable[Sessions]) -> str | None:
    """Returns a hint if the session is in another root of the user, in this folder or one above it."""
    roots = own_roots_from(working_directory(), os.environ) if is_agent_id(agent_id) else ()
    known = [sessions.root for sessions in searched]
    others = (root for root in roots if root not in known)
    found = next((root for root in others if os.path.isfile(os.path.join(root, agent_id, "state.json"))), None)
    if found is None:
        return None
    from shlex import quote  # seldom needed

    return f"the session is in another root; add --root {quote(found)}"


def explain(missing: SessionNotFound, searched: Sequence[Sessions]) -> None:
    """Adds the roots to ``missing``, and a hint at the ID that the user perhaps meant."""
    if missing.root is not None:
        return
    hint = _missing_id_hint(missing.agent_id, searched) if missing.agent_id else None
    missing.set_root(" or in ".join(sessions.root for sessions in searched), hint or missing.hint)


def advice(agent_id: str, searched: Sequence[Sessions], fallback: str) -> str:
    """Returns advice for a missing session: the hint of ``explain``, and ``fallback`` unless another root has it."""
    missing = SessionNotFound(agent_id)
    explain(missing, searched)
    parts = [f"searched in {well_formed(str(missing.root))}", missing.hint]
    return "; ".join(parts if other_root_hint(agent_id, searched) else [*parts, f"or {fallback}"])


def _missing_id_hint(agent_id: str, searched: Sequence[Sessions]) -> str | None:
    hint = other_root_hint(agent_id, searched)
    if hint:
        return hint
    ids = [found for sessions in searched for found in at.read(sessions, records.ids)]
    these = "this root" if len(searched) == 1 else "these roots"
    if not ids:
        return f"{these} {'has' if len(searched) == 1 else 'have'} no sessions; for another root, add --root DIR"
    if agent_id == LATEST:
        return f"no session in {these} can be read; `gaia-sessions list` says why"
    if len(agent_id) < SHORTEST_ABBREVIATION:
        return _too_short_hint(agent_id, ids)
    closest = closest_id(agent_id, ids)
    return f"did you mean {closest}? {_LISTS}" if closest else None


def _too_short_hint(typed: str, ids: Iterable[str]) -> str:
    found = [agent_id for agent_id in ids if typed in abbreviations(agent_id, len(typed))]
    rule = f"type at least {SHORTEST_ABBREVIATION} characters of the ID"
    if len(found) == 1:
        return f"{rule}; did you mean {found[0]}?"
    listed = f"to see the {len(found)} IDs that fit: gaia-sessions list -q | grep {typed}"
    return f"{rule}; {listed if found else _LISTS}"


def closest_id(typed_id: str, ids: Iterable[str]) -> str | None:
    """Returns the only ID that contains ``typed_id``, else the only similar one; None if there is none."""
    names = {fold_id(agent_id): agent_id for agent_id in ids}
    wanted = fold_id(typed_id)
    found = [name for name in names if wanted in name] or [name for name in names if _is_near(wanted, name)]
    return names[found[0]] if len(found) == 1 else None


def _is_near(typed: str, name: str) -> bool:
    """Returns whether ``typed`` is similar to ``name``, or to its beginning or end."""
    from difflib import get_close_matches

    if is_generated_id(name):  # only the random digits are compared: the others are alike in many IDs
        typed, name = typed[-RANDOM_DIGITS:], name[-RANDOM_DIGITS:]
    return bool(get_close_matches(typed, {name, name[: len(typed)], name[-len(typed) :]}, 1, _CUTOFF))
