"""Recovery: the newest snapshots, then the journal from the lowest offset that one of them needs.

To be run after `claim`, which ends what a killed process left open, and before the first event is given. The journal is
read in stretches of 32 MiB or `recovery_records`, so that memory does not grow with it. Blocks; raises LogError.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.journal.journal import journal_topic
from native_backend.journal.journal_record import VERSION
from native_backend.journal.snapshot import Key, Recovered, UnknownVersion, decode_snapshot, newest_sets, state_topic
from native_backend.log.port import FORMAT, Failure, Log, LogError, Records
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.metadata import Metadata
from native_backend.state.ack_state import AckState

_LOG = logging.getLogger(__name__)
_ENDS = ("acknowledge", "discard")
_SINGLY = (*_ENDS, "dead-letter", "expired", "filtered", "return")  # what concerns its own events only
_FIRST_READ = 100  # records, before their size is known
STRETCH_BYTES = 32 << 20
GATHERED = 500_000  # events that wait to be applied: 20 MB
States = dict[Key, Recovered]


@dataclass(slots=True)
class Recovery:
    """The states of all durables that were ever open, and how many journal records had to be read for them."""

    states: States
    replayed: int = 0
    missing: int = 0  # records that were needed and are kept no more


def recover(log: Log, prefix: str, metadata: Metadata, end: int, stretch: int) -> Recovery:
    """As of the journal's records below `end`; `stretch` records are read at a time."""
    recovery = Recovery(_snapshots(log, prefix, metadata, stretch))
    states = recovery.states
    topic = journal_topic(prefix)
    first = log.control.bounds(topic, 0)[0]
    start = min((recovered.journal for recovered in states.values()), default=end)
    if start < first:
        recovery.missing = first - start
        _LOG.error("the journal begins at %d, recovery needs it from %d: events may be given again", first, start)
    replay = _Replay(states, metadata)
    for records in _stretches(log, topic, max(start, first), end, stretch):
        recovery.replayed += len(records.offsets)
        replay.records(records)
    replay.flush()
    for recovered in states.values():
        recovered.state.reopen()
        recovered.journal = end
    return recovery


class _Replay:
    """Applies the journal in columns: events that ended one by one are gathered by durable and applied together. That
    may wait, for an event has no history behind its end, but for operations on the whole durable (seek): they are
    applied in their place."""

    def __init__(self, states: States, metadata: Metadata) -> None:
        self._states = states
        self._metadata = metadata
        self._newest: dict[str, int] = {}  # run -> n
        self._ended: dict[Key, list[int]] = {}
        self._count = 0
        self._at_us = 0

    def records(self, records: Records) -> None:
        newest = self._newest
        for offset, value in zip(records.offsets, records.values, strict=True):
            record = orjson.loads(value or b"null")
            if record is None or record["n"] <= newest.get(record["run"], 0):
                continue  # submitted again after an unknown result, while the first one was not visible yet
            if record["v"] > VERSION:
                detail = f"the journal has records of version {record['v']}; this release knows {VERSION}"
                raise LogError(Failure("unexpected", detail, FORMAT))
            newest[record["run"]] = record["n"]
            self._at_us = record["at"]
            for entry in record["entries"]:
                self._entry(offset, entry)
        if self._count >= GATHERED:
            self.flush()

    def _entry(self, offset: int, entry: dict[str, Any]) -> None:
        """Unless the snapshot has it or its node is gone."""
        if entry["operation"] in ("evicted", "trimmed"):
            _sweep(self._states, offset, entry)
            return
        key = entry["store"], entry["durable"]
        recovered = self._states.get(key) or self._begun(key, entry["node"], offset)
        if recovered is None or offset < recovered.journal:
            return
        runs = entry["runs"]
        if entry["operation"] in _ENDS and len(runs) == 1 and runs[0][0] == runs[0][1] == runs[0][3]:
            ended = self._ended.get(key)
            if ended is None:
                ended = self._ended[key] = []
            ended.append(runs[0][0])
            self._count += 1
            return
        if entry["operation"] not in _SINGLY and key in self._ended:
            self._finish(recovered, self._ended.pop(key))
        if entry["operation"] == "delete":
            recovered.deleted = True
            return
        recovered.state.wake(self._at_us // 1000)  # what is settled again had been given again
        recovered.state.apply(entry["operation"], bool(entry["failed"]), runs, entry.get("not_before", 0))

    def _begun(self, key: Key, node: str, offset: int) -> Recovered | None:
        """A durable of which there is no snapshot."""
        part = self._metadata.stores.get(key[0])
        durable = self._metadata.durable(part, key[1]) if part is not None and part.name == node else None
        if durable is None or offset < durable.journal:
            return None
        recovered = self._states[key] = Recovered(AckState(durable.start), offset, closed=False)
        return recovered

    def flush(self) -> None:
        for key, eids in self._ended.items():
            self._finish(self._states[key], eids)
        self._ended, self._count = {}, 0

    def _finish(self, recovered: Recovered, eids: list[int]) -> None:
        recovered.state.wake(self._at_us // 1000)
        recovered.state.finish(eids)


def _stretches(log: Log, topic: str, start: int, end: int, stretch: int) -> Iterator[Records]:
    """So many records at a time as the size of those before lets expect to be bearable."""
    count = min(_FIRST_READ, stretch)
    while start < end:
        records = log.control.read_range(topic, 0, start, count)
        if records.next <= start:
            return
        yield records
        start = records.next
        size = sum(len(value or b"") for value in records.values)
        fit = STRETCH_BYTES * len(records.values) // max(1, size)
        count = max(1, min(fit, stretch, 8 * count))


def _snapshots(log: Log, prefix: str, metadata: Metadata, stretch: int) -> States:
    topic = state_topic(prefix)
    newest: dict[bytes, bytes] = {}
    start, end = log.control.bounds(topic, 0)
    for records in _stretches(log, topic, start, end, stretch):
        for key, value in zip(records.keys, records.values, strict=True):
            if key is not None:
                newest.pop(key, None)  # what comes again has its place at the end
                if value is not None:
                    newest[key] = value
    states: States = {}
    try:
        for (store, durable), parts, keys in newest_sets((key, orjson.loads(value)) for key, value in newest.items()):
            node = metadata.stores.get(store)
            if node is None or not parts:
                continue
            known = metadata.durable(node, durable)
            if (known is None and durable == QUEUE) or (known is not None and parts[0]["journal"] >= known.journal):
                states[store, durable] = decode_snapshot(parts, keys)
    except UnknownVersion as error:
        raise LogError(Failure("unexpected", f"{topic}: {error}", FORMAT)) from error
    return states


def _sweep(states: States, offset: int, entry: dict[str, Any]) -> None:
    """An entry that speaks of all durables of a store. What was trimmed had ended for all of them."""
    bound = max(last for _, last, _, _ in entry["runs"]) + 1
    for (store, _), recovered in states.items():
        if entry["operation"] == "evicted" and store == entry["store"] and offset >= recovered.journal:
            recovered.state.evict(bound)
