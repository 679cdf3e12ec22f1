"""A realm that does not keep up is no error: publishers get no more credit; what they have sent is accepted later."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from mappings import load_tables
from tests.kit.processes.gateway import StartGateway, kafka_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway

NODES = {"create_on_attach": ["any.*"]}
LARGE = b"x" * 60_000


def test_credit_is_withheld_while_the_realm_holds_what_came() -> None:
    with ScriptedGateway(load_tables()) as gateway, Peer(gateway.port) as peer:
        gateway.realm.holds.add("publish")
        credit = peer.publisher("q")
        numbers = peer.publish(*[frames.message(b"%d" % number) for number in range(credit)])
        gateway.until(lambda: sum(int(call.split()[1]) for call in gateway.realm.calls if "publish" in call) == credit)
        peer.nothing_at_once()
        assert not [seen for seen in peer.seen if seen.name == "flow" and seen.field(6)], (
            "credit for what is not stored"
        )
        gateway.do(gateway.realm.release)
        assert peer.outcomes(credit) == dict.fromkeys(numbers, "accepted")
        more = peer.publish(frames.message(b"one more"))  # beyond its credit the link would be ended
        assert peer.outcomes(1) == {more[0]: "accepted"}


@pytest.mark.parametrize("realm", ["embedded", "kafka"])
def test_more_octets_than_may_wait_are_read_later(new_gateway: StartGateway, realm: str) -> None:
    """Reading pauses at `limits.in_flight_bytes`; nothing is refused."""
    gateway = new_gateway(realm, nodes=NODES, limits={"in_flight_bytes": 1 << 20})
    _accepts_all(gateway.port)


def test_who_sends_more_octets_than_the_realm_takes_holds_up_no_other() -> None:
    """Most of the limit waits for the realm, all of one peer: that one is not read, its neighbour is."""
    with (
        ScriptedGateway(load_tables(), in_flight_bytes=1 << 20) as scripted,
        Peer(scripted.port, address="127.0.0.2") as hog,
        Peer(scripted.port) as innocent,
    ):
        waiting = scripted.gateway.waiting_bytes
        hog.publisher("q")
        innocent.publisher("q")
        scripted.realm.holds.add("publish")
        first = hog.publish(*[frames.message(LARGE)] * 14)
        scripted.until(lambda: [*waiting.standing()] != [])
        scripted.do(lambda: scripted.realm.holds.remove("publish"))
        second = hog.publish(*[frames.message(LARGE)] * 4)
        assert set(innocent.outcomes(len(innocent.publish(*[frames.message(LARGE)] * 10))).values()) == {"accepted"}
        [words] = scripted.do(lambda: [*waiting.standing()])
        assert words.startswith("reading from 'address 127.0.0.2' pauses: 840,")
        scripted.do(scripted.realm.release)
        assert hog.outcomes(18) == dict.fromkeys([*first, *second], "accepted")
        scripted.until(lambda: not [*waiting.standing()] and scripted.gateway.in_flight_bytes == 0)


def test_a_full_queue_of_the_kafka_client_is_no_error(tmp_path: Path, kafka_bootstrap: str) -> None:
    client = {"queue.buffering.max.kbytes": 1024, "queue.buffering.max.messages": 50}
    realm = {**kafka_realm(kafka_bootstrap, f"t{uuid.uuid4().hex[:8]}"), "client": client}
    gateway = start_gateway(tmp_path, realm, nodes=NODES)
    _accepts_all(gateway.port)
    assert gateway.stop() == 0, gateway.log()


def _accepts_all(port: int) -> None:
    messages = [frames.message(b"%d;" % number + LARGE[: 60_000 - 900 * (number % 60)]) for number in range(200)]
    with Peer(port) as peer:
        assert peer.publisher("any.pressed") >= len(messages)
        numbers = peer.publish(*messages)
        assert peer.outcomes(len(messages)) == dict.fromkeys(numbers, "accepted")
        peer.consumer("any.pressed", credit=len(messages))
        assert [seen.payload for seen in peer.receive(len(messages))] == messages
