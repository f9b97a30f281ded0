"""Transcripts in memory: the half of the store in memory that has the messages.

Owns the simplest implementation of what the port says of messages: their lines, as bytes, by session. The records that
go with them are in ``memory``.
"""

from __future__ import annotations

from itertools import takewhile

from gaia_sessions.session.transcript import (
    committed_bytes,
    current_turn,
    decode_message,
    generation_of,
    last_seq,
    number_messages,
    with_next_transcript,
    with_transcript,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gaia_sessions.session.schema import Record
    from gaia_sessions.session.transcript import Message, NewMessage

    from .port import IsWanted, Messages, StoreRule


class MemoryTranscripts:
    """Keeps messages for a store that has ``read`` and ``_change``."""

    def __init__(self) -> None:
        self._transcripts: dict[str, bytes] = {}

    def read(self, agent_id: str) -> Record:
        """As the port says."""
        raise NotImplementedError

    def _change(
        self, agent_id: str, rule: StoreRule, reserved: int, adapt: Callable[[Record, Record], Record]
    ) -> Record:
        """``change``, where ``adapt`` gets the record before the rule and the one that it returned."""
        raise NotImplementedError

    def add_messages(
        self,
        agent_id: str,
        messages: Sequence[NewMessage],
        rule: StoreRule,
        *,
        timeout: float | None = None,  # noqa: ARG002  # one process holds no lock
        reserved: int = 0,
    ) -> tuple[Record, list[Message]]:
        stored: list[Message] = []
        lines = b""

        def adapt(record: Record, changed: Record) -> Record:
            nonlocal stored, lines
            if not messages:
                return changed
            stored, lines = number_messages(messages, last_seq(record) + 1, current_turn(record))
            return with_transcript(changed, committed_bytes(record) + len(lines), stored[-1]["seq"])

        record = self._change(agent_id, rule, reserved, adapt)
        self._transcripts[agent_id] = self._transcripts.get(agent_id, b"") + lines
        return record, stored

    def empty_transcript(
        self,
        agent_id: str,
        rule: StoreRule,
        *,
        timeout: float | None = None,  # noqa: ARG002  # one process holds no lock
    ) -> Record:
        def adapt(record: Record, changed: Record) -> Record:
            if not committed_bytes(record):
                return changed
            return with_next_transcript(changed, generation_of(record) + 1, last_seq(record))

        record = self._change(agent_id, rule, 0, adapt)
        self._transcripts[agent_id] = b""
        return record

    def messages(self, agent_id: str, *, is_wanted: IsWanted | None = None) -> Messages:
        return reversed(list(takewhile(is_wanted or (lambda _: True), self.messages_backwards(agent_id))))

    def messages_backwards(self, agent_id: str) -> Messages:
        self.read(agent_id)
        return self._own_messages_backwards(agent_id)

    def _own_messages_backwards(self, agent_id: str) -> Iterator[Message]:
        return map(decode_message, reversed(self._transcripts.get(agent_id, b"").splitlines()))
