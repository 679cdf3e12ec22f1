"""The state of a queue, of one store or several, against a naive model: a log with gaps, competing links, settlement
in any order and at any time, kills and orderly restarts; through the whole realm on a simulated log, so that dispatch,
journal and recovery are in it."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from native_backend.limits import RealmLimits
from native_backend.log.simulated.faults import Faults
from native_backend.state.ack_state import AckState
from native_backend.subscriptions.partitioned import eids_of, packed_eid, partition_of
from tests.kit.realm.inside import shard_of
from tests.kit.realm.realm_process import Consumer, RealmProcess, by_store
from tests.kit.realm.worlds import SimulatedWorld

LIMITS = RealmLimits(window_bytes=60, chunk_bytes=30, read_count=7, snapshot_records=5, journal_runs=3)


class QueueMachine(RuleBasedStateMachine):
    """The model: every event is available, at one link, or terminal; and has a count of failed attempts."""

    partitions = 1

    def __init__(self) -> None:
        super().__init__()
        self.world = SimulatedWorld("machine", Faults(gap=0.4, split=0.3), seed=11)
        self.realm = self.open()
        self.node = self.realm.create("orders")
        self.links: list[Consumer] = []
        self.published: list[int] = []
        self.held: dict[int, Consumer] = {}
        self.terminal: set[int] = set()
        self.failed: dict[int, int] = {}
        self.given: set[int] = set()

    def open(self) -> RealmProcess:
        return RealmProcess(self.world, "m", LIMITS, self.partitions).open()

    @rule(count=st.integers(1, 12))
    def publish(self, count: int) -> None:
        self.published += self.realm.publish(self.node, [b"12345"] * count)

    @precondition(lambda self: len(self.links) < 3)
    @rule()
    def attach(self) -> None:
        self.links.append(self.realm.consumer(self.node))

    @precondition(lambda self: self.links)
    @rule(data=st.data(), count=st.integers(1, 15))
    def take(self, data: st.DataObject, count: int) -> None:
        link = data.draw(st.sampled_from(self.links))
        free = [eid for eid in self.published if eid not in self.held and eid not in self.terminal]
        expected = by_store(sorted(free, key=lambda eid: (eid not in self.given, eid)))
        taken = link.receive(min(count, len(free))) if free else link.take()
        assert all(some == expected[at][: len(some)] for at, some in by_store(taken).items())
        for eid in taken:
            assert link.failed[eid] == self.failed.get(eid, 0)
            assert link.again[eid] or eid not in self.given
            self.held[eid] = link
            self.given.add(eid)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), operation=st.sampled_from(["acknowledge", "discard", "return"]), failed=st.booleans())
    def settle(self, data: st.DataObject, operation: str, failed: bool) -> None:
        link = data.draw(st.sampled_from([link for link in self.links if link in self.held.values()]))
        eids = data.draw(st.lists(st.sampled_from([e for e in self.held if self.held[e] is link]), unique=True))
        assert link.settle(operation, eids, failed=failed) == "done"  # type: ignore[arg-type]
        for eid in eids:
            del self.held[eid]
            if operation != "return":
                self.terminal.add(eid)
                self.failed.pop(eid, None)
            elif failed:
                self.failed[eid] = self.failed.get(eid, 0) + 1

    @precondition(lambda self: self.links)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        link = data.draw(st.sampled_from(self.links))
        link.subscription.close()
        self.links.remove(link)
        self.held = {eid: holder for eid, holder in self.held.items() if holder is not link}

    @rule(orderly=st.booleans())
    def restart(self, orderly: bool) -> None:
        if orderly:
            self.realm.close()
        else:
            self.realm.kill()
            # what was given above the highest EID that the journal knows is not known to have been: it is new again
            given, self.given = by_store(sorted(self.given)), set()
            for at, position in self.positions().items() if given else ():
                self.given.update(eid for eid in given.get(at, []) if eid < packed_eid(at, position))
        self.realm = self.open()
        self.links, self.held = [], {}

    def positions(self) -> dict[int, int]:
        """As a later process finds them, which ends at once: else the next one would wait for its lease."""
        later = self.open()
        recovered = shard_of(later.realm)._recovered
        later.kill()
        states = {part.partition: recovered.get((part.store, "queue")) for part in self.node.parts}
        for part in self.node.parts:
            dispatch = shard_of(self.realm.realm).opened(part, "queue")
            assert dispatch is None or states[part.partition] is not None
        return {at: durable.state.position for at, durable in states.items() if durable is not None}

    @invariant()
    def nothing_is_remembered_in_vain(self) -> None:
        for part in self.node.parts:
            dispatch = shard_of(self.realm.realm).opened(part, "queue")
            if dispatch is not None:
                self.is_lean(part.partition, dispatch.state)

    def is_lean(self, at: int, state: AckState) -> None:
        published, given = (by_store(sorted(places)).get(at, []) for places in (self.published, self.given))
        open_ = eids_of([place for place in published if place not in self.terminal])
        below = [eid for eid in open_ if eid < state.position]
        assert state.low <= min(open_, default=state.low)
        assert len(state.acked) <= len(below)
        assert {packed_eid(at, eid): count for eid, count in state.failed.items()} == {
            place: count for place, count in self.failed.items() if partition_of(place) == at
        }
        assert set(state.covers) <= set(below)
        if not below:
            assert state.low == state.position or not given
            assert not state.acked


class SpreadMachine(QueueMachine):
    """The same, of three stores."""

    partitions = 3


TestQueue, TestSpreadQueue = QueueMachine.TestCase, SpreadMachine.TestCase
TestQueue.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSpreadQueue.settings = settings(TestQueue.settings, max_examples=20)


def moved_back() -> AckState:
    """A link had all of 0 to 19 when the place was moved to 0."""
    state = AckState(0, 20)
    state.seek(0)
    return state


def test_what_a_settlement_behind_a_seek_passes_is_given() -> None:
    state = moved_back()
    state.apply("acknowledge", False, [(10, 12, 1, 10)])
    assert ([*state.returned], state.position, [*state.acked]) == ([(0, 9)], 13, [(10, 12)])


def test_what_comes_back_behind_a_seek_is_given_once() -> None:
    state = moved_back()
    state.requeue(10, 12)
    assert (bool(state.returned), state.position) == (False, 0)
    state.position = 12
    state.requeue(10, 12)
    assert [*state.returned] == [(10, 11)]
