"""The table of handlers: each kind of event has one handler."""

from __future__ import annotations

import inspect
from importlib import import_module

from gaia_sessions.ingest.dispatch import HANDLERS
from gaia_sessions.session.host_events import KINDS
from tests.table import table


def test_each_kind_of_event_has_one_handler() -> None:
    assert sorted(HANDLERS) == sorted(KINDS)


# The table has the handlers' names as strings, which no type checker can check.
@table(("module", "name"), HANDLERS.values())
def test_each_handler_in_the_table_exists_and_takes_store_event_and_terms(module: str, name: str) -> None:
    handler = getattr(import_module(f"gaia_sessions.ingest.{module}"), name)

    signature = {parameter.name: parameter.annotation for parameter in inspect.signature(handler).parameters.values()}
    assert signature == {"store": "Store", "event": "Event", "terms": "Terms"}
