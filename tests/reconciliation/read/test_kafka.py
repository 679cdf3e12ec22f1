"""The same judgement of a realm on a real Kafka: the connector reads committed records, kafka-python the offsets."""

from __future__ import annotations

import pytest

from native_backend.log.open import open_kafka
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.world import World

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
PREFIX = "reconciled"


def test_kafka(kafka_bootstrap: str, reconcile: Reconcile) -> None:
    log = open_kafka(kafka_bootstrap, {})
    world = World(log, PREFIX)
    clean, doubled, foreign, trimmed, skipped = (world.queue(name) for name in ("clean", "p2", "p3", "s1", "a5"))
    run = world.run()
    sent = {node.name: run.publish(node, 3) for node in (clean, doubled, foreign, trimmed, skipped)}
    run.turn()
    run.settle(clean, sent["clean"][:2], "accepted")
    run.settle(clean, sent["clean"][2:], "released")
    run.close()
    world.project(clean, None, sent["clean"][2].eid)

    key = f"1;basic;{run.name};{sent['p2'][0].seq};1;4;;0;;0".encode()
    [twice] = world.append(doubled.topic, [key], [b"again"])
    [strange] = world.append(foreign.topic, [b"not ours"], [b"x"])
    log.control.trim(trimmed.topic, 0, sent["s1"][1].eid)
    world.project(skipped, None, sent["a5"][1].eid)
    untold = sent["clean"][2].eid
    world.commit("1-0000", {"v": 1, "run": run.name, "n": run.commits + 1, "at": 1, "entries": [
        {"node": "clean", "durable": "queue", "store": clean.store, "operation": "acknowledge", "failed": 0,
         "cause": "disposition", "runs": [[untold, untold, 999, untold]]}]})  # fmt: skip
    log.close()

    result = reconcile(Realm("kafka", PREFIX, bootstrap=kafka_bootstrap))

    assert result.classes() == {"P2": 1, "P3": 1, "A2": 1, "A5": 1, "S1": 1}
    assert result.examples("P2")[0]["detail"] == f"stored at EIDs {sent['p2'][0].eid}, {twice}"
    assert result.examples("P3")[0]["tag"] == f"{foreign.store}:{strange}"
    assert result.examples("A2")[0]["tag"] == f"{clean.store}:{sent['clean'][2].eid}"
    assert result.examples("A5")[0]["tag"] == f"{skipped.store}:{sent['a5'][0].eid}"
    assert result.examples("S1")[0]["tag"] == f"{trimmed.store}:{sent['s1'][0].eid}"
    assert result.manifest["balance"]["difference"] == 0
    assert result.code == 1
