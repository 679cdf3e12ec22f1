"""Deliveries that are no message: what is aborted, and what is resumed though it is not known here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cproton import lib

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described, UInt, ULong, encode

TABLES = load_tables()
ONE = frames.message(b"one")


def resumed(number: int, handle: int, payload: bytes, settled: bool = False) -> bytes:
    """A delivery of two transfers whose sender had it before; the gateway knows none."""
    fields = [UInt(handle), UInt(number), b"%d" % number, UInt(0), settled]
    begun = frames.frame(frames.TRANSFER, [*fields, True, None, None, True], payload[:4])
    return begun + frames.frame(frames.TRANSFER, [UInt(handle), None, None, None, settled], payload[4:])


class Sender(Transacting):
    """Sends no more on a link than it has credit for."""

    credit_left = 0

    def within_credit(self, handle: int, delivery: bytes) -> None:
        while self.credit_left <= 0:
            flow = self.next_frame("flow", lambda flow: flow.field(4) == self.gateway_handles[handle], 10.0)
            self.credit_left = flow.field(5) + flow.field(6) - self.delivered.get(handle, 0)
        self.credit_left -= 1
        self.delivered[handle] = self.delivered.get(handle, 0) + 1
        self.send(delivery)


@pytest.fixture
def sender(small: GatewayProcess, node: str) -> Iterator[Sender]:
    """Its links have a credit of 5; the control link has 16."""
    with Peer(small.port) as made:
        made.publisher(node)
    with Sender(small.port) as sending:
        yield sending


def attached(sender: Sender, to: str | Described | None) -> None:
    sender.send(frames.attach_sender(to))
    sender.gateway_handles[0] = sender.expect("attach").field(1)


def without_a_message(number: int, kind: str, payload: bytes) -> bytes:
    if kind == "aborted":
        return frames.transfer(number, payload[:4], more=True) + frames.aborted()
    return resumed(number, 0, payload, settled=kind == "resumed-settled")


@pytest.mark.requirement("H-15")
@pytest.mark.parametrize("kind", ["aborted", "resumed", "resumed-settled"])
@pytest.mark.parametrize("to", ["queue", "relay"])
def test_what_is_no_message_gives_its_credit_back(sender: Sender, node: str, to: str, kind: str) -> None:
    """50 deliveries are aborted, or resumed though they are not known here; 50 messages follow. The credit is 5."""
    attached(sender, node if to == "queue" else frames.target(None))
    for _ in range(50):
        sender.within_credit(0, without_a_message(sender.number(), kind, ONE))
    good = [sender.number() for _ in range(50)]
    for number in good:
        sender.within_credit(0, frames.transfer(number, frames.message_to(node)))
    assert sender.until_told(good, good[-1]) == dict.fromkeys(good, "accepted")
    assert len(sender.there(node, 50)) == 50


@pytest.mark.parametrize("kind", ["aborted", "resumed"])
def test_what_is_no_request_gives_its_credit_back(sender: Sender, kind: str) -> None:
    attached(sender, frames.COORDINATOR)
    declare = encode(Described(ULong(0x77), Described(ULong(0x31), [])))
    for _ in range(50):
        sender.within_credit(0, without_a_message(sender.number(), kind, declare))
    number = sender.number()
    sender.within_credit(0, frames.declare(number, handle=0))
    assert sender.until_told([number], number) == {number: "declared"}


@pytest.mark.parametrize("kind", ["aborted", "resumed"])
def test_what_is_no_message_takes_credit(kind: str) -> None:
    """More of it than its link has credit for ends the link, as more messages do."""
    peer = Conversation(build_gateway(TABLES, ScriptedRealm(), credit_per_link=5))
    peer.say(frames.attach_sender("q"))
    reply = peer.say(*(without_a_message(number, kind, ONE) for number in range(6)))
    assert [seen.condition for seen in reply if seen.name == "detach"] == ["amqp:link:transfer-limit-exceeded"]


def test_nothing_is_kept_of_deliveries_that_are_resumed() -> None:
    """proton keeps every delivery that is not settled, and a peer may resume as many as it likes."""
    peer = Conversation(build_gateway(TABLES, ScriptedRealm()))
    peer.say(frames.attach_sender("q"))
    for number in range(100):
        peer.say(resumed(number, 0, ONE))
    [link] = peer.connection.engine.links()
    assert lib.pn_link_unsettled(link._pointer) == 0
    assert [seen.state for seen in peer.say(frames.transfer(100, ONE)) if seen.name == "disposition"] == ["accepted"]


@pytest.mark.parametrize("profile", ["um-9.12", "extended"])
def test_a_message_that_is_aborted_in_the_read_that_began_it(profile: str) -> None:
    """Its delivery has gone by the time that its first transfer is answered."""
    peer = Conversation(build_gateway(load_tables(profile=profile), ScriptedRealm()))
    peer.say(frames.attach_sender("q"))
    reply = peer.say(frames.transfer(0, ONE[:4], more=True), frames.aborted(), frames.begin(1))
    assert [seen.name for seen in reply] == [*(["begin"] if profile == "extended" else ["begin", "detach"])]
