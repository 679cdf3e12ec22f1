"""How long peers wait: from the turn that read a transfer or a disposition until the realm answers, each delivery
counted, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mappings import load_tables
from native_backend.state.durations import BOUNDS_S, Durations
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE
from tests.kit.wire.scripted_gateway import ScriptedGateway

ACCEPTED = frames.state("accepted")
Gateway = tuple[ScriptedGateway, StoppedClock]


@pytest.fixture
def stopped() -> Iterator[Gateway]:
    clock = StoppedClock()
    with ScriptedGateway(load_tables()) as gateway:
        gateway.do(lambda: setattr(gateway.gateway, "clock", clock))
        yield gateway, clock


def later(stopped: Gateway, seconds: float, calls: list[str]) -> None:
    """The realm has been asked, and answers so much later."""
    gateway, clock = stopped
    gateway.until(lambda: gateway.realm.calls[-len(calls) :] == calls)

    def answer() -> None:
        clock.now_s += seconds
        gateway.realm.release()

    gateway.do(answer)


def seen(stopped: Gateway, measure: Callable[[ScriptedGateway], Durations]) -> dict[float, int]:
    """How many deliveries, by the bound that they took at most."""
    durations = stopped[0].do(lambda: measure(stopped[0]))
    return {bound: count for bound, count in zip(BOUNDS_S, durations.counts, strict=False) if count}


def accepts(gateway: ScriptedGateway) -> Durations:
    return gateway.gateway.accept_seconds


def settles(gateway: ScriptedGateway) -> Durations:
    return gateway.gateway.settle_seconds


def test_each_published_message_is_counted_with_the_time_until_its_outcome_is_known(stopped: Gateway) -> None:
    gateway, _ = stopped
    with Peer(gateway.port) as peer:
        peer.publisher("q")
        peer.outcomes(len(peer.publish(MESSAGE)))
        assert seen(stopped, accepts) == {BOUNDS_S[0]: 1}
        gateway.realm.holds.add("publish")
        peer.publish(*[MESSAGE] * 10)
        later(stopped, 0.3, ["publish 10"])
        peer.outcomes(10)
    assert seen(stopped, accepts) == {BOUNDS_S[0]: 1, 0.5: 10}
    assert accepts(gateway).total_s == pytest.approx(3.0)
    assert seen(stopped, settles) == {}


def test_each_settled_delivery_is_counted_with_the_time_until_it_is_stored(stopped: Gateway) -> None:
    gateway, _ = stopped
    with Peer(gateway.port) as peer:
        peer.stored("q", *[MESSAGE] * 4)
        peer.consumer("q", credit=4)
        numbers = [delivery.field(1) for delivery in peer.receive(4)]
        gateway.realm.holds.add("settle")
        peer.settle(numbers[:3], ACCEPTED, settled=False)
        later(stopped, 2.0, ["acknowledge 3"])
        peer.expect("disposition")
    assert seen(stopped, settles) == {2.5: 3}, "and what its link left behind was stated by no disposition"


def test_what_is_not_stored_is_no_settlement(stopped: Gateway) -> None:
    gateway, _ = stopped
    with Peer(gateway.port) as peer:
        peer.stored("q", MESSAGE)
        peer.consumer("q", credit=1)
        [delivery] = peer.receive(1)
        gateway.realm.answers["settle"] = "unexpected"
        peer.settle([delivery.field(1)], ACCEPTED, settled=False)
        peer.expect("disposition")
    assert seen(stopped, settles) == {}
