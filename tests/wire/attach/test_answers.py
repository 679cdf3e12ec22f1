"""What BEGIN and ATTACH answer: what holds, well typed, and nothing of what was asked for that does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config.limits import Limits
from gateway.frames import frame_reader
from mappings import load_tables
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_realm import ScriptedRealm
from transformers.codec import AmqpMap, Array, Described, Symbol, UByte, UInt, ULong

SOURCE, TARGET = 5, 6
ADDRESS, DURABLE, EXPIRY, TIMEOUT, DYNAMIC, PROPERTIES, MODE, FILTER, DEFAULT, OUTCOMES, CAPABILITIES = range(11)
TARGET_CAPABILITIES = 6
SYMBOLS = 0xA3


def symbols(*names: str) -> Array:
    return Array(SYMBOLS, [Symbol(name) for name in names])


def at(terminus: Described | None, index: int) -> Any:
    assert terminus is not None
    return terminus.value[index] if index < len(terminus.value) else None


def attach(role: bool, source: Any, target: Any, name: str = "link", handle: int = 0, **more: Any) -> bytes:
    """`role` true: the peer receives. `more`: unsettled."""
    modes = [UByte(2), UByte(0)]
    tail = [more.get("unsettled"), None, None if role else UInt(0), more.get("size")]
    return frames.frame(frames.ATTACH, [name, UInt(handle), role, *modes, source, target, *tail])


def answered(peer: Peer, octets: bytes) -> Seen:
    peer.send(octets)
    return peer.expect("attach")


# -- BEGIN


def test_D6_a_session_says_how_many_links_it_may_have(gateway: GatewayProcess, small: GatewayProcess) -> None:
    for server, handle_max in ((gateway, 1023), (small, 2)):
        peer = Peer(server.port, begin=False)
        peer.send(frames.AMQP_HEADER, frames.open_(), frames.begin(), frames.begin(3))
        assert peer.expect("open").field(3) == 1023
        for channel in (0, 3):
            begun = peer.expect("begin")
            assert (begun.field(0), begun.field(4)) == (channel, handle_max)
        peer.close()


def test_D6_every_handle_up_to_the_highest_works_and_one_above_closes_the_connection(
    small: GatewayProcess, node: str
) -> None:
    with Peer(small.port) as peer:
        for handle in (0, 2, 1):
            peer.publisher(node, handle=handle)
        peer.send(frames.attach_sender(node, 3, "one more"))
        assert peer.expect("close").condition == "amqp:connection:framing-error"
        assert peer.closed()


def test_D6_a_handle_is_free_again_as_often_as_its_link_is_detached(small: GatewayProcess, node: str) -> None:
    """Closed, or detached only: neither is a link any more."""
    with Peer(small.port) as peer:
        for closed in [True, False] * 6:
            peer.publisher(node, handle=2)
            peer.send(frames.detach(2, closed))
            peer.expect("detach")


def test_a_thousand_sessions_and_a_thousand_links_are_answered(gateway: GatewayProcess, node: str) -> None:
    """As many as we announce."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=0)
        for first in range(1, 1024, 93):
            channels = range(first, min(first + 93, 1024))
            peer.send(*map(frames.begin, channels))
            assert [peer.expect("begin").field(0) for _ in channels] == [*channels]
        for first in range(1, 1024, 93):
            handles = range(first, min(first + 93, 1024))
            peer.send(*(frames.attach_sender(node, handle, f"link {handle}") for handle in handles))
            answered = {peer.expect("attach").field(0) for _ in handles}
            assert answered == {f"link {handle}" for handle in handles}
        for number, handle in enumerate((0, 500, 1023)):
            peer.publish(frames.message(), handle=handle)
            assert peer.outcomes(1) == {number: "accepted"}


# -- the peer's own terminus


GIVEN = {
    "nothing": [],
    "outcomes": [None] * 9 + [symbols("amqp:accepted:list", "amqp:rejected:list")],
    "all-of-it": [
        None,
        UInt(2),
        Symbol("never"),
        UInt(30),
        None,
        None,
        Symbol("copy"),
        None,
        Described(ULong(0x27), [True]),
        symbols("amqp:accepted:list", "amqp:modified:list"),
        symbols("queue", "whatever"),
    ],
    "address": ["mine", None, Symbol("link-detach")],
}


@pytest.mark.requirement("O-3")
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("to", ["node", "relay", "coordinator"])
def test_D10_the_source_of_a_publisher_is_answered_as_it_gave_it(
    gateway: GatewayProcess, node: str, given: str, to: str
) -> None:
    targets = {"node": frames.target(node), "relay": frames.target(None), "coordinator": frames.COORDINATOR}
    with Peer(gateway.port) as peer:
        source = Described(ULong(0x28), GIVEN[given])
        answer = answered(peer, attach(False, source, targets[to]))
        assert answer.field(SOURCE) == source
        assert answer.field(TARGET) is not None


def test_D10_a_source_of_null_is_answered_with_null(gateway: GatewayProcess, node: str) -> None:
    """The peer has none (2.6.3)."""
    with Peer(gateway.port) as peer:
        assert answered(peer, attach(False, None, frames.target(node))).field(SOURCE) is None


def test_the_target_of_a_consumer_is_answered_as_it_gave_it(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        for handle, fields in enumerate(([], ["mine", UInt(1), Symbol("never"), UInt(3), None, None, symbols("x")])):
            target = Described(ULong(0x29), fields)
            answer = answered(peer, attach(True, frames.source(node), target, f"l{handle}", handle))
            assert answer.field(TARGET) == target


# -- ours


def test_what_is_kept_for_a_consumer_of_a_queue_is_what_the_answer_says(gateway: GatewayProcess, node: str) -> None:
    """It keeps nothing of the link, whatever it is asked for, and has only those capabilities that the node has."""
    wanted = [node, UInt(2), Symbol("never"), UInt(30), None, None, None, None, None, None]
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        source = Described(ULong(0x28), [*wanted, symbols("queue", "topic", "temporary-queue", "x")])
        answer = answered(peer, attach(True, source, frames.target(None))).field(SOURCE)
        assert [at(answer, index) for index in (ADDRESS, DURABLE, EXPIRY, TIMEOUT)] == [node, 0, "session-end", 0]
        assert at(answer, MODE) == "move" and at(answer, CAPABILITIES) == symbols("queue")
        source = Described(ULong(0x28), [node, None, Symbol("link-detach")])
        answer = answered(peer, attach(True, source, frames.target(None), "two", 1)).field(SOURCE)
        assert [at(answer, index) for index in (DURABLE, EXPIRY, CAPABILITIES)] == [0, "link-detach", None]


def test_what_is_kept_for_a_publisher_is_what_the_answer_says(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        fields = [node, UInt(2), Symbol("never"), UInt(9), None, None, symbols("topic", "queue")]
        answer = answered(peer, attach(False, frames.source(None), Described(ULong(0x29), fields)))
        target = answer.field(TARGET)
        assert [at(target, index) for index in range(4)] == [node, 0, "session-end", 0]
        assert at(target, TARGET_CAPABILITIES) == symbols("topic")
        assert answer.field(10) == Limits().message_size_bytes


def test_a_coordinator_and_a_relay_say_how_large_a_message_may_be(gateway: GatewayProcess) -> None:
    with Peer(gateway.port) as peer:
        for handle, target in enumerate((frames.COORDINATOR, frames.target(None))):
            answer = answered(peer, attach(False, frames.source(None), target, f"l{handle}", handle))
            assert answer.field(10) == Limits().message_size_bytes


@pytest.mark.requirement("J-2")
def test_J_2_only_filters_that_are_in_effect_are_answered(gateway: GatewayProcess, node: str) -> None:
    selector = Described(Symbol("apache.org:selector-filter:string"), "a = 1")
    blank = Described(Symbol("apache.org:selector-filter:string"), "  ")
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        kept = [("jms-selector", selector)]
        cases: list[tuple[list[tuple[str, Any]], list[tuple[str, Any]]]] = [
            ([("nothing", None), *kept], kept),
            ([("nothing", None)], []),
            ([("jms-selector", blank)], []),
        ]
        for handle, (wanted, answer) in enumerate(cases):
            filters = AmqpMap([(Symbol(key), value) for key, value in wanted])
            octets = attach(True, frames.source(node, filters=filters), frames.target(None), f"l{handle}", handle)
            shown = at(answered(peer, octets).field(SOURCE), FILTER)
            assert shown == (AmqpMap([(Symbol(key), value) for key, value in answer]) if answer else None)


def test_a_durable_that_is_recalled_says_what_it_selects(gateway: GatewayProcess, node: str) -> None:
    selector = Described(ULong(0x468C00000004), "a = 1")
    no_local = Described(ULong(0x468C00000003), [])
    filters = AmqpMap([(Symbol("jms-selector"), selector), (Symbol("no-local"), no_local)])
    with Peer(gateway.port) as peer:
        peer.publisher(node, "channel", handle=5)
        peer.consumer(frames.source(node, 2, filters=filters, expiry="never"), name="durable")
        peer.send(frames.detach(1, closed=False))
        peer.expect("detach")
        peer.send(frames.attach_without_source("durable"))
        frame = peer.expect("attach").field(SOURCE)
        assert at(frame, FILTER) == filters
        assert [at(frame, index) for index in (ADDRESS, DURABLE, EXPIRY, MODE)] == [node, 2, "never", "copy"]
        peer.send(frames.detach(1))
        peer.expect("detach")


@pytest.mark.requirement("H-15")
@pytest.mark.parametrize("role", [False, True])
def test_H_15_who_resumes_a_link_with_nothing_unsettled_is_answered_so(
    gateway: GatewayProcess, node: str, role: bool
) -> None:
    """An empty map resumes; with anything in it there is nothing here that it could be compared with."""
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=5)
        mine, theirs = frames.source(node if role else None), frames.target(None if role else node)
        tag = AmqpMap([(b"tag", None)])
        for handle, (unsettled, answer) in enumerate(((None, None), (AmqpMap([]), AmqpMap([])), (tag, None))):
            octets = attach(role, mine, theirs, f"l{handle}", handle, unsettled=unsettled)
            assert answered(peer, octets).field(7) == answer


# -- nothing false goes out, even if it came through


TABLES = load_tables()
WRONG: dict[int, Any] = {
    DURABLE: UInt(9),
    EXPIRY: Symbol("when-it-rains"),
    TIMEOUT: "soon",
    MODE: "copy",
    FILTER: Symbol("a"),
    DEFAULT: "accepted",
    OUTCOMES: "amqp:accepted:list",
    CAPABILITIES: "queue",
}


def well_typed(terminus: Any) -> None:
    """Every field has the type, and where there is a choice a value, of part 3, 3.5.3 and 3.5.4."""
    if terminus is None:
        return
    fields = [*terminus.value, *[None] * 11]
    symbols_at = (9, 10) if terminus.descriptor == 0x28 else (6,)
    assert type(fields[ADDRESS]) in (str, type(None))
    assert fields[DURABLE] is None or (type(fields[DURABLE]) is UInt and fields[DURABLE] <= 2)
    assert fields[EXPIRY] in (None, "link-detach", "session-end", "connection-close", "never")
    assert fields[EXPIRY] is None or type(fields[EXPIRY]) is Symbol
    assert type(fields[TIMEOUT]) in (UInt, type(None))
    assert type(fields[DYNAMIC]) in (bool, type(None))
    assert fields[PROPERTIES] is None or isinstance(fields[PROPERTIES], AmqpMap)
    for index in symbols_at:
        assert fields[index] is None or all(type(item) is Symbol for item in fields[index].items)
    if terminus.descriptor == 0x28:
        assert fields[MODE] is None or type(fields[MODE]) is Symbol
        assert fields[FILTER] is None or isinstance(fields[FILTER], AmqpMap)
        assert fields[DEFAULT] is None or fields[DEFAULT].descriptor in range(0x24, 0x28)


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("role", [False, True])
@pytest.mark.parametrize("node", ["q", "an unknown one"])
def test_D20_nothing_ill_typed_is_answered_and_nothing_that_does_not_hold(
    wrong: int, role: bool, node: str, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the link is confirmed or refused, and also if a frame were not checked before."""
    if not checked:
        monkeypatch.setattr(frame_reader, "checked", lambda frame: frame)
    values: list[Any] = [WRONG[wrong], 1.5, [], b"octets", AmqpMap([(1, 2)]), Array(0x83, [1])]
    for bad in values:
        peer = Conversation(build_gateway(TABLES, ScriptedRealm()))
        fields: list[Any] = [None] * 11
        fields[ADDRESS] = node if role else None
        fields[wrong] = bad
        ours = [node, *fields[1:6], fields[MODE]] if wrong <= PROPERTIES else [node, *[None] * 5, fields[wrong]]
        source, target = Described(ULong(0x28), fields), Described(ULong(0x29), [None] if role else ours)
        seen = peer.say(attach(role, source, target, f"{bad!r}", 7))  # alone: a detach with it would come first
        assert "attach" in [reply.name for reply in seen] or peer.connection.closing, seen
        for reply in seen:
            if reply.name == "attach":
                well_typed(reply.field(SOURCE))
                well_typed(reply.field(TARGET))
        assert not checked or "detach" in [reply.name for reply in seen], (bad, seen)
