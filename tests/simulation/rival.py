"""Another gateway, which takes the realm over and dies at once: the one who owned it must notice and give up."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from native_backend.journal.lease_records import LeaseRecords, encode_lease, lease_topic
from native_backend.log.simulated.driver import SimulatedLog
from tests.simulation.observation.ledger import PREFIX

if TYPE_CHECKING:
    from tests.simulation.world import World


def take_over(world: World) -> None:
    run = f"rival-{world.clock.now_ms():x}"
    log = SimulatedLog(world.disk, Random(run), world.clock.now_ms)
    lease_records = LeaseRecords()
    lease_records.read(log, PREFIX, 1.0)
    record = encode_lease("take", lease_records, run, {"life": run}, world.clock.epoch_us(), 1.0)
    log.control.put(lease_topic(PREFIX), run.encode(), record)
    log.control.claim(f"{PREFIX}.shard.0")
    world.ended.add(run)
    world.remember(f"{run} took over")
