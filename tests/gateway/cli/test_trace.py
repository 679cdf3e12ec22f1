"""`trace`: the life of a message, from the records of a real gateway that a client of another library has used, equals
what that client has seen; on both realms, beside the gateway and after it."""

from __future__ import annotations

import json
import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from proton import Message
from proton.utils import SendException

from gateway.cli.audit.who import who_am_i
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.ledger import Ledger, client, tag_of
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import Transacting
from transformers.codec import Described, encode

WAIT_S = 60
REALMS = pytest.mark.parametrize("kind", ["embedded", "kafka"])


def traced(gateway: GatewayProcess, *words: str) -> dict[str, Any]:
    """The only message that is found."""
    answer = json.loads(gateway.command("trace", *words, "--json"))
    assert answer["found"] is True
    [message] = answer["messages"]
    return dict(message)


def happened(message: dict[str, Any], *keys: str) -> list[Any]:
    """What, and of each step these fields."""
    steps = [(entry["what"], *(entry.get(key) for key in keys)) for entry in message["life"]]
    return [step if keys else step[0] for step in steps]


def until_settled(gateway: GatewayProcess, tag: str, what: str) -> dict[str, Any]:
    """The journal's record, or an outcome's, may be a moment away."""
    deadline = time.monotonic() + WAIT_S
    while what not in happened(trace := traced(gateway, tag)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return trace


@REALMS
def test_published_given_back_given_again_and_accepted(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    with client(gateway.address, "shop") as connection:
        connection.create_sender("orders", name="to-orders").send(Message(id="order-1", body="one"))
        receiver = connection.create_receiver("orders", name="from-orders", credit=1)
        receiver.receive(WAIT_S)
        tag = tag_of(receiver)
        receiver.release(delivered=False)
        receiver.receive(WAIT_S)
        assert tag_of(receiver) == tag
        receiver.accept()
    trace = until_settled(gateway, tag, "settled")
    assert happened(trace) == ["published", "stored", "answered", "given", "returned", "given", "settled"]
    published, stored, answered, given, returned, again, settled = trace["life"]
    assert (published["user"], published["container"], published["link"]) == ("anonymous", "shop", "to-orders")
    assert published["rules"][0]["because"] and answered["rules"][0]["because"]
    assert answered["outcome"] == "accepted" and answered["rules"][0]["rule"] == "stored-accepted"
    assert f"{stored['store']}:{stored['eid']}" == tag and stored["node"] == "orders"
    assert (given["link"], given["durable"], given["at"]) == ("from-orders", "queue", None), "when is not recorded"
    assert (returned["operation"], returned["outcome"]) == ("return", "released")
    assert (settled["operation"], settled["outcome"]) == ("acknowledge", "accepted")
    assert settled["seq"] == again["seq"] != given["seq"]
    times = [step["at"] for step in trace["life"] if step["at"] is not None]
    assert times == sorted(times)
    by_delivery = traced(gateway, f"{published['run']}:{published['seq']}")
    assert by_delivery == trace == traced(gateway, "--message-id", "order-1")
    assert trace["not_recorded"] == []
    lines = gateway.command("trace", tag).splitlines()
    assert any("stored-accepted: The event is stored" in line for line in lines), "for people, too"
    assert any(line.startswith("searched: ") for line in lines)
    [line] = [line for line in lines if "  answered  " in line]
    assert line.endswith(" orders: accepted (native answer stored)")
    gateway.stop()
    assert traced(gateway, f"{settled['run']}:{settled['seq']}") == trace, "without the gateway, too"
    assert traced(gateway, "--message-id", "order-1", "--node", "orders") == trace


@pytest.mark.parametrize("partitions", ["1", "3"])
def test_who_holds_a_message_is_named(new_gateway: StartGateway, partitions: str) -> None:
    gateway = new_gateway("embedded", admin={"listen": "http://127.0.0.1:0"})
    url = Watch.of(gateway).url
    gateway.command("node", "create", "orders", "--partitions", partitions)
    with (
        client(gateway.address, "shop") as shop,
        client(gateway.address, "billing") as connection,
        client(gateway.address, "other") as other,
    ):
        sender = shop.create_sender("orders")
        for reader, name in ((other, "has-another"), (connection, "slow")):
            receiver = reader.create_receiver("orders", name=name, credit=0)
            sender.send(Message(body="one"))
            receiver.receive(WAIT_S)
        tag = tag_of(receiver)
        waits = traced(gateway, tag, "--gateway", url)["life"][-1]
        held = waits["held_by"]
        names = (held["user"], held["container"], held["link"], held["gateway"])
        assert waits["what"] == "waits" and names == ("anonymous", "billing", "slow", url)
        assert datetime.now(UTC) - datetime.fromisoformat(held["since"]) < timedelta(seconds=WAIT_S)
        shown = gateway.command("trace", tag, "--gateway", url)
        assert f"held by user anonymous, container billing, link slow since {held['since'][:10]}" in shown
        for url_asked, words in (([], "admin.listen has port 0"), (["--gateway", "http://127.0.0.1:1"], "refused")):
            waits = traced(gateway, tag, *url_asked)["life"][-1]
            assert waits["held_by"] is None and words in waits["holder_unknown"]
        receiver.release(delivered=False)
    end = time.monotonic() + WAIT_S
    while (waits := traced(gateway, tag, "--gateway", url)["life"][-1])["held_by"] is not None:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "no link holds it" in gateway.command("trace", tag, "--gateway", url)
    assert "holder_unknown" not in waits, "the gateway has said that no link has it"


@REALMS
def test_a_rejected_message_is_followed_to_its_dead_letter(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    gateway.command("node", "create", "dead")
    gateway.command("node", "create", "orders", "--dead-letter", "dead")
    with client(gateway.address) as connection:
        connection.create_sender("orders").send(Message(id="bad", body="two"))
        receiver = connection.create_receiver("orders", credit=1)
        receiver.receive(WAIT_S)
        tag = tag_of(receiver)
        receiver.reject()
        letters = connection.create_receiver("dead", credit=1)
        letters.receive(WAIT_S)
        copy = tag_of(letters)
        letters.accept()
    trace = until_settled(gateway, tag, "settled")
    expected = ["published", "stored", "answered", "given", "dead-lettered", "stored", "given", "settled"]
    assert happened(trace) == expected
    [lettered] = [step for step in trace["life"] if step["what"] == "dead-lettered"]
    assert (lettered["to_node"], lettered["to"]) == ("dead", [copy])
    assert trace["life"][-1]["node"] == "dead"
    assert traced(gateway, copy) == trace == traced(gateway, "--message-id", "bad"), "from its copy, too"


@REALMS
def test_a_rejected_message_without_a_dead_letter_node_is_kept_nowhere(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    gateway.command("node", "create", "orders")
    with client(gateway.address) as connection:
        connection.create_sender("orders").send(Message(id="bad", body="two"))
        receiver = connection.create_receiver("orders", credit=1)
        receiver.receive(WAIT_S)
        tag = tag_of(receiver)
        receiver.reject()
    trace = until_settled(gateway, tag, "discarded")
    assert happened(trace) == ["published", "stored", "answered", "given", "discarded"]
    assert "kept nowhere: the node had no dead-letter node" in gateway.command("trace", tag)


@REALMS
def test_expired_purged_and_moved(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    for name in ("short", "purged", "moved", "other"):
        gateway.command("node", "create", name)
    with client(gateway.address) as connection:
        short = connection.create_sender("short")
        short.send(Message(id="short", body="x", ttl=0.001))
        for name in ("purged", "moved"):
            connection.create_sender(name).send(Message(id=name, body="x"))
        time.sleep(0.05)
        short.send(Message(id="long", body="x"))
        receiver = connection.create_receiver("short", credit=1)
        assert receiver.receive(WAIT_S).id == "long"
        expired = traced(gateway, "--message-id", "short")
        deadline = time.monotonic() + WAIT_S
        while "expired" not in happened(expired) and time.monotonic() < deadline:
            expired = traced(gateway, "--message-id", "short")
        assert happened(expired) == ["published", "stored", "answered", "expired"]
        waiting = traced(gateway, "--message-id", "purged")["life"][-1]
        assert (waiting["what"], waiting["given"]) == ("waits", False)
    gateway.command("queue", "purge", "purged", "--yes", "--why", "test data")
    gateway.command("queue", "move", "moved", "--to", "other", "--yes")
    purged, moved = traced(gateway, "--message-id", "purged"), traced(gateway, "--message-id", "moved")
    assert happened(purged, "operation")[-1] == ("purged", "purge")
    assert purged["life"][-1]["command"]["what"] == "purge"
    command = purged["life"][-1]["command"]
    assert (command["who"], command["why"]) == (who_am_i(), "test data")
    assert not any("by whom the command" in sentence for sentence in purged["not_recorded"])
    assert {"moved", "waits"} < set(happened(moved))
    [step] = [step for step in moved["life"] if step["what"] == "moved"]
    assert step["to_node"] == "other" and len(step["to"]) == 1
    assert moved["life"][-1]["node"] == "other"


@REALMS
def test_a_refused_publish_and_what_is_not_found(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind)
    gateway.command("node", "create", "full", "--capacity-events", "1", "--honour-capacity", "true")
    with client(gateway.address) as connection:
        sender = connection.create_sender("full")
        sender.send(Message(id="first", body="x"))
        with pytest.raises(SendException):
            sender.send(Message(id="second", body="x"))
    run, seq = (traced(gateway, "--message-id", "first")["life"][0][key] for key in ("run", "seq"))
    gateway.stop()
    refused = traced(gateway, f"{run}:{seq + 1}")
    assert happened(refused, "node", "answer") == [("refused", "full", "capacity-reached")]
    assert refused["life"][0]["rules"][-1]["because"]
    assert refused == traced(gateway, "--message-id", "second")
    assert any("message-id second: " in line for line in gateway.command("trace", f"{run}:{seq + 1}").splitlines())
    for words in (("--message-id", "third"), (f"{run}:99",), ("123:5",), ("--message-id", "x", "--node", "none")):
        with pytest.raises(RuntimeError, match=r"failed \(1\)"):
            gateway.command("trace", *words)


@REALMS
def test_what_a_transaction_did_not_store_is_found_by_its_message_id(new_gateway: StartGateway, kind: str) -> None:
    """Rolled back, refused outside, lost because it was sent settled, and refused inside: there is no such transaction.
    What is no message cannot be named: it is counted."""
    gateway = new_gateway(kind)
    gateway.command("node", "create", "full", "--capacity-events", "1", "--honour-capacity", "true")
    back, alone, settled = (encode(Described(0x73, [name])) + frames.message() for name in ("back", "alone", "settled"))
    inside = encode(Described(0x73, ["inside"])) + frames.message()
    with Transacting(gateway.port) as peer:
        peer.publisher("full")
        transaction = peer.begun()
        peer.post(transaction, back)
        peer.expect("disposition")
        assert peer.discharge(transaction, fail=True) == "accepted"
        for payload in (frames.message(), alone):
            peer.publish(payload)
            peer.outcomes(1)
        peer.publish(settled, settled=True)
        peer.publish(b"")
        peer.outcomes(1)
        peer.post(b"of no transaction", inside)
        peer.expect("disposition")
    gateway.stop()
    steps = {name: traced(gateway, "--message-id", name)["life"][0] for name in ("back", "alone", "settled", "inside")}
    assert {name: (step["what"], step["node"], step["answer"]) for name, step in steps.items()} == {
        "back": ("refused", "full", "rolled-back"),
        "alone": ("refused", "full", "capacity-reached"),
        "settled": ("refused", "full", "capacity-reached"),
        "inside": ("refused", "full", None),
    }
    assert steps["inside"]["condition"] == "amqp:transaction:unknown-id"
    assert steps["settled"]["outcome"] == "none", "its publisher cannot know"
    searched = gateway.command("trace", "--message-id", "back", "--node", "full")
    assert "1 more messages were not stored; their message-ids are not recorded" in searched


def test_refused_messages_of_a_node_of_three_partitions_are_found(new_gateway: StartGateway) -> None:
    """A run goes to several stores, and each answers its part."""
    gateway = new_gateway("embedded")
    gateway.command(
        "node", "create", "wide", "--partitions", "3", "--capacity-events", "1", "--honour-capacity", "true"
    )
    grouped = [[f"m-{number}", *[None] * 9, f"group-{number}"] for number in range(12)]
    with Peer(gateway.port) as peer:
        peer.publisher("wide")
        peer.publish(*(encode(Described(0x73, fields)) + frames.message() for fields in grouped))
        outcomes = [*peer.outcomes(12).values()]
    assert outcomes.count("accepted") == 1
    gateway.stop()
    whats = [traced(gateway, "--message-id", f"m-{number}")["life"][0]["what"] for number in range(12)]
    assert sorted(whats) == ["published", *["refused"] * 11]


@REALMS
def test_who_published_is_the_user_that_logged_in(new_gateway: StartGateway, kind: str, tmp_path: Any) -> None:
    write_users(tmp_path / "users.yaml", alice=[])
    security = {"sasl": ["PLAIN"], "users": str(tmp_path / "users.yaml"), "plain_without_tls": True}
    gateway = new_gateway(kind, security=security)
    connection = connect(gateway, PASSWORD, "PLAIN")
    connection.create_sender("orders").send(Message(id=uuid.UUID(int=77), body="x"))
    connection.close()
    trace = traced(gateway, "--message-id", str(uuid.UUID(int=77)))
    assert trace["life"][0]["user"] == "alice"


@REALMS
def test_twenty_messages_of_a_node_of_three_partitions_have_the_clients_ledger(
    new_gateway: StartGateway, kind: str
) -> None:
    gateway, choose = new_gateway(kind), random.Random(19)
    gateway.command("node", "create", "dead", "--partitions", "3")
    gateway.command("node", "create", "spread", "--partitions", "3", "--dead-letter", "dead")
    ledger = Ledger(choose)
    with client(gateway.address) as connection:
        ledger.go_through(connection, "spread", [f"m-{number}" for number in range(100)])
    gateway.stop()
    for name in choose.sample(sorted(ledger.done), 20):
        trace = traced(gateway, *choose.choice([("--message-id", name), (ledger.tags[name],)]))
        assert ledger.agrees(name, trace), (name, ledger.done[name], trace)
