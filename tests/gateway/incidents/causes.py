"""Incidents: each is made over a real socket and stands inside its `with`; what must be named of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager

import proton
import pytest

from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.nodes.metadata_writer import realm_metadata
from tests.gateway.incidents.site import Named, Site
from tests.kit.processes.broker import Broker
from tests.kit.processes.small_disk import SmallDisk
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import error
from tests.kit.wire.logins import PASSWORD, connect
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

Cause = Callable[[Site], AbstractContextManager[Named]]


@contextmanager
def misspelt_queue(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "orders")
    with Peer(site.port, container="shop") as peer:
        peer.send(frames.attach_sender("oders", 7, "to-oders"))
        assert peer.refused() == "amqp:not-found"
        yield Named("oders", "shop", "attach.refuse-an-unknown-node", "did you mean orders?")


@contextmanager
def large_message(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "letters")
    with Peer(site.port, container="large") as peer:
        peer.publisher("letters")
        half = frames.message(bytes(15_000))
        peer.send(frames.transfer(0, half, 0, more=True), frames.transfer(0, half, 0))
        assert peer.detached() == "amqp:link:message-size-exceeded"
        yield Named("letters", "large", "fault.message-too-large", "raise limits.message_size_bytes")


@contextmanager
def second_denial(site: Site) -> Iterator[Named]:
    """The first one of a process has a line in the log; the second one is counted there."""
    site.gateway.command("node", "create", "guarded")
    site.gateway.command("acl", "grant", "user:ben", "publish", "--node", "guarded")
    for _ in range(2):
        connection = connect(site.gateway, PASSWORD, "PLAIN", user="ann")
        with pytest.raises(proton.utils.LinkDetached, match="unauthorized-access"):
            connection.create_sender("guarded")
        connection.close()
    remedy = "realmgate acl grant user:ann publish --node guarded"
    yield Named("guarded", "user ann", "attached.access-denied-refused", remedy)


@contextmanager
def wrong_password(site: Site) -> Iterator[Named]:
    """A login has no node."""
    with pytest.raises(proton.ConnectionException):
        connect(site.gateway, f"{PASSWORD}?", "PLAIN", user="ben")
    yield Named("", "user ben, 127.0.0.1", "login", "correct the password in the application")


@contextmanager
def full_node(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")
    with Peer(site.port, container="filler") as peer:
        peer.publisher("small")
        assert len(peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))) == 5
        remedy = "realmgate node set small capacity-events=N"
        yield Named("small", "filler", "published.capacity-reached-rejected", remedy)


@contextmanager
def held_messages(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "held")
    with Peer(site.port, container="holder") as peer:
        peer.stored("held", *[MESSAGE] * 20)
        peer.consumer("held", credit=5)
        assert len(peer.receive(5)) == 5
        yield Named("held", "holder", "links.held-unsettled", "realmgate connection close ")


@contextmanager
def slow_consumer(site: Site) -> Iterator[Named]:
    """It settles what it got, and asks for no more."""
    site.gateway.command("node", "create", "waiting")
    with Peer(site.port, container="sleepy") as peer:
        peer.stored("waiting", *[MESSAGE] * 20)
        peer.consumer("waiting", credit=1)
        [seen] = peer.receive(1)
        peer.settle([seen.field(1)], frames.state("accepted"))
        yield Named("waiting", "sleepy", "links.slow-consumer", "add a consumer")


@contextmanager
def slow_subscriber(site: Site) -> Iterator[Named]:
    """A topic without a durable has no consumer group: its subscriber's own place says what waits for it."""
    site.gateway.command("node", "create", "feed", "--kind", "channel")
    with Peer(site.port, container="dozy") as peer:
        peer.consumer("feed", credit=1)
        peer.stored("feed", *[MESSAGE] * 20, kind="channel")
        [seen] = peer.receive(1)
        peer.settle([seen.field(1)], frames.state("accepted"))
        yield Named("feed", "dozy", "links.slow-consumer", "what it has dropped dozy never gets")


@contextmanager
def rejecting_consumer(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "dead")
    site.gateway.command("node", "create", "jobs", "--dead-letter", "dead")
    with Peer(site.port, container="rejecter") as peer:
        peer.stored("jobs", MESSAGE)
        peer.consumer("jobs", credit=1)
        [seen] = peer.receive(1)
        peer.settle([seen.field(1)], frames.state("rejected", error("app:bad", "cannot parse order 4711")))
        yield Named("jobs", "rejecter", "settle.rejected-dead-letters", "realmgate queue resend dead --to-origin")


@contextmanager
def deleted_topic(site: Site) -> Iterator[Named]:
    site.gateway.command("node", "create", "gone")
    with Peer(site.port, container="reader") as peer:
        peer.consumer("gone", credit=1)
        with closing(open_log(load_settings(site.gateway.config_path))) as log:
            prefix = str(site.gateway.settings["realm"].get("prefix", "um"))
            log.control.delete_topics([realm_metadata(log, prefix).nodes["gone"].topic])
        yield Named("gone", "reader", "health.topic-missing", "realmgate node delete")


def full_disk(disk: SmallDisk) -> Cause:
    @contextmanager
    def cause(site: Site) -> Iterator[Named]:
        site.gateway.command("node", "create", "orders")
        with Peer(site.port, container="writer") as peer:
            peer.publisher("orders")
            disk.fill()
            assert len(peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))) == 5
            yield Named("orders", "writer", "health.cannot-write", "make room on the disk")
            disk.clear()

    return cause


def frozen_kafka(broker: Broker) -> Cause:
    @contextmanager
    def cause(site: Site) -> Iterator[Named]:
        site.gateway.command("node", "create", "orders")
        with Peer(site.port, container="writer") as peer:
            peer.publisher("orders")
            assert set(peer.outcomes(len(peer.publish(MESSAGE))).values()) == {"accepted"}
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                peer.publish(MESSAGE)
                yield Named("orders", "writer", "health.", "answers; the gateway then continues by itself")
            finally:
                os.kill(broker.pid, signal.SIGCONT)

    return cause


ON_ANY_REALM: dict[str, Cause] = {
    "a misspelt queue": misspelt_queue,
    "a message that is too large": large_message,
    "the second denial of a process": second_denial,
    "a wrong password": wrong_password,
    "a full node": full_node,
    "a deleted topic": deleted_topic,
    "a consumer that holds unsettled messages": held_messages,
    "a consumer that rejects with a reason": rejecting_consumer,
    "a slow consumer": slow_consumer,
    "a slow subscriber of a topic": slow_subscriber,
}
