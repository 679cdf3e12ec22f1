"""Events as their stores keep them: one by its place, the copies of one, and those with a message-id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.cli.trace.message_ids import encodings, spelled, written
from gateway.cli.trace.records import SLACK_MS, Searched, stretches
from gateway.links.event_to_message import EventToMessage
from native_backend.events.event_kind import is_message
from native_backend.log import event_key
from native_backend.log.port import Log, LogError
from native_backend.log.record_headers import HeadedKey
from native_backend.log.time_search import first_at
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node
from transformers.codec import DecodeError
from transformers.message.message_id import MessageId, message_id_of

Place = tuple[int, int]
"""Store and EID: what a delivery tag says."""
_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """`at_ms`: when it was stored, by the clock of who stored it."""

    place: Place
    node: Node
    at_ms: int
    key: bytes
    value: bytes


def read_event(log: Log, metadata: Metadata, place: Place) -> StoredEvent | str:
    """The event at a place, or why it cannot be read. Blocks; raises LogError."""
    store, eid = place
    node = metadata.stores.get(store)
    if node is None:
        return f"no node has the store {store}: its node was deleted, or it is another realm's"
    try:
        records = log.control.read_range(node.topic, node.partition, eid, 1, _DEADLINE_S)
    except LogError as error:
        if error.failure.cause == "retention":
            return f"the store has deleted its events up to EID {eid}"
        if error.failure.cause == "not-found":
            return f"topic {node.topic} is not there"
        raise
    if not records.offsets or records.offsets[0] != eid or records.values[0] is None:
        return f"there is no event with EID {eid}"
    return StoredEvent(place, node, records.timestamps_ms[0], records.keys[0] or b"", records.values[0])


def copies(log: Log, node: Node, original: Place, at_ms: int) -> list[Place]:
    """The copies of an event in a store, made at that time: they are in the journal's transaction. Blocks; raises
    LogError."""
    try:
        first, end = log.control.bounds(node.topic, node.partition, _DEADLINE_S)
        start = first_at(log, node.topic, node.partition, (first, end), at_ms - SLACK_MS, _DEADLINE_S)
        begin, places = event_key.copies_of(*original), []
        for eids, times_ms, keys, _ in stretches(log, node.topic, node.partition, start, end, headed=True):
            pairs = zip(eids, keys, strict=True)
            places += [(node.store, eid) for eid, key in pairs if key is not None and key.startswith(begin)]
            if times_ms and times_ms[-1] > at_ms + SLACK_MS:
                break
    except LogError as error:
        if error.failure.cause not in ("not-found", "retention"):
            raise
        return []
    return places


def with_message_id(log: Log, nodes: list[Node], wanted: str, searched: Searched) -> Iterator[Place]:
    """The places of all events with that message-id. Octets first: few messages are decoded. Blocks; raises
    LogError."""
    names, restoring = written(wanted), EventToMessage()
    octets = [octet for name in names for octet in encodings(name)]
    for node in nodes:
        for part in node.parts:
            count = 0
            try:
                first, end = log.control.bounds(part.topic, part.partition, _DEADLINE_S)
            except LogError as error:
                if error.failure.cause != "not-found":
                    raise
                searched.lines.append(f"{part.topic}: it is not there")
                continue
            for eids, _, keys, values in stretches(log, part.topic, part.partition, first, end, headed=True):
                count += len(eids)
                for eid, key, value in zip(eids, keys, values, strict=True):
                    if _may_have(key, value, octets) and names & spelled(_message_id(_message(restoring, key, value))):
                        yield part.store, eid
            trimmed = f" from EID {first} on" if first else ""
            searched.lines.append(f"{part.topic} partition {part.partition}{trimmed}: {count} events")


def _may_have(key: bytes | None, value: bytes, octets: list[bytes]) -> bool:
    """An event with headers may have the id there."""
    if type(key) is HeadedKey:
        value = b"".join((value, *(header for _, header in key.headers if header is not None)))
    return any(octet in value for octet in octets)


def _message(restoring: EventToMessage, key: bytes | None, value: bytes) -> bytes:
    return value if is_message(key) else restoring.message(key, value)


def _message_id(message: bytes) -> MessageId | None:
    """None: it has none, or is no message."""
    try:
        return message_id_of(message)
    except DecodeError:
        return None
