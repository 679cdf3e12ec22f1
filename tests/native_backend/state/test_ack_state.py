"""The state of a queue against a naive model: a log with gaps, competing links, settlement in any order and at any
time, kills and orderly restarts; through the whole realm on a simulated log, so that dispatch, journal and recovery are
in it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from native_backend.limits import RealmLimits
from native_backend.logs.simulated.faults import Faults
from tests.native_backend.gateway import Consumer, Gateway
from tests.native_backend.logs.worlds import SimulatedWorld

LIMITS = RealmLimits(window_bytes=60, chunk_bytes=30, read_count=7, snapshot_records=5, journal_runs=3)


class QueueMachine(RuleBasedStateMachine):
    """The model: every event is available, at one link, or terminal; and has a count of failed attempts."""

    def __init__(self) -> None:
        super().__init__()
        self.world = SimulatedWorld("machine", Faults(gap=0.4, split=0.3), seed=11)
        self.gateway = Gateway(self.world, "m", LIMITS).open()
        self.node = self.gateway.create("orders")
        self.links: list[Consumer] = []
        self.published: list[int] = []
        self.held: dict[int, Consumer] = {}
        self.terminal: set[int] = set()
        self.failed: dict[int, int] = {}
        self.given: set[int] = set()

    @rule(count=st.integers(1, 12))
    def publish(self, count: int) -> None:
        self.published += self.gateway.publish(self.node, [b"12345"] * count)

    @precondition(lambda self: len(self.links) < 3)
    @rule()
    def attach(self) -> None:
        self.links.append(self.gateway.consumer(self.node))

    @precondition(lambda self: self.links)
    @rule(data=st.data(), count=st.integers(1, 15))
    def take(self, data: st.DataObject, count: int) -> None:
        link = data.draw(st.sampled_from(self.links))
        free = [eid for eid in self.published if eid not in self.held and eid not in self.terminal]
        expected = sorted(free, key=lambda eid: (eid not in self.given, eid))[:count]
        taken = link.receive(len(expected)) if expected else link.take()
        assert taken == expected
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
            self.gateway.close()
        else:
            self.gateway.kill()
            # what was given above the highest EID that the journal knows is not known to have been: it is new again
            if self.given:
                position = self.position()
                self.given = {eid for eid in self.given if eid < position}
        self.gateway = Gateway(self.world, "m", LIMITS).open()
        self.links, self.held = [], {}

    def position(self) -> int:
        """As a gateway finds it that opens now: recovery is dear, so it is asked for once a kill."""
        dispatch = self.gateway.realm._shard.opened(self.node, "queue")
        recovered = Gateway(self.world, "m", LIMITS).open().realm._shard._recovered
        found = recovered.get((self.node.store, "queue"))
        assert (found is None) == (dispatch is None and not self.given)
        return found.state.position if found else 0

    @invariant()
    def nothing_is_remembered_in_vain(self) -> None:
        dispatch = self.gateway.realm._shard.opened(self.node, "queue")
        if dispatch is None:
            return
        state = dispatch.state
        open_ = [eid for eid in self.published if eid not in self.terminal]
        below = [eid for eid in open_ if eid < state.position]
        assert state.low <= min(open_, default=state.low)
        assert len(state.acked) <= len(below)
        assert state.failed == self.failed
        assert set(state.covers) <= set(below)
        if not below:
            assert state.low == state.position or not self.given
            assert not state.acked


TestQueue = QueueMachine.TestCase
TestQueue.pytestmark = [pytest.mark.timeout(900)]  # type: ignore[attr-defined]  # of all its examples together
TestQueue.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
