"""Dynamic nodes: what is asked, what is answered, how long they live, and who may use them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.attach.dynamic_nodes import (
    ADDRESS,
    CLOSE,
    DYNAMIC,
    NO_LINKS,
    NO_LINKS_OR_MESSAGES,
    NO_MESSAGES,
    POLICIES,
    PROPERTIES,
    SOURCE,
    TARGET,
    close,
    comes_to_an_end,
    exists,
    made_to_expire,
    make,
    terminus,
)
from tests.wire.conftest import serve
from transformers.codec import AmqpMap, Array, Described, Symbol, ULong, encode


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Two temporary nodes at most; any other node is made by the one who names it."""
    yield from serve(tmp_path_factory, limits={"temporary_nodes": 2}, nodes={"create_on_attach": ["*"]})


@pytest.mark.parametrize("direction", ["publish", "subscribe"])
@pytest.mark.parametrize(
    ("capability", "modes"), [("temporary-queue", ["move", "copy"]), ("temporary-topic", ["copy"])]
)
@pytest.mark.requirement("M-2", "M-3", "M-4", "M-6", "M-8")
def test_the_answer_says_what_was_made(
    gateway: GatewayProcess, direction: str, capability: str, modes: list[str]
) -> None:
    with Peer(gateway.port, "a container") as peer:
        first = make(peer, direction, NO_LINKS, capability=capability)
        assert (
            first.startswith("temporary:a container.maker, 20.") and len(first.rpartition(".")[2]) == 32
        )  # 128 bits, hex
        properties = frames.lifetime(ULong(NO_LINKS))
        if direction == "publish":
            attach = frames.attach_sender(frames.target(None, True, capability, properties), 21, "other")
        else:
            attach = frames.attach_receiver(
                frames.source(None, dynamic=True, capability=capability, properties=properties), 21, "other"
            )
        peer.send(attach)
        answer = terminus(peer.expect("attach"), TARGET if direction == "publish" else SOURCE)
        assert answer[ADDRESS] != first
        pairs = answer[PROPERTIES]
        assert isinstance(pairs, AmqpMap)
        actual = {str(key): value for key, value in pairs.pairs}
        assert actual["lifetime-policy"] == Described(ULong(NO_LINKS), [])
        assert isinstance(actual["supported-dist-modes"], Array)
        assert [str(mode) for mode in actual["supported-dist-modes"].items] == modes


WRONG = {
    "M-1-target": frames.attach_sender(frames.target("any.name", dynamic=True)),
    "M-1-source": frames.attach_receiver(frames.source("any.name", dynamic=True)),
    "M-7": frames.attach_receiver(frames.source(None, dynamic=True, properties=frames.lifetime(ULong(0x2F)))),
    "M-7-symbol": frames.attach_receiver(
        frames.source(None, dynamic=True, properties=frames.lifetime(Symbol("for-ever")))
    ),
    "M-8": frames.attach_receiver(
        frames.source(None, dynamic=True, properties=AmqpMap([(Symbol("supported-dist-modes"), "move")]))
    ),
    "no-map": frames.attach_receiver(frames.source(None, dynamic=True, properties="close")),
}


@pytest.mark.requirement("M-1", "M-7", "M-8")
@pytest.mark.parametrize("attach", WRONG.values(), ids=WRONG)
def test_a_terminus_that_contradicts_itself_is_refused(gateway: GatewayProcess, attach: bytes) -> None:
    with Peer(gateway.port) as peer:
        peer.send(attach)
        assert peer.refused() == "amqp:invalid-field"
        peer.stored("any.other", frames.message())  # nothing else has closed


@pytest.mark.requirement("M-5")
@pytest.mark.parametrize("dynamic", [None, False])
@pytest.mark.parametrize("publishes", [True, False])
def test_properties_of_a_dynamic_node_without_dynamic_are_passed_over(
    gateway: GatewayProcess, node: str, publishes: bool, dynamic: bool | None
) -> None:
    """The node is not theirs to end, and the answer does not repeat them."""
    policy = frames.lifetime(ULong(CLOSE))
    target = frames.target(node, dynamic, "queue", policy)
    source = frames.source(node, dynamic=dynamic, properties=policy)
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message())
        peer.send(frames.attach_sender(target, 3) if publishes else frames.attach_receiver(source, 3))
        answer = terminus(peer.expect("attach"), TARGET if publishes else SOURCE)
        assert (answer[ADDRESS], bool(answer[DYNAMIC]), answer[PROPERTIES]) == (node, False, None)
        peer.send(frames.detach(3))
        assert peer.detached() is None
        peer.there(node, 1)


@pytest.mark.parametrize(
    "policy", [None, Symbol("amqp:delete-on-close:list"), ULong(CLOSE)], ids=["unset", "symbol", "ulong"]
)
@pytest.mark.parametrize("closed", [True, False], ids=["close", "detach"])
@pytest.mark.requirement("M-7", "M-9")
def test_delete_on_close_ends_with_its_link_before_the_answer(
    gateway: GatewayProcess, policy: object, closed: bool
) -> None:
    """Other links of the node are closed with it, and hear why. A DETACH that does not close ends a link whose terminus
    expires with it."""
    with Peer(gateway.port) as peer, Peer(gateway.port) as other, Peer(gateway.port) as idle:
        address = made_to_expire(peer, policy, None if closed else "link-detach")
        other.consumer(address)
        idle.publisher(address)
        peer.send(frames.detach(20, closed=closed))
        answer = peer.expect("detach")
        assert (answer.field(1) is True) is closed and answer.condition is None
        peer.send(frames.attach_receiver(address, 1))  # at once, on the same connection
        assert peer.refused() == "amqp:not-found"
        assert other.detached(1) == "amqp:resource-deleted"  # O-5
        assert idle.detached(0) == "amqp:resource-deleted"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.requirement("M-7")
def test_each_lifetime_ends_with_the_last_thing_that_it_asks_for(gateway: GatewayProcess, policy: int) -> None:
    """The maker, another link, and a message go one after the other."""
    ends = {CLOSE: "maker", NO_LINKS: "link", NO_MESSAGES: "message", NO_LINKS_OR_MESSAGES: "message"}[policy]
    with Peer(gateway.port) as peer, Peer(gateway.port) as other:
        address = make(peer, "publish", policy)
        other.publisher(address, handle=3)
        other.publish(frames.message(b"last"), handle=3)
        other.outcomes(1)
        close(peer, 20)
        assert exists(gateway.port, address) is (ends != "maker")
        if ends == "maker":
            return
        close(other, 3)
        assert exists(gateway.port, address) is (ends != "link")
        if ends == "link":
            return
        # Any other message, seen by who made it, keeps it no longer once it is settled.
        peer.consumer(address, credit=1, handle=5)
        [seen] = peer.receive(1, handle=5)
        assert seen.payload == frames.message(b"last")
        peer.settle([seen.field(1)], frames.state("accepted"))
        close(peer, 5)
        assert comes_to_an_end(gateway.port, address)


@pytest.mark.requirement("M-7")
def test_a_node_without_links_that_was_never_used_ends_with_its_maker(gateway: GatewayProcess) -> None:
    for policy in (NO_MESSAGES, NO_LINKS_OR_MESSAGES):
        for capability in ("temporary-queue", "temporary-topic"):
            with Peer(gateway.port) as peer:
                address = make(peer, "publish", policy, capability=capability)
                close(peer, 20)
                assert not exists(gateway.port, address)


@pytest.mark.requirement("M-10")
@pytest.mark.parametrize("direction", ["publish", "subscribe"])
def test_a_reply_to_of_a_dynamic_address_is_a_target_everywhere(
    gateway: GatewayProcess, node: str, direction: str
) -> None:
    """Request and reply over two connections; the messages are durable and come as they were sent."""
    with Peer(gateway.port) as client, Peer(gateway.port) as service:
        address = make(client, direction)
        if direction == "publish":
            client.consumer(address, handle=20 + 1, name="replies")
        service.stored(node, frames.message_to(node, b"question", reply_to=address))
        service.consumer(node, credit=1)
        [question] = service.receive(1)
        assert question.payload == frames.message_to(node, b"question", reply_to=address)
        durable = encode(Described(ULong(0x70), [True]))
        service.publisher(address, handle=9)
        service.publish(frames.message(b"answer", durable), handle=9)
        assert service.outcomes(1) == {0: "accepted"}
        handle = 21 if direction == "publish" else 20
        client.send(frames.flow(handle, 1, 0))
        assert client.expect("transfer").payload == frames.message(b"answer", durable)


@pytest.mark.requirement("M-9")
@pytest.mark.parametrize("way", ["end", "close", "reset"])
def test_a_node_ends_with_the_session_or_connection_of_its_maker(gateway: GatewayProcess, way: str) -> None:
    peer = Peer(gateway.port)
    address = make(peer)
    assert exists(gateway.port, address)
    if way == "end":
        peer.send(frames.end())
        peer.expect("end")
    elif way == "close":
        peer.send(frames.close())
        peer.expect("close")
    else:
        peer.reset()
    assert comes_to_an_end(gateway.port, address)
    peer.close()


def test_a_link_that_is_refused_after_all_leaves_no_node(gateway: GatewayProcess) -> None:
    """A mode that a temporary topic does not have."""
    with Peer(gateway.port) as peer:
        source = frames.source(None, dynamic=True, mode="move", capability="temporary-topic")
        peer.send(frames.attach_receiver(source))
        assert peer.refused() == "amqp:not-implemented"
    end = time.monotonic() + HANG_S
    while "maker" in (listed := gateway.command("node", "list")) or "temporary" in listed:
        assert time.monotonic() < end, listed
        time.sleep(0.05)


def test_there_are_so_many_at_most_and_an_end_makes_room(few: GatewayProcess) -> None:
    with Peer(few.port) as peer:
        make(peer, handle=20)
        make(peer, handle=21)
        peer.send(frames.attach_receiver(frames.source(None, dynamic=True), 22, "one too many"))
        assert peer.refused() == "amqp:resource-limit-exceeded"
        peer.send(frames.detach(22))
        close(peer, 20)
        make(peer, handle=23)


def test_what_a_killed_gateway_has_left_is_gone_with_its_next_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    gateways = serve(tmp_path_factory)
    gateway = next(gateways)
    with Peer(gateway.port) as peer:
        address = make(peer)
        peer.stored(address, frames.message())
        gateway.kill()
        gateway.start()
        assert not exists(gateway.port, address)
        assert address not in gateway.command("node", "list")
    next(gateways, None)


@pytest.mark.requirement("M-9")
def test_a_node_that_ended_with_its_peer_is_not_made_again(few: GatewayProcess) -> None:
    """Neither by attaching nor by a message on a link without a target: who has gone cannot be answered."""
    with Peer(few.port) as asks, Peer(few.port) as answers:
        address = make(asks)
        answers.send(frames.attach_sender(None))
        answers.expect("attach")
        answers.publish(frames.message_to(address))
        assert answers.outcomes(1) == {0: "accepted"}
        close(asks, 20)
        for number in (1, 2):
            answers.publish(frames.message_to(address))
            assert answers.outcomes(1) == {number: "rejected:amqp:not-found"}
        assert not exists(few.port, address)
        answers.publish(frames.message_to(f"no {address}"))
        assert answers.outcomes(1) == {3: "accepted"}, "any other name is made"


@pytest.mark.parametrize("capability", ["temporary-queue", "temporary-topic"])
@pytest.mark.parametrize("direction", ["publish", "subscribe"])
def test_a_temporary_destination_is_consumed_by_its_own_connection_only(
    gateway: GatewayProcess, direction: str, capability: str
) -> None:
    """JMS 2.0, 6.2.2. Everybody may publish to it, whichever user made it and however it is named."""
    with Peer(gateway.port) as owner, Peer(gateway.port) as other:
        address = make(owner, direction, capability=capability)
        modes = ["copy", None] if capability == "temporary-queue" else [None]
        for handle, mode in enumerate(modes, 1):
            other.send(frames.attach_receiver(frames.source(address, mode=mode), handle, f"theirs-{handle}"))
            assert other.refused() == "amqp:resource-locked"
        if capability == "temporary-topic":
            other.send(frames.attach_receiver(frames.source(address, 2), 5, "durably"))
            assert other.refused() == "amqp:resource-locked"
        owner.consumer(address, credit=1, handle=7, name="ours")
        other.send(frames.begin(1))
        other.expect("begin")
        owner.send(frames.begin(1))
        owner.expect("begin")
        owner.send(frames.attach_receiver(address, 8, "another session", channel=1))
        assert owner.expect("attach").field(SOURCE) is not None
        other.send(frames.attach_sender(address, 6))
        assert other.expect("attach").field(TARGET) is not None
        other.publish(frames.message(b"for you"), handle=6)
        assert other.outcomes(1) == {0: "accepted"}
        assert [seen.payload for seen in owner.receive(1, handle=7)] == [frames.message(b"for you")]


def test_a_dynamic_node_of_no_such_capability_is_its_users(gateway: GatewayProcess) -> None:
    for capability in (None, "queue", "topic"):
        with Peer(gateway.port) as owner, Peer(gateway.port) as other:
            address = make(owner, capability=capability)
            other.consumer(address)


def test_what_outlives_the_connection_that_made_it_is_its_users(gateway: GatewayProcess) -> None:
    """Its messages would keep a node that asked for that for ever, if no one could take them."""
    owner = Peer(gateway.port)
    address = make(owner, "publish", NO_MESSAGES, capability="temporary-queue")
    with Peer(gateway.port) as other:
        other.publisher(address, handle=3)
        other.publish(frames.message(b"last"), handle=3)
        other.outcomes(1)
        other.send(frames.attach_receiver(address, 5, "theirs"))
        assert other.refused() == "amqp:resource-locked"
        owner.send(frames.close())
        owner.expect("close")
        other.send(frames.detach(5))
        other.consumer(address, credit=1, handle=6, name="now")
        [seen] = other.receive(1, handle=6)
        other.settle([seen.field(1)], frames.state("accepted"))
    owner.close()
    assert comes_to_an_end(gateway.port, address)
