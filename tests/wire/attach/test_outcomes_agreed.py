"""What an ATTACH says of outcomes, delivery modes and filters: what is agreed, what is answered, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Array, Described, Symbol, ULong

MESSAGE = frames.message()
INVALID, NOT_IMPLEMENTED = "amqp:invalid-field", "amqp:not-implemented"
ALL = [f"amqp:{name}:list" for name in ("accepted", "rejected", "released", "modified")]


def source_said(attached: Seen) -> tuple[Any, list[str]]:
    """The default-outcome and the outcomes of the answer."""
    fields = attached.field(5).value
    outcomes = fields[9] if len(fields) > 9 else None
    return fields[8], [str(outcome) for outcome in (outcomes.items if isinstance(outcomes, Array) else [outcomes])]


@pytest.mark.requirement("I-3", "I-5", "I-9", "O-3")
@pytest.mark.parametrize("where", ["queue", "plain", "durable", "browser"])
def test_the_answer_lists_every_outcome_where_none_is_asked_for(gateway: GatewayProcess, node: str, where: str) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, "queue" if where in ("queue", "browser") else "channel")
        source = frames.source(node, 2 if where == "durable" else 0, "copy" if where == "browser" else None)
        assert source_said(peer.consumer(source, credit=1)) == (None, ALL)
        peer.nothing()
        peer.stored(node, MESSAGE, kind="queue" if where in ("queue", "browser") else "channel")
        (seen,) = peer.receive(1)
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}


DEFAULTS = {
    "accepted": frames.state("accepted"),
    "rejected": frames.state("rejected"),
    "released": frames.state("released"),
    "modified": frames.state("modified", True, False),
    "by-its-symbol": Described(Symbol("amqp:released:list"), []),  # answered by its number
}


@pytest.mark.requirement("I-6", "I-8", "S-2", "G-3")
@pytest.mark.parametrize("default", DEFAULTS)
@pytest.mark.parametrize("durable", [0, 2])
def test_a_default_outcome_that_is_admitted_is_answered_and_holds(
    gateway: GatewayProcess, node: str, default: str, durable: int
) -> None:
    with Peer(gateway.port, f"c-{node}") as peer:
        peer.publisher(node, "channel" if durable else "queue")
        wanted = DEFAULTS[default]
        attached = peer.consumer(frames.source(node, durable, default=wanted, outcomes=["accepted", "released"]))
        answer = frames.state("released") if default == "by-its-symbol" else wanted
        assert source_said(attached) == (answer, ["amqp:accepted:list", "amqp:released:list"])
        peer.credit(1)
        peer.nothing()
        peer.publish(MESSAGE, settled=True)  # its disposition might come before or behind the transfer
        peer.receive(1)
        peer.send(frames.detach(1, closed=False))
        peer.expect("detach")
        peer.consumer(frames.source(node, durable), credit=2, handle=2)
        again = default in ("released", "modified", "by-its-symbol")
        assert len(peer.receive(1 if again else 0, handle=2)) == again
        peer.nothing()


@pytest.mark.requirement("I-1", "I-4", "I-6", "I-8", "S-2")
@pytest.mark.parametrize(
    "wrong",
    [
        {"default": frames.state("received")},
        {"default": Described(ULong(0x77), [])},
        {"default": Described(Symbol("amqp:foo:list"), [])},
        {"default": "released"},
        {"outcomes": ["foo"]},
        {"outcomes": ["accepted", "foo"]},
        {"outcomes": ["received"]},
    ],
    ids=str,
)
def test_an_outcome_that_is_none_refuses_the_link(gateway: GatewayProcess, node: str, wrong: dict[str, Any]) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.send(frames.attach_receiver(frames.source(node, **wrong)))
        assert peer.refused() == INVALID
        peer.send(frames.detach(1))
        peer.consumer(node, credit=1)
        peer.receive(1)


@pytest.mark.requirement("I-7", "I-6")
@pytest.mark.parametrize("state", ["rejected", "released", "modified"])
def test_only_outcomes_that_were_agreed_on_are_allowed(gateway: GatewayProcess, node: str, state: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.consumer(frames.source(node, outcomes=["accepted"]), credit=1)
        peer.receive(1)
        peer.settle([0], frames.state(state))
        assert peer.detached(1) == "amqp:not-allowed"


FILTERS = {
    "a-string": AmqpMap([(Symbol("a"), "a = 1")]),
    "a-number": AmqpMap([(Symbol("jms-selector"), 7)]),
    "a-key-that-is-no-symbol": AmqpMap([("a", Described(Symbol("apache.org:selector-filter:string"), "a = 1"))]),
    "unknown-beside-a-selector": AmqpMap(
        [
            (Symbol("a"), Described(Symbol("apache.org:selector-filter:string"), "a = 1")),
            (Symbol("b"), Described(Symbol("com:example:filter"), 1)),
        ]
    ),
}


@pytest.mark.requirement("J-1", "J-4")
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("kind", ["queue", "channel"])
def test_a_filter_set_that_cannot_be_kept_refuses_the_link(
    gateway: GatewayProcess, node: str, kind: str, filters: str
) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher(node, kind)
        peer.send(frames.attach_receiver(frames.source(node, filters=FILTERS[filters])))
        assert peer.refused() == NOT_IMPLEMENTED


FORCED = [
    ("exactly-once", False, 2, False),
    ("at-most-once", False, 2, False),
    ("at-least-once", False, 2, True),
    ("at-least-once", False, 1, False),
    ("at-most-once", False, 1, True),
    ("exactly-once", True, 0, False),
    ("at-most-once", True, 1, False),
    ("at-least-once", True, 0, True),
    ("once-in-a-while", False, 2, False),
]


@pytest.mark.requirement("R-1", "R-7")
@pytest.mark.parametrize(("mode", "publishes", "settle_mode", "kept"), FORCED)
def test_a_forced_delivery_mode_is_kept_or_refused(
    gateway: GatewayProcess, node: str, mode: str, publishes: bool, settle_mode: int, kept: bool
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.send(frames.attach_with_properties(node, {"delivery-mode": mode}, 1, "x", publishes, settle_mode))
        if kept:
            assert peer.expect("attach").field(6 if publishes else 5) is not None
        else:
            assert peer.refused() == NOT_IMPLEMENTED


@pytest.mark.requirement("R-2")
def test_a_delivery_mode_that_is_a_wish_is_passed_over(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.send(frames.attach_with_properties(node, {"opt-delivery-mode": "exactly-once", "product": "x"}))
        assert peer.expect("attach").field(5) is not None


@pytest.mark.requirement("K-2", "K-6", "M-11")
def test_an_unnamed_distribution_mode_is_the_nodes(gateway: GatewayProcess, node: str) -> None:
    """A queue moves, a channel copies; a preference that fits is kept; termini may be empty where they are the
    peer's own."""
    with Peer(gateway.port) as first, Peer(gateway.port) as two:
        first.stored(node, MESSAGE)
        first.stored(f"{node}.c", MESSAGE, kind="channel")
        for at, (address, mode) in enumerate(
            ((node, None), (node, "move"), (f"{node}.c", None), (f"{node}.c", "copy"))
        ):
            first.send(frames.attach_receiver(frames.source(address, mode=mode), at, f"link-{at}"))
            assert first.expect("attach").field(5) is not None
        two.consumer(node, credit=1)
        assert len(two.receive(1)) == 1, "the others have no credit"
