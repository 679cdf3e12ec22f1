"""Messages whose sections are not what they say, and annotations: what passes, what ends a link or a session."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Array, Described, Symbol, ULong, encode

MESSAGE = frames.message()
ERROR = Described(ULong(0x1D), [Symbol("amqp:not-found"), "gone"])
MALFORMED = {
    "garbage": b"garbage",
    "unknown-section": b"\x00\x53\x79\x45" + MESSAGE,
    "truncated": b"\x00\x53\x75\xa0\xff",
    "wrong-type": b"\x00\x53\x70\xa1\x01a" + MESSAGE,
    "out-of-order": MESSAGE + frames.header(),
    "two-values": encode(Described(ULong(0x77), 1)) * 2,
    "data-then-value": MESSAGE + encode(Described(ULong(0x77), 1)),
    "header-of-wrong-fields": encode(Described(ULong(0x70), ["durable"])) + MESSAGE,
    "annotations-called-by-strings": encode(Described(ULong(0x72), AmqpMap([("x-opt-a", 1)]))) + MESSAGE,
    "annotations-cut-short": b"\x00\x53\x72\xc1\x04\x02\xa3\x05a" + MESSAGE,
}


@pytest.mark.requirement("A-9", "B-5", "P-1", "P-4")
@pytest.mark.parametrize("bad", MALFORMED)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_message_that_misrepresents_its_sections_ends_its_session(
    gateway: GatewayProcess, node: str, bad: str, transactional: bool
) -> None:
    """What was good before it is stored; what is not is rejected, then the END says why; another session goes on."""
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.send(frames.begin(channel=1))
        peer.expect("begin")
        state = frames.in_transaction(b"none") if transactional else None
        peer.send(frames.transfer(0, MESSAGE), frames.transfer(1, MALFORMED[bad], state=state))
        replies: list[Seen] = []
        while not replies or replies[-1].name != "end":
            assert peer.seen or peer.read(10.0), "no end"
            replies += peer.seen
            peer.seen = []
        rejections = [seen for seen in replies if seen.name == "disposition" and seen.field(1) == 1]
        assert [str(seen.state).split(":")[0] for seen in rejections] == ["rejected"]
        ended = replies[-1]
        assert (ended.channel, ended.condition) == (0, "amqp:decode-error")
        peer.send(frames.end(), frames.attach_sender(node, name="other", channel=1))
        assert peer.expect("attach").channel == 1
    with Peer(gateway.port) as other:
        other.consumer(node, credit=5)
        assert [seen.payload for seen in other.receive(1)] == [MESSAGE]
        other.nothing()


@pytest.mark.requirement("A-8")
def test_a_message_without_a_body_is_not_handed_on_as_something_else(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(frames.header(), b"", MESSAGE)
        outcomes = peer.outcomes(3)
        first, empty, good = outcomes[0], outcomes[1], outcomes[2]
        assert (empty, good) == ("rejected:amqp:precondition-failed", "accepted")
        stored = [frames.header()] * (first == "accepted") + [MESSAGE]
        peer.consumer(node, credit=5)
        assert [seen.payload for seen in peer.receive(len(stored))] == stored
        peer.nothing()


UNKNOWN: dict[str, tuple[dict[Any, Any], int]] = {
    "message": ({"foo": 1}, 0x72),
    "unreserved": ({"x-foo": 1}, 0x72),
    "a-number": ({ULong(7): 1}, 0x72),
    "behind-known-ones": ({"x-opt-a": 1, "foo": 1}, 0x72),
    "delivery": ({"foo": 1}, 0x71),
    "rejected-of-the-message": ({"rejected": ERROR}, 0x72),
    "footer": ({"foo": 1}, 0x78),
    "a-long-section": ({"x-opt-a": "x" * 2_000, "foo": 1}, 0x72),
}


@pytest.mark.requirement("B-7")
@pytest.mark.parametrize("unknown", UNKNOWN)
def test_an_unknown_annotation_that_is_not_x_opt_ends_its_link(
    gateway: GatewayProcess, node: str, unknown: str
) -> None:
    pairs, code = UNKNOWN[unknown]
    with Peer(gateway.port) as peer:
        peer.publisher(node, handle=0)
        peer.publisher(node, handle=1)
        peer.publish(frames.annotated(pairs, code))
        assert peer.outcomes(1) == {0: "rejected:amqp:precondition-failed"}
        assert peer.detached(0) == "amqp:not-implemented"
        peer.publish(MESSAGE, handle=1)
        assert peer.outcomes(1) == {1: "accepted"}, "its session goes on"


@pytest.mark.requirement("B-3")
def test_the_annotation_rejected_holds_an_error_and_nothing_else(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(frames.annotated({"rejected": ERROR}, 0x71))
        assert peer.outcomes(1) == {0: "accepted"}
        peer.publish(frames.annotated({"rejected": 5}, 0x71))
        assert peer.outcomes(1) == {1: "rejected:amqp:precondition-failed"}
        assert peer.detached(0) == "amqp:invalid-field"


@pytest.mark.requirement("B-4", "B-6", "B-8", "B-1", "B-2")
def test_x_opt_annotations_pass_and_those_of_the_delivery_do_not(gateway: GatewayProcess, node: str) -> None:
    """None is the same as an empty section, which passes as it is."""
    kept = [frames.annotated({"x-opt-a": 1}), frames.annotated({}), frames.annotated({"x-opt-f": 1}, 0x78)]
    hop = frames.annotated({"x-opt-hop": 1}, 0x71)
    with Peer(gateway.port) as peer:
        peer.stored(node, *kept, hop, MESSAGE)
        peer.consumer(node, credit=5)
        assert [seen.payload for seen in peer.receive(5)] == [*kept, MESSAGE, MESSAGE]


@pytest.mark.requirement("A-7", "A-12", "A-15")
@pytest.mark.parametrize("settled", [True, False])
def test_properties_are_carried_and_not_judged(gateway: GatewayProcess, node: str, settled: bool) -> None:
    """A foreign `to`, every field of the properties, and values that application-properties should not have."""
    times = [1_700_000_000_000, 1_600_000_000_000]
    fields = ["id", b"another", "elsewhere", "subject", "reply", "corr", Symbol("text/plain"), None, *times, "g"]
    properties = encode(Described(ULong(0x73), [*fields, None, "reply-group"]))
    odd = AmqpMap([("list", [1]), ("map", AmqpMap([])), ("array", Array(0xA3, [Symbol("a")]))])
    message = properties + encode(Described(ULong(0x74), odd)) + MESSAGE
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publish(message, settled=settled)
        if not settled:
            assert peer.outcomes(1) == {0: "accepted"}
        peer.consumer(node, credit=1)
        assert peer.receive(1)[0].payload == message
