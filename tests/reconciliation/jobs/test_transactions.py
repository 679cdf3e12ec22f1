"""Commits, rollbacks and kill -9 between a discharge and its answer: never torn, and the books close."""

from __future__ import annotations

from pathlib import Path

from native_backend.journal.journal import tail
from native_backend.log.open import open_embedded
from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from tests.reconciliation.conftest import Reconcile

NODES = {"create_on_attach": ["any.*"]}
SOURCE, LEFT, RIGHT = "any.source", "any.left", "any.right"
ROUNDS = 6


def test_a_gateway_killed_at_a_discharge_leaves_all_of_it_or_nothing(
    new_gateway: StartGateway, reconcile: Reconcile
) -> None:
    gateway = new_gateway("embedded", nodes=NODES)
    with Peer(gateway.port) as peer:
        peer.stored(SOURCE, *(frames.message(b"%d" % at) for at in range(4 * ROUNDS)))
    for at in range(ROUNDS):
        with Transacting(gateway.port) as peer:
            peer.publisher(LEFT)
            peer.publisher(RIGHT, handle=2)
            peer.consumer(SOURCE, credit=1, handle=1)
            [event] = peer.receive(1)
            moved = frames.message(event.payload[-2:])
            transaction = peer.begun()
            peer.post(transaction, moved)
            peer.post(transaction, moved, handle=2)
            peer.dispositions(2)
            peer.retire(transaction, event.field(1), settled=True)
            if at % 3 == 2:
                assert peer.discharge(transaction, fail=at % 2 == 0) == "accepted"
                continue
            peer.send(frames.discharge(peer.number(), transaction))
            if at % 3 == 1:
                peer.expect("disposition")
            gateway.kill()
        gateway.start()
    assert gateway.stop() == 0
    directory = Path(gateway.config_path).parent / "realm"
    log = open_embedded(directory)
    left, right = (log.control.read_range(f"um.node.{node}", 0, 0, 1000).values for node in (LEFT, RIGHT))
    acknowledged = sum(
        last - first + 1
        for _, record in tail(log, "um.journal", 0)
        for entry in record["entries"]
        if (entry["node"], entry["operation"]) == (SOURCE, "acknowledge")
        for first, last, *_ in entry["runs"]
    )
    log.close()
    assert left == right, "torn"
    assert len(left) == acknowledged >= ROUNDS // 3, "those that were answered, at least"
    result = reconcile(Realm("embedded", "um", path=directory))
    assert result.text.startswith("Verdict: CLEAN."), result.text
