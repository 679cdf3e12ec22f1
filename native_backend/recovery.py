"""Recovery: the newest snapshots, then the journal from the lowest offset that one of them needs.

To be run after `claim`, which ends what a killed process left open, and before the first event is given. The journal is
read in stretches of `recovery_records`, so that memory does not grow with it. Blocks; raises LogError.
May import: the standard library, orjson, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.acknowledgement import Acknowledgement
from native_backend.durables import QUEUE
from native_backend.journal import VERSION, journal_topic
from native_backend.log import FORMAT, Failure, Log, LogError, Records
from native_backend.metadata import Metadata
from native_backend.snapshot import Key, Recovered, UnknownVersion, decode_snapshot, newest_sets, state_topic

_LOG = logging.getLogger(__name__)
States = dict[Key, Recovered]


@dataclass(slots=True)
class Recovery:
    """The states of all durables that were ever open, and how many journal records had to be read for them."""

    states: States
    replayed: int = 0


def recover(log: Log, prefix: str, metadata: Metadata, end: int, stretch: int) -> Recovery:
    """As of the journal's records below `end`; `stretch` records are read at a time."""
    recovery = Recovery(_snapshots(log, prefix, metadata, stretch))
    states = recovery.states
    topic = journal_topic(prefix)
    first = log.bounds(topic, 0)[0]
    start = min((recovered.journal for recovered in states.values()), default=end)
    if start < first:
        _LOG.error("the journal begins at %d, recovery needs it from %d: events may be given again", first, start)
    newest: dict[str, int] = {}  # run -> n
    for records in _stretches(log, topic, max(start, first), end, stretch):
        recovery.replayed += len(records.offsets)
        for offset, value in zip(records.offsets, records.values, strict=True):
            record = orjson.loads(value or b"null")
            if record is None or record["n"] <= newest.get(record["run"], 0):
                continue  # submitted again after an unknown result, while the first one was not visible yet
            if record["v"] > VERSION:
                detail = f"{topic} has records of version {record['v']}; this release knows {VERSION}"
                raise LogError(Failure("unexpected", detail, FORMAT))
            newest[record["run"]] = record["n"]
            for entry in record["entries"]:
                _apply(states, metadata, offset, record["at"], entry)
    for recovered in states.values():
        recovered.state.reopen()
        recovered.journal = end
    return recovery


def _stretches(log: Log, topic: str, start: int, end: int, stretch: int) -> Iterator[Records]:
    while start < end:
        records = log.read_range(topic, 0, start, stretch)
        if records.next <= start:
            return
        yield records
        start = records.next


def _snapshots(log: Log, prefix: str, metadata: Metadata, stretch: int) -> States:
    topic = state_topic(prefix)
    newest: dict[bytes, bytes] = {}
    start, end = log.bounds(topic, 0)
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


def _apply(states: States, metadata: Metadata, offset: int, at_us: int, entry: dict[str, Any]) -> None:
    """One journal entry, unless the snapshot has it or its node is gone."""
    store, name = entry["store"], entry["durable"]
    if entry["operation"] in ("evicted", "trimmed"):
        _sweep(states, offset, entry)
        return
    recovered = states.get((store, name))
    if recovered is None:
        durable = metadata.durables.get((entry["node"], name))
        if durable is None or durable.store != store or store not in metadata.stores or offset < durable.journal:
            return
        recovered = states[store, name] = Recovered(Acknowledgement(durable.start), offset, closed=False)
    if offset < recovered.journal:
        return
    if entry["operation"] == "delete":
        recovered.deleted = True
    else:
        recovered.state.wake(at_us // 1000)  # what is settled again had been given again
        recovered.state.apply(entry["operation"], bool(entry["failed"]), entry["runs"], entry.get("not_before", 0))


def _sweep(states: States, offset: int, entry: dict[str, Any]) -> None:
    """An entry that speaks of all durables of a store. What was trimmed had ended for all of them."""
    bound = max(last for _, last, _, _ in entry["runs"]) + 1
    for (store, _), recovered in states.items():
        if entry["operation"] == "evicted" and store == entry["store"] and offset >= recovered.journal:
            recovered.state.evict(bound)
