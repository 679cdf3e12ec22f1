"""Filters on the wire: what a selector lets through, what becomes of the rest, and what is refused."""

from __future__ import annotations

import pytest

from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.filters import NUMERIC, SYMBOLIC, numbered, selector
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, ULong


@pytest.mark.requirement("J-2")
@pytest.mark.parametrize("descriptor", [SYMBOLIC, NUMERIC])
def test_J_2_a_selector_lets_through_what_matches_and_is_echoed(
    gateway: GatewayProcess, node: str, descriptor: Symbol | ULong
) -> None:
    """Known by its descriptor, in both forms, whatever its key."""
    messages = numbered(20)
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages)
        filters = selector("number >= 15", descriptor, "any key")
        attached = peer.consumer(frames.source(node, filters=filters), credit=10)
        assert attached.field(5).value[7] == filters
        got = peer.receive(5)
        assert [seen.payload for seen in got] == messages[15:]
        peer.credit(10, drain=True)
        assert peer.drained()
        peer.settle([seen.field(1) for seen in got], frames.state("accepted"))
        peer.consumer(node, credit=20, handle=2, name="all the others")
        assert [seen.payload for seen in peer.receive(15, handle=2)] == messages[:15]


@pytest.mark.parametrize("durable", [0, 2])
def test_a_selector_chooses_for_a_subscriber(gateway: GatewayProcess, node: str, durable: int) -> None:
    messages = numbered(30)
    with Peer(gateway.port) as peer:
        peer.publisher(node, "channel", handle=5)
        peer.consumer(frames.source(node, durable, filters=selector("number BETWEEN 10 AND 12")), credit=10)
        peer.stored(node, *messages, kind="channel")
        got = peer.receive(3)
        assert [seen.payload for seen in got] == messages[10:13]
        peer.settle([seen.field(1) for seen in got], frames.state("accepted"))
        peer.nothing()


@pytest.mark.requirement("J-6")
@pytest.mark.parametrize("kind", ["queue", "channel"])
@pytest.mark.parametrize(
    ("text", "position"), [("a = = 1", 5), ("a = 'x", 5), ("1 +", 4), ("a = 1 OR " * 1000 + "a = 1", 8193)]
)
def test_S_R1d_J_6_a_selector_that_cannot_be_read_ends_the_link_and_says_where(
    gateway: GatewayProcess, node: str, kind: str, text: str, position: int
) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, kind, handle=5)
        peer.send(frames.attach_receiver(frames.source(node, filters=selector(text))))
        attached, detached = peer.expect("attach"), peer.expect("detach")
        assert attached.field(5) is None and detached.field(1) is True
        assert detached.condition == "amqp:invalid-field"
        assert f"at character {position}:" in detached.field(2).value[1]
        peer.consumer(node, handle=2, name="another")  # the session goes on


@pytest.mark.requirement("K-4", "V-1", "V-2")
def test_V_1_V_2_K_4_a_copy_link_sees_a_queue_and_takes_nothing(gateway: GatewayProcess, node: str) -> None:
    """Two of them see all; a rejection there changes nothing; the drain is answered when all was seen."""
    messages = numbered(12)
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages)
        for handle in (1, 2):
            attached = peer.consumer(frames.source(node, mode="copy"), handle=handle, name=f"browser-{handle}")
            assert attached.field(5).value[6] == "copy"
            peer.credit(100, handle, drain=True)
            got = peer.receive(12, handle)
            assert [seen.payload for seen in got] == messages
            assert peer.drained(handle)
            peer.settle([seen.field(1) for seen in got], frames.state("rejected"))
        some = frames.source(node, mode="copy", filters=selector("number = 7"))
        peer.consumer(some, handle=3, name="some of it")
        peer.credit(5, 3, drain=True)
        assert [seen.payload for seen in peer.receive(1, 3)] == messages[7:8]
        assert peer.drained(3)
        peer.consumer(node, credit=20, handle=4, name="the one that takes")
        assert [seen.payload for seen in peer.receive(12, 4)] == messages


@pytest.mark.requirement("V-1")
@pytest.mark.parametrize("state", ["accepted", "rejected"])
def test_V_1_a_browser_never_sees_what_was_ended_before_it_asked(
    gateway: GatewayProcess, node: str, state: str
) -> None:
    """All is on one connection: the outcome is read before the credit, and the journal may not have it yet."""
    messages = numbered(20)
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages)
        for handle in range(2, 7):
            peer.consumer(frames.source(node, mode="copy"), handle=handle, name=f"browser-{handle}")
        peer.consumer(node, credit=20)
        numbers = [seen.field(1) for seen in peer.receive(20)]
        for handle in range(2, 7):
            at = 3 * (handle - 2)
            peer.settle(numbers[at : at + 3], frames.state(state))
            peer.credit(100, handle, drain=True)
            assert [seen.payload for seen in peer.receive(17 - at, handle)] == messages[at + 3 :]
            assert peer.drained(handle)


def tags(messages: list[frames.Seen]) -> list[int]:
    """EIDs, as the delivery tags say."""
    return [int(bytes(seen.field(2)).split(b":")[1]) for seen in messages]


@pytest.mark.parametrize("durable", [0, 2])
def test_a_position_says_where_a_subscriber_begins(gateway: GatewayProcess, node: str, durable: int) -> None:
    def started(*filters: Described) -> tuple[AmqpMap, str]:
        return AmqpMap([(Symbol(f"f{at}"), spec) for at, spec in enumerate(filters)]), f"link {next(names)}"

    names = iter(range(100))
    messages = numbered(10)
    offset = Symbol("rabbitmq:stream-offset-spec")
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages, kind="channel")
        filter_set, name = started(Described(offset, "first"))
        peer.consumer(frames.source(node, durable, filters=filter_set), credit=20, handle=1, name=name)
        got = peer.receive(10)
        eids = tags(got)
        assert [seen.payload for seen in got] == messages
        for handle, filters in enumerate(
            [
                (Described(offset, ULong(eids[4])),),
                (Described(SYMBOLIC, f"amqp.annotation.x-opt-offset > '{eids[3]}'"),),
                (Described(SYMBOLIC, f"amqp.annotation.x-opt-sequence-number >= '{eids[4]}'"),),
                (Described(offset, Timestamp(0)), Described(SYMBOLIC, "number >= 4")),
            ],
            2,
        ):
            filter_set, name = started(*filters)
            peer.consumer(frames.source(node, durable, filters=filter_set), credit=20, handle=handle, name=name)
            assert tags(peer.receive(6, handle)) == eids[4:]
        later = Described(SYMBOLIC, "amqp.annotation.x-opt-offset > '@latest'")
        filter_set, name = started(later)
        peer.consumer(frames.source(node, durable, filters=filter_set), credit=20, handle=9, name=name)
        peer.nothing()


def test_a_drain_waits_until_all_was_looked_at(gateway: GatewayProcess, node: str) -> None:
    """More than is looked at in one turn lies before the match."""
    messages = numbered(3000)
    with Peer(gateway.port) as peer:
        peer.stored(node, *messages)
        peer.consumer(frames.source(node, filters=selector("number = 2999")))
        peer.credit(5, drain=True)
        assert [seen.payload for seen in peer.receive(1)] == messages[2999:]
        assert peer.drained()


def test_containers_that_want_none_of_their_own_are_so_many_at_most() -> None:
    """One more is refused by table `fault`, and recorded; it can subscribe without that, and when another has left."""
    realm = ScriptedRealm()
    gateway = build_gateway(load_tables(), realm, no_local_containers=1)
    own = AmqpMap([(Symbol("no-local"), Described(ULong(0x468C00000003), []))])
    first, other = Conversation(gateway, "one"), Conversation(gateway, "other")
    for handle in (1, 2):
        reply = first.say(frames.attach_receiver(frames.source("c", filters=own), handle, f"link-{handle}"))
        assert [seen.name for seen in reply] == ["attach"]
    attach = frames.attach_receiver(frames.source("c", filters=own), 1, "late")
    attached, detached = other.say(attach)
    assert (attached.field(5), detached.condition) == (None, "amqp:resource-limit-exceeded")
    assert gateway.faults["too-many-containers"] == 1
    other.say(frames.detach(1))
    assert [seen.name for seen in other.say(frames.attach_receiver("c", 2, "plain"))] == ["attach"]
    first.say(frames.detach(1), frames.detach(2))
    assert [seen.name for seen in other.say(attach)] == ["attach"]
    gateway.outcomes.decisions.close()
    gateway.outcomes.flush(at_once=True)
    assert any(
        b'"fault":"too-many-containers"' in record and b'"container":"other"' in record for record in realm.evidence
    )
