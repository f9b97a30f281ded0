"""One table says which handler applies each kind of event."""

from __future__ import annotations

import inspect
from importlib import import_module

from gaia_sessions.ingest.dispatch import HANDLERS
from gaia_sessions.session.host_events import KINDS
from tests.table import table


def test_each_kind_of_event_has_one_handler() -> None:
    assert sorted(HANDLERS) == sorted(KINDS)


# The table has the names of handlers, which no type checker can follow.
@table(("module", "name"), HANDLERS.values())
def test_a_handler_of_the_table_exists_and_takes_what_every_handler_is_given(module: str, name: str) -> None:
    handler = getattr(import_module(f"gaia_sessions.ingest.{module}"), name)

    signature = {parameter.name: parameter.annotation for parameter in inspect.signature(handler).parameters.values()}
    assert signature == {"store": "Store", "event": "Event", "terms": "Terms"}
