"""Durables of containers and subscriptions with colons or bars in them: each has its own, and what an earlier release
has stored is there for its own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

FIRST, SECOND = frames.message(b"first"), frames.message(b"second")
STORED = Path(__file__).parent / "stored" / "unescaped_names.sql"
EVERYBODY = "topic,shared,global"


class Container:
    """A connection with that container-id, which may be empty."""

    def __init__(self, stack: ExitStack, gateway: GatewayProcess, container: str) -> None:
        self.peer = stack.enter_context(Peer(gateway.port, begin=False))
        self.peer.send(frames.AMQP_HEADER, frames.open_(container), frames.begin())
        self.peer.expect("open")
        self.peer.expect("begin")
        self._handles = 0

    def subscribe(self, node: str, name: str, capability: str = "topic", credit: int = 0) -> int:
        """A confirmed link; its handle."""
        self._handles += 1
        where = frames.source(node, 2, capability=capability, expiry="never")
        self.peer.consumer(where, credit=credit, handle=self._handles, name=name)
        return self._handles

    def leave(self, handle: int) -> None:
        self.peer.send(frames.detach(handle, closed=False))
        assert self.peer.expect("detach").condition is None

    def got(self, node: str, name: str, count: int, capability: str = "topic") -> list[bytes]:
        """So many messages of that durable, which are accepted; there is no other."""
        handle = self.subscribe(node, name, capability, credit=count + 1)
        seen = self.peer.receive(count, handle=handle)
        self.peer.nothing()
        numbers = [event.field(1) for event in seen]
        self.peer.settle(numbers, frames.state("accepted"), settled=False)
        assert set(self.peer.outcomes(count).values()) <= {"accepted"}
        self.leave(handle)
        return [event.payload for event in seen]

    def unsubscribe(self, name: str, all_containers: bool = False) -> str | None:
        """Refused with that condition, or None, and the durable is gone."""
        self._handles += 1
        self.peer.send(frames.attach_without_source(name, self._handles, all_containers))
        if self.peer.expect("attach").field(5) is None:
            condition = self.peer.detached()
            self.peer.send(frames.detach(self._handles))
            return condition
        self.peer.send(frames.detach(self._handles))
        return self.peer.expect("detach").condition


Subscriber = tuple[str, str, str]


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


SAME_BEFORE = [
    (("app:1", "orders", "topic"), ("app", "1:orders", "topic")),
    (("", "orders", "topic"), ("other", "orders|global", EVERYBODY)),
    (("", "a:b", "topic"), ("other", "a:b|global", EVERYBODY)),
    ((":a", "b", "topic"), ("other", "a:b|global", EVERYBODY)),
    (("app:1", "s|2", "topic,shared"), ("app", "1:s|2", "topic,shared")),
    (("app%3A1", "orders", "topic"), ("app:1", "orders", "topic")),
    (("bar", "orders|eu", "topic"), ("bar", "orders|us", "topic")),
    (("bar", "plain|eu", "topic"), ("bar", "plain", "topic")),
    (("bar", "plain", "topic"), ("bar", "plain|eu", "topic")),
    (("bar", "shared|eu", "topic"), ("bar", "shared|2", "topic,shared")),
    (("bar:1", "a:b|c", "topic"), ("bar:1", "a:b", "topic")),
]
"""Subscribers (container-id, link, capability) whose durables had one name, or one that now looks like another's."""


@pytest.mark.parametrize(("first", "other"), SAME_BEFORE)
@pytest.mark.parametrize("partitions", [1, 3])
def test_each_subscriber_has_a_durable_of_its_own(
    gateway: GatewayProcess, node: str, peers: ExitStack, first: Subscriber, other: Subscriber, partitions: int
) -> None:
    gateway.command("node", "create", node, "--kind", "channel", "--partitions", str(partitions))
    mine, theirs = Container(peers, gateway, first[0]), Container(peers, gateway, other[0])
    for container, (_, name, capability) in ((mine, first), (theirs, other)):
        container.leave(container.subscribe(node, name, capability))
    mine.peer.stored(node, FIRST, SECOND, kind="channel")
    for container, (_, name, capability) in ((mine, first), (theirs, other)):
        assert sorted(container.got(node, name, 2, capability)) == [FIRST, SECOND]
    assert mine.unsubscribe(first[1], all_containers="global" in first[2]) is None
    mine.peer.stored(node, FIRST, kind="channel")
    assert theirs.got(node, other[1], 1, other[2]) == [FIRST], "it is there as before"


@pytest.mark.parametrize(
    ("name", "called"),
    [("plain", "app:plain"), ("of|eu", "app:of%7Ceu|escaped"), ("a:b", "app:a%3Ab|escaped")],
)
def test_operators_find_a_durable_by_its_container_and_link(
    gateway: GatewayProcess, node: str, peers: ExitStack, name: str, called: str
) -> None:
    """Nothing is escaped that need not be: scripts, group offsets and metrics have the name."""
    app = Container(peers, gateway, "app")
    gateway.command("node", "create", node, "--kind", "channel")
    app.leave(app.subscribe(node, name))
    [durable] = json.loads(gateway.command("durable", "list", node, "--json"))
    assert durable["durable"] == called
    assert app.unsubscribe(name) is None


def test_a_link_takes_over_from_a_cut_one_whose_durable_is_escaped(
    gateway: GatewayProcess, node: str, peers: ExitStack
) -> None:
    old, new = (Container(peers, gateway, "app:1") for _ in range(2))
    old.peer.publisher(node, "channel", handle=9)
    old.subscribe(node, "orders")
    new.subscribe(node, "orders")
    assert old.peer.expect("detach").condition == "amqp:link:stolen"


def test_what_is_unsubscribed_is_what_has_all_of_the_name(gateway: GatewayProcess, node: str, peers: ExitStack) -> None:
    """With a bar in it: then what is shared by links of that name up to the bar, and nothing else."""
    own = Container(peers, gateway, "unsubscribes")
    own.peer.publisher(node, "channel", handle=99)
    own.leave(own.subscribe(node, "a"))
    own.leave(own.subscribe(node, "a|b"))
    assert own.unsubscribe("a|c") == "amqp:not-found"
    assert own.unsubscribe("a|b") is None
    assert own.unsubscribe("a|b") == "amqp:not-found"
    assert own.unsubscribe("a") is None
    own.leave(own.subscribe(node, "s|1", "topic,shared"))
    assert own.unsubscribe("s|2") is None
    assert own.unsubscribe("s") == "amqp:not-found"


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[GatewayProcess]:
    """A gateway on a realm that an earlier release has written."""
    realm = embedded_realm(tmp_path)
    Path(realm["path"]).mkdir()
    connection = sqlite3.connect(Path(realm["path"]) / "realm.sqlite")
    connection.execute("PRAGMA journal_mode = WAL")  # as that release made it: the text does not say so
    connection.executescript(STORED.read_text())
    connection.close()
    gateway = start_gateway(tmp_path, realm, nodes={"create_on_attach": ["any.*"]})
    yield gateway
    gateway.end_well()


NEWS = "any.news"
OWN = [
    ("app:1", "orders", "topic", "app:1:orders"),
    ("app", "1:orders", "topic", "app:1:orders"),
    ("app", "plain", "topic", "app:plain"),
    ("", "mine", "topic", ":mine"),
    ("whichever", "a:b|global", EVERYBODY, ":a:b"),
]
"""Who may have been meant by each name in the store (see its head)."""


def names(gateway: GatewayProcess) -> list[str]:
    return sorted(line.split()[1] for line in gateway.command("durable", "list", NEWS).strip().splitlines()[1:])


@pytest.mark.parametrize(("container", "name", "capability", "durable"), OWN)
def test_a_durable_of_an_earlier_release_goes_on_with_its_subscriber(
    stored: GatewayProcess, peers: ExitStack, container: str, name: str, capability: str, durable: str
) -> None:
    """Where it was, after a restart as well; under its name, so that its group and its records stay."""
    before = names(stored)
    own = Container(peers, stored, container)
    assert own.got(NEWS, name, 1, capability) == [SECOND]
    own.peer.stored(NEWS, FIRST, kind="channel")
    stored.kill()
    stored.restart()
    own = Container(peers, stored, container)
    assert own.got(NEWS, name, 1, capability) == [FIRST]
    assert names(stored) == before
    assert own.unsubscribe(name, all_containers="global" in capability) is None
    assert names(stored) == [entry for entry in before if entry != durable]
    assert own.unsubscribe(name, all_containers="global" in capability) == "amqp:not-found"


def test_a_stored_name_that_two_could_have_is_the_firsts_and_no_others(
    stored: GatewayProcess, peers: ExitStack
) -> None:
    first, other = Container(peers, stored, "app:1"), Container(peers, stored, "app")
    first.leave(first.subscribe(NEWS, "orders"))
    assert other.unsubscribe("1:orders") == "amqp:not-found"
    other.leave(other.subscribe(NEWS, "1:orders"))
    other.peer.stored(NEWS, FIRST, kind="channel")
    assert other.got(NEWS, "1:orders", 1) == [FIRST], "from its attach on"
    assert first.got(NEWS, "orders", 2) == [SECOND, FIRST]


def test_a_stored_name_that_was_cut_is_the_firsts_and_no_others(stored: GatewayProcess, peers: ExitStack) -> None:
    """The durable of `app:plain` may be that of a link `plain|eu`; whose link comes later has one of its own."""
    app = Container(peers, stored, "app")
    app.leave(app.subscribe(NEWS, "plain|eu"))
    app.leave(app.subscribe(NEWS, "plain"))
    app.leave(app.subscribe(NEWS, "plain|us"))
    app.peer.stored(NEWS, FIRST, kind="channel")
    assert app.got(NEWS, "plain|eu", 2) == [SECOND, FIRST]
    assert app.got(NEWS, "plain", 1) == [FIRST]
    assert app.got(NEWS, "plain|us", 1) == [FIRST]
    assert {"app:plain", "app:plain|escaped", "app:plain%7Cus|escaped"} <= {*names(stored)}
    assert app.unsubscribe("plain") is None
    app.peer.stored(NEWS, SECOND, kind="channel")
    assert app.got(NEWS, "plain|eu", 1) == [SECOND]


def test_what_no_container_stored_is_not_everybodys_and_the_other_way_round(
    stored: GatewayProcess, peers: ExitStack
) -> None:
    own, others = Container(peers, stored, ""), Container(peers, stored, "whichever")
    assert own.unsubscribe("a:b") == "amqp:not-found"
    assert others.unsubscribe("mine", all_containers=True) == "amqp:not-found"


def test_a_topic_subscription_of_an_earlier_release_moves_with_its_subscriber(
    stored: GatewayProcess, peers: ExitStack
) -> None:
    own = Container(peers, stored, "app:1")
    own.peer.publisher("any.other", "channel", handle=9)
    own.leave(own.subscribe("any.other", "orders"))
    own.peer.stored("any.other", FIRST, kind="channel")
    assert own.got("any.other", "orders", 1) == [FIRST]
    assert "app:1:orders" not in names(stored)
