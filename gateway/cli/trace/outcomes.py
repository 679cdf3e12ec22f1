"""What outcome records say of deliveries: who published or consumed, how the peer was answered, and by which rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.cli.trace.events import Place
from gateway.cli.trace.message_ids import recorded
from gateway.cli.trace.records import Searched, having, stretches, values
from native_backend.log.port import Log, Records, if_there
from native_backend.log.time_search import first_where

Delivery = tuple[str, int]
"""Run and seq."""
_DEADLINE_S = 30.0
_NEAR_MAX = 100_000  # records


@dataclass(frozen=True, slots=True)
class Outcome:
    """One delivery's entry."""

    at_us: int
    run: str
    seq: int
    eid: int
    digest: str
    profile: str
    group: dict[str, Any]

    @property
    def delivery(self) -> Delivery:
        return self.run, self.seq

    @property
    def place(self) -> Place | None:
        """None: it was never stored, or it is not known where."""
        store = self.group["store"]
        return (store, self.eid) if store is not None and self.eid >= 0 else None

    @property
    def error(self) -> dict[str, Any] | None:
        """What its consumer gave as the reason of `rejected`."""
        errors = [reason for reason in self.group.get("errors", ()) if self.seq in reason["seq"]]
        return {key: value for key, value in errors[0].items() if key != "seq"} if errors else None

    @property
    def message_id(self) -> str | None:
        """Of a message that was not stored; None: it had none, or it is not recorded."""
        return next((name for seq, name in self.group.get("message_ids", ()) if seq == self.seq), None)


def began_ms(run: str) -> int:
    """When a run began, as its name says."""
    return int(run.partition("-")[0], 16)


def of_delivery(log: Log, topic: str, delivery: Delivery, searched: Searched) -> Outcome | None:
    """Blocks; raises LogError."""
    run, seq = delivery
    some_of, and_some_of = (_of_run(run),), (b"%d" % seq,)
    with if_there():
        near = having(_near(log, topic, delivery), some_of, and_some_of)
        for outcome in _matching(near, (), (delivery,)):
            searched.lines.append(f"{topic} where the seq of that run is")
            return outcome
    everywhere = values(log, topic, (began_ms(run), 0), searched, some_of, and_some_of)
    return next(_matching(everywhere, (), (delivery,)), None)


def _near(log: Log, topic: str, delivery: Delivery) -> list[bytes]:
    """Between the first record that knows a higher seq of the run, and the first in which this one has an outcome:
    that is all, unless runs have written at the same time."""
    began, seq = began_ms(delivery[0]), delivery[1]

    def past(records: Records, column: str) -> bool:
        record = orjson.loads(records.values[0] or b"null")
        return (began_ms(record["run"]), record.get(column, 1 << 62)) > (began, seq)

    bounds = log.control.bounds(topic, 0, _DEADLINE_S)
    start = first_where(log, topic, 0, bounds, lambda records: past(records, "next"), _DEADLINE_S)
    end = first_where(log, topic, 0, (start, bounds[1]), lambda records: past(records, "low"), _DEADLINE_S) + 1
    pieces = [stretch[3] for stretch in stretches(log, topic, 0, start, min(end, bounds[1], start + _NEAR_MAX))]
    return [value for some in pieces for value in some]


def of_events(
    log: Log,
    topic: str,
    places: Collection[Place],
    deliveries: Collection[Delivery],
    times_ms: tuple[int, int],
    searched: Searched,
) -> list[Outcome]:
    """Of all deliveries of these events, and of these deliveries, between those times. Blocks; raises LogError."""
    some_of = {b'"store":%d,' % store for store, _ in places} | {_of_run(run) for run, _ in deliveries}
    numbers = {b"%d" % eid for _, eid in places} | {b"%d" % seq for _, seq in deliveries}
    return [*_matching(values(log, topic, times_ms, searched, some_of, numbers), places, deliveries)]


def not_stored(log: Log, topic: str, wanted: str, node: str | None, searched: Searched) -> Iterator[Outcome]:
    """Of messages with that id that were published, to that node where one is named, and not stored. Blocks; raises
    LogError."""
    names, left_out, known = recorded(wanted), 0, set[Delivery]()
    octets = [b'"message_ids_left_out":', *map(orjson.dumps, names)]
    for value in values(log, topic, (0, 0), searched, octets):
        record = orjson.loads(value)
        for group in record["groups"]:
            if node not in (None, group["node"]) or group["answer"] == "stored":
                continue
            left_out += group.get("message_ids_left_out", 0)
            for seq, name in group.get("message_ids", ()):
                if name in names and (record["run"], seq) not in known:
                    known.add((record["run"], seq))
                    yield Outcome(record["at"], record["run"], seq, -1, record["digest"], record["profile"], group)
    if left_out:
        searched.lines.append(f"{left_out} more messages were not stored; their message-ids are not recorded")


def _of_run(run: str) -> bytes:
    return f'"run":"{run}"'.encode()


def _matching(
    records: Iterable[bytes], places: Collection[Place], deliveries: Collection[Delivery]
) -> Iterator[Outcome]:
    for value in records:
        record = orjson.loads(value)
        for group in record["groups"]:
            yield from _of_group(record, group, places, deliveries)


def _of_group(
    record: dict[str, Any], group: dict[str, Any], places: Collection[Place], deliveries: Collection[Delivery]
) -> Iterator[Outcome]:
    run, store = record["run"], group["store"]
    seqs = {seq for name, seq in deliveries if name == run}
    eids = {eid for its, eid in places if its == store}
    if seqs.isdisjoint(group["seq"]) and eids.isdisjoint(group["eid"]):
        return
    for seq, eid in zip(group["seq"], group["eid"], strict=True):
        if seq in seqs or eid in eids:
            yield Outcome(record["at"], run, seq, eid, record["digest"], record["profile"], group)
