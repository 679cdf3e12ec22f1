"""Recovery gathers what ended and applies it in columns: the states must be those of one entry after the other; and it
must not hold more of the journal than it said."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import orjson
import pytest

from native_backend.journal import recovery
from native_backend.journal.snapshot import StateCopy, encode_snapshot
from native_backend.log.port import Log, Records
from native_backend.nodes.durable import Durable
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node
from native_backend.state.ack_state import AckState

NODE = Node("news", "channel", "um.node.news", b"\0" * 16, 7)
NAMES = ("one", "two", "three")


class Journal:
    """A log that has a journal, and of every durable the snapshot with which it began. `asked`: how many octets every
    read of the journal gave."""

    def __init__(self, values: list[bytes]) -> None:
        begun = [encode_snapshot(StateCopy("news", name, 7, 0, False, AckState(3)), "s", 9_000) for name in NAMES]
        self._state = [record for parts in begun for record in parts]
        self._journal = [(b"run", value) for value in values]
        self.asked: list[int] = []

    @property
    def control(self) -> Journal:
        """The realm asks it nothing but control calls here."""
        return self

    def bounds(self, topic: str, partition: int, deadline_s: float = 1.0) -> tuple[int, int]:
        return 0, len(self._journal if topic == "um.journal" else self._state)

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 1.0) -> Records:
        records = (self._journal if topic == "um.journal" else self._state)[start : start + count_max]
        if topic == "um.journal":
            self.asked.append(sum(len(value) for _, value in records))
        offsets = [*range(start, start + len(records))]
        keys, values = [key for key, _ in records], [value for _, value in records]
        return Records(offsets, [0] * len(records), [*keys], [*values], start + len(records))


def metadata() -> Metadata:
    known = Metadata()
    known.nodes["news"] = known.stores[7] = NODE
    for name in NAMES:
        known.durables["news", name] = Durable("news", name, 7, name, 3)
    return known


def recovered(journal: Journal, end: int, stretch: int) -> dict[str, AckState]:
    outcome = recovery.recover(cast(Log, journal), "um", metadata(), end, stretch)
    assert outcome.replayed == end
    return {name: durable.state for (_, name), durable in outcome.states.items()}


def entry(random: Random, name: str, open_: dict[str, set[int]], place: dict[str, int]) -> dict[str, Any]:
    """Something that may happen to a durable; the events at hand are those given and not ended."""
    operation = random.choice(["acknowledge"] * 6 + ["discard", "return", "return", "seek", "truncated"])
    if operation == "seek":
        place[name] = random.randrange(3, place[name] + 1)
        open_[name].clear()
        return {"operation": "seek", "failed": 0, "runs": [[place[name], place[name], 0, place[name]]]}
    if operation == "truncated":
        before, place[name] = place[name], random.randrange(3, place[name] + 1)
        open_[name] -= {*range(place[name], before)}
        return {"operation": operation, "failed": 0, "runs": [[place[name], before - 1, 0, place[name]]]}
    gap = random.choice([0, 0, 0, 2])
    given = range(place[name] + gap, place[name] + gap + random.randrange(1, 6))
    place[name] = given.stop
    open_[name] |= {*given}
    eid = random.choice(sorted(open_[name]))
    last = eid
    while random.random() < 0.3 and last + 1 in open_[name]:
        last += 1
    if operation != "return":
        open_[name] -= {*range(eid, last + 1)}
    cover = eid - gap if eid == given.start else eid
    return {"operation": operation, "failed": random.randrange(2), "runs": [[eid, last, 1, cover]]}


@pytest.mark.parametrize("gathered", [1, 40, 500_000])
def test_the_states_are_those_of_one_entry_after_the_other(monkeypatch: pytest.MonkeyPatch, gathered: int) -> None:
    monkeypatch.setattr(recovery, "GATHERED", gathered)
    for seed in range(60):
        random = Random(seed)
        open_: dict[str, set[int]] = {name: set() for name in NAMES}
        place = dict.fromkeys(NAMES, 3)
        plain = {name: AckState(3) for name in NAMES}
        values = []
        for n in range(1, 120):
            entries = []
            for name in random.sample(NAMES, random.randrange(3)):
                made = entry(random, name, open_, place)
                plain[name].apply(made["operation"], bool(made["failed"]), [tuple(run) for run in made["runs"]])
                entries.append({"node": "news", "durable": name, "store": 7, "cause": "disposition", **made})
            values.append(orjson.dumps({"v": 1, "run": "r", "n": n, "at": n, "entries": entries}))
            if random.random() < 0.1:
                values.append(values[-1])  # stored again, its result having been unknown
        for name, state in recovered(Journal(values), len(values), random.choice([1, 7, 1000])).items():
            plain[name].reopen()
            for attribute in ("low", "position", "failed"):
                assert getattr(state, attribute) == getattr(plain[name], attribute), (seed, name, attribute)
            for attribute in ("acked", "returned"):
                assert [*getattr(state, attribute)] == [*getattr(plain[name], attribute)], (seed, name, attribute)


def test_large_records_are_read_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "STRETCH_BYTES", 100_000)
    cause = "x" * 1_000
    values = []
    for n in range(1, 2_000):
        made = {"operation": "acknowledge", "failed": 0, "runs": [[n + 2, n + 2, n, n + 2]], "cause": cause}
        record = {"node": "news", "durable": "one", "store": 7, **made}
        values.append(orjson.dumps({"v": 1, "run": "r", "n": n, "at": n, "entries": [record]}))
    journal = Journal(values)
    assert recovered(journal, len(values), 20_000)["one"].low == 2_002
    assert max(journal.asked) <= 120_000
    assert len(journal.asked) < 40
