"""Addresses: prefixes and capabilities say of which kind a node is, and names may hold any character."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.config.addresses import Address, Addresses
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.wire.conftest import NODES, serve
from transformers.codec import Described

LONG = "any." + "A name, with blanks / slashes, commas; and more of it. " * 4  # more than 200 characters


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Prefixes of its own; what is made is a channel where nothing says otherwise."""
    nodes = {"queue_prefixes": ["jms.queue.", "jms."], "topic_prefixes": ["jms.topic."], "default_kind": "channel"}
    yield from serve(tmp_path_factory, nodes=NODES | nodes)


def terminus_fields(attached: frames.Seen, at: int) -> list[object]:
    terminus = attached.field(at)
    assert isinstance(terminus, Described)
    return list(terminus.value)


def test_3_3_the_longest_prefix_names_the_kind_and_the_rest_the_node() -> None:
    addresses = Addresses(["q:", "q:t:q:"], ["q:t:"], "channel")
    assert addresses.read("q:orders") == Address("orders", "queue")
    assert addresses.read("q:t:orders") == Address("orders", "channel")
    assert addresses.read("q:t:q:orders") == Address("orders", "queue")
    assert addresses.read("Q:orders") == Address("Q:orders", None), "case counts"
    assert addresses.read("orders") == Address("orders", None)


@pytest.mark.parametrize(("prefix", "kind"), [("queue://", "queue"), ("topic://", "channel")])
def test_3_3_a_prefix_makes_a_node_of_its_kind_and_is_no_part_of_its_name(
    gateway: GatewayProcess, node: str, prefix: str, kind: str
) -> None:
    """The answer says the address as it was asked for; the bare name is the same node."""
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_receiver(prefix + node, 1))
        assert terminus_fields(peer.expect("attach"), 5)[0] == prefix + node
        peer.send(frames.flow(1, 1, 0))
        peer.stored(node, frames.message(), kind=kind)
        assert peer.expect("transfer").payload == frames.message()
    assert f'"kind": "{kind}"' in gateway.command("node", "show", node, "--json")


@pytest.mark.parametrize("direction", ["publish", "subscribe"])
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("queue", ("topic://", None)),
        ("queue", ("", "topic")),
        ("channel", ("queue://", None)),
        ("channel", ("", "queue")),
    ],
)
def test_3_3_there_is_no_queue_of_a_channels_name_and_the_other_way_round(
    gateway: GatewayProcess, node: str, direction: str, kind: str, form: tuple[str, str | None]
) -> None:
    prefix, capability = form
    with Peer(gateway.port) as peer:
        peer.stored(node, frames.message(), kind=kind)
        if direction == "publish":
            peer.send(frames.attach_sender(frames.target(prefix + node, capability=capability), 5))
        else:
            peer.send(frames.attach_receiver(frames.source(prefix + node, capability=capability), 5))
        assert peer.refused() == "amqp:not-found"


def test_3_3_a_prefix_counts_for_more_than_a_capability(gateway: GatewayProcess, node: str) -> None:
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender(frames.target(f"topic://{node}", capability="queue"), 5))
        assert peer.expect("attach").field(6) is not None
    assert '"kind": "channel"' in gateway.command("node", "show", node, "--json")


def test_3_2_prefixes_are_the_configurations(prefixed: GatewayProcess, node: str) -> None:
    with Peer(prefixed.port) as peer:
        for handle, (address, kind) in enumerate(
            [
                (f"{node}", "channel"),
                (f"jms.{node}1", "queue"),
                (f"jms.queue.{node}2", "queue"),
                (f"jms.topic.{node}3", "channel"),
            ]
        ):
            peer.send(frames.attach_sender(address, handle, f"link-{handle}"))
            assert peer.expect("attach").field(6) is not None, address
            made = address.removeprefix("jms.").removeprefix("queue.").removeprefix("topic.")
            assert f'"kind": "{kind}"' in prefixed.command("node", "show", made, "--json")
        peer.send(frames.attach_sender(f"queue://{node}", 9))
        assert peer.refused() == "amqp:not-found", "that is a node's name here"


@pytest.mark.parametrize("address", [LONG, f"queue://{LONG}", "any.orders/2026, cheap ones & ünï 'quoted' \"too\""])
def test_node_names_of_200_characters_with_blanks_commas_and_slashes(gateway: GatewayProcess, address: str) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(address, frames.message(b"kept"))
        peer.consumer(address, credit=1)
        [seen] = peer.receive(1)
        assert seen.payload == frames.message(b"kept")
        peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        assert peer.outcomes(1) == {0: "accepted"}  # other addresses are this node's, too


def test_a_prefix_without_a_name_is_no_node(gateway: GatewayProcess) -> None:
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender("queue://", 5))
        assert peer.refused() == "amqp:not-found"
