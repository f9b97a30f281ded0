"""Adds messages to a transcript, or begins a new transcript, each in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaia_sessions.session.transcript import begun_anew

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage
    from gaia_sessions.store.port import Store, StoreRule


def untouched(record: Record) -> Record:
    return record


def add_messages(
    store: Store, agent_id: str, messages: Sequence[NewMessage], rule: StoreRule = untouched
) -> tuple[Record, list[Message]]:
    """Adds messages. Returns the stored record and the added messages."""
    with store.open(agent_id) as session:
        record = session.commit(rule(session.record), messages=messages)
        return record, [*session.added]


def begin_anew(store: Store, agent_id: str, rule: Callable[[Record], Record] = untouched) -> Record:
    """Begins a new transcript. Returns the stored record."""
    with store.open(agent_id) as session:
        record, kept = begun_anew(rule(session.record), store.messages(agent_id))
        return session.commit(record, messages=kept)
