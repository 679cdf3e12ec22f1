"""A Kafka node loses the end of a partition, as by an unclean election or a restored disk: its files are cut while it
is down. Source: Kafka's log format (record batches, version 2).
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.kit.processes.broker import Broker

_HEAD = struct.Struct(">qi")  # base offset, length of what follows
CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown")
"""What says how long partitions are; the node looks for itself where they are missing."""


def cut_topics(broker: Broker, ends: dict[tuple[str, int], int]) -> None:
    """Each partition ends at this offset, where a record batch begins. The node is stopped and started again."""
    broker.stop()
    data = broker.directory / "data"
    for (topic, partition), end in ends.items():
        _cut(data / f"{topic}-{partition}", end)
    for name in CHECKPOINTS:
        (data / name).unlink(missing_ok=True)
    broker.restart()


def _cut(directory: Path, end: int) -> None:
    """The segment that holds `end` becomes shorter, later ones go, and what is only derived from them."""
    for segment in sorted(directory.glob("*.log")):
        if int(segment.stem) > end or (int(segment.stem) == end and end):
            segment.unlink()
            continue
        with segment.open("r+b") as file:
            file.truncate(_place_of(file.read(), end))
    for suffix in ("index", "timeindex", "txnindex", "snapshot"):
        for derived in directory.glob(f"*.{suffix}"):
            derived.unlink()


def _place_of(batches: bytes, end: int) -> int:
    """Where in a segment the batch begins that has `end` for its first offset; its length, where no batch is beyond."""
    at = 0
    while at + _HEAD.size <= len(batches):
        base, length = _HEAD.unpack_from(batches, at)
        if base >= end:
            assert base == end, f"a batch begins at {base}, none at {end}"
            return at
        at += _HEAD.size + length
    return at
