"""Records that cannot be changed in place, and a plan that hands out no others: to see that nobody tries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.store.planned import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.store.port import RecordOrError


def _refuse(*_: object, **__: object) -> Any:
    raise TypeError("a record is a value: nobody changes one in place")


class FrozenDict(dict[str, Any]):
    """An object that stays as it is."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """An array that stays as it is."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse


def frozen(value: Any) -> Any:
    """The same JSON, which nobody can change."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


class FrozenPlan(Plan):
    """A plan whose records cannot be changed."""

    def read(self, agent_id: str) -> Any:
        return frozen(super().read(agent_id))

    def scan(self, **asked: Any) -> Iterator[tuple[str, RecordOrError]]:
        return ((agent_id, frozen(found)) for agent_id, found in super().scan(**asked))

    def planned(self, agent_id: str) -> Any:
        return frozen(super().planned(agent_id))
