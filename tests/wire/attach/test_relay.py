"""The anonymous relay: a link without a target, whose messages say themselves where they go."""

from __future__ import annotations

import pytest

from gateway.config.limits import RELAY_ADDRESSES
from mappings import load_tables
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.node import Node
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import message_to
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from tests.kit.wire.transacting import Transacting
from transformers.codec import AmqpMap, Byte, Described, Symbol, ULong, encode

NOT_FOUND = "rejected:amqp:not-found"
RELAY = 0  # handle


def relay(peer: Peer, mode: int = 2, outcomes: list[str] | None = None) -> None:
    peer.send(frames.attach_sender(frames.target(None), RELAY, "relay", mode, outcomes=outcomes))
    attached = peer.expect("attach")
    assert attached.field(6) is not None, attached
    assert int(peer.expect("flow").field(6)) > 0


def kept(gateway: GatewayProcess, node: str, count: int) -> list[bytes]:
    """The next messages of a queue, settled."""
    with Peer(gateway.port) as peer:
        peer.consumer(node, credit=count)
        seen = peer.receive(count)
        peer.settle([event.field(1) for event in seen], frames.state("accepted"))
        peer.send(frames.detach(1))
        assert peer.detached(1) is None
    return [event.payload for event in seen]


def make(gateway: GatewayProcess, *names: str) -> None:
    with Peer(gateway.port) as peer:
        for handle, name in enumerate(names):
            peer.publisher(name, handle=handle)


def offered(gateway: GatewayProcess) -> list[str]:
    with Peer(gateway.port, begin=False) as peer:
        peer.send(frames.AMQP_HEADER, frames.open_("asks"))
        names = peer.expect("open").field(7)
        return [str(name) for name in getattr(names, "items", [names])]


def test_3_7_the_relay_is_offered_where_it_works_and_only_there(
    gateway: GatewayProcess, documented: GatewayProcess
) -> None:
    assert "ANONYMOUS-RELAY" in offered(gateway)
    assert "ANONYMOUS-RELAY" not in offered(documented)
    with Peer(documented.port) as peer:
        peer.send(frames.attach_sender(None))
        assert peer.refused() == "amqp:not-implemented"


@pytest.mark.requirement("M-11")
def test_a_target_of_nothing_at_all_relays_to_the_nodes_that_messages_name(gateway: GatewayProcess, node: str) -> None:
    """Each has its own answer, in whatever order they come; prefixes count."""
    first, two = f"{node}.one", f"{node}.two"
    make(gateway, first, two)
    with Peer(gateway.port) as peer:
        relay(peer)
        numbers = peer.publish(
            message_to(first, b"1"),
            message_to(first, b"2"),
            message_to(two, b"3"),
            message_to(f"queue://{first}", b"4"),
            message_to("missing", b"5"),
            message_to(f"topic://{two}", b"6"),
            frames.message(b"7"),
            message_to("", b"8"),
            message_to("x" * 2000, b"9"),
            message_to(two, b"10"),
        )
        outcomes = peer.outcomes(len(numbers))
        assert [outcomes[number] for number in numbers] == ["accepted"] * 4 + [NOT_FOUND] * 5 + ["accepted"]
        peer.publish(message_to(two, b"the link goes on"))
        assert set(peer.outcomes(1).values()) == {"accepted"}
    assert kept(gateway, first, 3) == [
        message_to(first, b"1"),
        message_to(first, b"2"),
        message_to(f"queue://{first}", b"4"),
    ]
    assert kept(gateway, two, 3) == [message_to(two, body) for body in (b"3", b"10", b"the link goes on")]


def test_a_node_made_a_moment_ago_is_found_and_nothing_overtakes(gateway: GatewayProcess, node: str) -> None:
    """The gateway has not heard of the first one yet; what follows on the connection waits for it."""
    fresh = f"fresh/{node}"
    make(gateway, node)
    with Transacting(gateway.port) as peer:
        relay(peer)
        gateway.command("node", "create", fresh)
        peer.publish(message_to(fresh, b"1"), message_to(node, b"2"), message_to(fresh, b"3"))
        peer.send(frames.detach(RELAY))
        assert peer.until("detach").condition is None
    assert kept(gateway, fresh, 2) == [message_to(fresh, b"1"), message_to(fresh, b"3")]
    assert kept(gateway, node, 1) == [message_to(node, b"2")]


def test_a_node_deleted_and_made_anew_gets_the_next_message(gateway: GatewayProcess, node: str) -> None:
    name = f"again/{node}"
    gateway.command("node", "create", name)
    with Peer(gateway.port) as peer:
        relay(peer)
        peer.publish(message_to(name, b"first"))
        assert peer.outcomes(1) == {0: "accepted"}
        gateway.command("node", "delete", name, "--yes")
        peer.publish(message_to(name))
        assert peer.outcomes(1) == {1: NOT_FOUND}
        peer.send(frames.attach_sender(name, 5, "probe"))  # the gateway has read that it is gone
        assert peer.refused() == "amqp:not-found"
        gateway.command("node", "create", name)
        peer.publish(message_to(name, b"second"))
        assert peer.outcomes(1) == {2: "accepted"}
    assert kept(gateway, name, 1) == [message_to(name, b"second")]


def test_a_peer_that_takes_no_outcome_loses_the_link(gateway: GatewayProcess, node: str) -> None:
    """Sent settled, or `rejected` was not agreed on: the DETACH tells, and names the message."""
    make(gateway, node)
    with Peer(gateway.port) as peer:
        relay(peer)
        peer.publish(message_to(node, b"settled"), message_to("missing"), settled=True)
        assert peer.detached() == "amqp:not-found"
    assert kept(gateway, node, 1) == [message_to(node, b"settled")]
    with Peer(gateway.port) as peer:
        relay(peer, outcomes=["accepted"])
        peer.publish(message_to("missing"))
        assert peer.detached() == "amqp:not-found"


def test_rights_are_those_of_each_node_and_of_now(gateway: GatewayProcess, node: str) -> None:
    """A change is heard of within about a second; the link goes on."""
    mine, theirs = f"{node}.mine", f"{node}.theirs"
    denied = "rejected:amqp:unauthorized-access"

    def comes_to(outcome: str) -> None:
        def told() -> bool:
            [number] = peer.publish(message_to(theirs))
            return peer.outcomes(1) == {number: outcome}

        until(told, f"the outcome {outcome}")

    make(gateway, mine, theirs)
    with Peer(gateway.port) as peer:
        relay(peer)
        gateway.command("acl", "grant", "user:alice", "publish", "--node", theirs)
        comes_to(denied)
        first, second, third = peer.publish(message_to(theirs), message_to(mine), message_to(theirs))
        assert peer.outcomes(3) == {first: denied, second: "accepted", third: denied}
        gateway.command("acl", "grant", "user:anonymous", "publish", "--node", theirs)
        comes_to("accepted")
        gateway.command("acl", "revoke", "user:anonymous", "publish", "--node", theirs)
        comes_to(denied)


def test_more_addresses_than_are_kept_at_hand(gateway: GatewayProcess, node: str) -> None:
    names = [f"{node}.{number}" for number in range(RELAY_ADDRESSES + 20)]
    make(gateway, *names)
    with Peer(gateway.port) as peer:
        relay(peer)
        for _ in range(2):
            numbers = peer.publish(*(message_to(name, name.encode()) for name in names))
            assert set(peer.outcomes(len(numbers)).values()) == {"accepted"}
    for name in (names[0], names[-1]):
        assert kept(gateway, name, 2) == [message_to(name, name.encode())] * 2


def test_a_spread_node_and_a_message_in_several_frames(gateway: GatewayProcess, node: str) -> None:
    name = f"spread/{node}"
    gateway.command("node", "create", name, "--partitions", "3")
    large = message_to(name, b"x" * 200_000)
    groups = [
        encode(Described(ULong(0x73), [None, None, name, *[None] * 7, f"group-{number}"])) + frames.message()
        for number in range(20)
    ]
    with Peer(gateway.port) as peer:
        relay(peer)
        pieces = [large[at : at + 50_000] for at in range(0, len(large), 50_000)]
        for at, piece in enumerate(pieces):
            peer.send(frames.transfer(0, piece, RELAY, more=at < len(pieces) - 1))
        assert peer.outcomes(1) == {0: "accepted"}
        for number, message in enumerate(groups, 1):
            peer.send(frames.transfer(number, message, RELAY))
        assert set(peer.outcomes(20).values()) == {"accepted"}
    assert sorted(kept(gateway, name, 21)) == sorted([large, *groups])


def test_a_transaction_through_the_relay_is_all_or_none(gateway: GatewayProcess, node: str) -> None:
    """Also with a node that is not known yet, and a discharge right behind."""
    known, fresh = f"{node}.one", f"fresh/{node}"
    make(gateway, known)
    with Transacting(gateway.port) as peer:
        peer.control()
        relay(peer)
        transaction = peer.declare()
        undone = peer.post(transaction, message_to(known, b"undone"))
        last = peer.number()
        peer.send(frames.discharge(last, transaction, fail=True))
        assert peer.until_told(undone, last)[last] == "accepted"
        transaction = peer.declare()
        gateway.command("node", "create", fresh)
        numbers = peer.post(transaction, message_to(fresh, b"1"), message_to(known, b"2"), message_to(fresh, b"3"))
        last = peer.number()
        peer.send(frames.discharge(last, transaction, fail=False))
        seen = peer.until_told(numbers, last)
        assert seen[last] == "accepted" and {seen[number] for number in numbers} == {"transactional accepted"}
    assert kept(gateway, known, 1) == [message_to(known, b"2")]
    assert kept(gateway, fresh, 2) == [message_to(fresh, b"1"), message_to(fresh, b"3")]


def test_a_message_without_a_destination_is_rejected_inside_its_transaction_and_the_link_goes_on(
    gateway: GatewayProcess, node: str
) -> None:
    """As at any link (table `posted`), but that this one stays."""
    make(gateway, node)
    with Transacting(gateway.port) as peer:
        peer.control()
        relay(peer)
        for body in (b"first", b"second"):
            transaction = peer.declare()
            good, bad = peer.post(transaction, message_to(node, body), message_to("missing"))
            number = peer.number()
            peer.send(frames.discharge(number, transaction))
            seen = peer.until_told([good, bad], number)
            assert seen == {good: "transactional accepted", bad: f"transactional {NOT_FOUND}", number: "accepted"}
    assert kept(gateway, node, 2) == [message_to(node, b"first"), message_to(node, b"second")]


def to_destination(address: str, kind: int, body: bytes = b"body") -> bytes:
    """As JMS sends it: the annotation says what the address is."""
    pairs = AmqpMap([(Symbol("x-opt-jms-dest"), Byte(kind))])
    return encode(Described(ULong(0x72), pairs)) + message_to(address, body)


def test_a_message_makes_its_node_as_an_attach_would_and_nothing_overtakes(gateway: GatewayProcess, node: str) -> None:
    """Where a pattern of `nodes.create_on_attach` matches; what follows on the connection waits for it."""
    plain, jms, prefixed = (f"{node}.{name}" for name in ("plain", "jms", "prefixed"))
    with Peer(gateway.port) as peer, Peer(gateway.port) as reader:
        relay(peer)
        numbers = peer.publish(
            message_to(plain, b"1"),
            message_to(f"not-{node}"),
            to_destination(jms, 1, b"2"),
            message_to(plain, b"3"),
            message_to(f"topic://{prefixed}"),
            to_destination(f"{node}.gone", 2),
            to_destination(f"{node}.gone", 3),
            message_to(plain, b"4"),
        )
        outcomes = peer.outcomes(len(numbers))
        assert [outcomes[number] for number in numbers] == [
            "accepted",
            NOT_FOUND,
            *["accepted"] * 3,
            *[NOT_FOUND] * 2,
            "accepted",
        ]
        for handle, address in enumerate((f"topic://{jms}", f"topic://{prefixed}", f"queue://{plain}"), 1):
            reader.consumer(address, handle=handle, name=address)
    assert kept(gateway, plain, 3) == [message_to(plain, body) for body in (b"1", b"3", b"4")]


def test_a_transaction_makes_its_nodes(gateway: GatewayProcess, node: str) -> None:
    with Transacting(gateway.port) as peer:
        peer.control()
        relay(peer)
        transaction = peer.declare()
        numbers = peer.post(
            transaction, message_to(f"{node}.one"), message_to(f"{node}.two"), message_to(f"{node}.one")
        )
        last = peer.number()
        peer.send(frames.discharge(last, transaction))
        seen = peer.until_told(numbers, last)
        assert seen == {**dict.fromkeys(numbers, "transactional accepted"), last: "accepted"}
    assert len(kept(gateway, f"{node}.one", 2) + kept(gateway, f"{node}.two", 1)) == 3


class LookingUp(ScriptedRealm):
    """Knows of no node at once, and finds every one when it is asked."""

    def node(self, name: str) -> Node:
        return None  # type: ignore[return-value]

    def find_node(self, name: str, owner: object) -> None:
        self.answer("find", NodeFound(owner, super().node(name), "ready", ""))


@pytest.mark.requirement("W-5")
@pytest.mark.parametrize("how", ["stolen", "detached"])
def test_what_waits_for_its_node_is_posted_or_its_discharge_fails(how: str) -> None:
    """The discharge is read behind the message. Meanwhile another connection takes the link's name; or the peer has
    detached the link, which comes behind the message, too."""
    realm = LookingUp()
    gateway = build_gateway(load_tables(), realm)
    peer = Conversation(gateway, "app")
    relaying = frames.attach_sender(frames.target(None), RELAY, "relay")
    peer.say(frames.attach_sender(frames.COORDINATOR, 7, "control"), relaying)
    [declared] = [seen for seen in peer.say(frames.declare(peer.number())) if seen.name == "disposition"]
    transaction = declared.field(4).value[0]
    realm.holds.add("find")
    posted = frames.transfer(peer.number(), message_to("q"), RELAY, state=frames.in_transaction(transaction))
    left = frames.detach(RELAY) if how == "detached" else b""
    number = peer.number()
    peer.say(posted, left, frames.discharge(number, transaction))
    if how == "stolen":
        Conversation(gateway, "app").say(relaying)
    realm.release()
    peer.listen()
    states = {seen.field(1): seen.state for seen in peer.seen if seen.name == "disposition"}
    stored = len(realm.store("q").values)
    assert (states[number], stored) == (
        ("rejected:amqp:transaction:rollback", 0) if how == "stolen" else ("accepted", 1)
    )
