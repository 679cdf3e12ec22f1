"""Dynamic nodes: what is asked, what is answered, how long they live, and who may use them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.gateway_process import GatewayProcess
from tests.patience import HANG_S
from tests.wire import frames
from tests.wire.conftest import serve
from tests.wire.frames import Seen
from tests.wire.peer import Peer
from transformers.amqp_types import AmqpMap, Array, Described, Symbol, ULong, encode

CLOSE, NO_LINKS, NO_MESSAGES, NO_LINKS_OR_MESSAGES = range(0x2B, 0x2F)
POLICIES = (CLOSE, NO_LINKS, NO_MESSAGES, NO_LINKS_OR_MESSAGES)
SOURCE, TARGET = 5, 6
ADDRESS, DYNAMIC, PROPERTIES = 0, 4, 5


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Two temporary nodes at most; any other node is made by whoever names it."""
    yield from serve(tmp_path_factory, limits={"temporary_nodes": 2}, nodes={"create_on_attach": ["*"]})


def terminus(attached: Seen, at: int) -> list[object]:
    found = attached.field(at)
    assert isinstance(found, Described), attached
    return list(found.value) + [None] * (8 - len(found.value))


def make(
    peer: Peer,
    direction: str = "subscribe",
    policy: int | None = CLOSE,
    handle: int = 20,
    capability: str | None = None,
) -> str:
    """A dynamic node; its name."""
    properties = None if policy is None else frames.lifetime(ULong(policy))
    if direction == "publish":
        asked = frames.target(None, dynamic=True, capability=capability, properties=properties)
        peer.send(frames.attach_sender(asked, handle, f"maker, {handle}"))
    else:
        source = frames.source(None, dynamic=True, capability=capability, properties=properties)
        peer.send(frames.attach_receiver(source, handle, f"maker, {handle}"))
    answer = terminus(peer.expect("attach"), TARGET if direction == "publish" else SOURCE)
    assert isinstance(answer[ADDRESS], str) and answer[DYNAMIC] is True, answer  # M-2
    return str(answer[ADDRESS])


def exists(port: int, address: str) -> bool:
    """Whether somebody else can attach to it."""
    with Peer(port) as probe:
        probe.send(frames.attach_sender(address))
        attached = probe.expect("attach")
        if attached.field(TARGET) is not None:
            return True
        assert probe.detached() == "amqp:not-found"
        return False


def comes_to_an_end(port: int, address: str) -> bool:
    end = time.monotonic() + HANG_S
    while exists(port, address):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def close(peer: Peer, handle: int) -> None:
    """Closing, until it is answered."""
    peer.send(frames.detach(handle))
    assert peer.detached() is None


@pytest.mark.parametrize("direction", ["publish", "subscribe"])
@pytest.mark.parametrize(
    ("capability", "modes"), [("temporary-queue", ["move", "copy"]), ("temporary-topic", ["copy"])]
)
@pytest.mark.requirement("M-2", "M-3", "M-4", "M-6", "M-8")
def test_the_answer_says_what_was_made(
    house: GatewayProcess, direction: str, capability: str, modes: list[str]
) -> None:
    with Peer(house.port, "a container") as peer:
        first = make(peer, direction, NO_LINKS, capability=capability)
        assert (
            first.startswith("temporary:a container.maker, 20.") and len(first.rpartition(".")[2]) == 32
        )  # 128 bits, hex
        properties = frames.lifetime(ULong(NO_LINKS))
        if direction == "publish":
            asked = frames.attach_sender(frames.target(None, True, capability, properties), 21, "other")
        else:
            asked = frames.attach_receiver(
                frames.source(None, dynamic=True, capability=capability, properties=properties), 21, "other"
            )
        peer.send(asked)
        answer = terminus(peer.expect("attach"), TARGET if direction == "publish" else SOURCE)
        assert answer[ADDRESS] != first
        found = answer[PROPERTIES]
        assert isinstance(found, AmqpMap)
        actual = {str(key): value for key, value in found.pairs}
        assert actual["lifetime-policy"] == Described(ULong(NO_LINKS), [])
        assert isinstance(actual["supported-dist-modes"], Array)
        assert [str(mode) for mode in actual["supported-dist-modes"].items] == modes


WRONG = {
    "M-1-target": frames.attach_sender(frames.target("any.name", dynamic=True)),
    "M-1-source": frames.attach_receiver(frames.source("any.name", dynamic=True)),
    "M-5-target": frames.attach_sender(frames.target("any.name", properties=frames.lifetime(ULong(CLOSE)))),
    "M-5-source": frames.attach_receiver(frames.source("any.name", properties=frames.lifetime(ULong(CLOSE)))),
    "M-7": frames.attach_receiver(frames.source(None, dynamic=True, properties=frames.lifetime(ULong(0x2F)))),
    "M-7-symbol": frames.attach_receiver(
        frames.source(None, dynamic=True, properties=frames.lifetime(Symbol("for-ever")))
    ),
    "M-8": frames.attach_receiver(
        frames.source(None, dynamic=True, properties=AmqpMap([(Symbol("supported-dist-modes"), "move")]))
    ),
    "no-map": frames.attach_receiver(frames.source(None, dynamic=True, properties="close")),
}


@pytest.mark.requirement("M-1", "M-5", "M-7", "M-8")
@pytest.mark.parametrize("attach", WRONG.values(), ids=WRONG)
def test_a_terminus_that_contradicts_itself_is_refused(house: GatewayProcess, attach: bytes) -> None:
    with Peer(house.port) as peer:
        peer.send(attach)
        assert peer.refused() == "amqp:invalid-field"
        peer.stored("any.other", frames.message())  # nothing else has closed


@pytest.mark.parametrize(
    "policy", [None, Symbol("amqp:delete-on-close:list"), ULong(CLOSE)], ids=["unset", "symbol", "ulong"]
)
@pytest.mark.parametrize("closed", [True, False], ids=["close", "detach"])
@pytest.mark.requirement("M-7", "M-9")
def test_delete_on_close_ends_with_its_link_before_the_answer(
    house: GatewayProcess, policy: object, closed: bool
) -> None:
    """Other links of the node are closed with it, and hear why."""
    with Peer(house.port) as peer, Peer(house.port) as other:
        properties = None if policy is None else frames.lifetime(policy)
        peer.send(frames.attach_sender(frames.target(None, dynamic=True, properties=properties), 20, "maker"))
        address = terminus(peer.expect("attach"), TARGET)[ADDRESS]
        assert isinstance(address, str)
        other.consumer(address)
        peer.send(frames.detach(20, closed=closed))
        answer = peer.expect("detach")
        assert (answer.field(1) is True) is closed and answer.condition is None
        peer.send(frames.attach_receiver(address, 1))  # at once, on the same connection
        assert peer.refused() == "amqp:not-found"
        assert other.detached(1) == "amqp:resource-deleted"  # O-5


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.requirement("M-7")
def test_each_lifetime_ends_with_the_last_thing_that_it_asks_for(house: GatewayProcess, policy: int) -> None:
    """The maker, another link, and a message go one after the other."""
    ends = {CLOSE: "maker", NO_LINKS: "link", NO_MESSAGES: "message", NO_LINKS_OR_MESSAGES: "message"}[policy]
    with Peer(house.port) as peer, Peer(house.port) as other:
        address = make(peer, "publish", policy)
        other.publisher(address, handle=3)
        other.publish(frames.message(b"last"), handle=3)
        other.outcomes(1)
        close(peer, 20)
        assert exists(house.port, address) is (ends != "maker")
        if ends == "maker":
            return
        close(other, 3)
        assert exists(house.port, address) is (ends != "link")
        if ends == "link":
            return
        # Any other message, seen by who made it, keeps it no longer once it is settled.
        peer.consumer(address, credit=1, handle=5)
        [seen] = peer.receive(1, handle=5)
        assert seen.payload == frames.message(b"last")
        peer.settle([seen.field(1)], frames.state("accepted"))
        close(peer, 5)
        assert comes_to_an_end(house.port, address)


@pytest.mark.requirement("M-7")
def test_a_node_without_links_that_was_never_used_ends_with_its_maker(house: GatewayProcess) -> None:
    for policy in (NO_MESSAGES, NO_LINKS_OR_MESSAGES):
        for capability in ("temporary-queue", "temporary-topic"):
            with Peer(house.port) as peer:
                address = make(peer, "publish", policy, capability=capability)
                close(peer, 20)
                assert not exists(house.port, address)


@pytest.mark.requirement("M-10")
@pytest.mark.parametrize("direction", ["publish", "subscribe"])
def test_a_reply_to_of_a_dynamic_address_is_a_target_everywhere(
    house: GatewayProcess, node: str, direction: str
) -> None:
    """Request and reply over two connections; the messages are durable and come as they were sent."""
    with Peer(house.port) as client, Peer(house.port) as service:
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
def test_a_node_ends_with_the_session_or_connection_of_its_maker(house: GatewayProcess, way: str) -> None:
    peer = Peer(house.port)
    address = make(peer)
    assert exists(house.port, address)
    if way == "end":
        peer.send(frames.end())
        peer.expect("end")
    elif way == "close":
        peer.send(frames.close())
        peer.expect("close")
    else:
        peer.reset()
    assert comes_to_an_end(house.port, address)
    peer.close()


def test_a_link_that_is_refused_after_all_leaves_no_node(house: GatewayProcess) -> None:
    """A mode that a temporary topic does not have."""
    with Peer(house.port) as peer:
        source = frames.source(None, dynamic=True, mode="move", capability="temporary-topic")
        peer.send(frames.attach_receiver(source))
        assert peer.refused() == "amqp:not-implemented"
    end = time.monotonic() + HANG_S
    while "maker" in (listed := house.command("node", "list")) or "temporary" in listed:
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
    houses = serve(tmp_path_factory)
    house = next(houses)
    with Peer(house.port) as peer:
        address = make(peer)
        peer.stored(address, frames.message())
        house.kill()
        house.start()
        assert not exists(house.port, address)
        assert address not in house.command("node", "list")
    next(houses, None)


@pytest.mark.requirement("M-9")
def test_nobody_makes_a_node_anew_that_ended_with_its_peer(few: GatewayProcess) -> None:
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
