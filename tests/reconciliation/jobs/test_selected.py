"""Selectors through a real gateway: what a durable filtered, a queue kept and a browser saw is in the books, also where
the gateway was killed meanwhile."""

from __future__ import annotations

from pathlib import Path

from reconciliation.model.settings import Realm
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.filters import numbered, selector
from tests.kit.wire.peer import Peer
from tests.reconciliation.conftest import Reconcile

NODES = {"create_on_attach": ["any.*"]}
NEWS, ORDERS = "any.news", "any.orders"


def test_the_books_close_over_what_selectors_pass_over(new_gateway: StartGateway, reconcile: Reconcile) -> None:
    gateway = new_gateway("embedded", nodes=NODES)
    durable = frames.source(NEWS, 2, filters=selector("number BETWEEN 40 AND 59"))
    with Peer(gateway.port, "me") as peer:
        peer.publisher(NEWS, "channel", handle=5)
        peer.publisher(ORDERS, handle=6)
        peer.consumer(durable, name="d")
        peer.consumer(frames.source(ORDERS, filters=selector("number >= 90")), credit=20, handle=2, name="late ones")
        peer.stored(NEWS, *numbered(100), kind="channel")
        peer.stored(ORDERS, *numbered(100))
        taken = peer.receive(10, handle=2)
        peer.settle([seen.field(1) for seen in taken], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(10).values()) == {"accepted"}
        peer.credit(5)
        some = peer.receive(5)
        peer.settle([seen.field(1) for seen in some], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(5).values()) == {"accepted"}
    gateway.kill()
    gateway.start()
    with Peer(gateway.port, "me") as peer:
        peer.consumer(durable, credit=100, name="d")
        rest = peer.receive(15)
        peer.settle([seen.field(1) for seen in rest], frames.state("accepted"), settled=False)
        assert set(peer.outcomes(15).values()) == {"accepted"}
        peer.consumer(frames.source(ORDERS, mode="copy"), handle=3, name="browser")
        peer.credit(200, 3, drain=True)
        assert len(peer.receive(90, handle=3)) == 90
    assert gateway.stop() == 0
    result = reconcile(Realm("embedded", "um", path=Path(gateway.config_path).parent / "realm"))
    assert result.text.startswith("Verdict: CLEAN."), result.text
    books = {book["node"]: book for book in result.manifest["balance"]["durables"]}
    news, orders = books[NEWS], books[ORDERS]
    assert (news["acknowledged"], news["filtered"], news["available"]) == (20, 80, 0)
    assert (orders["acknowledged"], orders["filtered"], orders["available"]) == (10, 0, 90)
