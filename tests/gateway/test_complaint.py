"""What a peer is told: short, with the node's name and what to do, and an info map for programs; over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.complaint import DESCRIPTION_BYTES_MAX, complaint
from mappings import load_tables
from mappings.errors import shipped_errors
from tests.wire import frames
from tests.wire.frames import Seen
from tests.wire.peer import Peer
from tests.wire.tcp_house import TcpHouse
from tests.wire.transacting import CONTROL, Transacting

TABLES = load_tables()
LOGS = ("kafka", "sqlite")


@pytest.fixture
def house() -> Iterator[TcpHouse]:
    with TcpHouse(TABLES) as house:
        yield house


def error_of(seen: Seen) -> tuple[str, str, dict[str, Any]]:
    """Condition, description and info of a rejected disposition or a DETACH."""
    error = seen.field(2) if seen.name == "detach" else seen.field(4).value[0]
    condition, description, info = error.value
    return str(condition), description, {str(key): value for key, value in info.pairs}


def test_a_rejected_publisher_is_told_what_to_do_and_when(house: TcpHouse) -> None:
    with Peer(house.port) as peer:
        peer.publisher("q")
        house.realm.answers["publish"] = "capacity-reached"
        peer.publish(frames.message())
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:resource-limit-exceeded"
        assert description == "q: it is full; try again when events were taken"
        assert info == {
            "native-code": "SCRIPTED",
            "rule": "published.capacity-reached-rejected",
            "retry-after-ms": 1000,
        }
        house.realm.answers["publish"] = "not-found"
        peer.publish(frames.message())
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, description) == ("amqp:not-found", "q: it is not there; create it, then attach again")
        assert "retry-after-ms" not in info, "nobody is told to wait where that would not help"
        assert error_of(peer.expect("detach"))[1:] == (description, info)


def test_a_refused_attach_and_a_failed_settle_say_so_too(house: TcpHouse) -> None:
    with Peer(house.port) as peer:
        peer.send(frames.attach_receiver("missing"))
        peer.expect("attach")
        condition, description, info = error_of(peer.expect("detach"))
        assert (condition, description) == ("amqp:not-found", "missing: refuse an unknown node")
        assert info == {"rule": "attach.refuse-an-unknown-node"}
        peer.send(frames.detach(1))
        peer.consumer("q", credit=1)
        peer.stored("q", frames.message())
        peer.receive(1)
        house.realm.answers["settle"] = "access-denied"
        peer.settle([0], frames.state("accepted"), settled=False)
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, info["rule"]) == ("amqp:unauthorized-access", "settled.access-denied-rejected")
        assert description == "q: its access list does not allow this user; ask its operator"


def test_a_coordinator_says_what_to_do_too(house: TcpHouse) -> None:
    with Transacting(house.port) as peer:
        transaction = peer.begun()
        peer.publisher("q")
        peer.post(transaction, frames.message())
        peer.told(1)
        house.realm.answers["commit"] = "capacity-reached"
        peer.send(frames.discharge(peer.number(), transaction, False, CONTROL))
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:transaction:rollback"
        assert description == "commit: it is full; try again when events were taken"
        assert (info["native-code"], info["retry-after-ms"]) == ("SCRIPTED", 1000)
        assert info["rule"] == "committed.failed-rejected"
        peer.until("disposition")  # of what was posted
        peer.send(frames.discharge(peer.number(), b"nobody's", False, CONTROL))
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:transaction:unknown-id"
        assert description == f"commit: {info['rule'].removeprefix('coordinate.').replace('-', ' ')}"
        assert info["rule"].startswith("coordinate.") and len(info) == (2 if "retry-after-ms" in info else 1)


@pytest.mark.parametrize("node", ["q", "a-long-name." * 30, "Größe/" * 40])
def test_a_description_is_short_whatever_the_node_and_the_error(node: str) -> None:
    rule = TABLES["published"].decide(
        **{axis: values[0] for axis, values in TABLES["published"].axes.items()} | {"answer": "unavailable"}
    )
    codes = [code for log in LOGS for code in shipped_errors().codes[log]]
    for native in (*codes, "SQLITE_IOERR_FSYNC", "no such code", ""):
        said = complaint(node, rule, "unavailable", native)
        assert len(said.encode()) <= DESCRIPTION_BYTES_MAX
        assert said.startswith(node[:5]), "it names the node"
        assert not native or ("native-code", native) in said.info
