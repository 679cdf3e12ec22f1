"""What a range read found, as a chunk of a feed."""

from __future__ import annotations

from native_backend.events.chunk import Chunk
from native_backend.events.delivery_marks import DeliveryMarks, are_marked
from native_backend.events.event_kind import Frame, are_published, framed
from native_backend.events.expiry import expiries
from native_backend.log.port import Records


def chunk_of(start: int, records: Records, ttl_ms: int, frame: Frame) -> Chunk:
    """What a range read found, without tombstones (they are no events). `ttl_ms`: the node's."""
    eids, values, keys, times = [], [], [], []
    for at, value in enumerate(records.values):
        if value is not None:
            eids.append(records.offsets[at])
            values.append(value)
            keys.append(records.keys[at])
            times.append(records.timestamps_ms[at])
    if not are_published(keys):
        values = framed(keys, values, frame)
    chunk = Chunk(start, max(records.next, start), eids, values, expiries(times, keys, ttl_ms))
    chunk.marks = DeliveryMarks(keys, times) if are_marked(keys) else None
    return chunk
