"""Recovery: the newest snapshots, then the journal from the lowest offset that one of them needs.

To be run after `claim`, which ends what a killed process left open, and before the first event is given. Blocks; raises
LogError. May import: the standard library, orjson, `native_backend` below it.
"""

from __future__ import annotations

import logging
from typing import Any

import orjson

from native_backend.acknowledgement import Acknowledgement
from native_backend.journal import journal_topic, tail
from native_backend.log import Log
from native_backend.metadata import Metadata, read_tail
from native_backend.snapshot import Recovered, decode_snapshot, state_topic

_LOG = logging.getLogger(__name__)
States = dict[tuple[int, str], Recovered]  # by store and durable


def recover(log: Log, prefix: str, metadata: Metadata, end: int) -> States:
    """The states of all durables that were ever open, as of the journal's records below `end`."""
    states = _snapshots(log, prefix, metadata)
    topic = journal_topic(prefix)
    first = log.bounds(topic, 0)[0]
    start = min((recovered.journal for recovered in states.values()), default=end)
    if start < first:
        _LOG.error("the journal begins at %d, recovery needs it from %d: events may be given again", first, start)
    newest: dict[str, int] = {}  # run -> n
    for offset, record in tail(log, topic, start):
        if record["n"] <= newest.get(record["run"], 0):
            continue  # submitted again after an unknown result, while the first one was not visible yet
        newest[record["run"]] = record["n"]
        for entry in record["entries"]:
            _apply(states, metadata, offset, entry)
    for recovered in states.values():
        recovered.state.reopen()
        recovered.journal = end
    return states


def _snapshots(log: Log, prefix: str, metadata: Metadata) -> States:
    newest: dict[bytes, bytes | None] = {}
    for records in read_tail(log, state_topic(prefix), 0):
        newest.update((key, value) for key, value in zip(records.keys, records.values, strict=True) if key is not None)
    states: States = {}
    for key, value in newest.items():
        store, durable = orjson.loads(key)
        if value is not None and store in metadata.stores:
            states[store, durable] = decode_snapshot(orjson.loads(value))
    return states


def _apply(states: States, metadata: Metadata, offset: int, entry: dict[str, Any]) -> None:
    """One journal entry, unless the snapshot has it or its node is gone."""
    store, name = entry["store"], entry["durable"]
    recovered = states.get((store, name))
    if recovered is None:
        durable = metadata.durables.get((entry["node"], name))
        if durable is None or durable.store != store or store not in metadata.stores:
            return
        recovered = states[store, name] = Recovered(Acknowledgement(durable.start), offset, closed=False)
    if offset >= recovered.journal:
        recovered.state.apply(entry["operation"], bool(entry["failed"]), [tuple(run) for run in entry["runs"]])
