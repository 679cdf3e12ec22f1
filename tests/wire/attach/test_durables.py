"""Durable subscriptions on the wire: exclusive, shared, volatile, recalled without a source, and how long they last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mappings import load_tables
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.wire.conftest import serve

TABLES = {profile: load_tables(profile=profile) for profile in ("extended", "um-9.12")}

ACCEPTED = frames.state("accepted")
SHARED, EVERYBODY = "topic,shared", "topic,shared,global"


def made(gateway: GatewayProcess, channel: str) -> str:
    with Peer(gateway.port) as peer:
        peer.publisher(channel, "channel")
    return channel


def durable(channel: str, capability: str = "topic", **more: Any) -> Any:
    return frames.source(channel, 2, capability=capability, **({"expiry": "never"} | more))


def attach(peer: Peer, where: Any, handle: int = 1, name: str = "sub") -> str | None:
    """Refused with that condition, or None."""
    peer.send(frames.attach_receiver(where, handle, name))
    return peer.refused()


def source_fields(attached: Seen) -> tuple[Any, ...]:
    """Address, durability, expiry policy, time-out, distribution mode, capabilities."""
    source = attached.field(5).value
    capabilities = source[10].items if hasattr(source[10], "items") else [source[10]]
    return (source[0], source[1], str(source[2]), source[3] or 0, str(source[6]), [str(name) for name in capabilities])


def end(peer: Peer, handle: int = 1, closed: bool = False) -> None:
    peer.send(frames.detach(handle, closed=closed))
    assert peer.expect("detach").condition is None


def count(gateway: GatewayProcess, channel: str) -> int:
    return len(gateway.command("durable", "list", channel).strip().splitlines()) - 1


def until_gone(gateway: GatewayProcess, channel: str) -> None:
    until_s = time.monotonic() + HANG_S
    while count(gateway, channel):
        assert time.monotonic() < until_s, "the durable is still there"
        time.sleep(0.1)


def test_3_3_links_of_several_connections_share_one_durable_and_each_event_goes_to_one(
    gateway: GatewayProcess, node: str
) -> None:
    """K-4, U-3: by credit; a third that is given none blocks no one."""
    made(gateway, node)
    where = durable(node, EVERYBODY)
    with Peer(gateway.port) as first, Peer(gateway.port) as other:
        first.consumer(where, credit=3, name="s|global")
        other.consumer(where, credit=5, name="s|global")
        first.consumer(where, handle=2, name="s|global2")
        other.stored(node, *[frames.message(b"%d" % number) for number in range(8)], kind="channel")
        got = [seen.payload for peer, share in ((first, 3), (other, 5)) for seen in peer.receive(share)]
        assert sorted(got) == [frames.message(b"%d" % number) for number in range(8)]
        first.nothing()
        first.settle([0], ACCEPTED, settled=False)
        assert first.outcomes(1) == {0: "accepted"}
        first.close()
        other.credit(2)
        assert len(other.receive(2)) == 2, "what a lost link had comes to the others"
        assert "shared" in gateway.command("durable", "list", node)


def test_3_3_a_shared_durable_is_its_container_s_own_unless_it_is_global(gateway: GatewayProcess, node: str) -> None:
    made(gateway, node)
    with Peer(gateway.port) as first, Peer(gateway.port) as other:
        for peer in (first, other):
            peer.consumer(durable(node, SHARED), credit=5, name="s")
            peer.consumer(durable(node, SHARED), handle=2, name="s|2")
        first.stored(node, frames.message(), kind="channel")
        assert first.receive(1)
        assert other.receive(1)


@pytest.mark.parametrize(("first", "second"), [("topic", SHARED), (SHARED, "topic")])
def test_3_3_a_link_of_the_other_kind_is_refused_also_when_no_link_is_attached(
    gateway: GatewayProcess, node: str, first: str, second: str
) -> None:
    made(gateway, node)
    with Peer(gateway.port) as peer:
        own, other = ("sub|1", "sub") if first == SHARED else ("sub", "sub|2")
        peer.consumer(durable(node, first), name=own)
        assert attach(peer, durable(node, second), 2, other) == "amqp:not-allowed"
        peer.send(frames.detach(2))
        end(peer)
        assert attach(peer, durable(node, second), 2, other) == "amqp:not-allowed"


def test_3_6_a_second_link_of_an_exclusive_durable_is_refused(gateway: GatewayProcess, node: str) -> None:
    """S-R1e: the same name on another session of the connection. Another name is another durable, also with a bar."""
    made(gateway, node)
    with Peer(gateway.port) as peer:
        peer.consumer(durable(node), credit=5)
        peer.send(frames.begin(1))
        peer.expect("begin")
        peer.send(frames.attach_receiver(durable(node), 0, channel=1))
        assert peer.refused() == "amqp:illegal-state"
        peer.consumer(durable(node), handle=2, name="sub|2")
        peer.stored(node, frames.message(), kind="channel")
        assert peer.receive(1), "the first one goes on"


@pytest.mark.requirement("O-6")
def test_O_6_the_same_container_on_another_connection_takes_the_durable_over(
    gateway: GatewayProcess, node: str
) -> None:
    made(gateway, node)
    with Peer(gateway.port, f"c-{node}") as old, Peer(gateway.port, f"c-{node}") as new:
        old.consumer(durable(node), credit=1)
        old.stored(node, frames.message(), kind="channel")
        old.receive(1)
        new.consumer(durable(node), credit=1)
        assert old.detached(1) == "amqp:link:stolen"
        assert new.receive(1), "what the older one had not stated"


@pytest.mark.requirement("O-6")
def test_O_6_one_name_twice_in_a_session_ends_that_session_and_no_other(gateway: GatewayProcess, node: str) -> None:
    """No engine can tell the two apart; a name that is free again is no name twice."""
    made(gateway, node)
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(1))
        peer.expect("begin")
        for handle in (1, 2):
            peer.send(frames.attach_receiver(durable(node), handle, channel=1))
            peer.expect("attach")
            peer.send(frames.detach(handle, closed=False, channel=1))
            peer.expect("detach")
        peer.send(frames.attach_receiver(durable(node), 3, channel=1), frames.attach_sender(node, 4, "sub", channel=1))
        peer.expect("attach")
        peer.expect("attach")  # of the other direction
        peer.send(frames.attach_receiver(durable(node), 5, channel=1))
        assert peer.expect("end").condition == "amqp:link:stolen"
        peer.send(frames.end(1))
        peer.consumer(durable(node), credit=1)
        peer.stored(node, frames.message(), kind="channel")
        assert peer.receive(1), "the connection goes on, and the durable is free"


@pytest.mark.requirement("L-1", "L-3")
def test_L_1_L_3_the_answer_says_what_holds(gateway: GatewayProcess, node: str) -> None:
    made(gateway, node)
    with Peer(gateway.port) as peer:
        assert source_fields(peer.consumer(durable(node, expiry=None))) == (node, 2, "never", 0, "copy", ["topic"])
        bound = frames.source(node, 1, expiry="link-detach", timeout_s=7, capability=SHARED)
        attached = peer.consumer(bound, handle=2, name="two")
        assert source_fields(attached) == (node, 1, "link-detach", 7, "copy", ["topic", "shared"])
        volatile = frames.source(node, 0, expiry="never", timeout_s=7, capability=EVERYBODY)
        attached = peer.consumer(volatile, handle=3, name="v|global-volatile1")
        assert source_fields(attached) == (node, 0, "link-detach", 0, "copy", ["topic", "shared", "global"])


def test_3_3_a_detached_durable_stays_and_one_recalled_and_closed_is_gone(gateway: GatewayProcess, node: str) -> None:
    """Unsubscribing as JMS does; what is stored is told, and closed=false changes nothing."""
    made(gateway, node)
    with Peer(gateway.port) as peer:
        peer.consumer(durable(node))
        peer.send(frames.begin(1), frames.attach_without_source("sub", 5, channel=1))
        peer.expect("begin")
        assert peer.refused() == "amqp:resource-locked", "it is in use, and stays so"
        end(peer)
        peer.stored(node, frames.message(), kind="channel")
        for closed in (False, True):
            peer.send(frames.attach_without_source("sub", 2))
            assert source_fields(peer.expect("attach")) == (node, 2, "never", 0, "copy", ["topic"])
            end(peer, 2, closed)
            assert count(gateway, node) == (0 if closed else 1)
        peer.send(frames.attach_without_source("sub", 2))
        assert peer.refused() == "amqp:not-found"
        peer.send(frames.detach(2))
        peer.consumer(durable(node), credit=5)
        peer.nothing()


def test_3_3_a_subscription_of_jms_moves_to_the_topic_that_it_is_opened_on(gateway: GatewayProcess, node: str) -> None:
    """Who says that the source is a topic; without that, a name may stand on several channels."""
    made(gateway, node)
    other = made(gateway, f"{node}.other")
    with Peer(gateway.port) as peer:
        peer.consumer(durable(node))
        end(peer)
        peer.consumer(durable(other, ""), handle=2)
        end(peer, 2)
        assert (count(gateway, node), count(gateway, other)) == (1, 1)
        peer.consumer(durable(other), handle=3)
        until_gone(gateway, node)
        assert count(gateway, other) == 1


def test_3_3_a_global_durable_is_recalled_by_any_container_that_says_global(gateway: GatewayProcess, node: str) -> None:
    made(gateway, node)
    name = f"g-{node}"
    with Peer(gateway.port) as first, Peer(gateway.port) as other:
        first.consumer(durable(node, EVERYBODY), name=f"{name}|global")
        other.send(frames.attach_without_source(f"{name}|global", 2, all_containers=True))
        assert other.refused() == "amqp:resource-locked"
        other.send(frames.detach(2))
        end(first)
        other.send(frames.attach_without_source(f"{name}|global", 2))
        assert other.refused() == "amqp:not-found", "it is not its own"
        other.send(frames.detach(2), frames.attach_without_source(f"{name}|global", 3, all_containers=True))
        assert source_fields(other.expect("attach"))[5] == ["topic", "shared", "global"]
        end(other, 3, closed=True)
        assert count(gateway, node) == 0


@pytest.mark.requirement("L-2")
def test_L_2_a_volatile_subscription_ends_with_its_last_link(gateway: GatewayProcess, node: str) -> None:
    made(gateway, node)
    where = frames.source(node, capability=SHARED)
    with Peer(gateway.port) as peer:
        for handle in (1, 2):
            peer.consumer(where, credit=5, handle=handle, name=f"v|volatile{handle}")
        peer.stored(node, frames.message(), kind="channel")
        peer.receive(1)
        peer.settle([0], ACCEPTED)
        end(peer, 1, closed=True)
        assert count(gateway, node) == 1
        end(peer, 2, closed=True)
        peer.consumer(where, credit=5, handle=3, name="v|volatile3")  # at once: it begins anew
        peer.nothing()
        peer.close()
    until_gone(gateway, node)


@pytest.mark.requirement("L-2")
@pytest.mark.parametrize("policy", ["link-detach", "session-end", "connection-close"])
def test_L_2_a_durable_lapses_when_the_scope_that_it_names_has_ended(
    gateway: GatewayProcess, node: str, policy: str
) -> None:
    made(gateway, node)
    with Peer(gateway.port) as peer:
        peer.send(frames.begin(1))
        peer.expect("begin")
        peer.send(frames.attach_receiver(durable(node, expiry=policy), 1, channel=1))
        assert source_fields(peer.expect("attach"))[2] == policy
        for scope, frame, answer in (
            ("link-detach", frames.detach(1, closed=False, channel=1), "detach"),
            ("session-end", frames.end(1), "end"),
            ("connection-close", frames.close(), "close"),
        ):
            peer.send(frame)
            peer.expect(answer)
            if scope == policy:
                break
            time.sleep(0.3)
            assert count(gateway, node) == 1, f"{policy} has lapsed with {scope}"
        until_gone(gateway, node)


@pytest.mark.parametrize("profile", ["extended", "um-9.12"])
def test_3_7_shared_subscriptions_are_offered_when_and_only_when_they_work(profile: str) -> None:
    (seen,) = opened(Environment(TABLES[profile]).peer("peer"))
    offered = seen.field(7)
    assert ("SHARED-SUBS" in (getattr(offered, "items", None) or [offered])) == (profile == "extended")


def opened(peer: Conversation) -> list[Seen]:
    return [seen for seen in peer.seen if seen.name == "open"]


def test_3_3_a_durable_that_cannot_be_ended_says_so() -> None:
    """The closing DETACH is answered when the realm has, with its reason."""
    env = Environment(TABLES["extended"])
    peer = env.peer("peer")
    env.realm.answers["unsubscribe"] = "in-use"
    env.realm.holds.add("unsubscribe")
    peer.say(frames.attach_without_source("sub"))
    assert peer.say(frames.detach(1)) == []
    env.realm.release()
    assert [(seen.name, seen.condition) for seen in peer.listen()] == [("detach", "amqp:resource-locked")]
    assert env.realm.calls[-1] == "unsubscribe peer:sub"


@pytest.mark.parametrize("capability", ["topic", SHARED])
@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_who_closes_the_last_link_for_good_ends_the_durable(
    gateway: GatewayProcess, node: str, capability: str, partitions: int
) -> None:
    """Also with events that are not settled; one that another link shares stays for that."""
    gateway.command("node", "create", node, "--kind", "channel", "--partitions", str(partitions))
    with Peer(gateway.port) as peer:
        peer.consumer(durable(node, capability), credit=1, name="s|1")
        peer.stored(node, frames.message(), frames.message(), kind="channel")
        peer.receive(1)
        if capability == SHARED:
            peer.consumer(durable(node, capability), handle=2, name="s|2")
            end(peer, closed=True)
            assert count(gateway, node) == partitions
            end(peer, 2, closed=True)
        else:
            end(peer, closed=True)
        assert count(gateway, node) == 0
        peer.consumer(durable(node, capability), credit=5, handle=3, name="s|1")
        peer.nothing()


def test_in_the_documented_profiles_a_durable_outlives_the_closing_of_its_link(
    documented: GatewayProcess, node: str
) -> None:
    made(documented, node)
    with Peer(documented.port) as peer:
        peer.consumer(frames.source(node, 2, expiry="never"))
        end(peer, closed=True)
        assert count(documented, node) == 1


def test_a_link_that_the_gateway_has_closed_ends_no_durable(gateway: GatewayProcess, node: str) -> None:
    """Its peer answers with a closing DETACH: that is no wish of its own."""
    made(gateway, node)
    with Peer(gateway.port, "same") as old, Peer(gateway.port, "same") as new:
        old.consumer(durable(node, "topic"), name="s")
        new.consumer(durable(node, "topic"), name="s")
        assert old.expect("detach").condition == "amqp:link:stolen"
        old.send(frames.detach(1))
        old.nothing()
        assert count(gateway, node) == 1
        new.stored(node, frames.message(), kind="channel")


def test_what_was_acknowledged_before_the_link_was_closed_is_answered(gateway: GatewayProcess, node: str) -> None:
    made(gateway, node)
    with Peer(gateway.port) as peer:
        peer.consumer(durable(node, "topic"), credit=3, name="s")
        peer.stored(node, *[frames.message()] * 3, kind="channel")
        numbers = [seen.field(1) for seen in peer.receive(3)]
        peer.settle(numbers, frames.state("accepted"), settled=True)
        end(peer, closed=True)
        assert count(gateway, node) == 0


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Four durables at most, of which peers without a login have three."""
    yield from serve(tmp_path_factory, limits={"durables": 4}, nodes={"create_on_attach": ["*"]})


def test_one_durable_too_many_is_refused_and_those_that_are_there_go_on(few: GatewayProcess) -> None:
    channel = made(few, "few")
    with Peer(few.port, "client") as peer:
        for number in range(3):
            peer.consumer(durable(channel), handle=number, name=f"sub-{number}")
        assert attach(peer, durable(channel), 3, "sub-3") == "amqp:resource-limit-exceeded"
        peer.consumer(frames.source(channel), handle=4, name="plain")
        end(peer, 0)
        peer.consumer(durable(channel), handle=0, name="sub-0")
    few.command("durable", "delete", channel, "client:sub-1", "--yes")
    with Peer(few.port, "client") as peer:
        peer.consumer(durable(channel), handle=3, name="sub-3")
    assert count(few, channel) == 3
