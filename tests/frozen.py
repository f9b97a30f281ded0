"""Records that cannot be changed in place, to find code that tries to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaia_sessions.store.planned import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gaia_sessions.store.port import RecordOrError


def _refuse(*_: object, **__: object) -> Any:
    raise TypeError("a record is a value: nobody changes one in place")


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse


def frozen(value: Any) -> Any:
    """The same JSON as frozen dicts and lists."""
    if isinstance(value, dict):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    return FrozenList(map(frozen, value)) if isinstance(value, list) else value


class FrozenPlan(Plan):
    """A plan that returns frozen records."""

    def read(self, agent_id: str) -> Any:
        return frozen(super().read(agent_id))

    def scan(self, **asked: Any) -> Iterator[tuple[str, RecordOrError]]:
        return ((agent_id, frozen(found)) for agent_id, found in super().scan(**asked))

    def planned(self, agent_id: str) -> Any:
        return frozen(super().planned(agent_id))
