"""How long a realm of many durables and a long journal takes to open after a kill.

The journal is made by the realm's own encoder: each record is one turn of some durables that settle one event each, out
of order, as the journal of a busy realm is. `tail` is what recovery has to read: all of it when no snapshot was written
(the worst that can be), or what the limits allow between two rounds of snapshots.
"""

from __future__ import annotations

import random
import time
from typing import Any

from bench.scale.settling import subscribed
from bench.scale.worlds import opened, resident_mb
from native_backend.journal.journal_record import encode
from native_backend.journal.settlement import Settlement
from native_backend.journal.snapshot import StateCopy, encode_snapshot, state_topic
from native_backend.limits import RealmLimits
from native_backend.log.port import Append, Appended
from native_backend.state.ack_state import AckState
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import World

A_RECORD = 3  # durables that settle in one transaction
IN_ONE_GO = 5_000  # records appended at once
OPEN = 400  # events of each durable that are given and not settled: what is out of order


class Settler:
    """A durable of the journal that is made: settles the events that it was given in any order."""

    def __init__(self, node: str, durable: str, store: int, start: int, rng: random.Random) -> None:
        self.state = AckState(start)
        self._keys = (node, durable, store)
        self._given = [*range(start, start + OPEN)]
        self._next = start + OPEN
        self._rng = rng

    def keys(self) -> tuple[str, str, int]:
        return self._keys

    def settlement(self, seq: int) -> Settlement:
        at = self._rng.randrange(len(self._given))
        eid, self._given[at] = self._given[at], self._next
        self._next += 1
        runs = [(eid, eid, seq, eid)]
        self.state.apply("acknowledge", False, runs)
        return Settlement(self, None, "acknowledge", False, False, "disposition", runs, 1, None)  # type: ignore[arg-type]


def recovery(world: World, durables: int, records: int, snapshots: bool) -> dict[str, Any]:
    limits = RealmLimits()
    realm = opened(world, limits)
    node = realm.create("news", "channel")
    subscribed(realm, node, durables)
    rng = random.Random(7)
    settlers = [Settler(node.name, f"d{at}", node.store, 0, rng) for at in range(durables)]
    began = time.monotonic()
    ahead = 2 * limits.snapshot_records if snapshots else records
    size = journal(realm, settlers, range(max(0, records - ahead)), rng)
    if snapshots:
        _, end = realm.log.control.bounds(f"{realm.prefix}.journal", 0)
        write_snapshots(realm, settlers, end)
    size += journal(realm, settlers, range(max(0, records - ahead), records), rng)
    made_s = time.monotonic() - began
    realm.kill()
    before_mb = resident_mb()
    began, cpu_s = time.monotonic(), time.process_time()
    later = opened(world, limits)
    open_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
    peak_mb = resident_mb()
    began = time.monotonic()
    subscribed(later, node, durables)
    subscribed_s = time.monotonic() - began
    low = [later.state(node, f"d{at}").low for at in range(durables)]
    expected = [min(settler._given) for settler in settlers]
    assert low == expected, "recovered wrongly"
    later.kill()
    return {
        "durables": durables,
        "records": records,
        "journal_mb": round(size / 1e6),
        "made_s": round(made_s, 1),
        "open_s": round(open_s, 2),
        "open_cpu_s": round(cpu_s, 2),
        "grown_mb": round(peak_mb - before_mb),
        "subscribed_s": round(subscribed_s, 2),
    }


def write_snapshots(realm: RealmProcess, settlers: list[Settler], journal: int) -> None:
    """As a round of the realm's own would."""
    records = []
    for settler in settlers:
        node, durable, store = settler.keys()
        records += encode_snapshot(StateCopy(node, durable, store, journal, False, settler.state), "bench:1", 900_000)
    keys, values = [key for key, _ in records], [value for _, value in records]
    realm.log.control.put_all(state_topic(realm.prefix), keys, values)


def journal(realm: RealmProcess, settlers: list[Settler], numbers: range, rng: random.Random) -> int:
    """Append these records of the gateway's run; returns their size."""
    topic, key, size, seq = f"{realm.prefix}.journal", realm.run.encode(), 0, A_RECORD * numbers.start
    for begin in range(numbers.start, numbers.stop, IN_ONE_GO):
        values: list[bytes] = []
        for n in range(begin, min(begin + IN_ONE_GO, numbers.stop)):
            turn = [settlers[rng.randrange(len(settlers))].settlement(seq + at) for at in range(A_RECORD)]
            seq += A_RECORD
            values += encode(realm.run, n + 2, 1_700_000_000_000_000 + n, turn, 8_000)
        size += sum(map(len, values))
        store(realm, topic, key, values)
    return size


def store(realm: RealmProcess, topic: str, key: bytes, values: list[bytes]) -> None:
    batch = Append(topic, 0, [key] * len(values), values)
    realm.log.append(batch)
    missing = len(values)
    while missing:
        for completion in realm.log.poll():
            if isinstance(completion, Appended) and completion.batch is batch:
                assert completion.failure is None, completion.failure
                missing -= len(completion.offsets)
        time.sleep(0.001)
