"""Nodes of several stores, killed in the middle: every store's books close, on either realm."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.reconciliation.conftest import Reconcile
from tests.reconciliation.days import said
from transformers.codec import Described, UByte, ULong, encode

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python reads its own schemas the old way
ACCEPTED, RELEASED, REJECTED = (frames.state(name) for name in ("accepted", "released", "rejected"))
COUNT = 40


def urgent(at: int) -> bytes:
    return frames.message(b"%02d" % at, encode(Described(ULong(0x70), [True, UByte(at % 10)])))


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_every_store_is_reconciled(new_gateway: StartGateway, reconcile: Reconcile, tmp_path: Path, kind: str) -> None:
    gateway = new_gateway(kind)
    gateway.command("node", "create", "dead", "--partitions", "2")
    gateway.command("node", "create", "urgent", "--priority-levels", "3", "--dead-letter", "dead")
    gateway.command("node", "create", "wide", "--partitions", "3", "--kind", "channel")
    with Peer(gateway.port, "app") as peer:
        peer.consumer(frames.source("wide", durable=2, capability="topic"), credit=COUNT, name="news")
        for _ in range(2):
            peer.stored("wide", *map(urgent, range(COUNT // 2)), kind="channel")
        peer.stored("urgent", *map(urgent, range(COUNT)))
        news = peer.receive(COUNT)
        peer.settle([seen.field(1) for seen in news[:-10]], ACCEPTED, settled=False)
        assert set(peer.outcomes(COUNT - 10).values()) == {"accepted"}
        peer.consumer("urgent", credit=COUNT, handle=2)
        came = peer.receive(COUNT, handle=2)
        for state, some in ((ACCEPTED, came[0::4]), (RELEASED, came[1::4]), (REJECTED, came[2::4])):
            peer.settle([seen.field(1) for seen in some], state, settled=False)
            peer.outcomes(len(some))
        gateway.kill()
    gateway.start()
    with Peer(gateway.port, "app") as peer:
        peer.consumer("urgent", credit=COUNT)
        rest = peer.receive(COUNT // 2)
        peer.settle([seen.field(1) for seen in rest[: COUNT // 4]], ACCEPTED, settled=False)
        peer.outcomes(COUNT // 4)
        peer.consumer("dead", credit=COUNT, handle=2, name="dead")
        letters = peer.receive(COUNT // 4, handle=2)
        assert len({seen.field(2).partition(b":")[0] for seen in letters}) == 2
        peer.consumer(frames.source("wide", durable=2, capability="topic"), credit=COUNT, handle=3, name="news")
        assert len(peer.receive(10, handle=3)) == 10
    assert gateway.stop() == 0
    settings = gateway.settings["realm"]
    if kind == "embedded":
        realm = Realm("embedded", "um", path=Path(settings["path"]))
    else:
        realm = Realm("kafka", settings["prefix"], bootstrap=settings["bootstrap"])
    result = reconcile(realm)
    assert result.text.startswith("Verdict: CLEAN."), result.text
    assert result.manifest["balance"]["difference"] == 0
    by_sums = reconcile(realm, state=tmp_path / "state", sums=True)
    assert "Judged from the sums" in by_sums.text, by_sums.text
    assert said(by_sums) == said(result)
