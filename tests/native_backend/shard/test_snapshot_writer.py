"""When snapshots are written after a mistake of ours."""

from __future__ import annotations

import pytest

from native_backend.journal.snapshot import Key, StateCopy
from native_backend.shard.snapshot_writer import SnapshotWriter
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

FIRST, SECOND = (1, "first"), (1, "second")


def test_a_round_that_a_mistake_broke_off_goes_on_in_the_next_turn() -> None:
    process, copied = RealmProcess(SimulatedWorld("simulated", seed=7), "u").open(), list[Key]()

    def freeze(key: Key) -> StateCopy | None:
        copied.append(key)
        if len(copied) == 1:
            raise ValueError("planted")
        return None

    writer = SnapshotWriter(context_of(process.realm), lambda: [], freeze)
    with pytest.raises(ValueError, match="planted"):
        writer.hurry([FIRST, SECOND])
    process.turn()
    assert copied == [SECOND, FIRST]
