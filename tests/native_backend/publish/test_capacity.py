"""How long the events of a store with a capacity are counted."""

from __future__ import annotations

from typing import Any

import pytest

from native_backend.log.port import Records
from native_backend.nodes.properties import Properties
from native_backend.publish.capacity import CountedStore
from tests.kit.realm.inside import context_of
from tests.kit.realm.other_control import OtherControl, answer_control
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

FAR = 1000  # an EID that the log does not show


class Reads(OtherControl):
    """How often the log was read."""

    count = 0

    def read_range(self, *where: Any) -> Records:
        self.count += 1
        records: Records = self._control.read_range(*where)
        return records


@pytest.mark.parametrize("is_counted", [True, False], ids=["counted", "forgotten"])
def test_a_store_is_read_again_for_what_the_log_does_not_show_while_it_is_counted(is_counted: bool) -> None:
    process = RealmProcess(SimulatedWorld("simulated", seed=7), "u").open()
    context, reads = context_of(process.realm), Reads(process.log.control)
    node = process.create("bounded", properties=Properties(capacity_events=10))
    answer_control(process, reads)
    store = CountedStore(context, node, lambda *_: None, lambda *_: None)
    if is_counted:
        context.counted[node.store] = store
    store.stored_by_transaction([FAR], [5])
    for _ in range(20):
        process.turn()
    assert reads.count > 5 if is_counted else reads.count == 1
